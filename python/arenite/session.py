"""Sessions: the workers that models run on."""

import atexit
import ctypes
import os
import threading
import weakref
from typing import Any, Callable, Optional

from ._library import SessionOptions, library
from .errors import Error, InvalidError, InvalidTypeError
from .rules import integer

_ending = threading.Event()


def _end() -> None:
    _ending.set()


class Handle:
    """A pointer of the library, freed once: by its owner, by the collector, or when the interpreter
    ends.

    Freeing waits for the call under way: another thread may be in one. A child of fork() has the
    pointer but not the workers: it frees nothing, and may not use it.
    """

    def __init__(self, owner: Any, pointer: Optional[int], free: Callable[[Any], None], what: str):
        self.lock = threading.RLock()
        self._pointer = pointer
        self._process = os.getpid()
        self._free, self._what = free, what
        weakref.finalize(owner, self.close)  # calls it at the end, too, the newest first
        atexit.unregister(_end)
        atexit.register(_end)  # before those

    def close(self) -> None:
        self.lock.acquire()
        pointer, self._pointer = self._pointer, None
        try:
            if pointer is not None and self._process == os.getpid():
                self._free(ctypes.c_void_p(pointer))
        finally:
            # At the end other threads wait for a lock that nobody gives back: they have nothing to
            # say any more.
            if not _ending.is_set():
                self.lock.release()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise InvalidTypeError(
            f"a {self._what} to be copied or pickled; expected its module or script, of which "
            "another is made"
        )

    @property
    def closed(self) -> bool:
        return self._pointer is None

    def get(self) -> ctypes.c_void_p:
        """The pointer; hold the lock as long as it is used."""
        if self._process != os.getpid():
            raise Error(
                f"a {self._what} of the process that forked this one; expected one made here "
                "(hint: start processes with multiprocessing's 'spawn')"
            )
        if self._pointer is None:
            raise InvalidError(f"a {self._what} that was closed; expected an open one")
        return ctypes.c_void_p(self._pointer)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """function(pointer, …), while nobody frees the pointer."""
        with self.lock:
            return function(self.get(), *arguments)


class Session:
    """The workers. All sessions of a process share them; models made with a session keep them
    alive.

    device: where models run: "cpu"; "cuda" (the first GPU) or "cuda:1"; "auto" (a GPU if there is
        one); or several of them, as "cuda:0+cuda:1". Another device than that of the session that
        already runs is an error.
    workers: threads; 0 is one a processor that the process may use, or as many as the session that
        runs already has. Another number than that session's is an error.
    """

    def __init__(self, device: str = "cpu", workers: int = 0):
        if not isinstance(device, str):
            raise InvalidTypeError(f"device {device!r}; expected a name, such as 'cpu'")
        if not 0 <= integer("workers", workers) < 2**31:
            raise InvalidError(f"{workers} workers; expected 0 or more")
        lib = library()
        pointer = ctypes.c_void_p()
        options = SessionOptions(device.encode(), workers)
        lib.session_create(ctypes.byref(options), ctypes.byref(pointer))
        self.device = device
        self.handle = Handle(self, pointer.value, lib.session_destroy, "session")

    @property
    def workers(self) -> int:
        return self.handle.call(library().session_workers)

    def close(self) -> None:
        """Ends the session. Its models go on; the workers end with the last of them."""
        self.handle.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.handle.closed:
            return "Session(closed)"
        return f"Session(device={self.device!r}, workers={self.workers})"


_default: Optional[Session] = None
_default_lock = threading.Lock()


def default_session() -> Session:
    """The session of models that are given none: made when first needed, with a worker a core."""
    global _default
    with _default_lock:
        if _default is None or _default.handle.closed:
            _default = Session()
        return _default
