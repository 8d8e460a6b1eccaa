/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that choose or sort: NonMaxSuppression, Unique, strings; those that read or write at given places
 * and refuse places outside; Einsum; Fourier transforms; random numbers. */
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

START_TEST(sums_of_products)
{
    ops_case c; /* integers wrap around; the ellipsis broadcasts */
    ops_begin(&c, "", "Einsum", 12);
    ops_string(&c, "equation", "...ij, ...jk -> ...ik");
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 1, 2), OPS_VALUES(16, 1, 3, 4));
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 1), OPS_VALUES(16, 5));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(2, 1, 1), OPS_VALUES(5, 68));
    ops_end(&c);

    ops_begin(&c, "", "Einsum", 12); /* the trace, and letters in the order of ASCII */
    ops_string(&c, "equation", "ii");
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(1, 2, 3, 4));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(5));
    ops_end(&c);

    ops_begin(&c, "", "Einsum", 12);
    ops_string(&c, "equation", "bA");
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2), OPS_VALUES(1, 2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 1), OPS_VALUES(1, 2));
    ops_end(&c);

    ops_begin(&c, "", "Einsum", 12); /* an empty sum is 0 */
    ops_string(&c, "equation", "ij,jk->ik");
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 0), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(0, 2), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2), OPS_VALUES(0, 0));
    ops_end(&c);

    static const char *const wrong[] = {"ij,jk", "i->j", "ij->ii", "i.j", "ijk", "ij-", "ij->i,j", ""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char sentence[128];
        snprintf(sentence, sizeof sentence,
                 "attribute 'equation' is '%s', which does not fit its inputs ([2,2])", wrong[i]);
        ops_begin(&c, "", "Einsum", 12);
        ops_string(&c, "equation", wrong[i]);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), NULL);
        ops_must_refuse(&c, DQ_BAD_MODEL, sentence);
        ops_end(&c);
    }
}
END_TEST

/* Two operands of float are a matrix product; doubles go term by term. Small integers: both are exact. */
static void product_of(const char *equation, size_t ranks[2], int64_t (*dims)[4])
{
    enum { MOST = 1 << 16 };
    static double values[2][MOST];
    ops_case c[2];
    for (int wide = 0; wide < 2; wide++) {
        ops_begin(&c[wide], "", "Einsum", 12);
        ops_string(&c[wide], "equation", equation);
        for (size_t side = 0; side < 2; side++) {
            size_t count = 1;
            for (size_t d = 0; d < ranks[side]; d++)
                count *= (size_t)dims[side][d];
            ck_assert_uint_le(count, MOST);
            for (size_t i = 0; i < count; i++)
                values[side][i] = (double)(i * (7 + 4 * side) % 13) - 6;
            ops_in(&c[wide], wide ? DQ_DOUBLE : DQ_FLOAT, ranks[side], dims[side], values[side]);
        }
        ops_must_run(&c[wide]);
    }
    const dq_tensor *got = c[0].out[0], *want = c[1].out[0];
    ops_want(&c[0], 0, DQ_FLOAT, want->rank, want->dims, dq_data(want, double));
    ck_assert_uint_eq(got->count, want->count);
    ops_end(&c[0]);
    ops_end(&c[1]);
}

START_TEST(einsum_as_a_product)
{
    static const struct {
        const char *equation;
        size_t ranks[2];
        int64_t dims[2][4];
    } cases[] = {
        {"bhid,bhjd->bhij", {4, 4}, {{2, 3, 9, 5}, {2, 3, 20, 5}}},
        {"bsnh,btnh->bnst", {4, 4}, {{2, 7, 3, 5}, {2, 17, 3, 5}}},
        {"bhwc,hkc->bhwk", {4, 3}, {{2, 3, 4, 5}, {3, 6, 5}}},
        {"bhwc,hkc->bhwk", {4, 3}, {{2, 3, 9, 5}, {3, 6, 5}}},      /* rows are even on one axis only */
        {"bsnh,btnh->bnts", {4, 4}, {{2, 7, 3, 5}, {2, 17, 3, 5}}}, /* the right operand has the rows */
        {"abc,cd->dba", {3, 2}, {{2, 3, 40}, {40, 5}}},
        {"abc,bcd->ad", {3, 3}, {{4, 3, 5}, {3, 5, 6}}}, /* two axes are summed */
        {"abc,cbd->ad", {3, 3}, {{4, 3, 5}, {5, 3, 6}}}, /* in another order on the right */
        {"iij,jk->ik", {3, 2}, {{3, 3, 4}, {4, 5}}},     /* a diagonal */
        {"i,j->ji", {1, 1}, {{17}, {33}}},               /* no axis is summed */
        {"ab,ab->", {2, 2}, {{6, 7}, {6, 7}}},           /* all are */
        {"...i,...i->...", {3, 1}, {{2, 3, 8}, {8}}},    /* an operand without the axes before */
        {"ij,ij->ij", {2, 2}, {{5, 6}, {1, 6}}},         /* an axis of one that is stretched */
        {"ik,jk->ij", {2, 2}, {{2, 20000}, {3, 20000}}}, /* more steps than are listed */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t ranks[2] = {cases[i].ranks[0], cases[i].ranks[1]};
        int64_t dims[2][4];
        memcpy(dims, cases[i].dims, sizeof dims);
        product_of(cases[i].equation, ranks, dims);
    }
}
END_TEST

