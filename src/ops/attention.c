/* com.microsoft Attention: self-attention with its projection to queries, keys and values. Computed in float.
 */
#include "ops/float_matmul.h"
#include "ops/self_attention.h"

enum { INPUT, WEIGHTS, BIAS, MASK, PAST, ATTENTION_BIAS, PAST_LENGTH };
static const dq_self_inputs inputs = {.input = INPUT,
                                      .weights = WEIGHTS,
                                      .bias = BIAS,
                                      .mask = MASK,
                                      .past = PAST,
                                      .attention_bias = ATTENTION_BIAS,
                                      .past_length = PAST_LENGTH};

typedef struct state {
    dq_fmm mm;
    dq_self_attention attention;
} state;

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_self_attention s = {0};
    return dq_self_attention_infer(call, &inputs, &s, err);
}

static void pack_input(const void *arg, size_t batch, size_t row, size_t count, void *to)
{
    (void)batch;
    const dq_op_call *call = arg;
    const state *s = call->state;
    const dq_tensor *x = call->in[INPUT];
    dq_fmm_pack_strided(x->data, x->dtype, row * s->mm.k, s->mm.k, 1, count, DQ_FMM_ROWS, s->mm.k, to);
}

static void pack_weights(const void *arg, size_t batch, size_t col, size_t count, void *to)
{
    (void)batch;
    const dq_op_call *call = arg;
    const state *s = call->state;
    const dq_tensor *w = call->in[WEIGHTS];
    dq_fmm_pack_strided(w->data, w->dtype, col, 1, s->mm.n, count, DQ_FMM_COLS, s->mm.k, to);
}

static void store(const void *arg, size_t batch, size_t row, size_t col, size_t rows, size_t cols,
                  const void *tile)
{
    (void)batch;
    const dq_op_call *call = arg;
    const state *s = call->state;
    const dq_tensor *bias = dq_call_in(call, BIAS);
    float *to = dq_self_attention_projected(call, &s->attention);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            to[(row + i) * s->mm.n + col + j] = ((const float *)tile)[i * DQ_FMM_COLS + j] +
                                                (bias ? (float)dq_tensor_get_double(bias, col + j) : 0);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    dq_self_attention *a = &s->attention;
    DQ_TRY(dq_self_attention_infer(call, &inputs, a, err));
    s->mm = (dq_fmm){.type = DQ_FLOAT,
                     .batches = 1,
                     .m = a->batch * a->rows,
                     .n = 2 * a->width + a->v_width,
                     .k = a->input,
                     .pack_a = pack_input,
                     .pack_b = pack_weights,
                     .store = store};
    DQ_TRY(dq_fmm_prepare(call, &s->mm, err));
    return dq_self_attention_prepare(call, a, err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const state *s = call->state;
    dq_fmm_run(call, &s->mm, call);
    return dq_self_attention_run(call, &s->attention, err);
}

const dq_op_impl dq_op_ms_attention = {infer, prepare, run, 0};
