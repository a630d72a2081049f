"""Networks of layers, as in torch.nn, of images [N, H, W, C].

    network = nn.Sequential(nn.Conv2d(1, 32, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
                            nn.Flatten(), nn.Linear(14 * 14 * 32, 10))
    y = network(arenite.input("image", (64, 28, 28, 1)))

Weights are [in, out] and [KH, KW, C, K]. They and biases begin in ±1/√fan_in, uniformly, as
PyTorch's do: drawn from `rng`, a numpy.random.Generator, or from the one that `arenite.manual_seed`
seeds.
"""

from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Set, Tuple

import numpy as np

from . import functional as F
from . import habits
from .errors import InvalidError, InvalidTypeError
from .graph import BUFFER, Data
from .interop import as_array, borrow
from .rules import integer, is_number, pair
from .tensor import Parameter, Tensor, TensorLike, as_tensor, buffer, constant, frozen, parameter

_generator = np.random.default_rng(0)


def manual_seed(seed: int) -> None:
    """Begins again what layers draw their weights from. A process begins with seed 0."""
    global _generator
    _generator = np.random.default_rng(seed)


def init(
    shape: Tuple[int, ...], fan_in: int, rng: Optional[np.random.Generator] = None
) -> Parameter:
    """A parameter in ±1/√fan_in."""
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise InvalidTypeError(f"rng {rng!r}; expected a numpy.random.Generator")
    limit = 1 / max(fan_in, 1) ** 0.5
    random = _generator if rng is None else rng
    return parameter(random.uniform(-limit, limit, shape).astype(np.float32))


Place = Tuple[str, ...]  # of what an attribute is or holds: ("layers", "0", "weight")


def _is_buffer(value: Any) -> bool:
    return isinstance(value, Tensor) and value.node.op == BUFFER


