/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level. Implements dq_nbits_s8_fn. The file of the ISA level includes
 * nbits_body.h before, and may define
 *   WHOLE_ROUNDED_PIECE(bits, words, x, rows, sum)  what `piece` does for pieces of DQ_NBITS_PIECE values,
 *                                                   with sums that stay in registers
 *   SEVERAL_ROWS(b, x, y)   what dq_nbits_s8 does for several rows where has_int8_values(b)
 *   RESULT_VECTORS   vectors of columns of a tile of LINES rows whose results stay in registers for all
 * blocks */
#ifdef WHOLE_ROUNDED_PIECE
enum { EPILOGUE_UNROLL = VECTORS, USES_STARTS = 0 };
#else
enum { EPILOGUE_UNROLL = 1, USES_STARTS = 1 };
#endif

/* Adds a piece to y for all columns; `bits` and `rows` are constants in each call, and so is whether `zeros`
 * is NULL. Then integer sums begin with x->starts, which replace an fma. */
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
                  (int)DQ_NBITS_ROUNDED_BYTES(bits), zeros ? no_starts : x->starts, 1, VECTORS, sum);
#pragma GCC unroll EPILOGUE_UNROLL
        for (int v = 0; v < VECTORS; v++) {
            size_t j = at + (size_t)(v * VF_LANES);
            const vf scale = vf_load(scales + j);
            const vf minus = zeros ? vf_sub(vf_set(0), vf_load(zeros + j)) : vf_set(0);
            for (int i = 0; i < rows; i++) {
                const vf product = vi_to_float(sum[v][i]);
                const vf value = zeros ? vf_fma(minus, vf_set(x->sums[i]), product) : product;
                float *to = y + (size_t)i * COLS + j;
                vf_store(to, vf_fma(scale, vf_mul(value, vf_set(x->factors[i])), vf_load(to)));
            }
        }
    }
}

/* Computes all rows, `side` rows at a time. `with_starts`: integer sums begin with x->starts. */
ALWAYS_INLINE void rounded_strip(const dq_nbits *b, int bits, bool with_starts, const dq_nbits_rounded *x,
                                 int side, float *y)
{
    const size_t most = DQ_NBITS_PIECE_WORDS(bits), rows = x->rows;
    float middle[COLS];
    for (size_t j = 0; j < COLS; j += VF_LANES)
        vf_store(middle + j, vf_set(b->middle));
    memset(y, 0, rows * COLS * sizeof *y);
    for (size_t row = 0; row < rows; row += (size_t)side, y += side * COLS) {
        const uint32_t *words = b->words;
        dq_nbits_rounded at = {.rows = rows,
                               .digits = x->digits + row * DQ_NBITS_ROUNDED_BYTES(bits),
                               .factors = x->factors + row,
                               .sums = x->sums + row,
                               .starts = with_starts ? x->starts + row : NULL};
        for (size_t g = 0; g < b->blocks; g++) {
            const float *zeros = with_starts ? NULL : b->zeros ? b->zeros + g * COLS : middle;
            float buffer[COLS];
            const float *scales = scales_of(b, g, buffer);
            for (size_t left = b->lengths[g], n; left; left -= n) {
                n = left < most ? left : most;
                if (side == 1)
                    fetch_ahead(b, words, n * COLS * sizeof *words);
                rounded_columns(words, n, bits, scales, zeros, &at, side, y);
                words += n * COLS;
                at.digits += rows * DQ_NBITS_ROUNDED_BYTES(bits);
                at.factors += rows;
                at.sums += rows;
                if (with_starts)
                    at.starts += rows;
            }
        }
    }
}

#ifdef RESULT_VECTORS
/* Computes LINES rows, from row `row` on, of RESULT_VECTORS vectors of columns: integer sums of a piece and
 * results stay in registers. `with_starts`: integer sums begin with x->starts, which replace an fma. */
