"""What models keep from run to run, and what their inputs and outputs look like."""

from typing import Any, Callable, Dict, Iterator, MutableMapping, NamedTuple, Tuple

import numpy as np

from ._library import Port, encode, library
from .dtypes import NAMES
from .errors import InvalidError, InvalidTypeError
from .interop import borrow
from .rules import text
from .session import Handle

KINDS = ("parameter", "optimizer state", "buffer")  # the order of arenite_state_kind


class TensorSpec(NamedTuple):
    """What goes into a model, comes out of it, or is kept by it."""

    name: str
    dtype: str
    shape: Tuple[int, ...]
    kind: str = ""  # of what is kept: "parameter", "optimizer state" or "buffer"


def spec_of(port: Port, kind: str = "") -> TensorSpec:
    name = (port.name or b"").decode("utf-8", "surrogateescape")
    return TensorSpec(name, NAMES[port.type], tuple(port.shape[: port.rank]), kind)


class State(MutableMapping[str, np.ndarray]):
    """What a model keeps from run to run, by name: parameters, states of the optimizer, buffers.

    Reading copies the values out; assigning copies them in, of the same shape and element type.
    """

    def __init__(
        self,
        specs: Dict[str, TensorSpec],
        handle: Handle,
        refresh: Callable[[], None],
        changed: Callable[[], None],
        functions: str = "model_",
    ):
        self.specs = specs
        self._handle = handle
        self.lock = handle.lock
        self._get, self._set = f"{functions}get_state", f"{functions}set_state"
        # Are told before and after somebody assigns: other values may be newer elsewhere.
        self._refresh, self._changed = refresh, changed

    def __getitem__(self, name: str) -> np.ndarray:
        spec = self.specs[name]
        values = np.empty(spec.shape, spec.dtype)
        function = getattr(library(), self._get)
        self._handle.call(function, encode(name), values.ctypes.data, values.nbytes)
        return values

    def __setitem__(self, name: str, value: Any) -> None:
        self._refresh()
        self.write(name, value)
        self._changed()

    def write(self, name: str, value: Any) -> None:
        """For those who know of the change."""
        if name not in self.specs:
            raise InvalidError(
                f"no state named {name!r}; expected one of {', '.join(self.specs) or 'none'}"
            )
        spec = self.specs[name]
        values = borrow(value, f"state {name!r}", spec.dtype, spec.shape)
        function = getattr(library(), self._set)
        self._handle.call(function, encode(name), values.ctypes.data, values.nbytes)

    def __delitem__(self, name: str) -> None:
        raise InvalidTypeError(
            f"state {name!r} to be deleted; expected another value: a model keeps what it was made "
            "with"
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.specs)

    def __len__(self) -> int:
        return len(self.specs)

    def __repr__(self) -> str:
        kept = (f"{spec.name}: {spec.kind} {text(spec)}" for spec in self.specs.values())
        return f"State({', '.join(kept)})"
