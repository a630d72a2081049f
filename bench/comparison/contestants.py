"""Who takes part, how each is started, and the processes they run in."""
import ctypes
import json
import os
import pathlib
import select
import signal
import subprocess
import time
from dataclasses import dataclass, field

from networks import MOMENTUM, learning_rate

HERE = pathlib.Path(__file__).resolve().parent


class Absent(Exception):
    """A contestant that cannot take part, or died; says why and what helps."""


@dataclass(frozen=True)
class Cell:
    network: str
    batch: int
    workers: int
    device: str = "cpu"  # as --device of the contestants; "cuda" for any GPU

    def __str__(self):
        where = f"{self.workers} worker{'s' * (self.workers != 1)}" if self.device == "cpu" else self.device
        return f"{self.network}, batch {self.batch}, {where}"


@dataclass(frozen=True)
class Way:
    """One way of running one rival. The first way of a rival is its default."""
    rival: str
    name: str
    command: tuple
    environment: dict = field(default_factory=dict, hash=False)  # besides that of bench/compare itself
    own_rate: bool = False  # whether it takes --learning-rate and --momentum

    @property
    def key(self):
        return f"{self.rival}/{self.name}"


# glibc gives large blocks back to the system and faults them in again at the next step. One heap that keeps its pages
# is what jemalloc or tcmalloc are preloaded for.
KEEP_PAGES = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(64 << 20)}
BOUND = {"OMP_PROC_BIND": "close"}


def ways(contestant, python):
    """All ways, ours first and the ceiling last; programs may be missing.

    `contestant` is the program of that name in a build, `python` that of the venv with the rivals.
    """
    torch = (str(python), str(HERE / "torch_contestant.py"))
    jax = (str(python), str(HERE / "jax_contestant.py"))
    tuned = KEEP_PAGES | BOUND
    compiled = tuned | {"TORCHINDUCTOR_COMPILE_THREADS": "1"}  # else processes of its own stay beside it
    return [
        # It binds its workers to cores of the machine, not to those it was given, unless told.
        Way("arenite", "arenite", (str(contestant),), {"STARPU_WORKERS_GETBIND": "1"}, own_rate=True),
        Way("pytorch", "eager", torch),
        Way("pytorch", "tuned", torch, tuned),
        Way("pytorch", "channels_last", torch, tuned),
        Way("pytorch", "trace", torch, tuned),
        Way("pytorch", "compile", torch, compiled),
        Way("pytorch", "compile_step", torch, compiled),
        Way("jax", "jit", jax),
        Way("jax", "donate", jax, KEEP_PAGES),
        Way("onednn", "onednn", (str(contestant),), BOUND, own_rate=True),
        Way("gemm", "gemm", (str(contestant),), own_rate=True),
    ]


def gpu_ways(contestant, python, device, compute, libraries=None, kernels=None):
    """All ways on a GPU, as `ways`; rivals train on it what `device` is to ours. With `compute` tfloat32 products may round
    to it, for everybody; without, for nobody. `libraries` is the path on which our program alone looks for NVIDIA's, and
    `kernels` a file of those that it is to take."""
    rival = (str(python), str(HERE / "torch_cuda_contestant.py"), "--device", device)
    suffix = "_tf32" if compute == "tfloat32" else ""
    compiled = {"TORCHINDUCTOR_COMPILE_THREADS": str(len(os.sched_getaffinity(0)))}
    return [
        Way("arenite", "arenite", (str(contestant), "--device", device, "--compute", compute,
                                   *(("--kernels", str(kernels)) if kernels else ())),
            {"STARPU_WORKERS_GETBIND": "1"} | ({"LD_LIBRARY_PATH": libraries} if libraries else {}), own_rate=True),
        Way("pytorch", "cuda_eager" + suffix, rival),
        Way("pytorch", "cuda_graphs" + suffix, rival),
        Way("pytorch", "cuda_compile" + suffix, rival, compiled),
        Way("pytorch", "cuda_compile_graphs" + suffix, rival, compiled),
    ]


LIBC = ctypes.CDLL(None)


def prepare(cores, parent):
    """In the child, before its program: as many cores as workers, and an end with ours, even while it stands still."""
    os.sched_setaffinity(0, cores)
    PR_SET_PDEATHSIG = 1
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was killed before this
        os.kill(os.getpid(), signal.SIGKILL)


class Child:
    """A contestant's process. It stands still except in its turns."""

    def __init__(self, way, cell, data, patience=600):
        self.way, self.patience, self.errors = way, patience, []
        cores = sorted(os.sched_getaffinity(0))
        if cell.device == "cpu":  # what a GPU is fed by is no matter of cores
            cores = cores[:cell.workers]
        command = [*way.command, "--variant", way.name, "--network", cell.network, "--batch", str(cell.batch),
                   "--workers", str(cell.workers), "--images", str(data / "images"), "--labels", str(data / "labels")]
        if way.own_rate:
            command += ["--learning-rate", repr(learning_rate(cell.batch)), "--momentum", repr(MOMENTUM)]
        environment = os.environ | way.environment | {"OMP_NUM_THREADS": str(cell.workers)}
        start, parent = time.monotonic(), os.getpid()
        try:
            self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE, preexec_fn=lambda: prepare(cores, parent))
        except OSError as error:
            raise Absent(f"{way.key}: {error}") from None
        self.buffer = b""
        try:
            hello = self.answer()
        except BaseException:
            self.end()
            raise
        self.start_up = hello["first_step"] - start
        self.version, self.configuration = hello["version"], hello["configuration"]
        self.lanes = hello.get("lanes") or None
        self.rest()

    def answer(self, patience=None):
        """The next line of JSON. What it says on standard error is kept for the case that it dies."""
        out, err = self.process.stdout.fileno(), self.process.stderr.fileno()
        patience = patience or self.patience
        end = time.monotonic() + patience
        sources = [out, err]
        while b"\n" not in self.buffer:
            ready, _, _ = select.select(sources, [], [], max(0, end - time.monotonic()))
            if not ready:
                raise Absent(f"{self.way.key}: no answer within {patience:g} s")
            for source in ready:
                text = os.read(source, 1 << 16)
                if not text:
                    sources.remove(source)
                if source == err:
                    self.errors = (self.errors + [text.decode(errors="replace")])[-50:]
                else:
                    self.buffer += text
            if out not in sources and b"\n" not in self.buffer:
                raise Absent(f"{self.way.key}: {self.last_words()}")
        line, self.buffer = self.buffer.split(b"\n", 1)
        try:
            return json.loads(line)
        except json.JSONDecodeError:
            raise Absent(f"{self.way.key}: no JSON but {line[:200]!r}") from None

    def last_words(self):
        """Why it died: the last line it wrote, else its status."""
        while text := os.read(self.process.stderr.fileno(), 1 << 16):
            self.errors.append(text.decode(errors="replace"))
        status = self.process.wait()
        lines = [line.strip() for line in "".join(self.errors).splitlines() if line.strip()]
        ended = f"ended by signal {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return f"{ended}{': ' + lines[-1] if lines else ''}"

    def ask(self, patience=None, **what):
        os.kill(self.process.pid, signal.SIGCONT)
        try:
            self.process.stdin.write(json.dumps(what).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise Absent(f"{self.way.key}: {self.last_words()}") from None
        answer = self.answer(patience)
        self.rest()
        return answer

    def rest(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def peak_rss(self):
        """Bytes. Of the process alone: what it inherited at its start does not count, as it does in getrusage."""
        with open(f"/proc/{self.process.pid}/status") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        return None

    def end(self):
        """It has nothing to save."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                pipe.close()
            except OSError:
                pass
