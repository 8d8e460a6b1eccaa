/* SPDX-License-Identifier: Apache-2.0 */
/* ConvTranspose. Floats of up to 32 bits use the sub-pixel decomposition (conv_transpose.h), if pads and
 * number of phases allow it. Otherwise each output element gathers the inputs whose windows on the output
 * cover it, and a GEMM multiplies the weights with these columns, one for each group of each image. Positions
 * between strides count as zeros. */
#include "ops/conv/conv_transpose.h"
#include "base/checked.h"
#include "ops/algorithm.h"
#include "ops/conv/im2col_gather.h"
#include "ops/half_floats.h"

#include <inttypes.h>
#include <string.h>

enum { X, W, BIAS };

typedef struct state {
    dq_conv_transpose_shape s;
    const dq_algorithm *algorithm;
    /* Algorithm `phases`: */
    dq_conv_transpose_f32 floats;
    dq_half_floats halves;
    /* Algorithm `gather`: */
    dq_bounds bounds; /* of dqrun.ConvTranspose; phases uses them, too */
    dq_matmul_generic mm;
} state;

typedef struct operands {
    const state *s;
    const dq_tensor *x, *w, *bias;
    dq_tensor *out;
} operands;

/* ---- Shapes -------------------------------------------------------------------------------------------- */

static dq_status read_list(const dq_op_call *call, const char *name, size_t count, int64_t least,
                           int64_t absent, int64_t *to, bool *value, dq_error *err)
{
    size_t length;
    const int64_t *list = dq_node_ints(call->node, name, &length);
    *value = length > 0;
    if (length && length != count)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute '%s' has %zu values, expected %zu", name,
                            length, count);
    for (size_t i = 0; i < count; i++) {
        to[i] = length ? list[i] : absent;
        if (to[i] < least || to[i] > INT32_MAX)
            return dq_call_fail(call, err, DQ_BAD_MODEL,
                                "attribute '%s' has %" PRId64 " at index %zu, expected %" PRId64
                                " to 2147483647",
                                name, to[i], i, least);
    }
    return DQ_OK;
}

/* Computes output length and pads of one axis. Attributes fit in 31 bits: only products may overflow. */
static dq_status along(const dq_op_call *call, dq_conv_transpose_shape *s, size_t d, bool sized,
                       const char *auto_pad, int64_t extra, int64_t pad_end, dq_error *err)
{
    int64_t full, span;
    bool same_upper = strcmp(auto_pad, "SAME_UPPER") == 0,
         same = same_upper || strcmp(auto_pad, "SAME_LOWER") == 0;
    if (!dq_mul_i64(s->stride[d], s->in[d] > 0 ? s->in[d] - 1 : 0, &full) ||
        !dq_mul_i64(s->kernel[d] - 1, s->dilation[d], &span) || !dq_add_i64(full, span + 1 + extra, &full))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "gives spatial axis %zu more elements than can be counted", d);
    if (same && !sized)
        s->out[d] = s->in[d] * s->stride[d];
    if (same || sized) {
        int64_t pad = full > s->out[d] ? full - s->out[d] : 0;
        s->begin[d] = same_upper ? pad / 2 : pad - pad / 2;
        return DQ_OK;
    }
    if (strcmp(auto_pad, "VALID") == 0)
        s->begin[d] = pad_end = 0;
    s->out[d] = full - s->begin[d] - pad_end;
    if (s->out[d] < 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "pads %" PRId64 " elements off spatial axis %zu, which has %" PRId64,
                            s->begin[d] + pad_end, d, full);
    return DQ_OK;
}

