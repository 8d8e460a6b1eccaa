#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Transcripts: every command's help, a success, and its most likely mistakes, as a user would see them.

usage: transcript_cases.py DQRUN      writes the transcripts and the pages anew; lines that match stay as they are

A transcript (transcripts/*.txt) is lines of comment ("## …"), commands ("$ dqrun …"), and what each of them prints: standard
output, then standard error, then "[exit code N]" when that is not 0. A line that ends in " (re)" is a regular expression; "... (re)" stands for
any number of lines. Commands are run by bash in a folder with the files of make_files.

Pages (*.md) are transcripts, too: pages.py says how they are written. Pages in ELSEWHERE need more than dqrun and are run by other tests."""

import functools
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from harness import Harness, Skip, save_model, save_quantize
from pages import BLOCK, MATCHES, output_lines, page_steps, read, transcript_matches

sys.path.append(str(Path(__file__).parents[1] / "insight"))
import models  # noqa: E402  pylint: disable=wrong-import-position

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).parent / "transcripts"
ELSEWHERE = {"docs/batch.md": "tests/batch/test_docs.py",
             **dict.fromkeys(("docs/tutorials/embed.md", "docs/tutorials/decoder.md"), "tests/api/check_installed.py")}


def make_files(h):
    save_quantize(h.path("model.onnx"))
    image = np.array([[0, 1, 2, 3], [-10, 0.25, 0.75, 200]], "f4")
    codes = np.array([[10, 12, 14, 16], [0, 10, 12, 255]], "u1")
    np.savez(h.path("inputs.npz"), image=image)
    np.savez(h.path("good.npz"), codes=codes)
    np.savez(h.path("wrong.npz"), codes=codes + (codes == 14).astype("u1"))
    np.savez(h.path("mistyped.npz"), imag=image)
    np.savez(h.path("misshaped.npz"), image=image[:, :3])
    np.save(h.path("image.npy"), image)
    np.save(h.path("labels.npy"), np.array([3, 3]))
    h.path("text.onnx").write_text("no model\n")
    nodes = [helper.make_node("Frobnicate", ["x"], ["y"], name="first")]
    save_model(h.path("cannot.onnx"), nodes, [("x", TensorProto.FLOAT, ["N"])], [("y", TensorProto.FLOAT, ["N"])])
    for name, factor in (("a", 1), ("b", 2)):
        h.path("batch").mkdir(exist_ok=True)
        np.savez(h.path(f"batch/{name}.npz"), image=image * factor)
        h.path(f"sets/{name}").mkdir(parents=True)
        h.path(f"sets/{name}/input_0.pb").write_bytes(numpy_helper.from_array(image * factor).SerializeToString())
    h.path("references").mkdir()
    np.savez(h.path("references/a.npz"), codes=codes)
    np.savez(h.path("references/b.npz"), codes=codes)
    make_quantized(h)
    h.path("bin").mkdir()
    h.path("bin/dqrun").symlink_to(h.program)


def make_quantized(h):
    """float.onnx, and int8.onnx with a range that is four times too narrow. All sums are exact."""
    rng = np.random.default_rng(7)
    x = rng.integers(-32, 32, (16, 8)).astype("f4") / 16
    arrays = {"w1": rng.integers(-16, 17, (8, 6)) / 16, "w2": rng.integers(-16, 17, (6, 3)) / 16}
    nodes = [models.node("MatMul", ["x", "w1"], "sum1"), models.node("Relu", ["sum1"], "hidden"),
             models.node("MatMul", ["hidden", "w2"], "scores")]
    model = models.make_model("small", nodes, arrays, [("x", ["N", 8])], [("scores", ["N", 3])])
    values = {"x": x, "sum1": x @ arrays["w1"].astype("f4")}
    values["hidden"] = np.maximum(values["sum1"], 0)
    values["scores"] = values["hidden"] @ arrays["w2"].astype("f4")
    quantizer = models.Quantizer(model, values)
    quantizer.activations["hidden"][0] /= np.float32(4)
    onnx.save(model, str(h.path("float.onnx")))
    quantizer.write(h.path("int8.onnx"))
    np.savez(h.path("x.npz"), x=x)
    np.save(h.path("classes.npy"), values["scores"].argmax(axis=1))
    h.expect(["int8.onnx", "x.npz", "--hash-values", "-o", "values.npz"], out=None)
    with np.load(h.path("values.npz")) as arrays:
        written = dict(arrays)
    np.savez(h.path("wrong_values.npz"), **(written | {"sum1": written["sum1"] + np.eye(16, 6, dtype="f4")}))


def observe(h, command):
    """What the command prints: standard output, then standard error, as in two windows."""
    done = shell(h, command, h.folder, subprocess.PIPE)
    return output_lines(done.stdout + done.stderr, done.returncode)


def shell(h, command, folder, stderr):
    environment = {k: v for k, v in os.environ.items() if k not in ("DQRUN_ISA", "NO_COLOR")}
    # python3 is the one that runs the tests, with its packages
    environment["PATH"] = f"{h.path('bin')}:{Path(sys.executable).parent}:{environment['PATH']}"
    return subprocess.run(["bash", "-c", command], cwd=folder, stdout=subprocess.PIPE, stderr=stderr, check=False,
                          env=environment, stdin=subprocess.DEVNULL, timeout=120)


def check(h, command, expected):
    got = observe(h, command)
    assert transcript_matches(expected, got), "got\n" + "\n".join(got) + "\nexpected\n" + "\n".join(expected)


# ---- Pages -------------------------------------------------------------------------------------------------


def pages():
    """The pages that have a block of commands, without those that other tests run."""
    for path in sorted(ROOT.rglob("*.md")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(("build", ".")) and name not in ELSEWHERE and "\n```console\n" in path.read_text():
            yield name, path


def make_page_folder(h, name):
    """A folder with links to the project's files, as if it was built in build/."""
    folder = h.path("pages") / name.replace("/", "-")
    tools = folder / "build" / "tools"
    tools.mkdir(parents=True)
    for path in ROOT.iterdir():
        if not path.name.startswith(("build", ".")):
            (folder / path.name).symlink_to(path)
    for path in (Path(h.program), Path(h.program).with_name("dqrun-conformance")):
        (tools / path.name).symlink_to(path)
    return folder


@functools.cache
def levels(program):
    listing = subprocess.run([program, "isa"], capture_output=True, check=True, text=True).stdout
    return {line.split()[0] for line in listing.splitlines() if " yes" in line}


def observe_in_page(h, command, folder):
    level = re.search(r"--isa (\w+)", command)
    if level and level[1] not in levels(h.program):
        raise Skip(f"this processor has no {level[1]}")
    done = shell(h, command, folder, subprocess.STDOUT)
    return output_lines(done.stdout, done.returncode)


def check_page(h, name, path, folder):
    """A case for each command."""
    def check_step(kind, command, expected):
        got = observe_in_page(h, command, folder)
        assert MATCHES[kind](expected, got), "got\n" + "\n".join(got) + "\nexpected\n" + "\n".join(expected)

    for kind, what, content in page_steps(path.read_text()):
        if kind == "file":
            folder.joinpath(what).parent.mkdir(parents=True, exist_ok=True)
            folder.joinpath(what).write_text(content)
        else:
            h.case(f"{name}: {what}", lambda kind=kind, what=what, content=content: check_step(kind, what, content))


def accept_page(h, name, path):
    """Writes the page anew with what its commands print now, where it differs."""
    folder, text = make_page_folder(h, name), path.read_text()
    for block in list(BLOCK.finditer(text)):
        new = ""
        for kind, what, content in page_steps(block.group()):
            if kind == "file":
                folder.joinpath(what).parent.mkdir(parents=True, exist_ok=True)
                folder.joinpath(what).write_text(content)
                continue
            got = observe_in_page(h, what, folder)
            old = ("\n" + block["text"].partition(f"$ {what}\n")[2]).partition("\n$ ")[0].splitlines()[1:]
            new += "\n".join([f"$ {what}", *(old if MATCHES[kind](content, got) else got)]) + "\n"
        if new:
            text = text.replace(block["text"], new)
    path.write_text(text)


# ---- All of them -------------------------------------------------------------------------------------------


def run(h):
    make_files(h)
    for name, path in pages():
        check_page(h, name, path, make_page_folder(h, name))
    for path in sorted(FOLDER.glob("*.txt")):
        for line, expected in read(path):
            if line.startswith("$ "):
                h.case(f"{path.name}: {line}", lambda line=line, expected=expected: check(h, line[2:], expected))


def accept(program):
    sys.setrecursionlimit(10000)
    with tempfile.TemporaryDirectory() as folder:
        h = Harness(program, folder)
        make_files(h)
        for path in sorted(FOLDER.glob("*.txt")):
            text = []
            for line, expected in read(path):
                if line.startswith("$ "):
                    got = observe(h, line[2:])
                    expected = expected if transcript_matches(expected, got) else got
                text += [line, *expected]
            path.write_text("\n".join(text) + "\n")
        for name, path in pages():
            accept_page(h, name, path)


if __name__ == "__main__":
    accept(sys.argv[1])
