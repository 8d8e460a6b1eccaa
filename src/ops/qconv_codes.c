/* Depthwise convolutions to codes, plane by plane, without sums in between (dq_qconv_codes_fn).
 *
 * Rows of a padded plane follow each other so closely that the padding before a row is also that behind the
 * row before it. A window's taps are then at the same distances from it everywhere, and all windows of some
 * rows are taken as one row; what comes of windows that begin in one row and end in the next is left out when
 * the codes are put in their place. Where rows of windows are apart by more than one, so are the rows that
 * follow each other.
 *
 * Weights are taken with their zero point away. Those of neighbours in a row become one tap as far as it
 * holds them; what is left goes to further taps. */
#include "base/checked.h"
#include "ops/qconv.h"

#include <string.h>

enum { ALIGN = 64, SHORT = 16, CODES = 4096 /* about as many are put in place together */ };
/* What taps and groups hold. DQ_QCONV_TAPS_MOST taps are enough for SIZE_MOST weights: three hold any. */
enum { TAP_MOST = 128, GROUP_MOST = 257, SIZE_MOST = DQ_QCONV_TAPS_MOST / 3 };

bool dq_qconv_codes_suits(const dq_op_call *call, const dq_qconv *conv)
{
    const dq_conv_shape *s = &conv->s;
    const dq_window *w = &s->window;
    return conv->by_planes && conv->codes && call->kernels->qconv_codes != dq_qconv_codes_c && w->rank == 2 &&
           w->stride[1] <= 2 && w->dilation[1] == 1 && s->kernel_size <= SIZE_MOST;
}

/* ---- Weights ------------------------------------------------------------------------------------------ */

/* A tap before it is known how far rows are apart. */
typedef struct tap {
    uint8_t row, column;
    int8_t w[2];
} tap;

/* The weights of an output channel. */
typedef struct channel {
    int32_t sum; /* of all */
    uint8_t count, groups, sizes[DQ_QCONV_TAPS_MOST];
    tap taps[DQ_QCONV_TAPS_MOST];
} channel;

static int bounded(int value, int lo, int hi)
{
    return value < lo ? lo : value > hi ? hi : value;
}

/* The taps of n weights beside each other. */
static void take_row(channel *c, int *w, size_t n, size_t row)
{
    for (size_t i = 0; i < n; i++)
        while (w[i]) {
            int first = bounded(w[i], INT8_MIN, INT8_MAX), second = 0;
            if (i + 1 < n)
                second = bounded(w[i + 1], -TAP_MOST - (first < 0 ? first : 0),
                                 first > 0 ? TAP_MOST - first : INT8_MAX);
            c->taps[c->count++] = (tap){(uint8_t)row, (uint8_t)i, {(int8_t)first, (int8_t)second}};
            w[i] -= first;
            if (i + 1 < n)
                w[i + 1] -= second;
        }
}

static int size_of(const tap *t)
{
    return (t->w[0] < 0 ? -t->w[0] : t->w[0]) + (t->w[1] < 0 ? -t->w[1] : t->w[1]);
}

/* Shares taps, the largest first, out to groups, which get about as many each: whether there is room. */
static bool share(channel *c, size_t groups)
{
    tap taps[DQ_QCONV_TAPS_MOST];
    uint8_t group[DQ_QCONV_TAPS_MOST];
    int full[DQ_QCONV_TAPS_MOST] = {0};
    size_t most = (c->count + groups - 1) / groups, at = 0;
    memset(c->sizes, 0, groups);
    for (size_t i = 0; i < c->count; i++) {
        size_t least = groups;
        for (size_t g = 0; g < groups; g++)
            if (c->sizes[g] < most && (least == groups || full[g] < full[least]))
                least = g;
        full[least] += size_of(&c->taps[i]);
        if (full[least] > GROUP_MOST)
            return false;
        group[i] = (uint8_t)least;
        c->sizes[least]++;
    }
    for (size_t g = 0; g < groups; g++)
        for (size_t i = 0; i < c->count; i++)
            if (group[i] == g)
                taps[at++] = c->taps[i];
    memcpy(c->taps, taps, at * sizeof *taps);
    c->groups = (uint8_t)groups;
    return true;
}

