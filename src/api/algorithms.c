/* SPDX-License-Identifier: Apache-2.0 */
/* The public API for listing the algorithm tables. */
#include "api/structs.h"
#include "ops/algorithm.h"

size_t dq_algorithm_count(void)
{
    size_t count = 0;
    for (size_t i = 0; dq_algorithm_table_get(i); i++)
        count += dq_algorithm_table_get(i)->count;
    return count;
}

dq_status dq_algorithm_describe(size_t i, dq_algorithm_info *info, dq_error *err)
{
    size_t table = 0, row = i;
    const dq_algorithm_table *t;
    while ((t = dq_algorithm_table_get(table)) && row >= t->count) {
        row -= t->count;
        table++;
    }
    if (!t)
        return dq_fail(err, DQ_INVALID_ARGUMENT, "dq_algorithm_describe: i is %zu, expected below %zu", i,
                       dq_algorithm_count());
    const dq_algorithm_info own = {.size = sizeof own,
                                   .id = t->rows[row].id,
                                   .summary = t->rows[row].summary,
                                   .table = t->name,
                                   .table_summary = t->summary,
                                   .result = (size_t)t->rows[row].result};
    return dq_write_struct(DQ_STRUCT_ALGORITHM_INFO, "dq_algorithm_describe: info", &own, info, err);
}
