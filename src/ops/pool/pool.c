/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPool, AveragePool and LpPool over windows, and their global forms over all spatial elements. Sums are in
 * double and rounded once. Their order is that of pool_rows.h; for a window of a whole plane that of
 * reduce.h; otherwise row-major. Padding is never the maximum. */
#include "base/checked.h"
#include "base/codec.h"
#include "base/math.h"
#include "ops/element.h"
#include "ops/pool/pool_rows.h"
#include "ops/reduce/reduce.h"
#include "ops/widened.h"
#include "ops/window.h"

#include <inttypes.h>
#include <math.h>

typedef enum kind { MAX, AVERAGE, LP } kind;

/* Approximate window elements per task: for the scalar loop, and for vectorized rows. */
enum { ELEMENTS_PER_TASK = 8192, ELEMENTS_PER_ROW_TASK = 1 << 15 };

typedef struct state {
    kind kind;
    dq_window window;
    size_t in_size, out_size, kernel_size; /* products over the spatial axes */
    double p;                              /* LP: order of the norm */
    bool count_pads;                       /* AVERAGE: count_include_pad */
    bool column_major;                     /* MAX: storage_order of indices */
    /* BY_WINDOWS: scalar loop. BY_ROWS, BY_PLACES: pool_rows.h, without and with indices. BY_PLANES:
     * reduce.h. */
    enum { BY_WINDOWS, BY_ROWS, BY_PLACES, BY_PLANES } way;
} state;

/* The part of one window that is inside the input: offset of its first element, and for each axis the number
 * of elements and the stride. */
typedef struct patch {
    size_t rank, count, base;
    size_t rows, row_base; /* count and offset over all axes but the last */
    size_t dims[DQ_MAX_RANK], strides[DQ_MAX_RANK];
} patch;

/* ---- Shapes ------------------------------------------------------------------------------------------- */

static dq_status windows(const dq_op_call *call, bool global, state *s, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    dq_window *w = &s->window;
    if (in->rank < 3)
        return dq_call_fail_input(call, err, 0, "has rank %u, expected 3 or more", in->rank);
    w->rank = in->rank - 2;
    size_t value;
    const int64_t *kernel = dq_node_ints(call->node, "kernel_shape", &value);
    if (!global && value != w->rank)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'kernel_shape' has %zu values, expected %zu",
                            value, w->rank);
    for (size_t d = 0; d < w->rank; d++) {
        w->in[d] = in->dims[d + 2];
        w->kernel[d] = global ? w->in[d] : kernel[d];
        if (!global && kernel[d] < 1)
            return dq_call_fail(call, err, DQ_BAD_MODEL,
                                "attribute 'kernel_shape' has %" PRId64 " at index %zu, expected 1 or more",
                                kernel[d], d);
        w->stride[d] = w->dilation[d] = w->out[d] = 1;
    }
    if (!global)
        DQ_TRY(dq_window_infer(call, 0, dq_node_int(call->node, "ceil_mode", 0) != 0, w, err));
    s->in_size = dq_dims_product(w->in, 0, w->rank);
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, bool global, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    state s = {0};
    DQ_TRY(windows(call, global, &s, err));
    int64_t dims[DQ_MAX_RANK] = {in->dims[0], in->dims[1]};
    for (size_t d = 0; d < s.window.rank; d++)
        dims[d + 2] = s.window.out[d];
    DQ_TRY(dq_call_output(call, 1, DQ_INT64, in->rank, dims, err));
    return dq_call_output(call, 0, in->dtype, in->rank, dims, err);
}

/* True if the only window is the whole plane. */
static bool one_window(const dq_window *w)
{
    for (size_t d = 0; d < w->rank; d++)
        if (w->out[d] != 1 || w->begin[d] != 0 || w->kernel[d] != w->in[d] || w->dilation[d] != 1)
            return false;
    return true;
}

static dq_status choose_way(dq_op_call *call, state *s, dq_error *err)
{
    bool max = s->kind == MAX, indices = call->out_count > 1 && call->out[1];
    dq_dtype dtype = call->in[0]->dtype;
    if ((s->kind == LP && s->p != 2) || s->in_size == 0 ||
        (indices && (dtype != DQ_FLOAT || s->in_size > UINT32_MAX)))
        return DQ_OK;
    if (!indices && s->kind != LP && one_window(&s->window) && dtype != DQ_DOUBLE && dtype != DQ_UINT16 &&
        dtype != DQ_INT16) {
        s->way = BY_PLANES;
        return DQ_OK;
    }
    if (!dq_pool_rows_fits(&s->window, dtype, max))
        return DQ_OK;
    s->way = indices ? BY_PLACES : BY_ROWS;
    if (!dq_pool_rows_workspace(&s->window, dtype, max, &call->worker_scratch_size) ||
        !dq_align_size(call->worker_scratch_size, DQ_ALIGN, &call->worker_scratch_size))
        return dq_no_memory(err, SIZE_MAX, "rows of windows");
    return DQ_OK;
}

