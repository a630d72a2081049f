"""Statements that change what a model keeps, and gradients."""

from typing import Any, Dict, List, Optional, Sequence

from . import graph
from .calls import Bare, Name
from .errors import InvalidError, InvalidTypeError
from .graph import Node, TensorList, Update, reachable
from .optim import Average, Group, Schedule
from .rules import integer, is_number, text
from .shaping import replacement
from .tensor import Tensor, TensorLike, as_tensor, node_of


def _target(op: str, target: Any, *kinds: str) -> Tensor:
    if not isinstance(target, Tensor) or target.node.op not in kinds:
        raise InvalidTypeError(
            f"{op}: {target!r} to be changed; expected a tensor made by "
            f"{' or '.join('arenite.' + graph.word(kind) for kind in kinds)}"
        )
    return target


def _update(
    op: str, *operands: Any, target: Optional[Tensor] = None, **attributes: Any
) -> Update:
    """What changes its targets, all of one kind: its first operand unless it is said."""
    made = node_of(op, operands, attributes)
    # A statement without targets: the numbers of what it changes stand for the new versions.
    node = Node(made.op, made.operands, made.attributes, [])
    node.is_update = (operands[0] if target is None else target).node.op != graph.BUFFER
    return Update(node)


def _change(op: str, buffer: Tensor, *operands: Any) -> Update:
    _target(op, buffer, graph.BUFFER)
    return _update(op, buffer, *[as_tensor(value, buffer.dtype) for value in operands])


def assign(target: Tensor, value: TensorLike) -> Update:
    """Another value for a buffer, a parameter or a state: outputs show it, and the next run finds
    it. For `arenite.compile(…, updates=[…])`.
    """
    _target("assign", target, graph.BUFFER, graph.PARAMETER, graph.STATE)
    return _update("assign", target, as_tensor(value, target.dtype))


def update_slice(
    target: Tensor, rows: TensorLike, begin: TensorLike, end: Optional[TensorLike] = None
) -> Update:
    """`replace_slice` in the bytes of a buffer: whatever reads it from here on sees the new rows.

    For `arenite.compile(…, updates=[…])`.
    """
    return _change("update_slice", *replacement("update_slice", target, rows, begin, end))


def accumulate(total: Tensor, value: TensorLike) -> Update:
    """Adds to a buffer of float32, float64 or int64. For `arenite.compile(…, updates=[…])`."""
    return _change("accumulate", total, value)


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
    operands = _updated("sgd", weight, gradient, velocity)
    operands.insert(2, as_tensor(learning_rate, "float32"))
    rule: Dict[str, Any] = {"momentum": float(momentum), "weight_decay": float(weight_decay)}
    return _update("sgd", *operands, **rule)


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
    if not updates:
        raise InvalidError("multi_sgd: no updates; expected at least one (weight, gradient)")
    operands: List[Optional[Tensor]] = [as_tensor(learning_rate, "float32")]
    for update in updates:
        if len(update) not in (2, 3):
            raise InvalidError(
                f"multi_sgd: an update of {len(update)} tensors; expected (weight, gradient) or "
                "(weight, gradient, velocity)"
            )
        operands += _updated("multi_sgd", *update)
    rule: Dict[str, Any] = {"momentum": float(momentum), "weight_decay": float(weight_decay)}
    return _update("multi_sgd", *operands, target=updates[0][0], **rule)


def _updated(
    op: str, weight: Any, gradient: TensorLike, velocity: Any = None
) -> List[Optional[Tensor]]:
    """The operands that belong to one weight."""
    _target(op, weight, graph.PARAMETER, graph.STATE)
    if velocity is not None:
        _target(op, velocity, graph.STATE)
    return [weight, as_tensor(gradient, weight.dtype), velocity]


def expect_loss(op: str, loss: Any) -> None:
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
    expect_loss("grad", loss)
    tensors = list(wrt) if isinstance(wrt, (list, tuple)) else [wrt]
    if not tensors or not all(isinstance(tensor, Tensor) for tensor in tensors):
        raise InvalidTypeError(f"grad: wrt {wrt!r}; expected a Tensor, or several")
    types = [(tensor.shape, tensor.dtype) for tensor in tensors]
    node = Node("grad", [loss], {"wrt": TensorList(tensors)}, types)
    made = [Tensor(node, i) for i in range(len(tensors))]
    return made if isinstance(wrt, (list, tuple)) else made[0]


