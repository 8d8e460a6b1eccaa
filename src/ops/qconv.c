#include "ops/qconv.h"

#include "base/checked.h"

#include <string.h>

dq_status dq_qconv_infer(const dq_op_call *call, dq_qconv *conv, dq_error *err)
{
    DQ_TRY(dq_conv_shape_infer(call, conv->x, conv->w, conv->channels_last, &conv->s, err));
    DQ_TRY(dq_conv_param_check(call, conv->x_zero, false, &conv->s, err));
    DQ_TRY(dq_conv_param_check(call, conv->w_zero, true, &conv->s, err));
    return dq_conv_bias_check(call, conv->bias, &conv->s, err);
}

/* ---- Planning ----------------------------------------------------------------------------------------- */

/* Runs: positions of the kernel, or its rows when neighbours in a row are neighbours in the image, too. */
static void describe_weights(const dq_op_call *call, dq_qconv *conv)
{
    const dq_conv_shape *s = &conv->s;
    const dq_window *window = &s->window;
    dq_qweights *w = &conv->weights;
    size_t last = window->rank - 1, row = (size_t)window->kernel[last];
    bool by_rows = s->group == 1 && (window->dilation[last] == 1 || row == 1);
    w->kernel = call->kernels->qgemm;
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
    w->b.plain = dq_qgemm_plain(dq_call_constant(call, conv->w), s->out_size);
    w->matrix_step = s->group_out * w->b.col_stride;
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

static bool lay_out(dq_qconv *conv, size_t *scratch)
{
    const dq_qgemm *kernel = conv->weights.kernel;
    size_t bytes, rows = conv->s.out_size;
    conv->block_rows = dq_qgemm_block_rows(kernel);
    if (conv->block_rows > rows)
        conv->block_rows = rows ? rows : 1;
    conv->blocks = rows / conv->block_rows + (rows % conv->block_rows != 0);
    conv->pass = dq_qconv_images(conv);
    if (!dq_qweights_layout(&conv->weights))
        return false;
    conv->chunk = dq_qgemm_chunk(&conv->weights, conv->blocks * conv->pass * conv->s.group, conv->block_rows);
    conv->chunks = (conv->weights.panels + conv->chunk - 1) / conv->chunk;
    conv->images_offset = conv->packed ? 0 : conv->weights.size;
    return dq_mul_size(conv->image.size, conv->pass, &bytes) &&
           dq_add_size(bytes, conv->weights.size, &bytes) && dq_add_size(bytes, DQ_QGEMM_SLACK, scratch) &&
           dq_qscratch_layout(&conv->weights, conv->block_rows, conv->chunk, conv->block_rows * kernel->nr,
                              &conv->layout);
}

dq_status dq_qconv_prepare(dq_op_call *call, dq_qconv *conv, dq_error *err)
{
    const dq_conv_shape *s = &conv->s;
    if (s->batch * s->out_channels * s->out_size == 0)
        return DQ_OK; /* nothing to run; the rest may be of any size */
    conv->depthwise = s->group_in == 1 && s->group > 1;
    if (!dq_qimage_layout(s, conv->depthwise && !s->channels_last ? 1 : s->in_channels, &conv->image))
        return dq_no_memory(err, SIZE_MAX, "a padded image");
    if (conv->depthwise) {
        DQ_TRY(find_offsets(call, conv, s->kernel_size, 1, err));
        return s->channels_last ? dq_qconv_pixels_prepare(call, conv, err)
                                : dq_qconv_depthwise_prepare(call, conv, err);
    }
    describe_weights(call, conv);
    conv->image_signed = conv->weights.kernel->a_signed;
    size_t scratch;
    if (!lay_out(conv, &scratch))
        return dq_no_memory(err, SIZE_MAX, "packed weights and padded images");
    DQ_TRY(find_offsets(call, conv, conv->weights.b.runs, conv->weights.b.run_stride, err));
    DQ_TRY(dq_qweights_constant(call, conv->w, &conv->weights, &conv->packed, err));
    conv->images_offset = conv->packed ? 0 : conv->weights.size;
    call->scratch_size = conv->packed ? scratch - conv->weights.size : scratch;
    call->worker_scratch_size = conv->layout.size;
    return DQ_OK;
}

/* ---- A run -------------------------------------------------------------------------------------------- */

typedef struct where {
    const dq_qconv_pass *run;
    size_t image, group, first; /* image of the batch */
} where;

static void store_block(const dq_qblock *block, size_t first, size_t cols, const int32_t *c)
{
    const where *at = block->arg;
    const dq_qconv *conv = at->run->conv;
    dq_conv_sums sums = {.conv = conv,
                         .call = at->run->call,
                         .batch = at->image,
                         .channel = at->group * conv->s.group_out + first,
                         .channels = cols,
                         .first = at->first,
                         .count = block->rows,
                         .c_stride = block->w->kernel->nr,
                         .c = c,
                         .spare = (uint8_t *)block->extra};
    conv->store(&sums);
}

static void fill_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const dq_qconv_pass *run = arg;
    const dq_qconv *conv = run->conv;
    const dq_qimage *image = &conv->image;
    const dq_tensor *x = run->call->in[conv->x];
    uint8_t flip = dq_qgemm_flip(x->dtype, conv->image_signed);
    uint8_t pad = (uint8_t)dq_qconv_zero(run->call, conv->x_zero, 0) ^ flip;
    size_t x_size = conv->s.in_channels * conv->s.in_size;
    for (size_t i = begin; i < end; i++) {
        size_t number = i / image->rows, row = i % image->rows;
        dq_qimage_row(run->call->kernels, image, &conv->s,
                      (const uint8_t *)x->data + (run->first + number) * x_size, row, flip, pad,
                      run->images + number * image->size + row * image->width * image->unit);
    }
}

