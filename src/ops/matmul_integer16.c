/* com.microsoft MatMulInteger16: 32-bit sums of 16-bit products, wrapping modulo 2^32. The sums of two uint16
 * operands may be declared uint32, which has the same bits. */
#include "ops/matmul_shape.h"
#include "ops/rows.h"

enum { A, B };

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_matmul_shape s;
    DQ_TRY(dq_matmul_shape_infer(call, A, B, &s, err));
    dq_dtype declared = call->node->out[0] ? call->node->out[0]->type.dtype : DQ_UNDEFINED;
    dq_dtype dtype = declared == DQ_UINT32 ? DQ_UINT32 : DQ_INT32;
    return dq_call_output(call, 0, dtype, s.rank, s.dims, err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(dq_matmul_shape), err));
    return dq_matmul_shape_infer(call, A, B, call->state, err);
}

/* One row of the result: rows of b are walked in their order, so that memory is read as it lies. */
static void run_row(const dq_op_call *call, size_t row)
{
    const dq_matmul_shape *s = call->state;
    size_t batch = row / s->m, i = row % s->m;
    uint32_t *y = dq_data(call->out[0], uint32_t) + row * s->n;
    size_t a_at = (dq_matmul_offset(s, batch, s->a_strides) * s->m + i) * s->k;
    size_t b_at = dq_matmul_offset(s, batch, s->b_strides) * s->k * s->n;
    for (size_t j = 0; j < s->n; j++)
        y[j] = 0;
    for (size_t k = 0; k < s->k; k++) {
        int64_t a, b[DQ_ROW];
        dq_load_ints(call->in[A]->dtype, call->in[A]->data, a_at + k, 1, &a);
        for (size_t j = 0, n; j < s->n; j += n) {
            n = s->n - j < DQ_ROW ? s->n - j : DQ_ROW;
            dq_load_ints(call->in[B]->dtype, call->in[B]->data, b_at + k * s->n + j, n, b);
            for (size_t t = 0; t < n; t++)
                y[j + t] += (uint32_t)(a * b[t]);
        }
    }
}

static void run_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    for (size_t row = begin; row < end; row++)
        run_row(arg, row);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const dq_matmul_shape *s = call->state;
    if (call->out[0] && call->out[0]->count)
        dq_parallel(call->threads, s->batches * s->m, 1, run_rows, (void *)(uintptr_t)call);
    return DQ_OK;
}

const dq_op_impl dq_op_matmul_integer16 = {infer, prepare, run, 0};
