/* SPDX-License-Identifier: Apache-2.0 */
/* Value-range analysis: interval arithmetic over constants, dequantized values and the operators between
 * them. Passes use it for two proofs:
 *
 * - No NaN: QuantizeLinear converts NaN to the type's minimum, whereas Relu, Clip, MaxPool, ReduceMax and
 * ReduceMin propagate NaN. They may move past QuantizeLinear only if no NaN can arise.
 *
 * - No overflow: integer operators compute the real-number formula. The graph as written computes it, too, as
 * long as its floats are finite.
 *
 * A value of unknown range (an input of the model, most float operators) has neither proof. */
#include "rewrite/match.h"

#include <math.h>
#include <string.h>

enum {
    MAX_VISITS = 256,        /* Nodes that one proof visits. */
    MAX_CONSTANTS = 1 << 20, /* Elements of a constant that it reads. */
    MAX_TERMS = 1 << 30      /* More terms than sums in models have. */
};

/* Whether a number rounds to a finite float. NaN does not. */
static bool fits_float(double v)
{
    return fabs(v) < 0x1.ffffffp127;
}

typedef struct proof {
    const dq_rewriter *f;
    uint32_t visits;
} proof;

/* ---- Scales ------------------------------------------------------------------------------------------- */

double dq_match_largest_magnitude(const dq_dequantized *x)
{
    const dq_dtype_row *row = dq_dtype_get(x->dtype);
    double most = 0;
    for (size_t i = 0; i < x->scale_t->count; i++) {
        double zero = (double)dq_match_zero_point(x->zero_t, i);
        double reach = fmax((double)row->max - zero, zero - (double)row->min);
        most = fmax(most, reach * fabs((double)dq_match_scale(x->scale_t, i)));
    }
    return most;
}

/* Whether all scales are normal numbers; *bad is the first that is not. */
static bool are_normal(const dq_tensor *scale, float *bad)
{
    for (size_t i = 0; i < scale->count; i++) {
        *bad = dq_match_float(scale, i);
        if (!isnormal(*bad))
            return false;
    }
    return true;
}

/* Whether every dequantized value is finite in float. */
static bool values_are_finite(const dq_rewriter *f, const dq_node *node, const dq_tensor *scale)
{
    const dq_value *zero = dq_match_resolve(f, dq_node_input(node, 2));
    dq_dequantized x = {.scale_t = scale, .zero_t = dq_match_constant(zero)};
    x.dtype = dq_match_dtype(f, dq_match_resolve(f, node->in[0]));
    const dq_dtype_row *row = dq_dtype_get(x.dtype);
    const bool is_integer = x.dtype != DQ_UNDEFINED && row->min < row->max;
    return !is_integer || (zero && !x.zero_t) || fits_float(dq_match_largest_magnitude(&x));
}

bool dq_rewriter_check_scales(dq_rewriter *f)
{
    for (uint32_t n = 0; n < f->count; n++) {
        const dq_node *node = f->nodes[n];
        const bool dequantizes = strcmp(node->op_type, "DequantizeLinear") == 0;
        if ((!dequantizes && strcmp(node->op_type, "QuantizeLinear") != 0) || node->in_count < 2 ||
            !node->in[1] || node->out_count == 0 || !node->out[0])
            continue;
        const dq_tensor *scale = dq_match_constant(dq_match_resolve(f, node->in[1]));
        float bad = 0;
        if (!scale || scale->dtype != DQ_FLOAT)
            continue;
        if (!are_normal(scale, &bad))
            dq_rewriter_explain(f, node, "not fused: its scale is %g, expected normal numbers", (double)bad);
        else if (dequantizes && !values_are_finite(f, node, scale))
            dq_rewriter_explain(f, node, "not fused: with its scale a dequantized value overflows float");
        else
            continue;
        dq_rewriter_record(f, node->out[0])->has_bad_scale = true;
    }
    return true;
}

/* ---- Intervals ---------------------------------------------------------------------------------------- */

