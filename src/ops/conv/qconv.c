/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv/qconv.h"

#include "base/checked.h"

#include <string.h>

dq_status dq_qconv_infer(const dq_op_call *call, dq_qconv *conv, dq_error *err)
{
    DQ_TRY(dq_conv_shape_infer(call, conv->x, conv->w, conv->x_last, conv->y_last, &conv->s, err));
    DQ_TRY(dq_conv_param_check(call, conv->x_zero, false, &conv->s, err));
    DQ_TRY(dq_conv_param_check(call, conv->w_zero, true, &conv->s, err));
    return dq_conv_bias_check(call, conv->bias, &conv->s, err);
}

/* ---- Planning ----------------------------------------------------------------------------------------- */

/* Runs: positions of the kernel, or its rows when neighbours in a row are neighbours in the image, too; one
 * where windows are gathered. */
static void describe_weights(const dq_op_call *call, dq_qconv *conv)
{
    enum { SHORT = 32 };
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
    w->b.flip = dq_qgemm_flip(call->in[conv->w]->dtype, true);
    /* with no input channels there is nothing to sum, however large the kernel says it is */
    w->b.run = by_rows ? row * s->group_in : s->group_in;
    w->b.runs = s->group_in ? s->kernel_size / (by_rows ? row : 1) : 0;
    w->matrices = s->group;
    w->matrix_step = s->group_out * w->b.col_stride;
    conv->run = w->b.run;
    conv->runs = w->b.runs;
    conv->run_step = w->b.run_stride;
    if (conv->runs > 1 && conv->run <= SHORT) {
        conv->rows = DQ_QCONV_GATHERED;
        w->b.runs = 1;
        w->b.run = w->b.col_stride;
    }
    dq_qweights_use(w, call->kernels, dq_call_constant(call, conv->w), s->batch * s->out_size,
                    call->in[conv->x]->dtype);
}

static dq_status find_offsets(dq_op_call *call, dq_qconv *conv, size_t runs, size_t step, dq_error *err)
{
    conv->offsets = DQ_NEW_ARRAY(call->arena, runs ? runs : 1, ptrdiff_t);
    if (!conv->offsets)
        return dq_no_memory(err, runs, "offsets of a kernel's elements");
    for (size_t t = 0; t < runs; t++)
        conv->offsets[t] = dq_qimage_offset(&conv->image, &conv->s.window, t * step);
    return DQ_OK;
}

size_t dq_qconv_images(const dq_qconv *conv)
{
    enum { PASS = 1 << 21 };
    size_t images = conv->image.size < PASS ? PASS / (conv->image.size + 1) + 1 : 1;
    return images < conv->s.batch ? images : conv->s.batch;
}

static uint8_t flip_of(const dq_op_call *call, const dq_qconv *conv)
{
    return dq_qgemm_flip(call->in[conv->x]->dtype, conv->image_signed);
}

/* From one copied row to the next: long ones begin where cache lines do. */
static size_t row_size(size_t run)
{
    enum { LINE = 64 };
    return run < LINE ? run : (run + LINE - 1) / LINE * LINE;
}

/* Rows of a block, all of about equal size: a short last one would waste most of a tile. A kernel that takes
 * a block at once gets whole rows of windows, or even pieces of one, so that neighbours stay at one distance.
 */
static size_t rows_of_block(const dq_qconv *conv)
{
    enum { COPIED = 128 /* bytes of a copied row */ };
    const dq_window *w = &conv->s.window;
    size_t rows = conv->s.out_size, mr = conv->weights.kernel->mr, width = (size_t)w->out[w->rank - 1];
    size_t most = dq_qgemm_block_rows(conv->weights.kernel), blocks = (rows + most - 1) / most;
    if (mr < most)
        return ((rows + blocks - 1) / blocks + mr - 1) / mr * mr;
    if (conv->rows == DQ_QCONV_GATHERED && row_size(conv->weights.b.run) > COPIED) {
        most /= 2; /* or copies and sums displace each other in the first-level cache */
        blocks = (rows + most - 1) / most;
    }
    if (conv->rows == DQ_QCONV_GATHERED || (conv->s.kernel_size == 1 && conv->image.whole))
        return (rows + blocks - 1) / blocks;
    if (width > most) {
        size_t pieces = (width + most - 1) / most;
        return (width + pieces - 1) / pieces;
    }
    blocks = (rows / width + most / width - 1) / (most / width);
    return (rows / width + blocks - 1) / blocks * width;
}

