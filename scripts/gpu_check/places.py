"""Where programs and data are: in a bundle, or in a checkout with a CUDA build."""
import os
import pathlib


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
            programs = pathlib.Path(build) if build else self.root / "build" / "cuda"
            tests = programs / "tests"
        self.programs = programs
        self.arenite = programs / "arenite"
        self.device_test = tests / "cuda_device_test"
        self.program_test = tests / "gpu_programs_test"
        # The one without oneDNN, if both were built.
        self.contestant = programs / ("contestant" if self.bundle or not (programs / "gpu_contestant").exists()
                                      else "gpu_contestant")
        self.heap_counter = programs / "libarenite_heap_counter.so"
        self.cuda_counter = programs / "libarenite_cuda_counter.so"
        self.kernel_trace = programs / "libarenite_kernel_trace.so"
        self.compare = self.root / "bench" / "compare"
        self.datasets = self.root / "datasets" if self.bundle else None

    def missing(self):
        """Programs that are not there."""
        return [path for path in (self.arenite, self.contestant) if not path.exists()]

    def data(self):
        """(name of the set to train on, how it was chosen)."""
        folders = [self.datasets] if self.datasets else [
            pathlib.Path(one) for one in (os.environ.get("ARENITE_DATASETS"), self.root.parent / "shared" / "datasets") if one]
        for folder in folders:
            if (folder / "fashion-mnist").is_dir():
                return "fashion-mnist", folder
        return "synthetic", None


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
