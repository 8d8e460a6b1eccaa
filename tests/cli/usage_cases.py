# SPDX-License-Identifier: Apache-2.0
"""The command line itself: what it accepts, what it says of mistakes, and where the words go."""

import json
import re
import subprocess
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

from harness import save_model, save_quantize

SEE = "; see dqrun --help"


def version(h):
    for option in "--version", "-V":
        h.check(option, [option], out=re.compile(r"dqrun \d+\.\d+\.\d+\n"))
    h.check("--version of a command", ["bench", "--version"], out=re.compile(r"dqrun \d+\.\d+\.\d+\n"))


def mistakes(h):
    def bad(name, args, sentence):
        h.check(name, args, code=2, err=sentence)

    bad("nothing", [], f"nothing to do: expected dqrun MODEL [INPUTS…] or dqrun COMMAND{SEE}")
    bad("unknown option", ["m", "--nonsense"], f"unknown option '--nonsense'{SEE}")
    bad("abbreviated option", ["m", "--thread", "2"], "unknown option '--thread'; did you mean '--threads'?")
    bad("unknown letter", ["m", "-qz"], f"unknown option '-qz'{SEE}")
    bad("value missing", ["m", "--expect"], "--expect needs a value: --expect REF")
    bad("value too many", ["m", "--no-fuse=yes"], "--no-fuse takes no value, got 'yes'")
    bad("empty value", ["m", "-o", ""], "--output is '', expected one that is not empty")
    bad("twice", ["m", "-o", "a.npz", "--output=b.npz"], "--output is given twice: 'a.npz' and 'b.npz'")
    bad("twice, the old way", ["m", "-o", "a.npz", "--out=b.npz"], "--output is given twice: 'a.npz' and 'b.npz'")
    bad("any other option twice", ["m", "--isa", "c", "--isa=c"], "--isa is given twice")
    for text in "0", "-1", "+1", " 1", "1x", "0x10", "1025", "99999999999999999999", "":
        why = "one that is not empty" if not text else "a whole number from 1 to 1024"
        bad(f"--threads '{text}'", ["m", f"--threads={text}"], f"--threads is '{text}', expected {why}")
    for text in "-1", "1.5", "seven", "18446744073709551616":
        bad(f"--random {text}", ["m", "--random", text],
            f"--random is '{text}', expected a whole number from 0 to 2^64-1")
    for text in "-1", "nan", "inf", "0x1p3", "1e", "1e999", "1,5":
        bad(f"--rtol {text}", ["m", "--expect", "e", "--rtol", text],
            f"--rtol is '{text}', expected a number of 0 or more")
    for text in "N", "=3", "N=", "N=-1", "N=x", "N=9223372036854775808":
        bad(f"--dim {text}", ["m", "--random", "1", "--dim", text],
            f"--dim is '{text}', expected NAME=SIZE with a size of 0 or more")
    for text in "session", "=1", "x=3":
        bad(f"--limit {text}", ["m", "--limit", text],
            f"--limit is '{text}', expected NAME=SIZE with file, tensor, session, nodes, nesting or work")
    for text in "file=", "tensor=0", "session=5Q", "session=-1M", "file=1.5G", "tensor=99999999999999T":
        bad(f"--limit {text}", ["m", "--limit", text], f"--limit is '{text}', expected bytes from 1 up, such as 512M")
    for text in "nodes=1K", "nesting=4294967296":
        bad(f"--limit {text}", ["m", "--limit", text], f"--limit is '{text}', expected a number from 1 up")
    bad("--limit of ops", ["ops", "--limit", "file=1"], "'ops' has no option --limit; see dqrun ops --help")
    bad("--dim alone", ["m", "--dim", "N=1"], "--dim needs --random, whose inputs it sizes")
    bad("--rtol alone", ["m", "--rtol", "1"], "--rtol and --atol need --expect")
    bad("quiet and verbose", ["m", "-qv"], "--quiet and --verbose contradict each other")
    bad("an output twice", ["m", "--value", "y", "--value", "y"], "--value is 'y', expected each name once")
    bad("check without a model", ["check"], "'check' needs a model: usage is dqrun check MODEL")
    bad("check with inputs", ["check", "m", "i.npz"], "unexpected argument 'i.npz': usage is dqrun check MODEL")
    bad("check with -o", ["check", "m", "-o", "x.npz"], "'check' has no option --output; see dqrun check --help")
    bad("ops with two filters", ["ops", "m", "n"], "unexpected argument 'n': usage is dqrun ops [FILTER]")
    bad("isa with an argument", ["isa", "c"], "unexpected argument 'c': usage is dqrun isa")
    bad("bench without a model", ["bench"], "'bench' needs a model: usage is dqrun bench MODEL [INPUTS…]")
    bad("bench with -o", ["bench", "m", "-o", "x.npz"], "'bench' has no option --output; see dqrun bench --help")
    bad("--runs of a run", ["m", "--runs", "3"], "'run' has no option --runs; see dqrun run --help")
    bad("--runs and --seconds", ["bench", "m", "--runs", "3", "--seconds", "1"],
        "--runs and --seconds contradict each other")
    for text in "0", "-1", "1.5", "1000000001":
        bad(f"--runs {text}", ["bench", "m", "--runs", text],
            f"--runs is '{text}', expected a whole number from 1 to 1000000000")
    bad("--warmup", ["bench", "m", "--warmup", "x"], "--warmup is 'x', expected a whole number up to 1000000000")
    bad("--seconds", ["bench", "m", "--seconds", "-1"], "--seconds is '-1', expected a number of 0 or more")
    h.check("after -- nothing is an option", ["--", "--help"], code=3,
            err="--help: cannot be opened: No such file or directory")
    bad("no input", ["q.onnx", "picture.png"], "'picture.png' is not an input, expected FILE.npz, NAME=FILE.npy, "
        "NAME=FILE.pb, '-' or a folder with input_0.pb…")
    bad("an .npz for one input", ["q.onnx", "image=picture.npz"], "'image=picture.npz' is not an input, expected FILE.npz, "
        "NAME=FILE.npy, NAME=FILE.pb, '-' or a folder with input_0.pb…")
    np.save(h.path("bare.npy"), np.zeros((1, 4), "f4"))
    bad("an array without a name", ["q.onnx", "bare.npy"], "'bare.npy' needs its input's name in front of it, "
        "NAME=bare.npy; the model expects image: float[N,4]")
    bad("unknown --value", ["q.onnx", "q.npz", "--value", "logits"], "--value is 'logits', and q.onnx has no value of that name")
    save_model(h.path("inside.onnx"), [helper.make_node("Neg", ["x"], ["hidden_state"]), helper.make_node("Neg", ["hidden_state"], ["y"])],
               [("x", TensorProto.FLOAT, [1])], [("y", TensorProto.FLOAT, [1])])
    bad("a value inside the graph, mistyped", ["inside.onnx", "--random", "1", "--value", "hiden_state"],
        "--value is 'hiden_state', and inside.onnx has no value of that name; did you mean 'hidden_state'?")
    h.check("unknown --isa", ["q.onnx", "q.npz", "--isa", "quantum"], code=2,
            err=re.compile(r"dqrun: --isa is 'quantum', expected one of c(, \w+)*\n"))
    h.check("unknown DQRUN_ISA", ["q.onnx", "q.npz"], code=2, environment={"DQRUN_ISA": "quantum"}, err=re.compile(
        r"dqrun: environment variable DQRUN_ISA is 'quantum', expected one of c(, \w+)*\n"))
    bad("--dim of no input", ["q.onnx", "--random", "1", "--dim", "M=2"],
        "--dim names 'M', which no input has; the model expects image: float[N,4]")


