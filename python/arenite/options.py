"""How models are compiled."""

import ctypes
from typing import Any, Iterable, Mapping, Optional, Tuple

from ._library import encode, library
from .errors import InvalidTypeError
from .rules import integer
from .session import Handle


class _Named:
    """Options of the library, by its names."""

    def __init__(self, functions: str, given: Iterable[Tuple[str, Any]]):
        lib = library()
        place = ctypes.c_void_p()
        getattr(lib, f"{functions}options_create")(ctypes.byref(place))
        free = getattr(lib, f"{functions}options_free")
        self.handle = Handle(self, place.value, free, "set of options")
        for name, value in given:
            chosen = encode(name.replace("_", "-")), encode(str(value))
            self.handle.call(getattr(lib, f"{functions}options_set"), *chosen)


class TrainingOptions(_Named):
    """What `Trainer` and its `fit` take by name: `Options` of products and shards, `batch`,
    `accumulate`, `seed`; `epochs`, `shuffle`, `early_stop`.
    """

    def __init__(self, **given: Any):
        super().__init__("trainer_", given.items())


class Options(_Named):
    """What `compile`, `compile_script` and `Trainer` take by name, as the library knows it.

    compute: what matrix products and convolutions of float32 round their factors to, before they
        multiply: "float32", nothing; "bfloat16"; on GPUs "tfloat32". Sums stay float32.
    shards: of the batch, 1 to 64, whose gradients are complete by themselves and are added in a
        fixed tree; "auto": chosen from the graph and the batch. Results depend on it.
    lanes: of a shard, 1 to 64, which run side by side; "auto": chosen likewise, but one in each of
        several shards that are given. Results depend on it.
    at_once: shards under way together, 1 to 64; "auto": enough for all workers, on GPUs all. Fewer
        need less memory, and results are the same.
    Of models alone:
    device: one of the session's; "": all of them. cudnn: "off": on GPUs, other kernels.
    sizes: of those that a script or its inputs leave open, as {"rows": 40}, in all runs. Of others
        each run takes what its arrays have.
    sizes_kept: of how many sizes beside the largest ones programs are kept, 4 unless it is said.
    """

    def __init__(self, sizes: Optional[Mapping[str, int]] = None, **given: Any):
        if not isinstance(sizes or {}, Mapping):
            raise InvalidTypeError(f'sizes {sizes!r}; expected them by name, as {{"rows": 40}}')
        chosen = list(given.items())
        for size, number in (sizes or {}).items():
            chosen.append(("size", f"{size}={int(integer(f'size {size!r}', number))}"))
        super().__init__("", chosen)
