"""What this package raises. A message says what was found and what was expected."""


class Error(Exception):
    """Anything that went wrong in the library: no memory left, no workers, no room on a disk."""


class InvalidError(Error, ValueError):
    """A wrong argument: a shape, a name, a script, an index out of range."""


class InvalidTypeError(Error, TypeError):
    """An argument of the wrong type, or an array of the wrong element type."""
