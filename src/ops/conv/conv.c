/* SPDX-License-Identifier: Apache-2.0 */
/* Conv, and com.microsoft's FusedConv.
 *
 * The algorithms of conv_f32.def compute them. This file has gemm_generic for any float type: a GEMM of the
 * weights with the im2col matrix, one for each group of each image, whose windows are gathered when packed.
 *
 * The epilogue applies to the finished sum: bias, FusedConv's Z, and the activation (Relu, Clip, Tanh,
 * Sigmoid, LeakyRelu, HardSigmoid, or dqrun's own Gate: dq_hswish_f32). Half precision is rounded once, after
 * the epilogue. */
#include "ops/conv/conv_direct.h"
#include "ops/conv/conv_f32_algorithms.h"
#include "ops/conv/conv_float.h"
#include "ops/conv/conv_gemm_small.h"
#include "ops/conv/conv_winograd.h"
#include "ops/conv/dwconv_nchwc.h"
#include "ops/conv/im2col_gather.h"
#include "ops/conv/im2col_pack.h"
#include "ops/conv/winograd_1d.h"
#include "ops/half_floats.h"
#include "ops/recurrent/rnn_activation.h"
#include "ops/window.h"

#include <math.h>
#include <string.h>

enum { X, W, BIAS, Z /* FusedConv */, GATE_PARAMS = 7 };

typedef struct state {
    dq_conv_shape shape;
    const dq_algorithm *algorithm;
    dq_dwconv_nchwc nchwc;
    dq_conv_direct rows;
    dq_conv_gemm_small small;
    dq_conv_float floats;
    dq_conv_winograd winograd;
    dq_winograd_1d line;
    dq_half_floats halves;
    bool any_type; /* gemm_generic: operands keep their types; half precision is not converted to float */
    dq_matmul_generic mm;
    dq_rnn_activation activation; /* fn NULL: none */
    dq_conv_epilogue finish;      /* the same activation for float algorithms */
    dq_hswish_f32 gate;
} state;

typedef struct operands {
    const state *s;
    const dq_tensor *x, *w, *bias, *z;
    dq_tensor *out;
    const dq_kernels *kernels;
} operands;

/* Packs rows of A: output channels of a group. */
static void pack_weights(const void *arg, size_t batch, size_t row, size_t count, void *to)
{
    const operands *o = arg;
    const dq_conv_shape *s = &o->s->shape;
    size_t k = o->s->mm.k, channel = batch % s->group * s->group_out + row;
    const dq_matmul_generic_strip rows = {.data = o->w->data,
                                          .dtype = o->w->dtype,
                                          .strip_stride = k,
                                          .step_stride = 1,
                                          .strip_width = DQ_STRIP_ROWS,
                                          .k = k};
    dq_matmul_generic_pack_strided(&rows, channel * k, count, to);
}

/* Packs columns of B: output positions. Steps run over the group's input channels, then kernel elements. */
static void pack_windows(const void *arg, size_t batch, size_t col, size_t count, void *to)
{
    const operands *o = arg;
    const dq_conv_shape *s = &o->s->shape;
    size_t image = batch / s->group, channel = batch % s->group * s->group_in;
    size_t first = (image * s->in_channels + channel) * s->in_size;
    int64_t origin[DQ_STRIP_COLS][DQ_MAX_RANK], at[DQ_STRIP_COLS];
    for (size_t j = 0; j < count; j++)
        dq_window_origin(&s->window, col + j, origin[j]);
    for (size_t tap = 0; tap < s->kernel_size; tap++) {
        for (size_t j = 0; j < DQ_STRIP_COLS; j++)
            at[j] = j < count ? dq_window_at(&s->window, origin[j], tap) : -1;
        dq_im2col_gather(o->x, first, s->group_in, s->in_size, at, s->kernel_size, tap, to);
    }
}

#define FINISH(name, T)                                                                                      \
    static void name(const operands *o, size_t at, size_t n, T *v)                                           \
    {                                                                                                        \
        const dq_rnn_activation *f = &o->s->activation;                                                      \
        for (size_t i = 0; i < n && o->z; i++)                                                               \
            v[i] += (T)dq_tensor_get_double(o->z, at + i);                                                   \
        for (size_t i = 0; i < n && f->fn; i++)                                                              \
            v[i] = (T)f->fn((double)v[i], f->alpha, f->beta);                                                \
    }

/* Adds Z and applies the activation to n results, from element `at` of the output on. */
FINISH(add_function_f32, float)
FINISH(finish_f64, double)

