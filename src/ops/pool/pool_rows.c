/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool/pool_rows.h"

#include "base/checked.h"
#include "ops/row_quantizer.h"

#include <math.h>
#include <string.h>

/* Positions along the last axis that all windows span. */
static size_t line_length(const dq_window *w)
{
    size_t last = w->rank - 1;
    return w->out[last] ? (size_t)((w->out[last] - 1) * w->stride[last] + dq_window_span(w, last)) : 0;
}

bool dq_pool_rows_fits(const dq_window *w, dq_dtype dtype, bool max)
{
    enum { MAX_PADDING = 4096 }; /* elements */
    const bool words = w->rank == 2 && (dtype == DQ_UINT16 || dtype == DQ_INT16) &&
                       (size_t)dq_window_span(w, 0) / 2 <= (size_t)w->in[0] + MAX_PADDING;
    const bool qvalue = dtype == DQ_UINT8 || dtype == DQ_INT8 || words;
    return (dtype == DQ_FLOAT || (max && qvalue)) &&
           line_length(w) / 2 <= (size_t)w->in[w->rank - 1] + MAX_PADDING;
}

/* Elements of a line in the workspace: a multiple of the stride, plus slack. */
static bool line_workspace(const dq_window *w, size_t *workspace)
{
    size_t step = (size_t)w->stride[w->rank - 1];
    return dq_mul_size((line_length(w) + step - 1) / step, step, workspace) &&
           dq_add_size(*workspace, DQ_POOL_SLACK, workspace);
}

/* Lines of floats that are reduced before their windows are computed. */
static size_t lines_at_once(size_t elements)
{
    enum { LINES = 8, ELEMENTS = 2048 }; /* maximum lines; floats of all lines, about */
    return elements < ELEMENTS / LINES ? LINES : elements < ELEMENTS ? ELEMENTS / elements : 1;
}

/* Gives the maximum number of input rows of a window. Returns false if it overflows size_t. */
static bool most_rows(const dq_window *w, size_t *rows)
{
    *rows = 1;
    for (size_t d = 0; d + 1 < w->rank; d++)
        if (!dq_mul_size(*rows, (size_t)(w->kernel[d] < w->in[d] ? w->kernel[d] : w->in[d]), rows))
            return false;
    return true;
}

/* Output rows of a plane of 16-bit values that are computed at a time, so that their padded input rows stay
 * in the cache. */
static size_t rows_of_words(const dq_window *w)
{
    enum { ELEMENTS = 4096 }; /* of padded input rows, about */
    const size_t rows = ELEMENTS / line_length(w), span = (size_t)dq_window_span(w, 0);
    return rows > span ? (rows - span) / (size_t)w->stride[0] + 1 : 1;
}

static size_t padded_rows(const dq_window *w, size_t rows)
{
    return (rows - 1) * (size_t)w->stride[0] + (size_t)dq_window_span(w, 0);
}

bool dq_pool_rows_workspace(const dq_window *w, dq_dtype dtype, bool max, size_t *bytes)
{
    _Static_assert(DQ_POOL_SLACK * sizeof(float) >= DQ_MAX_SLACK, "of quantized values, too");
    if (max && dq_dtype_get(dtype)->bits == 16) {
        *bytes = 0;
        return line_length(w) == 0 || (dq_mul_size(padded_rows(w, rows_of_words(w)), line_length(w), bytes) &&
                                       dq_mul_size(*bytes, 2 * sizeof(int16_t), bytes));
    }
    /* The workspace: offsets of rows, the lines, and a factor for each output column. */
    size_t size = max ? sizeof(float) : sizeof(double), line, rows;
    return line_workspace(w, &line) && dq_mul_size(line, lines_at_once(line), &line) &&
           dq_add_size(line, (size_t)w->out[w->rank - 1], &line) && dq_mul_size(line, size, bytes) &&
           most_rows(w, &rows) && dq_mul_size(rows, sizeof(size_t), &rows) &&
           dq_add_size(*bytes, rows, bytes);
}

/* The input rows of the windows of one output row. */
typedef struct under {
    size_t plane, index[DQ_MAX_RANK]; /* plane and coordinates of the output row */
    size_t counts[DQ_MAX_RANK], rows; /* input rows along each outer axis; their product */
    int64_t origin[DQ_MAX_RANK], first[DQ_MAX_RANK];
} under;