static void sort_taps(channel *c)
{
    for (size_t i = 1; i < c->count; i++) {
        tap here = c->taps[i];
        size_t to = i;
        for (; to > 0 && size_of(&c->taps[to - 1]) < size_of(&here); to--)
            c->taps[to] = c->taps[to - 1];
        c->taps[to] = here;
    }
}

/* As few groups as hold them. */
static void group_taps(channel *c)
{
    int sum = 0;
    for (size_t i = 0; i < c->count; i++)
        sum += size_of(&c->taps[i]);
    c->groups = c->count > 0;
    c->sizes[0] = c->count;
    if (sum <= GROUP_MOST)
        return;
    sort_taps(c);
    for (size_t groups = (size_t)(sum + GROUP_MOST - 1) / GROUP_MOST; !share(c, groups); groups++)
        ;
}

/* A channel as it is kept, so that it takes few lines of a cache. */
typedef struct kept {
    int32_t sum;
    uint8_t count, groups;
    tap taps[]; /* the last one of each group has LAST added to its row */
} kept;

enum { LAST = 0x80 };

static size_t kept_size(size_t weights)
{
    return sizeof(kept) + 3 * weights * sizeof(tap);
}

static void keep(const channel *c, kept *to)
{
    to->sum = c->sum;
    to->count = c->count;
    to->groups = c->groups;
    memcpy(to->taps, c->taps, c->count * sizeof *to->taps);
    for (size_t g = 0, at = 0; g < c->groups; g++) {
        at += c->sizes[g];
        to->taps[at - 1].row |= LAST;
    }
}

/* What channels look like, and tells their packed form apart from others of the same weights. */
typedef struct form {
    size_t channels, rows, width; /* of kernels */
    int32_t zero, is_signed;
} form;

/* Of weights that begin at w. */
static void take_channel(const form *f, const uint8_t *w, int32_t zero, kept *to)
{
    int row[SIZE_MOST];
    channel made, *c = &made;
    c->count = 0;
    c->sum = 0;
    for (size_t y = 0; y < f->rows; y++, w += f->width) {
        for (size_t i = 0; i < f->width; i++) {
            row[i] = (f->is_signed ? (int8_t)w[i] : w[i]) - zero;
            c->sum += row[i];
        }
        take_row(c, row, f->width, y);
    }
    group_taps(c);
    keep(c, to);
}

static kept *kept_of(void *packed, const form *f, size_t number)
{
    return (kept *)(void *)((char *)packed + number * kept_size(f->rows * f->width));
}

static void make(void *packed, const dq_tensor *from, const void *key)
{
    const form *f = key;
    const uint8_t *w = from->data;
    for (size_t j = 0; j < f->channels; j++, w += f->rows * f->width)
        take_channel(f, w, f->zero, kept_of(packed, f, j));
}

static form form_of(const dq_op_call *call, const dq_qconv *conv)
{
    const dq_window *w = &conv->s.window;
    return (form){.channels = conv->s.out_channels,
                  .rows = (size_t)w->kernel[0],
                  .width = (size_t)w->kernel[1],
                  .is_signed = call->in[conv->w]->dtype == DQ_INT8};
}

/* Whether weights and their one zero point are known now. */
static bool are_constant(const dq_op_call *call, const dq_qconv *conv)
{
    if (!dq_call_constant(call, conv->w) ||
        (dq_call_in(call, conv->w_zero) && !dq_call_constant(call, conv->w_zero)))
        return false;
    for (size_t j = 1; j < conv->s.out_channels; j++)
        if (dq_qconv_zero(call, conv->w_zero, j) != dq_qconv_zero(call, conv->w_zero, 0))
            return false;
    return true;
}

/* Taps as the kernel wants them. */
static dq_qconv_taps taps_of(const dq_qconv *conv, const kept *c, dq_qconv_tap *taps, uint8_t *sizes)
{
    const dq_window *w = &conv->s.window;
    const size_t sets = (size_t)w->stride[0], down = (size_t)w->dilation[0];
    for (size_t i = 0, g = 0, first = 0; i < c->count; i++) {
        size_t row = (c->taps[i].row & ~(size_t)LAST) * down, set = 0;
        if (sets > 1) {
            set = row % sets;
            row /= sets;
        }
        taps[i].offset =
            (ptrdiff_t)(set * conv->to_codes.set + row * conv->to_codes.pitch + c->taps[i].column);
        memcpy(taps[i].w, c->taps[i].w, sizeof taps[i].w);
        if (c->taps[i].row & LAST) {
            sizes[g++] = (uint8_t)(i + 1 - first);
            first = i + 1;
        }
    }
    return (dq_qconv_taps){.taps = taps, .sizes = sizes, .groups = c->groups};
}