def _owned(place: Place, value: Any) -> Iterator[Tuple[Place, Any]]:
    """The parameters, buffers and modules that an attribute is or holds."""
    if isinstance(value, (Parameter, Module)) or _is_buffer(value):
        yield place, value
    elif isinstance(value, (list, tuple, dict)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _owned((*place, str(key)), item)


class Module:
    """What has parameters and a `forward`: a function from tensors to tensors that may be applied
    many times.

    Parameters, buffers and modules that are attributes, or in attributes that are lists, tuples or
    dicts, are its own.
    """

    def __getattr__(self, name: str) -> Any:
        if hasattr(type(self), name):  # a property that failed says itself of what
            return object.__getattribute__(self, name)
        raise AttributeError(habits.missing(self, name, habits.MODULE))

    def _no_forward(self, *_: Any) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} has no forward; expected a subclass that defines it"
        )

    forward: Callable[..., Any] = _no_forward  # of any arguments in subclasses

    def __call__(self, *tensors: Any, **named: Any) -> Any:
        return self.forward(*tensors, **named)

    def _children(self) -> Iterator[Tuple[Place, Any]]:
        for name, value in vars(self).items():
            yield from _owned((name,), value)

    def named_parameters(self, prefix: str = "") -> Iterator[Tuple[str, Parameter]]:
        """Each once, under the first of its names, as "0.weight"."""
        owned = self._named(prefix)
        return ((name, value) for name, value in owned if isinstance(value, Parameter))

    def named_buffers(self, prefix: str = "") -> Iterator[Tuple[str, Tensor]]:
        """What survives runs and is not trained, as "1.running_mean"; each once."""
        return ((name, value) for name, value in self._named(prefix) if _is_buffer(value))

    def _named(self, prefix: str) -> Iterator[Tuple[str, Tensor]]:
        seen: Set[int] = set()
        places: Dict[str, Place] = {}
        waiting: List[Tuple[Place, Any]] = [((prefix,) if prefix else (), self)]
        while waiting:
            place, value = waiting.pop()
            key = id(value.node if isinstance(value, Tensor) else value)
            if key in seen:
                continue
            seen.add(key)
            if not isinstance(value, Tensor):
                children = [(place + child, item) for child, item in value._children()]
                waiting.extend(reversed(children))
                continue
            name = ".".join(place)
            other = places.setdefault(name, place)
            if other is not place:
                both = " and ".join("".join(f"[{part!r}]" for part in one) for one in (other, place))
                raise InvalidError(
                    f"two tensors named {name!r}, at {both}; expected names of their own (hint: "
                    "keys without dots)"
                )
            yield name, value

    def parameters(self) -> Iterator[Parameter]:
        return (owner for _, owner in self.named_parameters())

    def requires_grad_(self, trainable: bool = True) -> "Module":
        """Sets `trainable` of all parameters: requires_grad_(False) freezes them."""
        for owner in self.parameters():
            owner.trainable = trainable
        return self

    def names(self) -> Dict[Tensor, str]:
        """For `arenite.compile(…, names=network.names())`."""
        return {owner: name for name, owner in (*self.named_parameters(), *self.named_buffers())}

    def _holders(self) -> Dict[str, Tuple[Tensor, Data]]:
        """What holds the values of parameters and buffers, by name."""
        return {
            name: (owner, owner.node.data)
            for name, owner in (*self.named_parameters(), *self.named_buffers())
            if owner.node.data is not None  # which both kinds have
        }

    def state_dict(self) -> Dict[str, np.ndarray]:
        """Copies of the values of all parameters, then of buffers as batch norm's, by name."""
        return {name: data.current().copy() for name, (_, data) in self._holders().items()}

    def load_state_dict(self, values: Mapping[str, Any]) -> None:
        """The values of what `state_dict` has, by name: all of them, and no others."""
        mine = self._holders()
        missing = [name for name in mine if name not in values]
        unknown = [name for name in values if name not in mine]
        if missing or unknown:
            raise InvalidError(
                f"values that lack {', '.join(missing) or 'none'} and have the unknown "
                f"{', '.join(unknown) or 'none'}; expected exactly {', '.join(mine) or 'none'}"
            )
        # All are right before one changes.
        arrays = {
            name: borrow(values[name], repr(name), owner.dtype, owner.shape)
            for name, (owner, _) in mine.items()
        }
        for name, (_, data) in mine.items():
            data.replace(frozen(np.array(arrays[name], order="C")))

    def extra(self) -> str:
        """What stands between the parentheses of its text."""
        return ""

    def __repr__(self) -> str:
        lines = [
            f"({'.'.join(place)}): {child!r}".replace("\n", "\n  ")
            for place, child in self._children()
            if isinstance(child, Module)
        ]
        head = f"{type(self).__name__}({self.extra()}"
        return head + "".join(f"\n  {line}" for line in lines) + ("\n)" if lines else ")")


class Sequential(Module):
    """Layers one after the other."""

    def __init__(self, *layers: Module):
        for i, layer in enumerate(layers):
            if not callable(layer) or isinstance(layer, type):
                hint = f" (hint: {layer.__name__}(…))" if isinstance(layer, type) else ""
                if isinstance(layer, (list, tuple)):
                    hint = " (hint: Sequential(*layers))"
                raise InvalidTypeError(
                    f"Sequential: layer {i} is {layer!r}; expected a Module{hint}"
                )
        self.layers = list(layers)

    def _children(self) -> Iterator[Tuple[Place, Any]]:
        return (((str(i),), layer) for i, layer in enumerate(self.layers) if isinstance(layer, Module))

    def forward(self, x: TensorLike) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, index: int) -> Any:
        return self.layers[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.layers)


