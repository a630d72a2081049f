#!/usr/bin/env python3
"""Compiled models: calls, what they keep, what they refuse, threads, plans."""

import threading
import xml.etree.ElementTree

import testing
from testing import floats, np, run

import arenite
import arenite.functional as F
from arenite._library import library


def addresses_given_to_c(model, **inputs):
    """Where the library is told that the inputs lie, in their order."""
    lib, seen = library(), []
    run = lib.model_run

    def spy(handle, entry, sizes, size_count, items, count, places, outputs):
        seen.extend(items[i].data for i in range(count))
        return run(handle, entry, sizes, size_count, items, count, places, outputs)

    lib.model_run = spy
    try:
        model(**inputs)
    finally:
        lib.model_run = run
    return seen


class Calls(testing.TestCase):
    def test_results_have_the_form_of_the_outputs(self):
        x, y = arenite.input("x", (2,)), arenite.input("y", (2,))
        a, b = floats(2), floats(2)
        self.assertClose(arenite.compile(x + y)(x=a, y=b), a + b)
        found = arenite.compile([x + y, x])(x=a, y=b)
        self.assertIsInstance(found, list)
        self.assertClose(found[1], a)
        found = arenite.compile({"sum": x + y, "x": x})(x=a, y=b)
        self.assertEqual(list(found), ["sum", "x"])
        self.assertClose(found["sum"], a + b)
        self.assertEqual(len(arenite.compile([x])(a)), 1)

    def test_factors_are_rounded_where_that_is_asked_for(self):
        x, w = arenite.input("x", (1, 2)), arenite.constant(np.eye(2, dtype=np.float32), "w")
        a = np.array([[1 + 2**-9, 2]], dtype=np.float32)  # a bit more than bfloat16 has
        self.assertEqual(arenite.compile(x @ w)(a)[0, 0], a[0, 0])
        self.assertEqual(arenite.compile(x @ w, compute="bfloat16")(a)[0, 0], 1)
        script = arenite.compile(x @ w).script
        found = arenite.compile_script(script, {"w": np.eye(2, dtype=np.float32)}, compute="bfloat16")
        self.assertEqual(found(a)[0, 0], 1)
        with self.assertRaisesRegex(arenite.InvalidError, "in tfloat32 on the CPU"):
            arenite.compile(x @ w, compute="tfloat32")
        with self.assertRaisesRegex(arenite.InvalidError, "compute 'bf16'; expected float32, bfloat16"):
            arenite.compile(x @ w, compute="bf16")

    def test_inputs_by_place_and_by_name(self):
        x, y = arenite.input("x", (2,)), arenite.input("y", (2,))
        a, b = floats(2), floats(2)
        model = arenite.compile(x - y, [y, x])
        for found in (model(b, a), model(b, x=a), model(y=b, x=a), model.run({"x": a, "y": b})[0]):
            self.assertClose(found, a - b)
        self.assertEqual(list(model.inputs), ["y", "x"])
        self.assertEqual(model.inputs["x"], arenite.TensorSpec("x", "float32", (2,)))
        self.assertEqual(
            repr(model),
            "Model(inputs: y: float32 [2], x: float32 [2]; outputs: output_0: float32 [2])",
        )
        # An input that nobody reads is one nevertheless.
        self.assertEqual(list(arenite.compile(x, [x, y]).inputs), ["x", "y"])

    def test_inputs_may_have_any_name(self):
        x, y = arenite.input("self", (1,)), arenite.input("arrays", (1,))
        self.assertEqual(arenite.compile(x - y)(**{"self": [3], "arrays": [1]}).tolist(), [2])

    def test_gradients_go_through_blocks(self):
        x, n, a = arenite.input("x", (3,)), arenite.input("n", (1,), "int64"), floats(3)
        powers = arenite.loop(n, lambda trip, carried: carried * x, x, max_trips=4).sum()
        chosen = arenite.cond(n, lambda: (x * x).sum(), lambda: x.sum())
        for loss, slopes in (
            (powers, (np.ones(3), 2 * a, 3 * a**2)),
            (chosen, (np.ones(3), 2 * a)),
        ):
            slope = arenite.compile(arenite.grad(loss, wrt=x), [x, n])
            for count, expected in enumerate(slopes):
                self.assertClose(slope(a, count), expected)

    def test_outputs_may_be_the_callers_arrays(self):
        x = arenite.input("x", (2,))
        model, out = arenite.compile(x + 1), np.zeros(2, np.float32)
        self.assertIs(model.run({"x": [1, 2]}, out=[out])[0], out)
        self.assertEqual(out.tolist(), [2, 3])
        with self.raises(
            arenite.InvalidError,
            "float64 [2] for output 'output_0'; expected a dense, writeable array of "
            "float32 [2]",
        ):
            model.run({"x": [1, 2]}, out=[np.zeros(2)])
        with self.raises(arenite.InvalidError, "0 arrays for outputs; expected 1"):
            model.run({"x": [1, 2]}, out=[])

    def test_dense_arrays_are_read_where_they_lie(self):
        x, y = arenite.input("x", (3, 4)), arenite.input("y", (4,))
        model = arenite.compile(x * y)
        a, b = floats(3, 4), floats(4)
        self.assertEqual(addresses_given_to_c(model, x=a, y=b), [a.ctypes.data, b.ctypes.data])
        rows = floats(9, 4)
        self.assertEqual(
            addresses_given_to_c(model, x=rows[3:6], y=b)[0], rows.ctypes.data + rows[:3].nbytes
        )
        frozen = floats(3, 4)
        frozen.flags.writeable = False
        self.assertEqual(addresses_given_to_c(model, x=frozen, y=b)[0], frozen.ctypes.data)
        # Others are copied, and come out right.
        for other in (
            floats(4, 3).T,
            floats(3, 8)[:, ::2],
            floats(3, 4).astype(">f4"),
            np.asfortranarray(a),
        ):
            self.assertNotEqual(addresses_given_to_c(model, x=other, y=b)[0], other.ctypes.data)
            self.assertClose(model(other, b), other * b)

    def test_wrong_arguments(self):
        model = arenite.compile(arenite.input("x", (2,)) + 1)
        for action, kind, message in [
            (lambda: model(), arenite.InvalidTypeError, "no input 'x'; expected all of x"),
            (
                lambda: model(x=[1, 2], z=1),
                arenite.InvalidTypeError,
                "an unknown input 'z'; expected x",
            ),
            (
                lambda: model([1, 2], [1, 2]),
                arenite.InvalidTypeError,
                "2 arrays; expected at most 1: x",
            ),
            (
                lambda: model([1, 2], x=[1, 2]),
                arenite.InvalidTypeError,
                "input 'x' twice, by its place and by its name; expected it once",
            ),
            (
                lambda: model(np.zeros(2)),
                arenite.InvalidTypeError,
                "float64 for input 'x'; expected float32 (hint: .astype('float32'))",
            ),
            (
                lambda: model(np.zeros(2, int)),
                arenite.InvalidTypeError,
                "int64 for input 'x'; expected float32 (hint: .astype('float32'))",
            ),
            (
                lambda: model(np.zeros(3, np.float32)),
                arenite.InvalidError,
                "an array of shape [3] for input 'x'; expected [2]",
            ),
            (
                lambda: model("ab"),
                arenite.InvalidTypeError,
                "a str; expected an array, a tensor or numbers",
            ),
            (
                lambda: model(None),
                arenite.InvalidTypeError,
                "a NoneType; expected an array, a tensor or numbers",
            ),
            (
                lambda: model(arenite.input("q", 2)),
                arenite.InvalidTypeError,
                "a Tensor where an array is needed; expected an "
                "array: compile the tensor and run the model, or compute with arenite's own "
                "functions",
            ),
        ]:
            with self.subTest(message), self.raises(kind, message):
                action()
        index = arenite.compile(arenite.input("i", (1,), "uint8"))
        self.assertEqual(index(i=200).tolist(), [200])
        with self.raises(
            arenite.InvalidError, "300 for input 'i'; expected 0 … 255, as it is uint8"
        ):
            index(i=300)
        with self.raises(arenite.InvalidTypeError, "float64 numbers for input 'i'; expected uint8"):
            index(i=1.5)
        x = arenite.input("x", (1,))
        with self.raises(
            arenite.InvalidError, "outputs that need the inputs x; expected all of them in `inputs`"
        ):
            arenite.compile(x + 1, [])

    def test_a_closed_model_says_so(self):
        model = arenite.compile(arenite.input("x", (2,)))
        model.close()
        model.close()
        with self.raises(arenite.InvalidError, "a model that was closed; expected an open one"):
            model([1, 2])


