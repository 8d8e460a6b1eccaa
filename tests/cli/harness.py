# SPDX-License-Identifier: Apache-2.0
"""What the modules of the command-line tests share: running dqrun, comparing exactly, small models."""

import os
import re
import subprocess
from pathlib import Path

import onnx
from onnx import TensorProto, helper


class Skip(Exception):
    """A case that this machine cannot show."""


class Harness:
    """Runs dqrun in a folder of its own and counts the cases."""

    def __init__(self, program, folder):
        self.program = str(Path(program).resolve())
        self.folder = Path(folder)
        self.passed = self.failed = self.skipped = 0

    def path(self, name):
        return self.folder / name

    def run(self, args, environment=None, **more):
        environment = {k: v for k, v in os.environ.items() if k != "DQRUN_ISA"} | (environment or {})
        more.setdefault("stdout", subprocess.PIPE)
        return subprocess.run([self.program, *map(str, args)], cwd=self.folder, stderr=subprocess.PIPE,
                              env=environment, timeout=120, check=False, **more)

    def case(self, name, work):
        """One case: work() raises AssertionError when it fails, Skip when it cannot be shown."""
        try:
            work()
            self.passed += 1
        except Skip as why:
            self.skipped += 1
            print(f"skipped: {name}: {why}")
        except Exception as why:  # a crash of the test itself is a failure of this case, not of all
            self.failed += 1
            print(f"FAILED: {name}: {type(why).__name__}: {why}")

    def expect(self, args, code=0, out="", err="", **more):
        """Runs and compares. `out` and `err`: exact text, a compiled pattern for the whole, or None for anything. An
        error is given without its 'dqrun: ' and newline. More is run's."""
        done = self.run(args, **more)
        got_out, got_err = done.stdout.decode(), done.stderr.decode()
        if isinstance(err, str) and err:
            err = f"dqrun: {err}\n"
        for what, got, expected in (("stdout", got_out, out), ("stderr", got_err, err)):
            if expected is None:
                continue
            same = expected.fullmatch(got) if isinstance(expected, re.Pattern) else got == expected
            assert same, f"{what} of {args} is\n{got}\nwanted\n{expected}"
        assert done.returncode == code, f"exit code of {args} is {done.returncode}, expected {code}\n{got_err}"
        return got_out

    def check(self, name, args, **expected):
        self.case(name, lambda: self.expect(args, **expected))


def save_model(path, nodes, inputs, outputs, initializers=(), opset=25):
    """A model file; inputs and outputs are (name, type, shape)."""
    graph = helper.make_graph(nodes, "test", [helper.make_tensor_value_info(*i) for i in inputs],
                              [helper.make_tensor_value_info(*o) for o in outputs], list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)
    onnx.save(model, str(path))


def save_identity(path, dtype, shape):
    """x → y, both of that type."""
    save_model(path, [helper.make_node("Identity", ["x"], ["y"])], [("x", dtype, shape)], [("y", dtype, shape)])


def save_quantize(path):
    """image float[N,4] → codes uint8[N,4], scale 0.5, zero point 10."""
    scale = helper.make_tensor("scale", TensorProto.FLOAT, [], [0.5])
    zero = helper.make_tensor("zero", TensorProto.UINT8, [], [10])
    save_model(path, [helper.make_node("QuantizeLinear", ["image", "scale", "zero"], ["codes"], name="quantize")],
               [("image", TensorProto.FLOAT, ["N", 4])], [("codes", TensorProto.UINT8, ["N", 4])], [scale, zero])
