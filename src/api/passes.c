/* SPDX-License-Identifier: Apache-2.0 */
/* The public API for listing the rewriter's passes. */
#include "api/structs.h"
#include "rewrite/rewrite.h"

size_t dq_pass_count(void)
{
    size_t count = 0;
    while (dq_pass_get(count))
        count++;
    return count;
}

dq_status dq_pass_describe(size_t i, dq_pass_info *info, dq_error *err)
{
    static const char *const scopes[] = {[DQ_PASS_MODEL] = "model",
                                         [DQ_PASS_PRECISION] = "precision",
                                         [DQ_PASS_GRAPH] = "graph",
                                         [DQ_PASS_NODE] = "node"};
    const dq_pass *pass = dq_pass_get(i);
    if (!pass)
        return dq_fail(err, DQ_INVALID_ARGUMENT, "dq_pass_describe: i is %zu, expected below %zu", i,
                       dq_pass_count());
    const dq_pass_info own = {.size = sizeof own,
                              .name = pass->name,
                              .scope = scopes[pass->kind],
                              .matches = pass->matches,
                              .replacement = pass->replacement,
                              .exactness = pass->exactness};
    return dq_write_struct(DQ_STRUCT_PASS_INFO, "dq_pass_describe: info", &own, info, err);
}
