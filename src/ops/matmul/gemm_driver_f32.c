/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matmul/gemm_driver_f32.h"

#include "base/checked.h"
#include "base/file.h"
#include "ops/half_floats.h"
#include "ops/matmul/blocking.h"
#include "ops/packers.h"

#include <string.h>

enum {
    ROWS = 192,  /* MC: rows of A in a block; ROWS × DEPTH floats stay in L2 */
    COLS = 128,  /* NC: columns of B in a block; DEPTH × COLS stay in L2, too, and one panel in L1 */
    DEPTH = 256, /* KC: terms of a block */
    NARROW_A = 128 * 1536, /* floats of A that stay in L2, so that blocks of B are narrow and deep */
    DEQUANTIZED_B_ROWS =
        32, /* up to so many rows of A, a block of dequantized B with DEQUANTIZED_B_DEPTH terms stays in L1 */
    DEQUANTIZED_B_DEPTH = 96,
    NARROW_DEPTH = 1024, /* terms of a block of NARROW columns, if all of A stays in L2 */
    NARROW_COLS = COLS / 2,
    FLAT_COLS = 2048,           /* columns of a task for one row of A and a B that is read without packing */
    FEW_ROWS = 48,              /* minimum rows of a task when rows are divided among threads */
    PART_ROWS = 24,             /* approximate minimum rows of a task when the last blocks are divided */
    UNCACHED_RESULTS = 1 << 22, /* number of results that exceeds the caches … */
    UNCACHED_ROWS = 48,     /* … and rows of a block then, so that prefetched lines of C are not evicted */
    MACS_PER_TASK = 1 << 17 /* approximate minimum of multiply-adds in a parallel task */
};

static size_t pieces(size_t n, size_t each)
{
    return n / each + (n % each != 0);
}

/* Terms of a block (KC): about as many as stay in a cache, in blocks of equal size. */
static size_t depth_of(const dq_gemm_f32 *f)
{
    size_t depth = DEPTH, rows = dq_least(f->m, ROWS);
    const dq_cache_sizes caches = dq_cpu_caches();
    if (f->b_packed)
        depth = dq_blocking_depth(&caches, rows, DQ_GEMM_F32_NR * sizeof(float), f->k);
    else if (f->strip && rows <= DEQUANTIZED_B_ROWS)
        depth = DEQUANTIZED_B_DEPTH;
    else if (!f->flat && rows && rows == f->m && f->k <= NARROW_A / rows)
        depth = NARROW_DEPTH;
    size_t grain = f->grain ? f->grain : 1, grains = f->k / grain, most = grain < depth ? depth / grain : 1;
    size_t blocks = pieces(grains, most);
    return blocks ? pieces(grains, blocks) * grain : f->k;
}

/* Maximum columns of a block (NC). */
static size_t width_of(const dq_gemm_f32 *f)
{
    if (f->flat)
        return FLAT_COLS;
    return f->b_packed || (f->depth <= DEPTH && !(f->strip && f->m <= DEQUANTIZED_B_ROWS)) ? COLS
                                                                                           : NARROW_COLS;
}

/* Columns of a task. If there are few tasks, their number becomes a multiple of the threads: more tasks if B
 * is packed already, else fewer, because narrow blocks use tiles badly. */
static size_t columns_of(const dq_gemm_f32 *f, size_t workers)
{
    enum { BLOCKS_PER_WORKER = 8, STRIP_COLS = 2 * DQ_GEMM_F32_NR };
    size_t most = width_of(f), blocks = pieces(f->n, most), wide = f->strip ? f->strip : STRIP_COLS;
    if (!f->flat && !f->b_packed && blocks > 1 && f->n % most && f->n % most <= most / 4)
        return pieces(f->n, (blocks - 1) * wide) * wide; /* no block of few columns */
    if (f->flat || f->m >= 2 * FEW_ROWS || blocks * f->batches % workers == 0 ||
        blocks * f->batches >= BLOCKS_PER_WORKER * workers)
        return most;
    if (!f->b_packed) {
        size_t less = blocks - blocks % workers, even = less ? pieces(f->n, less) : COLS + 1;
        return even > COLS ? most : pieces(even, wide) * wide;
    }
    size_t even = pieces(f->n, blocks + workers - blocks % workers);
    return pieces(even, DQ_GEMM_F32_NR) * DQ_GEMM_F32_NR;
}

