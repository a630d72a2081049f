#!/usr/bin/env python3
"""Batches of any number of samples: what one model runs, and what it takes."""

import pathlib
import subprocess
import sys

import testing
from testing import RANDOM, floats, np
from two_layers import NumPySGD, samples, two_layers

import arenite
import arenite.functional as F
from arenite import nn
from arenite.batches import Batches, Graph
from arenite.optim import SGD


class Sizes(testing.TestCase):
    def batches(self, compute):
        def build(count):
            x = arenite.input("x", (count, 6))
            return Graph(compute(x), [x])

        return Batches(build, 8)

    def test_of_batches_share_a_model(self):
        batches = self.batches(two_layers())
        for count in 8, 3, 1, 5, 8:
            self.assertIs(batches.model(count), batches.model(8))
            self.assertEqual(batches.model(count)(floats(count, 6)).shape, (count, 3))

    def test_that_a_network_computes_with_have_models_of_their_own(self):
        for compute in (
            lambda x: x * (2.0 * len(range(x.shape[0]))),
            lambda x: x.reshape(len(range(x.shape[0])), 2, 3).sum((1, 2)) * 2,
            lambda x: x.reshape(-1)[: 6 * x.shape[0]].sum() / (x.shape[0] * 3),
            lambda x: x * np.full((1, 6), 1 / len(range(x.shape[0])), np.float32),
        ):
            batches = self.batches(compute)
            for count in 8, 3, 1, 5, 7, 2, 6, 3:
                a = floats(count, 6)
                known = arenite.input("x", (count, 6))
                wanted = arenite.compile(compute(known))(a)
                self.assertEqual(batches.model(count)(a).tolist(), wanted.tolist())
            self.assertIs(batches.model(3), batches.model(3))
            self.assertIsNot(batches.model(3), batches.model(2))

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
        with self.assertRaises((TypeError, ValueError)):
            print(guessing.plan)
        self.assertEqual(guessing.predict(x).shape, (20, 3))
        self.assertGreater(guessing.step(x[:8], y[:8]), 0)

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
        self.assertLess(last, 1.1 * first)


if __name__ == "__main__":
    testing.main()
