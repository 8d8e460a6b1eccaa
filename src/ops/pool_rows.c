#include "ops/pool_rows.h"

#include "ops/window_walk.h"

#include <math.h>

/* A row of this many elements is on the stack. */
enum { MOST_COLUMNS = 2048 };

bool dq_max_rows_fits(const dq_window *w, dq_dtype dtype)
{
    return w->rank == 2 && w->dilation[0] == 1 && w->dilation[1] == 1 && w->in[1] <= MOST_COLUMNS &&
           w->in[0] > 0 && w->in[1] > 0 && (dtype == DQ_FLOAT || dtype == DQ_UINT8 || dtype == DQ_INT8);
}

/* Elements of a row that tap `k` of each window reaches: outputs first … last - 1. */
static void reached(const dq_window *w, int64_t k, int64_t *first, int64_t *last)
{
    int64_t shift = k - w->begin[1], step = w->stride[1];
    int64_t most = w->in[1] - 1 - shift; /* x * step <= most */
    *first = shift < 0 ? (-shift + step - 1) / step : 0;
    *last = most < 0 ? 0 : most / step + 1;
    if (*last > w->out[1])
        *last = w->out[1];
}

/* Takes the larger; a NaN is larger than all. */
static inline float larger_f32(float next, float so_far)
{
    return next > so_far || isnan(next) ? next : so_far;
}

static inline uint8_t larger_u8(uint8_t next, uint8_t so_far)
{
    return next > so_far ? next : so_far;
}

static inline int8_t larger_i8(int8_t next, int8_t so_far)
{
    return next > so_far ? next : so_far;
}

/* The maximum of the rows under a window, then of its columns. Steps 1 and 2 are spelled out for compilers.
 */
#define ROWS(name, T, larger, lowest)                                                                        \
    static void name##_of_columns(const dq_window *w, const T *highest, T *out)                              \
    {                                                                                                        \
        for (int64_t x = 0; x < w->out[1]; x++)                                                              \
            out[x] = lowest;                                                                                 \
        int64_t tap, tap_end;                                                                                \
        dq_window_taps(w, 1, &tap, &tap_end);                                                                \
        for (int64_t k = tap; k < tap_end; k++) {                                                            \
            int64_t first, last, step = w->stride[1], shift = k - w->begin[1];                               \
            reached(w, k, &first, &last);                                                                    \
            if (step == 1)                                                                                   \
                for (int64_t x = first; x < last; x++)                                                       \
                    out[x] = larger(highest[x + shift], out[x]);                                             \
            else if (step == 2)                                                                              \
                for (int64_t x = first; x < last; x++)                                                       \
                    out[x] = larger(highest[2 * x + shift], out[x]);                                         \
            else                                                                                             \
                for (int64_t x = first; x < last; x++)                                                       \
                    out[x] = larger(highest[step * x + shift], out[x]);                                      \
        }                                                                                                    \
    }                                                                                                        \
    static void name(const dq_window *w, const T *in, T *out, size_t begin, size_t end)                      \
    {                                                                                                        \
        T highest[MOST_COLUMNS];                                                                             \
        const size_t rows = (size_t)w->out[0], columns = (size_t)w->in[1];                                   \
        for (size_t row = begin; row < end; row++) {                                                         \
            const T *plane = in + row / rows * (size_t)w->in[0] * columns;                                   \
            int64_t from = (int64_t)(row % rows) * w->stride[0] - w->begin[0], to = from + w->kernel[0];     \
            from = from < 0 ? 0 : from;                                                                      \
            to = to > w->in[0] ? w->in[0] : to;                                                              \
            for (size_t x = 0; x < columns; x++)                                                             \
                highest[x] = from < to ? plane[(size_t)from * columns + x] : (T)lowest;                      \
            for (int64_t y = from + 1; y < to; y++) {                                                        \
                const T *next = plane + (size_t)y * columns;                                                 \
                for (size_t x = 0; x < columns; x++)                                                         \
                    highest[x] = larger(next[x], highest[x]);                                                \
            }                                                                                                \
            name##_of_columns(w, highest, out + row * (size_t)w->out[1]);                                    \
        }                                                                                                    \
    }

ROWS(rows_f32, float, larger_f32, -INFINITY)
ROWS(rows_u8, uint8_t, larger_u8, 0)
ROWS(rows_i8, int8_t, larger_i8, INT8_MIN)

void dq_max_rows(const dq_window *w, dq_dtype dtype, const void *in, void *out, size_t begin, size_t end)
{
    if (dtype == DQ_FLOAT)
        rows_f32(w, in, out, begin, end);
    else if (dtype == DQ_UINT8)
        rows_u8(w, in, out, begin, end);
    else
        rows_i8(w, in, out, begin, end);
}
