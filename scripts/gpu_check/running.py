"""What all parts share: results, programs run within a time limit, and progress."""
import ctypes
import functools
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field

PASSED, FAILED, SKIPPED, NOTED = "passed", "FAILED", "skipped", "-"
INCOMPLETE = "incomplete"  # a part of which some passed, some was skipped, and nothing failed
NOT_REACHED = "not reached"


@dataclass
class Check:
    """A row of a part's table. `verdict` is NOTED for what is only told."""
    what: str
    found: str
    wanted: str = ""
    verdict: str = NOTED


@dataclass
class Part:
    """A part's outcome: what the table and results.json say of it."""
    name: str
    checks: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    seconds: float = 0
    skipped: str = ""  # why, if all of it was
    running: bool = False  # tables are written while it does
    details: dict = field(default_factory=dict)  # for results.json alone

    @property
    def status(self):
        verdicts = {check.verdict for check in self.checks}
        if self.skipped:
            return SKIPPED
        if FAILED in verdicts or PASSED not in verdicts:
            return FAILED if FAILED in verdicts else SKIPPED
        return INCOMPLETE if SKIPPED in verdicts or self.running else PASSED

    @property
    def outcome(self):
        """For people: nothing that was left out is to look like a pass."""
        if self.skipped:
            return f"skipped: {self.skipped}"
        counts = {verdict: sum(check.verdict == verdict for check in self.checks) for verdict in (FAILED, SKIPPED)}
        written = ", not done when this was written" * self.running
        return self.status + written + "".join(f", {count} {verdict.lower()}" for verdict, count in counts.items()
                                     if count and (verdict != self.status or verdict == FAILED))

    def program(self, what, error):
        """The row of a program that did not do it: out of time, it is no fault."""
        if isinstance(error, OutOfTime):
            self.skip(what, error)
        else:
            self.check(what, str(error), "done", False)

    def check(self, what, found, wanted, holds):
        self.checks.append(Check(what, found, wanted, PASSED if holds else FAILED))

    def note(self, what, found):
        self.checks.append(Check(what, found))

    def skip(self, what, why):
        self.checks.append(Check(what, f"skipped: {why}", "", SKIPPED))


@dataclass
class Done:
    """How a program ended. `status` is None where it was out of time."""
    status: int
    out: str
    err: str
    seconds: float

    @property
    def why(self):
        """For a table: how it ended, and its last words."""
        lines = [line.strip() for line in (self.err.strip() or self.out.strip()).splitlines() if line.strip()]
        words = f": {lines[-1][:300]}" if lines else ""
        if self.status is None:
            return f"not done after {self.seconds:.0f} s{words}"
        if self.status == -signal.SIGILL:
            return "ended by SIGILL: this processor lacks instructions that the programs were compiled for (see MANIFEST)"
        if self.status < 0:
            return f"ended by {signal.Signals(-self.status).name}{words}"
        return f"ended with status {self.status}{words}"


class OutOfTime(Exception):
    """A program that was ended because its time was over: something skipped, whatever it is."""


class Stopped(BaseException):
    """gpu-check was told to end, by this signal."""

    def __init__(self, number):
        super().__init__()
        self.number = number


# Seconds that a program has to end politely; fewer once gpu-check itself was told to end.
patience = {"seconds": 10.0}
HURRIED = 1.5


def on_signals(first):
    """Calls first() when somebody ends gpu-check, before anything else, then raises Stopped; a second signal changes nothing."""
    numbers = signal.SIGTERM, signal.SIGHUP, signal.SIGINT

    def stop(number, _):
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        patience["seconds"] = HURRIED
        first()
        raise Stopped(number)

    for number in numbers:
        signal.signal(number, stop)


LIBC = ctypes.CDLL(None)


def end_with(parent):
    """For a child, before its program: whoever kills gpu-check is not to be left with programs on the GPU, even such as hang.
    Contestants of bench/compare end with that; of compute-sanitizer it is to be hoped."""
    PR_SET_PDEATHSIG = 1
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was killed before this
        os.kill(os.getpid(), signal.SIGKILL)


def run(command, limit, environment=None, every=None):
    """Runs a program and whatever it begins, and ends them all after `limit` seconds. every() is called each second."""
    start = time.monotonic()
    if limit <= 0:
        return Done(None, "", "no time was left", 0)
    try:
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL, text=True, errors="replace", env=environment,
                                   start_new_session=True, preexec_fn=functools.partial(end_with, os.getpid()))
    except OSError as error:
        return Done(127, "", str(error), 0)
    status = None
    try:
        out, err = watched(process, start + limit, every)
        status = process.returncode
    except subprocess.TimeoutExpired:
        end(process)
        out, err = last_words(process)
    except BaseException:  # an interrupt: it is in a session of its own, and did not hear of it
        end(process)
        raise
    return Done(status, out, err, time.monotonic() - start)


def watched(process, until, every):
    """communicate() that lets every() look on."""
    while True:
        left = until - time.monotonic()
        try:
            return process.communicate(timeout=left if every is None else min(left, 1))
        except subprocess.TimeoutExpired:
            if every is None or until <= time.monotonic():
                raise
            every()


def last_words(process):
    """What it said. Somebody who left its group may hold the pipes for ever."""
    try:
        return process.communicate(timeout=patience["seconds"])
    except subprocess.TimeoutExpired as expired:
        for pipe in process.stdout, process.stderr:
            pipe.close()
        return tuple((part or b"").decode(errors="replace") if isinstance(part, (bytes, type(None))) else part
                     for part in (expired.stdout, expired.stderr))


def end(process):
    """First politely: bench/compare has children of its own, each a process group like itself. Then all that is left of the
    group, though its leader be gone: what it began may go on, as a training that ends with its evaluation."""
    for number in signal.SIGTERM, signal.SIGKILL:
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            process.wait(patience["seconds"])
        except subprocess.TimeoutExpired:
            continue


class Progress:
    """Lines on standard error: what runs, since when, and until when at most."""

    def __init__(self, minutes, out=sys.stderr):
        self.start, self.end, self.out = time.monotonic(), time.monotonic() + 60 * minutes, out

    def left(self):
        return self.end - time.monotonic()

    def show(self, part, what):
        passed, left = time.monotonic() - self.start, max(0.0, self.left())
        print(f"[{clock(passed)}] {part}: {what} (ETA: done in {clock(left)} at most)", file=self.out, flush=True)


def clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
