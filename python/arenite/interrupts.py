"""Ctrl-C, and other signals that Python handles: between two steps, not within one."""

import contextlib
import signal
import threading
from typing import Any, Dict, Iterator, List, Optional, Tuple

# Those whose handlers people let raise: of the keyboard, of timeouts, of whoever ends processes.
_RAISING = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGHUP", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
]


def _is_main() -> bool:
    """Python handles signals on that thread alone."""
    return threading.current_thread() is threading.main_thread()


class Interrupts:
    """Within it a first Ctrl-C waits for `raise_now`, so that what a step has changed and what is
    written down of it are one; a second one is raised at once. Where somebody handles the signal
    himself, or on other threads, nothing changes.
    """

    def __init__(self) -> None:
        self._noted = self._ours = False

    def __enter__(self) -> "Interrupts":
        self._ours = (
            _is_main() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if self._ours:
            signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, *_: Any) -> None:
        if self._noted:
            raise KeyboardInterrupt
        self._noted = True

    def raise_now(self) -> None:
        if self._noted:
            raise KeyboardInterrupt

    def __exit__(self, *_: Any) -> None:
        if self._ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


class Held:
    """Signals wait until its end: around calls of C that may call back. What a handler raises
    before the first line of a callback has no one to go to, and C gets no answer. Behind a first
    one others are handled at once where a callback catches what they raise (`heard`), so that a
    network that is never done can be ended.
    """

    newest: Optional["Held"] = None  # on the main thread; only the first holds any

    def __init__(self) -> None:
        self._handlers: Dict[int, Any] = {}
        self._came: List[Tuple[int, Any]] = []
        self._before: Optional[Held] = None
        self._hears = self._entered = False

    def __enter__(self) -> "Held":
        if _is_main():
            self._before, Held.newest = Held.newest, self
            self._entered = True
            try:
                if self._before is None:
                    self._hold()
            except BaseException:
                self.__exit__()
                raise
        return self

    def _hold(self) -> None:
        for number in _RAISING:
            handler = signal.getsignal(number)
            if callable(handler):
                self._handlers[number] = handler
                signal.signal(number, self._note)

    def _note(self, number: int, frame: Any) -> None:
        self._came.append((number, frame))
        if len(self._came) > 1 and Held.newest is not None and Held.newest._hears:
            self._handlers[number](*self._came.pop())

    def __exit__(self, *_: Any) -> None:
        if not self._entered:
            return
        Held.newest = self._before
        try:
            self._put_back()
        except BaseException:  # of one that came as soon as its handler was back
            self._put_back()
            raise
        for number, frame in self._came:
            self._handlers[number](number, frame)

    def _put_back(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def heard() -> Iterator[None]:
    """Within a callback, where what handlers raise is caught."""
    held = Held.newest if _is_main() else None
    if held is None:
        yield
        return
    held._hears = True
    try:
        yield
    finally:
        held._hears = False
