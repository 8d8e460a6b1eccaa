/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft MultiHeadAttention: attention over queries, keys and values that are already projected, in
 * separate tensors or packed in one. Computed in float. */
#include "base/checked.h"
#include "ops/attention/attention_mask.h"
#include "ops/rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { QUERY, KEY, VALUE, BIAS, MASK, ATTENTION_BIAS, PAST_KEY, PAST_VALUE, PAST_LENGTH, BEAMS };
enum { OUTPUT, PRESENT_KEY, PRESENT_VALUE, SCORES };

/* Keys or values: their source and their memory. */
typedef struct half {
    dq_attention_source from;
    uint32_t past, present; /* numbers of input and output */
    size_t size, width;     /* elements of a head; of all heads */
    bool biased;
    size_t bias_at;
    size_t own_at; /* offset in scratch, if there is no float output `present` */
} half;

typedef struct state {
    size_t batch, rows, added, heads; /* added: new keys */
    size_t past, capacity;            /* keys in the past; keys that there is memory for */
    bool shared;                      /* past and present share a buffer, which is not full */
    dq_mask_kind mask;
    float scale, filter;
    bool causal;
    dq_attention_source q;
    half k, v;
    size_t q_at; /* offset in scratch */
} state;

/* ---- Planning ----------------------------------------------------------------------------------------- */

static dq_status wrong(const dq_op_call *call, uint32_t i, dq_error *err, const char *expected)
{
    char text[DQ_SHAPE_TEXT];
    return dq_call_fail_input(call, err, i, "has shape %s, expected %s",
                              dq_shape_text(call->in[i]->rank, call->in[i]->dims, text), expected);
}

/* The source of part number `part` in a tensor [batch, positions, heads, parts, size]. */
static dq_attention_source packed(uint32_t input, size_t part, size_t parts, size_t positions, size_t heads,
                                  size_t size)
{
    size_t row = heads * parts * size;
    return (dq_attention_source){input, part * size, positions * row, parts * size, row};
}

/* The source of a tensor [batch, heads, positions, size]. */
static dq_attention_source by_heads(uint32_t input, size_t positions, size_t heads, size_t size)
{
    return (dq_attention_source){input, 0, heads * positions * size, positions * size, size};
}

static dq_status read_query(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *q = call->in[QUERY];
    int64_t heads = dq_node_int(call->node, "num_heads", 0);
    bool alone = dq_call_in(call, KEY) != NULL;
    if (heads < 1)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'num_heads' is %" PRId64 ", expected 1 or more", heads);
    if (alone && (q->rank != 3 || q->dims[2] % heads != 0))
        return wrong(call, QUERY, err, "batch, sequence and a width that the heads can share");
    if (!alone && (q->rank != 5 || q->dims[2] != heads || q->dims[3] != 3))
        return wrong(call, QUERY, err, "batch, sequence, heads, 3, head size, as there are no keys");
    s->heads = (size_t)heads;
    s->batch = (size_t)q->dims[0];
    s->rows = (size_t)q->dims[1];
    s->k.size = alone ? (size_t)(q->dims[2] / heads) : (size_t)q->dims[4];
    s->q = packed(QUERY, 0, alone ? 1 : 3, s->rows, s->heads, s->k.size);
    return DQ_OK;
}

/* Reads the shapes of keys and values in separate tensors. */
static dq_status read_strided(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *k = call->in[KEY], *v = dq_call_in(call, VALUE);
    int64_t heads = (int64_t)s->heads, size = (int64_t)s->k.size, batch = (int64_t)s->batch;
    bool split = k->rank == 4;
    if (!v)
        return wrong(call, KEY, err, "batch, positions, heads, 2, head size, as there are no values");
    if (split ? k->dims[0] != batch || k->dims[1] != heads || k->dims[3] != size
              : k->rank != 3 || k->dims[0] != batch || k->dims[2] != heads * size)
        return wrong(call, KEY, err, "that of the queries, up to the number of positions");
    s->added = (size_t)k->dims[split ? 2 : 1];
    if (split ? v->rank != 4 || v->dims[0] != batch || v->dims[1] != heads || v->dims[2] != k->dims[2]
              : v->rank != 3 || v->dims[0] != batch || v->dims[1] != k->dims[1] || v->dims[2] % heads != 0)
        return wrong(call, VALUE, err, "that of the keys, up to the head size");
    s->v.size = split ? (size_t)v->dims[3] : (size_t)(v->dims[2] / heads);
    s->k.from = split ? by_heads(KEY, s->added, s->heads, s->k.size)
                      : packed(KEY, 0, 1, s->added, s->heads, s->k.size);
    s->v.from = split ? by_heads(VALUE, s->added, s->heads, s->v.size)
                      : packed(VALUE, 0, 1, s->added, s->heads, s->v.size);
    s->k.biased = s->v.biased = !split; /* [batch, heads, …] keys of another node include their bias */
    return DQ_OK;
}

