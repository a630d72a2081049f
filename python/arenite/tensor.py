"""Symbolic tensors: a shape, an element type, and how the value is computed when a model runs."""

import math
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import graph
from .calls import infer
from .dtypes import REAL, dtype_name
from .errors import InvalidError, InvalidTypeError
from .graph import Block, Data, Node, Shape, check_name, check_shape, word
from .interop import as_array, as_type, borrow
from .rules import is_integer, is_number
from .sizes import Size, refuse_size


class Tensor:
    """A value of a graph. It has no numbers until a model that computes it runs.

    Operators do what they do in NumPy and PyTorch, and repeat sizes of 1 as those do: `+ - *` with
    tensors, arrays and numbers, `/` and `**` with numbers, `@`, and `[]` with integers, slices of
    step 1, None and Ellipsis.
    """

    __slots__ = ("node", "index")
    __array_ufunc__ = None  # array + tensor is the tensor's to answer

    def __init__(self, node: Node, index: int = 0):
        self.node, self.index = node, index

    @property
    def shape(self) -> Shape:
        return self.node.results[self.index][0]

    @property
    def dtype(self) -> str:
        return self.node.results[self.index][1]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def name(self) -> Optional[str]:
        """Of an input, constant, buffer or parameter."""
        return self.node.name

    @property
    def T(self) -> "Tensor":
        """Axes in reverse order, a copy."""
        return F.permute(self, tuple(reversed(range(self.ndim))))

    def __repr__(self) -> str:
        name = "" if self.name is None else f"{self.name!r}, "
        return f"Tensor({name}{self.dtype} {list(self.shape)}, by {self.node.op})"

    def __bool__(self) -> bool:
        raise InvalidTypeError(
            "the truth of a Tensor, whose value only a run knows; expected arenite.cond(…)"
        )

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Tensor):
            raise InvalidTypeError(
                f"a Tensor compared with a {type(other).__name__}; expected a Tensor: == tells "
                "whether two are one and the same, and there is no operator that compares values"
            )
        return self.node is other.node and self.index == other.index

    def __hash__(self) -> int:
        return hash((id(self.node), self.index))

    def __len__(self) -> int:
        if not self.shape:
            raise InvalidTypeError("the length of a Tensor of shape []; expected at least one axis")
        return self.shape[0]

    def __iter__(self) -> Iterator["Tensor"]:
        return (self[i] for i in range(len(self)))

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise InvalidTypeError(
            "a Tensor where an array is needed; expected an array: compile the tensor and run the "
            "model, or compute with arenite's own functions"
        )

    # Arithmetic.
    def __add__(self, other: Any) -> "Tensor":
        return F.add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> "Tensor":
        return F.sub(self, other)

    def __rsub__(self, other: Any) -> "Tensor":
        return F.sub(other, self)

    def __mul__(self, other: Any) -> "Tensor":
        return F.mul(self, other)

    __rmul__ = __mul__

    def __neg__(self) -> "Tensor":
        return F.mul(self, -1)

    def __pos__(self) -> "Tensor":
        return self

    def _expect_reals(self) -> None:
        if self.dtype not in REAL:
            raise InvalidTypeError(
                f"a division with a Tensor of {self.dtype}; expected float32 or float64"
            )

    def __truediv__(self, other: Any) -> "Tensor":
        self._expect_reals()
        if not is_number(other):
            return F.map("$1 / $2", self, as_tensor(other, self.dtype, "a divisor"))
        if isinstance(other, Size) and other.name:
            return F.map("$1 / $2", self, F.full((), other, self.dtype))
        refuse_size("a Tensor divided by", other)
        if other == 0:
            raise InvalidError("a Tensor divided by 0; expected another number")
        divisor = float(other)
        least = float(np.finfo(self.dtype).tiny)
        if abs(divisor) < least:
            raise InvalidError(
                f"a Tensor divided by {other!r}; expected at least {least:.2g}, as smaller numbers "
                f"count as 0 in {self.dtype}"
            )
        if not math.isfinite(divisor):
            return F.map("$1 / $2", self, F.full((), divisor, self.dtype))
        if math.frexp(divisor)[0] in (0.5, -0.5) and 1e-30 < abs(divisor) < 1e30:
            return F.mul(self, 1 / divisor)  # the same bits
        return F.map(f"$1 / ({divisor!r})", self)

    def __rtruediv__(self, other: Any) -> "Tensor":
        self._expect_reals()
        if is_number(other):
            other = F.full((), other, self.dtype)
        return F.map("$1 / $2", as_tensor(other, self.dtype, "a dividend"), self)

    def __pow__(self, power: Any) -> "Tensor":
        if not is_number(power):
            raise InvalidTypeError(f"a Tensor to the power {power!r}; expected a number")
        refuse_size("a Tensor to the power of", power)
        # Many products would round as many times.
        if not is_integer(power) or power < 1 or (power > 8 and self.dtype in REAL):
            if not math.isfinite(power):
                raise InvalidError(f"a Tensor to the power {power}; expected a finite number")
            return F.map(f"pow($1, {float(power)!r})", self)
        result = self
        for bit in bin(int(power))[3:]:  # from the second on
            square = F.mul(result, result)
            result = F.mul(square, self) if bit == "1" else square
        return result

    def __matmul__(self, other: Any) -> "Tensor":
        return F.matmul(self, other)

    def __rmatmul__(self, other: Any) -> "Tensor":
        return F.matmul(other, self)

    def __getitem__(self, key: Any) -> "Tensor":
        return F.getitem(self, key)

    # What functional.py has, as methods.
    def relu(self) -> "Tensor":
        return F.relu(self)

    def silu(self) -> "Tensor":
        return F.silu(self)

    def softmax(self, dim: int = -1) -> "Tensor":
        return F.softmax(self, dim)

    def sliced_softmax(self, prefix: Any) -> "Tensor":
        """Softmax over the first `prefix` of the last axis; the rest unchanged."""
        return F.sliced_softmax(self, prefix)

    def reshape(self, *shape: Any) -> "Tensor":
        """A view; one size may be -1: it follows from the others."""
        return F.reshape(self, shape[0] if len(shape) == 1 else shape)

    view = reshape

    def flatten(self) -> "Tensor":
        """[N, …] → [N, rest], a view."""
        return F.flatten(self)

    def permute(self, *dims: Any) -> "Tensor":
        """Axis i of the result is axis dims[i]."""
        return F.permute(self, dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims)

    def transpose(self, dim0: int, dim1: int) -> "Tensor":
        return F.transpose(self, dim0, dim1)

    def squeeze(self, dim: int) -> "Tensor":
        return F.squeeze(self, dim)

    def unsqueeze(self, dim: int) -> "Tensor":
        return F.unsqueeze(self, dim)

    def replace(self, rows: Any, begin: Any, end: Any = None) -> "Tensor":
        """This tensor with `rows` in place of its rows from `begin` on. See
        `functional.replace_slice`.
        """
        return F.replace_slice(self, rows, begin, end)

    def sum(self, dim: Any = None, keepdim: bool = False) -> "Tensor":
        """Over all axes (then of shape [1]) or over those given."""
        return F.sum(self, dim, keepdim)

    def mean(self, dim: Any = None, keepdim: bool = False) -> "Tensor":
        return F.mean(self, dim, keepdim)

    def broadcast_to(self, *shape: Any) -> "Tensor":
        return F.broadcast_to(self, shape[0] if len(shape) == 1 else shape)


