# SPDX-License-Identifier: Apache-2.0
"""Shrink a model that fails: fewer outputs and nodes, then simpler values, as long as it fails in the same way."""

import numpy as np
from onnx import ModelProto, numpy_helper

from judge import all_nodes


def kind(text):
    """What a problem is, without its numbers."""
    return text.split(":")[0]


def is_valid(judge, model, feeds):
    try:
        judge.run(model, feeds, [o.name for o in model.graph.output], fuse=False)
        return True
    except Exception:  # a candidate that is no model is no candidate, whatever it breaks
        return False


def fails(judge, model, feeds, rows, requested):
    if not model.graph.output or not is_valid(judge, model, feeds):
        return False
    try:
        return any(kind(text) == requested for _, text in judge.problems(model, feeds, rows))
    except Exception:
        return False


def without_unread(model, feeds):
    """Drops nodes, constants and inputs that no output needs."""
    needed, nodes = {o.name for o in model.graph.output}, []
    for node in reversed(model.graph.node):
        if needed & set(node.output):
            nodes.insert(0, node)
            needed |= set(node.input)
            for attribute in node.attribute:
                needed |= {name for inner in all_nodes(attribute.g) for name in inner.input}
                needed |= {o.name for o in attribute.g.output}
    kept = {"node": nodes, "initializer": [i for i in model.graph.initializer if i.name in needed],
            "input": [i for i in model.graph.input if i.name in needed]}
    result = ModelProto()
    result.CopyFrom(model)
    for field, items in kept.items():
        del getattr(result.graph, field)[:]
        getattr(result.graph, field).extend(items)
    return result, {n: a for n, a in feeds.items() if n in needed}


def with_outputs(model, names):
    result = ModelProto()
    result.CopyFrom(model)
    del result.graph.output[:]
    result.graph.output.extend(o for o in model.graph.output if o.name in names)
    return result


def bypassed(model, at):
    """The readers of a node read its first input instead; None: an output of the graph."""
    node = model.graph.node[at]
    if any(o.name == node.output[0] for o in model.graph.output) or not node.input:
        return None
    result = ModelProto()
    result.CopyFrom(model)
    for reader in result.graph.node:
        for i, name in enumerate(reader.input):
            if name == node.output[0]:
                reader.input[i] = node.input[0]
    return result


def simpler(array):
    """Simpler arrays of the same shape: all one value, one half so, one element left, plain parameters."""
    flat = array.reshape(-1)
    for value in {0, 1} if array.size > 1 else {1}:
        plain = np.full(array.shape, value).astype(array.dtype)
        if plain.tobytes() != array.tobytes():
            yield plain
    for half in (slice(0, flat.size // 2), slice(flat.size // 2, None)):
        if flat.size > 1 and flat[half].size:
            part = flat.copy()
            part[half] = flat[0] if half.start else flat[-1]
            if part.tobytes() != flat.tobytes():
                yield part.reshape(array.shape)


def shrink(judge, model, feeds, rows, problem, rounds=3):
    """The smallest model and feeds found that still fail as `problem` says."""
    requested = kind(problem[1])

    def accept(candidate, values):
        candidate, values = without_unread(candidate, values)
        return (candidate, values) if fails(judge, candidate, values, rows, requested) else None

    if smaller := accept(with_outputs(model, [problem[0]]), feeds):
        model, feeds = smaller
    for _ in range(rounds):
        before = (len(model.graph.node), sum(a.size for a in feeds.values()))
        for at in reversed(range(len(model.graph.node))):
            candidate = bypassed(model, at) if at < len(model.graph.node) else None
            if candidate is not None and (smaller := accept(candidate, feeds)):
                model, feeds = smaller
        for name in list(feeds):
            for array in simpler(feeds[name]):
                if smaller := accept(model, feeds | {name: array}):
                    model, feeds = smaller
        for number in range(len(model.graph.initializer)):
            for array in simpler(numpy_helper.to_array(model.graph.initializer[number])):
                candidate = ModelProto()
                candidate.CopyFrom(model)
                candidate.graph.initializer[number].CopyFrom(
                    numpy_helper.from_array(array, model.graph.initializer[number].name))
                if smaller := accept(candidate, feeds):
                    model, feeds = smaller
                    break
            if number + 1 >= len(model.graph.initializer):
                break
        if (len(model.graph.node), sum(a.size for a in feeds.values())) == before:
            break
    return model, feeds
