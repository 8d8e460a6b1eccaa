/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit convolution as an integer GEMM (matmul/gemm_s8.h): a row of A for each output position, a column of B
 * for each output channel. The algorithms differ in the source of the rows:
 *
 *   - gemm_indirect: the padded image. A row is a list of runs, the contiguous pieces of its window.
 *
 *   - gemm_im2col: each block of rows copies its windows from the padded image.
 *
 *   - gemm_pointwise: 1×1 kernels. Each block transposes its pixels from NCHW x.
 *
 *   - gemm_pointwise_nhwc: 1×1 kernels. The pixels of NHWC x are the rows, in place. */
#include "ops/conv/conv_s8.h"

#include "base/checked.h"
#include "ops/matmul/matmul_s8.h"

#include <math.h>
#include <string.h>

/* ---- Planning ----------------------------------------------------------------------------------------- */

/* A run is a kernel position, or a whole kernel row if its elements are contiguous in the image. */
void dq_conv_s8_gemm_describe(const dq_op_call *call, dq_conv_s8 *conv)
{
    const dq_conv_shape *s = &conv->s;
    const dq_window *window = &s->window;
    dq_qweights *w = &conv->weights;
    size_t last = window->rank - 1, row = (size_t)window->kernel[last];
    bool by_rows = s->group == 1 && (window->dilation[last] == 1 || row == 1);
    w->b.cols = s->group_out;
    w->b.inner = s->group_in ? s->group_in : 1;
    w->b.run_stride = by_rows ? row : 1;
    w->b.outer_stride = 1;
    w->b.inner_stride = s->kernel_size;
    w->b.col_stride = s->group_in * s->kernel_size;
    w->b.sign_xor = dq_gemm_s8_sign_xor(call->in[conv->w]->dtype, true);
    /* without input channels sums are empty, whatever kernel size the shape states */
    w->b.run = by_rows ? row * s->group_in : s->group_in;
    w->b.runs = s->group_in ? s->kernel_size / (by_rows ? row : 1) : 0;
    w->matrices = s->group;
    w->matrix_step = s->group_out * w->b.col_stride;
    conv->run = w->b.run;
    conv->runs = w->b.runs;
    conv->run_step = w->b.run_stride;
    dq_matmul_s8_use(call, w, conv->w, s->batch * s->out_size, call->in[conv->x]->dtype);
}

/* Stride between copied rows, in bytes: long rows are aligned to cache lines. */
static size_t row_size(size_t run)
{
    enum { LINE = 64 }; /* bytes of a cache line */
    return run < LINE ? run : (run + LINE - 1) / LINE * LINE;
}

/* Rows of a block. Blocks have about equal size, because a short last one would waste most of a tile. A
 * kernel whose tile is a whole block gets whole output rows, or equal pieces of one, so that consecutive rows
 * of A keep a constant stride. */
static size_t rows_of_block(const dq_conv_s8 *conv)
{
    enum { COPIED = 128 /* bytes of a copied row */ };
    const dq_window *w = &conv->s.window;
    size_t rows = conv->s.out_size, mr = conv->weights.kernel->mr, width = (size_t)w->out[w->rank - 1];
    size_t most = dq_gemm_s8_block_rows(conv->weights.kernel), blocks = (rows + most - 1) / most;
    if (mr < most)
        return ((rows + blocks - 1) / blocks + mr - 1) / mr * mr;
    if (conv->rows == DQ_CONV_S8_GATHERED && row_size(conv->weights.b.run) > COPIED) {
        most /= 2; /* copies and accumulators must fit in L1 together */
        blocks = (rows + most - 1) / most;
    }
    if (conv->rows == DQ_CONV_S8_GATHERED || (conv->s.kernel_size == 1 && conv->image.whole))
        return (rows + blocks - 1) / blocks;
    if (width > most) {
        size_t pieces = (width + most - 1) / most;
        return (width + pieces - 1) / pieces;
    }
    blocks = (rows / width + most / width - 1) / (most / width);
    return (rows / width + blocks - 1) / blocks * width;
}

/* Images per block: several if one image has few output positions. */
static size_t images_per_task(const dq_conv_s8 *conv)
{
    const size_t some = dq_least(dq_gemm_s8_block_rows(conv->weights.kernel) / conv->s.out_size, conv->pass);
    return some ? some : 1;
}

