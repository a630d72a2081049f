"""Operators element by element, and sums over axes."""

import math
from typing import Any, List, Union

from .dtypes import REAL, dtype_name
from .errors import InvalidError, InvalidTypeError
from .graph import check_shape
from .rules import expect_axes, is_integer, is_number, text
from .sizes import Size, refuse_size, whole
from .shaping import index_sum, reshape, sum_to
from .tensor import Axes, Tensor, TensorLike, as_tensor, one, results


def full(shape: Any, value: float = 0.0, dtype: Any = "float32") -> Tensor:
    """A tensor full of one number."""
    if not is_number(value):
        raise InvalidTypeError(f"full: value {value!r}; expected a number")
    sizes = check_shape(shape)
    for size in sizes:
        if isinstance(size, Size) and not size.name:
            refuse_size("full: a shape with", size)
    given = value if isinstance(value, Size) else float(value)
    if is_integer(value) and given != value:
        raise InvalidError(
            f"full: value {value}; expected an integer from -9007199254740992 to 9007199254740992"
        )
    return one("full", shape=sizes, value=given, type=dtype_name(dtype))


def zeros(shape: Any, dtype: Any = "float32") -> Tensor:
    return full(shape, 0.0, dtype)


def ones(shape: Any, dtype: Any = "float32") -> Tensor:
    return full(shape, 1.0, dtype)


def identity(x: TensorLike) -> Tensor:
    """A copy."""
    return one("identity", x)


def _pairwise(op: str, a: Any, b: Any) -> Tensor:
    """`add` or `mul`, which commute."""
    if is_number(a):
        a, b = b, a
    a = as_tensor(a, what=f"an operand of {op}")
    if is_number(b):
        # Beside integers, which the operator refuses, any type does.
        b = full((), b, a.dtype if a.dtype in REAL else "float32")
    return one(op, a, as_tensor(b, a.dtype, f"an operand of {op}"))


def _has_integers(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype in ("int64", "int32")


def add(a: TensorLike, b: TensorLike) -> Tensor:
    """a + b, float32 or float64; sizes of 1 are repeated. Integers: of one shape; an int64 [1] with
    a number.
    """
    if _has_integers(a) or _has_integers(b):
        return _add_integers(a, b)
    return _pairwise("add", a, b)


def _add_integers(a: Any, b: Any) -> Tensor:
    if is_integer(a):
        a, b = b, a
    if is_integer(b):
        return index_sum(a, offset=whole(b))
    a, b = as_tensor(a), as_tensor(b, a.dtype if isinstance(a, Tensor) else None)
    if a.dtype == b.dtype == "int64" and a.shape == b.shape == (1,):
        return index_sum(a, b)
    return sum_of(a, b)


def sub(a: TensorLike, b: TensorLike) -> Tensor:
    """a − b. Integers: an int64 [1] and a number or another one."""
    refuse_size("a Tensor less", b)
    if _has_integers(a) and is_integer(b):
        return add(a, -int(b))
    if _has_integers(b):
        if is_integer(a):
            return index_sum(full((1,), a, "int64"), b, scale=-1)
        return index_sum(a, b, scale=-1)
    if is_number(b):
        return add(a, -float(b))
    return add(mul(b, -1), a)


def mul(a: TensorLike, b: TensorLike) -> Tensor:
    """a · b, float32 or float64; sizes of 1 are repeated. An int64 [1] with a number."""
    if _has_integers(b) and is_integer(a):
        a, b = b, a
    if _has_integers(a) and is_integer(b):
        return index_sum(full((1,), 0, "int64"), a, scale=whole(b))
    return _pairwise("mul", a, b)


def sum_of(*terms: TensorLike) -> Tensor:
    """The sum of any number of tensors of one shape and type, in a fixed tree."""
    if len(terms) > 256:  # about as many as a kernel for GPUs takes; halves are the tree's own
        middle = len(terms) // 2
        return one("sum", sum_of(*terms[:middle]), sum_of(*terms[middle:]))
    return one("sum", *terms)


def map(formula: str, *operands: TensorLike) -> Any:
    """What a formula makes of each element, as in `map("x = $1 * $2; yield x * sigmoid(x)", a, b)`.

    `$1` is the first operand; sizes of 1 are repeated, and so are axes in front that are missing.
    Docs/scripts.md has its language. Several results, in the order that `yield` has them, are a
    list.
    """
    made = results("map", operands, {"expression": formula})
    return made[0] if len(made) == 1 else made


def reduce(
    formula: str, *operands: TensorLike, dim: Axes = None, keepdim: bool = False
) -> Any:
    """`map` of groups of elements, those along the axes `dim` (None: all), of which `sum`, `mean`,
    `variance`, `max`, `argmax`, `logsumexp` and their like make one, as in
    `reduce("e = exp($1 - max($1)); yield e / sum(e)", x, dim=-1)`.

    Results that are one for each group lack these axes, or have ones in their place with `keepdim`.
    """
    given = [as_tensor(x, what="an operand of reduce") for x in operands]
    rank = max((x.ndim for x in given), default=0)
    axes = expect_axes("reduce", dim, rank)
    made = results(
        "reduce", given, {"axes": list(axes), "keep": int(keepdim), "expression": formula}
    )
    return made[0] if len(made) == 1 else made


def complex_mul(a: TensorLike, b: TensorLike, conjugate: bool = False) -> Tensor:
    """Products of complex numbers, [..., 2] of real and imaginary parts; b's sizes of 1 are
    repeated.
    """
    return one("complex_mul", a, b, **({"conjugate": 1} if conjugate else {}))


def sum(x: TensorLike, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """Over the axes `dim`, which stay with size 1 where `keepdim`. Over all: of shape [1], as
    losses are.

    float32 or float64; each sum is taken in a fixed order, in double.
    """
    x = as_tensor(x)
    if x.dtype not in REAL:  # where nothing is summed nobody else would say so
        raise InvalidTypeError(f"sum: {text(x)}; expected float32 or float64")
    axes = expect_axes("sum", dim, x.ndim)
    kept = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    summed = x if list(x.shape) == kept else sum_to(x, kept)
    if keepdim:
        return summed
    if dim is None:
        return reshape(summed, (1,))
    return reshape(summed, [size for axis, size in enumerate(x.shape) if axis not in axes])


def mean(x: TensorLike, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """As `sum`, divided by the number of elements."""
    x = as_tensor(x)
    sizes = [x.shape[axis] for axis in expect_axes("mean", dim, x.ndim)]
    count = math.prod(size for size in sizes if not isinstance(size, Size))
    if count == 0:
        raise InvalidError(f"mean: no elements in shape {list(x.shape)}; expected at least one")
    made = mul(sum(x, dim, keepdim), 1 / count)
    for size in sizes:
        if isinstance(size, Size):
            if not size.name:
                refuse_size("mean: an axis of", size)
            made = made / size
    return made
