#!/usr/bin/env python3
"""Make the C table of embedded schemas: embed.py SCHEMA_DIR OUTPUT.c DEPFILE

Each operator's YAML file becomes one zlib stream, so that a program inflates only those it uses. The domain is the
folder's name, the operator the file's; the reader holds both against the text. Only the standard library is used.
"""

import pathlib
import sys
import zlib


def c_bytes(data):
    lines = (",".join(map(str, data[i : i + 32])) for i in range(0, len(data), 32))
    return ",\n".join(lines)


def main():
    folder, output, depfile = map(pathlib.Path, sys.argv[1:])
    arrays, rows = [], []
    files = sorted(
        folder.rglob("*.yaml"), key=lambda p: (b"" if p.parent == folder else p.parent.name.encode(), p.stem.encode())
    )
    for number, path in enumerate(files):
        text = path.read_bytes()
        packed = zlib.compress(text, 9)
        domain = "" if path.parent == folder else path.parent.name
        arrays.append(f"static const unsigned char text_{number}[] = {{\n{c_bytes(packed)}}};")
        rows.append(f'    {{"{domain}", "{path.stem}", text_{number}, {len(packed)}, {len(text)}}},')
    lines = [
        '#include "schema/schema.h"',
        *arrays,
        "const dq_embedded_schema dq_embedded_schemas[] = {",
        *rows,
        "};",
        f"const size_t dq_embedded_schema_count = {len(rows)};",
    ]
    output.write_text("\n".join(lines) + "\n")
    watched = [folder, *(p for p in folder.rglob("*") if p.is_dir()), *files]
    depfile.write_text(f"{output}: {' '.join(str(p).replace(' ', chr(92) + ' ') for p in watched)}\n")


if __name__ == "__main__":
    main()
