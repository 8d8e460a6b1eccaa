#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times dqrun against other engines on single operators and on models, alternating in one run.

    compare.py DQRUN [--peers NAME,…] [--before DQRUN] [--threads N] [--only TEXT] [--isa LEVEL] [--as LEVEL] [--rounds N]
               [--seconds S] [--timeout S] [--load] [--error] [--busy N] [--history] [--plot FILE.svg] [MODEL:INPUTS.npz | FOLDER]…

Without models, the operators of cases.py. FOLDER holds models as tests/models/make_models.py makes them, which run on the
first input. A ratio is the peer's time by dqrun's, of the smallest medians of all rounds: above 1, dqrun is faster. Peers are
ort (ONNX Runtime in its default mode), ort-exact (its products of uint8 and int8 do not saturate), openvino (told to compute in
float32), openvino-float (also told not to round activations of weight-only products) and openvino-default (its own choice of precision). Each
measurement is a process of its own: where a peer refuses a model, crashes or hangs, its cell says so. --error adds each engine's error: the SQNR in dB of its outputs (accuracy.py).
--before adds another build of dqrun as a peer: ratios below 1 say what became slower. --load times making a session and its first run
instead. --busy lets N processes compute beside all of them, as on a machine that others use, too. --as lets all of them see a
processor of a lower level (as_level.py; needs a C compiler, and objdump where cpuid cannot fault). --history adds the ratios to
history.tsv and the errors to accuracy.tsv beside this file, --plot draws the ratios. Nodes of accuracy_level 4 round to 8 bits, as
they do in ONNX Runtime. Needs the Python packages numpy, onnx, and those of the peers."""

import argparse
import contextlib
import datetime
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

import accuracy
import as_level
import peers
import processors
from cases import CASES
from plot import draw


BEFORE = "before"  # the peer that is another build of dqrun
# Operators whose 8-bit products saturate in ONNX Runtime on processors without dot-product instructions.
SATURATING = {"ConvInteger", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "MatMulInteger", "MatMulIntegerToFloat", "QAttention", "QGemm",
              "QLinearConv", "QLinearMatMul"}


def reference_is_exact(model, cpuinfo=processors.CPUINFO):
    """Whether the reference computes this model without saturating 8-bit products on this processor."""
    if processors.has_dot_products(cpuinfo):
        return True
    return not SATURATING.intersection(node.op_type for node in onnx.load(model, load_external_data=False).graph.node)


def save_case(case, folder):
    """A model of one node whose operands with values are initializers, and a file with its inputs."""
    domain, op, attributes, operands, result = case
    inputs = {f"x{i}": array for i, (array, constant) in enumerate(operands) if array is not None and not constant}
    constants = [numpy_helper.from_array(array, f"x{i}") for i, (array, constant) in enumerate(operands)
                 if array is not None and constant]
    names = [f"x{i}" if array is not None else "" for i, (array, _) in enumerate(operands)]
    outputs = [f"y{i}" for i in range(len(result))]
    node = helper.make_node(op, names, outputs, domain=domain, **attributes)
    graph = helper.make_graph(
        [node], "case",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()],
        [helper.make_tensor_value_info(o, t, None) for o, t in zip(outputs, result)], constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), folder / "case.onnx")
    np.savez(folder / "case.npz", **inputs)
    return folder / "case.onnx", folder / "case.npz"


def run_dqrun(program, words, options):
    arguments = ["--threads", str(options.threads), "--honor-accuracy-level", *(["--isa", options.isa] if options.isa else [])]
    done = subprocess.run([program, *map(str, words), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"exit code {done.returncode}")
    return done.stdout


def time_dqrun(program, model, inputs, options):
    length = ["--runs", 1, "--warmup", 0] if options.load else ["--seconds", options.seconds]
    got = json.loads(run_dqrun(program, ["bench", model, inputs, "--json", *length], options))
    return got["isa"], got["load_ms"] + got["first_run_ms"] if options.load else got["median_ms"]


def time_peer(peer, model, inputs, options):
    if peer == BEFORE:
        return time_dqrun(options.before, model, inputs, options)[1]
    return peers.measure(peer, model, inputs, options)


def errors(model, inputs, lost, options):
    """The SQNR of dqrun and of each peer that runs the model, in dB, by name; empty where the reference would be wrong."""
    if not reference_is_exact(model):
        return {}
    with tempfile.TemporaryDirectory(prefix="dqrun-bench-") as folder:
        file = Path(folder) / "outputs.npz"
        try:
            reference = peers.outputs(peers.REFERENCE, model, inputs, file, options)
        except peers.NoResult:
            return {}
        run_dqrun(options.dqrun, ["run", model, inputs, "-o", file], options)
        got = {"dqrun": peers.load_outputs(file)}
        for peer in options.peers:
            if peer != BEFORE and peer not in lost:
                with contextlib.suppress(peers.NoResult):
                    got[peer] = peers.outputs(peer, model, inputs, file, options)
    return {name: accuracy.sqnr(reference, outputs) for name, outputs in got.items()}


def title(peer):
    return peer if peer == BEFORE else peers.title(peer)


def first_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:90]


def compare(name, model, inputs, options):
    """The row of a case: its name, dqrun's level and milliseconds, those of the peers that run it, why others do not, and errors."""
    ours, theirs, lost = [], {peer: [] for peer in options.peers}, {}
    for _ in range(options.rounds):
        isa, milliseconds = time_dqrun(options.dqrun, model, inputs, options)
        ours.append(milliseconds)
        for peer in options.peers:
            if peer in lost:
                continue
            try:
                theirs[peer].append(time_peer(peer, model, inputs, options))
            except peers.NoResult as reason:
                lost[peer] = reason.args[0]
            except RuntimeError:  # of the other build of dqrun
                lost[peer] = "refused"
    return {"case": f"{name}, load" if options.load else name, "isa": isa, "ms": min(ours), "lost": lost,
            "peers": {p: min(times) for p, times in theirs.items() if p not in lost},
            "errors": errors(model, inputs, lost, options) if options.error else {}}


