"""Weights of samples and of classes, and labels that are ignored."""

import pathlib
import tempfile
import unittest

import numpy as np
import testing

import arenite
import arenite.functional as F
from arenite import nn, optim

rng = np.random.default_rng(5)
X = rng.standard_normal((40, 6)).astype(np.float32)
Y = rng.integers(0, 3, 40).astype(np.int32)
W = rng.uniform(0, 2, 40).astype(np.float32)


def module():
    made = nn.Linear(6, 3)
    made.weight.data = np.linspace(-1, 1, 18, dtype=np.float32).reshape(6, 3)
    made.bias.data = np.zeros(3, np.float32)
    return made


def trainer(loss="cross_entropy", made=None, **others):
    return arenite.Trainer(made or module(), loss, optim.SGD(lr=0.1), batch=16, **others)


def losses(made, x, y):
    """Of each sample, and whether it is right."""
    logits = x @ made.weight.data.astype(float) + made.bias.data
    logits -= logits.max(axis=1, keepdims=True)
    found = np.log(np.exp(logits).sum(axis=1)) - logits[range(len(y)), np.maximum(y, 0)]
    return found, logits.argmax(axis=1) == y


class OfSamples(testing.TestCase):
    def test_a_loss_is_the_mean_of_losses_times_weights(self):
        each, right = losses(module(), X, Y)
        for batch in (40, 16):  # several, the last one smaller
            made = arenite.Trainer(module(), "cross_entropy", optim.SGD(lr=0.1), batch=batch)
            found = made.evaluate(X, Y, sample_weight=W)
            self.assertAlmostEqual(found.loss, float((each * W).mean()), 5)
            self.assertAlmostEqual(found.accuracy, right.mean(), 6)
            plain = made.evaluate(X, Y)  # ones, from then on
            self.assertAlmostEqual(plain.loss, float(each.mean()), 5)

    def test_samples_of_weight_0_are_not_there(self):
        weights = np.where(np.arange(40) % 4 == 0, 0, 1).astype(np.float32)
        labels = np.where(weights == 0, 99, Y)  # of no class
        found = trainer(lambda z, y, sample_weight: F.weighted_cross_entropy(z, y, sample_weight=sample_weight))
        told = found.evaluate(X, labels, sample_weight=weights)
        each, right = losses(module(), X, Y)
        self.assertAlmostEqual(told.loss, float((each * weights).mean()), 5)
        self.assertAlmostEqual(told.accuracy, right[weights == 1].mean(), 6)

    def test_a_step_takes_the_gradient_of_that(self):
        weighted, twice = module(), module()
        # A weight of 2 is a sample that is there twice; a mean over half as many is half as much.
        first = trainer(made=weighted)
        first.step(X[:8], Y[:8], sample_weight=np.repeat([2, 1], 4))
        x, y = np.concatenate([X[:4], X[:8]]), np.concatenate([Y[:4], Y[:8]])
        second = arenite.Trainer(twice, "cross_entropy", optim.SGD(lr=0.15), batch=12)
        second.step(x, y)
        self.assertClose(weighted.weight.data, twice.weight.data, 1e-5)

    def test_ones_change_nothing(self):
        with_ones, without = module(), module()
        a = trainer(made=with_ones).fit(X, Y, epochs=3, sample_weight=np.ones(40), validation=(X, Y, np.ones(40)))
        b = trainer(made=without).fit(X, Y, epochs=3, validation=(X, Y))
        self.assertEqual([one.loss for one in a], [one.loss for one in b])
        self.assertTrue(np.array_equal(with_ones.weight.data, without.weight.data))

    def test_they_are_cut_in_shards(self):
        found = []
        for shards in (1, 2, 4):
            made = module()
            trainer(made=made, shards=shards).fit(X, Y, epochs=2, sample_weight=W)
            found.append(made.weight.data.copy())
        self.assertClose(found[1], found[0])
        self.assertClose(found[2], found[0])

    def test_losses_of_ones_own(self):
        def absolute(found, wanted, sample_weight):
            return F.mean(F.map("abs($1 - $2) * $3", found, wanted, sample_weight.reshape(-1, 1)))

        target = rng.standard_normal((40, 3)).astype(np.float32)
        difference = X @ module().weight.data - target
        for loss, each in ((absolute, np.abs(difference)), (nn.MSELoss(), difference**2)):
            found = trainer(loss).evaluate(X, target, sample_weight=W)
            self.assertAlmostEqual(found.loss, float((each.mean(axis=1) * W).mean()), 4)

    def test_those_of_a_validation_alone_do(self):
        history = trainer().fit(X, Y, epochs=1, validation=(X, Y, np.zeros(40)))
        self.assertEqual(history[0].validation.loss, 0)
        self.assertGreater(history[0].loss, 0)

    def test_the_first_ones_come_before_a_fit(self):
        made = trainer()

        def evaluate(_):
            made.evaluate(X, Y, sample_weight=W)

        with self.assertRaisesRegex(arenite.InvalidError, "first weights of samples in the middle of a fit"):
            made.fit(X, Y, on_epoch=evaluate)
        made.fit(X, Y, sample_weight=W, on_epoch=evaluate)

    def test_the_text_is_one_for_all_batches(self):
        """So that files have the network, and a single sample may be evaluated where samples meet."""
        network = nn.Sequential(module(), nn.BatchNorm1d(3))
        made = trainer(made=network)
        made.fit(X, Y, sample_weight=W)
        made.evaluate(X[:33], Y[:33], sample_weight=W[:33])
        made.evaluate(X[:1], Y[:1])
        self.assertEqual(made.predict(X[:1]).shape, (1, 3))

    def test_accuracy_is_of_those_that_are_looked_at(self):
        def loss(logits, labels, sample_weight):
            return F.softmax_cross_entropy(logits, labels, weights=sample_weight)

        weights = (np.arange(40) % 3 == 0).astype(np.float32)
        found = trainer(loss).evaluate(X, Y, sample_weight=weights)
        each, right = losses(module(), X, Y)
        self.assertAlmostEqual(found.loss, float((each * weights).mean()), 5)
        self.assertAlmostEqual(found.accuracy, right[weights == 1].mean(), 6)

    def test_they_are_kept_in_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "run.safetensors"
            one, other = module(), module()
            first = trainer(made=one)
            first.fit(X, Y, epochs=1, sample_weight=W)
            first.save(path)
            first.fit(X, Y, epochs=1, sample_weight=W)
            second = trainer(made=other)
            second.load(path)
            second.fit(X, Y, epochs=1, sample_weight=W)
            self.assertTrue(np.array_equal(one.weight.data, other.weight.data))

    def test_others_are_refused(self):
        mean = lambda z, y: F.mean(z * z)  # noqa: E731
        for action, words in (
            (lambda: trainer().fit(X, Y, sample_weight=W[:3]), r"sample_weight of shape \[3\]; expected \[40\], a number"),
            (lambda: trainer().fit(X, Y, sample_weight=1.0), r"sample_weight of shape \[\]; expected"),
            (lambda: trainer().fit(X, Y, sample_weight=["a"] * 40), "a list; expected an array, a tensor or numbers"),
            (lambda: trainer().step(X[:2], Y[:2], [1, np.nan]), "that are not finite"),
            (lambda: trainer(mean).fit(X, X[:, :3], sample_weight=W), "sample_weight for a loss that takes none"),
            (lambda: trainer().fit(X, Y, validation=(X, Y, W[:2])), r"expected \[40\]"),
        ):
            with self.assertRaisesRegex(arenite.Error, words):
                action()


