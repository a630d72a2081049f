"""The package's version, which is its library's (CMakeLists.txt)."""

__version__ = "0.2.0"
