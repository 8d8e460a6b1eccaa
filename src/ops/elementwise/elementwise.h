/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise operators: one broadcast loop, kernels from a table by element type.
 *
 * A kernel computes a run of n >= 1 results: operand i starts at in[i] and moves by step[i] elements, 0 (one
 * value for the whole run) or 1; most want operands that all move, and are given values that stay as short
 * runs of copies. The output is contiguous and may be the first operand itself when that has step 1. A type
 * without a kernel of its own that is narrower than float is computed by the float kernel, block by block:
 * operands are widened exactly and the result is rounded once. */
#ifndef DQ_OPS_ELEMENTWISE_H
#define DQ_OPS_ELEMENTWISE_H

#include "ops/op.h"

/** What a kernel knows besides its operands; each table says what it keeps here. */
typedef struct dq_ew_params {
    double alpha, beta, gamma;
    size_t operands;           /* of the node: what Mean divides by */
    const dq_rows_f32 *rows;   /* kernels */
    const dq_kernels *kernels; /* all of them; not in chains */
} dq_ew_params;

typedef void dq_ew_fn(void *out, const void *const in[], const size_t step[], size_t n,
                      const dq_ew_params *params);

typedef struct dq_ew_table dq_ew_table;
struct dq_ew_table {
    dq_ew_fn *fn[DQ_DTYPE_COUNT]; /* by the type of operand `select` */
    const dq_ew_table *then;      /* a table of one operand that is applied to the result, in place */
    dq_dtype out;                 /* type of the result; DQ_UNDEFINED: that of operand `select` */
    uint8_t select;
    bool fold;            /* any number of operands: fn joins the result so far with the next one */
    bool swap;            /* the kernel takes its two operands in the other order */
    bool commutes;        /* the two operands may be swapped when the first stays and the second moves */
    uint32_t steps;       /* bits of the types whose kernels take any operand that stays, */
    uint32_t seconds;     /* and those that take a second one */
    int broadcasts_since; /* versions before this one lay a vector along axis 1 of operand 0, its channels */
    dq_status (*params)(dq_op_call *call, dq_ew_params *params, dq_error *err); /* NULL: none to read */
};

/** infer: the operands' broadcast shape. Before opset 7 the second operand is laid along the first one's
 * axes from `axis` on when `broadcast` is 1, and must have its shape otherwise. Operators that never had
 * these attributes say so by `broadcasts_since`. */
dq_status dq_ew_infer(dq_op_call *call, const dq_ew_table *table, dq_error *err);

/** prepare: picks the kernel and the loop. `fixed` (may be NULL): per operand, a value that stands for it and
 * lives as long as the state, or NULL where the input does. There are call->in_count operands, and those of
 * `fixed` when fixed_count is more. */
dq_status dq_ew_prepare(dq_op_call *call, const dq_ew_table *table, const dq_tensor *const fixed[],
                        size_t fixed_count, dq_error *err);

dq_status dq_ew_run(const dq_op_call *call, dq_error *err);

/** One of the operators of ai.onnx that are nothing but a float kernel, by name (GeluTanh: Gelu of that
 * approximation). The kernel takes `operands`;
 * alpha, beta and gamma are the attributes of these names. */
typedef struct dq_ew_named {
    const char *name;
    dq_ew_fn *fn;
    unsigned operands;
} dq_ew_named;
extern const dq_ew_named dq_ew_arith_named[], dq_ew_unary_named[],
    dq_ew_clip_named[]; /* name NULL: the end */

/** A step of chains alone: floats become codes of the scale alpha and floats again, beta and gamma being the
 * bounds of codes less their zero point (dq_rows_f32.requantize). */
#define DQ_EW_ROUND_TRIP "Requantize"

/** NULL: there is none of this name. */
const dq_ew_named *dq_ew_find(const char *name, size_t length);

