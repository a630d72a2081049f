"""Linux's perf: whether it is there and may watch, and what it has seen."""
import os
import pathlib
import re
import shutil
import signal
import subprocess

from command import Complaint

PARANOID = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")
REFUSED = re.compile(r"not permitted|permission|access to performance monitoring|function not implemented", re.IGNORECASE)


def find():
    """The path of perf. Raises Complaint where it is missing, or a wrapper without the kernel's own."""
    path = shutil.which("perf")
    hint = "Debian: apt-get install linux-perf (scripts/install-deps --profile); Fedora: dnf install perf; nix develop has it"
    if not path:
        raise Complaint("no 'perf' on PATH; expected Linux's profiler", hint)
    done = subprocess.run([path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode != 0 or "perf version" not in done.stdout:
        raise Complaint(f"'{path}' does not run: {last_words(done.stderr or done.stdout)}", hint)
    return path


def last_words(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def best_event(perf):
    """The processor's own counter of cycles, or the kernel's clock where there is none, as in most virtual machines."""
    done = subprocess.run([perf, "stat", "-x", ",", "-e", "cycles:u", "--", "true"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace")
    counted = re.search(r"^(\d+),[^,]*,cycles:u", done.stderr, re.MULTILINE)
    return "cycles" if counted and int(counted[1]) > 0 else "cpu-clock"


def why_not(said):
    """The Complaint for what perf said instead of recording."""
    if not REFUSED.search(said):
        return Complaint(f"perf does not record: {' '.join(said.split()) or 'it said nothing'}")
    try:
        level = int(PARANOID.read_text())
    except (OSError, ValueError):
        return Complaint("perf may not record: this kernel does not offer it (no " + str(PARANOID) + ")",
                         "containers of some kinds (gVisor) have no perf at all: run it outside")
    if os.geteuid() != 0 and level > 2:
        return Complaint(f"perf may not record: {PARANOID} is {level}; expected at most 2",
                         "as root, until the next boot: sysctl kernel.perf_event_paranoid=2; or run this as root")
    return Complaint("perf may not record: the system call perf_event_open is refused, as in containers it is by default",
                     "start the container with --cap-add PERFMON, or --security-opt seccomp=unconfined, or run this outside")


class Recording:
    """Samples of a process and all that it begins, by frame pointers, into the file `data`."""

    def __init__(self, perf, pid, event, frequency, data):
        """Returns when perf watches. Raises Complaint where it does not."""
        orders, self._orders = os.pipe()
        answers, told = os.pipe()
        self._log = open(f"{data}.log", "w+", encoding="utf-8", errors="replace")
        # In a session of its own, so that Ctrl-C ends the command first.
        self._process = subprocess.Popen(
            [perf, "record", "--call-graph", "fp", "--event", event, "--freq", str(frequency), "--output", str(data),
             "--pid", str(pid), f"--control=fd:{orders},{told}"],
            pass_fds=(orders, told), stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, start_new_session=True)
        os.close(orders)
        os.close(told)
        try:
            os.write(self._orders, b"enable\n")
        except BrokenPipeError:  # it is gone already
            pass
        with os.fdopen(answers, "rb") as pipe:
            if pipe.read(3) == b"ack":
                return
        self._process.wait()
        raise why_not(self._said())

    def _said(self):
        self._log.seek(0)
        return self._log.read()

    def stop(self):
        """Ends it, with what it has. What it did not see it says."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        self._process.wait()
        os.close(self._orders)  # not before: perf 6.1 fails when it sees that
        lost = re.search(r"lost (\d+) (chunks|samples)", self._said(), re.IGNORECASE)
        self._log.close()
        return f"perf lost {lost[1]} {lost[2]}: record fewer a second (--frequency)" if lost else ""


def script(perf, data):
    """The lines in which perf tells the samples of a file."""
    log = pathlib.Path(f"{data}.log")
    with open(log, "w+", encoding="utf-8", errors="replace") as said:
        process = subprocess.Popen([perf, "script", "--input", str(data), "--no-inline", "-F", "comm,pid,tid,ip,sym,dso"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, text=True, errors="replace")
        try:
            yield from process.stdout
        finally:
            process.stdout.close()
            status = process.wait()
        if status != 0:
            said.seek(0)
            raise Complaint(f"perf cannot read its own recording: {last_words(said.read())}")


def maps(pids, since):
    """The files /tmp/perf-PID.map that these processes wrote, and nobody else."""
    for pid in pids:
        path = pathlib.Path(f"/tmp/perf-{pid}.map")
        try:
            found = path.lstat()
        except OSError:
            continue
        if found.st_uid == os.geteuid() and found.st_mtime >= since:
            yield path
