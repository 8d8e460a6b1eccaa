/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers: RandomUniform, RandomNormal, their Like forms, Bernoulli and Multinomial. Number i of a
 * node depends only on i and the node's seed. It is the same in every run, on every machine and with any
 * number of threads. A node without a seed derives one from its name. The generator is SplitMix64 (Steele,
 * Lea, Flood 2014). */
#include "base/checked.h"
#include "base/math.h"
#include "ops/lists.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- The generator ------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static uint64_t seed_of(const dq_op_call *call)
{
    const dq_attr *attr = dq_node_attr(call->node, "seed");
    uint64_t seed = 0;
    if (attr) {
        memcpy(&seed, &attr->u.f, sizeof attr->u.f);
        return mix(seed + 1);
    }
    for (const char *c = call->node->name ? call->node->name : ""; *c; c++)
        seed = mix(seed + (unsigned char)*c);
    return seed;
}

/* Uniform in [0, 1). */
static double uniform(uint64_t seed, uint64_t i)
{
    return (double)(mix(seed + (i + 1) * UINT64_C(0x9E3779B97F4A7C15)) >> 11) * 0x1p-53;
}

/* Standard normal: the Box-Muller transform of two uniform numbers. */
static double normal(uint64_t seed, uint64_t i)
{
    static const double two_pi = 6.283185307179586;
    return sqrt(-2 * dq_log(1 - uniform(seed, 2 * i))) * dq_cos(two_pi * uniform(seed, 2 * i + 1));
}

/* ---- Shapes and types ---------------------------------------------------------------------------------- */

static dq_status read_type(const dq_op_call *call, dq_dtype absent, dq_dtype *out, dq_error *err)
{
    int64_t value = dq_node_int(call->node, "dtype", absent);
    if (!dq_dtype_valid(value))
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'dtype' is %" PRId64 ", which is no type",
                            value);
    *out = (dq_dtype)value;
    return DQ_OK;
}

static dq_status shape_infer(dq_op_call *call, dq_error *err)
{
    dq_dtype dtype = DQ_FLOAT;
    size_t rank = 0;
    const int64_t *dims = dq_node_ints(call->node, "shape", &rank);
    DQ_TRY(read_type(call, DQ_FLOAT, &dtype, err));
    return dq_call_output(call, 0, dtype, rank, dims, err);
}

static dq_status like_infer(dq_op_call *call, dq_error *err)
{
    dq_dtype dtype = DQ_FLOAT;
    DQ_TRY(read_type(call, call->in[0]->dtype, &dtype, err));
    return dq_call_output_like(call, 0, dtype, call->in[0], err);
}

/* ---- Draws --------------------------------------------------------------------------------------------- */

static dq_status uniform_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    uint64_t seed = seed_of(call);
    double low = (double)dq_node_float(call->node, "low", 0),
           high = (double)dq_node_float(call->node, "high", 1);
    for (size_t i = 0; i < call->out[0]->count; i++)
        dq_tensor_put_double(call->out[0], i, low + uniform(seed, i) * (high - low));
    return DQ_OK;
}

static dq_status normal_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    uint64_t seed = seed_of(call);
    double mean = (double)dq_node_float(call->node, "mean", 0);
    double scale = (double)dq_node_float(call->node, "scale", 1);
    for (size_t i = 0; i < call->out[0]->count; i++)
        dq_tensor_put_double(call->out[0], i, mean + normal(seed, i) * scale);
    return DQ_OK;
}

static dq_status bernoulli_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    uint64_t seed = seed_of(call);
    for (size_t i = 0; i < call->out[0]->count; i++)
        dq_tensor_put_double(call->out[0], i,
                             uniform(seed, i) < dq_tensor_get_double(call->in[0], i) ? 1 : 0);
    return DQ_OK;
}

const dq_op_impl dq_op_random_uniform = {shape_infer, NULL, uniform_run, DQ_OP_IMPURE};
const dq_op_impl dq_op_random_normal = {shape_infer, NULL, normal_run, DQ_OP_IMPURE};
const dq_op_impl dq_op_random_uniform_like = {like_infer, NULL, uniform_run, DQ_OP_IMPURE};
const dq_op_impl dq_op_random_normal_like = {like_infer, NULL, normal_run, DQ_OP_IMPURE};
const dq_op_impl dq_op_bernoulli = {like_infer, NULL, bernoulli_run, DQ_OP_IMPURE};

/* ---- Multinomial --------------------------------------------------------------------------------------- */

static dq_status multinomial_infer(dq_op_call *call, dq_error *err)
{
    dq_dtype dtype = DQ_INT32;
    int64_t dims[2] = {0, dq_node_int(call->node, "sample_size", 1)};
    DQ_TRY(read_type(call, DQ_INT32, &dtype, err));
    if (call->in[0]->rank != 2 || call->in[0]->dims[1] == 0)
        return dq_call_fail_input(call, err, 0, "has rank %u, expected rows of one class or more",
                                  call->in[0]->rank);
    dims[0] = call->in[0]->dims[0];
    return dq_call_output(call, 0, dtype, 2, dims, err);
}

static dq_status multinomial_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const dq_tensor *in = call->in[0];
    size_t classes = (size_t)in->dims[1], draws = (size_t)call->out[0]->dims[1];
    uint64_t seed = seed_of(call);
    for (size_t row = 0; draws && row < (size_t)in->dims[0]; row++) {
        double highest = -(double)INFINITY, total = 0;
        for (size_t c = 0; c < classes; c++)
            highest = fmax(highest, dq_tensor_get_double(in, row * classes + c));
        for (size_t c = 0; c < classes; c++)
            total += dq_exp(dq_tensor_get_double(in, row * classes + c) - highest);
        for (size_t k = 0; k < draws; k++) {
            double left = uniform(seed, row * draws + k) * total;
            size_t chosen = 0;
            for (; chosen + 1 < classes; chosen++) {
                left -= dq_exp(dq_tensor_get_double(in, row * classes + chosen) - highest);
                if (left < 0)
                    break;
            }
            dq_tensor_put_int(call->out[0], row * draws + k, (int64_t)chosen);
        }
    }
    return DQ_OK;
}

const dq_op_impl dq_op_multinomial = {multinomial_infer, NULL, multinomial_run, DQ_OP_IMPURE};
