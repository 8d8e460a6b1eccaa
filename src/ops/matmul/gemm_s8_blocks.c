/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matmul/gemm_s8_blocks.h"

#include "base/checked.h"
#include "base/file.h"
#include "ops/matmul/blocking.h"
#include "ops/packers.h"

#include <stdlib.h>
#include <string.h>

void dq_gemm_s8_copy(const uint8_t *restrict from, size_t n, uint8_t sign_xor, uint8_t *restrict to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from[i] ^ sign_xor;
}

bool dq_qweights_layout(dq_qweights *w)
{
    size_t nr = w->kernel->nr, total, at;
    w->panels = w->b.cols / nr + (w->b.cols % nr != 0);
    w->panel_size = w->kernel->panel_size(w->b.runs, w->b.run);
    w->size = 0;
    return w->panel_size && dq_mul_size(w->panels, w->matrices, &total) &&
           dq_reserve_size(&w->size, total, nr * sizeof(int32_t), DQ_ALIGN, &w->sums_offset) &&
           dq_reserve_size(&w->size, total, sizeof(size_t), DQ_ALIGN, &w->starts_offset) &&
           dq_reserve_size(&w->size, total, w->panel_size, DQ_ALIGN, &at);
}

static int32_t *sums_of(const dq_qweights *w, void *packed, size_t panel)
{
    return (int32_t *)((char *)packed + w->sums_offset) + panel * w->kernel->nr;
}

static size_t *starts_of(const dq_qweights *w, void *packed)
{
    return (size_t *)(void *)((char *)packed + w->starts_offset);
}

size_t dq_qweights_pack_panel(const dq_qweights *w, const dq_gemm_s8_b *b, size_t column, size_t i,
                              size_t start, void *packed)
{
    starts_of(w, packed)[i] = start;
    return start + w->kernel->pack(b, column, (char *)packed + start, sums_of(w, packed, i));
}

/* Packs panel i, counted over all matrices, at offset `start` of `packed`; returns the offset of its end. */
static size_t pack_panel(const dq_qweights *w, const void *data, void *packed, size_t i, size_t start)
{
    dq_gemm_s8_b b = w->b;
    b.data = (const uint8_t *)data + i / w->panels * w->matrix_step;
    return dq_qweights_pack_panel(w, &b, i % w->panels * w->kernel->nr, i, start, packed);
}

size_t dq_qweights_first_panel(const dq_qweights *w)
{
    return w->size - w->panels * w->matrices * w->panel_size;
}

/* Offset in the tensor of the end of panel i's columns, if columns are contiguous and in order. */
static size_t end_of_panel(const dq_qweights *w, size_t i)
{
    size_t col = (i % w->panels + 1) * w->kernel->nr;
    return i / w->panels * w->matrix_step + (col < w->b.cols ? col : w->b.cols) * w->b.col_stride;
}

/* Packs panels first … end - 1 of a row-major matrix from a copy of their columns. Pages of the mapped file
 * are released as soon as they are copied. Returns the offset of the panels' end in `packed`. */
static size_t pack_copied(const dq_qweights *w, const dq_tensor *from, void *packed, size_t first, size_t end,
                          uint8_t *copy, size_t start)
{
    dq_qweights some = *w;
    const uint8_t *data = from->data;
    size_t nr = w->kernel->nr, column = first * nr, given_back = 0, row = w->b.inner_stride;
    size_t cols = w->b.cols < end * nr ? w->b.cols - column : end * nr - column;
    for (size_t k = 0; k < w->b.run; k++) {
        memcpy(copy + k * cols, data + k * row + column, cols);
        dq_file_drop_pages(data, &given_back, (k + 1) * row);
    }
    dq_file_forget(data + given_back, from->size - given_back);
    some.b.data = copy;
    some.b.cols = cols;
    some.b.inner_stride = cols;
    for (size_t i = first; i < end; i++)
        start = dq_qweights_pack_panel(w, &some.b, (i - first) * nr, i, start, packed);
    return start;
}

/* Packs a large mapped row-major matrix by copies of some panels at a time; false if it is not such a matrix.
 * Each panel of it reads all pages, which would stay in memory in addition to the packed form. Releasing them
 * after each copy saves that memory, but reads the pages again for each copy. */