def spellings(h):
    table = h.run(["q.onnx", "q.npz"]).stdout.decode()
    h.check("options first", ["--threads", "1", "--isa=c", "q.onnx", "q.npz"], out=table)
    h.check("quiet", ["q.onnx", "q.npz", "-q"])
    h.check("limits that hold", ["q.onnx", "q.npz", "--limit", "file=1M", "--limit", "session=1G", "--limit=nodes=10"], out=table)
    h.check("a file over its limit", ["q.onnx", "q.npz", "--limit", "file=10"], code=6,
            err=re.compile(r"dqrun: q.onnx: has \d+ bytes, over the limit of 10\n"))
    for args in ["-o", "out.npz"], ["-oout.npz"], ["--output=out.npz"], ["--output", "out.npz"]:
        def written(args=args):
            h.path("out.npz").unlink(missing_ok=True)
            h.expect(["q.onnx", "q.npz", *args])
            with np.load(h.path("out.npz")) as outputs:
                assert outputs.files == ["codes"], outputs.files
        h.case(f"output file as {args}", written)
    h.check("--verbose", ["q.onnx", "q.npz", "-v", "--threads", "1", "--isa", "c"], out=table, err=re.compile(
        r"dqrun \d+\.\d+\.\d+: ISA c, 1 thread\n +\d+\.\d{3} ms  QuantizeLinear-25 +quantize\n +\d+\.\d{3} ms  all steps\n"))
    h.check("--why", ["q.onnx", "q.npz", "--why"], out=table, err=re.compile(r"(why: .+\n)*"))


