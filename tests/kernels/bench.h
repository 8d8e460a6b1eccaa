/* SPDX-License-Identifier: Apache-2.0 */
/* Timing of kernels: what a kernel needs for a call, beside what this machine can do at most. */
#ifndef DQ_TESTS_KERNELS_BENCH_H
#define DQ_TESTS_KERNELS_BENCH_H

#include "kernels/kernels.h"

/** What one call does: bytes that must be read and written, multiply-adds. */
typedef struct bench_work {
    double read, written, products;
    bool bytes; /* products of 8-bit numbers, else of floats */
} bench_work;

/** Times one implementation and prints its line; false when its slot has no measure. */
bool bench_kernel(const char *isa_name, unsigned isa, const char *slot, const char *name,
                  const dq_kernels *k);
/** Measures the machine and prints what follows is held against. */
void bench_begin(void);
/** Prints more of the machine's rates: reads of each size of memory, and products of each level that it has.
 */
void bench_limits(void);

/* ---- bench_limits.c ---- */

/** Least seconds of many runs of run(arg), which takes its time `calls` times in a row. */
double bench_seconds(void (*run)(void *arg), void *arg);

/** Bytes a second of a plain loop over a piece of memory of `bytes`: reading, writing. */
double bench_read_rate(size_t bytes);
double bench_write_rate(size_t bytes);
/** The same of a loop that does both, one of the two four times as much as the other: quantizing and
 * dequantizing of 8-bit codes do. Bytes read and written count alike. The better of stores through the caches
 * and past them. */
double bench_copy_rate(size_t read, size_t written);
/** The numbers that an instruction multiplies: of 8 bits, of 16 bits, floats. */
typedef enum bench_number { BENCH_BYTES, BENCH_WORDS, BENCH_FLOATS } bench_number;
/** Multiply-adds a second that a loop over registers reaches with an instruction set's widest operations; 0:
 * not known. */
double bench_product_rate(unsigned isa, bench_number number);

#endif
