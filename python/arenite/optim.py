"""Optimizers, for `arenite.train` and `arenite.Trainer`."""

from typing import Any, Dict

from .calls import Name
from .errors import InvalidError, InvalidTypeError
from .rules import is_number


def _number(what: str, value: Any) -> float:
    if not is_number(value):
        raise InvalidTypeError(f"{what} {value!r}; expected a number")
    if not 0 <= value < float("inf"):
        raise InvalidError(f"{what} {value}; expected a number of at least 0")
    return float(value)


class SGD:
    """Stochastic gradient descent, as torch.optim.SGD without dampening and Nesterov:

    g ← gradient + weight_decay · weight
    velocity ← momentum · velocity + g,  weight ← weight − lr · velocity
    """

    def __init__(self, lr: float, momentum: float = 0.0, weight_decay: float = 0.0):
        self.lr = _number("lr", lr)
        self.momentum = _number("momentum", momentum)
        self.weight_decay = _number("weight_decay", weight_decay)

    def attributes(self) -> Dict[str, Any]:
        """As the statement `train` has them."""
        named: Dict[str, Any] = {"optimizer": Name("sgd"), "learning_rate": self.lr}
        if self.momentum:
            named["momentum"] = self.momentum
        if self.weight_decay:
            named["weight_decay"] = self.weight_decay
        return named

    def __repr__(self) -> str:
        return f"SGD(lr={self.lr}, momentum={self.momentum}, weight_decay={self.weight_decay})"
