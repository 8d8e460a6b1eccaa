# SPDX-License-Identifier: Apache-2.0
"""Hold a graph's fused results against the graph as written, against the real-number formula, and against themselves at
other levels and thread counts."""

import numpy as np
from onnx import ModelProto, helper

from formula import evaluate
from library import Failure, Model


def all_nodes(graph):
    """The nodes of a graph and of the graphs inside."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from all_nodes(attribute.g)


def cut(model, names):
    """The model in which every reader of a value in `names` reads a new input cut_NAME instead."""
    result = ModelProto()
    result.CopyFrom(model)
    kinds = {o.name: o.type.tensor_type.elem_type for o in model.graph.output}
    for node in all_nodes(result.graph):
        for i, name in enumerate(node.input):
            if name in names:
                node.input[i] = "cut_" + name
    result.graph.input.extend(helper.make_tensor_value_info("cut_" + n, kinds[n], None) for n in sorted(names))
    return result


def distance(a, b):
    """By element how far quantized values are apart; floats: relative to the largest size, 0 where both are NaN."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return np.full(1, np.inf)
    if a.dtype.kind in "iu":
        return np.abs(a.astype(np.int64) - b.astype(np.int64))
    with np.errstate(all="ignore"):
        apart = np.abs(a.astype(np.float64) - b.astype(np.float64)) / max(1e-30, float(np.max(np.abs(b), initial=0)))
        same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0, np.where(np.isnan(apart), np.inf, apart))


def bits(array):
    return np.where(np.isnan(array), 0, array).tobytes() if array.dtype.kind == "f" else array.tobytes()


class Judge:
    def __init__(self, library, rows, levels):
        self.library, self.rows, self.levels = library, rows, levels
        self.largest = {name: 0.0 for name in rows}  # by row: the largest difference so far
        self.tried = {name: 0 for name in rows}

    def run(self, model, feeds, outputs, **options):
        with Model(self.library, model.SerializeToString()) as loaded:
            return loaded.run(feeds, outputs, **options)

    def problems(self, model, feeds, rows):
        """What is wrong with the model: a list of (output, text)."""
        names = [o.name for o in model.graph.output]
        try:
            with Model(self.library, model.SerializeToString()) as loaded:
                fused, told = loaded.run(feeds, names)
                found = []
                for isa in self.levels:
                    for threads in (1, 2):
                        other, _ = loaded.run(feeds, names, isa=isa, threads=threads)
                        found += [(n, f"other bits at level {isa} with {threads} threads") for n in names
                                  if bits(other[n]) != bits(fused[n])]
        except Failure as failure:
            return self.refused(model, feeds, names, failure)
        if any("planned as written" in sentence for sentence in told):
            found.append((names[0], "its fused nodes cannot be planned"))
        found += self.fewer_outputs(model, feeds, fused)
        return found + self.against_written(model, feeds, rows, fused)

    def refused(self, model, feeds, names, failure):
        """A model that runs as written has to run fused; else the graph is none."""
        try:
            self.run(model, feeds, names, fuse=False)
        except Failure:
            return []
        return [(names[0], f"refused when fused: {failure}")]

    def fewer_outputs(self, model, feeds, fused):
        """Quantized values that nobody wants do not change the others. (A requested float value does: fusion stops there.)"""
        read = {name for node in all_nodes(model.graph) for name in node.input}
        last = [o for o in model.graph.output if o.name not in read or fused[o.name].dtype.kind not in "iu"]
        if len(last) in (0, len(model.graph.output)):
            return []
        fewer = ModelProto()
        fewer.CopyFrom(model)
        del fewer.graph.output[:]
        fewer.graph.output.extend(last)
        results, _ = self.run(fewer, feeds, [o.name for o in last])
        return [(n, "other bits when values before it are no outputs") for n, y in results.items()
                if y.dtype.kind in "iu" and bits(y) != bits(fused[n])]

    def against_written(self, model, feeds, rows, fused):
        read = {name for node in all_nodes(model.graph) if node.op_type in ("DequantizeLinear", "Loop")
                for name in node.input}
        known = {n: y for n, y in fused.items() if n in read}
        given = feeds | {"cut_" + n: y for n, y in known.items()}
        written, _ = self.run(cut(model, set(known)), given, list(fused), fuse=False)
        formula = evaluate(model, feeds, known)
        found = []
        for name, result in fused.items():
            row = rows[name]
            bound = self.rows[row]
            apart = distance(result, written[name])
            right = formula.get(name)
            if right is not None and bound > 0 and right.shape == result.shape:
                with np.errstate(over="ignore"):
                    apart = np.minimum(apart, distance(result, right.astype(result.dtype)))
            elif right is not None and right.dtype == np.int32:  # sums as written, too
                apart = np.maximum(apart, distance(result, right))
            worst = float(apart.max(initial=0))
            self.tried[row] += 1
            self.largest[row] = max(self.largest[row], worst)
            if worst > bound:
                at = np.unravel_index(int(np.argmax(apart)), apart.shape) if apart.shape == result.shape else ()
                values = [a[at] if a is not None and a.shape == result.shape else "none" for a in (result, written[name], right)]
                found.append((name, f"{row}: {worst:g} apart at {tuple(map(int, at))}, bound {bound:g}: fused {values[0]}, "
                                    f"as written {values[1]}, formula {values[2]}"))
        return found
