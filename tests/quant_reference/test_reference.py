# SPDX-License-Identifier: Apache-2.0
"""Checks of the reference itself: against the definitions written slowly, and against other implementations where
those follow the text (docs/conformance.md lists where they do not).

    python test_reference.py

The last line is "N passed, N failed, N skipped".
"""

import sys
import traceback
import warnings
from fractions import Fraction

import ml_dtypes
import numpy as np
import onnx
import onnx.checker
import onnx.defs
import onnx.numpy_helper
import onnx.reference
import onnxruntime

import cases
import formats
import generate
import operators
import proto
import types_of
from formats import FLOAT8, TINY, TYPES, Tensor

ML_DTYPES = {
    "bfloat16": ml_dtypes.bfloat16, "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "float8e8m0": ml_dtypes.float8_e8m0fnu,
    "float4e2m1": ml_dtypes.float4_e2m1fn, "float6e2m3": ml_dtypes.float6_e2m3fn,
    "float6e3m2": ml_dtypes.float6_e3m2fn, "float16": np.float16,
}


def same(got, want):
    """Equal numbers, NaN like NaN, and zeros of the same sign."""
    return (got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)


# ---- formats -------------------------------------------------------------------------------------------------------

def test_tables_agree_with_ml_dtypes():
    for name, dtype in ML_DTYPES.items():
        row = TYPES[name]
        theirs = np.arange(1 << row.bits, dtype=row.dtype).view(dtype).astype(np.float64)
        assert same(formats.table(row), theirs).all(), name


def test_encode_is_the_nearest_value_ties_to_even():
    rng = np.random.default_rng(1)
    for name in [*FLOAT8, *TINY]:
        row = TYPES[name]
        values = [(formats.exact_value(row, c), c) for c in range(1 << row.bits)]
        finite = [(v, c) for v, c in values if isinstance(v, Fraction) and (v != 0 or c == 0)]
        top = max(v for v, _ in finite)
        for x in np.concatenate([rng.normal(0, 2.0, 60), rng.integers(-40, 40, 60) / 16, [0.0]]):
            x = min(max(x, -float(top)), float(top))
            near = min(abs(v - Fraction(x)) for v, _ in finite)
            best = [(v, c) for v, c in finite if abs(v - Fraction(x)) == near]
            want = best[0] if len(best) == 1 else next(b for b in best if b[1] % 2 == 0)
            got = formats.decode(formats.floats(name, x))
            assert got == float(want[0]), (name, x, got, want)


