"""The command that is profiled: started, but held until something watches it; and the signals that are meant for it."""
import errno
import os
import shutil
import signal

# Blocked while the command runs: this process waits for them. A terminal's Ctrl-C reaches the command by itself.
SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD}


class Complaint(Exception):
    """What ends the whole, with its exit status."""

    def __init__(self, text, hint="", status=1):
        super().__init__(text + (f"\n  hint: {hint}" if hint else ""))
        self.status = status


def status_of(wait_status):
    """As shells say it: 128 and the signal that ended it."""
    code = os.waitstatus_to_exitcode(wait_status)
    return 128 - code if code < 0 else code


def check(words):
    """Raises Complaint where there is nothing of that name to run, as shells would."""
    if shutil.which(words[0]):
        return
    if os.path.dirname(words[0]) and os.path.exists(words[0]):
        raise Complaint(f"'{words[0]}' is no program that may be run", status=126)
    raise Complaint(f"no command '{words[0]}'; expected a program on PATH or a path of one", status=127)


class Command:
    """A child process that becomes the command when it is told to, and not before. `pid` is its number from the start."""

    def __init__(self, words, environment=None):
        self.words = words
        environment = dict(os.environ, **(environment or {}))
        gate, self._gate = os.pipe()
        self._refusal, refusal = os.pipe()
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        self.pid = os.fork()
        if self.pid == 0:
            self._become(gate, refusal, environment)
        os.close(gate)
        os.close(refusal)

    def _become(self, gate, refusal, environment):
        """In the child: never returns."""
        try:
            os.close(self._gate)
            if os.read(gate, 1):
                for number in (*SIGNALS, signal.SIGPIPE, signal.SIGXFSZ):
                    signal.signal(number, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
                os.execvpe(self.words[0], self.words, environment)
        except OSError as error:
            os.write(refusal, str(error.errno).encode())
        finally:
            os._exit(127)

    def release(self):
        """Lets it run. Raises Complaint where the system refuses it."""
        os.write(self._gate, b"x")
        os.close(self._gate)
        with os.fdopen(self._refusal, "rb") as pipe:
            said = pipe.read()  # until it has become the command
        if not said:
            return
        self.wait()
        number = int(said)
        reason = "in no format that this machine runs" if number == errno.ENOEXEC else os.strerror(number).lower()
        raise Complaint(f"'{self.words[0]}' could not be started: {reason}", status=126)

    def abandon(self):
        """It will not be needed: ends it where it is held."""
        os.close(self._gate)
        self.wait()

    def wait(self):
        """Its exit status when it has ended. What others send to this process instead is handed on."""
        try:
            while True:
                ended, status = os.waitpid(self.pid, os.WNOHANG)
                if ended:
                    return status_of(status)
                told = signal.sigwaitinfo(SIGNALS)
                if told.si_signo != signal.SIGCHLD and told.si_code <= 0:  # by a process, not by the terminal
                    os.kill(self.pid, told.si_signo)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)


def run(words, environment=None):
    """Runs it without further ado: (its process, its exit status)."""
    check(words)
    command = Command(words, environment)
    command.release()
    return command.pid, command.wait()