static dq_status read_channels(const dq_op_call *call, dq_conv_transpose_shape *s, dq_error *err)
{
    const dq_tensor *x = call->in[X], *w = call->in[W], *bias = dq_call_in(call, BIAS);
    if (x->rank < 3)
        return dq_call_fail_input(call, err, X, "has rank %u, expected 3 or more", x->rank);
    if (w->rank != x->rank)
        return dq_call_fail_input(call, err, W, "has rank %u, expected %u as input 0 has", w->rank, x->rank);
    int64_t group = dq_node_int(call->node, "group", 1);
    if (group < 1 || x->dims[1] % group != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'group' is %" PRId64 ", expected a divisor of %" PRId64 " channels",
                            group, x->dims[1]);
    if (w->dims[0] != x->dims[1])
        return dq_call_fail_input(call, err, W, "has %" PRId64 " input channels, expected %" PRId64,
                                  w->dims[0], x->dims[1]);
    s->rank = x->rank - 2;
    s->batch = (size_t)x->dims[0];
    s->group = (size_t)group;
    s->group_in = (size_t)(x->dims[1] / group);
    s->group_out = (size_t)w->dims[1];
    if (bias && bias->count != s->group * s->group_out)
        return dq_call_fail_input(call, err, BIAS, "has %zu elements, expected %zu (output channels)",
                                  bias->count, s->group * s->group_out);
    return DQ_OK;
}

static dq_status read_shape(const dq_op_call *call, dq_conv_transpose_shape *s, dq_error *err)
{
    bool value, sized;
    int64_t pads[2 * DQ_MAX_RANK], extra[DQ_MAX_RANK];
    memset(s, 0, sizeof *s);
    DQ_TRY(read_channels(call, s, err));
    DQ_TRY(read_list(call, "strides", s->rank, 1, 1, s->stride, &value, err));
    DQ_TRY(read_list(call, "dilations", s->rank, 1, 1, s->dilation, &value, err));
    DQ_TRY(read_list(call, "output_padding", s->rank, 0, 0, extra, &value, err));
    DQ_TRY(read_list(call, "pads", 2 * s->rank, 0, 0, pads, &value, err));
    DQ_TRY(read_list(call, "output_shape", s->rank, 0, 0, s->out, &sized, err));
    const char *auto_pad = dq_node_string(call->node, "auto_pad", "NOTSET");
    for (size_t d = 0; d < s->rank; d++) {
        s->in[d] = call->in[X]->dims[d + 2];
        s->kernel[d] = call->in[W]->dims[d + 2];
        s->begin[d] = pads[d];
        if (s->kernel[d] < 1 || s->in[d] > INT32_MAX)
            return dq_call_fail(call, err, DQ_BAD_MODEL,
                                "has a kernel of %" PRId64 " over %" PRId64 " elements at spatial axis %zu",
                                s->kernel[d], s->in[d], d);
        DQ_TRY(along(call, s, d, sized, auto_pad, extra[d], pads[d + s->rank], err));
    }
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_conv_transpose_shape s;
    DQ_TRY(read_shape(call, &s, err));
    int64_t dims[DQ_MAX_RANK] = {call->in[X]->dims[0], (int64_t)(s.group * s.group_out)};
    memcpy(dims + 2, s.out, s.rank * sizeof *dims);
    return dq_call_output(call, 0, call->in[X]->dtype, s.rank + 2, dims, err);
}

/* ---- Operands ------------------------------------------------------------------------------------------ */

/* Packs rows of A: output channels of a group. The first axis of the weights is the input channels. */
static void pack_weights(const void *arg, size_t batch, size_t row, size_t count, void *to)
{
    const operands *o = arg;
    const dq_conv_transpose_shape *s = &o->s->s;
    size_t strip = s->kernel_size * DQ_STRIP_ROWS * (dq_dtype_get(o->s->mm.type)->bits / 8u);
    const dq_matmul_generic_strip rows = {.data = o->w->data,
                                          .dtype = o->w->dtype,
                                          .strip_stride = s->kernel_size,
                                          .step_stride = 1,
                                          .strip_width = DQ_STRIP_ROWS,
                                          .k = s->kernel_size};
    for (size_t c = 0; c < s->group_in; c++) {
        size_t channel = batch % s->group * s->group_in + c;
        dq_matmul_generic_pack_strided(&rows, (channel * s->group_out + row) * s->kernel_size, count,
                                       (char *)to + c * strip);
    }
}

