"""`python -m arenite`: versions, devices and workers."""

import importlib
import platform
import sys

from . import __version__
from ._library import library
from .errors import Error
from .session import Session


def _version_of(module: str) -> str:
    try:
        return importlib.import_module(module).__version__
    except ImportError:
        return "not installed"


def main() -> int:
    print(f"arenite    {__version__}")
    try:
        lib = library()
    except Error as error:
        print(f"library    {error}", file=sys.stderr)
        return 1
    print(f"library    {lib.version_text()} ({lib.path})")
    for device in ("cpu", "cuda"):
        try:
            with Session(device) as session:
                print(f"{device:<10} {session.workers} workers")
        except Error as error:
            print(f"{device:<10} none: {error}")
    print(f"Python     {platform.python_version()}")
    print(f"NumPy      {_version_of('numpy')}")
    print(f"PyTorch    {_version_of('torch')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
