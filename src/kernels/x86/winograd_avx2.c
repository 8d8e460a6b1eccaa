/* Sixteen channels at a time on the way in, pairs of channels by vpmaddwd in six rows by sixteen columns,
 * eight columns at a time on the way out. */
#include "kernels/kernels.h"

#include <immintrin.h>
#include <string.h>

enum { SIDE = 4, COLS = DQ_WINOGRAD_COLS, LANES = 8, HEIGHT = 6, VECTORS = COLS / LANES };

static inline __m256i load(const void *p)
{
    return _mm256_loadu_si256(p);
}

/* ---- In ----------------------------------------------------------------------------------------------- */

static inline void b_times(__m256i d0, __m256i d1, __m256i d2, __m256i d3, __m256i out[SIDE])
{
    out[0] = _mm256_sub_epi16(d0, d2);
    out[1] = _mm256_add_epi16(d1, d2);
    out[2] = _mm256_sub_epi16(d2, d1);
    out[3] = _mm256_sub_epi16(d1, d3);
}

static inline __m256i sixteen(const uint8_t *x)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)x));
}

static inline void column(const uint8_t *x, size_t row, __m256i out[SIDE])
{
    b_times(sixteen(x), sixteen(x + row), sixteen(x + 2 * row), sixteen(x + 3 * row), out);
}

/* The last two columns of a tile are the first two of the next. */
static void input(const uint8_t *x, size_t row, size_t pixel, size_t tiles, size_t channels, int16_t *v,
                  size_t point)
{
    for (size_t c = 0; c < channels; c += DQ_WINOGRAD_STEP) {
        const uint8_t *from = x + c;
        __m256i t[SIDE][SIDE]; /* by column */
        column(from, row, t[0]);
        column(from + pixel, row, t[1]);
        for (size_t i = 0; i < tiles; i++) {
            int16_t *to = v + i * channels + c;
            from += 2 * pixel;
            column(from, row, t[2]);
            column(from + pixel, row, t[3]);
            for (size_t k = 0; k < SIDE; k++) {
                __m256i out[SIDE];
                b_times(t[0][k], t[1][k], t[2][k], t[3][k], out);
                for (size_t l = 0; l < SIDE; l++)
                    _mm256_storeu_si256((void *)(to + (k * SIDE + l) * point), out[l]);
                t[0][k] = t[2][k];
                t[1][k] = t[3][k];
            }
        }
    }
}

/* ---- Products ----------------------------------------------------------------------------------------- */

static inline __m256i pair(const int16_t *v)
{
    int32_t both;
    memcpy(&both, v, sizeof both);
    return _mm256_set1_epi32(both);
}

/* `rows` is constant in each call, so that loops unroll and sums stay in registers. */
static inline __attribute__((always_inline)) void some_rows(const int16_t *v, int rows, size_t channels,
                                                            const int16_t *u, int32_t *m)
{
    __m256i sums[HEIGHT][VECTORS];
    for (int i = 0; i < rows; i++)
        sums[i][0] = sums[i][1] = _mm256_setzero_si256();
    for (size_t c = 0; c < channels; c += 2, u += 2 * COLS) {
        __m256i u0 = load(u), u1 = load(u + COLS);
        for (int i = 0; i < rows; i++) {
            __m256i value = pair(v + (size_t)i * channels + c);
            sums[i][0] = _mm256_add_epi32(sums[i][0], _mm256_madd_epi16(value, u0));
            sums[i][1] = _mm256_add_epi32(sums[i][1], _mm256_madd_epi16(value, u1));
        }
    }
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < VECTORS; k++)
            _mm256_storeu_si256((void *)(m + i * COLS + k * LANES), sums[i][k]);
}

static void product(const int16_t *v, size_t rows, size_t channels, const int16_t *u, int32_t *m)
{
    for (; rows >= HEIGHT; rows -= HEIGHT, v += HEIGHT * channels, m += HEIGHT * COLS)
        some_rows(v, HEIGHT, channels, u, m);
    switch (rows) {
#define ROWS(n)                                                                                              \
    case n:                                                                                                  \
        some_rows(v, n, channels, u, m);                                                                     \
        break;
        ROWS(1)
        ROWS(2)
        ROWS(3)
        ROWS(4)
        ROWS(5)
#undef ROWS
    default:
        break;
    }
}

/* ---- Out ---------------------------------------------------------------------------------------------- */

static inline void a_times(__m256i m0, __m256i m1, __m256i m2, __m256i m3, __m256i out[2])
{
    out[0] = _mm256_add_epi32(_mm256_add_epi32(m0, m1), m2);
    out[1] = _mm256_sub_epi32(_mm256_sub_epi32(m1, m2), m3);
}

static inline void quarter(__m256i sum, __m256i init, int32_t *y)
{
    _mm256_storeu_si256((void *)y, _mm256_add_epi32(init, _mm256_srai_epi32(sum, 2)));
}

static void output(const int32_t *m, size_t point, const int32_t *init, size_t width, size_t rows, int32_t *y)
{
    for (size_t x = 0; x < width; x += 2)
        for (size_t j = 0; j < COLS; j += LANES) {
            const int32_t *from = m + x / 2 * COLS + j;
            __m256i t[SIDE][2], out[2], start = load(init + j); /* t by column */
            for (size_t k = 0; k < SIDE; k++, from += point)
                a_times(load(from), load(from + SIDE * point), load(from + 2 * SIDE * point),
                        load(from + 3 * SIDE * point), t[k]);
            for (size_t k = 0; k < rows; k++) {
                a_times(t[0][k], t[1][k], t[2][k], t[3][k], out);
                quarter(out[0], start, y + (k * width + x) * COLS + j);
                if (x + 1 < width)
                    quarter(out[1], start, y + (k * width + x + 1) * COLS + j);
            }
        }
}

const dq_winograd dq_winograd_avx2 = {
    .beats = &dq_qgemm_avx2, .input = input, .product = product, .output = output};
