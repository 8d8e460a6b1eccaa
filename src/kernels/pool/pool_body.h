/* SPDX-License-Identifier: Apache-2.0 */
/* Template: dq_max_windows_x8_fn. Included once per ISA level. The rows under a window are reduced to one
 * line of vectors. Then whole vectors of that line are reduced, one for each kernel column; a stride of 2
 * keeps every second byte.
 *
 * Macro parameters:
 *
 *   ISA(name)                                  the level's function name
 *   vb                                         a vector of LANES bytes
 *   vb_load(p, bytes), vb_store(p, bytes, v)   LANES, HALF or QUARTER bytes, a constant in each call
 *   vb_larger(a, b, is_signed)                 maximum of bytes
 *   vb_even(a, b)                              bytes 0, 2, 4 … of two vectors */
#include "base/copy.h"
#include "kernels/kernels.h"

#include <string.h>

enum { HALF = LANES / 2, QUARTER = LANES / 4 };

/* Stores the first n bytes, n >= 1. */
static inline void put(uint8_t *out, vb v, size_t n)
{
    uint8_t bytes[LANES];
    if (n >= LANES) {
        vb_store(out, LANES, v);
        return;
    }
    vb_store(bytes, LANES, v);
    dq_copy_row(out, bytes, n);
}

/* Reduces rows of fewer than QUARTER bytes. */
static void join_few(const dq_max_windows *w, const uint8_t *x, uint8_t sign_xor, uint8_t *line)
{
    for (size_t j = 0; j < w->n; j++) {
        uint8_t most = 0;
        for (size_t r = 0; r < w->under; r++) {
            uint8_t here = x[r * w->x_step + j] ^ sign_xor;
            most = here > most ? here : most;
        }
        line[j] = most ^ sign_xor;
    }
}

/* Reduces rows of at least `bytes` bytes, `bytes` at a time. The last step overlaps the one before it. */
static inline __attribute__((always_inline)) void join_by(const dq_max_windows *w, const uint8_t *x,
                                                          bool is_signed, size_t bytes, uint8_t *line)
{
    for (size_t j = 0; j < w->n; j += bytes) {
        size_t at = w->n - j < bytes ? w->n - bytes : j;
        vb v = vb_load(x + at, bytes);
        for (size_t r = 1; r < w->under; r++)
            v = vb_larger(v, vb_load(x + r * w->x_step + at, bytes), is_signed);
        vb_store(line + at, bytes, v);
    }
}

static inline void join(const dq_max_windows *w, const uint8_t *x, bool is_signed, uint8_t *line)
{
    if (w->n >= LANES)
        join_by(w, x, is_signed, LANES, line);
    else if (w->n >= HALF)
        join_by(w, x, is_signed, HALF, line);
    else if (w->n >= QUARTER)
        join_by(w, x, is_signed, QUARTER, line);
    else
        join_few(w, x, is_signed ? 0x80 : 0, line);
}

static inline vb columns(const dq_max_windows *w, const uint8_t *line, bool is_signed)
{
    vb v = vb_load(line, LANES);
    for (size_t k = 1; k < w->kernel; k++)
        v = vb_larger(v, vb_load(line + k * w->dilation, LANES), is_signed);
    return v;
}

/* Computes a row of results from its line. */
static inline __attribute__((always_inline)) void row_of_line(const dq_max_windows *w, const uint8_t *line,
                                                              bool is_signed, uint8_t *out)
{
    for (size_t c = 0; c < w->width; c += LANES) {
        const uint8_t *at = line + c * w->stride;
        vb v = columns(w, at, is_signed);
        if (w->stride == 2) {
            vb next = w->width - c > HALF ? columns(w, at + LANES, is_signed) : v;
            v = vb_even(v, next);
        }
        put(out + c, v, w->width - c);
    }
}

/* Rows whose lines are reduced before the first of them is read. A line is read at other offsets than it was
 * written, and such loads wait until the stores are in the cache: once for all of these rows. */
enum { ROWS = 8, MAX_LINE = 256 /* bytes */ };

static inline __attribute__((always_inline)) void several_rows(const dq_max_windows *w, bool is_signed)
{
    uint8_t lines[ROWS][MAX_LINE + DQ_MAX_SLACK];
    const size_t length = (w->width - 1) * w->stride + (w->kernel - 1) * w->dilation + 1;
    for (size_t g = 0; g < ROWS; g++)
        memcpy(lines[g], w->line, length);
    for (size_t i = 0, rows; i < w->rows; i += rows) {
        rows = w->rows - i < ROWS ? w->rows - i : ROWS;
        for (size_t g = 0; g < rows; g++)
            join(w, w->x + (i + g) * w->row_step, is_signed, lines[g] + w->from);
        for (size_t g = 0; g < rows; g++)
            row_of_line(w, lines[g], is_signed, w->out + (i + g) * w->width);
    }
}

static inline __attribute__((always_inline)) void all_rows(const dq_max_windows *w, bool is_signed)
{
    const size_t reach = w->width * w->stride + (w->kernel - 1) * w->dilation;
    if (w->rows > 1 && w->under && w->width && reach <= MAX_LINE && w->from + w->n <= MAX_LINE) {
        several_rows(w, is_signed);
        return;
    }
    for (size_t i = 0; i < w->rows; i++) {
        if (w->under)
            join(w, w->x + i * w->row_step, is_signed, w->line + w->from);
        row_of_line(w, w->line, is_signed, w->out + i * w->width);
    }
}

void ISA(dq_max_windows_x8)(const dq_max_windows *w)
{
    if (w->stride > 2)
        dq_max_windows_x8_c(w);
    else if (w->is_signed)
        all_rows(w, true);
    else
        all_rows(w, false);
}
