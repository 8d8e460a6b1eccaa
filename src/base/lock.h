/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes that a forked child finds unlocked.
 *
 * fork copies the calling thread alone. A mutex that another thread holds at that moment stays locked in the
 * child for ever, and what it guards is half written. So fork waits (pthread_atfork) until no thread is
 * inside a section that a dq_lock guards. Sections are short, or a packing of weights or a fusion of a model
 * at most. A fork inside a section of the calling thread, from a callback, waits for nothing: see dqrun.h,
 * "Threads". */
#ifndef DQ_BASE_LOCK_H
#define DQ_BASE_LOCK_H

#include "base/error.h"

#include <pthread.h>

typedef struct dq_lock {
    pthread_mutex_t mutex;
} dq_lock;

/** A lock of static storage, which needs dq_fork_watch before its first use and is never destroyed. */
#define DQ_LOCK_INIT                                                                                         \
    {                                                                                                        \
        PTHREAD_MUTEX_INITIALIZER                                                                            \
    }

/** `what` is guarded, for the message. */
dq_status dq_lock_create(dq_lock *lock, const char *what, dq_error *err);
void dq_lock_destroy(dq_lock *lock);
void dq_lock_take(dq_lock *lock);
void dq_lock_release(dq_lock *lock);

/** How many forks lie between the process that loaded the library and this one: a thread that was started
 * under another number is not there. */
unsigned dq_fork_generation(void);
/** Has forks counted from now on. Fails where memory runs out. */
dq_status dq_fork_watch(dq_error *err);

#endif
