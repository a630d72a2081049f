#!/usr/bin/env python3
"""Arrays of others, in and out: DLPack with NumPy, and PyTorch where it is installed."""

import importlib.util
import sys
import unittest

import testing
from testing import floats, np

import arenite
from arenite.interop import as_array, borrow

HAS_TORCH = importlib.util.find_spec("torch") is not None


class Exporter:
    """Speaks DLPack and nothing else."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **arguments):
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class DLPack(testing.TestCase):
    def test_round_trip_without_a_copy(self):
        a = floats(3, 4)
        again = arenite.from_dlpack(Exporter(a))
        self.assertTrue(np.shares_memory(a, again))
        np.testing.assert_array_equal(a, again)
        model = arenite.compile(arenite.input("x", (3, 4)) + 1)
        found = model(Exporter(a))
        np.testing.assert_array_equal(found, a + 1)
        self.assertTrue(np.shares_memory(np.from_dlpack(found), found))

    def test_what_does_not_speak_it(self):
        with self.raises(arenite.InvalidTypeError, "a list; expected an object with __dlpack__"):
            arenite.from_dlpack([1.0])

        class Elsewhere(Exporter):
            def __dlpack_device__(self):
                return 2, 0  # CUDA

            def __dlpack__(self, **_):
                raise BufferError("it is on a GPU")

        with self.assertRaisesRegex(
            arenite.InvalidTypeError, "an? Elsewhere whose bytes cannot be read by DLPack"
        ):
            as_array(Elsewhere(floats(1)))

    def test_its_types_are_checked_too(self):
        with self.assertRaisesRegex(
            arenite.InvalidTypeError, "float64 for input 'x'; expected float32"
        ):
            arenite.compile(arenite.input("x", 2))(Exporter(np.zeros(2)))


class Borrowed(testing.TestCase):
    def test_what_is_dense_is_not_copied(self):
        a = floats(2, 3)
        self.assertIs(borrow(a, "a", "float32", (2, 3)), a)
        self.assertTrue(np.shares_memory(borrow(memoryview(a), "a", "float32", (2, 3)), a))

    def test_numbers_become_what_is_wanted(self):
        self.assertEqual(borrow(3, "n", "int64", (1,)).tolist(), [3])
        self.assertEqual(borrow(np.int32(3), "n", "int64", (1,)).tolist(), [3])
        self.assertEqual(borrow(np.float64(0.5), "n", "float32", ()).tolist(), 0.5)
        self.assertEqual(borrow([[1, 2]], "n", "float32", (1, 2)).dtype, np.float32)
        self.assertEqual(borrow([], "n", "int32", (0,)).dtype, np.int32)
        with self.raises(arenite.InvalidError, "an array of shape [] for n; expected [2]"):
            borrow(3, "n", "int64", (2,))
        with self.raises(arenite.InvalidError, "an array of shape [3] for n; expected [2]"):
            borrow([1, 2, 3], "n", "int64", (2,))
        with self.assertRaisesRegex(arenite.InvalidError, "^a list that is no array: "):
            borrow([[1], [1, 2]], "n", "int64", (2,))


@unittest.skipUnless(HAS_TORCH, "PyTorch is not installed: its tensors are not tried")
class PyTorch(testing.TestCase):
    def test_tensors_go_in_without_a_copy_and_come_out(self):
        import torch

        t = torch.randn(3, 4, requires_grad=True)
        self.assertEqual(as_array(t).ctypes.data, t.data_ptr())
        model = arenite.compile(arenite.input("x", (3, 4)).relu())
        found = torch.from_dlpack(model(t))
        self.assertTrue(torch.equal(found, t.detach().relu()))
        self.assertEqual(arenite.input("y", (1,), torch.int64).dtype, "int64")
        with self.assertRaisesRegex(
            arenite.InvalidTypeError, "float64 for input 'x'; expected float32"
        ):
            model(t.double())

    def test_layers_begin_and_compute_as_its_own(self):
        import torch

        x, w, b = floats(2, 9, 8, 3), floats(3, 2, 3, 5), floats(5)
        image = arenite.input("x", x.shape)
        found = arenite.compile(arenite.functional.conv2d(image, w, b, stride=(2, 1), padding=1))(x)
        expected = torch.nn.functional.conv2d(
            torch.tensor(x).permute(0, 3, 1, 2),
            torch.tensor(w).permute(3, 2, 0, 1),
            torch.tensor(b),
            stride=(2, 1),
            padding=1,
        ).permute(0, 2, 3, 1)
        self.assertClose(found, expected.numpy(), 1e-4)
        theirs, ours = torch.nn.Linear(100, 400), arenite.nn.Linear(100, 400)
        for mine, other in ((ours.weight, theirs.weight), (ours.bias, theirs.bias)):
            self.assertAlmostEqual(
                float(np.abs(mine.data).max()), float(other.abs().max()), places=2
            )


class WithoutPyTorch(testing.TestCase):
    def test_it_is_never_imported_by_the_package(self):
        if HAS_TORCH:
            self.skipTest("PyTorch was imported by the tests above")
        self.assertNotIn("torch", sys.modules)


if __name__ == "__main__":
    testing.main()
