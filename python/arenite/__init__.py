"""Arenite: neural networks whose memory is planned before they run.

    import arenite

    x = arenite.input("x", (32, 784))
    w = arenite.constant(weights)                 # float32 [784, 10]
    model = arenite.compile((x @ w).relu())
    y = model(x=array)                            # float32 [32, 10]
    model.plan                                    # where every byte lives

Networks are in `arenite.nn`, operators in `arenite.functional`, training in `arenite.Trainer`.
"""

from . import functional, nn, optim
from ._version import __version__
from .blocks import cond, loop
from .errors import Error, InvalidError, InvalidTypeError
from .graph import Update
from .interop import from_dlpack
from .model import Model, compile, compile_script
from .nn import manual_seed
from .plan import Plan
from .script import to_script
from .session import Session, default_session
from .kept import State, TensorSpec
from .tensor import Parameter, Tensor, buffer, constant, input, parameter, state
from .trainer import Evaluation, Trainer
from .updates import grad, train

__all__ = [
    "Error",
    "Evaluation",
    "InvalidError",
    "InvalidTypeError",
    "Model",
    "Parameter",
    "Plan",
    "Session",
    "State",
    "Tensor",
    "TensorSpec",
    "Trainer",
    "Update",
    "__version__",
    "buffer",
    "compile",
    "compile_script",
    "cond",
    "constant",
    "default_session",
    "from_dlpack",
    "functional",
    "grad",
    "input",
    "loop",
    "manual_seed",
    "nn",
    "optim",
    "parameter",
    "state",
    "to_script",
    "train",
]
