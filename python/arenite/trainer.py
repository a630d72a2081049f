"""Training loops: a module, a loss and an optimizer, compiled into models that share one set of
parameters.
"""

import json
import math
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from . import nn
from .batches import Batches, Graph
from .errors import InvalidError, InvalidTypeError
from .graph import INPUT, check_shape
from .habits import refuse_habit
from .interrupts import Interrupts
from .interop import as_array, borrow, exact
from .layers import CrossEntropy
from .model import Model, saved_text
from .options import Options
from .place import PLACE, Place, means, said_of, set_apart
from .plan import Plan
from .progress import Epoch, Evaluation, Progress
from .rules import integer
from .session import Session
from .optim import Average, Group
from .tensor import Tensor, input
from .updates import expect_optimizer, settings_of, train


class Trainer:
    """Trains a module on arrays, in batches.

    module: an nn.Module, or any function from a tensor [N, …] to one, with `named_parameters`
    loss: a function of what the module returns and the targets: a float32 [1], or what
        F.softmax_cross_entropy returns, which tells accuracy too. "cross_entropy" takes logits [N,
        C] and labels [N], integers.
    optimizer: such as arenite.optim.SGD(lr=0.02, momentum=0.9)
    schedule, clip_norm, clip_value, groups, average, check_loss: as `arenite.train` has them
    inputs: the shape of one sample, without the batch, as (28, 28, 1), or an arenite.input with it;
        None: that of the first samples given
    batch: samples a step
    accumulate: so many batches are one step, whose gradients are added up: the bits of one batch
        of all their samples in so many shards, of which only those under way need memory; batch
        norm, whose samples meet, takes the statistics of all and has one shard
    options: compute, shards, lanes, at_once: see `arenite.Options`

    The last batch of an epoch, where the samples do not divide evenly, is a smaller size of the same
    model, within its memory, planned when it first comes. A network or a loss that computes with the
    number of samples in Python, as `1 / len(x)`, has a model of its own for each, and what the
    optimizer keeps is copied from the one that trained before.

    `module.state_dict()` and its parameters' `data` always have the current values, and they may be
    changed between steps. Those whose `trainable` is False stay as they are, and so do those that the
    loss does not depend on. One thread at a time may use a trainer.
    """

    def __init__(
        self,
        module: Any,
        loss: Any = "cross_entropy",
        optimizer: Any = None,
        inputs: Any = None,
        batch: int = 64,
        session: Optional[Session] = None,
        schedule: Any = None,
        clip_norm: Optional[float] = None,
        clip_value: Optional[float] = None,
        groups: Sequence[Group] = (),
        average: Optional[Average] = None,
        check_loss: bool = True,
        accumulate: int = 1,
        **options: Any,
    ):
        for name in options:
            refuse_habit("Trainer", name)
        Options(**options)  # which refuses what there is not
        if not callable(module) or not hasattr(module, "named_parameters"):
            raise InvalidTypeError(f"module {module!r}; expected an arenite.nn.Module")
        expect_optimizer(optimizer)
        if isinstance(loss, str):
            if loss != "cross_entropy":
                raise InvalidError(
                    f"loss {loss!r}; expected 'cross_entropy' or a function of outputs and targets"
                )
            loss = nn.CrossEntropyLoss()
        if not callable(loss) or isinstance(loss, type):
            raise InvalidTypeError(f"loss {loss!r}; expected a function of outputs and targets")
        self.module, self.loss, self.optimizer = module, loss, optimizer
        self._settings = {
            "schedule": schedule,
            "clip_norm": clip_norm,
            "clip_value": clip_value,
            "groups": groups,
            "average": average,
            "check_loss": check_loss,
        }
        settings_of(**self._settings)
        self.batch = integer("batch", batch, least=1)
        if integer("accumulate", accumulate, least=1) > 1:
            given = options.get("shards", 1)
            options["shards"] = accumulate * (1 if given in (None, "auto") else int(given))
            if options["shards"] > 64:
                raise InvalidError(
                    f"gradients of {options['shards']} shards added up; expected at most 64 in all"
                )
        self._most = self.batch * accumulate  # samples of a step
        self._session, self._options = session, options
        self._sample: Optional[Tuple[int, ...]] = None
        self._input_name = "x"
        if isinstance(inputs, Tensor):
            if inputs.node.op != INPUT or inputs.dtype != "float32" or inputs.ndim == 0:
                raise InvalidTypeError(
                    f"inputs {inputs!r}; expected a float32 arenite.input of shape [N, ...]"
                )
            self._sample, self._input_name = inputs.shape[1:], str(inputs.name)
        elif inputs is not None:
            self._sample = check_shape(inputs, "inputs")
        self._target: Optional[Tuple[Tuple[int, ...], str]] = None
        if isinstance(loss, nn.CrossEntropyLoss):
            self._target = ((), "int32")
        self._parameters = dict(module.named_parameters())
        if not self._parameters:
            raise InvalidError(f"module {module!r} without parameters; expected some to train")
        buffers = getattr(module, "named_buffers", None)
        self._buffers: Dict[str, Tensor] = {} if buffers is None else dict(buffers())
        self._classes: Optional[int] = None  # of a cross-entropy's logits
        self._counted = 1  # labels a sample, where the loss counts them
        self._trained: Dict[Tuple[str, ...], Batches] = {}  # by what is frozen
        self._evaluated = self._batches_of(self._evaluation)
        self._predicted = self._batches_of(self._prediction)
        self._newest: Optional[Model] = None  # has the current state
        self._place = Place()

    # ---- models

    def _outputs(self, count: int) -> Tuple[Tensor, Tensor]:
        if self._sample is None:
            raise InvalidError(
                "a trainer that has seen no samples; expected inputs=, the shape of one, or a step "
                "first"
            )
        x = input(self._input_name, (count, *self._sample))
        return x, self.module(x)

    def _prediction(self, count: int) -> Graph:
        x, predicted = self._outputs(count)
        return Graph(predicted, [x])

    def _losses(self, count: int) -> Graph:
        x, predicted = self._outputs(count)
        shape, dtype = self._target or (predicted.shape[1:], "float32")
        y = input("y" if self._input_name != "y" else "target", (count, *shape), dtype)
        found = self.loss(predicted, y)
        outputs = {"loss": found}
        if isinstance(found, CrossEntropy):
            outputs = {"loss": found.loss, "statistics": found.statistics}
            labels = found.statistics.node.operands[1]
            self._counted = math.prod(map(int, labels.shape)) // int(count)
        return Graph(outputs, [x, y], entries={"predict": predicted})

    def _evaluation(self, count: int) -> Graph:
        return self._losses(count)._replace(entries={})

    def _training(self, count: int) -> Graph:
        losses = self._losses(count)
        parameters = [owner for owner in self._parameters.values() if owner.trainable]
        step = train(losses.outputs["loss"], self.optimizer, parameters, **self._settings)
        return losses._replace(updates=[step])

    def _frozen(self) -> Tuple[str, ...]:
        return tuple(name for name, owner in self._parameters.items() if not owner.trainable)

    def _model(self, count: int) -> Model:
        """The model that trains this batch size, with the current state."""
        frozen = self._frozen()
        batches = self._trained.get(frozen) or self._batches_of(self._training)
        model = batches.model(count)
        self._trained[frozen] = batches  # now that nothing is wrong with it
        self._share(model)
        return model

    def _batches_of(self, build: Callable[[int], Graph]) -> Batches:
        owned = (*self._parameters.items(), *self._buffers.items())
        names = {tensor: name for name, tensor in owned}
        return Batches(build, self._most, names=names, session=self._session, **self._options)

    def _share(self, model: Model) -> None:
        """What the optimizer keeps, and what counts, goes on from the newest model."""
        before = self._newest
        if before is not None and before is not model:
            for name, spec in model.state.specs.items():
                if name in model.owned:
                    continue
                if name in before.state:
                    model.state.write(name, before.state[name])
                elif name.endswith(".average") and spec.kind == "optimizer state":
                    # Of what was frozen: its mean is what it is.
                    owner = name[: -len(".average")]
                    if owner in model.state:
                        model.state.write(name, model.state[owner])
        self._newest = model

    def _run(self, batches: Batches, averaged: bool, *arrays: np.ndarray) -> Any:
        """Of the model that trains, where there is one, else of those that only compute."""
        count = len(arrays[0])
        training = self._trained.get(self._frozen())
        if not averaged and training is not None and training.is_shared(count):
            trained = self._model(count)
            return (trained.entries["predict"] if batches is self._predicted else trained)(*arrays)
        model = batches.model(count)
        if not averaged:
            return model(*arrays)
        if self._settings["average"] is None:
            raise InvalidError(
                "means of parameters asked for, where training makes none; expected a trainer with "
                "average=arenite.optim.Average(…)"
            )
        if self._newest is None or not self._newest.optimizer_state("step"):
            return model(*arrays)  # the means are the parameters
        return model.with_means_of(self._newest, *arrays)

    # ---- data

    def _samples(self, x: Any) -> np.ndarray:
        if isinstance(x, tuple) and x and all(np.ndim(one) > 0 for one in x):
            raise InvalidTypeError(
                f"x that is a tuple of {len(x)} arrays; expected one array of samples [N, ...] (hint: "
                "a module of several inputs is trained by arenite.compile and train_step)"
            )
        array = as_array(x)
        if isinstance(x, (list, tuple)):
            array = array.astype(np.float32)
        if array.ndim == 0:
            raise InvalidError("x of shape []; expected samples [N, ...]")
        if self._sample is None:
            self._sample = array.shape[1:]
        if array.shape == self._sample and array.ndim > 0 and array.shape[1:] != self._sample:
            raise InvalidError(
                f"x of shape {list(array.shape)}, which is one sample; expected samples "
                f"{_batch_of(self._sample)} (hint: x[None])"
            )
        return array

    def _targets(self, y: Any, count: int) -> np.ndarray:
        array = as_array(y)
        if array.ndim == 0 or len(array) != count:
            raise InvalidError(
                f"y of shape {list(array.shape)} for {count} samples; expected a target for each"
            )
        if self._target is None:
            self._target = (array.shape[1:], self._target_type(array))
            # What was made before had to guess.
            self._trained, self._evaluated = {}, self._batches_of(self._evaluation)
        dtype = self._target[1]
        if dtype == "float32" and array.dtype.kind in "iu":
            array = array.astype(np.float32)
        if dtype == "int32" and array.dtype != np.int32:
            if array.dtype.kind not in "iu":
                raise InvalidTypeError(f"{array.dtype.name} for y; expected integers")
            array = exact(array, "int32", "y")
        if isinstance(self.loss, nn.CrossEntropyLoss):
            self._check_labels(array)
        return array

    def _target_type(self, array: np.ndarray) -> str:
        """Integers are what they are to a loss that takes such, and numbers to any other."""
        if array.dtype.kind not in "iu":
            return "float32"
        self._target = (array.shape[1:], "int32")
        try:
            self._losses(1)
        except InvalidTypeError:
            return "float32"
        finally:
            self._target = None
        return "int32"

    def _check_labels(self, labels: np.ndarray) -> None:
        """All of them, before a step is made with any."""
        if self._sample is None or labels.ndim != 1:
            return
        if self._classes is None:
            self._classes = self._outputs(1)[1].shape[-1]
        wrong = np.flatnonzero((labels < 0) | (labels >= self._classes))
        if len(wrong):
            raise InvalidError(
                f"label {labels[wrong[0]]} of sample {wrong[0]}; expected 0 to {self._classes - 1}, "
                f"one of {self._classes} classes"
            )

    def _batches(self, count: int, most: int) -> List[Tuple[int, int]]:
        return [(begin, min(begin + most, count)) for begin in range(0, count, most)]

    # ---- what it does

    def step(self, x: Any, y: Any) -> float:
        """One step on at most `batch` samples, times `accumulate`. Returns their mean loss, from before the parameters
        change.
        """
        return self._step(self._samples(x), y)["loss"].item()

    def _step(self, x: np.ndarray, y: Any) -> Dict[str, Any]:
        if not 0 < len(x) <= self._most:
            what = "the batch" if self._most == self.batch else "batches times accumulate"
            raise InvalidError(
                f"a step on {len(x)} samples; expected 1 to {self._most}, {what} (hint: fit takes any "
                "number)"
            )
        y = self._targets(y, len(x))
        return self._model(len(x)).train_step(x, y)

    def evaluate(self, x: Any, y: Any, averaged: bool = False) -> Evaluation:
        """Mean loss and accuracy over any number of samples. Changes nothing.
        averaged: with the means of parameters that `average` keeps.
        """
        x = self._samples(x)
        y = self._targets(y, len(x))
        if len(x) == 0:
            raise InvalidError("an evaluation on 0 samples; expected at least 1")
        sums = np.zeros(3)
        for begin, end in self._batches(len(x), self.batch):
            batch = x[begin:end], y[begin:end]
            sums += self._sums(self._run(self._evaluated, averaged, *batch), end - begin)
        return means(sums)

    def predict(self, x: Any, averaged: bool = False) -> np.ndarray:
        """What the module returns for any number of samples.
        averaged: with the means of parameters that `average` keeps.
        """
        x = self._samples(x)
        if len(x) == 0:
            raise InvalidError("a prediction for 0 samples; expected at least 1")
        parts = [
            self._run(self._predicted, averaged, x[begin:end])
            for begin, end in self._batches(len(x), self.batch)
        ]
        return np.concatenate(parts)

    def fit(
        self,
        x: Any,
        y: Any,
        epochs: int = 1,
        validation: Any = None,
        shuffle: bool = True,
        seed: int = 0,
        progress: Optional[bool] = None,
        **others: Any,
    ) -> List[Epoch]:
        """Goes over all samples `epochs` times, in another order each time, and evaluates
        `validation` after each: (x, y), or a share of the samples, the last ones, which are then not
        trained on.

        Epochs go on counting over several calls, so that two of 5 are one of 10; an epoch that
        Ctrl-C ended is gone on with where a call has as many samples, and their order, again.

        progress: writes to standard error how far it is; None: where that is a terminal.
        Ctrl-C leaves the trainer as the last whole step did.
        """
        for name in others:
            refuse_habit("fit", name)
            raise InvalidTypeError(f"fit: an unknown argument {name!r}")
        x = self._samples(x)
        y = self._targets(y, len(x))
        epochs = integer("epochs", epochs)
        x, y, validation = set_apart(x, y, validation)
        if len(x) == 0 or epochs < 1:
            raise InvalidError(
                f"{epochs} epochs of {len(x)} samples; expected at least one of both"
            )
        # Before the first epoch, not after it, says what is wrong with the data.
        borrow(x[:1], "x", "float32", (1, *(self._sample or ())))
        line = Progress(epochs, len(x), sys.stderr.isatty() if progress is None else progress)
        place, history = self._place, []
        place.begin(len(x), self._most, integer("seed", seed, least=0) if shuffle else None)
        with Interrupts() as interrupts:
            for epoch in range(epochs):
                began = time.perf_counter()
                order = place.order()
                for begin, end in self._batches(len(x), self._most):
                    if begin < place.done:
                        continue
                    chosen = slice(begin, end) if order is None else order[begin:end]
                    place.sums += self._sums(self._step(x[chosen], y[chosen]), end - begin)
                    place.done = end
                    interrupts.raise_now()
                    line.show(epoch, end, place.sums[0] / place.sums[2])
                found = means(place.sums)
                place.next()
                checked = None if validation is None else self.evaluate(*validation)
                interrupts.raise_now()
                history.append(Epoch(*found, checked, time.perf_counter() - began))
                line.end(epoch, history[-1])
        return history

    @property
    def epochs(self) -> int:
        """How many `fit` has gone over, in all its calls and those of a run that was loaded."""
        return self._place.epochs

    @property
    def learning_rate(self) -> float:
        """What steps are scaled by, at least 0. Between steps it may be changed."""
        return self.optimizer.lr if self._newest is None else self._newest.learning_rate

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        self._model(self._most).learning_rate = rate

    @property
    def plan(self) -> Plan:
        """Of a step on a whole batch."""
        return self._model(self._most).plan

    def save(self, path: Any) -> None:
        """Parameters, the optimizer's state, buffers, and how far `fit` is, in one file."""
        model = self._model(self._most)
        model.save_with(path, PLACE, json.dumps({
            **self._place.said(), "sample": self._sample, "target": self._target
        }))

    def load(self, path: Any) -> None:
        """What `save` wrote, for the same module and optimizer: `fit` goes on where it was, and
        ends in the bits of a run that was never interrupted.
        """
        text = saved_text(path, PLACE)
        said = {} if text is None else said_of(path, text)
        before = self._sample, self._target, dict(self._trained), self._newest
        self._sample = before[0] or said.get("sample")
        self._target = before[1] or said.get("target")
        try:
            self._model(self._most).load(path)
        except BaseException:
            self._sample, self._target, self._trained, self._newest = before
            raise
        self._place = Place.of(said)

    def _sums(self, found: Dict[str, np.ndarray], count: int) -> Any:
        """Of a batch's samples: their losses, how many are classified correctly, and of how many:
        what the loss counts itself.
        """
        if "statistics" in found:
            return np.array([*found["statistics"], count * self._counted])
        return np.array([found["loss"].item() * count, np.nan, count])


def _batch_of(sample: Tuple[int, ...]) -> str:
    return f"[{', '.join(['N', *map(str, sample)])}]"
