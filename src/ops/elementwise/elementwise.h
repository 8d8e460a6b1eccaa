/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise operators: one broadcast loop, and kernels from a table by element type.
 *
 * A kernel computes a segment of n >= 1 results. Operand i starts at in[i] and has step step[i]: 1, or 0 for
 * one value for the whole segment. Most kernels need step 1 for all operands; they get materialized copies of
 * scalars. The output is contiguous and may be the first operand itself if that has step 1.
 *
 * A type narrower than float without a kernel of its own is computed by the float kernel, block by block:
 * operands are widened exactly and the result is rounded once. */
#ifndef DQ_OPS_ELEMENTWISE_H
#define DQ_OPS_ELEMENTWISE_H

#include "ops/op.h"

/** Parameters of a kernel besides its operands; each table defines what alpha, beta and gamma are. */
typedef struct dq_ew_params {
    double alpha, beta, gamma;
    size_t operands;           /* number of operands of the node, by which Mean divides */
    const dq_rows_f32 *rows;   /* kernels */
    const dq_kernels *kernels; /* all kernels; not set in chains */
} dq_ew_params;

typedef void dq_ew_fn(void *out, const void *const in[], const size_t step[], size_t n,
                      const dq_ew_params *params);

typedef struct dq_ew_table dq_ew_table;
struct dq_ew_table {
    dq_ew_fn *fn[DQ_DTYPE_COUNT]; /* by the type of operand `select` */
    const dq_ew_table *then;      /* a table of one operand that is applied to the result, in place */
    dq_dtype out;                 /* type of the result; DQ_UNDEFINED: that of operand `select` */
    uint8_t select;
    bool fold;            /* any number of operands: fn combines the result so far with the next one */
    bool swap;            /* the kernel takes its two operands in reverse order */
    bool commutes;        /* commutative: swaps the operands if only the first has step 0 */
    uint32_t steps;       /* bit mask of the types whose kernels take step 0 for any operand */
    uint32_t seconds;     /* bit mask of the types whose kernels take step 0 for the second operand */
    int broadcasts_since; /* earlier versions broadcast a vector along axis 1 of operand 0, its channels */
    dq_status (*params)(dq_op_call *call, dq_ew_params *params, dq_error *err); /* NULL: none to read */
};

/** infer: sets the broadcast shape of the operands. Before opset 7 the second operand is aligned with the
 * first one's axes from `axis` on if `broadcast` is 1, and must otherwise have the same shape. Operators that
 * never had these attributes set broadcasts_since. */
dq_status dq_ew_infer(dq_op_call *call, const dq_ew_table *table, dq_error *err);

/** prepare: picks the kernel and plans the loop. fixed[i] (`fixed` may be NULL), if not NULL, replaces
 * operand i by a constant that lives as long as the state. There are call->in_count operands, or fixed_count
 * if that is more. */
dq_status dq_ew_prepare(dq_op_call *call, const dq_ew_table *table, const dq_tensor *const fixed[],
                        size_t fixed_count, dq_error *err);

dq_status dq_ew_run(const dq_op_call *call, dq_error *err);

/** The operators of ai.onnx that are a float kernel and nothing else, by name (GeluTanh: Gelu with that
 * approximation). The kernel takes `operands` operands; alpha, beta and gamma are the attributes of these
 * names. */
typedef struct dq_ew_named {
    const char *name;
    dq_ew_fn *fn;
    unsigned operands;
} dq_ew_named;
extern const dq_ew_named dq_ew_arith_named[], dq_ew_unary_named[],
    dq_ew_clip_named[]; /* the last name is NULL */

/** A step that only chains have: fake quantization. Floats are quantized with the scale alpha and
 * dequantized; beta and gamma are the bounds of the quantized values minus their zero point
 * (dq_rows_f32.requantize). */
#define DQ_EW_ROUND_TRIP "Requantize"

/** Finds an operator by name; NULL: there is none. */
const dq_ew_named *dq_ew_find(const char *name, size_t length);

/** Defines an operator that a table describes completely. */
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

/* Allows vectorization: the output is no operand, or is the first one at the same index. */
#if defined(__GNUC__) && !defined(__clang__)
#define DQ_EW_SIDE_BY_SIDE _Pragma("GCC ivdep")
#else
#define DQ_EW_SIDE_BY_SIDE
#endif

/* Types with extra loops for second operands of step 0. Networks compute in these; for all types the loops
 * would take 25 KB. */
#define DQ_EW_COMMON (1u << DQ_FLOAT | 1u << DQ_INT32 | 1u << DQ_INT64)

/* Define kernels: `expr` in a (and b) of type T gives a result of type R. The function copies the parameters,
 * as for the compiler the output might alias them. */
#define DQ_EW_UNARY(name, T, R, expr)                                                                        \
    static void name(void *out, const void *const in[], const size_t step[], size_t n,                       \
                     const dq_ew_params *value)                                                              \
    {                                                                                                        \
        const dq_ew_params held = *value, *const params = &held;                                             \
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

/* A binary kernel whose second operand may have step 0. */
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

/* Define float kernels from members of dq_rows_f32; MAP1 passes alpha. */
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
