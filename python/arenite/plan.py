"""Plans: where every byte of a model lives, and how good that is."""

import ctypes
import html
import json
from typing import Any, Dict

from ._library import Memory, library


def bytes_text(count: int) -> str:
    """1234567 → "1.18 MiB"."""
    if count < 1024:
        return f"{count} B"
    size, unit = float(count), "B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        size /= 1024
        if size < 1024:
            break
    return f"{size:.2f} {unit}"


class Plan:
    """The memory of one run, or of one step of training, planned before the first one.

    bytes: of all blocks: arenas, inputs, outputs, and what the model keeps
    arena_bytes: of those, what values share as they come and go
    lower_bound: of arena_bytes; no plan of these values can be below
    separate: what the same values would take, each with bytes of its own
    optimal: arena_bytes is proved to be least

    A notebook shows its picture: time across, addresses up, one box a value.
    """

    def __init__(self, owner: Any, functions: str = "model_"):
        memory = Memory()
        owner.handle.call(getattr(library(), f"{functions}memory"), ctypes.byref(memory))
        self.bytes: int = memory.bytes
        self.arena_bytes: int = memory.arena_bytes
        self.lower_bound: int = memory.lower_bound
        self.separate: int = memory.separate
        self.optimal: bool = bool(memory.optimal)
        self._owner = owner  # which lives as long as somebody may look
        self._functions = functions

    def _text(self, what: str) -> str:
        place = ctypes.c_void_p()
        self._owner.handle.call(getattr(library(), self._functions + what), ctypes.byref(place))
        return library().take_text(place)

    @property
    def json(self) -> Dict[str, Any]:
        """All of it: blocks, arenas, the place of every value, reuse."""
        return json.loads(self._text("plan"))

    @property
    def svg(self) -> str:
        """The picture, as a self-contained SVG document."""
        return self._text("picture")

    def save_svg(self, path: Any) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def _rows(self) -> Dict[str, str]:
        saved = 100 * (1 - self.arena_bytes / self.separate) if self.separate else 0.0
        optimal = "optimal, proved" if self.optimal else "not proved to be least"
        return {
            "all blocks": bytes_text(self.bytes),
            "arena": f"{bytes_text(self.arena_bytes)} ({optimal})",
            "lower bound": bytes_text(self.lower_bound),
            "separately": f"{bytes_text(self.separate)} ({saved:.1f} % saved)",
        }

    def __repr__(self) -> str:
        rows = self._rows()
        width = max(map(len, rows))
        return "\n".join(["Plan", *(f"  {name:<{width}}  {value}" for name, value in rows.items())])

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr><th "
            f"style='text-align:left'>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in self._rows().items()
        )
        return f"<table>{rows}</table>{self.svg}"