def decibels(row, name):
    value = row["errors"].get(name)
    return "" if value is None else "equal" if value == math.inf else "differs" if value == -math.inf else f"{value:.1f} dB"


def print_row(name, row, options):
    cells = [f"{name:50} {row['ms']:10.3f}"] + ([f"{decibels(row, 'dqrun'):>9}"] if options.error else [])
    for p in options.peers:
        cell = f"{row['peers'][p]:12.3f} {row['peers'][p] / row['ms']:6.2f}" if p in row["peers"] else f"{row['lost'][p]:>19}"
        cells.append(cell + (f" {decibels(row, p):>9}" if options.error else ""))
    print(*cells, flush=True)


def models_of(places):
    """Name, model and inputs of each place on the command line."""
    for place in places:
        if ":" in place:
            model, _, inputs = place.rpartition(":")
            yield Path(model).stem, model, inputs
        else:
            for model in sorted(Path(place).rglob("*.onnx")):
                yield f"{model.parent.name} {model.stem}", model, model.parent / "input_0.npz"


def work(options, folder):
    if options.models:
        yield from models_of(options.models)
        return
    for name, make in CASES.items():
        if options.only in name:
            yield (name, *save_case(make(), Path(folder)))


def is_as_accurate(row, peer):
    return peer in row["errors"] and accuracy.is_equal(row["errors"][peer], row["errors"]["dqrun"])


def means(rows, options, counts=lambda row, peer: True):
    """Geometric mean of the ratios to each peer, over the rows that it runs and that count."""
    result = {}
    for peer in options.peers:
        ratios = [r["peers"][peer] / r["ms"] for r in rows if peer in r["peers"] and counts(r, peer)]
        if ratios:
            result[peer] = statistics.geometric_mean(ratios)
    return result


def print_means(words, overall, options):
    cells = [f"{words:60}"] + ([f"{'':10}"] if options.error else [])
    cells += [(f"{overall[p]:19.2f}" if p in overall else f"{'':19}") + (f"{'':10}" if options.error else "") for p in options.peers]
    print(*cells)


