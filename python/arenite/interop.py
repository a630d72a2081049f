"""Arrays in and out: NumPy, DLPack, PyTorch, plain numbers. Copies nothing that can be read where
it lies.
"""

from typing import Any

import numpy as np

from .dtypes import NATIVE, REAL
from .errors import InvalidError, InvalidTypeError


# What is read as the numbers that it holds.
_PLAIN = (np.ndarray, np.memmap, np.matrix, np.recarray)


def _refuse(array: np.ndarray) -> None:
    masked = isinstance(array, np.ma.MaskedArray)
    found = "a masked array" if masked else f"a {type(array).__name__}"
    hint = "array.filled(0)" if masked else "numpy.asarray(array)"
    raise InvalidTypeError(
        f"{found}, which means more than its numbers; expected a plain array (hint: {hint}, if they "
        "are what is meant)"
    )


def as_array(value: Any) -> np.ndarray:
    """A NumPy array with the same bytes: of an array, a PyTorch tensor, whatever speaks DLPack, or
    numbers.

    Of a PyTorch tensor on another device, an array that means more than its numbers, as one with a
    mask, or a value that no array stands for, an error.
    """
    if isinstance(value, np.ndarray):
        if type(value) not in _PLAIN:
            _refuse(value)
        return value
    if isinstance(value, (list, tuple)):
        for item in value:
            if isinstance(item, np.ndarray) and type(item) not in _PLAIN:
                _refuse(item)
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
        if value.device.type != "cpu":
            raise InvalidError(
                f"a PyTorch tensor on {value.device}; expected one on cpu (hint: tensor.cpu())"
            )
        return value.detach().numpy()
    if hasattr(value, "__dlpack__") and not isinstance(value, np.generic):
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError) as error:
            raise InvalidTypeError(
                f"a {type(value).__name__} whose bytes cannot be read by DLPack ({error}); "
                "expected one in the memory of the CPU"
            ) from None
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InvalidError(f"a {type(value).__name__} that is no array: {error}") from None
    if array.dtype == object or array.dtype.kind in "USV":
        raise InvalidTypeError(f"a {type(value).__name__}; expected an array, a tensor or numbers")
    return array


def from_dlpack(value: Any) -> np.ndarray:
    """The array of whatever speaks DLPack, without a copy. The way back is numpy's own:
    `torch.from_dlpack(array)`, for what models return are NumPy arrays."""
    if not hasattr(value, "__dlpack__"):
        raise InvalidTypeError(f"a {type(value).__name__}; expected an object with __dlpack__")
    return as_array(value)


def borrow(value: Any, what: str, dtype: str, shape: tuple) -> np.ndarray:
    """`value` as a dense array of exactly this element type and shape.

    The caller's own bytes, where they lie in row-major order without gaps; else a copy. Plain
    numbers, which have no element type of their own, become the wanted one, and one number alone
    any shape of one element.
    """
    # Most are what they should be, and calls are to cost little.
    if type(value) is np.ndarray and value.dtype == NATIVE[dtype] and value.shape == shape:
        return value if value.flags.c_contiguous else value.copy(order="C")
    plain = isinstance(value, (int, float, list, tuple, range, np.generic))
    array = as_array(value)
    if plain:
        array = as_type(array, dtype, what)
        if array.ndim == 0 and all(size == 1 for size in shape):
            array = array.reshape(shape)
    if array.dtype.name != dtype:
        raise InvalidTypeError(
            f"{array.dtype.name} for {what}; expected {dtype} (hint: .astype({dtype!r}))"
        )
    if array.shape != shape:
        raise InvalidError(
            f"an array of shape {list(array.shape)} for {what}; expected {list(shape)}"
        )
    return np.asarray(array, dtype, order="C")


def as_type(array: np.ndarray, dtype: str, what: str) -> np.ndarray:
    """Plain numbers, which have no type of their own, as the wanted one; a fraction is no integer."""
    if array.size and array.dtype.kind not in ("biuf" if dtype in REAL else "biu"):
        raise InvalidTypeError(f"{array.dtype.name} numbers for {what}; expected {dtype}")
    return exact(array, dtype, what)


def exact(array: np.ndarray, dtype: str, what: str) -> np.ndarray:
    """Plain numbers as the wanted type; an integer that does not fit there is an error."""
    expect_within(array, dtype, what)
    return array.astype(dtype)


def expect_within(array: np.ndarray, dtype: str, what: str) -> None:
    """Numbers that a type of integers has."""
    if np.dtype(dtype).kind in "iu" and array.size > 0 and array.dtype != dtype:
        limits = np.iinfo(dtype)
        for value in (int(array.min()), int(array.max())):
            if not limits.min <= value <= limits.max:
                raise InvalidError(
                    f"{value} for {what}; expected {limits.min} … {limits.max}, as it is {dtype}"
                )
