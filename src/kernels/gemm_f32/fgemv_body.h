/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level. Implements dq_gemv_f32_fn by blocks of one row: strips of A's
 * rows, transposed, are the panels. The file of the ISA level defines before the include
 *   ISA(name)             the name of a kernel of this level */
#include "kernels/kernels.h"

void ISA(dq_gemv_f32)(const float *a, size_t a_row, size_t rows, size_t k, const float *x, float *y)
{
    enum { STRIP = DQ_GEMM_F32_NR, MAX_STEPS = 64 /* steps at a time */ };
    float transposed[STRIP * MAX_STEPS] = {0};
    for (size_t i = 0; i < rows; i += STRIP) {
        size_t n = rows - i < STRIP ? rows - i : STRIP, p = 0;
        do {
            size_t steps = k - p < MAX_STEPS ? k - p : MAX_STEPS;
            if (steps)
                ISA(dq_transpose_x32)
            ((const uint32_t *)(const void *)(a + i * a_row + p), a_row, n, steps,
             (uint32_t *)(void *)transposed, STRIP);
            const dq_gemm_block_f32 block = {.rows = 1,
                                             .cols = n,
                                             .k = steps,
                                             .a = steps ? x + p : x,
                                             .b = transposed,
                                             .a_row = steps,
                                             .b_step = STRIP,
                                             .b_panel = sizeof transposed / sizeof *transposed,
                                             .c = y + i,
                                             .c_row = n,
                                             .more = p > 0};
            ISA(dq_gemm_block_f32)(&block);
            p += steps;
        } while (p < k);
    }
}
