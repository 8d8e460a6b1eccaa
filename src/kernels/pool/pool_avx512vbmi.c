/* SPDX-License-Identifier: Apache-2.0 */
/* vpermi2b gathers the bytes of each kernel column from two vectors, for any stride. */
#define ISA(name) name##_avx512vbmi
#define MAX_STRIDE 4

#include "kernels/pool/pool_avx512_body.h"

/* Positions of the first elements. */
static inline __m512i starts(const dq_max_windows *w)
{
    uint8_t start[LANES];
    for (size_t c = 0; c < LANES; c++)
        start[c] = (uint8_t)(c * w->stride);
    return _mm512_loadu_si512(start);
}

static inline __m512i columns(const dq_max_windows *w, __m512i start, __m512i low, __m512i high,
                              bool is_signed)
{
    const __m512i step = _mm512_set1_epi8((char)w->dilation);
    __m512i at = start, most = _mm512_permutex2var_epi8(low, at, high);
    for (size_t k = 1; k < w->kernel; k++) {
        at = _mm512_add_epi8(at, step);
        most = larger(most, _mm512_permutex2var_epi8(low, at, high), is_signed);
    }
    return most;
}
