"""What goes into a model and comes out of it: at every size, as the library is given it."""

import ctypes
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ._library import NamedData, NamedSize, Port, encode, library
from .dtypes import NATIVE
from .errors import InvalidError, InvalidTypeError
from .interop import as_array, borrow
from .kept import TensorSpec, spec_of
from .rules import text
from .session import Handle
from .sizes import Size, recognised

MOST_KEPT = 64  # of what is known of sizes that runs had


def named_sizes(sizes: Mapping[str, int]) -> Any:
    """As the library takes them."""
    named: Any = NamedSize * len(sizes)
    return named(*[(encode(name), int(one)) for name, one in sizes.items()])


class _Sized(NamedTuple):
    """How the library is called at some sizes."""

    sizes: Any  # what named_sizes makes; None at the bounds
    checks: Dict[str, Tuple[str, str, Tuple[int, ...]]]  # what `borrow` is told of each input
    results: List[Tuple[Tuple[int, ...], Any]]  # shapes and types


class Ports:
    """Of one entry, or of several that have the same ones.

    entry: which the library is asked
    inputs: at their bounds, with the sizes that runs decide
    outputs: their names
    form: how results are returned: None for a single one, "list", "one or list", or their names
    """

    def __init__(
        self,
        handle: Handle,
        entry: str,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[str],
        sizes: Mapping[str, Size],
        form: Any,
    ):
        self._handle, self._entry, self._sizes, self._form = handle, entry, sizes, form
        self.inputs: Dict[str, TensorSpec] = {spec.name: spec for spec in inputs}
        names = form if isinstance(form, list) else outputs
        self.outputs = tuple(self._outputs(names))
        self._open = [
            (spec.name, axis, one.name)
            for spec in inputs
            for axis, one in enumerate(spec.shape)
            if isinstance(one, Size)
        ]
        self._encoded = [encode(spec.name) for spec in inputs]
        results = [(tuple(map(int, s.shape)), NATIVE[s.dtype]) for s in self.outputs]
        self._largest = _Sized(None, self._checks({}), results)
        self._known: Dict[Tuple[Tuple[str, int], ...], _Sized] = {}
        self._items: Any = NamedData * len(inputs)
        self._places: Any = ctypes.c_void_p * len(self.outputs)

    # ---- sizes

    def _specs(self, names: Sequence[str], sizes: Mapping[str, int]) -> List[TensorSpec]:
        """Of the outputs."""
        lib, port, given, found = library(), Port(), named_sizes(sizes), []
        for index, name in enumerate(names):
            arguments = encode(self._entry), index, given, len(given), ctypes.byref(port)
            self._handle.call(lib.model_output_at, *arguments)
            found.append(spec_of(port)._replace(name=name))
        return found

    def _outputs(self, names: Sequence[str]) -> List[TensorSpec]:
        """With the sizes that show where others are smaller; where these cannot be, as they are."""
        specs, known = self._specs(names, {}), self._sizes.values()
        if not self._sizes:
            return specs
        try:
            others = self._specs(names, {name: one.other for name, one in self._sizes.items()})
        except InvalidError:
            return specs
        return [
            spec._replace(shape=recognised(spec.shape, other.shape, known))
            for spec, other in zip(specs, others)
        ]

    def _checks(self, sizes: Mapping[str, int]) -> Dict[str, Tuple[str, str, Tuple[int, ...]]]:
        def at(shape: Tuple[int, ...]) -> Tuple[int, ...]:
            return tuple(sizes.get(getattr(one, "name", ""), one) for one in shape)

        return {s.name: (f"input {s.name!r}", s.dtype, at(s.shape)) for s in self.inputs.values()}

    def _at(self, sizes: Mapping[str, int]) -> _Sized:
        """At sizes that are within their bounds."""
        key = tuple(sizes.items())
        known = self._known.get(key)
        if known is None:
            specs = self._specs([spec.name for spec in self.outputs], sizes)
            results = [(spec.shape, NATIVE[spec.dtype]) for spec in specs]
            known = _Sized(named_sizes(sizes), self._checks(sizes), results)
            if len(self._known) >= MOST_KEPT:
                self._known.clear()
            self._known[key] = known
        return known

    def _sized(self, inputs: Mapping[str, Any]) -> _Sized:
        """As the arrays have them."""
        if not self._open:
            return self._largest
        sizes: Dict[str, int] = {}
        owners: Dict[str, str] = {}
        for name, axis, its_size in self._open:
            shape, bounds = as_array(inputs[name]).shape, self.inputs[name].shape
            if len(shape) != len(bounds) or not 1 <= shape[axis] <= bounds[axis]:
                raise InvalidError(
                    f"an array of shape {list(shape)} for input {name!r}; expected {list(bounds)}"
                )
            if sizes.setdefault(its_size, shape[axis]) != shape[axis]:
                raise InvalidError(
                    f"{its_size}={shape[axis]} in input {name!r}, and {its_size}={sizes[its_size]} "
                    f"in input {owners[its_size]!r}; expected one size"
                )
            owners.setdefault(its_size, name)
        return self._at(sizes)

    # ---- runs

    def assigned(self, arrays: Sequence[Any], inputs: Dict[str, Any]) -> Dict[str, Any]:
        """By name, of those given by place and by name."""
        if len(arrays) > len(self.inputs):
            raise InvalidTypeError(
                f"{len(arrays)} arrays; expected at most {len(self.inputs)}: {self._names()}"
            )
        for name, array in zip(self.inputs, arrays):
            if name in inputs:
                raise InvalidTypeError(
                    f"input {name!r} twice, by its place and by its name; expected it once"
                )
            inputs[name] = array
        return inputs

    def _names(self) -> str:
        return ", ".join(self.inputs) or "none"

    def run(
        self, entry: str, inputs: Mapping[str, Any], out: Optional[Sequence[np.ndarray]] = None
    ) -> List[np.ndarray]:
        """Runs one of the entries. Results are written into `out`, if that is given."""
        if inputs.keys() != self.inputs.keys():
            for name in inputs:
                if name not in self.inputs:
                    raise InvalidTypeError(f"an unknown input {name!r}; expected {self._names()}")
            missing = [name for name in self.inputs if name not in inputs]
            raise InvalidTypeError(
                f"no input {', '.join(map(repr, missing))}; expected all of {self._names()}"
            )
        here = self._sized(inputs)
        # The arrays stay alive in this list as long as the library reads them.
        borrowed = [borrow(inputs[name], *check) for name, check in here.checks.items()]
        items = self._items(
            *[(name, a.ctypes.data, a.nbytes) for name, a in zip(self._encoded, borrowed)]
        )
        if out is None:
            made = [np.empty(shape, dtype) for shape, dtype in here.results]
        else:
            made = self._check_out(out, here)
        places = self._places(*[array.ctypes.data for array in made])
        sizes = here.sizes, len(here.sizes or ())
        arguments = (encode(entry), *sizes, items, len(items), places, len(made))
        self._handle.call(library().model_run, *arguments)
        return made

    def _check_out(self, out: Sequence[np.ndarray], here: _Sized) -> List[np.ndarray]:
        if len(out) != len(self.outputs):
            raise InvalidError(f"{len(out)} arrays for outputs; expected {len(self.outputs)}")
        for array, at_bounds, (shape, _) in zip(out, self.outputs, here.results):
            spec = at_bounds._replace(shape=shape)
            fits = isinstance(array, np.ndarray) and text(array) == text(spec)
            if not fits or not (array.flags.c_contiguous and array.flags.writeable):
                found = text(array) if isinstance(array, np.ndarray) else type(array).__name__
                raise InvalidError(
                    f"{found} for output {spec.name!r}; expected a dense, writeable array of "
                    f"{text(spec)}"
                )
        self._refuse_overlaps(out)
        return list(out)

    def _refuse_overlaps(self, out: Sequence[np.ndarray]) -> None:
        """Each is written whole."""
        ends = 0, ""
        for begin, index in sorted((array.ctypes.data, i) for i, array in enumerate(out)):
            name, bytes_ = self.outputs[index].name, out[index].nbytes
            if bytes_ and begin < ends[0]:
                raise InvalidError(
                    f"arrays for outputs {ends[1]!r} and {name!r} with bytes in common; expected "
                    "each in a place of its own"
                )
            ends = max(ends, (begin + bytes_, name))

    def formed(self, made: List[np.ndarray]) -> Any:
        if self._form is None or (self._form == "one or list" and len(made) == 1):
            return made[0]
        return dict(zip(self._form, made)) if isinstance(self._form, list) else made

    def __repr__(self) -> str:
        def texts(specs: Any) -> str:
            return ", ".join(f"{spec.name}: {text(spec)}" for spec in specs) or "none"

        return f"inputs: {texts(self.inputs.values())}; outputs: {texts(self.outputs)}"