class Entries(testing.TestCase):
    """Other outputs of one graph, over one set of parameters."""

    def setUp(self):
        self.weight = arenite.parameter(floats(4, 3), name="weight")
        rows = arenite.size("rows", 6)
        x, label = arenite.input("x", (rows, 4)), arenite.input("label", (rows,), "int32")
        logits = x @ self.weight
        loss = F.cross_entropy(logits, label)
        self.model = arenite.compile(
            loss,
            updates=[arenite.train(loss, arenite.optim.SGD(lr=0.5))],
            entries={
                "predict": logits.softmax(-1),
                "both": [logits, x],
                "by name": {"logits": logits},
            },
        )

    def test_take_what_their_outputs_need(self):
        predict = self.model.entries["predict"]
        self.assertEqual(list(predict.inputs), ["x"])
        self.assertEqual([spec.shape for spec in predict.outputs], [(6, 3)])
        self.assertEqual(repr(predict), "Entry('predict', inputs: x: float32 [rows<=6, 4]; "
                         "outputs: output_0: float32 [rows<=6, 3])")
        for rows in 6, 2, 1, 6:
            x = floats(rows, 4)
            logits = x @ self.model.state["weight"]
            e = np.exp(logits - logits.max(1, keepdims=True))
            self.assertClose(predict(x), e / e.sum(1, keepdims=True))
            self.assertClose(self.model.entries["both"](x=x)[0], logits)
            self.assertClose(self.model.entries["by name"](x)["logits"], logits)
            before = self.model.state["weight"]
            self.model.train_step(x, np.zeros(rows, np.int32))
            self.assertFalse((self.model.state["weight"] == before).all())

    def test_of_scripts(self):
        model = arenite.compile_script(
            "$1 = InputTensor(x, float32, [2]); $2 = relu($1); entry half = $2; result = $1, $2;"
        )
        self.assertEqual(model.entries["half"]([-1, 1]).tolist(), [0, 1])
        self.assertEqual(len(model([-1, 1])), 2)

    def test_may_be_as_in_training(self):
        x = arenite.input("x", (8, 32))
        y = arenite.nn.Dropout(0.5)(x)
        model = arenite.compile(y, entries={"sample": arenite.entry(y, mode="train")})
        ones = np.ones((8, 32), np.float32)
        first, second = (model.entries["sample"](ones) for _ in range(2))
        self.assertEqual(set(first.flat), {0, 2})
        self.assertTrue((first != second).any())
        self.assertTrue((model(ones) == 1).all())

    def test_may_compute_with_means(self):
        weight = arenite.parameter(np.ones(1, np.float32), name="weight")
        loss = (arenite.input("x", (1,)) * weight).sum()
        step = arenite.train(loss, arenite.optim.SGD(1.0), average=arenite.optim.Average())
        model = arenite.compile(
            loss, updates=[step], entries={"mean": arenite.entry(loss, averaged=True)}
        )
        for _ in range(2):
            model.train_step([1.0])
        self.assertEqual(float(model.entries["mean"]([1.0])), -0.5)
        self.assertEqual(float(model([1.0])), -1)

    def test_refuse(self):
        predict = self.model.entries["predict"]
        with self.raises(TypeError, "an unknown input 'label'; expected x"):
            predict(x=floats(2, 4), label=np.zeros(2, np.int32))
        with self.raises(TypeError, "2 arrays; expected at most 1: x"):
            predict(floats(2, 4), floats(2, 4))
        y = arenite.input("y", (2,)).relu()
        with self.raises(TypeError, "3 among the outputs; expected Tensors"):
            arenite.compile(y, entries={"z": 3})
        with self.raises(TypeError, "an entry named 3; expected a text"):
            arenite.compile(y, entries={3: y})
        with self.assertRaisesRegex(ValueError, "an entry named 'train'; expected another name"):
            arenite.compile(y, entries={"train": y})
        with self.raises(ValueError, "mode 'test' of an entry; expected 'train' or 'evaluate'"):
            arenite.entry(y, mode="test")


