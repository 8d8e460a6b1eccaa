# SPDX-License-Identifier: Apache-2.0
"""Files: every element type through .npy, .npz and TensorProto, and what is wrong with broken ones."""

import io
import os
import re
import struct
import zipfile

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from harness import save_identity, save_model

# ONNX type, the numpy type of its arrays, whether numpy itself has that type.
TYPES = [
    (TensorProto.FLOAT, "f4", True), (TensorProto.DOUBLE, "f8", True), (TensorProto.FLOAT16, "f2", True),
    (TensorProto.INT8, "i1", True), (TensorProto.INT16, "i2", True), (TensorProto.INT32, "i4", True),
    (TensorProto.INT64, "i8", True), (TensorProto.UINT8, "u1", True), (TensorProto.UINT16, "u2", True),
    (TensorProto.UINT32, "u4", True), (TensorProto.UINT64, "u8", True), (TensorProto.BOOL, "?", True),
    (TensorProto.COMPLEX64, "c8", True), (TensorProto.COMPLEX128, "c16", True),
    (TensorProto.BFLOAT16, ml_dtypes.bfloat16, False), (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn, False),
    (TensorProto.FLOAT8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz, False),
    (TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2, False),
    (TensorProto.FLOAT8E5M2FNUZ, ml_dtypes.float8_e5m2fnuz, False),
    (TensorProto.FLOAT8E8M0, ml_dtypes.float8_e8m0fnu, False), (TensorProto.FLOAT4E2M1, ml_dtypes.float4_e2m1fn, False),
    (TensorProto.UINT4, ml_dtypes.uint4, False), (TensorProto.INT4, ml_dtypes.int4, False),
    (TensorProto.UINT2, ml_dtypes.uint2, False), (TensorProto.INT2, ml_dtypes.int2, False),
    (TensorProto.FLOAT6E2M3, ml_dtypes.float6_e2m3fn, False), (TensorProto.FLOAT6E3M2, ml_dtypes.float6_e3m2fn, False),
]
BITS = {TensorProto.UINT4: 4, TensorProto.INT4: 4, TensorProto.UINT2: 2, TensorProto.INT2: 2,
        TensorProto.FLOAT4E2M1: 4, TensorProto.FLOAT6E2M3: 6, TensorProto.FLOAT6E3M2: 6}


def array_of(onnx_type, dtype, shape):
    """Every bit pattern there is, in some order, so that NaN and the ends of the range are among them."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    if dtype == bool:
        return (np.arange(count) % 3 == 0).reshape(shape)
    raw = np.random.default_rng(onnx_type).integers(0, 256, count * dtype.itemsize, dtype=np.uint8)
    if onnx_type in BITS:
        raw &= (1 << BITS[onnx_type]) - 1
    return raw.view(dtype).reshape(shape)


def npy_bytes(array, version=None):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=version)
    return stream.getvalue()


def canonical(array):
    """The .npy that dqrun writes: numpy's own, except that float8e5m2 is raw like its siblings."""
    return npy_bytes(np.ascontiguousarray(array).reshape(array.shape)).replace(b"'<f1'", b"'<V1'", 1)


def through(h, model, argument, expected):
    """Runs a model that changes nothing on an input and compares the member of the archive byte for byte."""
    h.expect([model, argument, "-o", "out.npz"])
    with zipfile.ZipFile(h.path("out.npz")) as archive:
        (member,) = archive.namelist()
        assert archive.infolist()[0].compress_type == zipfile.ZIP_STORED
        got = archive.read(member)
    assert got == canonical(expected), f"{got[:200]} expected {canonical(expected)[:200]}"


def save_npy(h, name, array, version=None):
    h.path(name).write_bytes(npy_bytes(array, version))
    return f"x={name}"


