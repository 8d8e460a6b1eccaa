/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/copy_nd.h"

#include "base/checked.h"
#include "kernels/kernels.h"

#include <string.h>

enum { GRAIN = 16384 /* elements of a task, about */ };

void dq_copy_nd_coalesce(dq_copy_nd *m)
{
    size_t kept = 0;
    for (size_t d = 0; d < m->rank; d++) {
        size_t n = m->dims[d];
        if (n == 1)
            continue;
        bool join =
            kept > 0 && m->from[kept - 1] == m->from[d] * (int64_t)n && m->to[kept - 1] == m->to[d] * n;
        if (!join)
            m->dims[kept++] = 1;
        m->dims[kept - 1] *= n;
        m->from[kept - 1] = m->from[d];
        m->to[kept - 1] = m->to[d];
    }
    m->rank = kept;
}

dq_copy_nd dq_copy_nd_part(const dq_tensor *whole, size_t axis, size_t begin, size_t length, bool into_whole)
{
    size_t inner = dq_dims_product(whole->dims, axis + 1, whole->rank);
    size_t outer = dq_dims_product(whole->dims, 0, axis);
    size_t run = length * inner, stride = (size_t)whole->dims[axis] * inner;
    dq_copy_nd m = {0};
    if (into_whole)
        m.to_base = begin * inner;
    else
        m.from_base = begin * inner;
    dq_copy_nd_add(&m, outer, (int64_t)(into_whole ? run : stride), into_whole ? stride : run);
    dq_copy_nd_add(&m, run, 1, 1);
    dq_copy_nd_coalesce(&m);
    return m;
}

/* ---- The innermost axis -------------------------------------------------------------------------------- */

typedef struct b16 {
    uint64_t half[2];
} b16;

#define STEP(name, T)                                                                                        \
    static void name(char *to, size_t to_step, const char *from, int64_t from_step, size_t n)                \
    {                                                                                                        \
        T *restrict y = (T *)(void *)to;                                                                     \
        const T *restrict x = (const T *)(const void *)from;                                                 \
        if (from_step == 0 && to_step == 1) {                                                                \
            const T v = *x;                                                                                  \
            for (size_t i = 0; i < n; i++)                                                                   \
                y[i] = v;                                                                                    \
        } else if (from_step == 2 && to_step == 1) {                                                         \
            for (size_t i = 0; i < n; i++)                                                                   \
                y[i] = x[2 * i];                                                                             \
        } else {                                                                                             \
            for (size_t i = 0; i < n; i++)                                                                   \
                y[i * to_step] = x[(int64_t)i * from_step];                                                  \
        }                                                                                                    \
    }

STEP(step_1, uint8_t)
STEP(step_2, uint16_t)
STEP(step_4, uint32_t)
STEP(step_8, uint64_t)
STEP(step_16, b16)

typedef void step_fn(char *to, size_t to_step, const char *from, int64_t from_step, size_t n);

static step_fn *step_of(size_t width)
{
    switch (width) {
    case 1:
        return step_1;
    case 2:
        return step_2;
    case 4:
        return step_4;
    case 8:
        return step_8;
    default:
        return step_16;
    }
}

/* memcpy: data may be unaligned. */
#define PICK(T, to_at, from_at)                                                                              \
    do {                                                                                                     \
        for (size_t i = 0; i < n; i++)                                                                       \
            memcpy((char *)to + (to_at) * sizeof(T), (const char *)from + (from_at) * sizeof(T), sizeof(T)); \
        return;                                                                                              \
    } while (0)

#define BY_INDEX(name, to_at, from_at)                                                                       \
    void name(size_t width, void *to, const void *from, const size_t *at, size_t n)                          \
    {                                                                                                        \
        switch (width) {                                                                                     \
        case 1:                                                                                              \
            PICK(uint8_t, to_at, from_at);                                                                   \
        case 2:                                                                                              \
            PICK(uint16_t, to_at, from_at);                                                                  \
        case 4:                                                                                              \
            PICK(uint32_t, to_at, from_at);                                                                  \
        case 8:                                                                                              \
            PICK(uint64_t, to_at, from_at);                                                                  \
        case 16:                                                                                             \
            PICK(b16, to_at, from_at);                                                                       \
        default:                                                                                             \
            for (size_t i = 0; i < n; i++)                                                                   \
                memcpy((char *)to + (to_at)*width, (const char *)from + (from_at)*width, width);             \
        }                                                                                                    \
    }

BY_INDEX(dq_gather_elements, i, at[i])
BY_INDEX(dq_scatter_elements, at[i], i)

/* ---- All axes ------------------------------------------------------------------------------------------ */

typedef struct job {
    const dq_copy_nd *m;
    size_t width; /* bytes of an element; 0: packed */
    unsigned bits;
    step_fn *step;
    char *to;
    const char *from;
} job;

