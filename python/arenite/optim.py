"""Optimizers, for `arenite.train` and `arenite.Trainer`, with PyTorch's names and numbers.

An optimizer is an operator of scripts (`train($loss, optimizer=adam, …)`) with its numbers as
attributes: `Optimizer("adam", 0.001, beta1=0.9)` is what `Adam(0.001)` makes.
"""

import re
from typing import Any, Dict, Optional, Tuple

from . import habits
from .calls import Name, WrittenName, quote
from .errors import InvalidError, InvalidTypeError
from .rules import integer, is_number


def _number(
    what: str, value: Any, below: float = float("inf"), least: float = 0.0
) -> float:
    if not is_number(value):
        raise InvalidTypeError(f"{what} {value!r}; expected a number")
    if not least <= value < below or value == -float("inf"):
        wanted = "a finite number" if least < 0 else f"a number of at least {least:g}"
        wanted += "" if below == float("inf") else f" and below {below:g}"
        raise InvalidError(f"{what} {value}; expected {wanted}")
    return float(value)


def _pair(what: str, value: Any) -> Tuple[float, float]:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise InvalidTypeError(f"{what} {value!r}; expected two numbers, as in (0.9, 0.999)")
    return _number(f"{what}[0]", value[0], 1), _number(f"{what}[1]", value[1], 1)


