# SPDX-License-Identifier: Apache-2.0
"""Holds a model that was built in C and saved by dqrun against onnx's own checker, and runs it with onnx's reference.

usage: check_saved.py TEST_BUILDER   (the executable of tests/unit/test_builder.c)
The last line is `N passed, N failed, N skipped`.
"""

import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.reference


def check(name, test):
    try:
        test()
    except Exception as why:  # every kind of failure is one failed check
        print(f"{name}: {type(why).__name__}: {why}")
        return 1
    return 0


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "built.onnx")
        subprocess.run([sys.argv[1], path], check=True, stdout=subprocess.DEVNULL)
        model = onnx.load(path)

    def names():
        assert [n.name for n in model.graph.node][-1] != "", "a node has no name"
        assert {"x"} == {i.name for i in model.graph.input}
        assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"
        assert [(i.domain, i.version) for i in model.opset_import] == [("", 21)]
        assert model.ir_version == 10

    def runs():
        x = np.array([[0.75, 0.3], [-100, 2]], np.float32)
        y, codes = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})
        assert codes.astype(int).tolist() == [[2, 4], [-128, 11]], codes
        assert y.tolist() == [[1, 0.25], [-64, 2]], y

    tests = {
        "checker": lambda: onnx.checker.check_model(model, full_check=True),
        "names": names,
        "reference": runs,
    }
    failed = sum(check(name, test) for name, test in tests.items())
    print(f"{len(tests) - failed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