class Linear(Module):
    """[..., in_features] → [..., out_features]; weight [in_features, out_features], bias
    [out_features].
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        rng: Optional[np.random.Generator] = None,
    ):
        self.in_features = integer("Linear: in_features", in_features, least=1)
        self.out_features = integer("Linear: out_features", out_features, least=1)
        self.weight = init((self.in_features, self.out_features), self.in_features, rng)
        self.bias = init((self.out_features,), self.in_features, rng) if bias else None

    def forward(self, x: TensorLike) -> Tensor:
        x = as_tensor(x)
        if x.ndim == 0 or x.shape[-1] != self.in_features:
            raise InvalidError(
                f"Linear: an input of shape {list(x.shape)}; expected [..., {self.in_features}]"
            )
        if x.ndim == 2:
            return F.dense(x, self.weight, self.bias)
        rows = F.reshape(x, (-1, self.in_features))
        return F.reshape(F.dense(rows, self.weight, self.bias), (*x.shape[:-1], self.out_features))

    def extra(self) -> str:
        return f"{self.in_features}, {self.out_features}" + (
            "" if self.bias is not None else ", bias=False"
        )


class Conv2d(Module):
    """[N, H, W, in_channels] → [N, OH, OW, out_channels]; weight [KH, KW, in, out], bias [out]. See
    F.conv2d.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        bias: bool = True,
        rng: Optional[np.random.Generator] = None,
    ):
        self.in_channels = integer("Conv2d: in_channels", in_channels, least=1)
        self.out_channels = integer("Conv2d: out_channels", out_channels, least=1)
        self.kernel_size = pair("Conv2d: kernel_size", kernel_size, least=1)
        self.stride, self.padding, self.dilation = stride, padding, dilation
        fan_in = self.kernel_size[0] * self.kernel_size[1] * self.in_channels
        self.weight = init((*self.kernel_size, self.in_channels, self.out_channels), fan_in, rng)
        self.bias = init((self.out_channels,), fan_in, rng) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation)

    def extra(self) -> str:
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, padding={self.padding!r}"
        )


class _Pool2d(Module):
    def __init__(self, kernel_size: Any = 2, stride: Any = None, padding: Any = 0):
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def extra(self) -> str:
        return f"kernel_size={self.kernel_size}"


class MaxPool2d(_Pool2d):
    """[N, H, W, C] → [N, OH, OW, C], the largest of each window. See F.max_pool2d."""

    def forward(self, x: Tensor) -> Tensor:
        return F.max_pool2d(x, self.kernel_size, self.stride, self.padding)


class AvgPool2d(_Pool2d):
    """[N, H, W, C] → [N, OH, OW, C], the mean of each window. See F.avg_pool2d."""

    def __init__(
        self, kernel_size: Any = 2, stride: Any = None, padding: Any = 0, count_padding: bool = True
    ):
        super().__init__(kernel_size, stride, padding)
        self.count_padding = count_padding

    def forward(self, x: Tensor) -> Tensor:
        return F.avg_pool2d(x, self.kernel_size, self.stride, self.padding, self.count_padding)


class ReLU(Module):
    """max(x, 0)."""

    def forward(self, x: TensorLike) -> Tensor:
        return F.relu(x)


class _Formula(Module):
    """An activation that is a formula of each element; docs/scripts.md has them."""

    name = ""

    def forward(self, x: TensorLike) -> Tensor:
        return getattr(F, self.name)(x)


class GELU(_Formula):
    name = "gelu"


class Hardswish(_Formula):
    name = "hard_swish"


class Mish(_Formula):
    name = "mish"


class SiLU(_Formula):
    name = "silu"


class Softplus(_Formula):
    name = "softplus"


class Flatten(Module):
    """[N, …] → [N, rest]."""

    def forward(self, x: TensorLike) -> Tensor:
        return F.flatten(x)


class Softmax(Module):
    """Along one axis."""

    def __init__(self, dim: int = -1):
        self.dim = dim

    def forward(self, x: TensorLike) -> Tensor:
        return F.softmax(x, self.dim)


class RMSNorm(Module):
    """x / √(mean(x²) + eps) · weight along the last axis; weight [features], ones at first."""

    def __init__(self, features: int, eps: float = 1e-5):
        self.weight = parameter(
            np.ones(integer("RMSNorm: features", features, least=1), np.float32)
        )
        self.eps = eps

    def forward(self, x: TensorLike) -> Tensor:
        return F.rms_norm(x, self.weight, self.eps)


