/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft.NhwcMaxPool of 8-bit tensors. A window of padding only gives the type's minimum. */
#include "ops/pool/q8_window.h"

#include "base/checked.h"

#include <string.h>

/* The output is computed in lines: positions along the last spatial axis, with all channels of each. */
typedef struct max_job {
    const dq_op_call *call;
    const dq_q8_window *s;
    const uint8_t *x;
    uint8_t *out;
    bool is_signed;
} max_job;

static dq_status max_infer(dq_op_call *call, dq_error *err)
{
    return dq_q8_window_infer(call, true, err);
}

/* Reserves a worker's line: the element-wise maximum of the input rows of one output line. */
static dq_status max_prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(dq_q8_window), err));
    dq_q8_window *s = call->state;
    DQ_TRY(dq_q8_window_prepare(call, true, 0, s, err));
    size_t *size = &call->worker_scratch_size;
    return dq_mul_size((size_t)s->window.in[s->window.rank - 1], s->inner, size) &&
                   dq_add_size(*size, DQ_MAX_SLACK, size)
               ? DQ_OK
               : dq_no_memory(err, SIZE_MAX, "a line of the input");
}

/* line[i] = max(line[i], x[i]). `sign_xor` maps the values to the order of uint8. */
static void join(uint8_t *restrict line, const uint8_t *restrict x, size_t n, uint8_t sign_xor)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t a = line[i] ^ sign_xor, b = x[i] ^ sign_xor;
        line[i] = (a > b ? a : b) ^ sign_xor;
    }
}

/* Reduces the input rows to their element-wise maximum. With one axis of rows, their stride is constant. */
static void join_rows(const max_job *job, const uint8_t *x, const dq_window_elements *c, dq_max_windows *w)
{
    size_t index[DQ_MAX_RANK] = {0}, at = c->base;
    if (c->rank == 1) {
        w->x = x + at;
        w->x_step = c->step[0];
        w->under = c->total;
        w->width = 0;
        job->call->kernels->max_windows_x8(w);
        w->under = 0;
        return;
    }
    memcpy(w->line, x + at, w->n);
    for (size_t i = 1; i < c->total; i++) {
        dq_window_next_element(c, index, &at);
        join(w->line, x + at, w->n, w->is_signed ? 0x80 : 0);
    }
}

/* Computes an output line. Consecutive windows completely inside the input share one kernel call. */
static void max_line(const max_job *job, size_t line, uint8_t *joined)
{
    const dq_q8_window *s = job->s;
    size_t last = s->window.rank - 1, lines = s->out_size * s->inner / s->line, first = 0, next;
    size_t width = (size_t)s->window.out[last];
    dq_window_elements c = dq_window_elements_at(s, last, line % lines);
    dq_max_windows w = {.line = joined,
                        .n = (size_t)s->window.in[last] * s->inner,
                        .rows = 1,
                        .kernel = 1,
                        .stride = 1,
                        .dilation = (size_t)s->window.dilation[last] * s->inner,
                        .is_signed = job->is_signed,
                        .out = job->out + line * s->line};
    if (c.total)
        join_rows(job, job->x + line / lines * s->in_size * s->inner, &c, &w);
    for (size_t i = 0, equal_windows; i < width; i += equal_windows, w.out += w.width) {
        w.kernel = c.total ? dq_window_elements_along(&s->window, last, i, &first) : 0;
        equal_windows = 1;
        while (s->window.stride[last] == 1 && w.kernel == (size_t)s->window.kernel[last] &&
               i + equal_windows < width &&
               dq_window_elements_along(&s->window, last, i + equal_windows, &next) == w.kernel)
            equal_windows++;
        w.width = equal_windows * s->inner;
        w.line = joined + first * s->inner;
        if (w.kernel)
            job->call->kernels->max_windows_x8(&w);
        else
            memset(w.out, w.is_signed ? 0x80 : 0, w.width);
    }
}

static void max_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    const max_job *job = arg;
    for (size_t i = begin; i < end; i++)
        max_line(job, i, dq_call_worker_scratch(job->call, worker));
}

static dq_status max_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const dq_q8_window *s = call->state;
    max_job job = {.call = call,
                   .s = s,
                   .x = call->in[0]->data,
                   .out = call->out[0] ? call->out[0]->data : NULL,
                   .is_signed = call->in[0]->dtype == DQ_INT8};
    dq_q8_window_run(call, s, s->line, max_range, &job);
    return DQ_OK;
}

const dq_op_impl dq_op_nhwc_max_pool = {max_infer, max_prepare, max_run, DQ_OP_BATCH_SEPARABLE_FIRST};
