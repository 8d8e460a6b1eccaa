# SPDX-License-Identifier: Apache-2.0
"""One-node cases, and how they run: on dqrun many in one model, on ONNX Runtime each in its own session.

A module of this folder describes operators with functions that yield cases:

    def qlinear_mul(rng):
        while True:
            yield Case("QLinearMul", [a, scale, None, b, ...], [np.uint8], reference=[expected])

    OPERATORS = {"QLinearMul": (qlinear_mul, 300)}      # the function and how many cases to take

and compare.py finds it by the name of its file in MODULES. See Case for what a case says.
"""

import copy
import pathlib
import subprocess
import sys

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import processors  # noqa: E402  pylint: disable=wrong-import-position

DOMAIN = "com.microsoft"
OPSET, IR = 21, 10  # what ONNX Runtime loads, with 4-bit types
TIMEOUT = 300


class Case:
    """One node.

    inputs     arrays, None for one that is left out
    outputs    numpy types of the outputs; None for one that is not expected
    attrs      as onnx.helper.make_node takes them
    reference  the expected arrays, one an output (None: not compared), worked out here in numpy; or None
    ort        whether ONNX Runtime is asked (it may refuse: that is counted). Off where it crashes or is wrong
    fed        positions of inputs that are fed at run time; the others are initializers
    quantum    integers may differ by this much from ONNX Runtime's; those that do are counted
    rtol atol  floats are equal within atol + rtol * |expected|; both 0: the same bits (NaN equal to NaN)
    opset      of the standard's domain
    """

    def __init__(self, op, inputs, outputs, attrs=None, reference=None, ort=True, fed=(0,), quantum=0, rtol=0.0,
                 atol=0.0, domain=DOMAIN, opset=OPSET):
        self.op, self.outputs, self.attrs = op, outputs, attrs or {}
        self.inputs = [None if x is None else np.asarray(x) for x in inputs]
        self.reference, self.ort, self.fed = reference, ort, set(fed)
        self.quantum, self.rtol, self.atol = quantum, rtol, atol
        self.domain, self.opset = domain, opset

    def close(self, got, want, quantum=0):
        """A mask of the elements that are as expected; None when type or shape differ."""
        want = np.asarray(want)
        if got.shape != want.shape or got.dtype != want.dtype:
            return None
        if is_float(want.dtype):
            g, w = got.astype(np.float64), want.astype(np.float64)
            same = (got == want) | (np.isnan(g) & np.isnan(w))
            with np.errstate(invalid="ignore"):
                return same | (np.abs(g - w) <= self.atol + self.rtol * np.abs(w))
        return np.abs(got.astype(np.int64) - want.astype(np.int64)) <= quantum

    def parts(self, prefix):
        """Node, graph inputs with their arrays, initializers, outputs; all names begin with the prefix."""
        names, fed, constants = [], [], []
        for i, x in enumerate(self.inputs):
            name = "" if x is None else f"{prefix}x{i}"
            names.append(name)
            if x is None:
                continue
            if i in self.fed:
                fed.append((name, x))
            else:
                constants.append(numpy_helper.from_array(x, name))
        outs = ["" if t is None else f"{prefix}y{i}" for i, t in enumerate(self.outputs)]
        node = helper.make_node(self.op, names, outs, name=f"{prefix}node", domain=self.domain, **self.attrs)
        inputs = [helper.make_tensor_value_info(n, onnx_type(x.dtype), x.shape) for n, x in fed]
        outputs = [
            helper.make_tensor_value_info(n, onnx_type(t), None) for n, t in zip(outs, self.outputs) if t is not None
        ]
        return node, inputs, constants, outputs, dict(fed)


def is_float(dtype):
    return dtype.kind == "f" or dtype in (np.dtype(ml_dtypes.bfloat16),)


