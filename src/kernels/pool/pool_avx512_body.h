/* SPDX-License-Identifier: Apache-2.0 */
/* Template: dq_max_windows_x8_fn without a line in memory. Included once per AVX-512 level. Rows of the line
 * are reduced in two vectors; the level then reduces the kernel columns. A line in memory would be read at
 * other offsets than it was just written, and such loads wait until the stores are in the cache.
 *
 * Macro parameters:
 *
 *   ISA(name)     the level's function name
 *   MAX_STRIDE    greater strides are left to the AVX2 kernel
 *
 * The level defines starts and columns after it includes this file. */
#include "kernels/kernels.h"

#include <immintrin.h>

enum { LANES = 64, MAX_REACH = 64 /* from the first to the last element of a window */ };

/* What `columns` needs to find the windows' first elements. */
static inline __m512i starts(const dq_max_windows *w);

/* The maxima of the windows of a block: the first starts at byte 0 of `low`, and `high` follows `low`. */
static inline __m512i columns(const dq_max_windows *w, __m512i start, __m512i low, __m512i high,
                              bool is_signed);

static inline __m512i larger(__m512i a, __m512i b, bool is_signed)
{
    return is_signed ? _mm512_max_epi8(a, b) : _mm512_max_epu8(a, b);
}

/* Adjacent windows whose elements are within two vectors of the line. */
typedef struct block {
    size_t first, count;    /* windows */
    bool two;               /* The second vector is needed. */
    __mmask64 inside[2];    /* Bytes of x; the others are padding … */
    __m512i line[2], start; /* … of the line. See starts. */
    intptr_t offset;        /* from a row of x to the first byte of the line */
} block;

static __mmask64 first_bits(size_t n)
{
    return n < LANES ? ((__mmask64)1 << n) - 1 : ~(__mmask64)0;
}

/* The bytes of x among LANES bytes of the line, from position `at` on. */
static __mmask64 inside(const dq_max_windows *w, size_t at)
{
    const size_t end = w->from + w->n;
    return first_bits(end > at ? end - at : 0) & ~first_bits(w->from > at ? w->from - at : 0);
}

static block block_at(const dq_max_windows *w, size_t first)
{
    const size_t reach = (w->kernel - 1) * w->dilation, most = (2 * LANES - 1 - reach) / w->stride + 1;
    const size_t left = w->width - first, at = first * w->stride;
    block b = {.first = first, .offset = (intptr_t)at - (intptr_t)w->from};
    b.count = most < LANES ? most : LANES;
    b.count = b.count < left ? b.count : left;
    b.start = starts(w);
    b.two = (b.count - 1) * w->stride + reach >= LANES;
    for (size_t v = 0; v < 1 + (size_t)b.two; v++) {
        b.inside[v] = inside(w, at + v * LANES);
        b.line[v] = _mm512_loadu_si512(w->line + at + v * LANES);
    }
    return b;
}

/* The maximum of the rows under a line, LANES bytes of it. */
static inline __attribute__((always_inline)) __m512i rows_under(const dq_max_windows *w, const block *b,
                                                                const uint8_t *x, int v, bool is_signed)
{
    __m512i most = _mm512_mask_loadu_epi8(b->line[v], b->inside[v], x);
    for (size_t r = 1; r < w->under; r++) {
        x += w->x_step;
        most = larger(most, _mm512_mask_loadu_epi8(b->line[v], b->inside[v], x), is_signed);
    }
    return most;
}

static inline __attribute__((always_inline)) void block_rows(const dq_max_windows *w, const block *b,
                                                             bool is_signed, bool two)
{
    const __mmask64 results = first_bits(b->count);
    uint8_t *out = w->out + b->first;
    /* The address of masked bytes may be outside of x. */
    uintptr_t x = (uintptr_t)w->x + (uintptr_t)b->offset;
    for (size_t i = 0; i < w->rows; i++, x += w->row_step, out += w->width) {
        const __m512i low = rows_under(w, b, (const uint8_t *)x, 0, is_signed);
        const __m512i high = two ? rows_under(w, b, (const uint8_t *)(x + LANES), 1, is_signed) : low;
        const __m512i most = columns(w, b->start, low, high, is_signed);
        _mm512_mask_storeu_epi8(out, results, most);
    }
}

void ISA(dq_max_windows_x8)(const dq_max_windows *w)
{
    if (w->under == 0 || w->width == 0 || w->stride > MAX_STRIDE || w->kernel > MAX_REACH ||
        w->dilation > MAX_REACH || (w->kernel - 1) * w->dilation > MAX_REACH) {
        dq_max_windows_x8_avx2(w);
        return;
    }
    for (size_t first = 0; first < w->width;) {
        const block b = block_at(w, first);
        if (b.two && w->is_signed)
            block_rows(w, &b, true, true);
        else if (b.two)
            block_rows(w, &b, false, true);
        else if (w->is_signed)
            block_rows(w, &b, true, false);
        else
            block_rows(w, &b, false, false);
        first += b.count;
    }
}
