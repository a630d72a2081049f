"""Operators as functions of tensors: each of docs/scripts.md, by its name there.

`if` is `cond`, for Python has a word of that name, and `sum` of several tensors is `sum_of`: `sum`
is over axes. Arrays and numbers stand for constants. Images are [N, H, W, C]; a `dim` may be
negative.

Formulas by name, as `gelu(x)` and `huber(x, target, delta=1)`, are those that the library has.
"""

from typing import Any as _Any, Callable as _Callable, List as _List

from ._library import library as _library
from .blocks import cond as cond, loop as loop
from .elementwise import (
    add as add,
    complex_mul as complex_mul,
    full as full,
    identity as identity,
    map as map,
    mean as mean,
    mul as mul,
    ones as ones,
    reduce as reduce,
    sub as sub,
    sum as sum,
    sum_of as sum_of,
    zeros as zeros,
)
from .errors import Error as _Error, InvalidTypeError as _InvalidTypeError
from .layers import (
    avg_pool2d as avg_pool2d,
    batch_gather as batch_gather,
    batch_norm as batch_norm,
    conv2d as conv2d,
    conv2d_relu as conv2d_relu,
    conv2d_relu_max_pool2d as conv2d_relu_max_pool2d,
    dense as dense,
    dense_relu as dense_relu,
    draw as draw,
    dropout as dropout,
    matmul as matmul,
    max_pool2d as max_pool2d,
    normalize_channels as normalize_channels,
    log_softmax as log_softmax,
    rms_norm as rms_norm,
    sliced_softmax as sliced_softmax,
    softmax as softmax,
)
from .losses import (
    cross_entropy as cross_entropy,
    softmax_cross_entropy as softmax_cross_entropy,
    weighted_cross_entropy as weighted_cross_entropy,
)
from .rules import is_number as _is_number
from .shaping import (
    broadcast_to as broadcast_to,
    dynamic_slice as dynamic_slice,
    flatten as flatten,
    getitem as getitem,
    index_sum as index_sum,
    join_columns as join_columns,
    permute as permute,
    replace_slice as replace_slice,
    reshape as reshape,
    slice as slice,
    squeeze as squeeze,
    stack_columns as stack_columns,
    sum_to as sum_to,
    transpose as transpose,
    unsqueeze as unsqueeze,
)
from .tensor import as_tensor as _as_tensor, one as _one
from .updates import (
    accumulate as accumulate,
    assign as assign,
    grad as grad,
    multi_sgd as multi_sgd,
    sgd as sgd,
    train as train,
    update_slice as update_slice,
)


def _formulas() -> _List[str]:
    return _library().formulas().decode().split()


def _formula(name: str) -> _Callable[..., _Any]:
    def formula(*operands: _Any, **numbers: _Any) -> _Any:
        for key, value in numbers.items():
            if not _is_number(value):
                raise _InvalidTypeError(
                    f"{name}: {key}={value!r}; expected a number (hint: operands have no names)"
                )
        given = [_as_tensor(x, what=f"an operand of {name}") for x in operands[:1]]
        given += [_as_tensor(x, given[0].dtype, f"an operand of {name}") for x in operands[1:]]
        return _one(name, *given, **numbers)

    formula.__name__ = formula.__qualname__ = name
    formula.__doc__ = f"The formula `{name}` of each element or row; sizes of 1 are repeated."
    return formula


def __getattr__(name: str) -> _Any:
    if name == "__all__":  # which `from … import *` asks for
        return [one for one in __dir__() if not one.startswith("_")]
    try:
        known = not name.startswith("_") and name in _formulas()
    except _Error as error:
        raise AttributeError(f"{__name__}.{name}: {error}") from error
    if not known:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = _formula(name)  # the same each time, so that it can be pickled
    return globals()[name]


def __dir__() -> _List[str]:
    try:
        return sorted({*globals(), *_formulas()})
    except _Error:
        return sorted(globals())
