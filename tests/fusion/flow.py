# SPDX-License-Identifier: Apache-2.0
"""Quantized operands that If, Loop and Scan give. Nothing but the graphs inside these tells their element type."""

import numpy as np
from onnx import helper

from patterns import PRODUCT, S8, U8, sum_scale


def info(name, dtype):
    """Of any shape; without a dtype of any type, too."""
    if dtype is None:
        return helper.make_empty_tensor_value_info(name)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), None)


def branches(case, codes, dtype, other_type):
    """An If that gives one of two inputs; `other_type`: that of the other."""
    other = case.fed("other", case.codes(other_type, case.feeds[codes].shape))
    which = case.fed("which", np.array(case.chance(0.5)))
    graphs = {}
    for name, source, source_type in (("then_branch", codes, dtype), ("else_branch", other, other_type)):
        result = f"{case.prefix}{name}"
        graphs[name] = helper.make_graph([helper.make_node("Identity", [source], [result])], name, [],
                                         [info(result, case.pick(None, source_type))])
    return case.node("If", [which], "flow", **graphs)


def loop(case, codes, dtype, stacked):
    """A Loop that carries the largest values so far; `stacked`: those of each iteration."""
    names = [case.prefix + n for n in ("i", "go", "state", "go_on", "largest", "slice")]
    start = case.fed("start", case.codes(dtype, case.feeds[codes].shape))
    body = helper.make_graph(
        [helper.make_node("Identity", [names[1]], [names[3]]), helper.make_node("Max", [names[2], codes], [names[4]]),
         helper.make_node("Identity", [names[4]], [names[5]])], "body",
        [info(names[0], np.dtype(np.int64)), info(names[1], np.dtype(bool)), info(names[2], dtype)],
        [info(names[3], np.dtype(bool)), info(names[4], case.pick(None, dtype)), info(names[5], case.pick(None, dtype))])
    trips = case.fed("trips", np.array(case.size(1 if stacked else 0, 3)))
    outputs = [case.prefix + n for n in (("state_out", "flow") if stacked else ("flow", "batch tiles"))]
    case.nodes.append(helper.make_node("Loop", [trips, "", start], outputs, name=case.prefix + "flow", body=body))
    return case.prefix + "flow"


def scan(case, codes, dtype, stacked):
    """A Scan over rows, of the same."""
    names = [case.prefix + n for n in ("state", "row", "largest", "slice")]
    start = case.fed("start", case.codes(dtype, case.feeds[codes].shape[1:]))
    body = helper.make_graph(
        [helper.make_node("Max", names[:2], [names[2]]), helper.make_node("Identity", [names[2]], [names[3]])], "body",
        [info(n, dtype) for n in names[:2]], [info(n, case.pick(None, dtype)) for n in names[2:]])
    outputs = [case.prefix + n for n in (("state_out", "flow") if stacked else ("flow", "batch tiles"))]
    case.nodes.append(helper.make_node("Scan", [start, codes], outputs, name=case.prefix + "flow", body=body,
                                       num_scan_inputs=1))
    return case.prefix + "flow"


def product_of(case, value, dtype, columns, expected):
    """A product of the quantized value; `expected`: whether it is fused."""
    scale, zero = case.scale(), case.zero(dtype) if expected else None
    w, w_scales = case.weights((columns, 5), 1, case.chance(0.5))
    y = case.node("MatMul", [case.dequantize("x", value, scale, zero), w], "op")
    case.quantize("y", y, sum_scale(case, columns, scale, w_scales), case.code_type())
    case.expect("op", PRODUCT, told=expected)


def flow_operand(case):
    """A product of what If, Loop or Scan gives."""
    kind, dtype, columns = case.pick("If", "Loop", "Scan"), case.code_type(), case.size(2, 40)
    codes = case.fed("codes", case.codes(dtype, (case.size(1, 5), columns)))
    case.note = f" {kind} {dtype}"
    if kind == "If":
        value = branches(case, codes, dtype, dtype)
    else:
        value = (loop if kind == "Loop" else scan)(case, codes, dtype, case.chance(0.5))
    product_of(case, value, dtype, columns, True)


def flow_of_two_types(case):
    """Branches of two element types: it is not known before a run which one a product reads."""
    dtype, columns = case.code_type(), case.size(2, 40)
    codes = case.fed("codes", case.codes(dtype, (case.size(1, 5), columns)))
    product_of(case, branches(case, codes, dtype, S8 if dtype == U8 else U8), dtype, columns, False)
    case.quanta = 0


FLOW = {p.__name__: p for p in (flow_operand, flow_of_two_types)}
