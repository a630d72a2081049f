"""What the parts know of the machine, and of what was asked for."""
import json
import os
import pathlib
import platform
import sys

import elf
import nvidia
from cells import wanted
from places import lacking
from running import Progress, run

LATEST = 10  # seconds kept for writing the tables


class Context:
    def __init__(self, options, places, folder):
        """`folder` is where the check may write: the tables, and in cache/ what StarPU and PyTorch measure and compile."""
        self.places, self.quick, self.folder = places, options.quick, folder
        self.cells = wanted(options)
        self.libraries, self.wanted_device = options.libraries, options.device
        self.device = "cuda"  # whichever it is, children see no other
        self.all_gpus, self.visible = options.all_gpus, os.environ.get("CUDA_VISIBLE_DEVICES")
        self.gpu, self.known, self.earlier = {}, {}, {}
        self.found = {}  # the first table
        self.kernels = {}  # what part kernels knows
        self.progress, self.scale = Progress(options.minutes), options.minutes / 9
        self.python_here = sys.executable
        self.cuda = ""  # the major version that the programs are for
        self.cudnn = None  # which one our programs take, and for which CUDA it is
        self.save = lambda: None  # writes the tables as they are now
        self.cache = nvidia.loader_cache()
        if driver := nvidia.find_driver(self.cache):  # for PyTorch, too
            os.environ["LD_LIBRARY_PATH"] = ":".join(filter(None, (os.environ.get("LD_LIBRARY_PATH"), driver)))
        self.see_one_device()
        self.pythons = nvidia.find_pythons(options.python)
        first = self.pythons[0]
        self.torch = first if first.get("available") else {}
        self.torch_python = self.torch.get("python")
        self.torch_reason = "" if self.torch else nvidia.why_no_torch(self.pythons)
        self.sites = [site for one in self.pythons for site in one["sites"]]
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("STARPU_")}
        # Else the first program of all measures the machine's buses, in the midst of what is counted.
        self.environment["STARPU_PERF_MODEL_DIR"] = str(self.cached("starpu"))
        if places.bundle:
            self.environment["HWLOC_PLUGINS_PATH"] = str(places.home / "no-plugins")  # those of another hwloc would not fit
        _, images = places.data()
        if images:
            self.environment["ARENITE_DATASETS"] = str(images)

    def cached(self, name):
        place = (self.folder / "cache" / name).absolute()
        place.mkdir(parents=True, exist_ok=True)
        return place

    def see_one_device(self):
        """For all children: the GPU that was asked for is their only one. Others may be somebody's."""
        index = int(self.wanted_device[5:] or 0) if ":" in self.wanted_device else 0
        there = nvidia.gpus()
        if index < len(there):
            self.gpu = there[index]
        if index > 0 or len(there) > 1:
            os.environ["CUDA_VISIBLE_DEVICES"] = nvidia.visible(index, os.environ)

    def for_small_programs(self):
        """Their environment: they use several GPUs, where they may and there are several."""
        environment = dict(self.environment)
        if self.all_gpus:
            environment.pop("CUDA_VISIBLE_DEVICES", None)
            if self.visible is not None:
                environment["CUDA_VISIBLE_DEVICES"] = self.visible
        return environment

    def limit(self, most):
        """Seconds that a part may take that has `most` of nine minutes; None takes what is left."""
        left = self.progress.left() - LATEST
        return max(0.0, left if most is None else min(left, most * self.scale))

    def show(self, part, what):
        self.progress.show(part.name, what)

    def find_libraries(self):
        """NVIDIA's, for our programs. Why they cannot run, or None."""
        names = self.places.manifest.get("nvidia", "").split()
        if not names:
            try:
                names = [name for name in elf.libraries(self.places.arenite) if elf.kind(name) == "nvidia" and
                         not name.startswith("libcuda.so")]
            except elf.NoElf:
                names = []  # the programs will say what they lack
        chosen_first = [self.libraries] if self.libraries else []
        folders = [*chosen_first, *nvidia.candidates(self.pythons)]
        # CUPTI's is asked for by name only, and often stands apart.
        runtime = next((name for name in names if name.startswith("libcudart.so.")), "")
        self.cuda = major = runtime.rpartition(".")[2]

        def fits(path):
            return not path.name.startswith("libcudnn.so") or not major or nvidia.cudnn_cuda(path) in (None, int(major))

        chosen, missing = nvidia.find_libraries(names, folders, {} if chosen_first else self.cache, fits)
        if chosen_first:  # what is not there may be the loader's own
            more, missing = nvidia.find_libraries(missing, folders, self.cache, fits)
            chosen = chosen_first + [one for one in [*chosen, *more] if one != self.libraries]
        chosen += nvidia.find_libraries([f"libcupti.so.{major}"], [*chosen, *folders], self.cache)[0]
        path = list(dict.fromkeys(map(str, chosen)))
        before = [one for one in os.environ.get("LD_LIBRARY_PATH", "").split(":") if one]
        own = [f"{folder}/libstdc++.so.6" for folder in [*path, *before]] + self.cache.get("libstdc++.so.6", [])
        fallback = self.places.fallback(own)
        there = [file for name in names if name.startswith("libcudnn.so") for file in
                 [*(f"{folder}/{name}" for folder in [*path, *before]), *self.cache.get(name, [])]]
        cudnn = next(filter(os.path.exists, there), None)
        self.cudnn = f"{cudnn}, for CUDA {nvidia.cudnn_cuda(cudnn) or 'unknown'}" if cudnn else None
        self.environment["LD_LIBRARY_PATH"] = ":".join(([str(fallback)] if fallback else []) + path + before)
        if not missing:
            return None
        instead = nvidia.others(missing, folders, self.cache)
        return "missing libraries of NVIDIA's: " + ", ".join(
            name + (f" (there is {instead[name]})" if name in instead else "") for name in missing) + \
            "; they come with the CUDA toolkit or PyTorch for that CUDA; --libraries DIR names their folder"

    def old_driver(self):
        """Why the driver does not do for the programs' CUDA, or None. A newer libcuda that is there is taken."""
        knows = nvidia.driver_cuda(self.environment)
        if not knows or not self.cuda or knows // 1000 >= int(self.cuda):
            return None
        for folder in nvidia.newer_drivers():
            environment = {**self.environment,
                           "LD_LIBRARY_PATH": ":".join(filter(None, (folder, self.environment.get("LD_LIBRARY_PATH"))))}
            if nvidia.driver_cuda(environment) // 1000 >= int(self.cuda):
                self.environment = environment
                return None
        return f"the driver is for CUDA {knows // 1000}.{knows % 1000 // 10}, and the programs are for CUDA {self.cuda}: they need " \
               f"a newer driver, or its package cuda-compat-{self.cuda}-0, whose folder LD_LIBRARY_PATH names"

    def find_device(self):
        """(why the parts cannot run, whether that is a fault that should be mended), or (None, False)."""
        if old := self.places.too_old(os.confstr("CS_GNU_LIBC_VERSION").split()[-1]):
            print(f"gpu-check: {old}", file=sys.stderr)
            return old, True
        wrong, driver = self.find_libraries(), nvidia.driver_is_there()
        if driver and (old := self.old_driver()):
            return old, True
        if wrong:
            return ("" if driver else "no device: no NVIDIA driver, and ") + wrong, driver
        done = run([self.places.contestant, "--list-devices"], 60, self.environment)
        try:
            self.known = json.loads(done.out)
        except json.JSONDecodeError:
            return f"{self.places.contestant.name} does not start: {done.why}", True
        if not self.known["devices"]:
            reason = (f"{self.wanted_device}: " if ":" in self.wanted_device else "") + self.known["reason"]
            if not driver:
                return f"no device: no NVIDIA driver ({reason})", False
            return (f"no device: {reason}", False) if "no CUDA-capable device" in reason else (reason, True)
        return None, False


