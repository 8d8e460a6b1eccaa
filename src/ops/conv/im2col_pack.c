/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv/im2col_pack.h"

#include <string.h>

enum { REACH = 1 << 30 }; /* maximum elements of an image with its padding */

bool dq_im2col_pack_fit(const dq_window *w)
{
    int64_t size = 1; /* of the image with its surroundings as far as windows reach */
    for (size_t d = 0; d < w->rank; d++) {
        int64_t steps = w->out[d] > 0 ? w->out[d] - 1 : 0, span = dq_window_span(w, d);
        int64_t begin = w->begin[d] < 0 ? -w->begin[d] : w->begin[d]; /* negative pads crop */
        if (w->in[d] > REACH || span > REACH || begin > REACH || steps > REACH / w->stride[d])
            return false;
        size *= w->in[d] + begin + steps * w->stride[d] + span;
        if (size > REACH)
            return false;
    }
    return true;
}

/* Origins of a panel's windows: coordinates, and linear offset, which may be outside the image. */
typedef struct origins {
    int32_t axis[DQ_MAX_RANK][DQ_GEMM_F32_NR], lowest[DQ_MAX_RANK], highest[DQ_MAX_RANK];
    int32_t offset[DQ_GEMM_F32_NR];
    size_t count;
} origins;

static void find_origins(const dq_window *w, size_t first, size_t count, origins *o)
{
    int64_t at[DQ_MAX_RANK];
    size_t index = first;
    for (size_t d = w->rank; d-- > 0; index /= (size_t)w->out[d])
        at[d] = (int64_t)(index % (size_t)w->out[d]);
    o->count = count;
    for (size_t j = 0; j < DQ_GEMM_F32_NR; j++) {
        int64_t offset = 0;
        for (size_t d = 0; d < w->rank; d++) {
            int64_t x = at[d] * w->stride[d] - w->begin[d];
            o->axis[d][j] = (int32_t)x;
            offset = offset * w->in[d] + x;
        }
        o->offset[j] = (int32_t)offset;
        if (j + 1 < count) /* columns after the last repeat it */
            for (size_t d = w->rank; d-- > 0 && ++at[d] == w->out[d];)
                at[d] = 0;
    }
    for (size_t d = 0; d < w->rank; d++) {
        o->lowest[d] = o->highest[d] = o->axis[d][0];
        for (size_t j = 1; j < count; j++) {
            o->lowest[d] = o->axis[d][j] < o->lowest[d] ? o->axis[d][j] : o->lowest[d];
            o->highest[d] = o->axis[d][j] > o->highest[d] ? o->axis[d][j] : o->highest[d];
        }
    }
}

/* Input offsets of one kernel element for all windows; -1: padding. The element is at `tap` along each axis,
 * and at `offset` from an origin. */
static void find_positions(const dq_window *w, const origins *o, const int32_t tap[DQ_MAX_RANK],
                           int32_t offset, int32_t at[DQ_GEMM_F32_NR])
{
    for (size_t j = 0; j < DQ_GEMM_F32_NR; j++)
        at[j] = o->offset[j] + offset;
    for (size_t d = 0; d < w->rank; d++) {
        const int32_t end = (int32_t)w->in[d], shift = tap[d];
        if (o->lowest[d] + shift >= 0 && o->highest[d] + shift < end)
            continue;
        for (size_t j = 0; j < DQ_GEMM_F32_NR; j++) {
            int32_t x = o->axis[d][j] + shift;
            at[j] = x < 0 || x >= end ? -1 : at[j];
        }
    }
    for (size_t j = o->count; j < DQ_GEMM_F32_NR; j++)
        at[j] = -1;
}

/* Packs one panel, one kernel element at a time. */
static void panel(const dq_kernels *kernels, const dq_window *w, const float *x, const origins *o,
                  size_t taps, size_t plane, size_t channels, float *to)
{
    int32_t at[DQ_GEMM_F32_NR], tap[DQ_MAX_RANK] = {0};
    for (size_t t = 0; t < taps; t++, to += DQ_GEMM_F32_NR) {
        int64_t offset = 0;
        for (size_t d = 0; d < w->rank; d++)
            offset = offset * w->in[d] + tap[d];
        find_positions(w, o, tap, (int32_t)offset, at);
        kernels->im2col_gather_f32(x, at, channels, plane, taps * DQ_GEMM_F32_NR, to);
        for (size_t d = w->rank; d-- > 0;) {
            tap[d] += (int32_t)w->dilation[d];
            if (tap[d] < dq_window_span(w, d))
                break;
            tap[d] = 0;
        }
    }
}

