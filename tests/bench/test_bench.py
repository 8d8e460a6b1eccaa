#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the scripts of bench/ that need no clock: errors, peers that crash or hang, rows of the history, tables of a made
history. Engines are fakes. The last line is `N passed, N failed, N skipped`."""

import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import onnx
from onnx import helper

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
import as_level  # noqa: E402  pylint: disable=wrong-import-position
import accuracy  # noqa: E402  pylint: disable=wrong-import-position
import compare  # noqa: E402  pylint: disable=wrong-import-position
import decoder_models  # noqa: E402  pylint: disable=wrong-import-position
import peers  # noqa: E402  pylint: disable=wrong-import-position
import processors  # noqa: E402  pylint: disable=wrong-import-position

# A dqrun that takes 2 ms, refuses models with "odd" in their name and gives [1, 2, 3].
DQRUN = """#!{python}
import sys
import numpy as np
if "odd" in sys.argv[2]:
    sys.exit("cannot run it")
if sys.argv[1] == "run":
    np.savez(sys.argv[sys.argv.index("-o") + 1], y=np.float32([1, 2, 3]))
print('{{"isa": "avx2", "load_ms": 1, "first_run_ms": 1, "median_ms": 2.0}}')
"""
# An ONNX Runtime whose exact mode hangs in a run, and whose other sessions give [1, 2, 3.3].
ONNXRUNTIME = """
import time, types
import numpy as np
class SessionOptions:
    hangs = False
    def add_session_config_entry(self, key, value):
        SessionOptions.hangs |= key == "session.x64quantprecision" and not getattr(self, "graph_optimization_level", None)
class GraphOptimizationLevel: ORT_DISABLE_ALL = 1
class Binding:
    def bind_cpu_input(self, name, array): assert array.shape == (3,)
    def bind_output(self, name): pass
    def copy_outputs_to_cpu(self): return [np.float32([1, 2, 3] if REFERENCE else [1, 2, 3.3])]
class InferenceSession:
    def __init__(self, model, options, providers):
        global REFERENCE
        REFERENCE = hasattr(options, "graph_optimization_level")
        self.hangs = SessionOptions.hangs and not REFERENCE
    def get_inputs(self): return [types.SimpleNamespace(name="x")]
    def get_outputs(self): return [types.SimpleNamespace(name="y")]
    def io_binding(self): return Binding()
    def run_with_iobinding(self, binding): time.sleep(60 if self.hangs else 0.001)
"""
OPENVINO = """
import os
class Core:
    def compile_model(self, model, device, options):
        if "INFERENCE_PRECISION_HINT" in options: os.abort()
        raise RuntimeError("no such operator")