static void find_axis(const dq_window *w, size_t d, under *u)
{
    u->origin[d] = (int64_t)u->index[d] * w->stride[d] - w->begin[d];
    u->counts[d] = dq_window_overlap(u->origin[d], w->kernel[d], w->dilation[d], 0, w->in[d], &u->first[d]);
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

/* Advances by `rows` output rows, which are in one plane. */
static void next_rows(const dq_window *w, size_t rows, under *u)
{
    size_t d = w->rank - 1;
    if (d == 0) {
        u->plane += rows;
        return;
    }
    for (; d-- > 0; rows = 1) {
        u->index[d] += rows;
        bool whole = u->index[d] == (size_t)w->out[d];
        u->index[d] = whole ? 0 : u->index[d];
        find_axis(w, d, u);
        if (!whole)
            break;
        u->plane += d == 0;
    }
    count_rows(w, u);
}

/* Number of output rows from u on, at most `most`, whose windows are inside the input along the axis before
 * the last. Their input rows have the constant stride *step, in elements. With one axis only, rows are
 * planes. */
static size_t even_rows(const dq_window *w, const under *u, size_t most, size_t *step)
{
    if (w->rank < 2) {
        *step = (size_t)w->in[0];
        return most;
    }
    const size_t d = w->rank - 2;
    *step = (size_t)(w->stride[d] * w->in[d + 1]);
    if (u->counts[d] != (size_t)w->kernel[d])
        return 1;
    size_t left = (size_t)w->out[d] - u->index[d];
    size_t fitting = (size_t)((w->in[d] - dq_window_span(w, d) - u->origin[d]) / w->stride[d]) + 1;
    left = left < most ? left : most;
    return left < fitting ? left : fitting;
}

/* Offset of input row i of u, in elements. */
static size_t row_offset(const dq_window *w, const under *u, size_t i)
{
    size_t last = w->rank - 1, step = (size_t)w->in[last], offset = 0;
    for (size_t d = last; d-- > 0; i /= u->counts[d]) {
        offset += (size_t)(u->first[d] + (int64_t)(i % u->counts[d]) * w->dilation[d]) * step;
        step *= (size_t)w->in[d];
    }
    return u->plane * step + offset;
}

/* Returns the length of the part of a line that is input; *begin: its offset in the line. */
static size_t reach(const dq_window *w, size_t *begin)
{
    size_t last = w->rank - 1, length = line_length(w);
    *begin = (size_t)w->begin[last] < length ? (size_t)w->begin[last] : length;
    size_t left = length - *begin;
    return left < (size_t)w->in[last] ? left : (size_t)w->in[last];
}

/* Offsets of all input rows of u, in elements. */
static void row_offsets(const dq_window *w, const under *u, size_t *at)
{
    size_t size = (size_t)w->in[w->rank - 1], rows = 1;
    at[0] = 0;
    for (size_t d = w->rank - 1; d-- > 0; size *= (size_t)w->in[d]) {
        const size_t first = (size_t)u->first[d] * size, step = (size_t)w->dilation[d] * size;
        /* The offsets of the inner axes, repeated for each position on this axis. */
        for (size_t r = 0; r < rows; r++)
            for (size_t i = u->counts[d]; i-- > 0;)
                at[i * rows + r] = at[r] + first + i * step;
        rows *= u->counts[d];
    }
    for (size_t r = 0; r < rows; r++)
        at[r] += u->plane * size;
}

/* Kernel arguments for reducing input rows to lines, for up to `most` output rows from u on. */
static dq_pool_lines pool_lines(const dq_window *w, const under *u, const float *in, size_t *at, size_t n,
                                size_t row_stride, size_t most)
{
    dq_pool_lines p = {.x = in, .at = at, .under = u->rows, .n = n, .row_stride = row_stride};
    const size_t lines = lines_at_once(row_stride);
    row_offsets(w, u, at);
    p.lines = even_rows(w, u, most < lines ? most : lines, &p.step);
    return p;
}

static dq_line_windows line_windows(const dq_window *w, size_t row_stride)
{
    size_t last = w->rank - 1;
    return (dq_line_windows){.count = (size_t)w->out[last],
                             .stride = (size_t)w->stride[last],
                             .taps = (size_t)w->kernel[last],
                             .dilation = (size_t)w->dilation[last],
                             .row_stride = row_stride};
}

/* line[j] = max(line[j], x[j]). `sign_xor` maps the values to the order of uint8. */
static void join_qvalues(uint8_t *restrict line, const uint8_t *restrict x, size_t n, uint8_t sign_xor)
{
    for (size_t j = 0; j < n; j++) {
        uint8_t a = line[j] ^ sign_xor, b = x[j] ^ sign_xor;
        line[j] = (a > b ? a : b) ^ sign_xor;
    }
}

/* Maxima of 8-bit values. Input rows without a constant stride are reduced to the line one by one. */
static void max_rows_8(const dq_pool_rows *r, bool is_signed, const uint8_t *in, uint8_t *out)
{
    const dq_window *w = r->window;
    const size_t last = w->rank - 1;
    uint8_t *line = r->workspace;
    size_t from, length, step = 0;
    dq_max_windows rows = {.n = reach(w, &from),
                           .line = line,
                           .from = from,
                           .kernel = (size_t)w->kernel[last],
                           .stride = (size_t)w->stride[last],
                           .dilation = (size_t)w->dilation[last],
                           .width = (size_t)w->out[last],
                           .is_signed = is_signed};
    if (!line_workspace(w, &length))
        return;
    memset(line, is_signed ? 0x80 : 0, length);
    for (size_t row = r->begin; row < r->end; row += rows.rows) {
        under u = find_rows(w, row);
        rows.out = out + row * rows.width;
        rows.under = w->rank == 2 ? u.rows : 0;
        rows.rows = w->rank == 2 ? even_rows(w, &u, r->end - row, &step) : 1;
        if (rows.under) {
            rows.x = in + row_offset(w, &u, 0);
            rows.x_step = (size_t)(w->dilation[0] * w->in[1]);
            rows.row_step = step;
        } else {
            memset(line, is_signed ? 0x80 : 0, length);
            for (size_t i = 0; i < u.rows; i++)
                join_qvalues(line + from, in + row_offset(w, &u, i), rows.n, is_signed ? 0x80 : 0);
        }
        r->kernels->max_windows_x8(&rows);
    }
}

/* Copies rows of x with padding of INT16_MIN. `sign_xor` maps the values to the order of int16. A row of
 * `line` is as long as windows reach; the first one is row `first` of x, which may be negative. */
static void pad_rows_16(const dq_window *w, const int16_t *x, int64_t first, size_t rows, uint16_t sign_xor,
                        int16_t *line)
{
    const size_t length = line_length(w);
    size_t from, n = reach(w, &from);
    for (size_t i = 0; i < rows * length; i++)
        line[i] = INT16_MIN;
    for (size_t r = 0; r < rows; r++, line += length) {
        const int64_t row = first + (int64_t)r;
        if (row >= 0 && row < w->in[0])
            dq_sign_xor_16(x + row * w->in[1], n, sign_xor, line + from);
    }
}

/* all[j] = maximum over k < taps of line[j + k * row_stride], for j < n. */
static void join_taps(int16_t *restrict all, const int16_t *restrict line, size_t n, size_t taps,
                      size_t row_stride)
{
    const int16_t *second = line + (taps > 1 ? row_stride : 0),
                  *third = line + (taps > 2 ? 2 * row_stride : 0);
    for (size_t j = 0; j < n; j++) {
        const int16_t most = line[j] > second[j] ? line[j] : second[j];
        all[j] = third[j] > most ? third[j] : most;
    }
    for (size_t k = 3; k < taps; k++) {
        const int16_t *x = line + k * row_stride;
        for (size_t j = 0; j < n; j++)
            all[j] = x[j] > all[j] ? x[j] : all[j];
    }
}

/* Stores every `step`-th value. Common strides are constants, for the compiler's vectorizer. */
static void put_words(const int16_t *restrict x, size_t step, size_t n, uint16_t sign_xor,
                      int16_t *restrict out)
{
    if (step == 1)
        dq_sign_xor_16(x, n, sign_xor, out);
    else if (step == 2)
        for (size_t c = 0; c < n; c++)
            out[c] = (int16_t)(x[2 * c] ^ sign_xor);
    else
        for (size_t c = 0; c < n; c++)
            out[c] = (int16_t)(x[c * step] ^ sign_xor);
}

/* Maxima of 16-bit values: the padded input rows of several output rows are reduced as one line. */
static void max_rows_16(const dq_pool_rows *r, uint16_t sign_xor, const int16_t *in, int16_t *out)
{
    const dq_window *w = r->window;
    const size_t height = (size_t)w->out[0], width = (size_t)w->out[1], most = rows_of_words(w);
    const size_t length = line_length(w), plane = (size_t)(w->in[0] * w->in[1]);
    int16_t *line = r->workspace, *all = line + padded_rows(w, most) * length;
    for (size_t begin = r->begin, rows; begin < r->end; begin += rows) {
        const size_t row = begin % height;
        rows = dq_least(dq_least(r->end - begin, height - row), most);
        const size_t padded = padded_rows(w, rows);
        pad_rows_16(w, in + begin / height * plane, (int64_t)row * w->stride[0] - w->begin[0], padded,
                    sign_xor, line);
        size_t n = padded * length - (size_t)(dq_window_span(w, 1) - 1);
        join_taps(all, line, n, (size_t)w->kernel[1], (size_t)w->dilation[1]);
        n -= (size_t)(dq_window_span(w, 0) - 1) * length;
        join_taps(line, all, n, (size_t)w->kernel[0], (size_t)w->dilation[0] * length);
        for (size_t i = 0; i < rows; i++)
            put_words(line + i * (size_t)w->stride[0] * length, (size_t)w->stride[1], width, sign_xor,
                      out + (begin + i) * width);
    }
}

static void max_floats(const dq_pool_rows *r, const float *in, float *out)
{
    const dq_pool_f32 *kernels = r->kernels->pool_f32;
    const dq_window *w = r->window;
    size_t from, n = reach(w, &from), most, row_stride, *at = r->workspace, begin = r->begin;
    under u = find_rows(w, begin);
    if (!most_rows(w, &most) || !line_workspace(w, &row_stride))
        return;
    float *line = (float *)(void *)(at + most);
    dq_line_windows windows = line_windows(w, row_stride);
    for (size_t i = 0; i < lines_at_once(row_stride) * row_stride; i++)
        line[i] = -INFINITY;
    while (begin < r->end) {
        const dq_pool_lines p = pool_lines(w, &u, in, at, n, row_stride, r->end - begin);
        if (p.under)
            kernels->max_rows(&p, line + from);
        for (size_t i = 0; i < n && p.under == 0; i++) /* no input rows: there is one line */
            line[from + i] = -INFINITY;
        windows.lines = p.lines;
        kernels->max_windows(line, &windows, out + begin * windows.count);
        next_rows(w, p.lines, &u);
        begin += p.lines;
    }
}

void dq_max_rows(const dq_pool_rows *rows, dq_dtype dtype, const void *in, void *out)
{
    if (dtype == DQ_UINT16 || dtype == DQ_INT16)
        max_rows_16(rows, dtype == DQ_UINT16 ? 0x8000 : 0, in, out);
    else if (dtype != DQ_FLOAT)
        max_rows_8(rows, dtype == DQ_INT8, in, out);
    else
        max_floats(rows, in, out);
}

/* ---- Maxima with indices ------------------------------------------------------------------------------- */

enum { STRIP = 128 /* outputs computed at a time */ };

typedef struct found {
    float highest[STRIP];
    uint32_t best[STRIP];
} found;

/* Starts n windows from column c on with their first element. `row`: offset of their first input row; NULL:
 * there is none. */
static void begin_found(const dq_window *w, const float *x, const size_t *row, size_t c, size_t n, found *f)
{
    const size_t last = w->rank - 1;
    for (size_t i = 0; i < n; i++) {
        int64_t first, origin = (int64_t)(c + i) * w->stride[last] - w->begin[last];
        bool some =
            dq_window_overlap(origin, w->kernel[last], w->dilation[last], 0, w->in[last], &first) && row;
        f->best[i] = some ? (uint32_t)(*row + (size_t)first) : 0;
        f->highest[i] = some ? x[f->best[i]] : -INFINITY;
    }
}

/* Updates n maxima and their offsets with n contiguous elements. The first of equal maxima stays; so does a
 * NaN. */
static void join_found(const float *restrict x, size_t n, uint32_t index, uint32_t step,
                       float *restrict highest, uint32_t *restrict best)
{
    for (size_t i = 0; i < n; i++, index += step) {
        const float here = x[i], most = highest[i];
        const bool above = !(here <= most) & (most == most);
        highest[i] = above ? here : most;
        best[i] = above ? index : best[i];
    }
}

/* Updates windows from column c on with element `tap` along the last axis, in the input row at `row`. */
static void join_tap(const dq_kernels *kernels, const dq_window *w, const float *x, size_t row, int64_t tap,
                     size_t c, size_t n, found *f)
{
    const size_t last = w->rank - 1;
    const int64_t stride = w->stride[last], in = w->in[last];
    const int64_t from = (int64_t)c * stride + tap * w->dilation[last] - w->begin[last];
    float workspace[STRIP];
    size_t begin = from < 0 ? (size_t)((-from - 1) / stride) + 1 : 0;
    size_t end = from < in ? (size_t)((in - from - 1) / stride) + 1 : 0;
    end = end < n ? end : n;
    if (begin >= end)
        return;
    const int64_t at = (int64_t)row + from + (int64_t)begin * stride;
    const float *line = x + at;
    if (stride > 1) {
        kernels->copy_strided_f32(line, 0, (size_t)stride, 1, end - begin, workspace, 0);
        line = workspace;
    }
    join_found(line, end - begin, (uint32_t)at, (uint32_t)stride, f->highest + begin, f->best + begin);
}

void dq_max_pool_indices(const dq_pool_rows *rows, const float *in, float *out, int64_t *indices)
{
    const dq_window *w = rows->window;
    const size_t last = w->rank - 1, columns = (size_t)w->out[last];
    const size_t plane = dq_dims_product(w->in, 0, w->rank);
    size_t *at = rows->workspace, i = rows->begin * columns;
    under u = find_rows(w, rows->begin);
    for (size_t row = rows->begin; row < rows->end; row++, next_rows(w, 1, &u)) {
        const float *x = in + u.plane * plane;
        under here = u;
        here.plane = 0;
        row_offsets(w, &here, at);
        for (size_t c = 0, n; c < columns; c += n, i += n) {
            found f;
            n = dq_least(columns - c, STRIP);
            begin_found(w, x, u.rows ? at : NULL, c, n, &f);
            for (size_t r = 0; r < u.rows; r++)
                for (int64_t tap = 0; tap < w->kernel[last]; tap++)
                    join_tap(rows->kernels, w, x, at[r], tap, c, n, &f);
            if (out)
                memcpy(out + i, f.highest, n * sizeof *out);
            for (size_t k = 0; k < n; k++)
                indices[i + k] = f.best[k];
        }
    }
}

/* ---- Averages and norms ----------------------------------------------------------------------------- */

/* Elements of a window that count in its average along an axis. */
static size_t counted(const dq_window *w, size_t d, int64_t origin, bool pads)
{
    int64_t first;
    return dq_window_overlap(origin, w->kernel[d], w->dilation[d], pads ? -w->begin[d] : 0,
                             pads ? w->in[d] + w->end[d] : w->in[d], &first);
}

/* Averages; or, if `root`, square roots of sums of squares, without division. */
static void sum_rows(const dq_pool_rows *r, bool root, bool pads, const float *in, float *out)
{
    const dq_pool_f32 *kernels = r->kernels->pool_f32;
    const dq_window *w = r->window;
    size_t last = w->rank - 1, from, n = reach(w, &from), most, row_stride, *at = r->workspace,
           begin = r->begin;
    under u = find_rows(w, begin);
    if (!most_rows(w, &most) || !line_workspace(w, &row_stride))
        return;
    dq_line_windows windows = line_windows(w, row_stride);
    windows.root = root;
    const size_t length = lines_at_once(row_stride) * row_stride;
    double *line = (double *)(void *)(at + most), *shares = line + length;
    memset(line, 0, length * sizeof *line);
    for (size_t x = 0; x < windows.count; x++)
        shares[x] =
            root ? 1 : 1 / (double)counted(w, last, (int64_t)x * w->stride[last] - w->begin[last], pads);
    while (begin < r->end) {
        const dq_pool_lines p = pool_lines(w, &u, in, at, n, row_stride, r->end - begin);
        double count = 1;
        if (root)
            kernels->square_rows(&p, line + from);
        else
            kernels->sum_rows(&p, line + from);
        for (size_t d = 0; d < last && !root; d++)
            count *= (double)counted(w, d, u.origin[d], pads);
        windows.lines = p.lines;
        kernels->mean_windows(line, &windows, 1 / count, shares, out + begin * windows.count);
        next_rows(w, p.lines, &u);
        begin += p.lines;
    }
}

void dq_average_rows(const dq_pool_rows *rows, bool pads, const float *in, float *out)
{
    sum_rows(rows, false, pads, in, out);
}

void dq_norm_rows(const dq_pool_rows *rows, const float *in, float *out)
{
    sum_rows(rows, true, false, in, out);
}
