#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold the C sources against the layers, the file lengths, the retired names and the ban on paths of one machine.

    tools/check_layers.py [PROJECT_FOLDER]

LAYERS says what each folder may include from the project, and which headers of other libraries it alone may see; the
table in docs/architecture.md says the same in words. One test is one file. Prints what is wrong, one line each, and
`N passed, N failed, N skipped` as the last line; the exit code is 1 when something failed.
"""

import re
import sys
from pathlib import Path

BASE = {"base"}
TENSOR = BASE | {"tensor"}
GRAPH = TENSOR | {"graph"}
OPS = GRAPH | {"kernels", "ops"}
REWRITE = OPS | {"schema", "rewrite"}
PLAN = REWRITE | {"plan"}
EXEC = PLAN | {"exec"}

# Folder under src/ -> folders under src/ whose headers it may include, its own among them.
LAYERS = {
    "base": BASE,
    "kernels": {"base", "kernels"},
    "tensor": TENSOR,
    "graph": GRAPH,
    "parser": GRAPH | {"parser"},
    "schema": GRAPH | {"schema"},
    "ops": OPS,
    "rewrite": REWRITE,
    "plan": PLAN,
    "exec": EXEC,
    "api": EXEC | {"parser", "api"},
}

# Headers of libraries, by the start of their name, and the only places that may include them.
LIBRARIES = {
    "onnx.pb-c.h": ("src/parser/", "tools/io/"),
    "protobuf-c": ("src/parser/", "tools/io/"),
    "yaml.h": ("src/schema/",),
    "zlib.h": ("src/schema/", "tools/io/"),
    "xxhash.h": ("src/base/",),
    "zip.h": ("tools/io/",),
    "unzip.h": ("tools/io/",),
    "immintrin.h": ("src/kernels/", "tests/kernels/"),
    "arm_neon.h": ("src/kernels/",),
    "sleef.h": ("src/kernels/",),
}

# Words that a library must not use: it returns a status and a sentence instead.
FORBIDDEN_CALLS = re.compile(r"\b(abort|exit|_exit|quick_exit|printf|puts|putchar|perror|vprintf)\s*\(|\b(stdout|stderr)\b")

# Identifiers that gave way to the field's words (docs/glossary.md): whole ones or parts between underscores.
RETIRED = re.compile(r"(?<![A-Za-z0-9])(wide_matmul|WideMatMul|WideConv|wide_conv|wide_window|wide_codes|wcodes|wquads|wgemm|wrow|wconv|qlanes|"
                     r"qconv_lanes|conv_beside|qconv_pixels|qconv_codes|conv_line|conv_rows|conv_small|conv_padded|conv_panels|"
                     r"conv_gather|fgather|fconv_plane|fproduct|fblock|fmatrix|fmm|fevery|sample_f32|finish_s32|conv_finish|fgate|"
                     r"qimage|on_codes|OnCodes|qgemm|qconv|fwinograd|dq_columns|dq_twice|dq_plan_again|dq_given|DQ_LATE|dq_home|"
                     r"dq_piece|DQ_OP_SLICED|dq_cut|dq_place_size|dq_call_place|_suits|beats|pays|room|apart|together|octets?|OCTETS?|"
                     r"loose|lasting|flip(?!_sign)|sure|unsure|turned|TURNED|dq_wide|DQ_WIDE|QGEMM|FMM|QLANES|WQUADS|WGEMM|wband|qplanes|"
                     r"fgemm|fgemv|dq_fconv|dq_fpart|BESIDE|beside|behind|dq_codes|put_codes|dq_place|dq_slices|dq_move|"
                     r"stretch|stretches|giver|fpanels|FPANEL|dq_transposed|dq_cells|(?<![A-Z]_)SOME|MOST)(?![A-Za-z0-9])")

# Kernels by docs/kernel-names.md: dq_<operation>_<types>_<isa>.
KERNEL = re.compile(r"DQ_KERNEL\((?P<level>\w+), (?P<type>[\w ]+), (?P<slot>\w+), dq_(?P<name>\w+)\)")
KERNEL_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*?_([sufx](8|16|32|64))+(_[suf](8|16|32))?|[a-z][a-z0-9]*(_[a-z0-9]+)*_(x|mixed)")

# Parameters of a function outside of the kernels, `dq_error *err` not counted. CONTRIBUTING.md says which functions may have more than six.
MAX_PARAMETERS = 8
FUNCTION = re.compile(r"\b(\w+)\(([^;{}()]*(?:\([^()]*\)[^;{}()]*)*)\)\s*\{")
PARENTHESES = re.compile(r"\([^()]*\)")

LENGTH_LIMITS = (("src/kernels/", 800), ("include/dqrun/dqrun.h", 1500), ("tests/api/abi/", 1500), ("", 600))  # the header is a manual
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|home|farm|mnt|Users)/\w")
SKIPPED_FOLDERS = {".git", "__pycache__"}
TEXT_ENDINGS = {".c", ".h", ".def", ".py", ".md", ".yaml", ".txt", ".build", ".tsv", ".sh", ""}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def project_files(root):
    """Every text file that belongs to the project: not in a build folder, not hidden except for .ci."""
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if any(part in SKIPPED_FOLDERS for part in parts) or parts[0].startswith("build"):
            continue
        if any(part.startswith(".") and part != ".ci" for part in parts):
            continue
        if path.is_file() and not path.is_symlink() and path.suffix in TEXT_ENDINGS:
            yield path, "/".join(parts)


def without_comments(text):
    """The code with comments and strings blanked; line numbers stay."""
    return COMMENT_OR_STRING.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def allowed_project_include(name, header, root):
    """Whether the file may include that header of the project; None when it is no header of the project."""
    folder, _, rest = header.partition("/")
    if name.startswith("src/"):
        own = name.split("/")[1]
        if header == "dqrun/dqrun.h":
            return True
        beside = (root / name).parent / header
        if beside.exists() and beside.is_relative_to(root / "src" / own):
            return True
        if rest and folder in LAYERS:
            return folder in LAYERS[own]
        return None
    if name.startswith("tools/") and rest and folder in LAYERS and folder != "tools":
        return False
    if name.startswith("include/") and not header.startswith("std"):
        return False
    return None


def include_problems(name, text, root):
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        header = match.group(2)
        if "../" in header:
            yield f"{name}:{number}: includes {header}; name the header from src/"
        if allowed_project_include(name, header, root) is False:
            yield f"{name}:{number}: includes {header}, which is past its layer"
        if name.startswith(("src/", "tools/", "include/")):
            for start, places in LIBRARIES.items():
                if header.startswith(start) and not name.startswith(places):
                    yield f"{name}:{number}: includes {header}, which only {' and '.join(places)} may"


def problems_of(path, name, root):
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        yield f"{name}: is not UTF-8"
        return
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if MACHINE_PATH.search(line):
            yield f"{name}:{number}: names a path of one machine: {line.strip()[:80]}"
    if path.suffix not in (".c", ".h"):
        return
    limit = next(limit for start, limit in LENGTH_LIMITS if name.startswith(start))
    if len(lines) > limit:
        yield f"{name}: has {len(lines)} lines, expected at most {limit}"
    yield from include_problems(name, text, root)
    if name.startswith(("src/", "tools/")) and not name.startswith("src/kernels/"):
        yield from parameter_problems(name, without_comments(text))
    if name.startswith("src/"):
        if name.split("/")[1] not in LAYERS:
            yield f"{name}: is in a folder that has no line in LAYERS"
        for number, line in enumerate(without_comments(text).splitlines(), 1):
            match = FORBIDDEN_CALLS.search(line)
            if match:
                yield f"{name}:{number}: uses {match.group().rstrip('( ')}; nothing in the library prints or exits"
            match = RETIRED.search(line)
            if match:
                yield f"{name}:{number}: uses the retired name {match.group()}; docs/glossary.md has the field's word"


def parameter_problems(name, code):
    """Functions with too many parameters."""
    for match in FUNCTION.finditer(code):
        parameters = [p for p in PARENTHESES.sub("", match[2]).split(",") if not p.split()[-1:] == ["*err"]]
        if len(parameters) > MAX_PARAMETERS:
            yield f"{name}: {match[1]} has {len(parameters)} parameters and err, expected at most {MAX_PARAMETERS}: take a struct"


def kernel_problems(path):
    """Lines of kernels.def whose function, slot and level do not have one name."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines() if path.exists() else (), 1):
        if not line.startswith("DQ_KERNEL"):
            continue
        match = KERNEL.fullmatch(line)
        if not match:
            yield f"kernels.def:{number}: cannot be read: {line}"
            continue
        level = match["level"].removeprefix("DQ_ISA_").lower()
        if not KERNEL_NAME.fullmatch(match["slot"]):
            yield f"kernels.def:{number}: slot {match['slot']} is no <operation>_<types>; docs/kernel-names.md has the types"
        if match["name"] != f"{match['slot']}_{level}":
            yield f"kernels.def:{number}: dq_{match['name']} is the {level} kernel of slot {match['slot']}, expected dq_{match['slot']}_{level}"


def repeated_names(names):
    """Names of files that src/ has twice."""
    seen = {}
    for name in names:
        if name.startswith("src/") and name.endswith((".c", ".h")):
            other = seen.setdefault(name.rsplit("/", 1)[1], name)
            if other != name:
                yield f"{name}: has the name of {other}"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    passed = failed = 0
    files = list(project_files(root))
    for path, name in files:
        problems = list(problems_of(path, name, root))
        print("\n".join(problems), end="\n" if problems else "")
        failed += bool(problems)
        passed += not problems
    others = [*repeated_names(name for _, name in files), *kernel_problems(root / "src" / "kernels" / "kernels.def")]
    print("\n".join(others), end="\n" if others else "")
    failed += len(others)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
