#!/usr/bin/env python3
"""Layers that differ by mode, beside PyTorch's: batch normalisation and dropout."""

import json
import pathlib
import tempfile

import batch_norm
import dropout
import testing
from testing import np

import arenite
import arenite.functional as F
from arenite import nn


def made(shape, arguments):
    """The model that the fixture is of."""
    layer = (nn.BatchNorm2d if len(shape) == 4 else nn.BatchNorm1d)(shape[-1], **arguments)
    x, target = arenite.input("x", shape), arenite.input("target", shape)
    begin = batch_norm.first(shape)
    scale = arenite.parameter(begin["scale"].astype(np.float32), name="scale")
    y = layer(x * scale)
    loss = (y * target + y * y * 0.1).sum()
    step = arenite.train(loss, arenite.optim.SGD(lr=batch_norm.RATE))
    model = arenite.compile({"y": y}, [x, target], updates=[step], names=layer.names())
    for name in ("running_mean", "running_var"):
        model.state[name] = begin[name].astype(np.float32)
    return model


class BatchNorm(testing.TestCase):
    def expect_close(self, found, wanted, what):
        found, wanted = np.ravel(found)[: len(wanted)], np.array(wanted)
        self.assertLess(np.abs(found - wanted).max(), 1e-5, what)

    def test_numbers_are_those_of_pytorch(self):
        path = pathlib.Path(__file__).with_name("batch_norm.json")
        cases = json.loads(path.read_text())
        shapes = [one["shape"] for one in batch_norm.CASES]
        self.assertEqual([case["shape"] for case in cases], shapes)
        for case in cases:
            shape = tuple(case["shape"])
            with self.subTest(shape=shape, **case["arguments"]):
                model = made(shape, case["arguments"])
                for step, wanted in enumerate(case["outputs"]):
                    x, target = (batch_norm.numbers(shape, seed) for seed in (step, step + 100))
                    self.expect_close(model.train_step(x, target)["y"], wanted, f"step {step}")
                for name, wanted in case["kept"].items():
                    self.expect_close(model.state[name], wanted, name)
                before = {name: model.state[name] for name in model.state}
                x = batch_norm.numbers(shape, 50)
                self.expect_close(model(x, x)["y"], case["evaluated"], "evaluated")
                for name, values in before.items():
                    np.testing.assert_array_equal(model.state[name], values)

    def test_a_trainer_predicts_by_running_statistics(self):
        rng = np.random.default_rng(1)
        x = rng.standard_normal((96, 6)).astype(np.float32) * 3 + 5
        y = (x[:, 0] > 5).astype(int)
        network = nn.Sequential(
            nn.BatchNorm1d(6), nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2)
        )
        buffers = [name for name, _ in network.named_buffers()]
        self.assertEqual(buffers, ["0.running_mean", "0.running_var"])
        trainer = arenite.Trainer(network, "cross_entropy", arenite.optim.SGD(lr=0.1), batch=20)
        trainer.fit(x, y, epochs=30)
        found = trainer.evaluate(x, y)
        self.assertGreater(found.accuracy, 0.9)
        # By itself a sample is what it is among others.
        alone = np.concatenate([trainer.predict(x[i : i + 1]) for i in range(5)])
        np.testing.assert_allclose(trainer.predict(x)[:5], alone, rtol=1e-4, atol=1e-5)
        with tempfile.TemporaryDirectory() as folder:
            trainer.save(f"{folder}/all")
            expected = trainer.predict(x)
            trainer.fit(x + 1, y, epochs=1)
            self.assertFalse((trainer.predict(x) == expected).all())
            trainer.load(f"{folder}/all")
            np.testing.assert_array_equal(trainer.predict(x), expected)

    def test_statistics_are_in_the_state_of_a_network(self):
        def network():
            return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))

        first, second = network(), network()
        self.assertEqual(
            list(first.state_dict())[-2:], ["1.running_mean", "1.running_var"]
        )
        self.assertEqual(first.state_dict()["1.running_var"].tolist(), [1, 1, 1])
        rng = np.random.default_rng(3)
        x, y = rng.standard_normal((48, 4)).astype(np.float32) + 2, np.arange(48) % 2
        trainer = arenite.Trainer(first, optimizer=arenite.optim.SGD(lr=0.1), batch=20)
        trainer.fit(x, y, epochs=2)
        kept = first.state_dict()
        self.assertTrue((kept["1.running_mean"] != 0).all())
        second.load_state_dict(kept)
        outputs = [
            arenite.compile(one(arenite.input("x", (48, 4))))(x) for one in (first, second)
        ]
        for found in outputs:
            np.testing.assert_array_equal(found, outputs[0])
        np.testing.assert_allclose(outputs[0], trainer.predict(x), rtol=1e-5, atol=1e-6)
        with self.assertRefused("values that lack 1.running_var"):
            second.load_state_dict({n: v for n, v in kept.items() if n != "1.running_var"})

    def test_numbers_that_are_not_finite_leave_the_statistics(self):
        net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(), nn.Linear(3, 2))
        x, y = np.ones((8, 4), np.float32), np.arange(8) % 2
        x[0] = 2
        trainer = arenite.Trainer(net, optimizer=arenite.optim.SGD(lr=0.1), batch=8)
        trainer.step(x, y)
        kept = {name: trainer.state[name] for name in trainer.state}
        broken = x.copy()
        broken[3] = np.nan
        with self.assertRefused("program 'train', step 1, check_loss"):
            trainer.step(broken, y)
        for name, value in kept.items():
            self.assertArray(trainer.state[name], value)

    def test_a_shard_has_its_own_statistics_where_it_is_told_to(self):
        x = np.random.default_rng(4).standard_normal((64, 300)).astype(np.float32)
        x[32:] += 5
        given = arenite.input("x", (64, 300))

        def trained(**options):
            norm = nn.BatchNorm1d(300, **options)
            y = norm(given)
            step = arenite.train((y * y).sum(), arenite.optim.SGD(0.0))
            model = arenite.compile(y, updates=[step], shards=2)
            return model.train_step(x), norm.state_dict()["running_mean"]

        whole, mean = trained()
        halves, mean_of_halves = trained(per_shard=True)
        np.testing.assert_allclose(whole.mean(axis=0), np.zeros(300), atol=1e-5)
        self.assertGreater(whole[32:].mean(), 0.5)
        for half, of in ((halves[:32], x[:32]), (halves[32:], x[32:])):
            expected = (of - of.mean(axis=0)) / np.sqrt(of.var(axis=0) + 1e-5)
            np.testing.assert_allclose(half, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(mean_of_halves, mean, rtol=1e-6)

    def test_refuses_what_does_not_fit(self):
        self.assertError(
            "BatchNorm2d: an input of shape [4, 3]; expected [N, H, W, 3]",
            lambda: nn.BatchNorm2d(3)(arenite.input("x", (4, 3))),
        )
        self.assertError(
            "batch_norm: operand 'running_mean' (buffer) of shape [2]; expected [3]",
            lambda: F.batch_norm(
                arenite.input("x", (4, 3)), arenite.buffer((2,)), arenite.buffer((3,))
            ),
        )
        self.assertError("momentum None", lambda: nn.BatchNorm1d(3, momentum=None))

    def assertError(self, words, act):
        with self.assertRaises((arenite.Error, TypeError, ValueError)) as caught:
            act()
        self.assertIn(words, str(caught.exception))

    def test_says_what_it_is(self):
        self.assertEqual(repr(nn.BatchNorm1d(3)), "BatchNorm1d(3, eps=1e-05, momentum=0.1)")
        told = nn.BatchNorm1d(3, affine=False, per_shard=True)
        self.assertEqual(
            repr(told), "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=False, per_shard=True)"
        )
        self.assertEqual(repr(nn.Dropout(0.25)), "Dropout(p=0.25)")


class Dropout(testing.TestCase):
    def test_drops_in_training_alone(self):
        x = arenite.input("x", (50, 40))
        weight = arenite.parameter(np.ones(40, np.float32), name="weight")
        y = F.dropout(x * weight, 0.3)
        loss = y.sum()
        model = arenite.compile(y, updates=[arenite.train(loss, arenite.optim.SGD(lr=0.0))])
        ones = np.ones((50, 40), np.float32)
        np.testing.assert_array_equal(model(ones), ones)
        first, second = model.train_step(ones), model.train_step(ones)
        self.assertFalse((first == second).all())
        for found in (first, second):
            stays = found != 0
            self.assertLess(abs(stays.mean() - 0.7), 0.06)
            np.testing.assert_allclose(found[stays], 1 / 0.7, rtol=1e-6)
        np.testing.assert_array_equal(model(ones), ones)
        # What is drawn follows from how much was drawn before.
        self.assertEqual(model.state["position"].tolist(), [100])
        model.state["position"] = np.array([50])
        np.testing.assert_array_equal(model.train_step(ones), second)

    def test_numbers_are_those_of_pytorch_for_its_mask(self):
        case = json.loads(pathlib.Path(__file__).with_name("dropout.json").read_text())
        self.assertEqual(dropout.masks(), case["masks"])
        x = arenite.input("x", (dropout.ROWS, dropout.IN))
        target = arenite.input("target", (dropout.ROWS, dropout.OUT))
        first, second = (
            arenite.parameter(array, name=name) for name, array in dropout.weights().items()
        )
        y = F.dropout(x @ first, dropout.RATE, dropout.SEED) @ second
        loss = (y * target + y * y * 0.1).sum()
        step = arenite.train(loss, arenite.optim.SGD(lr=dropout.LR))
        model = arenite.compile(y, [x, target], updates=[step])
        for number, wanted in enumerate(case["outputs"]):
            found = model.train_step(*dropout.batch(number))
            np.testing.assert_allclose(found.ravel(), wanted, rtol=1e-5, atol=1e-5)
        for name, wanted in case["weights"].items():
            np.testing.assert_allclose(model.state[name].ravel(), wanted, rtol=1e-5, atol=1e-5)

    def test_refuses_what_is_no_probability(self):
        for p in (-0.1, 1.5, "half"):
            with self.assertRaises(arenite.InvalidError):
                nn.Dropout(p)


if __name__ == "__main__":
    testing.main()
