"""Operators element by element, and sums over axes."""

from typing import Any

import numpy as np

from .dtypes import dtype_name
from .errors import InvalidError, InvalidTypeError
from .graph import check_shape
from .rules import common_shape, expect_axes, expect_real, expect_shape, expect_type, text
from .shaping import broadcast_to, index_sum, reshape, sum_to
from .tensor import Axes, Number, Tensor, TensorLike, as_tensor, one


def full(shape: Any, value: float = 0.0, dtype: Any = "float32") -> Tensor:
    """A tensor full of one number."""
    shape, dtype = check_shape(shape), dtype_name(dtype)
    if isinstance(value, bool) or not isinstance(value, Number):
        raise InvalidTypeError(f"full: value {value!r}; expected a number")
    return one("full", [], {"shape": shape, "value": float(value), "type": dtype}, shape, dtype)


def zeros(shape: Any, dtype: Any = "float32") -> Tensor:
    return full(shape, 0.0, dtype)


def ones(shape: Any, dtype: Any = "float32") -> Tensor:
    return full(shape, 1.0, dtype)


def identity(x: TensorLike) -> Tensor:
    """A copy."""
    x = as_tensor(x)
    return one("identity", [x], {}, x.shape, x.dtype)


def _is_number(value: Any) -> bool:
    return isinstance(value, Number) and not isinstance(value, bool)


def _pairwise(op: str, a: Any, b: Any) -> Tensor:
    """`add` or `mul` with repetition on both sides. The operator repeats its right operand only,
    and both commute.
    """
    if _is_number(a):
        a, b = b, a
    a = as_tensor(a, what=f"an operand of {op}")
    if _is_number(b):
        expect_real(op, "a number and a tensor", a)
        b = full((1,) * a.ndim, b, a.dtype)
    b = as_tensor(b, a.dtype, f"an operand of {op}")
    expect_real(op, "an operand", a)
    expect_type(op, f"an operand with one of {a.dtype}", b, a.dtype)
    shape = common_shape(op, a, b)
    a, b = (
        x if x.ndim == len(shape) else reshape(x, (1,) * (len(shape) - x.ndim) + x.shape)
        for x in (a, b)
    )
    if a.shape != shape and b.shape == shape:
        a, b = b, a
    if a.shape != shape:
        a = broadcast_to(a, shape)
    return one(op, [a, b], {}, shape, a.dtype)


def _is_integer(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype in ("int64", "int32")


def add(a: TensorLike, b: TensorLike) -> Tensor:
    """a + b, float32 or float64; sizes of 1 are repeated. Integers: of one shape; an int64 [1] with
    a number.
    """
    if _is_integer(a) or _is_integer(b):
        return _add_integers(a, b)
    return _pairwise("add", a, b)


def _add_integers(a: Any, b: Any) -> Tensor:
    if isinstance(a, (int, np.integer)):
        a, b = b, a
    if isinstance(b, (int, np.integer)) and not isinstance(b, bool):
        return index_sum(a, offset=int(b))
    a, b = as_tensor(a), as_tensor(b, a.dtype if isinstance(a, Tensor) else None)
    return (
        index_sum(a, b)
        if a.dtype == b.dtype == "int64" and a.shape == b.shape == (1,)
        else sum_of(a, b)
    )


def sub(a: TensorLike, b: TensorLike) -> Tensor:
    """a − b. Integers: an int64 [1] and a number or another one."""
    if _is_integer(a) and isinstance(b, (int, np.integer)):
        return add(a, -int(b))
    if _is_integer(b):
        if isinstance(a, (int, np.integer)):
            return index_sum(full((1,), a, "int64"), b, scale=-1)
        return index_sum(a, b, scale=-1)
    if isinstance(b, Number) and _is_number(b):
        return add(a, -float(b))
    return add(mul(b, -1), a)


def mul(a: TensorLike, b: TensorLike) -> Tensor:
    """a · b, float32 or float64; sizes of 1 are repeated. An int64 [1] with a number."""
    if _is_integer(b) and isinstance(a, (int, np.integer)):
        a, b = b, a
    if _is_integer(a) and isinstance(b, (int, np.integer)) and not isinstance(b, bool):
        return index_sum(full((1,), 0, "int64"), a, scale=int(b))
    return _pairwise("mul", a, b)


def sum_of(*terms: TensorLike) -> Tensor:
    """The sum of any number of tensors of one shape and type, in a fixed tree."""
    if not terms:
        raise InvalidTypeError("sum_of: no terms; expected at least one")
    tensors = [as_tensor(term) for term in terms]
    first = tensors[0]
    expect_type("sum_of", "a term", first, "float32", "float64", "int64", "int32")
    for term in tensors[1:]:
        if (term.shape, term.dtype) != (first.shape, first.dtype):
            raise InvalidError(
                f"sum_of: a term of {text(term)}; expected {text(first)}, like the first"
            )
    return one("sum", tensors, {}, first.shape, first.dtype)


def scale_by(x: TensorLike, factor: TensorLike) -> Tensor:
    """x · factor, float32, for a factor of shape [1] that takes no gradient."""
    x, factor = as_tensor(x), as_tensor(factor, "float32")
    expect_type("scale_by", "x", x, "float32")
    expect_type("scale_by", "factor", factor, "float32")
    expect_shape("scale_by", "factor", factor, (1,), "one number")
    return one("scale_by", [x, factor], {}, x.shape, x.dtype)


def relu(x: TensorLike) -> Tensor:
    """max(x, 0)."""
    x = as_tensor(x)
    expect_real("relu", "x", x)
    return one("relu", [x], {}, x.shape, x.dtype)


def silu(x: TensorLike) -> Tensor:
    """x / (1 + exp(−x))."""
    x = as_tensor(x)
    expect_real("silu", "x", x)
    return one("silu", [x], {}, x.shape, x.dtype)


def complex_mul(a: TensorLike, b: TensorLike, conjugate: bool = False) -> Tensor:
    """Products of complex numbers, [..., 2] of real and imaginary parts; b's sizes of 1 are
    repeated.
    """
    a, b = as_tensor(a), as_tensor(b)
    expect_real("complex_mul", "a", a)
    expect_type("complex_mul", "b", b, a.dtype)
    for what, x in (("a", a), ("b", b)):
        if not x.shape or x.shape[-1] != 2:
            raise InvalidError(f"complex_mul: {what} of shape {list(x.shape)}; expected [..., 2]")
    if a.ndim != b.ndim or any(n not in (1, m) for m, n in zip(a.shape, b.shape)):
        raise InvalidError(
            f"complex_mul: b of shape {list(b.shape)}; expected {list(a.shape)}, where any size "
            "but the last may be 1"
        )
    return one("complex_mul", [a, b], {"conjugate": 1} if conjugate else {}, a.shape, a.dtype)


def sum(x: TensorLike, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """Over the axes `dim`, which stay with size 1 where `keepdim`. Over all: of shape [1], as
    losses are.

    float32 or float64; each sum is taken in a fixed order, in double.
    """
    x = as_tensor(x)
    expect_real("sum", "x", x)
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
    count = int(np.prod([x.shape[axis] for axis in expect_axes("mean", dim, x.ndim)], dtype=object))
    if count == 0:
        raise InvalidError(f"mean: no elements in shape {list(x.shape)}; expected at least one")
    return mul(sum(x, dim, keepdim), 1 / count)
