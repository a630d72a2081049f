#!/usr/bin/env python3
"""Each statement of the page of scripts against NumPy, over random shapes and types.

statements_test.py FOLDER, where libarenite.so is. Ends with 77 where there is no NumPy.
"""
import math
import re
import sys
import unittest

try:
    import numpy
except ImportError:
    print("SKIPPED: no NumPy (apt-get install python3-numpy): no statement was tested", file=sys.stderr)
    sys.exit(77)

import arenite_c

FOLDER = sys.argv.pop(1) if len(sys.argv) > 1 else "."
ROUNDS = 60
AT_ONCE = 5  # cases of one model: compiling is what takes the time
REALS = ["float32", "float64"]
ALL = ["float32", "float64", "int64", "int32", "uint8"]
MOST = 3000  # elements of a random value


class Draw:
    def __init__(self, seed):
        self.random = numpy.random.default_rng(seed)

    def below(self, n):
        return int(self.random.integers(n))

    def one_in(self, n):
        return self.below(n) == 0

    def of(self, choices):
        return choices[self.below(len(choices))]

    def size(self):
        return self.of([1, 2, 3, 4, 5, 7, 8, 16, 17, 33])

    def shape(self, least=0, most=8, last=None):
        """Of any rank; the highest, and sizes of 0 and 1, come often."""
        rank = self.of([least, most, least + self.below(most - least + 1), min(most, least + 2)])
        dims = [self.size() for _ in range(rank)]
        if last is not None:
            dims[-1] = last
        while math.prod(dims) > MOST:
            dims[self.below(rank)] = 1
            if last is not None:
                dims[-1] = last
        if rank > (last is not None) and self.one_in(12):
            dims[self.below(rank - (last is not None))] = 0
        return tuple(dims)

    def values(self, dtype, shape):
        if dtype in REALS:
            return numpy.asarray(self.random.normal(0, 2, shape), dtype)
        return numpy.asarray(self.random.integers(0, 200, shape), dtype)

    def repeated(self, shape):
        """A shape that can be repeated to the given one."""
        return tuple(1 if self.one_in(3) else size for size in shape)


def text(shape):
    return "[" + ", ".join(map(str, shape)) + "]"


class Case:
    """A statement on inputs, and what NumPy makes of them: `call` is all behind the operator's name."""

    def __init__(self, call, inputs, expected):
        self.call, self.inputs, self.expected = call, inputs, numpy.asarray(expected)

    def statements(self, number, names):
        """The inputs' declarations, and one statement a name, all on the same inputs."""
        first = 100 * number
        lines = [f"${first + i} = InputTensor(x{first + i}, {x.dtype}, {text(x.shape)});"
                 for i, x in enumerate(self.inputs)]
        operands, brace, formula = self.call.partition("{")  # which has numbers of its own
        call = re.sub(r"\$(\d+)", lambda found: f"${first + int(found[1])}", operands) + brace + formula
        return lines + [f"${first + 50 + i} = {name}{call};" for i, name in enumerate(names)]

    def given(self, number):
        return {f"x{100 * number + i}": x for i, x in enumerate(self.inputs)}


def exact(array):
    """Computed in double, given in the array's type."""
    return array.astype("float64") if str(array.dtype) in REALS else array


def pairwise(function):
    def case(draw):
        dtype, shape = draw.of(REALS), draw.shape()
        a, b = draw.values(dtype, shape), draw.values(dtype, draw.repeated(shape))
        return Case("($0, $1)", [a, b], function(exact(a), exact(b)).astype(dtype))
    return case


def unary(function, types=REALS, call="($0)", **limits):
    def case(draw):
        x = draw.values(draw.of(types), draw.shape(**limits))
        return Case(call, [x], function(exact(x)).astype(x.dtype))
    return case


def sigmoid(x):
    with numpy.errstate(over="ignore"):
        return 1 / (1 + numpy.exp(-x))


