/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul and Gemm. */
#include "base/file.h"
#include "harness.h"

#include <math.h>
#include <stdio.h>

START_TEST(matmul_small)
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

/* Small integers in floats: sums are exact in any order. */
static double small(size_t i)
{
    return (double)((i * 7919 + i / 13) % 17) - 8;
}

START_TEST(matmul_batches_over_blocks)
{
    enum { A_BATCH = 2, B_BATCH = 3, M = 70, K = 37, N = 131 };
    static double a[A_BATCH * M * K], b[B_BATCH * K * N], want[B_BATCH * A_BATCH * M * N];
    for (size_t i = 0; i < A_BATCH * M * K; i++)
        a[i] = small(i);
    for (size_t i = 0; i < B_BATCH * K * N; i++)
        b[i] = small(i + 5);
    for (size_t y = 0; y < B_BATCH; y++)
        for (size_t x = 0; x < A_BATCH; x++)
            for (size_t m = 0; m < M; m++)
                for (size_t n = 0; n < N; n++) {
                    double sum = 0;
                    for (size_t k = 0; k < K; k++)
                        sum += a[(x * M + m) * K + k] * b[(y * K + k) * N + n];
                    want[((y * A_BATCH + x) * M + m) * N + n] = sum;
                }
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

START_TEST(gemm_forms)
{
    ops_case c;
    ops_begin(&c, "", "Gemm", 13);
    ops_int(&c, "transA", 1);
    ops_int(&c, "transB", 1);
    ops_float(&c, "alpha", 0.5f);
    ops_float(&c, "beta", 2);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3, 2), OPS_VALUES(1, 4, 2, 5, 3, 6));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), OPS_VALUES(1, 0, 2, 0, 1, -1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1), OPS_VALUES(10, 20));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(23.5, 19.5, 48, 39.5));
    ops_end(&c);

    ops_begin(&c, "", "Gemm", 11); /* without C; integers */
    ops_in(&c, DQ_INT64, OPS_DIMS(1, 2), OPS_VALUES(3, 4));
    ops_in(&c, DQ_INT64, OPS_DIMS(2, 1), OPS_VALUES(5, 6));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(1, 1), OPS_VALUES(39));
    ops_end(&c);

    ops_begin(&c, "", "Gemm", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3, 4), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 2 has shape [3], expected one that broadcasts to [2,4]");
    ops_end(&c);
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

/* Fractions whose products and sums are rounded. */
static double fraction(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)((float)(*state >> 40) / 16777216.0f - 0.5f);
}

/* The contract: one chain of fused multiply-adds a sum, then alpha, then C. The harness runs each case with
 * portable kernels on one thread and constant operands (packed for all runs), and with the best kernels on
 * three threads. */
enum { NO_C, C_ROW, C_COLUMN, C_WHOLE };

static void gemm_bits(int64_t m, int64_t k, int64_t n, bool trans_a, bool trans_b, float alpha, int with_c)
{
    enum { MAX = 50000 };
    static double a[MAX], b[MAX], c_values[MAX], want[MAX];
    static uint64_t state = 7;
    ck_assert(m * k <= MAX && k * n <= MAX && m * n <= MAX);
    for (int64_t i = 0; i < m * k; i++)
        a[i] = fraction(&state);
    for (int64_t i = 0; i < k * n; i++)
        b[i] = fraction(&state);
    for (int64_t i = 0; i < m * n || i < m + n; i++)
        c_values[i] = fraction(&state);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum = fmaf((float)a[trans_a ? p * m + i : i * k + p],
                           (float)b[trans_b ? j * k + p : p * n + j], sum);
            if (alpha != 1)
                sum = alpha * sum;
            if (with_c)
                sum += (float)c_values[with_c == C_ROW ? j : with_c == C_WHOLE ? i * n + j : i];
            want[i * n + j] = (double)sum;
        }
    ops_case c;
    ops_begin(&c, "", "Gemm", 13);
    ops_int(&c, "transA", trans_a);
    ops_int(&c, "transB", trans_b);
    ops_float(&c, "alpha", alpha);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(trans_a ? k : m, trans_a ? m : k), a);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(trans_b ? n : k, trans_b ? k : n), b);
    if (with_c == C_ROW)
        ops_in(&c, DQ_FLOAT, OPS_DIMS(n), c_values);
    else if (with_c)
        ops_in(&c, DQ_FLOAT, OPS_DIMS(m, with_c == C_WHOLE ? n : 1), c_values);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(m, n), want);
    ops_end(&c);
}

START_TEST(gemm_to_the_bit)
{
    for (int flags = 0; flags < 16; flags++) {
        bool trans_a = flags & 1, trans_b = flags & 2;
        int with_c = flags & 4 ? C_ROW : NO_C;
        float alpha = flags & 8 ? 0.7f : 1;
        gemm_bits(1, 37, 45, trans_a, trans_b, alpha, with_c);
        gemm_bits(1, 600, 70, trans_a, trans_b, alpha, with_c);
        gemm_bits(23, 19, 1, trans_a, trans_b, alpha, with_c);
        gemm_bits(700, 70, 1, trans_a, trans_b, alpha, with_c);
        gemm_bits(700, 70, 1, trans_a, trans_b, alpha, C_COLUMN);
        gemm_bits(200, 3, 3, trans_a, trans_b, alpha, with_c);
        gemm_bits(131, 16, 2, trans_a, trans_b, alpha, with_c ? C_WHOLE : NO_C);
        gemm_bits(130, 300, 4, trans_a, trans_b, alpha, with_c);
        gemm_bits(7, 5, 16, trans_a, trans_b, alpha, with_c);
        gemm_bits(200, 40, 131, trans_a, trans_b, alpha, with_c);
        gemm_bits(13, 530, 33, trans_a, trans_b, alpha, with_c);
    }
}
END_TEST

