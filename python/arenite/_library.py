"""The C library, through ctypes: its functions, declared when first used, and its errors as
exceptions.
"""

import ctypes
import functools
import os
import pathlib
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int64,
    c_size_t,
    c_void_p,
)
from typing import Any, Callable, Dict, List

from .errors import Error, InvalidError

FILE_NAME = "libarenite.so"
VARIABLE = "ARENITE_LIBRARY"
INVALID = 1  # ARENITE_INVALID
MAX_RANK = 8


class SessionOptions(Structure):
    _fields_ = [("device", c_char_p), ("workers", c_int)]


class NamedData(Structure):  # arenite_tensor
    _fields_ = [("name", c_char_p), ("data", c_void_p), ("bytes", c_int64)]


class Port(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("type", c_int),
        ("rank", c_int),
        ("shape", c_int64 * MAX_RANK),
        ("bytes", c_int64),
    ]


class NamedSize(Structure):  # arenite_size
    _fields_ = [("name", c_char_p), ("value", c_int64)]


class Column(Structure):  # arenite_column
    _fields_ = [
        ("input", c_char_p),
        ("data", c_void_p),
        ("type", c_int),
        ("rank", c_int),
        ("shape", POINTER(c_int64)),
        ("scale", c_double),
    ]


class Event(Structure):  # arenite_event
    _fields_ = [
        ("kind", c_int),
        ("epoch", c_int),
        ("epochs", c_int),
        ("done", c_int64),
        ("total", c_int64),
        ("seconds", c_double),
        ("metrics", POINTER(c_double)),
        ("validation", POINTER(c_double)),
        ("is_best", c_int),
    ]


ScriptFor = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_int64)  # arenite_script_for


class Memory(Structure):
    _fields_ = [
        ("bytes", c_int64),
        ("arena_bytes", c_int64),
        ("lower_bound", c_int64),
        ("separate", c_int64),
        ("optimal", c_int),
    ]


_NAMED, _OUTPUTS = [POINTER(NamedData), c_size_t], [POINTER(c_void_p), c_size_t]
_ANY_PLACE = POINTER(c_void_p)
_PORTS = [POINTER(Port), c_size_t]
_SIZES = [POINTER(NamedSize), c_size_t]
_COLUMNS = [POINTER(Column), c_size_t]
_NUMBERS = [POINTER(c_double), c_size_t]

# Functions that return something else than a status: what they return, what they take.
_PLAIN: Dict[str, Any] = {
    "version": (c_char_p, []),
    "formulas": (c_char_p, []),
    "free": (None, [c_void_p]),
    "session_destroy": (None, [c_void_p]),
    "session_workers": (c_int, [c_void_p]),
    "options_free": (None, [c_void_p]),
    "model_free": (None, [c_void_p]),
    "model_input_count": (c_size_t, [c_void_p]),
    "model_output_count": (c_size_t, [c_void_p]),
    "model_state_count": (c_size_t, [c_void_p]),
    "model_is_trainable": (c_int, [c_void_p]),
    "trainer_options_free": (None, [c_void_p]),
    "trainer_free": (None, [c_void_p]),
    "trainer_state_count": (c_size_t, [c_void_p]),
    "trainer_metric_count": (c_size_t, [c_void_p]),
    "trainer_metric_name": (c_char_p, [c_void_p, c_size_t]),
    "trainer_steps": (c_int64, [c_void_p]),
    "trainer_epochs": (c_int, [c_void_p]),
}

