/* SPDX-License-Identifier: Apache-2.0 */
/* Quantized constants against the float model's: matching, and measures by channel. */
#include "insight/compare.h"

#include "io/common.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { NAME = 1024 };

/* A quantized constant and where it is used. */
typedef struct constant {
    size_t value;      /* in the quantized model */
    size_t node, port; /* the node that computes with it, and which of its inputs it is */
    const char *dequantized;
    const dq_tensor *data, *scale, *zero_point;
    const dq_tensor *input_scale; /* QOperator biases: the scale is input_scale · scale */
    dq_granularity granularity;
    int64_t axis, block_size;
} constant;

static const dq_tensor *data_of(const insight_model *m, size_t value)
{
    dq_value_info info = DQ_VALUE_INFO_INIT;
    if (value == INSIGHT_NONE || dq_value_describe(m->values[value].value, &info, NULL) != DQ_OK)
        return NULL;
    return info.initializer;
}

static size_t first_reader(const insight_model *m, size_t value)
{
    size_t count = 0;
    const dq_node *const *readers = NULL;
    if (dq_value_consumers(m->model, m->values[value].value, &count, &readers, NULL) != DQ_OK || !count)
        return INSIGHT_NONE;
    return insight_find_node(m, readers[0]);
}

static size_t port_of(const insight_node *n, size_t value)
{
    size_t port = 0;
    while (port < n->input_count && n->inputs[port] != value)
        port++;
    return port;
}

/* ---- Matching ------------------------------------------------------------------------------------------ */

/* The input of the float operator that an input of a QLinear operator stands for. */
static size_t float_port(const insight_node *n, size_t port)
{
    if (!strcmp(n->op_type, "QLinearConv"))
        return port == 3 ? 1 : port == 8 ? 2 : port;
    if (!strcmp(n->op_type, "QLinearMatMul"))
        return port == 3 ? 1 : port;
    if (!strcmp(n->op_type, "QGemm"))
        return port == 3 ? 1 : port == 6 ? 2 : port;
    return port;
}

static const char *float_op(const insight_node *n)
{
    return !strncmp(n->op_type, "QLinear", 7) ? n->op_type + 7
           : !strcmp(n->op_type, "QGemm")     ? "Gemm"
                                              : n->op_type;
}

/* The node of the float model that the node stands for: from its result's pair up to the same operator. */
static size_t float_node(const insight_comparison *c, size_t node)
{
    enum { MOST_FOLDED = 4 };
    const insight_node *n = &c->quantized.nodes[node];
    const insight_model *f = &c->reference;
    const char *result = n->outputs[0] == INSIGHT_NONE ? "" : c->quantized.values[n->outputs[0]].name;
    for (size_t i = 0; i < c->pair_count; i++) {
        const insight_pair *p = &c->pairs[i];
        if (!(p->got && !strcmp(p->got, result)) && !(p->codes && !strcmp(p->codes, result)))
            continue;
        size_t at = insight_producer(f, p->name);
        for (int step = 0; step < MOST_FOLDED && at != INSIGHT_NONE; step++) {
            if (!strcmp(f->nodes[at].op_type, float_op(n)))
                return at;
            const size_t input = f->nodes[at].input_count ? f->nodes[at].inputs[0] : INSIGHT_NONE;
            at = input == INSIGHT_NONE ? INSIGHT_NONE : f->values[input].producer;
        }
    }
    return INSIGHT_NONE;
}

static bool same_count(const insight_comparison *c, size_t value, const constant *k)
{
    const dq_tensor *t = data_of(&c->reference, value);
    return t && dq_tensor_count(t) == dq_tensor_count(k->data);
}

/* The float constant: by name, else as the same input of the matched node. */
static size_t float_constant(const insight_comparison *c, const constant *k)
{
    char base[NAME];
    const char *const names[2] = {c->quantized.values[k->value].name, k->dequantized};
    for (size_t i = 0; i < 4; i++) {
        const char *name = names[i % 2];
        if (!name)
            continue;
        const size_t found =
            insight_value_named(&c->reference, i < 2 ? name : insight_base_name(name, base, sizeof base));
        if (found != INSIGHT_NONE && same_count(c, found, k))
            return found;
    }
    const size_t node = float_node(c, k->node);
    if (node == INSIGHT_NONE)
        return INSIGHT_NONE;
    const size_t port = float_port(&c->quantized.nodes[k->node], k->port);
    const insight_node *n = &c->reference.nodes[node];
    return port < n->input_count && n->inputs[port] != INSIGHT_NONE && same_count(c, n->inputs[port], k)
               ? n->inputs[port]
               : INSIGHT_NONE;
}

