/* SPDX-License-Identifier: Apache-2.0 */
/* Each pass of src/rewrite/passes.def alone: a graph, and what becomes of it (graph_text.h). */
#include "rewrite/graph_text.h"
#include "support/test_program.h"

#include "plan/rewrite_cache.h"

static const struct {
    const char *pass; /* the only one that runs, and those that it builds on, separated by commas */
    const char *graph, *expected;
} cases[] = {
    {"cse_quantize",
     "x float[4]\ns = float[] 0.5\nq0 = QuantizeLinear(x, s)\nq1 = QuantizeLinear(x, s)\n"
     "y0 = Identity(q0)\ny1 = Identity(q1)\n-> y0, y1\n",
     "q0 = QuantizeLinear(x, s)\ny0 = Identity(q0)\ny1 = Identity(q0)\n"},
    {"lower_half_lut",
     "x uint8[4]\ns = float16[] 0.5\nz = uint8[] 3\nd = DequantizeLinear(x, s, z)\nr = Sigmoid(d)\n"
     "y = QuantizeLinear(r, s, z)\n-> y\n",
     "y = dqrun.TableLookup(x, #uint8[256])\n"},
    {"promote_half",
     "x uint8[1,2,4,4]\ns = float16[] 0.5\nz = uint8[] 3\nd = DequantizeLinear(x, s, z)\n"
     "p = GlobalAveragePool(d)\ny = QuantizeLinear(p, s, z)\n-> y\n",
     "%1 = DequantizeLinear(x, #float[], z)\n%2 = GlobalAveragePool(%1)\ny = QuantizeLinear(%2, #float[], "
     "z)\n"},
    {"fold_quantization_params,lower_qdq_matmul",
     "x uint8[1,2]\nw = float[2,2] 1 2 3 4\ns = float[] 0.5\nz = uint8[] 0\nwq = QuantizeLinear(w, s, z)\n"
     "wd = DequantizeLinear(wq, s, z)\nd = DequantizeLinear(x, s, z)\nm = MatMul(d, wd)\ny = "
     "QuantizeLinear(m, s, z)\n-> y\n",
     "y = QLinearMatMul(x, s, z, #uint8[2,2], s, z, s, z)\n"},
    {"sink_dequantize_concat",
     "x uint8[1,2]\nv uint8[1,2]\nw = float[4,2] 1\ns = float[] 0.5\nz = uint8[] 0\na = DequantizeLinear(x, "
     "s, z)\n"
     "b = DequantizeLinear(v, s, z)\nc = Concat(a, b) axis=1\ny = MatMul(c, w)\n-> y\n",
     "%1 = Concat(x, v)\nc = DequantizeLinear(%1, s, z)\ny = MatMul(c, w)\n"},
    {"lower_qdq_matmul",
     "x uint8[1,2,3,3]\nw = int8[4,2,1,1] 1\ns = float[] 0.5\nz = uint8[] 0\nwd = DequantizeLinear(w, s)\n"
     "d = DequantizeLinear(x, s, z)\nc = Conv(d, wd)\nr = Relu(c)\ny = QuantizeLinear(r, s, z)\n-> y\n",
     "y = QLinearConv(x, s, z, w, s, #int8[], s, z)\n"},
    /* A caller reads the float result: it is computed as written. */
    {"lower_qdq_matmul",
     "x uint8[1,2,3,3]\nw = int8[4,2,1,1] 1\ns = float[] 0.5\nz = uint8[] 0\nwd = DequantizeLinear(w, s)\n"
     "d = DequantizeLinear(x, s, z)\nc = Conv(d, wd)\ny = QuantizeLinear(c, s, z)\nf = Relu(c)\n-> y, f\n",
     "c = dqrun.ConvIntegerToFloat(x, w, z, -, s, s)\ny = QuantizeLinear(c, s, z)\nf = Relu(c)\n"},
    {"sink_data_movement",
     "x uint8[2,3]\ns = float[] 0.5\nz = uint8[] 3\nd = DequantizeLinear(x, s, z)\nt = Transpose(d)\n"
     "y = QuantizeLinear(t, s, z)\n-> y\n",
     "%1 = Transpose(x)\ny = Identity(%1)\n"},
    {"lower_lut",
     "x uint8[4]\ns = float[] 0.5\nz = uint8[] 3\nd = DequantizeLinear(x, s, z)\nh = HardSigmoid(d)\nm = "
     "Mul(d, h)\n"
     "y = QuantizeLinear(m, s, z)\n-> y\n",
     "y = dqrun.TableLookup(x, #uint8[256])\n"},
    {"lower_qdq_elementwise",
     "x uint8[4]\nv uint8[4]\ns = float[] 0.5\nz = uint8[] 3\na = DequantizeLinear(x, s, z)\nb = "
     "DequantizeLinear(v, s, z)\n"
     "c = Add(a, b)\ny = QuantizeLinear(c, s, z)\n-> y\n",
     "y = dqrun.QLinearAdd(x, s, z, v, s, z, s, z)\n"},
    {"lower_qdq_tiled",
     "x uint8[1,2,8,8]\ns = float[] 0.5\nz = uint8[] 3\nd = DequantizeLinear(x, s, z)\nl = LRN(d) size=3\n"
     "y = QuantizeLinear(l, s, z)\n-> y\n",
     "y = dqrun.TiledQdq(x)\n"},
    {"lower_dynamic_matmul",
     "x float[1,2]\nw = uint8[2,2] 1\ns = float[] 0.5\nq, qs, qz = DynamicQuantizeLinear(x)\nm = "
     "MatMulInteger(q, w, qz)\n"
     "c = Cast(m) to=1\nb = Mul(qs, s)\ny = Mul(c, b)\n-> y\n",
     "y = com.microsoft.DynamicQuantizeMatMul(x, w, s)\n"},
    {"lower_dynamic_conv",
     "x float[1,2,3,3]\nw = uint8[4,2,1,1] 1\ns = float[] 0.5\nq, qs, qz = DynamicQuantizeLinear(x)\nm = "
     "ConvInteger(q, w, qz)\n"
     "c = Cast(m) to=1\nb = Mul(qs, s)\ny = Mul(c, b)\n-> y\n",
     "y = dqrun.ConvIntegerToFloat(x, w, -, -, -, s)\n"},
    {"fold_conv_epilogue", "x float[1,2,3,3]\nw = float[4,2,1,1] 1\nc = Conv(x, w)\ny = Relu(c)\n-> y\n",
     "y = com.microsoft.FusedConv(x, w)\n"},
    {"lower_weight_only",
     "x float[1,256]\nw = uint8[256,256] 1\ns = float[] 0.5\nd = DequantizeLinear(w, s)\ny = MatMul(x, "
     "d)\n-> "
     "y\n",
     "y = dqrun.DequantizeMatMul(x, w, s)\n"},
    {"fold_transpose", "x float[3,4]\nv float[5,4]\nt = Transpose(v) perm=1,0\ny = MatMul(x, t)\n-> y\n",
     "y = com.microsoft.FusedMatMul(x, v)\n"},
    {"match_layer_norm",
     "x float[2,4]\ng = float[4] 1\naxes = int64[1] -1\ntwo = float[] 2\ne = float[] 0.00001\nm = "
     "ReduceMean(x, axes)\n"
     "d = Sub(x, m)\np = Pow(d, two)\nv = ReduceMean(p, axes)\na = Add(v, e)\nr = Sqrt(a)\nn = Div(d, r)\ny "
     "= Mul(n, g)\n-> y\n",
     "y = LayerNormalization(x, g)\n"},
    {"lower_qlinear_lut",
     "x uint8[4]\ns = float[] 0.5\nz = uint8[] 3\na = com.microsoft.QLinearSigmoid(x, s, z, s, z)\n"
     "y = com.microsoft.QLinearMul(x, s, z, a, s, z, s, z)\n-> y\n",
     "y = dqrun.TableLookup(x, #uint8[256])\n"},
    {"fuse_elementwise", "x float[4]\nv float[4]\na = Add(x, v)\ny = Sigmoid(a)\n-> y\n",
     "y = dqrun.Elementwise(x, v)\n"},
    {"assign_layout_nhwc",
     "x uint8[1,64,8,8]\ns = float[] 0.5\nz = uint8[] 0\nw = uint8[64,64,1,1] 1\na = QLinearConv(x, s, z, w, "
     "s, z, s, z)\n"
     "b = MaxPool(a) kernel_shape=2,2\ny = QLinearConv(b, s, z, w, s, z, s, z)\n-> y\n",
     "%1 = dqrun.QLinearConv(x, s, z, w, s, z, s, z)\n%2 = com.microsoft.NhwcMaxPool(%1)\n"
     "y = dqrun.QLinearConv(%2, s, z, w, s, z, s, z)\n"},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static bool is_named(const char *names, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = names; (at = strstr(at, name)); at += length)
        if ((at == names || at[-1] == ',') && (at[length] == 0 || at[length] == ','))
            return true;
    return false;
}

