"""Ctrl-C between two steps, not within one."""

import signal
import threading
from typing import Any


class Interrupts:
    """Within it a first Ctrl-C waits for `raise_now`, so that what a step has changed and what is
    written down of it are one; a second one is raised at once. Where somebody handles the signal
    himself, or on other threads, nothing changes.
    """

    def __init__(self) -> None:
        self._noted = self._ours = False

    def __enter__(self) -> "Interrupts":
        self._ours = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
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
