/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/file.c: mapped files. */
#include "base/file.h"
#include "support/test_program.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

START_TEST(files_are_mapped_or_refused)
{
    dq_error err;
    dq_file file = {0};
    char path[] = "/tmp/dqrun-test-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_eq(dq_file_map(path, 100, NULL, DQ_BAD_MODEL, &file, &err), DQ_OK);
    ck_assert_uint_eq(file.size, 0);
    ck_assert_ptr_nonnull(file.bytes);
    dq_file_unmap(&file);
    ck_assert_int_eq(write(fd, "hello", 5), 5);
    ck_assert_int_eq(dq_file_map(path, 5, NULL, DQ_BAD_MODEL, &file, &err), DQ_OK);
    ck_assert_int_eq(memcmp(file.bytes, "hello", 5), 0);
    dq_file_unmap(&file);
    ck_assert_int_eq(dq_file_map(path, 4, NULL, DQ_BAD_MODEL, &file, &err), DQ_OUT_OF_MEMORY);
    ck_assert_int_eq(dq_file_map("/", 4, NULL, DQ_BAD_MODEL, &file, &err), DQ_BAD_MODEL);
    ck_assert_str_eq(err.message, "/: is a folder, expected a file");
    ck_assert_int_eq(dq_file_map("/dev/null", 4, NULL, DQ_BAD_INPUT, &file, &err), DQ_BAD_INPUT);
    ck_assert_int_eq(dq_file_map("/nonexistent", 4, NULL, DQ_BAD_INPUT, &file, &err), DQ_BAD_INPUT);
    close(fd);
    unlink(path);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("file", NULL, NULL);
    add_test(&tests, files_are_mapped_or_refused);
    return test_program_run(&tests);
}
