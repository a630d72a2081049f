#!/usr/bin/env python3
"""What trainers were wrong about: whose values are the newest, what a failure leaves, and what people
try first."""

import gc
import pathlib
import signal
import tempfile
import threading
import weakref
from unittest import mock

import testing
from testing import floats, np

import arenite
import arenite.functional as F
from arenite import nn
from arenite.optim import SGD

X, Y = floats(40, 6), np.arange(40) % 3


def linear():
    return nn.Linear(6, 3, rng=np.random.default_rng(1))


def trainer(module=None, loss="cross_entropy", batch=8, **options):
    return arenite.Trainer(module or linear(), loss, SGD(0.1), batch=batch, **options)


class Callback(Exception):
    pass


class Values(testing.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name, "run.st")

    def weighted(self, by):
        return trainer(loss=lambda z, y: ((z - y) ** 2 * np.full(3, by, np.float32)).mean())

    def test_arrays_of_a_loss_are_its_own(self):
        """Not those of a file, nor of what was guessed before there were targets."""
        targets = floats(40, 3)
        first = self.weighted(1)
        first.fit(X, targets)
        first.save(self.file)
        heavy = self.weighted(10)
        heavy.load_weights(self.file)
        loss = first.evaluate(X, targets).loss
        self.assertAlmostEqual(heavy.evaluate(X, targets).loss, 10 * loss, places=4)
        heavy = self.weighted(10)
        with self.assertWarnsRegex(UserWarning, "another array constant_0; steps may have other bits"):
            heavy.load(self.file)
        self.assertAlmostEqual(heavy.evaluate(X, targets).loss, 10 * loss, places=4)

        def either(z, y):
            by = 1 if y.dtype == "int32" else 100
            real = F.map("float32($1)", y).reshape((-1, 1)) if y.dtype == "int32" else y
            return ((z - real) ** 2 * np.full(3, by, np.float32)).mean()

        planned, other = (trainer(loss=either, inputs=(6,)) for _ in range(2))
        self.assertGreater(planned.plan.bytes, 0)
        self.assertEqual(planned.evaluate(X, Y), other.evaluate(X, Y))

    def test_a_step_that_fails_leaves_modules_as_far_as_they_came(self):
        labels = Y.copy()
        labels[30] = 9
        made = trainer(loss=F.cross_entropy)
        before = made.module.weight.data
        with self.assertRefused("program 'train', step 3"):
            made.fit(X, labels, shuffle=False)
        self.assertFalse((made.module.weight.data == before).all())
        self.assertArray(made.module.weight.data, made.state["weight"])
        made.fit(X, Y)

    def test_a_network_may_look_at_its_values(self):
        class Looking(nn.Module):
            def __init__(self):
                self.dense, self.seen = linear(), []

            def forward(self, x):
                self.seen.append(float(self.dense.weight.data.mean()))
                if self.asked is not None:
                    self.asked.step(X[:8], Y[:8])
                return self.dense(x)

            asked = None

        module = Looking()
        made = trainer(module)
        made.fit(X, Y)
        made.step(X[:5], Y[:5])
        self.assertNotEqual(module.seen[0], module.seen[-1])
        module.asked = made
        with self.assertRefused("a trainer called by the network that it asks for"):
            made.step(X[:3], Y[:3])
        module.asked = None
        made.step(X[:3], Y[:3])

    def test_what_is_assigned_does_not_undo_what_others_have_trained(self):
        module = linear()
        a, b = trainer(module, inputs=(6,)), trainer(module)
        state = a.state
        b.fit(X, Y)
        trained = module.weight.data
        state["bias"] = np.zeros(3, np.float32)
        self.assertArray(module.weight.data, trained)
        self.assertFalse(module.bias.data.any())

    def test_what_no_trainer_reads_stays_what_it_was_set_to(self):
        class Aside(nn.Module):
            def __init__(self):
                self.dense, self.aside = linear(), arenite.parameter(np.zeros(2, np.float32))

            def forward(self, x):
                return self.dense(x)

        module = Aside()
        with self.assertWarnsRegex(UserWarning, "stay as they are: aside"):
            made = trainer(module)
            made.step(X[:8], Y[:8])
        module.aside.trainable = False
        made.step(X[:8], Y[:8])
        module.aside.data = np.full(2, 77, np.float32)
        module.aside.trainable = True
        made.step(X[:8], Y[:8])
        self.assertEqual(module.aside.data.tolist(), [77, 77])


    def test_what_nobody_has_any_more_is_freed(self):
        """A trainer and all that is of it; its module once nobody asks for what was trained."""
        made = trainer(nn.Sequential(linear(), nn.ReLU(), nn.Linear(3, 3)))
        made.fit(X, Y)
        gone = [weakref.ref(one) for one in (made, made.module, made._newest, made._newest._networks)]
        del made
        gc.collect()
        self.assertEqual([one() for one in gone], [None] * 4)

    def test_other_threads_may_read_what_is_trained(self):
        made, done = trainer(), threading.Event()

        def read():
            while not done.is_set():
                made.module.state_dict()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        for step in range(200):
            made.module.bias.trainable = step % 2 == 0
            made.step(X[:8], Y[:8])
        done.set()
        reader.join(60)
        self.assertFalse(reader.is_alive())

    def test_what_is_frozen_for_a_while_keeps_what_its_optimizer_knows(self):
        """Whatever else is trained meanwhile, and whoever saves it."""
        targets = floats(40, 3)
        x, y, lr, momentum = X[:8], targets[:8], 0.1, 0.9
        both, weight, bias = {"weight", "bias"}, {"weight"}, {"bias"}
        for load in False, True:
            made = arenite.Trainer(linear(), nn.MSELoss(), SGD(lr, momentum), batch=8)
            values = {name: one.data.astype(np.float64) for name, one in made.module.named_parameters()}
            known = {name: np.zeros_like(value) for name, value in values.items()}
            # All that is trained is first trained with the other, so that files know all of it.
            for trained in both, weight, weight, bias, both, bias, weight, bias, weight, both:
                for name, one in made.module.named_parameters():
                    one.trainable = name in trained
                for _ in range(3):
                    made.step(x, y)
                    error = (x @ values["weight"] + values["bias"] - y) * 2 / y.size
                    for name, gradient in ("weight", x.T @ error), ("bias", error.sum(0)):
                        if name in trained:
                            known[name] = momentum * known[name] + gradient
                            values[name] -= lr * known[name]
                if load:
                    made.save(self.file)
                    made = arenite.Trainer(made.module, nn.MSELoss(), SGD(lr, momentum), batch=8)
                    made.load(self.file)
                for name, value in values.items():
                    self.assertClose(made.module.state_dict()[name], value, 1e-4)
                    self.assertClose(made.state[f"{name}.velocity"], known[name], 1e-4)