static void boxes(ops_case *c, double most, double overlap)
{
    ops_begin(c, "", "NonMaxSuppression", 11);
    ops_in(c, DQ_FLOAT, OPS_DIMS(1, 3, 4), OPS_VALUES(0, 0, 1, 1, 0, 0, 1, 0.5, 1, 1, 0, 0.5));
    ops_in(c, DQ_FLOAT, OPS_DIMS(1, 1, 3), OPS_VALUES(0.5, 0.5, 0.75));
    ops_in(c, DQ_INT64, OPS_DIMS(1), &most);
    ops_in(c, DQ_FLOAT, OPS_SCALAR, &overlap);
}

START_TEST(suppression)
{
    ops_case c; /* boxes 0 and 1, and 0 and 2, overlap by exactly a half; 1 and 2 touch */
    boxes(&c, 9e18, 0.5);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(3, 3), OPS_VALUES(0, 0, 2, 0, 0, 0, 0, 0, 1));
    ops_end(&c);
    boxes(&c, 2, 0.25);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(2, 3), OPS_VALUES(0, 0, 2, 0, 0, 1));
    ops_end(&c);
    boxes(&c, -1, 0.5);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(0, 3), NULL);
    ops_end(&c);
    for (int bounded = 0; bounded < 2; bounded++) { /* batches and classes; one class has none above -1 */
        static const double all[] = {0, 0, 0, 0, 0, 1, 0, 1, 1, 1, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0};
        static const double some[] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0};
        ops_begin(&c, "", "NonMaxSuppression", 11);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2, 4), OPS_VALUES(0, 0, 1, 1, 3, 3, 4, 4, 0, 0, 1, 1, 3, 3, 4, 4));
        ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2, 2),
               OPS_VALUES(0, -0.0, (double)NAN, -(double)INFINITY, -2, -1, 5, 6));
        ops_in(&c, DQ_INT64, OPS_SCALAR, OPS_VALUES(7));
        ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(0.5));
        if (bounded)
            ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(-1));
        ops_must_run(&c);
        ops_want(&c, 0, DQ_INT64, OPS_DIMS(bounded ? 4 : 7, 3), bounded ? some : all);
        ops_end(&c);
    }
}
END_TEST

static float shared(const double *x, const double *y) /* of all that two boxes cover */
{
    float common = 1, area[2] = {1, 1};
    for (int d = 0; d < 2; d++) {
        const float low = (float)fmax(x[d], y[d]), high = (float)fmin(x[2 + d], y[2 + d]);
        common *= high > low ? high - low : 0;
        area[0] *= (float)x[2 + d] - (float)x[d];
        area[1] *= (float)y[2 + d] - (float)y[d];
    }
    return common / (area[0] + area[1] - common);
}