/* Images of so few results that a block has those of several. */
static size_t images_together(const dq_qconv *conv)
{
    const size_t some = dq_least(dq_qgemm_block_rows(conv->weights.kernel) / conv->s.out_size, conv->pass);
    return some ? some : 1;
}

static void cut_rows(const dq_op_call *call, dq_qconv *conv)
{
    const dq_qweights *w = &conv->weights;
    size_t rows = conv->s.out_size, sets;
    conv->pass = dq_qconv_images(conv);
    conv->together = images_together(conv);
    conv->block_rows = conv->together > 1 ? conv->together * rows : rows_of_block(conv);
    conv->blocks = (rows + conv->block_rows - 1) / conv->block_rows;
    sets = (conv->pass + conv->together - 1) / conv->together;
    if (dq_threads_count(call->threads) == 1)
        conv->chunk = w->panels; /* a block's rows are made ready once */
    else
        conv->chunk = dq_qgemm_chunk(w, call->threads, conv->blocks * sets * conv->s.group, conv->block_rows);
    conv->chunks = (w->panels + conv->chunk - 1) / conv->chunk;
    if (conv->rows != DQ_QCONV_WINDOWS || conv->s.kernel_size != 1 || !conv->image.whole)
        return;
    /* where a block's rows are used once, they need not stand in memory before */
    if (conv->s.x_last && (conv->chunks == 1 || flip_of(call, conv) == 0))
        conv->rows = DQ_QCONV_PLACED;
    else if (!conv->s.x_last && conv->chunks == 1 && conv->s.out_size == conv->s.in_size)
        conv->rows = DQ_QCONV_TURNED;
}

static bool has_images(const dq_qconv *conv)
{
    return conv->rows != DQ_QCONV_TURNED && conv->rows != DQ_QCONV_PLACED;
}

static bool lay_out(dq_op_call *call, dq_qconv *conv)
{
    const dq_qweights *w = &conv->weights;
    size_t *used = &call->scratch_size, columns, copy = 0;
    size_t images = has_images(conv) ? conv->pass : 0;
    bool fits = dq_mul_size(conv->own, conv->s.out_channels, used) && dq_align_size(*used, DQ_ALIGN, used) &&
                dq_mul_size(w->panels * w->matrices, w->kernel->nr, &columns) &&
                dq_place_size(used, columns, 3 * sizeof(int32_t), DQ_ALIGN, &conv->columns_offset) &&
                dq_place_size(used, conv->packed ? 0 : w->size, 1, DQ_ALIGN, &conv->packed_offset) &&
                dq_place_size(used, conv->image.size, images, DQ_ALIGN, &conv->images_offset) &&
                dq_add_size(*used, DQ_QGEMM_SLACK, used);
    if (conv->rows != DQ_QCONV_WINDOWS)
        fits = fits && dq_mul_size(conv->block_rows, row_size(w->b.run), &copy) &&
               dq_add_size(copy, DQ_QGEMM_SLACK, &copy);
    dq_qstore store = conv->s.y_last ? DQ_QSTORE_WIDE : DQ_QSTORE_PANEL;
    return fits && dq_qscratch_layout(w, conv->block_rows, conv->chunk, store, copy, &conv->layout);
}

