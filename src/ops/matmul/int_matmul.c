/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matmul/int_matmul.h"

#include "base/checked.h"
#include "ops/matmul/matmul_s8.h"

#include <string.h>

dq_status dq_int_matmul_infer(const dq_op_call *call, uint32_t a, uint32_t b, uint32_t a_zero,
                              uint32_t b_zero, dq_int_matmul *mm, dq_error *err)
{
    mm->a = a;
    mm->b = b;
    DQ_TRY(dq_matmul_shape_infer(call, a, b, &mm->s, err));
    DQ_TRY(dq_qparam_resolve(call, a_zero, a, DQ_QPARAM_ROWS, &mm->s, &mm->a_zero, err));
    return dq_qparam_resolve(call, b_zero, b, DQ_QPARAM_COLUMNS, &mm->s, &mm->b_zero, err);
}

static dq_status describe_weights(dq_op_call *call, dq_int_matmul *mm, dq_error *err)
{
    const dq_matmul_shape *s = &mm->s;
    dq_qweights *w = &mm->w;
    w->b.cols = s->n;
    w->b.runs = 1;
    w->b.run = s->k;
    w->b.inner = s->k;
    w->b.col_stride = mm->b_transposed ? s->k : 1;
    w->b.inner_stride = mm->b_transposed ? 1 : s->n;
    w->b.sign_xor = dq_gemm_s8_sign_xor(call->in[mm->b]->dtype, true);
    w->matrices = s->b_batches;
    w->matrix_step = s->k * s->n;
    return dq_matmul_s8_choose(call, w, mm->b, mm->m, call->in[mm->a]->dtype, err);
}

dq_status dq_int_matmul_prepare(dq_op_call *call, bool same_rows, dq_int_matmul *mm, dq_error *err)
{
    const dq_matmul_shape *s = &mm->s;
    bool flat = same_rows && mm->a_zero.single && s->b_batches == 1 && s->a_batches == s->batches;
    mm->m = flat ? s->m * s->batches : s->m;
    mm->batches = flat ? 1 : s->batches;
    DQ_TRY(describe_weights(call, mm, err));
    mm->block_rows = dq_gemm_s8_block_rows(mm->w.kernel);
    if (mm->block_rows > mm->m)
        mm->block_rows = mm->m ? mm->m : 1;
    mm->row_blocks = mm->m / mm->block_rows + (mm->m % mm->block_rows != 0);
    size_t copies;
    bool fits = dq_qweights_layout(&mm->w);
    mm->chunk = dq_gemm_s8_chunk(&mm->w, call->threads, mm->row_blocks * mm->batches, mm->block_rows);
    mm->chunks = (mm->w.panels + mm->chunk - 1) / mm->chunk;
    fits = fits && dq_mul_size(mm->block_rows, s->k, &copies) &&
           dq_add_size(copies, DQ_GEMM_S8_SLACK, &copies) &&
           dq_qscratch_layout(&mm->w, mm->block_rows, mm->chunk, DQ_QSTORE_PANELS, copies, &mm->layout);
    if (!fits)
        return dq_no_memory(err, SIZE_MAX, "packed matrices");
    DQ_TRY(dq_qweights_constant(call, mm->b, &mm->w, &mm->packed, err));
    call->scratch_size = mm->packed ? 0 : mm->w.size;
    call->worker_scratch_size = mm->layout.size;
    return DQ_OK;
}

/* ---- A run -------------------------------------------------------------------------------------------- */

typedef struct run_state {
    const dq_op_call *call;
    const dq_int_matmul *mm;
    const void *packed;
    dq_int_sums_fn *store;
    int32_t *result; /* NULL: `store` gets all sums */
} run_state;

typedef struct where {
    const run_state *run;
    size_t batch, row;
} where;

static void store_block(const dq_qblock *block, size_t first, size_t cols)
{
    const where *at = block->arg;
    dq_int_sums sums = {.mm = at->run->mm,
                        .call = at->run->call,
                        .batch = at->batch,
                        .row = at->row,
                        .rows = block->rows,
                        .col = first,
                        .cols = cols,
                        .c_stride = block->c_stride,
                        .c = block->c};
    at->run->store(&sums);
}

/* Copies rows of A from a matrix that is stored as [K, M]. */
static void copy_columns(const dq_int_matmul *mm, const dq_tensor *a, size_t first_row, dq_qblock *block)
{
    uint8_t sign_xor = dq_gemm_s8_sign_xor(a->dtype, mm->w.kernel->a_signed), *copy = (uint8_t *)block->extra;
    const uint8_t *from = (const uint8_t *)a->data + first_row;
    for (size_t i = 0; i < block->rows; i++) {
        block->row_pointers[i] = copy + i * mm->s.k;
        for (size_t k = 0; k < mm->s.k; k++)
            copy[i * mm->s.k + k] = from[k * mm->s.m + i] ^ sign_xor;
    }
}

/* Sets pointers to rows of A. Rows are read in the tensor if it has the kernel's signedness and all bytes
 * that kernels may read of a row; else they are copied. */
