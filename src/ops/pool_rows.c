#include "ops/pool_rows.h"

#include "base/checked.h"

#include <math.h>
#include <string.h>

/* Places along the last axis under all windows. */
static size_t line_length(const dq_window *w)
{
    size_t last = w->rank - 1;
    return w->out[last] ? (size_t)((w->out[last] - 1) * w->stride[last] + dq_window_span(w, last)) : 0;
}

bool dq_pool_rows_fits(const dq_window *w, dq_dtype dtype, bool max)
{
    enum { FAR = 4096 };
    return (dtype == DQ_FLOAT || (max && (dtype == DQ_UINT8 || dtype == DQ_INT8))) &&
           line_length(w) / 2 <= (size_t)w->in[w->rank - 1] + FAR;
}

/* Places of a line that are as many as the stride apart. */
static size_t phase_length(const dq_window *w)
{
    size_t step = (size_t)w->stride[w->rank - 1];
    return (line_length(w) + step - 1) / step;
}

bool dq_pool_rows_room(const dq_window *w, bool max, size_t *bytes)
{
    /* the line, the same in phases, and the columns' counts */
    size_t size = max ? sizeof(float) : sizeof(double), line, all;
    return dq_mul_size(phase_length(w), (size_t)w->stride[w->rank - 1], &line) &&
           dq_mul_size(line, 2, &all) && dq_add_size(all, (size_t)w->out[w->rank - 1], &all) &&
           dq_mul_size(all, size, bytes) && dq_add_size(*bytes, DQ_MAX_SLACK, bytes);
}

size_t dq_pool_overlap(int64_t origin, int64_t kernel, int64_t step, int64_t low, int64_t high,
                       int64_t *first)
{
    int64_t skipped = origin < low ? (low - origin - 1) / step + 1 : 0;
    *first = origin + skipped * step;
    if (*first >= high || skipped >= kernel)
        return 0;
    int64_t left = kernel - skipped, room = (high - *first - 1) / step + 1;
    return (size_t)(left < room ? left : room);
}

/* The rows of a plane under the windows of a row of results. */
typedef struct under {
    size_t plane, counts[DQ_MAX_RANK], rows; /* along the outer axes, and their product */
    int64_t origin[DQ_MAX_RANK], first[DQ_MAX_RANK];
} under;

static under find_rows(const dq_window *w, size_t row)
{
    under u = {.rows = 1};
    for (size_t d = w->rank - 1; d-- > 0; row /= (size_t)w->out[d]) {
        u.origin[d] = (int64_t)(row % (size_t)w->out[d]) * w->stride[d] - w->begin[d];
        u.counts[d] = dq_pool_overlap(u.origin[d], w->kernel[d], w->dilation[d], 0, w->in[d], &u.first[d]);
        u.rows *= u.counts[d];
    }
    u.plane = row;
    return u;
}

/* Where row number i of those begins, in elements. */
static size_t row_offset(const dq_window *w, const under *u, size_t i)
{
    size_t last = w->rank - 1, step = (size_t)w->in[last], offset = 0;
    for (size_t d = last; d-- > 0; i /= u->counts[d]) {
        offset += (size_t)(u->first[d] + (int64_t)(i % u->counts[d]) * w->dilation[d]) * step;
        step *= (size_t)w->in[d];
    }
    return u->plane * step + offset;
}

/* The part of a line that is input: where it begins in the line, and how much there is. */
static size_t reach(const dq_window *w, size_t *begin)
{
    size_t last = w->rank - 1, length = line_length(w);
    *begin = (size_t)w->begin[last] < length ? (size_t)w->begin[last] : length;
    size_t left = length - *begin;
    return left < (size_t)w->in[last] ? left : (size_t)w->in[last];
}

/* A line, and the columns of windows: element i of column k is phases[k * dilation % stride][i + k * dilation
 * / stride]. With a stride of 1 that is the line itself. */