dq_status dq_gemm_f32_prepare(dq_op_call *call, dq_gemm_f32 *f, dq_error *err)
{
    size_t b_bytes, a_bytes = 0, c_bytes = 0, workers = dq_threads_count(call->threads);
    f->workers = workers;
    f->depth = depth_of(f);
    f->col_block = columns_of(f, workers);
    f->row_block = f->m ? f->m : 1;
    f->exceeds_caches = !f->b_packed && f->m && f->n && UNCACHED_RESULTS / f->m / f->n < f->batches;
    size_t parts = f->batches * pieces(f->n, f->col_block);
    if (workers > 1 && parts && parts < 2 * workers && f->m >= 2 * FEW_ROWS) {
        size_t cuts = dq_least(pieces(2 * workers, parts), f->m / FEW_ROWS);
        size_t even = cuts;
        while (even > 1 && even * parts % workers != 0)
            even--;
        f->row_block = pieces(f->m, even > 1 ? even : cuts);
    }
    if (f->c_workspace)
        f->row_block = pieces(f->row_block, pieces(f->row_block, ROWS));
    size_t cols = f->flat || f->b_packed ? 0 : f->col_block;
    if (f->c_workspace)
        c_bytes = f->row_block * f->col_block * sizeof(float);
    if (!dq_mul_size(f->depth, cols * sizeof(float), &b_bytes) ||
        (f->a_workspace && !dq_mul_size(f->depth, dq_least(f->m, ROWS) * sizeof(float), &a_bytes)) ||
        !dq_align_size(b_bytes, DQ_ALIGN, &b_bytes) || !dq_align_size(a_bytes, DQ_ALIGN, &a_bytes) ||
        !dq_add_size(a_bytes, b_bytes, &a_bytes) ||
        !dq_add_size(a_bytes, c_bytes, &call->worker_scratch_size))
        return dq_call_fail(call, err, DQ_OUT_OF_MEMORY, "has sums of %zu products, which is too many", f->k);
    return DQ_OK;
}

typedef struct job {
    const dq_gemm_f32 *f;
    const dq_op_call *call;
    const void *arg;
    size_t row_blocks, col_blocks;
    bool by_rows; /* tasks of the same rows follow each other, so that a thread reads only its rows of A */
    dq_partition cut; /* of the blocks, if a block has all rows */
} job;

/* The panel of packed B after the last one of a part, to be prefetched; NULL: unknown. */
static const float *next_panel(const dq_gemm_f32 *f, const dq_gemm_part *part, const dq_gemm_block_f32 *block)
{
    if (!f->b_packed || !part->k)
        return NULL;
    if (!block->last)
        return block->b + part->k * DQ_GEMM_F32_NR;
    return block->b - part->p * DQ_GEMM_F32_NR + pieces(part->cols, DQ_GEMM_F32_NR) * block->b_panel;
}

/* Computes all rows of a part, after its block of B is set. */
static void run_rows(const job *j, const dq_gemm_part *whole, float *a_workspace, float *c_workspace,
                     dq_gemm_block_f32 *block)
{
    const dq_gemm_f32 *f = j->f;
    dq_gemm_part part = *whole;
    const float *after = next_panel(f, whole, block);
    const size_t most = block->exceeds_caches ? UNCACHED_ROWS : ROWS;
    for (size_t row = 0; row < whole->rows && !dq_threads_cancelled(j->call->threads); row += part.rows) {
        part.row = whole->row + row;
        part.rows = dq_least(most, whole->rows - row);
        block->rows = part.rows;
        block->next = row + part.rows < whole->rows ? block->b : after;
        f->a(j->arg, &part, a_workspace, block);
        f->c(j->arg, &part, c_workspace, block);
        j->call->kernels->gemm_block_f32(block);
        if (block->last && f->done)
            f->done(j->arg, &part, block);
    }
}

