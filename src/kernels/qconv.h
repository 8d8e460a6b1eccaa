/* Contracts of what integer convolutions need beside the products of qgemm.h. */
#ifndef DQ_KERNELS_QCONV_H
#define DQ_KERNELS_QCONV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** How sums become 8 bits, and where: the element of row i and column j goes to out[i * out_stride + j], or,
 * `transposed`, to out[j * out_stride + i]. */
typedef struct dq_requantize_to {
    const double *scale; /* of each column */
    int32_t zero_point, lo, hi;
    uint8_t *out;
    size_t out_stride;
    bool transposed;
} dq_requantize_to;

enum { DQ_REQUANTIZE_COLS = 16 };

/** dq_requantize_fn for the rows × cols sums acc[i * acc_stride + j]. Rows of acc may be read up to the next
 * multiple of DQ_REQUANTIZE_COLS columns. */
typedef void dq_requantize_tile_fn(const int32_t *acc, size_t acc_stride, size_t rows, size_t cols,
                                   const dq_requantize_to *to);

/** Elements of an image row beside each other as dq_qconv_rows_fn takes them: out[2j] = x[j * stride] and
 * out[2j
 * + 1] = x[j * stride + distance] for j < n. x may be read up to DQ_QGEMM_SLACK bytes past the last of them.
 */
typedef void dq_qconv_pairs_fn(const uint8_t *x, size_t stride, size_t distance, size_t n, int16_t *out);

/** Convolution of one channel, rows of outputs. For i < rows and j < n, modulo 2^32:
 *  out[i * n + j] = init + sum over t < taps of w[2t] * z[2j] + w[2t + 1] * z[2j + 1], z = x + offsets[t] + i
 * * step. |w| is at most 256. x may be read up to DQ_QGEMM_SLACK bytes past the last element used. */
typedef void dq_qconv_rows_fn(const int16_t *x, size_t step, size_t rows, const ptrdiff_t *offsets,
                              const int16_t *w, size_t taps, int32_t init, size_t n, int32_t *out);

/** Two neighbours in a row of bytes, and their weights. */
typedef struct dq_qconv_tap {
    ptrdiff_t offset; /* of the first one, from a window's */
    int8_t w[2];
} dq_qconv_tap;

enum {
    DQ_QCONV_CODES_STEP = 32, /* codes are made for so many windows at a time */
    DQ_QCONV_TAPS_MOST = 96
};

/** Taps in groups, one behind the other. The weights of a tap that are positive, and those that are negative,
 * sum to at most 128 in size, so that no sum of two products with bytes leaves 16 bits; all weights of a
 * group sum to at most 257 in size, so that its sums lie in a range of 2^16 numbers. A neighbour may occur in
 * several taps: its weights then add up. */
typedef struct dq_qconv_taps {
    const dq_qconv_tap *taps;
    const uint8_t *sizes; /* of the groups */
    size_t groups;
    int32_t init;
} dq_qconv_taps;

/** Convolution of one channel to codes: to->out[j] for j < n is, as dq_requantize_tile_fn says with
 * to->scale[0], what becomes of init + sum over taps of w[0] * z[0] + w[1] * z[1], z = x + j * step + offset;
 * step is 1 or 2, to->transposed and to->out_stride do not count. x may be read, and codes written, as if n
 * were the next multiple of DQ_QCONV_CODES_STEP. */
typedef void dq_qconv_codes_fn(const uint8_t *x, size_t step, const dq_qconv_taps *taps,
                               const dq_requantize_to *to, size_t n);

#endif
