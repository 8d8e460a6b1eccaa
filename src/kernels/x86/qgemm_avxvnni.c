/* vpdpbusd on 256-bit vectors (AVX-VNNI): four u8 x s8 products added to an int32 without saturating, exact
 * for all operands. A tile of 6 rows by 16 columns fills the sixteen registers. */
#include "kernels/kernels.h"
#include "kernels/qgemm_pack.h"

#include <immintrin.h>
#include <string.h>

enum { MR = 6, NR = 16, LANES = 8, VECTORS = NR / LANES, GROUP = 4 };

static size_t panel_size(size_t runs, size_t run)
{
    return dq_qgemm_panel_size(runs, run, NR, GROUP);
}

static size_t pack(const dq_qgemm_b *b, size_t first, void *panel, int32_t *sums)
{
    return dq_qgemm_pack_avx2(b, first, NR, panel, sums);
}

static inline int32_t four(const uint8_t *x)
{
    int32_t bytes;
    memcpy(&bytes, x, sizeof bytes);
    return bytes;
}

/* `rows` is constant in each call, so that the loops over rows unroll and sums stay in registers. */
static inline __attribute__((always_inline)) void tile_rows(const dq_qgemm_a *a, int rows, const int8_t *b,
                                                            const int32_t *init, int32_t *c, size_t c_stride)
{
    __m256i acc[MR][VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < VECTORS; v++)
            acc[i][v] = _mm256_loadu_si256((const __m256i *)(const void *)(init + v * LANES));
    size_t groups = (a->run + GROUP - 1) / GROUP;
    for (size_t t = 0; t < a->runs; t++) {
        const uint8_t *x[MR];
        for (int i = 0; i < rows; i++)
            x[i] = a->rows[i] + a->offsets[t];
        for (size_t g = 0; g < groups; g++, b += NR * GROUP) {
            __m256i b0 = _mm256_load_si256((const __m256i *)(const void *)b),
                    b1 = _mm256_load_si256((const __m256i *)(const void *)(b + 32));
            for (int i = 0; i < rows; i++) {
                __m256i value = _mm256_set1_epi32(four(x[i] + GROUP * g));
                acc[i][0] = _mm256_dpbusd_avx_epi32(acc[i][0], value, b0);
                acc[i][1] = _mm256_dpbusd_avx_epi32(acc[i][1], value, b1);
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

const dq_qgemm dq_qgemm_avxvnni = {.mr = MR,
                                   .nr = NR,
                                   .a_signed = false,
                                   .panel_size = panel_size,
                                   .pack = pack,
                                   .tile = tile,
                                   .sums = dq_qgemm_sums_u8_avx2};
