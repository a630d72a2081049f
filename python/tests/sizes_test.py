#!/usr/bin/env python3
"""Sizes that only a run decides."""

import copy
import pickle

import testing
from testing import floats, np

import arenite
import arenite.functional as F
from arenite import nn

ROWS = arenite.size("rows", 6)


def names(tensor):
    return [getattr(size, "name", size) for size in tensor.shape]


def at_each_size(case, build, columns=4):
    """`build` of an input [rows, columns], at every size: as of an input that has it."""
    for rows in range(1, 7):
        array = floats(rows, columns)
        open_size = build(arenite.input("x", (ROWS, columns)), ROWS)
        known = build(arenite.input("x", (rows, columns)), rows)
        found = arenite.compile(open_size, sizes={"rows": rows})(x=array)
        case.assertEqual(found.tolist(), arenite.compile(known)(x=array).tolist(), rows)


class Sizes(testing.TestCase):
    def test_are_integers(self):
        self.assertEqual(ROWS, 6)
        self.assertEqual(repr(ROWS), "rows<=6")
        self.assertEqual((ROWS.name, arenite.input("x", (ROWS, 2)).shape), ("rows", (6, 2)))
        self.assertIs(type(ROWS * 2), int)
        for same in copy.deepcopy(ROWS), pickle.loads(pickle.dumps(ROWS)):
            self.assertEqual((same, same.name, same.other), (6, "rows", ROWS.other))
        self.assertEqual(
            repr(arenite.input("x", (ROWS, 2))),
            "Tensor('x', float32 [rows<=6, 2], by InputTensor)",
        )

    def test_are_kept_by_scripts(self):
        x = arenite.input("x", (ROWS, 4))
        y = x.reshape(ROWS, 2, 2)[1:ROWS]
        logits = F.softmax_cross_entropy(x, arenite.input("label", (ROWS,), "int32"), divisor=ROWS)
        full = F.full((ROWS, 4), ROWS)
        self.assertEqual(
            arenite.to_script(y, logits.loss, full),
            """\
$1 = InputTensor(x, float32, [rows<=6, 4]);
$2 = InputTensor(label, int32, [rows<=6]);
$3 = reshape($1, shape=[rows, 2, 2]);
$4 = slice($3, begin=1, end=rows);
$5, $6, $7 = softmax_cross_entropy($1, $2, divisor=rows);
$8 = full(shape=[rows, 4], value=rows, type="float32");
result = $4, $5, $8;
""",
        )

    def test_are_found_again_in_results(self):
        columns = arenite.size("columns", 6)
        x = arenite.input("x", (ROWS, columns, 2))
        self.assertEqual(names(x.relu()), ["rows", "columns", 2])
        self.assertEqual(names(x.permute(1, 0, 2)), ["columns", "rows", 2])
        self.assertEqual(names(x.reshape(-1, columns, 2)), ["rows", "columns", 2])
        self.assertEqual(names(x.reshape(2, ROWS, columns)), [2, "rows", "columns"])
        self.assertEqual(names(x.flatten()), ["rows", ""])
        self.assertEqual(names(x.flatten().relu()), ["rows", ""])
        self.assertEqual(names(x.reshape(-1).reshape(ROWS, columns, 2)), ["rows", "columns", 2])
        self.assertEqual(names(x[:, 0]), ["rows", 2])
        self.assertEqual(names(x[:ROWS, :, 1]), ["rows", "columns"])
        self.assertEqual(names(x + floats(1, 1, 2)), ["rows", "columns", 2])
        self.assertEqual(names(floats(6, 6, 2) * x), ["", "", ""])
        self.assertEqual(names(arenite.constant(floats(6, 2))[:ROWS] + 1), ["rows", 2])
        self.assertEqual(names(x.sum(2)), ["rows", "columns"])
        self.assertEqual(names(x.reshape(6, 6, 2).relu()), ["", "", ""])
        loop = arenite.loop(2, lambda trip, carried: carried.relu(), x, max_trips=3)
        self.assertEqual(names(loop), ["rows", "columns", 2])

    def test_models_are_those_of_that_size(self):
        weight = floats(4, 3)
        at_each_size(self, lambda x, rows: (x @ weight).relu())
        at_each_size(self, lambda x, rows: x.reshape(rows, 2, 2).permute(1, 0, 2))
        at_each_size(self, lambda x, rows: x.reshape(-1, 2)[:, 1])
        at_each_size(self, lambda x, rows: x.reshape(-1).reshape(rows, 2, 2).mean((1, 2)))
        at_each_size(self, lambda x, rows: x * rows + rows)
        at_each_size(self, lambda x, rows: x.sum(0, keepdim=True) + x)
        at_each_size(self, lambda x, rows: F.full((rows, 4), 2.0) - x)
        at_each_size(self, lambda x, rows: arenite.loop(rows, lambda i, v: v + 1, x, max_trips=9))
        at_each_size(self, lambda x, rows: weight.T[:2] @ x.T @ x)
        at_each_size(self, lambda x, rows: arenite.constant(floats(9, 2) * 0 + 1)[:rows].sum() * x)

    def test_of_means_and_divisions(self):
        for build in (
            lambda x: x.mean(),
            lambda x: x.relu().mean(0),
            lambda x: x.mean((0, 1), keepdim=True),
            lambda x: (x * x).sum() / x.shape[0],
        ):
            whole = arenite.compile(build(arenite.input("x", (ROWS, 4))))
            for rows in range(1, 7):
                array = floats(rows, 4)
                known = arenite.compile(build(arenite.input("x", (rows, 4))))
                np.testing.assert_allclose(whole(array), known(array), rtol=1e-6, atol=1e-7)

    def test_networks(self):
        arenite.manual_seed(0)
        network = nn.Sequential(
            nn.Conv2d(1, 2, 3, padding="same"), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)
        )
        at_each_size(self, lambda x, rows: network(x.reshape(rows, 2, 2, 1)))
        linear = nn.Linear(2, 3)
        at_each_size(self, lambda x, rows: linear(x.reshape(rows, 2, 2)))

    def test_training(self):
        def model(rows, **options):
            weight = arenite.parameter(np.ones((4, 3), np.float32), name="weight")
            logits = arenite.input("x", (rows, 4)) @ weight
            loss = F.cross_entropy(logits, arenite.input("label", (rows,), "int32"))
            update = arenite.train(loss, arenite.optim.SGD(lr=0.5))
            return arenite.compile(loss, updates=[update], **options)

        for rows in range(1, 7):
            batch = {"x": floats(rows, 4), "label": np.arange(rows, dtype=np.int32) % 3}
            given, known = model(ROWS, sizes={"rows": rows}), model(rows)
            for _ in range(3):
                self.assertEqual(given.train_step(**batch), known.train_step(**batch))
            self.assertEqual(given.state["weight"].tolist(), known.state["weight"].tolist())

    def test_of_scripts(self):
        text = """
            $1 = InputTensor(x, float32, [rows<=64, 784]);
            $2 = ConstantTensor(weight, float32, [28, 2]);
            $3 = reshape($1, [rows, 28, 28]);
            $4 = reshape($3, [-1, 28]);
            $5 = matmul($4, $2);
            $6 = reshape($5, shape=[rows, 28, 2]);
            result = $6;
        """
        weight = floats(28, 2)
        for rows in 1, 40, 64:
            array = floats(rows, 784)
            model = arenite.compile_script(text, {"weight": weight}, sizes={"rows": rows})
            self.assertEqual(model.inputs["x"].shape, (rows, 784))
            self.assertClose(model(array), array.reshape(rows, 28, 28) @ weight, 1e-4)


