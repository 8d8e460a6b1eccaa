/* SPDX-License-Identifier: Apache-2.0 */
/* QMoE: routing and layers by hand; the arithmetic over many forms is compared elsewhere. */
#include "harness.h"

enum { INPUTS = 15 };
static const char *const formals[INPUTS] = {"input",           "router_probs",     "fc1_experts_weights",
                                            "fc1_scales",      "fc1_experts_bias", "fc2_experts_weights",
                                            "fc2_scales",      "fc2_experts_bias", "fc3_experts_weights",
                                            "fc3_scales",      "fc3_experts_bias", "fc1_zero_points",
                                            "fc2_zero_points", "fc3_zero_points",  "router_weights"};

static void begin(ops_case *c, const char *function)
{
    ops_begin(c, "com.microsoft", "QMoE", 1);
    for (size_t i = 0; i < INPUTS; i++)
        c->formals[i] = formals[i];
    ops_int(c, "expert_weight_bits", 8);
    ops_string(c, "activation_type", function);
}

/* A layer of three experts of `rows` rows and one column: expert e has the weights (e + 1) * scale. */
static void add_layer(ops_case *c, int64_t rows, double scale)
{
    double qvalues[6], scales[6];
    for (int64_t i = 0; i < 3 * rows; i++) {
        qvalues[i] = (double)(128 + i / rows + 1);
        scales[i] = scale;
    }
    ops_in(c, DQ_UINT8, OPS_DIMS(3, rows, 1), qvalues);
    ops_in(c, DQ_FLOAT, OPS_DIMS(3, rows), scales);
    ops_skip(c);
}

/* Expert e gives x * (e + 1)^2. */
static void add_experts(ops_case *c)
{
    add_layer(c, 1, 1);
    add_layer(c, 1, 1);
}

START_TEST(weights_given)
{
    for (int normalize = 0; normalize < 2; normalize++) {
        ops_case c;
        begin(&c, "identity");
        ops_int(&c, "k", 2);
        ops_int(&c, "normalize_routing_weights", normalize);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1), OPS_VALUES(1, 10));
        /* the second row: experts 0 and 1, the first of three equal ones */
        ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), OPS_VALUES(-1, 5, 7, 3, 3, 3));
        add_experts(&c);
        for (int i = 8; i < 14; i++)
            ops_skip(&c);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), OPS_VALUES(9, 1, 3, 0.5, 1.5, 9));
        ops_must_run(&c);
        double first = 1 * 4 + 3 * 9, second = 10 * (0.5 * 1 + 1.5 * 4);
        ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 1),
                 OPS_VALUES(normalize ? first / 4 : first, normalize ? second / 2 : second));
        ops_end(&c);
    }
}
END_TEST

/* Equal logits weigh alike. */
START_TEST(softmax_of_the_chosen)
{
    ops_case c;
    begin(&c, "relu");
    ops_int(&c, "k", 2);
    ops_in(&c, DQ_FLOAT16, OPS_DIMS(1, 2, 1), OPS_VALUES(2, -2));
    ops_in(&c, DQ_FLOAT16, OPS_DIMS(2, 3), OPS_VALUES(4, -9, 4, 1, 1, 0));
    add_experts(&c);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT16, OPS_DIMS(1, 2, 1), OPS_VALUES(10, 0));
    ops_end(&c);
}
END_TEST

