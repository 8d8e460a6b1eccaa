#!/usr/bin/env python3
"""Make the C table of embedded schemas: embed.py SCHEMA_DIR OUTPUT.c DEPFILE

Each operator's YAML file becomes one zlib stream, so that a program inflates only those it uses. Schemas resemble one
another: a typical one, uncompressed, is the preset dictionary of all streams, which halves the table. The domain is the
folder's name, the operator the file's; the reader holds both against the text. Only the standard library is used.
"""

import pathlib
import sys
import zlib


TYPICAL = "Add"


def c_array(head, data):
    lines = (",".join(map(str, data[i : i + 32])) for i in range(0, len(data), 32))
    return head + " = {\n" + ",\n".join(lines) + "};"


def compress(text, dictionary):
    stream = zlib.compressobj(9, zdict=dictionary)
    return stream.compress(text) + stream.flush()


def main():
    folder, output, depfile = map(pathlib.Path, sys.argv[1:])
    arrays, rows = [], []
    files = sorted(
        folder.rglob("*.yaml"), key=lambda p: (b"" if p.parent == folder else p.parent.name.encode(), p.stem.encode())
    )
    dictionary = (folder / f"{TYPICAL}.yaml").read_bytes()
    for number, path in enumerate(files):
        text = path.read_bytes()
        packed = compress(text, dictionary)
        domain = "" if path.parent == folder else path.parent.name
        arrays.append(c_array(f"static const unsigned char text_{number}[]", packed))
        rows.append(f'    {{"{domain}", "{path.stem}", text_{number}, {len(packed)}, {len(text)}}},')
    lines = [
        '#include "schema/schema.h"',
        *arrays,
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