static void cut_rows(const dq_op_call *call, dq_conv_s8 *conv)
{
    const dq_qweights *w = &conv->weights;
    size_t rows = conv->s.out_size, sets;
    conv->pass = dq_conv_s8_images(conv);
    conv->images_per_block = images_per_task(conv);
    conv->block_rows = conv->images_per_block > 1 ? conv->images_per_block * rows : rows_of_block(conv);
    conv->blocks = (rows + conv->block_rows - 1) / conv->block_rows;
    sets = (conv->pass + conv->images_per_block - 1) / conv->images_per_block;
    if (dq_threads_count(call->threads) == 1)
        conv->chunk = w->panels; /* the rows of a block are prepared once */
    else
        conv->chunk =
            dq_gemm_s8_chunk(w, call->threads, conv->blocks * sets * conv->s.group, conv->block_rows);
    conv->chunks = (w->panels + conv->chunk - 1) / conv->chunk;
}

size_t dq_conv_s8_gemm_chunks(const dq_op_call *call, dq_conv_s8 *conv)
{
    if (!dq_qweights_layout(&conv->weights))
        return SIZE_MAX;
    cut_rows(call, conv);
    return conv->chunks;
}

/* ---- Algorithms --------------------------------------------------------------------------------------- */

enum {
    COPY_BYTES = 32, /* bytes that the copy of a run writes, also for shorter runs */
    STEP = 4,        /* bytes of a row per dot-product instruction */
    RUN = 32         /* cost of starting a run, in multiply-adds */
};

static dq_algorithm_work product_of(const dq_conv_s8_problem *p, double depth, double bytes)
{
    const dq_conv_shape *s = p->shape;
    const double nr = (double)p->kernels->gemm_s8->nr, columns = ceil((double)s->group_out / nr) * nr;
    const double rows = (double)s->batch * (double)s->out_size, groups = (double)s->group;
    return (dq_algorithm_work){.macs = rows * columns * depth * groups,
                               .bytes = (double)s->batch * bytes,
                               .calls = ceil(rows / DQ_GEMM_S8_MR_MAX) * columns / nr * groups};
}

static double step_up(size_t n)
{
    return ceil((double)n / STEP) * STEP;
}

static bool is_grouped(const dq_conv_s8_problem *p, dq_reason *reason)
{
    return !p->depthwise || dq_not_applicable(reason, "groups have one input channel each (depthwise)");
}

bool dq_conv_s8_gemm_indirect_is_applicable(const void *problem, dq_reason *reason)
{
    return is_grouped(problem, reason);
}

/* The padded image is written and read: twice its bytes. */
dq_algorithm_work dq_conv_s8_gemm_indirect_work(const void *problem)
{
    const dq_conv_s8_problem *p = problem;
    const double start = p->runs > 1 ? RUN : 0;
    return product_of(p, (double)p->runs * (step_up(p->run) + start), 2 * (double)p->image_bytes);
}

bool dq_conv_s8_gemm_im2col_is_applicable(const void *problem, dq_reason *reason)
{
    const dq_conv_s8_problem *p = problem;
    if (!is_grouped(p, reason))
        return false;
    if (p->runs <= 1)
        return dq_not_applicable(reason, "windows are contiguous");
    return p->run <= COPY_BYTES || dq_not_applicable(reason,
                                                     "contiguous pieces of windows have %zu bytes, expected "
                                                     "at most %d",
                                                     p->run, COPY_BYTES);
}

dq_algorithm_work dq_conv_s8_gemm_im2col_work(const void *problem)
{
    const dq_conv_s8_problem *p = problem;
    const dq_conv_shape *s = p->shape;
    const double copied = (double)s->out_size * (double)s->group * (double)p->runs * COPY_BYTES;
    return product_of(p, step_up(p->runs * p->run), 2 * (double)p->image_bytes + copied);
}

static bool is_pointwise(const dq_conv_s8_problem *p, dq_reason *reason)
{
    if (!is_grouped(p, reason))
        return false;
    if (p->shape->kernel_size != 1)
        return dq_not_applicable(reason, "the kernel has %zu elements, expected 1", p->shape->kernel_size);
    return p->unpadded || dq_not_applicable(reason, "the image is padded or cropped");
}

bool dq_conv_s8_gemm_pointwise_is_applicable(const void *problem, dq_reason *reason)
{
    const dq_conv_s8_problem *p = problem;
    if (!is_pointwise(p, reason))
        return false;
    if (p->shape->x_last)
        return dq_not_applicable(reason, "x has channels last");
    if (p->shape->out_size != p->shape->in_size)
        return dq_not_applicable(reason, "stride is above 1");
    return p->weight_chunks == 1 ||
           dq_not_applicable(reason, "%zu tasks would transpose the same pixels", p->weight_chunks);
}

