#!/usr/bin/env python3
"""Every operator of arenite.functional against NumPy, over random shapes."""

import pickle

import testing
from testing import RANDOM, floats, np, run, sizes

import arenite
import arenite.functional as F

TIMES = 8


def as_input(array, name="x"):
    return arenite.input(name, array.shape, array.dtype)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def convolve(x, w, b, stride, padding, dilation):
    """As it is defined, in double."""
    x = np.pad(x.astype(float), ((0, 0), (padding[0],) * 2, (padding[1],) * 2, (0, 0)))
    kh, kw, _, k = w.shape
    oh = (x.shape[1] - (kh - 1) * dilation[0] - 1) // stride[0] + 1
    ow = (x.shape[2] - (kw - 1) * dilation[1] - 1) // stride[1] + 1
    y = np.zeros((x.shape[0], oh, ow, k)) + b
    for i in range(kh):
        for j in range(kw):
            top, left = i * dilation[0], j * dilation[1]
            part = x[
                :,
                top : top + (oh - 1) * stride[0] + 1 : stride[0],
                left : left + (ow - 1) * stride[1] + 1 : stride[1],
            ]
            y += part @ w[i, j].astype(float)
    return y


def windows(x, kernel, stride, padding, fill):
    """[N, OH, OW, C, taps], with `fill` in the padding."""
    x = np.pad(
        x.astype(float),
        ((0, 0), (padding[0],) * 2, (padding[1],) * 2, (0, 0)),
        constant_values=fill,
    )
    oh, ow = ((x.shape[1 + i] - kernel[i]) // stride[i] + 1 for i in (0, 1))
    taps = [
        x[
            :,
            i : i + (oh - 1) * stride[0] + 1 : stride[0],
            j : j + (ow - 1) * stride[1] + 1 : stride[1],
        ]
        for i in range(kernel[0])
        for j in range(kernel[1])
    ]
    return np.stack(taps, -1)


class ElementByElement(testing.TestCase):
    def test_sums_and_products_repeat_sizes_of_one_as_numpy_does(self):
        for _ in range(TIMES):
            shape = sizes(RANDOM.integers(0, 5))
            kind = RANDOM.choice([np.float32, np.float64])
            # Any size may be 1 on either side, and axes in front may be missing.
            a, b = (
                [int(RANDOM.choice([1, n])) for n in shape][RANDOM.integers(0, len(shape) + 1) :]
                for _ in "ab"
            )
            a, b = floats(*a, dtype=kind), floats(*b, dtype=kind)
            x, y = as_input(a, "x"), as_input(b, "y")
            found = run([x + y, x - y, x * y, F.add(x, y), F.sub(x, y), F.mul(x, y)], x=a, y=b)
            for one, expected in zip(found, [a + b, a - b, a * b] * 2):
                self.assertClose(one, expected)

    def test_of_one_operand(self):
        for _ in range(TIMES):
            a = floats(*sizes(RANDOM.integers(0, 5)))
            x = as_input(a)
            found = run(
                [F.relu(x), F.silu(x), F.identity(x), F.scale_by(x, 2.5), F.sum_of(x, x, x)], x=a
            )
            for one, expected in zip(
                found, [np.maximum(a, 0), a / (1 + np.exp(-a)), a, 2.5 * a, 3 * a]
            ):
                self.assertClose(one, expected)

    def test_formulas_by_name(self):
        a, b = floats(3, 4), floats(4)
        x, y = as_input(a, "x"), as_input(b, "y")
        found = run([F.softplus(x), F.huber(x, y, delta=0.5), x.silu()], x=a, y=b)
        d = np.abs(a - b)
        self.assertClose(found[0], np.log1p(np.exp(a)))
        self.assertClose(found[1], np.where(d <= 0.5, d * d / 2, 0.5 * (d - 0.25)))
        self.assertClose(found[2], a / (1 + np.exp(-a)))
        self.assertIs(pickle.loads(pickle.dumps(F.gelu)), F.gelu)
        with self.assertRaisesRegex(arenite.InvalidTypeError, "huber: target=.*operands have no names"):
            F.huber(x, target=y)
        with self.assertRaisesRegex(arenite.InvalidError, "huber: delta=0.0; expected a number above 0"):
            F.huber(x, y, delta=0)
        self.assertIn("mish", dir(F))
        self.assertIn("relu", dir(F))
        with self.assertRaisesRegex(AttributeError, "no attribute 'gelo'"):
            F.gelo
        with self.assertRaisesRegex(arenite.Error, "gelu: operand 'x' .* of type int32"):
            F.gelu(np.zeros(3, np.int32))

    def test_formulas(self):
        for _ in range(TIMES):
            shape = sizes(RANDOM.integers(1, 5))
            a, b = floats(*shape), floats(*shape[1:])
            x, y = as_input(a, "x"), as_input(b, "y")
            both = F.map("p = $1 * $2; yield p * sigmoid(p), int32(floor($1 * 8))", x, y)
            found = run([*both, F.map("exp($1)", x)], x=a, y=b)
            p = a * b
            for one, expected in zip(
                found, [p / (1 + np.exp(-p)), np.floor(a * 8).astype(np.int32), np.exp(a)]
            ):
                self.assertEqual(one.dtype, expected.dtype)
                self.assertClose(one, expected)
        with self.assertRaisesRegex(
            arenite.Error, r"expression:1:1: unknown function 'sigmoyd'.*did you mean 'sigmoid'"
        ):
            F.map("sigmoyd($1)", x)

    def test_complex_products(self):
        for _ in range(TIMES):
            shape = sizes(RANDOM.integers(0, 4))
            a, b = floats(*shape, 2), floats(*[int(RANDOM.choice([1, n])) for n in shape], 2)
            left, right = a[..., 0] + 1j * a[..., 1], b[..., 0] + 1j * b[..., 1]
            x, y = as_input(a, "x"), as_input(b, "y")
            found = run([F.complex_mul(x, y), F.complex_mul(x, y, conjugate=True)], x=a, y=b)
            for one, expected in zip(found, [left * right, left * right.conj()]):
                self.assertClose(one[..., 0] + 1j * one[..., 1], expected)

    def test_full(self):
        for dtype in ("float32", "float64", "int64", "int32", "uint8"):
            found = run(F.full((2, 3), 7, dtype))
            self.assertEqual(found.dtype.name, dtype)
            self.assertClose(found, np.full((2, 3), 7))
        self.assertClose(run(F.zeros(3)), np.zeros(3))
        self.assertClose(run(F.ones((1, 2))), np.ones((1, 2)))

    def test_integers_that_index(self):
        i = arenite.input("i", (1,), "int64")
        found = run(
            [
                i + 3,
                3 + i,
                i - 1,
                10 - i,
                i * 4,
                i + i,
                i - i,
                F.index_sum(i, i, scale=-2, offset=1),
            ],
            i=5,
        )
        self.assertEqual([int(n[0]) for n in found], [8, 8, 4, 5, 20, 10, 0, -4])
        a = arenite.input("a", (2, 2), "int32")
        self.assertEqual(run(a + a, a=[[1, 2], [3, 4]]).tolist(), [[2, 4], [6, 8]])

    def test_sums_over_axes(self):
        for _ in range(TIMES):
            a = floats(*sizes(4))
            x, axis = as_input(a), int(RANDOM.integers(-4, 4))
            found = run(
                [
                    x.sum(),
                    x.sum(axis),
                    x.sum(axis, keepdim=True),
                    x.sum((0, -1)),
                    x.mean(),
                    x.mean(axis),
                    F.sum_to(x, (1, *a.shape[1:])),
                ],
                x=a,
            )
            expected = [
                a.sum().reshape(1),
                a.sum(axis),
                a.sum(axis, keepdims=True),
                a.sum((0, -1)),
                a.mean().reshape(1),
                a.mean(axis),
                a.sum(0, keepdims=True),
            ]
            for one, wanted in zip(found, expected):
                self.assertClose(one, wanted)


class Shapes(testing.TestCase):
    def test_views_and_copies(self):
        for _ in range(TIMES):
            a = floats(*sizes(4))
            x, axes = as_input(a), RANDOM.permutation(4).tolist()
            begin = int(RANDOM.integers(0, a.shape[0] + 1))
            end = int(RANDOM.integers(begin, a.shape[0] + 1))
            found = run(
                [
                    F.reshape(x, (-1, a.shape[3])),
                    F.flatten(x),
                    F.slice(x, begin, end),
                    F.permute(x, axes),
                    F.transpose(x, 1, -1),
                    F.unsqueeze(x, 2),
                    F.squeeze(F.unsqueeze(x, -1), -1),
                    x.T,
                    F.broadcast_to(F.sum_to(x, (1, *a.shape[1:])), (3, *a.shape[1:])),
                ],
                x=a,
            )
            expected = [
                a.reshape(-1, a.shape[3]),
                a.reshape(len(a), -1),
                a[begin:end],
                a.transpose(axes),
                a.swapaxes(1, -1),
                a[:, :, None],
                a,
                a.T,
                np.broadcast_to(a.sum(0), (3, *a.shape[1:])),
            ]
            for one, wanted in zip(found, expected):
                self.assertClose(one, wanted)

    def test_matrices_put_together(self):
        for _ in range(TIMES):
            n, c = sizes(2)
            a, below, beside = floats(n, c), floats(3, c), floats(n, 2)
            begin, row = int(RANDOM.integers(0, c)), int(RANDOM.integers(0, n))
            x = as_input(a)
            found = run(
                [
                    F.stack_columns(x, below),
                    F.stack_columns(x, below, x, columns=(begin, c)),
                    F.join_columns(x, beside),
                    F.join_columns(x, beside, x, rows=(0, row)),
                ],
                x=a,
            )
            expected = [
                np.vstack([a, below]),
                np.vstack([a, below, a])[:, begin:],
                np.hstack([a, beside]),
                np.hstack([a, beside, a])[:row],
            ]
            for one, wanted in zip(found, expected):
                self.assertClose(one, wanted)
        with self.raises(
            arenite.InvalidError,
            "join_columns: operand 'x' (constant) of shape [3, 4]; expected [2, 4], rows like the "
            "first, [2, 4]",
        ):
            F.join_columns(np.zeros((2, 4), np.float32), np.zeros((3, 4), np.float32))
        with self.raises(
            arenite.InvalidError,
            "stack_columns: columns=[1, 5]; expected none, or [begin, end) with 0 ≤ begin ≤ end ≤ 4, "
            "the columns of constant [2, 4]",
        ):
            F.stack_columns(np.zeros((2, 4), np.float32), columns=(1, 5))
        with self.raises(
            arenite.InvalidError,
            "join_columns: rows=[1]; expected none, or [begin, end) with 0 ≤ begin ≤ end ≤ 2, the "
            "rows of constant [2, 4]",
        ):
            F.join_columns(np.zeros((2, 4), np.float32), rows=1)

    def test_rows_that_only_the_run_knows(self):
        for _ in range(TIMES):
            a = floats(*sizes(3))
            rows = int(RANDOM.integers(1, len(a) + 1))
            begin = int(RANDOM.integers(0, len(a) - rows + 1))
            new = floats(rows, *a.shape[1:])
            x, i = as_input(a), arenite.input("i", (1,), "int64")
            replaced = a.copy()
            replaced[begin : begin + rows] = new
            found = run(
                [
                    F.dynamic_slice(x, i, rows),
                    F.replace_slice(x, new, i, i + rows),
                    x.replace(new, i),
                ],
                x=a,
                i=begin,
            )
            for one, wanted in zip(found, [a[begin : begin + rows], replaced, replaced]):
                self.assertClose(one, wanted)
        with self.raises(
            arenite.InvalidError,
            "program 'model', step 0, dynamic_slice #0: a begin from which the rows reach "
            "beyond the first axis; expected data within the op's limits",
        ):
            run(F.dynamic_slice(x, i, 1), x=a, i=len(a))


class Layers(testing.TestCase):
    def test_matmul(self):
        for _ in range(TIMES):
            m, n, k, b = sizes(4)
            kind = RANDOM.choice([np.float32, np.float64])
            for left, right in [
                ((m, n), (n, k)),
                ((n,), (n, k)),
                ((m, n), (n,)),
                ((n,), (n,)),
                ((b, m, n), (b, n, k)),
                ((b, m, n), (n, k)),
                ((m, n), (b, n, k)),
                ((b, m, n), (n,)),
                ((n,), (b, n, k)),
            ]:
                p, q = floats(*left, dtype=kind), floats(*right, dtype=kind)
                x, y = as_input(p, "x"), as_input(q, "y")
                self.assertClose(run(x @ y, x=p, y=q), p @ q)
                if len(left) > 1 and len(right) > 1:
                    u, v = as_input(p.swapaxes(-1, -2), "u"), as_input(q.swapaxes(-1, -2), "v")
                    found = run(
                        F.matmul(u, v, transpose_a=True, transpose_b=True),
                        u=p.swapaxes(-1, -2),
                        v=q.swapaxes(-1, -2),
                    )
                    self.assertClose(found, p @ q)

    def test_dense_and_bias(self):
        for _ in range(TIMES):
            n, i, o = sizes(3)
            a, w, b = floats(n, i), floats(i, o), floats(o)
            x = as_input(a)
            found = run([F.dense(x, w), F.dense(x, w, b), F.bias(F.dense(x, w), b)], x=a)
            for one, wanted in zip(found, [a @ w, a @ w + b, a @ w + b]):
                self.assertClose(one, wanted)
            found = run([F.dense_relu(x, w), F.dense_relu(x, w, b)], x=a)
            for one, wanted in zip(found, [a @ w, a @ w + b]):
                self.assertClose(one, np.maximum(wanted, 0))

    def test_convolutions(self):
        for _ in range(TIMES):
            n, c, k = sizes(3, most=4)
            kernel, stride, dilation = sizes(2, most=3), sizes(2, most=2), sizes(2, most=2)
            padding = sizes(2, least=0, most=2)
            a, w, b = floats(n, *sizes(2, least=7, most=10), c), floats(*kernel, c, k), floats(k)
            x = as_input(a)
            wanted = convolve(a, w, b, stride, padding, dilation)
            self.assertClose(run(F.conv2d(x, w, b, stride, padding, dilation), x=a), wanted, 1e-4)
            found = run(F.conv2d_relu(x, w, b, stride, padding, dilation), x=a)
            self.assertClose(found, np.maximum(wanted, 0), 1e-4)
            plain = convolve(a, w, 0, stride, padding, dilation)
            found = F.conv2d_relu_max_pool2d(
                x, w, None, (1, 2) if plain.shape[2] > 1 else 1, stride, padding, dilation
            )
            pooled = windows(
                np.maximum(plain, 0), *[(1, 2) if plain.shape[2] > 1 else (1, 1)] * 2, (0, 0), 0
            ).max(-1)
            self.assertClose(run(found, x=a), pooled, 1e-4)
        a, w = floats(1, 6, 5, 2), floats(3, 5, 2, 4)
        self.assertClose(
            run(F.conv2d(as_input(a), w, padding="same"), x=a),
            convolve(a, w, 0, (1, 1), (1, 2), (1, 1)),
            1e-4,
        )

    def test_poolings(self):
        for _ in range(TIMES):
            kernel, stride = sizes(2, most=3), sizes(2, most=3)
            padding = tuple(int(RANDOM.integers(0, n)) for n in kernel)
            a = floats(*sizes(1), *sizes(2, least=4, most=8), *sizes(1))
            x = as_input(a)
            taps = windows(a, kernel, stride, padding, 0)
            inside = windows(np.ones_like(a), kernel, stride, padding, 0).sum(-1)
            found = run(
                [
                    F.max_pool2d(x, kernel, stride, padding),
                    F.avg_pool2d(x, kernel, stride, padding),
                    F.avg_pool2d(x, kernel, stride, padding, count_padding=False),
                    F.max_pool2d(x),
                ],
                x=a,
            )
            expected = [
                windows(a, kernel, stride, padding, -np.inf).max(-1),
                taps.mean(-1),
                taps.sum(-1) / inside,
                windows(a, (2, 2), (2, 2), (0, 0), 0).max(-1),
            ]
            for one, wanted in zip(found, expected):
                self.assertClose(one, wanted)

    def test_norms_and_softmax(self):
        for _ in range(TIMES):
            a = floats(*sizes(3))
            w, prefix, axis = (
                floats(a.shape[-1]),
                int(RANDOM.integers(0, a.shape[-1] + 1)),
                int(RANDOM.integers(-3, 3)),
            )
            x, p = as_input(a), arenite.input("p", (1,), "int64")
            sliced = a.copy()
            sliced[..., :prefix] = softmax(a[..., :prefix]) if prefix else a[..., :0]
            found = run(
                [
                    F.rms_norm(x, w, eps=1e-3),
                    F.softmax(x),
                    F.softmax(x, axis),
                    F.log_softmax(x, axis),
                    F.layer_norm(x, w, w, eps=1e-3),
                    F.sliced_softmax(x, prefix),
                    x.sliced_softmax(p),
                ],
                x=a,
                p=prefix,
            )
            expected = [
                a / np.sqrt((a.astype(float) ** 2).mean(-1, keepdims=True) + 1e-3) * w,
                softmax(a),
                softmax(a, axis),
                np.log(softmax(a.astype(float), axis)),
                (a - a.mean(-1, keepdims=True))
                / np.sqrt(a.astype(float).var(-1, keepdims=True) + 1e-3)
                * w
                + w,
                sliced,
                sliced,
            ]
            for one, wanted in zip(found, expected):
                self.assertClose(one, wanted)


class Losses(testing.TestCase):
    def test_cross_entropy(self):
        for _ in range(TIMES):
            n, c = sizes(2)
            a, labels = floats(n, c), RANDOM.integers(0, c, n).astype(np.int32)
            x, y = as_input(a), as_input(labels, "y")
            each = -np.log(softmax(a.astype(float))[np.arange(n), labels])
            found = run(
                list(F.softmax_cross_entropy(x, y))
                + [F.softmax_cross_entropy(x, y, divisor=3).loss, F.cross_entropy(x, y)],
                x=a,
                y=labels,
            )
            self.assertClose(found[0], [each.mean()])
            self.assertClose(found[1], [each.sum(), (a.argmax(1) == labels).sum()])
            self.assertClose(found[2], (softmax(a) - np.eye(c)[labels]) / n)
            self.assertClose(found[3], [each.sum() / 3])
            self.assertClose(found[4], [each.mean()])
        with self.raises(
            arenite.InvalidError,
            "program 'model', step 0, softmax_cross_entropy #0 (lane 0): label 3 of sample "
            "0; expected 0 to 2, one of 3 classes",
        ):
            x, y = as_input(floats(4, 3)), as_input(np.full(4, 3, np.int32), "y")
            run(F.cross_entropy(x, y), x=floats(4, 3), y=np.full(4, 3, np.int32))

    def test_batches_of_a_data_set(self):
        images = RANDOM.integers(0, 256, (10, 3, 2, 1)).astype(np.uint8)
        labels, order = np.arange(10, dtype=np.uint8), RANDOM.permutation(10).astype(np.int32)
        x, y = F.batch_gather(
            images, labels, order, arenite.input("at", (1,), "int64"), count=3, begin=1
        )
        found = run([x, y], at=4)
        self.assertClose(found[0], images[order[5:8]] / np.float32(255))
        self.assertEqual(found[1].tolist(), order[5:8].tolist())

    def test_rows_of_any_data(self):
        prices, order = RANDOM.random((10, 3)), RANDOM.permutation(10).astype(np.int32)
        at = arenite.input("at", (1,), "int64")
        found = run(F.draw(prices, order, at, count=3, begin=1, scale=0.5), at=4)
        self.assertClose(found, prices[order[5:8]] / 2)
        tokens = RANDOM.integers(0, 1000, (10, 4, 2))
        found = run(F.draw(tokens, order, at, count=10, dtype="int32"), at=0)
        self.assertEqual(found.tolist(), tokens[order].tolist())
        with self.assertRaisesRegex(arenite.InvalidTypeError, "drawn as int32; expected float32"):
            F.draw(prices, order, at, count=3, dtype="int32")


if __name__ == "__main__":
    testing.main()
