# SPDX-License-Identifier: Apache-2.0
"""Sessions of libdqrun.so by ctypes, for the measurements that need one session over many runs."""

import ctypes as c
import sys

import numpy as np

TYPES = {np.dtype(np.float32): 1, np.dtype(np.uint8): 2, np.dtype(np.int8): 3, np.dtype(np.int32): 6, np.dtype(np.int64): 7,
         np.dtype(np.bool_): 9, np.dtype(np.float16): 10}


class Options(c.Structure):
    _fields_ = [("size", c.c_size_t), ("threads", c.c_uint), ("isa", c.c_char_p), ("no_fuse", c.c_bool), ("honor_accuracy_level", c.c_bool),
                ("trace", c.c_void_p), ("why", c.c_void_p), ("arg", c.c_void_p), ("pool", c.c_void_p)]


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("message", c.c_char * 1024)]


class Session:
    """Inputs are arrays that the session reads where they are: each is kept until another one takes its place."""

    def __init__(self, path, model, isa=None, threads=1, honor=False):
        self.lib, self.error, self.tensors = c.CDLL(path), Error(), {}
        self.model, self.session = c.c_void_p(), c.c_void_p()
        self.lib.dq_session_isa.restype = c.c_char_p
        self.must(self.lib.dq_model_load(str(model).encode(), None, c.byref(self.model), c.byref(self.error)))
        options = Options(size=c.sizeof(Options), threads=threads, isa=isa.encode() if isa else None, honor_accuracy_level=honor)
        self.must(self.lib.dq_session_create(self.model, c.byref(options), c.byref(self.session), c.byref(self.error)))

    def must(self, status):
        if status:
            sys.exit(self.error.message.decode())

    def isa(self):
        return self.lib.dq_session_isa(self.session).decode()

    def set(self, name, array, output=None):
        """The array is input `name` and, if an output is named, also where the run writes that output."""
        t, dims = c.c_void_p(), (c.c_int64 * max(array.ndim, 1))(*array.shape)
        self.must(self.lib.dq_tensor_wrap(TYPES[array.dtype], c.c_size_t(array.ndim), dims, c.c_void_p(array.ctypes.data),
                                          c.c_size_t(array.nbytes), c.byref(t), c.byref(self.error)))
        self.must(self.lib.dq_session_set_input(self.session, name.encode(), t, c.byref(self.error)))
        if output:
            self.must(self.lib.dq_session_set_output(self.session, output.encode(), t, c.byref(self.error)))
        old = self.tensors.get(name)
        self.tensors[name] = t, array
        if old:
            self.lib.dq_tensor_free(old[0])

    def run(self):
        self.must(self.lib.dq_session_run(self.session, c.byref(self.error)))

    def close(self):
        """Frees the session, its model and the tensors; the arrays are the caller's."""
        self.lib.dq_session_free(self.session)
        self.lib.dq_model_free(self.model)
        for tensor, _ in self.tensors.values():
            self.lib.dq_tensor_free(tensor)