dq_algorithm_work dq_conv_s8_gemm_pointwise_work(const void *problem)
{
    const dq_conv_s8_problem *p = problem;
    return product_of(p, step_up(p->run), (double)p->image_bytes);
}

bool dq_conv_s8_gemm_pointwise_nhwc_is_applicable(const void *problem, dq_reason *reason)
{
    const dq_conv_s8_problem *p = problem;
    if (!is_pointwise(p, reason))
        return false;
    if (!p->shape->x_last)
        return dq_not_applicable(reason, "x has channels first");
    return p->weight_chunks == 1 || p->same_sign ||
           dq_not_applicable(reason, "%zu tasks would copy the same pixels with another sign",
                             p->weight_chunks);
}

dq_algorithm_work dq_conv_s8_gemm_pointwise_nhwc_work(const void *problem)
{
    const dq_conv_s8_problem *p = problem;
    return product_of(p, step_up(p->run), p->same_sign ? 0 : (double)p->image_bytes);
}

/* ---- Preparation -------------------------------------------------------------------------------------- */

static bool lay_out(dq_op_call *call, dq_conv_s8 *conv)
{
    const dq_qweights *w = &conv->weights;
    size_t *used = &call->scratch_size, columns, copy = 0;
    size_t images = dq_conv_s8_has_images(conv) ? conv->pass : 0;
    bool fits = dq_mul_size(conv->own, conv->s.out_channels, used) && dq_align_size(*used, DQ_ALIGN, used) &&
                dq_mul_size(w->panels * w->matrices, w->kernel->nr, &columns) &&
                dq_reserve_size(used, columns, 3 * sizeof(int32_t), DQ_ALIGN, &conv->columns_offset) &&
                dq_reserve_size(used, conv->packed ? 0 : w->size, 1, DQ_ALIGN, &conv->packed_offset) &&
                dq_reserve_size(used, conv->image.size, images, DQ_ALIGN, &conv->images_offset) &&
                dq_add_size(*used, DQ_GEMM_S8_SLACK, used);
    if (conv->rows != DQ_CONV_S8_WINDOWS)
        fits = fits && dq_mul_size(conv->block_rows, row_size(w->b.run), &copy) &&
               dq_add_size(copy, DQ_GEMM_S8_SLACK, &copy);
    dq_qstore store = conv->s.y_last ? DQ_QSTORE_PANELS : DQ_QSTORE_PANEL;
    return fits && dq_qscratch_layout(w, conv->block_rows, conv->chunk, store, copy, &conv->layout);
}

static dq_status prepare(dq_op_call *call, dq_conv_s8 *conv, dq_conv_s8_row_source rows, dq_error *err)
{
    conv->rows = rows;
    conv->image_signed = conv->weights.kernel->a_signed;
    if (rows == DQ_CONV_S8_GATHERED) {
        conv->weights.b.runs = 1;
        conv->weights.b.run = conv->weights.b.col_stride;
    }
    if (!dq_qweights_layout(&conv->weights))
        return dq_no_memory(err, SIZE_MAX, "packed weights");
    DQ_TRY(dq_conv_s8_find_offsets(call, conv, conv->runs, conv->run_step, err));
    DQ_TRY(dq_qweights_constant(call, conv->w, &conv->weights, &conv->packed, err));
    cut_rows(call, conv);
    if (!lay_out(call, conv))
        return dq_no_memory(err, SIZE_MAX, "padded images");
    call->worker_scratch_size = conv->layout.size;
    return DQ_OK;
}

dq_status dq_conv_s8_gemm_indirect_prepare(dq_op_call *call, void *conv, dq_error *err)
{
    return prepare(call, conv, DQ_CONV_S8_WINDOWS, err);
}

dq_status dq_conv_s8_gemm_im2col_prepare(dq_op_call *call, void *conv, dq_error *err)
{
    return prepare(call, conv, DQ_CONV_S8_GATHERED, err);
}

dq_status dq_conv_s8_gemm_pointwise_prepare(dq_op_call *call, void *conv, dq_error *err)
{
    return prepare(call, conv, DQ_CONV_S8_TRANSPOSED, err);
}

dq_status dq_conv_s8_gemm_pointwise_nhwc_prepare(dq_op_call *call, void *conv, dq_error *err)
{
    return prepare(call, conv, DQ_CONV_S8_IN_PLACE, err);
}

/* ---- Run ---------------------------------------------------------------------------------------------- */

typedef struct where {
    const dq_conv_s8_batch_tile *run;
    size_t image, images, group, first; /* images of the batch; first output position in each */
} where;

