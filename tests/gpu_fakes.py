"""Programs that answer as those of a CUDA build on a machine with a GPU, for gpu_check_test.py."""
import pathlib
import sys


def training(accuracy, sha, steps):
    """The part of what `arenite train --device cuda --count-heap` prints that gpu-check reads."""
    return f"""memory plan of 'train' (layout overlay)
  block                        bytes   pinned
  state                       5000 B   device
  train/input.0             225.8 KiB   cuda
  step                        4000 B   device
  total                    234.6 KiB
  on devices                  9000 B   9000 bytes
{steps} steps, 375.0 steps/s; peak RSS 93.1 MiB
handles registered after warm-up: 0, blocks: 0, pins: 0
heap calls in {steps} training and 16 evaluation steps after warm-up: 0, mappings: 0
test accuracy: {accuracy:.2f} %
weights sha256: {sha}
"""


def counts(mallocs, host_allocations):
    """As the counter of CUDA's memory writes."""
    return {"calls": {"cudaMalloc": {"ours": mallocs, "starpu": 0}, "cudaFree": {"ours": 0, "starpu": 0},
                      "cudaHostAlloc": {"ours": 0, "starpu": host_allocations}},
            "peak_device_bytes_while_building": {"ours": 9900, "starpu": 0, "nvidia": 0, "all": 9900},
            "peak_device_bytes": {"ours": 9000, "starpu": 0, "nvidia": 0, "all": 9000},
            "device_bytes_left": {"ours": 0, "starpu": 0, "nvidia": 0, "all": 0}, "untracked": 0}


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own first: what runs cannot be written. Without its site it starts sooner.
    new = path.with_name(path.name + ".new")
    new.write_text(f"#!{sys.executable} -SE\n{text}")
    new.replace(path)
    path.chmod(0o755)
    return path


ARENITE = """
import json, os, sys, time
sys.path.insert(0, {tests!r})
import gpu_fakes
option = lambda name, other: sys.argv[sys.argv.index(name) + 1] if name in sys.argv else other
if {hangs!r} == sys.argv[1]: time.sleep(60)
if {dies!r} == sys.argv[1]:
    print("out of breath", file=sys.stderr)
    sys.exit(3)
gpu = option("--device", "cpu") != "cpu"
steps = 20 * int(option("--epochs", "1"))
counts = os.environ.get("ARENITE_CUDA_COUNTS")
if counts: json.dump(gpu_fakes.counts(5 + {leak} * steps, 2), open(counts, "w"))
callers = os.environ.get("ARENITE_HEAP_CALLERS")
if callers:
    steps = int(option("--limit", "0")) // 64
    built = {{"program": 9000 + steps % 3, "libcuda.so.1": 5000, "others": 0}}
    in_steps = {{"program": 70 + {leak} * steps, "libcuda.so.1": 2 * steps, "others": 0}}
    json.dump({{"process": built, "steps": in_steps}}, open(callers, "w"))
print(gpu_fakes.training({gpu_accuracy} if gpu else 87.0, ("a" if gpu else "b") * 64, steps), end="")
"""

# As FAKE of compare_fakes.py; `not kernels` is 1 − busy · rate.
CONTESTANT = """
import json, sys, time
def say(**what): print(json.dumps(what), flush=True)
def serve(rate, busy):
    say(ready=True, first_step=time.monotonic(), version="Fake 1", configuration="told what to say", lanes=1)
    for line in sys.stdin:
        if "kernels" in json.loads(line):
            say(samples=100, seconds=1.0, busy_seconds=100 * busy, kernels=9)
        else:
            say(samples=rate, seconds=1.0, loss=0.5)
"""

OURS = """
import os
seen = {devices} and os.environ.get("CUDA_VISIBLE_DEVICES", "0") in {seen!r}
devices = [dict(index=0, name="A fake GPU", bytes=1 << 30)] if seen else []
if "--list-devices" in sys.argv: say(cpu="A fake processor", devices=devices, reason="" if devices else "a fake without one")
elif "--write-data" in sys.argv: say(dataset="d", origin="o", images=1)
elif "--kernels" in sys.argv and json.load(open(sys.argv[sys.argv.index("--kernels") + 1]))["measured_on"] == "A fake GPU":
    serve(500, 0.95 / 500)
else: serve(400, 0.95 / 400)
"""