def every_type(h):
    for onnx_type, dtype, native in TYPES:
        name = TensorProto.DataType.Name(onnx_type).lower()
        model = f"{name}.onnx"
        array = array_of(onnx_type, dtype, (3, 5, 2))
        if BITS.get(onnx_type) == 6:  # Identity does not take these yet: an input that is the output
            save_model(h.path(model), [], [("x", onnx_type, ["A", "B", "C"])], [("x", onnx_type, ["A", "B", "C"])])
        else:
            save_identity(h.path(model), onnx_type, ["A", "B", "C"])
        h.case(f"{name}: .npy", lambda: through(h, model, save_npy(h, "a.npy", array), array))
        h.case(f"{name}: Fortran order", lambda: through(h, model, save_npy(h, "f.npy", np.asfortranarray(array)), array))
        if native:
            swapped = array.astype(array.dtype.newbyteorder(">"))
            h.case(f"{name}: big endian", lambda: through(h, model, save_npy(h, "b.npy", swapped), array))
        h.path("raw.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
        h.case(f"{name}: raw TensorProto", lambda: through(h, model, "x=raw.pb", array))
        h.path("typed.pb").write_bytes(typed(onnx_type, array).SerializeToString())
        h.case(f"{name}: typed TensorProto", lambda: through(h, model, "x=typed.pb", array))
        empty = array[:, :0]
        h.case(f"{name}: empty", lambda: through(h, model, save_npy(h, "e.npy", empty), empty))


def typed(onnx_type, array):
    """A TensorProto that keeps its elements in the field of its type, filled here without onnx's own packing."""
    tensor = TensorProto(data_type=onnx_type, dims=array.shape)
    flat = np.ascontiguousarray(array).reshape(-1)
    if onnx_type in (TensorProto.FLOAT, TensorProto.COMPLEX64):
        tensor.float_data.extend(flat.view("f4"))
    elif onnx_type in (TensorProto.DOUBLE, TensorProto.COMPLEX128):
        tensor.double_data.extend(flat.view("f8"))
    elif onnx_type == TensorProto.INT64:
        tensor.int64_data.extend(flat.tolist())
    elif onnx_type in (TensorProto.UINT32, TensorProto.UINT64):
        tensor.uint64_data.extend(flat.tolist())
    elif BITS.get(onnx_type) in (2, 4):
        bits = BITS[onnx_type]
        codes = flat.view("u1").astype(int)
        per = 8 // bits
        codes = np.append(codes, np.zeros(-len(codes) % per, int)).reshape(-1, per)
        tensor.int32_data.extend((codes << (np.arange(per) * bits)).sum(axis=1).tolist())
    elif flat.dtype.kind in "iub":
        tensor.int32_data.extend(flat.astype("i4").tolist())
    else:
        tensor.int32_data.extend(flat.view(f"u{flat.dtype.itemsize}").astype("i4").tolist())
    return tensor


def containers(h):
    save_identity(h.path("float.onnx"), TensorProto.FLOAT, None)
    array = np.arange(24, dtype="f4").reshape(2, 3, 4)
    for version in (1, 0), (2, 0), (3, 0):
        h.case(f".npy version {version[0]}",
               lambda: through(h, "float.onnx", save_npy(h, "v.npy", array, version), array))
    np.savez(h.path("stored.npz"), x=array)
    np.savez_compressed(h.path("deflated.npz"), x=array)
    np.savez(h.path("position.npz"), array)
    for name in "stored", "deflated", "position":
        h.case(f"{name} .npz", lambda: through(h, "float.onnx", f"{name}.npz", array))
    scalar = np.array(1.5, "f4")
    h.case("scalar", lambda: through(h, "float.onnx", save_npy(h, "s.npy", scalar), scalar))
    one = np.array([7], "f4")
    h.case("one element", lambda: through(h, "float.onnx", save_npy(h, "o.npy", one), one))
    with zipfile.ZipFile(h.path("notes.npz"), "w") as archive:
        archive.writestr("readme.txt", "not an array")
        archive.writestr("x.npy", npy_bytes(array))
    h.case("a member that is no array is left out", lambda: through(h, "float.onnx", "notes.npz", array))
    h.path("set").mkdir()
    h.path("set/input_0.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    h.case("test_data_set folder", lambda: through(h, "float.onnx", "set", array))
    header = "{\"shape\": (2L, 3,), 'fortran_order':False,'descr' : \"<f4\"}\n"
    old = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array[0, :2, :3].tobytes()
    h.path("python2.npy").write_bytes(old)
    h.case("header as other writers spell it",
           lambda: through(h, "float.onnx", "x=python2.npy", np.ascontiguousarray(array[0, :2, :3])))


def strings(h):
    save_identity(h.path("string.onnx"), TensorProto.STRING, None)
    plain = np.array([["ab", ""], ["grün", "日本🙂"]])
    h.case("U strings", lambda: through(h, "string.onnx", save_npy(h, "u.npy", plain), plain))
    big = plain.astype(plain.dtype.newbyteorder(">"))
    h.case("big-endian U strings", lambda: through(h, "string.onnx", save_npy(h, "ub.npy", big), plain))
    ascii_bytes = np.array([b"one", b"three"])
    h.case("S strings", lambda: through(h, "string.onnx", save_npy(h, "s8.npy", ascii_bytes),
                                        np.array(["one", "three"])))
    binary = np.array([b"\xff\xfe", b"a"])
    h.case("S strings that are not UTF-8", lambda: through(h, "string.onnx", save_npy(h, "bin.npy", binary), binary))
    empty = np.array(["", ""])
    h.case("empty strings", lambda: through(h, "string.onnx", save_npy(h, "es.npy", empty), empty))
    tensor = helper.make_tensor("", TensorProto.STRING, [2], [b"left", "für".encode()])
    h.path("string.pb").write_bytes(tensor.SerializeToString())
    h.case("strings in a TensorProto", lambda: through(h, "string.onnx", "x=string.pb", np.array(["left", "für"])))


def small_integers(h):
    for onnx_type, low, high in ((TensorProto.INT4, -8, 7), (TensorProto.UINT4, 0, 15), (TensorProto.INT2, -2, 1),
                                 (TensorProto.UINT2, 0, 3)):
        name = TensorProto.DataType.Name(onnx_type).lower()
        model = f"{name}.onnx"
        save_identity(h.path(model), onnx_type, ["N"])
        own = np.dtype(getattr(ml_dtypes, name))
        values = np.arange(low, high + 1)
        for dtype in "i1", "u1":
            fits = values[values >= 0] if dtype == "u1" else values
            argument = f"x={name}_{dtype}.npy"
            save_npy(h, argument[2:], fits.astype(dtype))
            h.case(f"{dtype} values for {name}", lambda: through(h, model, argument, fits.astype(own)))
        save_npy(h, "wide.npy", np.array([0, high + 1], "i1"))
        h.check(f"{name} out of range", [model, "x=wide.npy"], code=4,
                err=f"wide.npy: has the value {high + 1} as element 1, which is no {name}")
    save_npy(h, "wide.npy", np.array([0, -1], "i1"))
    h.check("a negative uint4", ["uint4.onnx", "x=wide.npy"], code=4,
            err="wide.npy: has the value -1 as element 1, which is no uint4")
    signed = b"".join(bytes([v & 0xFF]) for v in range(-8, 8))
    h.path("extended.npy").write_bytes(npy_bytes(np.frombuffer(signed, "V1")))
    h.case("raw int4 with its sign in the upper bits",
           lambda: through(h, "int4.onnx", "x=extended.npy", np.arange(-8, 8).astype(ml_dtypes.int4)))
    e5m2 = np.array([1, 2, 3], ml_dtypes.float8_e5m2)
    h.path("e5m2.npy").write_bytes(npy_bytes(e5m2).replace(b"<f1", b"<V1"))
    save_identity(h.path("e5m2.onnx"), TensorProto.FLOAT8E5M2, ["N"])
    h.case("float8e5m2 as raw elements", lambda: through(h, "e5m2.onnx", "x=e5m2.npy", e5m2))


def broken_npy(h):
    good = npy_bytes(np.zeros((2, 3), "f4"))
    save_identity(h.path("float.onnx"), TensorProto.FLOAT, None)
    expected = "and the model expects x: float of any shape"

    def bad(name, data, sentence, model="float.onnx"):
        h.path("bad.npy").write_bytes(data)
        h.check(name, [model, "x=bad.npy"], code=4, err=f"bad.npy: {sentence}")

    def headed(text):
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()

    keys = "has a .npy header that is not the keys descr, fortran_order and shape, once each"
    bad("empty file", b"", "is no .npy array: it has only 0 bytes")
    bad("other file", b"PK\x03\x04 and so on", "is no .npy array: it does not begin with \\x93NUMPY")
    bad("version 4", good[:6] + b"\x04" + good[7:], "has version 4 of .npy, expected 1 to 3")
    bad("cut data", good[:-1], "has 23 bytes of data, and its .npy header declares 24")
    bad("data left over", good + b"\0", "has 25 bytes of data, and its .npy header declares 24")
    bad("cut header", good[:40], "has a .npy header of 118 bytes, expected at most 30")
    bad("header of version 2 over its bound", b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 17) + b" " * (1 << 17),
        "has a .npy header of 131072 bytes, expected at most 65536")
    bad("no dict", headed("[1, 2]"), keys)
    bad("a key twice", headed("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}"), keys)
    bad("a key missing", headed("{'descr': '<f4', 'shape': ()}"), keys)
    bad("a key unknown", headed("{'descr': '<f4', 'fortran_order': False, 'shape': (), 'more': 1}"), keys)
    shape = "has a .npy header whose shape is no tuple of dimensions"
    bad("negative dimension", headed("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"), shape)
    bad("shape that is a number", headed("{'descr': '<f4', 'fortran_order': False, 'shape': (6)}"), shape)
    bad("dimension over 64 bits", headed("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"),
        shape)
    bad("size over 64 bits",
        headed("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4611686018427387904)}"),
        "has 0 bytes of data, and its .npy header declares more than 18446744073709551615")
    bad("rank 17", headed("{'descr': '<f4', 'fortran_order': False, 'shape': (%s)}" % ("1," * 17)),
        "has more than 16 dimensions")
    stream = io.BytesIO()
    np.save(stream, np.array([{}], object), allow_pickle=True)
    bad("pickled objects", stream.getvalue(), "holds pickled Python objects, expected numbers, bools or fixed strings")
    bad("structured", npy_bytes(np.zeros(2, [("a", "f4")])), "is a structured array, expected one of plain elements")
    bad("dates", npy_bytes(np.zeros(2, "M8[s]")), "has numpy type '<M8[s]', expected one that ONNX has")
    bad("long double", npy_bytes(np.zeros(2, "f16")), "has numpy type '<f16', expected one that ONNX has")
    bad("float64 for float", npy_bytes(np.zeros((2, 3))), f"the array is double[2,3], {expected}")
    bad("raw elements for float", npy_bytes(np.zeros(2, ml_dtypes.bfloat16)),
        f"the array is made of raw elements ('<V2'), {expected}")
    save_identity(h.path("bool.onnx"), TensorProto.BOOL, None)
    bad("a bool of 2", npy_bytes(np.array([0, 2], "u1").view("?")), "has the byte 2 as element 1, which is no bool",
        model="bool.onnx")
    save_identity(h.path("string.onnx"), TensorProto.STRING, None)
    bad("half a surrogate pair", npy_bytes(np.array([0xD800], "u4").view("U1")),
        "has U+D800 in string 0, which is no character", model="string.onnx")
    h.check("no such file", ["float.onnx", "x=none.npy"], code=4,
            err="none.npy: cannot be opened: No such file or directory")
    for name in "pipe.npy", "pipe.pb", "pipe.npz":
        os.mkfifo(h.path(name))
    h.check("a pipe as .npy", ["float.onnx", "x=pipe.npy"], code=4, err="pipe.npy: is not a regular file")
    h.check("a pipe as .pb", ["float.onnx", "x=pipe.pb"], code=4, err="pipe.pb: is not a regular file")
    h.check("a pipe as .npz", ["float.onnx", "pipe.npz"], code=4,
            err="pipe.npz: is not a regular file")
    h.path("folder.npy").mkdir()
    h.check("a folder named .npy", ["float.onnx", "x=folder.npy"], code=4, err="folder.npy: is not a regular file")


def broken_npz(h):
    array = npy_bytes(np.arange(600, dtype="f4"))
    save_identity(h.path("float.onnx"), TensorProto.FLOAT, None)

    def archive(name, members, method=zipfile.ZIP_STORED):
        import warnings
        with warnings.catch_warnings(), zipfile.ZipFile(h.path(name), "w", method) as z:
            warnings.simplefilter("ignore")
            for member, data in members:
                z.writestr(member, data)

    archive("twice.npz", [("x.npy", array), ("x.npy", array)])
    h.check("duplicate names", ["float.onnx", "twice.npz"], code=4, err="twice.npz: holds two arrays named 'x'")
    archive("none.npz", [("readme.txt", b"hello")])
    h.check("no arrays", ["float.onnx", "none.npz"], code=4, err="none.npz: holds no .npy array")
    archive("empty.npz", [])
    h.check("nothing at all", ["float.onnx", "empty.npz"], code=4, err="empty.npz: holds no .npy array")
    save_model(h.path("no_inputs.onnx"), [helper.make_node("Constant", [], ["y"], value_ints=[1, 2, 3])], [],
               [("y", TensorProto.INT64, [3])])
    np.savez(str(h.path("savez.npz")))
    for name in ("none.npz", "empty.npz", "savez.npz"):
        h.check(f"{name} for a model without inputs", ["no_inputs.onnx", name, "--quiet"], code=0)
        h.check(f"{name} with made-up inputs", ["float.onnx", name, "--random", "1"], code=4,
                err=f"{name}: holds no .npy array")
        h.check(f"{name} is nothing to compare with", ["no_inputs.onnx", "--expect", name], code=4,
                err=f"{name}: holds nothing for output 'y'")
    h.path("text.npz").write_text("this is no archive, whatever its name says\n")
    h.check("no archive", ["float.onnx", "text.npz"], code=4, err="text.npz: is no .npz archive: its zip directory is missing or damaged")
    h.check("no such archive", ["float.onnx", "absent.npz"], code=4,
            err="absent.npz: cannot be opened: No such file or directory")
    archive("inner.npz", [("x.npy", b"garbage that is no array")])
    h.check("a member that is no array", ["float.onnx", "inner.npz"], code=4,
            err="inner.npz: x: is no .npy array: it does not begin with \\x93NUMPY")
    archive("crc.npz", [("x.npy", array)])
    damaged = bytearray(h.path("crc.npz").read_bytes())
    damaged[1000] ^= 1
    h.path("crc.npz").write_bytes(damaged)
    h.check("a flipped bit", ["float.onnx", "crc.npz"], code=4, err="crc.npz: x: is damaged: its checksum differs")
    stored = bytearray(h.path("crc.npz").read_bytes())
    central = stored.rfind(b"PK\x01\x02")
    for what, local, entry, value, sentence in (
        ("an encrypted member", 6, 8, 1, "x: is encrypted"),
        ("a method that is rare", 8, 10, 14, "x: is packed by zip's method 14, expected 0 (stored) or 8 (deflated)"),
    ):
        changed = stored.copy()
        changed[local:local + 2] = changed[central + entry:central + entry + 2] = struct.pack("<H", value)
        h.path("changed.npz").write_bytes(changed)
        h.check(what, ["float.onnx", "changed.npz"], code=4, err="changed.npz: " + sentence)
    stored[central + 20:central + 28] = b"\xff" * 8
    h.path("changed.npz").write_bytes(stored)
    h.check("a size that stands elsewhere", ["float.onnx", "changed.npz"], code=4,
            err=re.compile("dqrun: changed.npz: x: is too large for this version of minizip, .*\n"))
    archive("cut.npz", [("x.npy", array)])
    h.path("cut.npz").write_bytes(h.path("cut.npz").read_bytes()[:1500])
    h.check("cut off", ["float.onnx", "cut.npz"], code=4, err="cut.npz: is no .npz archive: its zip directory is missing or damaged")
    bomb = npy_bytes(np.zeros(0, "f4")).replace(b"(0,)", b"(1073741824,)")
    bomb = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(bomb) - 10) + bomb[10:]
    archive("lying.npz", [("x.npy", bomb)], zipfile.ZIP_DEFLATED)
    h.check("a header that promises 4 GiB", ["float.onnx", "lying.npz"], code=4,
            err="lying.npz: x: has 0 bytes of data, and its .npy header declares 4294967296")
    archive("bomb.npz", [("x.npy", array)], zipfile.ZIP_DEFLATED)
    data = bytearray(h.path("bomb.npz").read_bytes())
    central = data.rfind(b"PK\x01\x02")
    data[central + 24:central + 28] = struct.pack("<I", 0xF0000000)
    h.path("bomb.npz").write_bytes(data)
    done = h.run(["float.onnx", "bomb.npz"])

    def refused():
        assert done.returncode == 4, done
        assert b"which its " in done.stderr and b"cannot unpack to" in done.stderr, done.stderr
    h.case("a size that the packed bytes cannot have", refused)
    zeros = npy_bytes(np.zeros(64 << 20, "u1"))
    archive("zeros.npz", [("x.npy", zeros)], zipfile.ZIP_DEFLATED)
    assert h.path("zeros.npz").stat().st_size < 1 << 17
    save_identity(h.path("bytes.onnx"), TensorProto.UINT8, None)
    h.check("a true bomb meets the limit before memory", ["bytes.onnx", "zeros.npz", "--limit", "tensor=1M"], code=6,
            err="bytes.onnx: node 0 (Identity-25): output 0 has shape [67108864] of uint8, over the limit of 1048576 bytes for "
            "one tensor")


