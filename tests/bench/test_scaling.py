#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The simulation of bench/scaling.py on tasks whose makespan is known; with a build, also the recorder on a shipped model.

    tests/bench/test_scaling.py [BUILD]
"""

import json
import math
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from scaling import NO_COST, Machine, ranges, run_job, simulate  # noqa: E402

LINE = Machine(line_us=1, call_us=0.5, wake_us=100, wake_call_us=10)

# name, time of each task, threads, machine, expected time
JOBS = (
    ("one thread takes the sum", [1, 2, 3], 1, LINE, 6),
    ("one task is not shared", [5], 8, LINE, 5),
    ("equal tasks in two ranges", [1] * 8, 2, NO_COST, 4),
    ("one task more than threads", [1] * 5, 4, NO_COST, 2),
    ("fewer tasks than threads", [3, 1, 2], 16, NO_COST, 3),
    # Ranges 9 1 | 1 1: the second thread takes its two tasks, then the first thread's second one.
    ("a slow task is overtaken", [9, 1, 1, 1], 2, NO_COST, 9),
    # Ranges 1 1 | 5 5: the first thread takes the last task at 2 and ends at 7.
    ("tasks are stolen", [1, 1, 5, 5], 2, NO_COST, 7),
    # Opens at 0.5 + 2 + 2 = 4.5; the worker enters at 7.5; both compute 10, look at the other range 1/4,
    # and the worker leaves after one line: 7.5 + 10 + 0.25 + 1.
    ("lines travel", [10, 10], 2, LINE, 18.75),
    # The worker sleeps: the caller has taken both tasks at 14.5 + 2 before it comes, and waits for nobody.
    ("nobody waits for sleepers", [1, 1], 2, Machine(1, 0.5, 100, 10), 14.5 + 1 + 2 + 0.25),
    # With two tasks of 32 threads, two take part: as many lines as with two threads.
    ("threads without a task stay outside", [10, 10], 32, LINE, 18.75),
)


def step(serial, jobs, bytes_moved=0):
    return {"node": "n", "op": "Add-14", "serial_us": serial, "bytes": bytes_moved, "jobs": [{"task_us": tasks} for tasks in jobs]}


def record(*steps, weights=0):
    return {"weight_bytes": weights, "activation_bytes": 0, "steps": list(steps)}


SLOW = Machine(0, 0, 0, 0, memory_gb_s=1, cache_gb_s=10, cache_bytes=1000)

# name, record, threads, machine, expected time, what is lost by cause
RUNS = (
    ("serial steps stay", record(step(8, []), step(0, [[4] * 4])), 4, NO_COST, 12, {"serial": 6}),
    ("few tasks are named", record(step(0, [[4, 4]])), 4, NO_COST, 4, {"few tasks": 2}),
    ("uneven tasks are named", record(step(0, [[4] * 5])), 4, NO_COST, 8, {"uneven": 3}),
    ("memory is the limit", record(step(0, [[4] * 8], 16000), weights=2000), 8, SLOW, 16, {"bandwidth": 12}),
    ("the cache is the limit", record(step(0, [[4] * 8], 80000), weights=1000), 8, SLOW, 8, {"bandwidth": 4}),
    ("memory is not waited for twice", record(step(0, [[4] * 8], 10**9), weights=2000), 8, SLOW, 32, {"bandwidth": 28}),
)


def jobs_of_shipped_model(build):
    """The recorded tasks and the counted lines of a model that comes with the sources."""
    model = [ROOT / "examples" / "digits_qdq.onnx", ROOT / "examples" / "digits_test.npz"]
    program = f"{build}/tests/record_tasks"
    return tuple(json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
                 for command in ([program, *model, "4", "2"], [program, "--lines", *model, "4"]))


def cases(build):
    yield "ranges are contiguous", ranges(7, 3) == [(0, 3), (3, 5), (5, 7)], ranges(7, 3)
    for name, tasks, threads, machine, expected in JOBS:
        got = run_job(tasks, threads, machine, asleep="sleepers" in name)
        yield name, math.isclose(got, expected), got
    for name, made, threads, machine, expected, lost in RUNS:
        steps = simulate(made, threads, machine)
        found = {c: sum(s.lost[c] for s in steps) for c in steps[0].lost}
        wanted = {c: lost.get(c, 0) for c in found}
        time = sum(s.us for s in steps)
        yield name, math.isclose(time, expected) and all(math.isclose(found[c], wanted[c]) for c in found), (time, found)
    if build:
        told, lines = jobs_of_shipped_model(build)
        jobs = [j for s in told["steps"] for j in s["jobs"]]
        counted = [j for s in lines["steps"] for j in s["jobs"]]
        good = jobs and all(len(j["task_us"]) == -(-j["items"] // j["grain"]) > 1 for j in jobs)
        yield "each task is recorded", good, told
        good = [j["tasks"] for j in counted] == [len(j["task_us"]) for j in jobs]
        yield "lines have the same jobs", good and all(j["shared_lines"] <= j["written_lines"] > 0 for j in counted), lines


def main():
    passed = failed = 0
    for name, good, got in cases(sys.argv[1] if len(sys.argv) > 1 else None):
        passed, failed = passed + bool(good), failed + (not good)
        if not good:
            print(f"FAILED {name}: got {got}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
