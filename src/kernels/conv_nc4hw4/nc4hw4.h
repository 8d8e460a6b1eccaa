/* SPDX-License-Identifier: Apache-2.0 */
/* Contracts of 8-bit convolution in NC4HW4 layout: the bytes of four channels of a pixel are contiguous,
 * and a vector holds neighboring pixels. The accumulators of an output channel are a row over pixels, so that
 * neither input nor output is transposed. A step is one kernel position of four input channels: it adds the
 * products of the four bytes of a pixel with four weights. All sums are exact modulo 2^32. */
#ifndef DQ_KERNELS_NC4HW4_H
#define DQ_KERNELS_NC4HW4_H

#include "kernels/dwconv/dwconv_s8.h"
#include "kernels/gemm_s8/gemm_s8.h"

enum {
    DQ_NC4HW4_STEP = 4,   /* channels of a step */
    DQ_NC4HW4_OUTS = 4,   /* output channels of a panel */
    DQ_NC4HW4_PIXELS = 16 /* pixels that kernels compute at a time */
};

/** out[DQ_NC4HW4_STEP * p + e] = planes[e][p] ^ sign_xor for p < n; a NULL plane gives zeros. */
typedef void dq_nc4hw4_interleave_fn(const uint8_t *const planes[DQ_NC4HW4_STEP], size_t n, uint8_t sign_xor,
                                     uint8_t *out);

/** Maximum bytes of a panel of `steps` steps, a multiple of 64; 0 if the size overflows size_t. */
typedef size_t dq_nc4hw4_panel_size_fn(size_t steps);

/** Packs the weights w[(j * steps + s) * DQ_NC4HW4_STEP + e] of output channel j, step s and channel e of the
 * step into `panel` (aligned to 64). Returns the bytes used, a multiple of 64. */
typedef size_t dq_nc4hw4_pack_fn(const int8_t *w, size_t steps, void *panel);

/** Bytes that `sums` reads of a panel, where `size` bytes of it are there: what `pack` returned. 0 if `sums`
 * would read past them or outside of the image. For panels from files: sums may be wrong. */
typedef size_t dq_nc4hw4_used_fn(size_t steps, const void *panel, size_t size);

/** c[j * c_stride + p] = init[j] + sum over steps s and channels e of x[offsets[s] + DQ_NC4HW4_STEP * p + e]
 * times the panel's weight of j, s and e; for p < n and all DQ_NC4HW4_OUTS channels j. x may be read, and
 * rows of c written, up to the next multiple of DQ_NC4HW4_PIXELS pixels. */
typedef void dq_nc4hw4_sums_fn(const uint8_t *x, const ptrdiff_t *offsets, size_t steps, const void *panel,
                               const int32_t *init, size_t n, int32_t *c, size_t c_stride);

/** Requantizes rows of sums and stores them as NHWC, by dq_requantize_s32_fn with multiplier j for row j:
 * to->out[p * to->out_stride + j] from c[j * c_stride + p] for p < n and j < channels (1 … DQ_NC4HW4_OUTS).
 * Rows of c may be read up to the next multiple of DQ_NC4HW4_PIXELS pixels; to->transposed is ignored. */
typedef void dq_nc4hw4_store_fn(const int32_t *c, size_t c_stride, size_t n, size_t channels,
                                const dq_requantize_to *to);

/** Returns an exact scale (docs/glossary.md) for dq_nc4hw4_requantize_row_fn: a float that gives the results
 * of multiplier 0 for all sums of magnitude up to `largest`. Returns 0 if it finds none. */
typedef float dq_nc4hw4_exact_scale_fn(const dq_requantize_to *to, double largest);

/** Requantizes a row: to->out[p] from c[p] for p < n by dq_requantize_s32_fn, with an exact scale from
 * dq_nc4hw4_exact_scale_fn; n >= 1. c may be read up to the next multiple of 2 * DQ_NC4HW4_PIXELS. */
typedef void dq_nc4hw4_requantize_row_fn(const int32_t *c, size_t n, float scale, const dq_requantize_to *to);

typedef struct dq_conv_nc4hw4_s8 {
    size_t lanes;   /* pixels per vector */
    size_t least;   /* the kernel is used from so many output pixels on … */
    size_t deepest; /* … and, if it is 1×1, up to so many channels */
    bool nhwc;      /* input and output may be NHWC */
    dq_nc4hw4_interleave_fn *interleave;
    dq_nc4hw4_panel_size_fn *panel_size;
    dq_nc4hw4_pack_fn *pack;
    dq_nc4hw4_used_fn *used; /* NULL: panel_size bytes, and any panel is safe */
    dq_nc4hw4_sums_fn *sums;
    dq_nc4hw4_store_fn *store;
    dq_nc4hw4_exact_scale_fn *exact_scale; /* NULL: no exact scales, … */
    dq_nc4hw4_requantize_row_fn *qvalues;  /* … and this is NULL, too */
} dq_conv_nc4hw4_s8;

/** Portable C, which kernels call for remainders. */
dq_nc4hw4_interleave_fn dq_nc4hw4_interleave_c;
/** Functions shared by several x86 kernels. */
dq_nc4hw4_interleave_fn dq_nc4hw4_interleave_sse41, dq_nc4hw4_interleave_avx2;
dq_nc4hw4_panel_size_fn dq_nc4hw4_panel_size_sse41;
dq_nc4hw4_pack_fn dq_nc4hw4_pack_sse41;
dq_nc4hw4_used_fn dq_nc4hw4_used_sse41;
dq_nc4hw4_store_fn dq_nc4hw4_store_avx2;
dq_nc4hw4_exact_scale_fn dq_nc4hw4_exact_scale_avx2;
dq_nc4hw4_requantize_row_fn dq_nc4hw4_requantize_avx2, dq_nc4hw4_requantize_avx512;
/** Functions shared by the ARM kernels. */
dq_nc4hw4_interleave_fn dq_nc4hw4_interleave_neon;
dq_nc4hw4_panel_size_fn dq_nc4hw4_panel_size_neon;
dq_nc4hw4_pack_fn dq_nc4hw4_pack_neon;
dq_nc4hw4_store_fn dq_nc4hw4_store_neon;

#endif
