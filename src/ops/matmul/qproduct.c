/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matmul/qproduct.h"

#include "ops/matmul/matmul_s8.h"

#include <string.h>

enum { SPLIT = DQ_QPRODUCT_SPLIT, SPLIT_GROUP = 2 * SPLIT };

/* Packing key of split weights; compared as bytes. */
typedef struct split_key {
    dq_qweights w;
    size_t n; /* columns of the tensor */
} split_key;

/* A panel has at most SPLIT columns, so that all of them are low bytes or all are high bytes: every second
 * byte of the tensor. Panels of the last group that are past its columns hold the last column: no sum of
 * theirs is read. */
static void make_split(void *packed, const dq_tensor *from, const void *key)
{
    const split_key *k = key;
    const dq_qweights *w = &k->w;
    size_t start = dq_qweights_first_panel(w);
    for (size_t i = 0; i < w->panels; i++) {
        const size_t column = i * w->kernel->nr, in_group = column % SPLIT_GROUP;
        const bool high = in_group >= SPLIT;
        dq_gemm_s8_b b = w->b;
        b.data = (const uint8_t *)from->data + high;
        b.cols = k->n;
        b.sign_xor = high ? dq_gemm_s8_sign_xor(from->dtype == DQ_INT16 ? DQ_INT8 : DQ_UINT8, true) : 0x80;
        const size_t first = column / SPLIT_GROUP * SPLIT + in_group % SPLIT;
        start = dq_qweights_pack_panel(w, &b, first < k->n ? first : k->n - 1, i, start, packed);
    }
}

static dq_status prepare_packed(dq_op_call *call, const dq_qproduct_weights *weights, dq_qproduct *p,
                                dq_error *err)
{
    split_key key;
    if (!weights->split)
        return dq_qweights_constant(call, p->input, &p->w, &p->packed, err);
    memset(&key, 0, sizeof key);
    memcpy(&key.w, &p->w, sizeof key.w);
    key.n = weights->n;
    return dq_call_pack_deferred(call, p->input, make_split, &key, sizeof key, p->w.size, &p->packed, err);
}

dq_status dq_qproduct_prepare(dq_op_call *call, const dq_qproduct_weights *weights, size_t rows,
                              dq_qproduct *p, dq_error *err)
{
    const size_t k = weights->k, bytes = weights->split ? 2 : 1;
    const size_t n = weights->split ? (weights->n + SPLIT - 1) / SPLIT * SPLIT_GROUP : weights->n;
    dq_qweights *w = &p->w;
    p->input = weights->input;
    w->b.cols = n;
    w->b.runs = 1;
    w->b.run = w->b.inner = k;
    w->b.col_stride = bytes * (weights->transposed ? k : 1);
    w->b.inner_stride = bytes * (weights->transposed ? 1 : weights->n);
    w->b.sign_xor = dq_gemm_s8_sign_xor(call->in[p->input]->dtype, true);
    w->matrices = weights->matrices;
    w->matrix_step = k * weights->n;
    dq_matmul_s8_use(call, w, p->input, rows, DQ_UINT8);
    p->block_rows = dq_gemm_s8_block_rows(w->kernel);
    if (weights->row_multiple)
        p->block_rows -= p->block_rows % weights->row_multiple;
    if (p->block_rows > rows)
        p->block_rows = rows ? rows : 1;
    bool fits = dq_qweights_layout(w);
    p->chunk = dq_gemm_s8_chunk(w, call->threads, (rows + p->block_rows - 1) / p->block_rows, p->block_rows);
    if (weights->split) {
        const size_t group = SPLIT_GROUP / w->kernel->nr;
        p->chunk = (p->chunk + group - 1) / group * group;
    }
    p->chunks = (w->panels + p->chunk - 1) / p->chunk;
    if (!fits || !dq_qscratch_layout(w, p->block_rows, p->chunk, DQ_QSTORE_PANELS, 0, &p->layout))
        return dq_no_memory(err, SIZE_MAX, "packed matrices");
    if (call->worker_scratch_size < p->layout.size)
        call->worker_scratch_size = p->layout.size;
    return prepare_packed(call, weights, p, err);
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