def add_history(rows, machine, threads, titles):
    """The ratios of rows to history.tsv, and the errors to accuracy.tsv; titles are those of the peers by name."""
    today, folder = datetime.date.today().isoformat(), Path(__file__).parent
    with open(folder / "history.tsv", "a", encoding="utf-8") as f:
        for row in rows:
            for peer, ms in row["peers"].items():
                f.write(f"{today}\t{machine}\t{threads}\t{row['isa']}\t{titles[peer]}\t{row['case']}\t{ms / row['ms']:.2f}\n")
    with open(folder / "accuracy.tsv", "a", encoding="utf-8") as f:
        for row in rows:
            for engine, value in row["errors"].items():
                f.write(f"{today}\t{machine}\t{row['isa']}\t{titles.get(engine, engine)}\t{row['case']}\t{value:.1f}\n")


@contextlib.contextmanager
def busy_beside(count):
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()


def main():
    p = argparse.ArgumentParser(description="Time dqrun against other engines, alternating in one run.")
    p.add_argument("dqrun")
    p.add_argument("models", nargs="*", metavar="MODEL:INPUTS|FOLDER")
    p.add_argument("--peers", default="ort", type=lambda text: [p for p in text.split(",") if p],
                   help=", ".join(peers.PEERS))
    p.add_argument("--before", metavar="DQRUN", help="another build of dqrun, as one more peer")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=0.3)
    p.add_argument("--only", default="", help="cases whose names contain this")
    p.add_argument("--isa")
    p.add_argument("--as", dest="level", choices=as_level.LEVELS, help="hide from all engines what the processor has above a level")
    p.add_argument("--timeout", type=float, default=300, help="seconds after which a measurement of a peer is given up")
    p.add_argument("--load", action="store_true", help="time making a session and its first run")
    p.add_argument("--error", action="store_true", help="add the SQNR of each engine's outputs")
    p.add_argument("--busy", type=int, default=0, metavar="N", help="processes that compute beside")
    p.add_argument("--history", action="store_true")
    p.add_argument("--plot", type=Path)
    options = p.parse_intermixed_args()
    unknown = set(options.peers) - set(peers.PEERS)
    if unknown:
        p.error(f"no peer is called {', '.join(sorted(unknown))}; there are {', '.join(peers.PEERS)}")
    if options.history and (options.busy or options.load or options.before):
        p.error("the history is of runs on a machine of their own beside other engines: without --busy, --load and --before")
    if options.before:
        options.peers.append(BEFORE)
    if options.level and as_level.LEVEL not in os.environ:
        return as_level.run(options.level, sorted({peers.PEERS[p][0] for p in options.peers if p != BEFORE}))
    options.isa = options.isa or options.level
    rows, failed = [], 0
    heading = f"{processors.processor()}, {options.threads} thread{'s' * (options.threads > 1)}"
    heading += f", {options.busy} other busy process{'es' * (options.busy > 1)}" if options.busy else ""
    print(f"{heading}: milliseconds, and each peer's by dqrun's" + (", and errors" if options.error else ""))
    room = " " * 10 if options.error else ""
    print(f"{'':50} {'dqrun':>10}{room}", *(f"{title(p):>19}{room}" for p in options.peers))
    with tempfile.TemporaryDirectory(prefix="dqrun-bench-") as folder, busy_beside(options.busy):
        for name, model, inputs in work(options, folder):
            try:
                rows.append(compare(name, model, inputs, options))
                print_row(name, rows[-1], options)
            except RuntimeError as error:  # a case that dqrun refuses is reported, the others still run
                failed += 1
                print(f"{name:50} {first_line(error)}", flush=True)
    print_means("geometric mean", means(rows, options), options)
    if options.error:
        print_means("geometric mean at equal accuracy", means(rows, options, is_as_accurate), options)
    if options.history:
        add_history(rows, processors.processor(), options.threads, {p: title(p) for p in options.peers})
    if options.plot:
        options.plot.write_text(draw(rows, {p: title(p) for p in options.peers}, heading), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