/* Many boxes, equal scores among them, beside the definition. */
START_TEST(suppression_of_many)
{
    enum { N = 211 };
    static double x[N * 4], scores[N], want[N * 3];
    for (size_t i = 0; i < N; i++) {
        const double place[2] = {(double)(i * i % 89), (double)(i * 7 % 61)};
        for (size_t d = 0; d < 2; d++) {
            x[i * 4 + d] = place[d];
            x[i * 4 + 2 + d] = place[d] + 5 + (double)(i % (11 + d));
        }
        scores[i] = (double)(i * 37 % 64) / 64;
    }
    for (int bits = 0; bits < 8; bits++) {
        const double lowest = bits & 1 ? 0.875 : 0, most = bits & 2 ? 10 : N;
        const float overlap = bits & 4 ? 0.5f : 0.0625f;
        size_t found = 0, at[N];
        for (size_t step = 0; step < 64; step++) /* from the highest score on */
            for (size_t i = 0; i < N; i++) {
                bool free =
                    scores[i] == (double)(63 - step) / 64 && scores[i] > lowest && (double)found < most;
                for (size_t k = 0; free && k < found; k++)
                    free = !(shared(x + i * 4, x + at[k] * 4) > overlap);
                if (free)
                    at[found++] = i;
            }
        for (size_t k = 0; k < found; k++) {
            want[k * 3] = want[k * 3 + 1] = 0;
            want[k * 3 + 2] = (double)at[k];
        }
        ops_case c;
        ops_begin(&c, "", "NonMaxSuppression", 11);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1, N, 4), x);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, N), scores);
        ops_in(&c, DQ_INT64, OPS_SCALAR, &most);
        ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES((double)overlap));
        ops_in(&c, DQ_FLOAT, OPS_SCALAR, &lowest);
        ops_must_run(&c);
        ops_want(&c, 0, DQ_INT64, OPS_DIMS((int64_t)found, 3), want);
        ops_end(&c);
    }
}
END_TEST

START_TEST(different_elements)
{
    ops_case c; /* NaNs are one, and last; -0 is 0 */
    ops_begin(&c, "", "Unique", 11);
    c.out_count = 4;
    ops_in(&c, DQ_FLOAT, OPS_DIMS(5), OPS_VALUES((double)NAN, 0, -1, -0.0, (double)NAN));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(-1, 0, (double)NAN));
    ops_want(&c, 1, DQ_INT64, OPS_DIMS(3), OPS_VALUES(2, 1, 0));
    ops_want(&c, 2, DQ_INT64, OPS_DIMS(5), OPS_VALUES(2, 1, 0, 1, 2));
    ops_want(&c, 3, DQ_INT64, OPS_DIMS(3), OPS_VALUES(1, 2, 2));
    ops_end(&c);
    ops_begin(&c, "", "Unique", 11);
    ops_in(&c, DQ_INT32, OPS_DIMS(0), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(0), NULL);
    ops_end(&c);
}
END_TEST

START_TEST(different_slices)
{
    ops_case c;
    ops_begin(&c, "", "Unique", 11);
    c.out_count = 3;
    ops_int(&c, "sorted", 0);
    ops_int(&c, "axis", -1);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 4), OPS_VALUES(9, 1, 9, 1, 0, 2, 0, 3));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(2, 3), OPS_VALUES(9, 1, 1, 0, 2, 3));
    ops_want(&c, 1, DQ_INT64, OPS_DIMS(3), OPS_VALUES(0, 1, 3));
    ops_want(&c, 2, DQ_INT64, OPS_DIMS(4), OPS_VALUES(0, 1, 0, 2));
    ops_end(&c);

    ops_begin(&c, "", "Unique", 11);
    ops_in_strings(&c, OPS_DIMS(4), (const char *const[]){"b", "", "ab", "b"});
    ops_must_run(&c);
    ops_want_strings(&c, 0, OPS_DIMS(3), (const char *const[]){"", "ab", "b"});
    ops_end(&c);
}
END_TEST

START_TEST(split_strings)
{
    ops_case c;
    ops_begin(&c, "", "StringSplit", 20);
    c.out_count = 2;
    ops_in_strings(&c, OPS_DIMS(3), (const char *const[]){"  a b ", "", "c"});
    ops_must_run(&c);
    ops_want_strings(&c, 0, OPS_DIMS(3, 2), (const char *const[]){"a", "b", "", "", "c", ""});
    ops_want(&c, 1, DQ_INT64, OPS_DIMS(3), OPS_VALUES(2, 0, 1));
    ops_end(&c);

    ops_begin(&c, "", "StringSplit", 20);
    ops_string(&c, "delimiter", "--");
    ops_int(&c, "maxsplit", 1);
    ops_in_strings(&c, OPS_SCALAR, (const char *const[]){"--a--b"});
    ops_must_run(&c);
    ops_want_strings(&c, 0, OPS_DIMS(2), (const char *const[]){"", "a--b"});
    ops_end(&c);

    ops_begin(&c, "", "StringNormalizer", 10);
    ops_string(&c, "case_change_action", "UPPER");
    ops_in_strings(&c, OPS_DIMS(1, 3),
                   (const char *const[]){"stra\xC3\x9F"
                                         "e",
                                         "\xC3\xA9\xFF", "\xD1\x91"});
    ops_must_run(&c); /* the sharp s has no upper case of one letter; a stray byte stays */
    ops_want_strings(&c, 0, OPS_DIMS(1, 3),
                     (const char *const[]){"STRA\xC3\x9F"
                                           "E",
                                           "\xC3\x89\xFF", "\xD0\x81"});
    ops_end(&c);
}
END_TEST

