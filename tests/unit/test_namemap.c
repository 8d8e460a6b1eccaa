/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/namemap.c: the hash table from names to pointers. */
#include "base/namemap.h"
#include "support/test_program.h"

#include <stdio.h>

START_TEST(namemap_finds_what_was_put)
{
    dq_namemap map = {0};
    static char names[5000][12];
    for (size_t i = 0; i < 5000; i++) {
        snprintf(names[i], sizeof names[i], "n%zu", i * 7919);
        ck_assert(dq_namemap_put(&map, names[i], &names[i]));
    }
    ck_assert_uint_eq(map.count, 5000);
    for (size_t i = 0; i < 5000; i++)
        ck_assert_ptr_eq(dq_namemap_get(&map, names[i]), &names[i]);
    ck_assert_ptr_null(dq_namemap_get(&map, "absent"));
    ck_assert(dq_namemap_put(&map, "n0", names));
    ck_assert_ptr_eq(dq_namemap_get(&map, "n0"), names);
    ck_assert_uint_eq(map.count, 5000);
    dq_namemap_free(&map);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("namemap", NULL, NULL);
    add_test(&tests, namemap_finds_what_was_put);
    return test_program_run(&tests);
}