static bool make_by_copies(const dq_qweights *w, const dq_tensor *from, void *packed)
{
    enum { MIN_COPIED_BYTES = 1 << 23, COPIES = 8 };
    size_t some = w->panels / COPIES;
    if (!from->mapped || from->size < MIN_COPIED_BYTES || w->matrices != 1 || w->b.runs != 1 ||
        w->b.col_stride != 1 || w->b.inner != w->b.run || some == 0)
        return false;
    uint8_t *copy = malloc(some * w->kernel->nr * w->b.run);
    size_t start = dq_qweights_first_panel(w);
    for (size_t i = 0; copy && i < w->panels; i += some)
        start = pack_copied(w, from, packed, i, w->panels - i < some ? w->panels : i + some, copy, start);
    free(copy);
    return copy != NULL;
}

/* Packs all panels without gaps: panels may be smaller than panel_size, and the rest stays unused at the end.
 * Pages of the mapped file are released as they are packed: large weights are never in memory twice. */
void dq_pack_gemm_s8(void *packed, const dq_tensor *from, const void *key)
{
    const dq_qweights *w = key;
    size_t start = dq_qweights_first_panel(w), given_back = 0;
    bool in_order = w->b.col_stride > w->b.run_stride && w->b.col_stride > w->b.outer_stride &&
                    w->b.col_stride > w->b.inner_stride;
    if (make_by_copies(w, from, packed))
        return;
    for (size_t i = 0; i < w->panels * w->matrices; i++) {
        start = pack_panel(w, from->data, packed, i, start);
        if (from->mapped && in_order)
            dq_file_drop_pages(from->data, &given_back, end_of_panel(w, i));
    }
}

/* Panels of a kernel without `used` have the same size. */
static size_t used_of_panel(const void *panel, size_t size, const void *key)
{
    const dq_qweights *w = key;
    if (w->kernel->used)
        return w->kernel->used(w->b.runs, w->b.run, panel, size);
    return size < w->panel_size ? 0 : w->panel_size;
}

size_t dq_packed_gemm_s8_used(const void *packed, size_t size, size_t full, const void *key)
{
    const dq_qweights *w = key;
    const dq_packed_panels panels = {.starts = w->starts_offset,
                                     .count = w->panels * w->matrices,
                                     .first = dq_qweights_first_panel(w),
                                     .used = used_of_panel};
    return dq_packed_panels_used(&panels, packed, size, full, key);
}

dq_status dq_qweights_constant(dq_op_call *call, uint32_t i, const dq_qweights *w, const void **packed,
                               dq_error *err)
{
    *packed = NULL;
    return dq_call_constant(call, i)
               ? dq_call_pack_deferred(call, i, dq_pack_gemm_s8, w, sizeof *w, w->size, packed, err)
               : DQ_OK;
}

typedef struct pack_job {
    const dq_qweights *w;
    const void *data;
    void *packed;
} pack_job;

static void pack_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const pack_job *job = arg;
    for (size_t i = begin; i < end; i++)
        pack_panel(job->w, job->data, job->packed, i,
                   dq_qweights_first_panel(job->w) + i * job->w->panel_size);
}

const void *dq_qweights_ready(const dq_op_call *call, uint32_t i, const dq_qweights *w, const void *packed,
                              void *scratch)
{
    if (packed)
        return packed;
    pack_job job = {w, call->in[i]->data, scratch};
    size_t grain = ((size_t)1 << 16) / w->panel_size;
    dq_parallel(call->threads, w->panels * w->matrices, grain ? grain : 1, pack_range, &job);
    return scratch;
}

bool dq_qscratch_layout(const dq_qweights *w, size_t rows, size_t panels, dq_qstore store, size_t extra,
                        dq_qscratch *s)
{
    const dq_gemm_s8 *kernel = w->kernel;
    size_t cols, transposed = 0;
    s->size = 0;
    s->row_multiple = store == DQ_QSTORE_PANELS ? DQ_GEMM_S8_NR_MAX / kernel->nr : 1;
    if (kernel->packed_a_size && (transposed = kernel->packed_a_size(&w->b, rows)) == 0)
        return false;
    return dq_mul_size(panels, kernel->nr, &cols) &&
           dq_reserve_size(&s->size, rows, sizeof(uint8_t *), DQ_ALIGN, &s->rows) &&
           dq_reserve_size(&s->size, rows, sizeof(int32_t), DQ_ALIGN, &s->row_sums) &&
           dq_reserve_size(&s->size, rows, sizeof(int32_t), DQ_ALIGN, &s->row_zero) &&
           dq_reserve_size(&s->size, rows * kernel->nr * s->row_multiple, sizeof(int32_t), DQ_ALIGN, &s->c) &&
           dq_reserve_size(&s->size, cols, sizeof(int32_t), DQ_ALIGN, &s->init) &&
           dq_reserve_size(&s->size, cols, sizeof(int32_t), DQ_ALIGN, &s->cols) &&
           dq_reserve_size(&s->size, cols, sizeof(int32_t), DQ_ALIGN, &s->zero) &&
           dq_reserve_size(&s->size, transposed, 1, DQ_ALIGN, &s->transposed) &&
           dq_reserve_size(&s->size, extra, 1, DQ_ALIGN, &s->extra);
}