static bool matches(const char *pattern, const char *text)
{
    ops_case c;
    ops_begin(&c, "", "RegexFullMatch", 20);
    ops_string(&c, "pattern", pattern);
    ops_in_strings(&c, OPS_SCALAR, &text);
    ops_must_run(&c);
    bool result = dq_data(c.out[0], uint8_t)[0] != 0;
    ops_end(&c);
    return result;
}

START_TEST(patterns)
{
    static const struct {
        const char *pattern, *yes, *no;
    } rows[] = {
        {"", "", "a"},
        {"abc", "abc", "abcd"},
        {"a.c",
         "a\xC3\xA9"
         "c",
         "a\nc"},
        {"(?s)a.c", "a\nc", "ac"},
        {"(?i)[a-c]X", "Bx", "dx"},
        {"a*b+c?", "bb", "aac"},
        {"(a|bc|)d", "bcd", "bd"},
        {"(?:one|two|three)+", "threeone", "thre"},
        {"(a{2,3}){2}", "aaaaa", "aaaaaaa"},
        {"x{0}y{1,}?z{,2}", "yyz{,2}", "xyz"},
        {"a{0,2}", "aa", "aaa"},
        {"(a*)*b", "aaab", "aaa"},
        {"[^a-c\\d]+", "xyz", "x1"},
        {"[]a-]+", "]-a", "b"},
        {"[[:alpha:]_]\\w*", "_9", "9_"},
        {"\\D\\S\\W", "ab ", "1b "},
        {"\\x41\\x{3b1}\\.", "A\xCE\xB1.", "A\xCE\xB1x"},
        {"\\Qa.b\\E+", "a.bb", "axb"},
        {"\\Q|)\\E", "|)", "|"},
        {"^ab$", "ab", "b"},
        {"\\bab\\b.*", "ab c", "abc"},
        {"(?P<n>a)\\B.", "ab", "a."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_msg(matches(rows[i].pattern, rows[i].yes), "%s does not match %s", rows[i].pattern,
                      rows[i].yes);
        ck_assert_msg(!matches(rows[i].pattern, rows[i].no), "%s matches %s", rows[i].pattern, rows[i].no);
    }
    char many[2001] = {0}; /* takes for ever where matching goes back and forth */
    memset(many, 'a', 2000);
    ck_assert(!matches("(a|a|aa)*(a+)+b", many));
}
END_TEST

START_TEST(wrong_patterns)
{
    static const struct {
        const char *pattern;
        dq_status status;
    } wrong[] = {{"(", DQ_BAD_MODEL},
                 {")", DQ_BAD_MODEL},
                 {"[a", DQ_BAD_MODEL},
                 {"*a", DQ_BAD_MODEL},
                 {"[b-a]", DQ_BAD_MODEL},
                 {"a\\", DQ_BAD_MODEL},
                 {"a{2,1}", DQ_BAD_MODEL},
                 {"(a)\\1", DQ_UNSUPPORTED},
                 {"(?=a)", DQ_UNSUPPORTED},
                 {"(?<=a)", DQ_UNSUPPORTED},
                 {"((a{1000}){1000}){1000}", DQ_OUT_OF_MEMORY}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ops_case c;
        ops_begin(&c, "", "RegexFullMatch", 20);
        ops_string(&c, "pattern", wrong[i].pattern);
        ops_in_strings(&c, OPS_DIMS(0), NULL);
        ck_assert_msg(ops_run(&c) == wrong[i].status, "%s", wrong[i].pattern);
        ops_end(&c);
    }
}
END_TEST

/* All lengths up to 70 against the definition; 37 and up, but for 64, go by a chirp. */
START_TEST(transforms)
{
    for (int64_t n = 1; n <= 70; n++) {
        double x[70], want[140];
        for (int64_t i = 0; i < n; i++)
            x[i] = (double)(i * i % 13) - 6;
        for (int64_t k = 0; k < n; k++) {
            double sum[2] = {0};
            for (int64_t i = 0; i < n; i++) {
                double angle = -6.283185307179586 * (double)(i * k % n) / (double)n;
                sum[0] += x[i] * cos(angle);
                sum[1] += x[i] * sin(angle);
            }
            memcpy(want + 2 * k, sum, sizeof sum);
        }
        ops_case c;
        ops_begin(&c, "", "DFT", 20);
        ops_in(&c, DQ_DOUBLE, OPS_DIMS(n, 1), x);
        ops_must_run(&c);
        for (int64_t i = 0; i < 2 * n; i++)
            ck_assert_double_eq_tol(dq_data(c.out[0], double)[i], want[i], 1e-11);
        ops_end(&c);

        ops_begin(&c, "", "DFT", 20); /* half a spectrum back to the signal */
        ops_int(&c, "inverse", 1);
        ops_int(&c, "onesided", 1);
        ops_in(&c, DQ_DOUBLE, OPS_DIMS(n / 2 + 1, 2), want);
        ops_in(&c, DQ_INT64, OPS_SCALAR, OPS_VALUES((double)n));
        ops_must_run(&c);
        ck_assert_int_eq(c.out[0]->dims[0], n);
        for (int64_t i = 0; i < n; i++)
            ck_assert_double_eq_tol(dq_data(c.out[0], double)[i], x[i], 1e-11);
        ops_end(&c);
    }
    ops_case c;
    ops_begin(&c, "", "DFT", 20);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(4, 1), NULL);
    ops_in(&c, DQ_INT64, OPS_SCALAR, OPS_VALUES(0));
    ops_must_refuse(&c, DQ_BAD_MODEL, "has a length of 0, expected 1 or more");
    ops_end(&c);
}
END_TEST