static void store_block(const dq_qblock *block, size_t first, size_t cols)
{
    const where *at = block->arg;
    const dq_conv_s8 *conv = at->run->conv;
    dq_conv_sums sums = {.conv = conv,
                         .call = at->run->call,
                         .batch = at->image,
                         .channel = at->group * conv->s.group_out + first,
                         .channels = cols,
                         .first = at->first,
                         .count = block->rows / at->images,
                         .c_stride = block->c_stride,
                         .c = block->c};
    for (size_t i = 0; i < at->images; i++, sums.batch++, sums.c += sums.count * sums.c_stride)
        conv->store(&sums);
}

/* Computes the terms of each column that all blocks share: bias, zero point of w, and the compensation for
 * the zero point of x. */
static void set_columns(dq_conv_s8_batch_tile *run)
{
    const dq_conv_s8 *conv = run->conv;
    const dq_op_call *call = run->call;
    const dq_qweights *w = &conv->weights;
    size_t nr = w->kernel->nr, width = w->panels * nr, n = width * w->matrices;
    int32_t *columns = (int32_t *)((char *)call->scratch + conv->columns_offset);
    dq_qblock *all = &run->columns;
    *all = (dq_qblock){.kernels = call->kernels,
                       .w = w,
                       .packed = run->packed,
                       .end_panel = w->panels * w->matrices,
                       .init = columns,
                       .cols = columns + n,
                       .zero = columns + 2 * n};
    all->a_zero = dq_gemm_s8_zero(dq_conv_s8_zero(call, conv->x_zero, 0), call->in[conv->x]->dtype,
                                  w->kernel->a_signed);
    dq_conv_s8_columns(call, conv, width, all->init, all->zero);
    dq_qblock_terms(all);
}

/* The rows of a block that belong to one image: `rows` from `row` on, output positions from `first` on. */
typedef struct part {
    const dq_conv_s8_batch_tile *run;
    dq_qblock *block;
    size_t image, group, first, row, rows;
} part;

/* Sets the row pointers to the corners of the windows, incrementally instead of by division. */
static void set_windows(const part *p, const uint8_t *image)
{
    const dq_conv_s8 *conv = p->run->conv;
    const dq_window *w = &conv->s.window;
    size_t last = w->rank - 1, width = (size_t)w->out[last], column = p->first % width;
    size_t step = (size_t)w->stride[last] * conv->image.step[last];
    const uint8_t *corner = image + dq_padded_input_corner(&conv->image, w, p->first);
    for (size_t i = 0; i < p->rows; i++) {
        if (column == width) {
            corner = image + dq_padded_input_corner(&conv->image, w, p->first + i);
            column = 0;
        }
        p->block->row_pointers[p->row + i] = corner;
        corner += step;
        column++;
    }
}

/* im2col: copies the runs of each window to a contiguous row. Copies have a fixed size: the excess is
 * overwritten by the next run. */
static void gather(const dq_conv_s8 *conv, dq_qblock *block)
{
    for (size_t i = 0; i < block->rows; i++) {
        const uint8_t *corner = block->row_pointers[i];
        uint8_t *to = (uint8_t *)block->extra + i * row_size(conv->weights.b.run);
        block->row_pointers[i] = to;
        for (size_t t = 0; t < conv->runs; t++, to += conv->run)
            memcpy(to, corner + conv->offsets[t], COPY_BYTES);
    }
}

/* Transposes the block's pixels from the group's NCHW planes. */
static void transpose(const part *p)
{
    const dq_conv_s8_batch_tile *run = p->run;
    const dq_conv_shape *s = &run->conv->s;
    const dq_tensor *x = run->call->in[run->conv->x];
    uint8_t *to = (uint8_t *)p->block->extra + p->row * s->group_in,
            sign_xor = dq_conv_s8_sign_xor(run->call, run->conv);
    size_t plane = p->image * s->in_channels + p->group * s->group_in;
    run->call->kernels->transpose_x8((const uint8_t *)x->data + plane * s->in_size + p->first, s->in_size,
                                     s->group_in, p->rows, sign_xor, to, s->group_in);
    for (size_t i = 0; i < p->rows; i++)
        p->block->row_pointers[p->row + i] = to + i * s->group_in;
}

/* Sets the row pointers to pixels of NHWC x in place. A pixel is copied if its signedness differs, or if
 * kernels might read past the end of x. */