class OfClasses(testing.TestCase):
    weight = np.array([0.5, 3, 1], np.float32)

    def test_a_mean_is_over_weights(self):
        """As in PyTorch."""
        each, right = losses(module(), X, Y)
        own = self.weight[Y]
        found = trainer(nn.CrossEntropyLoss(weight=self.weight)).evaluate(X, Y)
        self.assertAlmostEqual(found.loss, float((each * own).sum() / own.sum()), 5)
        self.assertAlmostEqual(found.accuracy, right.mean(), 6)
        both = trainer(nn.CrossEntropyLoss(weight=self.weight)).evaluate(X, Y, sample_weight=W)
        self.assertAlmostEqual(both.loss, float((each * own * W).sum() / own.sum()), 5)

    def test_ignored_labels_do_not_count(self):
        labels = np.where(np.arange(40) % 3 == 0, -100, Y).astype(np.int32)
        there = labels >= 0
        each, right = losses(module(), X, labels)
        for weight in (None, self.weight):
            own = np.ones(40) if weight is None else weight[np.maximum(labels, 0)]
            own = own * there
            found = trainer(nn.CrossEntropyLoss(weight, ignore_index=-100)).evaluate(X, labels)
            self.assertAlmostEqual(found.loss, float((each * own).sum() / own.sum()), 5)
            self.assertAlmostEqual(found.accuracy, right[there].mean(), 6)
        with self.assertRaisesRegex(arenite.Error, "label -100 of sample 0; expected 0 to 2"):
            trainer().evaluate(X, labels)

    def test_a_step_takes_the_gradient_of_that(self):
        made = module()
        loss = nn.CrossEntropyLoss(weight=self.weight)
        trainer(loss, made).step(X[:16], Y[:16])
        own = self.weight[Y[:16]].astype(float)
        logits = X[:16] @ module().weight.data.astype(float)
        probability = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        slope = (probability - np.eye(3)[Y[:16]]) * (own / own.sum())[:, None]
        wanted = module().weight.data - 0.1 * X[:16].T @ slope
        self.assertClose(made.weight.data, wanted, 1e-5)

    def test_it_trains_in_lanes_but_not_in_shards(self):
        """A mean over weights is of the whole batch."""
        found = []
        for lanes in (1, 2, 4):
            made = module()
            trainer(nn.CrossEntropyLoss(weight=self.weight), made, lanes=lanes).fit(X, Y, epochs=2)
            found.append(made.weight.data.copy())
        self.assertClose(found[1], found[0])
        self.assertClose(found[2], found[0])
        with self.assertRaisesRegex(arenite.Error, "2 shards, where .* waits for all shards'"):
            trainer(nn.CrossEntropyLoss(weight=self.weight), shards=2).fit(X, Y)

    def test_a_batch_of_none_that_counts_adds_nothing(self):
        for ignored in (-100, 0):
            labels = Y.copy()
            labels[:16], labels[39] = ignored, ignored  # a whole batch
            there = labels != ignored
            each, right = losses(module(), X, labels)
            made = trainer(nn.CrossEntropyLoss(ignore_index=ignored))
            found = made.evaluate(X, labels)
            self.assertAlmostEqual(found.loss, float(each[there].mean()), 5)
            self.assertAlmostEqual(found.accuracy, right[there].mean(), 6)
            before = made.module.weight.data.copy()
            self.assertTrue(np.isnan(made.step(X[:16], labels[:16])))  # a mean of nothing
            self.assertArray(made.module.weight.data, before)
            made.fit(X, labels, epochs=2)
        zero = trainer(nn.CrossEntropyLoss(weight=[0, 1, 1])).evaluate(X[Y == 0], Y[Y == 0])
        self.assertTrue(np.isnan(zero.loss))

    def test_labels_of_no_class_are_found(self):
        def loss(logits, labels):
            return F.weighted_cross_entropy(logits, labels, [1, 2, 3])

        for label in (99, -1):
            labels = Y.copy()
            labels[5] = label
            with self.assertRaisesRegex(arenite.Error, f"label {label} of sample 5; expected 0 to 2"):
                trainer(loss).evaluate(X, labels)

    def test_others_are_refused(self):
        for weight in ("abc", {0: 1}, [[1, 2, 3]], [1, np.nan, 2]):
            with self.assertRaises(arenite.Error):
                nn.CrossEntropyLoss(weight=weight)
        with self.assertRaisesRegex(arenite.Error, r"a weight of classes of shape \[2\]; expected \[3\]"):
            trainer(nn.CrossEntropyLoss(weight=[1, 2])).fit(X, Y)


if __name__ == "__main__":
    unittest.main()
