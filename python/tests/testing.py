"""What the tests of the Python package share. ARENITE_LIBRARY names the library; ctest sets it.

Without it the release build's is taken, for tests that are run by hand.
"""

import contextlib
import os
import pathlib
import sys
import unittest

SKIPPED = 77  # ctest's SKIP_RETURN_CODE
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("ARENITE_LIBRARY", str(ROOT / "build/release/libarenite.so"))

try:
    import numpy as np
except ImportError:
    print(
        f"SKIPPED: {sys.executable} has no NumPy (scripts/install-deps installs it)",
        file=sys.stderr,
    )
    sys.exit(SKIPPED)

import arenite  # noqa: E402

RANDOM = np.random.default_rng(7)


def floats(*shape, dtype=np.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


def sizes(rank, least=1, most=6):
    return tuple(int(n) for n in RANDOM.integers(least, most + 1, rank))


def run(outputs, **inputs):
    """What tensors are, computed."""
    return arenite.compile(outputs)(**inputs)


class TestCase(unittest.TestCase):
    def assertClose(self, found, expected, tolerance=1e-5):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        self.assertEqual(np.shape(found), np.shape(expected))

    def assertArray(self, found, expected):
        """Of the same bits."""
        self.assertEqual((found.dtype, found.shape), (expected.dtype, expected.shape))
        np.testing.assert_array_equal(found, expected)

    @contextlib.contextmanager
    def assertRefused(self, start, kind=ValueError):
        """An error of this type whose text starts so."""
        with self.assertRaises(kind) as caught:
            yield
        self.assertEqual(str(caught.exception)[: len(start)], start)
        self.assertIsInstance(caught.exception, arenite.Error)

    @contextlib.contextmanager
    def raises(self, kind, message):
        """An error of this type with exactly this text."""
        with self.assertRaises(kind) as caught:
            yield
        self.assertEqual(str(caught.exception), message)
        self.assertIsInstance(caught.exception, arenite.Error)


def main():
    unittest.main()
