"""NVIDIA's parts of a machine: where its libraries are, what the driver says, which Python has PyTorch."""
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys

TOOLKITS = ("/usr/local/cuda/lib64", "/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*/lib", "/opt/cuda/lib64",
            "/usr/local/cuda*/extras/CUPTI/lib64", "/opt/cuda/extras/CUPTI/lib64")
COMPATIBLE = "/usr/local/cuda*/compat"
DRIVERS = "/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib/wsl/lib"
# What a Python has: PyTorch, if it can be imported, and where pip and conda would have put NVIDIA's libraries.
PROBE = """
import json, os, sys
found = {"sites": [path for path in sys.path if os.path.isdir(os.path.join(path, "nvidia"))], "prefix": sys.prefix}
try:
    import torch
    found.update(torch=torch.__version__, cuda=torch.version.cuda, available=torch.cuda.is_available(),
                 cudnn=torch.backends.cudnn.version())
    found["sites"].insert(0, os.path.dirname(os.path.dirname(torch.__file__)))
except Exception as error:
    found["error"] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""
# cuDNN 9 has one name for all CUDAs: which one this is for, as its cudart's version.
CUDNN_PROBE = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).cudnnGetCudartVersion())"
# The newest CUDA that the driver is for, 13020 of 13.2; 0 where it does not start.
DRIVER_PROBE = """
import ctypes
cuda, version = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
print(version.value if cuda.cuInit(0) == 0 and cuda.cuDriverGetVersion(ctypes.byref(version)) == 0 else 0)
"""
# The GPUs in CUDA's order, by the driver alone.
GPU_PROBE = """
import ctypes, json
cuda, count, found = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), []
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
uuid_of = getattr(cuda, "cuDeviceGetUuid_v2", cuda.cuDeviceGetUuid)
for index in range(count.value):
    device, uuid, name = ctypes.c_int(), (ctypes.c_ubyte * 16)(), ctypes.create_string_buffer(256)
    assert cuda.cuDeviceGet(ctypes.byref(device), index) == 0 and uuid_of(ctypes.byref(uuid), device) == 0
    assert cuda.cuDeviceGetName(name, 256, device) == 0
    text = bytes(uuid).hex()
    found.append({"name": name.value.decode(), "uuid": "GPU-" + "-".join(
        (text[:8], text[8:12], text[12:16], text[16:20], text[20:]))})
print(json.dumps(found))
"""


def said(command, timeout=60, **how):
    """What a program prints; None where there is none, or it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, **how)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def parse_cache(text):
    """{name: [paths]} of `ldconfig -p`."""
    known = {}
    for line in text.splitlines():
        left, arrow, path = line.partition(" => ")
        if arrow and "x86-64" in left:
            known.setdefault(left.split()[0], []).append(path.strip())
    return known


def loader_cache():
    for ldconfig in "ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig":
        text = said([ldconfig, "-p"])
        if text:
            return parse_cache(text)
    return {}


def candidates(pythons=()):
    """Folders that may hold NVIDIA's libraries: those a user chose first, then toolkits, then those of Pythons (probe)."""
    folders = [one for one in os.environ.get("LD_LIBRARY_PATH", "").split(":") if one]
    for pattern in TOOLKITS:
        folders += sorted(glob.glob(pattern), reverse=True)
    for known in pythons:
        for site in known["sites"]:
            folders += sorted(glob.glob(f"{glob.escape(site)}/nvidia/*/lib"), reverse=True)
        folders.append(known["prefix"] + "/lib")
    return [pathlib.Path(one) for one in dict.fromkeys(folders)]


def cudnn_cuda(library):
    """The major version of the CUDA that a libcudnn is for; None where it does not say."""
    text = said([sys.executable, "-c", CUDNN_PROBE, str(library)], timeout=20)
    return int(text) // 1000 if text and text.strip().isdigit() else None


def find_libraries(names, folders, cache, fits=lambda path: True):
    """(folders to look in besides the loader's own, names that are nowhere). fits(path) is asked before one is taken; where
    none fits, the first is."""
    chosen, missing = [], []
    for name in names:
        own = [None] if name in cache else []  # the loader's; it comes first unless a folder of the user's has been chosen
        homes = own + [folder for folder in [*chosen, *folders] if (folder / name).exists()]
        if not homes:
            missing.append(name)
            continue
        home = next((one for one in homes if fits(one / name if one else pathlib.Path(cache[name][0]))), homes[0])
        if home is not None and home not in chosen:
            chosen.append(home)
    return chosen, missing


def others(missing, folders, cache):
    """Versions of missing libraries that are there instead: {"libcudart.so.13": "libcudart.so.12 in /…"}."""
    instead = {}
    for name in missing:
        stem = name.partition(".so")[0] + ".so."
        for known, paths in cache.items():
            if known.startswith(stem):
                instead.setdefault(name, f"{known} in {pathlib.Path(paths[0]).parent}")
        for folder in folders:
            for path in sorted(folder.glob(stem + "*")):
                instead.setdefault(name, f"{path.name} in {folder}")
    return instead


