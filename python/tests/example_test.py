#!/usr/bin/env python3
"""The examples in Python: fashion_mnist.py on files of its own, images whose class is the bright row."""

import gzip
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import testing
from testing import np

EXAMPLE = testing.ROOT / "examples/fashion_mnist.py"


def idx(array):
    sizes = b"".join(int(size).to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


class FashionMnist(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        random = np.random.default_rng(0)
        for stem, count in (("train", 320), ("t10k", 70)):
            labels = random.integers(0, 10, count).astype(np.uint8)
            images = random.integers(0, 60, (count, 28, 28)).astype(np.uint8)
            images[np.arange(count), 2 * labels + 4] = 255
            self.write(f"{stem}-images-idx3-ubyte", idx(images))
            self.write(f"{stem}-labels-idx1-ubyte.gz", gzip.compress(idx(labels)))

    def write(self, name, data):
        (pathlib.Path(self.folder.name) / name).write_bytes(data)

    def run_it(self, *arguments):
        return subprocess.run(
            [sys.executable, EXAMPLE, self.folder.name, *arguments],
            env={**os.environ, "PYTHONPATH": str(testing.ROOT / "python")},
            capture_output=True,
            text=True,
        )

    def test_it_learns(self):
        done = self.run_it("--epochs", "6")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("optimal, proved", done.stdout)
        self.assertGreater(float(done.stdout.rpartition("test accuracy: ")[2]), 0.9)

    def test_it_says_what_is_wrong_with_a_file(self):
        whole = (pathlib.Path(self.folder.name) / "train-images-idx3-ubyte").read_bytes()
        for damaged in (b"", whole[:3], whole[:20], whole[:-1], b"x" + whole):
            self.write("train-images-idx3-ubyte", damaged)
            done = self.run_it()
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{len(damaged)} bytes that are no IDX file of uint8", done.stderr)
        self.write("train-images-idx3-ubyte", whole)
        self.write("t10k-labels-idx1-ubyte.gz", b"no gzip")
        done = self.run_it()
        self.assertEqual(done.returncode, 1)
        self.assertIn("expected an IDX file", done.stderr)


class Objectives(unittest.TestCase):
    def test_they_are_learned(self):
        done = subprocess.run(
            [sys.executable, testing.ROOT / "examples/objectives.py"],
            env={**os.environ, "PYTHONPATH": str(testing.ROOT / "python")},
            capture_output=True,
            text=True,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertEqual(len(done.stdout.splitlines()), 4)


if __name__ == "__main__":
    unittest.main()
