/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd/vec_avx512.h"

#include <math.h>

#include "kernels/dwconv/fconv_body.h"
#include "kernels/elementwise/float_rows_body.h"
#include "kernels/kernels.h"
#include "kernels/pool/float_pool_body.h"
#include "kernels/winograd/winograd_f32_body.h"

const dq_rows_f32 dq_rows_f32_avx512 = FLOAT_ROWS;
const dq_pool_f32 dq_pool_f32_avx512 = FLOAT_POOL;
const dq_winograd_f32 dq_winograd_f32_avx512 = FWINOGRAD;

void dq_conv_direct_f32_avx512(const dq_conv_f32_rows *f)
{
    if (f->n <= VF_LANES / 2)
        dq_conv_direct_f32_avx2(f);
    else
        conv_direct_f32(f);
}

void dq_dwconv_nchwc_f32_avx512(const dq_dwconv_nchwc_f32 *f)
{
    dwconv_nchwc_f32(f);
}

void dq_copy_strided_f32_avx512(const float *x, size_t x_row, size_t step, size_t rows, size_t n, float *y,
                                size_t y_row)
{
    if (n == 0 || n >= VF_LANES || step > 2) {
        copy_strided_f32(x, x_row, step, rows, n, y, y_row);
        return;
    }
    for (; rows; rows--, x += x_row, y += y_row)
        vf_store_some(y, n, step == 1 ? vf_load_some(x, n) : vf_load_even_some(x, n));
}
