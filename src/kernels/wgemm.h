/* Integer products of 16-bit operands, and what becomes of their sums. */
#ifndef DQ_KERNELS_WGEMM_H
#define DQ_KERNELS_WGEMM_H

#include <stddef.h>
#include <stdint.h>

enum { DQ_WGEMM_ROWS = 4, DQ_WGEMM_COLS = 16 };

/** c[i * DQ_WGEMM_COLS + j] += sum over p < 2 * pairs of a(i, p) * b(p, j), for all of a tile, where
 *      a(i, p) = a[(p / 2 * DQ_WGEMM_ROWS + i) * 2 + p % 2]
 *      b(p, j) = b[(p / 2 * DQ_WGEMM_COLS + j) * 2 + p % 2]
 * Either all of a or all of b lies in -128 … 127. Sums are exact as long as they, and c, are whole numbers
 * below 2^53. */
typedef void dq_wgemm_fn(const int16_t *a, const int16_t *b, size_t pairs, double *c);

/** out[j] = clamp(round((acc[j] + offset[j * step]) * scale[j * step]) + zero_point, lo, hi): the sum and the
 * product each rounded to double, then to nearest, ties to even. NaN gives lo. Bounds and zero point are
 * those of an integer type of up to 16 bits. */
typedef void dq_requantize_f64_fn(const double *acc, size_t n, const double *offset, const double *scale,
                                  size_t step, int32_t zero_point, int32_t lo, int32_t hi, int32_t *out);

#endif
