/* vpdpbusd adds four u8 x s8 products to an int32 without saturating: exact for all operands. A tile is 8
 * rows by 32 columns: sixteen sums hide the instruction's latency, and eight row pointers stay in registers.
 */
#include "kernels/kernels.h"
#include "kernels/qgemm_pack.h"

#include <immintrin.h>
#include <string.h>

enum { MR = 8, NR = 32, LANES = 16, VECTORS = NR / LANES, GROUP = 4 };

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
    __m512i acc[MR][VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < VECTORS; v++)
            acc[i][v] = _mm512_loadu_si512(init + v * LANES);
    size_t groups = (a->run + GROUP - 1) / GROUP;
    for (size_t t = 0; t < a->runs; t++) {
        const uint8_t *x[MR];
        for (int i = 0; i < rows; i++)
            x[i] = a->rows[i] + a->offsets[t];
        for (size_t g = 0; g < groups; g++, b += NR * GROUP) {
            __m512i b0 = _mm512_load_si512(b), b1 = _mm512_load_si512(b + 64);
            for (int i = 0; i < rows; i++) {
                __m512i value = _mm512_set1_epi32(four(x[i] + GROUP * g));
                acc[i][0] = _mm512_dpbusd_epi32(acc[i][0], value, b0);
                acc[i][1] = _mm512_dpbusd_epi32(acc[i][1], value, b1);
            }
        }
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < VECTORS; v++)
            _mm512_storeu_si512(c + (size_t)i * c_stride + v * LANES, acc[i][v]);
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
        ROWS(6)
        ROWS(7)
    default:
        tile_rows(a, MR, panel, init, c, c_stride);
    }
#undef ROWS
}

const dq_qgemm dq_qgemm_avx512vnni = {.mr = MR,
                                      .nr = NR,
                                      .a_signed = false,
                                      .panel_size = panel_size,
                                      .pack = pack,
                                      .tile = tile,
                                      .sums = dq_qgemm_sums_u8_avx2};
