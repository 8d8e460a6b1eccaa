/* SPDX-License-Identifier: Apache-2.0 */
/* Reshape, Flatten, Squeeze, Unsqueeze, Shape, Size, Constant, ConstantOfShape. */
#include "harness.h"

#define INTS(...) sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), ((const int64_t[]){__VA_ARGS__})
#define LIST(...) OPS_DIMS(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), OPS_VALUES(__VA_ARGS__)

static const double SIX[] = {1, 2, 3, 4, 5, 6};

START_TEST(reshapes)
{
    ops_case c;
    ops_begin(&c, "", "Reshape", 14);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), SIX);
    ops_in(&c, DQ_INT64, LIST(0, -1, 1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 3, 1), SIX);
    ops_end(&c);

    ops_begin(&c, "", "Reshape", 14); /* zeros that are zeros */
    ops_int(&c, "allowzero", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(0, 3), NULL);
    ops_in(&c, DQ_INT64, LIST(3, 0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(3, 0), NULL);
    ops_end(&c);

    ops_begin(&c, "", "Reshape", 1);
    ops_ints(&c, "shape", INTS(3, 2));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), SIX);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(3, 2), SIX);
    ops_end(&c);

    ops_begin(&c, "", "Reshape", 14);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), SIX);
    ops_in(&c, DQ_INT64, LIST(-1, 4));
    ops_must_refuse(&c, DQ_BAD_MODEL, "cannot reshape [2,3] to [?,4]");
    ops_end(&c);
}
END_TEST

START_TEST(flattens)
{
    static const int64_t axes[] = {0, 1, -1, 3}, want[4][2] = {{1, 6}, {2, 3}, {2, 3}, {6, 1}};
    for (size_t i = 0; i < 4; i++) {
        ops_case c;
        ops_begin(&c, "", "Flatten", 13);
        ops_int(&c, "axis", axes[i]);
        ops_in(&c, DQ_UINT8, OPS_DIMS(2, 1, 3), SIX);
        ops_must_run(&c);
        ops_want(&c, 0, DQ_UINT8, 2, want[i], SIX);
        ops_end(&c);
    }
}
END_TEST

START_TEST(squeezes)
{
    ops_case c;
    ops_begin(&c, "", "Squeeze", 13);
    ops_in(&c, DQ_INT4, OPS_DIMS(1, 3, 1, 2), SIX);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT4, OPS_DIMS(3, 2), SIX);
    ops_end(&c);

    ops_begin(&c, "", "Squeeze", 11);
    ops_ints(&c, "axes", INTS(-2));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 3, 1, 2), SIX);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 3, 2), SIX);
    ops_end(&c);

    ops_begin(&c, "", "Squeeze", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), SIX);
    ops_in(&c, DQ_INT64, LIST(1));
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 0 has dimension 3 at axis 1, expected 1");
    ops_end(&c);

    ops_begin(&c, "", "Unsqueeze", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), SIX);
    ops_in(&c, DQ_INT64, LIST(-1, 0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2, 3, 1), SIX);
    ops_end(&c);
}
END_TEST

START_TEST(shapes_as_data)
{
    ops_case c;
    ops_begin(&c, "", "Shape", 15);
    ops_int(&c, "start", -2);
    ops_int(&c, "end", 99);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(4, 0, 3), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(2), OPS_VALUES(0, 3));
    ops_end(&c);

    ops_begin(&c, "", "Shape", 1);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(0), NULL);
    ops_end(&c);

    ops_begin(&c, "", "Size", 13);
    ops_in(&c, DQ_INT2, OPS_DIMS(2, 3), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_SCALAR, OPS_VALUES(6));
    ops_end(&c);
}
END_TEST

START_TEST(constants)
{
    ops_case c;
    ops_begin(&c, "", "Constant", 13);
    ops_ints(&c, "value_ints", INTS(7, -8));
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
    ops_in(&c, DQ_INT64, LIST(2, 2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(0, 0, 0, 0));
    ops_end(&c);

    uint8_t packed = 0x0d; /* int4: -3 */
    dq_tensor value = {.dtype = DQ_INT4, .rank = 1, .dims = {1}, .count = 1, .size = 1, .data = &packed};
    ops_begin(&c, "", "ConstantOfShape", 25);
    c.attrs[c.node.attr_count++] =
        (dq_attr){.name = "value", .kind = DQ_ATTR_TENSOR, .u = {.tensor = &value}};
    ops_in(&c, DQ_INT64, LIST(3));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT4, OPS_DIMS(3), OPS_VALUES(-3, -3, -3));
    ops_end(&c);

    ops_begin(&c, "", "ConstantOfShape", 9);
    ops_in(&c, DQ_INT64, LIST(-1));
    ops_must_refuse(&c, DQ_BAD_MODEL, "output 0 has shape [?], expected dimensions of 0 or more");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_group tests = ops_group("shapes and constants");
    add_test(&tests, reshapes);
    add_test(&tests, flattens);
    add_test(&tests, squeezes);
    add_test(&tests, shapes_as_data);
    add_test(&tests, constants);
    add_test(&tests, constants_of_a_shape);
    return run_suite(tests.suite);
}
