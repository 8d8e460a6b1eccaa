# SPDX-License-Identifier: Apache-2.0
"""libdqrun through ctypes: models from bytes, sessions of any level, arrays in and out, without a process for each run."""

import contextlib
import ctypes

import ml_dtypes
import numpy as np

DTYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
          10: np.float16, 11: np.float64, 16: ml_dtypes.bfloat16}
NUMBERS = {np.dtype(dtype): number for number, dtype in DTYPES.items()}


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("message", ctypes.c_char * 1024)]


class LogRecord(ctypes.Structure):
    """dq_log_record."""
    _fields_ = [("size", ctypes.c_size_t), ("kind", ctypes.c_int), ("message", ctypes.c_char_p)]


class TraceEvent(ctypes.Structure):
    """dq_trace_event, as far as this file needs it."""
    _fields_ = [("size", ctypes.c_size_t), ("node", ctypes.c_char_p), ("op", ctypes.c_char_p), ("seconds", ctypes.c_double)]


LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(LogRecord))
TRACE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(TraceEvent))


class Options(ctypes.Structure):
    """dq_session_options, as far as this file needs it."""
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_uint), ("isa", ctypes.c_char_p), ("no_fuse", ctypes.c_bool),
                ("honor_accuracy_level", ctypes.c_bool), ("trace", TRACE), ("log", LOG),
                ("arg", ctypes.c_void_p), ("pool", ctypes.c_void_p), ("progress", ctypes.c_void_p),
                ("allocator", ctypes.c_void_p), ("disabled_passes", ctypes.c_char_p), ("algorithms", ctypes.c_char_p)]


class Failure(Exception):
    """A call that returned a status; the message of its dq_error."""


class Library:
    def __init__(self, path):
        lib = self.lib = ctypes.CDLL(str(path))
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        for name, result, *arguments in (
                ("model_load_memory", ctypes.c_int, ctypes.c_char_p, size, ctypes.c_char_p, pointer, pointer, pointer),
                ("model_free", None, pointer), ("session_free", None, pointer), ("tensor_free", None, pointer),
                ("session_create", ctypes.c_int, pointer, pointer, pointer, pointer),
                ("session_set_input", ctypes.c_int, pointer, ctypes.c_char_p, pointer, pointer),
                ("session_run", ctypes.c_int, pointer, pointer),
                ("session_get_output", ctypes.c_int, pointer, ctypes.c_char_p, pointer, pointer),
                ("tensor_wrap", ctypes.c_int, ctypes.c_int, size, pointer, pointer, size, pointer, pointer),
                ("tensor_dtype", ctypes.c_int, pointer), ("tensor_rank", size, pointer),
                ("tensor_dims", ctypes.POINTER(ctypes.c_int64), pointer), ("tensor_size", size, pointer),
                ("tensor_data", pointer, pointer), ("isa_name", ctypes.c_char_p, size, pointer)):
            function = getattr(lib, "dq_" + name)
            function.restype, function.argtypes = result, arguments

    def levels(self):
        """Names of the instruction set levels that this processor has, the lowest first."""
        names, available = [], ctypes.c_bool()
        while name := self.lib.dq_isa_name(len(names), ctypes.byref(available)):
            names.append((name.decode(), available.value))
        return [name for name, has in names if has]

    def call(self, name, *arguments):
        error = Error()
        if getattr(self.lib, "dq_" + name)(*arguments, ctypes.byref(error)):
            raise Failure(error.message.decode(errors="replace"))


class Model:
    def __init__(self, library, data):
        self.library, self.handle, self.data = library, ctypes.c_void_p(), data
        library.call("model_load_memory", data, len(data), b"case", None, ctypes.byref(self.handle))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.library.lib.dq_model_free(self.handle)

    def run(self, feeds, outputs, isa=None, threads=1, fuse=True, algorithms=None, honor_accuracy_level=False):
        """Arrays of the outputs, and what the planner told."""
        told = []
        log = LOG(lambda _, record: told.append(record.contents.message.decode(errors="replace")))
        options = Options(size=ctypes.sizeof(Options), threads=threads, isa=isa.encode() if isa else None, no_fuse=not fuse,
                          honor_accuracy_level=honor_accuracy_level, log=log, algorithms=algorithms.encode() if algorithms else None)
        with self.session(feeds, options) as session:
            self.library.call("session_run", session)
            return {name: self.output(session, name) for name in outputs}, told

    def time(self, feeds, isa, algorithms, repeat):
        """What the planner told, and the least seconds of the slowest step in `repeat` runs on one thread after two others."""
        told, seconds, steps = [], [], []
        log = LOG(lambda _, record: told.append(record.contents.message.decode(errors="replace")))
        trace = TRACE(lambda _, event: steps.append(event.contents.seconds))
        options = Options(size=ctypes.sizeof(Options), threads=1, isa=isa.encode(), honor_accuracy_level=True, log=log, trace=trace,
                          algorithms=algorithms.encode())
        with self.session(feeds, options) as session:
            for i in range(2 + repeat):
                steps.clear()
                self.library.call("session_run", session)
                if i >= 2:
                    seconds.append(max(steps))
        return told, min(seconds)

    @contextlib.contextmanager
    def session(self, feeds, options):
        """A session with its inputs set."""
        lib, call = self.library.lib, self.library.call
        session, tensors = ctypes.c_void_p(), []
        call("session_create", self.handle, ctypes.byref(options), ctypes.byref(session))
        try:
            for name, array in feeds.items():
                array = np.ascontiguousarray(array).reshape(array.shape)
                dims, tensor = (ctypes.c_int64 * max(1, array.ndim))(*array.shape), ctypes.c_void_p()
                call("tensor_wrap", NUMBERS[array.dtype], array.ndim, dims, array.ctypes.data, array.nbytes,
                     ctypes.byref(tensor))
                tensors.append((tensor, array))
                call("session_set_input", session, name.encode(), tensor)
            yield session
        finally:
            lib.dq_session_free(session)
            for tensor, _ in tensors:
                lib.dq_tensor_free(tensor)

    def output(self, session, name):
        lib, tensor = self.library.lib, ctypes.c_void_p()
        self.library.call("session_get_output", session, name.encode(), ctypes.byref(tensor))
        dims = lib.dq_tensor_dims(tensor)
        shape = [dims[i] for i in range(lib.dq_tensor_rank(tensor))]
        size = lib.dq_tensor_size(tensor)
        data = ctypes.string_at(lib.dq_tensor_data(tensor), size) if size else b""
        return np.frombuffer(data, DTYPES[lib.dq_tensor_dtype(tensor)]).reshape(shape)