def lists(h):
    h.check("check of a good model", ["check", "q.onnx"], out="q.onnx: every node can run\n")
    nodes = [helper.make_node("Identity", ["x"], ["a"], name="fine"),
             helper.make_node("Frobnicate", ["a"], ["b"], name="first"),
             helper.make_node("Defrobnicate", ["b"], ["y"], name="second")]
    float_n = TensorProto.FLOAT, ["N"]
    save_model(h.path("cannot.onnx"), nodes, [("x", *float_n)], [("y", *float_n)])

    def names_each():
        done = h.run(["check", "cannot.onnx"])
        lines = done.stdout.decode().splitlines()
        assert done.returncode == 5 and not done.stderr, done
        assert len(lines) == 3 and "node 'first' (Frobnicate-" in lines[0], lines
        assert "node 'second' (Defrobnicate-" in lines[1], lines
        assert lines[2] == "cannot.onnx: 2 nodes cannot run", lines
        assert h.run(["check", "cannot.onnx", "-q"]).stdout == b""
        assert h.run(["check", "-q", "cannot.onnx"]).returncode == 5
    h.case("check names each node that cannot run", names_each)

    def ops_json():
        rows = json.loads(h.run(["ops", "--json"]).stdout)
        found = [r for r in rows if (r["name"], r["since_version"]) == ("DynamicQuantizeLinear", 11)]
        assert found == [{"domain": "ai.onnx", "name": "DynamicQuantizeLinear", "since_version": 11,
                          "deprecated": False, "implemented": True,
                          "types": {"T1": ["tensor(float)"], "T2": ["tensor(uint8)"]}}], found
        assert rows == sorted(rows, key=lambda r: (r["domain"] != "ai.onnx", r["domain"], r["name"],
                                                   r["since_version"])), "not sorted"
        return rows
    h.case("ops --json", ops_json)

    def ops_table():
        text = h.run(["ops"]).stdout.decode()
        assert text.startswith("ai.onnx\n"), text[:80]
        assert "\n  DynamicQuantizeLinear             11  T1: float; T2: uint8\n" in text
        operators = [line for line in text.splitlines() if line.startswith("  ")]
        assert len(operators) == len(ops_json()), "the table and --json differ"
    h.case("ops", ops_table)