static dq_blocking blocking_of(const dq_gemm_s8 *kernel, size_t panel_bytes)
{
    const dq_cache_sizes caches = dq_cpu_caches();
    const dq_blocking_tile tile = {
        .mr = kernel->mr, .nr = kernel->nr, .panel_bytes = panel_bytes, .c_columns = DQ_GEMM_S8_NR_MAX};
    return dq_blocking_of(&caches, &tile);
}

size_t dq_gemm_s8_block_rows(const dq_gemm_s8 *kernel)
{
    return blocking_of(kernel, 0).mc;
}

/* Multiply-adds of one panel with `rows` rows, as a double, which cannot overflow. */
static double products_of(const dq_qweights *w, size_t rows)
{
    return (double)rows * (double)w->b.runs * (double)w->b.run * w->kernel->nr;
}

/* Evens out the chunks. A small number of tasks becomes even, or one of two threads would idle. */
static size_t even_chunk(size_t panels, size_t blocks, size_t chunk)
{
    enum { FEW_PIECES = 16 };
    size_t chunks = (panels + chunk - 1) / chunk, pieces = blocks * chunks;
    if (pieces > 1 && pieces < FEW_PIECES && pieces % 2 && chunks < panels)
        chunks++;
    return (panels + chunks - 1) / chunks;
}

/* Whether blocks of rows read `panels` panels from L2, after the first one has fetched them. */
static bool fits_in_l2(const dq_qweights *w, size_t panels)
{
    const dq_cache_sizes caches = dq_cpu_caches();
    return dq_blocking_fits_in_l2(&caches, panels * w->panel_size);
}

/* Whether kernels that pack A read B from memory. The bound is larger than that of fits_in_l2, because each
 * chunk of panels packs A again: that costs more than panels from L3, and less than panels from memory. The
 * bound of L2 takes up to 1.6 % longer with AVX2 and two threads (1024x512x2048). */
static bool exceeds_caches(const dq_qweights *w)
{
    enum { UNCACHED_BYTES = 3 << 19 };
    return w->size > UNCACHED_BYTES;
}

/* Panels of a task for a kernel that packs A. Each task packs the rows of its block again; this many panels
 * repay it. */
enum { REPAY_PACKING = 8 };

/* One thread: with dot-product instructions, weights from memory are the bottleneck. A chunk of them then
 * stays in L2 for all blocks of rows. */
static size_t chunk_of_packed_a(const dq_qweights *w, size_t blocks)
{
    if (blocks == 1 || !w->kernel->dots || !exceeds_caches(w))
        return w->panels;
    const dq_cache_sizes caches = dq_cpu_caches();
    const size_t tile = dq_blocking_panels_of_tile(&caches, w->panel_size);
    return dq_least(tile < REPAY_PACKING ? REPAY_PACKING : tile, w->panels);
}

/* Panels of a task of about TASK products. `few`: a thread has at most PIECES tasks. */
static double panels_for_threads(const dq_qweights *w, size_t count, size_t blocks, size_t rows, bool few)
{
    enum { TASK = 1 << 20, PIECES = 8 };
    const double expected = TASK / (1 + products_of(w, rows)) + 1;
    const double share = (double)w->panels * (double)blocks / (double)(PIECES * count);
    return few && expected < share ? share : expected;
}

/* Several threads: without dot-product instructions each has few tasks. */
static size_t chunk_of_packed_a_for_threads(const dq_qweights *w, size_t count, size_t blocks, size_t rows)
{
    const double expected = panels_for_threads(w, count, blocks, rows, !w->kernel->dots);
    return dq_least(expected < REPAY_PACKING ? REPAY_PACKING : (size_t)expected, w->panels);
}

