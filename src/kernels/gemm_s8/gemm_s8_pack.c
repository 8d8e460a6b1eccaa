/* SPDX-License-Identifier: Apache-2.0 */
/* Packing of B and row sums of A in portable C. */
#include "kernels/gemm_s8/gemm_s8_pack.h"

#include "base/checked.h"

#include <string.h>

size_t dq_gemm_s8_panel_size(size_t runs, size_t run, size_t nr, size_t group)
{
    size_t positions, bytes;
    if (!dq_align_size(run, group, &positions) || !dq_mul_size(runs, positions, &bytes) ||
        !dq_mul_size(bytes, nr, &bytes) || !dq_align_size(bytes, DQ_ALIGN, &bytes))
        return 0;
    return bytes ? bytes : 64;
}

size_t dq_gemm_s8_pack(const dq_gemm_s8_b *b, size_t first, size_t nr, size_t group, void *panel,
                       int32_t *sums)
{
    uint8_t *out = panel;
    size_t cols = b->cols - first < nr ? b->cols - first : nr;
    uint32_t sum[DQ_GEMM_S8_NR_MAX] = {0};
    size_t size = dq_gemm_s8_panel_size(b->runs, b->run, nr, group);
    memset(out, 0, size);
    for (size_t t = 0; t < b->runs; t++) {
        for (size_t p = 0; p < b->run; p++) {
            const uint8_t *from = b->data + first * b->col_stride + t * b->run_stride +
                                  p / b->inner * b->outer_stride + p % b->inner * b->inner_stride;
            uint8_t *to = out + p / group * group * nr + p % group;
            for (size_t j = 0; j < cols; j++) {
                to[j * group] = from[j * b->col_stride] ^ b->sign_xor;
                sum[j] += (uint32_t)(int8_t)to[j * group];
            }
        }
        out += (b->run + group - 1) / group * group * nr;
    }
    memcpy(sums, sum, nr * sizeof *sums);
    return size;
}

void dq_gemm_s8_sums_u8(const dq_gemm_s8_a *a, size_t rows, int32_t *out)
{
    for (size_t i = 0; i < rows; i++) {
        uint32_t sum = 0;
        for (size_t t = 0; t < a->runs; t++) {
            const uint8_t *x = a->rows[i] + a->offsets[t];
            for (size_t p = 0; p < a->run; p++)
                sum += x[p];
        }
        out[i] = (int32_t)sum;
    }
}
