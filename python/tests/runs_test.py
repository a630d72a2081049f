#!/usr/bin/env python3
"""Epochs that go on counting, runs that are saved and gone on with, and what a loss counts."""

import os
import pathlib
import signal
import tempfile
import unittest

import testing
from testing import floats, np

import arenite
import arenite.functional as F
from arenite import nn
from arenite.optim import Adam, Average, SGD

X, Y = floats(42, 4), np.arange(42) % 3  # no multiple of any batch here


class Net(nn.Module):
    def __init__(self):
        nn.manual_seed(3)
        self.first, self.drop, self.last = nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 3)

    def forward(self, x):
        return self.last(F.relu(self.drop(self.first(x))))


def trainer(optimizer=None, **options):
    return arenite.Trainer(Net(), optimizer=optimizer or Adam(0.01), batch=8, **options)


def bits(made):
    return [value.tobytes() for value in made.module.state_dict().values()]


class Runs(testing.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name, "run.st")

    def test_epochs_go_on_counting(self):
        whole, parts = trainer(), trainer()
        history = whole.fit(X, Y, epochs=3)
        losses = [parts.fit(X, Y, epochs=1)[0].loss for _ in range(3)]
        self.assertEqual(losses, [epoch.loss for epoch in history])
        self.assertEqual(bits(parts), bits(whole))
        self.assertEqual(parts.epochs, 3)
        self.assertEqual(len(set(losses)), 3)

    def test_a_saved_run_ends_in_the_same_bits(self):
        for settings in {}, {"schedule": "1 / sqrt($1)"}, {"average": Average(0.9)}, {"accumulate": 2}:
            if "schedule" in settings:
                settings = {"schedule": arenite.optim.Schedule(formula=settings["schedule"])}
            whole, first, second = trainer(**settings), trainer(**settings), trainer(**settings)
            whole.fit(X, Y, epochs=4)
            first.fit(X, Y, epochs=2)
            first.save(self.file)
            second.load(self.file)  # which has seen no samples
            self.assertEqual(second.epochs, 2)
            second.fit(X, Y, epochs=2)
            self.assertEqual(bits(second), bits(whole), settings)

    def each_step(self, made, before=None, after=None):
        """Lets `fit` pause behind each step; before(n) and after(n) are called around the n-th."""
        engine, steps = made._engine(), []

        def advance(pause, own=engine.advance):
            steps.append(len(steps) + 1)
            if before is not None:
                before(steps[-1])
            told = own(pause, 1)
            if after is not None:
                after(steps[-1])
            return told

        engine.advance = advance
        return steps

    def test_in_the_middle_of_an_epoch(self):
        """Ctrl-C leaves a trainer as the last whole step did."""
        whole = trainer()
        expected = whole.fit(X, Y, epochs=3)
        for at in range(1, 7):
            stopped = trainer()
            stopped.evaluate(X, Y)

            def interrupt(step, at=at):
                if step == 6 + at:
                    raise KeyboardInterrupt

            self.each_step(stopped, before=interrupt)
            with self.assertRaises(KeyboardInterrupt):
                stopped.fit(X, Y, epochs=3)
            stopped.evaluate(X, Y)
            stopped.save(self.file)
            resumed = trainer()
            resumed.load(self.file)
            for other in resumed, stopped:
                history = other.fit(X.copy() if other is resumed else X, Y, epochs=3 - other.epochs)
                self.assertEqual([epoch.loss for epoch in history], [epoch.loss for epoch in expected[-len(history):]])
                self.assertEqual(bits(other), bits(whole))

    def test_another_order_begins_its_epoch_anew(self):
        one = trainer()
        one.evaluate(X, Y)

        def interrupt(step):
            if step == 2:
                raise KeyboardInterrupt

        self.each_step(one, before=interrupt)
        with self.assertRaises(KeyboardInterrupt):
            one.fit(X, Y)
        one._engine().__dict__.pop("advance")
        one.module.load_state_dict(trainer().module.state_dict())
        history = one.fit(X, Y, seed=1)
        self.assertEqual(history[0].seconds > 0, True)
        self.assertEqual(one.epochs, 1)
        self.assertEqual(one._newest.steps, 1 + 6)
        one.save(self.file)
        other = trainer()
        other.load(self.file)
        with self.assertRefused("the run that is resumed: data: 30 samples: x float32 [4], y int64 []"):
            other.fit(X[:30], Y[:30], seed=1)

    def test_a_signal_ends_it_between_steps(self):
        """Wherever Ctrl-C comes, what was done and what is written down are one."""
        whole = trainer()
        whole.fit(X, Y, epochs=3)
        for at in range(7, 12):
            stopped = trainer()
            stopped.evaluate(X, Y)

            def send(step, at=at):
                if step == at:
                    os.kill(os.getpid(), signal.SIGINT)

            steps = self.each_step(stopped, after=send)
            with self.assertRaises(KeyboardInterrupt):
                stopped.fit(X, Y, epochs=3)
            self.assertEqual(len(steps), at)
            stopped._engine().__dict__.pop("advance")
            stopped.fit(X, Y, epochs=3 - stopped.epochs)
            self.assertEqual(bits(stopped), bits(whole))
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)

    def test_a_callback_is_told_of_epochs_and_may_end_them(self):
        one, told = trainer(average=Average(0.9)), []

        def on_epoch(epoch):
            told.append(epoch)
            one.learning_rate = one.learning_rate / 2
            self.assertEqual(one.evaluate(X[-8:], Y[-8:], averaged=True), epoch.validation)
            self.assertEqual(one.predict(X).shape, (42, 3))
            if len(told) == 3:
                raise StopIteration

        with self.assertRaises(StopIteration):
            one.fit(X, Y, epochs=5, validation=(X[-8:], Y[-8:]), on_epoch=on_epoch)
        self.assertEqual(one.epochs, 3)
        self.assertAlmostEqual(one.learning_rate, 0.01 / 8)
        self.assertEqual(len(one.fit(X, Y, epochs=2)), 2)

    def test_the_best_is_kept_and_what_is_no_better_ends(self):
        one = trainer(SGD(0.5))
        history = one.fit(X, Y, epochs=200, validation=(X, Y), early_stop=3, save_best=self.file)
        losses = [epoch.validation.loss for epoch in history]
        self.assertLess(len(history), 200)
        best = int(np.argmin(losses))
        self.assertEqual(len(losses) - 1 - best, 3)
        other = trainer(SGD(0.5))
        other.load_weights(self.file)
        self.assertEqual(other.epochs, 0)
        self.assertEqual(other.evaluate(X, Y).loss, losses[best])
        for wrong in {"early_stop": 3}, {"save_best": self.file}:
            with self.assertRefused(f"{next(iter(wrong))} without a validation"):
                one.fit(X, Y, **wrong)

    def test_files_of_models_and_damaged_ones(self):
        one = trainer()
        with self.assertRefused(f"{self.file}: a run to save that has not begun"):
            one.evaluate(X, Y)
            one.save(self.file)
        one.fit(X, Y)
        x = arenite.input("x", (2, 4))
        arenite.compile(one.module(x)).save(self.file)  # says nothing of a run
        other = trainer()
        with self.assertRefused("a trainer that has seen no samples"):
            other.load(self.file)
        with self.assertRefused(f"{self.file}: "):
            one.load(self.file)
        self.assertEqual(one.epochs, 1)
        one.save(self.file)
        data = bytearray(self.file.read_bytes())
        for at in 9, len(data) // 2, len(data) - 1:
            damaged = bytearray(data)
            damaged[at] ^= 4
            self.file.write_bytes(damaged)
            with self.assertRaises(arenite.InvalidError):
                other.load(self.file)
            self.assertEqual(other.epochs, 0)
        engine = one._engine()
        for text in "{", "[]", '{"inputs": 1}', "3", '{"inputs": ["one", {"x": [[4], "half"]}], "targets": null}':
            engine.save(self.file, "trainer", text)
            with self.assertRefused(f"{self.file}: what it says of a trainer, {text[:80]!r}; expected"):
                other.load(self.file)
        self.assertFalse(other._objective.inputs.known)
        with self.assertRefused("'cut.st\\x00.png'; expected a text without a character 0"):
            one.save("cut.st\0.png")
        self.assertFalse(os.path.exists("cut.st"))


