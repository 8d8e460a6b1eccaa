# SPDX-License-Identifier: Apache-2.0
"""Runs the reference's cases through dqrun-conformance and counts what is right, by operator and version.

    python run.py DQRUN_CONFORMANCE [--all | --sample N] [--seed S] [--op NAME]… [--jobs N] [--isa LEVEL]
        [--threads N] [--show N] [--results FILE.tsv] [--keep DIR]

tests/quant_reference/results.tsv has the counts of the last `--all`; docs/coverage.md is made from it.

Without --all, a sample. The last line is "N passed, N failed, N skipped"; the exit code is 0 when nothing failed, 1 when
something did, 2 when the runner itself could not run.
"""

import argparse
import collections
import concurrent.futures
import csv
import os
import re
import subprocess
import sys
import tempfile
import time

import generate

SAMPLE = 6000
CHUNK = 3000  # cases a batch file


def arguments():
    parser = argparse.ArgumentParser(description="Compare dqrun with the independent reference.")
    parser.add_argument("runner", help="path of dqrun-conformance")
    parser.add_argument("--all", action="store_true", help="every case")
    parser.add_argument("--sample", type=int, default=SAMPLE, help=f"how many cases without --all (default {SAMPLE})")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample and of all data")
    parser.add_argument("--op", action="append", choices=list(generate.OPERATORS), help="only this operator")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--isa", help="highest instruction set, as dqrun-conformance takes it")
    parser.add_argument("--threads", type=int, default=1, help="threads of each case")
    parser.add_argument("--show", type=int, default=3, help="failures to show of each operator version")
    parser.add_argument("--results", help="write the table's counts to this .tsv (op, version, passed, failed)")
    parser.add_argument("--keep", help="folder to leave the batch files in")
    return parser.parse_args()


def run_chunk(command, path, specs, seed):
    """Write a batch file and run it: [(spec, result, sentence)], or None with the runner's words."""
    generate.write(path, specs, seed)
    report = path + ".tsv"
    done = subprocess.run(command + ["--batch", path, "--jobs", "1", "--report", report], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode not in (0, 1):
        return None, done.stdout
    with open(report, newline="") as file:
        rows = {row["case"]: row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}
    found = []
    for spec in specs:
        row = rows.get(spec.name, {"status": "fail", "message": "the report has no such case"})
        found.append((spec.op, spec.version, spec.name, row["status"], row["message"]))
    return found, ""


def run_all(options, folder):
    specs = generate.specs(options.op, None if options.all else options.sample, options.seed)
    chunks = [specs[i:i + CHUNK] for i in range(0, len(specs), CHUNK)]
    results, started = [], time.monotonic()
    # Forked processes know the specs already: only a chunk's number goes to them.
    global _work
    _work = (options, folder, chunks)
    with concurrent.futures.ProcessPoolExecutor(max_workers=max(options.jobs, 1)) as pool:
        for found, words in pool.map(_run_number, range(len(chunks))):
            if found is None:
                print(words, file=sys.stderr)
                return None
            results += found
            if sys.stderr.isatty():
                print(f"\r{len(results)} of {len(specs)} cases, {time.monotonic() - started:.0f} s", end="",
                      file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return results


def _run_number(number):
    options, folder, chunks = _work
    path = os.path.join(folder, f"cases-{number:03}.dqb")
    command = [options.runner, "--threads", str(options.threads)] + (["--isa", options.isa] if options.isa else [])
    found = run_chunk(command, path, chunks[number], options.seed)
    if not options.keep:
        os.remove(path)
    return found


def write_results(path, counts):
    with open(path, "w", newline="", encoding="utf-8") as file:
        file.write("op\tversion\tpassed\tfailed\n")
        for (op, version), count in sorted(counts.items()):
            file.write(f"{op}\t{version}\t{count['pass']}\t{count['cases'] - count['pass']}\n")


def show(results, limit, path):
    """The first failures of each operator version, then the table; the number that passed and failed."""
    counts = collections.defaultdict(collections.Counter)
    kinds = collections.Counter()
    for op, version, name, result, message in results:
        key = (op, version)
        counts[key]["cases"] += 1
        counts[key][result] += 1
        if result != "pass":
            kind = (key, re.sub(r"[-+]?\d[\d.e+-]*", "N", message))
            kinds[kind] += 1
            if kinds[kind] <= limit and sum(k[0] == key for k in kinds) <= 4 * limit:
                print(f"FAILED {name}: {message}")
    print(f"{'operator':24}{'version':>8}{'cases':>8}{'passed':>8}{'failed':>8}")
    for (op, version), count in sorted(counts.items()):
        print(f"{op:24}{version:>8}{count['cases']:>8}{count['pass']:>8}{count['cases'] - count['pass']:>8}")
    if path:
        write_results(path, counts)
    passed = sum(c["pass"] for c in counts.values())
    return passed, len(results) - passed


def main():
    options = arguments()
    if not os.access(options.runner, os.X_OK):
        print(f"{options.runner} is no program that can be run", file=sys.stderr)
        return 2
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="quant_reference_") as temporary:
        results = run_all(options, options.keep or temporary)
    if results is None:
        return 2
    passed, failed = show(results, options.show, options.results)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
