/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/granularity.h"

#include "ops/rows.h"

#include <inttypes.h>

static dq_scale_granularity per_tensor(const dq_tensor *x)
{
    return (dq_scale_granularity){.length = 1, .inner = x->count, .block = 1};
}

/* Reads the axis along which a scale with more than one element runs. */
static dq_status read_axis(const dq_op_call *call, size_t *axis, dq_error *err)
{
    const dq_tensor *x = call->in[0];
    int64_t value = dq_node_int(call->node, "axis", 1);
    *axis = 0;
    if (x->rank == 1 || dq_axis(value, x->rank, axis))
        return DQ_OK;
    return dq_call_fail(call, err, DQ_BAD_MODEL,
                        "attribute 'axis' is %" PRId64 ", expected %d to %d for input 0 of rank %u", value,
                        -(int)x->rank, (int)x->rank - 1, (unsigned)x->rank);
}

static dq_status per_axis(const dq_op_call *call, dq_scale_granularity *out, dq_error *err)
{
    const dq_tensor *x = call->in[0], *scale = call->in[1];
    bool has_axis = call->version >= 13 || call->node->domain[0]; /* the first standard version has no axis */
    if (x->rank == 0 || !has_axis)
        return dq_call_fail_input(call, err, 1, "has %zu elements, expected 1%s", scale->count,
                                  x->rank == 0 ? " as input 0 is a scalar" : "");
    size_t axis;
    DQ_TRY(read_axis(call, &axis, err));
    if (scale->dims[0] != x->dims[axis])
        return dq_call_fail_input(call, err, 1,
                                  "has %zu elements, expected 1 or %" PRId64 " (axis %zu of input 0)",
                                  scale->count, x->dims[axis], axis);
    *out = (dq_scale_granularity){.length = (size_t)x->dims[axis],
                                  .inner = dq_dims_product(x->dims, axis + 1, x->rank),
                                  .block = 1,
                                  .block_step = 1};
    return DQ_OK;
}

static dq_status blocked(const dq_op_call *call, int64_t block, dq_scale_granularity *out, dq_error *err)
{
    const dq_tensor *x = call->in[0], *scale = call->in[1];
    size_t axis;
    DQ_TRY(read_axis(call, &axis, err));
    int64_t expected[DQ_MAX_RANK];
    for (size_t i = 0; i < x->rank; i++)
        expected[i] = x->dims[i];
    expected[axis] = x->dims[axis] / block + (x->dims[axis] % block != 0);
    bool fits = scale->rank == x->rank;
    for (size_t i = 0; fits && i < x->rank; i++)
        fits = scale->dims[i] == expected[i];
    if (!fits) {
        char got[DQ_SHAPE_TEXT], want[DQ_SHAPE_TEXT];
        return dq_call_fail_input(
            call, err, 1, "has shape %s, expected %s (blocks of %" PRId64 " along axis %zu of input 0)",
            dq_shape_text(scale->rank, scale->dims, got), dq_shape_text(x->rank, expected, want), block,
            axis);
    }
    size_t inner = dq_dims_product(x->dims, axis + 1, x->rank);
    *out = (dq_scale_granularity){.length = (size_t)x->dims[axis],
                                  .inner = inner,
                                  .block = (size_t)block,
                                  .outer_step = (size_t)expected[axis] * inner,
                                  .block_step = inner,
                                  .inner_step = 1};
    return DQ_OK;
}

/* Checks that the zero point has the scale's shape; a scalar and a vector of one element are equal. */
static dq_status check_zero_point(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *scale = call->in[1], *zero = dq_call_in(call, 2);
    if (!zero || dq_tensor_same_shape(zero, scale))
        return DQ_OK;
    if (zero->rank <= 1 && scale->rank <= 1 && zero->count == 1 && scale->count == 1)
        return DQ_OK;
    char got[DQ_SHAPE_TEXT], expected[DQ_SHAPE_TEXT];
    return dq_call_fail_input(call, err, 2, "has shape %s, expected %s as the scale has",
                              dq_shape_text(zero->rank, zero->dims, got),
                              dq_shape_text(scale->rank, scale->dims, expected));
}

