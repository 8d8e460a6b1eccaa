/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv/qconv16_gemv.h"

#include "base/checked.h"
#include "ops/conv/conv_s16_algorithms.h"
#include "ops/matmul/gemm_s8_blocks.h"

#include <string.h>

/* MAX_OUTPUTS: maximum output positions. */
enum { MAX_OUTPUTS = 4, NR = DQ_GEMM_S16_NR, BLOCKS = DQ_GEMM_S16_BLOCKS, COLS = DQ_GEMM_S16_COLS };

bool dq_conv_s16_few_outputs_is_applicable(const void *problem, dq_reason *reason)
{
    const dq_conv_s16_problem *p = problem;
    if (!p->can_bytesplit)
        return dq_not_applicable(reason, "not 16 by 8 bits with constant, symmetric weights");
    return p->shape->out_size <= MAX_OUTPUTS ||
           dq_not_applicable(reason, "%zu output pixels, expected at most %d", p->shape->out_size,
                             MAX_OUTPUTS);
}

dq_algorithm_work dq_conv_s16_few_outputs_work(const void *problem)
{
    const dq_conv_s16_problem *p = problem;
    const dq_conv_shape *s = p->shape;
    const double windows = (double)s->batch * (double)s->group * (double)s->out_size;
    return (dq_algorithm_work){.macs = dq_conv_s16_macs(s, NR, 1),
                               .bytes =
                                   windows * (double)s->group_in * (double)s->kernel_size * sizeof(int16_t),
                               .calls = windows * (double)(s->group_out / NR + 1)};
}

/* Offset in an input channel of kernel element `tap` of output position `out`; -1: padding. */
static ptrdiff_t tap_offset(const dq_window *w, size_t out, size_t tap)
{
    ptrdiff_t at = 0, step = 1;
    for (size_t d = w->rank; d-- > 0; step *= (ptrdiff_t)w->in[d]) {
        const size_t k = tap % (size_t)w->kernel[d], o = out % (size_t)w->out[d];
        const int64_t i = (int64_t)o * w->stride[d] + (int64_t)k * w->dilation[d] - w->begin[d];
        tap /= (size_t)w->kernel[d];
        out /= (size_t)w->out[d];
        if (i < 0 || i >= w->in[d])
            return -1;
        at += (ptrdiff_t)i * step;
    }
    return at;
}

dq_status dq_qconv16_gemv_prepare(dq_op_call *call, const dq_conv_shape *s, dq_qconv16_gemv *f, dq_error *err)
{
    const size_t depth = s->group_in * s->kernel_size;
    size_t offsets, at;
    f->w = (dq_qgemm16){.strip_width = NR,
                        .matrices = s->group,
                        .n = s->group_out,
                        .outer = depth,
                        .inner = 1,
                        .matrix_step = s->group_out * depth,
                        .lane_step = depth,
                        .outer_step = 1};
    DQ_TRY(dq_qgemm16_prepare(call, &f->w, err));
    f->row = 2 * f->w.pairs;
    f->offsets = dq_mul_size(s->out_size, s->kernel_size, &offsets)
                     ? DQ_NEW_ARRAY(call->arena, offsets, ptrdiff_t)
                     : NULL;
    if (!f->offsets ||
        !dq_reserve_size(&call->worker_scratch_size, MAX_OUTPUTS * f->row, sizeof(int16_t), DQ_ALIGN, &at))
        return dq_no_memory(err, SIZE_MAX, "the input under a convolution's windows");
    for (size_t i = 0; i < offsets; i++)
        f->offsets[i] = tap_offset(&s->window, i / s->kernel_size, i % s->kernel_size);
    return DQ_OK;
}

/* ---- Run ----------------------------------------------------------------------------------------------- */

typedef struct task {
    const dq_qgemm16_run *run;
    const dq_conv_shape *s;
    const dq_qconv16_gemv *f;
    dq_partition cut; /* of the run among threads */
} task;

