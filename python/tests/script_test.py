#!/usr/bin/env python3
"""The scripts that tensors become: names, deep graphs, blocks."""

import testing
from testing import floats, np, run

import arenite
import arenite.functional as F


class Scripts(testing.TestCase):
    def test_what_is_printed(self):
        x = arenite.input("x", (2, 4))
        y = F.dense(x, arenite.constant(np.ones((4, 2), np.float32), name="a weight")).relu()
        table = arenite.buffer((8, 2))
        self.assertEqual(
            arenite.to_script(y[1:], F.sliced_softmax(table, 1)),
            """\
$1 = InputTensor(x, float32, [2, 4]);
$2 = ConstantTensor("a weight", float32, [4, 2]);
$3 = BufferTensor(buffer_0, float32, [8, 2]);
$4 = dense($1, $2);
$5 = relu($4);
$6 = slice($5, begin=1, end=2);
$7 = sliced_softmax($3, prefix=1);
result = $6, $7;
""",
        )

    def test_names_that_need_quotes(self):
        for name in [
            "a b",
            'a"b',
            '"',
            "a#b",
            "a(b",
            "a\nb",
            "a\\b",
            "Ünïcode",
            "layers.0/w:1",
            "a\x7f",
            "$1",
            " ",
        ]:
            x = arenite.input(name, 1)
            with self.subTest(name):
                model = arenite.compile({name: x + 1})
                self.assertEqual(list(model.inputs), [name])
                self.assertEqual(model(**{name: [1.0]})[name].tolist(), [2])

    def test_names_are_made_up_around_those_that_are_taken(self):
        a, b = arenite.constant([1.0], name="constant_0"), arenite.constant([2.0])
        w, v = arenite.parameter([0]), arenite.parameter([0])
        script = arenite.script.script_of(
            [b + a + w + v], suggested={w.node: "weight", v.node: "weight"}
        ).text
        for name in ("constant_0", "constant_1", "weight", "weight_2"):
            self.assertIn(f"Tensor({name}, ", script)

    def test_chains_of_ten_thousand(self):
        x = arenite.input("x", (4,))
        y = x
        for _ in range(10_000):
            y = y + 1
        self.assertEqual(run(y, x=[0, 1, 2, 3]).tolist(), [10_000, 10_001, 10_002, 10_003])
        del y  # nodes are freed one by one, not within each other

    def test_whoever_takes_the_same_path_twice_computes_it_once(self):
        y = arenite.input("x", (1,))
        for _ in range(60):
            y = y + y
        self.assertEqual(arenite.to_script(y).count("add("), 60)
        self.assertEqual(run(y, x=[1.0]).tolist(), [2.0**60])


class Blocks(testing.TestCase):
    def test_only_one_side_of_a_condition_runs(self):
        c, x = arenite.input("c", (1,), "int64"), arenite.input("x", (3,))
        shared = x + 1
        model = arenite.compile(
            arenite.cond(c, lambda: (shared * 2, x), lambda: (shared, shared.relu())), [c, x]
        )
        a = floats(3)
        for condition, expected in [(1, [2 * (a + 1), a]), (0, [a + 1, np.maximum(a + 1, 0)])]:
            for one, wanted in zip(model(condition, a), expected):
                self.assertClose(one, wanted)

    def test_loops_carry_values(self):
        n, x = arenite.input("n", (1,), "int64"), arenite.input("x", (3,))
        # The carried pair is that of Fibonacci.
        first, second = arenite.loop(n, lambda trip, a, b: (b, a + b), [x, x], max_trips=20)
        counted = arenite.loop(
            None, lambda trip, total: total + trip, arenite.constant([0]), max_trips=5
        )
        model = arenite.compile([first, second, counted])
        a, b, total = model(n=10, x=[1, 2, 3])
        self.assertEqual(
            (a.tolist(), b.tolist(), total.tolist()), ([89, 178, 267], [144, 288, 432], [10])
        )

    def test_loops_end_where_their_condition_does(self):
        limit = arenite.input("limit", (1,), "int64")
        left, doubled = arenite.loop(
            None,
            lambda trip, left, v: (left - 1, left - 1, v * 2),
            [limit, arenite.constant([1.0])],
            max_trips=100,
            condition=limit,
        )
        self.assertEqual(run([left, doubled], limit=5)[1].tolist(), [32])

    def test_blocks_in_blocks(self):
        c, x = arenite.input("c", (1,), "int64"), arenite.input("x", (2,))

        def body(trip, v):
            return arenite.cond(
                trip, lambda: arenite.loop(trip, lambda _, w: w * 2, v, max_trips=4), lambda: v + 1
            )

        model = arenite.compile(arenite.loop(c, body, x, max_trips=4), [c, x])
        for trips in range(5):
            expected = np.array([1.0, 2.0])
            for trip in range(trips):
                expected = expected * 2**trip if trip else expected + 1
            self.assertClose(model(trips, [1, 2]), expected)

    def test_what_blocks_refuse(self):
        c, x = arenite.input("c", (1,), "int64"), arenite.input("x", (2,))
        with self.raises(
            arenite.InvalidError,
            "if: result 1 as float32[2] and as float32[1]; expected one type and shape from both "
            "blocks",
        ):
            arenite.cond(c, lambda: x, lambda: x[:1])
        with self.raises(
            arenite.InvalidError,
            "loop: carried value 1 yielded as float32[1]; expected float32[2], as it begins",
        ):
            arenite.loop(c, lambda _, v: v[:1], x, max_trips=2)
        with self.raises(
            arenite.InvalidTypeError,
            "cond: a function that returns [None]; expected a Tensor, or several",
        ):
            arenite.cond(c, lambda: None, lambda: x)
        with self.raises(
            arenite.InvalidTypeError,
            "cond: a condition of float32 [2]; expected one integer",
        ):
            arenite.cond(x, lambda: x, lambda: x)
        kept = []
        arenite.cond(c, lambda: kept.append(x + 1) or kept[0], lambda: x)
        with self.raises(
            arenite.InvalidError,
            "relu reads a result of add made inside of a block that has ended; expected "
            "what the block yields",
        ):
            kept[0].relu()


if __name__ == "__main__":
    testing.main()