def test_encode_agrees_with_ml_dtypes_from_float():
    rng = np.random.default_rng(2)
    x = rng.integers(0, 1 << 32, 200_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = np.concatenate([x, rng.normal(0, 30, 100_000).astype(np.float32)])
    x = x[~np.isnan(x)]
    for name, dtype in ML_DTYPES.items():
        if name == "float8e8m0":
            continue  # it has rounding modes of its own
        with np.errstate(over="ignore"):
            theirs = x.astype(dtype).astype(np.float64)
        ours = formats.decode(formats.floats(name, x.astype(np.float64), saturate=False))
        assert same(ours, theirs).all(), (name, x[~same(ours, theirs)][:3])


def test_encode_of_float_agrees_with_the_processor():
    rng = np.random.default_rng(3)
    x = rng.integers(0, 1 << 63, 200_000, dtype=np.uint64).view(np.float64)
    x = np.concatenate([x, rng.normal(0, 1e-38, 100_000), rng.normal(0, 1e38, 100_000)])
    with np.errstate(all="ignore"):
        assert same(formats.decode(formats.floats("float", x)), x.astype(np.float32).astype(np.float64)).all()


def test_saturation_tables():
    top = {"float8e4m3fn": 448.0, "float8e4m3fnuz": 240.0, "float8e5m2": 57344.0, "float8e5m2fnuz": 57344.0}
    nan = float("nan")
    beyond = {"float8e4m3fn": nan, "float8e4m3fnuz": nan, "float8e5m2": np.inf, "float8e5m2fnuz": nan}
    half = {"float8e4m3fn": 464.0, "float8e4m3fnuz": 248.0, "float8e5m2": 61440.0, "float8e5m2fnuz": 61440.0}
    for name in FLOAT8:
        def value(x, **how):
            return formats.decode(formats.floats(name, np.array(x), **how))
        assert value(1e9) == top[name] and value(-np.inf) == -top[name] and np.isnan(value(nan)), name
        for x in (np.inf, 1e9, half[name] * 1.0001):
            assert same(value(x, saturate=False), np.float64(beyond[name])), (name, x)
        assert same(value(half[name], saturate=False), np.float64(top[name] if name == "float8e4m3fn" else beyond[name]))
        assert value(half[name] * 0.9999, saturate=False) == top[name]
        assert np.isnan(value(np.inf, infinite="nan")) == name.endswith("fnuz")


def test_odd_rounding_of_large_integers():
    rng = np.random.default_rng(4)
    x = rng.integers(-2**63, 2**63 - 1, 2000, dtype=np.int64)
    x[:6] = [2**63 - 1, -2**63, (1 << 62) + 1, (1 << 60) + (1 << 36), (1 << 60) + (1 << 36) + 1, (1 << 61) - 1]
    ours = formats.decode(formats.floats("float", formats.odd(x)))
    want = [float(np.float32(v)) for v in x]  # numpy rounds an int64 to float32 once
    assert (ours == want).all()
    unsigned = x.view(np.uint64)
    assert (formats.decode(formats.floats("float", formats.odd(unsigned))) == unsigned.astype(np.float32)).all()


def test_e8m0_rounding():
    def code(x, saturate, mode):
        return int(formats.encode_e8m0(np.array(float(x)), saturate, mode))
    assert [code(1.5, True, m) for m in ("up", "down", "nearest")] == [128, 127, 128]
    assert [code(1.25, True, m) for m in ("up", "down", "nearest")] == [128, 127, 127]
    assert [code(2.0**-127, True, m) for m in ("up", "down", "nearest")] == [0, 0, 0]
    assert code(0, True, "up") == 0 and code(np.inf, True, "up") == 254 and code(1e300, True, "up") == 254
    assert [code(x, False, "nearest") for x in (0, np.inf, 1e300, 1e-300, np.nan)] == [255] * 5


def test_packing_is_that_of_onnx():
    rng = np.random.default_rng(5)
    for name, row in TYPES.items():
        if row.kind == "string":
            continue
        for shape in [(), (1,), (3,), (5,), (2, 4), (0,)]:
            codes = rng.integers(0, 1 << min(row.bits, 62) if row.kind != "bool" else 2, shape)
            value = Tensor(name, formats.wrap(codes, name) if row.kind in ("int", "uint") else codes)
            array = onnx.numpy_helper.to_array(onnx.TensorProto.FromString(proto.tensor(value)))
            assert array.shape == shape and same_codes(array, value), (name, shape)


def same_codes(array, tensor):
    row = tensor.type
    if row.kind == "string":
        return [str(v) for v in array.reshape(-1)] == list(tensor.codes.reshape(-1))
    if row.kind in ("int", "uint") and row.bits < 8:
        return (array.astype(np.int64) == tensor.codes).all()
    return (np.asarray(array).view(row.dtype) == tensor.codes).all()


# ---- what the schemas allow ----------------------------------------------------------------------------------------

def allowed(name, version):
    schema = onnx.defs.get_schema(name, version, "")
    assert schema.since_version == version, f"{name} has no version {version}"
    return {c.type_param_str: {t[len("tensor("):-1] for t in c.allowed_type_strs} for c in schema.type_constraints}


def versions(name):
    found = {s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.name == name and s.domain == ""}
    return {v for v in found if v >= 10 or v == max((u for u in found if u <= 10), default=0)}


def test_types_and_versions_are_those_of_the_schemas():
    tables = {"QuantizeLinear": types_of.QUANTIZE, "DequantizeLinear": types_of.DEQUANTIZE, "Cast": types_of.CAST,
              "CastLike": types_of.CAST_LIKE, "MatMulInteger": types_of.MATMUL_INTEGER,
              "ConvInteger": types_of.CONV_INTEGER, "QLinearConv": types_of.QLINEAR_CONV,
              "QLinearMatMul": types_of.QLINEAR_MATMUL}
    for name, table in tables.items():
        assert set(table) == versions(name) == set(cases.LAST_OPSET[name]), (name, versions(name))
    for version, types in types_of.CAST.items():
        assert allowed("Cast", version) == {"T1": set(types), "T2": set(types)}, version
    for version, types in types_of.CAST_LIKE.items():
        assert allowed("CastLike", version) == {"T1": set(types), "T2": set(types)}, version
    for version, (x, scale, y) in types_of.QUANTIZE.items():
        want = allowed("QuantizeLinear", version)
        ours = [set(x), set(scale), set(y)] if "T3" in want else [set(x), set(y)]
        assert list(want.values()) == ours, version
    for version, (x, scale, y) in types_of.DEQUANTIZE.items():
        want = allowed("DequantizeLinear", version)
        ours = [set(x)] + ([set(scale)] if "T2" in want else []) + ([set(y)] if "T3" in want else [])
        assert list(want.values()) == ours, version
    for version, (types, scales) in types_of.QLINEAR_MATMUL.items():
        want = allowed("QLinearMatMul", version)
        assert want["T1"] == want["T2"] == want["T3"] == set(types) and want.get("TS", {"float"}) == set(scales)


def test_models_pass_the_checker():
    for spec in generate.specs(sample=600, seed=5):
        case = cases.build(spec, 0)
        onnx.checker.check_model(onnx.load_from_string(proto.model(case)), full_check=True)


def test_cases_do_not_depend_on_the_sample():
    some = generate.specs(["Cast"], 5, 3)
    for spec in some:
        whole = next(s for s in generate.specs(["Cast"]) if s.name == spec.name)
        assert proto.model(cases.build(spec, 9)) == proto.model(cases.build(whole, 9))
        assert cases.build(spec, 9).outputs[0][1].codes.tolist() == cases.build(whole, 9).outputs[0][1].codes.tolist()


# ---- the formula of requantizing, in rationals ---------------------------------------------------------------------

def test_requantizing_is_the_real_formula():
    rng = np.random.default_rng(6)
    zero = Tensor("int8", np.int8(3))
    checked = 0
    for _ in range(3000):
        sa, sb, sy = (float(np.float32(v)) for v in np.exp(rng.uniform(-5, 1, 3)))
        s = int(rng.integers(-300, 300) * sy / (sa * sb))
        if rng.random() < 0.5:  # a tie: s * 1 / sy is (2k + 1) / 2
            sa, sb, s = 1.0, 1.0, int(rng.integers(1, 1000)) * int(2 * rng.integers(0, 100) + 1)
            sy = float(2 * rng.integers(1, 500))
        real = Fraction(s) * Fraction(sa) * Fraction(sb) / Fraction(sy)
        want = min(max(round(real) + 3, -128), 127)  # round: ties to even
        got = operators.requantize(np.float64(s), sa, sb, sy, zero).codes
        assert got == want, (s, sa, sb, sy)
        checked += 1
    assert checked == 3000


def test_near_ties_are_near():
    for s, sa, sb, sy in cases.NEAR_TIES:
        off = Fraction(s) * Fraction(sa) * Fraction(sb) / Fraction(sy) % 1 - Fraction(1, 2)
        assert 0 < abs(off) < Fraction(1, 2**57), (s, sa, sb, sy)
        assert all(float(np.float32(v)) == v for v in (sa, sb, sy)) and s < 2**31


# ---- other implementations -----------------------------------------------------------------------------------------

def inputs_of(case):
    return {n: onnx.numpy_helper.to_array(onnx.TensorProto.FromString(proto.tensor(v, n)))
            for n, v, constant in case.inputs if v is not None and not constant}


def compare(case, outputs, what):
    for (_, want), got in zip(case.outputs, outputs):
        assert got.shape == want.shape, (what, got.shape, want.shape)
        if want.type.kind == "float":
            ours, theirs = formats.decode(want), formats.decode(Tensor(want.type.name, got.view(want.type.dtype)))
            assert ((ours == theirs) | np.isnan(ours) & np.isnan(theirs)).all(), (what, ours, theirs)
        else:
            assert same_codes(got, want), (what, got.tolist(), want.codes.tolist())


def inputs_named(case, name):
    return next((v for n, v, _ in case.inputs if n == name), None)


def evaluator_is_right(case):
    """Whether onnx.reference follows the text in this case."""
    x = case.inputs[0][1]
    y = case.outputs[0][1]
    if case.op == "QuantizeLinear":
        scale, zero = inputs_named(case, "y_scale"), inputs_named(case, "y_zero_point")
        if y.type.kind == "float" or "precision" in case.attributes or scale.type.name != "float" or x.type.name != "float":
            return False
        v = formats.decode(x)
        return not np.isinf(v).any() and not (np.abs(np.nan_to_num(v)) > 1e6).any() and not np.isnan(v).any() and (
            zero is None or zero.codes.size == 1)
    if case.op == "DequantizeLinear":
        zero = inputs_named(case, "x_zero_point")
        scale = inputs_named(case, "x_scale")  # a float product, rounded again to y's type: twice, if inexact
        product_fits = y.type.bits == 32 or x.type.bits <= 8 and scale.type.bits <= 16
        return case.opset >= 19 and product_fits and (zero is None or TYPES[zero.type.name].kind != "float")
    if case.op in ("MatMulInteger", "QLinearMatMul"):
        row = inputs_named(case, "a_zero_point")
        if row is not None and row.shape not in ((), (1,)) and len(row.shape) == 1:
            return False
        return case.op == "MatMulInteger"
    if case.op in ("ConvInteger", "QLinearConv"):
        zero = inputs_named(case, "w_zero_point")
        return case.op == "ConvInteger" and len(x.shape) == 4 and (zero is None or zero.shape == ())
    if case.op in ("Cast", "CastLike"):
        return (x.type.kind != "string" and y.type.kind != "string" and y.type.name != "float8e8m0"
                and (x.type.bits >= 8 and y.type.bits >= 8 or {x.type.name, y.type.name} & {"float", "int16"})
                and x.type.name not in ("float8e8m0", "double", "int64", "uint64", "int32", "uint32") and case.opset >= 24 and (case.op == "Cast" or "round_mode" not in case.attributes))
    return True


def test_agrees_with_the_reference_evaluator():
    compared = 0
    for spec in [s for op in generate.OPERATORS for s in generate.specs([op], 450, 7)]:
        case = cases.build(spec, 0)
        if evaluator_is_right(case):
            model = onnx.load_from_string(proto.model(case))
            compare(case, onnx.reference.ReferenceEvaluator(model).run(None, inputs_of(case)), spec.name)
            compared += 1
    assert compared > 800, compared


def runtime_is_right(case):
    """Whether ONNX Runtime takes this case and follows the text. 8-bit sums are right where no pair overflows."""
    plain = {"float", "double", "int8", "uint8", "int16", "uint16", "int32", "int64", "uint32", "uint64", "bool"}
    values = [v for _, v, _ in case.inputs if v is not None] + [v for _, v in case.outputs]
    if case.opset > 24 or "block_size" in case.attributes or any(v.type.name not in plain for v in values):
        return False
    x, y = case.inputs[0][1], case.outputs[0][1]
    if case.op == "QuantizeLinear":
        return x.type.name == "float" and inputs_named(case, "y_scale").type.name == "float" and (
            case.attributes.get("precision", 1) == 1)
    if case.op == "MatMulInteger":
        zero = inputs_named(case, "a_zero_point")
        return x.type.name == case.inputs[1][1].type.name and x.shape[-1:] != (0,) and (
            zero is None or zero.shape == ())
    if case.op in ("QLinearMatMul", "QLinearConv", "ConvInteger"):
        return False
    return True


def test_agrees_with_onnx_runtime():
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    compared = 0
    some = ["QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "Cast"]
    for spec in [s for op in some for s in generate.specs([op], 2000, 8)]:
        case = cases.build(spec, 0)
        if runtime_is_right(case):
            session = onnxruntime.InferenceSession(proto.model(case), options)
            compare(case, session.run(None, inputs_of(case)), spec.name)
            compared += 1
    assert compared > 800, compared


def main():
    warnings.simplefilter("ignore")
    passed, failed = 0, 0
    for name, test in sorted(globals().items()):
        if name.startswith("test_"):
            try:
                test()
                passed += 1
            except Exception:
                failed += 1
                print(f"FAILED {name}\n{traceback.format_exc(limit=3)}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
