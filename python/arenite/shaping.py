"""Views, copies in another order, and rows that only the run knows."""

import builtins
from typing import Any, List, Optional, Sequence

import numpy as np

from .errors import InvalidError, InvalidTypeError
from .graph import check_shape
from .rules import expect_axis, expect_index, expect_rank, expect_real, expect_type, text
from .tensor import Tensor, TensorLike, as_tensor, one


def reshape(x: TensorLike, shape: Any) -> Tensor:
    """The same bytes under another shape; one size may be -1: it follows from the others."""
    x = as_tensor(x)
    sizes = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    open_axes = [
        i for i, size in enumerate(sizes) if isinstance(size, (int, np.integer)) and size == -1
    ]
    known = check_shape([1 if i in open_axes else size for i, size in enumerate(sizes)])
    count, want = int(np.prod(x.shape, dtype=object)), int(np.prod(known, dtype=object))
    fits = want == count if not open_axes else len(open_axes) == 1 and want and count % want == 0
    if not fits:
        raise InvalidError(
            f"reshape: shape {sizes} for {count} elements of {list(x.shape)}; expected as many, "
            "and at most one -1"
        )
    known = tuple(count // want if i in open_axes else size for i, size in enumerate(known))
    return one("reshape", [x], {"shape": known}, known, x.dtype)


def flatten(x: TensorLike) -> Tensor:
    """[N, …] → [N, rest], a view."""
    x = as_tensor(x)
    if not x.shape:
        raise InvalidError("flatten: x of shape []; expected [N, ...]")
    return one("flatten", [x], {}, (x.shape[0], int(np.prod(x.shape[1:], dtype=object))), x.dtype)


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
    x = as_tensor(x)
    if not x.shape or not all(isinstance(v, (int, np.integer)) for v in (begin, end)):
        raise InvalidTypeError(
            f"slice: {begin!r} … {end!r} of shape {list(x.shape)}; expected integers, and rank 1 "
            "or more"
        )
    if not 0 <= begin <= end <= x.shape[0]:
        raise InvalidError(
            f"slice: rows {begin} to {end}; expected 0 ≤ begin ≤ end ≤ {x.shape[0]}, as x has the "
            f"shape {list(x.shape)}"
        )
    return one(
        "slice",
        [x],
        {"begin": int(begin), "end": int(end)},
        (int(end - begin),) + x.shape[1:],
        x.dtype,
    )


def permute(x: TensorLike, dims: Any) -> Tensor:
    """Axis i of the result is axis dims[i] of x; a copy."""
    x = as_tensor(x)
    given = list(dims) if isinstance(dims, (tuple, list)) else [dims]
    axes = [expect_axis("permute", dim, x.ndim) for dim in given]
    if sorted(axes) != list(range(x.ndim)):
        raise InvalidError(
            f"permute: axes {given} of shape {list(x.shape)}; expected each of its {x.ndim} axes "
            "once"
        )
    return one("permute", [x], {"dims": axes}, [x.shape[axis] for axis in axes], x.dtype)


def transpose(x: TensorLike, dim0: int, dim1: int) -> Tensor:
    """With two axes swapped; a copy."""
    x = as_tensor(x)
    dims = list(range(x.ndim))
    i, j = expect_axis("transpose", dim0, x.ndim), expect_axis("transpose", dim1, x.ndim)
    dims[i], dims[j] = dims[j], dims[i]
    return permute(x, dims)


def _range(op: str, what: str, given: Optional[Sequence[int]], length: int) -> List[int]:
    if given is None:
        return [0, length]
    bounds = list(given) if isinstance(given, (tuple, list)) else [given]
    whole = all(isinstance(bound, (int, np.integer)) for bound in bounds)
    if not whole or len(bounds) != 2 or not 0 <= bounds[0] <= bounds[1] <= length:
        raise InvalidError(
            f"{op}: {what} {bounds}; expected (begin, end) with 0 ≤ begin ≤ end ≤ {length}"
        )
    return [int(bound) for bound in bounds]


def _matrices(op: str, given: Sequence[TensorLike], axis: int) -> List[Tensor]:
    """Matrices that are alike but for the size of `axis`."""
    if not given:
        raise InvalidTypeError(f"{op}: no tensors; expected at least one")
    tensors = [as_tensor(x) for x in given]
    for x in tensors:
        expect_type(op, "x", x, "float32")
        expect_rank(op, "x", x, 2, "[N, C]")
        if x.shape[1 - axis] != tensors[0].shape[1 - axis]:
            raise InvalidError(
                f"{op}: x of shape {list(x.shape)}; expected {'columns' if axis == 0 else 'rows'} "
                f"like the first, {list(tensors[0].shape)}"
            )
    return tensors


def stack_columns(*x: TensorLike, columns: Optional[Sequence[int]] = None) -> Tensor:
    """The rows of all matrices [N, C], one below the other; with `columns`, (begin, end), only
    those columns of each. A copy."""
    tensors = _matrices("stack_columns", x, 0)
    taken = _range("stack_columns", "columns", columns, tensors[0].shape[1])
    shape = [builtins.sum(t.shape[0] for t in tensors), taken[1] - taken[0]]
    attributes = {} if columns is None else {"columns": taken}
    return one("stack_columns", tensors, attributes, shape, "float32")


def join_columns(*x: TensorLike, rows: Optional[Sequence[int]] = None) -> Tensor:
    """The columns of all matrices [N, C], side by side; with `rows`, (begin, end), only those rows
    of each. A copy."""
    tensors = _matrices("join_columns", x, 1)
    taken = _range("join_columns", "rows", rows, tensors[0].shape[0])
    shape = [taken[1] - taken[0], builtins.sum(t.shape[1] for t in tensors)]
    attributes = {} if rows is None else {"rows": taken}
    return one("join_columns", tensors, attributes, shape, "float32")


def sum_to(x: TensorLike, shape: Any) -> Tensor:
    """The sum over the axes where `shape` is 1 and x is not; the rank stays."""
    x, shape = as_tensor(x), check_shape(shape)
    expect_real("sum_to", "x", x)
    if len(shape) != x.ndim or any(n not in (1, m) for m, n in zip(x.shape, shape)):
        raise InvalidError(
            f"sum_to: shape {list(shape)}; expected {list(x.shape)}, where any size may be 1"
        )
    return one("sum_to", [x], {"shape": shape}, shape, x.dtype)


def broadcast_to(x: TensorLike, shape: Any) -> Tensor:
    """Repeated along axes of size 1, and along new ones in front."""
    x, shape = as_tensor(x), check_shape(shape)
    expect_real("broadcast_to", "x", x)
    aligned = (1,) * (len(shape) - x.ndim) + x.shape
    if len(aligned) != len(shape) or any(m not in (1, n) for m, n in zip(aligned, shape)):
        raise InvalidError(
            f"broadcast_to: x of shape {list(x.shape)}; expected {list(shape)}, where any size may "
            "be 1, or missing in front"
        )
    if aligned != x.shape:
        x = reshape(x, aligned)
    return one("broadcast_to", [x], {"shape": shape}, shape, x.dtype)


# ---- rows from an index that is data ------------------------------------------------------------


def _index(value: Any, what: str) -> Tensor:
    """A number as int64 [1], or a tensor that is one."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        value = [int(value)]
    tensor = as_tensor(value, "int64", what)
    expect_index(what.partition(":")[0], what.partition(": ")[2], tensor)
    return tensor


def index_sum(
    a: TensorLike, b: Optional[TensorLike] = None, scale: int = 1, offset: int = 0
) -> Tensor:
    """a + scale · b + offset, of int64 [1]; wraps around. No gradient."""
    a = _index(a, "index_sum: a")
    operands = [a] if b is None else [a, _index(b, "index_sum: b")]
    return one("index_sum", operands, {"scale": int(scale), "offset": int(offset)}, (1,), "int64")


def dynamic_slice(x: TensorLike, begin: TensorLike, rows: int) -> Tensor:
    """A copy of `rows` rows of the first axis from `begin` on, an int64 [1] that only the run
    knows.

    Out of range is an error of the run: nothing is read.
    """
    x = as_tensor(x)
    if not x.shape or not 0 <= rows <= x.shape[0]:
        raise InvalidError(
            f"dynamic_slice: {rows} rows of shape {list(x.shape)}; expected at most those of the "
            "first axis"
        )
    begin = _index(begin, "dynamic_slice: begin")
    return one(
        "dynamic_slice", [x, begin], {"rows": int(rows)}, (int(rows),) + x.shape[1:], x.dtype
    )


def replacement(op: str, x: Any, rows: Any, begin: Any, end: Any) -> List[Tensor]:
    """The operands of what puts rows in place of others."""
    x = as_tensor(x)
    rows = as_tensor(rows, x.dtype, f"rows of {op}")
    expect_type(op, "rows", rows, x.dtype)
    fits = x.shape and rows.ndim == x.ndim and rows.shape[1:] == x.shape[1:]
    if not fits or rows.shape[0] > x.shape[0]:
        raise InvalidError(
            f"{op}: rows of shape {list(rows.shape)}; expected rows of {text(x)}, at most all of "
            "them"
        )
    operands = [x, rows, _index(begin, f"{op}: begin")]
    return operands if end is None else [*operands, _index(end, f"{op}: end")]


def replace_slice(
    x: TensorLike, rows: TensorLike, begin: TensorLike, end: Optional[TensorLike] = None
) -> Tensor:
    """x with `rows` [n, …] in place of its rows begin … begin + n − 1.

    `end`, if given, has to be begin + n. Of a buffer: the next run of the model finds the result in
    it, while whoever reads `x` still reads the old rows. Out of range is an error of the run:
    nothing is written.
    """
    operands = replacement("replace_slice", x, rows, begin, end)
    return one("replace_slice", operands, {}, operands[0].shape, operands[0].dtype)


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
    whole = builtins.slice(None)
    at = gaps[0] if gaps else len(keys)
    keys[at : at + 1] = [whole] * (x.ndim - taken)
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
            shape.append(end - begin)
        elif isinstance(k, (int, np.integer)) and not isinstance(k, bool):
            if not -size <= k < size:
                raise IndexError(
                    f"[]: index {k} of axis {axis}, of {size}; expected {-size} ≤ index < {size}"
                )
            begin, end = int(k) % size, int(k) % size + 1
        else:
            raise InvalidTypeError(f"[]: {k!r}; expected an integer, a slice, None or ...")
        if (begin, end) != (0, size):
            x = (
                slice(x, begin, end)
                if axis == 0
                else transpose(slice(transpose(x, 0, axis), begin, end), 0, axis)
            )
        axis += 1
    return x if x.shape == tuple(shape) else reshape(x, shape)