/* A seed gives its numbers, and another one others; their mean and spread are those asked for. */
START_TEST(random_numbers)
{
    enum { N = 20000 };
    static float kept[2][N];
    for (int seed = 0; seed < 2; seed++)
        for (int normal = 0; normal < 2; normal++) {
            double sum = 0, squares = 0;
            ops_case c;
            ops_begin(&c, "", normal ? "RandomNormal" : "RandomUniform", 22);
            ops_ints(&c, "shape", 1, (const int64_t[]){N});
            ops_float(&c, "seed", (float)seed);
            ops_must_run(&c);
            for (size_t i = 0; i < N; i++) {
                double x = (double)dq_data(c.out[0], float)[i];
                ck_assert(normal || (x >= 0 && x <= 1));
                sum += x;
                squares += x * x;
            }
            double mean = sum / N, variance = squares / N - mean * mean;
            ck_assert_double_eq_tol(mean, normal ? 0 : 0.5, 0.03);
            ck_assert_double_eq_tol(variance, normal ? 1 : 1.0 / 12, normal ? 0.05 : 0.005);
            if (!normal)
                memcpy(kept[seed], c.out[0]->data, sizeof kept[0]);
            ops_end(&c);
        }
    ck_assert(memcmp(kept[0], kept[1], sizeof kept[0]) != 0);
}
END_TEST

START_TEST(outside)
{
    ops_case c;
    ops_begin(&c, "", "MaxUnpool", 22);
    ops_ints(&c, "kernel_shape", 1, (const int64_t[]){2});
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 1), NULL);
    ops_in(&c, DQ_INT64, OPS_DIMS(1, 1, 1), OPS_VALUES(2));
    ops_must_refuse(&c, DQ_BAD_INPUT, "input 1 holds index 2, expected 0 to 1");
    ops_end(&c);

    ops_begin(&c, "", "RoiAlign", 22);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 4), OPS_VALUES(0, 0, 1, 1));
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(1));
    ops_must_refuse(&c, DQ_BAD_INPUT, "has a region of image 1, expected 0 to 0");
    ops_end(&c);

    ops_begin(&c, "", "RoiAlign", 22); /* a region as large as a float can say does not run for ever */
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 4), OPS_VALUES(0, 0, 1048576, 1));
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(0));
    ops_must_refuse(&c, DQ_BAD_INPUT, "takes 1.04858e+06 samples of a bin, and at most 65536 run");
    ops_end(&c);

    ops_begin(&c, "", "NegativeLogLikelihoodLoss", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 3), NULL);
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(-1));
    ops_must_refuse(&c, DQ_BAD_INPUT, "input 1 holds class -1, expected 0 to 2");
    ops_end(&c);

    ops_begin(&c, "", "Col2Im", 18);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 4, 1), NULL);
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(3));
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(4));
    ops_must_refuse(&c, DQ_BAD_MODEL,
                    "has blocks of 4 for an image of 3 along spatial axis 0, which do not fit");
    ops_end(&c);
}
END_TEST

