#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the C table of embedded schemas: embed.py SCHEMA_DIR OUTPUT.c DEPFILE

An operator's versions, the newest first, become one raw deflate stream without the texts that are for people, so that a
program inflates and parses only what it uses. Schemas resemble one another: some typical ones, uncompressed, are the
preset dictionary of all streams. The domain is the folder's name, the operator the file's; the reader holds both
against the text. Only the standard library is used.
"""

import pathlib
import re
import sys
import zlib


# Found by trying: each of these saves the most beside those behind it, more than it takes.
TYPICAL = ["ReduceSum", "SequenceAt", "com.microsoft/QLinearAveragePool", "Flatten", "Resize"]
FOR_PEOPLE = re.compile(r"( *)(?:doc|description|support_level):")


def documents(text):
    """Pairs of since_version and text, the texts for people left out: a key's line, and those further to the right."""
    for document in re.split(r"^---.*\n", text, flags=re.MULTILINE):
        lines, left_out = [], None
        for line in document.splitlines(keepends=True):
            indent = len(line) - len(line.lstrip(" "))
            if left_out is not None and (indent > left_out or not line.strip()):
                continue
            match = FOR_PEOPLE.match(line)
            left_out = len(match[1]) if match else None
            if not match:
                lines.append(line)
        kept = "".join(lines)
        if kept.strip():
            yield int(re.search(r"^since_version: (\d+)", kept, re.MULTILINE)[1]), kept.encode()


def c_array(head, data):
    lines = (",".join(map(str, data[i : i + 32])) for i in range(0, len(data), 32))
    return head + " = {\n" + ",\n".join(lines) + "};"


def compress(text, dictionary):
    stream = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, dictionary)
    return stream.compress(text) + stream.flush()


def row(*numbers):
    if max(numbers) > 0xFFFF:
        raise SystemExit(f"embed.py: {max(numbers)} does not fit in 16 bits: widen dq_embedded_schema")
    return "    {" + ", ".join(map(str, numbers)) + "},"


def main():
    folder, output, depfile = map(pathlib.Path, sys.argv[1:])
    streams, names, rows = bytearray(), bytearray(), []
    files = sorted(
        folder.rglob("*.yaml"), key=lambda p: (b"" if p.parent == folder else p.parent.name.encode(), p.stem.encode())
    )
    dictionary = b"".join(max(documents((folder / f"{name}.yaml").read_text()))[1] for name in TYPICAL)
    for path in files:
        domain = "" if path.parent == folder else path.parent.name
        versions = sorted(documents(path.read_text()))
        packed = compress(b"".join(text for _, text in reversed(versions)), dictionary)
        behind = sum(len(text) for _, text in versions)
        for version, text in versions:
            behind -= len(text)
            rows.append(row(len(names), version, len(streams), len(packed), behind, len(text)))
        streams += packed
        names += f"{domain}\0{path.stem}\0".encode()
    lines = [
        '#include "schema/schema.h"',
        c_array("const unsigned char dq_embedded_streams[]", streams),
        c_array("const char dq_embedded_names[]", names),
        "const dq_embedded_schema dq_embedded_schemas[] = {",
        *rows,
        "};",
        f"const size_t dq_embedded_schema_count = {len(rows)};",
        c_array("const unsigned char dq_embedded_dictionary[]", dictionary),
        f"const size_t dq_embedded_dictionary_size = {len(dictionary)};",
    ]
    output.write_text("\n".join(lines) + "\n")
    watched = [folder, *(p for p in folder.rglob("*") if p.is_dir()), *files]
    depfile.write_text(f"{output}: {' '.join(str(p).replace(' ', chr(92) + ' ') for p in watched)}\n")


if __name__ == "__main__":
    main()