static bool set(dq_range *r, double lo, double hi)
{
    *r = (dq_range){lo, hi};
    return lo <= hi;
}

static bool is_finite(const dq_range *r)
{
    return fits_float(r->lo) && fits_float(r->hi);
}

/* Sets an interval around zero. False: float overflows. */
static bool within(dq_range *r, double most)
{
    return fits_float(most) && set(r, -most, most);
}

static double magnitude(const dq_range *r)
{
    return fmax(-r->lo, r->hi);
}

static void join(dq_range *r, const dq_range *other)
{
    r->lo = fmin(r->lo, other->lo);
    r->hi = fmax(r->hi, other->hi);
}

static bool of_constant(const dq_tensor *t, dq_range *r)
{
    if (t->dtype != DQ_FLOAT || t->count == 0 || t->count > MAX_CONSTANTS)
        return false;
    *r = (dq_range){HUGE_VAL, -HUGE_VAL};
    for (size_t i = 0; i < t->count; i++) {
        const double v = (double)dq_match_float(t, i);
        if (isnan(v))
            return false;
        join(r, &(dq_range){v, v});
    }
    return true;
}

static bool range_of(proof *p, const dq_value *v, dq_range *r);

/* The range of an input, if it is finite. */
static bool finite_input(proof *p, const dq_node *node, uint32_t i, dq_range *r)
{
    return i < node->in_count && node->in[i] && range_of(p, node->in[i], r) && is_finite(r);
}

/* The union of the ranges of inputs from `first` on. */
static bool union_of(proof *p, const dq_node *node, uint32_t first, dq_range *r)
{
    dq_range next;
    if (first >= node->in_count || !node->in[first] || !range_of(p, node->in[first], r))
        return false;
    for (uint32_t i = first + 1; i < node->in_count; i++) {
        if (!node->in[i] || !range_of(p, node->in[i], &next))
            return false;
        join(r, &next);
    }
    return true;
}

static bool is_any(const dq_node *node, const char *const *names)
{
    for (; *names; names++)
        if (dq_match_op(node, *names))
            return true;
    return false;
}

/* ---- Operators ---------------------------------------------------------------------------------------- */

static bool of_sum(proof *p, const dq_node *node, dq_range *r)
{
    dq_range x;
    double most = 0;
    for (uint32_t i = 0; i < node->in_count; i++) {
        if (!finite_input(p, node, i, &x))
            return false;
        most += magnitude(&x);
    }
    return within(r, most);
}

static bool of_mul(proof *p, const dq_node *node, dq_range *r)
{
    dq_range a, b;
    return finite_input(p, node, 0, &a) && finite_input(p, node, 1, &b) &&
           within(r, magnitude(&a) * magnitude(&b));
}

static bool of_div(proof *p, const dq_node *node, dq_range *r)
{
    dq_range a, b;
    if (!finite_input(p, node, 0, &a) || !finite_input(p, node, 1, &b) || (b.lo <= 0 && b.hi >= 0))
        return false;
    return within(r, magnitude(&a) / fmin(fabs(b.lo), fabs(b.hi)));
}

/* Pow with a constant exponent: any exponent for non-negative numbers, else a square. */
static bool of_pow(proof *p, const dq_node *node, dq_range *r)
{
    dq_range x, power;
    if (!finite_input(p, node, 0, &x) || !finite_input(p, node, 1, &power) || power.lo != power.hi)
        return false;
    if (power.lo == 2)
        return within(r, magnitude(&x) * magnitude(&x));
    return x.lo >= 0 && power.lo > 0 && set(r, 0, HUGE_VAL);
}

static bool of_product(proof *p, const dq_node *node, dq_range *r)
{
    dq_range a, b, c = {0, 0};
    const double factor = fabs((double)dq_node_float(node, "alpha", 1));
    const double term = fabs((double)dq_node_float(node, "beta", 1));
    if (!finite_input(p, node, 0, &a) || !finite_input(p, node, 1, &b) ||
        (dq_node_input(node, 2) && !finite_input(p, node, 2, &c)))
        return false;
    return within(r, magnitude(&a) * magnitude(&b) * MAX_TERMS * (factor <= 1 ? 1 : factor) +
                         magnitude(&c) * term);
}

