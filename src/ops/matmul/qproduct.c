/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matmul/qproduct.h"

#include "ops/matmul/matmul_s8.h"

dq_status dq_qproduct_prepare(dq_op_call *call, const dq_qproduct_weights *weights, size_t rows,
                              dq_qproduct *p, dq_error *err)
{
    const size_t k = weights->k, n = weights->n;
    dq_qweights *w = &p->w;
    p->input = weights->input;
    w->b.cols = n;
    w->b.runs = 1;
    w->b.run = w->b.inner = k;
    w->b.col_stride = weights->transposed ? k : 1;
    w->b.inner_stride = weights->transposed ? 1 : n;
    w->b.sign_xor = dq_gemm_s8_sign_xor(call->in[p->input]->dtype, true);
    w->matrices = weights->matrices;
    w->matrix_step = k * n;
    dq_matmul_s8_use(call, w, p->input, rows, DQ_UINT8);
    p->block_rows = dq_gemm_s8_block_rows(w->kernel);
    if (weights->row_multiple)
        p->block_rows -= p->block_rows % weights->row_multiple;
    if (p->block_rows > rows)
        p->block_rows = rows ? rows : 1;
    bool fits = dq_qweights_layout(w);
    p->chunk = dq_gemm_s8_chunk(w, call->threads, (rows + p->block_rows - 1) / p->block_rows, p->block_rows);
    p->chunks = (w->panels + p->chunk - 1) / p->chunk;
    if (!fits || !dq_qscratch_layout(w, p->block_rows, p->chunk, DQ_QSTORE_PANELS, 0, &p->layout))
        return dq_no_memory(err, SIZE_MAX, "packed matrices");
    if (call->worker_scratch_size < p->layout.size)
        call->worker_scratch_size = p->layout.size;
    return dq_qweights_constant(call, p->input, w, &p->packed, err);
}

void dq_qproduct_sign_xor(const dq_qproduct *p, uint8_t *qvalues, size_t count)
{
    uint8_t sign_xor = dq_gemm_s8_sign_xor(DQ_UINT8, p->w.kernel->a_signed);
    for (size_t i = 0; sign_xor && i < count; i++)
        qvalues[i] ^= sign_xor;
}

typedef struct job {
    const dq_op_call *call;
    const dq_qproduct *p;
    const dq_qproduct_rows *of;
} job;

typedef struct where {
    const job *job;
    size_t row;
} where;

static void store_block(const dq_qblock *block, size_t first, size_t cols)
{
    const where *at = block->arg;
    at->job->of->store(at->job->of->arg, at->row, block->rows, first, cols, block->c, block->c_stride);
}

static int32_t zero_at(const job *j, size_t column)
{
    dq_dtype type = j->call->in[j->p->input]->dtype;
    size_t at = column * j->of->b_zero_step;
    int32_t value =
        type == DQ_INT8 ? ((const int8_t *)j->of->b_zero)[at] : ((const uint8_t *)j->of->b_zero)[at];
    return dq_gemm_s8_zero(value, type, true);
}

static void run_task(const job *j, size_t task, unsigned worker)
{
    static const ptrdiff_t no_offset = 0;
    const dq_qproduct *p = j->p;
    const dq_qweights *w = &p->w;
    dq_qblock block = dq_qblock_begin(&p->layout, dq_call_worker_scratch(j->call, worker));
    const size_t blocks = (j->of->rows + p->block_rows - 1) / p->block_rows;
    const dq_qtask part = dq_gemm_s8_task(w, task, blocks, p->chunks);
    where at = {j, part.block * p->block_rows};
    size_t k = w->b.run, first_column, columns;
    block.kernels = j->call->kernels;
    block.w = w;
    block.packed = j->of->packed;
    block.matrix = j->of->matrix;
    block.first_panel = part.chunk * p->chunk;
    block.end_panel = w->panels - block.first_panel < p->chunk ? w->panels : block.first_panel + p->chunk;
    block.rows = j->of->rows - at.row < p->block_rows ? j->of->rows - at.row : p->block_rows;
    block.a.offsets = &no_offset;
    block.a.runs = 1;
    block.a.run = k;
    block.a.exceeds_caches = at.row == 0;
    for (size_t i = 0; i < block.rows; i++)
        block.row_pointers[i] = j->of->qvalues + (at.row + i) * k;
    block.a_zero = dq_gemm_s8_zero(j->of->a_zero, DQ_UINT8, w->kernel->a_signed);
    dq_qblock_columns(&block, zero_at(j, 0));
    first_column = block.first_panel * w->kernel->nr;
    columns = (block.end_panel - block.first_panel) * w->kernel->nr;
    for (size_t c = 0; j->of->b_zero_step && c < columns && first_column + c < w->b.cols; c++)
        block.zero[c] = zero_at(j, first_column + c);
    block.store = store_block;
    block.arg = &at;
    dq_qblock_terms(&block);
    dq_qblock_run(&block);
}

static void run_tasks(void *arg, size_t begin, size_t end, unsigned worker)
{
    for (size_t task = begin; task < end; task++)
        run_task(arg, task, worker);
}

void dq_qproduct_run(const dq_op_call *call, const dq_qproduct *p, const dq_qproduct_rows *rows)
{
    job j = {call, p, rows};
    size_t blocks = (rows->rows + p->block_rows - 1) / p->block_rows;
    size_t products = p->block_rows * p->chunk * p->w.kernel->nr * (p->w.b.run + 1);
    dq_parallel(call->threads, blocks * p->chunks, dq_gemm_s8_grain(products), run_tasks, &j);
}
