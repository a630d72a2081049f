"""Statements that change what a model keeps, and gradients."""

from typing import Any, List, Optional, Sequence

from . import graph
from .errors import InvalidError, InvalidTypeError
from .graph import Node, TensorList, Update, reachable
from .rules import expect_shape, expect_type, text
from .shaping import replacement
from .tensor import Tensor, TensorLike, as_tensor, results


def _target(op: str, target: Any, *kinds: str) -> Tensor:
    if not isinstance(target, Tensor) or target.node.op not in kinds:
        raise InvalidTypeError(
            f"{op}: {target!r} to be changed; expected a tensor made by "
            f"{' or '.join('arenite.' + kind[:-6].lower() for kind in kinds)}"
        )
    return target


def _like(op: str, value: TensorLike, target: Tensor) -> Tensor:
    value = as_tensor(value, target.dtype)
    if (value.shape, value.dtype) != (target.shape, target.dtype):
        raise InvalidError(f"{op}: a value of {text(value)}; expected {text(target)}")
    return value


def assign(target: Tensor, value: TensorLike) -> Update:
    """Another value for a buffer: outputs show it, and the next run finds it. For
    `arenite.compile(…, updates=[…])`.
    """
    _target("assign", target, graph.BUFFER)
    return Update(Node("assign", [target, _like("assign", value, target)], {}, []))


def update_slice(
    target: Tensor, rows: TensorLike, begin: TensorLike, end: Optional[TensorLike] = None
) -> Update:
    """`replace_slice` in the bytes of a buffer: whatever reads it from here on sees the new rows.

    For `arenite.compile(…, updates=[…])`.
    """
    _target("update_slice", target, graph.BUFFER)
    return Update(
        Node("update_slice", replacement("update_slice", target, rows, begin, end), {}, [])
    )


def accumulate(total: Tensor, value: TensorLike) -> Update:
    """Adds to a buffer of float32, float64 or int64. For `arenite.compile(…, updates=[…])`."""
    _target("accumulate", total, graph.BUFFER)
    expect_type("accumulate", "total", total, "float32", "float64", "int64")
    return Update(Node("accumulate", [total, _like("accumulate", value, total)], {}, []))


def sgd(
    weight: Tensor,
    gradient: TensorLike,
    learning_rate: TensorLike,
    velocity: Optional[Tensor] = None,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
) -> Update:
    """One step of stochastic gradient descent by hand; `arenite.train` writes those of all
    parameters.

    velocity ← momentum · velocity + gradient + weight_decay · weight; weight ← weight −
    learning_rate · velocity. learning_rate is a float32 [1]; velocity a `state` like the weight,
    where there is momentum.
    """
    operands = [*_updated("sgd", weight, gradient), _learning_rate("sgd", learning_rate)]
    operands += _velocity("sgd", weight, velocity, momentum)
    return Update(Node("sgd", operands, _rule(momentum, weight_decay), []))


def multi_sgd(
    learning_rate: TensorLike,
    updates: Sequence[Sequence[Any]],
    momentum: float = 0.0,
    weight_decay: float = 0.0,
) -> Update:
    """`sgd` of several weights in one go, each (weight, gradient) or, where there is momentum,
    (weight, gradient, velocity). A gradient may have axes in front of its weight's: it is summed
    over them.
    """
    operands: List[Optional[Tensor]] = [_learning_rate("multi_sgd", learning_rate)]
    if not updates:
        raise InvalidError("multi_sgd: no updates; expected at least one (weight, gradient)")
    for update in updates:
        if len(update) not in (2, 3):
            raise InvalidError(
                f"multi_sgd: an update of {len(update)} tensors; expected (weight, gradient) or "
                "(weight, gradient, velocity)"
            )
        weight, gradient, velocity = (*update, None)[:3]
        operands += _updated("multi_sgd", weight, gradient, summed=True)
        operands += _velocity("multi_sgd", weight, velocity, momentum) or [None]
    return Update(Node("multi_sgd", operands, _rule(momentum, weight_decay), []))


def _learning_rate(op: str, learning_rate: TensorLike) -> Tensor:
    rate = as_tensor(learning_rate, "float32")
    expect_type(op, "learning_rate", rate, "float32")
    expect_shape(op, "learning_rate", rate, (1,), "one number")
    return rate


def _updated(op: str, weight: Any, gradient: TensorLike, summed: bool = False) -> List[Tensor]:
    _target(op, weight, graph.PARAMETER, graph.STATE)
    gradient = as_tensor(gradient, weight.dtype)
    behind = gradient.shape[len(gradient.shape) - len(weight.shape) :]
    if summed and (behind, gradient.dtype) == (weight.shape, weight.dtype):
        return [weight, gradient]
    return [weight, _like(op, gradient, weight)]


def _velocity(op: str, weight: Tensor, velocity: Any, momentum: float) -> List[Tensor]:
    if (velocity is not None) != (momentum != 0):
        raise InvalidError(
            f"{op}: momentum {momentum} {'with' if velocity is not None else 'without'} a velocity; "
            "expected both or neither"
        )
    if velocity is None:
        return []
    _like(op, _target(op, velocity, graph.STATE), weight)
    return [velocity]


def _rule(momentum: float, weight_decay: float) -> Any:
    return {"momentum": float(momentum), "weight_decay": float(weight_decay)}


def _expect_loss(op: str, loss: Any) -> None:
    if not isinstance(loss, Tensor):
        raise InvalidTypeError(f"{op}: a loss that is a {type(loss).__name__}; expected a Tensor")
    if loss.dtype != "float32" or loss.shape not in ((1,), ()):
        raise InvalidError(
            f"{op}: a loss of {text(loss)}; expected one float32 (hint: .sum() or .mean())"
        )


def grad(loss: Tensor, wrt: Any) -> Any:
    """The gradients of one float32 with respect to tensors it is computed from: a list like `wrt`,
    or one.
    """
    _expect_loss("grad", loss)
    tensors = list(wrt) if isinstance(wrt, (list, tuple)) else [wrt]
    if not tensors or not all(isinstance(tensor, Tensor) for tensor in tensors):
        raise InvalidTypeError(f"grad: wrt {wrt!r}; expected a Tensor, or several")
    made = results(
        "grad", [loss], {"wrt": TensorList(tensors)}, [(t.shape, t.dtype) for t in tensors]
    )
    return made if isinstance(wrt, (list, tuple)) else made[0]


def is_optimizer(value: Any) -> bool:
    return hasattr(value, "attributes") and not isinstance(value, type)


def parameters_of(loss: Tensor) -> List[Tensor]:
    """All parameters that a tensor is computed from, in the order in which they were made."""
    return [Tensor(node) for node in reachable([loss.node]) if node.op == graph.PARAMETER]


def train(loss: Tensor, optimizer: Any, parameters: Optional[Sequence[Tensor]] = None) -> Update:
    """One step of an optimizer, of all parameters that the loss depends on unless some are given.

    Give it to `arenite.compile(…, updates=[…])`; the model's `train_step` does it, a plain run does
    not.
    """
    _expect_loss("train", loss)
    if not is_optimizer(optimizer):
        raise InvalidTypeError(
            f"train: optimizer {optimizer!r}; expected one of arenite.optim, such as SGD(lr=0.1)"
        )
    chosen = parameters_of(loss) if parameters is None else list(parameters)
    if not chosen:
        raise InvalidError("train: no parameters; expected a loss that depends on some")
    for parameter in chosen:
        _target("train", parameter, graph.PARAMETER)
    return Update(
        Node("train", [loss], {**optimizer.attributes(), "parameters": TensorList(chosen)}, [])
    )
