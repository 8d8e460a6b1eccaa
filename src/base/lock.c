/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lock.h"

#include <stdatomic.h>

/* Read-locked by each thread inside a section, write-locked by fork. */
static pthread_rwlock_t sections = PTHREAD_RWLOCK_INITIALIZER;
static _Thread_local unsigned depth; /* Number of sections that this thread is inside. */
static _Thread_local bool waited; /* This thread's fork waited for other threads to leave their sections. */
static atomic_uint generation;

static void before_fork(void)
{
    waited = depth == 0;
    if (waited)
        pthread_rwlock_wrlock(&sections);
}

static void after_fork(void)
{
    if (waited)
        pthread_rwlock_unlock(&sections);
}

/* Initializes a new lock in the child: the old one has waiting threads that do not exist here. */
static void after_fork_in_child(void)
{
    atomic_fetch_add(&generation, 1);
    if (waited)
        pthread_rwlock_init(&sections, NULL);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int fault; /* Result of pthread_atfork. */

static void watch(void)
{
    fault = pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

dq_status dq_fork_watch(dq_error *err)
{
    pthread_once(&once, watch);
    return fault ? dq_fail(err, DQ_OUT_OF_MEMORY, "out of memory: the system refused a handler of fork")
                 : DQ_OK;
}

unsigned dq_fork_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

dq_status dq_lock_create(dq_lock *lock, const char *what, dq_error *err)
{
    DQ_TRY(dq_fork_watch(err));
    if (pthread_mutex_init(&lock->mutex, NULL) != 0)
        return dq_fail(err, DQ_OUT_OF_MEMORY, "the system refused a lock for %s", what);
    return DQ_OK;
}

void dq_lock_destroy(dq_lock *lock)
{
    pthread_mutex_destroy(&lock->mutex);
}

void dq_lock_take(dq_lock *lock)
{
    if (depth++ == 0)
        pthread_rwlock_rdlock(&sections);
    pthread_mutex_lock(&lock->mutex);
}

void dq_lock_release(dq_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
    if (--depth == 0)
        pthread_rwlock_unlock(&sections);
}
