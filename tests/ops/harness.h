/* SPDX-License-Identifier: Apache-2.0 */
/* Drives one operator the way the planner and the executor do, without a model: a case is an operator, its
 * attributes and its inputs.
 *
 * ops_run runs every case three times and wants the same bytes: with all inputs constant, portable C kernels
 * and one thread; with inputs that get their data only at run time (but those in `weights`), the CPU's best
 * kernels and three threads; and with those kernels, constant inputs (loose ones where the operator takes
 * them) and one thread. It also wants inputs unchanged and nothing written past the end of an output. */
#ifndef DQ_TESTS_OPS_HARNESS_H
#define DQ_TESTS_OPS_HARNESS_H

#include "ops/op.h"
#include "support/test_program.h"

enum { OPS_MAX = 20 };

typedef struct ops_case {
    const dq_op *op;
    dq_arena arena;
    dq_node node;
    dq_attr attrs[OPS_MAX];
    dq_tensor *in[OPS_MAX]; /* NULL: left out */
    uint32_t in_count;
    uint64_t weights;             /* bit i: input i is constant in both runs */
    uint32_t out_count;           /* outputs wanted; 1 unless a test says otherwise */
    dq_dtype out_types[OPS_MAX];  /* types that the schema would decide; DQ_UNDEFINED: the operator does */
    const char *formals[OPS_MAX]; /* input names for messages; NULL: none */
    bool honor_accuracy_level;
    dq_tensor *out[OPS_MAX]; /* after ops_run */
    dq_error err;
} ops_case;

/** (rank, dims) for the functions below: OPS_DIMS(2, 3), or OPS_SCALAR. */
#define OPS_DIMS(...)                                                                                        \
    sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[])                                    \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }
#define OPS_SCALAR 0, NULL
#define OPS_VALUES(...) ((const double[]){__VA_ARGS__})
/** (count, values) for ops_ints. */
#define OPS_INTS(...) OPS_DIMS(__VA_ARGS__)
/** (rank, dims, values) of a vector for ops_in. */
#define OPS_VECTOR(...) OPS_DIMS(sizeof OPS_VALUES(__VA_ARGS__) / sizeof(double)), OPS_VALUES(__VA_ARGS__)

/** Number i of a sequence of integers from -8 to 8: sums of their products are exact in any order. */
static inline double ops_small_integer(size_t i)
{
    return (double)((i * 7919 + i / 13) % 17) - 8;
}

void ops_begin(ops_case *c, const char *domain, const char *name, int version);
void ops_end(ops_case *c);

void ops_int(ops_case *c, const char *name, int64_t value);
void ops_float(ops_case *c, const char *name, float value);
void ops_string(ops_case *c, const char *name, const char *value);
void ops_ints(ops_case *c, const char *name, size_t count, const int64_t *values);
void ops_floats(ops_case *c, const char *name, size_t count, const float *values);

/** Adds an input of any numeric type; each value is converted with one rounding. NULL values: zeros. */
dq_tensor *ops_in(ops_case *c, dq_dtype dtype, size_t rank, const int64_t *dims, const double *values);
/** Adds an input of random bytes: integers of the full range. */
dq_tensor *ops_in_random(ops_case *c, uint64_t *state, dq_dtype dtype, size_t rank, const int64_t *dims);
/** Adds a scalar input: a scale, a zero point, a limit. */
dq_tensor *ops_scalar(ops_case *c, dq_dtype dtype, double value);
/** Adds an input of bit patterns. */
dq_tensor *ops_in_bits(ops_case *c, dq_dtype dtype, size_t rank, const int64_t *dims, const uint64_t *bits);
dq_tensor *ops_in_strings(ops_case *c, size_t rank, const int64_t *dims, const char *const *values);
/** Adds an input that is left out. */
void ops_skip(ops_case *c);

dq_status ops_run(ops_case *c);
/** Runs and fails the test, with the message, when the operator refuses. */
void ops_must_run(ops_case *c);
/** Runs and fails the test unless the operator refuses with this status and exactly this message. */
void ops_must_refuse(ops_case *c, dq_status status, const char *message);

/** Fails the test unless output i has this type and shape, and these values: equal as doubles, with NaN equal
 * to NaN and -0 not equal to 0. */
void ops_want(const ops_case *c, uint32_t i, dq_dtype dtype, size_t rank, const int64_t *dims,
              const double *values);
void ops_want_bits(const ops_case *c, uint32_t i, dq_dtype dtype, size_t rank, const int64_t *dims,
                   const uint64_t *bits);
void ops_want_strings(const ops_case *c, uint32_t i, size_t rank, const int64_t *dims,
                      const char *const *values);

/** Runs an operator of the standard's domain on vectors of n elements and compares its output of type `out`.
 */
void ops_check_unary(const char *name, int version, dq_dtype dtype, int64_t n, const double *x, dq_dtype out,
                     const double *values);
void ops_check_binary(const char *name, int version, dq_dtype dtype, int64_t n, const double *a,
                      const double *b, dq_dtype out, const double *values);

#endif