#define LINES(T, name, lowest, join)                                                                         \
    static const T *name##_phases(const dq_window *w, const T *restrict line, T *restrict phases)            \
    {                                                                                                        \
        size_t step = (size_t)w->stride[w->rank - 1], length = phase_length(w);                              \
        if (step == 1)                                                                                       \
            return line;                                                                                     \
        if (step == 2) /* spelled out for compilers */                                                       \
            for (size_t i = 0; i < length; i++) {                                                            \
                phases[i] = line[2 * i];                                                                     \
                phases[length + i] = line[2 * i + 1];                                                        \
            }                                                                                                \
        else                                                                                                 \
            for (size_t p = 0; p < step; p++)                                                                \
                for (size_t i = 0; i < length; i++)                                                          \
                    phases[p * length + i] = line[i * step + p];                                             \
        return phases;                                                                                       \
    }                                                                                                        \
    static void name##_columns(const dq_kernels *kernels, const dq_window *w, const T *phases, T *out)       \
    {                                                                                                        \
        size_t last = w->rank - 1, step = (size_t)w->stride[last], n = (size_t)w->out[last];                 \
        (void)kernels;                                                                                       \
        if (w->kernel[last] == 1)                                                                            \
            memcpy(out, phases, n * sizeof *out);                                                            \
        for (size_t k = 1; k < (size_t)w->kernel[last]; k++) {                                               \
            size_t at = k * (size_t)w->dilation[last];                                                       \
            const T *x = phases + at % step * phase_length(w) + at / step;                                   \
            join(out, k == 1 ? phases : out, x, n);                                                          \
        }                                                                                                    \
    }                                                                                                        \
    static void name##_clear(const dq_window *w, T *line)                                                    \
    {                                                                                                        \
        size_t length = phase_length(w) * (size_t)w->stride[w->rank - 1];                                    \
        for (size_t i = 0; i < length; i++)                                                                  \
            line[i] = lowest;                                                                                \
    }

#define JOIN_FLOATS(out, a, b, n) kernels->float_rows->max(a, 1, b, 1, n, out)
#define JOIN_SUMS(out, a, b, n)                                                                              \
    for (size_t e = 0; e < (n); e++)                                                                         \
    (out)[e] = (a)[e] + (b)[e]

LINES(float, f32, -INFINITY, JOIN_FLOATS)
LINES(double, sum, 0, JOIN_SUMS)

/* What is not input in a line stays as it is from row to row. */
#define MAX_ROWS(T, name, join)                                                                              \
    static void name##_rows(const dq_kernels *kernels, const dq_window *w, const T *in, T *out,              \
                            size_t begin, size_t end, T *line)                                               \
    {                                                                                                        \
        size_t from, n = reach(w, &from), columns = (size_t)w->out[w->rank - 1];                             \
        (void)kernels;                                                                                       \
        name##_clear(w, line);                                                                               \
        for (size_t row = begin; row < end; row++) {                                                         \
            under u = find_rows(w, row);                                                                     \
            const T *first = u.rows ? in + row_offset(w, &u, 0) : NULL;                                      \
            if (u.rows == 0)                                                                                 \
                name##_clear(w, line);                                                                       \
            if (u.rows == 1)                                                                                 \
                memcpy(line + from, first, n * sizeof *line);                                                \
            for (size_t i = 1; i < u.rows; i++) {                                                            \
                const T *x = in + row_offset(w, &u, i);                                                      \
                join(line + from, i == 1 ? first : line + from, x, n);                                       \
            }                                                                                                \
            T *phases = line + phase_length(w) * (size_t)w->stride[w->rank - 1];                             \
            name##_columns(kernels, w, name##_phases(w, line, phases), out + row * columns);                 \
        }                                                                                                    \
    }

MAX_ROWS(float, f32, JOIN_FLOATS)

/* Rows of results from `row` on, before `end`, that lie in one plane and whose windows lie on the input along
 * the outer axis: their rows are evenly apart. */
static size_t even_rows(const dq_window *w, const under *u, size_t row, size_t end)
{
    if (w->rank != 2 || u->rows != (size_t)w->kernel[0])
        return 1;
    size_t left = (size_t)w->out[0] - row % (size_t)w->out[0];
    size_t room = (size_t)((w->in[0] - dq_window_span(w, 0) - u->origin[0]) / w->stride[0]) + 1;
    left = left < end - row ? left : end - row;
    return left < room ? left : room;
}

