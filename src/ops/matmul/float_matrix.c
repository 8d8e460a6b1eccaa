/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matmul/float_matrix.h"

#include "ops/half_floats.h"

#include <math.h>

enum {
    WORK = 1 << 17, /* products of a piece of parallel work, at least about */
    FEW = 4,        /* columns of products whose operands change places, */
    MANY = 64,      /* and at least so many rows, */
    FLAT = 16       /* whose steps, if they are no more, are laid out in one go */
};

typedef struct job {
    const dq_op_call *call;
    const dq_fmatrix *f;
    const dq_fmatrix_operands *o;
} job;

/* The first operand or the second, as dq_fmatrix has them. */
static const float *matrix(const job *j, size_t batch, bool second)
{
    size_t a = 0, b = 0;
    if (j->o->offsets)
        j->o->offsets(j->o->arg, batch, &a, &b);
    return second != j->f->turned ? j->o->b + b : j->o->a + a;
}

static void part_a(const void *arg, const dq_fpart *part, float *room, dq_fblock *block)
{
    const job *j = arg;
    const dq_fmatrix *f = j->f;
    const float *from = matrix(j, part->batch, false) + part->row * f->a_row + part->p * f->a_step;
    block->a = from;
    block->a_row = f->a_row;
    if (!f->product.a_room)
        return;
    j->call->kernels->transpose_x32((const uint32_t *)(const void *)from, f->a_step, part->k, part->rows,
                                    (uint32_t *)(void *)room, part->k);
    block->a = room;
    block->a_row = part->k;
}

static void part_b(const void *arg, const dq_fpart *part, float *room, dq_fblock *block)
{
    const job *j = arg;
    const dq_fmatrix *f = j->f;
    if (f->panels) {
        block->b = f->panels + part->col * f->k + part->p * DQ_FPANEL;
        block->b_step = DQ_FPANEL;
        block->b_panel = DQ_FPANEL * f->k;
    } else if (f->product.flat) {
        block->b = matrix(j, part->batch, true) + part->p * f->b_step + part->col;
        block->b_step = f->b_step;
        block->b_panel = DQ_FPANEL;
    } else if (f->turned && f->b_step == 1 && part->k <= FLAT) { /* all columns in one go */
        const size_t step = (part->cols + DQ_FPANEL - 1) / DQ_FPANEL * DQ_FPANEL;
        const float *from = matrix(j, part->batch, true) + part->col * f->b_col + part->p;
        j->call->kernels->transpose_x32((const uint32_t *)(const void *)from, f->b_col, part->cols, part->k,
                                        (uint32_t *)(void *)room, step);
        block->b = room;
        block->b_step = step;
        block->b_panel = DQ_FPANEL;
    } else {
        dq_fpanels(j->call->kernels->transpose_x32, matrix(j, part->batch, true), f->b_col, f->b_step, part,
                   room, block);
    }
}

static void part_c(const void *arg, const dq_fpart *part, float *room, dq_fblock *block)
{
    const job *j = arg;
    const dq_fmatrix *f = j->f;
    const float *z = j->o->z;
    const bool apart = f->turned && f->m > 1;
    block->c = apart ? room : j->o->c + (part->batch * f->m + part->row) * f->n + part->col;
    block->c_row = apart ? f->product.col_block : f->n;
    block->alpha = f->alpha;
    block->low = f->bounds.low;
    block->high = f->bounds.high;
    block->z_row = j->o->z_row;
    if (z && f->turned && j->o->z_row == 0)
        block->bias = z + part->row;
    else
        block->z = z ? z + part->row * j->o->z_row + part->col : NULL;
}

/* Results of a product whose operands have changed places. */
static void turn_back(const void *arg, const dq_fpart *part, const dq_fblock *block)
{
    const job *j = arg;
    const dq_fmatrix *f = j->f;
    float *to = j->o->c + (part->batch * f->n + part->col) * f->m + part->row;
    j->call->kernels->transpose_x32((const uint32_t *)(const void *)block->c, block->c_row, part->rows,
                                    part->cols, (uint32_t *)(void *)to, f->m);
}

/* A · B of few columns as the transpose of B' · A': its sums are the same, and panels are not mostly empty.
 */
static void turn(dq_fmatrix *f)
{
    const bool along = f->b_step == 1 || f->b_col == 1, column = f->a_step == 1 && f->b_step == 1;
    const dq_fmatrix as = *f;
    f->turned = f->m > 1 && (f->n == 1 ? column : f->n <= FEW && f->m >= MANY && along && !f->z_apart);
    if (!f->turned)
        return;
    f->m = as.n;
    f->n = as.m;
    f->a_row = as.b_col;
    f->a_step = as.b_step;
    f->b_col = as.a_row;
    f->b_step = as.a_step;
}

dq_status dq_fmatrix_prepare(dq_op_call *call, uint32_t b, dq_fmatrix *f, dq_error *err)
{
    const dq_tensor *t = call->in[b];
    turn(f);
    const bool panels = !f->turned && dq_half_floats_take(t->dtype) && dq_call_constant(call, b) &&
                        t->count && t->count == f->n * f->k;
    f->by_columns = f->m == 1 && f->a_step == 1 && f->b_step == 1 && (f->b_col != 1 || f->turned) && !panels;
    if (f->by_columns)
        return DQ_OK;
    f->product = (dq_fproduct){.batches = f->batches,
                               .m = f->m,
                               .n = f->n,
                               .k = f->k,
                               .grain = 1,
                               .a_room = f->a_step != 1,
                               .flat = f->m == 1 && f->b_col == 1 && !panels,
                               .a = part_a,
                               .b = part_b,
                               .c = part_c,
                               .c_room = f->turned,
                               .done = f->turned ? turn_back : NULL};
    const dq_fpanels_of of = {
        .batches = 1, .n = f->n, .k = f->k, .col_stride = f->b_col, .step_stride = f->b_step};
    f->product.laid_out = panels;
    if (f->product.laid_out)
        DQ_TRY(dq_fpanels_constant(call, b, &of, &f->panels, err));
    return dq_fproduct_prepare(call, &f->product, err);
}

/* Columns of B, each a row of its transpose. Those of all batches are counted through. */
static void columns(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const dq_fmatrix *f = j->f;
    for (size_t i = begin, count; i < end; i += count) {
        size_t batch = i / f->n, col = i % f->n;
        count = dq_least(f->n - col, end - i);
        dq_fpart part = {.batch = batch, .rows = 1, .col = col, .cols = count};
        dq_fblock rest = {.rows = 1, .cols = count, .more = true, .last = true};
        part_c(j, &part, NULL, &rest);
        j->call->kernels->fgemv(matrix(j, batch, true) + col * f->b_col, f->b_col, count, f->k,
                                matrix(j, batch, false), rest.c);
        rest.b_panel = DQ_FPANEL;
        if (rest.alpha != 1 || rest.z || rest.bias || rest.low > -INFINITY || rest.high < INFINITY)
            j->call->kernels->fblock(&rest);
    }
}

void dq_fmatrix_run(const dq_op_call *call, const dq_fmatrix *f, const dq_fmatrix_operands *o)
{
    job j = {call, f, o};
    if (f->by_columns)
        dq_parallel(call->threads, f->batches * f->n, (WORK / (f->k + 1) / DQ_FPANEL + 1) * DQ_FPANEL,
                    columns, &j);
    else
        dq_fproduct_run(call, &f->product, &j);
}
