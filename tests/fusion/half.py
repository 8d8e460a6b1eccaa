# SPDX-License-Identifier: Apache-2.0
"""The patterns in float16 and bfloat16, as quantizers for accelerators write them: scales, weights, biases and all
that lies between codes.

What ends in QuantizeLinear is fused as in float. As written, each operator rounds its result to half precision; fused, none
does. Roundings of float16 make up at most one quantum of 8 bits, those of bfloat16 three: one alone is up to half a quantum at
the end of the range. What leaves in half precision, or in float through a Cast, is as written, to the bit.
"""

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

# Patterns without 16-bit codes, which half floats cannot tell apart, and without operators of float alone
CODES = ("conv", "gemm", "matmul", "shared", "binary", "pool", "concat", "where", "table", "turned_weights", "matmul_bias",
         "conv_bias", "conv_transpose", "wide_bias", "mean", "inner", "flow_operand")
LEAVES = ("matmul_to_float", "gemm_to_float", "conv_to_float", "product_wanted", "concat_of_codes", "table_wanted", "two_readers",
          "gemm_forms", "mixed_constant", "early_reader")
# name, type, opset, quanta; the codes of a Softmax are up to one apart in float already
HALF = ([(name, np.float16, opset, 1) for name in CODES + LEAVES for opset in (19, 23)]
        + [("softmax", np.float16, 21, 2)]
        # a product that is rounded before its bias comes is rounded by more of those
        + [(name, ml_dtypes.bfloat16, 23, 3) for name in CODES if name != "wide_bias"])


def halve(case, dtype, quanta):
    """Makes half floats of all that is float in the case, and allows for their rounding."""
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    case.constants = [numpy_helper.from_array(numpy_helper.to_array(c).astype(dtype), c.name)
                      if c.data_type == TensorProto.FLOAT else c for c in case.constants]
    for info in (*case.inputs, *case.outputs):
        if info.type.tensor_type.elem_type == TensorProto.FLOAT:
            info.type.tensor_type.elem_type = element
    case.feeds = {n: x.astype(dtype) if x.dtype == np.float32 else x for n, x in case.feeds.items()}
    case.quanta = quanta
    if "of 4 bits" in case.note:  # weight-only products round their weights once, not to half precision first
        case.rtol, case.atol = 2.0 ** -8, max(case.atol * 2 ** 12, 1e-3)
    else:
        case.rtol = case.atol = 0
    # what leaves is not fused, and half precision that a caller gives stays
    case.expected = [(node, sentence, told and "ToFloat" not in sentence) for node, sentence, told in case.expected
                     if node != "y" or "strip by strip" not in sentence]
    case.note += f" {np.dtype(dtype)}"


# ---- Exact in any case: what leaves a region, and functions of one quantized value


def half_input(case, name, shape, dtype):
    """A fed tensor of quantized values, dequantized to half precision."""
    codes = case.fed(name + "_codes", case.codes(case.code_type(), shape))
    zero = None if case.chance(0.3) else case.codes(case.feeds[codes].dtype, ())
    return case.dequantize(name, codes, np.asarray(case.scale(), dtype), zero), codes


def to_float(case, value, name):
    return case.node("Cast", [value], name, to=TensorProto.FLOAT)


def half_leaves(case):
    """Values that leave a region, by a Cast or as they are, in the middle of it or at its end."""
    dtype = case.pick(np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)) if case.opset >= 23 else np.dtype(np.float16)
    kind = case.pick("cast", "caller", "through an operator", "product", "pool", "shape", "indices")
    case.note, case.quanta = f" {kind} {dtype}", 0
    x, _ = half_input(case, "x", (2, 3, 6), dtype)
    scale = np.asarray(0.05, dtype)
    if kind == "cast":
        case.output(to_float(case, x, "y"), np.dtype(np.float32))
    elif kind == "caller":
        case.output(to_float(case, x, "y"), np.dtype(np.float32))
        case.also = [x]
    elif kind == "through an operator":
        value = case.node(case.pick("Relu", "Sigmoid", "Neg"), [x], "op")
        if case.chance(0.5):
            value = case.node("Transpose", [value], "move", perm=[0, 2, 1])
        case.output(to_float(case, value, "y"), np.dtype(np.float32))
    elif kind == "product":
        # its half precision result is quantized, and leaves as well
        w = case.dequantize("w", case.constant("w_codes", case.codes(case.code_type(), (6, 4))), scale, None)
        value = case.node("MatMul", [x, w], "op")
        case.quantize_half("z", value, np.asarray(1, dtype))
        case.output(to_float(case, case.node("Relu", [value], "relu"), "y"), np.dtype(np.float32))
    elif kind == "pool":
        value = case.node("AveragePool", [x], "op", kernel_shape=[2])
        case.quantize_half("z", value, scale)
        case.also = [value]
    elif kind == "shape":
        value = case.node("Add", [x, half_input(case, "b", (6,), dtype)[0]], "op")
        case.output(case.node("Shape", [value], "shape"), np.dtype(np.int64))
        case.quantize_half("z", value, np.asarray(0.5, dtype))
        case.quanta = 3
    else:
        case.nodes.append(helper.make_node("MaxPool", [x], [case.prefix + "max", case.prefix + "at"], kernel_shape=[3],
                                           name=case.prefix + "op"))
        case.quantize_half("z", case.prefix + "max", scale)
        case.output(case.prefix + "at", np.dtype(np.int64))


def half_jump(case):
    """An operator that jumps reads what is computed: it gets the value as written."""
    dtype = case.pick(np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)) if case.opset >= 23 else np.dtype(np.float16)
    x, _ = half_input(case, "x", (2, 3, 6), dtype)
    value = case.node("Floor", [case.node("Add", [x, x], "op")], "jump")
    value = case.node("Transpose", [value], "move", perm=[2, 0, 1])
    case.quantize_half("z", value, np.asarray(0.05, dtype))
    case.quanta, case.note = 0, f" {dtype}"


def half_table(case):
    """Functions of one quantized value become tables, which hold every rounding to half precision."""
    dtype = case.pick(np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)) if case.opset >= 23 else np.dtype(np.float16)
    x, codes = half_input(case, "x", (3, case.size(1, 50)), dtype)
    for number in range(case.size(0, 4)):
        op = case.pick("Relu", "Sigmoid", "Tanh", "Exp", "Mul", "Add", "Cast")
        if op == "Cast":
            value = case.node("Cast", [to_float(case, x, f"wide{number}")], f"op{number}",
                              to=helper.np_dtype_to_tensor_dtype(dtype))
        elif op in ("Mul", "Add"):
            other = x if case.chance(0.5) else case.constant(f"other{number}", np.asarray(case.rng.normal(), dtype))
            value = case.node(op, [x, other], f"op{number}")
        else:
            value = case.node(op, [x], f"op{number}")
        x = value
    case.quantize_half("z", x, np.asarray(case.scale(), dtype))
    case.expect("z", "one look-up in a table")
    case.quanta, case.note = 0, f" {dtype}"


EXACT = {p.__name__: p for p in (half_leaves, half_jump, half_table)}
