/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul, with the semantics of numpy.matmul; dqrun's MatMul, with a bias for each column and bounds; and
 * com.microsoft's FusedMatMul, with a factor and permuted axes of the operands, which are read with strides
 * instead of a copy. */
#include "ops/half_floats.h"
#include "ops/matmul/matmul_f32.h"
#include "ops/matmul/matmul_generic.h"
#include "ops/matmul/matmul_shape.h"

#include <string.h>

enum { B = 1, BIAS /* dqrun MatMul, of floats */ };

/* Strides of an operand as a batch of [rows, columns] matrices, in elements. */
typedef struct view {
    size_t row, col, matrix;
} view;

typedef struct state {
    dq_matmul_f32 floats; /* float, float16 and bfloat16 */
    dq_half_floats halves;
    dq_matmul_generic mm; /* other types */
    dq_matmul_shape shape;
    view a, b;
    float alpha;
    size_t sharing;     /* so many consecutive matrices of A multiply one matrix of B, as a single matrix */
    bool gathered;      /* B is a broadcast view that must be expanded first … */
    size_t gathered_at; /* … at this byte offset of scratch */
} state;

typedef struct operands {
    const state *s;
    const dq_tensor *a, *b;
    dq_tensor *out;
} operands;

static void pack_a(const void *arg, size_t batch, size_t row, size_t count, void *to)
{
    const operands *o = arg;
    const view *v = &o->s->a;
    size_t base = dq_matmul_offset(&o->s->shape, batch, o->s->shape.a_strides) * v->matrix + row * v->row;
    const dq_matmul_generic_strip rows = {.data = o->a->data,
                                          .dtype = o->a->dtype,
                                          .strip_stride = v->row,
                                          .step_stride = v->col,
                                          .strip_width = DQ_STRIP_ROWS,
                                          .k = o->s->shape.k};
    dq_matmul_generic_pack_strided(&rows, base, count, to);
}

static void pack_b(const void *arg, size_t batch, size_t col, size_t count, void *to)
{
    const operands *o = arg;
    const view *v = &o->s->b;
    size_t base = dq_matmul_offset(&o->s->shape, batch, o->s->shape.b_strides) * v->matrix + col * v->col;
    const dq_matmul_generic_strip columns = {.data = o->b->data,
                                             .dtype = o->b->dtype,
                                             .strip_stride = v->col,
                                             .step_stride = v->row,
                                             .strip_width = DQ_STRIP_COLS,
                                             .k = o->s->shape.k};
    dq_matmul_generic_pack_strided(&columns, base, count, to);
}

static const void *scale(const state *s, const void *sums, size_t n, double *workspace)
{
    float *f = (float *)workspace;
    if (s->alpha == 1)
        return sums;
    for (size_t i = 0; i < n; i++)
        if (s->mm.type == DQ_FLOAT)
            f[i] = s->alpha * ((const float *)sums)[i];
        else
            workspace[i] = (double)s->alpha * ((const double *)sums)[i];
    return workspace;
}

static void store(const void *arg, size_t batch, size_t row, size_t col, size_t rows, size_t cols,
                  const void *tile)
{
    const operands *o = arg;
    const dq_matmul_shape *s = &o->s->shape;
    size_t width = dq_dtype_get(o->s->mm.type)->bits / 8u;
    double workspace[DQ_STRIP_COLS];
    for (size_t i = 0; i < rows; i++)
        dq_matmul_generic_write(o->out->data, o->out->dtype, (batch * s->m + row + i) * s->n + col,
                                scale(o->s, (const char *)tile + i * DQ_STRIP_COLS * width, cols, workspace),
                                cols);
}

/* Permutes the axes of an operand as the attributes say: dims to *as, strides to *v. Vectors stay as is. */
static void look(const dq_tensor *t, bool first_last, bool swap, dq_tensor *as, view *v)
{
    *as = *t;
    *v = (view){1, 1, t->count};
    if (t->rank < 2)
        return;
    size_t last = t->rank - 1, rest = dq_dims_product(t->dims, 1, last);
    int64_t columns = t->dims[last];
    v->row = (size_t)columns;
    v->matrix = (size_t)t->dims[last - 1] * (size_t)columns;
    if (first_last && t->rank > 2) { /* [rows, batch…, columns] */
        memmove(as->dims, as->dims + 1, (last - 1) * sizeof *as->dims);
        as->dims[last - 1] = t->dims[0];
        v->row = rest * (size_t)columns;
        v->matrix = (size_t)columns;
    }
    if (swap) {
        as->dims[last] = as->dims[last - 1];
        as->dims[last - 1] = columns;
        v->col = v->row;
        v->row = 1;
    }
}