def hostile_names(h):
    """Names that leave the folder, or that zip cannot hold, are names of values and never paths."""
    array = npy_bytes(np.arange(3, dtype="f4"))
    deep = h.path("deep")
    deep.mkdir()
    for name in "../escaped", "/tmp/dqrun-escaped", "a/../../escaped":
        model = helper.make_model(helper.make_graph(
            [helper.make_node("Identity", [name], ["out" + name])], "g",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3])],
            [helper.make_tensor_value_info("out" + name, TensorProto.FLOAT, [3])]),
            opset_imports=[helper.make_opsetid("", 21)])
        (deep / "m.onnx").write_bytes(model.SerializeToString())
        with zipfile.ZipFile(deep / "in.npz", "w") as z:
            z.writestr(name + ".npy", array)

        def stays_inside():
            before = sorted(h.folder.rglob("*"))
            done = h.run(["deep/m.onnx", "deep/in.npz", "-o", "deep/out.npz"])
            assert done.returncode == 0, done.stderr
            with zipfile.ZipFile(deep / "out.npz") as z:
                assert z.namelist() == ["out" + name + ".npy"], z.namelist()
            (deep / "out.npz").unlink()
            assert sorted(h.folder.rglob("*")) == before and not os.path.exists(name + ".npy")
        h.case(f"an array named {name}", stays_inside)
    save_identity(h.path("long.onnx"), TensorProto.FLOAT, [2])
    model = onnx.load(h.path("long.onnx"))
    model.graph.node[0].output[0] = model.graph.output[0].name = "y" * 70000
    onnx.save(model, h.path("long.onnx"))
    h.check("a name longer than zip holds", ["long.onnx", "--random", "1", "-o", "long.npz"], code=5,
            err="long.npz: an array's name has 70000 bytes, .npz holds at most 65531")


