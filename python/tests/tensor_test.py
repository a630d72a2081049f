#!/usr/bin/env python3
"""Tensors: operators, [] and what they refuse."""

import testing
from testing import floats, np, run

import arenite
import arenite.functional as F


class Operators(testing.TestCase):
    def test_with_numbers_and_arrays(self):
        a, b = floats(2, 3), floats(3)
        x = arenite.input("x", (2, 3))
        found = run(
            [
                x + 1,
                1 + x,
                x - 2,
                2 - x,
                x * 3,
                3 * x,
                x / 4,
                -x,
                +x,
                x**3,
                x + b,
                b + x,
                b * x,
                a - x,
                a @ x.T,
                x @ a.T,
                x * [[1.0], [2.0]],
            ],
            x=a,
        )
        expected = [
            a + 1,
            a + 1,
            a - 2,
            2 - a,
            a * 3,
            a * 3,
            a / 4,
            -a,
            a,
            a**3,
            a + b,
            a + b,
            a * b,
            a - a,
            a @ a.T,
            a @ a.T,
            a * [[1], [2]],
        ]
        for one, wanted in zip(found, expected):
            self.assertEqual(one.dtype, np.float32)
            self.assertClose(one, wanted)

    def test_indexing_is_numpys(self):
        a = floats(4, 3, 5)
        x = arenite.input("x", a.shape)
        keys = [
            0,
            -1,
            slice(1, 3),
            slice(-3, None),
            slice(3, 1),
            (1, 2),
            (1, 2, 3),
            (slice(None), 1),
            (..., -1),
            (slice(1, 2), ..., slice(0, 2)),
            None,
            (None, 1, ..., None),
            (slice(None), slice(1, None), 0),
            ...,
        ]
        for key, found in zip(keys, run([x[key] for key in keys], x=a)):
            with self.subTest(key=key):
                np.testing.assert_array_equal(found, a[key])
        self.assertEqual(len(x), 4)
        for row, found in zip(a, run(list(x), x=a)):
            np.testing.assert_array_equal(found, row)
        i = arenite.input("i", (1,), "int64")
        np.testing.assert_array_equal(run(x[i, 1:], x=a, i=2), a[2, 1:])

    def test_methods(self):
        a = floats(2, 3, 4)
        x = arenite.input("x", a.shape)
        found = run(
            [
                x.reshape(6, -1),
                x.view((24,)),
                x.permute(2, 0, 1),
                x.permute((2, 0, 1)),
                x.transpose(0, 2),
                x.flatten(),
                x.unsqueeze(0).squeeze(0),
                x[:1].broadcast_to(2, 3, 4),
                x.relu(),
                x.softmax(),
            ],
            x=a,
        )
        expected = [
            a.reshape(6, 4),
            a.reshape(24),
            a.transpose(2, 0, 1),
            a.transpose(2, 0, 1),
            a.swapaxes(0, 2),
            a.reshape(2, 12),
            a,
            np.broadcast_to(a[:1], a.shape),
            np.maximum(a, 0),
            np.exp(a) / np.exp(a).sum(-1, keepdims=True),
        ]
        for one, wanted in zip(found, expected):
            self.assertClose(one, wanted)

    def test_the_caller_may_change_an_array_that_became_a_constant(self):
        a = np.ones(2, np.float32)
        doubled = arenite.constant(a) * 2
        a[:] = 9
        self.assertEqual(run(doubled).tolist(), [2, 2])

    def test_plain_numbers_are_float32(self):
        self.assertEqual(arenite.constant([1.5, 2]).dtype, "float32")
        self.assertEqual(arenite.constant([1, 2]).dtype, "int64")
        self.assertEqual(arenite.constant(np.ones(2)).dtype, "float64")


    def test_quotients_are_numpys(self):
        """To the bit: not products with a reciprocal, which may be 0."""
        values = np.concatenate([floats(64, 1).ravel(), np.float32([1e38, 0, -3e-38, 3])])
        x = arenite.input("x", values.shape)
        for divisor in 3, -255, 10.0, 1e38, 7e37, 2, -0.25, 1e-30, 2.0**126, float("inf"), 1 << 70:
            with np.errstate(over="ignore"):
                expected = values / np.float32(divisor)
            kept = (abs(expected) > 1.2e-38) | (values == 0)  # smaller ones may be 0
            self.assertArray(run(x / divisor, x=values)[kept], expected[kept])


    def test_powers_are_as_exact_as_one_function(self):
        values = np.float32([1.00001, -1.0001, 0.9999, -0.5, 0])
        x = arenite.input("x", values.shape)
        for power in 1, 2, 7, 9, 1000, 1001:
            expected = values.astype(np.float64) ** power
            expected[abs(expected) < 1e-37] = 0
            self.assertClose(run(x**power, x=values), expected, 1e-6)


