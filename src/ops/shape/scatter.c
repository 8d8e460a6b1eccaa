/* SPDX-License-Identifier: Apache-2.0 */
/* ScatterElements (and its older name Scatter), ScatterND: copies the data and replaces elements or slices by
 * updates, or combines them (`reduction`). Updates are applied in order: of several at one position the last
 * one stays, and sums have a fixed order. */
#include "ops/element.h"
#include "ops/rows.h"
#include "ops/widened.h"

#include <inttypes.h>
#include <math.h>

enum { DATA, INDICES, UPDATES };

typedef enum join { REPLACE, ADD, MUL, MIN, MAX } join;

typedef struct state {
    join join;
    size_t axis; /* ScatterElements */
} state;

static dq_status read_join(const dq_op_call *call, join *out, dq_error *err)
{
    static const char *const names[] = {"none", "add", "mul", "min", "max"};
    const char *value = dq_node_string(call->node, "reduction", "none");
    dq_dtype dtype = call->in[DATA]->dtype;
    unsigned cls = dq_dtype_get(dtype)->cls;
    for (int i = 0; i < 5; i++)
        if (strcmp(value, names[i]) == 0) {
            *out = (join)i;
            if (i != REPLACE && (cls == DQ_CLASS_STRING || cls == DQ_CLASS_COMPLEX))
                return dq_call_fail(call, err, DQ_BAD_MODEL,
                                    "attribute 'reduction' is '%s', which tensor(%s) does not have", value,
                                    dq_dtype_name(dtype));
            return DQ_OK;
        }
    return dq_call_fail(call, err, DQ_BAD_MODEL,
                        "attribute 'reduction' is '%s', expected none, add, mul, min or max", value);
}

/* ---- Reductions ---------------------------------------------------------------------------------------- */

static double join_doubles(join how, double a, double b)
{
    switch (how) {
    case ADD:
        return a + b;
    case MUL:
        return a * b;
    case MIN:
        return isnan(a) || a < b ? a : b;
    default:
        return isnan(a) || a > b ? a : b;
    }
}

static int64_t join_ints(join how, int64_t a, int64_t b, bool is_unsigned)
{
    bool less = is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;
    switch (how) {
    case ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case MUL:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case MIN:
        return less ? a : b;
    default:
        return less ? b : a;
    }
}

/* The same for floats: sums and products equal those of double, rounded. `at`: their positions; NULL:
 * contiguous. */
#define JOIN_EACH(next)                                                                                      \
    do {                                                                                                     \
        for (size_t i = 0; at && i < n; i++) {                                                               \
            const float a = y[at[i]], b = x[i];                                                              \
            y[at[i]] = next;                                                                                 \
        }                                                                                                    \
        for (size_t i = 0; !at && i < n; i++) {                                                              \
            const float a = y[i], b = x[i];                                                                  \
            y[i] = next;                                                                                     \
        }                                                                                                    \
    } while (0)

static void join_floats(join how, const float *restrict x, float *restrict y, const size_t *at, size_t n)
{
    if (how == ADD)
        JOIN_EACH(a + b);
    else if (how == MUL)
        JOIN_EACH(a * b);
    else if (how == MIN)
        JOIN_EACH(isnan(a) || a < b ? a : b);
    else
        JOIN_EACH(isnan(a) || a > b ? a : b);
}

static void store_update(join how, const dq_tensor *updates, size_t from, dq_tensor *out, size_t at, size_t n)
{
    if (how == REPLACE) {
        dq_copy_elements(updates, from, out, at, n);
        return;
    }
    if (out->dtype == DQ_FLOAT) {
        join_floats(how, dq_data(updates, float) + from, dq_data(out, float) + at, NULL, n);
        return;
    }
    unsigned cls = dq_dtype_get(out->dtype)->cls;
    for (size_t i = 0; i < n; i++) {
        if (cls == DQ_CLASS_FLOAT) {
            dq_tensor_put_double(out, at + i,
                                 join_doubles(how, dq_tensor_get_double(out, at + i),
                                              dq_tensor_get_double(updates, from + i)));
            continue;
        }
        int64_t value = join_ints(how, dq_tensor_get_int(out, at + i), dq_tensor_get_int(updates, from + i),
                                  cls == DQ_CLASS_UINT);
        dq_tensor_put_int(out, at + i, cls == DQ_CLASS_BOOL ? value != 0 : value);
    }
}

static void start(const dq_op_call *call)
{
    const dq_tensor *data = call->in[DATA];
    if (data->size && data->data != call->out[0]->data)
        memcpy(call->out[0]->data, data->data, data->size);
}

/* ---- ScatterElements ----------------------------------------------------------------------------------- */

static dq_status elements_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *data = call->in[DATA], *indices = call->in[INDICES], *updates = call->in[UPDATES];
    char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
    size_t axis;
    join how;
    DQ_TRY(dq_call_axis(call, 0, &axis, err));
    DQ_TRY(read_join(call, &how, err));
    bool fits = data->rank == indices->rank;
    for (size_t d = 0; fits && d < data->rank; d++)
        fits = d == axis || indices->dims[d] <= data->dims[d];
    if (!fits)
        return dq_call_fail_input(call, err, INDICES, "has shape %s, expected at most %s but for axis %zu",
                                  dq_shape_text(indices->rank, indices->dims, mine),
                                  dq_shape_text(data->rank, data->dims, theirs), axis);
    if (!dq_tensor_same_shape(indices, updates))
        return dq_call_fail_input(call, err, UPDATES, "has shape %s, expected that of the indices, %s",
                                  dq_shape_text(updates->rank, updates->dims, mine),
                                  dq_shape_text(indices->rank, indices->dims, theirs));
    return dq_call_output_like(call, 0, data->dtype, data, err);
}