/* line[j] becomes the larger of itself and x[j], where `flip` brings codes to the order of uint8. */
static void join_codes(uint8_t *restrict line, const uint8_t *restrict x, size_t n, uint8_t flip)
{
    for (size_t j = 0; j < n; j++) {
        uint8_t a = line[j] ^ flip, b = x[j] ^ flip;
        line[j] = (a > b ? a : b) ^ flip;
    }
}

/* 8-bit codes. Rows that are not evenly apart are brought to their line one by one. */
static void code_rows(const dq_kernels *kernels, const dq_window *w, bool is_signed, const uint8_t *in,
                      uint8_t *out, size_t begin, size_t end, uint8_t *line)
{
    const size_t last = w->rank - 1, length = phase_length(w) * (size_t)w->stride[last];
    size_t from;
    dq_max_windows rows = {.n = reach(w, &from),
                           .line = line,
                           .from = from,
                           .kernel = (size_t)w->kernel[last],
                           .stride = (size_t)w->stride[last],
                           .dilation = (size_t)w->dilation[last],
                           .width = (size_t)w->out[last],
                           .is_signed = is_signed};
    memset(line, is_signed ? 0x80 : 0, length);
    for (size_t row = begin; row < end; row += rows.rows) {
        under u = find_rows(w, row);
        rows.out = out + row * rows.width;
        rows.rows = even_rows(w, &u, row, end);
        rows.under = w->rank == 2 ? u.rows : 0;
        if (rows.under) {
            rows.x = in + row_offset(w, &u, 0);
            rows.x_step = (size_t)(w->dilation[0] * w->in[1]);
            rows.row_step = (size_t)(w->stride[0] * w->in[1]);
        } else {
            memset(line, is_signed ? 0x80 : 0, length);
            for (size_t i = 0; i < u.rows; i++)
                join_codes(line + from, in + row_offset(w, &u, i), rows.n, is_signed ? 0x80 : 0);
        }
        kernels->max_windows(&rows);
    }
}

void dq_max_rows(const dq_kernels *kernels, const dq_window *w, dq_dtype dtype, const void *in, void *out,
                 size_t begin, size_t end, void *room)
{
    if (dtype == DQ_FLOAT)
        f32_rows(kernels, w, in, out, begin, end, room);
    else
        code_rows(kernels, w, dtype == DQ_INT8, in, out, begin, end, room);
}

/* Elements that a window counts along an axis. */
static size_t counted(const dq_window *w, size_t d, int64_t origin, bool pads)
{
    int64_t first;
    return dq_pool_overlap(origin, w->kernel[d], w->dilation[d], pads ? -w->begin[d] : 0,
                           pads ? w->in[d] + w->end[d] : w->in[d], &first);
}

void dq_average_rows(const dq_kernels *kernels, const dq_window *w, bool pads, const float *in, float *out,
                     size_t begin, size_t end, void *room)
{
    size_t last = w->rank - 1, from, n = reach(w, &from), columns = (size_t)w->out[last];
    size_t length = phase_length(w) * (size_t)w->stride[last];
    double *line = room, *counts = line + 2 * length;
    for (size_t x = 0; x < columns; x++)
        counts[x] = (double)counted(w, last, (int64_t)x * w->stride[last] - w->begin[last], pads);
    for (size_t row = begin; row < end; row++) {
        under u = find_rows(w, row);
        double count = 1;
        sum_clear(w, line);
        for (size_t i = 0; i < u.rows; i++)
            kernels->float_rows->add_to(in + row_offset(w, &u, i), 0, 1, n, line + from);
        for (size_t d = 0; d < last; d++)
            count *= (double)counted(w, d, u.origin[d], pads);
        const double *phases = sum_phases(w, line, line + length);
        double *sums = phases == line ? line + length : line;
        sum_columns(kernels, w, phases, sums);
        for (size_t x = 0; x < columns; x++)
            out[row * columns + x] = (float)(sums[x] / (count * counts[x]));
    }
}