/* Gate 40 and value 2 of expert 2, both in rows of layer 1: sigmoid(40) is 1 in float. */
START_TEST(swiglu)
{
    for (int fusion = 1; fusion < 3; fusion++) {
        ops_case c;
        begin(&c, "swiglu");
        ops_int(&c, "swiglu_fusion", fusion);
        ops_float(&c, "activation_beta", 1);
        ops_float(&c, "swiglu_limit", 100);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1), OPS_VALUES(1));
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 3), OPS_VALUES(0, 0, 1));
        ops_in(&c, DQ_UINT8, OPS_DIMS(3, 2, 1), OPS_VALUES(0, 0, 0, 0, 168, 130));
        ops_in(&c, DQ_FLOAT, OPS_DIMS(3, 2), OPS_VALUES(1, 1, 1, 1, 1, 1));
        ops_skip(&c);
        ops_in(&c, DQ_UINT8, OPS_DIMS(3, 1, 1), OPS_VALUES(0, 0, 129));
        ops_in(&c, DQ_FLOAT, OPS_DIMS(3, 1), OPS_VALUES(1, 1, 1));
        ops_must_run(&c);
        ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 1), OPS_VALUES(120));
        ops_end(&c);
    }
}
END_TEST

static void refuse(const char *function, const char *name, int64_t value, dq_status status,
                   const char *message)
{
    ops_case c;
    begin(&c, function);
    if (name)
        ops_int(&c, name, value);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), NULL);
    add_experts(&c);
    ops_must_refuse(&c, status, message);
    ops_end(&c);
}

/* One expert of weights 1 in 4 bits: 127 and 0.25 add up to 127 where the session lets them be rounded. */
START_TEST(rounded_to_8_bits)
{
    for (int honor = 0; honor < 2; honor++) {
        ops_case c;
        begin(&c, "identity");
        ops_int(&c, "accuracy_level", 4);
        ops_int(&c, "fc1_expert_weight_bits", 4);
        c.honor_accuracy_level = honor;
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2), OPS_VALUES(127, 0.25));
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1), OPS_VALUES(0));
        ops_in(&c, DQ_UINT8, OPS_DIMS(1, 1, 1), OPS_VALUES(0x99));
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1), OPS_VALUES(1));
        ops_skip(&c);
        ops_in(&c, DQ_UINT8, OPS_DIMS(1, 2, 1), OPS_VALUES(129, 129));
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2), OPS_VALUES(1, 1));
        ops_must_run(&c);
        double sum = honor ? 127 : 127.25;
        ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2), OPS_VALUES(sum, sum));
        ops_end(&c);
    }
}
END_TEST

START_TEST(refused)
{
    refuse(
        "elu", NULL, 0, DQ_BAD_MODEL,
        "attribute 'activation_type' is 'elu', expected relu, relu2, gelu, silu, swiglu, geglu or identity");
    refuse("relu", "k", 4, DQ_BAD_MODEL, "attribute 'k' is 4, expected 1 to 3 (experts)");
    refuse("relu", "use_sparse_mixer", 1, DQ_UNSUPPORTED, "attribute 'use_sparse_mixer' is not supported");
    refuse("relu", "weights_prepacked", 1, DQ_UNSUPPORTED,
           "weights packed for another runtime's kernels cannot be read");
    refuse("relu", "fc2_expert_weight_bits", 3, DQ_BAD_MODEL,
           "attribute 'fc2_expert_weight_bits' is 3, expected 2, 4 or 8");
    refuse("relu", "fc1_expert_weight_bits", 4, DQ_BAD_MODEL,
           "input 2 'fc1_experts_weights' has rows of 1 values, expected whole bytes of 4-bit values");
    refuse("relu", "block_size", 16, DQ_BAD_MODEL, "input 3 'fc1_scales' has shape [3,1], expected [3,1,1]");
    refuse("swiglu", NULL, 0, DQ_BAD_MODEL, "needs weights of layer 3 for swiglu without swiglu_fusion");
    refuse("swiglu", "swiglu_fusion", 1, DQ_BAD_MODEL,
           "input 2 'fc1_experts_weights' has 1 rows, expected as many gates as values");
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("qmoe", NULL, NULL);
    add_test(&tests, weights_given);
    add_test(&tests, softmax_of_the_chosen);
    add_test(&tests, swiglu);
    add_test(&tests, rounded_to_8_bits);
    add_test(&tests, refused);
    return test_program_run(&tests);
}
