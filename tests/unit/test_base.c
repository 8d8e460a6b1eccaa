/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sigaltstack */
/* src/base: errors, checked sizes, arena, name map, threads, CPU. */
#include "base/arena.h"
#include "base/checked.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/file.h"
#include "base/namemap.h"
#include "base/threads.h"
#include "support/suite.h"
#include "threads_of.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(errors_keep_whole_characters_when_cut)
{
    dq_error err;
    char text[2000];
    memset(text, 'x', sizeof text);
    /* two-byte characters all along, so that the cut falls beside one */
    for (size_t i = 0; i + 1 < sizeof text; i += 2)
        memcpy(text + i, "ä", 2);
    text[sizeof text - 1] = '\0';
    ck_assert_int_eq(dq_fail(&err, DQ_BAD_MODEL, "%s", text), DQ_BAD_MODEL);
    size_t length = strlen(err.message);
    ck_assert_uint_lt(length, sizeof err.message);
    ck_assert_str_eq(err.message + length - 3, "…");
    ck_assert_int_eq((length - 3) % 2, 0);
    ck_assert_int_eq(dq_fail(NULL, DQ_IO, "nobody listens"), DQ_IO);
}
END_TEST

START_TEST(errors_are_text)
{
    dq_error err;
    dq_fail(
        &err, DQ_BAD_MODEL, "%s",
        "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 \xC3( \xE2\x82 \xF0( \xC0\x80 \xED\xA0\x80 \xF4\x90\x80\x80 "
        "\xFF \xC2\x85 \x7F");
    ck_assert_str_eq(err.message, "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 ?( ?? ?( ?? ??? ???? ? ?? ?");
}
END_TEST

START_TEST(errors_take_a_prefix)
{
    dq_error err;
    dq_fail(&err, DQ_BAD_INPUT, "has 3, expected %d", 4);
    dq_error_prefix(&err, "m.onnx: node '%s': ", "a\nb");
    ck_assert_str_eq(err.message, "m.onnx: node 'a?b': has 3, expected 4");
    char text[1000];
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    dq_error_prefix(&err, "%s", text);
    ck_assert_uint_lt(strlen(err.message), sizeof err.message);
    dq_error_prefix(&err, "%s", text);
    ck_assert_str_eq(err.message + strlen(err.message) - 3, "…");
}
END_TEST

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

START_TEST(arena_pieces_are_apart_aligned_and_zero)
{
    dq_arena arena = {0};
    size_t wrong = 0;
    for (int round = 0; round < 3; round++) {
        char *pieces[200];
        for (size_t i = 0; i < 200; i++) {
            size_t size = i * 37 % 5000, align = (size_t)1 << i % 7;
            pieces[i] = dq_arena_alloc(&arena, size, align);
            ck_assert_ptr_nonnull(pieces[i]);
            ck_assert_uint_eq((uintptr_t)pieces[i] % align, 0);
            for (size_t k = 0; k < size; k++)
                wrong += pieces[i][k] != 0;
            memset(pieces[i], (int)i, size);
        }
        for (size_t i = 0; i < 200; i++)
            for (size_t k = 0; k < i * 37 % 5000; k++)
                wrong += pieces[i][k] != (char)i;
        dq_arena_reset(&arena);
    }
    ck_assert_uint_eq(wrong, 0);
    ck_assert_ptr_null(dq_arena_array(&arena, SIZE_MAX / 2, 3));
    ck_assert_ptr_null(dq_arena_alloc(&arena, SIZE_MAX - 8, 16));
    ck_assert_str_eq(dq_arena_printf(&arena, "%d-%s", 7, "x"), "7-x");
    dq_arena_free(&arena);
}
END_TEST

/* The rest of the block is as long as the piece, but not as the piece and its padding. */
START_TEST(arena_counts_padding)
{
    dq_arena arena = {0};
    ck_assert_ptr_nonnull(dq_arena_alloc(&arena, 1, 1));
    size_t held = arena.held;
    char *piece = dq_arena_alloc(&arena, held - 1, 2);
    ck_assert_ptr_nonnull(piece);
    ck_assert_uint_ge(arena.held, 2 * held);
    memset(piece, 1, held - 1);
    dq_arena_free(&arena);
}
END_TEST

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

typedef struct visits {
    atomic_uint count[1000];
    atomic_uint wrong;
    size_t grain;
    unsigned workers;
} visits;

static void visit(void *arg, size_t begin, size_t end, unsigned worker)
{
    visits *v = arg;
    if (begin % v->grain || end - begin > v->grain || worker >= v->workers)
        atomic_fetch_add(&v->wrong, 1);
    sigset_t blocked; /* the process's signals are not for workers, a fault of their own is */
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    if (sigismember(&blocked, SIGINT) != (worker > 0) || sigismember(&blocked, SIGSEGV))
        atomic_fetch_add(&v->wrong, 1);
    for (size_t i = begin; i < end; i++)
        atomic_fetch_add(&v->count[i], 1);
}