static void run_part(const job *j, dq_gemm_part *part, char *scratch)
{
    const dq_gemm_f32 *f = j->f;
    float *b_workspace = (float *)(void *)scratch, *a_workspace = b_workspace;
    if (!f->flat && !f->b_packed)
        a_workspace += f->depth * f->col_block;
    float *c_workspace = a_workspace + (f->a_workspace ? f->depth * dq_least(f->m, ROWS) : 0);
    for (part->p = 0; part->p == 0 || part->p < f->k; part->p += f->depth) {
        if (dq_threads_cancelled(j->call->threads))
            return; /* checked here because a part of large matrices takes long */
        part->k = dq_least(f->depth, f->k - part->p);
        dq_gemm_block_f32 block = {.cols = part->cols,
                                   .k = part->k,
                                   .more = part->p > 0,
                                   .last = part->p + part->k >= f->k,
                                   .exceeds_caches = f->exceeds_caches,
                                   .alpha = 1};
        if (part->k)
            f->b(j->arg, part, b_workspace, &block);
        run_rows(j, part, a_workspace, c_workspace, &block);
        if (f->depth == 0)
            break;
    }
}

/* Rows and columns of task number i. */
static dq_gemm_part part_at(const job *j, size_t i)
{
    const dq_gemm_f32 *f = j->f;
    const size_t others = f->batches * j->col_blocks;
    size_t row, end, block;
    if (j->row_blocks == 1) {
        block = dq_partition_piece(&j->cut, i, f->m, &row, &end);
    } else {
        block = j->by_rows ? i % others : i / j->row_blocks;
        row = (j->by_rows ? i / others : i % j->row_blocks) * f->row_block;
        end = row + dq_least(f->row_block, f->m - row);
    }
    const size_t col = block % j->col_blocks * f->col_block;
    return (dq_gemm_part){.batch = block / j->col_blocks,
                          .row = row,
                          .rows = end - row,
                          .col = col,
                          .cols = dq_least(f->col_block, f->n - col)};
}

static void run_tasks(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    for (size_t i = begin; i < end; i++) {
        dq_gemm_part part = part_at(j, i);
        run_part(j, &part, dq_call_worker_scratch(j->call, worker));
    }
}

void dq_gemm_f32_run(const dq_op_call *call, const dq_gemm_f32 *f, const void *arg)
{
    job j = {.f = f,
             .call = call,
             .arg = arg,
             .row_blocks = pieces(f->m, f->row_block),
             .col_blocks = pieces(f->n, f->col_block)};
    const size_t workers = dq_threads_count(call->threads);
    j.by_rows = workers > 1 && j.row_blocks % workers == 0 &&
                (!f->b_packed || f->batches * j.col_blocks % workers != 0);
    size_t work = dq_least(f->row_block, f->m) * dq_least(f->col_block, f->n);
    work = f->k && work > MACS_PER_TASK / f->k ? MACS_PER_TASK : work * f->k + 1;
    const size_t blocks = f->batches * j.col_blocks, grain = pieces(MACS_PER_TASK, work);
    j.cut = dq_threads_cut(call->threads, blocks, grain == 1 ? f->m / PART_ROWS : 1);
    dq_parallel(call->threads, j.row_blocks == 1 ? dq_partition_count(&j.cut) : blocks * j.row_blocks, grain,
                run_tasks, &j);
}

void dq_gemm_f32_part(const dq_op_call *call, const dq_gemm_f32 *f, const void *arg, const dq_gemm_part *part,
                      void *workspace)
{
    const job j = {.f = f, .call = call, .arg = arg};
    dq_gemm_part all = *part;
    run_part(&j, &all, workspace);
}

/* ---- Panels ------------------------------------------------------------------------------------------- */

/* Packs one panel of `cols` columns. */
static void panel(dq_transpose_x32_fn *transpose, const float *from, size_t col_stride, size_t step_stride,
                  size_t cols, size_t k, float *to)
{
    if (cols < DQ_GEMM_F32_NR)
        memset(to, 0, k * DQ_GEMM_F32_NR * sizeof *to);
    if (step_stride == 1 && col_stride != 1)
        transpose((const uint32_t *)(const void *)from, col_stride, cols, k, (uint32_t *)(void *)to,
                  DQ_GEMM_F32_NR);
    else if (cols == DQ_GEMM_F32_NR && col_stride == 1)
        for (size_t p = 0; p < k; p++)
            memcpy(to + p * DQ_GEMM_F32_NR, from + p * step_stride, DQ_GEMM_F32_NR * sizeof *to);
    else
        for (size_t p = 0; p < k; p++)
            for (size_t j = 0; j < cols; j++)
                to[p * DQ_GEMM_F32_NR + j] = from[p * step_stride + j * col_stride];
}