def expect_optimizer(value: Any) -> None:
    if not hasattr(value, "attributes") or isinstance(value, type):
        raise InvalidTypeError(
            f"optimizer {value!r}; expected one, such as arenite.optim.SGD(lr=0.02, momentum=0.9)"
        )


def settings_of(
    schedule: Any = None,
    clip_norm: Any = None,
    clip_value: Any = None,
    groups: Any = (),
    average: Any = None,
    check_loss: Any = True,
    accumulate: Any = 1,
) -> Dict[str, Any]:
    """What `train` says of all this in scripts."""
    settings: Dict[str, Any] = {}
    if schedule is not None:
        if not isinstance(schedule, Schedule):
            raise InvalidTypeError(
                f"schedule {schedule!r}; expected one, such as arenite.optim.Schedule('cosine', "
                "steps=1000)"
            )
        settings["schedule"] = Name(schedule.text())
    for name, limit in (("clip_norm", clip_norm), ("clip_value", clip_value)):
        if limit is None:
            continue
        if not is_number(limit) or not 0 < limit < float("inf"):
            raise InvalidError(f"{name} {limit!r}; expected a number above 0")
        settings[name] = float(limit)
    for i, group in enumerate([groups] if isinstance(groups, Group) else groups):
        if not isinstance(group, Group):
            raise InvalidTypeError(
                f"{group!r} among the groups; expected some such as arenite.optim.Group('*.bias', "
                "weight_decay=0)"
            )
        settings[f"group {i}"] = Bare(group.text())
    if average is not None:
        if not isinstance(average, Average):
            raise InvalidTypeError(
                f"average {average!r}; expected one such as arenite.optim.Average(decay=0.999)"
            )
        settings["average"] = Bare(average.text())
    if not check_loss:
        settings["check_loss"] = 0
    if integer("accumulate", accumulate, least=1) > 1:
        settings["accumulate"] = int(accumulate)
    return settings


def parameters_of(loss: Tensor) -> List[Tensor]:
    """All parameters that a tensor is computed from and that training may change, in the order in
    which they were made.
    """
    nodes = [node for node in reachable([loss.node]) if node.op == graph.PARAMETER]
    return [Tensor(node) for node in nodes if node.data is None or node.data.trainable]


def train(
    loss: Tensor,
    optimizer: Any,
    parameters: Optional[Sequence[Tensor]] = None,
    *,
    schedule: Optional[Schedule] = None,
    clip_norm: Optional[float] = None,
    clip_value: Optional[float] = None,
    groups: Sequence[Group] = (),
    average: Optional[Average] = None,
    check_loss: bool = True,
    accumulate: int = 1,
) -> Update:
    """One step of an optimizer, of all trainable parameters that the loss depends on unless some are
    given.

    schedule: what multiplies the learning rate in each step
    clip_norm: all gradients together are made this long where they are longer
    clip_value: no element of a gradient is farther from 0
    groups: parameters that are updated otherwise
    average: means of parameters, which the model's `averaged` computes with
    check_loss: a loss that is not finite is an error, and the step changes nothing
    accumulate: batches that one update may take the mean gradient of, by the model's `accumulate`

    Give it to `arenite.compile(…, updates=[…])`; the model's `train_step` does it, a plain run does
    not.
    """
    expect_loss("train", loss)
    expect_optimizer(optimizer)
    chosen = parameters_of(loss) if parameters is None else list(parameters)
    if not chosen:
        raise InvalidError("train: no parameters; expected a loss that depends on some that are trainable")
    for parameter in chosen:
        _target("train", parameter, graph.PARAMETER)
    settings = settings_of(
        schedule, clip_norm, clip_value, groups, average, check_loss, accumulate
    )
    attributes = {**optimizer.attributes(), **settings}
    attributes["parameters"] = TensorList(chosen)
    return Update(Node("train", [loss], attributes, []))