static dq_status shape_of(const dq_op_call *call, view *a, view *b, dq_matmul_shape *shape, dq_error *err)
{
    const dq_node *node = call->node;
    dq_tensor as_a, as_b;
    look(call->in[0], dq_node_int(node, "transBatchA", 0) != 0, dq_node_int(node, "transA", 0) != 0, &as_a,
         a);
    look(call->in[1], dq_node_int(node, "transBatchB", 0) != 0, dq_node_int(node, "transB", 0) != 0, &as_b,
         b);
    return dq_matmul_shape_of(call, 0, 1, &as_a, &as_b, shape, err);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_matmul_shape shape;
    view a, b;
    DQ_TRY(shape_of(call, &a, &b, &shape, err));
    const dq_tensor *bias = dq_call_in(call, BIAS);
    if (bias && bias->count != shape.n)
        return dq_call_fail_input(call, err, BIAS, "has %zu elements, expected %zu (columns)", bias->count,
                                  shape.n);
    return dq_call_output(call, 0, call->in[0]->dtype, shape.rank, shape.dims, err);
}

/* Prepares a B that is a broadcast view: matrices repeat, because attention heads share keys. */
static dq_status prepare_broadcast(dq_op_call *call, state *s, dq_error *err)
{
    dq_matmul_shape *shape = &s->shape;
    const dq_tensor *b = call->in[1];
    const size_t matrix = shape->k * shape->n;
    const bool rows = s->a.row == shape->k && s->a.col == 1 && s->a.matrix == shape->m * shape->k;
    s->gathered = b->repeats && (matrix == 0 || b->block % matrix != 0);
    if (s->gathered && !dq_call_reserve(call, b->count, 1, sizeof(float), &s->gathered_at))
        return dq_no_memory(err, SIZE_MAX, "an operand");
    s->sharing = b->repeats && b->block == matrix && rows && shape->a_batches == shape->batches &&
                         shape->b_batches == shape->batches
                     ? b->repeats
                     : 1;
    shape->m *= s->sharing;
    shape->batches /= s->sharing;
    return DQ_OK;
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(shape_of(call, &s->a, &s->b, &s->shape, err));
    DQ_TRY(prepare_broadcast(call, s, err));
    s->alpha = dq_node_float(call->node, "alpha", 1);
    if (dq_half_floats_take(call->in[0]->dtype)) {
        s->floats = (dq_matmul_f32){.batches = s->shape.batches,
                                    .m = s->shape.m,
                                    .n = s->shape.n,
                                    .k = s->shape.k,
                                    .a_row = s->a.row,
                                    .a_step = s->a.col,
                                    .b_col = s->b.col,
                                    .b_step = s->b.row,
                                    .alpha = s->alpha};
        DQ_TRY(dq_call_bounds(call, &s->floats.bounds, err));
        DQ_TRY(dq_matmul_f32_prepare(call, B, &s->floats, err));
        return dq_half_floats_prepare(call, s->floats.panels ? 1 << B : 0, &s->halves, err);
    }
    s->mm = (dq_matmul_generic){.type = dq_matmul_generic_type(call->in[0]->dtype),
                                .batches = s->shape.batches,
                                .m = s->shape.m,
                                .n = s->shape.n,
                                .k = s->shape.k,
                                .pack_a = pack_a,
                                .pack_b = pack_b,
                                .store = store};
    return dq_matmul_generic_prepare(call, &s->mm, err);
}

static void offsets(const void *arg, size_t batch, size_t *a, size_t *b)
{
    const operands *o = arg;
    const state *s = o->s;
    *a = dq_matmul_offset(&s->shape, batch * s->sharing, s->shape.a_strides) * s->a.matrix;
    *b = dq_matmul_offset(&s->shape, batch * s->sharing, s->shape.b_strides) * s->b.matrix;
    if (o->b->repeats && !s->gathered)
        *b = dq_tensor_stored_index(o->b, *b);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    operands o = {s, call->in[0], call->in[1], call->out[0]};
    if (!o.out || o.out->count == 0)
        return DQ_OK;
    dq_matmul_f32_operands floats = {.offsets = offsets, .arg = &o};
    if (dq_half_floats_take(o.a->dtype)) {
        floats.a = dq_half_floats_in(call, &s->halves, 0);
        floats.b = dq_half_floats_in(call, &s->halves, 1);
        if (s->gathered) {
            float *workspace = (float *)(void *)((char *)call->scratch + s->gathered_at);
            dq_tensor_expand(o.b, floats.b, sizeof *workspace, workspace);
            floats.b = workspace;
        }
        floats.c = dq_half_floats_out(call, &s->halves);
        floats.z = dq_half_floats_in(call, &s->halves, BIAS);
        dq_matmul_f32_run(call, &s->floats, &floats);
        dq_half_floats_done(call, &s->halves);
    } else {
        dq_matmul_generic_run(call, &s->mm, &o);
    }
    return DQ_OK;
}

const dq_op_impl dq_op_matmul = {infer, prepare, run, DQ_OP_PACKS | DQ_OP_BROADCAST_VIEW};