/* Packs all panels of a block of row-major B, row after row: memory is read sequentially and prefetched some
 * rows ahead. An incomplete panel is filled with the elements after it in memory, if they are of the next
 * row, else with zeros. */
static void panels_along(const float *from, size_t step_stride, const dq_gemm_part *part, float *to)
{
    enum { AHEAD = 8, LINE = 16 };
    for (size_t p = 0; p < part->k; p++, from += step_stride, to += DQ_GEMM_F32_NR) {
        const bool whole = p + 1 < part->k && step_stride >= DQ_GEMM_F32_NR;
        const size_t cols = whole ? part->cols : part->cols / DQ_GEMM_F32_NR * DQ_GEMM_F32_NR;
        for (size_t j = 0; j < part->cols; j += LINE)
            __builtin_prefetch(from + AHEAD * step_stride + j);
        size_t j = 0;
        for (; j < cols; j += DQ_GEMM_F32_NR)
            memcpy(to + j * part->k, from + j, DQ_GEMM_F32_NR * sizeof *to);
        if (j < part->cols) {
            memset(to + j * part->k, 0, DQ_GEMM_F32_NR * sizeof *to);
            memcpy(to + j * part->k, from + j, (part->cols - j) * sizeof *to);
        }
    }
}

void dq_pack_b_f32(dq_transpose_x32_fn *transpose, const float *from, size_t col_stride, size_t step_stride,
                   const dq_gemm_part *part, float *workspace, dq_gemm_block_f32 *block)
{
    from += part->col * col_stride + part->p * step_stride;
    if (col_stride == 1)
        panels_along(from, step_stride, part, workspace);
    for (size_t j = 0; j < part->cols && col_stride != 1; j += DQ_GEMM_F32_NR)
        panel(transpose, from + j * col_stride, col_stride, step_stride,
              dq_least(DQ_GEMM_F32_NR, part->cols - j), part->k, workspace + j * part->k);
    block->b = workspace;
    block->b_step = DQ_GEMM_F32_NR;
    block->b_panel = DQ_GEMM_F32_NR * part->k;
}

void dq_pack_b_nchw_f32(dq_transpose_x32_fn *transpose, const dq_gemm_f32 *f, const float *image,
                        const dq_gemm_part *part, float *workspace, dq_gemm_block_f32 *block)
{
    /* Packing columns costs more than reading them in the image if A has at most LESS_ROWS rows. With several
     * threads the limit is LEAST_ROWS: short segments of lines that another core holds arrive slowly. Up to
     * FEW_STEPS rows of the image stay in L1 without packing, for any number of rows of A, unless too many of
     * them map to the same cache sets or need more pages than the TLB holds. */
    enum {
        LESS_ROWS = 24,
        LEAST_ROWS = 12,
        FEW_STEPS = 64,
        SETS = 4096,
        CACHE = 8 * SETS,
        PAGES = 64 * 4096
    };
    const size_t row_stride = f->n * sizeof *image, bit = row_stride & (0 - row_stride),
                 each = bit < SETS ? bit : SETS;
    const bool stay = f->k <= FEW_STEPS && f->k * each <= CACHE && f->k * row_stride <= PAGES;
    /* whole panels: the elements after the last column belong to the next channel, and are readable */
    const bool whole =
        part->cols % DQ_GEMM_F32_NR == 0 || (part->batch + 1 < f->batches && f->n >= DQ_GEMM_F32_NR);
    if (!whole || (f->m > (f->workers > 1 ? LEAST_ROWS : LESS_ROWS) && !stay)) {
        dq_pack_b_f32(transpose, image, 1, f->n, part, workspace, block);
        return;
    }
    block->b = image + part->p * f->n + part->col;
    block->b_step = f->n;
    block->b_panel = DQ_GEMM_F32_NR;
}

typedef struct panels_key {
    dq_transpose_x32_fn *transpose;
    dq_convert_f16_f32_fn *widen;
    dq_pack_b_shape of;
} panels_key;

enum { STEPS = 64 /* rows of a panel that are packed at a time */ };

/* Copies a block of a matrix, from element `first` on, to contiguous memory in the same order. Elements have
 * `size` bytes and may be unaligned. */
