/* SPDX-License-Identifier: Apache-2.0 */
/* MatMulInteger: matrix product of 8-bit integers into int32 sums, which wrap modulo 2^32, as the standard
 * allows. */
#include "ops/matmul/int_matmul.h"

#include <string.h>

enum { A, B, A_ZERO, B_ZERO };

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_int_matmul mm;
    DQ_TRY(dq_int_matmul_infer(call, A, B, A_ZERO, B_ZERO, &mm, err));
    return dq_call_output(call, 0, DQ_INT32, mm.s.rank, mm.s.dims, err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    dq_int_matmul *mm;
    DQ_TRY(dq_call_state(call, sizeof *mm, err));
    mm = call->state;
    DQ_TRY(dq_int_matmul_infer(call, A, B, A_ZERO, B_ZERO, mm, err));
    return dq_int_matmul_prepare(call, true, mm, err);
}

static void store(const dq_int_sums *sums)
{
    const dq_int_matmul *mm = sums->mm;
    size_t n = mm->w.b.cols;
    int32_t *y = dq_data(sums->call->out[0], int32_t) + (sums->batch * mm->m + sums->row) * n + sums->col;
    for (size_t i = 0; i < sums->rows; i++)
        memcpy(y + i * n, sums->c + i * sums->c_stride, sums->cols * sizeof *y);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    dq_int_matmul_run_s32(call, call->state, call->out[0] ? dq_data(call->out[0], int32_t) : NULL, store);
    return DQ_OK;
}

const dq_op_impl dq_op_matmul_integer = {infer, prepare, run, 0};
