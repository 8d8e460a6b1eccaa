#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of tools/check_layers.py on projects of one file. The last line is `N passed, N failed, N skipped`."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from checker import problem  # noqa: E402  pylint: disable=wrong-import-position

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "check_layers.py"

# File, text, and a part of the expected message; None: nothing is wrong with it.
CASES = (
    ("src/ops/a.c", '#include "kernels/kernels.h"\n#include <math.h>\n', None),
    ("src/ops/a.c", '#include "plan/plan.h"\n', "plan/plan.h, which is past its layer"),
    ("src/base/a.h", '#include "tensor/dtype.h"\n', "tensor/dtype.h, which is past its layer"),
    ("src/kernels/a.c", '#  include "tensor/dtype.h"\n', "past its layer"),
    ("src/graph/a.c", "#include <onnx.pb-c.h>\n", "onnx.pb-c.h, which only src/parser/"),
    ("src/parser/a.c", '#include "onnx.pb-c.h"\n', None),
    ("src/schema/a.c", '#include "../graph/graph.h"\n', "name the header from src/"),
    ("src/new/a.c", "int a;\n", "no line in LAYERS"),
    ("tools/a.c", '#include "graph/graph.h"\n', "past its layer"),
    ("tools/a.c", '#include "io/pb.h"\n#include <dqrun/dqrun.h>\n', None),
    ("include/dqrun/dqrun.h", "#include <sys/types.h>\n", "past its layer"),
    ("src/base/a.c", "void f(void) { abort(); }\n", "uses abort"),
    ("src/base/a.c", "void f(void) { snprintf(a, 1, s); }\n/* abort() */ const char *b = \"exit(1)\";\n", None),
    ("tools/a.c", "void f(void) { exit(1); }\n", None),
    ("src/base/a.c", "\n" * 601, "has 601 lines"),
    ("src/kernels/a.c", "\n" * 800, None),
    ("src/kernels/a.c", "\n" * 801, "has 801 lines"),
    ("docs/a.md", "see /" + "home/me/x\n", "path of one machine"),
    ("docs/a.md", "src/" + "work/x and ./" + "root/x\n", None),
    (".ci/run", "cd /" + "work/x\n", "path of one machine"),
    ("src/ops/a.c", "int qgemm_rows;\n", "uses the retired name qgemm"),
    ("src/ops/a.c", "void f(int a, int b, int c, int d, int e, int g, void (*h)(int, int), int i, int j)\n{\n}\n", "f has 9 parameters"),
    ("src/ops/a.c", "int f(int a, int b, int c, int d, int e, int g, void (*h)(int, int), int i, dq_error *err)\n{\n}\n", None),
    ("src/kernels/a.c", "void f(int a, int b, int c, int d, int e, int g, int h, int i, int j)\n{\n}\n", None),
    ("src/kernels/kernels.def", "DQ_KERNEL(DQ_ISA_AVX2, dq_gemm_fn, gemm_s16s8, dq_gemm_s16s8_avx2)\n", None),
    ("src/kernels/kernels.def", "DQ_KERNEL(DQ_ISA_C, dq_gemm_fn, gemm, dq_gemm_c)\n", "slot gemm is no <operation>_<types>"),
    ("src/kernels/kernels.def", "DQ_KERNEL(DQ_ISA_AVX2, dq_gemm_fn, gemm_s8, dq_gemm_s8_c)\n", "expected dq_gemm_s8_avx2"),
    ("build-test/a.c", "#include <zip.h>\n" * 900, None),
)


def main():
    failed = 0
    for name, text, expected in CASES:
        what = problem(SCRIPT, {name: text, "README.md": ""}, expected)
        if what:
            failed += 1
            print(f"FAILED {name}: {what}")
    print(f"{len(CASES) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
