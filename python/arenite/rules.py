"""What functions expect of plain numbers, and how messages show a tensor. What operators expect of
tensors, the library checks.
"""

from typing import TYPE_CHECKING, Any, List, Optional, Tuple

import numpy as np

from .errors import InvalidError, InvalidTypeError
from .sizes import whole

if TYPE_CHECKING:
    from typing import TypeGuard  # from Python 3.10 on


def text(tensor: Any) -> str:
    return f"{tensor.dtype} {list(tensor.shape)}"


def is_integer(value: Any) -> "TypeGuard[int]":
    if type(value) is np.ndarray and value.ndim == 0:
        return value.dtype.kind in "iu"
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: Any) -> "TypeGuard[float]":
    """NumPy's numbers, and arrays without axes, are numbers as well."""
    if type(value) is np.ndarray and value.ndim == 0:
        return value.dtype.kind in "iuf"
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def integer(what: str, value: Any, least: Optional[int] = None) -> int:
    if not is_integer(value):
        raise InvalidTypeError(f"{what} {value!r}; expected an integer")
    if least is not None and value < least:
        raise InvalidError(f"{what} {value}; expected at least {least}")
    return whole(value)


def integers(what: str, value: Any) -> List[int]:
    """Of a tuple or list of them, or of one alone."""
    given = value if isinstance(value, (tuple, list)) else [value]
    if not all(map(is_integer, given)):
        raise InvalidTypeError(f"{what} {value!r}; expected integers")
    return [whole(one) for one in given]


def pair(what: str, value: Any, least: Optional[int] = None) -> Tuple[int, int]:
    """3 → (3, 3): rows and columns."""
    both = value if isinstance(value, (tuple, list)) else (value, value)
    if len(both) != 2 or not all(map(is_integer, both)):
        raise InvalidTypeError(f"{what} {value!r}; expected an integer or two, of rows and columns")
    return integer(what, both[0], least), integer(what, both[1], least)


def expect_axis(op: str, dim: Any, rank: int) -> int:
    axis = integer(f"{op}: axis", dim)
    if not -rank <= axis < rank:
        raise InvalidError(f"{op}: axis {dim}; expected {-rank} ≤ axis < {rank}")
    return axis % rank


def expect_axes(op: str, dim: Any, rank: int) -> List[int]:
    """All axes for None; else those given, each once."""
    given = range(rank) if dim is None else dim if isinstance(dim, (tuple, list)) else [dim]
    axes = [expect_axis(op, one, rank) for one in given]
    if len(set(axes)) != len(axes):
        raise InvalidError(f"{op}: axes {list(dim)}, one of them twice; expected each once")
    return axes
