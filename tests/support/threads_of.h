/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for tests of the library's inside. */
#ifndef DQ_TESTS_THREADS_OF_H
#define DQ_TESTS_THREADS_OF_H

#include "base/threads.h"

/** `count` threads of a pool of their own, which dq_threads_free frees with them. */
static inline dq_status threads_of(unsigned count, dq_threads **out, dq_error *err)
{
    dq_thread_pool *pool = NULL;
    DQ_TRY(dq_pool_create(&(dq_thread_pool_options){.threads = count}, &pool, err));
    dq_status status = dq_threads_create(pool, out, err);
    dq_thread_pool_free(pool);
    return status;
}

#endif