def matmul(draw):
    dtype, form = draw.of(REALS), draw.below(3)
    m, n, k, b = (0 if draw.one_in(15) else draw.size() for _ in range(4))
    left, right = [((n,), (n, k)), ((m, n), (n, k)), ((b, m, n), (b, n, k))][form]
    x, y = draw.values(dtype, left), draw.values(dtype, right)
    return Case("($0, $1)", [x, y], numpy.matmul(exact(x), exact(y)).astype(dtype))


def rows(draw, size):
    """A range of rows; often all of them, or none."""
    begin = draw.below(size + 1)
    end = begin + draw.below(size - begin + 1)
    return draw.of([(0, size), (begin, begin), (begin, end), (begin, end)])


def slice_rows(draw):
    x = draw.values(draw.of(ALL), draw.shape(least=1))
    begin, end = rows(draw, x.shape[0])
    return Case(f"($0, {begin}, {end})", [x], x[begin:end])


def reshape(draw):
    x = draw.values(draw.of(ALL), draw.shape())
    left, dims = x.size, []
    for prime in (2, 2, 3, 5, 7, 11, 17):
        if left > 0 and left % prime == 0 and len(dims) < 6 and draw.one_in(2):
            dims.append(prime)
            left //= prime
    if left != 1:
        dims.append(left)
    while len(dims) < 8 and draw.one_in(2):
        dims.append(1)
    dims = [dims[i] for i in draw.random.permutation(len(dims))]
    return Case(f"($0, {text(dims)})", [x], x.reshape(dims))


def permute(draw):
    x = draw.values(draw.of(ALL), draw.shape())
    dims = [int(i) for i in draw.random.permutation(x.ndim)]
    return Case(f"($0, {text(dims)})", [x], x.transpose(dims))


def replace_slice(draw):
    x = draw.values(draw.of(ALL), draw.shape(least=1))
    begin, end = rows(draw, x.shape[0])
    part = draw.values(x.dtype.name, (end - begin,) + x.shape[1:])
    expected = x.copy()
    expected[begin:end] = part
    bounds = [numpy.array([begin], "int64"), numpy.array([end], "int64")]
    return Case("($0, $1, $2, $3)", [x, part] + bounds, expected)


def complex_mul(draw):
    dtype, shape = draw.of(REALS), draw.shape(least=1, last=2)
    a, b = draw.values(dtype, shape), draw.values(dtype, draw.repeated(shape[:-1]) + (2,))
    y = (exact(a)[..., 0] + 1j * exact(a)[..., 1]) * (exact(b)[..., 0] + 1j * exact(b)[..., 1])
    return Case("($0, $1)", [a, b], numpy.stack([y.real, y.imag], axis=-1).astype(dtype))


def rms_norm(draw):
    shape = draw.shape(least=1)
    x, weight = draw.values("float32", shape), draw.values("float32", shape[-1:])
    if shape[-1] == 0:
        return Case("($0, $1)", [x, weight], x)
    square = numpy.mean(exact(x) ** 2, axis=-1, keepdims=True)
    return Case("($0, $1)", [x, weight], (exact(x) / numpy.sqrt(square + 1e-5) * weight).astype("float32"))


def softmax_of(x):
    if x.shape[-1] == 0:
        return x
    e = numpy.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def sliced_softmax(draw):
    x = draw.values("float32", draw.shape(least=1))
    prefix = draw.of([0, x.shape[-1], draw.below(x.shape[-1] + 1)])
    expected = exact(x)
    expected[..., :prefix] = softmax_of(expected[..., :prefix])
    expected = expected.astype("float32")
    if draw.one_in(2):
        return Case(f"($0, {prefix})", [x], expected)
    return Case("($0, $1)", [x, numpy.array([prefix], "int64")], expected)


def dynamic_slice(draw):
    x = draw.values(draw.of(ALL), draw.shape(least=1))
    begin, end = rows(draw, x.shape[0])
    return Case(f"($0, $1, rows={end - begin})", [x, numpy.array([begin], "int64")], x[begin:end])


