#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bytes of packed weights, held against forms.tsv: a changed layout without a new DQ_PACKED_FORMAT is seen.

    forms.py DQRUN [--update]

Models of a node or two are packed at each level of this processor, and each form is hashed with its key. A row of forms.tsv is a packer in
a model, with a column for each level; columns of levels that this processor lacks stay, and have "?" in new rows, which is skipped there.
The first line is the format's version. --update records the forms anew. The last line is "N passed, N failed, N skipped": a case is a model
at a level, or a packer of packers.def."""

import argparse
import hashlib
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PAGE = pathlib.Path(__file__).with_suffix(".tsv")
ROOT = pathlib.Path(__file__).resolve().parents[2]
LEVELS = ["c", "sse41", "avx2", "avxvnni", "avx512", "avx512vnni", "avx512vbmi", "amx", "neon", "dotprod", "i8mm"]
FLOAT, HALF, UINT8, INT8, UINT16 = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.UINT8,
                                            TensorProto.INT8, TensorProto.UINT16)
UNRECORDED = "?"  # of a row that was added on a processor without the level
HEADER, ENTRY = 120, struct.Struct("<16s16s24sIHHQQQQ")


def numbers(shape, dtype, most=60):
    """Fixed integers, a few of them large, so that kernels with limits on pairs of weights split some."""
    i = np.arange(int(np.prod(shape)), dtype=np.int64)
    values = (i * i * 7 + i * 13) % (2 * most + 1) - most
    values = np.where(i % 23 == 0, 2 * most, values)
    return (values + (2 * most if np.dtype(dtype).kind == "u" else 0)).astype(dtype).reshape(shape)


def model(nodes, x, x_type, weights):
    """One input x; the output is y."""
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "m", [helper.make_tensor_value_info("x", x_type, x)],
                              [helper.make_empty_tensor_value_info("y")], tensors)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21),
                                                                 helper.make_opsetid("com.microsoft", 1)])


def one(op, x, x_type, weights, **attributes):
    return model([helper.make_node(op, ["x", *weights], ["y"], **attributes)], x, x_type, weights)


def qdq16(op, x, w, **attributes):
    """A product of 16-bit activations and weights w between DequantizeLinear and QuantizeLinear."""
    nodes = [helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["xf"]),
             helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["wf"]),
             helper.make_node(op, ["xf", "wf"], ["yf"], **attributes),
             helper.make_node("QuantizeLinear", ["yf", "sy", "zx"], ["y"])]
    return model(nodes, x, UINT16, {"w": w, "sx": np.float32(2 ** -10), "zx": np.uint16(32000), "sw": np.float32(2 ** -6),
                                    "zw": w.dtype.type(0), "sy": np.float32(2 ** -5)})


def cases():
    """Name, model, and the algorithm that it is packed for."""
    f32, image, deep = np.float32, [1, 16, 14, 14], [1, 1, 1, 1]
    w8, wf = numbers((16, 16, 3, 3), np.int8), numbers((16, 16, 3, 3), f32)
    yield "matmul_s8", one("MatMulInteger", [70, 96], UINT8, {"w": numbers((96, 40), np.int8)}), "matmul_s8=gemm_packed"
    yield "matmul_s8_few", one("MatMulInteger", [1, 96], UINT8, {"w": numbers((96, 40), np.int8)}), "matmul_s8=few_rows_packed"
    yield "matmul_s8_long", one("MatMulInteger", [70, 512], UINT8, {"w": numbers((512, 40), np.int8, 40)}), "matmul_s8=gemm_packed"
    for row in ("nc4hw4", "winograd_2d", "gemm_indirect"):
        yield f"conv_s8_{row}", one("ConvInteger", image, UINT8, {"w": w8}, pads=deep), f"conv_s8={row}"
    yield "dwconv_s8", one("ConvInteger", [1, 32, 7, 7], UINT8, {"w": numbers((32, 1, 3, 3), np.int8)}, group=32,
                           pads=deep), "conv_s8=depthwise_nchwc"
    yield "conv_s16s8", qdq16("Conv", image, w8, pads=deep), "conv_s16=gemm_bytes"
    yield "conv_s16s16", qdq16("Conv", image, numbers((16, 16, 3, 3), np.int16, 9000), pads=deep), "conv_s16=gemm"
    yield "conv_s16_few", qdq16("Conv", [1, 16, 3, 3], numbers((16, 16, 3, 3), np.int16, 9000)), "conv_s16=few_outputs"
    for row in ("gemm_s8", "gemm_bytes", "gemm"):
        yield f"matmul_s16s8_{row}", qdq16("MatMul", [70, 96], numbers((96, 40), np.int8)), f"matmul_s16={row}"
        yield f"matmul_s16s16_{row}", qdq16("MatMul", [70, 96], numbers((96, 40), np.int16, 9000)), f"matmul_s16={row}"
    yield "matmul_integer16", one("MatMulInteger16", [70, 96], TensorProto.INT16, {"w": numbers((96, 40), np.int16, 9000)},
                                  domain="com.microsoft"), None
    yield "matmul_f32", one("MatMul", [70, 96], FLOAT, {"w": numbers((96, 40), f32)}), "matmul_f32=gemm_packed"
    yield "gemm_f32", one("Gemm", [70, 96], FLOAT, {"w": numbers((40, 96), f32)}, transB=1), "matmul_f32=gemm_packed"
    yield "gemm_half_of_c", one("Gemm", [70, 96], FLOAT, {"w": numbers((96, 40), f32), "c": numbers((40,), f32)}, beta=0.5), None
    yield "matmul_f16", one("MatMul", [70, 96], HALF, {"w": numbers((96, 40), np.float16)}), None
    yield "conv_f16", one("Conv", image, HALF, {"w": numbers((16, 16, 3, 3), np.float16)}, pads=deep), None
    for row in ("winograd_2d", "gemm_small", "gemm"):
        yield f"conv_f32_{row}", one("Conv", image, FLOAT, {"w": wf}, pads=deep), f"conv_f32={row}"
    yield "conv_f32_row", one("Conv", [1, 16, 1, 128], FLOAT, {"w": numbers((32, 16, 1, 3), f32)}, pads=[0, 1, 0, 1]), \
        "conv_f32=winograd_1d"
    yield "dwconv_f32", one("Conv", [1, 32, 7, 7], FLOAT, {"w": numbers((32, 1, 3, 3), f32)}, group=32, pads=deep), \
        "conv_f32=depthwise_nchwc"
    yield "conv_transpose", one("ConvTranspose", [1, 16, 7, 7], FLOAT, {"w": numbers((16, 8, 4, 4), f32)}, strides=[2, 2]), None
    yield "lstm", one("LSTM", [5, 2, 8], FLOAT, {"w": numbers((1, 64, 8), f32), "r": numbers((1, 64, 16), f32)},
                      hidden_size=16), None
    yield "gru", one("GRU", [5, 2, 8], FLOAT, {"w": numbers((1, 48, 8), f32), "r": numbers((1, 48, 16), f32)},
                     hidden_size=16), None
    for bits in (2, 4, 8):
        packed = numbers((40, 3, 4 * bits), np.uint8)
        yield f"nbits{bits}", one("MatMulNBits", [1, 96], FLOAT, {"w": packed, "s": numbers((120,), f32),
                                  "z": numbers((40 * -(-3 * bits // 8),), np.uint8)}, domain="com.microsoft", K=96, N=40,
                                  bits=bits, block_size=32), None


def forms(path):
    """The format's version, and by packer the digest of its forms with their keys."""
    data = path.read_bytes()
    version, count = struct.unpack_from("<I", data, 12)[0], struct.unpack_from("<I", data, 68)[0]
    digests = {}
    for i in range(count):
        _, _, name, _, dtype, key_size, key, at, size, full = ENTRY.unpack_from(data, HEADER + i * ENTRY.size)
        digest = digests.setdefault(name.rstrip(b"\0").decode(), hashlib.sha256())
        digest.update(struct.pack("<HHQQ", dtype, key_size, size, full) + data[key:key + key_size] + data[at:at + size])
    return version, {name: digest.hexdigest()[:16] for name, digest in digests.items()}


