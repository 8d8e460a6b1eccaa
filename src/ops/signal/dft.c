/* SPDX-License-Identifier: Apache-2.0 */
/* DFT: Fourier transform along an axis. STFT: of windows that slide over a signal. The last axis holds real
 * and imaginary part, or the real part only. STFT accepts real signals without that axis, although the
 * standard requires it: PyTorch exports them so, and ONNX Runtime accepts them. */
#include "base/checked.h"
#include "ops/signal/fourier.h"

#include <inttypes.h>

typedef struct state {
    dq_fourier fourier;
    bool inverse, onesided;
    size_t parts;            /* numbers of an input element: 1 or 2 */
    size_t n, bins;          /* length of the transform; elements of a spectrum that are read or written */
    size_t in_length, inner; /* length of the axis; its stride, without the parts */
    size_t step, frames;     /* STFT */
} state;

static dq_status read_scalar(const dq_op_call *call, uint32_t i, int64_t absent, int64_t *to, dq_error *err)
{
    const dq_tensor *t = dq_call_in(call, i);
    *to = absent;
    if (!t)
        return DQ_OK;
    if (t->count != 1)
        return dq_call_fail_input(call, err, i, "has %zu elements, expected a scalar", t->count);
    DQ_TRY(dq_call_need(call, i));
    *to = dq_tensor_get_int(t, 0);
    return DQ_OK;
}

static dq_status check_parts(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    char text[DQ_SHAPE_TEXT];
    if (in->rank < 2 || in->dims[in->rank - 1] < 1 || in->dims[in->rank - 1] > 2)
        return dq_call_fail_input(call, err, 0, "has shape %s, expected signals and a last axis of 1 or 2",
                                  dq_shape_text(in->rank, in->dims, text));
    return DQ_OK;
}

static dq_status make(dq_op_call *call, state *s, dq_error *err)
{
    size_t doubles;
    if (s->n == 0)
        return DQ_OK;
    DQ_TRY(dq_fourier_make(&s->fourier, s->n, call->arena, err));
    if (!dq_add_size(2 * s->n, s->fourier.work, &doubles) ||
        !dq_mul_size(doubles, sizeof(double), &call->worker_scratch_size) ||
        !dq_align_size(call->worker_scratch_size, DQ_ALIGN, &call->worker_scratch_size))
        return dq_call_fail(call, err, DQ_OUT_OF_MEMORY, "wants more memory than there can be");
    return DQ_OK;
}

/* ---- DFT ----------------------------------------------------------------------------------------------- */

static dq_status read_dft(const dq_op_call *call, state *s, size_t *axis, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    int64_t value, length;
    DQ_TRY(check_parts(call, err));
    if (call->version < 20)
        value = dq_node_int(call->node, "axis", 1);
    else
        DQ_TRY(read_scalar(call, 2, -2, &value, err));
    if (!dq_axis(value, in->rank, axis) || *axis + 1 == in->rank)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "axis %" PRId64 " is not one of the signals of an input of rank %u", value,
                            in->rank);
    *s = (state){.inverse = dq_node_int(call->node, "inverse", 0) != 0,
                 .onesided = dq_node_int(call->node, "onesided", 0) != 0,
                 .parts = (size_t)in->dims[in->rank - 1],
                 .in_length = (size_t)in->dims[*axis],
                 .inner = dq_dims_product(in->dims, *axis + 1, in->rank - 1u)};
    int64_t whole = in->dims[*axis];
    if (s->inverse && s->onesided)
        whole = whole > 1 ? 2 * (whole - 1) : 1;
    DQ_TRY(read_scalar(call, 1, whole, &length, err));
    if (length < 1 || length > INT64_MAX / 64)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has a length of %" PRId64 ", expected 1 or more",
                            length);
    if (s->onesided && !s->inverse && s->parts == 2)
        return dq_call_fail_input(call, err, 0, "is complex, and a spectrum of one side is of real signals");
    s->n = (size_t)length;
    s->bins = s->onesided ? s->n / 2 + 1 : s->n;
    return DQ_OK;
}

static dq_status dft_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    state s = {0};
    size_t axis;
    int64_t dims[DQ_MAX_RANK];
    DQ_TRY(read_dft(call, &s, &axis, err));
    for (size_t d = 0; d < in->rank; d++)
        dims[d] = in->dims[d];
    dims[axis] = (int64_t)(s.inverse ? s.n : s.bins);
    dims[in->rank - 1] = s.inverse && s.onesided ? 1 : 2;
    return dq_call_output(call, 0, in->dtype, in->rank, dims, err);
}

static dq_status dft_prepare(dq_op_call *call, dq_error *err)
{
    size_t axis;
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(read_dft(call, s, &axis, err));
    return make(call, s, err);
}

