"""What is trained: a module, its loss and metrics, and what their samples are like."""

import contextlib
import inspect
import itertools
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

import numpy as np

from . import functional as F, nn
from .errors import InvalidError, InvalidTypeError
from .losses import CrossEntropy, WeightedCrossEntropy, divisors
from .networks import Network, Networks
from .samples import WEIGHTS, Rows, Samples, Side, Spec, weights_of
from .tensor import Parameter, Tensor, input
from .updates import expect_loss, expect_optimizer, settings_of, train


class Objective:
    """Builds networks that train, and reads samples for them.

    The first samples say what others are like, where nobody has said before; what targets are like
    is guessed as long as there were none.
    """

    def __init__(
        self,
        module: Any,
        loss: Any,
        optimizer: Any,
        inputs: Any,
        metrics: Mapping[str, Callable[..., Tensor]],
        settings: Mapping[str, Any],
        most: int,
    ):
        self._most = most
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
        _check_metrics(metrics)
        self.module, self.loss, self.optimizer, self.metrics = module, loss, optimizer, metrics
        self._settings = dict(settings)
        settings_of(**self._settings)
        self.inputs, self.targets = Side.of_inputs(inputs), Side("y")
        self.weighted = False  # the loss is given weights of samples
        self._ones: Dict[int, np.ndarray] = {}  # the last ones, by their number
        self._guessed = False  # what targets are like
        self._classes: Optional[int] = None  # of a cross-entropy's logits
        if isinstance(loss, nn.CrossEntropyLoss):
            self.targets = self._one_target(Spec((), "int32"))
        self.parameters: Dict[str, Parameter] = dict(module.named_parameters())
        if not self.parameters:
            raise InvalidError(f"module {module!r} without parameters; expected some to train")
        buffers = getattr(module, "named_buffers", None)
        self._buffers: Dict[str, Tensor] = {} if buffers is None else dict(buffers())

    @property
    def trainable(self) -> Tuple[str, ...]:
        return tuple(name for name, owner in self.parameters.items() if owner.trainable)

    # ---- networks

    def networks(self, trained: Iterable[str]) -> Networks:
        """That train these parameters. Where nobody knows what targets are like, they predict."""
        owned = (*self.parameters.items(), *self._buffers.items())
        names: Dict[Tensor, str] = {tensor: name for name, tensor in owned}
        parameters: List[Tensor] = [self.parameters[name] for name in trained]

        def build(count: int) -> Network:
            inputs, loss, entries = self._computed(count)
            step = train(loss, self.optimizer, parameters, **self._settings)
            return Network(inputs, step, parameters, entries)

        return Networks(build, self._most, names)

    def _predicted(self, count: int) -> Tuple[Dict[str, Tensor], Any]:
        if not self.inputs.known:
            raise InvalidError(
                "a trainer that has seen no samples; expected inputs=, the shape of one, or a step "
                "first"
            )
        given = self.inputs.tensors(count)
        return given, self.inputs.call(self.module, (), given)

    def _computed(self, count: int) -> Tuple[List[Tensor], Tensor, Dict[str, List[Tensor]]]:
        """Inputs and targets, their loss, and what is to be told of them."""
        inputs, predicted = self._predicted(count)
        entries: Dict[str, List[Tensor]] = {}
        if isinstance(predicted, Tensor) and predicted.ndim and predicted.shape[0] == count:
            entries["predict"] = [predicted]
        if not self.targets.known:
            if "predict" not in entries:
                raise InvalidError(
                    f"a module that returns {predicted!r}; expected one Tensor [N, ...] to predict"
                )
            nothing = F.map("float32($1) * 0", predicted).sum()  # in place of a loss
            return list(inputs.values()), nothing, entries
        targets = self.targets.tensors(count)
        weights = {WEIGHTS: input(WEIGHTS, (count,))} if self.weighted else {}
        both = [name for name in (*targets, *weights) if name in inputs]
        if both:
            raise InvalidError(f"inputs and targets named {both[0]!r}; expected names of their own")
        loss = self.targets.call(self.loss, (predicted,), targets, **weights)
        if isinstance(loss, (CrossEntropy, WeightedCrossEntropy)):
            over = divisors(loss, count)
            for i, name in enumerate(("loss", "accuracy")):
                entries[name] = [loss.statistics[i : i + 1], *over[i : i + 1]]
            loss = loss.loss
        for name, function in self.metrics.items():
            mean = self.targets.call(function, (predicted,), targets)
            entries[name] = [_sum(f"metric {name!r}", mean, count)]
        if isinstance(loss, Tensor) and loss.shape == ():
            loss = loss.reshape((1,))
        return [*inputs.values(), *targets.values(), *weights.values()], loss, entries

    # ---- samples

    def samples(self, x: Any) -> Dict[str, Rows]:
        rows = self.inputs.rows(x)
        if not self.inputs.known:
            self.inputs = self._seen(
                "x", x, rows, lambda side: side.call(self.module, (), side.tensors(self._most))
            )
            self.targets = self._named(self.targets)
        return rows

    def labelled(self, x: Any, y: Any, weights: Any = None) -> Samples:
        """weights: of the samples, which all have some once there is to `weigh`."""
        inputs = self.samples(x)
        if self._guessed or not self.targets.known:
            first = Side("y").rows(y)
            self.targets = self._named(self._seen("y", y, first, self._takes_targets))
            self._guessed = False
        targets = self.targets.rows(y)
        if isinstance(self.loss, nn.CrossEntropyLoss):
            self._check_labels(next(iter(targets.values())).array)
        arrays = {**inputs, **targets}
        if self.weighted:
            arrays[WEIGHTS] = self._weights(weights, len(next(iter(inputs.values())).array))
        return Samples(arrays)

    def _weights(self, given: Any, count: int) -> Rows:
        """Ones where nobody gives others: the same each time, as whoever goes on with a fit gives."""
        if given is not None:
            return weights_of(given, count)
        if count not in self._ones:
            self._ones = {count: np.ones(count, np.float32)}
        return Rows(self._ones[count])

    def weigh(self) -> None:
        """From here on the loss is given weights of samples."""
        if self.weighted:
            return
        if WEIGHTS in self.inputs.specs or WEIGHTS in self.targets.specs:
            raise InvalidError(
                f"weights beside an input or a target named {WEIGHTS!r}; expected another name of it"
            )
        function = getattr(self.loss, "forward", self.loss)
        taken: Any = {}
        with contextlib.suppress(TypeError, ValueError):  # of what has no signature
            taken = inspect.signature(function).parameters
        if taken and WEIGHTS not in taken and all(one.kind != one.VAR_KEYWORD for one in taken.values()):
            raise InvalidTypeError(
                f"{WEIGHTS} for a loss that takes none; expected loss(outputs, targets, "
                f"{WEIGHTS}), as arenite.nn.CrossEntropyLoss() and MSELoss() are"
            )
        self.weighted = True

    def _one_target(self, spec: Spec) -> Side:
        side = Side("y")
        side.form = "one"
        side.specs = {"y" if "y" not in self.inputs.specs else "target": spec}
        return side

    def _named(self, targets: Side) -> Side:
        """A single one by a name that no input has."""
        if targets.form != "one":
            return targets
        return self._one_target(next(iter(targets.specs.values())))

    def guess_targets(self) -> None:
        """As what is predicted, or labels, whichever the loss takes: of those who ask for a step
        before there are some.
        """
        if self.targets.known:
            return
        _, predicted = self._predicted(self._most)
        shape = predicted.shape[1:] if isinstance(predicted, Tensor) else ()
        first: Optional[Exception] = None
        for spec in Spec(shape, "float32"), Spec((), "int32"), Spec(shape, "int32"):
            self.targets = self._one_target(spec)
            try:
                expect_loss("train", self._computed(self._most)[1])
                self._guessed = True
                return
            except Exception as error:
                first = first or error
                self.targets = Side("y")
        assert first is not None
        raise first

    def _seen(
        self, what: str, given: Any, rows: Dict[str, Rows], takes: Callable[[Side], Any]
    ) -> Side:
        """Of samples that are the first ones. Integers are what they are where that is taken, of 32
        bits if it may be, and numbers where it is not.
        """
        side = Side(what)
        side.form = side.form_of(given)
        side.specs = {name: Spec(one.array.shape[1:], "float32") for name, one in rows.items()}
        whole = {
            name: ("int32", *(("int64",) if one.array.dtype.itemsize == 8 else ()), "float32")
            for name, one in rows.items()
            if one.array.dtype.kind in "iu" and one.scale == 1
        }
        if not whole or len(whole) > 4:  # of so many somebody has to say it
            return side
        for dtypes in itertools.product(*whole.values()):
            for name, dtype in zip(whole, dtypes):
                side.specs[name] = side.specs[name]._replace(dtype=dtype)
            try:
                takes(side)
                return side
            except (InvalidError, InvalidTypeError):
                pass
        # What is wrong with all is said of the first.
        for name in whole:
            side.specs[name] = side.specs[name]._replace(dtype="int32")
        return side

    def _takes_targets(self, side: Side) -> None:
        before, self.targets = self.targets, self._named(side)
        try:
            expect_loss("train", self._computed(self._most)[1])
        finally:
            self.targets = before

    def _check_labels(self, labels: np.ndarray) -> None:
        """All of them, before a step is made with any."""
        if labels.ndim != 1 or not len(labels):
            return
        if self._classes is None:
            predicted = self._predicted(self._most)[1]
            if not isinstance(predicted, Tensor) or predicted.ndim != 2:
                return  # which the loss says
            self._classes = predicted.shape[1]
        classes = self._classes
        outside = (labels < 0) | (labels >= classes)
        ignored = getattr(self.loss, "ignore_index", None)
        wrong = np.flatnonzero(outside if ignored is None else outside & (labels != ignored))
        if len(wrong):
            raise InvalidError(
                f"label {labels[wrong[0]]} of sample {wrong[0]}; expected 0 to {classes - 1}, "
                f"one of {classes} classes"
            )

    # ---- what is known of them

    @contextlib.contextmanager
    def trying(self) -> Iterator[None]:
        """What is learned of samples within is forgotten where something goes wrong."""
        before = self.inputs, self.targets, self._guessed, self.weighted
        try:
            yield
        except BaseException:
            self.inputs, self.targets, self._guessed, self.weighted = before
            raise

    def hear(self, inputs: Side, targets: Side, weighted: bool) -> None:
        """What a file knows of samples, where nobody has seen some."""
        if weighted:
            self.weigh()
        if not self.inputs.known:
            self.inputs = inputs
        if targets.known and (not self.targets.known or self._guessed):
            self.targets, self._guessed = targets, False

    @property
    def sides(self) -> Tuple[Side, Side, bool]:
        """What networks depend on besides the module."""
        return self.inputs, self.targets, self.weighted


def _check_metrics(metrics: Any) -> None:
    if not isinstance(metrics, Mapping):
        raise InvalidTypeError(f"metrics {metrics!r}; expected functions by name, {{'mae': …}}")
    for name, function in metrics.items():
        if not isinstance(name, str) or not callable(function):
            raise InvalidTypeError(f"metric {name!r}: {function!r}; expected a name and a function")
        if name in ("loss", "accuracy", "predict", "predict_current"):
            raise InvalidError(f"a metric named {name!r}; expected another name")


def _sum(what: str, mean: Any, count: int) -> Tensor:
    """Over the batch, of its mean."""
    if not isinstance(mean, Tensor) or mean.dtype != "float32" or mean.shape not in ((), (1,)):
        raise InvalidTypeError(f"{what} that is {mean!r}; expected a Tensor float32 [1], a mean")
    samples = F.full((1,), count, "float64")
    return F.map("yield float64($1) * $2", mean.reshape((1,)), samples)