class Refusals(testing.TestCase):
    def setUp(self):
        self.x = arenite.input("x", (2, 3))

    def test_shapes(self):
        x = self.x
        for action, message in [
            (
                lambda: x + np.ones((4, 3), np.float32),
                "add: operand 'b' (constant) of shape [4, 3]; expected a shape that fits "
                "[2, 3] from the last axis on, where a size of 1 is repeated",
            ),
            (
                lambda: x @ x,
                "matmul: operand 'b' (x) of shape [2, 3]; expected [3, 3], [n, k] for a [2, 3]",
            ),
            (
                lambda: x.reshape(4, 2),
                "reshape: shape=[4, 2] of 8 elements; expected 6 elements, as x has the shape "
                "[2, 3]",
            ),
            (
                lambda: x.reshape(-1, -1),
                "reshape: shape=[-1, -1] with 2 sizes of -1; expected at most one",
            ),
            (
                lambda: x.permute(0, 0),
                "permute: dims=[0, 0]; expected each of the 2 axes of x [2, 3] once, counted from 0",
            ),
            (lambda: x.softmax(2), "softmax: axis 2; expected -2 ≤ axis < 2"),
            (lambda: x[::2], "[]: a slice of step 2; expected 1"),
            (lambda: x[0, 0, 0], "[]: 3 indices for shape [2, 3]; expected at most 2"),
            (lambda: x / 0, "a Tensor divided by 0; expected another number"),
            (
                lambda: F.full((1,), 2**53 + 1, "int64"),
                "full: value 9007199254740993; expected an integer from -9007199254740992 to "
                "9007199254740992",
            ),
            (
                lambda: x / 1e-39,
                "a Tensor divided by 1e-39; expected at least 1.2e-38, as smaller numbers count as 0 "
                "in float32",
            ),
            (
                lambda: arenite.input("n", (2,), "int32") + [1, 2**40],
                "1099511627776 for an operand; expected -2147483648 … 2147483647, as it is int32",
            ),
            (
                lambda: x.replace(np.ones((1, 2), np.float32), 0),
                "replace_slice: operand 'replacement' (constant) of shape [1, 2]; expected at most "
                "2 rows like those of 'x', of the shape [2, 3]",
            ),
            (
                lambda: F.conv2d(x, np.ones((1, 1, 1, 1), np.float32)),
                "conv2d: operand 'x' (x) of shape [2, 3]; expected rank 4, [N, H, W, C]",
            ),
            (
                lambda: F.grad(x, [x]),
                "grad: a loss of float32 [2, 3]; expected one float32 (hint: .sum() or .mean())",
            ),
            (lambda: arenite.input("y", (2, -1)), "a shape with -1; expected sizes of at least 0"),
            (
                lambda: arenite.input("", 2),
                "an input named ''; expected at least one character, and none of ',', ')', ';', 0 "
                "and halves of characters",
            ),
            (
                lambda: arenite.buffer(1, name="a;b"),
                "a buffer named 'a;b'; expected at least one character, and none of ',', ')', ';', "
                "0 and halves of characters",
            ),
            (
                lambda: arenite.input("\ud800", 2),
                "an input named '\\ud800'; expected at least one character, and none of ',', ')', "
                "';', 0 and halves of characters",
            ),
            (lambda: arenite.input("y", (1,) * 9), "a shape of 9 axes; expected at most 8"),
            (
                lambda: arenite.input("y", 1 << 70),
                f"a shape with {1 << 70}; expected sizes of at most 2^48",
            ),
            (
                lambda: x @ np.ones(2, np.float32),
                "matmul: shapes [2, 3] and [2]; expected as many columns of a (3) as rows of b (2)",
            ),
            (
                lambda: F.stack_columns(x, columns=[]),
                "stack_columns: columns=[]; expected none, or [begin, end)",
            ),
            (
                lambda: F.conv2d(x, x, padding="same"),
                "conv2d: operand 'x' (x) of shape [2, 3]; expected rank 4, [N, H, W, C]",
            ),
            (
                lambda: arenite.compile(x + arenite.input("x", (2, 3))),
                "two tensors named 'x' by arenite.input; expected a name of its own for each",
            ),
        ]:
            with self.subTest(message), self.raises(arenite.InvalidError, message):
                action()
        with self.assertRaisesRegex(IndexError, "index 2 of axis 0, of 2; expected -2 ≤ index < 2"):
            x[2]

    def test_types(self):
        x = self.x
        for action, message in [
            (
                lambda: x + np.ones((2, 3)),
                "add: operand 'b' (constant) of type float64; expected float32",
            ),
            (lambda: x + "1", "'1' for an operand of add; expected a Tensor or an array"),
            (
                lambda: arenite.input("n", (2,), "int32") + [1.5, 2],
                "float64 numbers for an operand; expected int32",
            ),
            (
                lambda: F.softmax_cross_entropy(x, [0.9, 1.9]),
                "float64 numbers for an operand; expected int32",
            ),
            (
                lambda: F.dynamic_slice(x, [1.7], 1),
                "float64 numbers for the begin of dynamic_slice; expected int64",
            ),
            (lambda: F.relu(None), "None for an operand of relu; expected a Tensor or an array"),
            (
                lambda: F.sliced_softmax(np.ones(2), 1),
                "sliced_softmax: operand 'x' (constant) of type float64; expected float32",
            ),
            (lambda: F.slice(x, 0.5, 1), "slice: begin 0.5; expected an integer"),
            (
                lambda: arenite.loop(True, lambda trip, y: y, x, max_trips=2),
                "the trips of loop True; expected an integer",
            ),
            (
                lambda: F.batch_gather(x, x, [0], [0], count="2"),
                "batch_gather: count '2'; expected an integer",
            ),
            (
                lambda: F.sum(arenite.input("y", 1, "int64"), 0, keepdim=True),
                "sum: int64 [1]; expected float32 or float64",
            ),
            (
                lambda: F.max_pool2d(x, "2"),
                "max_pool2d: kernel '2'; expected an integer or two, of rows and columns",
            ),
            (lambda: x / "2", "'2' for a divisor; expected a Tensor or an array"),
            (
                lambda: x == 1,
                "a Tensor compared with a int; expected a Tensor: == tells whether two are one and "
                "the same, and there is no operator that compares values",
            ),
            (lambda: x**"2", "a Tensor to the power '2'; expected a number"),
            (
                lambda: bool(x),
                "the truth of a Tensor, whose value only a run knows; expected arenite.cond(…)",
            ),
            (
                lambda: np.sqrt(np.ones(2)) + np.asarray(x),
                "a Tensor where an array is needed; expected an array: compile "
                "the tensor and run the model, or compute with arenite's own functions",
            ),
            (lambda: x["a"], "[]: 'a'; expected an integer, a slice, None or ..."),
            (
                lambda: arenite.input("y", 2, "float16"),
                "element type 'float16'; expected one of float32, float64, int64, int32, uint8",
            ),
            (lambda: arenite.input("y", (2, 3.0)), "a shape with 3.0; expected integers"),
            (
                lambda: arenite.constant(np.ones(2, bool)),
                "element type dtype('bool'); expected one of float32, float64, int64, int32, uint8",
            ),
            (lambda: arenite.parameter(np.ones(2)), "a parameter of float64; expected float32"),
            (lambda: arenite.compile(1), "1 among the outputs; expected Tensors"),
            (
                lambda: arenite.compile(x, [x + x]),
                "Tensor(float32 [2, 3], by add) among the inputs; expected what "
                "arenite.input made",
            ),
            (
                lambda: arenite.compile(x, updates=[3]),
                "3 among the updates; expected what functional.assign and its " "like return",
            ),
        ]:
            with self.subTest(message), self.raises(arenite.InvalidTypeError, message):
                action()
        self.assertTrue(x == x and x != x + 1 and x in {x: 1})
        self.assertTrue(issubclass(arenite.InvalidTypeError, TypeError))
        self.assertTrue(issubclass(arenite.InvalidError, ValueError))


if __name__ == "__main__":
    testing.main()