static void gather(const char *from, size_t size, size_t first, const panels_key *m, bool along, size_t cols,
                   size_t steps, char *workspace)
{
    size_t lines = along ? cols : steps, length = along ? steps : cols;
    size_t row_stride = along ? m->of.col_stride : m->of.step_stride,
           each = along ? m->of.step_stride : m->of.col_stride;
    for (size_t i = 0; i < lines; i++, first += row_stride, workspace += length * size)
        for (size_t j = 0, n = each == 1 ? length : 1; j < length; j += n)
            memcpy(workspace + j * size, from + (first + j * each) * size, n * size);
}

static void make_part(const panels_key *m, const dq_tensor *from, size_t batch, size_t col, size_t p,
                      float *packed)
{
    float workspace[DQ_GEMM_F32_NR * STEPS];
    bool along = m->of.step_stride == 1 && m->of.col_stride != 1;
    size_t cols = dq_least(DQ_GEMM_F32_NR, m->of.n - col), steps = dq_least(STEPS, m->of.k - p);
    size_t first = batch * m->of.n * m->of.k + col * m->of.col_stride + p * m->of.step_stride;
    float *to = packed + (batch * pieces(m->of.n, DQ_GEMM_F32_NR) * DQ_GEMM_F32_NR + col) * m->of.k +
                p * DQ_GEMM_F32_NR;
    if (from->unaligned || from->dtype != DQ_FLOAT) {
        uint16_t halves[DQ_GEMM_F32_NR * STEPS];
        const bool single = from->dtype == DQ_FLOAT;
        gather(from->data, single ? sizeof *workspace : sizeof *halves, first, m, along, cols, steps,
               single ? (char *)workspace : (char *)halves);
        if (!single)
            dq_half_floats_row(m->widen, from->dtype, halves, cols * steps, workspace);
        panel(m->transpose, workspace, along ? steps : 1, along ? 1 : cols, cols, steps, to);
    } else {
        panel(m->transpose, (const float *)from->data + first, m->of.col_stride, m->of.step_stride, cols,
              steps, to);
    }
}

/* Packs in the order of memory and releases the pages of a mapped file after reading them, so that matrix and
 * panels are never in memory at once. */
void dq_pack_gemm_f32(void *packed, const dq_tensor *from, const void *key)
{
    const panels_key *m = key;
    bool by_steps = m->of.step_stride > m->of.col_stride;
    size_t lines = by_steps ? m->of.k : m->of.n, others = by_steps ? m->of.n : m->of.k, given_back = 0;
    size_t run_tasks = by_steps ? STEPS : DQ_GEMM_F32_NR, other = by_steps ? DQ_GEMM_F32_NR : STEPS;
    size_t line = (by_steps ? m->of.step_stride : m->of.col_stride) * (dq_dtype_get(from->dtype)->bits / 8);
    for (size_t batch = 0; batch < m->of.batches; batch++)
        for (size_t i = 0; i < lines; i += run_tasks) {
            for (size_t j = 0; j < others; j += other)
                make_part(m, from, batch, by_steps ? j : i, by_steps ? i : j, packed);
            if (from->mapped)
                dq_file_drop_pages(from->data, &given_back,
                                   (batch * lines + dq_least(i + run_tasks, lines)) * line);
        }
}

dq_status dq_panels_f32_constant(dq_op_call *call, uint32_t i, const dq_pack_b_shape *of,
                                 const float **panels, dq_error *err)
{
    size_t cols, size;
    panels_key key;
    if (!dq_align_size(of->n, DQ_GEMM_F32_NR, &cols) || !dq_mul_size(cols, of->k, &size) ||
        !dq_mul_size(size, of->batches, &size) || !dq_mul_size(size, sizeof(float), &size))
        return dq_no_memory(err, SIZE_MAX, "packed weights");
    memset(&key, 0, sizeof key); /* compared as bytes */
    key.transpose = call->kernels->transpose_x32;
    key.widen = call->kernels->convert_f16_f32;
    key.of = *of;
    const void *packed;
    DQ_TRY(dq_call_pack_unaligned(call, i, dq_pack_gemm_f32, &key, sizeof key, size, &packed, err));
    *panels = packed;
    return DQ_OK;
}
