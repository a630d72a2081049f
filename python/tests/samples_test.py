#!/usr/bin/env python3
"""Samples that trainers take: of any type and number of arrays, and losses of all kinds."""

import testing
from testing import RANDOM, floats, np
from two_layers import NumPySGD, samples, two_layers

import arenite
import arenite.functional as F
from arenite import nn
from arenite.optim import SGD


class Data(testing.TestCase):
    def test_numbers_of_any_type_are_trained_on(self):
        """They become the network's in the library: the same bits as those that are so already."""
        whole = RANDOM.integers(0, 256, (30, 6)).astype(np.uint8)
        y = RANDOM.integers(0, 3, 30)
        bits = {}
        for dtype in "float32", "float64", "uint8", "int8", "int32", "int64", "float16", "uint32", ">i4":
            x = (whole // 4).astype(dtype)
            trainer = arenite.Trainer(two_layers(), optimizer=SGD(1e-3), batch=8)
            trainer.fit(x, y.astype("uint8" if dtype == "uint8" else "int16"), epochs=2)
            trainer.step(x[:5], y[:5])
            bits[dtype] = trainer.predict(x).tobytes()
            self.assertGreater(trainer.evaluate(x, y).loss, 0)
        self.assertEqual(len(set(bits.values())), 1)

    def test_bytes_may_be_scaled(self):
        images, y = RANDOM.integers(0, 256, (30, 6)).astype(np.uint8), RANDOM.integers(0, 3, 30)
        trainers = [arenite.Trainer(two_layers(), optimizer=SGD(0.1), batch=8) for _ in range(2)]
        trainers[0].fit(arenite.scaled(images, 0.25), y, epochs=2)
        trainers[1].fit(images * np.float32(0.25), y, epochs=2)
        given = arenite.scaled(images, 0.25)
        self.assertArray(trainers[0].predict(given), trainers[1].predict(images / np.float32(4)))
        self.assertEqual(trainers[0].evaluate(given, y), trainers[1].evaluate(images / 4.0, y))
        with self.assertRefused("scaled by 0; expected a number that is not 0"):
            arenite.scaled(images, 0)
        with self.assertRefused("scaled numbers for y; expected integers", TypeError):
            trainers[0].fit(images, arenite.scaled(y, 2))

    def test_rows_that_are_not_dense_are_copied(self):
        x, y = floats(12, 40), RANDOM.integers(0, 3, 40)
        trainers = [arenite.Trainer(two_layers(), optimizer=SGD(0.1), batch=8) for _ in range(2)]
        trainers[0].fit(x[::2].T, y[::-1])
        trainers[1].fit(x[::2].T.copy(), y[::-1].copy())
        self.assertArray(trainers[0].predict(x[::2].T), trainers[1].predict(x[::2].T.copy()))

    def test_arrays_may_change_and_go(self):
        """What was borrowed is given back, and what is read is what there is now."""
        trainer, other = (
            arenite.Trainer(two_layers(), optimizer=SGD(0.1), batch=8) for _ in range(2)
        )
        place = np.empty((20, 6), np.float32)
        for round in range(4):
            x, y = samples(20)
            place[:] = x
            trainer.fit(place, y.copy(), seed=round)
            other.fit(x.copy(), y, seed=round)
            self.assertEqual(trainer.evaluate(place, y), other.evaluate(x, y))
            self.assertLess(len(trainer._newest._held), 4)
        self.assertArray(trainer.predict(place), other.predict(place))

    def test_of_several_inputs_and_targets(self):
        class Two(nn.Module):
            def __init__(self):
                rng = np.random.default_rng(2)
                self.sizes, self.places = nn.Linear(3, 8, rng=rng), nn.Linear(2, 8, rng=rng)
                self.last = nn.Linear(8, 1, rng=rng)

            def forward(self, sizes, places):
                return self.last(F.relu(self.sizes(sizes)) + F.relu(self.places(places)))

        def loss(guess, price, weight):
            return (weight * (guess - price) ** 2).mean()

        sizes, places = floats(50, 3), RANDOM.integers(0, 256, (50, 2)).astype(np.uint8)
        price, weight = sizes.sum(1, keepdims=True), np.ones((50, 1), np.float32)
        bits = []
        for inputs, x, y in (
            (None, (sizes, places), (price, weight)),
            (None, {"sizes": sizes, "places": places}, {"price": price, "weight": weight}),
            ([(3,), (2,)], (sizes, places), (price, weight)),
            ({"places": (2,), "sizes": (3,)}, {"sizes": sizes, "places": places}, (price, weight)),
            ([arenite.input("a", (1, 3)), arenite.input("b", (1, 2))], [sizes, places], (price, weight)),
        ):
            trainer = arenite.Trainer(
                Two(), loss, SGD(1e-4), inputs, batch=16,
                metrics={"mae": lambda guess, price, weight: F.map("abs($1 - $2)", guess, price).mean()},
            )
            before = trainer.evaluate(x, y)
            history = trainer.fit(x, y, epochs=5, validation=0.2)
            self.assertLess(history[-1].loss, before.loss)
            guess = trainer.predict(x)
            found = trainer.evaluate(x, y)
            self.assertAlmostEqual(found.metrics["mae"], np.abs(guess - price).mean(), places=4)
            self.assertIn("mae", history[-1].validation.metrics)
            bits.append(guess.tobytes())
        self.assertEqual(len(set(bits)), 1)
        for given, words in (
            (sizes, "x that is one array; expected a tuple of 2 arrays"),
            ((sizes, places, sizes), "x of 3 arrays; expected 2: a, b"),
            ({"sizes": sizes}, "x that is a dict of sizes; expected a tuple of 2 arrays"),
        ):
            with self.assertRefused(words, TypeError):
                trainer.predict(given)

    def test_integers_that_a_network_takes(self):
        """Tokens of a sequence, one-hot by a formula."""

        class Sequence(nn.Module):
            def __init__(self):
                self.dense = nn.Linear(8 * 5, 5, rng=np.random.default_rng(0))

            def forward(self, tokens):
                numbers = arenite.constant(np.arange(5, dtype=np.int32))
                hot = F.map("float32($1 == $2)", tokens.reshape((-1, 8, 1)), numbers)
                return self.dense(hot.flatten())

        tokens = RANDOM.integers(0, 5, (60, 8))
        for dtype in "int64", "uint8":
            trainer = arenite.Trainer(Sequence(), optimizer=SGD(0.5), batch=20)
            history = trainer.fit(tokens.astype(dtype), tokens[:, 3], epochs=30)
            self.assertEqual(history[-1].accuracy, 1)
        with self.assertRefused("float32 for x; expected integers", TypeError):
            trainer.predict(tokens.astype(np.float32))

    def test_several_labels_with_logits_and_an_input_as_its_target(self):
        x = floats(64, 6)
        labels = (x[:, :3] > 0).astype(np.uint8)

        def with_logits(z, y):
            return F.map("max($1, 0) - $1 * $2 + log1p(exp(-abs($1)))", z, y).mean()

        trainer = arenite.Trainer(two_layers(), with_logits, SGD(0.5), batch=16)
        before = trainer.evaluate(x, labels).loss
        self.assertLess(trainer.fit(x, labels, epochs=30)[-1].loss, before / 2)
        autoencoder = nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 6))
        trainer = arenite.Trainer(autoencoder, nn.MSELoss(), SGD(0.1), batch=16)
        before = trainer.evaluate(x, x).loss
        self.assertLess(trainer.fit(x, x, epochs=30)[-1].loss, before)

    def test_two_losses_in_turn(self):
        """Each trains what the other leaves, and what both keep is there for both."""
        first, second = nn.Linear(6, 4), nn.Linear(4, 6)
        whole = nn.Sequential(first, second)
        fits = arenite.Trainer(whole, nn.MSELoss(), arenite.optim.Adam(0.01), batch=16)
        small = arenite.Trainer(first, lambda z, y: (z**2).mean() * 0.01, SGD(0.1), batch=16)
        x = floats(16, 6)
        before = fits.evaluate(x, x).loss
        for _ in range(100):
            fits.step(x, x)
            small.step(x, x)
        self.assertLess(fits.evaluate(x, x).loss, before)
        self.assertArray(fits.state["0.weight"], first.weight.data)

    def test_parameters_may_be_frozen_and_freed(self):
        network = two_layers()
        trainer = arenite.Trainer(network, optimizer=SGD(0.1, momentum=0.9), batch=8)
        reference = NumPySGD(network, 0.1, 0.9)
        for round in range(6):
            network[0].requires_grad_(round % 2 == 0)
            kept = [value.copy() for value in reference.values + reference.velocities]
            x, y = samples(8)
            trainer.step(x, y), reference.step(x, y)
            if round % 2:
                for i in 0, 1:
                    reference.values[i], reference.velocities[i] = kept[i], kept[4 + i]
            for found, wanted in zip(network.state_dict().values(), reference.values):
                self.assertClose(found, wanted, 1e-5)
        self.assertEqual(len(trainer._engines), 2)

    def test_what_is_frozen_as_a_whole_is_evaluated(self):
        network = two_layers()
        x, y = samples(20)
        wanted = arenite.Trainer(network, optimizer=SGD(0.1), batch=8).evaluate(x, y)
        network.requires_grad_(False)
        trainer = arenite.Trainer(network, optimizer=SGD(0.1), batch=8)
        self.assertEqual(trainer.evaluate(x, y), wanted)
        with self.assertRefused("train: no parameters"):
            trainer.step(x[:8], y[:8])
        network[2].requires_grad_(True)
        self.assertLess(trainer.fit(x, y, epochs=20)[-1].loss, wanted.loss)
        only = arenite.Trainer(network, F.cross_entropy, SGD(0.1), batch=8)
        network.requires_grad_(False)
        self.assertEqual(only.predict((x,)).tolist(), trainer.predict(x).tolist())


if __name__ == "__main__":
    testing.main()