class Runs(testing.TestCase):
    """Of a model whose sizes are those of its arrays."""

    def setUp(self):
        self.weight = floats(4, 3)
        x, y = arenite.input("x", (ROWS, 4)), arenite.input("y", (ROWS, 3))
        self.model = arenite.compile({"out": (x @ self.weight + y).relu(), "x": x})

    def run_at(self, rows):
        x, y = floats(rows, 4), floats(rows, 3)
        found = self.model(x, y)
        self.assertClose(found["out"], np.maximum(x @ self.weight + y, 0))
        self.assertEqual(found["x"].tolist(), x.tolist())

    def test_have_the_sizes_of_their_arrays(self):
        self.assertEqual(self.model.sizes, {"rows": 6})
        self.assertEqual(names(self.model.inputs["x"]), ["rows", 4])
        self.assertEqual(names(self.model.outputs[0]), ["rows", 3])
        self.assertIn("x: float32 [rows<=6, 4]", repr(self.model))
        for rows in 6, 1, 4, 4, 2, 5, 3, 1, 6:
            self.run_at(rows)
        self.model.prepare(rows=2)
        self.assertEqual(
            {(one.entry, *one.sizes.values()) for one in self.model.programs},
            {("evaluate", rows) for rows in (6, 5, 3, 1, 2)},
        )
        most = self.model.programs[0].arena_bytes
        self.assertTrue(all(one.arena_bytes <= most for one in self.model.programs))

    def test_write_into_arrays_of_that_size(self):
        x, y = floats(2, 4), floats(2, 3)
        out = [np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32)]
        self.model.run({"x": x, "y": y}, out=out)
        self.assertClose(out[0], np.maximum(x @ self.weight + y, 0))
        with self.raises(
            ValueError,
            "float32 [6, 3] for output 'out'; expected a dense, writeable array of float32 [2, 3]",
        ):
            self.model.run({"x": x, "y": y}, out=[np.zeros((6, 3), np.float32), out[1]])

    def test_refuse_arrays_that_do_not_fit(self):
        for x, y, said in [
            ((7, 4), (7, 3), "an array of shape [7, 4] for input 'x'; expected [rows<=6, 4]"),
            ((0, 4), (0, 3), "an array of shape [0, 4] for input 'x'; expected [rows<=6, 4]"),
            ((4,), (4, 3), "an array of shape [4] for input 'x'; expected [rows<=6, 4]"),
            ((2, 5), (2, 3), "an array of shape [2, 5] for input 'x'; expected [2, 4]"),
            ((2, 4), (3, 3), "rows=3 in input 'y', and rows=2 in input 'x'; expected one size"),
        ]:
            with self.raises(ValueError, said):
                self.model(np.zeros(x, np.float32), np.zeros(y, np.float32))
        with self.raises(ValueError, "size rows=7; expected 1 to 6, its upper bound"):
            self.model.prepare(rows=7)
        with self.raises(TypeError, "size 'rows' 2.5; expected an integer"):
            self.model.prepare(rows=2.5)
        with self.raises(ValueError, "unknown size 'row'; expected one of rows (hint: did you mean 'rows'?)"):
            self.model.prepare(row=2)
        self.run_at(3)

    def test_with_others_fixed(self):
        x = arenite.input("x", (ROWS, arenite.size("columns", 5)))
        model = arenite.compile(x.sum(1), sizes={"columns": 3})
        self.assertEqual(model.sizes, {"rows": 6})
        self.assertEqual(model(np.ones((2, 3), np.float32)).tolist(), [3, 3])

    def test_train(self):
        def model(rows):
            weight = arenite.parameter(np.ones((4, 3), np.float32), name="weight")
            logits = arenite.input("x", (rows, 4)) @ weight
            loss = F.cross_entropy(logits, arenite.input("label", (rows,), "int32"))
            update = arenite.train(loss, arenite.optim.Adam(lr=0.5))
            return arenite.compile(loss, updates=[update])

        whole = model(ROWS)
        for rows in 2, 6, 3, 1, 5, 2, 4, 6:
            known = model(rows)
            for name in known.state:
                known.state[name] = whole.state[name]
            batch = {"x": floats(rows, 4), "label": np.arange(rows, dtype=np.int32) % 3}
            self.assertEqual(whole.train_step(**batch), known.train_step(**batch))
            for name in known.state:
                self.assertEqual(whole.state[name].tolist(), known.state[name].tolist(), name)


