#!/usr/bin/env python3
"""Training: steps against NumPy's, whole epochs, what is kept, saved and refused."""

import copy
import importlib.util
import os
import pathlib
import tempfile
import unittest

import testing
from testing import RANDOM, floats, np
from two_layers import NumPySGD, samples, two_layers

import arenite
import arenite.functional as F
from arenite import nn
from arenite.optim import SGD


class Steps(testing.TestCase):
    def test_factors_are_rounded_where_that_is_asked_for(self):
        x, y = samples(8)
        losses, predictions = {}, {}
        for compute in "float32", "bfloat16":
            trainer = arenite.Trainer(two_layers(), optimizer=SGD(0.1), batch=8, compute=compute)
            losses[compute], predictions[compute] = trainer.step(x, y), trainer.predict(x)
        self.assertNotEqual(losses["float32"], losses["bfloat16"])
        self.assertClose(losses["bfloat16"], losses["float32"], 1e-2)
        self.assertFalse((predictions["float32"] == predictions["bfloat16"]).all())
        self.assertClose(predictions["bfloat16"], predictions["float32"], 3e-2)
        with self.assertRaisesRegex(arenite.InvalidError, "compute 'half'; expected float32, bfloat16"):
            arenite.Trainer(two_layers(), optimizer=SGD(0.1), compute="half")

    def test_shards_that_follow_each_other_have_the_same_bits_in_less_memory(self):
        x, y = samples(16)
        bits, arenas = [], []
        for at_once in 1, 2, 4:
            network = two_layers()
            trainer = arenite.Trainer(network, optimizer=SGD(0.1), batch=16, shards=4, at_once=at_once)
            for _ in range(3):
                trainer.step(x, y)
            bits.append([value.tobytes() for value in network.state_dict().values()])
            arenas.append(trainer.plan.arena_bytes)
        self.assertEqual(bits[0], bits[1])
        self.assertEqual(bits[0], bits[2])
        self.assertLess(arenas[0], arenas[2])
        with self.assertRaisesRegex(arenite.InvalidError, "shards '0'; expected a whole number of 1 to 64, or auto"):
            arenite.Trainer(two_layers(), optimizer=SGD(0.1), shards=0)
        with self.assertRaisesRegex(arenite.InvalidError, r"the option 'shard'; .*did you mean 'shards'\?"):
            arenite.Trainer(two_layers(), optimizer=SGD(0.1), shard=2)

    def test_batches_add_up_to_one_in_shards(self):
        x, y = samples(16)
        bits = []
        for options in {"batch": 4, "accumulate": 4}, {"batch": 16, "shards": 4}:
            network = two_layers()
            trainer = arenite.Trainer(network, optimizer=SGD(0.1, momentum=0.9), **options)
            trainer.fit(x, y, epochs=3, shuffle=False)
            bits.append([value.tobytes() for value in network.state_dict().values()])
        self.assertEqual(bits[0], bits[1])
        with self.assertRefused("gradients of 10 batches in 8 shards added up; expected 1 to 64 shards in all"):
            print(arenite.Trainer(two_layers(), optimizer=SGD(0.1), inputs=(6,), shards=8, accumulate=10).plan)

    def assertSame(self, network, reference):
        for found, wanted in zip(network.state_dict().values(), reference.values):
            self.assertClose(found, wanted, 1e-5)

    def test_steps_are_numpys_whatever_the_size_of_the_batch(self):
        for optimizer in (
            SGD(0.1),
            SGD(0.1, momentum=0.9),
            SGD(0.05, momentum=0.5, weight_decay=0.01),
        ):
            network = two_layers()
            trainer = arenite.Trainer(network, "cross_entropy", optimizer, inputs=(6,), batch=8)
            reference = NumPySGD(network, optimizer.lr, optimizer.momentum, optimizer.weight_decay)
            for count in (8, 8, 3, 8, 1, 3, 8, 8):
                x, y = samples(count)
                self.assertAlmostEqual(trainer.step(x, y), reference.step(x, y), places=5)
                self.assertSame(network, reference)

    def test_the_learning_rate_may_change(self):
        network = two_layers()
        trainer = arenite.Trainer(network, optimizer=SGD(0.1), inputs=(6,), batch=4)
        reference = NumPySGD(network, 0.1)
        for rate, count in ((0.1, 4), (0.01, 4), (0.01, 2), (0.5, 4)):
            trainer.learning_rate = reference.lr = rate
            x, y = samples(count)
            trainer.step(x, y)
            reference.step(x, y)
        self.assertEqual(trainer.learning_rate, 0.5)
        self.assertSame(network, reference)

    def test_parameters_may_be_changed_between_steps(self):
        network = two_layers()
        trainer = arenite.Trainer(network, optimizer=SGD(0.1), inputs=(6,), batch=4)
        reference = NumPySGD(network, 0.1)
        x, y = samples(4)
        trainer.step(x, y), reference.step(x, y)
        value = network[0].weight.data * 2
        network[0].weight.data = value
        reference.values[0] = value.astype(float)
        trainer.step(x, y), reference.step(x, y)
        self.assertSame(network, reference)
        logits = (
            np.maximum(x @ reference.values[0] + reference.values[1], 0) @ reference.values[2]
            + reference.values[3]
        )
        self.assertClose(trainer.predict(x), logits, 1e-4)
        network.load_state_dict(two_layers(2).state_dict())
        self.assertClose(
            trainer.predict(x), arenite.compile(two_layers(2)(arenite.constant(x)))(), 1e-5
        )

    def test_two_trainers_may_take_turns(self):
        network = two_layers()
        trainers = [
            arenite.Trainer(network, optimizer=SGD(0.1), inputs=(6,), batch=4) for _ in range(2)
        ]
        reference = NumPySGD(network, 0.1)
        for i in range(6):
            x, y = samples(4)
            trainers[i % 2].step(x, y)
            reference.step(x, y)
        self.assertSame(network, reference)


