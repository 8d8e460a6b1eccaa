/* SPDX-License-Identifier: Apache-2.0 */
/* src/plan/fold_constants.c: constants that all sessions of a program share. */
#include "plan/fold_constants.h"
#include "support/test_program.h"

#include <string.h>

static dq_folded *folded;
static dq_error err;

static void set_up(void)
{
    ck_assert_int_eq(dq_folded_create(2, NULL, &folded, &err), DQ_OK);
}

static void tear_down(void)
{
    dq_folded_free(folded);
}

START_TEST(numbers_are_copied)
{
    float data[2] = {7, 8};
    dq_tensor t = {.data = data};
    const dq_tensor *kept = NULL;
    ck_assert_int_eq(dq_tensor_set_shape(&t, DQ_FLOAT, 1, (int64_t[]){2}, 0, DQ_BAD_MODEL, &err), DQ_OK);
    ck_assert_ptr_null(dq_folded_get(folded, 1));
    ck_assert_int_eq(dq_folded_put(folded, 1, &t, &kept, &err), DQ_OK);
    memset(data, 0, sizeof data);
    ck_assert_ptr_eq(dq_folded_get(folded, 1), kept);
    ck_assert_mem_eq(kept->data, ((float[]){7, 8}), sizeof data);
    ck_assert_ptr_null(dq_folded_get(folded, 0));
}
END_TEST

/* The bytes of strings belong to the run that computed them, whose memory is reused. */
START_TEST(strings_are_copied_with_their_bytes)
{
    char bytes[] = "one\0two";
    dq_string data[2] = {{bytes, 3}, {bytes + 4, 3}};
    dq_tensor t = {.data = data};
    const dq_tensor *kept = NULL;
    ck_assert_int_eq(dq_tensor_set_shape(&t, DQ_STRING, 1, (int64_t[]){2}, 0, DQ_BAD_MODEL, &err), DQ_OK);
    ck_assert_int_eq(dq_folded_put(folded, 0, &t, &kept, &err), DQ_OK);
    memset(bytes, '-', sizeof bytes);
    memset(data, 0, sizeof data);
    const dq_string *strings = kept->data;
    ck_assert_uint_eq(strings[0].length, 3);
    ck_assert_mem_eq(strings[0].bytes, "one", 4);
    ck_assert_uint_eq(strings[1].length, 3);
    ck_assert_mem_eq(strings[1].bytes, "two", 4);
}
END_TEST

/* Two sessions may compute the same constant at the same time. */
START_TEST(the_first_result_stays)
{
    float data = 7;
    dq_tensor t = {.data = &data};
    const dq_tensor *first = NULL, *second = NULL;
    ck_assert_int_eq(dq_tensor_set_shape(&t, DQ_FLOAT, 0, NULL, 0, DQ_BAD_MODEL, &err), DQ_OK);
    ck_assert_int_eq(dq_folded_put(folded, 0, &t, &first, &err), DQ_OK);
    ck_assert_int_eq(dq_folded_put(folded, 0, &t, &second, &err), DQ_OK);
    ck_assert_ptr_eq(first, second);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("fold_constants", set_up, tear_down);
    add_test(&tests, numbers_are_copied);
    add_test(&tests, strings_are_copied_with_their_bytes);
    add_test(&tests, the_first_result_stays);
    return test_program_run(&tests);
}
