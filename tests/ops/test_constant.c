/* SPDX-License-Identifier: Apache-2.0 */
/* Constant and ConstantOfShape. */
#include "harness.h"

START_TEST(constants)
{
    ops_case c;
    ops_begin(&c, "", "Constant", 13);
    ops_ints(&c, "value_ints", OPS_INTS(7, -8));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(2), OPS_VALUES(7, -8));
    ops_end(&c);

    ops_begin(&c, "", "Constant", 12);
    ops_float(&c, "value_float", 0.5f);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(0.5));
    ops_end(&c);

    ops_begin(&c, "", "Constant", 25);
    ops_string(&c, "value_string", "text");
    ops_must_run(&c);
    ops_want_strings(&c, 0, OPS_SCALAR, (const char *const[]){"text"});
    ops_end(&c);

    ops_begin(&c, "", "Constant", 25);
    ops_must_refuse(&c, DQ_BAD_MODEL, "has none of the attributes that give a value");
    ops_end(&c);
}
END_TEST

START_TEST(constants_of_a_shape)
{
    ops_case c;
    ops_begin(&c, "", "ConstantOfShape", 9);
    ops_in(&c, DQ_INT64, OPS_VECTOR(2, 2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(0, 0, 0, 0));
    ops_end(&c);

    uint8_t packed = 0x0d; /* int4: -3 */
    dq_tensor value = {.dtype = DQ_INT4, .rank = 1, .dims = {1}, .count = 1, .size = 1, .data = &packed};
    ops_begin(&c, "", "ConstantOfShape", 25);
    c.attrs[c.node.attr_count++] =
        (dq_attr){.name = "value", .kind = DQ_ATTR_TENSOR, .u = {.tensor = &value}};
    ops_in(&c, DQ_INT64, OPS_VECTOR(3));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT4, OPS_DIMS(3), OPS_VALUES(-3, -3, -3));
    ops_end(&c);

    ops_begin(&c, "", "ConstantOfShape", 9);
    ops_in(&c, DQ_INT64, OPS_VECTOR(-1));
    ops_must_refuse(&c, DQ_BAD_MODEL, "output 0 has shape [?], expected dimensions of 0 or more");
    ops_end(&c);
}
END_TEST

START_TEST(constant_of_shape_refuses)
{
    ops_case c;
    ops_begin(&c, "", "ConstantOfShape", 25);
    ops_in(&c, DQ_INT64, OPS_DIMS(1, 2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 0 has 2 elements and rank 2, expected a list of at most 16");
    ops_end(&c);
    float pair[2] = {1, 2};
    dq_tensor value = {
        .dtype = DQ_FLOAT, .rank = 1, .dims = {2}, .count = 2, .size = sizeof pair, .data = pair};
    ops_begin(&c, "", "ConstantOfShape", 25);
    c.attrs[c.node.attr_count++] =
        (dq_attr){.name = "value", .kind = DQ_ATTR_TENSOR, .u = {.tensor = &value}};
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(3));
    ops_must_refuse(&c, DQ_BAD_MODEL, "attribute 'value' has 2 elements, expected 1");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("constant", NULL, NULL);
    add_test(&tests, constants);
    add_test(&tests, constants_of_a_shape);
    add_test(&tests, constant_of_shape_refuses);
    return test_program_run(&tests);
}