class Epochs(testing.TestCase):
    def test_the_loss_goes_down_and_all_samples_count(self):
        # Of samples with which no unit dies.
        rng = np.random.default_rng(0)
        x = rng.standard_normal((100, 6)).astype(np.float32)
        y = (x @ rng.standard_normal((6, 3)).astype(np.float32)).argmax(1)
        network = two_layers()
        trainer = arenite.Trainer(network, optimizer=SGD(0.2, momentum=0.9), batch=16)
        before = trainer.evaluate(x, y)
        history = trainer.fit(x, y, epochs=20, validation=(x[:10], y[:10]))
        after = trainer.evaluate(x, y)
        self.assertEqual(len(history), 20)
        self.assertLess(after.loss, before.loss / 4)
        self.assertGreater(after.accuracy, 0.9)
        self.assertLess(history[-1].loss, history[0].loss / 2)
        self.assertIsNotNone(history[-1].validation.accuracy)
        logits = trainer.predict(x)
        self.assertEqual(logits.shape, (100, 3))
        self.assertAlmostEqual(after.accuracy, (logits.argmax(1) == y).mean(), places=6)
        p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        self.assertAlmostEqual(after.loss, -np.log(p[np.arange(100), y]).mean(), places=5)
        # An evaluation trains nothing.
        self.assertEqual(trainer.evaluate(x, y), after)

    def test_an_epoch_in_order_is_numpys(self):
        x, y = samples(22)
        network = two_layers()
        trainer = arenite.Trainer(network, optimizer=SGD(0.1, momentum=0.9), batch=8)
        reference = NumPySGD(network, 0.1, 0.9)
        trainer.fit(x, y, epochs=2, shuffle=False)
        for _ in range(2):
            for begin in range(0, 22, 8):
                reference.step(x[begin : begin + 8], y[begin : begin + 8])
        for found, wanted in zip(network.state_dict().values(), reference.values):
            self.assertClose(found, wanted, 1e-5)

    def test_other_losses(self):
        x = floats(40, 4)
        target = x @ floats(4, 2)
        trainer = arenite.Trainer(nn.Linear(4, 2), nn.MSELoss(), SGD(0.1), inputs=(4,), batch=16)
        self.assertGreater(trainer.plan.bytes, 0)
        history = trainer.fit(x, target, epochs=60)
        self.assertIsNone(history[-1].accuracy)
        self.assertLess(history[-1].loss, 1e-3)
        found = trainer.evaluate(x, target)
        self.assertIsNone(found.accuracy)
        self.assertAlmostEqual(found.loss, ((trainer.predict(x) - target) ** 2).mean(), places=5)
        # Losses that are plain functions, of integer targets too.
        labels = RANDOM.integers(0, 2, 40)
        trainer = arenite.Trainer(nn.Linear(4, 2), F.cross_entropy, SGD(0.1), batch=16)
        self.assertLess(trainer.fit(x, labels, epochs=3)[-1].loss, 5)

    def test_targets_may_be_other_ones_than_a_plan_had(self):
        network = nn.Linear(4, 2)
        trainer = arenite.Trainer(
            network, lambda p, y: (p.sum() - y.sum()) ** 2, SGD(1e-3), inputs=(4,), batch=16
        )
        self.assertGreater(trainer.plan.bytes, 0)
        x, y = floats(16, 4), floats(16)
        before = trainer.step(x, y)
        self.assertLess(trainer.evaluate(x, y).loss, before)

    def test_convolutions(self):
        x = floats(48, 8, 8, 1)
        y = (x.mean((1, 2, 3)) > 0).astype(np.uint8)
        rng = np.random.default_rng(0)
        network = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding="same", rng=rng),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 4, 3, rng=rng),
            nn.ReLU(),
            nn.AvgPool2d(2),
            nn.Flatten(),
            nn.Linear(4, 2, rng=rng),
        )
        trainer = arenite.Trainer(network, optimizer=SGD(0.1, momentum=0.9), batch=16)
        history = trainer.fit(x, y, epochs=60)
        self.assertLess(history[-1].loss, 0.8 * history[0].loss)