def about(context):
    """The first table: the machine, and whose programs these are."""
    gpus = context.known.get("devices", [])
    found = {"GPU": f"{gpus[0]['name']} ({gpus[0]['bytes'] >> 20} MiB)" if gpus else "none"}
    if "uuid" in context.gpu:
        found |= {"GPU's UUID": context.gpu["uuid"]}
    found |= nvidia.smi(context.gpu.get("uuid"))
    others = nvidia.processes(context.gpu.get("uuid"))
    if others is not None:
        found["others on the GPU at the start"] = others
    found |= {"processor": context.known.get("cpu", platform.processor()),
              "cores": len(os.sched_getaffinity(0)), "system": platform.platform(),
              "glibc": os.confstr("CS_GNU_LIBC_VERSION").split()[-1], "Python": platform.python_version()}
    found |= {"PyTorch": f"{context.torch['torch']} (CUDA {context.torch['cuda']}, cuDNN {context.torch['cudnn']})"
              if context.torch_python else context.torch_reason}
    found |= {f"bundle's {name}": value for name, value in context.places.manifest.items() if name != "bytes"}
    name, folder = context.places.data()
    found["images"] = name + (f" in {folder}" if folder else ", drawn")
    found["library path"] = context.environment.get("LD_LIBRARY_PATH") or "the loader's own"
    if context.cudnn:
        found["cuDNN of ours"] = context.cudnn
    missing = lacking(context.places.manifest, pathlib.Path("/proc/cpuinfo").read_text())
    if missing:
        found["this processor lacks"] = f"{' '.join(missing)}: programs may end by SIGILL; build with -DARENITE_NATIVE=OFF"
        print(f"gpu-check: this processor lacks {' '.join(missing)}, which the programs were compiled for", file=sys.stderr)
    return found
