/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level. Products of several rounded rows with weights whose quantized
 * values, minus their zero points, are int8: 4 bits with whole zero points, or 8 bits with zero point 128.
 *
 *     words, zero points ──unpack──▶ bytes of PIECES_PER_STEP pieces ──multiply_tile──▶ y, by LINES rows
 *
 * Weights are unpacked once for all rows. fma(-zero, sum, D) of dq_nbits_s8_fn is a whole number below 2^24
 * here, the integer sum itself. A tile is LINES rows by TILE_COLS columns; its integer sums and its results
 * stay in registers for all pieces of a step.
 *
 * The file of the ISA level includes nbits_scales.h before, and defines SCALES and FACTORS, the floats of a
 * tile's scales and factors in a piece. It defines the functions that are declared below. */
enum {
    PIECES_PER_STEP = 8, /* their bytes stay in the L1 cache */
    TILE_COLS = 8,
    TILES = COLS / TILE_COLS,
    TILE_VECTORS = TILE_COLS / VF_LANES,
    TILE_BYTES = TILE_COLS * DQ_NBITS_PIECE,
    STEPS = DQ_NBITS_PIECE / 8, /* 8 quantized values of each column are stored at a time */
    ROWS_BYTES = LINES * DQ_NBITS_PIECE
};

/* Weights of some pieces. */
typedef struct pieces {
    _Alignas(64) int8_t values[TILES][PIECES_PER_STEP][TILE_BYTES];
    float scales[TILES][PIECES_PER_STEP][SCALES];
    size_t count;
} pieces;

/* The same pieces of LINES rows. */
typedef struct row_digits {
    _Alignas(64) int8_t digits[PIECES_PER_STEP][ROWS_BYTES];
    float factors[PIECES_PER_STEP][FACTORS];
} row_digits;

/* Stores four quantized values of four columns, and the next four of each. */
static void put_values(int8x16_t first, int8x16_t second, int8_t *to);
/* Stores sixteen digits of each of LINES rows. */
static void put_digits(const int8x16_t row[LINES], int8_t *to);
/* Stores the scales of four columns. */
static void put_scales(vf scale, float *to);
/* Stores the factors of LINES rows. */
static void put_factors(vf factor, float *to);
/* Adds the products of all pieces to y. */
static void multiply_tile(const pieces *p, const row_digits *x, size_t tile, float *y);

static bool has_int8_values(const dq_nbits *b)
{
    return b->bits == 8 ? !b->zeros && b->middle == 128 : b->bits == 4 && !b->fractions;
}

/* Unpacks a piece of `count` words. Values after these words are multiplied by digits of 0. */
ALWAYS_INLINE void unpack_piece(const uint32_t *words, size_t count, int bits, vi zero, int8_t *to)
{
    const int8x16_t zeros = vreinterpretq_s8_s32(vi_mul(zero, vi_set(0x01010101)));
    const size_t each = bits == 8 ? 2 : 1;
    for (size_t n = 0; n < STEPS; n++, to += 32 * TILE_VECTORS) {
        const uint32_t *from = words + (each * n < count ? each * n : 0) * COLS;
        const uint8x16_t word = vreinterpretq_u8_s32(vi_load(from));
        if (bits == 8) {
            const uint32_t *next = each * n + 1 < count ? from + COLS : from;
            const uint8x16_t sign = vdupq_n_u8(0x80), second = vreinterpretq_u8_s32(vi_load(next));
            put_values(vreinterpretq_s8_u8(veorq_u8(word, sign)), vreinterpretq_s8_u8(veorq_u8(second, sign)),
                       to);
        } else {
            const int8x16_t low = vreinterpretq_s8_u8(vandq_u8(word, vdupq_n_u8(15)));
            const int8x16_t high = vreinterpretq_s8_u8(vshrq_n_u8(word, 4));
            put_values(vsubq_s8(low, zeros), vsubq_s8(high, zeros), to);
        }
    }
}

/* Appends a piece of block `block` to p. */
ALWAYS_INLINE void append_piece(const dq_nbits *b, int bits, size_t block, const uint32_t *words,
                                size_t count, pieces *p)
{
    const vi middle = vf_nearest(vf_set(b->middle));
    for (size_t j = 0; j < COLS; j += VF_LANES) {
        const size_t tile = j / TILE_COLS, v = j % TILE_COLS / VF_LANES, at = block * COLS + j;
        const vi zero = b->zeros ? vf_nearest(vf_load(b->zeros + at)) : middle;
        unpack_piece(words + j, count, bits, zero, p->values[tile][p->count] + 32 * v);
        put_scales(scales_at(b, block, j), p->scales[tile][p->count] + v * (SCALES / TILE_VECTORS));
    }
    p->count++;
}

/* The digits of four words of 8-bit values as bytes, in the order of the quantized values. */
static inline int8x16_t digits_of_words(const int8_t *digits)
{
    static const uint8_t order[16] = {0, 4, 2, 6, 8, 12, 10, 14, 16, 20, 18, 22, 24, 28, 26, 30};
    return vqtbl2q_s8(vld1q_s8_x2(digits), vld1q_u8(order));
}

/* Computes all rows of the pieces at the start of x, and advances x past them. */
ALWAYS_INLINE void multiply_rows(pieces *p, int bits, dq_nbits_rounded *x, float *y)
{
    const size_t bytes = DQ_NBITS_ROUNDED_BYTES(bits);
    for (size_t first = 0; first < x->rows; first += LINES, y += LINES * COLS) {
        row_digits r;
        for (size_t k = 0; k < p->count; k++) {
            const size_t at = k * x->rows + first;
            put_factors(vf_load(x->factors + at), r.factors[k]);
            for (size_t half = 0; half < 2; half++) {
                int8x16_t row[LINES];
                for (size_t i = 0; i < LINES; i++) {
                    const int8_t *digits = x->digits + (at + i) * bytes + half * bytes / 2;
                    row[i] = bits == 8 ? digits_of_words(digits) : vld1q_s8(digits);
                }
                put_digits(row, r.digits[k] + half * ROWS_BYTES / 2);
            }
        }
        for (size_t tile = 0; tile < TILES; tile++)
            multiply_tile(p, &r, tile, y + tile * TILE_COLS);
    }
    x->digits += p->count * x->rows * bytes;
    x->factors += p->count * x->rows;
    p->count = 0;
}

ALWAYS_INLINE void unpacked_strip(const dq_nbits *b, int bits, dq_nbits_rounded x, float *y)
{
    const size_t most = DQ_NBITS_PIECE_WORDS(bits);
    const uint32_t *words = b->words;
    pieces p;
    p.count = 0;
    memset(y, 0, x.rows * COLS * sizeof *y);
    for (size_t g = 0; g < b->blocks; g++)
        for (size_t left = b->lengths[g], n; left; left -= n, words += n * COLS) {
            n = left < most ? left : most;
            append_piece(b, bits, g, words, n, &p);
            if (p.count == PIECES_PER_STEP)
                multiply_rows(&p, bits, &x, y);
        }
    if (p.count)
        multiply_rows(&p, bits, &x, y);
}

static __attribute__((noinline)) void several_rows(const dq_nbits *b, const dq_nbits_rounded *x, float *y)
{
    if (b->bits == 8)
        unpacked_strip(b, 8, *x, y);
    else
        unpacked_strip(b, 4, *x, y);
}