class Files(testing.TestCase):
    def test_training_goes_on_where_it_was_saved(self):
        x, y = samples(16)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "ünï.safetensors"
            trainers = [
                arenite.Trainer(
                    two_layers(seed), optimizer=SGD(0.1, momentum=0.9), inputs=(6,), batch=8
                )
                for seed in (1, 2)
            ]
            trainers[0].fit(x, y)
            trainers[0].save(path)
            wanted = [trainers[0].step(x[:8], y[:8]) for _ in range(3)]
            trainers[1].step(x[:3], y[:3])
            trainers[1].load(path)
            self.assertEqual([trainers[1].step(x[:8], y[:8]) for _ in range(3)], wanted)
            for a, b in zip(
                trainers[0].module.state_dict().values(), trainers[1].module.state_dict().values()
            ):
                np.testing.assert_array_equal(a, b)

            before = trainers[0].module.state_dict()
            data = path.read_bytes()
            path.write_bytes(data[:-5])
            with self.assertRaises(arenite.InvalidError):
                trainers[0].load(path)
            with self.assertRaisesRegex(arenite.InvalidError, "No such file"):
                trainers[0].load(pathlib.Path(folder) / "typo")
            path.write_bytes(data)
            other = arenite.Trainer(nn.Linear(6, 3), optimizer=SGD(0.1), inputs=(6,))
            with self.assertRaisesRegex(
                arenite.InvalidError, "batch: 64; expected 8, as in the run to go on with"
            ):
                other.load(path)
            for name, value in trainers[0].module.state_dict().items():
                np.testing.assert_array_equal(value, before[name])
            self.assertEqual(os.listdir(folder), [path.name])


class Refusals(testing.TestCase):
    def test_arguments(self):
        network, sgd = two_layers(), SGD(0.1)
        for action, kind, message in [
            (
                lambda: arenite.Trainer(network),
                arenite.InvalidTypeError,
                "optimizer None; expected one, such as arenite.optim.SGD(lr=0.02, momentum=0.9)",
            ),
            (
                lambda: arenite.Trainer(network, optimizer=SGD),
                arenite.InvalidTypeError,
                f"optimizer {SGD!r}; expected one, such as "
                "arenite.optim.SGD(lr=0.02, momentum=0.9)",
            ),
            (
                lambda: arenite.Trainer(network, "crossentropy", sgd),
                arenite.InvalidError,
                "loss 'crossentropy'; expected 'cross_entropy' or a function of outputs and "
                "targets",
            ),
            (
                lambda: arenite.Trainer(network, nn.MSELoss, sgd),
                arenite.InvalidTypeError,
                f"loss {nn.MSELoss!r}; expected a function of outputs and targets",
            ),
            (
                lambda: arenite.Trainer(nn.ReLU(), optimizer=sgd),
                arenite.InvalidError,
                "module ReLU() without parameters; expected some to train",
            ),
            (
                lambda: arenite.Trainer(network, optimizer=sgd, batch=0),
                arenite.InvalidError,
                "batch 0; expected at least 1",
            ),
            (
                lambda: arenite.Trainer(network, optimizer=sgd).plan,
                arenite.InvalidError,
                "a trainer that has seen no samples; expected inputs=, the shape of one, or a step "
                "first",
            ),
            (
                lambda: arenite.Trainer(network, optimizer=sgd, inputs=(arenite.input("a", (1, 2)),) * 2),
                arenite.InvalidError,
                "two inputs named 'a'; expected names of their own",
            ),
            (
                lambda: copy.copy(arenite.Trainer(network, optimizer=sgd)),
                arenite.InvalidTypeError,
                "a trainer to be copied or pickled; expected its module (hint: another trainer of "
                "copy.deepcopy(trainer.module); trainer.save(path) keeps all of it)",
            ),
            (lambda: SGD(lr="0.1"), arenite.InvalidTypeError, "lr '0.1'; expected a number"),
            (lambda: SGD(lr=-1), arenite.InvalidError, "lr -1; expected a number of at least 0"),
            (
                lambda: arenite.train(arenite.input("x", (1,)), sgd),
                arenite.InvalidError,
                "train: no parameters; expected a loss that depends on some that are trainable",
            ),
        ]:
            with self.subTest(message), self.raises(kind, message):
                action()

    def test_data(self):
        trainer = arenite.Trainer(two_layers(), optimizer=SGD(0.1), inputs=(6,), batch=4)
        x, y = samples(4)
        for action, kind, message in [
            (
                lambda: trainer.step(x * 1j, y),
                arenite.InvalidTypeError,
                "complex64 for x; expected numbers",
            ),
            (
                lambda: trainer.step(x[:, :5], y),
                arenite.InvalidError,
                "samples [5] of column 'x'; expected [6], as the input has",
            ),
            (
                lambda: trainer.step(x, y[:3]),
                arenite.InvalidError,
                "y of 3 samples; expected 4, as x has",
            ),
            (
                lambda: trainer.step(x, y + 0.5),
                arenite.InvalidTypeError,
                "float64 for y; expected integers",
            ),
            (
                lambda: trainer.step(x, y + 2**40),
                arenite.InvalidError,
                f"{(y + 2**40).min()} for y; expected -2147483648 … 2147483647, as it is int32",
            ),
            (
                lambda: trainer.step(*samples(5)),
                arenite.InvalidError,
                "a step on 5 samples; expected 1 to 4, the batch (hint: fit takes any number)",
            ),
            (
                lambda: trainer.fit(x[:0], y[:0]),
                arenite.InvalidError,
                "1 epochs of 0 samples; expected at least one of both",
            ),
        ]:
            with self.subTest(message), self.raises(kind, message):
                action()
        for call in trainer.step, trainer.evaluate, trainer.fit:
            with self.assertRefused(f"label {y[0] + 3} of sample 0; expected 0 to 2, one of 3 classes"):
                call(x, y + 3)
        before = trainer.module.state_dict()
        np.testing.assert_array_equal(before["0.weight"], trainer.state["0.weight"])
        self.assertGreater(trainer.step(x.tolist(), y.tolist()), 0)
        self.assertFalse(
            np.array_equal(before["0.weight"], trainer.module.state_dict()["0.weight"])
        )