class Scripts(testing.TestCase):
    SCRIPT = """$1 = InputTensor(x, float32, [2]); $2 = ConstantTensor(c, float32, [2]);
                $3 = SumNode($1, $2); result = $3;"""

    def test_scripts_are_compiled(self):
        model = arenite.compile_script(self.SCRIPT, {"c": [1.0, 2.0]})
        self.assertEqual(model(x=[1, 1]).tolist(), [2, 3])
        self.assertEqual(model.script, self.SCRIPT)
        plain = arenite.compile_script(self.SCRIPT, {"c": [1, 2]})  # numbers become float32
        self.assertEqual(plain(x=[1, 1]).tolist(), [2, 3])
        odd = """$1 = ConstantTensor( "a b" ,int64, []); # $9 = ConstantTensor(a, float32, [2]);
                 $2 = ConstantTensor(a#, float32, [2]);
                 , float32, [1]); result = $1, $2;"""
        found = arenite.compile_script(odd, {"a b": 7, "a": np.ones(1, np.float32)})()
        self.assertEqual([a.tolist() for a in found], [7, [1]])
        two = arenite.compile_script("$1 = InputTensor(x, int32, [1]); result = $1, $1;")
        self.assertEqual([a.tolist() for a in two(5)], [[5], [5]])

    def test_what_is_wrong_is_said_with_its_line(self):
        with self.raises(
            arenite.InvalidError,
            "<script>:2:6: unknown operator 'rellu'; expected a registered operator "
            "(hint: did you mean 'relu'?)",
        ):
            arenite.compile_script(
                "$1 = InputTensor(x, float32, [2]);\n$2 = rellu($1); result = $2;"
            )
        with self.raises(arenite.InvalidError, "no constant 'c'; expected all of c"):
            arenite.compile_script(self.SCRIPT)
        with self.raises(
            arenite.InvalidError, "an array of shape [3] for constant 'c'; expected [2]"
        ):
            arenite.compile_script(self.SCRIPT, {"c": [1.0, 2.0, 3.0]})
        # Of as many bytes, but of another type.
        with self.raises(
            arenite.InvalidTypeError,
            "float64 for constant 'c'; expected float32 (hint: .astype('float32'))",
        ):
            arenite.compile_script(self.SCRIPT, {"c": np.ones(1)})
        with self.raises(arenite.InvalidTypeError, "a script that is a bytes; expected a text"):
            arenite.compile_script(b"result = _;")


