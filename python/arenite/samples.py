"""Samples: what people call inputs and targets, as arrays by the names of a network's inputs."""

import ctypes
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

import numpy as np

from ._library import Column, encode
from .dtypes import NAMES, REAL, dtype_name
from .errors import InvalidError, InvalidTypeError
from .graph import INPUT, Shape, check_shape
from .interop import as_array, exact, expect_within
from .rules import is_integer, is_number
from .tensor import Tensor, input


class Scaled:
    """What `arenite.scaled` makes: an array, and what a network takes its numbers times."""

    def __init__(self, array: np.ndarray, by: float):
        self.array, self.by = array, by

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, rows: Any) -> "Scaled":
        return Scaled(self.array[rows], self.by)

    @property
    def shape(self) -> Tuple[int, ...]:
        return self.array.shape

    def __repr__(self) -> str:
        return f"Scaled({self.array.dtype.name} {list(self.shape)}, {self.by!r})"


def scaled(array: Any, by: float) -> Scaled:
    """Numbers that a network takes times `by`, as bytes of images by 1 / 255: `trainer.fit(
    arenite.scaled(images, 1 / 255), labels)`. They stay what they are in memory.
    """
    if not is_number(by) or not 0 < abs(by) < float("inf"):
        raise InvalidError(f"scaled by {by!r}; expected a number that is not 0")
    if isinstance(array, Scaled):
        return Scaled(array.array, array.by * float(by))
    return Scaled(as_array(array), float(by))


class Rows(NamedTuple):
    """Of one input: dense numbers of a type that the library reads."""

    array: np.ndarray
    scale: float = 1.0
    is_copy: bool = False  # nobody else has it


class Spec(NamedTuple):
    """Of one sample."""

    shape: Shape
    dtype: str


class Side:
    """Inputs, or targets: what they are called, of which shapes and types a sample's are, and how
    functions are given them: one tensor, several in their order, or by name.

    what: their name in messages, and of a single one
    """

    def __init__(self, what: str):
        self.what = what
        self.form: Any = None  # None: nobody knows yet; "one", "several" or "named"
        self.specs: Dict[str, Spec] = {}

    @classmethod
    def of_inputs(cls, given: Any) -> "Side":
        """None; the shape of a sample; `arenite.input`s with the samples first; by name either."""
        side = cls("x")
        if given is None:
            return side
        if isinstance(given, Mapping):
            named = dict(sorted(given.items()))
            side.form = "named"
        elif isinstance(given, (list, tuple)) and not all(map(is_integer, given)):
            named = {f"x{i}": one for i, one in enumerate(given)}
            side.form = "several"
        else:
            named, side.form = {"x": given}, "one"
        for name, one in named.items():
            if isinstance(one, Tensor):
                if one.node.op != INPUT or one.ndim == 0:
                    raise InvalidTypeError(
                        f"inputs {one!r}; expected an arenite.input of shape [N, ...]"
                    )
                own = name if side.form == "named" else str(one.name)
                if own in side.specs:
                    raise InvalidError(f"two inputs named {own!r}; expected names of their own")
                side.specs[own] = Spec(one.shape[1:], one.dtype)
            else:
                side.specs[name] = Spec(check_shape(one, "inputs"), "float32")
        return side

    def __eq__(self, other: Any) -> bool:
        return (
            isinstance(other, Side)
            and self.form == other.form
            and list(self.specs.items()) == list(other.specs.items())
        )

    @property
    def known(self) -> bool:
        return self.form is not None

    def tensors(self, count: int) -> Dict[str, Tensor]:
        return {
            name: input(name, (count, *one.shape), one.dtype) for name, one in self.specs.items()
        }

    def call(
        self, function: Any, before: Iterable[Any], tensors: Dict[str, Tensor], **more: Tensor
    ) -> Any:
        if self.form == "named":
            return function(*before, **tensors, **more)
        return function(*before, *tensors.values(), **more)

    def rows(self, given: Any) -> Dict[str, Rows]:
        """By name. Of what has been seen before, of that form; nothing is checked here that the
        library checks.
        """
        form = self.form_of(given)
        if form == "named":
            named = dict(sorted(given.items(), key=lambda one: str(one[0])))  # in any dict's order
            if not named or not all(isinstance(name, str) for name in named):
                raise InvalidTypeError(f"{self.what} that is {_told(given)}; expected arrays by name")
            if self.form == "several" and set(named) == set(self.specs):
                form = "several"
        elif form == "several":
            names = list(self.specs) if self.form == "several" else []
            if self.form == "several" and len(names) != len(given):
                raise InvalidTypeError(
                    f"{self.what} of {len(given)} arrays; expected {len(names)}: {', '.join(names)}"
                )
            names = names or [f"{self.what}{i}" for i in range(len(given))]
            named = dict(zip(names, given))
        else:
            named = {next(iter(self.specs), self.what): given}
        if self.known and (form != self.form or set(named) != set(self.specs)):
            words = {
                "one": "one array of samples [N, ...]",
                "several": f"a tuple of {len(self.specs)} arrays",
                "named": f"arrays by the names {', '.join(self.specs)}",
            }
            raise InvalidTypeError(f"{self.what} that is {_told(given)}; expected {words[self.form]}")
        return {name: self._rows(name, named[name]) for name in self.specs or named}

    def form_of(self, given: Any) -> str:
        if isinstance(given, Mapping):
            return "named"
        if isinstance(given, list) and self.form == "several":
            return "several"
        if not isinstance(given, tuple) or not given:
            return "one"
        arrays = all(isinstance(one, Scaled) or np.ndim(one) > 0 for one in given)
        return "several" if arrays else "one"

    def _rows(self, name: str, given: Any) -> Rows:
        scale = given.by if isinstance(given, Scaled) else 1.0
        array = given.array if isinstance(given, Scaled) else as_array(given)
        if array.ndim == 0:
            raise InvalidError(f"{name} of shape []; expected samples [N, ...]")
        one = self.specs.get(name)
        if one is not None and array.shape == one.shape and array.shape[1:] != one.shape:
            sample = ", ".join(["N", *map(str, one.shape)])
            raise InvalidError(
                f"{name} of shape {list(array.shape)}, which is one sample; expected samples "
                f"[{sample}] (hint: {name}[None])"
            )
        plain = isinstance(given, (list, tuple))
        dtype = one.dtype if one is not None else None
        if plain and array.dtype.kind == "f":
            array = array.astype(np.float32)
        if dtype is not None and dtype not in REAL:
            if array.dtype.kind not in "iub" or scale != 1:
                found = array.dtype.name if scale == 1 else "scaled numbers"
                raise InvalidTypeError(f"{found} for {name}; expected integers")
            expect_within(array, dtype, name)
        return _rows(array, given, name, scale)

    def said(self) -> Any:
        """For a file."""
        return None if not self.known else [self.form, self.specs]

    @classmethod
    def of(cls, what: str, said: Any) -> "Side":
        """What `said` has said; another value is a ValueError."""
        side = cls(what)
        if said is not None:
            form, specs = said
            if form not in ("one", "several", "named"):
                raise ValueError(form)
            side.form = form
            side.specs = {
                str(name): Spec(check_shape(shape), dtype_name(dtype))
                for name, (shape, dtype) in specs.items()
            }
        return side


