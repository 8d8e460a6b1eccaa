/* SPDX-License-Identifier: Apache-2.0 */
/* Normalization over axes: LayerNormalization, RMSNormalization (ONNX Runtime's SimplifiedLayerNormalization
 * also outputs the inverse deviations), InstanceNormalization, GroupNormalization. Types up to float use
 * row_norm.h and are rounded to the output type at the end. Double is summed in row-major order. */
#include "base/checked.h"
#include "ops/reduce/row_norm.h"
#include "ops/rows.h"

#include <inttypes.h>
#include <math.h>

enum { X, SCALE, BIAS };
enum { ELEMENTS_PER_TASK = 4096 /* approximate elements per task */ };

/* Each of `rows` contiguous rows of n elements is normalized. Then element k of a row is multiplied by a
 * scale, and a bias is added: those of its channel, or those at the strides `scale` and `bias`. */
typedef struct state {
    double epsilon;
    size_t rows, n;
    bool centre;                            /* subtract the mean */
    bool per_channel;                       /* scale and bias have one element per channel (or group) */
    size_t channels, rows_per_image, plane; /* their length; rows of an image; elements of a channel */
    size_t rank;                            /* otherwise: number of normalized axes */
    size_t dims[DQ_MAX_RANK], scale[DQ_MAX_RANK], bias[DQ_MAX_RANK];
    bool floats;    /* computed in float, else in double */
    size_t bias_at; /* offset of the converted bias in the scratch, in floats */
} state;

static double epsilon(const dq_op_call *call)
{
    return (double)dq_node_float(call->node, "epsilon", 1e-5f);
}

static bool is_double(const dq_tensor *t)
{
    return t && t->dtype == DQ_DOUBLE;
}

/* Number of elements of scale (or bias) after broadcasting to a row, or per channel. */
static size_t factor_count(const state *s)
{
    return s->per_channel ? s->channels : s->n;
}

/* True if scale (or bias) can be used in place: float, without broadcasting. */
static bool ready(const state *s, const dq_tensor *t)
{
    return t->dtype == DQ_FLOAT && t->count == factor_count(s);
}

static dq_status take_scratch(dq_op_call *call, dq_error *err)
{
    state *s = call->state;
    const dq_tensor *x = call->in[X], *scale = call->in[SCALE], *bias = dq_call_in(call, BIAS);
    s->floats = !is_double(x) && !is_double(scale) && !is_double(bias) && !is_double(call->out[0]);
    if (!s->floats)
        return DQ_OK;
    size_t bytes;
    if (!dq_mul_size(factor_count(s), sizeof(float), &bytes) || !dq_mul_size(bytes, 2, &call->scratch_size) ||
        !dq_mul_size(s->n, sizeof(float), &call->worker_scratch_size))
        return dq_no_memory(err, s->n, "rows");
    s->bias_at = factor_count(s);
    return DQ_OK;
}

/* ---- Over the last axes: LayerNormalization, RMSNormalization ------------------------------------------ */

static dq_status layer_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *x = call->in[X];
    size_t axis;
    DQ_TRY(dq_call_axis(call, -1, &axis, err));
    for (uint32_t i = SCALE; i <= BIAS; i++) {
        const dq_tensor *t = dq_call_in(call, i);
        int64_t dims[DQ_MAX_RANK];
        size_t rank;
        bool fits = !t || dq_broadcast(x->rank, x->dims, t->rank, t->dims, &rank, dims);
        for (size_t d = 0; fits && t && d < rank; d++)
            fits = rank == x->rank && dims[d] == x->dims[d];
        /* It must not vary along the axes before `axis`. */
        for (size_t d = 0; fits && t && d < t->rank; d++)
            fits = d + x->rank - t->rank >= axis || t->dims[d] == 1;
        if (!fits) {
            char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
            return dq_call_fail_input(
                call, err, i, "has shape %s, which does not broadcast to axes %zu on of %s",
                dq_shape_text(t->rank, t->dims, mine), axis, dq_shape_text(x->rank, x->dims, theirs));
        }
    }
    int64_t reduced[DQ_MAX_RANK], stash = dq_node_int(call->node, "stash_type", DQ_FLOAT);
    for (size_t d = 0; d < x->rank; d++)
        reduced[d] = d < axis ? x->dims[d] : 1;
    dq_dtype dtype = stash == DQ_DOUBLE || stash == DQ_BFLOAT16 ? (dq_dtype)stash : DQ_FLOAT;
    for (uint32_t i = 1; i < call->out_count; i++)
        DQ_TRY(dq_call_output(call, i, dtype, x->rank, reduced, err));
    return dq_call_output_like(call, 0, call->in[SCALE]->dtype, x, err);
}