def find_driver(cache):
    """The folder of libcuda.so.1 where the loader does not look by itself, as in some containers; else None."""
    already = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    if "libcuda.so.1" in cache or any(pathlib.Path(folder, "libcuda.so.1").exists() for folder in already):
        return None
    return next((folder for folder in DRIVERS if pathlib.Path(folder, "libcuda.so.1").exists()), None)


def driver_cuda(environment):
    """The newest CUDA that the driver is for, 13020 of 13.2; 0 where it does not say."""
    text = said([sys.executable, "-c", DRIVER_PROBE], env=environment)
    return int(text) if text and text.strip().isdigit() else 0


def newer_drivers():
    """Folders of the package cuda-compat, whose libcuda works above an older driver of a data centre's GPU."""
    return [folder for folder in sorted(glob.glob(COMPATIBLE), reverse=True) if os.path.exists(f"{folder}/libcuda.so.1")]


def find_tool(name, sites=()):
    """A program of the toolkit; None where there is none."""
    places = [shutil.which(name), f"/usr/local/nvidia/bin/{name}", f"/usr/lib/wsl/lib/{name}"]
    places += sorted(glob.glob(f"/usr/local/cuda*/bin/{name}"), reverse=True)
    places += sorted(glob.glob(f"/usr/local/cuda*/compute-sanitizer/{name}"), reverse=True)
    for site in sites:
        for folder in "bin", "compute-sanitizer":
            places += glob.glob(f"{glob.escape(site)}/nvidia/*/{folder}/{name}")
    return next((place for place in places if place and os.access(place, os.X_OK)), None)


def probe(python):
    """What PROBE says of a Python; None where it says nothing."""
    text = said([python, "-c", PROBE], timeout=120)
    try:
        return {"python": str(python), **json.loads(text.strip().splitlines()[-1])} if text else None
    except (ValueError, IndexError, TypeError):
        return None


def find_pythons(chosen=None):
    """What is known of each Python that may have PyTorch, up to the first whose PyTorch sees a GPU, which comes first."""
    pythons = [chosen] if chosen else [
        os.environ.get("VIRTUAL_ENV") and os.environ["VIRTUAL_ENV"] + "/bin/python",
        os.environ.get("CONDA_PREFIX") and os.environ["CONDA_PREFIX"] + "/bin/python", shutil.which("python3"),
        shutil.which("python"), "/usr/bin/python3", "/opt/conda/bin/python", sys.executable]
    found = []
    for python in dict.fromkeys(filter(None, pythons)):
        known = {"sites": [], "prefix": "", **(probe(python) or {"error": "it ran no code", "python": str(python)})}
        if known.get("available"):
            return [known, *found]
        found.append(known)
    return found


def why_no_torch(pythons):
    """For a table, where none of them has a PyTorch that sees a GPU."""
    blind = [f"PyTorch {one['torch']} of {one['python']} sees no GPU" for one in pythons if "torch" in one]
    lacking = [f"{one['python']} ({one.get('error', 'no PyTorch')})" for one in pythons if "torch" not in one]
    return "; ".join(blind + ([f"no PyTorch in {', '.join(lacking)}; --python FILE names a Python that has it"] if lacking else []))


def gpus():
    """[{"name", "uuid"}] in CUDA's order, as CUDA_VISIBLE_DEVICES leaves them; empty where the driver does not say."""
    text = said([sys.executable, "-c", GPU_PROBE])
    return json.loads(text) if text else []


def visible(index, environment):
    """CUDA_VISIBLE_DEVICES that leaves only this one of the devices seen now."""
    listed = [one.strip() for one in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if one.strip()]
    return listed[index] if index < len(listed) else str(index)


def smi(uuid=None):
    """{"driver", "GPU memory", …} of nvidia-smi, as far as it tells; of the GPU of that UUID, else of the first."""
    keys = {"driver_version": "driver", "memory.total": "GPU memory", "compute_cap": "compute capability",
            "clocks.max.sm": "highest clock", "compute_mode": "compute mode"}
    program = find_tool("nvidia-smi")
    command = [program, *(["-i", uuid] if uuid else []), f"--query-gpu={','.join(keys)}", "--format=csv,noheader"]
    text = program and said(command)
    if not text:
        return {}
    return dict(zip(keys.values(), map(str.strip, text.splitlines()[0].split(","))))


def processes(uuid=None):
    """Those that use the GPU of that UUID, else any, for a table; None where nvidia-smi does not tell."""
    program = find_tool("nvidia-smi")
    text = program and said([program, *(["-i", uuid] if uuid else []), "--query-compute-apps=pid,process_name,used_memory",
                             "--format=csv,noheader"])
    return None if text is None else "; ".join(filter(None, map(str.strip, text.splitlines()))) or "none listed"


def driver_is_there():
    return pathlib.Path("/proc/driver/nvidia/version").exists() or pathlib.Path("/dev/nvidiactl").exists()
