"""The library's trainer, which does all the work: steps, epochs, files."""

import ctypes
import weakref
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

import numpy as np

from ._library import Event, Port, ScriptFor, encode, encode_path, library
from .errors import Error, InvalidError, warn
from .interrupts import Held
from .kept import KINDS, State, TensorSpec, spec_of
from .networks import Networks
from .options import TrainingOptions
from .owned import Owned
from .samples import Samples
from .session import Handle, Session

ENDED, PROGRESS, EPOCH = 0, 1, 2
AVERAGED, CURRENT = 0, 1


class Told(NamedTuple):
    """What an event tells."""

    kind: int
    epoch: int
    done: int
    seconds: float
    metrics: Dict[str, float]
    validation: Optional[Dict[str, float]]
    is_best: bool


class _Asking(Handle):
    """Of a trainer, which asks for networks."""

    def __init__(self, owner: Any, pointer: Optional[int], free: Any, networks: Networks):
        super().__init__(owner, pointer, free, "trainer")
        self._networks = weakref.ref(networks)  # whoever frees it knows this, and it knows the owner

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """With the error of a network that could not be built, where that is what was wrong."""
        with Held():
            try:
                return super().call(function, *arguments)
            except Error:
                networks = self._networks()
                if networks is not None:
                    networks.raise_now()
                raise


