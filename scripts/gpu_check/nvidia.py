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
DRIVERS = "/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib/wsl/lib"
PROBE = """
import json, site, sys, sysconfig
import torch
print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda, "available": torch.cuda.is_available(),
                  "cudnn": torch.backends.cudnn.version(), "site": sysconfig.get_paths()["purelib"],
                  "file": torch.__file__}))
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


def candidates(site=None):
    """Folders that may hold NVIDIA's libraries, those a user chose first, then toolkits, then PyTorch's."""
    folders = [one for one in os.environ.get("LD_LIBRARY_PATH", "").split(":") if one]
    for pattern in TOOLKITS:
        folders += sorted(glob.glob(pattern), reverse=True)
    if site:
        folders += sorted(glob.glob(f"{site}/nvidia/*/lib"))
    return [pathlib.Path(one) for one in dict.fromkeys(folders)]


def find_libraries(names, folders, cache):
    """(folders to look in besides the loader's own, names that are nowhere)."""
    wanted = [name for name in names if name not in cache]
    chosen, missing = [], []
    for name in wanted:
        home = next((folder for folder in [*chosen, *folders] if (folder / name).exists()), None)
        if home is None:
            missing.append(name)
        elif home not in chosen:
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


def find_tool(name, site=None):
    """A program of the toolkit; None where there is none."""
    places = [shutil.which(name), f"/usr/local/nvidia/bin/{name}", f"/usr/lib/wsl/lib/{name}"]
    places += sorted(glob.glob(f"/usr/local/cuda*/bin/{name}"), reverse=True)
    places += sorted(glob.glob(f"/usr/local/cuda*/compute-sanitizer/{name}"), reverse=True)
    if site:
        places += glob.glob(f"{site}/nvidia/*/bin/{name}") + glob.glob(f"{site}/nvidia/*/compute-sanitizer/{name}")
    return next((place for place in places if place and os.access(place, os.X_OK)), None)


def find_torch(chosen=None):
    """(Python, what it says of PyTorch); (None, why not)."""
    pythons = [chosen] if chosen else [
        os.environ.get("VIRTUAL_ENV") and os.environ["VIRTUAL_ENV"] + "/bin/python", shutil.which("python3"),
        shutil.which("python"), "/usr/bin/python3", "/opt/conda/bin/python", sys.executable]
    tried = []
    for python in dict.fromkeys(filter(None, pythons)):
        text = said([python, "-c", PROBE])
        if text:
            return python, json.loads(text.strip().splitlines()[-1])
        tried.append(str(python))
    return None, f"no PyTorch in {', '.join(tried)}; --python FILE names a Python that has it"


def smi():
    """{"driver", "gpu", …} of nvidia-smi, as far as it tells."""
    keys = {"driver_version": "driver", "name": "GPU", "memory.total": "GPU memory", "compute_cap": "compute capability",
            "clocks.max.sm": "highest clock"}
    program = find_tool("nvidia-smi")
    text = program and said([program, f"--query-gpu={','.join(keys)}", "--format=csv,noheader"])
    if not text:
        return {}
    return dict(zip(keys.values(), map(str.strip, text.splitlines()[0].split(","))))


def driver_is_there():
    return pathlib.Path("/proc/driver/nvidia/version").exists() or pathlib.Path("/dev/nvidiactl").exists()
