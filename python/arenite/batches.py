"""One network for batches of any number of samples."""

from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

import numpy as np

from .errors import InvalidError
from .model import Model, compile
from .script import Script, script_of
from .sizes import size
from .tensor import Tensor

kept = 4  # models of single sizes; those used last stay


class Graph(NamedTuple):
    """What a model is made of."""

    outputs: Any  # a tensor, or several by name
    inputs: List[Tensor]
    updates: Sequence[Any] = ()
    entries: Mapping[str, Tensor] = MappingProxyType({})


class Batches:
    """Models of a network, for any number of samples up to `most`.

    build: makes the graph for so many, a number or a named size
    options: of `compile`

    There is one model for all sizes, with the memory of the largest, where nothing but the number
    of samples itself differs between them. A network or a loss that computes with it in Python, as
    `1 / len(x)`, has a model of its own for each number.
    """

    def __init__(self, build: Callable[[int], Graph], most: int, **options: Any):
        self._build, self._most, self._options = build, most, options
        self._names = options.get("names") or {}
        self._whole: Optional[Model] = None  # of all sizes
        self._graph: Optional[Graph] = None
        self._known: Dict[int, bool] = {}  # sizes: whether the whole model is theirs
        self._single: Dict[int, Model] = {}  # in the order of their last use

    def is_shared(self, count: int) -> bool:
        """Whether the model that runs this many samples runs others too."""
        if count not in self._known and self._is_of(count):
            self._known[count] = True
        return self._known.get(count, False)

    def model(self, count: int) -> Model:
        """That runs this many samples."""
        if self.is_shared(count):
            assert self._graph is not None
            if self._whole is None:
                self._whole = self._compile(self._graph)
            return self._whole
        model = self._single.pop(count, None) or self._compile(self._build(count))
        self._known[count] = False  # now that nothing is wrong with it
        self._single[count] = model
        if len(self._single) > kept:
            self._single.pop(next(iter(self._single))).close()
        return model

    def _compile(self, graph: Graph) -> Model:
        return compile(
            graph.outputs, graph.inputs, updates=graph.updates, entries=graph.entries, **self._options
        )

    def _is_of(self, count: int) -> bool:
        """Whether the graph for at most `most` samples is, at this size, that for at most so many."""
        try:
            if self._graph is None:
                self._graph = self._build(size("samples", self._most))
            if count == self._most:
                return True
            own = self._script(self._build(size("samples", count)), count)
        except InvalidError:
            return False  # what is wrong with it is said of the graph of a known size
        whole = self._script(self._graph, count)
        return whole.text == own.text and all(
            data is own.data[name] or np.array_equal(data.array, own.data[name].array)
            for name, data in whole.data.items()
        )

    def _script(self, graph: Graph, count: int) -> Script:
        given = graph.outputs
        outputs = list(given.values()) if isinstance(given, dict) else [given]
        outputs += graph.entries.values()
        inputs = [tensor.node for tensor in graph.inputs]
        suggested = {tensor.node: name for tensor, name in self._names.items()}
        return script_of(outputs, inputs, graph.updates, suggested, {"samples": count})
