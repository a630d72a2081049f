"""Models: graphs compiled once and run many times, on arrays."""

import ctypes
import json
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from . import graph
from ._library import NamedData, Port, encode, encode_path, library
from .entries import EntryOf
from .errors import InvalidError, InvalidTypeError, warn
from .graph import Data, Node, Update
from .interop import as_array, borrow
from .options import Options
from .owned import Owned
from .plan import Plan
from .ports import Ports, named_sizes
from .rules import integer, is_number
from .script import declared_data, script_of
from .session import Handle, Session, default_session
from .sizes import Size, size
from .kept import KINDS, State, TensorSpec, spec_of
from .tensor import Tensor

class Program(NamedTuple):
    """What a model has built."""

    entry: str  # "train", "accumulate", "evaluate", "averaged", or one of the model's own
    sizes: Dict[str, int]
    arena_bytes: int  # of a step; all share the memory of the largest
    fit: str  # how they do: by its "own plan", the "cut of the largest", or in "grown blocks"
    milliseconds: float  # that it took to build
    runs: int


class Entry:
    """A way to run a model, with outputs of its own: `entry(image=array)` or `entry(array)`, as the
    model itself is called.

    inputs, outputs: what goes in, which is what the outputs need, and comes out
    """

    def __init__(self, model: "Model", name: str, ports: Ports):
        self._model, self._name, self._ports = model, name, ports
        self.inputs, self.outputs = ports.inputs, ports.outputs

    def __call__(self, /, *arrays: Any, **inputs: Any) -> Any:
        self._model._owned.refresh()
        made = self._ports.run(self._name, self._ports.assigned(arrays, inputs))
        return self._ports.formed(made)

    def __repr__(self) -> str:
        return f"Entry({self._name!r}, {self._ports!r})"