class Fits(testing.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name, "run.st")

    def stop(self, made, *_):
        def on_epoch(epoch):
            raise Callback

        with self.assertRaises(Callback):
            made.fit(X, Y, epochs=3, on_epoch=on_epoch)

    def test_that_were_ended_leave_a_trainer_whole(self):
        made = trainer(nn.Sequential(linear(), nn.ReLU(), nn.Linear(3, 3)))
        made.fit(X, Y)
        made.save(self.file)
        self.stop(made)
        made.load(self.file)
        self.assertEqual(made.epochs, 1)
        self.stop(made)
        made.module[0].requires_grad_(False)
        made.fit(X, Y)
        self.stop(made)
        made.module[0].requires_grad_(True)
        made.fit(X, Y), made.step(X[:8], Y[:8]), made.save(self.file)

    def test_go_on_with_what_they_began_with(self):
        """What is frozen meanwhile counts from the next call on."""
        made = trainer(nn.Sequential(linear(), nn.ReLU(), nn.Linear(3, 3)))
        weights = []

        def on_epoch(epoch):
            weights.append(made.module[0].weight.data)
            made.module[0].requires_grad_(False)
            made.learning_rate = 0 if len(weights) == 3 else 0.05
            made.save(self.file)
            for wrong in (lambda: made.fit(X, Y), lambda: made.load(self.file)):
                with self.assertRaisesRegex(arenite.InvalidError, "within another one|middle of a fit"):
                    wrong()

        self.assertEqual(len(made.fit(X, Y, epochs=4, on_epoch=on_epoch)), 4)
        self.assertFalse((weights[1] == weights[2]).all())
        self.assertArray(weights[2], weights[3])
        self.assertEqual(made.epochs, 4)
        made.learning_rate = 0.1
        made.fit(X, Y)
        self.assertArray(made.module[0].weight.data, weights[3])
        self.assertEqual(made.epochs, 5)
        other = trainer(nn.Sequential(linear(), nn.ReLU(), nn.Linear(3, 3)))
        other.load(self.file)
        self.assertEqual(other.epochs, 4)

    def test_go_on_with_what_python_copies(self):
        """Arrays of types that the library does not read are other ones in memory each time."""
        kinds = {
            "as they are": lambda x: x,
            "float16": lambda x: x.astype(np.float16),
            "another order of bytes": lambda x: x.astype(">f4"),
            "columns": np.asfortranarray,
            "every second row": lambda x: np.repeat(x, 2, axis=0)[::2],
            "lists": lambda x: x.tolist(),
        }
        for kind, changed in kinds.items():
            x, steps = changed(X), []
            for stops in False, True:
                made = trainer(batch=4)
                if stops:
                    show = lambda *_: signal.raise_signal(signal.SIGINT)  # noqa: E731
                    with mock.patch("arenite.trainer._PAUSE", 1e-9), mock.patch(
                        "arenite.progress.Progress.show", show
                    ), self.assertRaises(KeyboardInterrupt):
                        made.fit(x, Y, epochs=1, seed=3)
                    self.assertTrue(0 < made.steps < 10, made.steps)
                made.fit(x, Y, epochs=1, seed=3)
                steps.append((made.steps, made.module.weight.data.tolist()))
            self.assertEqual(*steps, kind)
            y = Y.copy()
            y[0] = 2 - y[0]
            made.fit(x, y, epochs=1, seed=3)

    def test_take_fewer_samples_than_a_batch(self):
        made, other = trainer(batch=64), trainer(batch=64)
        made.fit(X, Y, shuffle=False)
        other.step(X, Y)
        self.assertArray(made.module.weight.data, other.module.weight.data)
        self.assertEqual(len(trainer(batch=32, accumulate=4).fit(X, Y, epochs=2, validation=0.5)), 2)


