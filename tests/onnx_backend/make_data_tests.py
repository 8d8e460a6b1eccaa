#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the cases that the installed onnx package ships as data, as folders that dqrun-conformance reads.

    make_data_tests.py OUT

OUT/small/simple, OUT/small/pytorch-operator and OUT/small/pytorch-converted are copies of onnx/backend/test/data. OUT/light
holds that folder's image networks, whose weights are constants that the model fills in (ConstantOfShape); their input is the ramp that onnx's own
runner feeds, their output the one that the package ships beside the model. OUT is replaced if this script made it.

Exit codes: 0 all made, 1 a folder of the package is missing or empty, 2 usage, no onnx package, or a folder that is not ours.
"""

import shutil
import sys
from pathlib import Path

COPIED = ("simple", "pytorch-operator", "pytorch-converted")
MARK = "made-by-make_data_tests"

try:
    import numpy as np
    import onnx
    from onnx import numpy_helper
except ImportError as error:
    print(f"make_data_tests.py: {error}; it needs the Python packages onnx and numpy", file=sys.stderr)
    sys.exit(2)


def package_data():
    return Path(onnx.__file__).parent / "backend" / "test" / "data"


def ramp(info):
    """The input that onnx.backend.test.runner.Runner.generate_dummy_data makes: 0, 1/n, 2/n … (n - 1)/n."""
    shape = [dim.dim_value if dim.HasField("dim_value") else 1 for dim in info.type.tensor_type.shape.dim]
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) / count).astype(np.float32)


def write_light(model_file, folder):
    """One network with its data set."""
    model = onnx.load(model_file)
    weights = {tensor.name for tensor in model.graph.initializer}
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    shutil.copyfile(model_file, folder / "model.onnx")
    inputs = [info for info in model.graph.input if info.name not in weights]
    for index, info in enumerate(inputs):
        tensor = numpy_helper.from_array(ramp(info), info.name)
        (data / f"input_{index}.pb").write_bytes(tensor.SerializeToString(deterministic=True))
    for index in range(len(model.graph.output)):
        shutil.copyfile(model_file.with_name(f"{model_file.stem}_output_{index}.pb"), data / f"output_{index}.pb")


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    out = Path(sys.argv[1])
    if out.exists() and not (out / MARK).is_file() and (not out.is_dir() or any(out.iterdir())):
        print(f"make_data_tests.py: {out} is neither an empty folder nor made by this script", file=sys.stderr)
        return 2
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / MARK).touch()
    source = package_data()
    made = {}
    for name in COPIED:
        if (source / name).is_dir():
            shutil.copytree(source / name, out / "small" / name)
        made[name] = len(list((out / "small" / name).glob("*/model.onnx")))
    for model_file in sorted((source / "light").glob("light_*.onnx")):
        write_light(model_file, out / "light" / model_file.stem)
    made["light"] = len(list((out / "light").glob("*/model.onnx")))
    print(", ".join(f"{count} of {name}" for name, count in made.items()), f"(onnx {onnx.__version__}) in {out}")
    return 0 if all(made.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
