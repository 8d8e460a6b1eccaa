/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearGlobalAveragePool, with integer sums.
 *
 * com.microsoft: Y = saturate(round(sum(X - x_zero_point) * (x_scale / (y_scale * count))) + y_zero_point),
 * each step rounded to float. The mean of a channel without elements is 0.
 *
 * dqrun: the result of the real-number formula, rounded once. The mean of a channel without elements is NaN,
 * which gives the type's minimum. */
#include "ops/quantize/exact_ratio.h"

#include <string.h>

/* Approximate additions per task. */
enum { ELEMENTS_PER_TASK = 32768 };

typedef struct global_state {
    size_t channels, size; /* channels; elements of a channel */
    bool channels_last;
} global_state;

static dq_status global_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *x = call->in[0];
    int64_t dims[DQ_MAX_RANK];
    DQ_TRY(dq_q8_check(call, 1, 2, err));
    DQ_TRY(dq_q8_check(call, 3, 4, err));
    if (x->rank < 3)
        return dq_call_fail_input(
            call, err, 0, "has %u axes, expected batch, channels and 1 or more spatial axes", x->rank);
    size_t channel = dq_node_int(call->node, "channels_last", 0) != 0 ? x->rank - 1 : 1;
    for (size_t i = 0; i < x->rank; i++)
        dims[i] = i == 0 || i == channel ? x->dims[i] : 1;
    return dq_call_output(call, 0, x->dtype, x->rank, dims, err);
}

static dq_status global_prepare(dq_op_call *call, dq_error *err)
{
    const dq_tensor *x = call->in[0];
    DQ_TRY(dq_call_state(call, sizeof(global_state), err));
    global_state *s = call->state;
    s->channels_last = dq_node_int(call->node, "channels_last", 0) != 0;
    s->channels = (size_t)x->dims[s->channels_last ? x->rank - 1 : 1];
    s->size =
        s->channels_last ? dq_dims_product(x->dims, 1, x->rank - 1) : dq_dims_product(x->dims, 2, x->rank);
    return DQ_OK;
}

/* NHWC: channels summed at a time; positions after which int32 sums are added to int64. */
enum { SIDE = 64, POSITIONS = 65536 };

typedef struct global_job {
    const global_state *s;
    const uint8_t *x;
    uint8_t *out;
    dq_q8 qx, qy;
    float ratio;
    bool exact; /* dqrun's operator: use the exact ratio `by` */
    dq_ratio by;
} global_job;

static void add_positions(const uint8_t *x, size_t positions, size_t step, size_t channels, bool is_signed,
                          int32_t *sums)
{
    for (size_t k = 0; k < positions; k++, x += step)
        if (is_signed)
            for (size_t c = 0; c < channels; c++)
                sums[c] += (int8_t)x[c];
        else
            for (size_t c = 0; c < channels; c++)
                sums[c] += x[c];
}

/* Sums eight bytes at a time (SWAR): four 16-bit sums of pairs, which hold the sums of 128 words. */
static int64_t sum_of_line(const uint8_t *x, size_t n, bool is_signed)
{
    enum { WORD = 8, WORDS = 128 }; /* bytes of a word; words per 16-bit sum */
    const uint64_t even = 0x00ff00ff00ff00ff, twos = 0x0000ffff0000ffff;
    const uint64_t sign_xor = is_signed ? 0x8080808080808080 : 0; /* adds 128 to each byte */
    int64_t sum = is_signed ? -128 * (int64_t)n : 0;
    const uint8_t *const end = x + n;
    for (size_t left = n / WORD, words; left; left -= words) {
        uint64_t pairs = 0;
        words = left < WORDS ? left : WORDS;
        for (size_t i = 0; i < words; i++, x += WORD) {
            uint64_t word;
            memcpy(&word, x, WORD);
            word ^= sign_xor;
            pairs += (word & even) + (word >> 8 & even);
        }
        pairs = (pairs & twos) + (pairs >> 16 & twos);
        sum += (int64_t)((pairs & UINT32_MAX) + (pairs >> 32));
    }
    for (; x < end; x++)
        sum += *x ^ (uint8_t)sign_xor;
    return sum;
}

static inline __attribute__((always_inline)) uint8_t global_mean(const global_job *job, int64_t sum)
{
    sum -= (int64_t)job->qx.zero * (int64_t)job->s->size;
    if (job->exact)
        return (uint8_t)(job->s->size ? dq_ratio_quantize(&job->by, &job->qy, (double)sum) : job->qy.min);
    return dq_q8_round(&job->qy, (double)((float)sum * job->ratio));
}

/* NHWC: computes outputs at … at + n - 1, which are consecutive channels. */
static void global_means(const global_job *job, const uint8_t *x, size_t at, size_t n)
{
    const global_state *s = job->s;
    int64_t sums[SIDE] = {0};
    for (size_t k = 0; k < s->size; k += POSITIONS) {
        size_t positions = s->size - k < POSITIONS ? s->size - k : POSITIONS;
        int32_t part[SIDE] = {0};
        add_positions(x + k * s->channels, positions, s->channels, n, job->qx.min < 0, part);
        for (size_t c = 0; c < n; c++)
            sums[c] += part[c];
    }
    for (size_t c = 0; c < n; c++)
        job->out[at + c] = global_mean(job, sums[c]);
}

static size_t global_pieces(const global_state *s) /* items of an image */
{
    return s->channels_last ? (s->channels + SIDE - 1) / SIDE : s->channels;
}

static void global_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const global_job *job = arg;
    const global_state *s = job->s;
    size_t pieces = global_pieces(s);
    for (size_t i = begin; i < end; i++) {
        if (!s->channels_last) {
            job->out[i] = global_mean(job, sum_of_line(job->x + i * s->size, s->size, job->qx.min < 0));
            continue;
        }
        size_t channel = i % pieces * SIDE, n = s->channels - channel < SIDE ? s->channels - channel : SIDE;
        const uint8_t *image = job->x + i / pieces * s->channels * s->size;
        global_means(job, image + channel, i / pieces * s->channels + channel, n);
    }
}

static dq_status run(const dq_op_call *call, bool exact)
{
    if (!call->out[0] || call->out[0]->count == 0)
        return DQ_OK;
    dq_dtype dtype = call->in[0]->dtype;
    global_job job = {.s = call->state,
                      .x = call->in[0]->data,
                      .out = call->out[0]->data,
                      .qx = dq_q8_read(call, 1, 2, dtype),
                      .qy = dq_q8_read(call, 3, 4, dtype)};
    job.exact = exact;
    job.by = dq_ratio_make((double)job.qx.scale, (double)job.qy.scale * (double)job.s->size);
    job.ratio = job.s->size ? job.qx.scale / (job.qy.scale * (float)job.s->size) : 0;
    size_t pieces = call->out[0]->count / job.s->channels * global_pieces(job.s);
    dq_parallel(call->threads, pieces, ELEMENTS_PER_TASK / (job.s->size + 1) + 1, global_range, &job);
    return DQ_OK;
}

static dq_status global_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    return run(call, false);
}

static dq_status exact_infer(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_q8_check_exact(call, 1, 2, err));
    DQ_TRY(dq_q8_check_exact(call, 3, 4, err));
    return global_infer(call, err);
}

static dq_status exact_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    return run(call, true);
}

const dq_op_impl dq_op_exact_global_average_pool = {exact_infer, global_prepare, exact_run,
                                                    DQ_OP_BATCH_SEPARABLE_FIRST};
const dq_op_impl dq_op_qlinear_global_average_pool = {global_infer, global_prepare, global_run,
                                                      DQ_OP_BATCH_SEPARABLE_FIRST};
