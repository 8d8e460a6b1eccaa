/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level. Products of weights of few bits with digits of x. Quantized
 * values are in the bytes of a word, or, if they have 8 bits, in its 16-bit halves; a mask extracts them
 * before they are multiplied by digits. A tile is VECTORS vectors of columns with an accumulator per line of
 * digits: the lines are the digits of one row, or of several rounded rows with one digit each.
 *
 * The file of the ISA level includes its vec_<isa>.h before, and defines
 *   ISA(name)                     the name of a kernel of this level
 *   VECTORS                       vectors of columns of a tile: its accumulators stay in registers
 *   WHOLE                         whether whole pieces of 4-bit values, four words, are unrolled
 *   add_products(&sum, codes, d)  adds to each lane of sum the products of four quantized values of at most
 *                                 4 bits with four digits
 *   dot_s16(&sum, codes, d)      likewise of two quantized values and digits of 16 bits, as int32
 *   SUMS_IN_16_BITS               whether add_products adds 16-bit numbers
 *   in_32(sum, by)                `by`, 1 or 256, times a sum of add_products, as int32
 *
 * A sum gets at most 8 products per lane after it was 0. Sums of two products of 4-bit values are at most 2 *
 * 15 * 128 in magnitude, so that they may be added up in 16 bits, as nbits_pairs.h does. */
#include "kernels/weight_only/nbits_scales.h"

#include <math.h>
#include <string.h>

enum { COLS = DQ_NBITS_COLS, LINES = 4 };
#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE vi four_bytes(const int8_t *p)
{
    int32_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return vi_set(bytes);
}

/* Prefetches the `bytes` bytes that are b->distance bytes ahead. For a single row each word is read once, and
 * there is too much work per word for the hardware prefetcher to overlap it with loads. */
ALWAYS_INLINE void fetch_ahead(const dq_nbits *b, const void *from, size_t bytes)
{
    enum { LINE = 64 };
#pragma GCC unroll 4
    for (size_t at = 0; at < bytes; at += LINE)
        __builtin_prefetch((const char *)from + b->distance + at);
}

/* The scales of a block as floats, in `buffer` if they are packed as float16. Prefetches those of a later
 * block. */
ALWAYS_INLINE const float *scales_of(const dq_nbits *b, size_t block, float buffer[COLS])
{
    if (b->scales) {
        fetch_ahead(b, b->scales + block * COLS, COLS * sizeof *b->scales);
        return b->scales + block * COLS;
    }
    fetch_ahead(b, b->scales_f16 + block * COLS, COLS * sizeof *b->scales_f16);
    for (size_t j = 0; j < COLS; j += VF_LANES)
        vf_store(buffer + j, scales_at(b, block, j));
    return buffer;
}

/* Adds the products of a word of each column with `lines` lines of digits, `line_stride` bytes from line to
 * line. All but the pointers are constants in each call. */
ALWAYS_INLINE void word_products(const uint32_t *words, int bits, const int8_t *digits, int lines,
                                 int line_stride, int vectors, vi sum[VECTORS][LINES])
{
    const vi mask = vi_set(bits == 8 ? 0x00ff00ff : ((1u << bits) - 1) * 0x01010101);
    const int parts = DQ_NBITS_PARTS(bits);
#pragma GCC unroll 4
    for (int part = 0; part < parts; part++, digits += line_stride == 4 ? 4 * lines : 4) {
        vi d[LINES];
#pragma GCC unroll 4
        for (int e = 0; e < lines; e++)
            d[e] = four_bytes(digits + line_stride * e);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            const vi word = vi_load(words + v * VF_LANES);
            vi qvalues =
                bits == 8 && part == 1 ? vi_odd_bytes(word) : vi_and(vi_right(word, part * bits), mask);
#pragma GCC unroll 4
            for (int e = 0; e < lines; e++)
                if (bits == 8)
                    dot_s16(&sum[v][e], qvalues, d[e]);
                else
                    add_products(&sum[v][e], qvalues, d[e]);
        }
    }
}

static const int32_t no_starts[LINES] = {0};

/* Computes int32 sums of `count` words, those of the second line times `second`. They are stored to
 * memory, so that callers may loop over them. The sum of line e begins with starts[e]. */
ALWAYS_INLINE void piece(const uint32_t *words, size_t count, int bits, bool whole, const int8_t *digits,
                         int lines, int line_stride, const int32_t *starts, int second, int vectors,
                         vi out[VECTORS][LINES])
{
    const size_t each = (size_t)(4 * (line_stride == 4 ? lines : 1) * DQ_NBITS_PARTS(bits));
    vi sum[VECTORS][LINES];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
#pragma GCC unroll 4
        for (int e = 0; e < lines; e++)
            sum[v][e] = vi_set(SUMS_IN_16_BITS ? 0 : starts[e]);
    if (whole && count == 4)
#pragma GCC unroll 4
        for (size_t n = 0; n < 4; n++)
            word_products(words + n * COLS, bits, digits + n * each, lines, line_stride, vectors, sum);
    else
#pragma GCC unroll 1
        for (size_t n = 0; n < count; n++)
            word_products(words + n * COLS, bits, digits + n * each, lines, line_stride, vectors, sum);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
#pragma GCC unroll 4
        for (int e = 0; e < lines; e++)
            out[v][e] = vi_add(bits == 8 ? sum[v][e] : in_32(sum[v][e], e == 1 ? second : 1),
                               vi_set(SUMS_IN_16_BITS ? starts[e] : 0));
}

