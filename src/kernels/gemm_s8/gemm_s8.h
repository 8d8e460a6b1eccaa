/* SPDX-License-Identifier: Apache-2.0 */
/* Contracts of the 8-bit GEMM with int32 accumulators, used by matrix products and convolutions.
 *
 * A holds activations, B weights. B is always int8: for uint8 weights the caller inverts the sign bit and
 * lowers the zero point by 128, which does not change the result. A is uint8 or int8, as the kernel requires
 * (dq_gemm_s8.a_signed). All sums are exact modulo 2^32 for all operands: no kernel may saturate or wrap a
 * partial sum in fewer bits.
 *
 * A row of A consists of `runs` segments of `run` contiguous bytes, at rows[i] + offsets[t]. A plain matrix
 * has one segment of K bytes. An NHWC convolution has one segment for each kernel position (or kernel row);
 * its rows are the windows of the image (indirect GEMM). The kernel packs B into panels of columns in its own
 * layout. */
#ifndef DQ_KERNELS_GEMM_S8_H
#define DQ_KERNELS_GEMM_S8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DQ_GEMM_S8_MR_MAX = 64, /* bounds of dq_gemm_s8.mr and nr */
    DQ_GEMM_S8_NR_MAX = 64,
    DQ_GEMM_S8_PREFETCH = 8, /* bytes of a row for each prefetch (dq_gemm_s8_a.ahead) */
    DQ_GEMM_S8_SLACK = 64    /* bytes after data that suffice for all kernels (dq_gemm_s8_readable) */
};

/** Bytes that kernels may read of a segment of `run` bytes. Those past its end are multiplied by zero or
 * dropped. */
static inline size_t dq_gemm_s8_readable(size_t run)
{
    return (run + DQ_GEMM_S8_SLACK - 1) / DQ_GEMM_S8_SLACK * DQ_GEMM_S8_SLACK;
}

typedef struct dq_gemm_s8_a {
    const uint8_t *const *rows;
    const ptrdiff_t *offsets; /* offset of each of the `runs` segments in a row */
    size_t runs, run;
    bool exceeds_caches; /* the panels are probably not cached */
    /* The kernel may prefetch: for each DQ_GEMM_S8_PREFETCH bytes of a segment one line into L2, from `ahead`
     * on, each ahead_step bytes after the one before. NULL and 0: nothing. */
    const char *ahead;
    size_t ahead_step;
    const int32_t *sums; /* the sum of each row, if known; or NULL */
    /* packed_a_size bytes, aligned to 64, in which the kernel packs these rows. The first byte is 0 before
     * the first tile of these rows. Other rows follow only after dq_gemm_s8.done. */
    void *packed;
} dq_gemm_s8_a;

/** Expected use of packed weights: many rows in many calls; many rows in one call; or few rows, so that the
 * time to read the weights dominates. */
enum { DQ_GEMM_S8_OFTEN, DQ_GEMM_S8_ONCE, DQ_GEMM_S8_FEW };

/** B before packing: element (segment t, position p, column j) is the byte
 *  data[j * col_stride + t * run_stride + p / inner * outer_stride + p % inner * inner_stride] ^ sign_xor. */
typedef struct dq_gemm_s8_b {
    const uint8_t *data;
    size_t cols, runs, run, inner;
    size_t col_stride, run_stride, outer_stride, inner_stride;
    uint8_t sign_xor; /* 0x80 for uint8 weights, else 0 */
    uint8_t use;      /* DQ_GEMM_S8_…: bounds the time of packing */
} dq_gemm_s8_b;

/** Maximum bytes of a panel, a multiple of 64; 0 if the size overflows size_t. */
typedef size_t dq_gemm_s8_panel_size_fn(size_t runs, size_t run);

/** Bytes of dq_gemm_s8_a.packed for up to `rows` rows and panels of b (its runs, run and use matter); 0 if
 * the size overflows size_t. */
