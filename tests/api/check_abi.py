# SPDX-License-Identifier: Apache-2.0
"""Runs programs that were compiled against older headers with the library of a build.

usage: check_abi.py BUILD   (from the root of the sources)

tests/api/abi/dqrun-VERSION.h are headers as they were released. The copy of the tree's own version declares what the header
declares; older ones never change. One more header is made of today's: each struct that grows ends where its first version
ended (src/api/structs.h), so that later fields are missing.
The last line is `N passed, N failed, N skipped`.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path("tests/api/abi")


def first_versions():
    """Last field of the first version, by type."""
    return dict(re.findall(r"X\(\w+, (dq_\w+), (\w+)\)", pathlib.Path("src/api/structs.h").read_text()))


def smaller_header():
    """Today's header with the structs' first versions, and the number of structs that became smaller."""
    header = re.sub(r"/\*.*?\*/", "", pathlib.Path("include/dqrun/dqrun.h").read_text(), flags=re.DOTALL)
    cut = 0
    for name, last in first_versions().items():
        body = re.search(rf"typedef struct {name} \{{\n(.*?)\n\}} {name};", header, re.DOTALL)
        assert body, f"no struct {name} in the header"
        fields = [field for field in re.split(r"(?<=;)", body[1]) if field.strip()]
        ends = [i for i, field in enumerate(fields) if re.search(rf"\b{last}\b(?:\)\(.*\))?(?:\[\w+\])?;$", field, re.DOTALL)]
        assert len(ends) == 1, f"struct {name} has {len(ends)} fields {last}"
        cut += len(fields) > ends[0] + 1
        header = header.replace(body[1], "".join(fields[:ends[0] + 1]))
        # What an initializer leaves out is zero.
        header, found = re.subn(rf"\{{[\s\\]*sizeof\({name}\)[^}}]*\}}", f"{{sizeof({name})}}", header)
        assert found == 1, f"{found} initializers of {name} in the header"
    return header, cut


def declarations(header):
    """The header without comments and without its layout."""
    return re.sub(r"/\*.*?\*/", " ", header, flags=re.DOTALL).split()


def copy_of_today():
    """Why there is no copy of today's header, or a different one; None when all is well."""
    header = pathlib.Path("include/dqrun/dqrun.h").read_text()
    major, minor = (re.search(rf"#define DQ_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR"))
    copy = FOLDER / f"dqrun-{major}.{minor}.h"
    if copy.exists() and declarations(copy.read_text()) == declarations(header):
        return None
    return f"{copy} differs from include/dqrun/dqrun.h: copy the header, or begin a new version"


def main():
    build = pathlib.Path(sys.argv[1])
    header, cut = smaller_header()
    headers = {path.name: path.read_text() for path in sorted(FOLDER.glob("dqrun-*.h"))} | {f"first versions, {cut} cut": header}
    environment = os.environ | {"LD_LIBRARY_PATH": str(build / "src")}
    passed = failed = 0
    for name, text in headers.items():
        with tempfile.TemporaryDirectory() as folder:
            include, program = pathlib.Path(folder) / "dqrun", pathlib.Path(folder) / "program"
            include.mkdir()
            (include / "dqrun.h").write_text(text)
            try:
                subprocess.run(["cc", "-std=c11", "-Wall", "-Werror", "-I", folder, FOLDER / "program.c", "-o", program,
                                build / "src/libdqrun.so"], check=True)
                out = subprocess.run([program], check=False, env=environment, stdout=subprocess.PIPE, text=True).stdout
                assert out == "ok\n", out
                passed += 1
            except (AssertionError, subprocess.CalledProcessError) as why:
                print(f"FAILED: {name}: {why}")
                failed += 1
    if why := copy_of_today():
        print(f"FAILED: {why}")
        failed += 1
    else:
        passed += 1
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