/* Panels of a task for other kernels: NC columns, or fewer if several threads need more tasks. */
static size_t chunk_of_blocks(const dq_qweights *w, size_t count, size_t blocks, size_t rows)
{
    const dq_blocking blocking = blocking_of(w->kernel, w->panel_size);
    const size_t nc = fits_in_l2(w, w->panels) ? w->panels : blocking.nc / w->kernel->nr;
    const size_t most = dq_least(nc, w->panels);
    if (count == 1)
        return blocks == 1 ? w->panels : most;
    return dq_least((size_t)panels_for_threads(w, count, blocks, rows, true), most);
}

size_t dq_gemm_s8_chunk(const dq_qweights *w, const dq_threads *threads, size_t blocks, size_t rows)
{
    enum { MANY_BLOCKS = 32 };
    const size_t count = dq_threads_count(threads);
    if (w->panels <= 1 || (w->kernel->packed_a_size && blocks >= MANY_BLOCKS))
        return w->panels ? w->panels : 1;
    size_t chunk = !w->kernel->packed_a_size ? chunk_of_blocks(w, count, blocks, rows)
                   : count == 1              ? chunk_of_packed_a(w, blocks)
                                             : chunk_of_packed_a_for_threads(w, count, blocks, rows);
    return chunk < w->panels ? even_chunk(w->panels, blocks, chunk) : chunk;
}

dq_qtask dq_gemm_s8_task(const dq_qweights *w, size_t task, size_t blocks, size_t chunks)
{
    const bool exceeds = w->kernel->packed_a_size ? exceeds_caches(w) : !fits_in_l2(w, w->panels);
    return exceeds ? (dq_qtask){task % blocks, task / blocks} : (dq_qtask){task / chunks, task % chunks};
}

size_t dq_gemm_s8_grain(size_t products)
{
    enum { PIECE = 1 << 17 };
    return products < PIECE ? PIECE / (products + 1) + 1 : 1;
}

dq_qblock dq_qblock_begin(const dq_qscratch *layout, void *scratch)
{
    char *at = scratch;
    dq_qblock block = {.row_pointers = (const uint8_t **)(at + layout->rows),
                       .row_sums = (int32_t *)(at + layout->row_sums),
                       .row_zero = (int32_t *)(at + layout->row_zero),
                       .c = (int32_t *)(at + layout->c),
                       .init = (int32_t *)(at + layout->init),
                       .cols = (int32_t *)(at + layout->cols),
                       .zero = (int32_t *)(at + layout->zero),
                       .extra = at + layout->extra,
                       .row_multiple = layout->row_multiple};
    block.a.rows = block.row_pointers;
    block.a.packed = at + layout->transposed;
    return block;
}

static size_t columns_of(const dq_qblock *block)
{
    return (block->end_panel - block->first_panel) * block->w->kernel->nr;
}

void dq_qblock_columns(dq_qblock *block, int32_t value)
{
    size_t n = columns_of(block);
    int32_t *zero = block->zero;
    memset(block->init, 0, n * sizeof *block->init);
    for (size_t j = 0; j < n; j++)
        zero[j] = value;
}

void dq_qblock_terms(dq_qblock *block)
{
    const dq_qweights *w = block->w;
    const int32_t *sums = (const int32_t *)((const char *)block->packed + w->sums_offset) +
                          (block->matrix * w->panels + block->first_panel) * w->kernel->nr;
    size_t n = columns_of(block);
    uint32_t depth = (uint32_t)(w->b.runs * w->b.run);
    int32_t any = 0, *restrict cols = block->cols;
    const int32_t *restrict zero = block->zero;
    for (size_t j = 0; j < n; j++) {
        cols[j] = (int32_t)((uint32_t)sums[j] - depth * (uint32_t)zero[j]);
        any |= zero[j];
    }
    block->any_zero = any != 0;
    if (!block->per_row)
        block->kernels->subtract_scaled_s32(block->init, n, block->a_zero, cols);
}

/* Subtracts the compensation that differs between rows, for n columns from `at` on. */
static void correct_rows(const dq_qblock *block, size_t at, size_t n)
{
    for (size_t i = 0; i < block->rows; i++) {
        int32_t *c = block->c + i * block->c_stride;
        if (block->any_zero)
            block->kernels->subtract_scaled_s32(c, n, block->row_sums[i], block->zero + at);
        if (block->per_row)
            block->kernels->subtract_scaled_s32(c, n, block->row_zero[i], block->cols + at);
    }
}

static const char *panel_of(const dq_qblock *block, size_t p)
{
    const char *packed = block->packed;
    const size_t *starts = (const size_t *)(const void *)(packed + block->w->starts_offset);
    return packed + starts[block->matrix * block->w->panels + p];
}