static dq_pass_set all_but(const char *names)
{
    dq_pass_set disabled = 0;
    for (size_t i = 0; dq_pass_get(i); i++)
        if (!is_named(names, dq_pass_get(i)->name))
            disabled |= (dq_pass_set)1 << i;
    return disabled;
}

static void rewrite(dq_pass_set disabled, text_out *out)
{
    const dq_rewritten_graph *rewritten;
    const dq_plan_request request = {.graph = g,
                                     .requested = (const dq_value *const *)g->outputs,
                                     .requested_count = g->output_count,
                                     .kernels = &kernels,
                                     .disabled_passes = disabled};
    ck_assert_int_eq(dq_program_create(ir, schemas, NULL, &program, &err), DQ_OK);
    ck_assert_msg(program->fault_count == 0, "%s", program->faults ? program->faults[0].message : "");
    ck_assert_msg(dq_program_rewrite(program, &request, &rewritten, &err) == DQ_OK, "%s", err.message);
    nodes_to_text(rewritten->nodes.nodes, rewritten->nodes.node_count,
                  ir->value_count + rewritten->nodes.value_count, out);
}

START_TEST(a_pass_makes_of_a_graph)
{
    static text_out out;
    out = (text_out){.length = 0};
    graph_from_text(cases[_i].graph);
    rewrite(all_but(cases[_i].pass), &out);
    ck_assert_msg(strcmp(out.text, cases[_i].expected) == 0, "%s:\n%s\nexpected\n%s", cases[_i].pass,
                  out.text, cases[_i].expected);
}
END_TEST

/* Without its pass, each graph stays as written (one of kind MODEL has run before). */
START_TEST(a_disabled_pass_does_nothing)
{
    static text_out out, written;
    out = written = (text_out){.length = 0};
    graph_from_text(cases[_i].graph);
    rewrite(~(dq_pass_set)0, &out);
    nodes_to_text(g->nodes, g->node_count, ir->value_count, &written);
    ck_assert_str_eq(out.text, written.text);
}
END_TEST

START_TEST(each_pass_has_a_case)
{
    for (size_t i = 0; dq_pass_get(i); i++) {
        bool found = false;
        for (size_t k = 0; k < CASES; k++)
            found = found || is_named(cases[k].pass, dq_pass_get(i)->name);
        ck_assert_msg(found, "pass %s has no case", dq_pass_get(i)->name);
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("passes", set_up, tear_down);
    add_loop_test(&tests, a_pass_makes_of_a_graph, 0, CASES);
    add_loop_test(&tests, a_disabled_pass_does_nothing, 0, CASES);
    add_test(&tests, each_pass_has_a_case);
    return test_program_run(&tests);
}