def lists(h):
    """Sequences and optionals in a test_data_set folder, through a model that changes nothing."""
    float_list = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    arrays = [np.array([1, 2], "f4"), np.array([[3]], "f4")]
    for folder, kind, message, items in (
        ("seq", float_list, numpy_helper.from_list(arrays), "2 items"),
        ("none", float_list, numpy_helper.from_list([], dtype=TensorProto.FLOAT), "0 items"),
        ("opt", helper.make_optional_type_proto(float_list), numpy_helper.from_optional(arrays), "1 item"),
    ):
        graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "test",
                                  [helper.make_value_info("x", kind)], [helper.make_value_info("y", kind)])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10),
                  h.path(f"{folder}.onnx"))
        h.path(folder).mkdir()
        h.path(f"{folder}/input_0.pb").write_bytes(message.SerializeToString())
        h.path(f"{folder}/output_0.pb").write_bytes(message.SerializeToString())
        h.check(f"{folder} through Identity", [f"{folder}.onnx", folder, "--expect", folder], out=f"y: equal ({items})\n")
    h.check("a table of a sequence", ["seq.onnx", "seq"],
            out=re.compile(r"output .*\ny       seq\(float\)  2 items .*\ny\[0\]    float       \[2\] .*\n"
                           r"y\[1\]    float       \[1,1\] .*\n"))
    other = numpy_helper.from_list([arrays[0], arrays[1] + 1]).SerializeToString()
    h.path("seq/output_0.pb").write_bytes(other)
    h.check("a sequence that differs", ["seq.onnx", "seq", "--expect", "seq"], code=1,
            out="y: item 1: 1 of 1 elements differ; the largest difference is 1, at [0,0]: got 3, expected 4\n")
    h.check("a sequence is no .npz", ["seq.onnx", "seq", "-o", "out.npz"], code=5,
            err="out.npz: output 'y' is a sequence or optional, and .npz files hold tensors only")
    h.path("seq/input_0.pb").write_bytes(other[:-1])
    h.check("a sequence cut short", ["seq.onnx", "seq"], code=4, err="seq/input_0.pb: is no SequenceProto: it cannot be parsed as one")