static dq_status prepare(dq_op_call *call, kind what, bool global, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    s->kind = what;
    DQ_TRY(windows(call, global, s, err));
    s->out_size = dq_dims_product(s->window.out, 0, s->window.rank);
    s->kernel_size = 1;
    for (size_t d = 0; d < s->window.rank; d++) {
        size_t n = (size_t)s->window.kernel[d];
        s->kernel_size = s->kernel_size > SIZE_MAX / (n + 1) ? SIZE_MAX : s->kernel_size * n;
    }
    const dq_attr *p = dq_node_attr(call->node, "p"); /* a float in LpPool-1 */
    s->p = !p ? 2 : p->kind == DQ_ATTR_FLOAT ? (double)p->u.f : (double)p->u.i;
    s->count_pads = dq_node_int(call->node, "count_include_pad", 0) != 0;
    s->column_major = dq_node_int(call->node, "storage_order", 0) != 0;
    return choose_way(call, s, err);
}

/* Clips the window at `origin` to the input along all axes but the last; clip_last clips the last axis, for
 * each window of a row. */
static void clip_window(const dq_window *w, const int64_t origin[DQ_MAX_RANK], patch *p)
{
    size_t last = w->rank - 1, stride = (size_t)w->in[last];
    p->rank = w->rank;
    p->rows = 1;
    p->row_base = 0;
    for (size_t d = last; d-- > 0;) {
        int64_t first;
        p->dims[d] = dq_window_overlap(origin[d], w->kernel[d], w->dilation[d], 0, w->in[d], &first);
        p->strides[d] = (size_t)w->dilation[d] * stride;
        p->rows *= p->dims[d];
        if (p->dims[d])
            p->row_base += (size_t)first * stride;
        stride *= (size_t)w->in[d];
    }
    p->strides[last] = (size_t)w->dilation[last];
}

static inline void clip_last(const dq_window *w, int64_t origin, patch *p)
{
    size_t last = w->rank - 1;
    int64_t first;
    p->dims[last] = dq_window_overlap(origin, w->kernel[last], w->dilation[last], 0, w->in[last], &first);
    p->count = p->rows * p->dims[last];
    p->base = p->row_base + (p->dims[last] ? (size_t)first : 0);
}

/* Elements of the window inside the input or its padding. With ceil_mode a window may extend past the
 * padding. */
static size_t with_pads(const dq_window *w, const int64_t origin[DQ_MAX_RANK])
{
    size_t count = 1;
    for (size_t d = 0; d < w->rank; d++) {
        int64_t first;
        count *= dq_window_overlap(origin[d], w->kernel[d], w->dilation[d], -w->begin[d],
                                   w->in[d] + w->end[d], &first);
    }
    return count;
}

/* ---- One window ---------------------------------------------------------------------------------------- */

/* Advances to the next row along the last axis. Returns false after the last row. */
static bool next_row(const patch *p, size_t coord[DQ_MAX_RANK], size_t *at)
{
    for (size_t d = p->rank - 1; d-- > 0;) {
        *at += p->strides[d];
        if (++coord[d] < p->dims[d])
            return true;
        *at -= p->dims[d] * p->strides[d];
        coord[d] = 0;
    }
    return false;
}

/* Offset of the maximum; the first of equal ones. A NaN is greater than any number. p->count is not 0. */
#define FIND(name, S, C, value)                                                                              \
    static size_t name(const void *plane, const patch *p)                                                    \
    {                                                                                                        \
        const S *from = plane;                                                                               \
        size_t coord[DQ_MAX_RANK], at = p->base, best = at, last = p->rank - 1;                              \
        size_t n = p->dims[last], step = p->strides[last];                                                   \
        S x = from[at];                                                                                      \
        C highest = value;                                                                                   \
        for (size_t d = 0; d < last; d++)                                                                    \
            coord[d] = 0;                                                                                    \
        do {                                                                                                 \
            for (size_t i = 0; i < n; i++) {                                                                 \
                x = from[at + i * step];                                                                     \
                const C here = value;                                                                        \
                const bool above = !(here <= highest) & (highest == highest);                                \
                highest = above ? here : highest;                                                            \
                best = above ? at + i * step : best;                                                         \
            }                                                                                                \
        } while (next_row(p, coord, &at));                                                                   \
        return best;                                                                                         \
    }