dq_status dq_granularity_read(const dq_op_call *call, dq_scale_granularity *out, dq_error *err)
{
    const dq_tensor *x = call->in[0], *scale = call->in[1];
    int64_t block = dq_node_int(call->node, "block_size", 0);
    if (block < 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'block_size' is %" PRId64 ", expected 0 (no blocks) or more", block);
    DQ_TRY(check_zero_point(call, err));
    if (scale->rank <= 1 && scale->count == 1) {
        *out = per_tensor(x);
        return DQ_OK;
    }
    if (block > 0 && (scale->rank > 1 || x->rank == 1))
        return blocked(call, block, out, err);
    if (scale->rank <= 1)
        return per_axis(call, out, err);
    char got[DQ_SHAPE_TEXT];
    return dq_call_fail_input(call, err, 1, "has shape %s, expected a scalar or a vector%s",
                              dq_shape_text(scale->rank, scale->dims, got),
                              call->version < 21 ? "" : " where attribute 'block_size' is not given");
}

static void cut(dq_scale_segment *run, size_t length, size_t limit)
{
    run->length = length < limit ? length : limit;
    run->remainder = length - run->length;
}

/* The length of the segment that starts at `run->along` and `inside` within the inner axes. `left`: axis
 * indices that remain in its block. */
static size_t extent(const dq_scale_granularity *g, size_t inside, size_t left, dq_scale_segment *run)
{
    run->step = g->inner_step;
    run->axis_end = run->along + 1;
    if (g->inner > 1 || g->length == 1)
        return g->inner - inside;
    if (g->block == 1) { /* blocks of 1 along the innermost axis: a scale for each element */
        run->step = 1;
        run->axis_end = g->length;
    } else {
        run->step = 0;
        run->axis_end = left < g->length - run->along ? run->along + left : g->length;
    }
    return run->axis_end - run->along;
}

dq_scale_segment dq_granularity_segment(const dq_scale_granularity *g, size_t first, size_t end)
{
    size_t i = first % g->inner, row = first / g->inner;
    dq_scale_segment run = {.outer = row / g->length, .along = row % g->length};
    run.scale = run.outer * g->outer_step + run.along / g->block * g->block_step + i * g->inner_step;
    size_t length = extent(g, i, g->block - run.along % g->block, &run);
    cut(&run, length, end - first);
    return run;
}

void dq_granularity_next(const dq_scale_granularity *g, size_t first, size_t end, dq_scale_segment *run)
{
    if (run->remainder) {
        run->scale += run->length * run->step;
        cut(run, run->remainder, end - first);
        return;
    }
    run->along = run->axis_end;
    if (run->along == g->length) {
        run->along = 0;
        run->outer++;
        run->scale = run->outer * g->outer_step;
    } else if (g->inner == 1) { /* the last segment ended a block */
        run->scale += g->block_step;
    } else {
        size_t block = g->block == 1 ? run->along : run->along / g->block;
        run->scale = run->outer * g->outer_step + block * g->block_step;
    }
    cut(run, extent(g, 0, g->block, run), end - first);
}

size_t dq_granularity_blocks(const dq_scale_granularity *g, size_t first, size_t end,
                             const dq_scale_segment *run)
{
    if (g->inner != 1 || g->block == 1 || run->length != g->block)
        return 0;
    size_t row = g->length - run->along, left = end - first;
    bool no_gap = g->length % g->block == 0; /* the next row's blocks follow without a gap */
    return (no_gap || left < row ? left : row) / g->block;
}

void dq_scale_segment_load(const dq_tensor *t, const dq_scale_segment *run, size_t n, double *out)
{
    if (run->step) {
        dq_load_doubles(t->dtype, t->data, run->scale, n, out);
        return;
    }
    dq_load_doubles(t->dtype, t->data, run->scale, 1, out);
    for (size_t i = 1; i < n; i++)
        out[i] = out[0];
}
