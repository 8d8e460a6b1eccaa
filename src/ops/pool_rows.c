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

/* Rows under a window, at most. */
static bool most_rows(const dq_window *w, size_t *rows)
{
    *rows = 1;
    for (size_t d = 0; d + 1 < w->rank; d++)
        if (!dq_mul_size(*rows, (size_t)(w->kernel[d] < w->in[d] ? w->kernel[d] : w->in[d]), rows))
            return false;
    return true;
}

bool dq_pool_rows_room(const dq_window *w, bool max, size_t *bytes)
{
    _Static_assert(DQ_POOL_SLACK * sizeof(float) >= DQ_MAX_SLACK, "of codes, too");
    /* where rows begin, the line, and the columns' counts */
    size_t size = max ? sizeof(float) : sizeof(double), line, rows;
    return dq_mul_size(phase_length(w), (size_t)w->stride[w->rank - 1], &line) &&
           dq_add_size(line, (size_t)w->out[w->rank - 1], &line) && dq_add_size(line, DQ_POOL_SLACK, &line) &&
           dq_mul_size(line, size, bytes) && most_rows(w, &rows) &&
           dq_mul_size(rows, sizeof(size_t), &rows) && dq_add_size(*bytes, rows, bytes);
}

size_t dq_pool_overlap(int64_t origin, int64_t kernel, int64_t step, int64_t low, int64_t high,
                       int64_t *first)
{
    if (origin >= low && (kernel - 1) * step < high - origin) {
        *first = origin;
        return (size_t)kernel;
    }
    int64_t skipped = origin < low ? (low - origin - 1) / step + 1 : 0;
    *first = origin + skipped * step;
    if (*first >= high || skipped >= kernel)
        return 0;
    int64_t left = kernel - skipped, room = (high - *first - 1) / step + 1;
    return (size_t)(left < room ? left : room);
}

/* The rows of a plane under the windows of a row of results. */
typedef struct under {
    size_t plane, index[DQ_MAX_RANK]; /* of the row of results */
    size_t counts[DQ_MAX_RANK], rows; /* along the outer axes, and their product */
    int64_t origin[DQ_MAX_RANK], first[DQ_MAX_RANK];
} under;

static void find_axis(const dq_window *w, size_t d, under *u)
{
    u->origin[d] = (int64_t)u->index[d] * w->stride[d] - w->begin[d];
    u->counts[d] = dq_pool_overlap(u->origin[d], w->kernel[d], w->dilation[d], 0, w->in[d], &u->first[d]);
}

static void count_rows(const dq_window *w, under *u)
{
    u->rows = 1;
    for (size_t d = 0; d + 1 < w->rank; d++)
        u->rows *= u->counts[d];
}

static under find_rows(const dq_window *w, size_t row)
{
    under u;
    for (size_t d = w->rank - 1; d-- > 0; row /= (size_t)w->out[d]) {
        u.index[d] = row % (size_t)w->out[d];
        find_axis(w, d, &u);
    }
    u.plane = row;
    count_rows(w, &u);
    return u;
}

static void next_rows(const dq_window *w, under *u)
{
    size_t d = w->rank - 1;
    bool whole = true;
    while (whole && d-- > 0) {
        whole = ++u->index[d] == (size_t)w->out[d];
        u->index[d] = whole ? 0 : u->index[d];
        find_axis(w, d, u);
    }
    u->plane += whole;
    count_rows(w, u);
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

/* Where the rows begin, in elements. */
static void row_offsets(const dq_window *w, const under *u, size_t *at)
{
    size_t size = (size_t)w->in[w->rank - 1], rows = 1;
    at[0] = 0;
    for (size_t d = w->rank - 1; d-- > 0; size *= (size_t)w->in[d]) {
        const size_t first = (size_t)u->first[d] * size, step = (size_t)w->dilation[d] * size;
        /* each of those of the axes behind, once for each place on this one */
        for (size_t r = 0; r < rows; r++)
            for (size_t i = u->counts[d]; i-- > 0;)
                at[i * rows + r] = at[r] + first + i * step;
        rows *= u->counts[d];
    }
    for (size_t r = 0; r < rows; r++)
        at[r] += u->plane * size;
}

static dq_line_windows line_windows(const dq_window *w)
{
    size_t last = w->rank - 1;
    return (dq_line_windows){(size_t)w->out[last], (size_t)w->stride[last], (size_t)w->kernel[last],
                             (size_t)w->dilation[last]};
}

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

static void max_floats(const dq_float_pool *kernels, const dq_window *w, const float *in, float *out,
                       size_t begin, size_t end, size_t *at, size_t most)
{
    float *line = (float *)(void *)(at + most);
    size_t from, n = reach(w, &from), length = phase_length(w) * (size_t)w->stride[w->rank - 1];
    const dq_line_windows windows = line_windows(w);
    under u = find_rows(w, begin);
    for (size_t row = begin; row < end; row++, next_rows(w, &u)) {
        if (row == begin || u.rows == 0)
            for (size_t i = 0; i < length; i++)
                line[i] = -INFINITY;
        row_offsets(w, &u, at);
        if (u.rows)
            kernels->max_rows(in, at, u.rows, n, line + from);
        kernels->max_windows(line, &windows, out + row * windows.count);
    }
}

void dq_max_rows(const dq_kernels *kernels, const dq_window *w, dq_dtype dtype, const void *in, void *out,
                 size_t begin, size_t end, void *room)
{
    size_t most;
    if (dtype != DQ_FLOAT)
        code_rows(kernels, w, dtype == DQ_INT8, in, out, begin, end, room);
    else if (most_rows(w, &most))
        max_floats(kernels->float_pool, w, in, out, begin, end, room, most);
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
    size_t last = w->rank - 1, from, n = reach(w, &from), most, *at = room;
    size_t length = phase_length(w) * (size_t)w->stride[last] + DQ_POOL_SLACK;
    const dq_line_windows windows = line_windows(w);
    under u = find_rows(w, begin);
    if (!most_rows(w, &most))
        return;
    double *line = (double *)(void *)(at + most), *shares = line + length;
    memset(line, 0, length * sizeof *line);
    for (size_t x = 0; x < windows.count; x++)
        shares[x] = 1 / (double)counted(w, last, (int64_t)x * w->stride[last] - w->begin[last], pads);
    for (size_t row = begin; row < end; row++, next_rows(w, &u)) {
        double count = 1;
        row_offsets(w, &u, at);
        kernels->float_pool->sum_rows(in, at, u.rows, n, line + from);
        for (size_t d = 0; d < last; d++)
            count *= (double)counted(w, d, u.origin[d], pads);
        kernels->float_pool->mean_windows(line, &windows, 1 / count, shares, out + row * windows.count);
    }
}
