"""A training step as a list of ops, and the lifetimes that follow from it.

A Tape is written front to back: forward ops, then their gradients in reverse, each gradient of a
parameter followed at once by the op that updates it. Nothing is placed or freed while it is
written. Lifetimes are read off the finished list, so "last reader" is meant exactly:

  value     what one op writes, or a view of it (a reshape or slice, which has no bytes of its own)
  storage   the bytes of a value and of all that is written in its place
  lifetime  [first op that touches the storage, last op that does + 1), ops counted from 0
  saved     touched both in forward and in backward

An op's result takes over an operand's storage where the op allows it, the sizes agree and no op
after this one touches it: Arenite's own rule (src/graph/passes/in_place.cpp).
"""
import dataclasses
import math

FLOAT = 4       # bytes
ALIGNMENT = 256  # bytes, Arenite's default


def aligned(size):
    return -(-size // ALIGNMENT) * ALIGNMENT


@dataclasses.dataclass(eq=False)
class Storage:
    name: str
    size: int  # bytes
    persistent: bool = False  # parameters and the batch: a block of their own, not in the table


@dataclasses.dataclass(eq=False)
class Value:
    name: str
    shape: tuple
    storage: Storage
    whole: "Value" = None  # what it is a view of, or itself
    differentiable: bool = True

    def __post_init__(self):
        self.whole = self.whole or self


@dataclasses.dataclass(eq=False)
class Op:
    name: str
    backward: bool
    reads: list     # of Value
    writes: list    # of Value
    overwrite: list  # of Value: operands whose storage the first result may take over


@dataclasses.dataclass(eq=False)
class Buffer:
    """A row of the table."""
    name: str
    lower: int
    upper: int
    size: int
    backward: bool  # first written in backward: what `two` arenas are told apart by

    def __post_init__(self):
        assert 0 <= self.lower < self.upper, f"{self.name} lives [{self.lower}, {self.upper})"
        assert self.size > 0, f"{self.name} has {self.size} bytes"


class Tape:
    def __init__(self):
        self.ops = []
        self.parameters = []
        self.pending = []    # what backward has yet to do, in forward's order
        self.gradients = {}  # by value: the sum of what has arrived
        self.updates = []    # parameters, in the order of their updates
        self.backward = False

    # Forward

    def value(self, name, *shape, item=FLOAT, **storage):
        return Value(name, shape, Storage(name, math.prod(shape) * item, **storage))

    def batch(self, name, *shape):
        """What the step is given; it has no gradient."""
        given = self.value(name, *shape, persistent=True)
        given.differentiable = False
        return given

    def parameter(self, name, *shape):
        self.parameters.append(self.value(name, *shape, persistent=True))
        return self.parameters[-1]

    def parameter_count(self):
        return sum(math.prod(parameter.shape) for parameter in self.parameters)

    def op(self, name, reads, result, also=(), workspace=0, overwrite=(), into=None):
        """Writes `result`, a (name, shape), and the values in `also`.

        `workspace` bytes live for this op alone. `into` is a value of which this op writes a part,
        or to which it adds: the result is a view of it.
        """
        writes = [self.view(into, *result) if into else self.value(result[0], *result[1]), *also]
        if workspace:
            writes.append(self.value(f"{name}.workspace", workspace, item=1))
        self.ops.append(Op(name, self.backward, list(reads), writes, list(overwrite)))
        return writes[0]

    def view(self, value, name, shape):
        return Value(name, shape, value.storage, value.whole)

    def then(self, step):
        """`step` appends what this point of forward means for backward."""
        self.pending.append(step)

    # Backward

    def run_backward(self):
        self.backward = True
        while self.pending:
            self.pending.pop()()

    def gradient(self, value):
        return self.gradients[value]

    def add_gradient(self, value, part):
        """A second reader's part is added where one of the two lies."""
        if value not in self.gradients:
            self.gradients[value] = part
            return
        parts = [self.gradients[value], part]
        self.gradients[value] = self.op(f"{value.name}.sum", parts, (f"{value.name}.grad_sum", part.shape),
                                        overwrite=parts)

    def update(self, parameter, gradient):
        """SGD, as soon as the gradient is complete. Momentum is persistent, as the parameter is."""
        assert gradient.shape == parameter.shape, f"{gradient.name}: {gradient.shape} for {parameter.shape}"
        self.updates.append(parameter)
        self.ops.append(Op(f"{parameter.name}.update", True, [gradient, parameter], [parameter], []))

    # Lifetimes

    def buffers(self):
        """The rows of the table, by time."""
        home = self._homes()
        self._check(home)
        rows = {}
        for at, op in enumerate(self.ops):
            for storage in _touched(op, home):
                if storage.persistent:
                    continue
                row = rows.setdefault(storage, Buffer(storage.name, at, at + 1, storage.size, op.backward))
                row.upper = at + 1
        assert len({row.name for row in rows.values()}) == len(rows), "two buffers of one name"
        return list(rows.values())

    def _homes(self):
        """By storage: the one whose place it takes, or none."""
        last = {}
        for at, op in enumerate(self.ops):
            for storage in _touched(op, {}):
                last[storage] = at
        home = {}
        for at, op in enumerate(self.ops):
            for operand in op.overwrite:
                ours, theirs = op.writes[0].storage, home.get(operand.storage, operand.storage)
                readers = sum(home.get(value.storage, value.storage) is theirs for value in op.reads)
                if theirs.persistent or last[theirs] != at or readers != 1 or theirs.size != ours.size:
                    continue
                home[ours] = theirs
                last[theirs] = last[ours]
                break
        return home

    def _check(self, home):
        """Replays the step: whatever is read must lie where it was written."""
        holds = {}
        for op in self.ops:
            for value in op.reads:
                at = home.get(value.storage, value.storage)
                assert at.persistent or holds.get(at) is value.whole, f"{op.name} reads {value.name}, which is gone"
            for value in op.writes:
                holds[home.get(value.storage, value.storage)] = value.whole


def _touched(op, home):
    return [home.get(value.storage, value.storage) for value in op.reads + op.writes]
