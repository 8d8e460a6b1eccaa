#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of tests/cli/pages.py: how commands are found in pages, and how their output is compared. The last line is
`N passed, N failed, N skipped`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
import pages  # noqa: E402

PAGE = """# Page

<!-- file: a.txt -->
```text
hello
```

```console
$ cat a.txt
hello
$ false
[exit code 1]
$ seq 100 \\
    200
...
200
```

```sh
not run
```

<!-- numbers vary -->
```console
$ time
real 1.5 s
user  2e-3 s of avx2
```
"""

STEPS = [("file", "a.txt", "hello\n"), ("$", "cat a.txt", ["hello"]), ("$", "false", ["[exit code 1]"]),
         ("$", "seq 100 \\\n    200", [pages.REST, "200"])]

# Expected, got, whether they match in order, and in any order.
COMPARED = (
    (["a", "b"], ["a", "b"], True, True),
    (["a", "b"], ["b", "a"], False, True),
    (["a"], ["a", "b"], False, False),
    (["a", pages.REST], ["a", "b", "c"], True, True),
    ([pages.REST, "c"], ["a", "b", "c"], True, True),
    (["a", "a"], ["a"], False, False),
    ([r"a\d (re)"], ["a7"], True, True),
    ([], ["a"], False, False),
)


def check_steps():
    found = list(pages.page_steps(PAGE))
    assert found[:4] == STEPS, found
    kind, command, expected = found[4]
    assert (kind, command, len(found)) == ("$ in any order", "time", 5), found
    compare = pages.MATCHES[kind]
    assert compare(expected, ["user  0.25 s of avx2", "real   17 s"]), expected
    assert not compare(expected, ["user  0.25 s of avx512", "real   17 s"])
    assert not compare(expected, ["user  slow s of avx2", "real   17 s"])


def check_comparisons():
    for expected, got, in_order, in_any_order in COMPARED:
        assert pages.transcript_matches(expected, got) == in_order, (expected, got)
        assert pages.matches_in_any_order(expected, got) == in_any_order, (expected, got)


def main():
    failed = 0
    for check in (check_steps, check_comparisons):
        try:
            check()
        except AssertionError as why:
            failed += 1
            print(f"FAILED {check.__name__}: {why}")
    print(f"{2 - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