static dq_status read_keys(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *k = dq_call_in(call, KEY);
    s->v.size = s->k.size;
    s->added = s->rows;
    s->k.biased = s->v.biased = true;
    if (k && k->rank != 5)
        return read_strided(call, s, err);
    if (dq_call_in(call, VALUE))
        return dq_call_fail_input(call, err, VALUE, "is given, but the values are packed with the keys");
    if (!k) {
        s->k.from = packed(QUERY, 1, 3, s->rows, s->heads, s->k.size);
        s->v.from = packed(QUERY, 2, 3, s->rows, s->heads, s->k.size);
        return DQ_OK;
    }
    if (k->dims[0] != (int64_t)s->batch || k->dims[2] != (int64_t)s->heads || k->dims[3] != 2 ||
        k->dims[4] != (int64_t)s->k.size)
        return wrong(call, KEY, err, "batch, positions, heads, 2, head size");
    s->added = (size_t)k->dims[1];
    s->k.from = packed(KEY, 0, 2, s->added, s->heads, s->k.size);
    s->v.from = packed(KEY, 1, 2, s->added, s->heads, s->k.size);
    return DQ_OK;
}

static dq_status read_past(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *past[2] = {dq_call_in(call, PAST_KEY), dq_call_in(call, PAST_VALUE)};
    const dq_tensor *length = dq_call_in(call, PAST_LENGTH);
    s->capacity = s->added;
    if (!past[0] != !past[1])
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "has a past of keys or of values, expected both or none");
    if (!past[0])
        return DQ_OK;
    for (uint32_t i = 0; i < 2; i++) {
        size_t size = i ? s->v.size : s->k.size;
        if (past[i]->rank != 4 || past[i]->dims[0] != (int64_t)s->batch ||
            past[i]->dims[1] != (int64_t)s->heads || past[i]->dims[2] != past[0]->dims[2] ||
            past[i]->dims[3] != (int64_t)size)
            return wrong(call, PAST_KEY + i, err,
                         "batch, heads, positions, head size, with as many positions each");
    }
    s->past = (size_t)past[0]->dims[2];
    s->capacity = s->past + s->added;
    if (!length)
        return DQ_OK;
    s->shared = true;
    s->capacity = s->past;
    s->past = 0;
    if (length->count != 1)
        return wrong(call, PAST_LENGTH, err, "one element");
    return s->capacity >= s->added ? DQ_OK : wrong(call, PAST_KEY, err, "capacity for all new positions");
}

static dq_status read_mask(const dq_op_call *call, const state *s, size_t keys, dq_mask_kind *kind,
                           dq_error *err)
{
    DQ_TRY(dq_mask_infer(call, MASK, s->batch, s->rows, keys, kind, err));
    if (*kind == DQ_MASK_SPANS || *kind == DQ_MASK_SQUARE)
        return wrong(call, MASK, err, "lengths, or a mask of two or three axes");
    return dq_mask_check_bias(call, ATTENTION_BIAS, s->batch, s->heads, s->rows, keys, err);
}

static dq_status read_all(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *bias = dq_call_in(call, BIAS);
    DQ_TRY(read_query(call, s, err));
    DQ_TRY(read_keys(call, s, err));
    DQ_TRY(read_past(call, s, err));
    s->k.past = PAST_KEY;
    s->v.past = PAST_VALUE;
    s->k.present = PRESENT_KEY;
    s->v.present = PRESENT_VALUE;
    s->k.width = s->heads * s->k.size;
    s->v.width = s->heads * s->v.size;
    s->k.bias_at = s->k.width;
    s->v.bias_at = 2 * s->k.width;
    if (bias && (bias->rank != 1 || (size_t)bias->dims[0] != 2 * s->k.width + s->v.width))
        return wrong(call, BIAS, err, "one element for each of queries, keys and values");
    if (dq_call_in(call, BEAMS))
        return dq_call_fail(call, err, DQ_UNSUPPORTED,
                            "has input %d 'cache_indirection', which is not implemented", BEAMS);
    return s->shared ? DQ_OK : read_mask(call, s, s->capacity, &s->mask, err);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    state s = {0};
    DQ_TRY(read_all(call, &s, err));
    dq_dtype type = call->in[QUERY]->dtype;
    int64_t b = (int64_t)s.batch, n = (int64_t)s.heads, rows = (int64_t)s.rows, keys = (int64_t)s.capacity;
    bool scores = call->out_count > SCORES && call->out[SCORES];
    if (s.shared && scores) {
        DQ_TRY(dq_call_need(call, PAST_LENGTH));
        keys = dq_tensor_get_int(call->in[PAST_LENGTH], 0) + (int64_t)s.added;
    }
    DQ_TRY(dq_call_output(call, OUTPUT, type, 3, (int64_t[]){b, rows, (int64_t)s.v.width}, err));
    if (scores) {
        dq_dtype own = call->out[SCORES]->dtype == DQ_UNDEFINED ? type : call->out[SCORES]->dtype;
        DQ_TRY(dq_call_output(call, SCORES, own, 4, (int64_t[]){b, n, rows, keys}, err));
    }
    keys = (int64_t)s.capacity;
    DQ_TRY(dq_call_output(call, PRESENT_KEY, type, 4, (int64_t[]){b, n, keys, (int64_t)s.k.size}, err));
    return dq_call_output(call, PRESENT_VALUE, type, 4, (int64_t[]){b, n, keys, (int64_t)s.v.size}, err);
}