dq_status dq_qconv_prepare(dq_op_call *call, dq_qconv *conv, dq_error *err)
{
    dq_conv_shape *s = &conv->s;
    if (s->batch * s->out_channels * s->out_size == 0)
        return DQ_OK; /* nothing to run; the rest may be of any size */
    conv->depthwise = s->group_in == 1 && s->group > 1;
    conv->by_planes = conv->depthwise && !s->x_last && !s->y_last;
    conv->by_beside = conv->by_planes && dq_qconv_beside_suits(call, conv);
    if (conv->by_beside)
        return dq_qconv_beside_prepare(call, conv, err);
    if (s->in_size == 1 && !conv->depthwise)
        s->x_last = true; /* as well as first */
    if (!dq_qimage_layout(s, conv->by_planes ? 1 : s->in_channels, !conv->by_planes, &conv->image))
        return dq_no_memory(err, SIZE_MAX, "a padded image");
    if (conv->depthwise) {
        if (conv->by_planes)
            return dq_qconv_depthwise_prepare(call, conv, err);
        DQ_TRY(find_offsets(call, conv, s->kernel_size, 1, err));
        return dq_qconv_pixels_prepare(call, conv, err);
    }
    conv->by_winograd = dq_qconv_winograd_suits(call, conv);
    if (conv->by_winograd)
        return dq_qconv_winograd_prepare(call, conv, err);
    conv->by_lanes = dq_qconv_lanes_suits(call, conv);
    if (conv->by_lanes)
        return dq_qconv_lanes_prepare(call, conv, err);
    describe_weights(call, conv);
    conv->image_signed = conv->weights.kernel->a_signed;
    if (!dq_qweights_layout(&conv->weights))
        return dq_no_memory(err, SIZE_MAX, "packed weights");
    DQ_TRY(find_offsets(call, conv, conv->runs, conv->run_step, err));
    DQ_TRY(dq_qweights_constant(call, conv->w, &conv->weights, &conv->packed, err));
    cut_rows(call, conv);
    if (!lay_out(call, conv))
        return dq_no_memory(err, SIZE_MAX, "padded images");
    call->worker_scratch_size = conv->layout.size;
    return DQ_OK;
}

void dq_conv_sums_turn(const dq_conv_sums *sums, void *out)
{
    if (sums->channels == 1 && sums->c_stride == 1)
        memcpy(out, sums->c, sums->count * sizeof *sums->c);
    else
        sums->call->kernels->transpose_x32((const uint32_t *)sums->c, sums->c_stride, sums->count,
                                           sums->channels, out, sums->conv->s.out_size);
}

/* ---- A run -------------------------------------------------------------------------------------------- */

typedef struct where {
    const dq_qconv_pass *run;
    size_t image, images, group, first; /* images of the batch; first result of each */
} where;

static void store_block(const dq_qblock *block, size_t first, size_t cols)
{
    const where *at = block->arg;
    const dq_qconv *conv = at->run->conv;
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

typedef struct filling {
    const dq_qconv_pass *run;
    size_t parts; /* of a row: some of its channels */
} filling;

static void fill_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    enum { TOGETHER = 64 }; /* channels */
    (void)worker;
    const filling *f = arg;
    const dq_qconv_pass *run = f->run;
    const dq_qconv *conv = run->conv;
    const dq_qimage *image = &conv->image;
    const dq_tensor *x = run->call->in[conv->x];
    uint8_t flip = flip_of(run->call, conv);
    dq_qimage_fill fill = {.kernels = run->call->kernels,
                           .image = image,
                           .s = &conv->s,
                           .flip = flip,
                           .pad = (uint8_t)dq_qconv_zero(run->call, conv->x_zero, 0) ^ flip};
    size_t x_size = conv->s.in_channels * conv->s.in_size;
    for (size_t i = begin; i < end; i++) {
        size_t part = i % f->parts, number = i / f->parts / image->rows, row = i / f->parts % image->rows;
        fill.x = (const uint8_t *)x->data + (run->first + number) * x_size;
        uint8_t *to = run->images + number * image->size + row * image->width * image->unit;
        size_t some = image->unit / TOGETHER, last = some * (part + 1) / f->parts * TOGETHER;
        if (f->parts == 1)
            dq_qimage_row(&fill, row, to);
        else
            dq_qimage_planes(&fill, row, some * part / f->parts * TOGETHER,
                             part + 1 < f->parts ? last : image->unit, to);
    }
}

static void fill_images(const dq_qconv_pass *run)
{
    enum { PIECE = 1 << 14 };
    const dq_qimage *image = &run->conv->image;
    size_t row_bytes = image->width * image->unit;
    filling f = {run, 1};
    if (row_bytes == 0 || !has_images(run->conv))
        return;                         /* no channels: rows without bytes, of any number */
    if (image->whole && !image->pixels) /* few rows of many channels */
        f.parts += image->unit * run->conv->s.in_size / image->rows / PIECE;
    dq_parallel(run->call->threads, run->count * image->rows * f.parts, PIECE / (row_bytes + 1) + 1,
                fill_rows, &f);
}

