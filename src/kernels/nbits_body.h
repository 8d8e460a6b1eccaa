/* Codes stand in the bytes of a word: masked, they are multiplied with digits of x. Some vectors of columns
 * with a sum for each line of digits: the three of a row, or one of each of some rounded rows.
 *
 * Before this, an instruction set's file includes its vec_<isa>.h and defines ISA(name) and
 *
 *   VECTORS                       of columns side by side: their sums stay in registers
 *   UNROLLED                      words of a piece: DQ_NBITS_PIECE / 8, or 1 where that costs no time
 *   CODE_BITS                     4, or 8: of codes that add_products takes
 *   add_products(&sum, codes, d)  adds the products of four codes with four digits to each lane's sum
 *   in_32(sum)                    the sums as int32
 *
 * After it was 0, a sum gets 8 products of each lane at most: pairs of products of 4 bits, which are at most
 * 2 * 15 * 128 in size, may thus be summed in 16 bits, as nbits_pairs.h does. */
#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

enum { COLS = DQ_NBITS_COLS, DIGITS = DQ_NBITS_DIGITS, ROWS = DQ_NBITS_ROWS, LINES = 4 };
#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE vi four_digits(const int8_t *p)
{
    int32_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return vi_set(bytes);
}

/* Adds the products of a word of some vectors of columns with `lines` of digits, of codes' bits `shift` …
 * `shift` + `bits` - 1; all but the pointers are constants in each call. */
ALWAYS_INLINE void word_products(const uint32_t *words, int parts, int bits, int shift, const int8_t *digits,
                                 int lines, vi sum[VECTORS][LINES])
{
    const vi mask = vi_set(((1u << bits) - 1) * 0x01010101);
#pragma GCC unroll 4
    for (int part = 0; part < parts; part++, digits += 4 * lines) {
        vi d[LINES];
        for (int e = 0; e < lines; e++)
            d[e] = four_digits(digits + 4 * e);
        for (int v = 0; v < VECTORS; v++) {
            vi in_place = vi_right(vi_load(words + v * VF_LANES), part * bits + shift);
            vi codes = vi_and(in_place, mask);
            for (int e = 0; e < lines; e++)
                add_products(&sum[v][e], codes, d[e]);
        }
    }
}

/* Sums of `count` words. */
ALWAYS_INLINE void piece(const uint32_t *words, size_t count, int parts, int bits, int shift,
                         const int8_t *digits, vi sum[VECTORS][LINES])
{
    for (int v = 0; v < VECTORS; v++)
        for (int e = 0; e < DIGITS; e++)
            sum[v][e] = vi_set(0);
#pragma GCC unroll UNROLLED
    for (; count > 0; count--, words += COLS, digits += 4 * DIGITS * parts)
        word_products(words, parts, bits, shift, digits, DIGITS, sum);
    for (int v = 0; v < VECTORS; v++)
        for (int e = 0; e < DIGITS; e++)
            sum[v][e] = in_32(sum[v][e]);
}

/* A piece of all columns. */
ALWAYS_INLINE void columns(const dq_nbits *b, int bits, size_t block, const uint32_t *words, size_t count,
                           const int8_t *digits, float factor, const float *sums, float *y)
{
    const vf f[DIGITS] = {vf_set(factor), vf_set(256 * factor), vf_set(65536 * factor)};
    /* read once: what is written to y might be any of them, for all that compilers know */
    const vf less[DIGITS] = {vf_set(-sums[0]), vf_set(-sums[1]), vf_set(-sums[2])},
             middle = vf_set(b->middle);
    const float *scales = b->scales + block * COLS, *zeros = b->zeros ? b->zeros + block * COLS : NULL;
    for (size_t at = 0; at < COLS; at += VECTORS * VF_LANES) {
        vi sum[VECTORS][LINES], upper[VECTORS][LINES];
        piece(words + at, count, 8 / bits, bits < CODE_BITS ? bits : CODE_BITS, 0, digits, sum);
        if (bits > CODE_BITS)
            piece(words + at, count, 1, 4, 4, digits, upper);
        for (int v = 0; v < VECTORS; v++) {
            size_t j = at + (size_t)(v * VF_LANES);
            vf zero = zeros ? vf_load(zeros + j) : middle;
            vf t[DIGITS];
            for (int e = 0; e < DIGITS; e++) {
                if (bits > CODE_BITS)
                    sum[v][e] = vi_add(sum[v][e], vi_left(upper[v][e], 4));
                t[e] = vf_fma(zero, less[e], vi_to_float(sum[v][e]));
            }
            vf value = vf_fma(t[2], f[2], vf_fma(t[1], f[1], vf_mul(t[0], f[0])));
            vf_store(y + j, vf_fma(vf_load(scales + j), value, vf_load(y + j)));
        }
    }
}

ALWAYS_INLINE void strip(const dq_nbits *b, int bits, const dq_nbits_row *x, float *y)
{
    const size_t most = (size_t)(DQ_NBITS_PIECE * bits / 32);
    const uint32_t *words = b->words;
    const int8_t *digits = x->digits;
    memset(y, 0, COLS * sizeof *y);
    for (size_t g = 0, p = 0; g < b->blocks; g++)
        for (size_t left = b->lengths[g], n; left; p++) {
            n = left < most ? left : most;
            columns(b, bits, g, words, n, digits, fabsf(x->factors[p]), x->sums + p * DIGITS, y);
            digits += n * (size_t)(8 / bits) * 4 * DIGITS;
            if (x->factors[p] < 0)
                continue;
            words += n * COLS;
            left -= n;
        }
}

void ISA(dq_nbits)(const dq_nbits *b, const dq_nbits_row *x, float *y)
{
    if (b->bits == 4)
        strip(b, 4, x, y);
    else if (b->bits == 8)
        strip(b, 8, x, y);
    else
        strip(b, 2, x, y);
}
