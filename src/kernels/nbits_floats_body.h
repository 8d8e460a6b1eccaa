/* dq_nbits_floats_fn. Before this, an instruction set's file includes nbits_body.h and defines
 * looked_up(table, codes), which gives elements of a table of 16 floats. */

/* `bits` is a constant in each call, 0 for a table. */
ALWAYS_INLINE void as_floats(const dq_nbits *b, int bits, size_t block, size_t first, size_t count,
                             float *out, size_t panel)
{
    const int each = bits ? bits : 4;
    const vi mask = vi_set((1 << each) - 1);
    for (size_t at = 0; at < COLS; at += VF_LANES) {
        const uint32_t *words = b->words + first * COLS + at;
        float *to = out + at / DQ_FPANEL * panel + at % DQ_FPANEL;
        vf scale = vf_load(b->scales + block * COLS + at);
        vf zero = b->zeros ? vf_load(b->zeros + block * COLS + at) : vf_set(b->middle);
        for (size_t n = 0; n < count; n++, words += COLS) {
            vi word = vi_load(words);
#pragma GCC unroll 16
            for (int t = 0; t < 32; t += each, to += DQ_FPANEL) {
                vi codes = vi_and(vi_right(word, t), mask);
                vf value = bits ? vi_to_float(codes) : looked_up(b->table, codes);
                vf_store(to, vf_mul(vf_sub(value, zero), scale));
            }
        }
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