class _BatchNorm(Module):
    """weight and bias [num_features], ones and zeros at first; the statistics that an evaluation
    takes are the buffers running_mean and running_var. See F.batch_norm.
    """

    ranks: Tuple[int, ...] = ()
    axes = ""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        per_shard: bool = False,
    ):
        name = type(self).__name__
        self.num_features = integer(f"{name}: num_features", num_features, least=1)
        if not is_number(momentum):
            raise InvalidTypeError(f"{name}: momentum {momentum!r}; expected a number from 0 to 1")
        self.eps, self.momentum, self.per_shard = eps, momentum, bool(per_shard)
        shape = (self.num_features,)
        self.weight = parameter(np.ones(shape, np.float32)) if affine else None
        self.bias = parameter(np.zeros(shape, np.float32)) if affine else None
        self.running_mean, self.running_var = buffer(shape), buffer(shape, first=1)

    def forward(self, x: TensorLike) -> Tensor:
        x = as_tensor(x)
        if x.ndim not in self.ranks or x.shape[-1] != self.num_features:
            raise InvalidError(
                f"{type(self).__name__}: an input of shape {list(x.shape)}; expected "
                + self.axes.replace("C", str(self.num_features))
            )
        given = x, self.running_mean, self.running_var, self.weight, self.bias
        return F.batch_norm(*given, self.momentum, self.eps, self.per_shard)

    def extra(self) -> str:
        said = f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"
        said += "" if self.weight is not None else ", affine=False"
        return said + (", per_shard=True" if self.per_shard else "")


class BatchNorm1d(_BatchNorm):
    """Of [N, C], or [N, L, C]."""

    ranks, axes = (2, 3), "[N, C] or [N, L, C]"


class BatchNorm2d(_BatchNorm):
    """Of images [N, H, W, C]."""

    ranks, axes = (4,), "[N, H, W, C]"


class Dropout(Module):
    """In training an element is 0 with the probability p, else divided by 1 − p: see F.dropout."""

    def __init__(self, p: float = 0.5, seed: int = 0):
        if not is_number(p) or not 0 <= p <= 1:
            raise InvalidError(f"Dropout: p {p!r}; expected a number from 0 to 1")
        self.p, self.seed = p, seed

    def forward(self, x: TensorLike) -> Tensor:
        return F.dropout(x, self.p, self.seed)

    def extra(self) -> str:
        return f"p={self.p}"


class Embedding(Module):
    """The row of a table that an index int64 [1] names: → [1, features]. weight [rows, features],
    normal at first.
    """

    def __init__(self, rows: int, features: int, rng: Optional[np.random.Generator] = None):
        sizes = {"rows": rows, "features": features}
        shape = [integer(f"Embedding: {what}", n, least=1) for what, n in sizes.items()]
        self.weight = parameter(
            (_generator if rng is None else rng).standard_normal(shape).astype(np.float32)
        )

    def forward(self, index: TensorLike) -> Tensor:
        return F.dynamic_slice(self.weight, index, 1)


class CrossEntropyLoss(Module):
    """logits [N, C], labels int32 [N] → loss and statistics: see F.weighted_cross_entropy.

    weight: what a sample of each class counts, C numbers
    ignore_index: a label whose samples do not count
    """

    def __init__(self, weight: Any = None, ignore_index: Optional[int] = None):
        self.weight = None
        if weight is not None:
            numbers = as_array(weight)
            if numbers.ndim != 1 or numbers.dtype.kind not in "iubf" or not np.isfinite(numbers).all():
                raise InvalidError(f"weight {weight!r}; expected a finite number for each class")
            self.weight = constant(numbers.astype(np.float32))
        self.ignore_index = None if ignore_index is None else integer("ignore_index", ignore_index)

    def forward(
        self, logits: Tensor, labels: Tensor, sample_weight: Optional[TensorLike] = None
    ) -> Any:
        if self.weight is None and self.ignore_index is None and sample_weight is None:
            return F.softmax_cross_entropy(logits, labels)
        return F.weighted_cross_entropy(
            logits, labels, self.weight, self.ignore_index, sample_weight
        )


class MSELoss(Module):
    """The mean of squared differences, float32 [1]; those of a sample times its weight."""

    def forward(
        self, prediction: Tensor, target: Tensor, sample_weight: Optional[TensorLike] = None
    ) -> Tensor:
        if prediction.shape != target.shape:
            raise InvalidError(
                f"MSELoss: a prediction of shape {list(prediction.shape)} and a target of shape "
                f"{list(target.shape)}; expected equal ones"
            )
        difference = prediction - target
        squares = difference * difference
        if sample_weight is not None:
            weight = as_tensor(sample_weight, "float32")
            squares = squares * weight.reshape(-1, *(1,) * (squares.ndim - 1))
        return F.mean(squares)