def onnx_type(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def model_of(cases):
    """One model with a node for each case, and the arrays to feed."""
    nodes, inputs, constants, outputs, feeds = [], [], [], [], {}
    for number, case in enumerate(cases):
        node, ins, consts, outs, fed = case.parts(f"c{number}_")
        nodes.append(node)
        inputs += ins
        constants += consts
        outputs += outs
        feeds.update(fed)
    graph = helper.make_graph(nodes, "cases", inputs, outputs, constants)
    domains = {case.domain: 1 for case in cases if case.domain}
    opsets = [helper.make_opsetid("", cases[0].opset)] + [helper.make_opsetid(d, v) for d, v in domains.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR), feeds


def to_file(array):
    """As .npz holds it: types that numpy lacks are raw bytes, an element a byte or two."""
    array = np.asarray(array)
    return array if is_plain(array) else array.view(f"V{array.dtype.itemsize}")


class Dqrun:
    def __init__(self, program, folder, isa=None):
        self.program, self.folder, self.isa = program, pathlib.Path(folder), isa

    def run(self, cases):
        """Outputs of each case, or the sentence of its refusal. One run for all; when it fails, the two halves."""
        model, feeds = model_of(cases)
        (self.folder / "model.onnx").write_bytes(model.SerializeToString())
        np.savez(self.folder / "in.npz", **{name: to_file(x) for name, x in feeds.items()})
        command = [self.program, "model.onnx", "in.npz", "-o", "out.npz", "-q", "--honor-accuracy-level"]
        command += ["--isa", self.isa] if self.isa else []
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        if done.returncode == 0:
            return self.results(cases)
        if len(cases) > 1:
            half = len(cases) // 2
            return self.run(cases[:half]) + self.run(cases[half:])
        return [f"exit code {done.returncode}: {done.stderr.strip()}"]

    def results(self, cases):
        found = []
        with np.load(self.folder / "out.npz") as file:
            for number, case in enumerate(cases):
                outs = []
                for i, dtype in enumerate(case.outputs):
                    array = None if dtype is None else file[f"c{number}_y{i}"]
                    if array is not None and array.dtype.kind == "V":
                        array = array.view(dtype)
                    outs.append(array)
                found.append(outs)
        return found


def ort_model(case):
    """The case as a model that takes and gives only types that numpy has: inputs of others are initializers, outputs of
    others are cast to a wider type."""
    plain = copy.copy(case)
    plain.fed = {i for i in case.fed if i < len(case.inputs) and case.inputs[i] is not None and is_plain(case.inputs[i])}
    model, feeds = model_of([plain])
    for output in model.graph.output:
        kind = helper.tensor_dtype_to_np_dtype(output.type.tensor_type.elem_type)
        if kind.kind in "biufc":
            continue
        wide = onnx.TensorProto.FLOAT if is_float(kind) else onnx.TensorProto.INT8
        model.graph.node.append(helper.make_node("Cast", [output.name], [output.name + "_wide"], to=wide))
        output.CopyFrom(helper.make_tensor_value_info(output.name + "_wide", wide, None))
    return model, feeds


def is_plain(array):
    return array.dtype.kind in "biufc"


def narrow(array, dtype):
    return array if np.dtype(dtype).kind in "biufc" else array.astype(dtype)


def saturates(case):
    """Whether ONNX Runtime's kernel saturates here. Its exact mode reaches the other operators only."""
    signed = any(x is not None and x.dtype == np.int8 for x in case.inputs)
    return case.op in ("DynamicQuantizeLSTM", "QAttention") and signed and not processors.has_dot_products()


def run_ort(case):
    """Outputs, or the sentence of the refusal."""
    import onnxruntime as ort

    if saturates(case):
        return "its products saturate on this processor"

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.x64quantprecision", "1")
    model, feeds = ort_model(case)
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        results = iter(session.run(None, feeds))
    except Exception as error:  # its exceptions have no common base
        return str(error)
    return [None if dtype is None else narrow(next(results), dtype) for dtype in case.outputs]
