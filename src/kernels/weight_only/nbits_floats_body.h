/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level. Implements dq_nbits_f32_fn. The file of the ISA level includes
 * nbits_body.h before, and defines
 *   lookup, lookup_of(table)          a table of 16 floats in registers
 *   look_up(from, word, each, value)  looks up a word's quantized values of `each` bits: 4, or 2 if LOOKS_UP
 *   LOOKS_UP                          1 if a lookup is faster than a conversion to float. Quantized values of
 *                                     2 bits are then looked up with the two bits above them, which the table
 *                                     ignores */

/* Dequantizes some words of one vector of columns to a panel. All but the pointers, `zero` and `scale` are
 * constants in each call. */
ALWAYS_INLINE void panel_as_floats(const uint32_t *words, size_t distance, size_t count, int each,
                                   const lookup *table, bool ready, vf zero, vf scale, float *to)
{
    const vi mask = vi_set((1 << each) - 1);
    for (size_t n = 0; n < count; n++, words += COLS) {
        const vi word = vi_load(words);
        vf value[16];
        __builtin_prefetch((const char *)words + distance); /* packed words of the next blocks follow */
        if (table)
            look_up(table, word, each, value);
#pragma GCC unroll 16
        for (int t = 0; t < 32 / each; t++, to += DQ_GEMM_F32_NR) {
            vf x = table ? value[t] : vi_to_float(vi_and(vi_right(word, t * each), mask));
            vf_store(to, vf_mul(ready ? x : vf_sub(x, zero), scale));
        }
    }
}

/* `bits` is a constant in each call, 0 for a table. */
ALWAYS_INLINE void as_floats(const dq_nbits *b, int bits, size_t block, size_t first, size_t count,
                             float *out, size_t panel)
{
    enum { CODES = 16 };
    const bool look = !bits || (LOOKS_UP && bits < 8);
    float numbers[CODES]; /* the float of each index, minus the zero point of all columns if they share one */
    for (int i = 0; look && i < CODES; i++)
        numbers[i] = (bits ? (float)(i & ((1 << bits) - 1)) : b->table[i]) - (b->zeros ? 0 : b->middle);
    lookup values;
    if (look)
        values = lookup_of(numbers);
    for (size_t at = 0; at < COLS; at += VF_LANES) {
        const uint32_t *words = b->words + first * COLS + at;
        float *to = out + at / DQ_GEMM_F32_NR * panel + at % DQ_GEMM_F32_NR;
        vf scale = scales_at(b, block, at);
        vf zero = b->zeros ? vf_load(b->zeros + block * COLS + at) : vf_set(b->middle);
        __builtin_prefetch(b->scales ? (const char *)(b->scales + block * COLS + at) + b->distance
                                     : (const char *)(b->scales_f16 + block * COLS + at) + b->distance);
        if (b->zeros)
            __builtin_prefetch((const char *)(b->zeros + block * COLS + at) + b->distance);
        if (look && !b->zeros)
            panel_as_floats(words, b->distance, count, bits ? bits : 4, &values, true, zero, scale, to);
        else
            panel_as_floats(words, b->distance, count, bits ? bits : 4, look ? &values : NULL, false, zero,
                            scale, to);
    }
}

void ISA(dq_nbits_f32)(const dq_nbits *b, size_t block, size_t first, size_t count, float *out, size_t panel)
{
    if (b->table)
        as_floats(b, 0, block, first, count, out, panel);
    else if (b->bits == 4)
        as_floats(b, 4, block, first, count, out, panel);
    else if (b->bits == 8)
        as_floats(b, 8, block, first, count, out, panel);
    else
        as_floats(b, 2, block, first, count, out, panel);
}
