/* SPDX-License-Identifier: Apache-2.0 */
/* Products of rounded rows with weights of 4 or 8 bits in AMX tiles. For each piece, a tile product is 16
 * rows of 32 digits times 16 columns.
 *
 * Quantized values minus their zero points are unpacked to bytes once for all rows, some pieces at a time.
 * AVX-512 scales the sums of a piece while the tiles multiply the next one. Meanwhile it does one float
 * operation per cycle, because one of its two FMA units waits for the tiles. So integers are used wherever
 * possible. */
#include "kernels/gemm_s8/amx_tiles.h"
#include "kernels/kernels.h"

#include <string.h>

enum {
    COLS = DQ_NBITS_COLS,
    VECTORS = COLS / SIDE,
    WORDS = DQ_NBITS_PIECE / 8, /* words of a piece of 4-bit values */
    STEPS = DQ_NBITS_PIECE / 4, /* rows of a tile of quantized values */
    PIECES_PER_STEP = 4         /* pieces at a time: their bytes stay in the L1 cache */
};

/* Tile registers: the sums of each vector of columns, then digits, then quantized values. */
enum { DIGITS = VECTORS, CODES };

/* Some pieces: quantized values minus their zero points, and scales. */
typedef struct pieces {
    _Alignas(LINE) uint8_t qvalues[PIECES_PER_STEP][VECTORS][STEPS][LINE];
    float scales[PIECES_PER_STEP][COLS];
    size_t count;
} pieces;

static void shape_pieces(size_t rows)
{
    tile_shapes s = {.palette = 1};
    for (int i = 0; i <= CODES; i++) {
        s.line[i] = i == DIGITS ? DQ_NBITS_PIECE : LINE;
        s.rows[i] = (uint8_t)(i == CODES ? STEPS : rows);
    }
    load_shapes(&s);
}

/* Unpacks a piece of `count` words of 4-bit values. Values after these words are multiplied by digits of
 * 0. */
static void unpack_nibbles(const uint32_t *words, size_t count, const float *zeros,
                           uint8_t qvalues[VECTORS][STEPS][LINE])
{
    const __m512i mask = _mm512_set1_epi8(15), first = _mm512_set1_epi32(0x01010101);
    for (size_t v = 0; v < VECTORS; v++, words += SIDE) {
        __m512i zero = _mm512_mullo_epi32(_mm512_cvtps_epi32(_mm512_loadu_ps(zeros + v * SIDE)), first);
        for (size_t n = 0; n < WORDS; n++) {
            __m512i word = _mm512_loadu_si512(words + (n < count ? n : 0) * COLS);
            __m512i low = _mm512_and_si512(word, mask),
                    high = _mm512_and_si512(_mm512_srli_epi32(word, 4), mask);
            _mm512_store_si512(qvalues[v][2 * n], _mm512_sub_epi8(low, zero));
            _mm512_store_si512(qvalues[v][2 * n + 1], _mm512_sub_epi8(high, zero));
        }
    }
}

/* Unpacks a piece of 8-bit values minus 128, in the order of the digits of a word. */
static void unpack_bytes(const uint32_t *words, size_t count, uint8_t qvalues[VECTORS][STEPS][LINE])
{
    const __m512i order = _mm512_set4_epi32(0x0f0d0e0c, 0x0b090a08, 0x07050604, 0x03010200);
    for (size_t v = 0; v < VECTORS; v++, words += SIDE)
        for (size_t n = 0; n < STEPS; n++) {
            __m512i word = _mm512_loadu_si512(words + (n < count ? n : 0) * COLS);
            word = _mm512_xor_si512(_mm512_shuffle_epi8(word, order), _mm512_set1_epi8(-128));
            _mm512_store_si512(qvalues[v][n], word);
        }
}

static void copy_scales(const dq_nbits *b, size_t block, float to[COLS])
{
    if (b->scales)
        memcpy(to, b->scales + block * COLS, COLS * sizeof *to);
    for (size_t j = 0; !b->scales && j < COLS; j += SIDE)
        _mm512_storeu_ps(to + j, _mm512_cvtph_ps(_mm256_loadu_si256(
                                     (const __m256i *)(const void *)(b->scales_f16 + block * COLS + j))));
}

/* Scales the sums of a piece of some rows and adds them to y. */
static void add(int32_t sums[VECTORS][SIDE][SIDE], const float *factors, size_t rows, const float *scales,
                float *y)
{
    __m512 scale[VECTORS];
    for (int v = 0; v < VECTORS; v++)
        scale[v] = _mm512_loadu_ps(scales + v * SIDE);
    for (size_t i = 0; i < rows; i++)
        for (int v = 0; v < VECTORS; v++, y += SIDE) {
            __m512 value =
                _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_load_si512(sums[v][i])), _mm512_set1_ps(factors[i]));
            _mm512_storeu_ps(y, _mm512_fmadd_ps(scale[v], value, _mm512_loadu_ps(y)));
        }
}