static void set_columns(const dq_qconv_pass *run, size_t group, dq_qblock *block)
{
    const dq_qconv *conv = run->conv;
    const dq_op_call *call = run->call;
    dq_dtype type = call->in[conv->w]->dtype;
    size_t nr = conv->weights.kernel->nr, first = block->first_panel * nr, end = block->end_panel * nr;
    end = end < conv->s.group_out ? end : conv->s.group_out;
    dq_qblock_columns(block, 0);
    for (size_t j = first; j < end; j++) {
        size_t channel = group * conv->s.group_out + j;
        block->init[j - first] = dq_qconv_bias(call, conv, channel);
        block->zero[j - first] = dq_qgemm_zero(dq_qconv_zero(call, conv->w_zero, channel), type, true);
    }
    block->a_zero = dq_qgemm_zero(dq_qconv_zero(call, conv->x_zero, 0), call->in[conv->x]->dtype,
                                  conv->weights.kernel->a_signed);
}

/* Corners of the windows, counted up rather than divided out for each. */
static void set_windows(const dq_qconv *conv, const uint8_t *image, size_t first, dq_qblock *block)
{
    const dq_window *w = &conv->s.window;
    size_t last = w->rank - 1, width = (size_t)w->out[last], column = first % width;
    size_t step = (size_t)w->stride[last] * conv->image.step[last];
    const uint8_t *corner = image + dq_qimage_corner(&conv->image, w, first);
    for (size_t i = 0; i < block->rows; i++) {
        if (column == width) {
            corner = image + dq_qimage_corner(&conv->image, w, first + i);
            column = 0;
        }
        block->row_pointers[i] = corner;
        corner += step;
        column++;
    }
}

static void run_task(const dq_qconv_pass *run, size_t task, unsigned worker)
{
    const dq_qconv *conv = run->conv;
    dq_qblock block = dq_qblock_begin(&conv->layout, dq_call_worker_scratch(run->call, worker));
    where at = {.run = run};
    size_t chunk = task % conv->chunks, rest = task / conv->chunks;
    at.first = rest % conv->blocks * conv->block_rows;
    rest /= conv->blocks;
    at.group = rest % conv->s.group;
    size_t number = rest / conv->s.group;
    at.image = run->first + number;
    block.kernels = run->call->kernels;
    block.w = &conv->weights;
    block.packed = run->packed;
    block.matrix = at.group;
    block.first_panel = chunk * conv->chunk;
    block.end_panel = conv->weights.panels - block.first_panel < conv->chunk
                          ? conv->weights.panels
                          : block.first_panel + conv->chunk;
    block.rows =
        conv->s.out_size - at.first < conv->block_rows ? conv->s.out_size - at.first : conv->block_rows;
    block.a.offsets = conv->offsets;
    block.a.runs = conv->weights.b.runs;
    block.a.run = conv->weights.b.run;
    block.store = store_block;
    block.arg = &at;
    set_windows(conv, run->images + number * conv->image.size + at.group * conv->s.group_in, at.first,
                &block);
    set_columns(run, at.group, &block);
    dq_qblock_terms(&block);
    dq_qblock_run(&block);
}

static void run_tasks(void *arg, size_t begin, size_t end, unsigned worker)
{
    for (size_t task = begin; task < end; task++)
        run_task(arg, task, worker);
}

static void run_pass(dq_qconv_pass *run)
{
    enum { PIECE = 1 << 14 };
    const dq_qconv *conv = run->conv;
    size_t row_bytes = conv->image.width * conv->image.unit;
    if (row_bytes) /* no channels: rows without bytes, of any number */
        dq_parallel(run->call->threads, run->count * conv->image.rows, PIECE / (row_bytes + 1) + 1, fill_rows,
                    run);
    if (conv->depthwise) {
        dq_qconv_pixels_run(run);
        return;
    }
    size_t products = conv->block_rows * conv->chunk * conv->weights.kernel->nr *
                      (conv->weights.b.runs * conv->weights.b.run + 1);
    dq_parallel(run->call->threads, run->count * conv->s.group * conv->blocks * conv->chunks,
                dq_qgemm_grain(products), run_tasks, run);
}

void dq_qconv_run(const dq_op_call *call, const dq_qconv *conv)
{
    if (!call->out[0] || call->out[0]->count == 0)
        return;
    if (conv->depthwise && !conv->s.channels_last) {
        dq_qconv_depthwise_run(call, conv);
        return;
    }
    dq_qconv_pass run = {.call = call, .conv = conv};
    run.packed = conv->depthwise
                     ? dq_qconv_pixels_weights(call, conv)
                     : dq_qweights_ready(call, conv->w, &conv->weights, conv->packed, call->scratch);
    run.images = (uint8_t *)call->scratch + conv->images_offset;
    for (run.first = 0; run.first < conv->s.batch; run.first += conv->pass) {
        run.count = conv->s.batch - run.first < conv->pass ? conv->s.batch - run.first : conv->pass;
        run_pass(&run);
    }
}
