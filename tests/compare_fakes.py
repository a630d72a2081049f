"""What the tests of bench/compare share: contestants that do as they are told."""
import io
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench" / "comparison"))

import rounds  # noqa: E402
from contestants import Way  # noqa: E402

# It answers as a contestant does: {rate} samples a second, and dies in turn {dies} (0: as it starts), if ever.
FAKE = """
import json, sys, time
rate, dies = {rate}, {dies}
def say(**what): print(json.dumps(what), flush=True)
if dies == 0: sys.exit("no such module as was needed")
say(ready=True, first_step=time.monotonic(), version="Fake 1", configuration="told what to say", lanes={lanes})
for turn, line in enumerate(sys.stdin, 1):
    asked = json.loads(line)
    if turn == dies: sys.exit("out of breath")
    if "kernels" in asked:
        say(**{traced})
        continue
    if "profile" in asked:
        say(us_per_step={{"kernels": 90.0, "staging": 4.0, "runtime": 5.0, "idle": 1.0}})
    else:
        say(samples=rate * (1 + turn % 2), seconds=1.0, loss=0.5)
"""


def fake(rival, name, rate=100, dies=-1, lanes=None, traced=None):
    return Way(rival, name, (sys.executable, "-SEc", FAKE.format(rate=rate, dies=dies, lanes=lanes, traced=traced or {})))


def executable(file, text):
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!{sys.executable} -SE\nimport sys, json\n" + text)
    file.chmod(0o755)
    return file


def fake_program(file, rate, dies=-1):
    """It answers as the built one does."""
    return executable(file, "if '--ceilings' in sys.argv: print(json.dumps(dict(cpu='c', workers=1, fma_gflops=1.0, "
                            "gemm_gflops=1.0, triad_gb_s=1.0))); sys.exit()\n"
                            "if '--write-data' in sys.argv: print(json.dumps(dict(dataset='d', origin='o', images=1))); "
                            "sys.exit()\n"
                            "if '--list-devices' in sys.argv: print('{}'); sys.exit()\n"
                            "if 'onednn' in sys.argv: sys.exit('a build without it')\n" +
                            FAKE.format(rate=rate, dies=dies, lanes=1, traced={}))


def measured(cell, contestants, count=3, **how):
    """A judged cell of such contestants, and the board."""
    board = rounds.Board(io.StringIO())
    results, profile = rounds.measure(cell, contestants, pathlib.Path("nowhere"), count, 0.01, board,
                                      rounds.Progress(1, io.StringIO()), **how)
    return rounds.judged(cell, results, profile, 1e6, {"pytorch": "pytorch/eager"}), board


def run_it(*arguments):
    return subprocess.run([str(ROOT / "bench" / "compare"), *arguments], capture_output=True, text=True)