class Model:
    """A graph, compiled: `model(image=array)` or `model(array)` runs it.

    inputs, outputs: what goes in and comes out, `TensorSpec`s by name
    sizes: that runs decide, by name: arrays of any number of rows up to that of `rows<=64`. What is
        planned for the largest holds all; a program of a smaller one is built when it first comes,
        or by `prepare`
    script: the text that was compiled
    plan: where every byte lives
    state: what it keeps from run to run, by name
    entries: other ways to run it, by name

    Threads may share a model: its runs wait for each other. Those of other models go on meanwhile.
    """

    def __init__(
        self,
        script: str,
        constants: Mapping[str, np.ndarray],
        session: Session,
        form: Any = None,
        options: Optional[Mapping[str, Any]] = None,
        owned: Optional[Mapping[str, Data]] = None,
        changes: bool = False,
        forms: Optional[Mapping[str, Any]] = None,
    ):
        lib = library()
        chosen = Options(**(options or {}))
        items = [(encode(name), a.ctypes.data, a.nbytes) for name, a in constants.items()]
        named: Any = NamedData * len(items)
        place = ctypes.c_void_p()
        given = (
            encode(script),
            named(*items),
            len(items),
            chosen.handle.get(),
            ctypes.byref(place),
        )
        session.handle.call(lib.model_create, *given)
        self.handle = Handle(self, place.value, lib.model_free, "model")
        self.script = script
        said = self._said()
        self.sizes: Dict[str, Size] = {n: size(n, bound) for n, bound in said["sizes"].items()}
        specs = [s._replace(shape=self._shape(s, said["inputs"])) for s in self._specs("input")]
        ports = {
            one["name"]: Ports(
                self.handle,
                one["name"],
                [spec for spec in specs if spec.name in one["inputs"]],
                one["outputs"],
                self.sizes,
                # How results are returned: None for a single one, "list", or names.
                (forms or {}).get(one["name"], form),
            )
            for one in said["entries"]
            if one["name"] not in ("train", "accumulate", "averaged")
        }
        self._ports = ports.pop("evaluate")
        self.inputs, self.outputs = self._ports.inputs, self._ports.outputs
        self.entries = {name: Entry(self, name, its) for name, its in ports.items()}
        kept = {spec.name: spec for spec in self._specs("state")}
        self._state = State(kept, self.handle, lambda: self._owned.refresh(), self._changed)
        self._owned = Owned(owned or {}, self._state, self)  # what it was compiled from
        self._changes = changes  # in a plain run
        self._trains = self.trainable
        self.untrained = self._untrained()
        if self.untrained:
            names = ", ".join(self.untrained)
            warn(f"parameters that the loss does not depend on stay as they are: {names}")

    def _specs(self, what: str) -> List[TensorSpec]:
        """Of each "input", "output" or "state"."""
        lib, port, kind, specs = library(), Port(), ctypes.c_int(), []
        places = [ctypes.byref(port), ctypes.byref(kind)][: 2 if what == "state" else 1]
        for index in range(self.handle.call(getattr(lib, f"model_{what}_count"))):
            self.handle.call(getattr(lib, f"model_{what}"), index, *places)
            specs.append(spec_of(port, KINDS[kind.value] if what == "state" else ""))
        return specs

    # ---- sizes

    def _said(self) -> Dict[str, Any]:
        place = ctypes.c_void_p()
        self.handle.call(library().model_programs, ctypes.byref(place))
        said: Dict[str, Any] = json.loads(library().take_text(place))
        return said

    def _shape(self, spec: TensorSpec, names: Mapping[str, List[str]]) -> Tuple[int, ...]:
        own = names.get(spec.name, [""] * len(spec.shape))
        return tuple(self.sizes[name] if name else n for name, n in zip(own, spec.shape))

    def prepare(self, **sizes: int) -> None:
        """Builds ahead what runs at these sizes; those not given are at their bounds."""
        given = named_sizes({name: integer(f"size {name!r}", n) for name, n in sizes.items()})
        self.handle.call(library().model_prepare, given, len(given))

    @property
    def programs(self) -> List[Program]:
        """What is built by now, the largest first."""
        return [Program(**one) for one in self._said()["programs"]]

    # ---- running

    def __call__(self, /, *arrays: Any, **inputs: Any) -> Any:
        """Runs once. Inputs in their order, or by name; an array, a PyTorch tensor, what speaks
        DLPack, or numbers.

        Dense arrays are read where they lie. Returns new arrays: one, a list, or a dict, as it was
        compiled.
        """
        return self._called("evaluate", arrays, inputs)

    def run(
        self, inputs: Mapping[str, Any], out: Optional[Sequence[np.ndarray]] = None
    ) -> List[np.ndarray]:
        """As a call, with the results always as a list: written into `out`, arrays of the outputs'
        shapes, if given.
        """
        return self._run("evaluate", inputs, out)

    def train_step(self, /, *arrays: Any, **inputs: Any) -> Any:
        """One step of training. Returns what a call does, from before the parameters change."""
        made = self._called("train", arrays, inputs)
        self._changed()
        return made

    def accumulate(self, /, *arrays: Any, **inputs: Any) -> Any:
        """A step without its update: the gradients wait, and the next `train_step` takes the mean of
        all, with its own. For what `train(…, accumulate=4)` trains, of up to so many batches.
        """
        made = self._called("accumulate", arrays, inputs)
        self._changed()
        return made

    def averaged(self, /, *arrays: Any, **inputs: Any) -> Any:
        """As a call, with the means of parameters that `train(…, average=…)` keeps, in their place.
        Before a first step those are the parameters.
        """
        return self._called("averaged", arrays, inputs)

    @property
    def trainable(self) -> bool:
        """Whether it was compiled with `arenite.train(…)` among its updates."""
        return bool(self.handle.call(library().model_is_trainable))

    @property
    def learning_rate(self) -> float:
        """What steps are scaled by, at least 0. Between steps it may be changed."""
        rate = ctypes.c_float()
        self.handle.call(library().model_learning_rate, ctypes.byref(rate))
        return rate.value

    @learning_rate.setter
    def learning_rate(self, rate: Any) -> None:
        if not is_number(rate):
            raise InvalidTypeError(f"a learning rate {rate!r}; expected a number")
        self.handle.call(library().model_set_learning_rate, float(rate))

    def _untrained(self) -> Tuple[str, ...]:
        text = ctypes.c_void_p()
        self.handle.call(library().model_untrained, ctypes.byref(text))
        return tuple(library().take_text(text).splitlines())

    def _changed(self) -> None:
        """The values that modules own are this model's now, whoever asks, where it trains them."""
        if self._changes or self._trains:
            self._owned.changed()

    def _called(self, entry: str, arrays: Sequence[Any], inputs: Dict[str, Any]) -> Any:
        assigned = self._ports.assigned(arrays, inputs)
        return self._ports.formed(self._run(entry, assigned, None))

    def _run(
        self,
        entry: str,
        inputs: Mapping[str, Any],
        out: Optional[Sequence[np.ndarray]],
    ) -> List[np.ndarray]:
        self._owned.refresh()
        made = self._ports.run(entry, inputs, out)
        if self._changes:
            self._changed()
        return made

    # ---- what it is and keeps

    @property
    def plan(self) -> Plan:
        return Plan(self)

    @property
    def state(self) -> State:
        self._owned.refresh()
        return self._state

    @state.setter
    def state(self, values: Mapping[str, Any]) -> None:
        self.state.update(values)

    def save(self, path: Any) -> None:
        """Writes all of `state` into one file, which is replaced as a whole."""
        self._owned.refresh()
        self.handle.call(library().model_save, encode_path(path))

    def load(self, path: Any) -> None:
        """Reads what `save` wrote. A damaged file, or another model's, is an error, and changes
        nothing.
        """
        self.handle.call(library().model_load, encode_path(path))
        self._changed()

    def close(self) -> None:
        """Frees it now, not when the last reference goes."""
        self._owned.fetch()
        self.handle.close()

    def __repr__(self) -> str:
        return f"Model({self._ports!r})"