/** An operator that is nothing but a table. */
#define DQ_EW_OP(symbol, table)                                                                              \
    static dq_status symbol##_infer(dq_op_call *call, dq_error *err)                                         \
    {                                                                                                        \
        return dq_ew_infer(call, &(table), err);                                                             \
    }                                                                                                        \
    static dq_status symbol##_prepare(dq_op_call *call, dq_error *err)                                       \
    {                                                                                                        \
        return dq_ew_prepare(call, &(table), NULL, 0, err);                                                  \
    }                                                                                                        \
    const dq_op_impl symbol = {symbol##_infer, symbol##_prepare, dq_ew_run,                                  \
                               DQ_OP_IN_PLACE | DQ_OP_BATCH_SEPARABLE_ALL}

/* The output is no operand, or is the first one at the same place: results may be computed side by side. */
#if defined(__GNUC__) && !defined(__clang__)
#define DQ_EW_SIDE_BY_SIDE _Pragma("GCC ivdep")
#else
#define DQ_EW_SIDE_BY_SIDE
#endif

/* What networks compute in; with loops of their own for second operands that stay, which for other types
 * would be 25 KB. */
#define DQ_EW_COMMON (1u << DQ_FLOAT | 1u << DQ_INT32 | 1u << DQ_INT64)

/* Kernels by macro: `expr` in a (and b) of type T gives a result of type R. Parameters are held by the
 * function: the output might be where they stand, for all that compilers know. */
#define DQ_EW_UNARY(name, T, R, expr)                                                                        \
    static void name(void *out, const void *const in[], const size_t step[], size_t n,                       \
                     const dq_ew_params *given)                                                              \
    {                                                                                                        \
        const dq_ew_params held = *given, *const params = &held;                                             \
        (void)params, (void)step; /* one operand is never broadcast */                                       \
        const T *x = in[0];                                                                                  \
        R *y = out;                                                                                          \
        DQ_EW_SIDE_BY_SIDE                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                                     \
            const T a = x[i];                                                                                \
            y[i] = (R)(expr);                                                                                \
        }                                                                                                    \
    }

#define DQ_EW_BINARY(name, T, R, expr)                                                                       \
    static void name(void *out, const void *const in[], const size_t step[], size_t n,                       \
                     const dq_ew_params *params)                                                             \
    {                                                                                                        \
        (void)params;                                                                                        \
        (void)step;                                                                                          \
        const T *x = in[0], *y = in[1];                                                                      \
        R *z = out;                                                                                          \
        DQ_EW_SIDE_BY_SIDE                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                                     \
            const T a = x[i], b = y[i];                                                                      \
            z[i] = (R)(expr);                                                                                \
        }                                                                                                    \
    }

/* The same for a second operand that may stay. */
#define DQ_EW_SECOND(name, T, R, expr)                                                                       \
    static void name(void *out, const void *const in[], const size_t step[], size_t n,                       \
                     const dq_ew_params *params)                                                             \
    {                                                                                                        \
        (void)params;                                                                                        \
        const T *x = in[0], *y = in[1];                                                                      \
        R *z = out;                                                                                          \
        if (step[1]) {                                                                                       \
            for (size_t i = 0; i < n; i++) {                                                                 \
                const T a = x[i], b = y[i];                                                                  \
                z[i] = (R)(expr);                                                                            \
            }                                                                                                \
        } else {                                                                                             \
            const T b = *y;                                                                                  \
            for (size_t i = 0; i < n; i++) {                                                                 \
                const T a = x[i];                                                                            \
                z[i] = (R)(expr);                                                                            \
            }                                                                                                \
        }                                                                                                    \
    }

/* Float kernels that are members of dq_rows_f32; with a parameter: alpha. */
#define DQ_EW_ROW(name, call)                                                                                \
    static void name(void *out, const void *const in[], const size_t step[], size_t n,                       \
                     const dq_ew_params *params)                                                             \
    {                                                                                                        \
        (void)step;                                                                                          \
        params->rows->call;                                                                                  \
    }
#define DQ_EW_ROW_MAP(name, member) DQ_EW_ROW(name, member(in[0], n, out))
#define DQ_EW_ROW_MAP1(name, member) DQ_EW_ROW(name, member(in[0], n, (float)params->alpha, out))
#define DQ_EW_ROW_PAIR(name, member) DQ_EW_ROW(name, member(in[0], step[0], in[1], step[1], n, out))

#endif
