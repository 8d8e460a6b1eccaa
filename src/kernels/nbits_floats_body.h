/* dq_nbits_floats_fn. Before this, an instruction set's file includes nbits_body.h and defines
 *
 *   looked_up(table, codes)  elements of a table of 16 floats; with
 *   LOOKS_UP                 that is faster than to make floats of codes, and does without a mask */

/* A panel's columns of some words: all but the pointers, `zero` and `scale` are constants in each call. */
ALWAYS_INLINE void panel_as_floats(const uint32_t *words, size_t count, int each, const float *table,
                                   bool ready, vf zero, vf scale, float *to)
{
    const vi mask = vi_set((1 << each) - 1);
    for (size_t n = 0; n < count; n++, words += COLS) {
        vi word = vi_load(words);
#pragma GCC unroll 16
        for (int t = 0; t < 32; t += each, to += DQ_FPANEL) {
            vi codes = vi_right(word, t);
            if (!table || !LOOKS_UP)
                codes = vi_and(codes, mask);
            vf value = table ? looked_up(table, codes) : vi_to_float(codes);
            vf_store(to, vf_mul(ready ? value : vf_sub(value, zero), scale));
        }
    }
}

/* `bits` is a constant in each call, 0 for a table. */
ALWAYS_INLINE void as_floats(const dq_nbits *b, int bits, size_t block, size_t first, size_t count,
                             float *out, size_t panel)
{
    enum { CODES = 16 };
    const bool look = LOOKS_UP && bits && bits < 8;
    float numbers[CODES]; /* of what a code's bits and those behind it say, less the zero point of all */
    for (int i = 0; look && i < CODES; i++)
        numbers[i] = (float)(i & ((1 << bits) - 1)) - (b->zeros ? 0 : b->middle);
    for (size_t at = 0; at < COLS; at += VF_LANES) {
        const uint32_t *words = b->words + first * COLS + at;
        float *to = out + at / DQ_FPANEL * panel + at % DQ_FPANEL;
        vf scale = vf_load(b->scales + block * COLS + at);
        vf zero = b->zeros ? vf_load(b->zeros + block * COLS + at) : vf_set(b->middle);
        if (look && !b->zeros)
            panel_as_floats(words, count, bits, numbers, true, zero, scale, to);
        else
            panel_as_floats(words, count, bits ? bits : 4,
                            look   ? numbers
                            : bits ? NULL
                                   : b->table,
                            false, zero, scale, to);
    }
}

void ISA(dq_nbits_floats)(const dq_nbits *b, size_t block, size_t first, size_t count, float *out,
                          size_t panel)
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