/* `whole` of dq_nbits_s32_fn. */
ALWAYS_INLINE vi whole_of(vf zero, unsigned bits)
{
    return vf_nearest(vf_min(vf_max(zero, vf_set(0)), vf_set((float)((1 << bits) - 1))));
}

/* Adds a piece to y for all columns. `middle` is the zero point of all columns if `zeros` is NULL, `total`
 * the sum of the piece's integers. */
ALWAYS_INLINE void columns(int bits, const uint32_t *words, size_t count, const float *scales,
                           const float *zeros, vi middle, const int8_t *digits, float factor, int32_t total,
                           float *y)
{
    enum { HIGH = 2048 };
    const int lines = bits == 8 ? 2 : DQ_NBITS_DIGITS;
    const int32_t low = bits == 8 ? ((total + HIGH / 2) & (HIGH - 1)) - HIGH / 2 : total;
    const vf f = vf_set(factor);
    const vi by[2] = {vi_set(low), vi_set((total - low) / HIGH)};
    const vi less[2] = {vi_mul(middle, by[0]), vi_mul(middle, by[1])};
    /* the epilogue waits for the products; it waits less if it follows those of all columns */
    int32_t sums[2][COLS];
    for (size_t at = 0; at < COLS; at += VECTORS * VF_LANES) {
        vi sum[VECTORS][LINES];
        piece(words + at, count, bits, WHOLE && bits == 4, digits, lines, 4, no_starts, 256, VECTORS, sum);
        for (int v = 0; v < VECTORS; v++) {
            const vi *s = sum[v];
            size_t j = at + (size_t)(v * VF_LANES);
            vi_store(&sums[0][j], bits == 8 ? s[0] : vi_add(vi_add(s[0], s[1]), vi_left(s[2], 16)));
            if (bits == 8)
                vi_store(&sums[1][j], s[1]);
        }
    }
#pragma GCC unroll 1
    for (size_t j = 0; j < COLS; j += VF_LANES) {
        vi zero = zeros ? whole_of(vf_load(zeros + j), (unsigned)bits) : middle;
        vf value = vi_to_float(vi_sub(vi_load(&sums[0][j]), zeros ? vi_mul(zero, by[0]) : less[0]));
        if (bits == 8)
            value = vf_fma(vi_to_float(vi_sub(vi_load(&sums[1][j]), zeros ? vi_mul(zero, by[1]) : less[1])),
                           vf_set(HIGH), value);
        vf_store(y + j, vf_fma(vf_load(scales + j), vf_mul(value, f), vf_load(y + j)));
    }
}

/* Adds the products of the zero points' fractions with -x. */
static __attribute__((noinline)) void add_fractions(const dq_nbits *b, size_t block, float minus_x, float *y)
{
#pragma GCC unroll 1
    for (size_t j = 0; j < COLS; j += VF_LANES) {
        vf zero = b->zeros ? vf_load(b->zeros + block * COLS + j) : vf_set(b->middle);
        vf fraction = vf_sub(zero, vi_to_float(whole_of(zero, b->bits)));
        vf_store(y + j, vf_fma(scales_at(b, block, j), vf_mul(fraction, vf_set(minus_x)), vf_load(y + j)));
    }
}

ALWAYS_INLINE void strip(const dq_nbits *b, int bits, const dq_nbits_row *x, float *y)
{
    const size_t most = DQ_NBITS_PIECE_WORDS(bits);
    /* a copy, because compilers assume that stores to y may change *b */
    const dq_nbits w = *b;
    const uint32_t *words = w.words;
    const int8_t *digits = x->digits;
    const float *factors = x->factors;
    const int32_t *sums = x->sums;
    const vi middle = whole_of(vf_set(w.middle), (unsigned)bits);
    memset(y, 0, COLS * sizeof *y);
    for (size_t g = 0; g < w.blocks; g++) {
        float buffer[COLS];
        const float *scales = scales_of(&w, g, buffer), *zeros = w.zeros ? w.zeros + g * COLS : NULL;
        for (size_t left = w.lengths[g], n; left; factors++, sums++) {
            const float f = fabsf(*factors);
            n = left < most ? left : most;
            fetch_ahead(&w, words, n * COLS * sizeof *words);
            columns(bits, words, n, scales, zeros, middle, digits, f, *sums, y);
            if (w.fractions)
                add_fractions(b, g, -(f * (float)*sums), y);
            digits += n * DQ_NBITS_DIGIT_BYTES(bits);
            if (*factors < 0)
                continue;
            words += n * COLS;
            left -= n;
        }
    }
}

void ISA(dq_nbits_s32)(const dq_nbits *b, const dq_nbits_row *x, float *y)
{
    if (b->bits == 4)
        strip(b, 4, x, y);
    else if (b->bits == 8)
        strip(b, 8, x, y);
    else
        strip(b, 2, x, y);
}
