/* SPDX-License-Identifier: Apache-2.0 */
/* src/plan/memory_planner.c: offsets of values in one buffer from their liveness intervals. */
#include "base/checked.h"
#include "plan/memory_planner.h"
#include "support/random.h"
#include "support/test_program.h"

#include <stdlib.h>

static dq_error err;

/* Intervals of random sizes, alive for at most `longest` steps each, share no bytes at any time. */
static void check_intervals(size_t count, uint32_t steps, uint32_t longest, uint64_t state)
{
    dq_interval *intervals = calloc(count, sizeof *intervals);
    size_t total = 0, sum = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t first = random_below(&state, steps), last = first + random_below(&state, longest);
        intervals[i] = (dq_interval){.size = random_below(&state, 4096), .first = first, .last = last};
        sum += intervals[i].size + DQ_ALIGN;
    }
    ck_assert_int_eq(dq_assign_offsets(intervals, count, &total, &err), DQ_OK);
    ck_assert_uint_lt(total, sum / 2);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(intervals[i].offset % DQ_ALIGN, 0);
        ck_assert_uint_le(intervals[i].offset + intervals[i].size, total);
        for (size_t k = 0; k < i; k++) {
            bool together =
                intervals[i].first <= intervals[k].last && intervals[k].first <= intervals[i].last;
            bool disjoint = intervals[i].offset + intervals[i].size <= intervals[k].offset ||
                            intervals[k].offset + intervals[k].size <= intervals[i].offset;
            if (together && !disjoint && intervals[i].size && intervals[k].size)
                ck_abort_msg("intervals %zu and %zu overlap", k, i);
        }
    }
    free(intervals);
}

START_TEST(intervals_that_overlap_in_time_share_no_bytes)
{
    check_intervals(120, 64, 16, 1 + (uint64_t)_i);
}
END_TEST

/* More intervals than one search compares. */
START_TEST(thousands_of_intervals_share_no_bytes)
{
    check_intervals(8000, 4000, 1000, 99);
    check_intervals(8000, 4000, 3, 98);
}
END_TEST

START_TEST(sizes_that_overflow_are_refused)
{
    size_t total;
    dq_interval intervals[] = {{.size = SIZE_MAX / 2 + 1, .last = 1}, {.size = SIZE_MAX / 2 + 1, .last = 1}};
    ck_assert_int_eq(dq_assign_offsets(intervals, 2, &total, &err), DQ_OUT_OF_MEMORY);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("memory_planner", NULL, NULL);
    add_loop_test(&tests, intervals_that_overlap_in_time_share_no_bytes, 0, 20);
    add_test(&tests, thousands_of_intervals_share_no_bytes);
    add_test(&tests, sizes_that_overflow_are_refused);
    return test_program_run(&tests);
}
