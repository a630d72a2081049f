"""Calls of operators: as scripts write them, and what the library says that they make."""

import ctypes
import re
from typing import Any, Callable, Dict, List, Sequence

import numpy as np

from ._library import Port, encode, library
from .dtypes import NAMES
from .errors import InvalidError, InvalidTypeError
from .graph import Block, Result, TensorList, word

# Where a message of the library is of an element type, an attribute's type, or an operand None.
_OF_TYPE = re.compile(r"\) of type |: attribute |^'_';")


class Name(str):
    """An attribute that scripts write without quotes, as `optimizer=sgd`."""


def quote(text: str) -> str:
    def escaped(found: Any) -> str:
        c = found[0]
        return "\\" + c if c in '"\\' else f"\\x{ord(c):02x}"

    return '"' + re.sub(r'["\\\x00-\x1f\x7f]', escaped, text) + '"'


def call_text(
    op: str, operands: Sequence[Any], attributes: Dict[str, Any], reference: Callable[[Any], str]
) -> str:
    """`dense($1, $2)`; `reference` names the tensors."""

    def literal(value: Any) -> str:
        if isinstance(value, TensorList):
            return f"[{', '.join(map(reference, value))}]"
        if isinstance(value, (tuple, list)):
            return f"[{', '.join(map(str, value))}]"
        if isinstance(value, str):
            return str(value) if isinstance(value, Name) else quote(value)
        if isinstance(value, (int, np.integer)):
            return str(int(value))
        return repr(float(value))

    words = [*map(reference, operands)]
    words += [f"{name}={literal(value)}" for name, value in attributes.items()]
    return f"{op}({', '.join(words)})"


def infer(
    op: str, operands: Sequence[Any], attributes: Dict[str, Any], blocks: Sequence[Block]
) -> List[Result]:
    """What an operator makes of tensors, by the library's shape rules; what they refuse is an
    error.
    """
    tensors = [tensor for tensor in operands if tensor is not None]
    tensors += [tensor for block in blocks for tensor in block.yields]
    numbers = {id(tensor): f"${i + 1}" for i, tensor in enumerate(tensors)}
    numbers[id(None)] = "_"

    def reference(tensor: Any) -> str:
        return numbers[id(tensor)]

    text = call_text(op, operands, attributes, reference)
    sides = []
    for block in blocks:
        made = [f"${len(tensors) + 1 + i}" for i in range(len(block.parameters))]
        begin = f"({', '.join(made)}) {{" if made else "{"
        sides.append(f" {begin} yield {', '.join(map(reference, block.yields))}; }}")
    text += " else".join(sides)
    ports: Any = Port * len(tensors)
    given = ports(
        *[
            (encode(t.name or word(t.node.op)), NAMES.index(t.dtype), len(t.shape), t.shape, 0)
            for t in tensors
        ]
    )
    results = (Port * (len(tensors) + 4))()
    count = ctypes.c_size_t()
    try:
        library().infer(encode(text), given, len(given), results, len(results), ctypes.byref(count))
    except InvalidError as error:
        if _OF_TYPE.search(str(error)):
            raise InvalidTypeError(str(error)) from None
        raise
    return [(tuple(port.shape[: port.rank]), NAMES[port.type]) for port in results[: count.value]]
