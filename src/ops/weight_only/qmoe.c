/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft QMoE: a mixture of experts with quantized weights. Each row of the input is routed to the k
 * experts with the highest logits; their results are weighted and added. Products have float precision,
 * unless `accuracy_level` allows less and the session honors it (ops/weight_only/weight_only.h). All sums are
 * floats.
 *
 *   h = input · fc1ᵀ + bias1
 *   gate = h, value = input · fc3ᵀ + bias3; with swiglu_fusion 1 or 2 instead, gate and value are alternating
 *          elements or halves of h
 *   swiglu: G = min(gate, limit), L = clamp(value, ±limit), h = G * sigmoid(alpha * G) * (L + beta), or
 *           h = min(gate * sigmoid(alpha * gate), limit) * (L + beta)
 *   geglu:  h = gelu(gate) * value
 *   else h = activation(h), times value if there is an fc3
 *   output = sum of weight * (h · fc2ᵀ + bias2), in the order of experts
 *
 * A weight is (q - zero point) * scale, with a scale for each row of a layer or each block of columns. */
#include "base/checked.h"
#include "base/codec.h"
#include "base/math.h"
#include "ops/rows.h"
#include "ops/weight_only/weight_only.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { INPUT, ROUTER = 1, ROUTER_WEIGHTS = 14, LAYERS = 3 };
enum { NOT_FUSED, ALTERNATING, HALVES }; /* swiglu_fusion */

typedef enum function { RELU, RELU2, GELU, SILU, SWIGLU, GEGLU, IDENTITY, FUNCTIONS } function;

typedef struct layer {
    uint32_t weights, scales, bias, zeros; /* input numbers */
    unsigned bits;
    size_t rows, cols; /* of each expert */
    size_t block, blocks;
    size_t row_bytes;
    bool by_block;     /* a scale for each block, not for each row */
    size_t zero_bytes; /* bytes of the zero points of a row if by_block, else of an expert */
} layer;

typedef struct state {
    layer layers[LAYERS]; /* fc1, fc2, fc3 */
    dq_weights products[LAYERS];
    size_t products_at[LAYERS]; /* byte offsets in the scratch */
    bool gated;                 /* there is an fc3 */
    size_t tokens, hidden, inter, experts, k;
    function function;
    int64_t fusion;
    double alpha, beta, limit;
    bool limits_result; /* the limit applies to the gate after its activation */
    bool normalize;
    /* Byte offsets in the scratch: */
    size_t chosen, weights, members, shares, gathered, first, third, middle, sums;
} state;

/* ---- Attributes --------------------------------------------------------------------------------------- */

static dq_status choose_function(const dq_op_call *call, state *s, dq_error *err)
{
    static const char *const names[] = {"relu", "relu2", "gelu", "silu", "swiglu", "geglu", "identity"};
    const char *name = dq_node_string(call->node, "activation_type", "relu");
    int i = 0;
    while (i < FUNCTIONS && strcmp(names[i], name) != 0)
        i++;
    if (i == FUNCTIONS)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'activation_type' is '%s', expected relu, relu2, gelu, silu, swiglu, "
                            "geglu or identity",
                            name);
    s->function = (function)i;
    s->fusion = dq_node_int(call->node, "swiglu_fusion", NOT_FUSED);
    if (s->fusion < NOT_FUSED || s->fusion > HALVES)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'swiglu_fusion' is %" PRId64 ", expected 0, 1 or 2", s->fusion);
    bool pairs = s->function == SWIGLU || s->function == GEGLU;
    if (!pairs)
        s->fusion = NOT_FUSED;
    s->alpha = (double)dq_node_float(call->node, "activation_alpha", 1);
    s->beta = (double)dq_node_float(call->node, "activation_beta", 0);
    s->limit = (double)dq_node_float(call->node, "swiglu_limit", INFINITY);
    s->gated = dq_call_in(call, s->layers[2].weights) != NULL;
    s->limits_result = dq_node_int(call->node, "swiglu_limit_after_activation", 0) != 0;
    if (s->function == GEGLU && s->fusion == NOT_FUSED)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "needs attribute 'swiglu_fusion' 1 or 2 for geglu");
    if (pairs && s->gated == (s->fusion != NOT_FUSED))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            s->gated ? "has weights of layer 3, which swiglu_fusion expects in layer 1"
                                     : "needs weights of layer 3 for swiglu without swiglu_fusion");
    return DQ_OK;
}