void dq_qconv_columns(const dq_op_call *call, const dq_qconv *conv, size_t width, int32_t *init,
                      int32_t *zero)
{
    const dq_tensor *bias = dq_call_in(call, conv->bias), *zeros = dq_call_in(call, conv->w_zero);
    const size_t some = conv->s.group_out;
    const dq_dtype type = call->in[conv->w]->dtype;
    const bool each = zeros && zeros->count != 1;
    const int32_t only = each ? 0 : dq_qgemm_zero(dq_qconv_zero(call, conv->w_zero, 0), type, true);
    memset(init, 0, width * conv->s.group * sizeof *init);
    if (zero)
        memset(zero, 0, width * conv->s.group * sizeof *zero);
    for (size_t g = 0, first = 0; g < conv->s.group; g++, first += some) {
        if (bias)
            memcpy(init + g * width, dq_data(bias, int32_t) + first, some * sizeof *init);
        for (size_t j = 0; zero && j < some; j++)
            zero[g * width + j] =
                each ? dq_qgemm_zero(dq_qconv_zero(call, conv->w_zero, first + j), type, true) : only;
    }
}

/* What is the same for all blocks: bias, zero point of w and the term of x's zero point, by column. */
static void set_columns(dq_qconv_pass *run)
{
    const dq_qconv *conv = run->conv;
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
    all->a_zero =
        dq_qgemm_zero(dq_qconv_zero(call, conv->x_zero, 0), call->in[conv->x]->dtype, w->kernel->a_signed);
    dq_qconv_columns(call, conv, width, all->init, all->zero);
    dq_qblock_terms(all);
}

/* Rows of a block that are of one image: `row` is the first. */
typedef struct part {
    const dq_qconv_pass *run;
    dq_qblock *block;
    size_t image, group, first, row, rows;
} part;

/* Corners of the windows, counted up rather than divided out for each. */
static void set_windows(const part *p, const uint8_t *image)
{
    const dq_qconv *conv = p->run->conv;
    const dq_window *w = &conv->s.window;
    size_t last = w->rank - 1, width = (size_t)w->out[last], column = p->first % width;
    size_t step = (size_t)w->stride[last] * conv->image.step[last];
    const uint8_t *corner = image + dq_qimage_corner(&conv->image, w, p->first);
    for (size_t i = 0; i < p->rows; i++) {
        if (column == width) {
            corner = image + dq_qimage_corner(&conv->image, w, p->first + i);
            column = 0;
        }
        p->block->row_pointers[p->row + i] = corner;
        corner += step;
        column++;
    }
}

/* Copies the windows' runs one behind the other. A copy of fixed size writes past the run, over what comes
 * next, which is written after it. */
static void gather(const dq_qconv *conv, dq_qblock *block)
{
    enum { STEP = 32 };
    for (size_t i = 0; i < block->rows; i++) {
        const uint8_t *corner = block->row_pointers[i];
        uint8_t *to = (uint8_t *)block->extra + i * row_size(conv->weights.b.run);
        block->row_pointers[i] = to;
        for (size_t t = 0; t < conv->runs; t++, to += conv->run)
            memcpy(to, corner + conv->offsets[t], STEP);
    }
}

/* Pixels first … of a group's planes. */
static void turn(const part *p)
{
    const dq_qconv_pass *run = p->run;
    const dq_conv_shape *s = &run->conv->s;
    const dq_tensor *x = run->call->in[run->conv->x];
    uint8_t *to = (uint8_t *)p->block->extra + p->row * s->group_in, flip = flip_of(run->call, run->conv);
    size_t plane = p->image * s->in_channels + p->group * s->group_in;
    run->call->kernels->transpose_x8((const uint8_t *)x->data + plane * s->in_size + p->first, s->in_size,
                                     s->group_in, p->rows, flip, to, s->group_in);
    for (size_t i = 0; i < p->rows; i++)
        p->block->row_pointers[p->row + i] = to + i * s->group_in;
}

/* Pixels first … of x. Those that have another sign, and the last ones, behind which nothing may be read, are
 * copied. */
