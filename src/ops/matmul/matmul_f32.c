/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matmul/matmul_f32.h"

#include "ops/half_floats.h"

#include <math.h>

enum {
    MACS_PER_TASK = 1 << 17, /* approximate minimum of multiply-adds in a parallel task */
    MAX_SWAPPED_COLS = 4,    /* gemm_swapped: maximum columns … */
    MIN_SWAPPED_ROWS = 64,   /* … and minimum rows; */
    MAX_FLAT_DEPTH = 16      /* up to so many terms, all columns are packed by one transpose */
};

typedef struct job {
    const dq_op_call *call;
    const dq_matmul_f32 *f;
    const dq_matmul_f32_operands *o;
} job;

/* Matrix `batch` of the first or second operand of the product, after they were exchanged. */
static const float *matrix(const job *j, size_t batch, bool second)
{
    size_t a = 0, b = 0;
    if (j->o->offsets)
        j->o->offsets(j->o->arg, batch, &a, &b);
    return second != j->f->swapped ? j->o->b + b : j->o->a + a;
}

static void part_a(const void *arg, const dq_gemm_part *part, float *workspace, dq_gemm_block_f32 *block)
{
    const job *j = arg;
    const dq_matmul_f32 *f = j->f;
    const float *from = matrix(j, part->batch, false) + part->row * f->a_row + part->p * f->a_step;
    block->a = from;
    block->a_row = f->a_row;
    if (!f->product.a_workspace)
        return;
    j->call->kernels->transpose_x32((const uint32_t *)(const void *)from, f->a_step, part->k, part->rows,
                                    (uint32_t *)(void *)workspace, part->k);
    block->a = workspace;
    block->a_row = part->k;
}

static void part_b(const void *arg, const dq_gemm_part *part, float *workspace, dq_gemm_block_f32 *block)
{
    const job *j = arg;
    const dq_matmul_f32 *f = j->f;
    if (f->panels) {
        block->b = f->panels + part->col * f->k + part->p * DQ_GEMM_F32_NR;
        block->b_step = DQ_GEMM_F32_NR;
        block->b_panel = DQ_GEMM_F32_NR * f->k;
    } else if (f->product.flat) {
        block->b = matrix(j, part->batch, true) + part->p * f->b_step + part->col;
        block->b_step = f->b_step;
        block->b_panel = DQ_GEMM_F32_NR;
    } else if (f->swapped && f->b_step == 1 && part->k <= MAX_FLAT_DEPTH) { /* all columns by one transpose */
        const size_t step = (part->cols + DQ_GEMM_F32_NR - 1) / DQ_GEMM_F32_NR * DQ_GEMM_F32_NR;
        const float *from = matrix(j, part->batch, true) + part->col * f->b_col + part->p;
        j->call->kernels->transpose_x32((const uint32_t *)(const void *)from, f->b_col, part->cols, part->k,
                                        (uint32_t *)(void *)workspace, step);
        block->b = workspace;
        block->b_step = step;
        block->b_panel = DQ_GEMM_F32_NR;
    } else {
        dq_pack_b_f32(j->call->kernels->transpose_x32, matrix(j, part->batch, true), f->b_col, f->b_step,
                      part, workspace, block);
    }
}

static void part_c(const void *arg, const dq_gemm_part *part, float *workspace, dq_gemm_block_f32 *block)
{
    const job *j = arg;
    const dq_matmul_f32 *f = j->f;
    const float *z = j->o->z;
    const bool strided_rows = f->swapped && f->m > 1;
    block->c = strided_rows ? workspace : j->o->c + (part->batch * f->m + part->row) * f->n + part->col;
    block->c_row = strided_rows ? f->product.col_block : f->n;
    block->alpha = f->alpha;
    block->low = f->bounds.low;
    block->high = f->bounds.high;
    block->z_row = j->o->z_row;
    if (z && f->swapped && j->o->z_row == 0)
        block->bias = z + part->row;
    else
        block->z = z ? z + part->row * j->o->z_row + part->col : NULL;
}

/* Stores a block of the result of exchanged operands, transposed. */
static void transpose_back(const void *arg, const dq_gemm_part *part, const dq_gemm_block_f32 *block)
{
    const job *j = arg;
    const dq_matmul_f32 *f = j->f;
    float *to = j->o->c + (part->batch * f->n + part->col) * f->m + part->row;
    j->call->kernels->transpose_x32((const uint32_t *)(const void *)block->c, block->c_row, part->rows,
                                    part->cols, (uint32_t *)(void *)to, f->m);
}

/* ---- Algorithms --------------------------------------------------------------------------------------- */