START_TEST(threads_visit_every_item_once)
{
    static visits v;
    dq_error err;
    dq_threads *threads = NULL;
    ck_assert_int_eq(threads_of((unsigned)_i, &threads, &err), DQ_OK);
    v.workers = dq_threads_count(threads);
    for (size_t n = 0; n <= 1000; n += 125)
        for (v.grain = 1; v.grain < 200; v.grain += 66) {
            memset(v.count, 0, sizeof v.count);
            dq_parallel(threads, n, v.grain, visit, &v);
            for (size_t i = 0; i < 1000; i++)
                v.wrong += v.count[i] != (i < n);
            if (n % 2) /* work finds them awake and asleep */
                dq_threads_rest(threads);
        }
    ck_assert_uint_eq(v.wrong, 0);
    dq_threads_free(threads);
}
END_TEST

typedef struct sum {
    atomic_size_t items, calls;
} sum;

static void add_items(void *arg, size_t begin, size_t end, unsigned worker)
{
    sum *s = arg;
    (void)worker;
    for (size_t i = begin; i < end; i++)
        atomic_fetch_add_explicit(&s->items, i + 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->calls, 1, memory_order_relaxed);
}

/* Jobs that end before most threads have heard of them, one after another on the same memory: what a late
 * thread would take from the next job, or twice, would be missing or too much. */
START_TEST(late_threads_disturb_nothing)
{
    dq_error err;
    dq_threads *threads = NULL;
    ck_assert_int_eq(threads_of(40, &threads, &err), DQ_OK);
    for (size_t round = 0; round < 3000; round++) {
        sum s = {0};
        size_t n = 2 + round % 7, grain = 1 + round % 2;
        dq_parallel(threads, n, grain, add_items, &s);
        ck_assert_uint_eq(s.items, n * (n + 1) / 2);
        ck_assert_uint_eq(s.calls, (n + grain - 1) / grain);
        if (round % 100 == 0)
            dq_threads_rest(threads);
    }
    dq_threads_free(threads);
}
END_TEST

/* Units of every block once and in order, and where units suffice as many pieces for each thread, and as much
 * work as can be. */
START_TEST(blocks_are_cut_so_that_no_thread_is_left_over)
{
    dq_error err;
    dq_threads *threads = NULL;
    unsigned count = (unsigned)_i;
    ck_assert_int_eq(threads_of(count, &threads, &err), DQ_OK);
    for (size_t blocks = 0; blocks < 20; blocks++)
        for (size_t units = 1; units < 20; units++) {
            dq_partition cut = dq_threads_cut(threads, blocks, units);
            size_t next[20] = {0}, begin, end, pieces = dq_partition_count(&cut), work[5] = {0};
            for (size_t i = 0; i < pieces; i++) {
                size_t block = dq_partition_piece(&cut, i, units, &begin, &end);
                ck_assert_uint_lt(block, blocks);
                ck_assert_uint_eq(begin, next[block]);
                ck_assert_uint_lt(begin, end);
                next[block] = end;
                work[i * count / pieces] += end - begin;
            }
            for (size_t i = 0; i < blocks; i++)
                ck_assert_uint_eq(next[i], units);
            if (units >= count)
                ck_assert_uint_eq(pieces % count, 0);
            for (size_t i = 0; i < count && units % count == 0; i++)
                ck_assert_uint_eq(work[i], blocks * units / count);
        }
    dq_threads_free(threads);
}
END_TEST

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

START_TEST(signal_stacks_without_room_for_tiles)
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
    Suite *suite = suite_create("base");
    test_group tests = {.suite = suite};
    add_test(&tests, errors_keep_whole_characters_when_cut);
    add_test(&tests, errors_are_text);
    add_test(&tests, errors_take_a_prefix);
    add_test(&tests, checked_sizes_refuse_overflow);
    add_test(&tests, arena_pieces_are_apart_aligned_and_zero);
    add_test(&tests, arena_counts_padding);
    add_test(&tests, namemap_finds_what_was_put);
    add_loop_test(&tests, threads_visit_every_item_once, 1, 5);
    add_test(&tests, late_threads_disturb_nothing);
    add_loop_test(&tests, blocks_are_cut_so_that_no_thread_is_left_over, 1, 5);
    add_test(&tests, isa_names_mean_a_level_and_what_is_below);
    add_test(&tests, signal_stacks_without_room_for_tiles);
    add_test(&tests, quotas_of_control_groups);
    add_test(&tests, files_are_mapped_or_refused);
    return run_suite(suite);
}