/* A pool or reduction. Each window or reduced axis must have elements: else a mean is NaN, and a maximum
 * -infinity. */
static bool of_pool(proof *p, const dq_node *node, bool means, dq_range *r)
{
    dq_range x;
    const bool holds = dq_match_holds_elements(node);
    if (means)
        return holds && finite_input(p, node, 0, &x) && within(r, magnitude(&x) * MAX_TERMS) &&
               set(r, x.lo, x.hi);
    if (!range_of(p, node->in[0], r))
        return false;
    if (!holds)
        join(r, &(dq_range){-HUGE_VAL, HUGE_VAL});
    return true;
}

static bool of_normalization(proof *p, const dq_node *node, dq_range *r)
{
    dq_range x, gamma = {1, 1}, beta = {0, 0};
    if (!finite_input(p, node, 0, &x) || (dq_node_input(node, 1) && !finite_input(p, node, 1, &gamma)) ||
        (dq_node_input(node, 2) && !finite_input(p, node, 2, &beta)))
        return false;
    return isnormal(dq_node_float(node, "epsilon", 1e-5f)) && dq_node_float(node, "epsilon", 1e-5f) > 0 &&
           magnitude(&x) < 1e18 && within(r, MAX_TERMS * magnitude(&gamma) + magnitude(&beta));
}

static bool of_lrn(proof *p, const dq_node *node, dq_range *r)
{
    const double alpha = (double)dq_node_float(node, "alpha", 1e-4f);
    const double beta = (double)dq_node_float(node, "beta", 0.75f);
    const double bias = (double)dq_node_float(node, "bias", 1);
    dq_range x;
    return finite_input(p, node, 0, &x) && alpha >= 0 && alpha < MAX_TERMS && beta >= 0 && beta <= 4 &&
           bias >= 1e-3 && bias < MAX_TERMS && magnitude(&x) < 1e12 && within(r, magnitude(&x) * 1e12);
}

static bool of_pad(proof *p, const dq_node *node, dq_range *r)
{
    dq_range value = {0, 0};
    if (node->opset < 11 || !range_of(p, node->in[0], r) ||
        (dq_node_input(node, 2) && !range_of(p, node->in[2], &value)))
        return false;
    join(r, &value);
    return true;
}

static bool of_clip(proof *p, const dq_node *node, dq_range *r)
{
    dq_clip c = {-INFINITY, INFINITY};
    if (!dq_match_clip(node, &c) || !range_of(p, node->in[0], r))
        return false;
    return set(r, fmin(fmax(r->lo, (double)c.lo), (double)c.hi),
               fmin(fmax(r->hi, (double)c.lo), (double)c.hi));
}

/* Functions of one finite number x. None gives NaN, and |f(x)| is at most factor * |x| + term. */
static const struct {
    const char *name;
    double factor, term;
    bool parameters; /* Has attributes, which must be moderate. */
} functions[] = {{"Sigmoid", 0, 1, false},       {"Tanh", 0, 1, false},       {"Erf", 0, 1, false},
                 {"Softsign", 0, 1, false},      {"Sign", 0, 1, false},       {"Sin", 0, 1, false},
                 {"Cos", 0, 1, false},           {"Atan", 0, 2, false},       {"Softmax", 0, 1, false},
                 {"Gelu", 1, 1, false},          {"Mish", 1, 1, false},       {"HardSwish", 1, 1, false},
                 {"Softplus", 1, 1, false},      {"Abs", 1, 0, false},        {"Neg", 1, 0, false},
                 {"Floor", 1, 1, false},         {"Ceil", 1, 1, false},       {"Round", 1, 1, false},
                 {"LogSoftmax", 2, 99, false},   {"LeakyRelu", 1e3, 0, true}, {"Elu", 1, 1e3, true},
                 {"HardSigmoid", 0, 1, true},    {"Celu", 1, 1e3, true},      {"Swish", 1, 1, true},
                 {"ThresholdedRelu", 1, 0, true}};

