/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft GatherBlockQuantized: gathers slices of a block-quantized tensor and dequantizes them,
 * (q - zero point) * scale in float, rounded to the type of the scales. uint8 data holds values of `bits`
 * bits, packed along the last axis, low bits first. The default zero point is 2^(bits - 1) for uint8, else 0.
 * An index outside the axis gives zeros. With block_size 0, the whole axis is one block. */
#include "ops/op.h"
#include "ops/rows.h"

#include <inttypes.h>
#include <string.h>

enum { DATA, INDICES, SCALES, ZEROS };

typedef struct state {
    unsigned bits;
    size_t rank, gather, quantize;
    int64_t dims[DQ_MAX_RANK]; /* of the data, counted in quantized values */
    size_t block;
    size_t scale_strides[DQ_MAX_RANK]; /* 0 along axes where the scale is broadcast */
    size_t zero_row;                   /* zero points in a row of the last axis, including padding */
    bool packed;                       /* several values in a byte of a uint8 tensor */
} state;

static dq_status read_axis(const dq_op_call *call, const char *name, int64_t absent, size_t rank,
                           size_t *axis, dq_error *err)
{
    int64_t value = dq_node_int(call->node, name, absent);
    if (!dq_axis(value, rank, axis))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute '%s' is %" PRId64 ", outside data of rank %zu", name, value, rank);
    return DQ_OK;
}

static dq_status read_qvalues(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *data = call->in[DATA];
    int64_t bits = dq_node_int(call->node, "bits", 4);
    if (data->rank == 0)
        return dq_call_fail_input(call, err, DATA, "is a scalar, expected at least one axis");
    s->rank = data->rank;
    memcpy(s->dims, data->dims, data->rank * sizeof *s->dims);
    s->bits = dq_dtype_get(data->dtype)->bits;
    if (data->dtype != DQ_UINT8)
        return DQ_OK;
    if (bits != 2 && bits != 4 && bits != 8)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'bits' is %" PRId64 ", expected 2, 4 or 8",
                            bits);
    s->bits = (unsigned)bits;
    s->packed = bits < 8;
    if (__builtin_mul_overflow(s->dims[s->rank - 1], 8 / bits, &s->dims[s->rank - 1]))
        return dq_no_memory(err, SIZE_MAX, "unpacked values");
    return DQ_OK;
}

