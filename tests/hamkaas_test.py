#!/usr/bin/env python3
"""libhamkaas.so as its Python callers use it: through ctypes alone.

hamkaas_test.py FOLDER, where libhamkaas.so and libarenite.so are.
"""
import ctypes
import pathlib
import subprocess
import sys
import unittest

FOLDER = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".")


class Initialized(ctypes.Structure):
    _fields_ = [("handle", ctypes.c_void_p), ("error", ctypes.c_void_p)]


class Compiled(ctypes.Structure):
    _fields_ = [("model", ctypes.c_void_p), ("error", ctypes.c_void_p)]


class NamedTensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p)]


class Options(ctypes.Structure):
    _fields_ = [("use_gpu", ctypes.c_bool), ("use_cudnn", ctypes.c_bool)]


def load():
    lib = ctypes.CDLL(str(FOLDER / "libhamkaas.so"))
    lib.HamKaasInitialize.restype = Initialized
    lib.HamKaasInitialize.argtypes = []
    lib.HamKaasFinalize.restype = None
    lib.HamKaasFinalize.argtypes = [ctypes.c_void_p]
    lib.HamKaasCompileModel.restype = Compiled
    lib.HamKaasCompileModel.argtypes = [ctypes.c_void_p, Options, ctypes.c_char_p, ctypes.POINTER(NamedTensor),
                                        ctypes.c_int]
    lib.HamKaasFreeModel.restype = None
    lib.HamKaasFreeModel.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    lib.HamKaasEvaluateModel.restype = ctypes.c_void_p
    lib.HamKaasEvaluateModel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(NamedTensor), ctypes.c_int,
                                         ctypes.c_void_p]
    lib.HamKaasFreeErrorMessage.restype = None
    lib.HamKaasFreeErrorMessage.argtypes = [ctypes.c_void_p]
    lib.HamKaasInverseElements.restype = ctypes.c_void_p
    lib.HamKaasInverseElements.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    return lib


def floats(*values):
    return (ctypes.c_float * len(values))(*values)


def longs(*values):
    return (ctypes.c_int64 * len(values))(*values)


