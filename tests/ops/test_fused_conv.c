/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft's FusedConv: activations and the sum with Z. */
#include "harness.h"

typedef struct fused_case {
    const char *activation;
    size_t params;
    float values[7];
    double want[3];
} fused_case;

/* Sums of -4, 1 and 9, to which Z adds 1. */
static void run_fused(const fused_case *f, size_t channels)
{
    ops_case c;
    double z[12], bias[4], weights[4], expected[12];
    for (size_t i = 0; i < 3 * channels; i++) {
        z[i] = 1;
        expected[i] = f->want[i % 3];
    }
    for (size_t i = 0; i < channels; i++) {
        bias[i] = -1;
        weights[i] = 1;
    }
    ops_begin(&c, "com.microsoft", "FusedConv", 1);
    ops_string(&c, "activation", f->activation);
    if (f->params)
        ops_floats(&c, "activation_params", f->params, f->values);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 3), OPS_VALUES(-4, 1, 9));
    ops_in(&c, DQ_FLOAT, OPS_DIMS((int64_t)channels, 1, 1), weights);
    ops_in(&c, DQ_FLOAT, OPS_DIMS((int64_t)channels), bias);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, (int64_t)channels, 3), z);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, (int64_t)channels, 3), expected);
    ops_end(&c);
}

START_TEST(activations)
{
    static const fused_case cases[] = {
        {"Relu", 0, {0}, {0, 1, 9}},
        {"LeakyRelu", 1, {0.5f}, {-2, 1, 9}},
        {"Clip", 2, {-3, 5}, {-3, 1, 5}},
        {"HardSigmoid", 2, {0.25f, 0.5f}, {0, 0.75, 1}},
        {"Gate", 7, {0.125f, 0.5f, 0, 1, 4, 2, 1}, {1, 1.3125, 5.5}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_fused(&cases[i], 1); /* without a matrix product */
        run_fused(&cases[i], 4);
    }
}
END_TEST

static void refuse_fused(const char *activation, size_t params, int64_t z, dq_status status,
                         const char *message)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "FusedConv", 1);
    ops_string(&c, "activation", activation);
    if (params)
        ops_floats(&c, "activation_params", params, (const float[]){1, 2, 3});
    c.formals[3] = "Z";
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 3), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 1), NULL);
    ops_skip(&c);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, z), NULL);
    ops_must_refuse(&c, status, message);
    ops_end(&c);
}

START_TEST(refusals)
{
    refuse_fused("Relu", 0, 1, DQ_BAD_MODEL,
                 "input 3 'Z' has shape [1,1,1], expected that of the result, [1,1,3]");
    refuse_fused("Clip", 1, 3, DQ_BAD_MODEL,
                 "attribute 'activation_params' has 1 values, expected 2 for Clip");
    refuse_fused(
        "Elu", 1, 3, DQ_UNSUPPORTED,
        "attribute 'activation' is 'Elu', expected Relu, Tanh, Sigmoid, LeakyRelu, HardSigmoid or Clip");
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("fused_conv", NULL, NULL);
    add_test(&tests, activations);
    add_test(&tests, refusals);
    return test_program_run(&tests);
}