class Engine:
    """A trainer of one network, whose parameters and buffers are the modules'."""

    def __init__(self, networks: Networks, session: Session, options: TrainingOptions):
        lib = library()
        self._networks = networks
        self._answer = ScriptFor(networks.answer)  # called as long as there is a trainer
        self._local = session.device == "cpu"
        place = ctypes.c_void_p()
        with Held():
            try:
                session.handle.call(
                    lib.trainer_create_sized, self._answer, None, options.handle.get(),
                    ctypes.byref(place),
                )
            except Error:
                networks.raise_now()
                raise
            self.handle = _Asking(self, place.value, lib.trainer_free, networks)
        count = self.handle.call(lib.trainer_metric_count)
        names = [self.handle.call(lib.trainer_metric_name, i) for i in range(count)]
        self.metrics = [name.decode() for name in names]
        self._held: List[Samples] = []  # that the library has borrowed
        self._fitted: List[Samples] = []  # those of epochs
        self.state = State(
            self._states(),
            self.handle,
            lambda: self.owned.refresh(),
            lambda: self.owned.changed(),
            "trainer_",
        )
        script = networks.script
        for name, data in script.data.items():
            self.state.write(name, data.current())
        self.owned = Owned(script.owned, self.state, self)
        # Arrays of the network, which nothing changes.
        self._arrays = {name: one for name, one in script.data.items() if name not in script.owned}
        if self._untrained:
            names_of = ", ".join(self._untrained)
            warn(f"parameters that the loss does not depend on stay as they are: {names_of}")

    def _states(self) -> Dict[str, TensorSpec]:
        lib, port, kind = library(), Port(), ctypes.c_int()
        found = {}
        for index in range(self.handle.call(lib.trainer_state_count)):
            self.handle.call(lib.trainer_state, index, ctypes.byref(port), ctypes.byref(kind))
            spec = spec_of(port, KINDS[kind.value])
            found[spec.name] = spec
        return found

    @property
    def _untrained(self) -> List[str]:
        text = ctypes.c_void_p()
        self.handle.call(library().trainer_untrained, ctypes.byref(text))
        return library().take_text(text).splitlines()

    def _call(self, function: str, *arguments: Any) -> None:
        """What a network that is asked for must not do."""
        if self._networks.is_asked:
            raise InvalidError(
                "a trainer called by the network that it asks for; expected calls behind each other"
            )
        self.handle.call(getattr(library(), function), *arguments)

    def _train(self, function: str, *arguments: Any) -> None:
        """What may have changed values, even if it fails."""
        self.owned.refresh()
        with Held():
            try:
                self._call(function, *arguments)
            finally:
                self.owned.changed()

    def _named(self, numbers: Any) -> Dict[str, float]:
        return {name: numbers[i] for i, name in enumerate(self.metrics)}

    # ---- samples that the library borrows

    def _let_go(self, kept: List[Samples]) -> None:
        for one in self._held:
            if not any(one.is_same(other) for other in kept):
                self._call("trainer_release", *one.given)
        self._held = list(kept)

    def _borrow(self, samples: Samples) -> Samples:
        """The same as before, where those are they."""
        known = next((one for one in self._held if one.is_same(samples)), None)
        if known is None:
            self._held.append(samples)
        return known or samples

    def begin(
        self, samples: Samples, validation: Optional[Samples], options: Mapping[str, Any]
    ) -> None:
        chosen = [one for one in (samples, validation) if one is not None]
        self._let_go([one for one in self._held if any(one.is_same(other) for other in chosen)])
        self._fitted = [self._borrow(one) for one in chosen]
        self.owned.refresh()
        tested = (None, 0) if validation is None else self._fitted[-1].given
        given = TrainingOptions(**options)
        self._call("trainer_begin", *self._fitted[0].given, *tested, given.handle.get())

    def advance(self, seconds: float, steps: int = 0) -> Told:
        event = Event()
        self._train("trainer_advance", steps, seconds, ctypes.byref(event))
        if event.kind == ENDED and not self._local:
            self._fitted = []
            self._let_go([])  # a device has copies, which would not show what changes in arrays
        return Told(
            event.kind,
            event.epoch,
            event.done,
            event.seconds,
            self._named(event.metrics) if event.metrics else {},
            self._named(event.validation) if event.validation else None,
            bool(event.is_best),
        )

    def step(self, samples: Samples) -> Dict[str, float]:
        numbers = (ctypes.c_double * len(self.metrics))()
        self._train("trainer_step", *samples.given, numbers, len(numbers))
        return self._named(numbers)

    def evaluate(self, samples: Samples, averaged: bool) -> Dict[str, float]:
        self._let_go([one for one in self._held if one in self._fitted or one.is_same(samples)])
        samples = self._borrow(samples)
        numbers = (ctypes.c_double * len(self.metrics))()
        self.owned.refresh()
        self._call(
            "trainer_evaluate", *samples.given, AVERAGED if averaged else CURRENT, numbers,
            len(numbers),
        )
        if not self._local:
            self._let_go(self._fitted)
        return self._named(numbers)

    def predict(self, samples: Samples, averaged: bool) -> np.ndarray:
        port = Port()
        self.handle.call(library().trainer_prediction, ctypes.byref(port))
        spec = spec_of(port)
        made = np.empty((samples.count, *spec.shape[1:]), spec.dtype)
        self.owned.refresh()
        self._call(
            "trainer_predict", *samples.given, AVERAGED if averaged else CURRENT,
            made.ctypes.data, made.nbytes,
        )
        return made

    # ---- what it keeps

    def take_over(self, before: "Engine") -> None:
        """Goes on from what another one has trained."""
        before.owned.refresh()
        with before.handle.lock:
            self._train("trainer_take_over", before.handle.get())
        self.state.specs = self._states()
        before._let_go([])
        self._own_arrays()

    def _own_arrays(self) -> List[str]:
        """Keeps its own, whatever else was taken; the names of those that were others."""
        others = []
        for name, data in self._arrays.items():
            if not np.array_equal(self.state[name], data.array, equal_nan=True):
                self.state.write(name, data.array)
                others.append(name)
        return others

    def save(self, path: Any, name: str, text: str) -> None:
        self.owned.refresh()
        self._call("trainer_save_with", encode_path(path), encode(name), encode(text))

    def resume(self, path: Any) -> str:
        """Returns what may change bits."""
        differs = ctypes.c_void_p()
        self._train("trainer_resume", encode_path(path), ctypes.byref(differs))
        self.state.specs = self._states()
        said = library().take_text(differs)
        arrays = [f"another array {name}" for name in self._own_arrays()]
        return ", ".join([said] * bool(said) + arrays)

    def take_weights(self, path: Any) -> None:
        self._train("trainer_take_weights", encode_path(path))
        self._own_arrays()

    def close(self) -> None:
        """Leaves the values with their modules, and frees the rest."""
        self.owned.fetch()
        self.handle.close()

    @property
    def learning_rate(self) -> float:
        rate = ctypes.c_float()
        self._call("trainer_learning_rate", ctypes.byref(rate))
        return rate.value

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        self._call("trainer_set_learning_rate", rate)

    @property
    def steps(self) -> int:
        return self.handle.call(library().trainer_steps)

    @property
    def epochs(self) -> int:
        return self.handle.call(library().trainer_epochs)