/* The range of a function of the table. False also if the node is not in the table. */
static bool of_function(proof *p, const dq_node *node, dq_range *r)
{
    dq_range x;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (!dq_match_op(node, functions[i].name))
            continue;
        const double alpha = fabs((double)dq_node_float(node, "alpha", 1));
        if (functions[i].parameters &&
            !(alpha >= 1e-3 && alpha <= 1e3 && fabs((double)dq_node_float(node, "beta", 0.5f)) <= 1e3))
            return false;
        return finite_input(p, node, 0, &x) &&
               within(r, functions[i].factor * magnitude(&x) + functions[i].term);
    }
    if (dq_match_op(node, "Exp"))
        return range_of(p, node->in[0], &x) && set(r, 0, HUGE_VAL);
    if (dq_match_op(node, "Sqrt") || dq_match_op(node, "Log"))
        return range_of(p, node->in[0], &x) && x.lo >= 0 && set(r, -HUGE_VAL, HUGE_VAL);
    if (dq_match_op(node, "Reciprocal"))
        return range_of(p, node->in[0], &x) && set(r, -HUGE_VAL, HUGE_VAL);
    return false;
}

static bool of_node(proof *p, const dq_node *node, dq_range *r)
{
    static const char *const sums[] = {"Add", "Sub", "Sum", "Mean", NULL};
    static const char *const unions[] = {"Concat", "Min", "Max", NULL};
    static const char *const products[] = {"Conv", "ConvTranspose", "Gemm", "MatMul", NULL};
    static const char *const maxima[] = {"MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin", NULL};
    static const char *const means[] = {"AveragePool", "GlobalAveragePool", "ReduceMean", NULL};
    static const char *const norms[] = {"LayerNormalization", "RMSNormalization",
                                        "SimplifiedLayerNormalization", NULL};
    dq_range x;
    if (node->in_count == 0)
        return false;
    if (is_any(node, sums))
        return of_sum(p, node, r);
    if (dq_match_op(node, "Mul"))
        return of_mul(p, node, r);
    if (dq_match_op(node, "Div"))
        return of_div(p, node, r);
    if (dq_match_op(node, "Pow"))
        return of_pow(p, node, r);
    if (is_any(node, unions))
        return union_of(p, node, 0, r);
    if (dq_match_op(node, "Where"))
        return union_of(p, node, 1, r);
    if (is_any(node, products))
        return of_product(p, node, r);
    if (is_any(node, maxima) || is_any(node, means))
        return of_pool(p, node, is_any(node, means), r);
    if (is_any(node, norms))
        return of_normalization(p, node, r);
    if (dq_match_op(node, "LRN"))
        return of_lrn(p, node, r);
    if (dq_match_op(node, "Pad"))
        return of_pad(p, node, r);
    if (dq_match_op(node, "Relu") || dq_match_op(node, "Clip"))
        return of_clip(p, node, r);
    if (dq_match_op(node, "Resize")) /* Cubic weights may be outside of 0 to 1. */
        return fabs((double)dq_node_float(node, "cubic_coeff_a", -0.75f)) <= 4 &&
               fabs((double)dq_node_float(node, "extrapolation_value", 0)) <= 1e6 &&
               finite_input(p, node, 0, &x) && within(r, magnitude(&x) * 1e3 + 1e6);
    if (dq_match_trait(node, DQ_TRAIT_DATA_MOVEMENT))
        return range_of(p, node->in[0], r);
    return of_function(p, node, r);
}