def benches(h):
    scale = helper.make_tensor("scale", TensorProto.FLOAT, [], [0.5])
    save_model(h.path("qq.onnx"), [helper.make_node("QuantizeLinear", ["image", "scale"], ["codes"], name="there"),
                                   helper.make_node("DequantizeLinear", ["codes", "scale"], ["y"], name="\\back\n")],
               [("image", TensorProto.FLOAT, ["N", 4])], [("y", TensorProto.FLOAT, ["N", 4])], [scale])
    h.path("bytes.onnx").write_bytes(h.path("qq.onnx").read_bytes().replace(b"there", b"ther\xff"))
    h.check("bench", ["bench", "q.onnx", "q.npz", "--runs", "3", "--threads", "1", "--isa", "c"], out=re.compile(
        "".join(rf"{name} +\d+\.\d{{3}} ms\n" for name in ("load", "first run", "min", "median", "mean", "p90", "p99")) +
        r"runs +3\npeak memory +\d+ KiB\nthreads +1\nISA +c\ninputs +given\n"))
    h.check("bench --profile", ["bench", "qq.onnx", "q.npz", "--runs", "3", "--profile", "--no-fuse"], out=re.compile(
        r"load .*\n\noperator +steps +least ms +share +algorithm\n(QuantizeLinear-25 +1 +\d+\.\d{3} +\d+\.\d %\n|DequantizeLinear-25 +1 .*\n)"
        r"{2}outside of steps +\d+\.\d{3} +\d+\.\d %\n"
        r"\nstep +least ms +share +GMAC/s +GB/s +node\n(QuantizeLinear-25 .* %  .*  there\n|DequantizeLinear-25 .* %  .*  \\back\?\n){2}"
        r"\nthis machine, measured: [\d.]+ GMAC/s on int8, [\d.]+ GMAC/s on float, memory [\d.]+ GB/s\n", re.DOTALL))
    save_model(h.path("twice.onnx"), [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Neg", ["y"], ["z"])],
               [("x", TensorProto.FLOAT, [1 << 16])], [("z", TensorProto.FLOAT, [1 << 16])])

    def sums():
        text = h.run(["bench", "twice.onnx", "--random", "1", "--runs", "3", "--profile", "--no-fuse"]).stdout.decode()
        (steps, both), = re.findall(r"^Neg-13 +(\d+) +([\d.]+) +[\d.]+ %$", text, re.MULTILINE)
        each = re.findall(r"^Neg-13 +([\d.]+) +[\d.]+ % +[\d.]* +[yz]$", text, re.MULTILINE)
        assert steps == "2" and len(each) == 2 and abs(float(both) - sum(map(float, each))) < 0.002, text
    h.case("bench --profile adds the steps of an operator up", sums)
    save_model(h.path("add.onnx"), [helper.make_node("Add", ["left", "right"], ["sum"])],
               [("left", TensorProto.FLOAT, ["N"]), ("right", TensorProto.FLOAT, ["N"])],
               [("sum", TensorProto.FLOAT, ["N"])])
    np.save(h.path("one.npy"), np.ones(2, "f4"))
    h.check("bench without inputs makes them up", ["bench", "q.onnx", "--runs", "1", "--dim", "N=3"],
            out=re.compile(r"load .*inputs +made up\n", re.DOTALL))
    h.check("bench of one input of two", ["bench", "add.onnx", "left=one.npy", "--runs", "1"], code=4,
            err="left=one.npy: no array for input 'right'; the model expects left: float[N], right: float[N]")

    def figures(args, least, most):
        done = h.run(["bench", "q.onnx", "q.npz", "--json", "--threads", "2", *args])
        assert done.returncode == 0 and not done.stderr, done
        got = json.loads(done.stdout)
        assert set(got) == {"median_ms", "min_ms", "mean_ms", "p90_ms", "p99_ms", "runs", "load_ms", "first_run_ms",
                            "peak_rss_kib", "threads", "isa", "model", "made_up_inputs"}, got
        assert least <= got["runs"] <= most and got["threads"] == 2, got
        assert 0 < got["min_ms"] <= got["median_ms"] <= got["p90_ms"] <= got["p99_ms"], got
        assert got["min_ms"] <= got["mean_ms"] and got["load_ms"] > 0 and got["first_run_ms"] > 0, got
        assert 500 < got["peak_rss_kib"] < 10 ** 6, got

    def profile():
        done = h.run(["bench", "bytes.onnx", "q.npz", "--json", "--runs", "3", "--profile", "--no-fuse"])
        got = json.loads(done.stdout)
        assert [(s["node"], s["op"]) for s in got["steps"]] == [
            ("ther\N{REPLACEMENT CHARACTER}", "QuantizeLinear-25"), ("\\back\n", "DequantizeLinear-25")], got
        assert 0 < sum(s["ms"] for s in got["steps"]) <= got["min_ms"], got
    h.case("bench --profile --json", profile)

    def trace():
        h.expect(["bench", "qq.onnx", "q.npz", "--runs", "3", "--no-fuse", "--trace", "trace.json"], out=None)
        events = json.loads(h.path("trace.json").read_text())["traceEvents"]
        runs, steps = ([e for e in events if e["ph"] == "X" and (e["cat"] == "run") == is_run] for is_run in (True, False))
        assert [e["name"] for e in runs] == ["run 0", "run 1", "run 2"] and len(steps) == 6, events
        for step in steps:
            assert any(r["ts"] <= step["ts"] and step["ts"] + step["dur"] <= r["ts"] + r["dur"] + 0.01 for r in runs), (step, runs)
    h.case("bench --trace", trace)
    h.check("bench --trace -", ["bench", "qq.onnx", "--trace", "-"], code=2, err="--trace is '-', expected a file")
    h.case("bench --runs", lambda: figures(["--runs", "5000"], 5000, 5000))
    h.case("bench --seconds 0 runs once", lambda: figures(["--seconds", "0", "--warmup", "0"], 1, 1))
    h.case("bench --seconds", lambda: figures(["--seconds", "0.1"], 2, 10 ** 6))


def schemas(h):
    """--schema-dir: a schema of the library's own text is taken as it is, and what an edited one says decides."""
    own = Path(__file__).parents[2] / "schemas/DynamicQuantizeLinear.yaml"
    text = own.read_text()
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "scale", "zero"], name="dynamic")
    save_model(h.path("dynamic.onnx"), [node], [("x", TensorProto.FLOAT, ["N"])],
               [("y", TensorProto.UINT8, ["N"]), ("scale", TensorProto.FLOAT, []), ("zero", TensorProto.UINT8, [])])

    def folder(name, yaml):
        h.path(name).mkdir()
        h.path(f"{name}/DynamicQuantizeLinear.yaml").write_text(yaml)
        return ["--schema-dir", name]

    run = ["dynamic.onnx", "--random", "5", "--dim", "N=6"]
    plain = h.run(run).stdout.decode()
    assert plain.startswith("output"), plain
    h.check("a schema of the same text", [*run, *folder("same", text)], out=plain)
    two = text.replace("min_input: 1", "min_input: 2").replace("max_input: 1", "max_input: 2")
    h.check("a schema of another arity", [*run, *folder("two", two)], code=3,
            err="dynamic.onnx: node 'dynamic' (DynamicQuantizeLinear-11): has 1 input, expected 2")
    h.check("the last of two folders decides", [*run, "--schema-dir", "two", "--schema-dir", "same"], out=plain)
    h.check("a schema that is no YAML", [*run, *folder("broken", text + "  - : [\n")], code=3,
            err=re.compile(r"dqrun: broken/DynamicQuantizeLinear\.yaml:\d+: not YAML: .+\n"))
    h.check("a folder that is not there", [*run, "--schema-dir", "nowhere"], code=2,
            err="schema folder 'nowhere': No such file or directory")
    new = folder("new", text.replace("DynamicQuantizeLinear", "Frobnicate"))
    h.check("an operator that only a schema knows", ["ops", *new], err="", out=re.compile(
        r".*\n  Frobnicate +11  not implemented; T1: float; T2: uint8\n.*", re.DOTALL))


def streams(h):
    def full():
        with open("/dev/full", "wb") as stdout:
            done = h.run(["q.onnx", "q.npz"], stdout=stdout)
        assert done.returncode == 74, done
        assert done.stderr == b"dqrun: standard output cannot be written: No space left on device\n", done.stderr
    h.case("standard output on a full disk", full)

    def closed():
        process = subprocess.run(f"'{h.program}' --help | head -c 1", shell=True, capture_output=True, check=False)
        assert process.stdout == b"u" and not process.stderr, process
    h.case("a reader that leaves early", closed)


def run(h):
    save_quantize(h.path("q.onnx"))
    np.savez(h.path("q.npz"), image=np.array([[0, 1, 2, 3], [-10, 0.25, 0.75, 200]], "f4"))
    for part in version, mistakes, spellings, lists, benches, schemas, streams:
        part(h)