static void place(const part *p)
{
    const dq_qconv *conv = p->run->conv;
    const dq_conv_shape *s = &conv->s;
    const dq_tensor *x = p->run->call->in[conv->x];
    const uint8_t *from = x->data, *end = from + x->size, flip = flip_of(p->run->call, conv);
    const uint8_t **pixels = p->block->row_pointers + p->row;
    uint8_t *to = (uint8_t *)p->block->extra + p->row * s->group_in;
    set_windows(p, from + p->image * s->in_channels * s->in_size + p->group * s->group_in);
    for (size_t i = 0; i < p->rows; i++, to += s->group_in) {
        if (flip == 0 && (size_t)(end - pixels[i]) >= s->group_in + DQ_QGEMM_SLACK)
            continue;
        dq_qgemm_copy(pixels[i], s->group_in, flip, to);
        pixels[i] = to;
    }
}

static void find_rows(const dq_qconv_pass *run, const where *at, dq_qblock *block)
{
    static const ptrdiff_t no_offset = 0;
    const dq_qconv *conv = run->conv;
    const size_t rows = block->rows / at->images;
    block->a.offsets = conv->rows == DQ_QCONV_WINDOWS ? conv->offsets : &no_offset;
    block->a.runs = conv->weights.b.runs;
    block->a.run = conv->weights.b.run;
    block->a.far = at->first == 0;
    for (size_t i = 0; i < at->images; i++) {
        const part p = {.run = run,
                        .block = block,
                        .image = at->image + i,
                        .group = at->group,
                        .first = at->first,
                        .row = i * rows,
                        .rows = rows};
        if (conv->rows == DQ_QCONV_TURNED)
            turn(&p);
        else if (conv->rows == DQ_QCONV_PLACED)
            place(&p);
        else
            set_windows(&p, run->images + (p.image - run->first) * conv->image.size +
                                at->group * conv->s.group_in);
    }
    if (conv->rows == DQ_QCONV_GATHERED)
        gather(conv, block);
}

static void run_task(const dq_qconv_pass *run, size_t task, unsigned worker)
{
    const dq_qconv *conv = run->conv;
    const dq_qweights *w = &conv->weights;
    dq_qblock block = dq_qblock_begin(&conv->layout, dq_call_worker_scratch(run->call, worker));
    where at = {.run = run};
    size_t chunk = task % conv->chunks, rest = task / conv->chunks, column;
    at.first = rest % conv->blocks * conv->block_rows;
    rest /= conv->blocks;
    at.group = rest % conv->s.group;
    at.image = rest / conv->s.group * conv->together;
    at.images = dq_least(conv->together, run->count - at.image);
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

static void run_pass(dq_qconv_pass *run)
{
    const dq_qconv *conv = run->conv;
    if (conv->by_lanes) {
        dq_qconv_lanes_run(run);
        return;
    }
    fill_images(run);
    if (conv->depthwise) {
        dq_qconv_pixels_run(run);
        return;
    }
    if (conv->by_winograd) {
        dq_qconv_winograd_run(run);
        return;
    }
    size_t sets = (run->count + conv->together - 1) / conv->together;
    size_t products = conv->block_rows * conv->chunk * conv->weights.kernel->nr *
                      (conv->weights.b.runs * conv->weights.b.run + 1);
    dq_parallel(run->call->threads, sets * conv->s.group * conv->blocks * conv->chunks,
                dq_qgemm_grain(products), run_tasks, run);
}

void dq_qconv_run(const dq_op_call *call, const dq_qconv *conv)
{
    if (!call->out[0] || call->out[0]->count == 0)
        return;
    if (conv->by_beside) {
        dq_qconv_beside_run(call, conv);
        return;
    }
    if (conv->by_planes) {
        dq_qconv_depthwise_run(call, conv);
        return;
    }
    dq_qconv_pass run = {.call = call, .conv = conv};
    char *scratch = call->scratch;
    if (conv->depthwise) {
        run.packed = dq_qconv_pixels_weights(call, conv);
    } else if (conv->by_winograd) {
        dq_qconv_winograd_columns(call, conv);
    } else if (conv->by_lanes) {
        dq_qconv_lanes_columns(call, conv);
    } else {
        run.packed =
            dq_qweights_ready(call, conv->w, &conv->weights, conv->packed, scratch + conv->packed_offset);
        set_columns(&run);
    }
    run.images = (uint8_t *)scratch + conv->images_offset;
    for (run.first = 0; run.first < conv->s.batch; run.first += conv->pass) {
        run.count = conv->s.batch - run.first < conv->pass ? conv->s.batch - run.first : conv->pass;
        run_pass(&run);
    }
}