static dq_status layer_prepare(dq_op_call *call, bool centre, dq_error *err)
{
    const dq_tensor *x = call->in[X];
    size_t axis = 0, strides[DQ_MAX_RANK];
    dq_axis(dq_node_int(call->node, "axis", -1), x->rank, &axis);
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    s->epsilon = epsilon(call);
    s->centre = centre;
    s->rows = dq_dims_product(x->dims, 0, axis);
    s->n = dq_dims_product(x->dims, axis, x->rank);
    s->rank = x->rank - axis;
    for (uint32_t i = SCALE; i <= BIAS; i++) {
        const dq_tensor *t = dq_call_in(call, i);
        if (!t)
            continue;
        dq_broadcast_strides(t, x->rank, x->dims, strides);
        for (size_t d = 0; d < s->rank; d++) {
            s->dims[d] = (size_t)x->dims[axis + d];
            (i == SCALE ? s->scale : s->bias)[d] = strides[axis + d];
        }
    }
    return take_scratch(call, err);
}

static dq_status layer_norm_prepare(dq_op_call *call, dq_error *err)
{
    return layer_prepare(call, true, err);
}

static dq_status rms_norm_prepare(dq_op_call *call, dq_error *err)
{
    return layer_prepare(call, false, err);
}

/* ---- Per image: InstanceNormalization, GroupNormalization ---------------------------------------------- */

static dq_status images(const dq_op_call *call, int64_t groups, dq_error *err)
{
    const dq_tensor *x = call->in[X];
    if (x->rank < 2)
        return dq_call_fail_input(call, err, X, "has rank %u, expected 2 or more", x->rank);
    if (groups < 1 || x->dims[1] % groups != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'num_groups' is %" PRId64 ", expected a divisor of %" PRId64
                            " channels",
                            groups, x->dims[1]);
    int64_t expected = call->version == 18 ? groups : x->dims[1]; /* GroupNormalization-18: by group */
    for (uint32_t i = SCALE; i <= BIAS; i++)
        if (call->in[i]->count != (size_t)expected)
            return dq_call_fail_input(call, err, i, "has %zu elements, expected %" PRId64, call->in[i]->count,
                                      expected);
    return DQ_OK;
}

static dq_status images_prepare(dq_op_call *call, size_t groups, dq_error *err)
{
    const dq_tensor *x = call->in[X];
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    s->epsilon = epsilon(call);
    s->centre = s->per_channel = true;
    s->rows_per_image = groups;
    s->rows = (size_t)x->dims[0] * groups;
    s->plane = dq_dims_product(x->dims, 2, x->rank);
    s->n = (size_t)x->dims[1] / groups * s->plane;
    s->channels = call->in[SCALE]->count;
    if (s->channels == groups) /* one element per group: the group counts as one plane */
        s->plane = s->n;
    return take_scratch(call, err);
}

static dq_status instance_infer(dq_op_call *call, dq_error *err)
{
    DQ_TRY(images(call, call->in[X]->rank > 1 && call->in[X]->dims[1] > 0 ? call->in[X]->dims[1] : 1, err));
    return dq_call_output_like(call, 0, call->in[X]->dtype, call->in[X], err);
}

static dq_status instance_prepare(dq_op_call *call, dq_error *err)
{
    size_t channels = (size_t)call->in[X]->dims[1];
    return images_prepare(call, channels ? channels : 1, err);
}

static dq_status group_infer(dq_op_call *call, dq_error *err)
{
    DQ_TRY(images(call, dq_node_int(call->node, "num_groups", 0), err));
    return dq_call_output_like(call, 0, call->in[X]->dtype, call->in[X], err);
}

static dq_status group_prepare(dq_op_call *call, dq_error *err)
{
    return images_prepare(call, (size_t)dq_node_int(call->node, "num_groups", 1), err);
}

/* ---- Run ----------------------------------------------------------------------------------------------- */

/* Offset in the scale (or bias) of element k of a row. */
static size_t factor_at(const state *s, const size_t strides[DQ_MAX_RANK], size_t row, size_t k)
{
    if (s->per_channel) {
        size_t channels_a_row = s->channels / s->rows_per_image;
        return row % s->rows_per_image * channels_a_row + k / s->plane;
    }
    size_t at = 0;
    for (size_t d = s->rank; d-- > 0; k /= s->dims[d])
        at += k % s->dims[d] * strides[d];
    return at;
}

static void put_stats(const dq_op_call *call, size_t row, double mean, double inverse)
{
    const state *s = call->state;
    uint32_t last = s->centre ? 2 : 1;
    if (s->centre && call->out_count > 1 && call->out[1])
        dq_tensor_put_double(call->out[1], row, mean);
    if (call->out_count > last && call->out[last])
        dq_tensor_put_double(call->out[last], row, inverse);
}