typedef size_t dq_gemm_s8_packed_a_size_fn(const dq_gemm_s8_b *b, size_t rows);

/** Packs columns first … first + nr - 1 (zeros past b->cols) into `panel` (aligned to 64, panel_size bytes)
 * and writes the nr column sums. Returns the bytes used, a multiple of 64, which depend on the weights. */
typedef size_t dq_gemm_s8_pack_fn(const dq_gemm_s8_b *b, size_t first, void *panel, int32_t *sums);

/** Bytes that `tile` reads of a panel, where `size` bytes of it are there: what `pack` returned. 0 if `tile`
 * would read past them or outside of A. For panels from files: sums may be wrong. */
typedef size_t dq_gemm_s8_used_fn(size_t runs, size_t run, const void *panel, size_t size);

/** Computes a tile: c[i * c_stride + j] = init[j] + row i of A times column j of the panel, for i < rows (1 …
 * mr) and all j < nr. A kernel with a column_step writes only the columns of dq_gemm_s8_columns. */
typedef void dq_gemm_s8_tile_fn(const dq_gemm_s8_a *a, size_t rows, const void *panel, const int32_t *init,
                                int32_t *c, size_t c_stride);

/** Called after the last tile of a block of rows, on the same thread. */
typedef void dq_gemm_s8_done_fn(void);

/** sums[i] = sum of row i of A, for i < rows (any number). */
typedef void dq_gemm_s8_sums_fn(const dq_gemm_s8_a *a, size_t rows, int32_t *sums);

/** Functions that share a panel layout. */
typedef struct dq_gemm_s8 {
    unsigned mr, nr;      /* rows and columns of a tile */
    unsigned column_step; /* columns are computed so many at a time; 0: nr */
    bool a_signed;        /* A is int8, else uint8 */
    bool dots; /* the ISA has a dot-product instruction for bytes: two rows of bytes take less time than a row
                  of int16 in dq_gemm_s16_fn */
    dq_gemm_s8_panel_size_fn *panel_size;
    dq_gemm_s8_packed_a_size_fn *packed_a_size; /* NULL: the kernel does not pack A */
    dq_gemm_s8_pack_fn *pack;
    dq_gemm_s8_used_fn *used; /* NULL: panel_size bytes, and any panel is safe */
    dq_gemm_s8_tile_fn *tile;
    dq_gemm_s8_done_fn *done; /* NULL: nothing to do */
    dq_gemm_s8_sums_fn *sums;
    const struct dq_gemm_s8 *few; /* for DQ_GEMM_S8_FEW, with the same a_signed; NULL: this one */
    const struct dq_gemm_s8
        *other_sign; /* the same panel layout for the other signedness of A; not for `few`; NULL: none */
} dq_gemm_s8;

/** Columns that a tile writes of a panel which holds `cols` columns of B (at most nr). */
static inline size_t dq_gemm_s8_columns(const dq_gemm_s8 *kernel, size_t cols)
{
    const size_t step = kernel->column_step ? kernel->column_step : kernel->nr;
    return (cols + step - 1) / step * step;
}

/** c[j] -= factor * v[j], modulo 2^32. */
typedef void dq_subtract_scaled_s32_fn(int32_t *c, size_t n, int32_t factor, const int32_t *v);

/** dst[c * dst_stride + r] = src[r * src_stride + c] ^ sign_xor for r < rows, c < cols. */
typedef void dq_transpose_x8_fn(const uint8_t *src, size_t src_stride, size_t rows, size_t cols,
                                uint8_t sign_xor, uint8_t *dst, size_t dst_stride);
/** The same for 16- and 32-bit elements (strides in elements), without sign_xor. */
typedef void dq_transpose_x16_fn(const uint16_t *src, size_t src_stride, size_t rows, size_t cols,
                                 uint16_t *dst, size_t dst_stride);
typedef void dq_transpose_x32_fn(const uint32_t *src, size_t src_stride, size_t rows, size_t cols,
                                 uint32_t *dst, size_t dst_stride);

#endif
