"""Other ways to run a model, as `compile` is told of them."""

from typing import Any

from .errors import InvalidError


class EntryOf:
    """Outputs, and what scripts say of their entry."""

    def __init__(self, outputs: Any, settings: str):
        self.outputs, self.settings = outputs, settings

    def __repr__(self) -> str:
        return f"entry{self.settings or '()'} of {self.outputs!r}"


def entry(outputs: Any, *, mode: str = "evaluate", averaged: bool = False) -> EntryOf:
    """For `compile(…, entries={name: entry(…)})`.

    outputs: as those of `compile`
    mode: "train": dropout drops and batch norm takes the batch's statistics, but nothing is kept
    averaged: of the means of parameters that `train(…, average=…)` keeps
    """
    if mode not in ("train", "evaluate"):
        raise InvalidError(f"mode {mode!r} of an entry; expected 'train' or 'evaluate'")
    words = ["mode=train"] if mode == "train" else []
    words += ["averaged"] if averaged else []
    return EntryOf(outputs, f"({', '.join(words)})" if words else "")