/* Weights of 16 bits: constant, aligned or not, they are packed once; else they are widened in each run. */
START_TEST(gemm_of_16_bits)
{
    enum { M = 3, K = 75, N = 37 };
    static const dq_dtype types[] = {DQ_FLOAT16, DQ_BFLOAT16};
    double a[M * K], b[K * N], want[M * N];
    for (size_t i = 0; i < M * K; i++)
        a[i] = (double)(i * 7 % 5) - 2;
    for (size_t i = 0; i < K * N; i++)
        b[i] = (double)(i * 11 % 3) - 1;
    for (size_t form = 0; form < 4; form++) {
        const bool turned = form / 2;
        for (size_t i = 0; i < M * N; i++) {
            want[i] = 0;
            for (size_t p = 0; p < K; p++)
                want[i] += a[i / N * K + p] * b[turned ? i % N * K + p : p * N + i % N];
        }
        ops_case c;
        ops_begin(&c, "", "Gemm", 13);
        ops_int(&c, "transB", turned);
        ops_in(&c, types[form % 2], OPS_DIMS(M, K), a);
        ops_in(&c, types[form % 2], OPS_DIMS(turned ? N : K, turned ? K : N), b);
        ops_must_run(&c);
        ops_want(&c, 0, types[form % 2], OPS_DIMS(M, N), want);
        ops_end(&c);
    }
}
END_TEST

/* dqrun's forms: a bias and bounds upon the products, along rows and for one row of turned weights. */
START_TEST(bounded)
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
    for (int with_c = 0; with_c < 3; with_c++) {
        ops_begin(&c, "dqrun", "Gemm", 1);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 3), OPS_VALUES(1, 2, 3));
        ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), OPS_VALUES(1, 0, 0.5, 3, 4, 2));
        if (with_c)
            ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(-8, 1));
        ops_int(&c, "transB", 1);
        ops_float(&c, "beta", with_c == 2 ? 2 : 1);
        ops_floats(&c, "clip", 2, clip);
        ops_must_run(&c);
        ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2), OPS_VALUES(with_c ? -1 : 2.5, 9));
        ops_end(&c);
    }
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

/* Weights in a mapped file, aligned to nothing: they are packed as they stand, and their pages given back. */
START_TEST(unaligned_weights)
{
    enum { K = 1103, N = 517, PAD = 1 };
    static double a[3 * K];
    static float b[K * N];
    for (size_t i = 0; i < 3 * K; i++)
        a[i] = small(i);
    for (size_t i = 0; i < (size_t)K * N; i++)
        b[i] = (float)small(i + 5);
    FILE *stream = tmpfile();
    ck_assert_ptr_nonnull(stream);
    ck_assert_int_eq(fputc('x', stream), 'x');
    ck_assert_uint_eq(fwrite(b, sizeof *b, K * N, stream), K * N);
    ck_assert_int_eq(fflush(stream), 0);
    for (size_t form = 0; form < 4; form++) {
        size_t rows = form % 2 ? 3 : 1, across = form / 2 ? 1 : N, along = form / 2 ? K : 1;
        ops_case c;
        dq_file file;
        ops_begin(&c, "", "Gemm", 13);
        ops_in(&c, DQ_FLOAT, OPS_DIMS((int64_t)rows, K), a);
        ops_int(&c, "transB", form / 2);
        dq_tensor *w = form / 2 ? ops_in(&c, DQ_FLOAT, OPS_DIMS(N, K), NULL)
                                : ops_in(&c, DQ_FLOAT, OPS_DIMS(K, N), NULL);
        ck_assert_int_eq(dq_file_map_fd(fileno(stream), "weights", UINT64_MAX, NULL, DQ_IO, &file, &c.err),
                         DQ_OK);
        w->data = (void *)(uintptr_t)(file.bytes + PAD); /* inputs are never written */
        w->mapped = w->unaligned = true;
        c.weights = 2;
        ops_must_run(&c);
        for (size_t i = 0; i < rows * N; i++) {
            double sum = 0;
            for (size_t k = 0; k < K; k++)
                sum += a[i / N * K + k] * (double)b[k * across + i % N * along];
            ck_assert_double_eq((double)dq_data(c.out[0], float)[i], sum);
        }
        ops_end(&c);
        dq_file_unmap(&file);
    }
    fclose(stream);
}
END_TEST

int main(void)
{
    test_group tests = ops_group("MatMul, Gemm");
    add_test(&tests, gemm_to_the_bit);
    add_test(&tests, gemm_of_16_bits);
    add_test(&tests, matmul_small);
    add_test(&tests, matmul_batches_over_blocks);
    add_test(&tests, gemm_forms);
    add_test(&tests, fused);
    add_test(&tests, bounded);
    add_test(&tests, unaligned_weights);
    return run_suite(tests.suite);
}