static void point_rows(const dq_int_matmul *mm, const dq_tensor *a, size_t first_row, dq_qblock *block)
{
    size_t k = mm->s.k, bytes = block->rows * k;
    const uint8_t *from = (const uint8_t *)a->data + first_row * k;
    uint8_t sign_xor = dq_gemm_s8_sign_xor(a->dtype, mm->w.kernel->a_signed);
    const size_t readable = a->size - first_row * k, row = dq_gemm_s8_readable(k);
    size_t in_place = 0; /* rows */
    if (!sign_xor && k > 0 && readable >= row)
        in_place = dq_least((readable - row) / k + 1, block->rows);
    for (size_t i = 0; i < in_place; i++)
        block->row_pointers[i] = from + i * k;
    dq_gemm_s8_copy(from + in_place * k, bytes - in_place * k, sign_xor, (uint8_t *)block->extra);
    for (size_t i = in_place; i < block->rows; i++)
        block->row_pointers[i] = (const uint8_t *)block->extra + (i - in_place) * k;
}

static void zero_points(const run_state *run, size_t batch, size_t row, dq_qblock *block)
{
    const dq_int_matmul *mm = run->mm;
    const dq_op_call *call = run->call;
    dq_dtype type = call->in[mm->a]->dtype;
    bool a_signed = mm->w.kernel->a_signed;
    if (mm->a_zero.single) {
        block->a_zero = dq_gemm_s8_zero(dq_qparam_int(call, &mm->a_zero, 0), type, a_signed);
    } else {
        block->per_row = true;
        size_t at = dq_qparam_offset(&mm->a_zero, &mm->s, batch);
        for (size_t i = 0; i < block->rows; i++)
            block->row_zero[i] = dq_gemm_s8_zero(
                dq_qparam_int(call, &mm->a_zero, at + (row + i) * mm->a_zero.step), type, a_signed);
    }
    type = call->in[mm->b]->dtype;
    size_t at = dq_qparam_offset(&mm->b_zero, &mm->s, batch), first = block->first_panel * mm->w.kernel->nr;
    dq_qblock_columns(
        block, mm->b_zero.single ? dq_gemm_s8_zero(dq_qparam_int(call, &mm->b_zero, 0), type, true) : 0);
    size_t end = block->end_panel * mm->w.kernel->nr;
    end = end < mm->w.b.cols ? end : mm->w.b.cols;
    if (!mm->b_zero.single)
        for (size_t j = first; j < end; j++)
            block->zero[j - first] =
                dq_gemm_s8_zero(dq_qparam_int(call, &mm->b_zero, at + j * mm->b_zero.step), type, true);
    for (size_t j = first; j < end && mm->has_start; j++)
        block->init[j - first] = dq_data(call->in[mm->start], int32_t)[j * mm->start_step];
}

static void run_task(const run_state *run, size_t task, unsigned worker)
{
    const dq_int_matmul *mm = run->mm;
    static const ptrdiff_t no_offset = 0;
    dq_qblock block = dq_qblock_begin(&mm->layout, dq_call_worker_scratch(run->call, worker));
    where at = {.run = run};
    const size_t tasks = mm->row_blocks * mm->chunks;
    const dq_qtask part = dq_gemm_s8_task(&mm->w, task % tasks, mm->row_blocks, mm->chunks);
    at.row = part.block * mm->block_rows;
    at.batch = task / tasks;
    block.kernels = run->call->kernels;
    block.w = &mm->w;
    block.packed = run->packed;
    block.matrix = mm->batches == 1 ? 0 : dq_matmul_offset(&mm->s, at.batch, mm->s.b_strides);
    block.first_panel = part.chunk * mm->chunk;
    block.end_panel =
        mm->w.panels - block.first_panel < mm->chunk ? mm->w.panels : block.first_panel + mm->chunk;
    block.rows = mm->m - at.row < mm->block_rows ? mm->m - at.row : mm->block_rows;
    block.a.offsets = &no_offset;
    block.a.runs = 1;
    block.a.run = mm->s.k;
    block.a.exceeds_caches = at.row == 0;
    block.store = store_block;
    if (run->result)
        block.result = run->result + (at.batch * mm->m + at.row) * mm->s.n;
    block.result_stride = mm->s.n;
    block.arg = &at;
    size_t matrix = mm->batches == 1 ? 0 : dq_matmul_offset(&mm->s, at.batch, mm->s.a_strides);
    if (mm->a_transposed)
        copy_columns(mm, run->call->in[mm->a], at.row, &block);
    else
        point_rows(mm, run->call->in[mm->a], matrix * mm->m + at.row, &block);
    zero_points(run, at.batch, at.row, &block);
    dq_qblock_terms(&block);
    dq_qblock_run(&block);
}

static void run_tasks(void *arg, size_t begin, size_t end, unsigned worker)
{
    for (size_t task = begin; task < end; task++)
        run_task(arg, task, worker);
}

static void run_with(const dq_op_call *call, const dq_int_matmul *mm, int32_t *result, dq_int_sums_fn *store)
{
    if (!call->out[0] || call->out[0]->count == 0)
        return;
    run_state run = {.call = call, .mm = mm, .store = store, .result = result};
    run.packed = dq_qweights_ready(call, mm->b, &mm->w, mm->packed, call->scratch);
    size_t products = mm->block_rows * mm->chunk * mm->w.kernel->nr * (mm->s.k + 1);
    dq_parallel(call->threads, mm->batches * mm->row_blocks * mm->chunks, dq_gemm_s8_grain(products),
                run_tasks, &run);
}

void dq_int_matmul_run(const dq_op_call *call, const dq_int_matmul *mm, dq_int_sums_fn *store)
{
    run_with(call, mm, NULL, store);
}

void dq_int_matmul_run_s32(const dq_op_call *call, const dq_int_matmul *mm, int32_t *y, dq_int_sums_fn *store)
{
    run_with(call, mm, y, store);
}