static void dft_line(const dq_op_call *call, size_t line, double *x)
{
    const state *s = call->state;
    const dq_tensor *in = call->in[0];
    bool real = s->inverse && s->onesided;
    size_t value = s->inverse ? s->bins : s->n, out_length = s->inverse ? s->n : s->bins,
           out_parts = real ? 1 : 2;
    size_t outer = line / s->inner, rest = line % s->inner;
    for (size_t k = 0; k < s->n; k++) {
        bool there = k < value && k < s->in_length;
        size_t at = ((outer * s->in_length + k) * s->inner + rest) * s->parts;
        x[2 * k] = there ? dq_tensor_get_double(in, at) : 0;
        x[2 * k + 1] = there && s->parts == 2 ? dq_tensor_get_double(in, at + 1) : 0;
    }
    if (real) { /* the second half is the conjugate of the first; its ends are real */
        x[1] = 0;
        for (size_t k = s->bins; k < s->n; k++) {
            x[2 * k] = x[2 * (s->n - k)];
            x[2 * k + 1] = -x[2 * (s->n - k) + 1];
        }
        if (s->n % 2 == 0)
            x[s->n + 1] = 0;
    }
    dq_fourier_run(&s->fourier, s->inverse, x, x + 2 * s->n);
    for (size_t k = 0; k < out_length; k++)
        for (size_t part = 0; part < out_parts; part++)
            dq_tensor_put_double(call->out[0],
                                 ((outer * out_length + k) * s->inner + rest) * out_parts + part,
                                 x[2 * k + part]);
}

static void dft_piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    for (size_t line = begin; line < end; line++)
        dft_line(call, line, dq_call_worker_scratch(call, worker));
}

static dq_status dft_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    const dq_tensor *out = call->out[0];
    size_t out_line = (s->inverse ? s->n : s->bins) * (size_t)out->dims[out->rank - 1];
    dq_parallel(call->threads, out->count / out_line, 1, dft_piece, &call);
    return DQ_OK;
}

const dq_op_impl dq_op_dft = {dft_infer, dft_prepare, dft_run, 0};

/* ---- STFT ---------------------------------------------------------------------------------------------- */

enum { SIGNAL, STEP, WINDOW, LENGTH };

static dq_status read_stft(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *in = call->in[SIGNAL], *window = dq_call_in(call, WINDOW);
    int64_t step, length;
    if (in->rank != 2)
        DQ_TRY(check_parts(call, err));
    if (in->rank != 2 && in->rank != 3)
        return dq_call_fail_input(call, err, SIGNAL, "has rank %u, expected 3, or 2 for real signals",
                                  in->rank);
    int64_t parts = in->rank == 3 ? in->dims[2] : 1;
    if (window && window->rank != 1)
        return dq_call_fail_input(call, err, WINDOW, "has rank %u, expected 1", window->rank);
    DQ_TRY(read_scalar(call, STEP, 1, &step, err));
    DQ_TRY(read_scalar(call, LENGTH, window ? window->dims[0] : in->dims[1], &length, err));
    if (step < 1 || length < 1 || length > in->dims[1])
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "has a step of %" PRId64 " and frames of %" PRId64
                            ", expected 1 or more and 1 to "
                            "%" PRId64 " (the signal)",
                            step, length, in->dims[1]);
    if (window && window->dims[0] != length)
        return dq_call_fail_input(call, err, WINDOW, "has %zu elements, expected %" PRId64 " (a frame)",
                                  window->count, length);
    *s = (state){.onesided = dq_node_int(call->node, "onesided", 1) != 0 && parts == 1,
                 .parts = (size_t)parts,
                 .n = (size_t)length,
                 .in_length = (size_t)in->dims[1],
                 .inner = 1,
                 .step = (size_t)step,
                 .frames = (size_t)((in->dims[1] - length) / step + 1)};
    s->bins = s->onesided ? s->n / 2 + 1 : s->n;
    return DQ_OK;
}

static dq_status stft_infer(dq_op_call *call, dq_error *err)
{
    state s = {0};
    DQ_TRY(read_stft(call, &s, err));
    const int64_t dims[4] = {call->in[SIGNAL]->dims[0], (int64_t)s.frames, (int64_t)s.bins, 2};
    return dq_call_output(call, 0, call->in[SIGNAL]->dtype, 4, dims, err);
}

static dq_status stft_prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(read_stft(call, s, err));
    return make(call, s, err);
}

static void stft_piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    const dq_tensor *window = dq_call_in(call, WINDOW);
    double *x = dq_call_worker_scratch(call, worker);
    for (size_t frame = begin; frame < end; frame++) {
        size_t first = frame / s->frames * s->in_length + frame % s->frames * s->step;
        for (size_t k = 0; k < s->n; k++) {
            double factor = window ? dq_tensor_get_double(window, k) : 1;
            size_t at = (first + k) * s->parts;
            x[2 * k] = dq_tensor_get_double(call->in[SIGNAL], at) * factor;
            x[2 * k + 1] = s->parts == 2 ? dq_tensor_get_double(call->in[SIGNAL], at + 1) * factor : 0;
        }
        dq_fourier_run(&s->fourier, false, x, x + 2 * s->n);
        for (size_t k = 0; k < 2 * s->bins; k++)
            dq_tensor_put_double(call->out[0], frame * 2 * s->bins + k, x[k]);
    }
}

static dq_status stft_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    dq_parallel(call->threads, (size_t)call->in[SIGNAL]->dims[0] * s->frames, 1, stft_piece, &call);
    return DQ_OK;
}

const dq_op_impl dq_op_stft = {stft_infer, stft_prepare, stft_run, 0};
