/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit GEMM with AVX-VNNI (256-bit vectors). The register tile is six rows by two vectors and fills the
 * sixteen registers. */
#include "kernels/kernels.h"

#include <immintrin.h>

typedef __m256i vec;
enum { LANES = 8, VECTORS = 2, MR = 6 };

#define v_load(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define v_store(p, x) _mm256_storeu_si256((__m256i *)(void *)(p), x)
#define v_set(x) _mm256_set1_epi32(x)
#define v_add(a, b) _mm256_add_epi32(a, b)
#define v_dot(sums, a, b) _mm256_dpbusd_avx_epi32(sums, a, b)

#include "kernels/gemm_s8/gemm_s8_vnni.h"

const dq_gemm_s8 dq_gemm_s8_avxvnni = DQ_GEMM_S8_VNNI;