static void finish_f32(const operands *o, size_t at, size_t n, float *v)
{
    const dq_gemm_block_f32 rest = {.rows = 1,
                                    .cols = n,
                                    .c = v,
                                    .more = true,
                                    .last = true,
                                    .alpha = 1,
                                    .low = -INFINITY,
                                    .high = INFINITY,
                                    .gate = o->s->finish.gate};
    add_function_f32(o, at, n, v);
    if (rest.gate)
        o->kernels->gemm_block_f32(&rest);
}

static void store(const void *arg, size_t batch, size_t row, size_t col, size_t rows, size_t cols,
                  const void *tile)
{
    const operands *o = arg;
    const dq_conv_shape *s = &o->s->shape;
    size_t image = batch / s->group, channel = batch % s->group * s->group_out + row;
    for (size_t i = 0; i < rows; i++, channel++) {
        float f[DQ_STRIP_COLS];
        double d[DQ_STRIP_COLS], bias = o->bias ? dq_tensor_get_double(o->bias, channel) : 0;
        bool single = o->s->mm.type == DQ_FLOAT;
        for (size_t j = 0; j < cols; j++)
            if (single)
                f[j] = ((const float *)tile)[i * DQ_STRIP_COLS + j] + (float)bias;
            else
                d[j] = ((const double *)tile)[i * DQ_STRIP_COLS + j] + bias;
        size_t at = (image * s->out_channels + channel) * s->out_size + col;
        if (single)
            finish_f32(o, at, cols, f);
        else
            finish_f64(o, at, cols, d);
        dq_matmul_generic_write(o->out->data, o->out->dtype, at, single ? (const void *)f : (const void *)d,
                                cols);
    }
}

static double clip(double x, double low, double high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

static dq_status find_activation(const dq_op_call *call, dq_rnn_activation *to, dq_error *err)
{
    static const struct {
        const char *name;
        size_t params;
    } known[] = {{"Relu", 0},        {"Tanh", 0}, {"Sigmoid", 0},       {"LeakyRelu", 1},
                 {"HardSigmoid", 2}, {"Clip", 2}, {"Gate", GATE_PARAMS}};
    enum { KNOWN = sizeof known / sizeof known[0] };
    const char *name = dq_node_string(call->node, "activation", "");
    const dq_attr *params = dq_node_attr(call->node, "activation_params");
    size_t i = 0, value = params ? params->count : 0;
    *to = (dq_rnn_activation){NULL, 0, 0};
    if (*name == '\0')
        return DQ_OK;
    while (i < KNOWN && strcmp(known[i].name, name) != 0)
        i++;
    if (i == KNOWN)
        return dq_call_fail(
            call, err, DQ_UNSUPPORTED,
            "attribute 'activation' is '%s', expected Relu, Tanh, Sigmoid, LeakyRelu, HardSigmoid "
            "or Clip",
            name);
    if (known[i].params && value != known[i].params)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'activation_params' has %zu values, expected %zu for %s", value,
                            known[i].params, name);
    if (known[i].params == GATE_PARAMS && call->in[X]->dtype == DQ_DOUBLE)
        return dq_call_fail(call, err, DQ_UNSUPPORTED,
                            "attribute 'activation' is 'Gate', which wants floats");
    to->fn = strcmp(name, "Clip") == 0 ? clip : dq_rnn_activation_find(name);
    to->alpha = known[i].params > 0 ? (double)params->u.floats[0] : 0;
    to->beta = known[i].params > 1 ? (double)params->u.floats[1] : 0;
    return DQ_OK;
}

static dq_status check(const dq_op_call *call, dq_conv_shape *shape, dq_rnn_activation *activation,
                       dq_error *err)
{
    DQ_TRY(dq_conv_shape_infer(call, X, W, false, false, shape, err));
    DQ_TRY(dq_conv_bias_check(call, BIAS, shape, err));
    const dq_tensor *z = dq_call_in(call, Z);
    char got[DQ_SHAPE_TEXT], expected[DQ_SHAPE_TEXT];
    if (z && (z->rank != shape->rank || memcmp(z->dims, shape->dims, z->rank * sizeof *z->dims) != 0))
        return dq_call_fail_input(call, err, Z, "has shape %s, expected that of the result, %s",
                                  dq_shape_text(z->rank, z->dims, got),
                                  dq_shape_text(shape->rank, shape->dims, expected));
    return find_activation(call, activation, err);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_conv_shape shape;
    dq_rnn_activation activation;
    DQ_TRY(check(call, &shape, &activation, err));
    return dq_call_output(call, 0, call->in[X]->dtype, shape.rank, shape.dims, err);
}

static dq_hswish_f32 read_gate(const dq_op_call *call)
{
    const float *p = dq_node_attr(call->node, "activation_params")->u.floats;
    return (dq_hswish_f32){p[0], p[1], p[2], p[3], p[4], p[5], p[6]};
}