static bool range_of(proof *p, const dq_value *v, dq_range *r)
{
    const dq_tensor *constant = dq_match_constant(v);
    dq_dequantized x;
    if (p->visits++ >= MAX_VISITS)
        return false;
    if (constant)
        return of_constant(constant, r);
    if (dq_match_dequantized(p->f, v, true, &x))
        return within(r, dq_match_largest_magnitude(&x));
    return v->producer && v->graph == p->f->graph && of_node(p, v->producer, r);
}

bool dq_match_range(const dq_rewriter *f, const dq_value *v, dq_range *r)
{
    proof p = {.f = f};
    return range_of(&p, v, r);
}

bool dq_match_is_finite(const dq_rewriter *f, const dq_value *v)
{
    dq_range r;
    return dq_match_range(f, v, &r) && is_finite(&r);
}

/* ---- Elements in windows ------------------------------------------------------------------------------ */

/* The declared type of a value, or of one that has the same shape. */
static const dq_type *shape_of(const dq_value *v)
{
    static const char *const same[] = {"QuantizeLinear", "DequantizeLinear", "Identity",  "Relu",
                                       "Clip",           "Sigmoid",          "LeakyRelu", NULL};
    for (int steps = 0; steps < DQ_MAX_MOVES && !v->type.has_shape && is_any(v->producer, same); steps++)
        v = v->producer->in[0];
    return &v->type;
}

static bool holds_along(const dq_type *type, int64_t axis)
{
    axis = axis < 0 ? axis + (int64_t)type->rank : axis;
    return type->has_shape && axis >= 0 && axis < (int64_t)type->rank && type->dims[axis] > 0;
}

static bool planes_hold_elements(const dq_type *type)
{
    for (uint32_t i = 2; i < type->rank; i++)
        if (!holds_along(type, i))
            return false;
    return type->has_shape;
}

/* Padding is smaller than the kernel, so that each window begins or ends inside the input. An empty input has
 * windows only if both paddings together contain the kernel. auto_pad pads no more. */
static bool windows_hold_elements(const dq_node *node)
{
    size_t axes, pad_count, dilated;
    const int64_t *kernel = dq_node_ints(node, "kernel_shape", &axes);
    const int64_t *pads = dq_node_ints(node, "pads", &pad_count);
    const int64_t *dilations = dq_node_ints(node, "dilations", &dilated);
    const bool planes = planes_hold_elements(shape_of(node->in[0]));
    if (pad_count != 0 && pad_count != 2 * axes)
        return false;
    for (size_t i = 0; i < axes; i++) {
        const int64_t begin = pad_count ? pads[i] : 0, end = pad_count ? pads[axes + i] : 0;
        if ((i < dilated && dilations[i] != 1) || begin < 0 || end < 0 || begin >= kernel[i] ||
            end >= kernel[i] || (!planes && end >= kernel[i] - begin))
            return false;
    }
    return axes > 0;
}

/* Whether the axes of a reduction, or all axes, are not empty by the declared shape. */
static bool axes_hold_elements(const dq_node *node, const dq_type *type)
{
    const dq_attr *given = dq_node_attr(node, "axes");
    const dq_tensor *t = dq_match_constant(dq_node_input(node, 1));
    const int64_t *axes = given ? given->u.ints : t && t->dtype == DQ_INT64 ? dq_data(t, int64_t) : NULL;
    const size_t count = given ? given->count : axes ? t->count : 0;
    for (size_t i = 0; i < count; i++)
        if (!holds_along(type, axes[i]))
            return false;
    for (uint32_t i = 0; count == 0 && i < type->rank; i++)
        if (!holds_along(type, i))
            return false;
    return type->has_shape;
}

bool dq_match_holds_elements(const dq_node *node)
{
    if (dq_match_op(node, "MaxPool") || dq_match_op(node, "AveragePool"))
        return windows_hold_elements(node);
    if (dq_match_op(node, "GlobalAveragePool") || dq_match_op(node, "GlobalMaxPool"))
        return planes_hold_elements(shape_of(node->in[0]));
    return axes_hold_elements(node, shape_of(node->in[0]));
}
