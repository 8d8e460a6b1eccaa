# SPDX-License-Identifier: Apache-2.0
"""What a terminal gets, through a pseudo-terminal: colors, the progress bar, and no binary data."""

import os
import pty
import re
import subprocess
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from harness import save_model, save_quantize
from result_cases import save_endless

ESCAPE = "\x1b"


def on_terminal(h, args, streams=("stdout", "stderr"), environment=None):
    """Runs dqrun with these streams as a terminal. Returns the exit code, what the terminal got, what the rest got."""
    master, slave = pty.openpty()
    variables = {k: v for k, v in os.environ.items() if k not in ("DQRUN_ISA", "NO_COLOR")}
    variables |= {"TERM": "xterm"} | (environment or {})
    with tempfile.TemporaryFile() as rest:
        ends = {name: slave if name in streams else rest for name in ("stdout", "stderr")}
        ends["stdin"] = slave if "stdin" in streams else subprocess.DEVNULL
        with subprocess.Popen([h.program, *args], cwd=h.folder, env=variables, **ends) as process:
            os.close(slave)
            seen = b""
            while True:
                try:
                    piece = os.read(master, 4096)
                except OSError:  # Linux: the other side is closed
                    break
                if not piece:
                    break
                seen += piece
            code = process.wait(timeout=60)
        os.close(master)
        rest.seek(0)
        return code, seen.decode().replace("\r\n", "\n"), rest.read().decode()


def colors(h):
    green = f"model.onnx: {ESCAPE}[32mevery node can run{ESCAPE}[0m\n"
    plain = "model.onnx: every node can run\n"

    def shown(name, expected, args=(), environment=None, streams=("stdout", "stderr")):
        def check():
            code, seen, rest = on_terminal(h, ["check", "model.onnx", *args], streams, environment)
            got = seen if "stdout" in streams else rest
            assert (code, got) == (0, expected), (code, got)
        h.case(name, check)
    shown("colors on a terminal", green)
    shown("NO_COLOR", plain, environment={"NO_COLOR": "1"})
    shown("an empty NO_COLOR counts for nothing", green, environment={"NO_COLOR": ""})
    shown("TERM=dumb", plain, environment={"TERM": "dumb"})
    shown("--color never", plain, ["--color", "never"])
    shown("--color always goes before NO_COLOR", green, ["--color", "always"], {"NO_COLOR": "1"})
    shown("no colors in a file, while standard error is a terminal", plain, streams=("stderr",))
    shown("--color always in a file", green, ["--color=always"], streams=())

    def table():
        _, seen, _ = on_terminal(h, ["model.onnx", "inputs.npz"])
        assert seen.startswith(f"{ESCAPE}[1moutput  type ") and seen.count(ESCAPE) == 2, seen
    h.case("the head of a table", table)

    def differs():
        code, seen, _ = on_terminal(h, ["model.onnx", "inputs.npz", "--expect", "wrong.npz"])
        assert code == 1 and re.match(r"codes: \x1b\[1;31m8 of 8 elements differ.*\x1b\[0m\n", seen), seen
    h.case("outputs that differ", differs)

    def error():
        code, seen, _ = on_terminal(h, ["absent.onnx"])
        assert code == 3 and seen.startswith(f"{ESCAPE}[1;31mdqrun:{ESCAPE}[0m absent.onnx: "), seen
        code, seen, rest = on_terminal(h, ["absent.onnx"], streams=("stdout",))
        assert code == 3 and not seen and rest.startswith("dqrun: absent.onnx: "), (seen, rest)
        _, seen, _ = on_terminal(h, ["model.onnx", "inputs.npz", "--out", "o.npz"])
        assert seen.startswith(f"dqrun: {ESCAPE}[33mwarning:{ESCAPE}[0m --out "), seen
    h.case("errors and warnings", error)