static void gather(const task *t, size_t image, size_t group, int16_t *to)
{
    const dq_conv_shape *s = t->s;
    const dq_tensor *x = t->run->call->in[DQ_Q16_X];
    const uint16_t sign_xor = x->dtype == DQ_UINT16 ? 0x8000 : 0;
    const int16_t pad = (int16_t)dq_qgemm16_zero(t->run->call->in[DQ_Q16_X_ZERO], 0);
    for (size_t o = 0; o < s->out_size; o++, to += t->f->row) {
        const uint16_t *from =
            (const uint16_t *)x->data + (image * s->in_channels + group * s->group_in) * s->in_size;
        const ptrdiff_t *offset = t->f->offsets + o * s->kernel_size;
        size_t n = 0;
        for (size_t c = 0; c < s->group_in; c++, from += s->in_size)
            for (size_t k = 0; k < s->kernel_size; k++)
                to[n++] = offset[k] < 0 ? pad : (int16_t)(from[offset[k]] ^ sign_xor);
        to[t->f->row - 1] = n < t->f->row ? 0 : to[t->f->row - 1];
    }
}

/* Computes up to three panels of channels for all output positions; the output is NCHW. */
static void run_panels(const task *t, size_t image, size_t group, size_t panel, size_t panels,
                       const int16_t *rows)
{
    const dq_op_call *call = t->run->call;
    const size_t first = panel * NR, left = t->f->w.n - first, each = t->s->out_size;
    double workspace[3 * COLS];
    uint16_t qvalues[COLS], transposed[MAX_OUTPUTS * COLS];
    dq_q16_tiles tiles;
    dq_q16_sums s = dq_qgemm16_sums(call);
    s.rows = s.col_step = 1;
    s.cols = left < panels * NR ? left : panels * NR;
    s.sums = tiles.sums[0];
    s.extra = tiles.extra[0];
    dq_q16_terms terms = dq_q16_terms_in(workspace, COLS);
    dq_qgemm16_terms(t->run, group, first, s.cols, &terms);
    dq_q16_sums_by(call, t->run->factor, &terms, 0, group * t->f->w.n + first, &s);
    for (size_t o = 0; o < each; o++) {
        dq_qgemm16_row(t->run, group, panel, panels, rows + o * t->f->row, &tiles);
        call->kernels->requantize_s64(&s, qvalues);
        for (size_t j = 0; j < s.cols; j++)
            transposed[j * each + o] = qvalues[j];
    }
    dq_tensor *y = call->out[0];
    const size_t channel = image * t->s->out_channels + group * t->s->group_out + first;
    dq_qgemm16_store(y->dtype, y->data, channel * each, s.cols * each, transposed);
}

static void run_tasks(void *arg, size_t begin, size_t end, unsigned worker)
{
    const task *t = arg;
    const dq_qconv16_gemv *f = t->f;
    int16_t *rows = dq_call_worker_scratch(t->run->call, worker);
    size_t gathered = SIZE_MAX;
    for (size_t i = begin; i < end; i++) {
        size_t panel, last;
        const size_t rest = dq_qgemm16_task(&f->w, &t->cut, i, BLOCKS, &panel, &last);
        const size_t image = rest / t->s->group, group = rest % t->s->group;
        if (gathered != rest)
            gather(t, image, group, rows);
        gathered = rest;
        for (size_t n; panel < last; panel += n) {
            n = last - panel < BLOCKS ? last - panel : BLOCKS;
            run_panels(t, image, group, panel, n, rows);
        }
    }
}

void dq_qconv16_gemv_run(const dq_op_call *call, const dq_conv_shape *s, const dq_qconv16_gemv *f)
{
    const dq_qgemm16_run begun = dq_qgemm16_begin(call, &f->w);
    task t = {.run = &begun, .s = s, .f = f};
    t.cut = dq_qgemm16_cut(&f->w, call->threads, s->batch * s->group, BLOCKS);
    const size_t products = s->out_size * f->w.panels * NR * f->row / t.cut.parts;
    dq_parallel(call->threads, dq_partition_count(&t.cut), dq_gemm_s8_grain(products), run_tasks, &t);
}