class FirstTries(testing.TestCase):
    def test_that_were_wrong_do_not_stick(self):
        two = lambda z, y, w: (w * (z - y) ** 2).mean()  # noqa: E731
        numbers = floats(40, 3)
        for made, wrong, right in (
            (trainer(), lambda t: t.fit(X[:, :5], Y), lambda t: t.fit(X, Y)),
            (trainer(), lambda t: t.fit((X, X), Y), lambda t: t.fit(X, Y)),
            (trainer(), lambda t: t.predict((X[0], X[1])), lambda t: t.fit(X, Y)),
            (trainer(), lambda t: t.predict({}), lambda t: t.fit(X, Y)),
            (trainer(loss=nn.MSELoss()), lambda t: t.fit(X, numbers[:, :2]), lambda t: t.fit(X, numbers)),
            (trainer(loss=two), lambda t: t.fit(X, numbers), lambda t: t.fit(X, (numbers, numbers))),
            (trainer(loss=two), lambda t: t.step(X[:8], numbers[:8]), lambda t: t.step(X[:8], (numbers[:8],) * 2)),
        ):
            with self.assertRaises((arenite.Error, TypeError)):
                wrong(made)
            right(made)

    def test_predictions_need_no_targets(self):
        for loss in (
            lambda z, y, w: (w * (z - y) ** 2).mean(),
            lambda z, y: (z.sum(1) - y.sum(1)).sum() ** 2,
            nn.MSELoss(), "cross_entropy",
        ):
            made = trainer(loss=loss)
            wanted = X @ made.module.weight.data + made.module.bias.data
            self.assertClose(made.predict(X), wanted, 1e-5)
        made = trainer(loss=lambda z, y, w: (w * (z - y) ** 2).mean())
        made.predict(X)
        self.assertEqual(len(made.fit(X, (floats(40, 3), np.ones((40, 3))))), 1)

    def test_integers_are_what_a_network_takes(self):
        class Mixed(nn.Module):
            def __init__(self):
                self.sizes, self.kinds = nn.Linear(2, 3), nn.Linear(4, 3)

            def forward(self, sizes, kind):
                hot = F.map("float32($1 == $2)", kind.reshape((-1, 1)), np.arange(4))
                return self.sizes(sizes) + self.kinds(hot)

        sizes, kind = testing.RANDOM.integers(0, 9, (40, 2)), testing.RANDOM.integers(0, 4, 40)
        bits = []
        for x in {"sizes": sizes, "kind": kind}, {"kind": kind, "sizes": sizes}:
            arenite.manual_seed(0)
            made = trainer(Mixed())
            made.fit(x, Y)
            bits.append(made.module.sizes.weight.data.tobytes())
        self.assertEqual(bits[0], bits[1])
        made.predict({"sizes": sizes, "kind": kind})

    def test_samples_that_only_batches_have(self):
        class Centred(nn.Module):
            def __init__(self):
                self.dense = linear()

            def forward(self, x):
                return self.dense(x - x.sum(0, keepdim=True) * (1 / (len(x) - 1)))

        made = trainer(Centred())
        made.fit(X, Y)
        self.assertEqual(made.predict(X).shape, (40, 3))

    def test_errors(self):
        class Pair(nn.Module):
            def __init__(self):
                self.dense = linear()

            def forward(self, x):
                return self.dense(x), x

        mean = lambda z, y: z.sum()  # noqa: E731
        for action, words in (
            (lambda: trainer(metrics=["accuracy"]), r"metrics \['accuracy'\]; expected functions by name"),
            (lambda: trainer(metrics={"m": "mae"}), "metric 'm': 'mae'; expected a name and a function"),
            (lambda: trainer(metrics={3: mean}), "metric 3: .*; expected a name and a function"),
            (lambda: trainer(metrics={"loss": mean}), "a metric named 'loss'; expected another name"),
            (lambda: trainer(metrics={"predict": mean}), "a metric named 'predict'; expected another name"),
            (lambda: trainer(metrics={"m": lambda z, y: z}).fit(X, Y), "metric 'm' that is Tensor.*; expected a Tensor float32"),
            (lambda: trainer(early_stop=3), r"Trainer: no argument 'early_stop' \(hint: trainer.fit"),
            (lambda: trainer().fit(X, Y, callbacks=[]), r"fit: no argument 'callbacks' \(hint: on_epoch=function"),
            (lambda: trainer().fit(X, Y, class_weight={0: 1}), r"hint: loss=nn.CrossEntropyLoss\(weight=…\)"),
            (lambda: trainer().fit(X, Y, on_epoch=3), "on_epoch 3; expected a function of an epoch"),
            (lambda: trainer(Pair(), lambda both, y: both[0].sum()).predict(X), "a module that returns"),
            (lambda: trainer(Pair()).fit(X, Y), ""),
            (lambda: trainer().predict([]), ""),
            (lambda: trainer().predict("text"), "a str; expected an array"),
            (lambda: trainer().fit(X, None), "a NoneType; expected an array"),
            (lambda: trainer().fit(X, 3), "y of shape"),
        ):
            with self.assertRaisesRegex(arenite.Error, words):
                action()
        with self.assertRaises(TypeError):
            trainer().fit(X, Y, validation=0.1, save_best=3)

    def test_what_is_scaled_has_rows(self):
        images = (X * 50).astype(np.int8)
        given = arenite.scaled(images, 0.5)
        self.assertEqual((len(given), given.shape), (40, (40, 6)))
        made = trainer()
        made.fit(given[:32], Y[:32])
        self.assertArray(made.predict(given[32:]), made.predict(images[32:] * np.float32(0.5)))
        self.assertArray(made.predict(arenite.scaled(given, 2)), made.predict(images.astype(np.float32)))
        self.assertIn("int8 [40, 6], 0.5", repr(given))

    def test_rows_anywhere_in_memory(self):
        wide = np.empty(40 * 6 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(40, 6)
        wide[:] = X
        made, other = trainer(), trainer()
        made.fit(wide, Y), other.fit(X, Y)
        self.assertArray(made.predict(wide), other.predict(X))


if __name__ == "__main__":
    testing.main()