def index_sum(draw):
    a, b = draw.values("int64", (1,)), draw.values("int64", (1,))
    scale, offset = draw.below(9) - 4, draw.below(9) - 4
    return Case(f"($0, $1, scale={scale}, offset={offset})", [a, b], a + scale * b + offset)


def sum_to(draw):
    x = draw.values("float32", draw.shape())
    shape = draw.repeated(x.shape)
    axes = tuple(i for i in range(x.ndim) if shape[i] != x.shape[i])
    return Case(f"($0, {text(shape)})", [x], exact(x).sum(axis=axes, keepdims=True).astype("float32"))


def mapped(draw):
    dtype, shape = draw.of(REALS), draw.shape()
    x, y = draw.values(dtype, shape), draw.values(dtype, draw.repeated(shape)[draw.below(len(shape) + 1):])
    product = exact(x) * exact(y)
    return Case("($0, $1) { p = $1 * $2; yield p * sigmoid(p) }", [x, y], (product * sigmoid(product)).astype(dtype))


def broadcast_to(draw):
    shape = draw.shape()
    x = draw.values("float32", draw.repeated(shape))
    return Case(f"($0, {text(shape)})", [x], numpy.broadcast_to(x, shape))


# (operator, its names in the earlier form, cases)
STATEMENTS = [
    ("add", ["SumNode"], pairwise(numpy.add)),
    ("mul", ["HadamardProductNode"], pairwise(numpy.multiply)),
    ("relu", ["ReLUNode"], unary(lambda x: numpy.maximum(x, 0))),
    ("silu", ["SiLUNode"], unary(lambda x: x * sigmoid(x))),
    ("matmul", ["MatMulNode", "MulNode"], matmul),
    ("slice", ["SliceNode"], slice_rows),
    ("reshape", ["ReshapeNode"], reshape),
    ("permute", ["PermuteNode", "Permute"], permute),
    ("replace_slice", ["ReplaceSliceNode", "ReplaceSlice"], replace_slice),
    ("complex_mul", ["ComplexHadamardProductNode"], complex_mul),
    ("rms_norm", ["RMSNormNode"], rms_norm),
    ("sliced_softmax", ["SlicedSoftmaxNode"], sliced_softmax),
    ("softmax", [], unary(softmax_of, ["float32"], least=1)),
    ("flatten", [], unary(lambda x: x.reshape(x.shape[0], math.prod(x.shape[1:])), ALL, least=1)),
    ("dynamic_slice", [], dynamic_slice),
    ("index_sum", [], index_sum),
    ("sum_to", [], sum_to),
    ("broadcast_to", [], broadcast_to),
    ("map", [], mapped),
]


