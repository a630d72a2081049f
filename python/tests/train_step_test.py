#!/usr/bin/env python3
"""Gradients, and models that are trained without a trainer."""

import tempfile

import testing
from testing import floats, np

import arenite
import arenite.functional as F
from arenite.optim import SGD


class ByHand(testing.TestCase):
    def test_gradients(self):
        a, b = floats(3, 4), floats(4, 2)
        x, w = arenite.input("x", (3, 4)), arenite.input("w", (4, 2))
        loss = ((x @ w) ** 2).sum()
        found = arenite.compile(
            [loss, *arenite.grad(loss, wrt=[x, w]), arenite.grad(loss, wrt=w) * 2]
        )(x=a, w=b)
        for one, wanted in zip(
            found,
            [((a @ b) ** 2).sum().reshape(1), 2 * a @ b @ b.T, 2 * a.T @ a @ b, 4 * a.T @ a @ b],
        ):
            self.assertClose(one, wanted, 1e-4)
        with self.assertRaisesRegex(
            arenite.InvalidError, "a gradient by 'z', which the loss does not depend on"
        ):
            arenite.compile(arenite.grad(loss, wrt=arenite.input("z", (1,))))

    def test_a_model_trains_where_it_was_told_how(self):
        x, w = arenite.input("x", (4, 2)), arenite.parameter(
            np.array([[1], [2]], np.float32), name="w"
        )
        y = x @ w
        loss = (y * y).mean()
        model = arenite.compile({"loss": loss, "y": y}, updates=[arenite.train(loss, SGD(0.1))])
        self.assertTrue(model.trainable)
        a, value = floats(4, 2), np.array([[1.0], [2.0]])
        for _ in range(3):
            found = model.train_step(x=a)
            self.assertClose(found["loss"], [((a @ value) ** 2).mean()])
            value = value - 0.1 * 2 * a.T @ (a @ value) / 4
            self.assertClose(model.state["w"], value)
        self.assertClose(model(a)["y"], a @ value)
        self.assertClose(model.state["w"], value)
        model.state = {"w": np.zeros((2, 1), np.float32), "learning_rate": [0.5]}
        self.assertEqual(model(a)["loss"].tolist(), [0])
        with tempfile.TemporaryDirectory() as folder:
            model.save(f"{folder}/state")
            model.state["w"] = np.ones((2, 1), np.float32)
            model.load(f"{folder}/state")
        self.assertEqual(model.state["w"].tolist(), [[0], [0]])
        self.assertEqual(dict(model.state).keys(), {"w", "learning_rate"})
        with self.raises(
            arenite.InvalidError,
            "a model whose script has no training; expected one with a train statement",
        ):
            arenite.compile(y).train_step(a)

    def test_several_batches_update_by_their_mean(self):
        def compiled(rows, most, **options):
            x = arenite.input("x", (rows, 2))
            w = arenite.parameter(np.array([[1], [2]], np.float32), name="w")
            loss = ((x @ w) ** 2 / rows).sum()
            step = arenite.train(loss, arenite.optim.Adam(0.1), accumulate=most)
            return arenite.compile(loss, updates=[step], **options)

        parts, whole = compiled(4, 4), compiled(16, 1, shards=4)
        self.assertEqual(list(parts.entries), [])
        for step in range(3):
            a = floats(16, 2)
            losses = [parts.accumulate(a[i : i + 4])[0] for i in (0, 4, 8)]
            with self.assertRefused("one more batch to accumulate, behind 3; expected an update"):
                parts.accumulate(a[:4])
            self.assertEqual(parts.state["accumulated"].tolist(), [3, 4])
            losses.append(parts.train_step(a[12:])[0])
            self.assertClose(np.mean(losses), whole.train_step(a)[0])
            self.assertEqual(parts.state["w"].tobytes(), whole.state["w"].tobytes())
        self.assertEqual(parts.state["accumulated"].tolist(), [0, 4])
        with self.assertRefused("accumulate 0; expected at least 1"):
            compiled(4, 0)
        with self.assertRefused("a batch to accumulate, where each has an update of its own"):
            compiled(4, 1).accumulate(a[:4])

    def test_means_of_distances_have_shards(self):
        def trained(**options):
            x, target = arenite.input("x", (32, 40)), arenite.input("target", (32, 8))
            first = np.random.default_rng(3).standard_normal((40, 8)).astype(np.float32)
            w = arenite.parameter(first, name="w")
            loss = ((x @ w - target) ** 2).mean()
            model = arenite.compile(loss, updates=[arenite.train(loss, SGD(0.1))], **options)
            rng = np.random.default_rng(4)
            given = [rng.standard_normal(s).astype(np.float32) for s in ((32, 40), (32, 8))]
            return model.train_step(*given), model.state["w"]

        loss, weights = trained()
        for shards in (2, 4):
            found, moved = trained(shards=shards)
            self.assertClose(found, loss)
            self.assertClose(moved, weights)

    def test_an_optimizers_step_by_hand(self):
        w, rate = arenite.parameter([1], name="w"), arenite.input("rate", (1,))
        velocity = arenite.state((1,), name="v")
        model = arenite.compile(w, updates=[F.sgd(w, [2.0], rate, velocity, momentum=0.5)])
        self.assertEqual([model(rate=[0.5]).tolist() for _ in range(2)], [[-1], [-2.5]])

    def descent(self, initial, a, targets, update, states):
        """Weights after each of some steps towards a · w = targets, by an optimizer's update of
        (w, gradient, *states), all arrays or all tensors: a list of their new values.
        """
        w = arenite.parameter(initial, name="w")
        kept = [arenite.state(shape, name=f"state{i}") for i, shape in enumerate(states)]
        x, y = arenite.input("x", a.shape), arenite.input("y", targets.shape)
        loss = ((x @ w - y) ** 2).mean()
        changed = update(w, arenite.grad(loss, wrt=w), *kept)
        model = arenite.compile(
            loss, updates=[F.assign(old, new) for old, new in zip([w, *kept], changed)]
        )
        for _ in range(5):
            model(x=a, y=targets)
            yield model.state["w"].copy()

    def test_optimizers_that_are_expressions(self):
        a, targets, initial = floats(8, 3), floats(8, 2), floats(3, 2)
        rate, first, second, least = 0.01, 0.9, 0.999, 1e-8

        def adam(w, gradient, m, v, steps):
            return F.map(
                f"""m = {first} * $3 + (1 - {first}) * $2;
                    v = {second} * $4 + (1 - {second}) * $2 * $2;
                    by_m = 1 - pow({first}, $5 + 1); by_v = 1 - pow({second}, $5 + 1);
                    yield $1 - {rate} * (m / by_m) / (sqrt(v / by_v) + {least}), m, v;""",
                *(w, gradient, m, v, steps),
            ) + [steps + 1]

        def rmsprop(w, gradient, v):
            return F.map(
                f"""v = 0.99 * $3 + 0.01 * $2 * $2;
                    yield $1 - {rate} * $2 / (sqrt(v) + {least}), v;""",
                *(w, gradient, v),
            )

        w, m, v = initial.astype(np.float64), 0, 0
        found = self.descent(initial, a, targets, adam, [(3, 2), (3, 2), (1,)])
        for steps, one in enumerate(found, 1):
            gradient = 2 * a.T @ (a @ w - targets) / targets.size
            m = first * m + (1 - first) * gradient
            v = second * v + (1 - second) * gradient**2
            size = np.sqrt(v / (1 - second**steps)) + least
            w = w - rate * m / (1 - first**steps) / size
            self.assertClose(one, w)
        w, v = initial.astype(np.float64), 0
        for one in self.descent(initial, a, targets, rmsprop, [(3, 2)]):
            gradient = 2 * a.T @ (a @ w - targets) / targets.size
            v = 0.99 * v + 0.01 * gradient**2
            w = w - rate * gradient / (np.sqrt(v) + least)
            self.assertClose(one, w)

    def test_several_weights_by_hand(self):
        w, b = arenite.parameter((2,), name="w"), arenite.parameter((1,), name="b")
        rate, rows = arenite.input("rate", (1,)), arenite.input("rows", (4, 2))
        step = F.multi_sgd(rate, [(w, rows), (b, [2.0])], weight_decay=0.5)
        model = arenite.compile([w, b], updates=[step])
        for values in ([[-2, -2], [-1]], [[-3.5, -3.5], [-1.75]]):
            found = model(rate=[0.5], rows=np.ones((4, 2), np.float32))
            self.assertEqual([one.tolist() for one in found], values)
        v = arenite.state((2,), name="v")
        w = arenite.parameter((2,), name="w")
        step = F.multi_sgd(rate, [(w, rows, v)], momentum=0.5)
        model = arenite.compile(w, updates=[step])
        found = [model(rate=[0.5], rows=np.ones((4, 2), np.float32)).tolist() for _ in range(2)]
        self.assertEqual(found, [[-2, -2], [-5, -5]])

    def test_several_weights_that_do_not_fit(self):
        w, v = arenite.parameter((2,), name="w"), arenite.state((2,), name="v")
        rate = arenite.input("rate", (1,))
        for updates, momentum, error in [
            ([], 0, "multi_sgd: no updates; expected at least one (weight, gradient)"),
            ([(w,)], 0, "multi_sgd: an update of 1 tensors; expected (weight, gradient) or "
             "(weight, gradient, velocity)"),
            ([(w, [[1.0], [2.0]])], 0, "multi_sgd: operand 'gradient' (constant) of shape [2, 1]; "
             "expected [2], the shape of 'weight' (w), or that with axes in front, to be summed over"),
            ([(w, [1, 2], v)], 0, "multi_sgd: momentum=0.0 with a velocity; expected no velocity "
             "(hint: leave the operand out: it would only take memory)"),
        ]:  # fmt: skip
            with self.raises(arenite.InvalidError, error):
                F.multi_sgd(rate, updates, momentum=momentum)


if __name__ == "__main__":
    testing.main()