class Losses(testing.TestCase):
    def test_labels_that_a_loss_counts(self):
        """Five of a sample: the mean is over all labels."""

        class Each(nn.Module):
            def __init__(self):
                self.dense = nn.Linear(4, 3)

            def forward(self, x):
                return self.dense(x)

        def loss(logits, labels):
            return F.softmax_cross_entropy(logits.reshape((-1, 3)), labels.reshape((-1,)))

        x, y = floats(20, 5, 4), (np.arange(100) % 3).reshape(20, 5).astype(np.int32)
        made = arenite.Trainer(Each(), loss, SGD(0.0), batch=8)
        found = made.fit(x, y)[0]
        logits = made.predict(x).reshape(-1, 3).astype(np.float64)
        shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        self.assertClose(found.loss, -np.log(shares[np.arange(100), y.ravel()]).mean())
        self.assertClose(found.accuracy, (logits.argmax(1) == y.ravel()).mean())
        self.assertEqual(made.evaluate(x, y)[:2], found[:2])

    def test_integers_are_numbers_to_a_loss_of_numbers(self):
        made = arenite.Trainer(nn.Linear(4, 3), lambda y, t: ((y - t) ** 2).mean(), SGD(0.1), batch=8)
        numbers = arenite.Trainer(nn.Linear(4, 3), lambda y, t: ((y - t) ** 2).mean(), SGD(0.1), batch=8)
        numbers.module.load_state_dict(made.module.state_dict())
        targets = np.arange(126).reshape(42, 3) % 5
        self.assertEqual(made.fit(X, targets)[0].loss, numbers.fit(X, targets.astype(np.float32))[0].loss)


