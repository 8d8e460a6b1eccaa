/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/cpu.c and quota.c: instruction sets and the share of the processors. */
#define _GNU_SOURCE /* sigaltstack */
#include "base/cpu.h"
#include "support/test_program.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

START_TEST(isa_names_mean_a_level_and_what_is_below)
{
    dq_error err;
    unsigned mask = 0;
    bool available;
    ck_assert_int_eq(dq_isa_from_name("c", &mask, &err), DQ_OK);
    ck_assert_uint_eq(mask, DQ_ISA_C);
    for (size_t i = 0; dq_isa_name(i, &available); i++) {
        dq_status status = dq_isa_from_name(dq_isa_name(i, NULL), &mask, &err);
        ck_assert_int_eq(status, available ? DQ_OK : DQ_INVALID_ARGUMENT);
        if (available)
            ck_assert_str_eq(dq_isa_highest(mask), dq_isa_name(i, NULL));
    }
    ck_assert_int_eq(dq_isa_from_name("mmx", &mask, &err), DQ_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.message, "ISA level 'mmx' is unknown, expected one of c"));
    ck_assert_uint_ge(dq_cpu_cores(), 1);
}
END_TEST

START_TEST(signal_stacks_too_small_for_tiles)
{
    static char workspace[8192]; /* AMX wants more */
    const stack_t stack = {.ss_sp = workspace, .ss_size = sizeof workspace};
    dq_error err;
    unsigned mask = 0;
    ck_assert_int_eq(dq_isa_from_name("c", &mask, &err), DQ_OK);
    ck_assert_int_eq(sigaltstack(&stack, NULL), 0); /* refused once the tiles are asked for */
    ck_assert_uint_eq(dq_cpu_isa() & DQ_ISA_AMX, 0);
}
END_TEST

/* Writes `text` to root/path, whose folders are made. */
static void write_below(const char *root, const char *path, const char *text)
{
    char whole[200];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        mkdir(whole, 0700);
    }
    FILE *f = fopen(whole, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

START_TEST(quotas_of_control_groups)
{
    char root[] = "/tmp/dqrun-test-XXXXXX", command[64];
    ck_assert_ptr_nonnull(mkdtemp(root));
    ck_assert_uint_eq(dq_cpu_quota(root), 0); /* no control groups at all */
    write_below(root, "/proc/self/cgroup", "1:name=systemd:/\n0::/a/b\n");
    ck_assert_uint_eq(dq_cpu_quota(root), 0);
    write_below(root, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    ck_assert_uint_eq(dq_cpu_quota(root), 0);
    write_below(root, "/sys/fs/cgroup/a/cpu.max", "350000 100000\n"); /* that of a group above */
    ck_assert_uint_eq(dq_cpu_quota(root), 3);
    write_below(root, "/sys/fs/cgroup/a/b/cpu.max", "20000 100000\n");
    ck_assert_uint_eq(dq_cpu_quota(root), 1);
    /* the older version, whose lines name controllers; cpuset and cpuacct are others */
    write_below(root, "/proc/self/cgroup", "7:cpuset:/a\n5:cpuacct,cpu:/outside\n0::/\n");
    write_below(root, "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000\n");
    write_below(root, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    ck_assert_uint_eq(dq_cpu_quota(root), 0);
    write_below(root, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
    ck_assert_uint_eq(dq_cpu_quota(root), 2);
    write_below(root, "/proc/self/cgroup", "7:cpuset:/a\nnonsense\n\n");
    ck_assert_uint_eq(dq_cpu_quota(root), 0);
    snprintf(command, sizeof command, "rm -r %s", root);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("cpu", NULL, NULL);
    add_test(&tests, isa_names_mean_a_level_and_what_is_below);
    add_test(&tests, signal_stacks_too_small_for_tiles);
    add_test(&tests, quotas_of_control_groups);
    return test_program_run(&tests);
}
