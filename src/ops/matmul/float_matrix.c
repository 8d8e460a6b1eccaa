#include "ops/matmul/float_matrix.h"

#include "ops/half_floats.h"

#include <math.h>

enum { WORK = 1 << 17 /* products of a piece of parallel work, at least about */ };

typedef struct job {
    const dq_op_call *call;
    const dq_fmatrix *f;
    const dq_fmatrix_operands *o;
} job;

static const float *matrix_a(const job *j, size_t batch)
{
    size_t a = 0, b = 0;
    if (j->o->offsets)
        j->o->offsets(j->o->arg, batch, &a, &b);
    return j->o->a + a;
}

static const float *matrix_b(const job *j, size_t batch)
{
    size_t a = 0, b = 0;
    if (j->o->offsets)
        j->o->offsets(j->o->arg, batch, &a, &b);
    return j->o->b + b;
}

static void part_a(const void *arg, const dq_fpart *part, float *room, dq_fblock *block)
{
    const job *j = arg;
    const dq_fmatrix *f = j->f;
    const float *from = matrix_a(j, part->batch) + part->row * f->a_row + part->p * f->a_step;
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
        block->b = matrix_b(j, part->batch) + part->p * f->b_step + part->col;
        block->b_step = f->b_step;
        block->b_panel = DQ_FPANEL;
    } else {
        dq_fpanels(j->call->kernels->transpose_x32, matrix_b(j, part->batch), f->b_col, f->b_step, part, room,
                   block);
    }
}

static void part_c(const void *arg, const dq_fpart *part, float *room, dq_fblock *block)
{
    (void)room;
    const job *j = arg;
    const dq_fmatrix *f = j->f;
    block->c = j->o->c + (part->batch * f->m + part->row) * f->n + part->col;
    block->c_row = f->n;
    block->alpha = f->alpha;
    block->low = f->bounds.low;
    block->high = f->bounds.high;
    block->z = j->o->z ? j->o->z + part->row * j->o->z_row + part->col : NULL;
    block->z_row = j->o->z_row;
}

dq_status dq_fmatrix_prepare(dq_op_call *call, uint32_t b, dq_fmatrix *f, dq_error *err)
{
    const dq_tensor *t = call->in[b];
    const bool panels =
        dq_half_floats_take(t->dtype) && dq_call_constant(call, b) && t->count && t->count == f->n * f->k;
    const bool along = f->a_step == 1 && f->b_step == 1;
    f->by_rows = along && f->n == 1 && f->m > 1;
    f->by_columns = along && f->m == 1 && f->b_col != 1 && !panels;
    if (f->by_rows || f->by_columns)
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
                               .c = part_c};
    const dq_fpanels_of of = {
        .batches = 1, .n = f->n, .k = f->k, .col_stride = f->b_col, .step_stride = f->b_step};
    f->product.laid_out = panels;
    if (f->product.laid_out)
        DQ_TRY(dq_fpanels_constant(call, b, &of, &f->panels, err));
    return dq_fproduct_prepare(call, &f->product, err);
}

/* Columns of B, each a row of its transpose, times the only row of A; or rows of A times the only column of
 * B. Those of all batches are counted through. */
static void vectors(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const dq_fmatrix *f = j->f;
    const size_t n = f->m * f->n;
    for (size_t i = begin, count; i < end; i += count) {
        const size_t batch = i / n, at = i % n;
        const float *a = matrix_a(j, batch), *b = matrix_b(j, batch);
        count = dq_least(n - at, end - i);
        /* results are one row in memory either way */
        dq_fpart part = {.batch = batch, .row = f->by_rows ? at : 0, .col = f->by_rows ? 0 : at};
        dq_fblock rest = {.rows = 1, .cols = count, .more = true, .last = true};
        part_c(j, &part, NULL, &rest);
        if (f->by_rows && rest.z && rest.z_row == 0) {
            rest.bias = rest.z;
            rest.z = NULL;
        }
        const float *lines = f->by_rows ? a : b, *x = f->by_rows ? b : a;
        const size_t apart = f->by_rows ? f->a_row : f->b_col;
        j->call->kernels->fgemv(lines + at * apart, apart, count, f->k, x, rest.c);
        rest.b_panel = DQ_FPANEL;
        if (rest.alpha != 1 || rest.z || rest.bias || rest.low > -INFINITY || rest.high < INFINITY)
            j->call->kernels->fblock(&rest);
    }
}

void dq_fmatrix_run(const dq_op_call *call, const dq_fmatrix *f, const dq_fmatrix_operands *o)
{
    job j = {call, f, o};
    if (f->by_rows || f->by_columns)
        dq_parallel(call->threads, f->batches * f->m * f->n, (WORK / (f->k + 1) / DQ_FPANEL + 1) * DQ_FPANEL,
                    vectors, &j);
    else
        dq_fproduct_run(call, &f->product, &j);
}
