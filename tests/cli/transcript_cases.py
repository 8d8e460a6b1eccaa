#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Transcripts: every command's help, a success, and its most likely mistakes, as a user would see them.

usage: transcript_cases.py DQRUN      writes the transcripts anew; lines that end in " (re)" stay while they match

A transcript (transcripts/*.txt) is lines of comment ("## …"), commands ("$ dqrun …"), and what each of them prints: standard
output, then standard error, then "[exit code N]" when that is not 0. A line that ends in " (re)" is a regular expression; "... (re)" stands for
any number of lines. Commands are run by bash in a folder with the files of make_files."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from harness import Harness, save_model, save_quantize

FOLDER = Path(__file__).parent / "transcripts"
REST = "... (re)"


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
    h.path("bin").mkdir()
    h.path("bin/dqrun").symlink_to(h.program)


def observe(h, command):
    environment = {k: v for k, v in os.environ.items() if k not in ("DQRUN_ISA", "NO_COLOR")}
    environment["PATH"] = f"{h.path('bin')}:{environment['PATH']}"
    done = subprocess.run(["bash", "-c", command], cwd=h.folder, capture_output=True, check=False,
                          env=environment, stdin=subprocess.DEVNULL, timeout=120)
    lines = (done.stdout + done.stderr).decode().splitlines()
    return lines + ([f"[exit code {done.returncode}]"] if done.returncode else [])


def read(path):
    """The transcript as (command or comment, expected lines)."""
    parts = []
    for line in path.read_text().splitlines():
        if line.startswith(("$ ", "## ")) or not parts:
            parts.append((line, []))
        else:
            parts[-1][1].append(line)
    return parts


def matches(expected, got):
    """Whether the lines are as the transcript says."""
    if not expected:
        return not got
    if expected[0] == REST:
        return any(matches(expected[1:], got[i:]) for i in range(len(got) + 1))
    if not got:
        return False
    first = expected[0].removesuffix(" (re)")
    same = re.fullmatch(first, got[0]) if first != expected[0] else first == got[0]
    return bool(same) and matches(expected[1:], got[1:])


def check(h, command, expected):
    got = observe(h, command)
    assert matches(expected, got), "got\n" + "\n".join(got) + "\nexpected\n" + "\n".join(expected)


def run(h):
    make_files(h)
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
                    expected = expected if matches(expected, got) else got
                text += [line, *expected]
            path.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    accept(sys.argv[1])