/* Refuses formats of kernels for other devices. */
static dq_status check_form(const dq_op_call *call, dq_error *err)
{
    const char *type = dq_node_string(call->node, "quant_type", "int");
    if (strcmp(type, "int") != 0)
        return dq_call_fail(call, err, DQ_UNSUPPORTED,
                            "attribute 'quant_type' is '%s', only int is supported", type);
    if (dq_node_int(call->node, "use_sparse_mixer", 0) != 0)
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "attribute 'use_sparse_mixer' is not supported");
    if (dq_node_int(call->node, "weights_prepacked", -1) > 0)
        return dq_call_fail(call, err, DQ_UNSUPPORTED,
                            "weights packed for another runtime's kernels cannot be read");
    return DQ_OK;
}

/* ---- Shapes ------------------------------------------------------------------------------------------- */

static dq_status check_shape(const dq_op_call *call, uint32_t i, size_t rank, const size_t *expected,
                             dq_error *err)
{
    const dq_tensor *t = dq_call_in(call, i);
    int64_t dims[DQ_MAX_RANK];
    char got[DQ_SHAPE_TEXT], text[DQ_SHAPE_TEXT];
    for (size_t d = 0; d < rank; d++)
        dims[d] = (int64_t)expected[d];
    if (!t || (t->rank == rank && memcmp(t->dims, dims, rank * sizeof *dims) == 0))
        return DQ_OK;
    return dq_call_fail_input(call, err, i, "has shape %s, expected %s", dq_shape_text(t->rank, t->dims, got),
                              dq_shape_text(rank, dims, text));
}

static dq_status find_tokens(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *x = call->in[INPUT], *router = call->in[ROUTER];
    int64_t k = dq_node_int(call->node, "k", 1);
    if (x->rank != 2 && x->rank != 3)
        return dq_call_fail_input(call, err, INPUT, "has rank %u, expected 2 or 3", x->rank);
    s->hidden = (size_t)x->dims[x->rank - 1];
    s->tokens = dq_dims_product(x->dims, 0, x->rank - 1);
    if (router->rank != 2)
        return dq_call_fail_input(call, err, ROUTER, "has rank %u, expected 2 (rows, experts)", router->rank);
    s->experts = (size_t)router->dims[1];
    size_t expected[] = {s->tokens, s->experts};
    DQ_TRY(check_shape(call, ROUTER, 2, expected, err));
    DQ_TRY(check_shape(call, ROUTER_WEIGHTS, 2, expected, err));
    if (k < 1 || (size_t)k > s->experts)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'k' is %" PRId64 ", expected 1 to %zu (experts)", k, s->experts);
    s->k = (size_t)k;
    s->normalize = dq_node_int(call->node, "normalize_routing_weights", 0) != 0;
    return DQ_OK;
}

static dq_status check_bits(const dq_op_call *call, layer *l, const char *name, dq_error *err)
{
    int64_t bits = dq_node_int(call->node, name, dq_node_int(call->node, "expert_weight_bits", 4));
    if (bits != 2 && bits != 4 && bits != 8)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute '%s' is %" PRId64 ", expected 2, 4 or 8",
                            dq_node_attr(call->node, name) ? name : "expert_weight_bits", bits);
    l->bits = (unsigned)bits;
    if (l->cols % (8 / l->bits) != 0)
        return dq_call_fail_input(call, err, l->weights,
                                  "has rows of %zu values, expected whole bytes of %u-bit values", l->cols,
                                  l->bits);
    l->row_bytes = l->cols / (8 / l->bits);
    return DQ_OK;
}