def progress(h):
    # Two seconds are enough for a bar: the whole would take much longer.
    bench = ["bench", "model.onnx", "--threads", "1", "--seconds", "60", "--timeout", "1.5"]
    bar = re.compile(r"\r\x1b\[Kbench \[#*\.+\] +\d+ %, \d+ s left")

    def drawn():
        code, seen, rest = on_terminal(h, bench, streams=("stderr",))
        bars = bar.findall(seen)
        assert code == 124 and not rest, (code, rest)
        assert 3 <= len(bars) <= 15, seen
        assert re.fullmatch(rf"({bar.pattern})+\r\x1b\[K\x1b\[1;31mdqrun:\x1b\[0m the time of --timeout is up\n", seen), seen
        left = [int(re.search(r"(\d+) s left", text).group(1)) for text in bars]
        assert all(50 <= seconds <= 60 for seconds in left), left
    h.case("a progress bar, which is erased in the end", drawn)

    def warmup():
        code, seen, _ = on_terminal(h, ["bench", "model.onnx", "--warmup", "1000000000", "--timeout", "1.5"])
        assert code == 124 and re.search(r"\r\x1b\[Kwarmup \[#*\.+\] +\d+ %, [\w ]+ left", seen), seen
    h.case("a progress bar of the warmup", warmup)

    def absent(name, args, **more):
        def check():
            _, seen, rest = on_terminal(h, args, **more)
            assert "left" not in seen + rest and "[#" not in seen + rest, (seen, rest)
        h.case(name, check)
    absent("no progress bar in a file", bench, streams=("stdout",))
    absent("no progress bar with --no-progress", [*bench, "--no-progress"])
    absent("no progress bar on a dumb terminal", bench, environment={"TERM": "dumb"})
    absent("no progress bar for short work", ["bench", "model.onnx", "--seconds", "1"])

    def a_run():
        """Products that take portable C seconds each, and a loop without an end."""
        weights = numpy_helper.from_array(np.zeros((1024, 1024), "f4"), "w")
        nodes = [helper.make_node("MatMul", [f"x{i}", "w"], [f"x{i + 1}"]) for i in range(100)]
        save_model(h.path("slow.onnx"), nodes, [("x0", TensorProto.FLOAT, [1024, 1024])], [("x100", TensorProto.FLOAT, [1024, 1024])],
                   [weights])
        slow = ["slow.onnx", "--random", "1", "--isa", "c", "--threads", "1", "--timeout", "2.5"]
        code, seen, _ = on_terminal(h, slow)
        assert code == 124 and re.search(r"\r\x1b\[Krun \[#*\.+\] +\d+ %, [\w ]+ left", seen), (code, seen)
        save_endless(h.path("endless.onnx"))
        code, seen, _ = on_terminal(h, ["endless.onnx", "--random", "1", "--timeout", "2.5"])
        assert code == 124 and re.search(r"\r\x1b\[Krun: \d+ nodes, 2 s", seen), (code, seen)
        _, seen, _ = on_terminal(h, [*slow, "--no-progress"], environment={"NO_COLOR": "1"})
        assert seen == "dqrun: the time of --timeout is up\n", seen
    h.case("a single run with a progress bar", a_run)

    def batch():
        """Lines and the bar do not meet, in a batch that takes longer than it may."""
        h.path("long").mkdir()
        np.savez_compressed(h.path("long/00.npz"), image=np.zeros((1 << 20, 4), "f4"))
        for i in range(100, 2000):
            h.path(f"long/{i}.npz").symlink_to("00.npz")
        code, seen, _ = on_terminal(h, ["model.onnx", "long", "--timeout", "2"], environment={"NO_COLOR": "1"})
        assert code == 124 and re.search(r"\r\x1b\[Kruns \[#*\.+\] +\d+ %, [\w ]+ left\r\x1b\[Klong/\d+.npz: codes", seen), seen
        assert re.search(r"(\r\x1b\[K|\n)dqrun: the time of --timeout is up\n$", seen), seen  # after a bar, or after a line
        assert not re.search(r"leftlong", seen), seen
    h.case("a batch with a progress bar", batch)


def binary(h):
    def model_from_keyboard():
        code, seen, _ = on_terminal(h, ["-"], ("stdin", "stderr"), {"NO_COLOR": "1"})
        assert (code, seen) == (2, "dqrun: standard input is a terminal, expected a model from a file or pipe\n"), seen
    h.case("a model from the keyboard", model_from_keyboard)

    def inputs_from_keyboard():
        code, seen, _ = on_terminal(h, ["model.onnx", "-"], ("stdin", "stderr"), {"NO_COLOR": "1"})
        assert (code, seen) == (2, "dqrun: standard input is a terminal, expected an .npz archive from a file or pipe\n"), seen
    h.case("inputs from the keyboard", inputs_from_keyboard)

    def archive_to_screen():
        code, seen, _ = on_terminal(h, ["model.onnx", "inputs.npz", "-o", "-"], environment={"NO_COLOR": "1"})
        assert (code, seen) == (2, "dqrun: standard output is a terminal, expected a file or pipe for the archive of "
                                   "--output -\n"), seen
    h.case("an archive on the screen", archive_to_screen)


def run(h):
    save_quantize(h.path("model.onnx"))
    np.savez(h.path("inputs.npz"), image=np.zeros((2, 4), "f4"))
    np.savez(h.path("wrong.npz"), codes=np.zeros((2, 4), "u1"))
    for part in colors, progress, binary:
        part(h)