/* ---- Planning ----------------------------------------------------------------------------------------- */

/* Elements of a row of x that windows meet. */
static size_t row_of(const dq_qconv *conv)
{
    const dq_window *w = &conv->s.window;
    size_t begin = (size_t)w->begin[1], extent = conv->image.extent[1], n = (size_t)w->in[1];
    return begin >= extent ? 0 : n < extent - begin ? n : extent - begin;
}

dq_status dq_qconv_codes_prepare(dq_op_call *call, dq_qconv *conv, dq_error *err)
{
    const dq_window *w = &conv->s.window;
    dq_qcodes_way *way = &conv->to_codes;
    size_t begin = (size_t)w->begin[1], extent = conv->image.extent[1], sets = (size_t)w->stride[0];
    size_t step = (size_t)w->stride[1], rows = (conv->image.extent[0] + sets - 1) / sets, codes, at;
    size_t *used = &call->worker_scratch_size, size;
    bool known = are_constant(call, conv);
    begin = begin < extent ? begin : extent;
    way->pitch = begin + row_of(conv) > extent - begin ? begin + row_of(conv) : extent - begin;
    way->pitch = (way->pitch + step - 1) / step * step;
    way->across = way->pitch / step;
    way->together = CODES / way->across < (size_t)w->out[0] ? CODES / way->across : (size_t)w->out[0];
    way->together = way->together ? way->together : 1;
    /* behind each set: the end of its last row, what is read for windows that do not count, and written
     * behind short rows */
    bool fits = dq_mul_size(way->pitch, rows, &way->set) &&
                dq_add_size(way->set, extent + (DQ_QCONV_CODES_STEP + 1) * step + SHORT, &way->set) &&
                dq_mul_size(way->set, sets, &way->size) && dq_place_size(used, way->size, 1, ALIGN, &at) &&
                dq_mul_size(way->across, way->together, &codes) &&
                dq_add_size(codes, DQ_QCONV_CODES_STEP, &codes) &&
                dq_place_size(used, codes, 1, ALIGN, &way->codes_offset) &&
                dq_mul_size(conv->own, conv->s.out_channels, &call->scratch_size) &&
                dq_mul_size(conv->s.out_channels, kept_size(conv->s.kernel_size), &size) &&
                dq_place_size(&call->scratch_size, known ? 0 : size, 1, ALIGN, &conv->packed_offset);
    if (!fits)
        return dq_no_memory(err, SIZE_MAX, "a padded plane");
    form f = form_of(call, conv);
    f.zero = known ? dq_qconv_zero(call, conv->w_zero, 0) : 0;
    return known ? dq_call_pack(call, conv->w, make, &f, sizeof f, size, &conv->packed, err) : DQ_OK;
}

/* ---- A run -------------------------------------------------------------------------------------------- */

typedef struct run_state {
    const dq_op_call *call;
    const dq_qconv *conv;
    const char *channels; /* as they are kept */
    uint8_t flip, pad;
    int32_t x_zero; /* of bytes that are flipped */
} run_state;

/* Copies up to SHORT bytes; as many where `room` allows it, which takes no call. */
static inline void copy_short(uint8_t *to, const uint8_t *from, size_t n, size_t room)
{
    if (room >= SHORT)
        memcpy(to, from, SHORT);
    else
        memcpy(to, from, n);
}

