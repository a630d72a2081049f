"""Calls of operators: as scripts write them, and what the library says that they make."""

import ctypes
import re
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

import numpy as np

from ._library import Port, encode, library
from .dtypes import NAMES
from .errors import InvalidError, InvalidTypeError
from .graph import Block, Result, TensorList, word
from .sizes import Size, recognised

# Where a message of the library is of an element type, an attribute's type, or an operand None.
_OF_TYPE = re.compile(r"\) of type |: attribute |^'_';")


class Name(str):
    """An attribute that scripts write without quotes, as `optimizer=sgd`."""


class WrittenName(Name):
    """That of an operator that the script declares."""

    def __new__(cls, name: str, declaration: str) -> "WrittenName":
        made = super().__new__(cls, name)
        made.declaration = declaration
        return made

    def __getnewargs__(self) -> Tuple[str, str]:  # type: ignore[override]
        return str(self), self.declaration

    declaration: str


class Bare(str):
    """An argument that scripts write without its name, as `group("*.bias", rate=0.1)`."""


def quote(text: str) -> str:
    def escaped(found: Any) -> str:
        c = found[0]
        return "\\" + c if c in '"\\' else f"\\x{ord(c):02x}"

    return '"' + re.sub(r'["\\\x00-\x1f\x7f]', escaped, text) + '"'


def number_text(number: Any) -> str:
    """Of an integer; of a named size, its name."""
    return (number.name if isinstance(number, Size) else "") or str(int(number))


def call_text(
    op: str,
    operands: Sequence[Any],
    attributes: Dict[str, Any],
    reference: Callable[[Any], str],
    number: Callable[[Any], str] = number_text,
) -> str:
    """`dense($1, $2)`; `reference` names the tensors, `number` writes integers."""

    def literal(value: Any) -> str:
        if isinstance(value, TensorList):
            return f"[{', '.join(map(reference, value))}]"
        if isinstance(value, (tuple, list)):
            return f"[{', '.join(map(number, value))}]"
        if isinstance(value, str):
            return str(value) if isinstance(value, Name) else quote(value)
        if isinstance(value, (int, np.integer)):
            return number(value)
        return repr(float(value))

    words = [*map(reference, operands)]
    words += [
        str(value) if isinstance(value, Bare) else f"{name}={literal(value)}"
        for name, value in attributes.items()
    ]
    return f"{op}({', '.join(words)})"


def _sizes(tensors: Sequence[Any], attributes: Dict[str, Any]) -> List[Size]:
    """What a run decides of the numbers that an operator is given."""

    def numbers() -> Iterator[Any]:
        for tensor in tensors:
            yield from tensor.shape
        for value in attributes.values():
            yield from value if isinstance(value, (tuple, list)) else [value]

    found = [number for number in numbers() if isinstance(number, Size)]
    named: Dict[str, Size] = {}
    for number in found:
        known = named.setdefault(number.name, number)
        if number.name and known != number:
            raise InvalidError(
                f"two sizes named {number.name!r}, of at most {int(known)} and {int(number)}; "
                "expected one bound"
            )
    return found


def infer(
    op: str, operands: Sequence[Any], attributes: Dict[str, Any], blocks: Sequence[Block]
) -> List[Result]:
    """What an operator makes of tensors, by the library's shape rules; what they refuse is an
    error. Sizes that only a run decides are at their bounds.
    """
    tensors = [tensor for tensor in operands if tensor is not None]
    tensors += [tensor for block in blocks for tensor in block.yields]
    given = op, operands, attributes, blocks, tensors
    sizes = _sizes(tensors, attributes)
    made = _infer(*given, int)
    if not sizes:
        return made
    try:
        if any(size.is_unclear for size in sizes):
            raise InvalidError("sizes that no rule says")
        others = _infer(*given, lambda number: getattr(number, "other", int(number)))
    except InvalidError:
        # It may hold at the bounds alone, as whoever gives other sizes is told.
        return [(tuple(Size("", n, n) for n in shape), dtype) for shape, dtype in made]

    return [
        (recognised(shape, other, sizes), dtype) for (shape, dtype), (other, _) in zip(made, others)
    ]


def _infer(
    op: str,
    operands: Sequence[Any],
    attributes: Dict[str, Any],
    blocks: Sequence[Block],
    tensors: Sequence[Any],
    number: Callable[[Any], int],
) -> List[Result]:
    """`number` says what each integer is."""
    numbers = {id(tensor): f"${i + 1}" for i, tensor in enumerate(tensors)}
    numbers[id(None)] = "_"

    def reference(tensor: Any) -> str:
        return numbers[id(tensor)]

    text = call_text(op, operands, attributes, reference, lambda n: str(number(n)))
    sides = []
    for block in blocks:
        made = [f"${len(tensors) + 1 + i}" for i in range(len(block.parameters))]
        begin = f"({', '.join(made)}) {{" if made else "{"
        sides.append(f" {begin} yield {', '.join(map(reference, block.yields))}; }}")
    text += " else".join(sides)
    ports: Any = Port * len(tensors)
    given = ports(
        *[
            (
                encode(t.name or word(t.node.op)),
                NAMES.index(t.dtype),
                len(t.shape),
                tuple(map(number, t.shape)),
                0,
            )
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
