"""Element types, by the names that scripts have for them."""

from typing import Any

import numpy as np

from .errors import InvalidTypeError

# The order of arenite_type in arenite.h.
NAMES = ("float32", "float64", "int64", "int32", "uint8")
NATIVE = {name: np.dtype(name) for name in NAMES}
REAL = ("float32", "float64")


def dtype_name(dtype: Any) -> str:
    """The name of an element type, given as "float32", numpy.float32, torch.float32, …"""
    name = dtype
    if type(dtype).__module__.partition(".")[0] == "torch":
        name = str(dtype).partition(".")[2]
    elif not isinstance(dtype, str) or dtype not in NAMES:
        try:
            name = np.dtype(dtype).name
        except TypeError:
            pass
    if name not in NAMES:
        raise InvalidTypeError(f"element type {dtype!r}; expected one of {', '.join(NAMES)}")
    return name