/* A bias of QLinearConv has no scale of its own. */
static bool is_qlinear_bias(const insight_model *m, size_t value, constant *k)
{
    const size_t node = first_reader(m, value);
    if (node == INSIGHT_NONE || strcmp(m->nodes[node].op_type, "QLinearConv") != 0 ||
        port_of(&m->nodes[node], value) != 8)
        return false;
    k->node = node;
    k->port = 8;
    k->input_scale = data_of(m, m->nodes[node].inputs[1]);
    k->scale = data_of(m, m->nodes[node].inputs[4]);
    k->granularity = k->scale && dq_tensor_count(k->scale) > 1 ? DQ_PER_AXIS : DQ_PER_TENSOR;
    k->axis = 0;
    return k->scale && k->input_scale;
}

static bool read_constant(const insight_model *m, size_t value, constant *k)
{
    dq_quantization q = DQ_QUANTIZATION_INIT;
    *k = (constant){.value = value, .data = data_of(m, value)};
    if (!m->values[value].is_initializer || !k->data)
        return false;
    if (is_qlinear_bias(m, value, k))
        return true;
    if (dq_value_quantization(m->model, m->values[value].value, &q, NULL) != DQ_OK || !q.quantized ||
        !q.scale_data)
        return false;
    k->scale = q.scale_data;
    k->zero_point = q.zero_point_data;
    k->granularity = q.granularity;
    k->axis = q.axis;
    k->block_size = q.block_size;
    k->node = insight_find_node(m, q.node);
    if (k->node == INSIGHT_NONE)
        return false;
    if (!strcmp(m->nodes[k->node].op_type, "DequantizeLinear")) {
        value = m->nodes[k->node].outputs[0];
        k->dequantized = m->values[value].name;
        k->node = first_reader(m, value);
    }
    if (k->node == INSIGHT_NONE)
        return false;
    k->port = port_of(&m->nodes[k->node], value);
    return true;
}

/* ---- Elements ------------------------------------------------------------------------------------------ */

static size_t size_after(const dq_tensor *t, size_t axis)
{
    size_t size = 1;
    for (size_t d = axis + 1; d < dq_tensor_rank(t); d++)
        size *= (size_t)dq_tensor_dims(t)[d];
    return size;
}

/* The scale of element i of the constant. */
static size_t scale_index(const constant *k, size_t i)
{
    const size_t rank = dq_tensor_rank(k->data);
    const size_t axis = (size_t)(k->axis < 0 ? k->axis + (int64_t)rank : k->axis);
    if (k->granularity == DQ_PER_TENSOR || dq_tensor_count(k->scale) == 1 || axis >= rank)
        return 0;
    const size_t inner = size_after(k->data, axis), size = (size_t)dq_tensor_dims(k->data)[axis];
    const size_t at = i / inner % size;
    if (k->granularity == DQ_PER_AXIS)
        return at;
    const size_t block = (size_t)k->block_size, blocks = (size + block - 1) / block;
    return (i / (inner * size) * blocks + at / block) * inner + i % inner;
}

/* The real number that element i stands for, and its scale. */
static double dequantize(const constant *k, size_t i, double *scale)
{
    const size_t s = scale_index(k, i);
    *scale = insight_element(k->scale, s) * (k->input_scale ? insight_element(k->input_scale, 0) : 1);
    const double zero_point =
        k->zero_point ? insight_element(k->zero_point, dq_tensor_count(k->zero_point) > 1 ? s : 0) : 0;
    return (insight_element(k->data, i) - zero_point) * *scale;
}

/* The axis of the output channels of a weight; INSIGHT_NONE. */
static size_t channel_axis(const insight_model *m, const constant *k)
{
    const insight_node *n = &m->nodes[k->node];
    const size_t rank = dq_tensor_rank(k->data);
    if (k->granularity == DQ_PER_AXIS && dq_tensor_count(k->scale) > 1)
        return (size_t)(k->axis < 0 ? k->axis + (int64_t)rank : k->axis);
    if (rank < 2)
        return INSIGHT_NONE;
    if (!strcmp(float_op(n), "Conv"))
        return 0;
    if (!strcmp(float_op(n), "MatMul"))
        return rank - 1;
    if (strcmp(float_op(n), "Gemm") != 0)
        return INSIGHT_NONE;
    for (size_t i = 0;; i++) {
        dq_attribute a = DQ_ATTRIBUTE_INIT;
        if (dq_node_attribute(n->node, i, &a, NULL) != DQ_OK)
            return rank - 1;
        if (!strcmp(a.name, "transB"))
            return a.i ? 0 : rank - 1;
    }
}

/* ---- Measures ------------------------------------------------------------------------------------------ */

/* Sums of one channel. */
typedef struct channel {
    double signal, noise, largest;
    bool live; /* some quantized value is not the zero point */
} channel;

static void close_channels(insight_weight *w, const channel *channels)
{
    double least = (double)INFINITY, most = 0;
    w->worst_channel_sqnr = (double)INFINITY;
    for (size_t i = 0; i < w->channels; i++) {
        const channel *k = &channels[i];
        w->channel_sqnr[i] = k->noise > 0 ? 10 * log10(k->signal / k->noise) : (double)INFINITY;
        w->channel_range[i] = k->largest;
        if (w->channel_sqnr[i] < w->worst_channel_sqnr) {
            w->worst_channel_sqnr = w->channel_sqnr[i];
            w->worst_channel = i;
        }
        w->dead_channels += !k->live && k->largest > 0;
        least = k->largest > 0 ? fmin(least, k->largest) : least;
        most = fmax(most, k->largest);
    }
    w->channel_ratio = most > 0 ? most / least : 1;
}

