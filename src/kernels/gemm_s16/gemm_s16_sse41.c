/* SPDX-License-Identifier: Apache-2.0 */
/* 16-bit GEMM, GEMV and depthwise convolution with SSE4.1. */
#include "kernels/simd/vec_sse41.h"

#define ISA(name) name##_sse41

#include "kernels/dwconv/dwconv_rows_s16_body.h"
#include "kernels/gemm_s16/gemm_s16_body.h"
#include "kernels/gemm_s16/gemv_s16s8_body.h"