"""

HISTORY = "date\tprocessor\tthreads\tisa\tpeer\tcase\tratio\n"
ACCURACY = "date\tprocessor\tisa\tengine\tcase\tsqnr_db\n"
ZEN = "AMD EPYC (Zen 5)"


def near(got, expected):
    return got == expected or abs(got - expected) < 1e-3


def reason(code, timeout=30):
    try:
        return peers.run_process([sys.executable, "-c", code], timeout).strip()
    except peers.NoResult as error:
        return error.args[0]


def write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def save_node(op, path):
    onnx.save(helper.make_model(helper.make_graph([helper.make_node(op, ["x"], ["y"])], "node", [], [])), path)


def copy_of_bench(folder):
    """The scripts with a history of their own."""
    shutil.copytree(BENCH, folder / "bench", ignore=shutil.ignore_patterns("__pycache__"))
    write(folder / "bench" / "history.tsv", HISTORY)
    write(folder / "bench" / "accuracy.tsv", ACCURACY)
    return folder / "bench"


# ---- The tests: each gives what is wrong, or None -------------------------------------------------------------------


def of_errors():
    one = np.ones(100, np.float32)
    for got, expected in ((one, math.inf), (one * 1.1, 20), (np.append(one[1:], 1.5), 26.0206), (one[1:], -math.inf), (one * np.nan, -math.inf)):
        if not near(accuracy.of_output(one, got), expected):
            return f"{accuracy.of_output(one, got)}, expected {expected}"
    hole = np.append(one, [np.nan, np.inf])
    if accuracy.of_output(hole, hole) != math.inf or accuracy.of_output(hole, -hole) != -math.inf:
        return "values that are not finite"
    if not near(accuracy.sqnr([one, one], [one * 1.1, one * 1.01]), 20) or accuracy.sqnr([one], []) != -math.inf:
        return "the smallest of several outputs"
    return None


def of_equal_accuracy():
    table = ((30, 30, True), (27, 30, True), (26.9, 30, False), (85, 140, True), (77, math.inf, True), (76, math.inf, False), (-math.inf, 10, False))
    return next((f"{row}" for row in table if accuracy.is_equal(*row[:2]) != row[2]), None)


def of_processes():
    table = (("print(3)", "3"), ("raise ValueError", "refused"), ("import os; os.abort()", "crashed"))
    wrong = next((f"{code}: {reason(code)}" for code, expected in table if reason(code) != expected), None)
    return wrong or (None if reason("import time; time.sleep(60)", 0.5) == "timed out" else "a process that hangs")


XEON = "cpu family\t: 6\nmodel name\t: Intel(R) Xeon(R) Processor\nflags\t: "


def of_processors():
    with tempfile.TemporaryDirectory() as folder:
        info = Path(folder, "cpuinfo")
        for text, level, expected in (("cpu family\t: 26\nmodel name\t: AMD EPYC\nflags\t: sse avx512f\n", None, ZEN),
                                      ("cpu family\t: 26\nmodel name\t: AMD EPYC\nflags\t: avx512f\n\ncpu family\t: 25\n", "avxvnni",
                                       ZEN + " as AVX-VNNI"),
                                      ("cpu family\t: 25\nmodel name\t: AMD EPYC\nflags\t: avx2\n", None, "AMD EPYC (Zen 3)"),
                                      ("cpu family\t: 25\nmodel name\t: AMD EPYC\nflags\t: avx512f\n", None, "AMD EPYC (Zen 4)"),
                                      (XEON + "avx512f avx512_fp16 amx_tile\n", None, "Intel(R) Xeon(R) Processor"),
                                      (XEON + "avx512f avx512_fp16\n", None, "Intel(R) Xeon(R) Processor without AMX"),
                                      (XEON + "avx512f avx512_fp16\n", "avx2", "Intel(R) Xeon(R) Processor as AVX2"),
                                      (XEON + "avx512f avx512_vnni\n", None, "Intel(R) Xeon(R) Processor"),
                                      ("cpu family\t: 26\nmodel name\t: AMD EPYC 9575F\n", None, "AMD EPYC 9575F"),
                                      ("nothing\n", None, "unknown")):
            info.write_text(text)
            if processors.processor(level, info) != expected:
                return processors.processor(level, info)
    return None


def of_references():
    """Without dot-product instructions the reference is wrong where a node multiplies 8-bit integers, and right elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        info, model = Path(folder, "cpuinfo"), Path(folder, "case.onnx")
        for op, flags, expected in (("QLinearConv", "avx2", False), ("QLinearConv", "avx2 avx512_vnni", True), ("MatMulInteger", "avx2 avx_vnni", True),
                                    ("Conv", "avx2", True), ("QLinearConv", "", True)):
            info.write_text(f"flags\t: {flags}\n")
            save_node(op, model)
            if compare.reference_is_exact(model, info) != expected:
                return f"{op} with {flags}"
    return None


