"""Interpreters that run a page's commands one after another, as a reader's shell would, and end with the page."""
import os
import pathlib
import select
import signal
import subprocess
import sys
import time

RUN_BLOCKS = pathlib.Path(__file__).with_name("run_blocks.py")


class Died(Exception):
    """The interpreter is gone, or was ended because a command took too long."""


class Interpreter:
    """A process that runs one file after another and says each one's status on a pipe. It has no terminal and nothing
    to read; all that it starts ends with it.
    """

    def __init__(self, command, folder, environment, scratch):
        self._scratch, self._steps, self._closed = scratch, 0, False
        scratch.mkdir(parents=True, exist_ok=True)
        self._output = scratch / "output"
        self._status, write_end = os.pipe()
        with open(self._output, "wb") as output:
            self._process = subprocess.Popen([*command, str(write_end)], cwd=folder, env=environment,
                                             stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT,
                                             pass_fds=[write_end], start_new_session=True)
        os.close(write_end)

    def run(self, text, seconds, suffix=""):
        """Returns the exit status and what was printed. Throws Died."""
        self._steps += 1
        step = self._scratch / f"step_{self._steps}{suffix}"
        step.write_text(text, encoding="utf-8")
        before = self._output.stat().st_size
        self._process.stdin.write(f"{step}\n".encode())
        self._process.stdin.flush()
        status = self._wait(seconds)
        with open(self._output, "rb") as output:
            output.seek(before)
            printed = output.read().decode("utf-8", "replace")
        if isinstance(status, str):
            self.close()
            raise Died(f"{status}\n{printed}")
        return status, printed

    def _wait(self, seconds):
        """The status that the process says, or why there is none."""
        end, said = time.monotonic() + seconds, b""
        while not said.endswith(b"\n"):
            ready, _, _ = select.select([self._status], [], [], max(0.0, min(1.0, end - time.monotonic())))
            heard = os.read(self._status, 64) if ready else b""
            said += heard
            if ready and not heard or self._process.poll() is not None and not ready:
                return "it ended the shell that runs the page"
            if time.monotonic() >= end:
                return f"it ran longer than {seconds} s"
        return int(said)

    def close(self):
        if self._closed:
            return
        self._closed = True
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        self._process.stdin.close()
        os.close(self._status)


def bash(folder, environment, scratch):
    """Each step in the same shell, so that cd, variables and functions last. A step's last line may be a comment."""
    # $0 is the pipe's number, so that no step finds an argument.
    return Interpreter(["bash", "--noprofile", "--norc", "-c",
                        'while IFS= read -r step; do source "$step" </dev/null; echo "$?" >&"$0"; done'],
                       folder, environment, scratch)


def python(folder, environment, scratch):
    """All blocks of a page share their names."""
    return Interpreter([sys.executable, str(RUN_BLOCKS)], folder, environment, scratch)


def statements(text):
    """The commands of a block, each with the number of its first line, from 0. One that goes on in the next line (a
    backslash, an open quote, a here-document, a loop) is one.
    """
    found, pending, begin = [], [], 0
    for number, line in enumerate(text.split("\n")):
        if not pending and (not line.strip() or line.lstrip().startswith("#")):
            continue
        if not pending:
            begin = number
        pending.append(line)
        if is_complete("\n".join(pending)):
            found.append((begin, "\n".join(pending)))
            pending = []
    if "".join(pending).strip():
        found.append((begin, "\n".join(pending).rstrip()))
    return found


def is_complete(text):
    if text.endswith("\\"):
        return False
    # An open here-document is a warning only.
    checked = subprocess.run(["bash", "-n"], input=text + "\n", capture_output=True, text=True)
    return checked.returncode == 0 and not checked.stderr