def _number_or_steps(what: str, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [int(integer(what, step, least=0)) for step in value]
    return _number(what, value)


class Optimizer:
    """Any optimizer that there is as an operator, by its name and the numbers that it has."""

    _least = 0.0  # of its numbers

    def __new__(cls, *given: Any, **_: Any) -> "Optimizer":
        if given and not isinstance(given[0], str) and not is_number(given[0]):
            raise InvalidTypeError(
                f"a {type(given[0]).__name__} given to {cls.__name__}; expected numbers alone (hint: "
                f"{cls.__name__}(lr=0.01); arenite.Trainer and arenite.train know the parameters)"
            )
        return super().__new__(cls)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(habits.missing(self, name, habits.OPTIMIZER))

    def __init__(self, operator: str, /, lr: float, **numbers: float):
        others = {"learning_rate", "schedule", "clip_norm", "clip_value", "check_loss"}
        others |= {"optimizer", "parameters", "group", "rank", "rate", "average", "accumulate"}
        settings = others & set(numbers)
        if settings:
            raise InvalidError(
                f"{min(settings)!r} as a number of an optimizer; expected its own (hint: "
                "arenite.train and arenite.Trainer take the others)"
            )
        self.operator = operator if isinstance(operator, Name) else Name(operator)
        self._lr = _number("lr", lr)
        self.numbers = {
            name: _number(name, value, least=self._least) for name, value in numbers.items()
        }

    @property
    def lr(self) -> float:
        """The rate that training begins with."""
        return self._lr

    @lr.setter
    def lr(self, value: Any) -> None:
        raise InvalidTypeError(
            f"lr {value!r} of an optimizer that is made; expected another optimizer (hint: "
            "trainer.learning_rate and model.learning_rate are what steps take)"
        )

    def attributes(self) -> Dict[str, Any]:
        """As the statement `train` has them."""
        return {"optimizer": self.operator, "learning_rate": self.lr, **self.numbers}

    def __repr__(self) -> str:
        numbers = "".join(f", {name}={value}" for name, value in self.numbers.items())
        named = type(self) is Optimizer or isinstance(self.operator, WrittenName)
        operator = f"{str(self.operator)!r}, " if named else ""
        return f"{type(self).__name__}({operator}lr={self.lr}{numbers})"


class Formula(Optimizer):
    """An optimizer of one's own, as scripts declare it:

        heavy_ball = ""\"formula heavy_ball(weight, gradient, learning_rate, velocity, momentum=0.9) {
            v = momentum * velocity + gradient;
            yield weight - learning_rate * v, v
        }""\"
        optimizer = Formula(heavy_ball, lr=0.1, momentum=0.8)

    Operands behind learning_rate are states like the weight, zeros at first, but for a last one
    called `step`, the number of the step from 1 on; then come numbers with what they are unless
    given here. Results are the next weight and states. docs/scripts.md has the rest.
    """

    _least = -float("inf")

    def __init__(self, declaration: str, /, lr: float, **numbers: float):
        blanks = r"(?:\s|#[^\n]*\n)*"
        named = re.fullmatch(
            rf"{blanks}formula\s+([A-Za-z_][A-Za-z0-9_.]*)[^{{}}]*{{[^{{}}]*}}{blanks};?{blanks}",
            str(declaration) + "\n",
        )
        if named is None:
            raise InvalidError(
                f"an optimizer's formula {declaration!r}; expected formula NAME(weight, gradient, "
                "learning_rate, …) { … }"
            )
        super().__init__(WrittenName(named[1], declaration.strip()), lr, **numbers)


class Schedule:
    """What multiplies a learning rate in each step: one of the schedules of scripts with its
    numbers, as in Schedule("cosine", steps=1000, warm_up=50), or a formula of `$1`, the number of
    the step from 1 on, as in Schedule(formula="1 / sqrt($1)").
    """

    def __init__(self, name: Optional[str] = None, *, formula: Optional[str] = None, **numbers: Any):
        if (name is None) == (formula is None) or (name is None) != (not numbers):
            raise InvalidError(
                f"a schedule {name!r} with formula {formula!r} and numbers {numbers}; expected a "
                "name and its numbers, or a formula"
            )
        self.name, self.formula = name, formula
        self.numbers = {key: _number_or_steps(key, value) for key, value in numbers.items()}

    def text(self) -> str:
        """As scripts have it."""
        if self.formula is not None:
            return f"{{ {self.formula} }}"
        numbers = ", ".join(f"{key}={value!r}" for key, value in self.numbers.items())
        return f"{self.name}({numbers})"

    def __repr__(self) -> str:
        return f"Schedule[{self.text()}]"


class Group:
    """Parameters that are updated otherwise: those whose names match, or that have no more axes.

    names: patterns as in a shell, "*.bias, norm?.*"; None: of any name
    rank: at most so many axes: 1 is of biases and what norms scale by; None: any
    rate: what the learning rate is multiplied by
    numbers: of the optimizer, as weight_decay=0

    Of several groups the first that a parameter is in counts.
    """

    def __init__(
        self,
        names: Optional[str] = None,
        *,
        rank: Optional[int] = None,
        rate: float = 1.0,
        **numbers: float,
    ):
        if names is not None and not isinstance(names, str):
            raise InvalidTypeError(f'names {names!r} of a group; expected patterns, as "*.bias"')
        self.names, self.rate = names, _number("rate", rate)
        self.rank = None if rank is None else integer("rank", rank, least=0)
        least = -float("inf")  # the library knows which may be
        self.numbers = {name: _number(name, value, least=least) for name, value in numbers.items()}

    def text(self) -> str:
        """As scripts have it."""
        words = [] if self.names is None else [quote(self.names)]
        words += [] if self.rank is None else [f"rank={int(self.rank)}"]
        numbers = {"rate": self.rate, **self.numbers}
        words += [f"{name}={value!r}" for name, value in numbers.items()]
        return f"group({', '.join(words)})"

    def __repr__(self) -> str:
        return f"Group[{self.text()}]"


class Average:
    """Means of parameters over steps, kept beside them, as torch.optim.swa_utils.AveragedModel.

    decay: what stays of the mean in each step, as 0.999; 0: all steps count alike
    begin: the first step that counts, from 1 on; before, the mean is the parameter
    every: so many steps apart
    """

    def __init__(self, decay: float = 0.0, begin: int = 1, every: int = 1):
        self.decay = _number("decay", decay, 1)
        self.begin = integer("begin", begin, least=1)
        self.every = integer("every", every, least=1)

    def text(self) -> str:
        """As scripts have it."""
        return f"average(decay={self.decay!r}, begin={int(self.begin)}, every={int(self.every)})"

    def __repr__(self) -> str:
        return f"Average[{self.text()}]"


class SGD(Optimizer):
    """Stochastic gradient descent, as torch.optim.SGD:

    g ← gradient + weight_decay · weight
    velocity ← momentum · velocity + (1 − dampening) · g, at first g
    weight ← weight − lr · velocity, or with Nesterov − lr · (g + momentum · velocity)
    """

    def __init__(
        self,
        lr: float = 0.001,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        *,
        dampening: float = 0.0,
        nesterov: bool = False,
    ):
        dampening = _number("dampening", dampening, 1)
        if nesterov and (not momentum or dampening):
            raise InvalidError(
                f"nesterov with momentum {momentum} and dampening {dampening}; expected a momentum "
                "above 0 and no dampening"
            )
        numbers = {"momentum": _number("momentum", momentum, 1), "weight_decay": weight_decay}
        operator = "sgd"
        if nesterov:
            operator = "sgd_nesterov"
        elif momentum and dampening:
            operator = "sgd_dampened"
            numbers["dampening"] = dampening
        super().__init__(operator, lr, **numbers)
        self.momentum, self.weight_decay = self.numbers["momentum"], self.numbers["weight_decay"]


class Adam(Optimizer):
    """As torch.optim.Adam: steps by means of gradients over roots of means of their squares."""

    _operator = "adam"

    def __init__(
        self,
        lr: float = 0.001,
        betas: Tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
    ):
        beta1, beta2 = _pair("betas", betas)
        operator = self._operator + ("_amsgrad" if amsgrad else "")
        super().__init__(
            operator, lr, beta1=beta1, beta2=beta2, eps=eps, weight_decay=weight_decay
        )


class AdamW(Adam):
    """As torch.optim.AdamW: Adam whose weights decay by themselves, not by their gradients."""

    _operator = "adamw"

    def __init__(
        self,
        lr: float = 0.001,
        betas: Tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        amsgrad: bool = False,
    ):
        super().__init__(lr, betas, eps, weight_decay, amsgrad)


class RMSprop(Optimizer):
    """As torch.optim.RMSprop."""

    def __init__(
        self,
        lr: float = 0.01,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
    ):
        operator = "rms_prop" + ("_centered" if centered else "") + ("_momentum" if momentum else "")
        numbers = {"alpha": alpha, "eps": eps, "weight_decay": weight_decay}
        if momentum:
            numbers["momentum"] = momentum
        super().__init__(operator, lr, **numbers)


class Adagrad(Optimizer):
    """As torch.optim.Adagrad, from sums of 0 on."""

    def __init__(
        self,
        lr: float = 0.01,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        eps: float = 1e-10,
    ):
        super().__init__("adagrad", lr, lr_decay=lr_decay, weight_decay=weight_decay, eps=eps)


class Adadelta(Optimizer):
    """As torch.optim.Adadelta."""

    def __init__(
        self, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0
    ):
        super().__init__("adadelta", lr, rho=rho, eps=eps, weight_decay=weight_decay)


class Lion(Optimizer):
    """Steps by the sign of a mean: Chen and others, Symbolic discovery of optimization algorithms."""

    def __init__(
        self,
        lr: float = 0.0001,
        betas: Tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ):
        beta1, beta2 = _pair("betas", betas)
        super().__init__("lion", lr, beta1=beta1, beta2=beta2, weight_decay=weight_decay)


class LAMB(Optimizer):
    """Adam's step as long as the weight is: You and others, Large batch optimization for deep
    learning, with Adam's unbiased means.
    """

    def __init__(
        self,
        lr: float = 0.001,
        betas: Tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
    ):
        beta1, beta2 = _pair("betas", betas)
        super().__init__(
            "lamb", lr, beta1=beta1, beta2=beta2, eps=eps, weight_decay=weight_decay
        )