/* Stores the sums of the previous piece and starts those of the next one; other tiles are busy meanwhile. */
#define NEXT(v)                                                                                              \
    _tile_stored(v, sums[v], LINE);                                                                          \
    _tile_zero(v);                                                                                           \
    _tile_loadd(5, p->qvalues[k][v], LINE);                                                                  \
    _tile_dpbssd(v, 4, 5)

/* Computes up to 16 rows from row `row` on. */
static void multiply(const pieces *p, const dq_nbits_rounded *x, size_t row, size_t rows, float *y)
{
    _Alignas(LINE) int32_t sums[VECTORS][SIDE][SIDE];
    const float *factors = x->factors + row;
    for (size_t k = 0; k < p->count; k++) {
        _tile_loadd(4, x->digits + (k * x->rows + row) * DQ_NBITS_PIECE, DQ_NBITS_PIECE);
        NEXT(0);
        NEXT(1);
        NEXT(2);
        NEXT(3);
        WRITTEN(sums);
        if (k)
            add(sums, factors + (k - 1) * x->rows, rows, p->scales[k - 1], y);
    }
    _tile_stored(0, sums[0], LINE);
    _tile_stored(1, sums[1], LINE);
    _tile_stored(2, sums[2], LINE);
    _tile_stored(3, sums[3], LINE);
    WRITTEN(sums);
    add(sums, factors + (p->count - 1) * x->rows, rows, p->scales[p->count - 1], y);
}

/* Computes all rows of the pieces at the start of x, and advances x past them. */
static void multiply_rows(pieces *p, unsigned bits, dq_nbits_rounded *x, size_t *shaped, float *y)
{
    _Alignas(LINE) int8_t bytes[PIECES_PER_STEP * DQ_NBITS_ROWS * DQ_NBITS_PIECE];
    dq_nbits_rounded now = *x;
    for (size_t i = 0; bits == 8 && i < p->count * x->rows; i++) {
        __m512i bits_16 = _mm512_loadu_si512(x->digits + 2 * i * DQ_NBITS_PIECE);
        _mm256_store_si256((__m256i *)(void *)(bytes + i * DQ_NBITS_PIECE), _mm512_cvtepi16_epi8(bits_16));
        now.digits = bytes;
    }
    WRITTEN(p);
    WRITTEN(bytes);
    for (size_t row = 0, rows; row < x->rows; row += rows) {
        rows = x->rows - row < SIDE ? x->rows - row : SIDE;
        if (rows != *shaped)
            shape_pieces(*shaped = rows);
        multiply(p, &now, row, rows, y + row * COLS);
    }
    x->digits += p->count * x->rows * DQ_NBITS_ROUNDED_BYTES(bits);
    x->factors += p->count * x->rows;
    p->count = 0;
}

void dq_nbits_s8_amx(const dq_nbits *b, const dq_nbits_rounded *all, float *y)
{
    const bool bytes = b->bits == 8;
    const size_t most = DQ_NBITS_PIECE_WORDS(b->bits);
    if (all->rows == 1 || (bytes ? b->zeros || b->middle != 128 : b->bits != 4 || b->fractions)) {
        dq_nbits_s8_avx512vnni(b, all, y);
        return;
    }
    _Alignas(LINE) pieces p;
    float middle[COLS];
    dq_nbits_rounded x = *all;
    const uint32_t *words = b->words;
    size_t shaped = 0;
    for (size_t j = 0; j < COLS; j++)
        middle[j] = b->middle;
    memset(y, 0, x.rows * COLS * sizeof *y);
    p.count = 0;
    for (size_t g = 0; g < b->blocks; g++)
        for (size_t left = b->lengths[g], n; left; left -= n, words += n * COLS) {
            n = left < most ? left : most;
            if (bytes)
                unpack_bytes(words, n, p.qvalues[p.count]);
            else
                unpack_nibbles(words, n, b->zeros ? b->zeros + g * COLS : middle, p.qvalues[p.count]);
            copy_scales(b, g, p.scales[p.count]);
            if (++p.count == PIECES_PER_STEP)
                multiply_rows(&p, b->bits, &x, &shaped, y);
        }
    if (p.count)
        multiply_rows(&p, b->bits, &x, &shaped, y);
    _tile_release();
}