def saved_text(path: Any, name: str) -> Optional[str]:
    """What a file says under a name; None where it says nothing so."""
    text = ctypes.c_void_p()
    library().saved_text(encode_path(path), encode(name), ctypes.byref(text))
    return library().take_text(text) if text else None


def _check_session(session: Any) -> Session:
    if session is None:
        return default_session()
    if not isinstance(session, Session):
        raise InvalidTypeError(f"session {session!r}; expected an arenite.Session")
    return session


def _check_inputs(inputs: Any) -> List[Node]:
    tensors = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    for tensor in tensors:
        if not isinstance(tensor, Tensor) or tensor.node.op != graph.INPUT:
            raise InvalidTypeError(f"{tensor!r} among the inputs; expected what arenite.input made")
    return list(dict.fromkeys(tensor.node for tensor in tensors))


def _outputs(outputs: Any) -> Tuple[Any, List[Tensor]]:
    """How they are returned, and what they are."""
    form: Any = None
    if isinstance(outputs, Mapping):
        form, tensors = list(outputs), list(outputs.values())
        if not all(isinstance(name, str) for name in form):
            raise InvalidTypeError(f"outputs named {form}; expected texts")
    elif isinstance(outputs, (list, tuple)):
        form, tensors = "list", list(outputs)
    else:
        tensors = [outputs]
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise InvalidTypeError(f"{tensor!r} among the outputs; expected Tensors")
    return form, tensors


def compile(
    outputs: Any,
    inputs: Optional[Sequence[Tensor]] = None,
    *,
    updates: Sequence[Any] = (),
    session: Optional[Session] = None,
    names: Optional[Mapping[Tensor, str]] = None,
    entries: Optional[Mapping[str, Any]] = None,
    **options: Any,
) -> Model:
    """Plans the memory of what computes the outputs and makes it ready to run.

    Parameters, and buffers that modules own, have one value for all models: a run takes what was
    trained or assigned meanwhile, and leaves what it changes itself.

    outputs: a Tensor, a list of them, or a dict of names: so the model returns arrays.
    inputs: their order, for calls without names; all that the outputs need. Without it, the order
        in which they were made.
    updates: what else a run does: `functional.assign(…)`, a buffer's `replace(…)` that no output
        needs, `train(…)`.
    names: for parameters and buffers that have no name of their own; else they are named and
        counted.
    entries: other outputs, by name, for runs of only what these need: `entries={"predict": y}` is
        `model.entries["predict"](x)`. `entry(y, mode="train")` says more of one.
    options: compute, shards, lanes, at_once, sizes: see `Options`.
    """
    form, tensors = _outputs(outputs)
    forms, others, settings = {}, {}, {}
    for name, its in (entries or {}).items():
        if not isinstance(name, str):
            raise InvalidTypeError(f"an entry named {name!r}; expected a text")
        if isinstance(its, EntryOf):
            settings[name], its = its.settings, its.outputs
        forms[name], others[name] = _outputs(its)
    updates = list(updates) if isinstance(updates, (list, tuple)) else [updates]
    for update in updates:
        if not isinstance(update, (Tensor, Update)):
            raise InvalidTypeError(
                f"{update!r} among the updates; expected what functional.assign and its like return"
            )
    given = None if inputs is None else _check_inputs(inputs)
    suggested = {tensor.node: name for tensor, name in (names or {}).items()}
    script = script_of(tensors, given or (), updates, suggested, entries=others, settings=settings)
    if given is not None and len(script.inputs) > len(given):
        missing = [name for name in script.inputs if name not in {node.name for node in given}]
        raise InvalidError(
            f"outputs that need the inputs {', '.join(missing)}; expected all of them in `inputs`"
        )
    data = {name: holder.current() for name, holder in script.data.items()}
    by_hand = any(update.node.is_update for update in updates)
    return Model(
        script.text, data, _check_session(session), form, options, script.owned, by_hand, forms
    )


def compile_script(
    text: str,
    constants: Optional[Mapping[str, Any]] = None,
    session: Optional[Session] = None,
    **options: Any,
) -> Model:
    """Compiles a script (docs/scripts.md). constants: the values of its ConstantTensors, by name;
    arrays are copied. options: compute, shards, lanes, at_once, sizes: see `Options`.

    Returns one array for one result, else a list.
    """
    if not isinstance(text, str):
        raise InvalidTypeError(f"a script that is a {type(text).__name__}; expected a text")
    if "\0" in text:
        raise InvalidError("a script with a character 0; expected none")
    declared = declared_data(text)
    arrays = {}
    for name, value in (constants or {}).items():
        # What the script does not declare in plain words is left to the library to check.
        if name in declared:
            arrays[name] = borrow(value, f"constant {name!r}", *declared[name])
        else:
            arrays[name] = np.ascontiguousarray(as_array(value))
    return Model(text, arrays, _check_session(session), "one or list", options)
