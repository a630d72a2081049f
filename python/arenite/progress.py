"""What training tells of itself: figures, and one line of how far it is."""

import sys
import time
from types import MappingProxyType
from typing import Any, Mapping, NamedTuple, Optional


class Evaluation(NamedTuple):
    loss: float  # the mean over the samples
    accuracy: Optional[float]  # 0 … 1; None where the loss does not tell
    metrics: Mapping[str, float] = MappingProxyType({})  # the trainer's own, by name

    def __repr__(self) -> str:
        others = "".join(f", {name}={value!r}" for name, value in self.metrics.items())
        return f"Evaluation(loss={self.loss!r}, accuracy={self.accuracy!r}{others})"


class Epoch(NamedTuple):
    loss: float
    accuracy: Optional[float]
    metrics: Mapping[str, float]
    validation: Optional[Evaluation]
    seconds: float  # of training


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _figures(found: Any) -> str:
    text = f"loss {found.loss:.4f}"
    if found.accuracy is not None:
        text += f"  accuracy {100 * found.accuracy:.2f} %"
    return text + "".join(f"  {name} {value:.4f}" for name, value in found.metrics.items())


class Progress:
    """One line that is written over and over, at most ten times a second."""

    def __init__(self, epochs: int, samples: int, wanted: bool):
        self.epochs, self.samples, self.wanted = epochs, samples, wanted
        self.terminal = sys.stderr.isatty()
        self.began = self.shown = time.perf_counter()
        self.width = 0

    def write(self, text: str, end: str) -> None:
        start = "\r" if self.terminal else ""
        sys.stderr.write(start + text.ljust(self.width if self.terminal else 0) + end)
        sys.stderr.flush()
        self.width = 0 if end else len(text)

    def show(self, epoch: int, done: int, loss: float) -> None:
        now = time.perf_counter()
        if not self.wanted or not self.terminal or now - self.shown < 0.1:
            return
        self.shown = now
        share = (epoch * self.samples + done) / (self.epochs * self.samples)
        left = _duration((now - self.began) * (1 - share) / share)
        self.write(
            f"epoch {epoch + 1}/{self.epochs}  {done}/{self.samples}  loss {loss:.4f}  ETA {left}",
            "",
        )

    def end(self, epoch: int, found: Epoch) -> None:
        if not self.wanted:
            return
        text = f"epoch {epoch + 1}/{self.epochs}  {_figures(found)}"
        if found.validation is not None:
            text += f"  validation {_figures(found.validation)}"
        self.write(f"{text}  {found.seconds:.2f} s", "\n")
