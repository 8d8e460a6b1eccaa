/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd/vec_sse41.h"

#include <math.h>

#include "kernels/dwconv/fconv_body.h"
#include "kernels/elementwise/float_rows_body.h"
#include "kernels/kernels.h"
#include "kernels/pool/float_pool_body.h"
#include "kernels/winograd/winograd_f32_body.h"

const dq_rows_f32 dq_rows_f32_sse41 = FLOAT_ROWS;
const dq_pool_f32 dq_pool_f32_sse41 = FLOAT_POOL;
const dq_winograd_f32 dq_winograd_f32_sse41 = FWINOGRAD;

void dq_conv_direct_f32_sse41(const dq_conv_f32_rows *f)
{
    conv_direct_f32(f);
}

void dq_dwconv_nchwc_f32_sse41(const dq_dwconv_nchwc_f32 *f)
{
    dwconv_nchwc_f32(f);
}

void dq_copy_strided_f32_sse41(const float *x, size_t x_row, size_t step, size_t rows, size_t n, float *y,
                               size_t y_row)
{
    copy_strided_f32(x, x_row, step, rows, n, y, y_row);
}