typedef struct problem {
    const dq_matmul_f32 *f;
    bool constant_b; /* one matrix of floats or half floats */
} problem;

/* Work of a GEMM with m rows and n columns; columns are rounded up to whole panels. */
static dq_algorithm_work product_of(const dq_matmul_f32 *f, size_t m, size_t n)
{
    const double columns = (double)((n + DQ_GEMM_F32_NR - 1) / DQ_GEMM_F32_NR * DQ_GEMM_F32_NR),
                 batches = (double)f->batches;
    return (dq_algorithm_work){.macs = batches * (double)m * columns * (double)f->k,
                               .calls = batches * columns / DQ_GEMM_F32_NR * (double)((m + 7) / 8)};
}

/* Exchanges the operands: A · B is the transpose of Bᵀ · Aᵀ, which has the same sums. */
static void swap_operands(dq_matmul_f32 *f)
{
    const dq_matmul_f32 as = *f;
    f->swapped = true;
    f->m = as.n;
    f->n = as.m;
    f->a_row = as.b_col;
    f->a_step = as.b_step;
    f->b_col = as.a_row;
    f->b_step = as.a_step;
}

/* is_vector: a row vector times a matrix with contiguous columns. is_column: a matrix with contiguous rows
 * times a column vector. */
static bool is_vector(const dq_matmul_f32 *f)
{
    return f->m == 1 && f->a_step == 1 && f->b_step == 1 && f->b_col != 1;
}

static bool is_column(const dq_matmul_f32 *f)
{
    return f->m > 1 && f->n == 1 && f->a_step == 1 && f->b_step == 1;
}

static bool is_gemv_applicable(const void *arg, dq_reason *reason)
{
    const problem *p = arg;
    if (is_column(p->f))
        return true;
    if (p->constant_b)
        return dq_not_applicable(reason, "B is constant");
    return is_vector(p->f) || dq_not_applicable(reason, "no contiguous vector times contiguous rows");
}

static dq_algorithm_work work_of_gemv(const void *arg)
{
    const problem *p = arg;
    const dq_matmul_f32 *f = p->f;
    const double macs = (double)f->batches * (double)(f->m * f->n) * (double)f->k;
    return (dq_algorithm_work){.macs = macs, .calls = (double)f->batches};
}

static bool is_gemm_swapped_applicable(const void *arg, dq_reason *reason)
{
    const problem *p = arg;
    const dq_matmul_f32 *f = p->f;
    if (f->n < 2 || f->n > MAX_SWAPPED_COLS || f->m < MIN_SWAPPED_ROWS)
        return dq_not_applicable(reason, "%zu columns and %zu rows, expected 2 to %d and at least %d", f->n,
                                 f->m, MAX_SWAPPED_COLS, MIN_SWAPPED_ROWS);
    return ((f->b_step == 1 || f->b_col == 1) && !f->z_stride) ||
           dq_not_applicable(reason, "B or the bias is not contiguous");
}

static dq_algorithm_work work_of_gemm_swapped(const void *arg)
{
    const problem *p = arg;
    dq_algorithm_work work = product_of(p->f, p->f->n, p->f->m);
    work.bytes = (double)p->f->batches * (double)(p->f->m * p->f->n) * sizeof(float);
    return work;
}

static bool is_gemm_packed_applicable(const void *arg, dq_reason *reason)
{
    const problem *p = arg;
    return p->constant_b || dq_not_applicable(reason, "B is not one constant matrix");
}

static dq_algorithm_work work_of_gemm_packed(const void *arg)
{
    const problem *p = arg;
    return product_of(p->f, p->f->m, p->f->n);
}

static bool is_gemm_applicable(const void *arg, dq_reason *reason)
{
    return dq_always_applicable(arg, reason);
}

/* B is packed in each run; if its columns are contiguous, packing is a transpose and costs more. */
static dq_algorithm_work work_of_gemm(const void *arg)
{
    const problem *p = arg;
    dq_algorithm_work work = product_of(p->f, p->f->m, p->f->n);
    work.bytes = (double)p->f->batches * (double)p->f->k * (double)p->f->n * sizeof(float);
    if (p->f->b_step == 1 && p->f->b_col != 1)
        work.bytes *= 4;
    return work;
}