static dq_status read_block(const dq_op_call *call, state *s, dq_error *err)
{
    int64_t block = dq_node_int(call->node, "block_size", 128), length = s->dims[s->quantize];
    if (block < 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'block_size' is %" PRId64 ", expected 0 or more", block);
    s->block = (size_t)(block ? block : length ? length : 1);
    return DQ_OK;
}

/* Checks the shape of the scales: one for each block along the quantized axis, broadcast along any axis of
 * length 1. */
static dq_status read_scales(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *scales = call->in[SCALES];
    char text[DQ_SHAPE_TEXT], expected_text[DQ_SHAPE_TEXT];
    int64_t expected[DQ_MAX_RANK];
    memcpy(expected, s->dims, s->rank * sizeof *expected);
    expected[s->quantize] =
        (int64_t)((size_t)expected[s->quantize] / s->block + ((size_t)expected[s->quantize] % s->block != 0));
    bool fits = scales->rank == s->rank;
    for (size_t d = 0; fits && d < s->rank; d++)
        fits = scales->dims[d] == expected[d] || scales->dims[d] == 1;
    if (!fits)
        return dq_call_fail_input(call, err, SCALES, "has shape %s, expected %s",
                                  dq_shape_text(scales->rank, scales->dims, text),
                                  dq_shape_text(s->rank, expected, expected_text));
    dq_broadcast_strides(scales, s->rank, expected, s->scale_strides);
    return DQ_OK;
}

static dq_status read_zeros(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *zeros = dq_call_in(call, ZEROS), *scales = call->in[SCALES];
    char text[DQ_SHAPE_TEXT], expected_text[DQ_SHAPE_TEXT];
    int64_t expected[DQ_MAX_RANK];
    if (!zeros)
        return DQ_OK;
    size_t last = s->rank - 1, per_byte = s->packed ? 8 / s->bits : 1;
    memcpy(expected, scales->dims, s->rank * sizeof *expected);
    expected[last] = (int64_t)(((size_t)expected[last] + per_byte - 1) / per_byte);
    if (zeros->rank != s->rank || memcmp(zeros->dims, expected, s->rank * sizeof *expected) != 0)
        return dq_call_fail_input(call, err, ZEROS, "has shape %s, expected %s",
                                  dq_shape_text(zeros->rank, zeros->dims, text),
                                  dq_shape_text(s->rank, expected, expected_text));
    s->zero_row = (size_t)expected[last] * per_byte;
    return DQ_OK;
}

static dq_status resolve(const dq_op_call *call, state *s, dq_error *err)
{
    DQ_TRY(read_qvalues(call, s, err));
    DQ_TRY(read_axis(call, "gather_axis", 0, s->rank, &s->gather, err));
    DQ_TRY(read_axis(call, "quantize_axis", 1, s->rank, &s->quantize, err));
    if (s->packed && s->gather == s->rank - 1)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'gather_axis' names the axis along which uint8 data is packed");
    DQ_TRY(read_block(call, s, err));
    DQ_TRY(read_scales(call, s, err));
    return read_zeros(call, s, err);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    state s = {0};
    const dq_tensor *indices = call->in[INDICES];
    int64_t dims[2 * DQ_MAX_RANK];
    size_t rank = 0;
    DQ_TRY(resolve(call, &s, err));
    for (size_t d = 0; d < s.gather; d++)
        dims[rank++] = s.dims[d];
    for (size_t d = 0; d < indices->rank; d++)
        dims[rank++] = indices->dims[d];
    for (size_t d = s.gather + 1; d < s.rank; d++)
        dims[rank++] = s.dims[d];
    return dq_call_output(call, 0, call->in[SCALES]->dtype, rank, dims, err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    return resolve(call, call->state, err);
}

/* ---- Running ------------------------------------------------------------------------------------------ */

/* Loads n quantized values (at most DQ_ROW) from number `first` on, as floats. */
static void qvalues_of(const dq_op_call *call, const state *s, size_t first, size_t n, float *out)
{
    const dq_tensor *data = call->in[DATA];
    int8_t some[DQ_ROW];
    if (dq_dtype_get(data->dtype)->cls == DQ_CLASS_FLOAT) {
        dq_load_floats(call->kernels, data->dtype, data->data, first, n, out);
    } else if (s->bits == 8) {
        for (size_t i = 0; i < n; i++)
            out[i] = (float)dq_data(data, uint8_t)[first + i];
    } else {
        dq_dtype dtype = !s->packed ? data->dtype : s->bits == 4 ? DQ_UINT4 : DQ_UINT2;
        dq_load_packed(dtype, data->data, first, n, some);
        for (size_t i = 0; i < n; i++)
            out[i] = (float)some[i];
    }
}

/* The zero point of the block whose scale has the flat index `index`. Rows of packed zero points end with
 * padding. */
static float zero_of(const dq_op_call *call, const state *s, size_t index)
{
    const dq_tensor *zeros = dq_call_in(call, ZEROS);
    if (!zeros)
        return call->in[DATA]->dtype == DQ_UINT8 ? (float)(1 << (s->bits - 1)) : 0;
    if (!s->packed)
        return (float)dq_tensor_get_double(zeros, index);
    size_t row = (size_t)call->in[SCALES]->dims[s->rank - 1];
    return (float)dq_get_bits(zeros->data, s->bits, index / row * s->zero_row + index % row);
}

/* Dequantizes a row of n values along the last axis. The row begins at coordinates `at` and flat index `from`
 * of the data, and at flat index `to` of the output. */
static void run_row(const dq_op_call *call, const state *s, const size_t *at, size_t n, size_t from,
                    size_t to)
{
    const dq_tensor *y = call->out[0];
    size_t last = s->rank - 1, base = 0;
    float values[DQ_ROW];
    for (size_t d = 0; d < last; d++)
        base += (d == s->quantize ? at[d] / s->block : at[d]) * s->scale_strides[d];
    for (size_t done = 0, count; done < n; done += count) {
        count = n - done < DQ_ROW ? n - done : DQ_ROW;
        qvalues_of(call, s, from + done, count, values);
        for (size_t i = 0, run; i < count; i += run) {
            size_t index_in_data = at[last] + done + i;
            size_t index = base + (last == s->quantize ? index_in_data / s->block : index_in_data) *
                                      s->scale_strides[last];
            float scale = (float)dq_tensor_get_double(call->in[SCALES], index),
                  zero = zero_of(call, s, index);
            run = last == s->quantize ? s->block - index_in_data % s->block : 1;
            run = run < count - i ? run : count - i;
            for (size_t j = i; j < i + run; j++)
                values[j] = (values[j] - zero) * scale;
        }
        dq_store_from_floats(call->kernels, y->dtype, y->data, to + done, count, values, true);
    }
}

typedef struct job {
    const dq_op_call *call;
    const state *s;
    /* Product of the axes before the gather axis; number of indices; length of the gather axis; elements of
     * a slice. */
    size_t outer, chosen, length, inner;
} job;

/* Computes one slice, of one index at one outer position: `inner` consecutive results. */
static void run_slice(const job *j, size_t slice)
{
    const state *s = j->s;
    const dq_tensor *indices = j->call->in[INDICES], *y = j->call->out[0];
    size_t outer = slice / j->chosen, to = slice * j->inner, at[DQ_MAX_RANK];
    int64_t index = dq_tensor_get_int(indices, slice % j->chosen);
    index += index < 0 ? (int64_t)j->length : 0;
    if (index < 0 || (size_t)index >= j->length) {
        size_t width = dq_dtype_get(y->dtype)->bits / 8;
        memset((char *)y->data + to * width, 0, j->inner * width);
        return;
    }
    size_t row = s->gather == s->rank - 1 ? 1 : (size_t)s->dims[s->rank - 1];
    size_t from = (outer * j->length + (size_t)index) * j->inner;
    for (size_t done = 0; done < j->inner; done += row) {
        size_t rest = from + done;
        for (size_t d = s->rank; d-- > 0; rest /= (size_t)s->dims[d])
            at[d] = rest % (size_t)s->dims[d];
        run_row(j->call, s, at, row, from + done, to + done);
    }
}

static void run_slices(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    for (size_t slice = begin; slice < end; slice++)
        run_slice(arg, slice);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    if (!call->out[0] || call->out[0]->count == 0)
        return DQ_OK;
    job j = {.call = call,
             .s = s,
             .outer = dq_dims_product(s->dims, 0, s->gather),
             .chosen = call->in[INDICES]->count,
             .length = (size_t)s->dims[s->gather],
             .inner = dq_dims_product(s->dims, s->gather + 1, s->rank)};
    dq_parallel(call->threads, j.outer * j.chosen, 4096 / j.inner + 1, run_slices, &j);
    return DQ_OK;
}

const dq_op_impl dq_op_gather_block_quantized = {infer, prepare, run, 0};