/* The activation as a float epilogue. Relu and Clip are bounds. The others are the elementwise operators of
 * the same name, with the same bits. */
static dq_conv_epilogue finish_of(const dq_op_call *call, const dq_rnn_activation *activation,
                                  dq_hswish_f32 *gate)
{
    dq_conv_epilogue f = {.low = -INFINITY, .high = INFINITY};
    const char *name = dq_node_string(call->node, "activation", "");
    const dq_ew_named *named = dq_ew_find(name, strlen(name));
    if (strcmp(name, "Relu") == 0) {
        f.low = 0;
    } else if (strcmp(name, "Gate") == 0) {
        *gate = read_gate(call);
        f.gate = gate;
    } else if (activation->fn == clip) {
        f.low = (float)activation->alpha;
        f.high = (float)activation->beta;
    } else if (named) {
        f.fn = named->fn;
        f.params = (dq_ew_params){.alpha = activation->alpha,
                                  .beta = activation->beta,
                                  .operands = 1,
                                  .rows = call->kernels->rows_f32};
    }
    return f;
}

/* ---- Algorithms --------------------------------------------------------------------------------------- */

bool dq_conv_f32_is_countable(const dq_conv_f32_problem *p, dq_reason *reason)
{
    if (!p->floats)
        return dq_not_applicable(reason, "x is of doubles");
    return dq_im2col_pack_fit(&p->shape->window) ||
           dq_not_applicable(reason, "windows reach beyond 2^30 elements");
}

double dq_conv_f32_macs(const dq_conv_shape *s, size_t columns)
{
    const double out = (double)((s->group_out + columns - 1) / columns * columns);
    return (double)s->batch * (double)s->out_size * out * (double)s->group * (double)s->group_in *
           (double)s->kernel_size;
}

bool dq_conv_f32_depthwise_nchwc_is_applicable(const void *problem, dq_reason *reason)
{
    const dq_conv_f32_problem *p = problem;
    if (!dq_conv_f32_is_countable(p, reason))
        return false;
    if (!p->constant_weights || !p->float_weights)
        return dq_not_applicable(reason, "weights are not constant floats");
    return dq_dwconv_nchwc_is_applicable(p->shape, reason);
}

dq_algorithm_work dq_conv_f32_depthwise_nchwc_work(const void *problem)
{
    const dq_conv_f32_problem *p = problem;
    return dq_dwconv_nchwc_work(p->shape);
}

bool dq_conv_f32_gemm_generic_is_applicable(const void *problem, dq_reason *reason)
{
    return dq_always_applicable(problem, reason);
}

dq_algorithm_work dq_conv_f32_gemm_generic_work(const void *problem)
{
    const dq_conv_f32_problem *p = problem;
    const dq_conv_shape *s = p->shape;
    return (dq_algorithm_work){.macs = dq_conv_f32_macs(s, 1),
                               .bytes = (double)s->batch * (double)s->group_in * (double)s->kernel_size *
                                        (double)s->out_size * (double)s->group * sizeof(float)};
}

static dq_status prepare_depthwise_nchwc(dq_op_call *call, void *st, dq_error *err)
{
    state *s = st;
    return dq_dwconv_nchwc_prepare(call, W, &s->shape, &s->nchwc, err);
}

static dq_status prepare_direct(dq_op_call *call, void *st, dq_error *err)
{
    state *s = st;
    return dq_conv_direct_prepare(call, &s->shape, &s->rows, err);
}

static dq_status prepare_gemm_small(dq_op_call *call, void *st, dq_error *err)
{
    state *s = st;
    return dq_conv_gemm_small_prepare(call, W, &s->shape, &s->small, err);
}

static dq_status prepare_gemm(dq_op_call *call, void *st, dq_error *err)
{
    state *s = st;
    return dq_conv_float_prepare(call, &s->shape, s->finish.fn != NULL, false, &s->floats, err);
}

/* Prepares direct convolution for the outputs that Winograd cannot compute. Winograd packs its own weights,
 * so the original ones may stay unaligned, as in the file. */
static dq_status prepare_rest(dq_op_call *call, state *s, dq_error *err)
{
    return dq_conv_float_prepare(call, &s->shape, s->finish.fn != NULL, call->in[W]->unaligned, &s->floats,
                                 err);
}

static dq_status prepare_winograd_1d(dq_op_call *call, void *st, dq_error *err)
{
    state *s = st;
    DQ_TRY(prepare_rest(call, s, err));
    return dq_winograd_1d_prepare(call, W, &s->floats, &s->line, err);
}

static dq_status prepare_winograd_2d(dq_op_call *call, void *st, dq_error *err)
{
    state *s = st;
    DQ_TRY(prepare_rest(call, s, err));
    return dq_conv_winograd_prepare(call, W, &s->floats, &s->winograd, err);
}

