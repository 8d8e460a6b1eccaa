/* SPDX-License-Identifier: Apache-2.0 */
/* src/rewrite/assign_layout_nhwc.c: which regions of quantized values become channels-last, and which
 * transposes stand at their ends. tests/fusion/layout.py checks the results of such graphs. */
#include "base/cpu.h"
#include "plan/rewrite_cache.h"
#include "planned.h"
#include "support/test_program.h"

#include <stdio.h>
#include <string.h>

static const char microsoft[] = "com.microsoft";

enum { CONSTANTS = 16 };
/* Levels at which a convolution of 1×1 costs less from planes, and from pixels. */
enum { PLANES = DQ_ISA_C | DQ_ISA_AVX2, PIXELS = DQ_ISA_C };
static dq_tensor constants[CONSTANTS];
static char weight_names[CONSTANTS][8];
static unsigned constant_count;
static dq_conv_nc4hw4_s8 nc4hw4;

static void constant(const char *name, dq_dtype dtype, size_t rank, const int64_t *dims, void *data)
{
    ck_assert_uint_lt(constant_count, CONSTANTS);
    dq_tensor *t = &constants[constant_count++];
    *t = (dq_tensor){.data = data};
    ck_assert_int_eq(dq_tensor_set_shape(t, dtype, rank, dims, 0, DQ_BAD_MODEL, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_initializer(g, name, t, &err), DQ_OK);
}

/* Codes `x`, their scale and zero point, and those of weights. */
static void begin_codes(void)
{
    static float scale = 0.5f;
    static uint8_t zero = 3;
    static int8_t none = 0;
    dq_type type = {.dtype = DQ_UINT8};
    set_up();
    nc4hw4 = *kernels.conv_nc4hw4_s8;
    kernels.conv_nc4hw4_s8 = &nc4hw4;
    kernels.isa = PLANES;
    nc4hw4.nhwc = true;
    constant_count = 0;
    ck_assert_int_eq(dq_graph_add_input(g, "x", &type, &err), DQ_OK);
    constant("s", DQ_FLOAT, 0, NULL, &scale);
    constant("z", DQ_UINT8, 0, NULL, &zero);
    constant("n", DQ_INT8, 0, NULL, &none);
}

static dq_attr whole(const char *name, int64_t value)
{
    return (dq_attr){.name = name, .kind = DQ_ATTR_INT, .u.i = value};
}

static dq_attr pair(const char *name, const int64_t *values)
{
    return (dq_attr){.name = name, .kind = DQ_ATTR_INTS, .count = 2, .u.ints = values};
}

/* A convolution of 1×1; its weights are named after its result. */
static void conv(const char *from, const char *to, int64_t in, int64_t out, int64_t group)
{
    static int8_t weights[1 << 16];
    char *w = weight_names[constant_count % CONSTANTS];
    ck_assert_int_le(in / group * out, (int64_t)sizeof weights);
    snprintf(w, sizeof weight_names[0], "w%s", to);
    constant(w, DQ_INT8, 4, (int64_t[]){out, in / group, 1, 1}, weights);
    dq_node *n =
        add("", "QLinearConv", (const char *const[]){from, "s", "z", w, "s", "n", "s", "z", NULL}, to, 1);
    n->attrs[0] = whole("group", group);
}

static void max_pool(const char *from, const char *to, bool stride)
{
    static const int64_t two[] = {2, 2}, one[] = {1, 1};
    dq_node *n = add("", "MaxPool", (const char *const[]){from, NULL}, to, 2);
    n->attrs[0] = pair("kernel_shape", two);
    n->attrs[1] = pair("strides", stride ? two : one);
}

static void expected(const char *name)
{
    ck_assert_int_eq(dq_graph_add_output(g, name, NULL, &err), DQ_OK);
}

static const dq_rewritten_graph *fused;

static const dq_plan_request *request(void)
{
    static dq_plan_request all;
    all = (dq_plan_request){.graph = g,
                            .requested = (const dq_value *const *)g->outputs,
                            .requested_count = g->output_count,
                            .kernels = &kernels};
    return &all;
}

/* The operators of the new list, each after a blank. */
static const char *list(void)
{
    static char names[512];
    size_t at = 0;
    ck_assert_int_eq(dq_graph_link(g, &err), DQ_OK);
    ck_assert_int_eq(dq_program_create(ir, schemas, NULL, &program, &err), DQ_OK);
    ck_assert_msg(program->fault_count == 0, "%s", program->faults ? program->faults[0].message : "");
    ck_assert_int_eq(dq_program_rewrite(program, request(), &fused, &err), DQ_OK);
    names[0] = 0;
    for (uint32_t i = 0; i < fused->nodes.node_count; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, " %s", fused->nodes.nodes[i]->op_type);
    return names;
}

static int64_t flag_of(uint32_t i, const char *name)
{
    return dq_node_int(fused->nodes.nodes[i], name, -1);
}

static void check_turn(uint32_t i, const int64_t order[4])
{
    size_t count;
    const int64_t *perm = dq_node_ints(fused->nodes.nodes[i], "perm", &count);
    ck_assert_uint_eq(count, 4);
    ck_assert_mem_eq(perm, order, 4 * sizeof *order);
}

static const int64_t to_last[] = {0, 2, 3, 1}, to_first[] = {0, 3, 1, 2};

/* ---- Whether it pays ---------------------------------------------------------------------------------- */

START_TEST(a_pool_between_convolutions_needs_no_transpose)
{
    conv("x", "a", 4, 8, 1);
    max_pool("a", "b", false);
    conv("b", "y", 8, 4, 1);
    expected("y");
    ck_assert_str_eq(list(), " QLinearConv NhwcMaxPool QLinearConv");
    ck_assert_str_eq(fused->nodes.nodes[0]->domain, "dqrun");
    ck_assert_int_eq(flag_of(0, "x_channels_last"), 0);
    ck_assert_int_eq(flag_of(0, "y_channels_last"), 1);
    ck_assert_int_eq(flag_of(2, "x_channels_last"), 1);
    ck_assert_int_eq(flag_of(2, "y_channels_last"), 0);
    ck_assert_ptr_eq(fused->nodes.nodes[2]->out[0], g->outputs[0]);
    ck_assert_uint_eq(fused->nodes.value_count, 2);
}
END_TEST

/* Of windows that lie apart, only wide images repay what a convolution takes longer. */
START_TEST(windows_apart_want_many_channels)
{
    int64_t channels = _i ? 256 : 255;
    conv("x", "a", 4, channels, 1);
    max_pool("a", "b", true);
    conv("b", "y", channels, 4, 1);
    expected("y");
    ck_assert_str_eq(list(),
                     _i ? " QLinearConv NhwcMaxPool QLinearConv" : " QLinearConv MaxPool QLinearConv");
    ck_assert_str_eq(fused->nodes.nodes[0]->domain, _i ? "dqrun" : "");
}
END_TEST

/* Wanted by the caller as well, they do not. */
START_TEST(a_transpose_may_cost_too_much)
{
    conv("x", "a", 4, 256, 1);
    max_pool("a", "b", true);
    conv("b", "y", 256, 4, 1);
    expected("y");
    expected("b");
    ck_assert_str_eq(list(), " QLinearConv MaxPool QLinearConv");
    ck_assert_uint_eq(fused->nodes.value_count, 0);
}
END_TEST

/* Kernels that make pixels of planes for a convolution gain by every one that finds them made. */
START_TEST(between_convolutions_that_turn_planes)
{
    kernels.isa = _i ? PIXELS : PLANES;
    conv("x", "a", 4, 8, 1);
    conv("a", "b", 8, 8, 1);
    conv("a", "c", 8, 4, 1);
    add(microsoft, "QLinearConcat", (const char *const[]){"s", "z", "b", "s", "z", "c", "s", "z", NULL}, "d",
        1)
        ->attrs[0] = whole("axis", 1);
    conv("d", "y", 12, 4, 1);
    expected("y");
    ck_assert_str_eq(list(), " QLinearConv QLinearConv QLinearConv QLinearConcat QLinearConv");
    ck_assert_str_eq(fused->nodes.nodes[0]->domain, _i ? "dqrun" : "");
    if (!_i)
        return;
    ck_assert_int_eq(flag_of(0, "x_channels_last"), 0);
    ck_assert_int_eq(flag_of(0, "y_channels_last"), 1);
    for (uint32_t i = 1; i < 3; i++) { /* a concatenation of pixels costs more than its one reader gains */
        ck_assert_int_eq(flag_of(i, "x_channels_last"), 1);
        ck_assert_int_eq(flag_of(i, "y_channels_last"), 0);
    }
    ck_assert_str_eq(fused->nodes.nodes[4]->domain, "");
}
END_TEST

/* Some kernels take planes of a few channels, of groups more, than which pixels are better. */
START_TEST(between_convolutions_of_some_channels)
{
    const int64_t channels = _i < 2 ? 8 : 64;
    const bool turned = _i == 1 || _i == 3;
    nc4hw4.nhwc = false;
    nc4hw4.deepest = turned ? 31 : 32;
    conv("x", "a", 64, channels, 1);
    conv("a", "y", channels, 4, channels == 8 ? 1 : 2);
    expected("y");
    (void)list();
    ck_assert_str_eq(fused->nodes.nodes[0]->domain, turned ? "dqrun" : "");
}
END_TEST

/* What one session's kernels like is not given to another's. */
START_TEST(each_kind_of_kernels_has_its_list)
{
    conv("x", "a", 4, 8, 1);
    conv("a", "y", 8, 4, 1);
    expected("y");
    (void)list();
    const dq_rewritten_graph *planes = fused, *pixels, *again;
    kernels.isa = PIXELS;
    ck_assert_int_eq(dq_program_rewrite(program, request(), &pixels, &err), DQ_OK);
    ck_assert_int_eq(dq_program_rewrite(program, request(), &again, &err), DQ_OK);
    ck_assert_ptr_eq(pixels, again);
    ck_assert_str_eq(planes->nodes.nodes[0]->domain, "");
    ck_assert_str_eq(pixels->nodes.nodes[0]->domain, "dqrun");
}
END_TEST

/* A cancelled call keeps nothing of what it began; the next one fuses as ever. */
START_TEST(a_cancelled_session_fuses_nothing)
{
    dq_threads *threads = NULL;
    dq_plan_request of_session;
    const dq_rewritten_graph *none = NULL;
    conv("x", "a", 4, 8, 1);
    conv("a", "y", 8, 4, 1);
    expected("y");
    (void)list();
    kernels.isa = PIXELS; /* these kernels have no cached list yet */
    ck_assert_int_eq(dq_threads_create(NULL, &threads, &err), DQ_OK);
    of_session = *request();
    of_session.threads = threads;
    dq_threads_set_cancelled(threads, true);
    ck_assert_int_eq(dq_program_rewrite(program, &of_session, &none, &err), DQ_CANCELLED);
    ck_assert_ptr_null(none);
    dq_threads_set_cancelled(threads, false);
    ck_assert_int_eq(dq_program_rewrite(program, &of_session, &fused, &err), DQ_OK);
    ck_assert_str_eq(fused->nodes.nodes[0]->domain, "dqrun");
    dq_threads_free(threads);
}
END_TEST

/* ---- The ends of a region ----------------------------------------------------------------------------- */

START_TEST(what_a_caller_wants_is_turned_back)
{
    conv("x", "a", 4, 8, 1);
    max_pool("a", "b", false);
    conv("b", "y", 8, 4, 1);
    expected("b");
    expected("y");
    ck_assert_str_eq(list(), " QLinearConv NhwcMaxPool QLinearConv Transpose");
    check_turn(3, to_first);
    ck_assert_ptr_eq(fused->nodes.nodes[3]->in[0], fused->nodes.nodes[1]->out[0]);
    ck_assert_ptr_eq(fused->nodes.nodes[3]->out[0], g->outputs[0]);
}
END_TEST

START_TEST(what_is_given_is_turned)
{
    max_pool("x", "b", false);
    conv("b", "y", 8, 4, 1);
    conv("x", "c", 8, 4, 1);
    expected("y");
    expected("c");
    ck_assert_str_eq(list(), " Transpose NhwcMaxPool QLinearConv QLinearConv");
    ck_assert_int_eq(flag_of(3, "x_channels_last"), 1);
    check_turn(0, to_last);
    ck_assert_ptr_eq(fused->nodes.nodes[0]->in[0], g->inputs[0]);
}
END_TEST

/* A convolution of one channel a group works on planes: before it, codes stand as they were. */
START_TEST(depthwise_convolutions_are_outside)
{
    conv("x", "a", 4, 8, 1);
    max_pool("a", "b", false);
    conv("b", "y", 8, 8, 8);
    expected("y");
    ck_assert_str_eq(list(), " QLinearConv NhwcMaxPool Transpose QLinearConv");
    check_turn(2, to_first);
    ck_assert_str_eq(fused->nodes.nodes[3]->domain, "");
    ck_assert_ptr_eq(fused->nodes.nodes[3]->in[0], fused->nodes.nodes[2]->out[0]);
}
END_TEST

/* ---- What codes are handed on by ---------------------------------------------------------------------- */

START_TEST(sums_take_part_with_all_their_operands)
{
    conv("x", "a", 8, 8, 1);
    max_pool("a", "b", false);
    if (_i)
        conv("x", "c", 8, 8, 1);
    add(microsoft, "QLinearAdd",
        (const char *const[]){"b", "s", "z", _i ? "c" : "x", "s", "z", "s", "z", NULL}, "d", 0);
    conv("d", "y", 8, 4, 1);
    expected("y");
    ck_assert_str_eq(list(), _i ? " QLinearConv NhwcMaxPool QLinearConv QLinearAdd QLinearConv"
                                : " Transpose QLinearConv NhwcMaxPool QLinearAdd QLinearConv");
    ck_assert_int_eq(flag_of(1 - (uint32_t)_i, "x_channels_last"), !_i);
}
END_TEST

/* Codes that no convolution knows may be of any rank: the sum stays as it is, and the pool is alone. */
START_TEST(no_region_goes_on_where_a_sum_may_broadcast)
{
    dq_type type = {.dtype = DQ_UINT8};
    ck_assert_int_eq(dq_graph_add_input(g, "c", &type, &err), DQ_OK);
    conv("x", "a", 4, 8, 1);
    max_pool("a", "b", false);
    add(microsoft, "QLinearAdd", (const char *const[]){"b", "s", "z", "c", "s", "z", "s", "z", NULL}, "d", 0);
    expected("d");
    ck_assert_str_eq(list(), " QLinearConv Transpose NhwcMaxPool Transpose QLinearAdd");
}
END_TEST

START_TEST(concatenations_move_their_axis)
{
    conv("x", "a", 4, 8, 1);
    max_pool("a", "b", false);
    conv("x", "c", 4, 8, 1);
    dq_node *n = add(microsoft, "QLinearConcat",
                     (const char *const[]){"s", "z", "b", "s", "z", "c", "s", "z", NULL}, "d", 1);
    n->attrs[0] = whole("axis", _i ? -3 : 1);
    conv("d", "y", 16, 4, 1);
    expected("y");
    ck_assert_str_eq(list(), " QLinearConv NhwcMaxPool QLinearConv QLinearConcat QLinearConv");
    ck_assert_int_eq(flag_of(3, "axis"), 3);
}
END_TEST

START_TEST(tables_take_part)
{
    conv("x", "a", 4, 8, 1);
    max_pool("a", "b", false);
    add(microsoft, _i ? "QLinearLeakyRelu" : "QLinearSigmoid",
        (const char *const[]){"b", "s", "z", "s", "z", NULL}, "d", 0);
    conv("d", "y", 8, 4, 1);
    expected("y");
    ck_assert_str_eq(list(), _i ? " QLinearConv NhwcMaxPool QLinearLeakyRelu QLinearConv"
                                : " QLinearConv NhwcMaxPool QLinearSigmoid QLinearConv");
}
END_TEST

/* What it gives has one place a channel, and is turned for next to nothing. */
START_TEST(global_pools_end_a_region)
{
    conv("x", "a", 4, 8, 1);
    max_pool("a", "b", false);
    add(microsoft, "QLinearGlobalAveragePool", (const char *const[]){"b", "s", "z", "s", "z", NULL}, "d", 0);
    expected("d");
    ck_assert_str_eq(list(), " QLinearConv NhwcMaxPool QLinearGlobalAveragePool Transpose");
    ck_assert_int_eq(flag_of(2, "channels_last"), 1);
    check_turn(3, to_first);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("assign_layout_nhwc", begin_codes, tear_down);
    add_test(&tests, a_pool_between_convolutions_needs_no_transpose);
    add_loop_test(&tests, windows_apart_want_many_channels, 0, 2);
    add_test(&tests, a_transpose_may_cost_too_much);
    add_loop_test(&tests, between_convolutions_that_turn_planes, 0, 2);
    add_loop_test(&tests, between_convolutions_of_some_channels, 0, 4);
    add_test(&tests, each_kind_of_kernels_has_its_list);
    add_test(&tests, a_cancelled_session_fuses_nothing);
    add_test(&tests, what_a_caller_wants_is_turned_back);
    add_test(&tests, what_is_given_is_turned);
    add_test(&tests, depthwise_convolutions_are_outside);
    add_loop_test(&tests, sums_take_part_with_all_their_operands, 0, 2);
    add_test(&tests, no_region_goes_on_where_a_sum_may_broadcast);
    add_loop_test(&tests, concatenations_move_their_axis, 0, 2);
    add_loop_test(&tests, tables_take_part, 0, 2);
    add_test(&tests, global_pools_end_a_region);
    return test_program_run(&tests);
}
