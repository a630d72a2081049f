"""What training tells of itself: figures, and one line of how far it is."""

import importlib
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


def _tqdm() -> Any:
    """The bars of tqdm, in terminals and notebooks alike; None where it is not installed."""
    try:
        return importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        return None


def is_watched() -> bool:
    """Whether somebody sees it: in a terminal, or in a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class Progress:
    """How far training is, at most ten times a second: a bar of tqdm's where that is installed, else
    one line that is written over and over; and a line for each epoch.
    """

    def __init__(self, epochs: int, samples: int, wanted: bool):
        self.epochs, self.samples, self.wanted = epochs, samples, wanted
        self.terminal = sys.stderr.isatty()
        self.began = self.shown = time.perf_counter()
        self.width = 0
        tqdm = _tqdm() if wanted and is_watched() else None
        self.bar: Any = None
        if tqdm is not None:
            self.bar = tqdm(total=epochs * samples, unit=" samples", unit_scale=True, leave=False)

    def _write(self, text: str, end: str) -> None:
        start = "\r" if self.terminal else ""
        sys.stderr.write(start + text.ljust(self.width if self.terminal else 0) + end)
        sys.stderr.flush()
        self.width = 0 if end else len(text)

    def show(self, epoch: int, done: int, loss: float) -> None:
        now = time.perf_counter()
        if not self.wanted or now - self.shown < 0.1:
            return
        self.shown = now
        whole = epoch * self.samples + done
        if self.bar is not None:
            self.bar.set_description(f"epoch {epoch + 1}/{self.epochs}", refresh=False)
            self.bar.set_postfix(loss=f"{loss:.4f}", refresh=False)
            self.bar.update(whole - self.bar.n)
        elif self.terminal:
            share = whole / (self.epochs * self.samples)
            left = _duration((now - self.began) * (1 - share) / share)
            text = f"epoch {epoch + 1}/{self.epochs}  {done}/{self.samples}  loss {loss:.4f}  ETA {left}"
            self._write(text, "")

    def end(self, epoch: int, found: Epoch) -> None:
        if not self.wanted:
            return
        text = f"epoch {epoch + 1}/{self.epochs}  {_figures(found)}"
        if found.validation is not None:
            text += f"  validation {_figures(found.validation)}"
        text += f"  {found.seconds:.2f} s"
        if self.bar is None:
            self._write(text, "\n")
        else:
            self.bar.write(text, file=sys.stderr)

    def close(self) -> None:
        """Whatever has ended it."""
        if self.bar is not None:
            self.bar.close()
        elif self.width:
            self._write("", "\n")