static dq_status prepare_gemm_generic(dq_op_call *call, void *st, dq_error *err)
{
    state *s = st;
    const dq_conv_shape *shape = &s->shape;
    s->any_type = true;
    s->mm = (dq_matmul_generic){.type = dq_matmul_generic_type(call->in[X]->dtype),
                                .batches = shape->batch * shape->group,
                                .m = shape->group_out,
                                .n = shape->out_size,
                                .k = shape->group_in * shape->kernel_size,
                                .pack_a = pack_weights,
                                .pack_b = pack_windows,
                                .store = store};
    return dq_matmul_generic_prepare(call, &s->mm, err);
}

static void run_depthwise_nchwc(const dq_op_call *call, const void *st, const void *floats)
{
    const state *s = st;
    dq_dwconv_nchwc_run(call, &s->nchwc, floats);
}

static void run_direct(const dq_op_call *call, const void *st, const void *floats)
{
    const state *s = st;
    dq_conv_direct_run(call, &s->rows, floats);
}

static void run_gemm_small(const dq_op_call *call, const void *st, const void *floats)
{
    const state *s = st;
    dq_conv_gemm_small_run(call, &s->small, floats);
}

static void run_gemm(const dq_op_call *call, const void *st, const void *floats)
{
    const state *s = st;
    dq_conv_float_run(call, &s->floats, floats);
}

static void run_winograd_1d(const dq_op_call *call, const void *st, const void *floats)
{
    const state *s = st;
    dq_winograd_1d_run(call, &s->line, floats);
}

static void run_winograd_2d(const dq_op_call *call, const void *st, const void *floats)
{
    const state *s = st;
    dq_conv_winograd_run(call, &s->winograd, floats);
}

static void run_gemm_generic(const dq_op_call *call, const void *st, const void *arg)
{
    const state *s = st;
    dq_matmul_generic_run(call, &s->mm, arg);
}

static const dq_algorithm rows[] = {
#define DQ_ROW(name, result, summary)                                                                        \
    {"conv_f32=" #name,         summary,        result,    dq_conv_f32_##name##_is_applicable,               \
     dq_conv_f32_##name##_work, prepare_##name, run_##name},
#include "ops/conv/conv_f32.def"
#undef DQ_ROW
};

/* Winograd rounds in another order; wherever it applies, the shapes select its result. */
static int result_of(const void *problem)
{
    if (dq_conv_f32_winograd_1d_is_applicable(problem, NULL))
        return 1;
    return dq_conv_f32_winograd_2d_is_applicable(problem, NULL) ? 2 : 0;
}

const dq_algorithm_table dq_conv_f32_algorithms = {.name = "conv_f32",
                                                   .summary = "convolution of floats (Conv, FusedConv)",
                                                   .result = result_of,
                                                   .rows = rows,
                                                   .count = sizeof rows / sizeof *rows};

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(check(call, &s->shape, &s->activation, err));
    s->finish = finish_of(call, &s->activation, &s->gate);
    const dq_conv_f32_problem problem = {.shape = &s->shape,
                                         .floats = dq_half_floats_take(call->in[X]->dtype),
                                         .float_weights = call->in[W]->dtype == DQ_FLOAT,
                                         .constant_weights = dq_call_constant(call, W) && call->in[W]->count};
    DQ_TRY(dq_algorithm_choose(call, DQ_ALGORITHMS_CONV_F32, &problem, &s->algorithm, err));
    DQ_TRY(s->algorithm->prepare(call, s, err));
    return s->any_type ? DQ_OK : dq_half_floats_prepare(call, 0, &s->halves, err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    operands o = {.s = s,
                  .x = call->in[X],
                  .w = call->in[W],
                  .bias = dq_call_in(call, BIAS),
                  .z = dq_call_in(call, Z),
                  .out = call->out[0],
                  .kernels = call->kernels};
    if (!o.out || o.out->count == 0)
        return DQ_OK;
    if (s->any_type) {
        s->algorithm->run(call, s, &o);
        return DQ_OK;
    }
    dq_conv_floats floats = {.x = dq_half_floats_in(call, &s->halves, X),
                             .w = dq_half_floats_in(call, &s->halves, W),
                             .bias = dq_half_floats_in(call, &s->halves, BIAS),
                             .z = dq_half_floats_in(call, &s->halves, Z),
                             .out = dq_half_floats_out(call, &s->halves),
                             .finish = &s->finish};
    s->algorithm->run(call, s, &floats);
    dq_half_floats_done(call, &s->halves);
    return DQ_OK;
}

const dq_op_impl dq_op_conv = {infer, prepare, run, DQ_OP_PACKS | DQ_OP_BATCH_SEPARABLE(1 << X | 1 << Z)};