static void set_row_pointers(const part *p)
{
    const dq_conv_s8 *conv = p->run->conv;
    const dq_conv_shape *s = &conv->s;
    const dq_tensor *x = p->run->call->in[conv->x];
    const uint8_t *from = x->data, *end = from + x->size, sign_xor = dq_conv_s8_sign_xor(p->run->call, conv);
    const uint8_t **pixels = p->block->row_pointers + p->row;
    uint8_t *to = (uint8_t *)p->block->extra + p->row * s->group_in;
    set_windows(p, from + p->image * s->in_channels * s->in_size + p->group * s->group_in);
    for (size_t i = 0; i < p->rows; i++, to += s->group_in) {
        if (sign_xor == 0 && (size_t)(end - pixels[i]) >= dq_gemm_s8_readable(s->group_in))
            continue;
        dq_gemm_s8_copy(pixels[i], s->group_in, sign_xor, to);
        pixels[i] = to;
    }
}

static void find_rows(const dq_conv_s8_batch_tile *run, const where *at, dq_qblock *block)
{
    static const ptrdiff_t no_offset = 0;
    const dq_conv_s8 *conv = run->conv;
    const size_t rows = block->rows / at->images;
    block->a.offsets = conv->rows == DQ_CONV_S8_WINDOWS ? conv->offsets : &no_offset;
    block->a.runs = conv->weights.b.runs;
    block->a.run = conv->weights.b.run;
    block->a.exceeds_caches = at->first == 0;
    for (size_t i = 0; i < at->images; i++) {
        const part p = {.run = run,
                        .block = block,
                        .image = at->image + i,
                        .group = at->group,
                        .first = at->first,
                        .row = i * rows,
                        .rows = rows};
        if (conv->rows == DQ_CONV_S8_TRANSPOSED)
            transpose(&p);
        else if (conv->rows == DQ_CONV_S8_IN_PLACE)
            set_row_pointers(&p);
        else
            set_windows(&p, run->images + (p.image - run->first) * conv->image.size +
                                at->group * conv->s.group_in);
    }
    if (conv->rows == DQ_CONV_S8_GATHERED)
        gather(conv, block);
}

static void run_task(const dq_conv_s8_batch_tile *run, size_t task, unsigned worker)
{
    const dq_conv_s8 *conv = run->conv;
    const dq_qweights *w = &conv->weights;
    dq_qblock block = dq_qblock_begin(&conv->layout, dq_call_worker_scratch(run->call, worker));
    where at = {.run = run};
    size_t chunk = task % conv->chunks, rest = task / conv->chunks, column;
    at.first = rest % conv->blocks * conv->block_rows;
    rest /= conv->blocks;
    at.group = rest % conv->s.group;
    at.image = rest / conv->s.group * conv->images_per_block;
    at.images = dq_least(conv->images_per_block, run->count - at.image);
    at.image += run->first;
    block.kernels = run->call->kernels;
    block.w = w;
    block.packed = run->packed;
    block.matrix = at.group;
    block.first_panel = chunk * conv->chunk;
    block.end_panel =
        w->panels - block.first_panel < conv->chunk ? w->panels : block.first_panel + conv->chunk;
    block.rows = dq_least(at.images * conv->s.out_size - at.first, conv->block_rows);
    column = (at.group * w->panels + block.first_panel) * w->kernel->nr;
    block.init = run->columns.init + column;
    block.zero = run->columns.zero + column;
    block.any_zero = run->columns.any_zero;
    block.store = store_block;
    block.arg = &at;
    find_rows(run, &at, &block);
    dq_qblock_run(&block);
}

static void run_tasks(void *arg, size_t begin, size_t end, unsigned worker)
{
    for (size_t task = begin; task < end; task++)
        run_task(arg, task, worker);
}

static void run_pass(const dq_conv_s8_batch_tile *run)
{
    const dq_conv_s8 *conv = run->conv;
    size_t sets = (run->count + conv->images_per_block - 1) / conv->images_per_block;
    size_t products = conv->block_rows * conv->chunk * conv->weights.kernel->nr *
                      (conv->weights.b.runs * conv->weights.b.run + 1);
    dq_parallel(run->call->threads, sets * conv->s.group * conv->blocks * conv->chunks,
                dq_gemm_s8_grain(products), run_tasks, (void *)(uintptr_t)run);
}

void dq_conv_s8_gemm_run(const dq_op_call *call, const void *state, const void *operands)
{
    (void)operands;
    const dq_conv_s8 *conv = state;
    dq_conv_s8_batch_tile pass = {.call = call, .conv = conv};
    pass.packed = dq_qweights_ready(call, conv->w, &conv->weights, conv->packed,
                                    (char *)call->scratch + conv->packed_offset);
    set_columns(&pass);
    dq_conv_s8_run_batch_tiles(&pass, true, run_pass);
}