/* Reads and checks a layer of `rows` rows (0: the number of rows of the weights). */
static dq_status find_layer(const dq_op_call *call, const state *s, layer *l, const char *bits, size_t rows,
                            size_t cols, dq_error *err)
{
    const dq_tensor *weights = call->in[l->weights];
    int64_t block = dq_node_int(call->node, "block_size", 0);
    l->cols = cols;
    DQ_TRY(check_bits(call, l, bits, err));
    if (weights->dtype != DQ_UINT8)
        return dq_call_fail_input(call, err, l->weights, "has type %s, expected uint8",
                                  dq_dtype_get(weights->dtype)->name);
    l->rows = rows || weights->rank != 3 ? rows : (size_t)weights->dims[1];
    l->by_block = block > 0;
    l->block = l->by_block ? (size_t)block : cols ? cols : 1;
    l->blocks = l->by_block ? cols / l->block + (cols % l->block != 0) : 1;
    l->zero_bytes = ((l->by_block ? l->blocks : l->rows) + 8 / l->bits - 1) / (8 / l->bits);
    size_t shape[] = {s->experts, l->rows, l->row_bytes}, scales[] = {s->experts, l->rows, l->blocks};
    size_t by_block[] = {s->experts, l->rows, l->zero_bytes}, by_row[] = {s->experts, l->zero_bytes};
    DQ_TRY(check_shape(call, l->weights, 3, shape, err));
    DQ_TRY(check_shape(call, l->bias, 2, shape, err));
    const dq_tensor *scale = dq_call_in(call, l->scales);
    if (!scale)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "needs scales for the weights of input %u", l->weights);
    DQ_TRY(check_shape(call, l->scales, l->by_block ? 3 : 2, scales, err));
    if (dq_dtype_get(scale->dtype)->bits < 16)
        return dq_call_fail_input(call, err, l->scales, "has type %s, expected float, float16 or bfloat16",
                                  dq_dtype_get(scale->dtype)->name);
    return check_shape(call, l->zeros, l->by_block ? 3 : 2, l->by_block ? by_block : by_row, err);
}

static dq_status resolve(const dq_op_call *call, state *s, dq_error *err)
{
    s->layers[0] = (layer){.weights = 2, .scales = 3, .bias = 4, .zeros = 11};
    s->layers[1] = (layer){.weights = 5, .scales = 6, .bias = 7, .zeros = 12};
    s->layers[2] = (layer){.weights = 8, .scales = 9, .bias = 10, .zeros = 13};
    DQ_TRY(check_form(call, err));
    DQ_TRY(choose_function(call, s, err));
    DQ_TRY(find_tokens(call, s, err));
    DQ_TRY(find_layer(call, s, &s->layers[0], "fc1_expert_weight_bits", 0, s->hidden, err));
    s->inter = s->layers[0].rows;
    if (s->fusion != NOT_FUSED && s->inter % 2 != 0)
        return dq_call_fail_input(call, err, s->layers[0].weights,
                                  "has %zu rows, expected as many gates as values", s->inter);
    s->inter /= s->fusion != NOT_FUSED ? 2 : 1;
    if (s->gated)
        DQ_TRY(find_layer(call, s, &s->layers[2], "fc3_expert_weight_bits", s->inter, s->hidden, err));
    return find_layer(call, s, &s->layers[1], "fc2_expert_weight_bits", s->hidden, s->inter, err);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    state s = {0};
    DQ_TRY(resolve(call, &s, err));
    return dq_call_output_like(call, 0, call->in[INPUT]->dtype, call->in[INPUT], err);
}

/* Reserves rows × cols elements of `size` bytes; *at is their byte offset. False if a size overflows. */
static bool reserve(size_t *used, size_t rows, size_t cols, size_t size, size_t *at)
{
    size_t count;
    return dq_mul_size(rows, cols, &count) && dq_reserve_size(used, count, size, DQ_ALIGN, at);
}

static dq_weights weights_of(const state *s, const layer *l)
{
    dq_weights w;
    memset(&w, 0, sizeof w);
    w.form.matrices = s->experts;
    w.form.n = l->rows;
    w.form.k = w.form.n_stride = l->cols;
    w.form.k_stride = 1;
    w.form.block = l->block;
    w.form.groups = w.form.scale_row = l->blocks;
    w.form.scale_block = 1;
    w.form.zero_row = l->by_block ? l->zero_bytes : 0;
    w.form.zero_matrix = l->zero_bytes;
    w.form.bits = l->bits;
    w.qvalues = l->weights;
    w.scales = l->scales;
    w.zeros = l->zeros;
    w.group_idx = DQ_NO_INPUT;
    w.rows = s->tokens;
    return w;
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(resolve(call, s, err));
    size_t used = 0, f = sizeof(float), n = s->tokens;
    if (!reserve(&used, n, s->k, sizeof(size_t), &s->chosen) || !reserve(&used, n, s->k, f, &s->weights) ||
        !reserve(&used, n, 1, sizeof(size_t), &s->members) || !reserve(&used, n, 1, f, &s->shares) ||
        !reserve(&used, n, s->hidden, f, &s->gathered) ||
        !reserve(&used, n, s->layers[0].rows, f, &s->first) ||
        !reserve(&used, n, s->gated ? s->inter : 0, f, &s->third) ||
        !reserve(&used, n, s->inter, f, &s->middle) || !reserve(&used, n, s->hidden, f, &s->sums))
        return dq_no_memory(err, SIZE_MAX, "the experts' results");
    for (size_t i = 0; i < LAYERS; i++) {
        if (i == 2 && !s->gated)
            continue;
        s->products[i] = weights_of(s, &s->layers[i]);
        s->products[i].max_integer_rows = dq_weights_max_integer_rows(&s->products[i].form);
        s->products[i].rounded = dq_weights_may_round(call, &s->products[i]);
        DQ_TRY(dq_weights_prepare(call, &s->products[i], err));
        if (!reserve(&used, s->products[i].scratch_size, 1, 1, &s->products_at[i]))
            return dq_no_memory(err, SIZE_MAX, "packed weights");
    }
    call->scratch_size = used;
    return DQ_OK;
}

