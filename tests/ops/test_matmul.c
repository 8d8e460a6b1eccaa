/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul and FusedMatMul. */
#include "harness.h"
#include "support/reference_matmul.h"

START_TEST(small_matrices)
{
    ops_case c;
    ops_begin(&c, "", "MatMul", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, 4, 5, 6));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3, 2), OPS_VALUES(1, 0, 0, 1, 2, -1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(7, -1, 16, -1));
    ops_end(&c);

    ops_begin(&c, "", "MatMul", 13); /* vectors lend an axis */
    ops_in(&c, DQ_FLOAT16, OPS_DIMS(3), OPS_VALUES(1, 2, 3));
    ops_in(&c, DQ_FLOAT16, OPS_DIMS(3), OPS_VALUES(4, 5, 6));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT16, OPS_SCALAR, OPS_VALUES(32));
    ops_end(&c);

    ops_begin(&c, "", "MatMul", 13); /* no terms: zeros */
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(2, 0), NULL);
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(0, 1), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_DOUBLE, OPS_DIMS(2, 1), OPS_VALUES(0, 0));
    ops_end(&c);

    ops_begin(&c, "", "MatMul", 13); /* integers wrap */
    ops_in(&c, DQ_INT32, OPS_DIMS(1, 2), OPS_VALUES(2147483647, 1));
    ops_in(&c, DQ_INT32, OPS_DIMS(2, 1), OPS_VALUES(2, 1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(1, 1), OPS_VALUES(-1));
    ops_end(&c);
}
END_TEST

START_TEST(batches_over_blocks)
{
    enum { A_BATCH = 2, B_BATCH = 3, M = 70, K = 37, N = 131 };
    static double a[A_BATCH * M * K], b[B_BATCH * K * N], want[B_BATCH * A_BATCH * M * N];
    for (size_t i = 0; i < A_BATCH * M * K; i++)
        a[i] = ops_small_integer(i);
    for (size_t i = 0; i < B_BATCH * K * N; i++)
        b[i] = ops_small_integer(i + 5);
    const ref_matmul shape = {.rank_a = 3,
                              .rank_b = 4,
                              .rank_y = 4,
                              .a = {A_BATCH, M, K},
                              .b = {B_BATCH, 1, K, N},
                              .y = {B_BATCH, A_BATCH, M, N},
                              .m = M,
                              .k = K,
                              .n = N};
    for (size_t i = 0; i < B_BATCH * A_BATCH * M * N; i++)
        want[i] = ref_matmul_f64(&shape, a, b, i);
    static const dq_dtype types[] = {DQ_FLOAT, DQ_DOUBLE, DQ_INT32, DQ_INT64};
    for (size_t t = 0; t < 4; t++) {
        ops_case c;
        ops_begin(&c, "", "MatMul", 13);
        ops_in(&c, types[t], OPS_DIMS(A_BATCH, M, K), a);
        ops_in(&c, types[t], OPS_DIMS(B_BATCH, 1, K, N), b);
        ops_must_run(&c);
        ops_want(&c, 0, types[t], OPS_DIMS(B_BATCH, A_BATCH, M, N), want);
        ops_end(&c);
    }
}
END_TEST

/* A is [rows, batch, columns] and then transposed: matrix b of it has rows A[:, b, :] as columns. */
START_TEST(fused)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "FusedMatMul", 1);
    ops_int(&c, "transA", 1);
    ops_int(&c, "transBatchA", 1);
    ops_int(&c, "transB", 1);
    ops_float(&c, "alpha", 0.5f);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2, 3), OPS_VALUES(1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2), OPS_VALUES(2, 4));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 3, 1), OPS_VALUES(21, 42, 63, 84, 105, 126));
    ops_end(&c);

    ops_begin(&c, "com.microsoft", "FusedMatMul", 1);
    ops_int(&c, "transBatchB", 1);
    ops_float(&c, "alpha", -2);
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(2), OPS_VALUES(1, 10));
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(2, 3, 1), OPS_VALUES(1, 2, 3, 4, 5, 6));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_DOUBLE, OPS_DIMS(3, 1), OPS_VALUES(-82, -104, -126));
    ops_end(&c);
}
END_TEST

/* The operator of the domain dqrun adds a bias and clips the products. */
START_TEST(bias_and_clip)
{
    const float clip[] = {-1, 9}, three[] = {0, 1, 2};
    ops_case c;
    ops_begin(&c, "dqrun", "MatMul", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, 4, 5, 6));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3, 2), OPS_VALUES(1, 0, 0, 1, 2, -1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(1, -1));
    ops_floats(&c, "clip", 2, clip);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(8, -1, 9, -1));
    ops_end(&c);
    ops_begin(&c, "dqrun", "MatMul", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 3), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3, 2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 2 has 3 elements, expected 2 (columns)");
    ops_end(&c);
    ops_begin(&c, "dqrun", "MatMul", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 3), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3, 2), NULL);
    ops_floats(&c, "clip", 3, three);
    ops_must_refuse(&c, DQ_BAD_MODEL, "attribute 'clip' has 3 values, expected 2");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("matmul", NULL, NULL);
    add_test(&tests, small_matrices);
    add_test(&tests, batches_over_blocks);
    add_test(&tests, fused);
    add_test(&tests, bias_and_clip);
    return test_program_run(&tests);
}
