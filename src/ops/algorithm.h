/* SPDX-License-Identifier: Apache-2.0 */
/* Algorithm tables: an operator that can be computed in more than one way has a table with a row for each.
 *
 * An operator describes its computation in a problem, a plain struct that the rows of its table read: shapes,
 * types, layouts, which operands are constant, threads, kernels. dq_algorithm_choose takes the row of the
 * lowest cost among those that are applicable, and nothing changes that choice later. The cost estimates the
 * time on one thread: the multiply-adds, bytes and calls that the row states, at the rates of costs.def for
 * the ISA level.
 *
 * Algorithms for floats may round in different orders. Rows of equal `result` give the same bits. Which
 * result a problem has follows from its shapes alone (dq_algorithm_table.result), so that it is the same on
 * all processors and for all numbers of threads. Cost decides among the rows of that result. */
#ifndef DQ_OPS_ALGORITHM_H
#define DQ_OPS_ALGORITHM_H

#include "ops/op.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Why a row is not applicable, as a phrase: "stride is 2, expected 1". */
typedef struct dq_reason {
    char text[96];
} dq_reason;

/** Formats the phrase into `reason`, unless it is NULL. Returns false, for is_applicable to return. */
bool dq_not_applicable(dq_reason *reason, const char *format, ...) DQ_PRINTF(2, 3);

/** is_applicable of a row that can compute every problem of its table. */
bool dq_always_applicable(const void *problem, dq_reason *reason);

/** The work that a row does to compute a problem. */
typedef struct dq_algorithm_work {
    double macs;  /**< multiply-adds, including those on the padding of tiles */
    double bytes; /**< bytes moved besides the product: copied, transposed, transformed */
    double calls; /**< kernel calls: planes, rows or tiles, each with a fixed overhead */
} dq_algorithm_work;

typedef struct dq_algorithm {
    const char *id;      /**< table and name: "conv_s8=winograd_2d" */
    const char *summary; /**< a phrase for people: how it computes */
    int result;          /**< rows of equal numbers give equal bits */
    bool (*is_applicable)(const void *problem, dq_reason *reason);
    dq_algorithm_work (*work)(const void *problem);
    /** Called by the operator whose table it is, with its state. NULL: the operator decides by the row
     * itself. */
    dq_status (*prepare)(dq_op_call *call, void *state, dq_error *err);
    void (*run)(const dq_op_call *call, const void *state, const void *operands);
} dq_algorithm;

typedef struct dq_algorithm_table {
    const char *name;    /**< "conv_s8" */
    const char *summary; /**< a phrase for people: what is computed */
    /** The result that the problem's shapes determine. NULL: all rows have the same result. */
    int (*result)(const void *problem);
    /** At least one row is applicable to each problem. */
    const dq_algorithm *rows;
    size_t count;
} dq_algorithm_table;

/** The row's name without its table: "winograd_2d". */
const char *dq_algorithm_name(const dq_algorithm *row);

/** The tables, in the order of algorithm_tables.def. */
typedef enum dq_algorithm_family {
#define DQ_ALGORITHM_TABLE(family, table) DQ_ALGORITHMS_##family,
#include "ops/algorithm_tables.def"
#undef DQ_ALGORITHM_TABLE
    DQ_ALGORITHM_FAMILIES
} dq_algorithm_family;

const dq_algorithm_table *dq_algorithm_table_get(size_t i); /**< NULL: i is past the last table */

/** The rows that a session forces: for each family a row, or NULL. */
typedef struct dq_forced_algorithms {
    const dq_algorithm *row[DQ_ALGORITHM_FAMILIES];
} dq_forced_algorithms;

/** Parses "conv_s8=winograd_2d,matmul_f32=gemv"; NULL forces nothing. DQ_INVALID_ARGUMENT: no such table or
 * row. */
dq_status dq_forced_algorithms_read(const char *text, dq_forced_algorithms *forced, dq_error *err);

/** The cost of a row in nanoseconds on one thread. Its rates are those of the highest level in the ISA mask
 * that costs.def lists for it. */
double dq_algorithm_cost(const dq_algorithm *row, const dq_algorithm_work *work, unsigned isa);

/** In prepare: sets *row to the row to use. Also sets call->algorithm, and call->explanation if
 * call->explain. DQ_INVALID_ARGUMENT: call->forced names a row that is not applicable. */
dq_status dq_algorithm_choose(dq_op_call *call, dq_algorithm_family family, const void *problem,
                              const dq_algorithm **row, dq_error *err);

/** The row of the lowest cost, for a product inside another algorithm. Records nothing and ignores forced
 * rows. */
const dq_algorithm *dq_algorithm_cheapest(dq_algorithm_family family, const void *problem, unsigned isa);

/** In run: runs a row that takes no operands. Does nothing if output 0 is empty. */
static inline void dq_algorithm_run(const dq_op_call *call, const dq_algorithm *row, const void *state)
{
    if (call->out[0] && call->out[0]->count)
        row->run(call, state, NULL);
}

#endif
