/* SPDX-License-Identifier: Apache-2.0 */
/* AVX-512 without VBMI permutes 16-bit words but not bytes. With a stride of 2 each window starts at a word:
 * even columns are in the low bytes of words, odd columns in the high bytes. The low bytes are packed after
 * the last column. */
#define ISA(name) name##_avx512
#define MAX_STRIDE 2

#include "kernels/pool/pool_avx512_body.h"

/* Numbers of the words. */
static inline __m512i starts(const dq_max_windows *w)
{
    (void)w;
    uint16_t start[LANES / 2];
    for (size_t i = 0; i < LANES / 2; i++)
        start[i] = (uint16_t)i;
    return _mm512_loadu_si512(start);
}

/* A vector of words from word `first` of `low` on. */
static inline __m512i words(__m512i start, __m512i low, __m512i high, size_t first)
{
    const __m512i at = _mm512_add_epi16(start, _mm512_set1_epi16((short)first));
    return first == 0 ? low : _mm512_permutex2var_epi16(low, at, high);
}

static inline __m512i stride_1(const dq_max_windows *w, __m512i start, __m512i low, __m512i high,
                               bool is_signed)
{
    __m512i most = low;
    for (size_t k = 1; k < w->kernel; k++) {
        const size_t at = k * w->dilation;
        __m512i column = words(start, low, high, at / 2);
        if (at % 2) {
            const __m512i next = words(start, low, high, at / 2 + 1);
            column = _mm512_or_si512(_mm512_srli_epi16(column, 8), _mm512_slli_epi16(next, 8));
        }
        most = larger(most, column, is_signed);
    }
    return most;
}

static inline __m512i stride_2(const dq_max_windows *w, __m512i start, __m512i low, __m512i high,
                               bool is_signed)
{
    const __m512i low_bytes = _mm512_set1_epi16(0xff), order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    const __m512i odd_low = _mm512_srli_epi16(low, 8), odd_high = _mm512_srli_epi16(high, 8);
    __m512i first = low, second = high; /* half of the windows each */
    for (size_t k = 1; k < w->kernel; k++) {
        const size_t at = k * w->dilation;
        const __m512i a = at % 2 ? odd_low : low, b = at % 2 ? odd_high : high;
        first = larger(first, words(start, a, b, at / 2), is_signed);
        second = larger(second, words(start, b, b, at / 2), is_signed); /* No window reaches past `high`. */
    }
    first = _mm512_and_si512(first, low_bytes);
    second = _mm512_and_si512(second, low_bytes);
    return _mm512_permutexvar_epi64(order, _mm512_packus_epi16(first, second));
}

static inline __m512i columns(const dq_max_windows *w, __m512i start, __m512i low, __m512i high,
                              bool is_signed)
{
    return w->stride == 1 ? stride_1(w, start, low, high, is_signed)
                          : stride_2(w, start, low, high, is_signed);
}
