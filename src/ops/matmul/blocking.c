/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matmul/blocking.h"

enum {
    MC_MAX = 64,
    ONE_TILE_ROWS = 4,  /* rows that are a single register tile at every level of the float GEMM */
    L1_ROWS = 32,       /* up to so many rows, a panel stays in L1 from one tile to the next … */
    MIN_L1_DEPTH = 384, /* … if it has no more terms than half of L1 holds, or these */
    LINE = 64           /* bytes of a cache line */
};

static size_t down_to_multiple(size_t n, size_t of)
{
    return n < of ? of : n / of * of;
}

dq_blocking dq_blocking_of(const dq_cache_sizes *caches, const dq_blocking_tile *tile)
{
    size_t rows = caches->l1 / 2 / (tile->c_columns * sizeof(int32_t));
    size_t panels = caches->l2 / 2 / (tile->panel_bytes ? tile->panel_bytes : 1);
    size_t at_once = tile->c_columns / tile->nr;
    return (dq_blocking){.mc = down_to_multiple(rows < MC_MAX ? rows : MC_MAX, tile->mr),
                         .nc = down_to_multiple(panels, at_once ? at_once : 1) * tile->nr};
}

size_t dq_blocking_depth(const dq_cache_sizes *caches, size_t rows, size_t panel_step_bytes, size_t k)
{
    if (rows <= ONE_TILE_ROWS)
        return k;
    if (rows > L1_ROWS)
        return caches->l2 / 4 * 3 / (rows * sizeof(float));
    const size_t terms = caches->l1 / 2 / panel_step_bytes;
    return terms < MIN_L1_DEPTH ? MIN_L1_DEPTH : terms;
}

bool dq_blocking_fits_in_l2(const dq_cache_sizes *caches, size_t bytes)
{
    return bytes <= caches->l2 / 2;
}

size_t dq_blocking_panels_of_tile(const dq_cache_sizes *caches, size_t panel_bytes)
{
    return caches->l2 / 4 / (panel_bytes ? panel_bytes : 1);
}

dq_blocking_prefetch dq_blocking_prefetch_of(size_t panel_bytes, size_t tiles, size_t count)
{
    if (tiles < 2 || count == 0)
        return (dq_blocking_prefetch){0, 0};
    size_t share = (panel_bytes + tiles - 1) / tiles, step = (share + count - 1) / count;
    step = step < LINE ? step : LINE;
    return (dq_blocking_prefetch){step, step * count};
}