/* ---- Routing ------------------------------------------------------------------------------------------ */

typedef struct job {
    const state *s;
    const dq_op_call *call;
    size_t *chosen;         /* k experts of each row … */
    float *weights;         /* … and their routing weights */
    size_t expert;          /* the current expert: */
    size_t count, *members; /* the rows that are routed to it … */
    float *shares;          /* … and its routing weight in each */
    /* `count` rows of hidden, of rows of fc1, of inter, and of inter elements. */
    float *gathered, *first, *third, *middle;
    float *sums; /* tokens × hidden */
} job;

static bool taken(const size_t *chosen, size_t count, size_t expert)
{
    for (size_t i = 0; i < count; i++)
        if (chosen[i] == expert)
            return true;
    return false;
}

/* Chooses the experts of the k largest logits; of equal logits the lower index comes first. */
static void choose(const job *j, size_t token, size_t *chosen)
{
    const dq_tensor *logits = j->call->in[ROUTER];
    size_t experts = j->s->experts;
    for (size_t i = 0; i < j->s->k; i++) {
        size_t best = experts;
        for (size_t e = 0; e < experts; e++)
            if (!taken(chosen, i, e) &&
                (best == experts || dq_tensor_get_float(logits, token * experts + e) >
                                        dq_tensor_get_float(logits, token * experts + best)))
                best = e;
        chosen[i] = best;
    }
}

/* Computes routing weights: Softmax over the chosen logits, or those of input router_weights, normalized if
 * the attribute says so. */
static void routing_weights(const job *j, size_t token, const size_t *chosen, float *weights)
{
    const state *s = j->s;
    const dq_tensor *given_weights = dq_call_in(j->call, ROUTER_WEIGHTS),
                    *from = given_weights ? given_weights : j->call->in[ROUTER];
    double top = (double)dq_tensor_get_float(from, token * s->experts + chosen[0]), sum = 0;
    for (size_t i = 0; i < s->k; i++) {
        double value = (double)dq_tensor_get_float(from, token * s->experts + chosen[i]);
        weights[i] = (float)(given_weights ? value : dq_exp(value - top));
        sum += (double)weights[i];
    }
    for (size_t i = 0; i < s->k && (!given_weights || s->normalize); i++)
        weights[i] = (float)((double)weights[i] / sum);
}

static void route(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    for (size_t token = begin; token < end; token++) {
        choose(j, token, j->chosen + token * j->s->k);
        routing_weights(j, token, j->chosen + token * j->s->k, j->weights + token * j->s->k);
    }
}

/* Gathers the rows that are routed to j->expert, as floats, into j->gathered. */
static void gather(job *j)
{
    const state *s = j->s;
    const dq_tensor *x = j->call->in[INPUT];
    j->count = 0;
    for (size_t i = 0; i < s->tokens * s->k; i++) {
        if (j->chosen[i] != j->expert)
            continue;
        j->members[j->count] = i / s->k;
        j->shares[j->count] = j->weights[i];
        dq_load_floats(j->call->kernels, x->dtype, x->data, i / s->k * s->hidden, s->hidden,
                       j->gathered + j->count * s->hidden);
        j->count++;
    }
}

/* ---- Products ----------------------------------------------------------------------------------------- */

typedef struct product {
    const job *j;
    const layer *l;
    const float *from;
    float *to; /* NULL: results are weighted and added to j->sums */
} product;

static void load_row(const void *arg, size_t row, float *to)
{
    const product *p = arg;
    memcpy(to, p->from + row * p->l->cols, p->l->cols * sizeof *to);
}

