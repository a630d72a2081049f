"""libarenite.so for tests in Python, through ctypes: NumPy arrays in, NumPy arrays out."""
import ctypes
import pathlib

import numpy

MAX_RANK = 8
TYPES = [numpy.dtype(name) for name in ("float32", "float64", "int64", "int32", "uint8")]


class Error(Exception):
    """What a call reports: the library's message, as it is."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class _Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("bytes", ctypes.c_int64)]


class _Port(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("rank", ctypes.c_int),
                ("shape", ctypes.c_int64 * MAX_RANK), ("bytes", ctypes.c_int64)]


class _Options(ctypes.Structure):
    _fields_ = [("device", ctypes.c_char_p), ("workers", ctypes.c_int)]


def _tensors(arrays):
    """The arrays as C has them, and what must outlive the call."""
    kept = [(name.encode(), numpy.ascontiguousarray(array)) for name, array in arrays.items()]
    # ascontiguousarray makes a scalar an array of one.
    return (_Tensor * len(kept))(*[_Tensor(name, array.ctypes.data, array.nbytes)
                                   for name, array in kept]), kept


class Library:
    """libarenite.so in a folder, and one session."""

    def __init__(self, folder, workers=1):
        self.c = ctypes.CDLL(str(pathlib.Path(folder) / "libarenite.so"))
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        self.c.arenite_free.argtypes = [pointer]
        self.c.arenite_model_create.argtypes = [pointer, ctypes.c_char_p, pointer, size, pointer, pointer, pointer]
        self.c.arenite_model_evaluate.argtypes = [pointer, pointer, size, pointer, size, pointer]
        self.c.arenite_model_free.argtypes = [pointer]
        self.c.arenite_model_output_count.argtypes = [pointer]
        self.c.arenite_model_output_count.restype = size
        self.c.arenite_model_output.argtypes = [pointer, size, pointer, pointer]
        self.c.arenite_session_create.argtypes = [pointer, pointer, pointer]
        self.c.arenite_session_destroy.argtypes = [pointer]
        self.session = ctypes.c_void_p()
        self.call(self.c.arenite_session_create, ctypes.byref(_Options(b"cpu", workers)),
                  ctypes.byref(self.session))

    def close(self):
        self.c.arenite_session_destroy(self.session)

    def call(self, function, *arguments):
        message = ctypes.c_void_p()
        status = function(*arguments, ctypes.byref(message))
        if status == 0:
            return
        text = ctypes.string_at(message.value).decode()
        self.c.arenite_free(message)
        raise Error(status, text)

    def compile(self, script, **constants):
        return Model(self, script, constants)


class Model:
    def __init__(self, library, script, constants):
        self.library, self.model = library, ctypes.c_void_p()
        tensors, _kept = _tensors(constants)
        library.call(library.c.arenite_model_create, library.session, script.encode(), tensors,
                     len(tensors), None, ctypes.byref(self.model))
        self.outputs = []  # (type, shape)
        for index in range(library.c.arenite_model_output_count(self.model)):
            port = _Port()
            library.call(library.c.arenite_model_output, self.model, index, ctypes.byref(port))
            self.outputs.append((TYPES[port.type], tuple(port.shape[:port.rank])))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.library.c.arenite_model_free(self.model)

    def evaluate(self, **inputs):
        """All outputs, as arrays of their own."""
        tensors, _kept = _tensors(inputs)
        results = [numpy.empty(shape, dtype) for dtype, shape in self.outputs]
        places = (ctypes.c_void_p * len(results))(*[result.ctypes.data for result in results])
        self.library.call(self.library.c.arenite_model_evaluate, self.model, tensors, len(tensors),
                          places, len(results))
        return results
