"""What operators expect of their operands: checked where the user wrote them, and once more by the
library.
"""

from typing import Any, List, Sequence, Tuple

import numpy as np

from .dtypes import REAL
from .errors import InvalidError, InvalidTypeError
from .graph import Shape
from .tensor import Tensor


def text(tensor: Tensor) -> str:
    return f"{tensor.dtype} {list(tensor.shape)}"


def expect_type(op: str, what: str, tensor: Tensor, *types: str) -> None:
    if tensor.dtype not in types:
        raise InvalidTypeError(f"{op}: {what} of {text(tensor)}; expected {' or '.join(types)}")


def expect_real(op: str, what: str, tensor: Tensor) -> None:
    expect_type(op, what, tensor, *REAL)


def expect_rank(op: str, what: str, tensor: Tensor, rank: int, letters: str) -> None:
    if tensor.ndim != rank:
        raise InvalidError(f"{op}: {what} of shape {list(tensor.shape)}; expected {letters}")


def expect_shape(op: str, what: str, tensor: Tensor, shape: Sequence[int], why: str) -> None:
    if tensor.shape != tuple(shape):
        raise InvalidError(
            f"{op}: {what} of shape {list(tensor.shape)}; expected {list(shape)}, {why}"
        )


def expect_index(op: str, what: str, tensor: Tensor) -> None:
    expect_type(op, what, tensor, "int64")
    expect_shape(op, what, tensor, (1,), "one index")


def expect_axis(op: str, dim: Any, rank: int) -> int:
    if isinstance(dim, bool) or not isinstance(dim, (int, np.integer)):
        raise InvalidTypeError(f"{op}: axis {dim!r}; expected an integer")
    if not -rank <= dim < rank:
        raise InvalidError(f"{op}: axis {dim}; expected {-rank} ≤ axis < {rank}")
    return int(dim) % rank


def expect_axes(op: str, dim: Any, rank: int) -> List[int]:
    """All axes for None; else those given, each once."""
    if dim is None:
        return list(range(rank))
    axes = [
        expect_axis(op, one, rank) for one in (dim if isinstance(dim, (tuple, list)) else [dim])
    ]
    if len(set(axes)) != len(axes):
        raise InvalidError(f"{op}: axes {list(dim)}, one of them twice; expected each once")
    return axes


def pair(op: str, what: str, value: Any, least: int) -> Tuple[int, int]:
    """3 → (3, 3): rows and columns."""
    both = value if isinstance(value, (tuple, list)) else (value, value)
    if len(both) != 2 or any(
        isinstance(v, bool) or not isinstance(v, (int, np.integer)) for v in both
    ):
        raise InvalidTypeError(
            f"{op}: {what} {value!r}; expected an integer or two, of rows and columns"
        )
    if min(both) < least:
        raise InvalidError(f"{op}: {what} {value!r}; expected at least {least}")
    return int(both[0]), int(both[1])


def window(
    op: str,
    image: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int] = (1, 1),
) -> Tuple[int, int]:
    """Rows and columns of what a window that moves over [N, H, W, C] makes."""
    found = []
    for axis in (0, 1):
        size, extent = (
            image.shape[1 + axis] + 2 * padding[axis],
            (kernel[axis] - 1) * dilation[axis] + 1,
        )
        if extent > size:
            raise InvalidError(
                f"{op}: a kernel of {list(kernel)} for an image of shape {list(image.shape)} with "
                f"padding {list(padding)}; expected one that fits"
            )
        found.append((size - extent) // stride[axis] + 1)
    return found[0], found[1]


def common_shape(op: str, a: Tensor, b: Tensor) -> Shape:
    """The shape that both can be repeated to, as in NumPy: aligned at the last axis, sizes equal or
    1.
    """
    rank = max(a.ndim, b.ndim)
    left, right = ((1,) * (rank - t.ndim) + t.shape for t in (a, b))
    if any(m != n and 1 not in (m, n) for m, n in zip(left, right)):
        raise InvalidError(
            f"{op}: shapes {list(a.shape)} and {list(b.shape)}; expected sizes that are equal, or "
            "1, from the last axis on"
        )
    return tuple(n if m == 1 else m for m, n in zip(left, right))
