/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level. Implements dq_nbits_s8_fn. The file of the ISA level includes
 * nbits_body.h before, and may define
 *   WHOLE_ROUNDED_PIECE(bits, words, x, rows, sum)  what `piece` does for pieces of DQ_NBITS_PIECE values,
 *                                                   with sums that stay in registers */
#ifdef WHOLE_ROUNDED_PIECE
enum { EPILOGUE_UNROLL = VECTORS };
#else
enum { EPILOGUE_UNROLL = 1 };
#endif

/* Adds a piece to y for all columns; `bits` and `rows` are constants in each call. */
ALWAYS_INLINE void rounded_columns(const uint32_t *words, size_t count, int bits, const float *scales,
                                   const float *zeros, const dq_nbits_rounded *x, int rows, float *y)
{
    for (size_t at = 0; at < COLS; at += VECTORS * VF_LANES) {
        vi sum[VECTORS][LINES];
#ifdef WHOLE_ROUNDED_PIECE
        if (__builtin_expect(count == DQ_NBITS_PIECE_WORDS(bits), 1))
            WHOLE_ROUNDED_PIECE(bits, words + at, x, rows, sum);
        else
#endif
            piece(words + at, count, bits, WHOLE && bits == 4 && rows == 1, x->digits, rows,
                  (int)DQ_NBITS_ROUNDED_BYTES(bits), 1, sum);
#pragma GCC unroll EPILOGUE_UNROLL
        for (int v = 0; v < VECTORS; v++) {
            size_t j = at + (size_t)(v * VF_LANES);
            const vf scale = vf_load(scales + j), minus = vf_sub(vf_set(0), vf_load(zeros + j));
            for (int i = 0; i < rows; i++) {
                vf value = vf_fma(minus, vf_set(x->sums[i]), vi_to_float(sum[v][i]));
                float *to = y + (size_t)i * COLS + j;
                vf_store(to, vf_fma(scale, vf_mul(value, vf_set(x->factors[i])), vf_load(to)));
            }
        }
    }
}

/* Computes all rows, `side` rows at a time. */
ALWAYS_INLINE void rounded_strip(const dq_nbits *b, int bits, const dq_nbits_rounded *x, int side, float *y)
{
    const size_t most = DQ_NBITS_PIECE_WORDS(bits), rows = x->rows;
    float middle[COLS];
    for (size_t j = 0; j < COLS; j += VF_LANES)
        vf_store(middle + j, vf_set(b->middle));
    memset(y, 0, rows * COLS * sizeof *y);
    for (size_t row = 0; row < rows; row += (size_t)side, y += side * COLS) {
        const uint32_t *words = b->words;
        dq_nbits_rounded at = {rows, x->digits + row * DQ_NBITS_ROUNDED_BYTES(bits), x->factors + row,
                               x->sums + row};
        for (size_t g = 0; g < b->blocks; g++) {
            const float *zeros = b->zeros ? b->zeros + g * COLS : middle;
            if (side == 1)
                fetch_ahead(b->scales + g * COLS, 1);
            for (size_t left = b->lengths[g], n; left; left -= n) {
                n = left < most ? left : most;
                if (side == 1)
                    fetch_ahead(words, n);
                rounded_columns(words, n, bits, b->scales + g * COLS, zeros, &at, side, y);
                words += n * COLS;
                at.digits += rows * DQ_NBITS_ROUNDED_BYTES(bits);
                at.factors += rows;
                at.sums += rows;
            }
        }
    }
}

void ISA(dq_nbits_s8)(const dq_nbits *b, const dq_nbits_rounded *x, float *y)
{
    if (b->bits == 8 && x->rows == 1)
        rounded_strip(b, 8, x, 1, y);
    else if (b->bits == 8)
        rounded_strip(b, 8, x, LINES, y);
    else if (x->rows == 1)
        rounded_strip(b, 4, x, 1, y);
    else
        rounded_strip(b, 4, x, LINES, y);
}
