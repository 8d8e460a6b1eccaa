/* SPDX-License-Identifier: Apache-2.0 */
/* Gemm. */
#include "base/file.h"
#include "harness.h"
#include "support/random.h"
#include "support/reference_matmul.h"

#include <stdio.h>

START_TEST(forms)
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
        a[i] = random_fraction(&state);
    for (int64_t i = 0; i < k * n; i++)
        b[i] = random_fraction(&state);
    for (int64_t i = 0; i < m * n || i < m + n; i++)
        c_values[i] = random_fraction(&state);
    ref_matmul shape = ref_matmul_2d(m, k, n);
    shape.trans_a = trans_a;
    shape.trans_b = trans_b;
    for (int64_t i = 0; i < m * n; i++) {
        float sum = ref_matmul_f32(&shape, a, b, (size_t)i);
        if (alpha != 1)
            sum = alpha * sum;
        if (with_c)
            sum += (float)c_values[with_c == C_ROW ? i % n : with_c == C_WHOLE ? i : i / n];
        want[i] = (double)sum;
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

START_TEST(sums_to_the_bit)
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
START_TEST(half_precision_weights)
{
    enum { M = 3, K = 75, N = 37 };
    static const dq_dtype types[] = {DQ_FLOAT16, DQ_BFLOAT16};
    double a[M * K], b[K * N], want[M * N];
    for (size_t i = 0; i < M * K; i++)
        a[i] = (double)(i * 7 % 5) - 2;
    for (size_t i = 0; i < K * N; i++)
        b[i] = (double)(i * 11 % 3) - 1;
    for (size_t form = 0; form < 4; form++) {
        ref_matmul shape = ref_matmul_2d(M, K, N);
        shape.trans_b = form / 2;
        for (size_t i = 0; i < M * N; i++)
            want[i] = ref_matmul_f64(&shape, a, b, i);
        ops_case c;
        ops_begin(&c, "", "Gemm", 13);
        ops_int(&c, "transB", shape.trans_b);
        ops_in(&c, types[form % 2], OPS_DIMS(M, K), a);
        ops_in(&c, types[form % 2], OPS_DIMS(shape.trans_b ? N : K, shape.trans_b ? K : N), b);
        ops_must_run(&c);
        ops_want(&c, 0, types[form % 2], OPS_DIMS(M, N), want);
        ops_end(&c);
    }
}
END_TEST

/* The operator of the domain dqrun clips the products: one row, transposed weights. */
START_TEST(clips)
{
    const float clip[] = {-1, 9};
    for (int with_c = 0; with_c < 3; with_c++) {
        ops_case c;
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
}
END_TEST

/* Weights in a mapped file, aligned to nothing: they are packed as they stand, and their pages given back. */
START_TEST(unaligned_weights)
{
    enum { K = 1103, N = 517, PAD = 1 };
    static double a[3 * K], b[K * N];
    static float weights[K * N];
    for (size_t i = 0; i < 3 * K; i++)
        a[i] = ops_small_integer(i);
    for (size_t i = 0; i < (size_t)K * N; i++)
        weights[i] = (float)(b[i] = ops_small_integer(i + 5));
    FILE *stream = tmpfile();
    ck_assert_ptr_nonnull(stream);
    ck_assert_int_eq(fputc('x', stream), 'x');
    ck_assert_uint_eq(fwrite(weights, sizeof *weights, K * N, stream), K * N);
    ck_assert_int_eq(fflush(stream), 0);
    for (size_t form = 0; form < 4; form++) {
        size_t rows = form % 2 ? 3 : 1;
        ref_matmul shape = ref_matmul_2d((int64_t)rows, K, N);
        shape.trans_b = form / 2;
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
        for (size_t i = 0; i < rows * N; i++)
            ck_assert_double_eq((double)dq_data(c.out[0], float)[i], ref_matmul_f64(&shape, a, b, i));
        ops_end(&c);
        dq_file_unmap(&file);
    }
    fclose(stream);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("gemm", NULL, NULL);
    add_test(&tests, forms);
    add_test(&tests, sums_to_the_bit);
    add_test(&tests, half_precision_weights);
    add_test(&tests, clips);
    add_test(&tests, unaligned_weights);
    return test_program_run(&tests);
}
