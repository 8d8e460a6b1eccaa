/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level. Implements dq_gemm_s16_fn for vectors of four, one group of
 * DQ_GEMM_S16_NR columns at a time. The file of the ISA level defines before the include
 *   vec_<isa>.h           the vector operations
 *   ISA(name)             the name of a kernel of this level */
#include "kernels/kernels.h"

#include <string.h>

void ISA(dq_gemm_s16)(const int16_t *a, size_t pairs, const int16_t *const b[DQ_GEMM_S16_BLOCKS],
                      const uint32_t *offsets, size_t blocks, int32_t *c)
{
    enum { ROWS = DQ_GEMM_S16_ROWS, VECTORS = DQ_GEMM_S16_NR / VF_LANES };
    for (size_t o = 0; o < blocks; o++) {
        const int16_t *x = a;
        vi sum[ROWS][VECTORS];
        for (int i = 0; i < ROWS; i++)
            for (int v = 0; v < VECTORS; v++)
                sum[i][v] = vi_set(0);
        for (size_t p = 0; p < pairs; p++) {
            const int16_t *z = b[o] + offsets[p];
            vi w[VECTORS];
            for (int v = 0; v < VECTORS; v++)
                w[v] = vi_load(z + 2 * VF_LANES * v);
            for (int i = 0; i < ROWS; i++, x += 2) {
                int32_t both;
                memcpy(&both, x, sizeof both);
                for (int v = 0; v < VECTORS; v++)
                    sum[i][v] = vi_add(sum[i][v], vi_dot_16(vi_set(both), w[v]));
            }
        }
        for (int i = 0; i < ROWS; i++)
            for (int v = 0; v < VECTORS; v++)
                vi_store(c + i * DQ_GEMM_S16_COLS + (int)o * DQ_GEMM_S16_NR + v * VF_LANES, sum[i][v]);
    }
}