KERNELS = """
import json, sys
option = lambda name: sys.argv[sys.argv.index(name) + 1]
op = "relu(float32 [64])"
cells = option("--cells").split(",")
rows = [dict(network=cell.split("/")[0], batch=int(cell.split("/")[1]), op=f"{{op}} of {{cell}}", kernel=kernel, chosen=kernel == "tiled",
             microseconds=took) for cell in cells for kernel, took in (("tiled", 6.0), ("cudnn", 4.0))]
if {fails}:
    rows[1] = dict(rows[1], error="it fell over")
    del rows[1]["microseconds"]
choices = [dict(op=f"{{op}} of {{cell}}", device="cuda", compute="float32", kernel="tiled" if {fails} else "cudnn") for cell in cells]
json.dump(dict(cells=cells, rows=rows), open(option("--json"), "w"))
json.dump(dict(format="arenite kernel choices 1", measured_on="A fake GPU", choices=choices), open(option("--choose"), "w"))
"""

TESTS = """
import sys
failed = {failed}
skips = {skips!r}
print("Running main() from gtest_main.cc\\n[==========] Running 3 tests from 1 test suite.")
print("[ RUN      ] A.A\\n[       OK ] A.A (1 ms)\\n[ RUN      ] A.B")
print("a.cpp:1: Failure\\n[  FAILED  ] A.B (1 ms)" if failed else "[       OK ] A.B (1 ms)")
if skips: print(f"[ RUN      ] A.C\\n../../tests/a.cpp:98: Skipped\\n{{skips}}\\n\\n[  SKIPPED ] A.C (0 ms)")
print("[----------] 3 tests from A (2 ms total)\\n")
print("[==========] 3 tests from 1 test suite ran. (12 ms total)")
print(f"[  PASSED  ] {{2 - failed}} tests.")
if skips: print("[  SKIPPED ] 1 test, listed below:\\n[  SKIPPED ] A.C")
if failed: print("[  FAILED  ] 1 test, listed below:\\n[  FAILED  ] A.B\\n\\n 1 FAILED TEST")
sys.exit(failed)
"""

SANITIZER = """
import sys, time
if "--help" in sys.argv: sys.exit(print("  --kernel-name arg    Filter kernels"))
time.sleep({takes})
check = sys.argv[sys.argv.index("--tool") + 1]
if check == "memcheck": print("========= ERROR SUMMARY: 0 errors")
else: print("========= RACECHECK SUMMARY: {hazards} hazards displayed ({hazards} errors, 0 warnings)")
with open({log!r}, "a") as log: print(*sys.argv[1:], file=log)
sys.exit(66 if check == "racecheck" and {hazards} else 0)
"""

PYTHON = CONTESTANT + """
rates = dict(cuda_eager=100, cuda_graphs=200, cuda_compile=150)
if sys.argv[1] == "-c":
    say(torch="2.0", cuda="13.0", available=True, cudnn=1, sites=[], prefix="/nonexistent")
else:
    rate = rates[sys.argv[sys.argv.index("--variant") + 1]]
    serve(rate, 0.2 / rate)
"""


def build(folder, gpu_accuracy=87.25, leak=0, tests_fail=False, dies="", devices=True, skips="", seen=("0",), hangs="",
          kernel_fails=False):
    """A folder as build/cuda is."""
    here = str(pathlib.Path(__file__).resolve().parent)
    program(folder / "arenite", ARENITE.format(tests=here, dies=dies, hangs=hangs, leak=leak, gpu_accuracy=gpu_accuracy))
    program(folder / "contestant", CONTESTANT + OURS.format(devices=devices, seen=seen))
    program(folder / "gpu_kernels", KERNELS.format(fails=kernel_fails))
    for test in "cuda_device_test", "gpu_programs_test":
        program(folder / "tests" / test, TESTS.format(failed=int(tests_fail), skips=skips))
    for counter in "cuda", "heap":
        (folder / f"libarenite_{counter}_counter.so").touch()
    return folder


def python(path):
    """It has PyTorch."""
    return program(path, PYTHON)


def sanitizer(folder, hazards=0, takes=0):
    """One that takes so many seconds, and writes its arguments to sanitizer.log beside it."""
    return program(folder / "compute-sanitizer", SANITIZER.format(hazards=hazards, takes=takes, log=str(folder / "sanitizer.log")))
