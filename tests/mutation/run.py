#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutation testing: deliberate faults, each of which the tests must find.

    run.py --check                         each row of faults.tsv fits the tree: seconds, part of tools/test
    run.py [--scratch DIR] [--only TEXT ...] [--narrow] [--results FILE]   the whole: hours

faults.tsv has a row a fault: file, the text that stands there exactly once, the text that takes its place, the tests that
should find it, and, for a fault that no test can find, why. Tests are named as below in TESTS, else NAME is
tests/unit/test_NAME and op_NAME is tests/ops/test_NAME. NAME:TEXT runs a part of the test: the kernels whose names hold TEXT, the fusion pattern TEXT, the operator TEXT.

The tree is copied to DIR (default build-mutation/) and built there. Each fault is put in, what the narrow tests need is built, and
they run; if all of them pass, the wide ones follow. The wide tests leave out the kernels that run through SIMDe, which take
minutes to compile. Prints a line a fault, killed or survived and by which test, and as the last line
"N killed, N survived, N explained, N broken". A fault that does not compile is broken. Exit code 0 only if no fault
survives without an explanation and none is broken."""

import argparse
import csv
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FAULTS = pathlib.Path(__file__).with_name("faults.tsv")
COPIED = ["bench", "docs", "examples", "include", "meson.build", "meson_options.txt", "schemas", "src", "tests", "tools"]
LIMIT = 600  # seconds of a test; one that does not end has found the fault
ENVIRONMENT = {**os.environ, "CK_DEFAULT_TIMEOUT": "300"}  # check's own limit of 4 s a case is too short for a busy machine

# name: (what is built, the command); {build} is the build folder.
TESTS = {
    "kernels": (["tests/kernels/test_kernels"], ["{build}/tests/kernels/test_kernels"]),
    "kernels_simde": (["tests/kernels/test_kernels_simde"], ["{build}/tests/kernels/test_kernels_simde"]),
    "fusion": (["tools/dqrun", "tools/dqrun-conformance"], [sys.executable, "tests/fusion/check.py", "{build}/tools/dqrun"]),
    "exact_sums": (["tools/dqrun", "tools/dqrun-conformance"],
                   [sys.executable, "tests/fusion/exact_sums.py", "{build}/tools/dqrun"]),
    "cli": (["tools/dqrun"], [sys.executable, "tests/cli/run.py", "{build}/tools/dqrun"]),
    "quantization": (["tools/dqrun-conformance"], [sys.executable, "tests/quant_reference/run.py",
                                                   "{build}/tools/dqrun-conformance", "--sample", "4000"]),
}
OPTIONS = {"fusion": ["--pattern"], "quantization": ["--op"]}  # what stands before the TEXT of NAME:TEXT
EXECUTABLE = re.compile(r"(tests/\w+|tests/(unit|ops)/\w+|tests/kernels/test_kernels|tools/[\w-]+): c_LINKER")
WIDE = ["unit", "fusion", "cli"]


def read_faults():
    with open(FAULTS, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    for row in rows:
        for key in "old", "new":
            row[key] = row[key].replace("\\n", "\n")
    return rows


def program(name):
    """The path of a C test without its extension."""
    return f"tests/ops/test_{name[3:]}" if name.startswith("op_") else f"tests/unit/test_{name}"


def check(rows):
    """Each row's text stands exactly once in its file, and its tests exist."""
    failed = 0
    for row in rows:
        path = ROOT / row["file"]
        found = path.read_text(encoding="utf-8").count(row["old"]) if path.is_file() else 0
        if found != 1 or row["old"] == row["new"]:
            failed += 1
            print(f"{row['file']}: found {found} times, expected once: {row['old']}")
            continue
        names = [test.partition(":")[0] for test in row["tests"].split(",") if test]
        missing = [name for name in names if name not in TESTS and not (ROOT / f"{program(name)}.c").is_file()]
        if missing:
            failed += 1
            print(f"{row['file']}: there is no test {', '.join(missing)}")
    print(f"{len(rows) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


def copy_tree(scratch, wide):
    scratch.mkdir(parents=True, exist_ok=True)
    sources = [path for name in COPIED for path in [ROOT / name, *sorted((ROOT / name).rglob("*"))] if path.is_file()]
    for source in sources: # only what differs gets a new time, so that ninja builds what changed and nothing else
        copy = scratch / source.relative_to(ROOT)
        if not copy.is_file() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
            copy.chmod(source.stat().st_mode)
    if not (scratch / "build" / "build.ninja").is_file():
        subprocess.run(["meson", "setup", "build", "--buildtype=debugoptimized", "-Dtests=true"], cwd=scratch, check=True,
                       stdout=subprocess.DEVNULL)
    programs = subprocess.run(["ninja", "-C", "build", "-t", "targets", "all"], cwd=scratch, check=True, capture_output=True,
                              text=True).stdout.splitlines()
    programs = [line.split(":")[0] for line in programs if EXECUTABLE.match(line) and "simde" not in line]
    tests = subprocess.run(["meson", "test", "-C", "build", "--list"], cwd=scratch, check=True, capture_output=True,
                           text=True).stdout.splitlines()
    tests = [line.split(" / ")[-1] for line in tests if "simde" not in line and " / " in line]
    TESTS["unit"] = (programs, ["meson", "test", "-C", "{build}", "--no-rebuild", "--maxfail", "1", *tests])
    if wide and not build(scratch, programs):
        sys.exit("run.py: the tree as it is does not build")


def build(scratch, programs):
    return subprocess.run(["ninja", "-C", "build", *programs], cwd=scratch, capture_output=True, check=False).returncode == 0


def parts(test):
    name, _, text = test.partition(":")
    programs, command = TESTS.get(name, ([program(name)], [f"{{build}}/{program(name)}"]))
    return programs, command + [*OPTIONS.get(name, []), text] if text else command


def passes(scratch, test):
    """True, False, or None if it cannot be built."""
    programs, command = parts(test)
    if not build(scratch, programs):
        return None
    command = [word.replace("{build}", str(scratch / "build")) for word in command]
    try:
        return subprocess.run(command, cwd=scratch, capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT,
                              env=ENVIRONMENT, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def check_baseline(scratch, test, known):
    """A test finds a fault only if it passes on the tree as it is."""
    if not passes(scratch, test):
        sys.exit(f"run.py: the test '{test}' does not pass on the tree as it is")
    known.add(test)


def try_fault(scratch, row, known, wide):
    """The name of the test that finds it, "" if none does, None if it does not compile. A fault that no test can find gets the
    narrow tests only."""
    narrow = row["tests"].split(",")
    tests = narrow + [name for name in wide if name not in narrow and not row["survives"]]
    path = scratch / row["file"]
    text = path.read_text(encoding="utf-8")
    try:
        for test in tests:
            if test not in known:
                path.write_text(text, encoding="utf-8")
                check_baseline(scratch, test, known)
            if path.read_text(encoding="utf-8") == text:
                path.write_text(text.replace(row["old"], row["new"]), encoding="utf-8")
            good = passes(scratch, test)
            if good is None:
                return None
            if not good:
                return test
        return ""
    finally:
        path.write_text(text, encoding="utf-8")
        os.utime(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--scratch", type=pathlib.Path, default=ROOT / "build-mutation")
    parser.add_argument("--only", nargs="+", default=[""], help="rows whose file or text to replace holds one of these texts")
    parser.add_argument("--narrow", action="store_true", help="the narrow tests only; what passes them counts as survived")
    parser.add_argument("--results", type=pathlib.Path, help="file that each result is appended to")
    arguments = parser.parse_args()
    rows = read_faults()
    if arguments.check:
        return check(rows)
    scratch, known, wide = arguments.scratch.resolve(), set(), [] if arguments.narrow else WIDE
    copy_tree(scratch, wide)
    counts = dict.fromkeys(("killed", "survived", "explained", "broken"), 0)
    for row in rows:
        if not any(text in row["file"] or text in row["old"] for text in arguments.only):
            continue
        begin = time.monotonic()
        by = try_fault(scratch, row, known, wide)
        result = "broken" if by is None else "killed" if by else "explained" if row["survives"] else "survived"
        counts[result] += 1
        line = f"{result}{' by ' + by if by else ''}: {row['file']}: {row['old']!r} -> {row['new']!r}"
        print(f"{line} ({time.monotonic() - begin:.0f} s)", flush=True)
        if arguments.results:
            with open(arguments.results, "a", encoding="utf-8") as file:
                file.write(f"{line}\n")
    print(", ".join(f"{number} {name}" for name, number in counts.items()))
    return 1 if counts["survived"] or counts["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