static void store(const void *arg, size_t row, size_t col, size_t rows, size_t cols, const float *tile,
                  size_t step)
{
    const product *p = arg;
    const job *j = p->j;
    const dq_tensor *bias = dq_call_in(j->call, p->l->bias);
    for (size_t i = 0; i < rows; i++)
        for (size_t c = 0; c < cols; c++) {
            float value = tile[i * step + c];
            if (bias)
                value += dq_tensor_get_float(bias, j->expert * p->l->rows + col + c);
            if (p->to)
                p->to[(row + i) * p->l->rows + col + c] = value;
            else
                j->sums[j->members[row + i] * p->l->rows + col + c] += j->shares[row + i] * value;
        }
}

static void multiply(const job *j, size_t i, const float *from, float *to)
{
    const state *s = j->s;
    product p = {j, &s->layers[i], from, to};
    const dq_weights_io ends = {.load = load_row, .store = store, .arg = &p};
    dq_weights_run(j->call, &s->products[i], (char *)j->call->scratch + s->products_at[i], j->expert,
                   j->count, &ends);
}

/* ---- Activation --------------------------------------------------------------------------------------- */

static double swish(double x, double alpha)
{
    return x / (1 + dq_exp(-alpha * x));
}

static double swiglu(const state *s, double gate, double value)
{
    double result = swish(!s->limits_result && gate > s->limit ? s->limit : gate, s->alpha);
    result = s->limits_result && result > s->limit ? s->limit : result;
    value = value > s->limit ? s->limit : value < -s->limit ? -s->limit : value;
    return result * (value + s->beta);
}

static double apply(const state *s, double x)
{
    static const double root = 0.79788456080286535588; /* sqrt(2 / pi) */
    switch (s->function) {
    case RELU:
        return x < 0 ? 0 : x;
    case RELU2:
        return x < 0 ? 0 : x * x;
    case GELU:
    case GEGLU:
        return 0.5 * x * (1 + dq_tanh(root * (x + 0.044715 * x * x * x)));
    case SILU:
        return swish(x, 1);
    default:
        return x;
    }
}

static void activate(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const state *s = j->s;
    size_t n = s->inter, value_at = s->fusion == HALVES ? n : 1, step = s->fusion == ALTERNATING ? 2 : 1;
    for (size_t row = begin; row < end; row++) {
        const float *first = j->first + row * s->layers[0].rows, *third = j->third + row * n;
        float *to = j->middle + row * n;
        for (size_t i = 0; i < n; i++) {
            double x = (double)first[i * step];
            double value = s->gated                 ? (double)third[i]
                           : s->fusion != NOT_FUSED ? (double)first[i * step + value_at]
                                                    : 1;
            to[i] = (float)(s->function == SWIGLU ? swiglu(s, x, value) : apply(s, x) * value);
        }
    }
}

/* ---- A run -------------------------------------------------------------------------------------------- */

static void run_expert(job *j)
{
    enum { PIECE = 4096 };
    const state *s = j->s;
    gather(j);
    if (j->count == 0)
        return;
    multiply(j, 0, j->gathered, j->first);
    if (s->gated)
        multiply(j, 2, j->gathered, j->third);
    dq_parallel(j->call->threads, j->count, PIECE / (s->inter + 1) + 1, activate, j);
    multiply(j, 1, j->middle, NULL);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    enum { PIECE = 64 };
    const state *s = call->state;
    dq_tensor *y = call->out[0];
    char *scratch = call->scratch;
    if (!y || y->count == 0)
        return DQ_OK;
    for (size_t i = 0; i < LAYERS; i++)
        if (i < 2 || s->gated)
            DQ_TRY(dq_weights_begin(call, &s->products[i], scratch + s->products_at[i], err));
    job j = {.s = s,
             .call = call,
             .chosen = (size_t *)(scratch + s->chosen),
             .weights = (float *)(scratch + s->weights),
             .members = (size_t *)(scratch + s->members),
             .shares = (float *)(scratch + s->shares),
             .gathered = (float *)(scratch + s->gathered),
             .first = (float *)(scratch + s->first),
             .third = (float *)(scratch + s->third),
             .middle = (float *)(scratch + s->middle),
             .sums = (float *)(scratch + s->sums)};
    dq_parallel(call->threads, s->tokens, PIECE, route, &j);
    memset(j.sums, 0, y->count * sizeof(float));
    /* if the run was cancelled, `chosen` may hold invalid expert numbers */
    for (j.expert = 0; j.expert < s->experts && !dq_threads_cancelled(call->threads); j.expert++)
        run_expert(&j);
    dq_store_from_floats(call->kernels, y->dtype, y->data, 0, y->count, j.sums, false);
    return DQ_OK;
}

const dq_op_impl dq_op_qmoe = {infer, prepare, run, 0};