class Parameter(Tensor):
    """What training changes, unless `trainable` is set to False. `data` is its value: read it, or
    assign another; its elements are read-only.
    """

    __slots__ = ()

    @property
    def holder(self) -> Data:
        """What holds the value, for whoever trains it."""
        assert self.node.data is not None
        return self.node.data

    @property
    def data(self) -> np.ndarray:
        """The values. May be assigned an array of the parameter's type and shape, or plain numbers in
        it.
        """
        return self.holder.current()

    @data.setter
    def data(self, value: Any) -> None:
        array = borrow(value, repr(self), self.dtype, self.shape)
        self.holder.replace(frozen(np.array(array, order="C")))

    @property
    def trainable(self) -> bool:
        """Whether `arenite.train` and a `Trainer` change it, from the next model that they make on;
        as `requires_grad` in PyTorch, which is another name for it.
        """
        return self.holder.trainable

    @trainable.setter
    def trainable(self, value: Any) -> None:
        if not isinstance(value, (bool, np.bool_)):
            raise InvalidTypeError(f"trainable {value!r}; expected True or False")
        self.holder.trainable = bool(value)

    requires_grad = trainable


def frozen(array: np.ndarray) -> np.ndarray:
    """The array, read-only."""
    array.flags.writeable = False
    return array


def _declare(
    kind: str, name: Optional[str], shape: Any, dtype: Any, values: Optional[np.ndarray] = None
) -> Node:
    what = "an input" if kind == graph.INPUT else f"a {word(kind)}"
    types = [(check_shape(shape), dtype_name(dtype))]
    if kind != graph.INPUT:  # others are there before a run
        for size in types[0][0]:
            refuse_size(f"{what} with", size)
    data = None if values is None else Data(frozen(values))
    return Node(kind, (), {}, types, name=check_name(name, what), data=data)


def input(name: str, shape: Any, dtype: Any = "float32") -> Tensor:
    """What each run of a model is given, under this name."""
    if name is None:
        raise InvalidTypeError("an input without a name; expected a text")
    return Tensor(_declare(graph.INPUT, name, shape, dtype))