def pack(dqrun, folder, case, algorithm, level):
    """As forms(); without forms where the algorithm does not exist at that level."""
    path = folder / "m.packed"
    command = [dqrun, "pack", case, "--output", path, "--isa", level, "--threads", "1", "--random", "1"]
    run = subprocess.run(command + (["--algorithm", algorithm] if algorithm else []), capture_output=True, text=True, check=False)
    if "is not applicable" in run.stderr:
        return None, {}
    if run.returncode:
        raise SystemExit(f"{case.name} at {level}: {run.stderr}")
    return forms(path)


def read():
    """The recorded version, and by model and packer: the digest of each level."""
    if not PAGE.exists():
        return 0, {}
    first, names, *lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [dict(zip(names.split("\t"), line.split("\t"))) for line in lines]
    return int(first.split()[-1]), {(row["model"], row["packer"]): row for row in rows}


def write(version, rows):
    lines = ["\t".join(row.get(name, "") for name in ["model", "packer", *LEVELS]) for row in rows.values()]
    PAGE.write_text("\n".join([f"format {version}", "\t".join(["model", "packer", *LEVELS]), *lines]) + "\n", encoding="utf-8")


def packers():
    text = (ROOT / "src/ops/packers.def").read_text(encoding="utf-8")
    return re.findall(r'^DQ_PACKER\("(\w+)"', text, re.MULTILINE)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dqrun")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    have = json.loads(subprocess.run([options.dqrun, "isa", "--json"], capture_output=True, check=True).stdout)
    levels = [level["name"] for level in have["levels"] if level["available"]]
    recorded, known = read()
    found = {key: {**row, **dict.fromkeys(levels, "")} for key, row in known.items()}
    recorded_levels = [level for level in LEVELS if any(row.get(level) for row in known.values())]
    elsewhere = {level: UNRECORDED for level in recorded_levels if level not in levels}
    passed, failed, skipped, seen, version = 0, 0, 0, set(), 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for case, graph, algorithm in cases():
            onnx.save(graph, str(folder / f"{case}.onnx"))
            for level in levels:
                of_file, digests = pack(options.dqrun, folder, folder / f"{case}.onnx", algorithm, level)
                version = of_file or version
                seen |= digests.keys()
                expected = {key[1]: row[level] for key, row in known.items() if key[0] == case and row.get(level)}
                for packer, digest in digests.items():
                    found.setdefault((case, packer), {"model": case, "packer": packer, **elsewhere})[level] = digest
                if not options.update and (level not in recorded_levels or UNRECORDED in expected.values()):
                    skipped += 1
                    continue
                same = options.update or (digests == expected and of_file in (None, recorded))
                passed, failed = passed + same, failed + (not same)
                for packer in [] if same else sorted(digests.keys() | expected.keys()):
                    if digests.get(packer) != expected.get(packer):
                        print(f"{case} at {level}: {packer} gives {digests.get(packer)}, {PAGE.name} says {expected.get(packer)}")
    for packer in packers():
        passed, failed = passed + (packer in seen), failed + (packer not in seen)
        if packer not in seen:
            print(f"no model has a form of {packer}: add one")
    if options.update:
        changed = any(was not in ("", UNRECORDED, found[key][column]) for key, row in known.items() for column, was in row.items())
        if version == recorded and changed:
            print(f"{PAGE.name}: forms of format {version} have changed; raise DQ_PACKED_FORMAT, unless no release has it")
        write(version, {key: row for key, row in found.items() if any(row.get(level) for level in LEVELS)})
    elif version != recorded:
        print(f"{PAGE.name} has format {recorded}, dqrun {version}: record the forms with --update")
    elif failed:
        print("Files packed before this change would give wrong results: raise DQ_PACKED_FORMAT in src/ops/packed_file.h, then record the "
              "forms with --update")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
