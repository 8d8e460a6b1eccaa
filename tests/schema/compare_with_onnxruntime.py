#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare the committed schemas of domain com.microsoft, and those of the standard's domain that only ONNX Runtime has,
with those that it registers.

    compare_with_onnxruntime.py [SCHEMA_DIR]

One case is one operator: it passes when arity, types, attributes and their defaults are the same but for what WIDER
says, each of which must still be so, and every text is there. The last line is "N passed, N failed, N skipped".

Needs onnx, onnxruntime and PyYAML.
"""

import pathlib
import struct
import sys

import onnx
import yaml
from onnxruntime.capi import onnxruntime_pybind11_state as registry

DOMAIN = "com.microsoft"
STANDARD = ["LayerNormalization", "SimplifiedLayerNormalization"]  # whose first version is ONNX Runtime's

# Facts that differ on purpose: (operator, fact) -> ours. Defaults that ONNX Runtime only describes are written down;
# what its own texts call optional may be left out.
WIDER = {
    ("QLinearReduceMean", "attribute axes"): ("INTS", False, None),
    ("QLinearReduceMean", "attribute keepdims"): ("INT", False, 1),
    ("ReduceSumInteger", "attribute axes"): ("INTS", False, None),
    ("ReduceSumInteger", "attribute keepdims"): ("INT", False, 1),
    ("QGemm", "arity"): (5, 9, 1, 1),
    ("QGemm", "inputs[2]"): ("a_zero_point", "TA", "optional", True),
    ("QGemm", "inputs[5]"): ("b_zero_point", "TB", "optional", True),
    ("QAttention", "attribute do_rotary"): ("INT", False, 0),
    ("QAttention", "attribute mask_filter_value"): ("FLOAT", False, struct.pack("<f", -10000)),
    ("QAttention", "attribute past_present_share_buffer"): ("INT", False, 0),
    ("Attention", "attribute do_rotary"): ("INT", False, 0),
    ("Attention", "attribute mask_filter_value"): ("FLOAT", False, struct.pack("<f", -10000)),
    ("Attention", "attribute past_present_share_buffer"): ("INT", False, 0),
    ("Attention", "attribute rotary_embedding_dim"): ("INT", False, 0),
    ("MultiHeadAttention", "attribute mask_filter_value"): ("FLOAT", False, struct.pack("<f", -10000)),
    ("RotaryEmbedding", "attribute interleaved"): ("INT", False, 0),
    ("RotaryEmbedding", "attribute is_packed_batching"): ("INT", False, 0),
    ("RotaryEmbedding", "attribute num_heads"): ("INT", False, 0),
    ("RotaryEmbedding", "attribute rotary_embedding_dim"): ("INT", False, 0),
    ("RotaryEmbedding", "attribute scale"): ("FLOAT", False, struct.pack("<f", 1)),
    ("FusedGemm", "type T"): frozenset(["tensor(float)", "tensor(float16)"]),
    ("GroupQueryAttention", "attribute do_rotary"): ("INT", False, 0),
    ("GroupQueryAttention", "attribute rotary_interleaved"): ("INT", False, 0),
    ("GroupQueryAttention", "attribute softcap"): ("FLOAT", False, struct.pack("<f", 0)),
}


def comparable(kind, value):
    if value is None:
        return None
    if kind == "FLOAT":
        return struct.pack("<f", value)
    return value.decode() if isinstance(value, bytes) else value


def enum_name(value):
    return str(value).rsplit(".", 1)[-1]


def facts_of_yaml(doc):
    facts = {"arity": tuple(doc[k] for k in ("min_input", "max_input", "min_output", "max_output"))}
    facts["version"], facts["deprecated"] = doc["since_version"], doc["deprecated"]
    for row in doc["attributes"]:
        facts[f"attribute {row['name']}"] = (
            row["type"],
            row["required"],
            comparable(row["type"], row.get("default")),
        )
    for side in ("inputs", "outputs"):
        for i, row in enumerate(doc[side]):
            option = next((t for t in row["tags"] if t in ("optional", "variadic")), "single")
            facts[f"{side}[{i}]"] = (row["name"], row["type_str"], option, "heterogeneous" not in row["tags"])
    for row in doc["type_constraints"]:
        facts[f"type {row['type_param_str']}"] = frozenset(row["allowed_type_strs"])
    return facts


def facts_of_registry(schema):
    facts = {"arity": (schema.min_input, schema.max_input, schema.min_output, schema.max_output)}
    facts["version"], facts["deprecated"] = schema.since_version, schema.deprecated
    for name, attribute in schema.attributes.items():
        default = attribute._default_value  # an AttributeProto as bytes, or the value
        if isinstance(default, bytes):
            proto = onnx.AttributeProto.FromString(default)
            default = onnx.helper.get_attribute_value(proto) if proto.type else None
        kind = enum_name(attribute.type)
        facts[f"attribute {name}"] = (kind, attribute.required, comparable(kind, default))
    for side in ("inputs", "outputs"):
        for i, row in enumerate(getattr(schema, side)):
            facts[f"{side}[{i}]"] = (row.name, row.typeStr, enum_name(row.option).lower(), row.isHomogeneous)
    for row in schema.type_constraints:
        facts[f"type {row.type_param_str}"] = frozenset(row.allowed_type_strs)
    return facts


def problems_of(name, doc, schema):
    ours, theirs = facts_of_yaml(doc), facts_of_registry(schema)
    for fact in sorted(ours.keys() | theirs.keys()):
        expected = theirs.get(fact, "absent")
        if (name, fact) in WIDER:
            if expected == WIDER[name, fact]:
                yield f"{fact}: WIDER names what ONNX Runtime has too"
            expected = WIDER[name, fact]
        if ours.get(fact, "absent") != expected:
            yield f"{fact} is {ours.get(fact, 'absent')}, expected {expected}"
    texts = [doc["doc"]] + [
        row["description"] for key in ("attributes", "inputs", "outputs", "type_constraints") for row in doc[key]
    ]
    if not all(text.strip() and not text.startswith("(undescribed)") for text in texts):
        yield "a text is missing"


def main():
    here = pathlib.Path(__file__).resolve().parent
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here.parent.parent / "schemas"
    known = {(s.domain, s.name, s.since_version): s for s in registry.get_all_operator_schema()}
    passed = failed = 0
    for path in [folder / f"{name}.yaml" for name in STANDARD] + sorted((folder / DOMAIN).glob("*.yaml")):
        doc = next(yaml.safe_load_all(path.read_text(encoding="utf-8")))
        name = path.stem
        schema = known.get((doc["domain"], name, doc["since_version"]))
        problems = list(problems_of(name, doc, schema)) if schema else ["ONNX Runtime has no such operator"]
        for problem in problems:
            print(f"FAIL {name}: {problem}")
        passed, failed = passed + (not problems), failed + bool(problems)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