static void normalize(const dq_op_call *call, size_t row)
{
    const state *s = call->state;
    const dq_tensor *x = call->in[X], *scale = call->in[SCALE], *bias = dq_call_in(call, BIAS);
    size_t base = row * s->n;
    double mean = 0, variance = 0, n = (double)s->n;
    for (size_t k = 0; k < s->n && s->centre; k++)
        mean += dq_tensor_get_double(x, base + k);
    mean /= n;
    for (size_t k = 0; k < s->n; k++) {
        double d = dq_tensor_get_double(x, base + k) - mean;
        variance += d * d;
    }
    double inverse = 1 / sqrt(variance / n + s->epsilon);
    for (size_t k = 0; k < s->n; k++) {
        double y = (dq_tensor_get_double(x, base + k) - mean) * inverse *
                   dq_tensor_get_double(scale, factor_at(s, s->scale, row, k));
        if (bias)
            y += dq_tensor_get_double(bias, factor_at(s, s->bias, row, k));
        dq_tensor_put_double(call->out[0], base + k, y);
    }
    put_stats(call, row, mean, inverse);
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const dq_op_call *const *call = arg;
    for (size_t row = begin; row < end; row++)
        normalize(*call, row);
}

/* ---- In float ---- */

typedef struct job {
    const dq_op_call *call;
    const float *gamma, *beta; /* beta may be NULL */
} job;

/* Scale or bias as floats, one for each element of a row or for each channel; converted at `at` of the
 * scratch if it is not ready. */
static const float *factors(const dq_op_call *call, const dq_tensor *t, const size_t strides[DQ_MAX_RANK],
                            size_t at)
{
    const state *s = call->state;
    if (!t || ready(s, t))
        return t ? dq_data(t, float) : NULL;
    float *to = (float *)call->scratch + at;
    for (size_t k = 0; k < factor_count(s); k++) {
        size_t from = s->per_channel ? k : factor_at(s, strides, 0, k);
        dq_load_floats(call->kernels, t->dtype, t->data, from, 1, to + k);
    }
    return to;
}

static void normalize_floats(const job *j, size_t row, float *workspace)
{
    const dq_op_call *call = j->call;
    const state *s = call->state;
    const dq_tensor *x = call->in[X];
    dq_tensor *out = call->out[0];
    const float *from = dq_data(x, float) + row * s->n;
    float *to = out->dtype == DQ_FLOAT ? dq_data(out, float) + row * s->n : workspace;
    if (x->dtype != DQ_FLOAT) {
        dq_load_floats(call->kernels, x->dtype, x->data, row * s->n, s->n, workspace);
        from = workspace;
    }
    dq_row_norm norm = {.epsilon = s->epsilon, .centre = s->centre, .n = s->n, .broadcast = s->per_channel};
    dq_row_stats stats = dq_row_measure(call, &norm, from);
    size_t first = s->per_channel ? row % s->rows_per_image * (s->channels / s->rows_per_image) : 0;
    norm.n = s->per_channel ? s->plane : s->n;
    for (size_t k = 0, c = first; k < s->n; k += norm.n, c++) {
        norm.gamma = j->gamma + c;
        norm.beta = j->beta ? j->beta + c : NULL;
        dq_row_apply(call, &norm, &stats, from + k, to + k);
    }
    if (out->dtype != DQ_FLOAT)
        dq_store_from_floats(call->kernels, out->dtype, out->data, row * s->n, s->n, to, false);
    put_stats(call, row, stats.mean, stats.inverse);
}

static void piece_of_floats(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    for (size_t row = begin; row < end; row++)
        normalize_floats(j, row, dq_call_worker_scratch(j->call, worker));
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    if (call->in[X]->count == 0) {
        dq_row_stats_fill_nan(call, 1, call->out_count);
        return DQ_OK;
    }
    if (!s->floats) {
        dq_parallel(call->threads, s->rows, ELEMENTS_PER_TASK / s->n + 1, piece, &call);
        return DQ_OK;
    }
    job j = {call, factors(call, call->in[SCALE], s->scale, 0),
             factors(call, dq_call_in(call, BIAS), s->bias, s->bias_at)};
    dq_parallel(call->threads, s->rows, ELEMENTS_PER_TASK / s->n + 1, piece_of_floats, &j);
    return DQ_OK;
}

const dq_op_impl dq_op_layer_normalization = {layer_infer, layer_norm_prepare, run, 0};
const dq_op_impl dq_op_rms_normalization = {layer_infer, rms_norm_prepare, run, 0};
const dq_op_impl dq_op_instance_normalization = {instance_infer, instance_prepare, run,
                                                 DQ_OP_BATCH_SEPARABLE_FIRST};
const dq_op_impl dq_op_group_normalization = {group_infer, group_prepare, run, DQ_OP_BATCH_SEPARABLE_FIRST};