/* Offset of the input element that kernel element `tap` adds to output `index`; -1: none. */
static int64_t source(const dq_conv_transpose_shape *s, size_t index, size_t tap)
{
    int64_t offset = 0, step = 1;
    for (size_t d = s->rank; d-- > 0;) {
        int64_t o = (int64_t)(index % (size_t)s->out[d]), t = (int64_t)(tap % (size_t)s->kernel[d]);
        int64_t x = o + s->begin[d] - t * s->dilation[d];
        if (x < 0 || x % s->stride[d] != 0 || x / s->stride[d] >= s->in[d])
            return -1;
        offset += x / s->stride[d] * step;
        step *= s->in[d];
        index /= (size_t)s->out[d];
        tap /= (size_t)s->kernel[d];
    }
    return offset;
}

static void pack_sources(const void *arg, size_t batch, size_t col, size_t count, void *to)
{
    const operands *o = arg;
    const dq_conv_transpose_shape *s = &o->s->s;
    size_t first = batch * s->group_in * s->in_size;
    for (size_t tap = 0; tap < s->kernel_size; tap++) {
        int64_t at[DQ_STRIP_COLS];
        for (size_t j = 0; j < DQ_STRIP_COLS; j++)
            at[j] = j < count ? source(s, col + j, tap) : -1;
        dq_im2col_gather(o->x, first, s->group_in, s->in_size, at, s->kernel_size, tap, to);
    }
}

static float bounded(float x, dq_bounds b)
{
    x = x < b.low ? b.low : x;
    return x > b.high ? b.high : x;
}

static void store(const void *arg, size_t batch, size_t row, size_t col, size_t rows, size_t cols,
                  const void *tile)
{
    const operands *o = arg;
    const dq_conv_transpose_shape *s = &o->s->s;
    for (size_t i = 0; i < rows; i++) {
        size_t channel = batch % s->group * s->group_out + row + i;
        size_t at = (batch * s->group_out + row + i) * s->out_size + col;
        double bias = o->bias ? dq_tensor_get_double(o->bias, channel) : 0;
        for (size_t j = 0; j < cols; j++)
            if (o->s->mm.type == DQ_DOUBLE)
                dq_data(o->out, double)[at + j] = ((const double *)tile)[i * DQ_STRIP_COLS + j] + bias;
            else
                dq_tensor_put_double(
                    o->out, at + j,
                    (double)bounded(((const float *)tile)[i * DQ_STRIP_COLS + j] + (float)bias,
                                    o->s->bounds));
    }
}

/* ---- Algorithms --------------------------------------------------------------------------------------- */

typedef struct problem {
    const dq_conv_transpose_shape *s;
    dq_dtype dtype;
    bool fits; /* result of dq_conv_transpose_has_phases */
} problem;

static bool is_phases_applicable(const void *arg, dq_reason *reason)
{
    const problem *p = arg;
    if (!dq_half_floats_take(p->dtype))
        return dq_not_applicable(reason, "elements are %s, expected floats of 32 bits or fewer",
                                 dq_dtype_name(p->dtype));
    return p->fits || dq_not_applicable(reason, "too many phases, or pads below 0");
}

/* Multiply-adds if each of `positions` is multiplied with all kernel elements. */
static dq_algorithm_work work_of(const dq_conv_transpose_shape *s, size_t positions)
{
    return (dq_algorithm_work){.macs = (double)s->batch * (double)s->group * (double)s->group_out *
                                       (double)s->group_in * (double)positions * (double)s->kernel_size};
}

/* The multiply-adds of the formula. */
static dq_algorithm_work work_of_phases(const void *arg)
{
    const problem *p = arg;
    return work_of(p->s, p->s->in_size);
}

