"""What this package raises, and warns of. A message says what was found and what was expected."""

import pathlib
import sys
import warnings

_HERE = str(pathlib.Path(__file__).resolve().parent)


class Error(Exception):
    """Anything that went wrong in the library: no memory left, no workers, no room on a disk."""


class InvalidError(Error, ValueError):
    """A wrong argument: a shape, a name, a script, an index out of range."""


class InvalidTypeError(Error, TypeError):
    """An argument of the wrong type, or an array of the wrong element type."""


def warn(text: str) -> None:
    """With the place outside of this package that it comes from, where Python says it once."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)