WEIGHTS = "sample_weight"  # the input that they are


def weights_of(given: Any, count: int) -> Rows:
    """Of so many samples."""
    array = as_array(given)
    if array.shape != (count,):
        raise InvalidError(
            f"{WEIGHTS} of shape {list(array.shape)}; expected [{count}], a number for each sample"
        )
    if array.dtype.kind not in "iubf":
        raise InvalidTypeError(f"{array.dtype.name} for {WEIGHTS}; expected numbers")
    if not np.isfinite(array).all():
        raise InvalidError(f"{WEIGHTS} that are not finite; expected finite numbers")
    return _rows(array, given, WEIGHTS)


def _told(given: Any) -> str:
    if isinstance(given, Mapping):
        return f"a dict of {', '.join(map(str, given))}"
    return f"a tuple of {len(given)} arrays" if isinstance(given, tuple) else "one array"


def _readable(array: np.ndarray, what: str) -> np.ndarray:
    """Dense, and of a type that the library reads; the caller's own bytes where they are so."""
    if array.dtype.name not in NAMES:
        kind = array.dtype.kind
        if kind not in "iubf" or array.dtype.itemsize > 8:
            raise InvalidTypeError(f"{array.dtype.name} for {what}; expected numbers")
        wanted = {"f": "float32", "b": "uint8"}.get(kind, "int64")
        array = exact(array, wanted, what) if kind in "iu" else array.astype(wanted)
    return np.require(array, array.dtype.newbyteorder("="), ["C", "A"])


def _rows(array: np.ndarray, given: Any, what: str, scale: float = 1.0) -> Rows:
    read = _readable(array, what)
    return Rows(read, scale, read is not array or isinstance(given, (list, tuple)))


class Samples:
    """Arrays by name, as the library is given them; it borrows their bytes."""

    def __init__(self, arrays: Mapping[str, Rows]):
        self.arrays = dict(arrays)
        counts = {name: len(rows.array) for name, rows in self.arrays.items()}
        self.count = next(iter(counts.values()))
        for name, count in counts.items():
            if count != self.count:
                first = next(iter(counts))
                raise InvalidError(
                    f"{name} of {count} samples; expected {self.count}, as {first} has"
                )
        self._shapes: List[Any] = []
        columns = [
            self._column(name, rows.array, rows.scale) for name, rows in self.arrays.items()
        ]
        self.columns: Any = (Column * len(columns))(*columns)

    def _column(self, name: str, array: np.ndarray, scale: float) -> Column:
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self._shapes.append(shape)
        kind = NAMES.index(array.dtype.name)
        return Column(encode(name), array.ctypes.data, kind, array.ndim, shape, scale)

    @property
    def given(self) -> Tuple[Any, int]:
        return self.columns, len(self.columns)

    def between(self, begin: int, end: int) -> "Samples":
        return Samples(
            {
                name: rows._replace(array=rows.array[begin:end])
                for name, rows in self.arrays.items()
            }
        )

    def is_same(self, other: Optional["Samples"]) -> bool:
        """Of the same bytes in memory; copies, which are others each time, of equal ones."""
        if other is None or list(self.arrays) != list(other.arrays):
            return False
        return all(map(_are_same, self.arrays.values(), other.arrays.values()))


def _are_same(a: Rows, b: Rows) -> bool:
    if (a.array.shape, a.array.dtype, a.scale) != (b.array.shape, b.array.dtype, b.scale):
        return False
    if a.array.ctypes.data == b.array.ctypes.data:
        return True
    ours, theirs = (one.array.reshape(-1).view(np.uint8) for one in (a, b))  # NaNs are equal
    return a.is_copy and b.is_copy and np.array_equal(ours, theirs)
