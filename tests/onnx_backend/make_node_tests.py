#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the node tests of the installed onnx package as folders that dqrun-conformance reads.

The onnx wheel no longer carries this data; it does carry the Python code that makes each case. Every case
becomes OUT/<case>/model.onnx and OUT/<case>/test_data_set_N/{input,output}_M.pb. A .pb file holds a
TensorProto, SequenceProto, OptionalProto or MapProto, whichever the model declares for that value.

The same onnx and numpy versions give the same bytes. A stamp file in OUT, completed last, makes a
second call return at once. Exit codes: 0 all made, 1 some case could not be made (each is named), 2 usage, an absent
package that everything needs, or a folder that is not ours.
"""

import argparse
import ast
import fnmatch
import hashlib
import importlib
import json
import pkgutil
import shutil
import sys
import warnings
from pathlib import Path

STAMP = "dqrun-node-tests.json"

# The onnx package replaces its frozen ImageDecoder data by newly compressed images when Pillow can be
# imported, and those depend on the version of Pillow's codecs. The frozen data is the same everywhere.
sys.modules["PIL"] = None

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, numpy_helper
except ImportError as error:
    print(f"make_node_tests.py: {error}; it needs the Python packages onnx, numpy and ml_dtypes", file=sys.stderr)
    sys.exit(2)


def fail(text):
    progress("")
    print(f"make_node_tests.py: {text}", file=sys.stderr)
    sys.exit(2)


def progress(text):
    """Replace the one progress line; keep quiet where nobody watches."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def cases_named_in(module_name):
    """The case names that stand as plain strings in a module which could not be imported."""
    spec = importlib.util.find_spec(module_name)
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return sorted({text for text in texts if isinstance(text, str) and text.startswith("test_")})


def collect():
    """Return (cases sorted by name, problems). A module that needs an absent package is a problem."""
    package = importlib.import_module("onnx.backend.test.case.node")
    problems = []
    modules = sorted(info.name for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."))
    for number, name in enumerate(modules, 1):
        progress(f"node tests: computing {number}/{len(modules)} {name.rsplit('.', 1)[1]}")
        try:
            importlib.import_module(name)
        except ImportError as error:
            lost = ", ".join(cases_named_in(name)) or "its cases are named at run time"
            problems.append(f"{name}: {error} ({lost})")
    return sorted(package._NodeTestCases, key=lambda case: case.name), problems


def encode(value, declared):
    """One value of a case as the message that its declared type asks for."""
    kind = declared.type.WhichOneof("value")
    if isinstance(value, TensorProto):
        message = TensorProto()
        message.CopyFrom(value)
        message.name = declared.name
    elif kind == "tensor_type":
        message = numpy_helper.from_array(np.asarray(value), declared.name)
        if message.data_type != declared.type.tensor_type.elem_type:
            raise ValueError(f"'{declared.name}' is declared as element type "
                             f"{declared.type.tensor_type.elem_type}, its value has {message.data_type}")
    elif kind == "sequence_type":
        message = numpy_helper.from_list(value, declared.name)
    elif kind == "optional_type":
        message = numpy_helper.from_optional(value, declared.name)
    elif kind == "map_type":
        message = numpy_helper.from_dict(value, declared.name)
    else:
        raise ValueError(f"'{declared.name}' has the kind {kind}, which no .pb file of a test holds")
    return message.SerializeToString(deterministic=True)


def write_case(case, folder):
    folder.mkdir()
    (folder / "model.onnx").write_bytes(case.model.SerializeToString(deterministic=True))
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{number}"
        data.mkdir()
        for name, values, declared in (("input", inputs, case.model.graph.input),
                                       ("output", outputs, case.model.graph.output)):
            if len(values) != len(declared):
                raise ValueError(f"{len(values)} {name} values, the model declares {len(declared)}")
            for index, (value, info) in enumerate(zip(values, declared)):
                (data / f"{name}_{index}.pb").write_bytes(encode(value, info))


def wanted_stamp(filters):
    return {
        "onnx": onnx.__version__,
        "numpy": np.__version__,
        "script": hashlib.sha256(Path(__file__).read_bytes()).hexdigest(),
        "filters": sorted(filters),
    }


def is_current(out, expected):
    """True when a finished earlier run left what this run would make; a run without filters left everything."""
    try:
        stamp = json.loads((out / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    same = all(stamp.get(key) == expected[key] for key in ("onnx", "numpy", "script"))
    return same and stamp.get("complete") is True and stamp.get("filters") in ([], expected["filters"])


def write_stamp(out, stamp):
    part = out / (STAMP + ".part")
    part.write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")
    part.replace(out / STAMP)


def refuse_foreign(out):
    """A folder with other content and without our stamp is left alone."""
    if out.exists() and not (out / STAMP).is_file() and (not out.is_dir() or any(out.iterdir())):
        fail(f"{out} is neither an empty folder nor made by this script; name another folder")


def prepare(out, expected):
    """Empty OUT of earlier cases; the stamp says that it is unfinished from here on."""
    out.mkdir(parents=True, exist_ok=True)
    write_stamp(out, {**expected, "complete": False})
    for folder in out.iterdir():
        if folder.name.startswith("test_") and folder.is_dir():
            shutil.rmtree(folder)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="OUT", nargs="?", type=Path, help="folder to write the cases to")
    parser.add_argument("--filter", metavar="GLOB", action="append", default=[],
                        help="make only the cases whose name matches; may be given several times")
    parser.add_argument("--list", action="store_true", help="print the case names and write nothing")
    arguments = parser.parse_args()
    if arguments.out is None and not arguments.list:
        parser.error("OUT is missing")
    return arguments


def main():
    arguments = parse_arguments()
    expected = wanted_stamp(arguments.filter)
    if not arguments.list:
        if is_current(arguments.out, expected):
            return 0
        refuse_foreign(arguments.out)
    with warnings.catch_warnings():
        # Cases overflow, divide by zero and take logarithms of negative numbers on purpose.
        warnings.simplefilter("ignore")
        cases, problems = collect()
    if arguments.filter:
        cases = [case for case in cases if any(fnmatch.fnmatchcase(case.name, glob) for glob in arguments.filter)]
        if not cases:
            fail("no case matches " + " ".join(arguments.filter))
    if arguments.list:
        progress("")
        print("\n".join(case.name for case in cases))
    else:
        prepare(arguments.out, expected)
        made = 0
        for number, case in enumerate(cases, 1):
            if number % 50 == 0:
                progress(f"node tests: writing {number}/{len(cases)}")
            try:
                write_case(case, arguments.out / case.name)
                made += 1
            except (ValueError, TypeError, NotImplementedError, AttributeError) as error:
                shutil.rmtree(arguments.out / case.name)
                problems.append(f"{case.name}: {error}")
        progress("")
        write_stamp(arguments.out, {**expected, "complete": not problems, "cases": made})
        print(f"{made} node tests of onnx {onnx.__version__} in {arguments.out}")
    for problem in problems:
        print(f"make_node_tests.py: not made: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