static dq_tensor *present_of(const dq_op_call *call, const half *h)
{
    return h->present < call->out_count ? call->out[h->present] : NULL;
}

static bool own_buffer(const dq_op_call *call, const half *h)
{
    return !present_of(call, h) || present_of(call, h)->dtype != DQ_FLOAT;
}

/* Whether rows of an input are read without a copy: they are float and need no bias. */
static bool is_read_directly(const dq_op_call *call, const dq_attention_source *from, bool biased)
{
    return call->in[from->input]->dtype == DQ_FLOAT && !(biased && dq_call_in(call, BIAS));
}

static bool half_is_read_directly(const dq_op_call *call, const half *h)
{
    return !present_of(call, h) && !dq_call_in(call, h->past) && is_read_directly(call, &h->from, h->biased);
}

/* Positions of keys (values) that are concatenated in scratch; 0 if they need no scratch. */
static size_t joined_stride(const dq_op_call *call, const half *h, size_t positions)
{
    return own_buffer(call, h) && !half_is_read_directly(call, h) ? positions : 0;
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    size_t rows, positions;
    DQ_TRY(read_all(call, s, err));
    s->filter = dq_node_float(call->node, "mask_filter_value", -10000.0f);
    s->causal = dq_node_int(call->node, "unidirectional", 0) != 0;
    s->scale = dq_node_float(call->node, "scale", 0);
    if (s->scale == 0)
        s->scale = 1 / sqrtf((float)s->k.size);
    if (!dq_mul_size(s->batch, s->rows, &rows) || !dq_mul_size(s->batch, s->capacity, &positions) ||
        !dq_call_reserve(call, is_read_directly(call, &s->q, true) ? 0 : rows, s->k.width, sizeof(float),
                         &s->q_at) ||
        !dq_call_reserve(call, joined_stride(call, &s->k, positions), s->k.width, sizeof(float),
                         &s->k.own_at) ||
        !dq_call_reserve(call, joined_stride(call, &s->v, positions), s->v.width, sizeof(float),
                         &s->v.own_at))
        return dq_no_memory(err, SIZE_MAX, "queries, keys and values");
    return dq_attention_prepare(call, s->rows, s->capacity, s->k.size, s->v.size, 1, err);
}

/* ---- Running ------------------------------------------------------------------------------------------ */

static float *floats_at(const dq_op_call *call, size_t offset)
{
    return (float *)(void *)((char *)call->scratch + offset);
}

typedef struct job {
    const dq_op_call *call;
    const state *s;
    size_t past;
    dq_mask mask;
} job;

/* Memory of the concatenated keys (values), [batch, heads, capacity, size]. */
static float *joined(const job *j, const half *h)
{
    return own_buffer(j->call, h) ? floats_at(j->call, h->own_at) : present_of(j->call, h)->data;
}

static void join_head(const job *j, const half *h, size_t batch, size_t head)
{
    const state *s = j->s;
    const dq_op_call *call = j->call;
    const dq_tensor *past = dq_call_in(call, h->past), *bias = h->biased ? dq_call_in(call, BIAS) : NULL;
    dq_tensor *present = present_of(call, h);
    size_t number = batch * s->heads + head, all = s->capacity * h->size;
    float *to = joined(j, h) + number * all;
    const bool same = past && present && past->data == present->data;
    if (past && past->data != joined(j, h)) {
        size_t n = (s->shared ? s->capacity : j->past) * h->size;
        dq_load_floats(call->kernels, past->dtype, past->data, number * n, n, to);
    }
    for (size_t t = 0; t < s->added; t++)
        dq_attention_load(call, &h->from, (dq_attention_position){batch, head, t}, h->size, bias,
                          h->bias_at + head * h->size, to + (j->past + t) * h->size);
    if (present && present->dtype != DQ_FLOAT) {
        const size_t from = same ? j->past * h->size : 0, n = same ? s->added * h->size : all;
        dq_store_from_floats(call->kernels, present->dtype, present->data, number * all + from, n, to + from,
                             false);
    }
}

