/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level. Implements dq_gemv_s16s8_fn. The file of the ISA level defines
 * before the include
 *   vec_<isa>.h           the vector operations
 *   ISA(name)             the name of a kernel of this level */
#include "kernels/kernels.h"

#include <string.h>

void ISA(dq_gemv_s16s8)(const int16_t *x, size_t pairs, const int8_t *const b[DQ_GEMM_S16_BLOCKS], int32_t *c)
{
    enum { EACH = DQ_GEMM_S16_NR / VF_LANES, VECTORS = DQ_GEMM_S16_BLOCKS * EACH };
    vi sum[VECTORS];
    for (int v = 0; v < VECTORS; v++)
        sum[v] = vi_set(0);
    for (size_t p = 0; p < pairs; p++) {
        int32_t both;
        memcpy(&both, x + 2 * p, sizeof both);
        for (int v = 0; v < VECTORS; v++) {
            const int8_t *z = b[v / EACH] + 2 * (p * DQ_GEMM_S16_NR + (size_t)(v % EACH) * VF_LANES);
            sum[v] = vi_add(sum[v], vi_dot_16(vi_set(both), vi_signed_words(z)));
        }
    }
    for (int v = 0; v < VECTORS; v++)
        vi_store(c + v * VF_LANES, sum[v]);
}