/* ---- Patches ------------------------------------------------------------------------------------------- */

bool dq_im2col_is_patches(const dq_window *w, size_t channels)
{
    /* Minimum stride; minimum kernel width for MAX_FEW_CHANNELS channels, and for more; width from which it
     * need not be a multiple of FOUR; FEW channels. */
    enum { MIN_STRIDE = 4, FOUR = 4, EIGHT = 8, MIN_ODD_WIDTH = 12, MAX_FEW_CHANNELS = 4 };
    const size_t last = w->rank - 1;
    const int64_t across = w->kernel[last];
    bool suits = w->rank <= 2 && w->stride[last] >= MIN_STRIDE && w->dilation[last] == 1 &&
                 across >= (channels <= MAX_FEW_CHANNELS ? FOUR : EIGHT) &&
                 (across % FOUR == 0 || across >= MIN_ODD_WIDTH);
    for (size_t d = 0; d < w->rank; d++)
        suits =
            suits && w->begin[d] == 0 && (w->out[d] - 1) * w->stride[d] + dq_window_span(w, d) <= w->in[d];
    return suits;
}

/* Packs columns first … first + count - 1 of one channel. They may span several rows of windows. */
static void patch_panel(dq_transpose_x32_fn *transpose, const dq_window *w, const float *x, size_t first,
                        size_t count, float *to)
{
    const size_t last = w->rank - 1, lines = last ? (size_t)w->kernel[0] : 1;
    const size_t width = (size_t)w->in[last], across = (size_t)w->kernel[last], each = (size_t)w->out[last];
    const size_t step = (size_t)w->stride[last];
    for (size_t y = 0; y < lines; y++, to += across * DQ_GEMM_F32_NR)
        for (size_t lane = 0, n; lane < count; lane += n) {
            const size_t row = (first + lane) / each, col = (first + lane) % each;
            const size_t at = row * (size_t)w->stride[0] + y * (size_t)w->dilation[0];
            n = each - col < count - lane ? each - col : count - lane;
            transpose((const uint32_t *)(const void *)(x + at * width + col * step), step, n, across,
                      (uint32_t *)(void *)(to + lane), DQ_GEMM_F32_NR);
        }
}

static void patch_panels(const dq_kernels *kernels, const dq_window *w, const float *x,
                         const dq_gemm_part *part, size_t taps, size_t plane, float *workspace)
{
    for (size_t j = 0; j < part->cols; j += DQ_GEMM_F32_NR) {
        const size_t left = part->cols - j, count = left < DQ_GEMM_F32_NR ? left : DQ_GEMM_F32_NR;
        float *to = workspace + j * part->k;
        if (count < DQ_GEMM_F32_NR)
            memset(to, 0, part->k * DQ_GEMM_F32_NR * sizeof *to);
        for (size_t c = 0; c < part->k / taps; c++, to += taps * DQ_GEMM_F32_NR)
            patch_panel(kernels->transpose_x32, w, x + c * plane, part->col + j, count, to);
    }
}

void dq_im2col_pack(const dq_kernels *kernels, const dq_window *w, const float *x, const dq_gemm_part *part,
                    float *workspace, dq_gemm_block_f32 *block)
{
    size_t taps = 1, plane = 1;
    for (size_t d = 0; d < w->rank; d++) {
        taps *= (size_t)w->kernel[d];
        plane *= (size_t)w->in[d];
    }
    x += part->p / taps * plane;
    const bool patches = dq_im2col_is_patches(w, part->k / taps);
    if (patches)
        patch_panels(kernels, w, x, part, taps, plane, workspace);
    for (size_t j = 0; j < part->cols && !patches; j += DQ_GEMM_F32_NR) {
        origins o;
        size_t left = part->cols - j;
        find_origins(w, part->col + j, left < DQ_GEMM_F32_NR ? left : DQ_GEMM_F32_NR, &o);
        panel(kernels, w, x, &o, taps, plane, part->k / taps, workspace + j * part->k);
    }
    block->b = workspace;
    block->b_step = DQ_GEMM_F32_NR;
    block->b_panel = DQ_GEMM_F32_NR * part->k;
}
