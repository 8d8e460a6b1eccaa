/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes that are unlocked in a forked child.
 *
 * fork copies only the calling thread. A mutex that another thread holds would stay locked in the child for
 * ever, with inconsistent data. So fork waits (pthread_atfork) until no thread is in a critical section of a
 * dq_lock. Sections are short; the longest pack weights or rewrite a model. If the calling thread itself
 * forks inside a section, from a callback, fork does not wait: see dqrun.h, "Threads". */
#ifndef DQ_BASE_LOCK_H
#define DQ_BASE_LOCK_H

#include "base/error.h"

#include <pthread.h>

typedef struct dq_lock {
    pthread_mutex_t mutex;
} dq_lock;

/** Initializer of a lock with static storage. It needs dq_fork_watch before its first use and is never
 * destroyed. */
#define DQ_LOCK_INIT                                                                                         \
    {                                                                                                        \
        PTHREAD_MUTEX_INITIALIZER                                                                            \
    }

/** `what` names the guarded data, for the message. */
dq_status dq_lock_create(dq_lock *lock, const char *what, dq_error *err);
void dq_lock_destroy(dq_lock *lock);
void dq_lock_take(dq_lock *lock);
void dq_lock_release(dq_lock *lock);

/** Number of forks between the process that loaded the library and this one. Threads that were started at
 * another number do not exist in this process. */
unsigned dq_fork_generation(void);
/** Starts counting forks. Fails if memory runs out. */
dq_status dq_fork_watch(dq_error *err);

#endif