/* Copies up to MAX_INLINE_BYTES bytes without a call of memcpy. */
enum { MAX_INLINE_BYTES = 64 };
static inline void copy_short(char *to, const char *from, size_t n)
{
    if (n >= 16) {
        for (size_t i = 0; i + 16 < n; i += 16)
            memcpy(to + i, from + i, 16);
        memcpy(to + n - 16, from + n - 16, 16);
    } else if (n >= 8) {
        memcpy(to, from, 8);
        memcpy(to + n - 8, from + n - 8, 8);
    } else if (n >= 4) {
        memcpy(to, from, 4);
        memcpy(to + n - 4, from + n - 4, 4);
    } else {
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
    }
}

static void packed_row(const job *j, size_t to, int64_t from)
{
    const dq_copy_nd *m = j->m;
    size_t last = m->rank - 1, n = m->rank ? m->dims[last] : 1;
    for (size_t i = 0; i < n; i++)
        dq_put_bits(
            j->to, j->bits, to + i * (m->rank ? m->to[last] : 1),
            dq_get_bits(j->from, j->bits, (size_t)(from + (int64_t)i * (m->rank ? m->from[last] : 1))));
}

/* Copies `rows` rows along the last axis that are adjacent along the axis before it. */
static void some_rows(const job *j, size_t to, int64_t from, size_t rows)
{
    const dq_copy_nd *m = j->m;
    const size_t last = m->rank - 1, n = m->rank ? m->dims[last] : 1, width = j->width;
    const int64_t from_step = m->rank ? m->from[last] : 1;
    const size_t to_step = m->rank ? m->to[last] : 1;
    const size_t to_next = rows > 1 ? m->to[last - 1] * width : 0;
    const int64_t from_next = rows > 1 ? m->from[last - 1] * (int64_t)width : 0;
    char *y = j->to + to * width;
    const char *x = j->from + from * (int64_t)width;
    const bool dense = from_step == 1 && to_step == 1;
    if (dense && n * width <= MAX_INLINE_BYTES)
        for (; rows > 0; rows--, y += to_next, x += from_next)
            copy_short(y, x, n * width);
    for (; rows > 0; rows--, y += to_next, x += from_next)
        if (dense)
            memcpy(y, x, n * width);
        else
            j->step(y, to_step, x, from_step, n);
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const dq_copy_nd *m = j->m;
    size_t outer = m->rank ? m->rank - 1 : 0, coord[DQ_MOVE_RANK] = {0}, to = m->to_base, rows = 1;
    int64_t from = (int64_t)m->from_base;
    for (size_t d = outer, rest = begin; d-- > 0; rest /= m->dims[d]) {
        coord[d] = rest % m->dims[d];
        to += coord[d] * m->to[d];
        from += (int64_t)coord[d] * m->from[d];
    }
    for (size_t i = begin; i < end; i += rows) {
        if (j->width == 0) {
            packed_row(j, to, from);
        } else {
            rows = outer ? m->dims[outer - 1] - coord[outer - 1] : 1;
            rows = rows < end - i ? rows : end - i;
            some_rows(j, to, from, rows);
        }
        for (size_t d = outer, step = rows; d-- > 0; step = 1) {
            to += step * m->to[d];
            from += (int64_t)step * m->from[d];
            coord[d] += step;
            if (coord[d] < m->dims[d])
                break;
            to -= m->dims[d] * m->to[d];
            from -= (int64_t)m->dims[d] * m->from[d];
            coord[d] = 0;
        }
    }
}

/* ---- Transpose of two axes ----------------------------------------------------------------------------- */

/* Rows and columns of the source that are transposed at a time; more pixels if there are few channels. */
enum { COLUMNS = 64, ROWS = 256, CHANNELS = 4, PIXELS = 4096 };

/* A transposition. The destination's innermost axis is contiguous there and is a column of the source. Axis
 * `side` of the destination is a row of the source. */
typedef struct transpose {
    const dq_kernels *kernels;
    dq_copy_nd outer; /* all axes except these two */
    size_t rows, cols, src_stride, dst_stride, width;
    size_t rows_at_once, cols_at_once;
    char *to;
    const char *from;
} transpose;