class HamKaas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lib = load()
        made = cls.lib.HamKaasInitialize()
        assert not made.error
        cls.handle = made.handle

    @classmethod
    def tearDownClass(cls):
        cls.lib.HamKaasFinalize(cls.handle)

    def check(self, error):
        """Raises what the library reports, and frees it."""
        if error:
            text = ctypes.string_at(error).decode()
            self.lib.HamKaasFreeErrorMessage(error)
            raise RuntimeError(text)

    def named(self, tensors):
        return (NamedTensor * len(tensors))(*[
            NamedTensor(name.encode(), ctypes.addressof(data)) for name, data in tensors.items()
        ])

    def compile(self, script, use_gpu=False, use_cudnn=False, **constants):
        made = self.lib.HamKaasCompileModel(self.handle, Options(use_gpu, use_cudnn), script.encode(),
                                            self.named(constants), len(constants))
        self.check(made.error)
        self.addCleanup(self.lib.HamKaasFreeModel, self.handle, made.model)
        return made.model

    def evaluate(self, model, count, **inputs):
        out = floats(*[-1] * count)
        self.check(self.lib.HamKaasEvaluateModel(self.handle, model, self.named(inputs), len(inputs), out))
        return list(out)

    def test_results_may_be_declared(self):
        x = floats(1, 2, 3)
        self.assertEqual(self.evaluate(self.compile("$1 = InputTensor(x, float32, [3]); result = $1;"), 3, x=x), [1, 2, 3])
        model = self.compile("$1 = ConstantTensor(c, float32, [2]); result = $1;", c=floats(5, 6))
        self.assertEqual(self.evaluate(model, 2), [5, 6])
        self.assertEqual(self.evaluate(self.compile("$1 = BufferTensor(float32, [2]); result = $1;"), 2), [0, 0])

    def test_inputs_that_are_missing_unknown_or_given_twice(self):
        model = self.compile("$1 = InputTensor(x, float32, [1]); $2 = ReLUNode($1); result = $2;")
        with self.assertRaisesRegex(RuntimeError, "^no input 'x'; expected all of x$"):
            self.evaluate(model, 1)
        with self.assertRaisesRegex(RuntimeError, "^an unknown input 'y'; expected x$"):
            self.evaluate(model, 1, x=floats(1), y=floats(1))
        with self.assertRaisesRegex(RuntimeError, "a second input named .x.; expected a name of its own"):
            self.compile("$1 = InputTensor(x, float32, [1]); $2 = InputTensor(x, float32, [1]);"
                         "$3 = SumNode($1, $2); result = $3;")
        x = floats(2)
        twice = (NamedTensor * 2)(*[NamedTensor(b"x", ctypes.addressof(x))] * 2)
        out = floats(0)
        with self.assertRaisesRegex(RuntimeError, "^input 'x' twice; expected each input once$"):
            self.check(self.lib.HamKaasEvaluateModel(self.handle, model, twice, 2, out))
        self.assertEqual(self.evaluate(model, 1, x=x), [2])

    def test_scripts_that_are_wrong(self):
        with self.assertRaisesRegex(RuntimeError, r"^<script>:1:1: the end of the script; expected 'result"):
            self.compile("")
        with self.assertRaisesRegex(RuntimeError, r"unknown reference '\$2'"):
            self.compile("$1 = ReLUNode($2); result = $1;")
        with self.assertRaisesRegex(RuntimeError, "no constant 'c'"):
            self.compile("$1 = ConstantTensor(c, float32, [2]); result = $1;")
        with self.assertRaisesRegex(RuntimeError, "^2 results; expected one$"):
            self.compile("$1 = InputTensor(x, float32, [1]); result = $1, $1;")

    def test_a_gpu_where_there_is_none(self):
        script = "$1 = InputTensor(x, float32, [1]); result = $1;"
        with self.assertRaisesRegex(RuntimeError, "^device 'cuda'; expected one of the session's: cpu"):
            self.compile(script, use_gpu=True)
        with self.assertRaisesRegex(RuntimeError, "^use_cudnn without use_gpu; expected cuDNN on a GPU, or neither"):
            self.compile(script, use_cudnn=True)

    def test_five_evaluations_add_up_in_a_buffer(self):
        model = self.compile(
            """$1 = BufferTensor(float32, [2]);
               $2 = InputTensor(x, float32, [2]);
               $3 = SumNode($1, $2);
               $4 = ConstantTensor(begin, int64, [1]);
               $5 = ConstantTensor(end, int64, [1]);
               $6 = ReplaceSliceNode($1, $3, $4, $5);
               result = $6;""", begin=longs(0), end=longs(2))
        for time in range(1, 6):
            self.assertEqual(self.evaluate(model, 2, x=floats(1, 10)), [time, 10 * time])

    def test_an_index_out_of_range_is_an_error_and_no_write(self):
        model = self.compile("""$1 = BufferTensor(float32, [3]);
                                $2 = InputTensor(x, float32, [1]);
                                $3 = InputTensor(begin, int64, [1]);
                                $4 = InputTensor(end, int64, [1]);
                                $5 = ReplaceSliceNode($1, $2, $3, $4);
                                result = $5;""")
        for begin, end in [(3, 4), (-1, 0), (0, 2), (2, 1), (1 << 62, (1 << 62) + 1)]:
            with self.assertRaisesRegex(RuntimeError, "begin|end"):
                self.evaluate(model, 3, x=floats(9), begin=longs(begin), end=longs(end))
        self.assertEqual(self.evaluate(model, 3, x=floats(7), begin=longs(2), end=longs(3)), [0, 0, 7])

    def test_constants_stay_what_they_were(self):
        c = floats(1, -2, 3)
        model = self.compile("""$1 = ConstantTensor(c, float32, [3]);
                                $2 = ReLUNode($1);
                                $3 = SumNode($1, $2);
                                result = $3;""", c=c)
        for index in range(3):
            c[index] = 99  # borrowed by the compiler alone
        for _ in range(100):
            self.assertEqual(self.evaluate(model, 3), [2, -2, 6])

    def test_inverse_elements(self):
        x, y = floats(1, 2, -4), floats(0, 0, 0)
        self.check(self.lib.HamKaasInverseElements(x, y, 3))
        self.assertEqual(list(y), [1, 0.5, -0.25])
        self.check(self.lib.HamKaasInverseElements(None, None, 0))
        with self.assertRaisesRegex(RuntimeError, "^a division by zero at element 1; expected"):
            self.check(self.lib.HamKaasInverseElements(floats(1, 0), y, 2))
        with self.assertRaisesRegex(RuntimeError, "^-1 elements"):
            self.check(self.lib.HamKaasInverseElements(x, y, -1))


class Ends(unittest.TestCase):
    def test_a_process_may_end_with_its_handle_and_models_open(self):
        program = """
import hamkaas_test
one = hamkaas_test.HamKaas()
one.setUpClass()
one.compile("$1 = InputTensor(x, float32, [1]); result = $1;")
"""
        done = subprocess.run([sys.executable, "-c", program, str(FOLDER.resolve())], capture_output=True, text=True,
                              cwd=pathlib.Path(__file__).parent, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Memory(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_int64), ("arena_bytes", ctypes.c_int64), ("lower_bound", ctypes.c_int64),
                ("separate", ctypes.c_int64), ("optimal", ctypes.c_int)]


class Chains(unittest.TestCase):
    def test_a_chain_takes_no_more_slots_the_longer_it_is(self):
        lib = ctypes.CDLL(str(FOLDER / "libarenite.so"))
        session, message = ctypes.c_void_p(), ctypes.c_char_p()
        self.assertEqual(lib.arenite_session_create(None, ctypes.byref(session), ctypes.byref(message)), 0)
        taken = []
        for length in (1, 100, 1000):  # ten are one op
            script = "$1 = InputTensor(x, float32, [1024]);"
            for i in range(2, length + 2):
                # Both operands are needed: nothing may run in place.
                script += f"${i} = SumNode(${i - 1}, ${max(1, i - 2)});"
            model, memory = ctypes.c_void_p(), Memory()
            self.assertEqual(
                lib.arenite_model_create(session, (script + f"result = ${length + 1};").encode(), None, ctypes.c_size_t(0),
                                         None, ctypes.byref(model), ctypes.byref(message)), 0, message.value)
            self.assertEqual(lib.arenite_model_memory(model, ctypes.byref(memory), None), 0)
            taken.append(memory.arena_bytes)
            self.assertLessEqual(memory.arena_bytes, 3 * 4096)
            lib.arenite_model_free(model)
        self.assertEqual(taken[1], taken[2])
        lib.arenite_session_destroy(session)


if __name__ == "__main__":
    unittest.main()
