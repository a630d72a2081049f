"""Views, copies in another order, and rows that only the run knows."""

import builtins
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from .errors import InvalidError, InvalidTypeError
from .graph import check_shape
from .rules import expect_axis, integer, integers, is_integer
from .sizes import Size, whole
from .tensor import Tensor, TensorLike, as_tensor, one


def reshape(x: TensorLike, shape: Any) -> Tensor:
    """The same bytes under another shape; one size may be -1: it follows from the others."""
    sizes = integers("reshape: shape", shape)
    # What has no name for scripts, but follows from the others.
    unnamed = [i for i, size in enumerate(sizes) if isinstance(size, Size) and not size.name]
    if len(unnamed) == 1 and not {0, -1} & set(sizes):
        sizes[unnamed[0]] = -1
    return one("reshape", x, shape=sizes)


def flatten(x: TensorLike) -> Tensor:
    """[N, …] → [N, rest], a view."""
    return one("flatten", x)


def squeeze(x: TensorLike, dim: int) -> Tensor:
    """Without an axis of size 1."""
    x = as_tensor(x)
    axis = expect_axis("squeeze", dim, x.ndim)
    if x.shape[axis] != 1:
        raise InvalidError(f"squeeze: axis {dim} of shape {list(x.shape)}; expected one of size 1")
    return reshape(x, x.shape[:axis] + x.shape[axis + 1 :])


def unsqueeze(x: TensorLike, dim: int) -> Tensor:
    """With an axis of size 1 more, in front of axis `dim`."""
    x = as_tensor(x)
    axis = expect_axis("unsqueeze", dim, x.ndim + 1)
    return reshape(x, x.shape[:axis] + (1,) + x.shape[axis:])


def slice(x: TensorLike, begin: int, end: int) -> Tensor:
    """Rows begin … end − 1 of the first axis, a view. `x[begin:end]` with Python's rules for
    negative numbers.
    """
    whole = {"begin": integer("slice: begin", begin), "end": integer("slice: end", end)}
    return one("slice", x, **whole)


def permute(x: TensorLike, dims: Any) -> Tensor:
    """Axis i of the result is axis dims[i] of x; a copy."""
    x = as_tensor(x)
    return one(
        "permute",
        x,
        dims=[expect_axis("permute", dim, x.ndim) for dim in integers("permute: dims", dims)],
    )


def transpose(x: TensorLike, dim0: int, dim1: int) -> Tensor:
    """With two axes swapped; a copy."""
    x = as_tensor(x)
    dims = list(range(x.ndim))
    i, j = expect_axis("transpose", dim0, x.ndim), expect_axis("transpose", dim1, x.ndim)
    dims[i], dims[j] = dims[j], dims[i]
    return permute(x, dims)


def _taken(op: str, name: str, given: Any) -> Dict[str, Any]:
    if given is None:
        return {}
    taken = integers(f"{op}: {name}", given)
    if not taken:  # which the library takes for all of them
        raise InvalidError(f"{op}: {name}=[]; expected none, or [begin, end)")
    return {name: taken}


def stack_columns(*x: TensorLike, columns: Optional[Sequence[int]] = None) -> Tensor:
    """The rows of all matrices [N, C], one below the other; with `columns`, (begin, end), only
    those columns of each. A copy."""
    return one("stack_columns", *x, **_taken("stack_columns", "columns", columns))


def join_columns(*x: TensorLike, rows: Optional[Sequence[int]] = None) -> Tensor:
    """The columns of all matrices [N, C], side by side; with `rows`, (begin, end), only those rows
    of each. A copy."""
    return one("join_columns", *x, **_taken("join_columns", "rows", rows))


def sum_to(x: TensorLike, shape: Any) -> Tensor:
    """The sum over the axes where `shape` is 1 and x is not; the rank stays."""
    return one("sum_to", x, shape=check_shape(shape))


def aligned(x: TensorLike, rank: int) -> Tensor:
    """With axes of size 1 more in front, up to this rank."""
    x = as_tensor(x)
    return x if x.ndim >= rank else reshape(x, (1,) * (rank - x.ndim) + x.shape)


def broadcast_to(x: TensorLike, shape: Any) -> Tensor:
    """Repeated along axes of size 1, and along new ones in front."""
    shape = check_shape(shape)
    return one("broadcast_to", aligned(x, len(shape)), shape=shape)


# ---- rows from an index that is data ------------------------------------------------------------


