"""Networks that are trained, as the library asks for them: a script for each number of samples."""

import ctypes
from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

import numpy as np

from ._library import encode
from .errors import InvalidError
from .graph import BUFFER, Update
from .interrupts import heard
from .script import Script, script_of
from .sizes import size
from .tensor import Tensor


class Network(NamedTuple):
    """What is trained, for steps on some number of samples."""

    inputs: List[Tensor]
    step: Update  # arenite.train(…)
    parameters: List[Tensor]  # that it trains
    entries: Mapping[str, List[Tensor]] = MappingProxyType({})  # predictions, and sums of metrics


class Networks:
    """Scripts of a network, for any number of samples up to `most`.

    build: makes the network for so many, a number or a named size
    names: of parameters and buffers that have none of their own

    There is one text for all numbers, where nothing but the number itself differs between them. A
    network or a loss that computes with it in Python, as `1 / len(x)`, has a text of its own for
    each.
    """

    def __init__(
        self, build: Callable[[int], Network], most: int, names: Mapping[Tensor, str]
    ):
        self._build, self._most = build, most
        self._names = {tensor.node: name for tensor, name in names.items()}
        self._open: Optional[Network] = None
        try:
            self._open = build(size("samples", most))
            self.script = self._script(self._open)
        except InvalidError:
            # What is wrong with it is said of the network of a known size.
            self._open, self.script = None, self._script(build(most))
        self._text: Any = None  # that the library reads
        self.is_asked = False  # for a text, right now
        self.error: Optional[BaseException] = None  # of a text that the library has asked for

    def text(self, count: int) -> str:
        if count == self._most:
            return self.script.text
        own = self._script(self._build(count))
        self._expect_same_constants(own, count)
        if self._open is not None and self._script(self._open, count).text == own.text:
            return self.script.text
        return own.text

    def answer(self, _: Any, count: int) -> Optional[int]:
        """The address of that text. Errors wait for `raise_now`: they cannot go through C."""
        self.is_asked = True
        try:
            with heard():
                self._text = ctypes.create_string_buffer(encode(self.text(count)))
        except BaseException as error:
            self.error = error
            return None
        finally:
            self.is_asked = False
        return ctypes.addressof(self._text)

    def raise_now(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error

    def _script(self, network: Network, count: Optional[int] = None) -> Script:
        sizes: Dict[str, int] = {} if count is None else {"samples": count}
        inputs = [tensor.node for tensor in network.inputs]
        return script_of(
            [],
            inputs,
            [network.step],
            self._names,
            sizes,
            network.entries,
            constants=BUFFER,
            trained={tensor.node for tensor in network.parameters},
        )

    def _expect_same_constants(self, own: Script, count: int) -> None:
        """They are kept with the parameters, once."""
        for name, data in own.data.items():
            known = self.script.data.get(name)
            if name in own.owned or known is data:
                continue
            if known is None or not np.array_equal(known.array, data.array, equal_nan=True):
                raise InvalidError(
                    f"an array in the network that is another one for {count} samples than for "
                    f"{self._most}; expected the same for any number (hint: compute it from tensors)"
                )