class Statements(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = arenite_c.Library(FOLDER)
        cls.addClassCleanup(cls.library.close)

    def expect(self, found, expected, what):
        self.assertEqual((found.dtype, found.shape), (expected.dtype, expected.shape), what)
        if found.dtype.name not in REALS or found.size == 0:
            self.assertTrue(numpy.array_equal(found, expected), what)
            return
        most = 1e-5 if found.dtype == "float32" else 1e-12
        difference = numpy.abs(exact(found) - exact(expected)).max()
        self.assertLessEqual(difference, most * numpy.abs(exact(expected)).max(), what)

    def evaluate(self, script, given, **constants):
        with self.library.compile(script, **constants) as model:
            return model.evaluate(**given)

    def evaluate_cases(self, cases, names):
        """The results of each case by all its names, made by one model."""
        lines, given, results = [], {}, []
        for number, case in enumerate(cases):
            lines += case.statements(number, names)
            given.update(case.given(number))
            results += [f"${100 * number + 50 + i}" for i in range(len(names))]
        return self.evaluate("\n".join(lines) + f"\nresult = {', '.join(results)};", given)

    def test_each_statement_by_all_its_names(self):
        for operator, names, draw_case in STATEMENTS:
            with self.subTest(operator):
                draw, types, ranks, empty = Draw(len(operator)), set(), set(), 0
                for _ in range(ROUNDS // AT_ONCE):
                    cases, all_names = [draw_case(draw) for _ in range(AT_ONCE)], [operator] + names
                    found = iter(self.evaluate_cases(cases, all_names))
                    for case in cases:
                        first = next(found)
                        self.expect(first, case.expected, "\n".join(case.statements(0, [operator])))
                        for name in names:
                            self.assertEqual(first.tobytes(), next(found).tobytes(), name)
                        types.add(first.dtype.name)
                        ranks.add(case.inputs[0].ndim)
                        empty += first.size == 0
                self.check_variety(operator, types, ranks, empty)

    def check_variety(self, operator, types, ranks, empty):
        """Random cases that left out a type or the ends of the ranks would test less than they say."""
        if operator == "index_sum":
            return
        one_type = operator in ("rms_norm", "sliced_softmax", "softmax", "sum_to", "broadcast_to")
        any_type = operator in ("slice", "reshape", "permute", "replace_slice", "flatten", "dynamic_slice")
        self.assertEqual(types, {"float32"} if one_type else set(ALL) if any_type else set(REALS))
        self.assertEqual(max(ranks), 3 if operator == "matmul" else 8)
        self.assertLessEqual(min(ranks), 1)
        self.assertGreater(empty, 0)

    def test_what_is_declared_may_be_the_result(self):
        draw = Draw(5)
        for number in range(ROUNDS):
            x = draw.values(ALL[number % 5], draw.shape(least=0 if number % 4 else 8))
            declared = f"(x, {x.dtype}, {text(x.shape)}); result = $1;"
            self.expect(self.evaluate("$1 = InputTensor" + declared, {"x": x})[0], x, declared)
            self.expect(self.evaluate("$1 = ConstantTensor" + declared, {}, x=x)[0], x, declared)
            unnamed = f"$1 = BufferTensor({x.dtype}, {text(x.shape)}); result = $1;"
            self.expect(self.evaluate(unnamed, {})[0], numpy.zeros_like(x), unnamed)

    def test_chains_of_random_statements(self):
        """What one statement makes, in place, as a view or as a copy, is what the next one reads."""
        for seed in range(ROUNDS):
            draw = Draw(1000 + seed)
            values = [draw.values("float32", (draw.size(), draw.size())) for _ in range(3)]
            inputs = dict(enumerate(values))
            lines = [f"${i} = InputTensor(x{i}, float32, {text(x.shape)});" for i, x in inputs.items()]
            for _ in range(4 + draw.below(12)):
                i = draw.below(len(values))
                x, same = values[i], [k for k, y in enumerate(values) if y.shape == values[i].shape]
                k, to = draw.of(same), len(values)
                made, call = draw.of([
                    (x + values[k], f"SumNode(${i}, ${k})"),
                    (x * sigmoid(x), f"SiLUNode(${i})"),
                    (numpy.maximum(x, 0), f"ReLUNode(${i})"),
                    (x.transpose(1, 0), f"PermuteNode(${i}, [1, 0])"),
                    (softmax_of(x), f"softmax(${i})"),
                    (x[:1], f"SliceNode(${i}, 0, 1)"),
                    (x.reshape(1, x.size), f"ReshapeNode(${i}, [1, {x.size}])"),
                    (x @ values[k].transpose(1, 0) / 64, None)])
                if call is None:
                    lines += [f"${to} = matmul(${i}, ${k}, transpose_b=1);",
                              f"${to + 1} = full([1, 1], 0.015625);",
                              f"${to + 2} = HadamardProductNode(${to}, ${to + 1});"]
                    values += [made * 64, numpy.full((1, 1), 1 / 64), made]
                else:
                    lines.append(f"${to} = {call};")
                    values.append(made)
            wanted = sorted({draw.below(len(values)) for _ in range(4)})
            script = "\n".join(lines) + "\nresult = " + ", ".join(f"${i}" for i in wanted) + ";"
            found = self.evaluate(script, {f"x{i}": x for i, x in inputs.items()})
            for one, i in zip(found, wanted):
                self.expect(one, values[i].astype("float32"), f"${i} of\n{script}")

    def test_buffers_keep_what_is_replaced_and_nothing_of_a_failure(self):
        """Readers see the old version; an index out of range is an error, and no write."""
        failures = 0
        for seed in range(ROUNDS):
            draw = Draw(2000 + seed)
            dtype, shape = draw.of(ALL), draw.shape(least=1, most=4)
            size = draw.below(shape[0] + 1)
            part = (size,) + shape[1:]
            script = (f"$1 = BufferTensor({dtype}, {text(shape)});"
                      f"$2 = InputTensor(x, {dtype}, {text(part)});"
                      "$3 = InputTensor(begin, int64, [1]); $4 = InputTensor(end, int64, [1]);"
                      "$5 = ReplaceSliceNode($1, $2, $3, $4); result = $5, $1;")
            state = numpy.zeros(shape, dtype)
            with self.library.compile(script) as model:
                for _ in range(6):
                    last = shape[0] - size
                    begin = draw.of([0, last, last + 1, -1, draw.below(shape[0] + 2), 1 << 62])
                    end = draw.of([begin + size, begin + size, begin + size, begin + size + 1, -1])
                    given = {"x": draw.values(dtype, part), "begin": numpy.array([begin], "int64"),
                             "end": numpy.array([end], "int64")}
                    if 0 <= begin <= last and end == begin + size:
                        new, old = model.evaluate(**given)
                        self.expect(old, state, script)
                        state[begin:end] = given["x"]
                        self.expect(new, state, script)
                    else:
                        failures += 1
                        with self.assertRaisesRegex(arenite_c.Error, "(replace|update)_slice.*: an? (begin|end)"):
                            model.evaluate(**given)
        self.assertGreater(failures, ROUNDS)

    def test_a_view_of_a_buffer_is_the_buffer(self):
        for seed in range(ROUNDS):
            draw = Draw(3000 + seed)
            shape = draw.shape(least=2, most=4)
            if 0 in shape:
                continue
            begin = draw.below(shape[0])
            view, flat = (shape[0] - begin,) + shape[1:], math.prod(shape[1:])
            script = (f"$1 = BufferTensor(float32, {text(shape)}); $2 = SliceNode($1, {begin}, {shape[0]});"
                      f"$3 = ReshapeNode($2, [{view[0] * flat}]); $4 = InputTensor(x, float32, [{flat}]);"
                      "$5 = InputTensor(at, int64, [1]); $6 = replace_slice($3, $4, $5); result = $1, $6;")
            state = numpy.zeros(shape, "float32")
            with self.library.compile(script) as model:
                for _ in range(4):
                    x, at = draw.values("float32", (flat,)), draw.below((view[0] - 1) * flat + 1)
                    old, new = model.evaluate(x=x, at=numpy.array([at], "int64"))
                    self.expect(old, state, script)
                    state[begin:].reshape(-1)[at:at + flat] = x
                    self.expect(new, state[begin:].reshape(-1), script)

    def test_a_prefix_out_of_range_is_an_error(self):
        script = ("$1 = InputTensor(x, float32, [2, 5]); $2 = InputTensor(n, int64, [1]);"
                  "$3 = SlicedSoftmaxNode($1, $2); result = $3;")
        x = Draw(1).values("float32", (2, 5))
        with self.library.compile(script) as model:
            for prefix in (6, -1, 1 << 40):
                with self.assertRaisesRegex(arenite_c.Error, "sliced_softmax.*prefix"):
                    model.evaluate(x=x, n=numpy.array([prefix], "int64"))
            self.expect(model.evaluate(x=x, n=numpy.array([0], "int64"))[0], x, "prefix 0")


if __name__ == "__main__":
    unittest.main()