class Buffers(testing.TestCase):
    def test_they_persist_over_calls_and_belong_to_a_model(self):
        cache, row, at = (
            arenite.buffer((3, 2)),
            arenite.input("row", (1, 2)),
            arenite.input("at", (1,), "int64"),
        )
        new = cache.replace(row, at)
        model, other = arenite.compile([new, cache]), arenite.compile([new, cache])
        self.assertEqual(model(row=[[1, 2]], at=0)[0].tolist(), [[1, 2], [0, 0], [0, 0]])
        found, before = model(row=[[3, 4]], at=2)
        self.assertEqual(found.tolist(), [[1, 2], [0, 0], [3, 4]])
        self.assertEqual(before.tolist(), [[1, 2], [0, 0], [0, 0]])
        self.assertEqual(other(row=[[5, 6]], at=1)[0].tolist(), [[0, 0], [5, 6], [0, 0]])
        with self.assertRaisesRegex(arenite.InvalidError, "rows reach beyond the first axis"):
            model(row=[[9, 9]], at=3)
        self.assertEqual(model(row=[[7, 8]], at=1)[0].tolist(), [[1, 2], [7, 8], [3, 4]])

    def test_a_replacement_that_no_output_needs_is_an_update(self):
        total, x = arenite.buffer((2,)), arenite.input("x", (2,))
        model = arenite.compile(total, updates=[total.replace(total + x, 0)])
        model([1, 2])
        model([1, 2])
        self.assertEqual(model([0, 0]).tolist(), [2, 4])