static void join_heads(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const state *s = j->s;
    float *q = floats_at(j->call, s->q_at);
    const bool with_k = !half_is_read_directly(j->call, &s->k),
               with_v = !half_is_read_directly(j->call, &s->v);
    const size_t rows = is_read_directly(j->call, &s->q, true) ? 0 : s->rows;
    for (size_t i = begin; i < end; i++) {
        size_t batch = i / s->heads, head = i % s->heads;
        if (with_k)
            join_head(j, &s->k, batch, head);
        if (with_v)
            join_head(j, &s->v, batch, head);
        for (size_t t = 0; t < rows; t++)
            dq_attention_load(j->call, &s->q, (dq_attention_position){batch, head, t}, s->k.size,
                              dq_call_in(j->call, BIAS), head * s->k.size, q + (i * s->rows + t) * s->k.size);
    }
}

static dq_attention_operand direct_operand(const dq_op_call *call, const dq_attention_source *from)
{
    return (dq_attention_operand){dq_data(call->in[from->input], float) + from->base, from->batch, from->head,
                                  from->row};
}

static dq_attention_operand joined_rows(const job *j, const half *h)
{
    size_t head = j->s->capacity * h->size;
    if (half_is_read_directly(j->call, h))
        return direct_operand(j->call, &h->from);
    return (dq_attention_operand){joined(j, h), j->s->heads * head, head, h->size};
}

static dq_attention_operand queries(const job *j)
{
    const state *s = j->s;
    size_t head = s->rows * s->k.size;
    if (is_read_directly(j->call, &s->q, true))
        return direct_operand(j->call, &s->q);
    return (dq_attention_operand){floats_at(j->call, s->q_at), s->heads * head, head, s->k.size};
}

static void add_mask(const void *arg, const dq_attention_row *row)
{
    const job *j = arg;
    dq_mask_add(&j->mask, row);
}

static void put_scores(const void *arg, const dq_attention_row *row)
{
    const job *j = arg;
    dq_tensor *to = j->call->out[SCORES];
    size_t at = ((row->batch * j->s->heads + row->head) * j->s->rows + row->row) * j->mask.keys;
    dq_store_from_floats(j->call->kernels, to->dtype, to->data, at, j->mask.keys, row->scores, false);
}

static dq_status begin(const dq_op_call *call, job *j, dq_error *err)
{
    const state *s = call->state;
    const dq_tensor *length = s->shared ? call->in[PAST_LENGTH] : NULL, *mask = dq_call_in(call, MASK);
    int64_t value = length ? dq_tensor_get_int(length, 0) : 0;
    if (length && (value < 0 || (size_t)value > s->capacity - s->added))
        return dq_call_fail(call, err, DQ_BAD_INPUT,
                            "input %d is a past of %" PRId64 " positions, expected 0 to %zu", PAST_LENGTH,
                            value, s->capacity - s->added);
    j->call = call;
    j->s = s;
    j->past = length ? (size_t)value : s->past;
    j->mask = (dq_mask){.kind = s->mask,
                        .data = mask ? mask->data : NULL,
                        .batch = s->batch,
                        .rows = s->rows,
                        .keys = j->past + s->added,
                        .past = j->past,
                        .filter = s->filter,
                        .causal = s->causal,
                        .bias = dq_call_in(call, ATTENTION_BIAS)};
    return s->shared ? read_mask(call, s, j->mask.keys, &j->mask.kind, err) : DQ_OK;
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const state *s = call->state;
    job j;
    DQ_TRY(begin(call, &j, err));
    dq_attention a = {.batch = s->batch,
                      .heads = s->heads,
                      .rows = s->rows,
                      .keys = j.mask.keys,
                      .heads_per_kv = 1,
                      .size = s->k.size,
                      .v_size = s->v.size,
                      .scale = s->scale,
                      .q = queries(&j),
                      .k = joined_rows(&j, &s->k),
                      .v = joined_rows(&j, &s->v),
                      .out = call->out[OUTPUT],
                      .out_batch = s->rows * s->v.width,
                      .out_head = s->v.size,
                      .out_row = s->v.width,
                      .bias = add_mask,
                      .on_scores = call->out_count > SCORES && call->out[SCORES] ? put_scores : NULL,
                      .scores_stage = DQ_ATTENTION_BIASED,
                      .arg = &j};
    dq_parallel(call->threads, s->batch * s->heads, 1, join_heads, &j);
    dq_attention_run(call, &a);
    return DQ_OK;
}

const dq_op_impl dq_op_multi_head_attention = {infer, prepare, run,
                                               DQ_OP_PAST_AT(PAST_KEY) | DQ_OP_IDEMPOTENT};
