/* MatMul, as numpy.matmul. */
#include "ops/float_matmul.h"
#include "ops/matmul_shape.h"

typedef struct state {
    dq_fmm mm;
    dq_matmul_shape shape;
} state;

typedef struct operands {
    const state *s;
    const dq_tensor *a, *b;
    dq_tensor *out;
} operands;

static void pack_a(const void *arg, size_t batch, size_t row, size_t count, void *to)
{
    const operands *o = arg;
    const dq_matmul_shape *s = &o->s->shape;
    size_t base = dq_matmul_offset(s, batch, s->a_strides) * s->m * s->k + row * s->k;
    dq_fmm_pack_strided(o->a->data, o->a->dtype, base, s->k, 1, count, DQ_FMM_ROWS, s->k, to);
}

static void pack_b(const void *arg, size_t batch, size_t col, size_t count, void *to)
{
    const operands *o = arg;
    const dq_matmul_shape *s = &o->s->shape;
    size_t base = dq_matmul_offset(s, batch, s->b_strides) * s->k * s->n + col;
    dq_fmm_pack_strided(o->b->data, o->b->dtype, base, 1, s->n, count, DQ_FMM_COLS, s->k, to);
}

static void store(const void *arg, size_t batch, size_t row, size_t col, size_t rows, size_t cols,
                  const void *tile)
{
    const operands *o = arg;
    const dq_matmul_shape *s = &o->s->shape;
    size_t width = dq_dtype_get(o->s->mm.type)->bits / 8u;
    for (size_t i = 0; i < rows; i++)
        dq_fmm_write(o->out->data, o->out->dtype, (batch * s->m + row + i) * s->n + col,
                     (const char *)tile + i * DQ_FMM_COLS * width, cols);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_matmul_shape shape;
    DQ_TRY(dq_matmul_shape_infer(call, 0, 1, &shape, err));
    return dq_call_output(call, 0, call->in[0]->dtype, shape.rank, shape.dims, err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(dq_matmul_shape_infer(call, 0, 1, &s->shape, err));
    s->mm = (dq_fmm){dq_fmm_type(call->in[0]->dtype),
                     s->shape.batches,
                     s->shape.m,
                     s->shape.n,
                     s->shape.k,
                     pack_a,
                     pack_b,
                     store};
    return dq_fmm_prepare(call, &s->mm, err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    operands o = {s, call->in[0], call->in[1], call->out[0]};
    if (o.out && o.out->count)
        dq_fmm_run(call, &s->mm, &o);
    return DQ_OK;
}

const dq_op_impl dq_op_matmul = {infer, prepare, run, 0};