def broken_pb(h):
    save_identity(h.path("float.onnx"), TensorProto.FLOAT, None)
    good = helper.make_tensor("", TensorProto.FLOAT, [2, 3], range(6))

    def bad(name, data, sentence, code=4):
        h.path("bad.pb").write_bytes(data if isinstance(data, bytes) else data.SerializeToString())
        h.check(name, ["float.onnx", "x=bad.pb"], code=code, err=f"bad.pb: {sentence}")

    bad("random bytes", b"\xff\xfe\xfd\xfc\xfb", "is no TensorProto: its 5 bytes cannot be parsed as one")
    bad("empty TensorProto", b"", "has no element type, so that it is no TensorProto")
    bad("too little data", TensorProto(data_type=1, dims=[2, 3], float_data=[1, 2]),
        "has 2 float_data, expected 6 for float[2,3]")
    bad("too much raw data", TensorProto(data_type=1, dims=[1], raw_data=b"12345"),
        "has 5 bytes of raw_data, expected 4 for float[1]")
    bad("data in the wrong field", TensorProto(data_type=1, dims=[1], int64_data=[1]),
        "has int64_data, expected the data of float[1] in float_data alone")
    bad("unknown type", TensorProto(data_type=99, dims=[1], raw_data=b"1"), "has element type 99, expected 1 to 28")
    bad("negative dimension", TensorProto(data_type=1, dims=[-5]), "has dimension -5, expected 0 or more")
    bad("overflowing dimensions", TensorProto(data_type=1, dims=[1 << 40, 1 << 40]),
        "has type float[1099511627776,1099511627776], over the limit of 17179869184 bytes for one tensor", code=6)
    bad("an int8 of 200", TensorProto(data_type=TensorProto.INT8, dims=[1], int32_data=[200]),
        "entry 0 of int32_data is 200, which is no int8")
    external = TensorProto(data_type=1, dims=[1], data_location=TensorProto.EXTERNAL)
    external.external_data.add(key="location", value="elsewhere")
    bad("external data", external, "keeps its data in another file, expected them inside", code=5)
    good.segment.begin = 0
    bad("a segment", good, "holds a segment of a tensor or a sequence, expected a whole tensor", code=5)
    sequence = onnx.SequenceProto(name="x", elem_type=1, tensor_values=[helper.make_tensor("", 1, [1], [0])])
    bad("a sequence", sequence, "holds a segment of a tensor or a sequence, expected a whole tensor", code=5)


def run(h):
    every_type(h)
    containers(h)
    strings(h)
    small_integers(h)
    broken_npy(h)
    broken_npz(h)
    hostile_names(h)
    lists(h)
    broken_pb(h)