/* Zeros between strides are multiplied, too. */
static dq_algorithm_work work_of_gather(const void *arg)
{
    const problem *p = arg;
    return work_of(p->s, p->s->out_size);
}

static dq_status prepare_phases(dq_op_call *call, void *arg, dq_error *err)
{
    state *st = arg;
    DQ_TRY(dq_conv_transpose_prepare_phases(call, W, &st->s, &st->floats, err));
    return dq_half_floats_prepare(call, st->floats.weights ? 1 << W : 0, &st->halves, err);
}

static void run_phases(const dq_op_call *call, const void *arg, const void *none)
{
    const state *s = arg;
    (void)none;
    dq_conv_transpose_run_phases(
        call, &s->floats, dq_half_floats_in(call, &s->halves, X), dq_half_floats_in(call, &s->halves, W),
        dq_half_floats_in(call, &s->halves, BIAS), s->bounds, dq_half_floats_out(call, &s->halves));
    dq_half_floats_done(call, &s->halves);
}

static dq_status prepare_gather(dq_op_call *call, void *arg, dq_error *err)
{
    state *st = arg;
    const dq_conv_transpose_shape *s = &st->s;
    st->mm = (dq_matmul_generic){.type = dq_matmul_generic_type(call->in[X]->dtype),
                                 .batches = s->batch * s->group,
                                 .m = s->group_out,
                                 .n = s->out_size,
                                 .k = s->group_in * s->kernel_size,
                                 .pack_a = pack_weights,
                                 .pack_b = pack_sources,
                                 .store = store};
    return dq_matmul_generic_prepare(call, &st->mm, err);
}

static void run_gather(const dq_op_call *call, const void *arg, const void *none)
{
    const state *s = arg;
    (void)none;
    const operands o = {
        .s = s, .x = call->in[X], .w = call->in[W], .bias = dq_call_in(call, BIAS), .out = call->out[0]};
    dq_matmul_generic_run(call, &s->mm, &o);
}

/* Rows, which are also result numbers: the two sum in different orders. */
enum { PHASES, GATHER };

static int result_of(const void *arg)
{
    return is_phases_applicable(arg, NULL) ? PHASES : GATHER;
}

static const dq_algorithm algorithms[] = {
    [PHASES] = {"conv_transpose=phases",
                "a convolution of x for each remainder of the position by the stride", PHASES,
                is_phases_applicable, work_of_phases, prepare_phases, run_phases},
    [GATHER] = {"conv_transpose=gather",
                "matrix product of any type; each output gathers its inputs, with zeros between strides",
                GATHER, dq_always_applicable, work_of_gather, prepare_gather, run_gather}};

const dq_algorithm_table dq_conv_transpose_algorithms = {.name = "conv_transpose",
                                                         .summary = "transposed convolution (ConvTranspose)",
                                                         .result = result_of,
                                                         .rows = algorithms,
                                                         .count = sizeof algorithms / sizeof *algorithms};

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *st = call->state;
    dq_conv_transpose_shape *s = &st->s;
    DQ_TRY(read_shape(call, s, err));
    s->in_size = dq_dims_product(s->in, 0, s->rank);
    s->out_size = dq_dims_product(s->out, 0, s->rank);
    s->kernel_size = dq_dims_product(s->kernel, 0, s->rank);
    DQ_TRY(dq_call_bounds(call, &st->bounds, err));
    const problem p = {s, call->in[X]->dtype, dq_conv_transpose_has_phases(s)};
    DQ_TRY(dq_algorithm_choose(call, DQ_ALGORITHMS_CONV_TRANSPOSE, &p, &st->algorithm, err));
    return st->algorithm->prepare(call, st, err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    dq_algorithm_run(call, s->algorithm, s);
    return DQ_OK;
}

const dq_op_impl dq_op_conv_transpose = {infer, prepare, run, DQ_OP_BATCH_SEPARABLE_FIRST};