/* Rows of a plane of x. Padding is there already, but for what is written over behind a short row. */
static void take_plane(const run_state *run, const uint8_t *x, uint8_t *plane)
{
    const dq_qconv *conv = run->conv;
    const dq_window *w = &conv->s.window;
    const size_t sets = (size_t)w->stride[0], n = row_of(conv), in = (size_t)w->in[1];
    const size_t begin = (size_t)w->begin[0], end = conv->image.extent[0];
    const size_t rows = begin > end ? 0 : end - begin < (size_t)w->in[0] ? end - begin : (size_t)w->in[0];
    const size_t pitch = conv->to_codes.pitch, set_size = conv->to_codes.set;
    const uint8_t flip = run->flip;
    uint8_t *row = plane + begin / sets * pitch + (size_t)w->begin[1], pads[SHORT];
    memset(pads, run->pad, sizeof pads);
    for (size_t y = 0, set = begin % sets; n && y < rows; y++, x += in) {
        uint8_t *to = row + set * set_size;
        if (n <= SHORT)
            copy_short(to, x, n, conv->s.in_size - y * in);
        else
            memcpy(to, x, n);
        for (size_t i = 0; flip && i < n; i++)
            to[i] ^= flip;
        if (n <= SHORT)
            memcpy(to + n, pads, sizeof pads);
        if (++set == sets) {
            set = 0;
            row += pitch;
        }
    }
}

/* One output channel of the plane. */
static void run_channel(const run_state *run, size_t image, size_t number, uint8_t *scratch)
{
    const dq_qconv *conv = run->conv;
    const dq_qcodes_way *way = &conv->to_codes;
    const dq_window *w = &conv->s.window;
    size_t rows = (size_t)w->out[0], width = (size_t)w->out[1];
    uint8_t *codes = scratch + way->codes_offset;
    const kept *c = (const kept *)(const void *)(run->channels + number * kept_size(conv->s.kernel_size));
    dq_qconv_tap some[DQ_QCONV_TAPS_MOST];
    uint8_t sizes[DQ_QCONV_TAPS_MOST];
    dq_qconv_taps taps = taps_of(conv, c, some, sizes);
    dq_requantize_to to;
    conv->codes(run->call, conv, image, number, &to);
    uint8_t *out = to.out;
    to.out = codes;
    taps.init = (int32_t)((uint32_t)dq_qconv_bias(run->call, conv, number) -
                          (uint32_t)run->x_zero * (uint32_t)c->sum);
    for (size_t y = 0, n; y < rows; y += n) {
        n = rows - y < way->together ? rows - y : way->together;
        run->call->kernels->qconv_codes(scratch + y * way->pitch, (size_t)w->stride[1], &taps, &to,
                                        (n - 1) * way->across + width);
        for (size_t i = 0; i < n; i++, out += width)
            if (width <= SHORT)
                copy_short(out, codes + i * way->across, width, (rows - y - i) * width);
            else
                memcpy(out, codes + i * way->across, width);
    }
}

/* Planes: an input channel of an image, with all output channels that it makes. */
static void run_planes(void *arg, size_t begin, size_t end, unsigned worker)
{
    const run_state *run = arg;
    const dq_conv_shape *s = &run->conv->s;
    const uint8_t *x = run->call->in[run->conv->x]->data;
    uint8_t *scratch = dq_call_worker_scratch(run->call, worker);
    memset(scratch, run->pad, run->conv->to_codes.size);
    for (size_t i = begin; i < end; i++) {
        take_plane(run, x + i * s->in_size, scratch);
        for (size_t j = 0; j < s->group_out; j++)
            run_channel(run, i / s->group, i % s->group * s->group_out + j, scratch);
    }
}

/* Weights that were not known before. */
static const char *take_channels(const dq_op_call *call, const dq_qconv *conv)
{
    char *channels = (char *)call->scratch + conv->packed_offset;
    const uint8_t *w = call->in[conv->w]->data;
    form f = form_of(call, conv);
    for (size_t j = 0; j < conv->s.out_channels; j++)
        take_channel(&f, w + j * conv->s.kernel_size, dq_qconv_zero(call, conv->w_zero, j),
                     kept_of(channels, &f, j));
    return channels;
}

void dq_qconv_codes_run(const dq_op_call *call, const dq_qconv *conv)
{
    dq_dtype type = call->in[conv->x]->dtype;
    int32_t zero = dq_qconv_zero(call, conv->x_zero, 0);
    run_state run = {.call = call, .conv = conv, .flip = dq_qgemm_flip(type, false)};
    run.x_zero = dq_qgemm_zero(zero, type, false);
    run.pad = (uint8_t)run.x_zero;
    run.channels = conv->packed ? conv->packed : take_channels(call, conv);
    size_t products = conv->s.out_size * conv->s.kernel_size * conv->s.group_out;
    dq_parallel(call->threads, conv->s.batch * conv->s.group, dq_qgemm_grain(products), run_planes, &run);
}
