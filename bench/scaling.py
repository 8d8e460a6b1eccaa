#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Expects the speed of models with more threads than this machine has cores.

    bench/scaling.py BUILD RECORDS MODEL.onnx:INPUTS.npz... [--measure] [--plot FILE] [--steps N]

BUILD is a release build with -Dtests=true. For each model and number of threads, BUILD/tests/record_tasks records the tasks
of each parallel job; the folder RECORDS keeps the answers. A simulation then runs the same tasks on N threads
(docs/scaling.md). --measure also times one and two threads alternately, and shows how near the simulation is.
Prints Markdown tables.
"""

import argparse
import heapq
import json
import pathlib
import subprocess
import sys
from dataclasses import dataclass, field

THREADS = (1, 2, 4, 8, 16, 32)
LOADS_AT_ONCE = 4  # cache lines that a thread has under way at the same time
POLL_US = 50  # SPIN_US of src/base/threads.c: after it, workers sleep
CAUSES = ("serial", "few tasks", "uneven", "barrier", "shared lines", "bandwidth")


@dataclass
class Machine:
    """What the simulation takes for granted; times are microseconds."""

    line_us: float = 0.06  # a cache line's way from core to core
    call_us: float = 0.1  # a job of the calling thread, without any transfer
    wake_us: float = 20.0  # until a thread that sleeps runs
    wake_call_us: float = 1.5  # the caller's part of that; it wakes one thread after another
    memory_gb_s: float = 200.0  # all cores together
    cache_gb_s: float = 600.0  # of the last-level cache, all cores together
    cache_bytes: float = 64e6  # last-level cache

    def bandwidth(self, working_set):
        return self.cache_gb_s if working_set <= self.cache_bytes else self.memory_gb_s


NO_COST = Machine(line_us=0, call_us=0, wake_us=0, wake_call_us=0)


def ranges(tasks, threads):
    """The contiguous ranges of share_out: [begin, end) of each thread."""
    each, more = divmod(tasks, threads)
    bounds = [0]
    for i in range(threads):
        bounds.append(bounds[-1] + each + (i < more))
    return list(zip(bounds, bounds[1:]))


def run_job(tasks, threads, machine, asleep=False):
    """The time of one dq_parallel, from call to return.

    Not more threads take part than there are tasks. A thread takes tasks of its own range, then of the next ranges. The caller
    is thread 0. It writes the range of each thread and opens the gate; workers enter one after another, because each takes the
    gate's line for itself. At the end each thread looks at all ranges once, and workers leave one after another.
    """
    threads = min(threads, len(tasks))
    if threads == 1:
        return sum(tasks)
    line = machine.line_us
    opened = machine.call_us + line * (threads + 2)  # ranges, job, gate
    enters = [opened] + [opened + line * (k + 2) for k in range(1, threads)]  # gate in turn; job and own range
    if asleep:
        calls = [machine.wake_call_us * k for k in range(threads)]
        enters = [enters[0] + calls[-1]] + [t + c + machine.wake_us for t, c in zip(enters[1:], calls)]
    left = ranges(len(tasks), threads)
    next_task = [begin for begin, _ in left]
    looks_at = list(range(threads))  # the range that a thread takes from, modulo threads
    queue = [(t, i) for i, t in enumerate(enters)]
    heapq.heapify(queue)
    ends, closed = [], None
    while queue:
        now, i = heapq.heappop(queue)
        if closed is not None and now > closed and now == enters[i]:
            continue  # the job was closed before this worker came
        while looks_at[i] < i + threads and next_task[looks_at[i] % threads] == left[looks_at[i] % threads][1]:
            looks_at[i] += 1
        if looks_at[i] == i + threads:
            ends.append((now + line * (threads - 1) / LOADS_AT_ONCE, i))
            closed = ends[-1][0] if i == 0 else closed
            continue
        k = looks_at[i] % threads
        heapq.heappush(queue, (now + tasks[next_task[k]] + (line if k != i else 0), i))
        next_task[k] += 1
    gate = 0.0
    for end, i in sorted(ends):
        gate = max(gate, end) + (line if i else 0)
    return max(gate, closed)


@dataclass
class Step:
    """A simulated step: its time, and the time it loses against total/threads, by cause."""

    node: str
    op: str
    us: float = 0.0
    total: float = 0.0  # on one thread
    lost: dict = field(default_factory=lambda: dict.fromkeys(CAUSES, 0.0))


def run_step(step, threads, machine, gb_s, idle_us):
    """Simulates a recorded step. Also returns for how long no job has been under way at its end."""
    out = Step(step["node"], step["op"], us=step["serial_us"], total=step["serial_us"])
    out.lost["serial"] = step["serial_us"] * (1 - 1 / threads)
    part = step["serial_us"] / (len(step["jobs"]) + 1)  # before, between and after the jobs
    idle_us += part
    in_jobs = 0.0
    for job in step["jobs"]:
        tasks = job["task_us"]
        total = sum(tasks)
        free = run_job(tasks, threads, NO_COST)
        real = run_job(tasks, threads, machine, asleep=idle_us > POLL_US)
        out.lost["few tasks" if len(tasks) < threads else "uneven"] += free - total / threads
        moved = machine.line_us * job.get("shared_lines", 0) / min(threads, len(tasks)) / LOADS_AT_ONCE
        out.lost["barrier"] += real - free
        out.lost["shared lines"] += moved
        out.total += total
        in_jobs += real + moved
        idle_us = part
    # Bytes that the recorded time already waited for are not counted twice: a limit for the whole step.
    limit = min(step["bytes"] / (gb_s * 1e3), out.total) if threads > 1 and step["jobs"] else 0
    out.lost["bandwidth"] = max(limit - in_jobs, 0)
    out.us += max(in_jobs, limit)
    return out, idle_us


def simulate(record, threads, machine):
    """Runs a recorded model. Returns its simulated steps."""
    gb_s = machine.bandwidth(record["weight_bytes"] + record["activation_bytes"])
    steps, idle = [], POLL_US + 1.0  # between runs workers sleep
    for step in record["steps"]:
        done, idle = run_step(step, threads, machine, gb_s, idle)
        steps.append(done)
    return steps


def time_of(steps):
    return sum(s.us for s in steps)


# ---- Records ---------------------------------------------------------------------------------------------------------


def answer(command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def kept(path, command):
    """The answer of a command, from the folder of records if it is there."""
    if not path.exists():
        path.write_text(json.dumps(answer(command)))
    return json.loads(path.read_text())


def label(model):
    path = pathlib.Path(model.split(":")[0])
    return f"{path.parent.name} {path.stem}"


def read_records(build, folder, model, runs):
    onnx, inputs = model.split(":")
    name = label(model).replace(" ", "-")
    program = f"{build}/tests/record_tasks"
    records = {}
    for p in THREADS:
        records[p] = kept(folder / f"{name}-{p}.json", [program, onnx, inputs, str(p), str(runs)])
        lines = kept(folder / f"{name}-{p}-lines.json", [program, "--lines", onnx, inputs, str(p)])
        for step, counted in zip(records[p]["steps"], lines["steps"], strict=True):
            for job, counts in zip(step["jobs"], counted["jobs"], strict=True):
                job["shared_lines"] = counts["shared_lines"]
    return records


def measure(build, model, rounds):
    """The least time of a run with one and with two threads, in alternating processes, in microseconds."""
    onnx, inputs = model.split(":")
    least = {1: float("inf"), 2: float("inf")}
    for _ in range(rounds):
        for threads in least:
            told = answer([f"{build}/tools/dqrun", "bench", onnx, inputs, "--threads", str(threads), "--seconds", "1", "--json"])
            least[threads] = min(least[threads], told["min_ms"] * 1e3)
    return least


# ---- Tables ----------------------------------------------------------------------------------------------------------


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("| " + " | ".join(["---"] + ["---:"] * (len(head) - 1)) + " |")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def print_counts(all_records):
    rows = []
    for name, records in all_records.items():
        jobs = [j for s in records[16]["steps"] for j in s["jobs"]]
        counts = sorted(len(j["task_us"]) for j in jobs)
        one = sum(s["serial_us"] + sum(sum(j["task_us"]) for j in s["jobs"]) for s in records[1]["steps"])
        serial = sum(s["serial_us"] for s in records[16]["steps"])
        total = serial + sum(sum(j["task_us"]) for s in records[16]["steps"] for j in s["jobs"])
        few = sum(c < 16 for c in counts)
        rows.append((name, f"{len(records[16]['steps'])}", f"{len(jobs)}", f"{counts[len(counts) // 2] if counts else 0}", f"{few}",
                     f"{sum(s['bytes'] for s in records[16]['steps']) / 1e6:.1f}", f"{one / 1e3:.2f}", f"{100 * serial / total:.1f}"))
    table(("model", "steps", "jobs", "median tasks a job", "jobs of < 16 tasks", "MB a run", "ms, 1 thread", "% outside jobs"), rows)


def print_speedups(all_records, machine):
    rows, curves = [], {}
    for name, records in all_records.items():
        base = time_of(simulate(records[1], 1, machine))
        curves[name] = [base / time_of(simulate(records[p], p, machine)) for p in THREADS]
        rows.append((name, *(f"{x:.2f}" for x in curves[name][1:])))
    table(("model", *(f"{p} threads" for p in THREADS[1:])), rows)
    return curves


def print_causes(all_records, machine, threads):
    rows = []
    for name, records in all_records.items():
        steps = simulate(records[threads], threads, machine)
        whole = time_of(steps)
        rows.append((name, f"{100 * sum(s.total for s in steps) / threads / whole:.0f}",
                     *(f"{100 * sum(s.lost[c] for s in steps) / whole:.0f}" for c in CAUSES)))
    table((f"% of the time at {threads} threads", "useful", *CAUSES), rows)


def print_steps(all_records, machine, threads, most):
    for name, records in all_records.items():
        steps = sorted(simulate(records[threads], threads, machine), key=lambda s: -sum(s.lost.values()))
        print(f"{name}: steps that lose most at {threads} threads\n")
        rows = []
        for s in steps[:most]:
            jobs = next(r["jobs"] for r in records[threads]["steps"] if r["node"] == s.node)
            rows.append((s.node[-40:], s.op, f"{s.total:.0f}", f"{s.us:.1f}", " ".join(str(len(j["task_us"])) for j in jobs) or "-",
                         *(f"{s.lost[c]:.1f}" for c in CAUSES)))
        table(("step", "operator", "us, 1 thread", f"us, {threads}", "tasks", *CAUSES), rows)


def print_check(args, all_records, here):
    rows = []
    for model, records in zip(args.models, all_records.values()):
        least = measure(args.build, model, args.rounds)
        expected = time_of(simulate(records[1], 1, here)) / time_of(simulate(records[2], 2, here))
        found = least[1] / least[2]
        rows.append((label(model), f"{least[1] / 1e3:.3f}", f"{expected:.2f}", f"{found:.2f}", f"{100 * (expected / found - 1):+.0f}"))
    table(("model", "ms, 1 thread", "times as fast with 2: expected", "measured", "% off"), rows)


def this_machine(pool):
    """The parameters that record_tasks --pool measures."""
    polling, asleep = pool["polling"], pool["asleep"]
    return Machine(line_us=pool["line_us"], call_us=polling["caller_us"], wake_us=asleep["worker_us"],
                   wake_call_us=asleep["caller_us"] - polling["caller_us"], memory_gb_s=pool["memory_gb_s"], cache_gb_s=pool["cache_gb_s"],
                   cache_bytes=32e6)


# ---- Plot ------------------------------------------------------------------------------------------------------------


def plot(curves, path):
    colours = ("#2b6cb0", "#dd8b1f", "#5a9e4b", "#b83280", "#6b46c1", "#c53030", "#2c7a7b", "#744210", "#4a5568", "#000000")
    width, height, left, bottom, top, right = 760, 420, 50, 40, 40, 220
    step = (width - left - right) / (len(THREADS) - 1)

    def point(i, speedup):
        return f"{left + step * i:.1f},{height - bottom - (height - bottom - top) * min(speedup, 32) / 32:.1f}"

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           '<text x="10" y="20" font-size="14" font-weight="bold">Expected speedup by number of threads (simulated)</text>']
    for tick in (0, 4, 8, 16, 24, 32):
        y = point(0, tick).split(",")[1]
        out += [f'<line x1="{left}" x2="{width - right}" y1="{y}" y2="{y}" stroke="#ddd"/>',
                f'<text x="{left - 8}" y="{y}" text-anchor="end" dominant-baseline="middle">{tick}</text>']
    for i, p in enumerate(THREADS):
        out.append(f'<text x="{left + step * i:.1f}" y="{height - bottom + 18}" text-anchor="middle">{p}</text>')
    out.append(f'<polyline fill="none" stroke="#999" stroke-dasharray="4 3" points="{" ".join(point(i, p) for i, p in enumerate(THREADS))}"/>')
    order = sorted(curves.items(), key=lambda c: -c[1][-1])
    for i, ((name, speedups), colour) in enumerate(zip(order, colours)):
        points = " ".join(point(k, s) for k, s in enumerate(speedups))
        y = top + 20 + 18 * i
        out += [f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{points}"/>',
                f'<rect x="{width - right + 14}" y="{y - 9}" width="10" height="10" fill="{colour}"/>',
                f'<text x="{width - right + 30}" y="{y}">{name}: {speedups[-1]:.1f}</text>']
    pathlib.Path(path).write_text("\n".join([*out, "</svg>", ""]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("records", type=pathlib.Path)
    parser.add_argument("models", nargs="+", metavar="MODEL.onnx:INPUTS.npz")
    parser.add_argument("--runs", type=int, default=20, help="runs of a record; each task's least time counts")
    parser.add_argument("--measure", action="store_true", help="compare with two threads of this machine")
    parser.add_argument("--rounds", type=int, default=3, help="alternations of --measure")
    parser.add_argument("--line", type=float, default=Machine.line_us, help="microseconds of a cache line from core to core")
    parser.add_argument("--memory", type=float, default=Machine.memory_gb_s, help="GB/s of memory, all cores together")
    parser.add_argument("--steps", type=int, default=0, help="also show the N steps that lose most at 16 threads")
    parser.add_argument("--plot", help="SVG file")
    args = parser.parse_args()
    args.records.mkdir(parents=True, exist_ok=True)
    machine = Machine(line_us=args.line, memory_gb_s=args.memory)
    all_records = {label(m): read_records(args.build, args.records, m, args.runs) for m in args.models}
    print_counts(all_records)
    if args.measure:
        print_check(args, all_records, this_machine(kept(args.records / "pool.json", [f"{args.build}/tests/record_tasks", "--pool", "2"])))
    curves = print_speedups(all_records, machine)
    print_causes(all_records, machine, 16)
    if args.steps:
        print_steps(all_records, machine, 16, args.steps)
    if args.plot:
        plot(curves, args.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
