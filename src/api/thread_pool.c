/* SPDX-License-Identifier: Apache-2.0 */
#include "api/structs.h"

#include "base/threads.h"

dq_status dq_thread_pool_create(const dq_thread_pool_options *options, dq_thread_pool **out, dq_error *err)
{
    dq_thread_pool_options own;
    DQ_NOT_NULL(out);
    DQ_TRY(
        dq_read_struct(DQ_STRUCT_THREAD_POOL_OPTIONS, "dq_thread_pool_create: options", options, &own, err));
    return dq_pool_create(&own, out, err);
}