static dq_status elements_prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(dq_call_axis(call, 0, &s->axis, err));
    return read_join(call, &s->join, err);
}

/* Applies n updates of a row, from number i on. `base` is the offset of the first one without its index along
 * the axis; `step` is the stride of that axis. */
static dq_status scatter_row(const dq_op_call *call, size_t i, size_t n, size_t base, size_t step,
                             dq_error *err)
{
    const state *s = call->state;
    const dq_tensor *data = call->in[DATA], *updates = call->in[UPDATES];
    size_t index[DQ_ROW], width = dq_element_width(data->dtype), along = s->axis + 1 < data->rank;
    size_t good = dq_load_indices(call->in[INDICES], i, n, data->dims[s->axis], index);
    if (good < n)
        return dq_call_fail_index(call, err, INDICES, DQ_BAD_INPUT,
                                  dq_tensor_get_int(call->in[INDICES], i + good), data->dims[s->axis]);
    for (size_t k = 0; along && k < n; k++)
        index[k] = index[k] * step + k;
    if (width && s->join == REPLACE) {
        dq_scatter_elements(width, (char *)call->out[0]->data + base * width,
                            (const char *)updates->data + i * width, index, n);
        return DQ_OK;
    }
    if (data->dtype == DQ_FLOAT)
        join_floats(s->join, dq_data(updates, float) + i, dq_data(call->out[0], float) + base, index, n);
    for (size_t k = 0; data->dtype != DQ_FLOAT && k < n; k++)
        store_update(s->join, updates, i + k, call->out[0], base + index[k], 1);
    return DQ_OK;
}

static dq_status elements_run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *data = call->in[DATA], *indices = call->in[INDICES];
    const state *s = call->state;
    size_t strides[DQ_MAX_RANK], coord[DQ_MAX_RANK] = {0};
    dq_strides(data->rank, data->dims, strides);
    size_t last = data->rank - 1, row = (size_t)indices->dims[last];
    start(call);
    for (size_t i = 0; i < indices->count; i += row) {
        size_t base = 0;
        for (size_t d = 0; d < last; d++)
            base += d == s->axis ? 0 : coord[d] * strides[d];
        for (size_t k = 0; k < row; k += DQ_ROW)
            DQ_TRY(scatter_row(call, i + k, row - k < DQ_ROW ? row - k : DQ_ROW,
                               base + (s->axis == last ? 0 : k), strides[s->axis], err));
        dq_next_coord(last, indices->dims, coord);
    }
    return DQ_OK;
}

#define JOINED (dq_node_string(call->node, "reduction", "none")[0] != 'n')
DQ_OP_WIDENED(dq_op_scatter_elements, JOINED, elements_infer, elements_prepare, elements_run, DQ_OP_IN_PLACE)

/* ---- ScatterND ----------------------------------------------------------------------------------------- */

static dq_status nd_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *data = call->in[DATA], *indices = call->in[INDICES], *updates = call->in[UPDATES];
    join how;
    DQ_TRY(read_join(call, &how, err));
    if (indices->rank == 0 || indices->dims[indices->rank - 1] > data->rank)
        return dq_call_fail_input(
            call, err, INDICES, "has rank %u and tuples of %" PRId64 ", expected tuples of at most %u",
            indices->rank, indices->rank ? indices->dims[indices->rank - 1] : 0, data->rank);
    size_t tuple = (size_t)indices->dims[indices->rank - 1], rank = 0;
    int64_t dims[2 * DQ_MAX_RANK];
    for (size_t d = 0; d + 1 < indices->rank; d++)
        dims[rank++] = indices->dims[d];
    for (size_t d = tuple; d < data->rank; d++)
        dims[rank++] = data->dims[d];
    bool fits = rank == updates->rank;
    for (size_t d = 0; fits && d < rank; d++)
        fits = dims[d] == updates->dims[d];
    if (!fits) {
        char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
        return dq_call_fail_input(call, err, UPDATES, "has shape %s, expected %s",
                                  dq_shape_text(updates->rank, updates->dims, mine),
                                  dq_shape_text(rank, dims, theirs));
    }
    return dq_call_output_like(call, 0, data->dtype, data, err);
}

static dq_status nd_prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    return read_join(call, &((state *)call->state)->join, err);
}

static dq_status nd_run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *data = call->in[DATA], *indices = call->in[INDICES], *updates = call->in[UPDATES];
    const state *s = call->state;
    size_t tuple = (size_t)indices->dims[indices->rank - 1], width = dq_element_width(data->dtype);
    size_t tuples = dq_dims_product(indices->dims, 0, indices->rank - 1);
    size_t slice = dq_dims_product(data->dims, tuple, data->rank);
    const bool singles = slice == 1 && width && s->join == REPLACE;
    start(call);
    for (size_t i = 0, n; i < tuples && (slice || tuple); i += n) {
        int64_t value[DQ_ROW];
        size_t at[DQ_ROW];
        n = DQ_ROW / (tuple ? tuple : 1);
        n = n < tuples - i ? n : tuples - i;
        dq_load_ints(indices->dtype, indices->data, i * tuple, n * tuple, value);
        const size_t good = dq_find_slices(data, 0, tuple, value, n, 0, at);
        if (good < n)
            return dq_call_fail_tuple(call, err, INDICES, value + good * tuple, data->dims);
        if (singles)
            dq_scatter_elements(width, call->out[0]->data, (const char *)updates->data + i * width, at, n);
        for (size_t k = 0; k < n && !singles; k++)
            store_update(s->join, updates, (i + k) * slice, call->out[0], at[k], slice);
    }
    return DQ_OK;
}

DQ_OP_WIDENED(dq_op_scatter_nd, JOINED, nd_infer, nd_prepare, nd_run, DQ_OP_IN_PLACE)
