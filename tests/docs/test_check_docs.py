#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of tools/check_docs.py on projects of one page. The last line is `N passed, N failed, N skipped`."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from checker import problem  # noqa: E402  pylint: disable=wrong-import-position

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "check_docs.py"

PROJECT = {
    "src/ops/conv/conv.c": "dq_status dq_conv_run(dq_call *call)\n{\n}\n",
    "include/dqrun/dqrun.h": "dq_status dq_session_run(dq_session *session, dq_error *err);\n",
    "tools/work.py": 'parser.add_argument("--update")\n',
    "tests/cli/transcripts/run.txt": "$ dqrun run --help\n  -o, --output FILE  Write.\n      --why  Say.\n",
    "docs/other.md": "# Other page\n\n## Two words, and `code`\n",
}

# A page, and what the message must hold; None: nothing is wrong with it.
CASES = (
    ("A [link](other.md) and [one](other.md#two-words-and-code), [here](#title), [code](../src/ops).\n", None),
    ("A [link](absent.md).\n", "page.md:3: links to absent.md, which is not there"),
    ("A [link](other.md#three).\n", "links to other.md#three, which has no such heading"),
    ("A [link](https://example.org/none).\n", None),
    ("`src/ops/conv/conv.c`, `conv.c`, `src/ops/conv/`, `src/ops/KIND/FAMILY.c`, `src/ops/*/conv.c`, `dqrun/dqrun.h`.\n", None),
    ("See `src/ops/pool.c`.\n", "page.md:3: names the file src/ops/pool.c"),
    ("See `pool.c`.\n", "names the file pool.c"),
    ("See `src/plan/`.\n", "names the file src/plan/"),
    ("It is in `build/tools/dqrun` and `out/part.parquet`.\n", None),
    ("`dq_conv_run()`, `dq_session_*` and `halt()`.\n", "names the function halt(), which is not in the sources"),
    ("`dq_session_stop` ends.\n", "names dq_session_stop, which is not in the sources"),
    ("`dq_session_*`, `dq_session_run` and `dq_call`.\n", None),
    ("`dq_session.err`\n", None),
    ("`dq_session.speed`\n", "names speed, which is not in the sources"),
    ("```c\nvoid dq_mine(void);\n```\n\n`dq_mine` is of this page.\n", None),
    ("```diff\n+++ b/src/ops/conv/mine.c\n```\n\n`src/ops/conv/mine.c` is of this page.\n", None),
    ("`tools/work.py --update`\n", None),
    ("`tools/work.py --forget`\n", "names the option --forget"),
    ("`dqrun model.onnx --why` and `dqrun run m -o x`.\n", None),
    ("`dqrun run model.onnx --update`\n", "gives dqrun run the option --update"),
    ("```sh\ndqrun model.onnx --update | cat\n```\n", "page.md:4: gives dqrun run the option --update"),
    ("```sh\ndqrun model.onnx --why | grep --update\n```\n", None),
    ("```\ncode\n```\n", "a code block of language ''"),
    ("| function | file |\n| --- | --- |\n| `dq_conv_run` | `src/ops/conv/conv.c` |\n", None),
    ("| function | file |\n| --- | --- |\n| `dq_session_run` | `src/ops/conv/conv.c` |\n", "says that dq_session_run is in src/ops/conv/conv.c"),
    ("a " * 30 + "b.\n", None),
    ("a " * 36 + "b.\n", "page.md:3: a sentence of 37 words"),
    ("a " * 20 + "b.\n" + "A " * 20 + "b.\n", None),
    ("- " + "a " * 20 + "b\n- " + "a " * 20 + "b\n", None),
    ("| " + "a " * 200 + "|\n", None),
    ("```text\n" + "a " * 200 + "\n```\n", None),
    ("a" * 161 + "\n", "has 161 characters"),
    ("<!-- t: written by tools/work.py -->\n" + "a " * 100 + "\n<!-- end of t -->\n", None),
)


# More files, and what the message must hold.
OTHER_FILES = (
    ({"meson.build": "project('x', 'c',\n  version: '1.2.3')\n", "CHANGELOG.md": "# Changes\n\n## 1.2.3 - today\n",
      "CITATION.cff": "version: 1.2.3\n"}, None),
    ({"meson.build": "project('x', 'c',\n  version: '1.2.3')\n", "CHANGELOG.md": "# Changes\n\n## 1.2.4\n",
      "CITATION.cff": "version: 1.2.3\n"}, "CHANGELOG.md: does not have the version 1.2.3"),
    ({"meson.build": "project('x', 'c',\n  version: '1.2.3')\n", "CHANGELOG.md": "# Changes\n\n## 1.2.3\n"},
     "CITATION.cff: does not have the version 1.2.3"),
)


def main():
    failed = 0
    cases = [(text, expected, None) for text, expected in CASES] + [("", expected, more) for more, expected in OTHER_FILES]
    for text, expected, more in cases:
        what = problem(SCRIPT, {**PROJECT, **(more or {}), "docs/page.md": f"# Title\n\n{text}"}, expected)
        if what:
            failed += 1
            print(f"FAILED {text[:60]!r} {more or ''}: {what}")
    print(f"{len(cases) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