def of_environments():
    """Under --as the reference sees the processor as it is; what the caller has set stays."""
    table = (({"PYTHONPATH": "b", "LD_PRELOAD": "c"}, {"PYTHONPATH": "b", "LD_PRELOAD": "c"}),
             ({"DQRUN_BENCH_AS": "avx2", "LD_PRELOAD": "m", "PYTHONPATH": "b"}, {"PYTHONPATH": "b"}),
             ({"DQRUN_BENCH_AS": "avx2", "DQRUN_BENCH_AS_COPIES": "1", "LD_PRELOAD": "m", "PYTHONPATH": f"a{os.pathsep}b"}, {"PYTHONPATH": "b"}))
    for environment, expected in table:
        with mock.patch.dict(os.environ, environment, clear=True):
            if as_level.real_environment() != expected:
                return f"{as_level.real_environment()}"
    return None


def of_peers_that_fail():
    """A table in which one peer runs, one hangs, one crashes and one refuses; the run goes on to the next model and keeps the rows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench, dqrun = copy_of_bench(folder), write(folder / "dqrun", DQRUN.format(python=sys.executable), 0o755)
        for package, code in (("onnxruntime", ONNXRUNTIME), ("openvino", OPENVINO)):
            write(folder / "fakes" / package / "__init__.py", code)
            write(folder / "fakes" / f"{package}-1.2.dist-info" / "METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
        np.savez(folder / "x.npz", x=np.float32([1, 2, 3]))
        for model in ("first", "odd", "second"):
            save_node("Relu", folder / f"{model}.onnx")
        done = subprocess.run(
            [sys.executable, bench / "compare.py", dqrun, "--peers", "ort,ort-exact,openvino,openvino-default", "--rounds", "2", "--seconds", "0",
             "--timeout", "5", "--error", "--history", *(f"{model}.onnx:{folder / 'x.npz'}" for model in ("first", "odd", "second"))],
            capture_output=True, text=True, check=False, cwd=folder, env={**os.environ, "PYTHONPATH": str(folder / "fakes")})
        lines = {line.split()[0]: line for line in done.stdout.splitlines()[2:]}
        for model in ("first", "second"):
            cells = lines.get(model, "").split()
            if cells[1:3] != ["2.000", "equal"] or cells[5:7] != ["21.9", "dB"] or " ".join(cells[7:]) != "timed out crashed refused":
                return done.stdout + done.stderr
        if "cannot run it" not in lines.get("odd", "") or done.returncode != 1:
            return f"exit code {done.returncode}: {done.stdout}"
        kept = [line.split("\t")[3:6] for line in (bench / "history.tsv").read_text().splitlines()[1:]]
        errors = [line.split("\t")[2:] for line in (bench / "accuracy.tsv").read_text().splitlines()[1:]]
        if kept != [["avx2", "ONNX Runtime 1.2", "first"], ["avx2", "ONNX Runtime 1.2", "second"]]:
            return f"{kept}"
        expected = [["avx2", engine, model, db] for model in ("first", "second") for engine, db in (("dqrun", "inf"), ("ONNX Runtime 1.2", "21.9"))]
        return None if errors == expected else f"{errors}"


def table(page, name):
    """The rows of a part of the page, as lists of cells."""
    lines = page.split(f"<!-- {name}: ")[1].split("<!-- end")[0].splitlines()
    return [[c.strip() for c in line.strip("|").split("|")] for line in lines if line.startswith("|")][2:]


def of_tables():
    """Goals, cases behind, and equal accuracy from a made history; the newest row counts, and --check sees a change."""
    xeon, ort, vino, own = "Intel(R) Xeon(R) Processor", "ONNX Runtime 1.32.0", "OpenVINO 2026.4.1", "OpenVINO default 2026.4.1"
    rows = [(ZEN, ort, "Add 1", 0.5), (ZEN, ort, "Add 1", 4), (ZEN, ort, "Add 2", 0.9), (ZEN, vino, "minilm float", 2),
            (ZEN, own, "minilm float", 0.5), (ZEN, vino, "minilm int4", 3), (ZEN, own, "minilm int4", 1.6), (xeon, ort, "Add 2", 1.5),
            (ZEN, "llama.cpp of llama-cpp-python-0.3.36", "decoder a token after 0", 3),
            (ZEN, "llama.cpp float32 cache of llama-cpp-python-0.3.36", "decoder a token after 0", 4)]
    decibels = [("dqrun", "minilm float", 130), (vino, "minilm float", 120), (own, "minilm float", 45),
                ("dqrun", "minilm int4", 40), (vino, "minilm int4", 41), (own, "minilm int4", 38)]
    with tempfile.TemporaryDirectory() as name:
        bench = copy_of_bench(Path(name))
        write(bench / "history.tsv", HISTORY + "".join(f"2026-11-28\t{m}\t1\tx\t{p}\t{case}\t{r}\n" for m, p, case, r in rows))
        write(bench / "accuracy.tsv", ACCURACY + "".join(f"2026-11-28\t{ZEN}\tx\t{e}\t{case}\t{db}\n" for e, case, db in decibels))
        report = [sys.executable, bench / "report.py"]
        before = subprocess.run([*report, "--check"], capture_output=True, text=True, check=False)
        subprocess.run(report, check=True)
        after = subprocess.run([*report, "--check"], capture_output=True, text=True, check=False)
        page = (bench / "results.md").read_text()
        if (before.returncode, after.returncode) != (1, 0):
            return f"--check: {before.stdout}{after.stdout}"
    goals = [row[:1] + row[2:3] + row[4:5] + row[6:] for row in table(page, "goals")]
    if goals != [["ONNX Runtime", "AVX-512 VBMI", "**1.90**", "**0.90**", "Add 2"], ["ONNX Runtime", "AMX", "**1.50**", "1.50", "Add 2"],
                 ["OpenVINO at equal accuracy", "AVX-512 VBMI", "1.79", "1.60", "minilm int4"],
                 ["llama.cpp", "AVX-512 VBMI", "3.00", "3.00", "decoder a token after 0"]]:
        return f"{goals}"
    low = [row[:3] + [c for c in row[3:] if c] for row in table(page, "behind")]
    if low != [["Add 2", "1", "ONNX Runtime", "**0.90**", "1.50"], ["minilm float", "1", "its own precision", "**0.50** *"]]:
        return f"{low}"
    if table(page, "decoders") != [["decoder a token after 0", "3.00", "4.00"]]:
        return f"{table(page, 'decoders')}"
    counts = [[c for c in row if c] for row in table(page, "behind_by_machine")]
    if counts[0][:4] != ["AVX-512 VBMI", "1", "1 of 2: 0.90 Add 2", "0 of 2"]:
        return f"{counts}"
    return None


def of_decoder_weights():
    """Both formats hold the same numbers, and rows of queries move as rotation wants it."""
    values, scales = decoder_models.matrix(np.random.default_rng(1), 8, 64)
    blocks = decoder_models.q4_0((values, scales)).reshape(8, 2, 18)
    got = np.concatenate([blocks[..., 2:] & 15, blocks[..., 2:] >> 4], axis=-1)
    if not np.array_equal(got, values) or not np.array_equal(blocks[..., :2].copy().view(np.float16)[..., 0], scales):
        return "Q4_0"
    order = decoder_models.interleave((np.arange(8), np.arange(8)), 4)[0].tolist()
    return None if order == [0, 2, 1, 3, 4, 6, 5, 7] else f"{order}"


def of_products():
    """A product that the grid does not have is refused before anything is measured."""
    done = subprocess.run([sys.executable, BENCH / "gemm_grid.py", "lib", "limits", "--only", "s8,u16"], capture_output=True, text=True, check=False)
    return None if done.returncode == 2 and "no product u16, expected s8, " in done.stderr else f"exit code {done.returncode}: {done.stderr}"


TESTS = (of_errors, of_equal_accuracy, of_processes, of_processors, of_references, of_environments, of_peers_that_fail, of_tables, of_decoder_weights,
         of_products)


def main():
    failed = 0
    for test in TESTS:
        what = test()
        if what:
            failed += 1
            print(f"FAILED {test.__name__}: {what}")
    print(f"{len(TESTS) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