/* Computes the sums of panels p … p + count - 1 into the columns of c from `to` on: all of them for each tile
 * of rows. The initial values of their columns begin at init[at]. A single panel that exceeds the caches
 * prefetches the next one. */
static void run_panels(const dq_qblock *block, size_t p, size_t count, size_t at, size_t to)
{
    const dq_gemm_s8 *kernel = block->w->kernel;
    dq_blocking_prefetch prefetch = {0, 0};
    dq_gemm_s8_a a = block->a;
    if (count == 1 && a.exceeds_caches && p + 1 < block->w->panels) {
        const size_t tiles = (block->rows + kernel->mr - 1) / kernel->mr;
        const char *ahead = panel_of(block, p + 1);
        prefetch = dq_blocking_prefetch_of((size_t)(ahead - panel_of(block, p)), tiles,
                                           a.runs * (a.run / DQ_GEMM_S8_PREFETCH));
        a.ahead = prefetch.step ? ahead : NULL;
    }
    a.ahead_step = prefetch.step;
    for (size_t i = 0, rows; i < block->rows; i += rows) {
        int32_t *c = block->c + i * block->c_stride + to;
        rows = block->rows - i < kernel->mr ? block->rows - i : kernel->mr;
        for (size_t q = 0; q < count; q++)
            kernel->tile(&a, rows, panel_of(block, p + q), block->init + at + q * kernel->nr,
                         c + q * kernel->nr, block->c_stride);
        a.rows += rows;
        if (a.sums)
            a.sums += rows;
        if (a.ahead)
            a.ahead += prefetch.advance;
    }
}

/* Columns that tiles write of panels p … p + count - 1. */
static size_t written_columns(const dq_qweights *w, size_t p, size_t count)
{
    const size_t before = (count - 1) * w->kernel->nr, left = w->b.cols - p * w->kernel->nr;
    return before + dq_gemm_s8_columns(w->kernel, dq_least(left - before, w->kernel->nr));
}

/* Number of panels from p on that each tile of rows uses before the next tile, if sums go to the result:
 * those that stay in L2, at least `least`. A last panel is not among them if tiles write more columns of it
 * than there are. */
static size_t panels_of_tile(const dq_qblock *block, size_t p, size_t least)
{
    const dq_qweights *w = block->w;
    const dq_cache_sizes caches = dq_cpu_caches();
    const size_t most = dq_blocking_panels_of_tile(&caches, w->panel_size), all = w->panels - p;
    const size_t whole = written_columns(w, p, all) > w->b.cols - p * w->kernel->nr ? all - 1 : all;
    const size_t panels = dq_least(whole, block->end_panel - p);
    return most < least ? least : dq_least(panels, most);
}

void dq_qblock_run(dq_qblock *block)
{
    const dq_qweights *w = block->w;
    size_t nr = w->kernel->nr;
    int32_t *const c = block->c;
    block->a.sums = block->any_zero ? block->row_sums : NULL;
    if (!w->kernel->packed_a_size && !fits_in_l2(w, block->end_panel - block->first_panel))
        block->a.exceeds_caches = true; /* for all blocks of rows */
    if (block->any_zero)
        w->kernel->sums(&block->a, block->rows, block->row_sums);
    if (w->kernel->packed_a_size)
        *(char *)block->a.packed = 0;
    for (size_t p = block->first_panel, many; p < block->end_panel; p += many) {
        size_t at = (p - block->first_panel) * nr, first = p * nr;
        many = block->end_panel - p < block->row_multiple ? block->end_panel - p : block->row_multiple;
        const bool in_result = block->result && written_columns(w, p, many) <= w->b.cols - first;
        if (in_result)
            many = panels_of_tile(block, p, many);
        block->c = in_result ? block->result + first : c;
        block->c_stride = in_result ? block->result_stride : nr * block->row_multiple;
        if (many > block->row_multiple)
            run_panels(block, p, many, at, 0);
        else
            for (size_t i = 0; i < many; i++)
                run_panels(block, p + i, 1, at + i * nr, i * nr);
        if (block->any_zero || block->per_row)
            correct_rows(block, at, dq_least(many * nr, w->b.cols - first));
        if (!in_result)
            block->store(block, first, dq_least(many * nr, w->b.cols - first));
    }
    block->c = c;
    if (w->kernel->done)
        w->kernel->done();
}
