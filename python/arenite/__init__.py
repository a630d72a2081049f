"""Arenite: neural networks whose memory is planned before they run.

    import arenite

    x = arenite.input("x", (32, 784))
    w = arenite.constant(weights)                 # float32 [784, 10]
    model = arenite.compile((x @ w).relu())
    y = model(x=array)                            # float32 [32, 10]
    model.plan                                    # where every byte lives

Networks are in `arenite.nn`, operators in `arenite.functional`, training in `arenite.Trainer`.
"""

from types import ModuleType as _ModuleType

from . import functional as functional, nn as nn, optim as optim
from ._version import __version__ as __version__
from .blocks import cond as cond, loop as loop
from .entries import entry as entry
from .errors import (
    Error as Error,
    InvalidError as InvalidError,
    InvalidTypeError as InvalidTypeError,
)
from .graph import Update as Update
from .interop import from_dlpack as from_dlpack
from .model import Model as Model, compile as compile, compile_script as compile_script
from .nn import manual_seed as manual_seed
from .plan import Plan as Plan
from .samples import Scaled as Scaled, scaled as scaled
from .script import to_script as to_script
from .options import Options as Options
from .sizes import Size as Size, size as size
from .session import Session as Session, default_session as default_session
from .kept import State as State, TensorSpec as TensorSpec
from .tensor import (
    Parameter as Parameter,
    Tensor as Tensor,
    buffer as buffer,
    constant as constant,
    input as input,
    parameter as parameter,
    state as state,
)
from .progress import Evaluation as Evaluation
from .trainer import Trainer as Trainer
from .updates import grad as grad, train as train

# Of modules only those that are meant to be used as such.
__all__ = ["__version__", "functional", "nn", "optim"]
__all__ += [
    name
    for name, value in globals().items()
    if not name.startswith("_") and not isinstance(value, _ModuleType)
]
