#!/usr/bin/env python3
"""What type checkers see: the package is clean, its stub is what there is, and wrong calls are found."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import testing

import arenite.functional as F

PACKAGE = testing.ROOT / "python"
STUB = (PACKAGE / "arenite/functional.pyi").read_text(encoding="utf-8")

USER = """
from typing import Any

import numpy as np

import arenite
import arenite.functional as F
from arenite import nn, optim


class Net(nn.Module):
    def __init__(self) -> None:
        self.dense = nn.Linear(4, 3)

    def forward(self, x: arenite.Tensor) -> arenite.Tensor:
        return F.gelu(self.dense(x))


def loss(guess: arenite.Tensor, target: arenite.Tensor) -> arenite.Tensor:
    return F.huber(guess, target, delta=0.5).mean()


trainer = arenite.Trainer(Net(), loss, optim.Adam(lr=0.01), metrics={"mae": loss})
x, y = np.zeros((8, 4), np.float32), np.zeros((8, 3))
history = trainer.fit(arenite.scaled(x, 0.5), y, epochs=2, validation=0.5)
best: float = min(epoch.loss for epoch in history)
weights: "np.ndarray[Any, Any]" = trainer.module.dense.weight.data
predicted: "np.ndarray[Any, Any]" = trainer.predict(x)
"""
WRONG = {
    "F.geluu(x)": 'has no attribute "geluu"',
    "F.gelu()": "Too few arguments",
    "F.huber(x, x, delta='wide')": "incompatible type",
    "F.huber(x, x, 0.5)": "Too many positional arguments",
    "F.conv2d(x)": "Missing positional argument",
    "arenite.Trainer(Net()).fit(1)": "Missing positional argument",
    "trainer.fit(x, y, epochs='two')": "incompatible type",
    "history[0].loss.nothing": 'has no attribute "nothing"',
}


class Stub(testing.TestCase):
    def test_is_what_is_printed(self):
        printed = subprocess.run(
            [sys.executable, PACKAGE / "stubs.py"], capture_output=True, text=True, check=True
        )
        self.assertEqual(printed.stdout, STUB)

    def test_has_what_there_is(self):
        there = {name for name in dir(F) if not name.startswith("_") and callable(getattr(F, name))}
        said = {a or b for a, b in re.findall(r"\bas ([a-z]\w*)|^def (\w+)", STUB, re.M)}
        self.assertEqual(said, there)


@unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed: types are not checked")
class Checked(testing.TestCase):
    def mypy(self, *arguments):
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run(
                [sys.executable, "-m", "mypy", "--cache-dir", cache, *map(str, arguments)],
                capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(PACKAGE)}, timeout=200,
            )
        return done.stdout + done.stderr

    def test_the_package_is_clean(self):
        self.assertIn("Success", self.mypy("-p", "arenite"))

    def test_users_are_told(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "user.py")
            lines = USER + "\n".join(WRONG) + "\n"
            file.write_text(lines, encoding="utf-8")
            said = self.mypy("--strict", file)
        first = USER.count("\n") + 1
        found = dict(re.findall(r"user\.py:(\d+): error: (.*)", said))
        self.assertEqual(sorted(map(int, found)), list(range(first, first + len(WRONG))), said)
        for i, words in enumerate(WRONG.values()):
            self.assertIn(words, found[str(first + i)])


if __name__ == "__main__":
    testing.main()
