/* Without a dot instruction of its own for bytes, AVX2 multiplies 16-bit pairs: vpmaddwd of a row's bytes
 * widened with zeros and the weights widened with their sign is exact for all operands (vpmaddubsw
 * saturates). Rows are widened once for a tile, weights when they are loaded. A tile of 6 rows by 16 columns
 * fills the sixteen registers. */
#include "kernels/kernels.h"
#include "kernels/qgemm_pack.h"

#include <immintrin.h>
#include <string.h>

enum { MR = 6, NR = 16, LANES = 8, VECTORS = NR / LANES, GROUP = 2, CHUNK = 128, STEP = 16 };

static size_t panel_size(size_t runs, size_t run)
{
    return dq_qgemm_panel_size(runs, run, NR, GROUP);
}

static void pack(const dq_qgemm_b *b, size_t first, void *panel, int32_t *sums)
{
    dq_qgemm_pack(b, first, NR, GROUP, panel, sums);
}

/* Bytes past n are read (dq_qgemm's slack) and meet weights of zero. */
static inline void widen(const uint8_t *x, size_t n, uint16_t *out)
{
    for (size_t k = 0; k < n; k += STEP) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(x + k));
        _mm256_storeu_si256((__m256i *)(void *)(out + k), _mm256_cvtepu8_epi16(bytes));
    }
}

static inline __m256i weights(const int8_t *b)
{
    return _mm256_cvtepi8_epi16(_mm_load_si128((const __m128i *)(const void *)b));
}

static inline int32_t two(const uint16_t *x)
{
    int32_t pair;
    memcpy(&pair, x, sizeof pair);
    return pair;
}

/* `rows` is constant in each call, so that the loops over rows unroll and sums stay in registers. */
static inline __attribute__((always_inline)) void tile_rows(const dq_qgemm_a *a, int rows, const int8_t *b,
                                                            const int32_t *init, int32_t *c, size_t c_stride)
{
    uint16_t wide[MR][CHUNK];
    __m256i acc[MR][VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < VECTORS; v++)
            acc[i][v] = _mm256_loadu_si256((const __m256i *)(const void *)(init + v * LANES));
    for (size_t t = 0; t < a->runs; t++)
        for (size_t k = 0; k < a->run; k += CHUNK) {
            size_t n = a->run - k < CHUNK ? a->run - k : CHUNK;
            for (int i = 0; i < rows; i++)
                widen(a->rows[i] + a->offsets[t] + k, n, wide[i]);
            for (size_t g = 0; g < n; g += GROUP, b += NR * GROUP) {
                __m256i b0 = weights(b), b1 = weights(b + LANES * GROUP);
                for (int i = 0; i < rows; i++) {
                    __m256i value = _mm256_set1_epi32(two(wide[i] + g));
                    acc[i][0] = _mm256_add_epi32(acc[i][0], _mm256_madd_epi16(value, b0));
                    acc[i][1] = _mm256_add_epi32(acc[i][1], _mm256_madd_epi16(value, b1));
                }
            }
        }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < VECTORS; v++)
            _mm256_storeu_si256((__m256i *)(void *)(c + (size_t)i * c_stride + v * LANES), acc[i][v]);
}

static void tile(const dq_qgemm_a *a, size_t rows, const void *panel, const int32_t *init, int32_t *c,
                 size_t c_stride)
{
    switch (rows) {
#define ROWS(n)                                                                                              \
    case n:                                                                                                  \
        tile_rows(a, n, panel, init, c, c_stride);                                                           \
        break;
        ROWS(1)
        ROWS(2)
        ROWS(3)
        ROWS(4)
        ROWS(5)
    default:
        tile_rows(a, MR, panel, init, c, c_stride);
    }
#undef ROWS
}

/* vpsadbw against zero adds eight bytes to a 64-bit lane; a run of less than a vector is added byte by byte.
 */
void dq_qgemm_sums_u8_avx2(const dq_qgemm_a *a, size_t rows, int32_t *out)
{
    for (size_t i = 0; i < rows; i++) {
        __m256i sums = _mm256_setzero_si256();
        uint32_t rest = 0;
        for (size_t t = 0; t < a->runs; t++) {
            const uint8_t *x = a->rows[i] + a->offsets[t];
            size_t p = 0;
            for (; p + 32 <= a->run; p += 32) {
                __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)(x + p));
                sums = _mm256_add_epi64(sums, _mm256_sad_epu8(bytes, _mm256_setzero_si256()));
            }
            for (; p < a->run; p++)
                rest += x[p];
        }
        uint64_t lanes[4];
        _mm256_storeu_si256((__m256i *)(void *)lanes, sums);
        out[i] = (int32_t)(rest + (uint32_t)(lanes[0] + lanes[1] + lanes[2] + lanes[3]));
    }
}

const dq_qgemm dq_qgemm_avx2 = {.mr = MR,
                                .nr = NR,
                                .a_signed = false,
                                .panel_size = panel_size,
                                .pack = pack,
                                .tile = tile,
                                .sums = dq_qgemm_sums_u8_avx2};
