"""Shared libraries: which of them a bundle holds, and where programs look for them."""
import pathlib
import re
import struct
import subprocess

# glibc's own, which have to be those of the machine; the loader among them.
GLIBC = re.compile(r"(ld-linux[-\w]*|libc|libm|libdl|libpthread|librt|libresolv|libutil|libanl|libmvec|libnss_\w+)\.so(\.\d+)*")
# NVIDIA's, which come with its driver, toolkit, or PyTorch.
NVIDIA = re.compile(r"lib(cuda|cudart|cublas\w*|cudnn\w*|cufft\w*|cufile\w*|cupti|curand|cusolver\w*|cusparse\w*|nccl|nvblas|"
                    r"nvidia-\w+|nvjitlink|nvonnx\w*|nvperf_\w+|nvptxcompiler|nvrtc[-\w]*|nvtx\w*|nvml|nvinfer\w*|nvvm)"
                    r"\.so(\.\d+)*", re.IGNORECASE)
DT_NULL, DT_NEEDED, DT_STRTAB, DT_RPATH, DT_RUNPATH, DT_VERNEED = 0, 1, 5, 15, 29, 0x6ffffffe
PT_LOAD, PT_DYNAMIC = 1, 2


class NoElf(Exception):
    """A file that is none of 64 bits, or not as it should be."""


def kind(name):
    """Whose a library of this name is: "glibc", "nvidia" or "bundled"."""
    return "glibc" if GLIBC.fullmatch(name) else "nvidia" if NVIDIA.fullmatch(name) else "bundled"


def parse_ldd(text):
    """{name: path, or None where it was not found} of ldd's output; the kernel's own page is left out."""
    found = {}
    for line in text.splitlines():
        name, arrow, path = line.strip().partition(" => ")
        if not arrow:
            path = name
        path = re.sub(r" \(0x[0-9a-f]+\)$", "", path)
        if arrow:
            found[name] = None if path == "not found" else path
        elif path.startswith("/"):
            found[path.rsplit("/", 1)[1]] = path
    return found


def libraries(file):
    """As `parse_ldd`, of a program or library."""
    try:
        done = subprocess.run(["ldd", str(file)], capture_output=True, text=True)
    except OSError as error:
        raise NoElf(f"{file}: ldd: {error}") from None
    if done.returncode:
        raise NoElf(f"{file}: ldd: {(done.stderr or done.stdout).strip()}")
    return parse_ldd(done.stdout)


def number(version):
    """"GLIBC_2.36" as something to compare; of names without one, the least."""
    return tuple(map(int, re.findall(r"\d+", version)))


def newest(versions, prefix):
    """The highest of versions such as GLIBC_2.36, or "" where none is of that kind."""
    return max((one for one in versions if re.fullmatch(rf"{prefix}_\d+(\.\d+)*", one)), key=number, default="")


class Dynamic:
    """The dynamic section of an ELF file: what it needs and where it looks."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.data = bytearray(self.path.read_bytes())
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise NoElf(f"{path} is no ELF file of 64 bits, little endian")
        offset, = struct.unpack_from("<Q", self.data, 32)
        size, count = struct.unpack_from("<HH", self.data, 54)
        segments = [struct.unpack_from("<IIQQQQ", self.data, offset + i * size) for i in range(count)]
        self.loads = [(at, where, length) for what, _, where, at, _, length in segments if what == PT_LOAD]
        self.entries = {}  # tag: [places of entries]
        for what, _, where, _, _, length in segments:
            if what != PT_DYNAMIC:
                continue
            for place in range(where, where + length, 16):
                tag, _ = struct.unpack_from("<QQ", self.data, place)
                if tag == DT_NULL:
                    break
                self.entries.setdefault(tag, []).append(place)

    def value(self, place):
        return struct.unpack_from("<Q", self.data, place + 8)[0]

    def offset(self, tag, what):
        """Where in the file a table lies."""
        address = self.value(self.entries[tag][0])
        start = next((address - at + where for at, where, length in self.loads if at <= address < at + length), None)
        if start is None:
            raise NoElf(f"{self.path}: no table of {what}")
        return start

    def text(self, index):
        """Where a string of the table lies in the file, and the string."""
        start = self.offset(DT_STRTAB, "strings") + index
        return start, self.data[start:self.data.index(0, start)].decode()

    def string(self, place):
        return self.text(self.value(place))

    def versions(self):
        """{library: [versions that are needed of it]}, such as {"libc.so.6": ["GLIBC_2.34"]}."""
        found = {}
        place = self.offset(DT_VERNEED, "versions") if DT_VERNEED in self.entries else None
        while place is not None:
            _, count, file, first, further = struct.unpack_from("<HHIII", self.data, place)
            names = found.setdefault(self.text(file)[1], [])
            entry = place + first
            for _ in range(count):
                _, _, _, name, step = struct.unpack_from("<IHHII", self.data, entry)
                names.append(self.text(name)[1])
                entry += step
            place = place + further if further else None
        return found

    def glibc(self):
        """The newest version of glibc that it needs, or ""."""
        return newest([one for names in self.versions().values() for one in names], "GLIBC")

    def needed(self):
        return [self.string(place)[1] for place in self.entries.get(DT_NEEDED, [])]

    def search_path(self):
        """(tag, text), or None."""
        for tag in DT_RPATH, DT_RUNPATH:
            for place in self.entries.get(tag, []):
                return tag, self.string(place)[1]
        return None

    def set_search_path(self, text):
        """In place, and for what its libraries need, too: an RPATH, where a RUNPATH is for what the file itself needs."""
        places = self.entries.get(DT_RPATH, []) + self.entries.get(DT_RUNPATH, [])
        if not places:
            raise NoElf(f"{self.path} has no RUNPATH that could become {text}")
        start, before = self.string(places[0])
        if len(text) > len(before):
            raise NoElf(f"{self.path}: its RUNPATH {before} is shorter than {text}")
        self.data[start:start + len(before)] = text.encode().ljust(len(before), b"\0")
        struct.pack_into("<Q", self.data, places[0], DT_RPATH)
        self.path.write_bytes(self.data)