static bool find_transpose(const dq_copy_nd *m, size_t width, transpose *t)
{
    size_t last = m->rank - 1, side = 0;
    if (m->rank < 2 || (width != 1 && width != 2 && width != 4) || m->to[last] != 1 || m->from[last] <= 1)
        return false;
    while (side < last && m->from[side] != 1)
        side++;
    /* With two columns, STEP copies every second element. */
    if (side == last || m->dims[side] <= 2 || m->dims[last] < 2)
        return false;
    *t = (transpose){.rows = m->dims[last],
                     .cols = m->dims[side],
                     .src_stride = (size_t)m->from[last],
                     .dst_stride = m->to[side],
                     .width = width,
                     .rows_at_once = m->dims[side] <= CHANNELS ? PIXELS : ROWS,
                     .cols_at_once = m->dims[last] <= CHANNELS ? PIXELS : COLUMNS};
    for (size_t d = 0; d < last; d++)
        if (d != side)
            dq_copy_nd_add(&t->outer, m->dims[d], m->from[d], m->to[d]);
    return true;
}

static void transpose_block(const transpose *t, const char *from, char *to, size_t rows, size_t cols)
{
    const void *src = from;
    void *dst = to;
    if (t->width == 1)
        t->kernels->transpose_x8(src, t->src_stride, rows, cols, 0, dst, t->dst_stride);
    else if (t->width == 2)
        t->kernels->transpose_x16(src, t->src_stride, rows, cols, dst, t->dst_stride);
    else
        t->kernels->transpose_x32(src, t->src_stride, rows, cols, dst, t->dst_stride);
}

static void transpose_part(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const transpose *t = arg;
    size_t strips = (t->cols + t->cols_at_once - 1) / t->cols_at_once;
    for (size_t i = begin; i < end; i++) {
        size_t first = i % strips * t->cols_at_once, cols = dq_least(t->cols - first, t->cols_at_once);
        int64_t from = (int64_t)first;
        size_t to = first * t->dst_stride, rest = i / strips;
        for (size_t d = t->outer.rank; d-- > 0; rest /= t->outer.dims[d]) {
            from += (int64_t)(rest % t->outer.dims[d]) * t->outer.from[d];
            to += rest % t->outer.dims[d] * t->outer.to[d];
        }
        for (size_t r = 0; r < t->rows; r += t->rows_at_once)
            transpose_block(t, t->from + (from + (int64_t)(r * t->src_stride)) * (int64_t)t->width,
                            t->to + (to + r) * t->width, dq_least(t->rows - r, t->rows_at_once), cols);
    }
}

static void run_transpose(const dq_op_call *call, transpose *t)
{
    size_t count = (t->cols + t->cols_at_once - 1) / t->cols_at_once, strip = t->rows * t->cols_at_once;
    for (size_t d = 0; d < t->outer.rank; d++)
        count *= t->outer.dims[d];
    t->kernels = call->kernels;
    dq_parallel(call->threads, count, strip < GRAIN ? GRAIN / strip : 1, transpose_part, t);
}

void dq_copy_nd_run(const dq_op_call *call, const dq_copy_nd *m, dq_dtype dtype, void *to, const void *from)
{
    size_t rows = 1, width = dq_element_width(dtype);
    for (size_t d = 0; d < m->rank; d++)
        if (m->dims[d] == 0)
            return;
    for (size_t d = 0; d + 1 < m->rank; d++)
        rows *= m->dims[d];
    transpose t;
    if (find_transpose(m, width, &t)) {
        t.to = (char *)to + m->to_base * width;
        t.from = (const char *)from + m->from_base * width;
        run_transpose(call, &t);
        return;
    }
    size_t run = m->rank ? m->dims[m->rank - 1] : 1;
    job j = {.m = m,
             .width = width,
             .bits = dq_dtype_get(dtype)->bits,
             .step = step_of(width),
             .to = to,
             .from = from};
    /* Adjacent elements of a packed type share bytes: one thread writes them all. */
    size_t grain = width == 0 ? rows : run < GRAIN ? GRAIN / run : 1;
    dq_parallel(call->threads, rows, grain, piece, &j);
}

void dq_fill_elements(dq_dtype dtype, void *to, size_t count, const void *value)
{
    size_t width = dq_element_width(dtype), bytes = 0;
    if (count == 0 || !dq_dtype_size(dtype, count, &bytes))
        return;
    if (!value || width == 0)
        memset(to, 0, bytes);
    if (!value)
        return;
    unsigned bits = dq_dtype_get(dtype)->bits;
    for (size_t i = 0; i < count && width == 0; i++)
        dq_put_bits(to, bits, i, dq_get_bits(value, bits, 0));
    if (width)
        step_of(width)(to, 1, value, 0, count);
}

void dq_clear_tail_bits(dq_tensor *t)
{
    if (dq_dtype_is_packed(t->dtype) && t->size)
        ((char *)t->data)[t->size - 1] = 0;
}

dq_status dq_copy_all(const dq_op_call *call, dq_error *err)
{
    (void)err;
    dq_clear_tail_bits(call->out[0]);
    if (call->out[0]->count)
        dq_copy_nd_run(call, call->state, call->in[0]->dtype, call->out[0]->data, call->in[0]->data);
    return DQ_OK;
}