@unittest.skipUnless(
    importlib.util.find_spec("torch"), "PyTorch is not installed: its steps are not compared"
)
class AgainstPyTorch(testing.TestCase):
    def test_steps_with_momentum_and_decay(self):
        import torch

        network = two_layers()
        trainer = arenite.Trainer(
            network, optimizer=SGD(0.1, momentum=0.9, weight_decay=0.01), batch=8
        )
        theirs = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
        with torch.no_grad():
            for mine, other in zip(network.state_dict().values(), theirs.parameters()):
                other.copy_(torch.tensor(mine.T))
        optimizer = torch.optim.SGD(theirs.parameters(), 0.1, momentum=0.9, weight_decay=0.01)
        for _ in range(5):
            x, y = samples(8)
            loss = torch.nn.functional.cross_entropy(theirs(torch.tensor(x)), torch.tensor(y))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            self.assertAlmostEqual(
                trainer.step(torch.tensor(x), torch.tensor(y)), loss.item(), places=5
            )


class Closing(testing.TestCase):
    def test_the_module_keeps_what_was_trained(self):
        module = nn.Linear(3, 2)
        x, y = np.ones((4, 3), np.float32), np.array([0, 1, 1, 0])
        with arenite.Trainer(module, "cross_entropy", SGD(lr=0.1), batch=4) as trainer:
            trainer.fit(x, y, epochs=2)
            plan = trainer.plan
            trained = trainer.state["weight"]
        self.assertArray(module.weight.data, trained)
        self.assertGreater(plan.bytes, 0)
        for action in (
            lambda: trainer.fit(x, y),
            lambda: trainer.evaluate(x, y),
            lambda: trainer.predict(x),
            lambda: trainer.state,
            lambda: trainer.steps,
        ):
            with self.assertRaisesRegex(arenite.InvalidError, "a trainer that was closed; expected an open one"):
                action()
        trainer.close()  # again
        module.weight.data = 2 * trained
        self.assertArray(module.weight.data, 2 * trained)

    def test_not_in_a_fit(self):
        trainer = arenite.Trainer(nn.Linear(3, 2), "cross_entropy", SGD(lr=0.1), batch=4)
        x, y = np.ones((4, 3), np.float32), np.array([0, 1, 1, 0])
        with self.assertRaisesRegex(arenite.InvalidError, "closed in the middle of a fit"):
            trainer.fit(x, y, on_epoch=lambda _: trainer.close())
        trainer.fit(x, y)


if __name__ == "__main__":
    testing.main()
