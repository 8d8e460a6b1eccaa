/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matmul/qmatmul16_bytesplit.h"

#include "base/checked.h"
#include "ops/matmul/qgemm16_pack.h"

#include <string.h>

enum { MIDDLE = 32768 };

dq_status dq_qmatmul16_bytesplit_prepare(dq_op_call *call, size_t rows, size_t k, size_t n, bool transposed,
                                         dq_qmatmul16_bytesplit *b, dq_error *err)
{
    size_t bytes, *used = &call->scratch_size;
    b->rows = rows;
    if (!dq_mul_size(rows, 2 * k, &bytes) || !dq_add_size(bytes, DQ_GEMM_S8_SLACK, &bytes) ||
        !dq_reserve_size(used, bytes, 1, DQ_ALIGN, &b->qvalues_at) ||
        !dq_reserve_size(used, n, 4 * sizeof(double), DQ_ALIGN, &b->terms_at))
        return dq_no_memory(err, SIZE_MAX, "rows of bytes");
    const dq_qproduct_weights w = {
        .input = DQ_Q16_W, .transposed = transposed, .matrices = 1, .k = k, .n = n, .row_multiple = 2};
    return dq_qproduct_prepare(call, &w, 2 * rows, &b->p, err);
}

/* ---- A run --------------------------------------------------------------------------------------------- */

typedef struct job {
    const dq_op_call *call;
    const dq_qmatmul16_bytesplit *b;
    uint8_t *qvalues;
    dq_q16_terms terms; /* of each column */
    double *middle;     /* … and the compensation of the midpoint of x */
    double factor;
} job;

/* Splits x ^ sign_xor into low and high bytes, each ^ sign. */
static void split(const uint16_t *restrict x, uint16_t sign_xor, uint8_t sign, size_t n,
                  uint8_t *restrict low, uint8_t *restrict high)
{
    for (size_t i = 0; i < n; i++) {
        const uint16_t qvalue = x[i] ^ sign_xor;
        low[i] = (uint8_t)qvalue ^ sign;
        high[i] = (uint8_t)(qvalue >> 8) ^ sign;
    }
}

static void split_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const dq_tensor *x = j->call->in[DQ_Q16_X];
    const size_t k = j->b->p.w.b.run;
    const uint16_t sign_xor = x->dtype == DQ_INT16 ? MIDDLE : 0;
    const uint8_t sign = dq_gemm_s8_sign_xor(DQ_UINT8, j->b->p.w.kernel->a_signed);
    for (size_t i = begin; i < end; i++) {
        uint8_t *low = j->qvalues + 2 * i * k;
        split((const uint16_t *)x->data + i * k, sign_xor, sign, k, low, low + k);
    }
}

static void find_terms(job *j)
{
    const dq_op_call *call = j->call;
    const int32_t *sums = dq_qproduct_sums(&j->b->p);
    const int64_t x_zero = dq_qgemm16_zero(call->in[DQ_Q16_X_ZERO], 0);
    for (size_t i = 0; i < j->b->p.w.b.cols; i++) {
        j->middle[i] = -(double)MIDDLE * sums[i];
        dq_q16_term(call, j->factor, i, (double)(-x_zero * sums[i]), i, &j->terms);
    }
}

static void store(void *arg, size_t row, size_t rows, size_t col, size_t cols, const int32_t *c,
                  size_t c_stride)
{
    const job *j = arg;
    const size_t n = j->b->p.w.b.cols;
    dq_q16_sums s = dq_qgemm16_sums(j->call);
    s.rows = rows / 2;
    s.cols = cols;
    s.stride = 2 * c_stride;
    s.out_stride = n;
    s.sums = c;
    s.high = c + c_stride;
    s.extra = j->middle + col;
    s.col_step = 1;
    dq_q16_sums_by(j->call, j->factor, &j->terms, col, col, &s);
    dq_qgemm16_put(j->call, &s, row / 2 * n + col);
}

void dq_qmatmul16_bytesplit_run(const dq_op_call *call, const dq_qmatmul16_bytesplit *b)
{
    const size_t n = b->p.w.b.cols, k = b->p.w.b.run;
    char *scratch = call->scratch;
    double *terms = (double *)(void *)(scratch + b->terms_at);
    job j = {.call = call,
             .b = b,
             .qvalues = (uint8_t *)scratch + b->qvalues_at,
             .terms = dq_q16_terms_in(terms, n),
             .middle = terms + 3 * n,
             .factor = dq_q16_factor(call)};
    find_terms(&j);
    dq_parallel(call->threads, b->rows, dq_gemm_s8_grain(16 * k), split_rows, &j);
    const dq_qproduct_rows rows = {.packed = b->p.packed,
                                   .rows = 2 * b->rows,
                                   .qvalues = j.qvalues,
                                   .b_zero = call->in[DQ_Q16_W_ZERO]->data,
                                   .store = store,
                                   .arg = &j};
    dq_qproduct_run(call, &b->p, &rows);
}