FIND(find_f32, float, float, x)
FIND(find_f64, double, double, x)
FIND(find_f16, uint16_t, float, dq_f16_to_f32(x))
FIND(find_bf16, uint16_t, float, dq_bf16_to_f32(x))
FIND(find_u8, uint8_t, int, x)
FIND(find_i8, int8_t, int, x)
FIND(find_u16, uint16_t, int, x)
FIND(find_i16, int16_t, int, x)

static size_t find(dq_dtype dtype, const void *plane, const patch *p)
{
    switch (dtype) {
    case DQ_FLOAT:
        return find_f32(plane, p);
    case DQ_DOUBLE:
        return find_f64(plane, p);
    case DQ_FLOAT16:
        return find_f16(plane, p);
    case DQ_BFLOAT16:
        return find_bf16(plane, p);
    case DQ_INT8:
        return find_i8(plane, p);
    case DQ_UINT16:
        return find_u16(plane, p);
    case DQ_INT16:
        return find_i16(plane, p);
    default:
        return find_u8(plane, p);
    }
}

/* Sum of the elements; if order is not 0, of |x|^order. */
static double sum(const dq_tensor *in, size_t plane, const patch *p, double order)
{
    size_t coord[DQ_MAX_RANK] = {0}, at = plane + p->base, last = p->rank - 1;
    double total = 0;
    if (p->count == 0)
        return 0;
    do {
        for (size_t i = 0; i < p->dims[last]; i++) {
            size_t here = at + i * p->strides[last];
            double x =
                in->dtype == DQ_FLOAT ? (double)dq_data(in, float)[here] : dq_tensor_get_double(in, here);
            total += order == 0 ? x : order == 2 ? x * x : dq_pow(fabs(x), order);
        }
    } while (next_row(p, coord, &at));
    return total;
}

/* Converts the row-major index of an element of a plane to the column-major one. */
static size_t column_major(const dq_window *w, size_t at)
{
    size_t coord[DQ_MAX_RANK], index = 0;
    for (size_t d = w->rank; d-- > 0; at /= (size_t)w->in[d])
        coord[d] = at % (size_t)w->in[d];
    for (size_t d = w->rank; d-- > 0;)
        index = index * (size_t)w->in[d] + coord[d];
    return index;
}

static void put_lowest(dq_tensor *out, size_t i)
{
    dq_tensor_put_double(out, i, (double)-INFINITY);
}

/* Computes output i from a window of the plane that begins at element `plane`. */
static void pool_max(const state *s, const dq_op_call *call, size_t i, size_t plane, const patch *p)
{
    const dq_tensor *in = call->in[0];
    dq_tensor *out = call->out[0], *indices = call->out_count > 1 ? call->out[1] : NULL;
    if (p->count == 0) {
        if (out)
            put_lowest(out, i);
        if (indices)
            dq_data(indices, int64_t)[i] = (int64_t)plane;
        return;
    }
    size_t best = find(in->dtype, (const char *)in->data + plane * dq_element_width(in->dtype), p);
    if (out)
        dq_copy_elements(in, plane + best, out, i, 1);
    if (indices)
        dq_data(indices, int64_t)[i] =
            (int64_t)(plane + (s->column_major ? column_major(&s->window, best) : best));
}

/* ---- All windows --------------------------------------------------------------------------------------- */

static double mean_or_norm(const state *s, const dq_tensor *in, size_t plane,
                           const int64_t origin[DQ_MAX_RANK], const patch *p)
{
    double total = sum(in, plane, p, s->kind == LP ? s->p : 0);
    if (s->kind == LP)
        return s->p == 2 ? sqrt(total) : dq_pow(total, 1 / s->p);
    return total / (double)(s->count_pads ? with_pads(&s->window, origin) : p->count);
}