def index(value: Any, what: str) -> Tensor:
    """A number as int64 [1], or a tensor that is one."""
    if isinstance(value, Size):
        return one("full", shape=[1], value=value, type="int64")
    return as_tensor([integer(what, value)] if np.isscalar(value) else value, "int64", what)


def index_sum(
    a: TensorLike, b: Optional[TensorLike] = None, scale: int = 1, offset: int = 0
) -> Tensor:
    """a + scale · b + offset, of int64 [1]; wraps around. No gradient."""
    operands = [index(x, "an operand of index_sum") for x in (a, b) if x is not None]
    scale, offset = integer("index_sum: scale", scale), integer("index_sum: offset", offset)
    return one("index_sum", *operands, scale=scale, offset=offset)


def dynamic_slice(x: TensorLike, begin: TensorLike, rows: int) -> Tensor:
    """A copy of `rows` rows of the first axis from `begin` on, an int64 [1] that only the run
    knows.

    Out of range is an error of the run: nothing is read.
    """
    count = integer("dynamic_slice: rows", rows)
    return one("dynamic_slice", x, index(begin, "the begin of dynamic_slice"), rows=count)


def replacement(op: str, x: Any, rows: Any, begin: Any, end: Any) -> List[Tensor]:
    """The operands of what puts rows in place of others."""
    x = as_tensor(x)
    bounds = [index(bound, f"a bound of {op}") for bound in (begin, end) if bound is not None]
    return [x, as_tensor(rows, x.dtype, f"rows of {op}"), *bounds]


def replace_slice(
    x: TensorLike, rows: TensorLike, begin: TensorLike, end: Optional[TensorLike] = None
) -> Tensor:
    """x with `rows` [n, …] in place of its rows begin … begin + n − 1.

    `end`, if given, has to be begin + n. Of a buffer: the next run of the model finds the result in
    it, while whoever reads `x` still reads the old rows. Out of range is an error of the run:
    nothing is written.
    """
    return one("replace_slice", *replacement("replace_slice", x, rows, begin, end))


# ---- [] -----------------------------------------------------------------------------------------


def getitem(x: TensorLike, key: Any) -> Tensor:
    """x[key] for integers, slices of step 1, None and Ellipsis. Rows of the first axis are a view,
    of others a copy.

    A Tensor int64 [1] in front is a row that only the run knows.
    """
    x = as_tensor(x)
    keys = list(key) if isinstance(key, tuple) else [key]
    if any(isinstance(k, Tensor) for k in keys):
        if not isinstance(keys[0], Tensor):
            raise InvalidTypeError("[]: a Tensor behind another index; expected it first")
        row = reshape(dynamic_slice(x, keys[0], 1), x.shape[1:])
        return getitem(row, tuple(keys[1:])) if keys[1:] else row
    gaps = [i for i, k in enumerate(keys) if k is Ellipsis]
    if len(gaps) > 1:
        raise InvalidTypeError("[]: two Ellipses; expected at most one")
    taken = len([k for k in keys if k is not None and k is not Ellipsis])
    if taken > x.ndim:
        raise InvalidError(
            f"[]: {taken} indices for shape {list(x.shape)}; expected at most {x.ndim}"
        )
    at = gaps[0] if gaps else len(keys)
    keys[at : at + 1] = [builtins.slice(None)] * (x.ndim - taken)
    axis, shape = 0, []
    for k in keys:
        if k is None:
            shape.append(1)
            continue
        size = x.shape[axis]
        if isinstance(k, builtins.slice):
            begin, end, step = k.indices(size)
            if step != 1:
                raise InvalidError(f"[]: a slice of step {step}; expected 1")
            end = max(begin, end)
            if (begin, end) == (0, size):
                end = size
            # What was given, where it is a size by name.
            begin = k.start if isinstance(k.start, Size) and k.start == begin else begin
            end = k.stop if isinstance(k.stop, Size) and k.stop == end else end
            shape.append(end if begin == 0 else end - begin)
        elif is_integer(k):
            if not -size <= k < size:
                raise IndexError(
                    f"[]: index {k} of axis {axis}, of {size}; expected {-size} ≤ index < {size}"
                )
            begin, end = whole(k) if k >= 0 else int(k) % size, int(k) % size + 1
        else:
            raise InvalidTypeError(f"[]: {k!r}; expected an integer, a slice, None or ...")
        is_size = isinstance(end, Size) and end is not size
        if (begin, end) != (0, size) or is_size:
            x = (
                slice(x, begin, end)
                if axis == 0
                else transpose(slice(transpose(x, 0, axis), begin, end), 0, axis)
            )
        axis += 1
    return x if x.shape == tuple(shape) else reshape(x, shape)
