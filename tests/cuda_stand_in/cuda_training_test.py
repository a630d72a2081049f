#!/usr/bin/env python3
"""A CUDA build's `arenite train` on CUDA's stand-in, where kernels run as the PTX that nvcc made of them says.
Usage: cuda_training_test.py BUILD STAND_IN"""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from in_folder import InFolder  # noqa: E402

BUILD, STAND_IN = (pathlib.Path(argument).absolute() for argument in (sys.argv.pop(1), sys.argv.pop(1)))


class Training(InFolder):
    def train(self, *options, **environment):
        """Losses and accuracies of the epoch, and the weights' hash."""
        done = subprocess.run([str(BUILD / "arenite"), "train", "--dataset", "synthetic", "--epochs", "1", *options],
                              capture_output=True, text=True, cwd=self.folder, env=os.environ | environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        epoch = re.search(r"loss ([\d.]+) +train accuracy ([\d.]+) % +test accuracy ([\d.]+) %", done.stdout)
        return [float(value) for value in epoch.groups()], re.search(r"sha256: (\w+)", done.stdout)[1]

    def on_gpu(self, *options, **environment):
        return self.train("--device", "cuda", *options, LD_PRELOAD=str(STAND_IN), CUDA_STAND_IN_PTX="1", **environment)

    def test_a_gpu_trains_as_the_cpu_does(self):
        for model, samples in (("cnn1", "128"), ("cnn2", "64")):
            with self.subTest(model=model):
                options = "--model", model, "--limit", samples, "--batch", "32"
                (loss, train, test), _ = self.on_gpu(*options)
                (cpu_loss, cpu_train, cpu_test), _ = self.train(*options)
                self.assertAlmostEqual(loss, cpu_loss, delta=1e-3)
                self.assertAlmostEqual(train, cpu_train, delta=1)
                self.assertAlmostEqual(test, cpu_test, delta=1)

    def test_a_run_repeats_to_the_bit(self):
        options = "--model", "cnn1", "--limit", "90", "--batch", "32"
        _, first = self.on_gpu(*options)
        for others in (), ("--cuda-graphs", "off"), ("--resident-data", "off"):
            with self.subTest(options=others):
                _, again = self.on_gpu(*options, *others)
                self.assertEqual(again, first)

    def test_what_kernels_do_is_counted(self):
        counts = self.folder / "counts.json"
        self.on_gpu("--model", "cnn1", "--limit", "64", CUDA_STAND_IN_COUNTS=str(counts))
        kernels = json.loads(counts.read_text())
        self.assertTrue(any("sgd" in kernel["kernel"] for kernel in kernels))
        for kernel in kernels:
            self.assertGreaterEqual(kernel["instructions"], kernel["threads"] // 32, kernel)
            self.assertGreaterEqual(kernel["wavefronts"], kernel["shared_turns"], kernel)


if __name__ == "__main__":
    unittest.main()
