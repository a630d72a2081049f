"""What tensors are made of: nodes, each an operator applied to tensors, or a declaration.

A graph is whatever nodes an output reaches. Nodes are immutable and know the nodes they read, so
that a graph is never taken apart or changed, only read; all walks from node to node are loops,
however long the way.
"""

import contextlib
import itertools
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from .errors import InvalidError, InvalidTypeError
from .rules import is_integer
from .sizes import whole

Shape = Tuple[int, ...]
Result = Tuple[Shape, str]  # shape and element type

INPUT, CONSTANT, BUFFER = "InputTensor", "ConstantTensor", "BufferTensor"
PARAMETER, STATE = "ParameterTensor", "StateTensor"
DECLARATIONS = (INPUT, CONSTANT, BUFFER, PARAMETER, STATE)
BLOCK_PARAMETERS = "block parameters"


def word(op: str) -> str:
    """An operator's name; of a declaration, as people name it: InputTensor → input."""
    return op[: -len("Tensor")].lower() if op in DECLARATIONS else op


class Data:
    """The bytes of a constant, or what a parameter, a state or a buffer begins with."""

    __slots__ = ("array", "version", "source", "trainable")

    def __init__(self, array: np.ndarray):
        self.array = array  # read-only
        self.version = 0  # changes when the values do
        self.trainable = True  # of a parameter
        # Fetches newer values from where they are trained.
        self.source: Optional[Callable[[], None]] = None

    def current(self) -> np.ndarray:
        if self.source is not None:
            self.source()
        return self.array

    def __reduce__(self) -> Any:
        """Of a network that is copied or pickled: the values, and nobody who trains them."""
        return _copied, (self.current(), self.trainable)

    def replace(self, array: np.ndarray) -> None:
        """By a read-only array of the same type and shape."""
        self.source, self.array = None, array
        self.version += 1


def _copied(array: np.ndarray, trainable: bool) -> Data:
    array.flags.writeable = False
    made = Data(array)
    made.trainable = trainable
    return made


class Block:
    """The nodes between the braces of an `if` or `loop`."""

    __slots__ = ("outer", "parameters", "yields")

    def __init__(self, outer: Optional["Block"]):
        self.outer = outer
        self.parameters: List[Any] = []  # tensors
        self.yields: List[Any] = []


class Node:
    """An operator of a script, or a declaration; its results are tensors."""

    __slots__ = (
        "op",
        "operands",
        "attributes",
        "results",
        "block",
        "blocks",
        "serial",
        "name",
        "data",
        "is_update",
    )

    _serials = itertools.count()
    _ages = threading.Lock()

    def __init__(
        self,
        op: str,
        operands: Sequence[Any],
        attributes: Dict[str, Any],
        results: Sequence[Result],
        name: Optional[str] = None,
        data: Optional[Data] = None,
        blocks: Sequence[Block] = (),
    ):
        self.op = op
        self.operands = tuple(operands)  # tensors, or None where an optional one is absent
        self.attributes = attributes
        self.results = tuple(results)
        self.block = None if op in DECLARATIONS else current_block()
        self.blocks = tuple(blocks)
        self.serial = next(Node._serials)  # nodes read older ones only
        self.name = name
        self.data = data
        self.is_update = False  # changes parameters, or what an optimizer keeps
        for tensor in self.reads():
            if not is_visible(tensor.node.block, self.block):
                raise InvalidError(
                    f"{op} reads a result of {tensor.node.op} made inside of a block that has "
                    "ended; expected what the block yields"
                )

    def __setstate__(self, state: Any) -> None:
        """Of one that is copied, maybe from another process: what is made here is newer."""
        for name, value in state[1].items():
            setattr(self, name, value)
        with Node._ages:
            Node._serials = itertools.count(max(next(Node._serials), self.serial + 1))

    def reads(self) -> List[Any]:
        """All tensors this node reads itself: its operands, and those in attributes."""
        found = [tensor for tensor in self.operands if tensor is not None]
        for value in self.attributes.values():
            if isinstance(value, TensorList):
                found.extend(value)
        return found


class TensorList(tuple):
    """An attribute that is a list of tensors, as `wrt=[$1, $2]`."""


class Update:
    """A statement without a result: what it does is done whenever the model runs that holds it.

    Give it to `arenite.compile(…, updates=[…])`.
    """

    __slots__ = ("node",)

    def __init__(self, node: Node):
        self.node = node

    def __repr__(self) -> str:
        return f"Update({self.node.op})"


_open = threading.local()


def current_block() -> Optional[Block]:
    return getattr(_open, "block", None)


def is_visible(made_in: Optional[Block], seen_from: Optional[Block]) -> bool:
    block = seen_from
    while block is not None:
        if block is made_in:
            return True
        block = block.outer
    return made_in is None


@contextlib.contextmanager
def inside(block: Block) -> Iterator[None]:
    """The nodes that are made meanwhile are the block's."""
    outer = current_block()
    _open.block = block
    try:
        yield
    finally:
        _open.block = outer


def reachable(roots: Sequence[Node]) -> List[Node]:
    """All nodes that these need, and they themselves, in the order in which they were made."""
    seen = {id(node): node for node in roots}
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        needed = node.reads()
        for block in node.blocks:
            needed.extend(block.yields)
        for tensor in needed:
            if id(tensor.node) not in seen:
                seen[id(tensor.node)] = tensor.node
                waiting.append(tensor.node)
    return sorted(seen.values(), key=lambda node: node.serial)


MAX_SIZE = 1 << 48  # no shape of the library has more elements


def check_shape(shape: Any, what: str = "a shape") -> Shape:
    """A shape as a tuple: of integers, or of one integer alone."""
    if is_integer(shape):
        shape = (shape,)
    if isinstance(shape, str) or not hasattr(shape, "__iter__"):
        raise InvalidTypeError(
            f"{what} {shape!r}; expected a tuple of integers, as in (64, 28, 28, 1)"
        )
    sizes = []
    for size in shape:
        if not is_integer(size):
            raise InvalidTypeError(f"{what} with {size!r}; expected integers")
        if size < 0:
            raise InvalidError(f"{what} with {size}; expected sizes of at least 0")
        if size > MAX_SIZE:
            raise InvalidError(f"{what} with {size}; expected sizes of at most 2^48")
        sizes.append(whole(size))
    if len(sizes) > 8:
        raise InvalidError(f"{what} of {len(sizes)} axes; expected at most 8")
    return tuple(sizes)


def check_name(name: Any, what: str) -> Optional[str]:
    if name is None:
        return None
    if not isinstance(name, str):
        raise InvalidTypeError(f"{what} named {name!r}; expected a text")
    if not name or any(c in ",);\0" or "\ud800" <= c <= "\udfff" for c in name):
        raise InvalidError(
            f"{what} named {name!r}; expected at least one character, and none of ',', ')', ';', "
            "0 and halves of characters"
        )
    return name
