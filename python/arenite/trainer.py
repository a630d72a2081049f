"""Training loops: a module, a loss and an optimizer, as the library trains them."""

import json
import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from .engine import ENDED, EPOCH, Engine
from .errors import InvalidError, InvalidTypeError, warn
from .habits import refuse_habit
from .interrupts import Interrupts
from .kept import State
from .model import saved_text
from .objective import Objective
from .optim import Average, Group
from .options import TrainingOptions
from .plan import Plan
from .progress import Epoch, Evaluation, Progress, is_watched
from .rules import integer, is_number
from .samples import Samples, Side
from .session import Session, default_session
from .tensor import Tensor

_SAID = "trainer"  # what a file says of one
_MOST_ENGINES = 4  # those that were used last
_PAUSE = 0.1  # seconds between two looks at the keyboard


class Trainer:
    """Trains a module on arrays, in batches.

    module: an nn.Module, or any function from tensors [N, …] to one, with `named_parameters`
    loss: a function of what the module returns and the targets: a float32 [1], or what
        F.softmax_cross_entropy returns, which tells accuracy too. "cross_entropy" takes logits [N,
        C] and labels [N], integers.
    optimizer: such as arenite.optim.SGD(lr=0.02, momentum=0.9)
    schedule, clip_norm, clip_value, groups, average, check_loss: as `arenite.train` has them
    inputs: the shape of one sample, without the batch, as (28, 28, 1), or an arenite.input of any
        type; of a module of several inputs a list of these, or a dict by its arguments' names.
        None: as the first samples given
    batch: samples a step
    accumulate: so many batches are one step, whose gradients are added up: the bits of one batch
        of all their samples in so many shards, of which only those under way need memory; batch
        norm, whose samples meet, takes the statistics of all and has one shard
    metrics: functions like `loss`, by name, each a mean over the batch, float32 [1]
    options: compute, shards, lanes, at_once: see `arenite.Options`

    Samples and targets are one array each, tuples of several, or dicts of them by name, which the
    module, and the loss behind the predictions, are called with. Arrays are read where they lie;
    bytes, integers and doubles become what the network takes, behind the step before;
    `arenite.scaled(images, 1 / 255)` are bytes times so much.

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
        metrics: Optional[Mapping[str, Callable[..., Tensor]]] = None,
        **options: Any,
    ):
        for name in options:
            refuse_habit("Trainer", name)
            if name in ("early_stop", "shuffle", "epochs"):
                raise InvalidTypeError(f"Trainer: no argument {name!r} (hint: trainer.fit(…, {name}=…))")
        self._options = TrainingOptions(
            batch=integer("batch", batch, least=1),
            accumulate=integer("accumulate", accumulate, least=1),
            **options,
        )
        self.batch = int(batch)
        self._most = self.batch * int(accumulate)  # samples of a step
        settings = {
            "schedule": schedule,
            "clip_norm": clip_norm,
            "clip_value": clip_value,
            "groups": groups,
            "average": average,
            "check_loss": check_loss,
        }
        self._objective = Objective(
            module, loss, optimizer, inputs, {} if metrics is None else metrics, settings, self._most
        )
        self._averages = average is not None
        self._session = session
        self._engines: Dict[Tuple[str, ...], Engine] = {}  # by what they train
        self._built_for: Any = None  # which sides of the objective they are of
        self._newest: Optional[Engine] = None  # has the current state
        self._fitting = self._closed = False

    @property
    def module(self) -> Any:
        return self._objective.module

    @property
    def loss(self) -> Any:
        return self._objective.loss

    @property
    def optimizer(self) -> Any:
        return self._objective.optimizer

    def close(self) -> None:
        """Frees its memory now, not when Python's collector comes. The module keeps what was trained."""
        if self._fitting:
            raise InvalidError("a trainer closed in the middle of a fit; expected calls between them")
        self._closed = True
        for engine in self._engines.values():
            engine.close()
        self._engines = {}

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise InvalidTypeError(
            "a trainer to be copied or pickled; expected its module (hint: another trainer of "
            "copy.deepcopy(trainer.module); trainer.save(path) keeps all of it)"
        )

    def __enter__(self) -> "Trainer":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _engine(self, trained: Optional[Tuple[str, ...]] = None) -> Engine:
        """The library's trainer of these parameters, or of those that are trainable now, with the
        current state. While one fits it is that: what is frozen meanwhile counts from the next call
        on.
        """
        if self._closed:
            raise InvalidError("a trainer that was closed; expected an open one")
        if self._fitting:
            assert self._newest is not None
            return self._newest
        if self._built_for != self._objective.sides:
            self._engines = {}
        chosen = self._objective.trainable if trained is None else trained
        engine = self._engines.get(chosen)
        if engine is None:
            session = self._session or default_session()
            engine = Engine(self._objective.networks(chosen), session, self._options)
        if self._newest is not None and engine is not self._newest:
            engine.take_over(self._newest)
        self._built_for = self._objective.sides
        self._engines.pop(chosen, None)
        self._engines[chosen] = self._newest = engine
        if len(self._engines) > _MOST_ENGINES:
            self._engines.pop(next(iter(self._engines)))
        return engine

    def _any_engine(self) -> Engine:
        """To compute with, whatever is frozen meanwhile."""
        newest = self._newest
        if newest is not None and self._built_for == self._objective.sides and not self._closed:
            return newest
        return self._engine(self._objective.trainable or tuple(self._objective.parameters))

    def _planned(self) -> Engine:
        """Of a step, before there was any."""
        with self._objective.trying():
            self._objective.guess_targets()
            return self._any_engine()

    def _weighed(self, weights: Any, validation: Any = None) -> None:
        """Weights of samples change the network: in a fit it is too late for the first ones."""
        if weights is None and isinstance(validation, (tuple, list)) and len(validation) == 3:
            weights = validation[2]
        if weights is None:
            return
        if self._fitting and not self._objective.weighted:
            raise InvalidError(
                "first weights of samples in the middle of a fit; expected some from its begin on"
            )
        self._objective.weigh()

    def _split(self, samples: Samples, validation: Any) -> Tuple[Samples, Optional[Samples]]:
        """What is trained on, and what is evaluated."""
        if validation is None:
            return samples, None
        if is_number(validation):
            if not 0 < validation < 1:
                raise InvalidError(
                    f"validation {validation}; expected a share above 0 and below 1"
                )
            kept = samples.count - max(1, round(samples.count * float(validation)))
            return samples.between(0, kept), samples.between(kept, samples.count)
        if not (isinstance(validation, (tuple, list)) and len(validation) in (2, 3)):
            raise InvalidTypeError(
                "validation that is no pair; expected (x, y), or (x, y, sample_weight), or a share of "
                "the samples, as 0.1"
            )
        return samples, self._objective.labelled(*validation)

    # ---- what it does

    def step(self, x: Any, y: Any, sample_weight: Any = None) -> float:
        """One step on at most `batch` samples, times `accumulate`. Returns their mean loss, from
        before the parameters change.
        """
        with self._objective.trying():
            self._weighed(sample_weight)
            samples = self._objective.labelled(x, y, sample_weight)
            if not 0 < samples.count <= self._most:
                what = "the batch" if self._most == self.batch else "batches times accumulate"
                raise InvalidError(
                    f"a step on {samples.count} samples; expected 1 to {self._most}, {what} (hint: "
                    "fit takes any number)"
                )
            return self._engine().step(samples)["loss"]

    def evaluate(
        self, x: Any, y: Any, averaged: bool = False, sample_weight: Any = None
    ) -> Evaluation:
        """Mean loss, accuracy and metrics over any number of samples. Changes nothing.
        averaged: with the means of parameters that `average` keeps.
        sample_weight: as in `fit`; the first ones make the network another one, that takes weights.
        """
        with self._objective.trying():
            self._weighed(sample_weight)
            samples = self._objective.labelled(x, y, sample_weight)
            if samples.count == 0:
                raise InvalidError("an evaluation on 0 samples; expected at least 1")
            self._expect_means(averaged)
            return _evaluation(self._any_engine().evaluate(samples, averaged))

    def predict(self, x: Any, averaged: bool = False) -> np.ndarray:
        """What the module returns for any number of samples.
        averaged: with the means of parameters that `average` keeps.
        """
        with self._objective.trying():
            samples = Samples(self._objective.samples(x))
            if samples.count == 0:
                raise InvalidError("a prediction for 0 samples; expected at least 1")
            self._expect_means(averaged)
            return self._any_engine().predict(samples, averaged)

    def _expect_means(self, averaged: bool) -> None:
        if averaged and not self._averages:
            raise InvalidError(
                "means of parameters asked for, where training makes none; expected a trainer with "
                "average=arenite.optim.Average(…)"
            )

    def fit(
        self,
        x: Any,
        y: Any,
        epochs: int = 1,
        validation: Any = None,
        shuffle: bool = True,
        seed: int = 0,
        progress: Optional[bool] = None,
        early_stop: int = 0,
        save_best: Any = None,
        on_epoch: Optional[Callable[[Epoch], Any]] = None,
        sample_weight: Any = None,
        **others: Any,
    ) -> List[Epoch]:
        """Goes over all samples `epochs` times, in another order each time, and evaluates
        `validation` after each: (x, y), or a share of the samples, the last ones, which are then not
        trained on. It is evaluated with the means of parameters where `average` keeps some.

        Epochs go on counting over several calls, so that two of 5 are one of 10; an epoch that
        Ctrl-C ended is gone on with where a call has the same arrays, and their order, again.

        progress: shows on standard error how far it is, by tqdm where that is installed; None: in
            terminals and notebooks.
        early_stop: ends behind so many epochs in a row whose validation was no better; 0: never.
        save_best: a file, written behind each epoch whose validation is the best so far.
        sample_weight: what each sample's loss is multiplied by, for a loss that takes it as
            nn.CrossEntropyLoss() and nn.MSELoss() do; from the first ones on those that are given
            none have ones. `validation` may have some too: (x, y, sample_weight).
        on_epoch: is called behind each epoch, and may change the learning rate and parameters,
            evaluate, predict and save; what it raises ends the call.
        Ctrl-C leaves the trainer as the last whole step did.
        """
        for name in others:
            refuse_habit("fit", name)
            raise InvalidTypeError(f"fit: an unknown argument {name!r}")
        if self._fitting:
            raise InvalidError("a fit within another one; expected one behind the other")
        if on_epoch is not None and not callable(on_epoch):
            raise InvalidTypeError(f"on_epoch {on_epoch!r}; expected a function of an epoch")
        if save_best is not None:
            os.fspath(save_best)
        epochs = integer("epochs", epochs)
        options = {
            "epochs": epochs,
            "shuffle": "on" if shuffle else "off",
            "seed": integer("seed", seed, least=0),
            "early_stop": integer("early_stop", early_stop, least=0),
        }
        with self._objective.trying():
            self._weighed(sample_weight, validation)
            samples, tested = self._split(
                self._objective.labelled(x, y, sample_weight), validation
            )
            if samples.count == 0 or epochs < 1:
                raise InvalidError(
                    f"{epochs} epochs of {samples.count} samples; expected at least one of both"
                )
            if tested is None and (early_stop or save_best is not None):
                what = "early_stop" if early_stop else "save_best"
                raise InvalidError(f"{what} without a validation; expected validation=(x, y), or 0.1")
            engine = self._engine()
            engine.begin(samples, tested, options)
        wanted = is_watched() if progress is None else bool(progress)
        line = Progress(epochs, samples.count, wanted)
        history: List[Epoch] = []
        self._fitting = True
        try:
            with Interrupts() as interrupts:
                while self._go_on(engine, history, line, save_best, on_epoch):
                    interrupts.raise_now()
                interrupts.raise_now()
            return history
        finally:
            self._fitting = False
            line.close()

    def _go_on(
        self, engine: Engine, history: List[Epoch], line: Progress, save_best: Any, on_epoch: Any
    ) -> bool:
        """Until something is to be told; False: it is over."""
        told = engine.advance(_PAUSE)
        if told.kind == EPOCH:
            checked = None if told.validation is None else _evaluation(told.validation)
            history.append(Epoch(*_evaluation(told.metrics), checked, told.seconds))
            line.end(told.epoch, history[-1])
            if told.is_best and save_best is not None:
                self.save(save_best)
            if on_epoch is not None:
                on_epoch(history[-1])
        elif told.kind != ENDED:
            line.show(told.epoch, told.done, told.metrics["loss"])
        return told.kind != ENDED

    @property
    def epochs(self) -> int:
        """How many `fit` has gone over, in all its calls and those of a run that was loaded."""
        return 0 if self._newest is None else self._newest.epochs

    @property
    def learning_rate(self) -> float:
        """What steps are scaled by, at least 0. Between steps it may be changed."""
        if self._newest is None:
            return self.optimizer.lr
        return self._newest.learning_rate

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        if not is_number(rate):
            raise InvalidTypeError(f"a learning rate {rate!r}; expected a number")
        self._planned().learning_rate = float(rate)

    @property
    def steps(self) -> int:
        """How many there were, of a run that was loaded as well."""
        return 0 if self._newest is None else self._newest.steps

    @property
    def state(self) -> State:
        """All that training keeps, by name: parameters, what the optimizer keeps, buffers."""
        engine = self._planned()
        engine.owned.refresh()
        return engine.state

    @property
    def plan(self) -> Plan:
        """Of a step on a whole batch."""
        return Plan(self._planned(), "trainer_")

    def save(self, path: Any) -> None:
        """Parameters, the optimizer's state, buffers, and how far `fit` is, in one file, which is
        replaced as a whole. `arenite show` says what it has, and `arenite predict` and `arenite
        evaluate` take it.
        """
        inputs, targets, weighted = self._objective.sides
        said = {"inputs": inputs.said(), "targets": targets.said(), "weighted": weighted}
        self._planned().save(path, _SAID, json.dumps(said))

    def load(self, path: Any) -> None:
        """What `save` wrote, for the same module and optimizer: `fit` goes on where it was, with the
        same data, and ends in the bits of a run that was never interrupted.
        """
        differs = self._take(path, Engine.resume)
        if differs:
            warn(f"{path}: {differs}; steps may have other bits than the run that was saved")

    def load_weights(self, path: Any) -> None:
        """Parameters and buffers alone of what `save` wrote, for a run of its own, before its first
        step.
        """
        self._take(path, Engine.take_weights)

    def _take(self, path: Any, take: Callable[[Engine, Any], Any]) -> Any:
        if self._fitting:
            raise InvalidError(f"{path}: loaded in the middle of a fit; expected calls between them")
        before = dict(self._engines), self._newest, self._built_for
        try:
            with self._objective.trying():
                self._objective.hear(*_sides_in(path))
                self._objective.guess_targets()
                return take(self._engine(), path)
        except BaseException:
            self._engines, self._newest, self._built_for = before
            raise


def _sides_in(path: Any) -> Tuple[Side, Side, bool]:
    """What a file says of samples."""
    text = saved_text(path, _SAID)
    if text is None:
        return Side("x"), Side("y"), False
    try:
        said = json.loads(text)
        inputs, targets = Side.of("x", said["inputs"]), Side.of("y", said["targets"])
        return inputs, targets, said.get("weighted", False) is True
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        raise InvalidError(
            f"{path}: what it says of a trainer, {text[:80]!r}; expected what Trainer.save writes"
        ) from None


def _evaluation(numbers: Dict[str, float]) -> Evaluation:
    others = {name: n for name, n in numbers.items() if name not in ("loss", "accuracy")}
    return Evaluation(numbers["loss"], numbers.get("accuracy"), others)