def _owned(values: Any) -> np.ndarray:
    """A copy of its own, whatever the caller does to the array later. Plain Python numbers are
    float32.
    """
    array = as_array(values)
    if array is values or hasattr(values, "dtype"):
        dtype_name(array.dtype)
    elif array.dtype == np.float64:
        array = array.astype(np.float32)
    return np.array(array, order="C", dtype=dtype_name(array.dtype))


def constant(array: Any, name: Optional[str] = None) -> Tensor:
    """Data that a model is compiled with. Of an array: a copy. Of plain floats: float32."""
    values = _owned(array)
    return Tensor(_declare(graph.CONSTANT, name, values.shape, values.dtype, values))


def _first(kind: str, first: Any, shape: Any, dtype: Any) -> np.ndarray:
    """What something begins with: a number, or an array of its shape."""
    array, sizes, name = as_array(first), check_shape(shape), dtype_name(dtype)
    what = f"what a {word(kind)} of {name} {list(sizes)} begins with"
    if array.shape not in ((), sizes):
        raise InvalidError(
            f"an array of {list(array.shape)} for {what}; expected a number, or an array of its shape"
        )
    if array.dtype.kind not in "biuf":
        raise InvalidTypeError(f"{array.dtype.name} for {what}; expected numbers")
    if not array.any():
        return np.zeros(sizes, name)  # which takes no memory until somebody writes
    with np.errstate(all="ignore"):
        made = array.astype(name)
    exact = made == array if made.dtype.kind in "iu" else np.isfinite(made) == np.isfinite(array)
    if not np.all(exact):
        raise InvalidError(f"{first!r} for {what}; expected numbers that it can hold")
    return np.array(np.broadcast_to(made, sizes), order="C")


def buffer(
    shape: Any, dtype: Any = "float32", name: Optional[str] = None, *, first: Any = 0
) -> Tensor:
    """Keeps from one run to the next what `replace` or `assign` makes of it. Begins with `first`, a
    number or an array.
    """
    values = _first(graph.BUFFER, first, shape, dtype)
    return Tensor(_declare(graph.BUFFER, name, shape, dtype, values))


def parameter(
    array_or_shape: Any, name: Optional[str] = None, *, trainable: bool = True
) -> Parameter:
    """What training changes, float32: begins with the array's values, or as zeros of a shape.
    trainable: False for one that it leaves as it is.

    A shape is an integer or a tuple or list of them; anything else is an array.
    """
    sizes = array_or_shape if isinstance(array_or_shape, (tuple, list)) else [array_or_shape]
    if all(isinstance(size, int) for size in sizes):
        for size in sizes:
            refuse_size("a parameter with", size)
        values = np.zeros(check_shape(array_or_shape), np.float32)
    else:
        values = _owned(array_or_shape)
    if values.dtype != np.float32:
        raise InvalidTypeError(f"a parameter of {values.dtype.name}; expected float32")
    made = Parameter(_declare(graph.PARAMETER, name, values.shape, "float32", values))
    made.trainable = trainable
    return made


def state(shape: Any, name: Optional[str] = None, *, first: Any = 0) -> Tensor:
    """What an optimizer remembers, float32. For steps written by hand with `functional.sgd`. Begins
    with `first`, a number or an array.
    """
    values = _first(graph.STATE, first, shape, "float32")
    return Tensor(_declare(graph.STATE, name, shape, "float32", values))


def as_tensor(value: Any, dtype: Optional[str] = None, what: str = "an operand") -> Tensor:
    """The tensor itself; of an array, or of numbers in lists, a constant."""
    if isinstance(value, Tensor):
        return value
    if value is None or isinstance(value, (str, bytes)):
        raise InvalidTypeError(f"{value!r} for {what}; expected a Tensor or an array")
    if isinstance(value, Size):
        return one("full", shape=[], value=value, type=dtype or "int64")
    if dtype is not None and not hasattr(value, "dtype"):
        value = as_type(as_array(value), dtype, what)
    return constant(value)


def node_of(
    op: str, operands: Sequence[Any], attributes: Dict[str, Any], blocks: Sequence[Block] = ()
) -> Node:
    """An operator applied to tensors, or what stands for them. What it refuses is an error here."""
    tensors = [x if x is None else as_tensor(x, what=f"an operand of {op}") for x in operands]
    return Node(op, tensors, attributes, infer(op, tensors, attributes, blocks), blocks=blocks)


def results(
    op: str, operands: Sequence[Any], attributes: Dict[str, Any], blocks: Sequence[Block] = ()
) -> List[Tensor]:
    """An operator's results."""
    node = node_of(op, operands, attributes, blocks)
    return [Tensor(node, i) for i in range(len(node.results))]


def one(op: str, *operands: Any, **attributes: Any) -> Tensor:
    """The only result of an operator, or the first."""
    return Tensor(node_of(op, operands, attributes))


TensorLike = Union[Tensor, np.ndarray, float, int, Sequence[Any]]
Axes = Union[int, Tuple[int, ...], None]

from . import functional as F  # noqa: E402  (it needs what stands above)
