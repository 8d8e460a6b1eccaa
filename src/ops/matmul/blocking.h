/* SPDX-License-Identifier: Apache-2.0 */
/* The cache-blocking model of packed GEMM: block sizes from the register tile and the cache sizes.
 *
 * It follows Low et al., "Analytical Modeling Is Enough for High-Performance BLIS" (ACM TOMS 43(2), 2016).
 * That model keeps a packed block of A in L2 and streams panels of B. Here B alone is packed, so that the
 * roles are exchanged: a block of B stays in L2, and rows of A stream. docs/algorithms.md#cache-blocks
 * explains it. */
#ifndef DQ_OPS_BLOCKING_H
#define DQ_OPS_BLOCKING_H

#include "base/cpu.h"

/** What the model needs to know of a kernel and its packed B. */
typedef struct dq_blocking_tile {
    size_t mr, nr;
    size_t panel_bytes; /* of NR columns of packed B, over all of K */
    size_t c_columns;   /* columns of accumulators that are computed before they are consumed */
} dq_blocking_tile;

/** Block sizes: rows of A and C, and columns of B. mc is a multiple of mr. nc is a multiple of nr and, if
 * possible, of c_columns. */
typedef struct dq_blocking {
    size_t mc, nc;
} dq_blocking;

/** Block sizes of the 8-bit GEMM. KC is K: accumulators stay in registers for the whole depth.
 *
 * MC: the mc × c_columns accumulators of 32 bits take half of L1, and at most 64 rows.
 * NC: the panels of nc columns take half of L2; the other half is for A, C, and prefetched panels. */
dq_blocking dq_blocking_of(const dq_cache_sizes *caches, const dq_blocking_tile *tile);

/** KC (terms of a sum) of the float GEMM with packed B, for blocks of `rows` rows. A
 * term takes panel_step_bytes of a panel.
 *
 * Up to 4 rows are one register tile, which reads each panel once: KC is K, so that packed B is read from
 * its beginning to its end. Up to 32 rows, a panel of KC terms takes half of L1, and has at least 384 terms.
 * More rows of A with KC terms take three quarters of L2. */
size_t dq_blocking_depth(const dq_cache_sizes *caches, size_t rows, size_t panel_step_bytes, size_t k);

/** Whether packed B of `bytes` stays in L2 from one block of rows to the next. */
bool dq_blocking_fits_in_l2(const dq_cache_sizes *caches, size_t bytes);

/** Panels that each tile of rows uses before the next tile, where sums are written to the result itself:
 * those that take a quarter of L2. Rows of C are then written in long parts. One panel at a time writes nr
 * columns of mc rows, on as many pages, which takes up to 3.8 times as long if K is small. */
size_t dq_blocking_panels_of_tile(const dq_cache_sizes *caches, size_t panel_bytes);

/** The prefetch of the next panel, shared among the tiles of a block of rows. */
typedef struct dq_blocking_prefetch {
    size_t step;    /* bytes from one prefetch to the next in a tile */
    size_t advance; /* bytes from the first prefetch of a tile to that of the next tile */
} dq_blocking_prefetch;

/** Shares panel_bytes among `tiles` tiles of `count` prefetches each. Zeros if there is a single tile: the
 * hardware prefetcher follows its sequential reads better. */
dq_blocking_prefetch dq_blocking_prefetch_of(size_t panel_bytes, size_t tiles, size_t count);

#endif
