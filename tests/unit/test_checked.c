/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/checked.h: sizes that overflow. */
#include "base/checked.h"
#include "support/test_program.h"

START_TEST(checked_sizes_refuse_overflow)
{
    size_t out;
    ck_assert(dq_mul_size(SIZE_MAX / 2, 2, &out) && out == SIZE_MAX - 1);
    ck_assert(!dq_mul_size(SIZE_MAX / 2 + 1, 2, &out));
    ck_assert(!dq_add_size(SIZE_MAX, 1, &out));
    ck_assert(dq_align_size(65, 64, &out) && out == 128);
    ck_assert(!dq_align_size(SIZE_MAX - 3, 64, &out));
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("checked", NULL, NULL);
    add_test(&tests, checked_sizes_refuse_overflow);
    return test_program_run(&tests);
}
