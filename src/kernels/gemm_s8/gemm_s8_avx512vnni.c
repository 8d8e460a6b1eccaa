/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit GEMM with AVX-512 VNNI. The register tile is eight rows by two vectors: sixteen accumulators hide the
 * instruction's latency, and eight row pointers stay in registers. */
#include "kernels/kernels.h"

#include <immintrin.h>

typedef __m512i vec;
enum { LANES = 16, VECTORS = 2, MR = 8 };

#define v_load(p) _mm512_loadu_si512(p)
#define v_store(p, x) _mm512_storeu_si512(p, x)
#define v_set(x) _mm512_set1_epi32(x)
#define v_add(a, b) _mm512_add_epi32(a, b)
#define v_dot(sums, a, b) _mm512_dpbusd_epi32(sums, a, b)

#include "kernels/gemm_s8/gemm_s8_vnni.h"

const dq_gemm_s8 dq_gemm_s8_avx512vnni = DQ_GEMM_S8_VNNI;
