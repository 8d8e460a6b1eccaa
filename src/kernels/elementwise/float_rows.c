/* SPDX-License-Identifier: Apache-2.0 */
#include "base/math.h"
#include "kernels/simd/vec_c.h"

#include "kernels/dwconv/fconv_body.h"
#include "kernels/elementwise/float_rows_body.h"
#include "kernels/kernels.h"
#include "kernels/pool/float_pool_body.h"
#include "kernels/winograd/winograd_f32_body.h"

void dq_softmax_ends(const double *sums, size_t n, bool logs, float *by)
{
    for (size_t l = 0; l < n; l++)
        by[l] = logs ? -(float)dq_log(sums[l]) : (float)(1 / sums[l]);
}

void dq_softmax_block(float *lanes, bool first, double *total)
{
    for (size_t i = 0; i < (size_t)GROUP * COLUMNS; i++) {
        total[i] = (first ? 0 : total[i]) + (double)lanes[i];
        lanes[i] = 0;
    }
}

void dq_softmax_total(float *lanes, double *total, double *sums)
{
    dq_softmax_block(lanes, false, total);
    for (size_t h = GROUP / 2 * COLUMNS; h >= COLUMNS; h /= 2)
        for (size_t i = 0; i < h; i++)
            total[i] += total[h + i];
    memcpy(sums, total, COLUMNS * sizeof *sums);
}

const dq_rows_f32 dq_rows_f32_c = FLOAT_ROWS;
const dq_pool_f32 dq_pool_f32_c = FLOAT_POOL;
const dq_winograd_f32 dq_winograd_f32_c = FWINOGRAD;

void dq_conv_direct_f32_c(const dq_conv_f32_rows *f)
{
    conv_direct_f32(f);
}

void dq_dwconv_nchwc_f32_c(const dq_dwconv_nchwc_f32 *f)
{
    dwconv_nchwc_f32(f);
}

void dq_copy_strided_f32_c(const float *x, size_t x_row, size_t step, size_t rows, size_t n, float *y,
                           size_t y_row)
{
    copy_strided_f32(x, x_row, step, rows, n, y, y_row);
}