class Threads(testing.TestCase):
    def together(self, *actions):
        failures = []

        def guarded(action):
            try:
                action()
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=guarded, args=(action,)) for action in actions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def test_one_model_and_several_threads(self):
        x = arenite.input("x", (64, 64))
        model = arenite.compile((x @ x).relu())

        def work(seed):
            a = np.random.default_rng(seed).standard_normal((64, 64)).astype(np.float32)
            expected = np.maximum(a @ a, 0)
            for _ in range(50):
                np.testing.assert_allclose(model(a), expected, rtol=1e-3, atol=1e-3)

        self.together(*[lambda seed=seed: work(seed) for seed in range(4)])

    def test_compiling_and_freeing_in_several_threads(self):
        def work(factor):
            for _ in range(10):
                x = arenite.input("x", (8,))
                self.assertEqual(
                    arenite.compile(x * factor)(np.ones(8, np.float32)).tolist(), [factor] * 8
                )

        self.together(*[lambda f=f: work(f) for f in range(1, 4)])

    def test_a_model_may_be_closed_while_it_runs(self):
        x = arenite.input("x", (256, 256))
        model, a = arenite.compile(x @ x @ x), np.ones((256, 256), np.float32)
        started = threading.Event()

        def work():
            while True:
                try:
                    model(a)
                except arenite.InvalidError as error:
                    self.assertIn("closed", str(error))
                    return
                started.set()

        def close():
            self.assertTrue(started.wait(60))
            model.close()

        self.together(work, close)

    def test_blocks_are_described_by_a_thread_for_itself(self):
        inside, done = threading.Event(), threading.Event()
        c, x = arenite.input("c", (1,), "int64"), arenite.input("x", (1,))

        def then():
            inside.set()
            self.assertTrue(done.wait(60))
            return x + 1

        def other():
            self.assertTrue(inside.wait(60))
            try:
                self.assertEqual(run(x * 2, x=[2.0]).tolist(), [4])
            finally:
                done.set()

        self.together(
            lambda: self.assertEqual(
                run(arenite.cond(c, then, lambda: x), c=1, x=[1.0]).tolist(), [2]
            ),
            other,
        )


class Plans(testing.TestCase):
    def setUp(self):
        x = arenite.input("x", (128, 784))
        hidden = (x @ floats(784, 100)).relu()
        self.plan = arenite.compile(hidden @ floats(100, 10)).plan

    def test_numbers_agree_with_the_json(self):
        plan = self.plan
        self.assertTrue(plan.optimal)
        self.assertEqual(plan.arena_bytes, plan.lower_bound)
        self.assertGreaterEqual(plan.separate, plan.arena_bytes)
        self.assertGreater(plan.bytes, plan.arena_bytes)
        self.assertEqual(plan.json["lower_bound"], plan.lower_bound)
        self.assertEqual(plan.json["format"], "arenite step plan 1")

    def test_it_can_be_read(self):
        plan = self.plan
        self.assertRegex(
            repr(plan),
            r"^Plan\n  all blocks   [\d.]+ KiB\n  arena        [\d.]+ KiB \(optimal, proved\)\n"
            r"  lower bound  [\d.]+ KiB\n  separately   [\d.]+ KiB \([\d.]+ % saved\)$",
        )
        root = xml.etree.ElementTree.fromstring(plan._repr_svg_())
        self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
        self.assertIn("matmul", plan._repr_svg_())
        self.assertRegex(plan._repr_html_(), "^<table><tr><th[^>]*>all blocks</th>")
        self.assertIn(plan.svg, plan._repr_html_())

    def test_sizes_as_text(self):
        for count, text in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1234567, "1.18 MiB"),
            (2**40, "1.00 TiB"),
        ]:
            self.assertEqual(arenite.plan.bytes_text(count), text)


if __name__ == "__main__":
    testing.main()