/* Two queries, three keys, of which one is cached: the causal bound and a boolean mask leave the first query
 * none. */
/* More places than are found at a time, on planes: what lies between pixels is on them too. */
START_TEST(grids)
{
    enum { SIDE = 9, PLACES = 150, IMAGES = 4 };
    static const dq_dtype types[] = {DQ_FLOAT, DQ_DOUBLE};
    for (size_t t = 0; t < 2; t++) {
        double x[IMAGES * SIDE * SIDE], grid[2 * PLACES * 2], want[IMAGES * PLACES];
        for (size_t i = 0; i < IMAGES * SIDE * SIDE; i++)
            x[i] = (double)(i % SIDE + 16 * (i / SIDE % SIDE) + 1000 * (i / SIDE / SIDE));
        for (size_t i = 0; i < 2 * PLACES * 2; i++)
            grid[i] = (double)(i * 37 % 129) / 64 - 1;
        for (size_t i = 0; i < IMAGES * PLACES; i++) { /* two channels of two batches */
            const double *place = grid + (i / PLACES / 2 * PLACES + i % PLACES) * 2;
            want[i] = (place[0] + 1) * 4 + 16 * (place[1] + 1) * 4 + 1000 * (double)(i / PLACES);
        }
        ops_case c;
        ops_begin(&c, "", "GridSample", 22);
        ops_int(&c, "align_corners", 1);
        ops_in(&c, types[t], OPS_DIMS(2, 2, SIDE, SIDE), x);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(2, PLACES / 10, 10, 2), grid);
        ops_must_run(&c);
        ops_want(&c, 0, types[t], OPS_DIMS(2, 2, PLACES / 10, 10), want);
        ops_end(&c);
    }
}
END_TEST

/* A cubic beside the border's pixel, a quarter outside its centre: the grid's range ends at the pixel's
 * corner. */
START_TEST(cubic_at_the_border)
{
    for (int align = 0; align < 2; align++) {
        ops_case c;
        ops_begin(&c, "", "GridSample", 22);
        ops_string(&c, "mode", "cubic");
        ops_string(&c, "padding_mode", "border");
        ops_int(&c, "align_corners", align);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 1, 4), OPS_VALUES(0, 1, 5, 9));
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 3, 2), OPS_VALUES(-0.875, 0, -1.5, 0, 1.5, 0));
        ops_must_run(&c);
        ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 1, 1, 3),
                 align ? OPS_VALUES(0.0780029296875, 0, 9) : OPS_VALUES(-0.10546875, 0, 9));
        ops_end(&c);
    }
}
END_TEST

START_TEST(attention)
{
    ops_case c;
    ops_begin(&c, "", "Attention", 24);
    ops_int(&c, "is_causal", 1);
    c.out_count = 3;
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 1), OPS_VALUES(1, 0));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 1), OPS_VALUES(5, 7));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 1), OPS_VALUES(2, 4));
    ops_in(&c, DQ_BOOL, OPS_DIMS(2, 3), OPS_VALUES(0, 0, 1, 1, 0, 1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 1, 1), OPS_VALUES(3));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 1, 1), OPS_VALUES(1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 1, 2, 1), OPS_VALUES(0, 2.5));
    ops_want(&c, 1, DQ_FLOAT, OPS_DIMS(1, 1, 3, 1), OPS_VALUES(3, 5, 7));
    ops_want(&c, 2, DQ_FLOAT, OPS_DIMS(1, 1, 3, 1), OPS_VALUES(1, 2, 4));
    ops_end(&c);

    ops_begin(&c, "", "Attention", 24);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 1, 1), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 1), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 1), NULL);
    ops_skip(&c);
    ops_skip(&c);
    ops_skip(&c);
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(3));
    ops_must_refuse(&c, DQ_BAD_INPUT, "input 6 holds 3, expected 0 to 2 (keys)");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_group tests = ops_group("select");
    add_test(&tests, sums_of_products);
    add_test(&tests, einsum_as_a_product);
    add_test(&tests, suppression);
    add_test(&tests, suppression_of_many);
    add_test(&tests, different_elements);
    add_test(&tests, different_slices);
    add_test(&tests, split_strings);
    add_test(&tests, patterns);
    add_test(&tests, wrong_patterns);
    add_test(&tests, transforms);
    add_test(&tests, random_numbers);
    add_test(&tests, outside);
    add_test(&tests, grids);
    add_test(&tests, cubic_at_the_border);
    add_test(&tests, attention);
    return run_suite(tests.suite);
}
