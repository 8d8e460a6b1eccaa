# SPDX-License-Identifier: Apache-2.0
"""All specs in one order, and batch files of their cases."""

import os
import random
import sys

import cases
import cases_cast
import cases_conv
import cases_matmul
import cases_quantize
import proto

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "onnx_backend"))
import batch  # noqa: E402  (stands in the neighbouring folder)

OPERATORS = {
    "QuantizeLinear": cases_quantize.quantize_specs,
    "DequantizeLinear": cases_quantize.dequantize_specs,
    "DynamicQuantizeLinear": cases_quantize.dynamic_specs,
    "QLinearConv": cases_conv.qlinear_conv_specs,
    "ConvInteger": cases_conv.conv_integer_specs,
    "QLinearMatMul": cases_matmul.qlinear_matmul_specs,
    "MatMulInteger": cases_matmul.matmul_integer_specs,
    "Cast": cases_cast.cast_specs,
    "CastLike": cases_cast.cast_like_specs,
}


def specs(operators=None, sample=None, seed=0):
    """All specs of the operators, or a sample of that size."""
    every = [s for name, make in OPERATORS.items() if not operators or name in operators for s in make()]
    if sample is None or sample >= len(every):
        return every
    chosen = sorted(random.Random(seed).sample(range(len(every)), sample))
    return [every[i] for i in chosen]


def write(path, some, seed):
    """A batch file of these specs' cases. Floats too are compared exactly, with the signs of zeros."""
    with batch.Writer(path) as writer:
        for spec in some:
            case = cases.build(spec, seed)
            inputs = [proto.tensor(v, n) for n, v, constant in case.inputs if v is not None and not constant]
            outputs = [proto.tensor(v, n) for n, v in case.outputs]
            writer.add(spec.name, proto.model(case), inputs, outputs, rtol=-1, atol=0)
