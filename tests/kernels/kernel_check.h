/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of kernels: each line of kernels.def is one test, run against the slot's contract written out, over
 * sizes around the vector widths and odd addresses. Memory ends at a page that must not be touched, or has
 * guard bytes behind it; in front of it are guard bytes always. */
#ifndef DQ_TESTS_KERNELS_KERNEL_CHECK_H
#define DQ_TESTS_KERNELS_KERNEL_CHECK_H

#include "kernels/kernels.h"

#include <stdbool.h>

/** Name of the implementation at work, for messages. */
extern const char *kernel_name;

/** A number below n, of a sequence that each test begins anew. */
uint32_t kernel_random(uint32_t n);
/** What a sum begins with: any int32, half of the times near an end of the range, where saturating shows. */
int32_t kernel_start(void);
/** Sizes to try: for (size_t i = 0; kernel_size(i, &n); i++) … */
bool kernel_size(size_t i, size_t *n);

/** Zeroed memory that lives until kernel_done: half of the times up to a forbidden page, otherwise aligned to
 * 64 bytes. */
void *kernel_memory(size_t bytes);
/** The same, filled with random bytes. */
void *kernel_bytes(size_t bytes);
/** Floats of all sizes, now and then infinite, NaN, -0 or denormal. */
float *kernel_floats(size_t n);

/** (sum * a * b + c) / y in real numbers (IEEE 754 where an operand is not finite, or y is 0), rounded to
 * nearest, ties to even; 2^20 in size at most; NaN gives INT32_MIN. */
int32_t kernel_quotient(int64_t sum, double a, float b, float c, float y);
/** What dq_requantize_s32_fn makes of a sum with the multiplier, and the bias, of a column. */
int32_t kernel_code(int32_t sum, const dq_requantize_to *to, size_t column);
/** Sums of all sizes. */
int32_t kernel_sum(void);
/** Multipliers of n columns, of which many make a tie or nearly one of sums[j], or are of extreme sizes. */
dq_requantize_to kernel_requantize_to(const int32_t *sums, size_t n);

/** Adds a bias of floats to columns whose scales are finite: any, or one that makes a tie or nearly one of
 * sums[j]. */
void kernel_add_bias(dq_requantize_to *to, const int32_t *sums, size_t n);

/** Fails the test when a guard byte of any memory since the last call changed; frees it all. */
void kernel_done(void);

#define KERNEL_FAIL_UNLESS(condition, ...)                                                                   \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            kernel_fail(__FILE__, __LINE__, __VA_ARGS__);                                                    \
    } while (0)
void kernel_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

/** One check for each slot; `k` is the portable table with one slot replaced. */
#define KERNEL_CHECK(slot) void check_##slot(const dq_kernels *k);
#include "checks.def"
#undef KERNEL_CHECK

#endif