class Refusals(testing.TestCase):
    def test_of_sizes(self):
        letters = "expected a name of letters, digits, '_' and '.'"
        for wrong, kind, said in [
            (("a b", 3), ValueError, f"a size named 'a b'; {letters}"),
            (("inf", 3), ValueError, f"a size named 'inf'; {letters}"),
            ((3, 3), TypeError, "a size named 3; expected a text"),
            (("n", 0), ValueError, "size 'n': bound 0; expected at least 1"),
            (("n", 2.5), TypeError, "size 'n': bound 2.5; expected an integer"),
        ]:
            with self.raises(kind, said):
                arenite.size(*wrong)
        with self.raises(
            ValueError, "two sizes named 'rows', of at most 6 and 5; expected one bound"
        ):
            arenite.input("x", (ROWS,)) + arenite.input("y", (arenite.size("rows", 5),))

    def test_where_the_bound_would_go_unnoticed(self):
        x = arenite.input("x", (ROWS, 4))
        named, unnamed = (
            f" {what}, which only a run decides; expected a number (hint: int(…) is its bound)"
            for what in ("the size 'rows'", "a size")
        )
        for what, wrong in [
            ("a Tensor less", lambda: x - ROWS),
            ("a Tensor to the power of", lambda: x**ROWS),
            ("a buffer with", lambda: arenite.buffer((ROWS, 4))),
            ("a parameter with", lambda: arenite.parameter((ROWS, 4))),
        ]:
            with self.raises(ValueError, what + named):
                wrong()
        with self.raises(ValueError, "mean: an axis of" + unnamed):
            x.reshape(-1).mean()
        with self.raises(ValueError, "mean: an axis of" + unnamed):
            x.reshape(-1, 8).relu().mean(0)  # of an even number of rows
        with self.raises(ValueError, "full: a shape with" + unnamed):
            F.zeros(x.reshape(-1).shape)

    def test_of_compiling(self):
        x = arenite.input("x", (ROWS, 4))
        for sizes, said in [
            ({"rows": 7}, "size rows=7; expected 1 to 6, its upper bound"),
            ({"rows": 0}, "size rows=0; expected 1 to 6, its upper bound"),
            ({"row": 2}, "unknown size 'row'; expected one of rows (hint: did you mean 'rows'?)"),
        ]:
            with self.raises(ValueError, said):
                arenite.compile(x.relu(), sizes=sizes)
        with self.raises(TypeError, "size 'rows' 2.5; expected an integer"):
            arenite.compile(x.relu(), sizes={"rows": 2.5})
        with self.raises(TypeError, "sizes 3; expected them by name, as {\"rows\": 40}"):
            arenite.compile(x.relu(), sizes=3)
        with self.assertRaisesRegex(ValueError, "an attribute that holds a number for a named"):
            arenite.compile(x.reshape(6, 2, 2), sizes={"rows": 2})
        at_bound = arenite.compile(x.reshape(6, 2, 2), sizes={"rows": 6})
        self.assertEqual(at_bound.outputs[0].shape, (6, 2, 2))
        weight = arenite.parameter((4, 1))
        slope = arenite.grad((x @ weight).sum(), wrt=weight)
        with self.assertRaisesRegex(ValueError, "expected sizes given before gradients are made"):
            arenite.compile(slope, sizes={"rows": 2})
        self.assertEqual(arenite.compile(slope, sizes={"rows": 6})(floats(6, 4)).shape, (4, 1))

    def test_of_reshape(self):
        x = arenite.input("x", (ROWS, 4))
        for shape, said in [
            ((-1, -1), "shape=[-1, -1] with 2 sizes of -1; expected at most one"),
            (
                (ROWS, -1, 3),
                "shape=[6, -1, 3] for 24 elements of [6, 4]; expected known sizes whose product "
                "divides the number of elements",
            ),
        ]:
            with self.raises(ValueError, "reshape: " + said):
                x.reshape(*shape)
        with self.raises(
            ValueError,
            "reshape: shape=[0, -1], where another size is 0; expected no -1 there, as any size "
            "has 0 elements",
        ):
            arenite.input("none", (0, 4)).reshape(0, -1)


if __name__ == "__main__":
    testing.main()
