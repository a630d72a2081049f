"""Sizes that only a run decides."""

import re
from typing import Any, Dict, Iterable, Sequence, Tuple

from .errors import InvalidError, InvalidTypeError


class Size(int):
    """A size that only a run decides, as an integer: its upper bound. See `arenite.size`.

    other: its value where all named sizes are smaller than their bounds, by which shape rules show
        what depends on them.
    name: "" for what follows from named ones in another way than to be one. Where no rule says
        how, `other` is the bound too.
    """

    name: str
    other: int

    def __new__(cls, name: str, bound: int, other: int) -> "Size":
        made = super().__new__(cls, bound)
        made.name, made.other = name, other
        return made

    def __getnewargs__(self) -> Any:  # for copies
        return self.name, int(self), self.other

    def __repr__(self) -> str:
        return f"{self.name}<={int(self)}" if self.name else str(int(self))


    @property
    def is_unclear(self) -> bool:
        return not self.name and self.other == int(self)


_places: Dict[str, int] = {}  # of names, so that no two sizes are smaller by the same


def _other(name: str, bound: int) -> int:
    """Smaller, but still divided by what the bound is likely to be divided by."""
    step = 1 << max(bound // 8, 1).bit_length() - 1
    choices = (bound - 1) // step
    place = _places.setdefault(name, len(_places))
    return bound - step * (1 + place % choices) if choices else bound


def size(name: str, bound: int) -> Size:
    """A size that only a run decides, at most `bound`: `rows = arenite.size("rows", 64)`.

    It is an integer, and may stand in shapes of inputs and wherever functions take integers;
    tensors made of such inputs have it in their shapes. What is computed from it, as `rows * 2`, is
    a plain number. `compile` is told what it is: `sizes={"rows": 40}`.
    """
    if not isinstance(name, str):
        raise InvalidTypeError(f"a size named {name!r}; expected a text")
    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_.]*", name) or name in ("_", "inf", "nan"):
        raise InvalidError(
            f"a size named {name!r}; expected a name of letters, digits, '_' and '.'"
        )
    if isinstance(bound, bool) or not hasattr(bound, "__index__"):
        raise InvalidTypeError(f"size {name!r}: bound {bound!r}; expected an integer")
    most = int(bound)
    if most < 1:
        raise InvalidError(f"size {name!r}: bound {most}; expected at least 1")
    return Size(name, most, _other(name, most))


def recognised(
    shape: Sequence[int], other: Sequence[int], known: Iterable[Size]
) -> Tuple[int, ...]:
    """A shape at the bounds of some sizes, and at their other values: with sizes in it."""
    known = list(known)

    def found(size: int, other: int) -> int:
        names = {one.name: one for one in known if (size, other) == (one, one.other)}
        if len(names) == 1:
            return names.popitem()[1]
        return size if size == other else Size("", size, other)

    return tuple(map(found, shape, other))


def whole(value: Any) -> int:
    """An integer of any type as Python's, a Size as it is."""
    return value if isinstance(value, Size) else int(value)


def refuse_size(what: str, value: Any) -> None:
    """Where its bound would stand for it, whatever a run decides."""
    if isinstance(value, Size):
        name = f"the size {value.name!r}" if value.name else "a size"
        raise InvalidError(
            f"{what} {name}, which only a run decides; expected a number (hint: int(…) is its "
            "bound)"
        )