static dq_status prepare_product(dq_op_call *call, dq_matmul_f32 *f, bool packed, dq_error *err)
{
    f->product = (dq_gemm_f32){.batches = f->batches,
                               .m = f->m,
                               .n = f->n,
                               .k = f->k,
                               .grain = 1,
                               .a_workspace = f->a_step != 1,
                               .flat = f->m == 1 && f->b_col == 1 && !packed,
                               .b_packed = packed,
                               .a = part_a,
                               .b = part_b,
                               .c = part_c,
                               .c_workspace = f->swapped,
                               .done = f->swapped ? transpose_back : NULL};
    const dq_pack_b_shape of = {
        .batches = 1, .n = f->n, .k = f->k, .col_stride = f->b_col, .step_stride = f->b_step};
    if (packed)
        DQ_TRY(dq_panels_f32_constant(call, f->b, &of, &f->panels, err));
    return dq_gemm_f32_prepare(call, &f->product, err);
}

static dq_status prepare_gemv(dq_op_call *call, void *arg, dq_error *err)
{
    dq_matmul_f32 *f = arg;
    (void)call;
    (void)err;
    if (is_column(f))
        swap_operands(f);
    return DQ_OK;
}

static dq_status prepare_gemm_swapped(dq_op_call *call, void *arg, dq_error *err)
{
    swap_operands(arg);
    return prepare_product(call, arg, false, err);
}

static dq_status prepare_gemm_packed(dq_op_call *call, void *arg, dq_error *err)
{
    return prepare_product(call, arg, true, err);
}

static dq_status prepare_gemm(dq_op_call *call, void *arg, dq_error *err)
{
    return prepare_product(call, arg, false, err);
}

/* ---- Runs --------------------------------------------------------------------------------------------- */

/* Computes results begin … end - 1, counted over the columns of all batches, by GEMV: columns of B are
 * contiguous. */
static void columns(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const dq_matmul_f32 *f = j->f;
    for (size_t i = begin, count; i < end; i += count) {
        size_t batch = i / f->n, col = i % f->n;
        count = dq_least(f->n - col, end - i);
        dq_gemm_part part = {.batch = batch, .rows = 1, .col = col, .cols = count};
        dq_gemm_block_f32 rest = {.rows = 1, .cols = count, .more = true, .last = true};
        part_c(j, &part, NULL, &rest);
        j->call->kernels->gemv_f32(matrix(j, batch, true) + col * f->b_col, f->b_col, count, f->k,
                                   matrix(j, batch, false), rest.c);
        rest.b_panel = DQ_GEMM_F32_NR;
        if (rest.alpha != 1 || rest.z || rest.bias || rest.low > -INFINITY || rest.high < INFINITY)
            j->call->kernels->gemm_block_f32(&rest);
    }
}

static void run_gemv(const dq_op_call *call, const void *arg, const void *operands)
{
    const dq_matmul_f32 *f = arg;
    job j = {call, f, operands};
    dq_parallel(call->threads, f->batches * f->n,
                (MACS_PER_TASK / (f->k + 1) / DQ_GEMM_F32_NR + 1) * DQ_GEMM_F32_NR, columns, &j);
}

static void run_product(const dq_op_call *call, const void *arg, const void *operands)
{
    const dq_matmul_f32 *f = arg;
    job j = {call, f, operands};
    dq_gemm_f32_run(call, &f->product, &j);
}

static const dq_algorithm rows[] = {
#define ROW(name, run, summary)                                                                              \
    {                                                                                                        \
        "matmul_f32=" #name, summary, 0, is_##name##_applicable, work_of_##name, prepare_##name, run         \
    }
    ROW(gemv, run_gemv, "a vector times a matrix that is read where it stands"),
    ROW(gemm_swapped, run_product, "few columns: the transpose of B' A', whose rows are the columns"),
    ROW(gemm_packed, run_product, "constant B in panels that are made once"),
    ROW(gemm, run_product, "B is laid out in panels, a block at a time")
#undef ROW
};

const dq_algorithm_table dq_matmul_f32_algorithms = {
    .name = "matmul_f32",
    .summary = "matrix product of floats (MatMul, Gemm and their fused forms)",
    .rows = rows,
    .count = sizeof rows / sizeof *rows};

dq_status dq_matmul_f32_prepare(dq_op_call *call, uint32_t b, dq_matmul_f32 *f, dq_error *err)
{
    const dq_tensor *t = call->in[b];
    const problem p = {.f = f,
                       .constant_b = dq_half_floats_take(t->dtype) && dq_call_constant(call, b) && t->count &&
                                     t->count == f->n * f->k};
    f->b = b;
    DQ_TRY(dq_algorithm_choose(call, DQ_ALGORITHMS_MATMUL_F32, &p, &f->algorithm, err));
    return f->algorithm->prepare(call, f, err);
}

void dq_matmul_f32_run(const dq_op_call *call, const dq_matmul_f32 *f, const dq_matmul_f32_operands *o)
{
    f->algorithm->run(call, f, o);
}
