"""Where programs and data are: in a bundle, or in a checkout with a CUDA build."""
import os
import pathlib
import subprocess

import elf

SET = "fashion-mnist"


def find_images(root):
    """The folder of Fashion-MNIST that programs of a checkout would take, or that beside the checkout; else None."""
    fetch = pathlib.Path(root) / "datasets" / "fetch"
    if fetch.exists():
        found = subprocess.run([str(fetch), "--find", SET], capture_output=True, text=True)
        if found.returncode == 0:
            return pathlib.Path(found.stdout.strip())
    beside = pathlib.Path(root).parent / "shared" / "datasets" / SET
    return beside if beside.is_dir() else None


class Places:
    """The folder of gpu-check: a bundle's, or scripts/ of a checkout."""

    def __init__(self, home, build=None):
        self.home = pathlib.Path(home)
        self.manifest = {}
        self.bundle = build is None and (self.home / "MANIFEST").exists()
        if self.bundle:
            self.root = self.home
            self.manifest = read_manifest((self.home / "MANIFEST").read_text())
            programs = tests = self.home / "bin"
        else:
            self.root = self.home.parent
            builds = [self.root / "build" / preset for preset in ("cuda", "bundle")]
            programs = pathlib.Path(build) if build else next((one for one in builds if (one / "arenite").exists()), builds[0])
            tests = programs / "tests"
        self.programs = programs
        self.arenite = programs / "arenite"
        self.device_test = tests / "cuda_device_test"
        self.program_test = tests / "gpu_programs_test"
        # The one without oneDNN, if both were built.
        self.contestant = programs / ("contestant" if self.bundle or not (programs / "gpu_contestant").exists()
                                      else "gpu_contestant")
        self.gpu_kernels = programs / "gpu_kernels"
        self.heap_counter = programs / "libarenite_heap_counter.so"
        self.cuda_counter = programs / "libarenite_cuda_counter.so"
        self.kernel_trace = programs / "libarenite_kernel_trace.so"
        self.compare = self.root / "bench" / "compare"
        self.found = None  # data(), once it was asked for

    def missing(self):
        """Programs that are not there."""
        return [path for path in (self.arenite, self.contestant) if not path.exists()]

    def data(self):
        """(name of the set to train on, the folder that holds its folder)."""
        if not self.found:
            folder = self.root / "datasets" / SET if self.bundle else find_images(self.root)
            self.found = (SET, folder.parent) if folder and folder.is_dir() else ("synthetic", None)
        return self.found

    def too_old(self, glibc):
        """Why programs cannot run with a glibc of this version, or None."""
        wanted = self.manifest.get("glibc", "")
        if elf.number(wanted) <= elf.number(glibc):
            return None
        return f"this machine's glibc is {glibc}; the programs need {wanted}: build the bundle on an older system"

    def fallback(self, paths):
        """The folder of the bundle's C++ library, where none of those at `paths` is as new as programs need; else None."""
        wanted = self.manifest.get("C++ library", "").split()
        own = next((path for path in map(pathlib.Path, paths) if path.exists()), None)
        if not wanted or (own and all(one.encode() + b"\0" in own.read_bytes() for one in wanted)):
            return None
        return self.root / "lib" / "fallback"


def read_manifest(text):
    """The lines `name: value` that a MANIFEST begins with."""
    found = {}
    for line in text.splitlines()[1:]:
        name, colon, value = line.partition(": ")
        if not colon:
            break
        found[name] = value.strip()
    return found


def lacking(manifest, cpuinfo):
    """Instruction sets that the programs were compiled for, and this processor does not have."""
    wanted = [] if manifest.get("processor", "any").startswith("any") else manifest["processor"].split()
    line = next((line for line in cpuinfo.splitlines() if line.startswith("flags")), "")
    has = set(line.partition(":")[2].split())
    return [flag for flag in wanted if flag not in has]
