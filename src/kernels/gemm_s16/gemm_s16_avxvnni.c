/* SPDX-License-Identifier: Apache-2.0 */
/* 16-bit GEMM with the vpdpwssd of AVX-VNNI. */
#include <immintrin.h>

#define ISA(name) name##_avxvnni
#define v_dot_16(sums, a, b) _mm256_dpwssd_avx_epi32(sums, a, b)

#include "kernels/gemm_s16/gemm_s16_tile.h"
