"""How far `Trainer.fit` is: what a saved file says of it, and what it goes over."""

import json
from typing import Any, Dict, Optional, Tuple

import numpy as np

from .errors import InvalidError, InvalidTypeError
from .graph import check_shape
from .progress import Evaluation
from .rules import is_integer, is_number

PLACE = "trainer"  # what a file says of one


def said_of(path: Any, text: str) -> Dict[str, Any]:
    """As `save` has it, with the types that it has."""

    def count(value: Any) -> int:
        if not is_integer(value) or value < 0:
            raise ValueError
        return int(value)

    try:
        said = json.loads(text)
        sums = [np.nan if one is None else float(one) for one in said["sums"]]
        if len(sums) != 3:
            raise ValueError
        sample, target = said["sample"], said["target"]
        return {
            "epochs": count(said["epochs"]),
            "done": count(said["done"]),
            "count": count(said["count"]),
            "batch": count(said["batch"]),
            "seed": None if said["seed"] is None else count(said["seed"]),
            "sums": np.array(sums),
            "sample": None if sample is None else check_shape(sample, "sample"),
            "target": None if target is None else (check_shape(target[0], "target"), str(target[1])),
        }
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        raise InvalidError(
            f"{path}: what it says of a trainer, {text[:80]!r}; expected what Trainer.save writes"
        ) from None


class Place:
    """How far `fit` is."""

    def __init__(self) -> None:
        self.epochs = 0  # done
        self.done = 0  # samples of the next one
        self.sums = np.zeros(3)  # of these
        self.count = 0  # samples of an epoch
        self.batch = 0  # samples of a step
        self.seed: Optional[int] = None  # of their order; none: they are taken as they are

    def begin(self, count: int, batch: int, seed: Optional[int]) -> None:
        """Goes on with an epoch that was begun like this."""
        whole = self.done == count or (self.done < count and self.done % batch == 0)
        if (self.count, self.batch, self.seed) != (count, batch, seed) or not whole:
            self.done, self.sums = 0, np.zeros(3)
        self.count, self.batch, self.seed = count, batch, seed

    def order(self) -> Optional[np.ndarray]:
        """Of the next epoch, the same whoever asks."""
        if self.seed is None:
            return None
        return np.random.default_rng((self.seed, self.epochs)).permutation(self.count)

    def next(self) -> None:
        self.epochs += 1
        self.done, self.sums = 0, np.zeros(3)

    def said(self) -> Dict[str, Any]:
        sums = [None if np.isnan(one) else one for one in self.sums.tolist()]
        return {**vars(self), "sums": sums}

    @classmethod
    def of(cls, said: Dict[str, Any]) -> "Place":
        place = cls()
        for name in vars(place):
            setattr(place, name, said.get(name, getattr(place, name)))
        return place


def set_apart(x: np.ndarray, y: np.ndarray, validation: Any) -> Tuple[np.ndarray, np.ndarray, Any]:
    """What is trained on, and what is evaluated."""
    if is_number(validation):
        if not 0 < validation < 1:
            raise InvalidError(f"validation {validation}; expected a share above 0 and below 1")
        kept = len(x) - max(1, round(len(x) * float(validation)))
        return x[:kept], y[:kept], (x[kept:], y[kept:])
    if validation is not None and not (
        isinstance(validation, (tuple, list)) and len(validation) == 2
    ):
        raise InvalidTypeError(
            "validation that is no pair; expected (x, y), or a share of the samples, as 0.1"
        )
    return x, y, validation


def means(sums: np.ndarray) -> Evaluation:
    loss, accuracy = (sums[:2] / sums[2]).tolist()
    return Evaluation(loss, None if np.isnan(accuracy) else accuracy)
