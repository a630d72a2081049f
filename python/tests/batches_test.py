#!/usr/bin/env python3
"""Batches of any number of samples: networks of one text, and of one for each number."""

import pathlib
import subprocess
import sys

import testing
from testing import RANDOM, floats, np
from two_layers import NumPySGD, samples, two_layers

import arenite
import arenite.functional as F
from arenite import nn
from arenite.optim import SGD


class Computing(nn.Module):
    """A layer, and what `compute` makes of its results."""

    def __init__(self, compute):
        self.dense = nn.Linear(6, 6, rng=np.random.default_rng(4))
        self.compute = compute

    def forward(self, x):
        return self.compute(self.dense(x))


class Sizes(testing.TestCase):
    def test_that_a_network_computes_with_have_texts_of_their_own(self):
        for compute in (
            lambda x: x * (2.0 * len(range(x.shape[0]))),
            lambda x: x.reshape(len(range(x.shape[0])), 2, 3) * 2,
            lambda x: x + x.reshape(-1)[: 6 * x.shape[0]].sum() / (x.shape[0] * 3),
            lambda x: x - x.sum(0, keepdim=True) * (1 / len(x)),
        ):
            module = Computing(compute)
            trainer = arenite.Trainer(module, nn.MSELoss(), SGD(0.01), batch=8)
            for count in 8, 3, 1, 5, 7, 2, 6, 3, 19:
                a = floats(count, 6)
                known = arenite.input("x", (min(count, 8), 6))
                wanted = arenite.compile(module(known))
                found = trainer.predict(a)
                self.assertClose(found[:8], wanted(a[:8]), 1e-5)
            x, y = floats(21, 6), floats(21, *found.shape[1:])
            trainer.fit(x, y)
            reference = arenite.Trainer(module, nn.MSELoss(), SGD(0.01), batch=5)
            self.assertClose(trainer.predict(x[:5]), reference.predict(x[:5]), 1e-5)

    def test_that_arrays_depend_on_are_refused(self):
        module = Computing(lambda x: x * np.full((1, 6), 1 / len(range(x.shape[0])), np.float32))
        trainer = arenite.Trainer(module, nn.MSELoss(), SGD(0.01), batch=8)
        x, y = floats(16, 6), floats(16, 6)
        trainer.fit(x, y)
        before = module.state_dict()
        for wrong in (lambda: trainer.fit(x[:13], y[:13]), lambda: trainer.step(x[:3], y[:3])):
            with self.assertRefused("an array in the network that is another one for"):
                wrong()
        self.assertArray(module.state_dict()["dense.weight"], before["dense.weight"])
        trainer.fit(x, y)

    def test_that_a_network_refuses(self):
        """Whatever Python raises where the library asks for a network comes out as it was."""

        def picky(x):
            if len(range(x.shape[0])) == 3:
                raise LookupError("three")
            return x * (1.0 * len(range(x.shape[0])))

        trainer = arenite.Trainer(Computing(picky), nn.MSELoss(), SGD(0.01), batch=8)
        x, y = floats(16, 6), floats(16, 6)
        trainer.fit(x, y)
        for wrong in (lambda: trainer.fit(x[:11], y[:11]), lambda: trainer.step(x[:3], y[:3]),
                      lambda: trainer.evaluate(x[:3], y[:3])):
            with self.assertRaisesRegex(LookupError, "^'?three'?$"):
                wrong()
        self.assertEqual(trainer.epochs, 1)
        trainer.fit(x, y)

    def test_arrays_of_a_network_are_kept(self):
        scale = arenite.constant(np.arange(6, dtype=np.float32), name="scale")
        module = Computing(lambda x: x * scale + np.float32(1) * np.ones((1, 6), np.float32))
        trainer = arenite.Trainer(module, nn.MSELoss(), SGD(0.01), batch=8)
        x, y = floats(13, 6), floats(13, 6)
        trainer.fit(x, y, epochs=2)
        self.assertArray(trainer.state["scale"], np.arange(6, dtype=np.float32))
        wanted = (x @ module.dense.weight.data + module.dense.bias.data) * np.arange(6) + 1
        self.assertClose(trainer.predict(x), wanted, 1e-4)

    def test_of_networks_that_change_buffers(self):
        class Counting(nn.Module):
            def __init__(self):
                self.linear = nn.Linear(6, 3)
                self.calls = arenite.buffer((1, 3))

            def forward(self, x):
                total = self.calls + self.linear(x).sum(0, keepdim=True) * 0 + 1
                return self.linear(x) + 0 * self.calls.replace(total, 0)

        network = Counting()
        trainer = arenite.Trainer(network, optimizer=SGD(0.1), batch=8)
        x, y = samples(11)
        trainer.fit(x, y, epochs=2)
        self.assertEqual(trainer.predict(x).shape, (11, 3))

    def test_after_something_was_refused(self):
        trainer = arenite.Trainer(two_layers(), optimizer=SGD(0.1), batch=8)
        with self.assertRaises(arenite.InvalidError):
            trainer.learning_rate = 0.5
        x, y = samples(20)
        trainer.fit(x, y)
        trainer.learning_rate = 0.25
        self.assertEqual(trainer.learning_rate, 0.25)
        guessing = arenite.Trainer(nn.Linear(6, 3), F.cross_entropy, SGD(0.1), (6,), batch=8)
        self.assertGreater(guessing.plan.bytes, 0)
        self.assertEqual(guessing.predict(x).shape, (20, 3))
        self.assertGreater(guessing.step(x[:8], y[:8]), 0)
        wrong = arenite.Trainer(nn.Linear(6, 3), lambda z, y: z * y, SGD(0.1), (6,), batch=8)
        with self.assertRefused("train: a loss of float32"):
            wrong.fit(x, floats(20, 3))

    def test_of_steps_are_numpys(self):
        network = two_layers()
        trainer = arenite.Trainer(network, optimizer=SGD(0.1, momentum=0.9), batch=9)
        reference = NumPySGD(network, 0.1, 0.9)
        for count in RANDOM.permutation(9) + 1:
            x, y = samples(count)
            self.assertAlmostEqual(trainer.step(x, y), reference.step(x, y), places=4)
            self.assertClose(
                trainer.predict(x).sum(1),
                (np.maximum(x @ reference.values[0] + reference.values[1], 0) @ reference.values[2]
                 + reference.values[3]).sum(1),
                1e-4,
            )
        for found, wanted in zip(network.state_dict().values(), reference.values):
            self.assertClose(found, wanted, 1e-5)

    def test_take_no_memory_of_their_own(self):
        script = pathlib.Path(__file__).with_name("many_sizes.py")
        run = subprocess.run(
            [sys.executable, script], capture_output=True, text=True, timeout=200, check=True
        )
        first, last = map(float, run.stdout.split())
        self.assertLess(last, 1.05 * first)


if __name__ == "__main__":
    testing.main()
