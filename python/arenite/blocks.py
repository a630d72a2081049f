"""`if` and `loop`: blocks of operators that run, or run again, by what the data says."""

from typing import Any, Callable, Sequence, Union

from .dtypes import REAL
from .errors import InvalidError, InvalidTypeError
from .graph import BLOCK_PARAMETERS, Block, Node, current_block, inside
from .rules import integer, text
from .shaping import index
from .tensor import Tensor, as_tensor, results

Tensors = Union[Tensor, Sequence[Tensor]]


def _condition(op: str, value: Any) -> Tensor:
    tensor = as_tensor(value, "int64", f"the condition of {op}")
    if tensor.dtype in REAL:
        raise InvalidTypeError(f"{op}: a condition of {text(tensor)}; expected one integer")
    return tensor


def _block(op: str, body: Any, carried: Sequence[Tensor] = ()) -> Block:
    """What `body` makes, of a trip's number and these tensors where there are some."""
    if not callable(body):
        raise InvalidTypeError(f"{op}: {body!r}; expected a function")
    block = Block(current_block())

    with inside(block):
        if carried:
            types = [((1,), "int64"), *((tensor.shape, tensor.dtype) for tensor in carried)]
            node = Node(BLOCK_PARAMETERS, [], {}, types)
            block.parameters = [Tensor(node, i) for i in range(len(types))]
        made = body(*block.parameters)
    block.yields = list(made) if isinstance(made, (list, tuple)) else [made]
    if not block.yields or not all(isinstance(value, Tensor) for value in block.yields):
        raise InvalidTypeError(
            f"{op}: a function that returns {block.yields!r}; expected a Tensor, or several"
        )
    return block


def cond(condition: Any, then: Callable[[], Tensors], otherwise: Callable[[], Tensors]) -> Any:
    """What `then()` returns where the condition, one integer, is not 0, else what `otherwise()`
    returns.

    Both are called once, now, and describe their side with tensors from outside and of their own.
    They return tensors of the same shapes and types. Only one side runs, and the two share their
    memory.
    """
    test = _condition("cond", condition)
    blocks = [_block("cond", body) for body in (then, otherwise)]
    made = results("if", [test], {}, blocks)
    return made[0] if len(made) == 1 else made


def loop(
    trips: Any, body: Callable[..., Any], first: Tensors, *, max_trips: int, condition: Any = None
) -> Any:
    """Repeats `body(trip, *carried)`, which returns the next carried values; returns the last ones.

    trips: how often, an integer or an int64 [1] of the run; None: max_trips times.
    first: the values to begin with: a tensor or several; body takes and returns as many, of the
        same types.
    condition: one integer; the loop ends where it is 0. Then body returns the next condition before
        the others.
    max_trips: no more than these, whatever the data says.

    body is called once, now; trip is an int64 [1], from 0. All trips use the same memory.
    """
    most = integer("loop: max_trips", max_trips)
    values = first if isinstance(first, (list, tuple)) else [first]
    carried = [as_tensor(value) for value in values]
    if not carried:
        raise InvalidError("loop: no value to carry; expected at least one")
    count = None if trips is None else index(trips, "the trips of loop")
    test = None if condition is None else _condition("loop", condition)
    block = _block("loop", body, carried)
    last = results("loop", [count, test, *carried], {"max_trips": most}, [block])
    return last[0] if len(last) == 1 else last
