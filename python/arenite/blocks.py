"""`if` and `loop`: blocks of operators that run, or run again, by what the data says."""

from typing import Any, Callable, List, Optional, Sequence, Union

import numpy as np

from .errors import InvalidError, InvalidTypeError
from .graph import Block, Node, build_block, current_block
from .rules import expect_type, text
from .shaping import index_sum
from .tensor import Tensor, as_tensor, results

BLOCK_PARAMETERS = "block parameters"

Tensors = Union[Tensor, Sequence[Tensor]]


def _condition(op: str, value: Any) -> Tensor:
    tensor = as_tensor(value, "int64", f"the condition of {op}")
    expect_type(op, "the condition", tensor, "int64", "int32", "uint8")
    if any(size != 1 for size in tensor.shape):
        raise InvalidError(f"{op}: a condition of shape {list(tensor.shape)}; expected one integer")
    return tensor


def _yields(op: str, block: Block, body: Callable[[], Any]) -> List[Tensor]:
    made = build_block(block, body)
    if not made or not all(isinstance(value, Tensor) for value in made):
        raise InvalidTypeError(
            f"{op}: a function that returns {made!r}; expected a Tensor, or several"
        )
    return made


def cond(condition: Any, then: Callable[[], Tensors], otherwise: Callable[[], Tensors]) -> Any:
    """What `then()` returns where the condition, one integer, is not 0, else what `otherwise()`
    returns.

    Both are called once, now, and describe their side with tensors from outside and of their own.
    They return tensors of the same shapes and types. Only one side runs, and the two share their
    memory.
    """
    test = _condition("cond", condition)
    blocks, sides = [], []
    for body in (then, otherwise):
        if not callable(body):
            raise InvalidTypeError(f"cond: {body!r}; expected a function")
        block = Block(current_block())
        sides.append(_yields("cond", block, body))
        blocks.append(block)
    types = [[(t.shape, t.dtype) for t in side] for side in sides]
    if types[0] != types[1]:
        found = ["(" + ", ".join(map(text, side)) + ")" for side in sides]
        raise InvalidError(
            f"cond: sides that return {found[0]} and {found[1]}; expected equal shapes and types"
        )
    made = results("if", [test], {}, types[0], blocks=blocks)
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
    if isinstance(max_trips, bool) or not isinstance(max_trips, (int, np.integer)) or max_trips < 0:
        raise InvalidTypeError(f"loop: max_trips {max_trips!r}; expected an integer of at least 0")
    carried = [
        as_tensor(value) for value in (first if isinstance(first, (list, tuple)) else [first])
    ]
    if not carried:
        raise InvalidError("loop: no value to carry; expected at least one")
    count: Optional[Tensor] = None
    if trips is not None:
        count = (
            index_sum(trips)
            if isinstance(trips, int)
            else as_tensor(trips, "int64", "the trips of loop")
        )
    test = None if condition is None else _condition("loop", condition)
    types = [(t.shape, t.dtype) for t in carried]
    block = Block(current_block())

    def describe() -> Any:
        node = Node(BLOCK_PARAMETERS, [], {}, [((1,), "int64"), *types])
        block.parameters = [Tensor(node, i) for i in range(len(node.results))]
        return body(*block.parameters)

    if not callable(body):
        raise InvalidTypeError(f"loop: {body!r}; expected a function")
    made = _yields("loop", block, describe)
    found = [(t.shape, t.dtype) for t in made]
    wanted = types if test is None else [(test.shape, test.dtype), *types]
    if found != wanted:
        raise InvalidError(
            f"loop: a body that returns ({', '.join(map(text, made))}); expected "
            f"({', '.join(f'{dtype} {list(shape)}' for shape, dtype in wanted)})"
            + ("" if test is None else ", the next condition first")
        )
    last = results(
        "loop", [count, test, *carried], {"max_trips": int(max_trips)}, types, blocks=[block]
    )
    return last[0] if len(last) == 1 else last