# Functions that return a status: what they take before the place of their message.
_CHECKED: Dict[str, List[Any]] = {
    "session_create": [POINTER(SessionOptions), _ANY_PLACE],
    "model_learning_rate": [c_void_p, POINTER(c_float)],
    "model_set_learning_rate": [c_void_p, c_float],
    "model_untrained": [c_void_p, _ANY_PLACE],
    "options_create": [_ANY_PLACE],
    "options_set": [c_void_p, c_char_p, c_char_p],
    "model_create": [c_void_p, c_char_p, *_NAMED, c_void_p, _ANY_PLACE],
    "infer": [c_char_p, *_PORTS, *_PORTS, POINTER(c_size_t)],
    "model_input": [c_void_p, c_size_t, POINTER(Port)],
    "model_output": [c_void_p, c_size_t, POINTER(Port)],
    "model_output_at": [c_void_p, c_char_p, c_size_t, *_SIZES, POINTER(Port)],
    "model_run": [c_void_p, c_char_p, *_SIZES, *_NAMED, *_OUTPUTS],
    "model_prepare": [c_void_p, *_SIZES],
    "model_programs": [c_void_p, _ANY_PLACE],
    "model_memory": [c_void_p, POINTER(Memory)],
    "model_plan": [c_void_p, _ANY_PLACE],
    "model_picture": [c_void_p, _ANY_PLACE],
    "model_state": [c_void_p, c_size_t, POINTER(Port), POINTER(c_int)],
    "model_get_state": [c_void_p, c_char_p, c_void_p, c_int64],
    "model_set_state": [c_void_p, c_char_p, c_void_p, c_int64],
    "model_save": [c_void_p, c_char_p],
    "model_load": [c_void_p, c_char_p],
    "saved_text": [c_char_p, c_char_p, POINTER(c_void_p)],
    "trainer_options_create": [_ANY_PLACE],
    "trainer_options_set": [c_void_p, c_char_p, c_char_p],
    "trainer_create_sized": [c_void_p, ScriptFor, c_void_p, c_void_p, _ANY_PLACE],
    "trainer_prediction": [c_void_p, POINTER(Port)],
    "trainer_begin": [c_void_p, *_COLUMNS, *_COLUMNS, c_void_p],
    "trainer_advance": [c_void_p, c_int64, c_double, POINTER(Event)],
    "trainer_step": [c_void_p, *_COLUMNS, *_NUMBERS],
    "trainer_evaluate": [c_void_p, *_COLUMNS, c_int, *_NUMBERS],
    "trainer_predict": [c_void_p, *_COLUMNS, c_int, c_void_p, c_int64],
    "trainer_release": [c_void_p, *_COLUMNS],
    "trainer_state": [c_void_p, c_size_t, POINTER(Port), POINTER(c_int)],
    "trainer_get_state": [c_void_p, c_char_p, c_void_p, c_int64],
    "trainer_set_state": [c_void_p, c_char_p, c_void_p, c_int64],
    "trainer_learning_rate": [c_void_p, POINTER(c_float)],
    "trainer_set_learning_rate": [c_void_p, c_float],
    "trainer_save_with": [c_void_p, c_char_p, c_char_p, c_char_p],
    "trainer_resume": [c_void_p, c_char_p, _ANY_PLACE],
    "trainer_take_weights": [c_void_p, c_char_p],
    "trainer_take_over": [c_void_p, c_void_p],
    "trainer_untrained": [c_void_p, _ANY_PLACE],
    "trainer_memory": [c_void_p, POINTER(Memory)],
    "trainer_plan": [c_void_p, _ANY_PLACE],
    "trainer_picture": [c_void_p, _ANY_PLACE],
}


class Library:
    """The functions of arenite.h and trainer.h as attributes, without their prefix: `lib.model_run(…)`.

    Those that return a status take no message: they raise `InvalidError` or `Error` with its text.
    A function that the library does not have is an error when it is asked for, not before.
    """

    def __init__(self, path: pathlib.Path):
        self.path = path
        try:
            self._dll = ctypes.CDLL(str(path))
        except OSError as error:
            raise Error(f"cannot load {path}: {error}") from None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _PLAIN and name not in _CHECKED:
            raise AttributeError(name)
        try:
            function = getattr(self._dll, "arenite_" + name)
        except AttributeError:
            raise Error(
                f"{self.path} of version {self.version_text()} has no arenite_{name}; "
                "expected the library that this package was made with"
            ) from None
        if name in _PLAIN:
            function.restype, function.argtypes = _PLAIN[name]
            made = function
        else:
            function.restype, function.argtypes = c_int, [*_CHECKED[name], POINTER(c_void_p)]
            made = self._checked(function)
        setattr(self, name, made)
        return made

    def _checked(self, function: Callable[..., int]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            message = c_void_p()
            status = function(*arguments, ctypes.byref(message))
            if status:
                text = self.take_text(message) if message else "no memory left"
                raise (InvalidError if status == INVALID else Error)(text)

        return call

    def take_text(self, text: c_void_p) -> str:
        """A text that the library handed over, which is freed."""
        try:
            return ctypes.string_at(text).decode("utf-8", "replace")
        finally:
            self.free(text)

    def version_text(self) -> str:
        return self.version().decode()


@functools.lru_cache(maxsize=None)
def library() -> Library:
    """The library beside this package, else the one that the variable ARENITE_LIBRARY names."""
    candidates = [pathlib.Path(__file__).resolve().parent / FILE_NAME]
    if os.environ.get(VARIABLE):
        candidates.append(pathlib.Path(os.environ[VARIABLE]))
    for path in candidates:
        if path.is_file():
            return Library(path)
    looked = "".join(f"\n  {path}" for path in candidates)
    variable = "" if os.environ.get(VARIABLE) else f"\n  ${VARIABLE}, which is not set"
    raise Error(
        f"{FILE_NAME} was not found; looked for{looked}{variable}\n"
        "expected an installed package (pip install ./python), or the path of a built library in "
        f"{VARIABLE}"
    )


def encode(text: str) -> bytes:
    """For the library, whose texts end at a character 0."""
    return _whole(text.encode("utf-8", "surrogateescape"), text)


def encode_path(path: Any) -> bytes:
    return _whole(os.fsencode(path), path)


def _whole(encoded: bytes, text: Any) -> bytes:
    if b"\0" in encoded:
        raise InvalidError(f"{text!r}; expected a text without a character 0")
    return encoded
