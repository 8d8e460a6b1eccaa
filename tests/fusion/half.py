"""The patterns in float16 and bfloat16, as quantizers for accelerators write them: scales, weights, biases and all
that lies between codes.

What is fused is what is fused in float. As written, each operator rounds its result to a half float; fused, none
does. Roundings of float16 make up at most one quantum of 8 bits, those of bfloat16 three: one alone is up to half a quantum at
the end of the range.
"""

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

# Patterns without 16-bit codes, which half floats cannot tell apart, and without operators of float alone
CODES = ("conv", "gemm", "matmul", "shared", "binary", "pool", "concat", "where", "table", "turned_weights", "matmul_bias",
         "conv_bias", "conv_transpose", "wide_bias", "mean", "inner")
FLOATS = ("matmul_to_float", "gemm_to_float", "conv_to_float", "product_wanted", "concat_of_codes", "table_wanted", "two_readers",
          "gemm_forms", "mixed_constant", "early_reader")
# name, type, opset, quanta; the codes of a Softmax are up to one apart in float already
HALF = ([(name, np.float16, opset, 1) for name in CODES + FLOATS for opset in (19, 23)]
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
    case.rtol, case.atol = 2.0 ** -8, max(case.atol * 2 ** 12, 1e-3)
    case.note += f" {np.dtype(dtype)}"
