/* Integer products of 16-bit operands, and what becomes of their sums. */
#ifndef DQ_KERNELS_WGEMM_H
#define DQ_KERNELS_WGEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DQ_WGEMM_ROWS = 4, DQ_WGEMM_OCTET = 8, DQ_WGEMM_OCTETS = 3, DQ_WGEMM_COLS = 24 };

/** Sums of a tile, whose columns are one to three octets that stand anywhere: for i < DQ_WGEMM_ROWS, o <
 * octets and j < DQ_WGEMM_OCTET
 *      c[i * DQ_WGEMM_COLS + o * DQ_WGEMM_OCTET + j] = sum over p < pairs of
 *          a[(p * DQ_WGEMM_ROWS + i) * 2] * z[2j] + a[(p * DQ_WGEMM_ROWS + i) * 2 + 1] * z[2j + 1]
 * with z = b[o] + offsets[p], modulo 2^32; other columns of c may hold anything after. */
typedef void dq_wgemm_fn(const int16_t *a, size_t pairs, const int16_t *const b[DQ_WGEMM_OCTETS],
                         const uint32_t *offsets, size_t octets, int32_t *c);

/** Sums of one row, with panels of 8 bits: for o < DQ_WGEMM_OCTETS and j < DQ_WGEMM_OCTET
 *      c[o * DQ_WGEMM_OCTET + j] = sum over p < pairs of x[2p] * z[2j] + x[2p + 1] * z[2j + 1]
 * with z = b[o] + p * 2 * DQ_WGEMM_OCTET, modulo 2^32. */
typedef void dq_wrow_fn(const int16_t *x, size_t pairs, const int8_t *const b[DQ_WGEMM_OCTETS], int32_t *c);

/** Convolution of one channel, rows of outputs. For i < rows and j < n
 *      out[i * n + j] = init + sum over t < taps of w[2t] * z[j] + w[2t + 1] * z[j + 1]
 * with z = x + offsets[t] + i * step, modulo 2^32. |w| is at most 256. x may be read up to DQ_QGEMM_SLACK
 * bytes past the last element used. */
typedef void dq_wconv_rows_fn(const int16_t *x, size_t step, size_t rows, const ptrdiff_t *offsets,
                              const int16_t *w, size_t taps, int32_t init, size_t n, int32_t *out);

/** rows × cols sums that become codes of up to 16 bits: for s = i * stride + j
 *
 *      total = sums[s] + 256 * high[s] + extra[i * extra_stride + j] + fixed
 *      out[i * out_stride + j] = clamp(round((total + offset) * scale) + zero_point, lo, hi)
 *
 * where fixed, offset and scale are number i * row_step + j * col_step of theirs, and high, extra and fixed
 * (NULL: zeros) hold whole numbers such that the total is exact in double, in any order; the lower 16 bits
 * count. The sum with offset and the product are each rounded to double, then to nearest, ties to even. NaN
 * gives lo. Bounds and zero point are those of an integer type of up to 16 bits. */
typedef struct dq_wide_sums {
    size_t rows, cols, stride, extra_stride, out_stride;
    const int32_t *sums, *high;
    const double *extra, *fixed, *offset, *scale;
    size_t row_step, col_step; /* col_step is 0 or 1 */
    int32_t zero_point, lo, hi;
    bool narrow; /* sums + 256 * high fit in int32 */
} dq_wide_sums;
typedef void dq_requantize_wide_fn(const dq_wide_sums *s, uint16_t *out);

/** What is left of row i from column j on. */
static inline dq_wide_sums dq_wide_rest(const dq_wide_sums *s, size_t i, size_t j)
{
    dq_wide_sums rest = *s;
    rest.rows = 1;
    rest.cols -= j;
    rest.sums += i * s->stride + j;
    rest.high = rest.high ? rest.high + i * s->stride + j : NULL;
    rest.extra = rest.extra ? rest.extra + i * s->extra_stride + j : NULL;
    rest.fixed = rest.fixed ? rest.fixed + i * s->row_step + j * s->col_step : NULL;
    rest.offset += i * s->row_step + j * s->col_step;
    rest.scale += i * s->row_step + j * s->col_step;
    return rest;
}

#endif
