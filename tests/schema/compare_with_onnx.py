#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare every committed schema with the installed onnx package.

    compare_with_onnx.py [SCHEMA_DIR]

One case is one version of one operator: it passes when each machine-readable fact is the same on both sides,
and every text is there and is not a placeholder. A version that only one side has is a failure. The schemas of other
domains are held to their form and their texts; those of ONNX Runtime are no cases here, as compare_with_onnxruntime.py
has them. The last line is "N passed, N failed, N skipped".

Needs onnx and PyYAML. The facts of each side are taken here on their own, not through tools/export_schemas.py,
so that a mistake there shows.
"""

import pathlib
import struct
import sys

import onnx
import yaml

KEYS = [
    "domain",
    "name",
    "since_version",
    "min_input",
    "max_input",
    "min_output",
    "max_output",
    "doc",
    "attributes",
    "inputs",
    "outputs",
    "type_constraints",
    "support_level",
    "deprecated",
]
PLAIN_KEYS = [k for k in KEYS if k not in ("doc", "attributes", "inputs", "outputs", "type_constraints")]
ABSENT = "absent"

# ONNX Runtime's own: a domain, and in the standard's (operator, version).
MICROSOFT = "com.microsoft"
ONNX_RUNTIME = {("LayerNormalization", 1), ("SimplifiedLayerNormalization", 1)}


class UniqueKeyLoader(yaml.SafeLoader):
    """PyYAML lets the last of two equal keys win; a schema with both is wrong."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(k) for k, _ in node.value]
        twice = sorted({k for k in keys if keys.count(k) > 1})
        if twice:
            raise yaml.YAMLError(f"key {twice[0]} twice, line {node.start_mark.line + 1}")
        return super().construct_mapping(node, deep)


def float32_bits(value):
    return struct.pack("<f", value)


def comparable_default(kind, value):
    """Floats by their bits and with the type in front, so that 1, 1.0 and true stay three values."""
    if value is ABSENT:
        return ABSENT
    if kind == "FLOAT":
        if not isinstance(value, float):
            raise ValueError(f"default {value!r} of a FLOAT is not written as one")
        return kind, float32_bits(value)
    if kind == "INT":
        if type(value) is not int:
            raise ValueError(f"default {value!r} of an INT is not one")
        return kind, value
    if kind == "STRING":
        if type(value) is not str:
            raise ValueError(f"default {value!r} of a STRING is not one")
        return kind, value
    if kind in ("INTS", "FLOATS", "STRINGS"):
        return kind, tuple(comparable_default(kind[:-1], v) for v in value)
    raise ValueError(f"a default of type {kind}")


def facts_of_yaml(doc):
    facts = {key: doc[key] for key in PLAIN_KEYS}
    for row in doc["attributes"]:
        name = row["name"]
        facts[f"attribute {name}"] = (
            row["type"],
            row["required"],
            comparable_default(row["type"], row.get("default", ABSENT)),
        )
    for side in ("inputs", "outputs"):
        for position, row in enumerate(doc[side]):
            facts[f"{side}[{position}]"] = (row["name"], row["type_str"], row["min_arity"], tuple(row["tags"]))
    for row in doc["type_constraints"]:
        types = row["allowed_type_strs"]
        if len(set(types)) != len(types):
            raise ValueError(f"type constraint {row['type_param_str']} names a type twice")
        facts[f"constraint {row['type_param_str']}"] = frozenset(types)
    return facts


def onnx_default(attribute):
    proto = attribute.default_value
    if not proto.name:
        return ABSENT
    value = onnx.helper.get_attribute_value(proto)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [v.decode() if isinstance(v, bytes) else v for v in value]
    return value


def facts_of_onnx(schema):
    facts = {key: getattr(schema, key) for key in PLAIN_KEYS if key != "support_level"}
    facts["support_level"] = schema.support_level.name
    for name, attribute in schema.attributes.items():
        kind = attribute.type.name
        facts[f"attribute {name}"] = (
            kind,
            attribute.required,
            comparable_default(kind, onnx_default(attribute)),
        )
    option = onnx.defs.OpSchema.FormalParameterOption
    tags = {
        (option.Single, True): (),
        (option.Optional, True): ("optional",),
        (option.Variadic, True): ("variadic",),
        (option.Variadic, False): ("variadic", "heterogeneous"),
    }
    for side in ("inputs", "outputs"):
        for position, formal in enumerate(getattr(schema, side)):
            tag = tags[formal.option, formal.is_homogeneous]
            facts[f"{side}[{position}]"] = (formal.name, formal.type_str, formal.min_arity, tag)
    for constraint in schema.type_constraints:
        facts[f"constraint {constraint.type_param_str}"] = frozenset(constraint.allowed_type_strs)
    return facts


def missing_texts(doc):
    rows = [("doc", doc["doc"])]
    for section in ("attributes", "inputs", "outputs", "type_constraints"):
        for row in doc[section]:
            rows.append((row.get("name", row.get("type_param_str")), row["description"]))
    return [name for name, text in rows if not text.strip() or text.startswith("(undescribed)")]


def differences(doc, schema):
    """What is wrong with it; schema is None for a domain that onnx has not."""
    if list(doc) != KEYS:
        return [f"keys are {', '.join(doc)}"]
    try:
        ours = facts_of_yaml(doc)
        theirs = facts_of_onnx(schema) if schema else ours
    except (KeyError, TypeError, ValueError) as error:
        return [f"cannot be read: {error}"]
    found = [
        f"{key} is {ours.get(key, ABSENT)}, onnx has {theirs.get(key, ABSENT)}"
        for key in sorted(ours.keys() | theirs.keys())
        if ours.get(key, ABSENT) != theirs.get(key, ABSENT)
    ]
    return found + [f"no description of {name}" for name in missing_texts(doc)]


def check_file(folder, path, known):
    """Yields (case, problems)."""
    parts = path.relative_to(folder).with_suffix("").parts
    domain, name = ("", parts[0]) if len(parts) == 1 else (parts[0], parts[1])
    try:
        docs = list(yaml.load_all(path.read_text(encoding="utf-8"), UniqueKeyLoader))
    except yaml.YAMLError as error:
        yield str(path), [f"not YAML: {error}"]
        return
    versions = [doc.get("since_version") for doc in docs]
    if versions != sorted(set(versions)):
        yield str(path), [f"versions are not in rising order: {versions}"]
        return
    theirs = {s.since_version: s for s in known if (s.domain, s.name) == (domain, name)}
    for version in sorted(set(versions) | set(theirs)):
        case = f"{domain}:{name}-{version}"
        if domain == MICROSOFT or (domain == "" and (name, version) in ONNX_RUNTIME):
            if version in theirs:
                yield case, ["onnx has it"]
        elif domain not in {s.domain for s in known}:
            yield case, differences(docs[versions.index(version)], None)
        elif version not in theirs:
            yield case, ["onnx has no such version"]
        elif version not in versions:
            yield case, ["missing here"]
        else:
            yield case, differences(docs[versions.index(version)], theirs[version])


def main():
    here = pathlib.Path(__file__).resolve().parent
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here.parent.parent / "schemas"
    known = onnx.defs.get_all_schemas_with_history()
    count = {"passed": 0, "failed": 0}
    for path in sorted(folder.rglob("*.yaml")):
        for case, problems in check_file(folder, path, known):
            count["failed" if problems else "passed"] += 1
            for problem in problems:
                print(f"FAIL {case}: {problem}")
    if not sum(count.values()):
        print(f"FAIL no schema below {folder}")
        count["failed"] = 1
    print(f"{count['passed']} passed, {count['failed']} failed, 0 skipped")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