typedef struct job {
    const state *s;
    const dq_op_call *call;
} job;

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const state *s = j->s;
    const dq_op_call *call = j->call;
    size_t last = s->window.rank - 1, columns = (size_t)s->window.out[last];
    for (size_t i = begin; i < end;) {
        int64_t origin[DQ_MAX_RANK];
        patch p;
        size_t row_end = i - i % columns + columns, plane = i / s->out_size * s->in_size;
        dq_window_origin(&s->window, i % s->out_size, origin);
        clip_window(&s->window, origin, &p);
        for (; i < end && i < row_end; i++, origin[last] += s->window.stride[last]) {
            clip_last(&s->window, origin[last], &p);
            if (s->kind == MAX)
                pool_max(s, call, i, plane, &p);
            else
                dq_tensor_put_double(call->out[0], i, mean_or_norm(s, call->in[0], plane, origin, &p));
        }
    }
}

static dq_pool_rows rows_of(const job *j, size_t begin, size_t end, unsigned worker)
{
    return (dq_pool_rows){.kernels = j->call->kernels,
                          .window = &j->s->window,
                          .begin = begin,
                          .end = end,
                          .workspace = dq_call_worker_scratch(j->call, worker)};
}

static void rows_piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    const state *s = j->s;
    const dq_tensor *in = j->call->in[0], *out = j->call->out[0];
    const dq_pool_rows rows = rows_of(j, begin, end, worker);
    if (s->kind == MAX)
        dq_max_rows(&rows, in->dtype, in->data, out->data);
    else if (s->kind == LP)
        dq_norm_rows(&rows, in->data, out->data);
    else
        dq_average_rows(&rows, s->count_pads, in->data, out->data);
}

/* Like rows_piece, with indices. dq_max_pool_indices gives offsets in a plane; the output counts from the
 * first plane. */
static void indices_task(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    const state *s = j->s;
    size_t columns = (size_t)s->window.out[s->window.rank - 1];
    int64_t *indices = dq_data(j->call->out[1], int64_t);
    const dq_pool_rows rows = rows_of(j, begin, end, worker);
    dq_max_pool_indices(&rows, j->call->in[0]->data, j->call->out[0] ? j->call->out[0]->data : NULL, indices);
    for (size_t row = begin; row < end; row++) {
        const size_t plane = row * columns / s->out_size * s->in_size;
        for (size_t i = row * columns; i < (row + 1) * columns; i++)
            indices[i] =
                (int64_t)plane +
                (s->column_major ? (int64_t)column_major(&s->window, (size_t)indices[i]) : indices[i]);
    }
}

/* Items per task for about `work` window elements, of which an item has `each`. */
static size_t grain(size_t work, size_t each)
{
    return each < work ? work / (each + 1) + 1 : 1;
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    job j = {s, call};
    const dq_tensor *out = call->out[0] ? call->out[0] : call->out[1];
    size_t columns = (size_t)s->window.out[s->window.rank - 1];
    if (out->count == 0)
        return DQ_OK;
    if (s->way == BY_PLANES) {
        const dq_reduction planes = {s->kind == MAX ? DQ_REDUCE_MAX : DQ_REDUCE_MEAN,
                                     {1, out->count, {out->count}, {s->in_size}},
                                     {1, s->in_size, {s->in_size}, {1}}};
        dq_reduce_by_vectors(call->threads, call->kernels, &planes, call->in[0], call->out[0]);
    } else if (s->way != BY_WINDOWS)
        dq_parallel(call->threads, out->count / columns,
                    grain(ELEMENTS_PER_ROW_TASK, s->kernel_size * columns),
                    s->way == BY_ROWS ? rows_piece : indices_task, &j);
    else
        dq_parallel(call->threads, out->count, grain(ELEMENTS_PER_TASK, s->kernel_size), piece, &j);
    return DQ_OK;
}

#define POOL(symbol, what, global)                                                                           \
    static dq_status symbol##_infer(dq_op_call *call, dq_error *err)                                         \
    {                                                                                                        \
        return infer(call, global, err);                                                                     \
    }                                                                                                        \
    static dq_status symbol##_prepare(dq_op_call *call, dq_error *err)                                       \
    {                                                                                                        \
        return prepare(call, what, global, err);                                                             \
    }                                                                                                        \
    DQ_OP_WIDENED(symbol, !(global), symbol##_infer, symbol##_prepare, run, DQ_OP_BATCH_SEPARABLE_FIRST)

POOL(dq_op_max_pool, MAX, false)
POOL(dq_op_average_pool, AVERAGE, false)
POOL(dq_op_lp_pool, LP, false)
POOL(dq_op_global_max_pool, MAX, true)
POOL(dq_op_global_average_pool, AVERAGE, true)
POOL(dq_op_global_lp_pool, LP, true)
