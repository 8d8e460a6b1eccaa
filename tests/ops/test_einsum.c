/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum. An equation of many operands runs as a chain of products: summed over all letters at once it
 * takes hours, and the test ends by its time limit. */
#include "harness.h"

#include <stdio.h>
#include <string.h>

START_TEST(small_equations)
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
        char message[128];
        snprintf(message, sizeof message,
                 "attribute 'equation' is '%s', which does not fit its inputs ([2,2])", wrong[i]);
        ops_begin(&c, "", "Einsum", 12);
        ops_string(&c, "equation", wrong[i]);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), NULL);
        ops_must_refuse(&c, DQ_BAD_MODEL, message);
        ops_end(&c);
    }
}
END_TEST

/* Two operands of float are a matrix product; doubles go term by term. Small integers: both are exact. */
static void product_of(const char *equation, size_t ranks[2], int64_t (*dims)[4])
{
    enum { MAX = 1 << 16 };
    static double values[2][MAX];
    ops_case c[2];
    for (int wide = 0; wide < 2; wide++) {
        ops_begin(&c[wide], "", "Einsum", 12);
        ops_string(&c[wide], "equation", equation);
        for (size_t side = 0; side < 2; side++) {
            size_t count = 1;
            for (size_t d = 0; d < ranks[side]; d++)
                count *= (size_t)dims[side][d];
            ck_assert_uint_le(count, MAX);
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

START_TEST(two_operands_as_a_matrix_product)
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
        {"ij,ij->ij", {2, 2}, {{5, 6}, {1, 6}}},         /* an axis of one is broadcast */
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

enum { LETTERS = 6, OPERANDS = 5, MAX = 5 * 5 * 5 };

/* Letter 'a' + i has lengths[i] places. */
static const int64_t lengths[LETTERS] = {3, 5, 2, 4, 1, 2};

static size_t shape_of(const char *letters, size_t count, int64_t *dims)
{
    size_t elements = 1;
    for (size_t d = 0; d < count; d++)
        elements *= (size_t)(dims[d] = lengths[letters[d] - 'a']);
    return elements;
}

static size_t place_of(const char *letters, size_t count, const int64_t *at)
{
    size_t place = 0;
    for (size_t d = 0; d < count; d++)
        place = place * (size_t)lengths[letters[d] - 'a'] + (size_t)at[letters[d] - 'a'];
    return place;
}

/* Against the sum over all letters; of integers, which wrap around. */
static void check_equation(const char *equation)
{
    const char *terms[OPERANDS], *result = strstr(equation, "->") + 2;
    size_t counts[OPERANDS], operands = 0;
    static double in[OPERANDS][MAX], want[MAX];
    static uint32_t sums[MAX];
    int64_t dims[8], at[LETTERS] = {0};
    ops_case c;
    ops_begin(&c, "", "Einsum", 12);
    ops_string(&c, "equation", equation);
    for (const char *from = equation; from < result; from += counts[operands++] + 1) {
        terms[operands] = from;
        counts[operands] = strcspn(from, ",-");
        const size_t elements = shape_of(from, counts[operands], dims);
        for (size_t i = 0; i < elements; i++)
            in[operands][i] =
                (double)((int64_t)(i * 2654435761u + operands * 97) % 65536 * 32768 - (1 << 30));
        ops_in(&c, DQ_INT32, counts[operands], dims, in[operands]);
        if (from[counts[operands]] == '-')
            from++;
    }
    memset(sums, 0, sizeof sums);
    for (bool more = true; more;) {
        uint32_t product = 1;
        bool seen = true; /* letters that no operand has stay at 0 */
        for (size_t i = 0; i < operands; i++)
            product *= (uint32_t)(int32_t)in[i][place_of(terms[i], counts[i], at)];
        for (int l = 0; l < LETTERS; l++)
            seen = seen && (at[l] == 0 || memchr(equation, 'a' + l, (size_t)(result - equation)));
        if (seen)
            sums[place_of(result, strlen(result), at)] += product;
        more = false;
        for (int l = 0; l < LETTERS && !more; l++) {
            more = ++at[l] < lengths[l];
            at[l] = more ? at[l] : 0;
        }
    }
    const size_t elements = shape_of(result, strlen(result), dims);
    for (size_t i = 0; i < elements; i++)
        want[i] = (double)(int32_t)sums[i];
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, strlen(result), dims, want);
    ops_end(&c);
}

START_TEST(many_operands_give_the_sum_over_all_letters)
{
    static const char *const equations[] = {
        "ab,bc,cd->ad",     "ab,bc,cd->",   "a,b,c->",  "ab,ac,bc->abc", "aa,ab,bc->c",
        "abc,bd,cd,af->df", "a,a,a,a,a->a", "abc,d->d", "ab,cd,ef->dfb", "ab,b,b,cb->ca"};
    for (size_t i = 0; i < sizeof equations / sizeof *equations; i++)
        check_equation(equations[i]);
}
END_TEST

/* All at once, these are 64^6 products. */
START_TEST(a_chain_of_matrices_takes_as_long_as_its_products)
{
    enum { N = 64 };
    static double ones[N * N], want[N * N];
    ops_case c;
    ops_begin(&c, "", "Einsum", 12);
    ops_string(&c, "equation", "ab,bc,cd,de,ef->af");
    for (size_t i = 0; i < N * N; i++) {
        ones[i] = 1;
        want[i] = (double)N * N * N * N;
    }
    for (int i = 0; i < 5; i++)
        ops_in(&c, DQ_FLOAT, OPS_DIMS(N, N), ones);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(N, N), want);
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("einsum", NULL, NULL);
    add_test(&tests, small_equations);
    add_test(&tests, two_operands_as_a_matrix_product);
    add_test(&tests, many_operands_give_the_sum_over_all_letters);
    add_test(&tests, a_chain_of_matrices_takes_as_long_as_its_products);
    return test_program_run(&tests);
}
