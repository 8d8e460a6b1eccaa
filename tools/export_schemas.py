#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draft or refresh operator schemas from the installed onnx package.

    export_schemas.py [--dir schemas] [OPERATOR ...]

writes DIR/OPERATOR.yaml (DIR/DOMAIN/OPERATOR.yaml for "DOMAIN:OPERATOR"), one YAML document for each
version of the operator, oldest first. Without an operator, every file below DIR is refreshed.

Only facts come from onnx: arity, types, attributes, defaults. The texts (doc, description) are ours. A text
that the file already holds is kept; a version that the file lacks takes the text of the nearest older version
that has one; anything else gets a placeholder that starts with "(undescribed)", which the comparison test
refuses. --fresh drops the texts. A refresh leaves alone the files of domains and operators, and what versions of an
operator the file has, that onnx does not define. The format is described in docs/schema-format.md.

Needs onnx, numpy and PyYAML.
"""

import argparse
import pathlib
import sys
import textwrap

import numpy
import onnx
import yaml

WIDTH = 110
PLACEHOLDER = "(undescribed)"
STANDARD_DOMAIN = "ai.onnx"


def versions_of(domain, name):
    found = [s for s in onnx.defs.get_all_schemas_with_history() if (s.domain, s.name) == (domain, name)]
    return sorted(found, key=lambda s: s.since_version)


def file_of(folder, domain, name):
    return folder / domain / f"{name}.yaml" if domain else folder / f"{name}.yaml"


def operator_of(folder, path):
    parts = path.relative_to(folder).with_suffix("").parts
    return ("", parts[0]) if len(parts) == 1 else (parts[0], parts[1])


class Texts:
    """The texts of a committed file: (section, name) -> {since_version: text}."""

    def __init__(self, path=None):
        self.table = {}
        if path is None or not path.exists():
            return
        for doc in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            version = doc["since_version"]
            self.add("doc", "", version, doc["doc"])
            for section, key in (
                ("attributes", "name"),
                ("inputs", "name"),
                ("outputs", "name"),
                ("type_constraints", "type_param_str"),
            ):
                for row in doc[section]:
                    self.add(section, row[key], version, row["description"])

    def add(self, section, name, version, text):
        if not text.startswith(PLACEHOLDER):
            self.table.setdefault((section, name), {})[version] = " ".join(text.split())

    def get(self, section, name, version):
        known = self.table.get((section, name), {})
        older = [v for v in known if v <= version]
        return known[max(older)] if older else f"{PLACEHOLDER} {name}".rstrip()


def quoted(text):
    """A plain YAML scalar where that reads back as the same string, else a single-quoted one."""
    risky = text != text.strip() or any(c in text for c in "[]{},#&*!|>'\"%@`") or ": " in text or text[:1] in "-?:"
    if not text or risky or yaml.safe_load(text) != text:
        return "'" + text.replace("'", "''") + "'"
    return text


def text_lines(key, text, indent):
    line = f"{indent}{key}: {quoted(text)}"
    if len(line) <= WIDTH:
        return [line]
    inner = indent + "  "
    wrap = textwrap.wrap(
        text, WIDTH, initial_indent=inner, subsequent_indent=inner, break_on_hyphens=False, break_long_words=False
    )
    return [f"{indent}{key}: >-", *wrap]


def list_lines(key, items, indent):
    line = f"{indent}{key}: [{', '.join(items)}]"
    if len(line) <= WIDTH:
        return [line]
    inner = indent + "  "
    lines, current = [f"{indent}{key}: ["], inner
    for position, item in enumerate(items):
        piece = item + ("," if position + 1 < len(items) else "]")
        if current != inner and len(current) + 1 + len(piece) > WIDTH:
            lines.append(current)
            current = inner
        current += piece if current == inner else " " + piece
    return [*lines, current]


def float_text(value):
    """The shortest decimal that reads back as the same float32, in the form that YAML 1.1 calls a float."""
    number = numpy.float32(value)
    if numpy.isnan(number):
        return ".nan"
    if numpy.isinf(number):
        return "-.inf" if number < 0 else ".inf"
    mantissa, mark, exponent = str(number).partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return mantissa + mark + exponent


def default_lines(attribute, indent):
    if not attribute.default_value.name:
        return []
    value = onnx.helper.get_attribute_value(attribute.default_value)
    kind = attribute.type.name
    one = {
        "INT": str,
        "FLOAT": float_text,
        "STRING": lambda text: quoted(text.decode("utf-8")),
    }
    if kind in one:
        return [f"{indent}default: {one[kind](value)}"]
    if kind.removesuffix("S") in one:
        return list_lines("default", [one[kind.removesuffix("S")](v) for v in value], indent)
    sys.exit(f"attribute '{attribute.name}' has a default of type {kind}, which the schema format cannot say")


def tags_of(parameter):
    option = parameter.option.name
    tags = [] if option == "Single" else [option.lower()]
    if option == "Variadic" and not parameter.is_homogeneous:
        tags.append("heterogeneous")
    return tags


def section(key, rows):
    return [f"{key}:", *rows] if rows else [f"{key}: []"]


def attribute_rows(schema, texts):
    for name, attribute in sorted(schema.attributes.items()):
        yield f"- name: {quoted(name)}"
        yield from text_lines("description", texts.get("attributes", name, schema.since_version), "  ")
        yield f"  type: {attribute.type.name}"
        yield f"  required: {str(attribute.required).lower()}"
        yield from default_lines(attribute, "  ")


def parameter_rows(schema, key, texts):
    for parameter in getattr(schema, key):
        yield f"- name: {quoted(parameter.name)}"
        yield f"  type_str: {quoted(parameter.type_str)}"
        yield from text_lines("description", texts.get(key, parameter.name, schema.since_version), "  ")
        yield f"  min_arity: {parameter.min_arity}"
        yield from list_lines("tags", tags_of(parameter), "  ")


def constraint_rows(schema, texts):
    for constraint in schema.type_constraints:
        name = constraint.type_param_str
        yield f"- type_param_str: {quoted(name)}"
        yield from text_lines("description", texts.get("type_constraints", name, schema.since_version), "  ")
        types = [quoted(t) for t in sorted(constraint.allowed_type_strs)]
        yield from list_lines("allowed_type_strs", types, "  ")


def document(schema, texts):
    lines = [
        f"domain: {quoted(schema.domain)}",
        f"name: {quoted(schema.name)}",
        f"since_version: {schema.since_version}",
        f"min_input: {schema.min_input}",
        f"max_input: {schema.max_input}",
        f"min_output: {schema.min_output}",
        f"max_output: {schema.max_output}",
        *text_lines("doc", texts.get("doc", "", schema.since_version), ""),
        *section("attributes", list(attribute_rows(schema, texts))),
        *section("inputs", list(parameter_rows(schema, "inputs", texts))),
        *section("outputs", list(parameter_rows(schema, "outputs", texts))),
        *section("type_constraints", list(constraint_rows(schema, texts))),
        f"support_level: {schema.support_level.name}",
        f"deprecated: {str(schema.deprecated).lower()}",
    ]
    return "\n".join(lines) + "\n"


def export(folder, domain, name, texts):
    schemas = versions_of(domain, name)
    if not schemas:
        sys.exit(f"onnx {onnx.__version__} has no operator '{name}' in domain '{domain or STANDARD_DOMAIN}'")
    path = file_of(folder, domain, name)
    documents = {s.since_version: document(s, texts) for s in schemas}
    for text in path.read_text(encoding="utf-8").split("---\n") if path.exists() else []:
        documents.setdefault(yaml.safe_load(text)["since_version"], text)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("---\n".join(documents[v] for v in sorted(documents)), encoding="utf-8")
    return path


def main():
    parser = argparse.ArgumentParser(description="Draft or refresh operator schemas from the onnx package.")
    parser.add_argument("--dir", type=pathlib.Path, default=pathlib.Path("schemas"))
    parser.add_argument("--fresh", action="store_true", help="do not keep the texts that a file already holds")
    parser.add_argument("operator", nargs="*", help="NAME or DOMAIN:NAME")
    options = parser.parse_args()
    operators = [tuple(o.rsplit(":", 1)) if ":" in o else ("", o) for o in options.operator]
    if not operators:
        operators = [operator_of(options.dir, p) for p in sorted(options.dir.rglob("*.yaml"))]
        known = {(s.domain, s.name) for s in onnx.defs.get_all_schemas_with_history()}
        operators = [operator for operator in operators if operator in known]
    for domain, name in operators:
        domain = "" if domain == STANDARD_DOMAIN else domain
        path = file_of(options.dir, domain, name)
        print(export(options.dir, domain, name, Texts(None if options.fresh else path)))


if __name__ == "__main__":
    main()
