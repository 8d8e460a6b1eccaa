# SPDX-License-Identifier: Apache-2.0
"""Schemas without uint8, given by --schema-dir: what fusion makes is held against them as the model's own nodes are.

A case that has uint8 anywhere must then stay as written, and --why must say that the schema refused; the others are
fused as ever.
"""

import pathlib

import numpy as np
import yaml
from onnx import TensorProto

SCHEMAS = pathlib.Path(__file__).resolve().parent.parent.parent / "schemas"
REMOVED = "tensor(uint8)"
REFUSED = "not fused: "
# pattern: the schemas of what it is fused into
NARROWED = {
    "conv": ("QLinearConv", "dqrun/QLinearConv"),
    "conv_to_float": ("dqrun/ConvIntegerToFloat",),
    "matmul": ("QLinearMatMul",),
    "gemm": ("com.microsoft/QGemm", "dqrun/QGemm"),
    "concat": ("com.microsoft/QLinearConcat",),
    "mean": ("dqrun/QLinearReduceMean",),
    "softmax": ("dqrun/QLinearSoftmax",),
    "table": ("dqrun/TableLookup",),
}


def write_narrowed(schemas, folder):
    """The schemas of these names without the type, in a folder for --schema-dir."""
    documents = [document for schema in schemas
                 for document in yaml.safe_load_all((SCHEMAS / f"{schema}.yaml").read_text(encoding="utf-8"))]
    for document in documents:
        for constraint in document["type_constraints"]:
            kept = [t for t in constraint["allowed_type_strs"] if t != REMOVED]
            constraint["allowed_type_strs"] = kept or ["tensor(string)"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "narrowed.yaml").write_text(yaml.safe_dump_all(documents), encoding="utf-8")


def is_refused(case):
    return (any(x.dtype == np.uint8 for x in case.feeds.values())
            or any(c.data_type == TensorProto.UINT8 for c in case.constants)
            or any(o.type.tensor_type.elem_type == TensorProto.UINT8 for o in case.outputs))


def expect_narrowed(case):
    """Turns around what --why must tell of a case that the schema refuses."""
    if is_refused(case):
        fused = [node for node, _, told in case.expected if told]
        case.expected = [(node, sentence, False) for node, sentence, _ in case.expected]
        case.expected += [(node, REFUSED, True) for node in fused]