ALWAYS_INLINE void result_tile(const dq_nbits *b, int bits, bool with_starts, const dq_nbits_rounded *x,
                               size_t row, size_t column, float *y)
{
    const size_t most = DQ_NBITS_PIECE_WORDS(bits);
    const int8_t *digits = x->digits + row * DQ_NBITS_ROUNDED_BYTES(bits);
    const float *factors = x->factors + row, *sums = x->sums + row;
    const int32_t *starts = with_starts ? x->starts + row : NULL;
    const uint32_t *words = b->words + column;
    vf result[RESULT_VECTORS][LINES];
#pragma GCC unroll 4
    for (int v = 0; v < RESULT_VECTORS; v++)
#pragma GCC unroll 4
        for (int i = 0; i < LINES; i++)
            result[v][i] = vf_set(0);
    for (size_t g = 0; g < b->blocks; g++) {
        vf scale[RESULT_VECTORS], minus[RESULT_VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < RESULT_VECTORS; v++) {
            const size_t j = column + (size_t)(v * VF_LANES);
            scale[v] = scales_at(b, g, j);
            minus[v] = vf_sub(vf_set(0), b->zeros ? vf_load(b->zeros + g * COLS + j) : vf_set(b->middle));
        }
        for (size_t left = b->lengths[g], n; left; left -= n) {
            vi sum[VECTORS][LINES];
            n = left < most ? left : most;
            piece(words, n, bits, n == most, digits, LINES, (int)DQ_NBITS_ROUNDED_BYTES(bits),
                  with_starts ? starts : no_starts, 1, RESULT_VECTORS, sum);
#pragma GCC unroll 4
            for (int v = 0; v < RESULT_VECTORS; v++)
#pragma GCC unroll 4
                for (int i = 0; i < LINES; i++) {
                    const vf product = vi_to_float(sum[v][i]);
                    const vf value = with_starts ? product : vf_fma(minus[v], vf_set(sums[i]), product);
                    result[v][i] = vf_fma(scale[v], vf_mul(value, vf_set(factors[i])), result[v][i]);
                }
            words += n * COLS;
            digits += x->rows * DQ_NBITS_ROUNDED_BYTES(bits);
            factors += x->rows;
            sums += x->rows;
            if (with_starts)
                starts += x->rows;
        }
    }
#pragma GCC unroll 4
    for (int v = 0; v < RESULT_VECTORS; v++)
#pragma GCC unroll 4
        for (int i = 0; i < LINES; i++)
            vf_store(y + ((size_t)i + row) * COLS + column + (size_t)(v * VF_LANES), result[v][i]);
}

ALWAYS_INLINE void result_tiles(const dq_nbits *b, int bits, const dq_nbits_rounded *x, float *y)
{
    for (size_t row = 0; row < x->rows; row += LINES)
        for (size_t column = 0; column < COLS; column += RESULT_VECTORS * VF_LANES)
            if (x->starts)
                result_tile(b, bits, true, x, row, column, y);
            else
                result_tile(b, bits, false, x, row, column, y);
}
#else
ALWAYS_INLINE void result_tiles(const dq_nbits *b, int bits, const dq_nbits_rounded *x, float *y)
{
    if (USES_STARTS && x->starts)
        rounded_strip(b, bits, true, x, LINES, y);
    else
        rounded_strip(b, bits, false, x, LINES, y);
}
#endif

void ISA(dq_nbits_s8)(const dq_nbits *b, const dq_nbits_rounded *x, float *y)
{
#ifdef SEVERAL_ROWS
    if (x->rows > 1 && has_int8_values(b)) {
        SEVERAL_ROWS(b, x, y);
        return;
    }
#endif
    if (b->bits == 8 && x->rows == 1)
        rounded_strip(b, 8, false, x, 1, y);
    else if (b->bits == 8)
        result_tiles(b, 8, x, y);
    else if (x->rows == 1)
        rounded_strip(b, 4, false, x, 1, y);
    else
        result_tiles(b, 4, x, y);
}
