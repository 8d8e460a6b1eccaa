/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level. 8-bit GEMM with vpdpbusd, which adds four u8 × s8 products to an
 * int32 without saturation: exact for all operands. The file of the ISA level defines before the include
 *   vec                   a vector of LANES int32
 *   MR, VECTORS           rows of a tile, at most 8, and vectors of its columns: the sums stay in registers
 *   v_load, v_store, v_set, v_add, v_dot(sums, u8, s8)
 * and after it the dq_gemm_s8 record, DQ_GEMM_S8_VNNI. */
#ifndef DQ_KERNELS_GEMM_S8_VNNI_H
#define DQ_KERNELS_GEMM_S8_VNNI_H

#include "kernels/gemm_s8/gemm_s8_pack.h"

#include "base/checked.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))
/* Loops over rows and vectors unroll before the compiler assigns registers. Else accumulators pass through
 * the stack before and after the groups, which takes a third of the time of a tile with 64 positions. */
#define UNROLL _Pragma("GCC unroll 8")
enum {
    NR = VECTORS * LANES,
    GROUP = 4,
    PREFETCH = DQ_GEMM_S8_PREFETCH / GROUP, /* groups */
    HEAD = 64,  /* bytes before a panel's weights; the first is its number of column vectors */
    NARROW = 16 /* the fewest columns that are packed */
};

static size_t panel_size(size_t runs, size_t run)
{
    size_t body = dq_gemm_s8_panel_size(runs, run, NR, GROUP), bytes;
    return body && dq_add_size(body, HEAD, &bytes) ? bytes : 0;
}

static size_t pack(const dq_gemm_s8_b *b, size_t first, void *panel, int32_t *sums)
{
    size_t cols = b->cols - first > NARROW ? NR : NARROW;
    memset(panel, 0, HEAD);
    *(uint8_t *)panel = (uint8_t)(cols / LANES);
    memset(sums + cols, 0, (NR - cols) * sizeof *sums);
    return HEAD + dq_gemm_s8_pack_avx2(b, first, cols, (uint8_t *)panel + HEAD, sums);
}

/* Adds the products of four positions for all rows. */
INLINE void step(const uint8_t *const x[MR], size_t at, const int8_t *b, int rows, int vectors,
                 vec acc[MR][VECTORS])
{
    vec w[VECTORS];
    UNROLL for (int v = 0; v < vectors; v++) w[v] = v_load(b + v * LANES * GROUP);
    UNROLL for (int i = 0; i < rows; i++)
    {
        int32_t bytes;
        memcpy(&bytes, x[i] + at, sizeof bytes);
        vec value = v_set(bytes);
        UNROLL for (int v = 0; v < vectors; v++) acc[i][v] = v_dot(acc[i][v], value, w[v]);
    }
}

/* Computes a tile. `rows` and `vectors` are constants in each call; rows from `count` on repeat the last one.
 * Columns that the panel does not have get init. With few accumulators, the latency of the additions would
 * dominate: then twice as many are used, for alternate groups. The next panel is prefetched on the way: all
 * tiles of a block of rows share its lines, so that memory and multiplications overlap. */
INLINE void tile_rows(const dq_gemm_s8_a *a, int rows, int vectors, int count, const int8_t *b,
                      const int32_t *init, int32_t *c, size_t c_stride)
{
    const bool twice = rows * vectors <= MR * VECTORS / 2;
    const size_t groups = (a->run + GROUP - 1) / GROUP, row = (size_t)vectors * LANES * GROUP;
    const char *ahead = a->ahead ? a->ahead : (const char *)b;
    vec acc[MR][VECTORS], more[MR][VECTORS];
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++)
    {
        acc[i][v] = v_load(init + v * LANES);
        more[i][v] = v_set(0);
    }
    for (size_t t = 0; t < a->runs; t++) {
        const uint8_t *x[MR];
        UNROLL for (int i = 0; i < rows; i++) x[i] = a->rows[i < count ? i : count - 1] + a->offsets[t];
        size_t g = 0;
        for (; g + PREFETCH <= groups; g += PREFETCH, b += PREFETCH * row, ahead += a->ahead_step) {
            __builtin_prefetch(ahead, 0, 2);
            step(x, g * GROUP, b, rows, vectors, acc);
            step(x, (g + 1) * GROUP, b + row, rows, vectors, twice ? more : acc);
        }
        for (; g < groups; g++, b += row)
            step(x, g * GROUP, b, rows, vectors, acc);
    }
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < VECTORS; v++)
    {
        vec sum = v < vectors ? acc[i][v] : v_load(init + v * LANES);
        if (v < vectors && twice)
            sum = v_add(sum, more[i][v]);
        if (i < count)
            v_store(c + (size_t)i * c_stride + v * LANES, sum);
    }
}

static void tile(const dq_gemm_s8_a *a, size_t rows, const void *panel, const int32_t *init, int32_t *c,
                 size_t c_stride)
{
    const int8_t *b = (const int8_t *)panel + HEAD;
    const int count = (int)rows;
    if (NR > NARROW && *(const uint8_t *)panel < VECTORS)
        tile_rows(a, MR, VECTORS / 2, count, b, init, c, c_stride);
    else if (rows == 1)
        tile_rows(a, 1, VECTORS, count, b, init, c, c_stride);
    else if (rows == 2)
        tile_rows(a, 2, VECTORS, count, b, init, c, c_stride);
    else if (rows <= 4)
        tile_rows(a, 4, VECTORS, count, b, init, c, c_stride);
    else if (rows <= MR - 2)
        tile_rows(a, MR - 2, VECTORS, count, b, init, c, c_stride);
    else
        tile_rows(a, MR, VECTORS, count, b, init, c, c_stride);
}

#define DQ_GEMM_S8_VNNI                                                                                      \
    {                                                                                                        \
        .mr = MR, .nr = NR, .a_signed = false, .dots = true, .panel_size = panel_size, .pack = pack,         \
        .tile = tile, .sums = dq_gemm_s8_sums_u8_avx2                                                        \
    }

#endif