class Habits(testing.TestCase):
    """What people coming from elsewhere write works, or says what to write instead."""

    def test_says_what_to_write(self):
        made = trainer()
        made.fit(X, Y)
        net = made.module
        for action, words in (
            (lambda: made.predict(X[0]), r"x of shape \[4\], which is one sample; expected samples "
                                         r"\[N, 4\] \(hint: x\[None\]\)"),
            (lambda: made.fit((X, X), Y), "x that is a tuple of 2 arrays; expected one array of samples"),
            (lambda: SGD(net.parameters(), lr=0.1), r"hint: SGD\(lr=0.01\); arenite.Trainer and arenite.train know"),
            (lambda: Adam(net.parameters()), r"hint: Adam\(lr=0.01\)"),
            (lambda: net.train(), "hint: fit and step train, predict and evaluate do not"),
            (lambda: net.eval(), "hint: fit and step train, predict and evaluate do not"),
            (lambda: net.to("cuda"), r"hint: arenite.Session\(device="),
            (lambda: made.optimizer.zero_grad(), "hint: gradients are each step's own"),
            (lambda: made.optimizer.step(), r"hint: trainer.step\(x, y\)"),
            (lambda: trainer(batch_size=8), "hint: batch=64"),
            (lambda: made.fit(X, Y, validation_data=(X, Y)), r"hint: validation=\(x, y\)"),
            (lambda: made.fit(X, Y, bacth=3), "fit: an unknown argument 'bacth'"),
            (lambda: made.fit(X, Y, validation=3), "validation 3; expected a share above 0 and below 1"),
            (lambda: made.fit(X, Y, validation=X), "validation that is no pair"),
            (lambda: 12 / arenite.input("x", (4,), "int32"), "a division with a Tensor of int32; expected float32"),
        ):
            with self.assertRaisesRegex((arenite.Error, AttributeError), words):
                action()
        self.assertFalse(hasattr(net, "cuda"))

    def test_works(self):
        self.assertEqual(F.conv2d(arenite.input("x", (1, 8, 8, 1)), floats(3, 3, 1, 2), padding="valid").shape,
                         (1, 6, 6, 2))
        made = trainer()
        history = made.fit(X, Y, validation=0.25)
        self.assertEqual(history[0].validation, made.evaluate(X[32:], Y[32:]))
        x = arenite.input("x", (3,))
        made = arenite.compile([1 / x, x / (x + 1), x**0.5, x**-1, x ** np.float64(2), x * np.array(2.0), x ** np.int64(3)])
        given = np.array([0.5, 2, 4], np.float32)
        for found, expected in zip(made(given), (1 / given, given / (given + 1), given**0.5, 1 / given, given**2,
                                                 given * 2, given**3)):
            self.assertClose(found, expected)
        self.assertEqual(SGD(np.float32(0.5)).lr, 0.5)
        self.assertEqual(SGD(np.array(0.5)).lr, 0.5)
        self.assertEqual(arenite.input("y", (np.int64(2), np.array(3))).shape, (2, 3))

    def test_arrays_that_mean_more_than_their_numbers(self):
        made = trainer()
        masked = np.ma.masked_array(X, X > 0.5)

        class Metres(np.ndarray):
            pass

        for action in (
            lambda: made.fit(masked, Y),
            lambda: made.fit(X, np.ma.masked_array(Y, Y > 1)),
            lambda: made.fit([*masked], Y),
            lambda: made.predict(masked),
            lambda: made.predict(X.view(Metres)),
            lambda: F.add(arenite.input("x", (42, 4)), masked),
            lambda: arenite.parameter(masked),
            lambda: arenite.compile_script(
                "$1 = ConstantTensor(c, float32, [42, 4]);\nresult = $1;", {"c": masked}),
        ):
            with self.assertRaisesRegex(TypeError, "which means more than its numbers; expected a plain array"):
                action()

    def test_outputs_that_overlap(self):
        x = arenite.input("x", (4,))
        made = arenite.compile([x + 1.0, x * 2.0, x * 3.0])
        place, given = np.zeros(12, np.float32), np.arange(4, dtype=np.float32)
        for out in ([place[:4], place[3:7], place[8:]], [place[8:], place[:4], place[:4]],
                    [place[4:8], place[8:], place[5:9]]):
            with self.assertRefused("arrays for outputs"):
                made.run({"x": given}, out=out)
        self.assertArray(place, np.zeros(12, np.float32))
        made.run({"x": given}, out=[place[8:], place[:4], place[4:8]])
        self.assertArray(place, np.concatenate([given * 2, given * 3, given + 1]).astype(np.float32))
        made.run({"x": place[:4]}, out=[place[:4], place[4:8], place[8:]])  # an input may be


if __name__ == "__main__":
    unittest.main()