static void count_bad_scales(insight_weight *w, const constant *k)
{
    for (size_t i = 0; i < dq_tensor_count(k->scale); i++) {
        const double s = insight_element(k->scale, i);
        w->bad_scales += !(s >= (double)FLT_MIN && isfinite(s));
    }
}

static dq_status measure(insight_comparison *c, insight_weight *w, const constant *k,
                         const dq_tensor *reference, dq_error *err)
{
    const size_t count = dq_tensor_count(k->data), axis = channel_axis(&c->quantized, k);
    const bool by_channel = axis != INSIGHT_NONE && axis < dq_tensor_rank(k->data);
    const size_t inner = by_channel ? size_after(k->data, axis) : 1;
    int64_t min = 0, max = 0;
    w->channels = by_channel ? (size_t)dq_tensor_dims(k->data)[axis] : 1;
    channel *channels = insight_alloc(&c->pool, w->channels, sizeof *channels);
    w->channel_sqnr = insight_alloc(&c->pool, w->channels, sizeof *w->channel_sqnr);
    w->channel_range = insight_alloc(&c->pool, w->channels, sizeof *w->channel_range);
    if (!channels || !w->channel_sqnr || !w->channel_range)
        return io_no_memory(err);
    const bool has_ends = insight_code_range(w->dtype, &min, &max);
    double squares = 0, quanta = 0;
    for (size_t i = 0; i < count; i++) {
        double scale = 0;
        const double got = dequantize(k, i, &scale), real = insight_element(reference, i);
        const double code = insight_element(k->data, i), d = got - real;
        channel *ch = &channels[by_channel ? i / inner % w->channels : 0];
        insight_error_add_element(&w->error, real, got);
        ch->signal += real * real;
        ch->noise += d * d;
        ch->largest = fmax(ch->largest, fabs(real));
        ch->live = ch->live || got != 0;
        squares += scale > 0 ? d / scale * (d / scale) : 0;
        quanta += scale > 0 ? d / scale : 0;
        w->saturated += has_ends && ((code >= (double)max && real > got + scale) ||
                                     (code <= (double)min && real < got - scale));
    }
    w->rmse_over_scale = count ? sqrt(squares / (double)count) : 0;
    w->bias_over_scale = count ? quanta / (double)count : 0;
    close_channels(w, channels);
    count_bad_scales(w, k);
    return DQ_OK;
}

static dq_status add_weight(insight_comparison *c, const constant *k, dq_error *err)
{
    const insight_model *m = &c->quantized;
    const size_t reference = float_constant(c, k), node = float_node(c, k->node);
    insight_weight *w = &c->weights[c->weight_count++];
    *w = (insight_weight){.name = m->values[k->value].name,
                          .dequantized = k->dequantized,
                          .node = m->nodes[k->node].name,
                          .float_node = node == INSIGHT_NONE ? NULL : c->reference.nodes[node].name,
                          .is_bias = dq_tensor_dtype(k->data) == DQ_INT32,
                          .per_channel = k->granularity != DQ_PER_TENSOR && dq_tensor_count(k->scale) > 1,
                          .dtype = dq_tensor_dtype(k->data),
                          .channel_ratio = 1};
    if (reference == INSIGHT_NONE) {
        c->weight_count--;
        return DQ_OK;
    }
    w->float_name = c->reference.values[reference].name;
    return measure(c, w, k, data_of(&c->reference, reference), err);
}

dq_status insight_match_weights(insight_comparison *c, dq_error *err)
{
    const insight_model *m = &c->quantized;
    dq_status status = DQ_OK;
    c->weights = insight_alloc(&c->pool, m->value_count, sizeof *c->weights);
    if (!c->weights)
        return io_no_memory(err);
    for (size_t i = 0; i < m->value_count && status == DQ_OK && c->reference.model; i++) {
        constant k;
        if (read_constant(m, i, &k))
            status = add_weight(c, &k, err);
    }
    return status;
}

dq_status insight_dequantized(const insight_comparison *c, size_t value, dq_tensor **out, dq_error *err)
{
    constant k;
    if (!read_constant(&c->quantized, value, &k))
        return io_fail(err, DQ_UNSUPPORTED, "constant '%s' has no constant scale",
                       c->quantized.values[value].name);
    dq_status status = dq_tensor_create(DQ_FLOAT, dq_tensor_rank(k.data), dq_tensor_dims(k.data), out, err);
    for (size_t i = 0; status == DQ_OK && i < dq_tensor_count(k.data); i++) {
        double scale = 0;
        ((float *)dq_tensor_mutable_data(*out))[i] = (float)dequantize(&k, i, &scale);
    }
    return status;
}
