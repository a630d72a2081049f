"""How models are compiled."""

import ctypes
from typing import Any

from ._library import encode, library
from .session import Handle


class Options:
    """What `compile`, `compile_script` and `Trainer` take by name.

    compute: what matrix products and convolutions of float32 round their factors to, before they
        multiply: "float32", nothing; "bfloat16"; on GPUs "tfloat32". Sums stay float32.
    shards: of the batch, 1 to 64, whose gradients are complete by themselves and are added in a
        fixed tree; "auto": chosen from the graph and the batch. Results depend on it.
    lanes: of a shard, 1 to 64, which run side by side; "auto": chosen likewise, but one in each of
        several shards that are given. Results depend on it.
    at_once: shards under way together, 1 to 64; "auto": enough for all workers, on GPUs all. Fewer
        need less memory, and results are the same.
    """

    def __init__(
        self,
        compute: str = "float32",
        shards: Any = "auto",
        lanes: Any = "auto",
        at_once: Any = "auto",
    ):
        lib = library()
        place = ctypes.c_void_p()
        lib.options_create(ctypes.byref(place))
        self.handle = Handle(self, place.value, lib.options_free, "set of options")
        given = {"compute": compute, "shards": shards, "lanes": lanes, "at-once": at_once}
        for name, value in given.items():
            self.handle.call(lib.options_set, encode(name), encode(str(value)))
