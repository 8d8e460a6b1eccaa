/* SPDX-License-Identifier: Apache-2.0 */
/* src/tensor/tensor.c: elements as doubles. */
#include "support/test_program.h"
#include "tensor/tensor.h"

#include <math.h>

/* Cut toward zero and held within the type's range, whose ends double does not always hold. */
START_TEST(doubles_become_integers_of_the_range)
{
    static const struct {
        dq_dtype dtype;
        double x;
        int64_t expected;
    } cases[] = {{DQ_INT64, 0x1p63, INT64_MAX},
                 {DQ_INT64, 0x1.fffffffffffffp62, INT64_MAX - 1023},
                 {DQ_INT64, (double)INFINITY, INT64_MAX},
                 {DQ_INT64, -0x1p63, INT64_MIN},
                 {DQ_INT64, -(double)INFINITY, INT64_MIN},
                 {DQ_INT64, (double)NAN, 0},
                 {DQ_UINT64, 0x1p64, -1}, /* all bits */
                 {DQ_UINT64, 0x1p63, INT64_MIN},
                 {DQ_UINT64, -3, 0},
                 {DQ_INT32, 2147483647.9, INT32_MAX},
                 {DQ_INT32, 2147483648.0, INT32_MAX},
                 {DQ_INT32, -2147483649.0, INT32_MIN},
                 {DQ_UINT8, 255.9, 255},
                 {DQ_UINT8, 300, 255},
                 {DQ_UINT8, -0.9, 0},
                 {DQ_INT8, -1.9, -1},
                 {DQ_INT4, 7.9, 7},
                 {DQ_INT4, -9, -8}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t bytes = 0;
        dq_error err;
        dq_tensor t = {.data = &bytes};
        ck_assert_int_eq(dq_tensor_set_shape(&t, cases[i].dtype, 0, NULL, 0, DQ_INTERNAL, &err), DQ_OK);
        dq_tensor_put_double(&t, 0, cases[i].x);
        ck_assert_msg(dq_tensor_get_int(&t, 0) == cases[i].expected, "%s, %a: got %lld, expected %lld",
                      dq_dtype_name(cases[i].dtype), cases[i].x, (long long)dq_tensor_get_int(&t, 0),
                      (long long)cases[i].expected);
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("tensor", NULL, NULL);
    add_test(&tests, doubles_become_integers_of_the_range);
    return test_program_run(&tests);
}
