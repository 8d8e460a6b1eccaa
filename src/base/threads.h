/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel work of a session on the threads of a pool, with cancellation.
 *
 * A dq_thread_pool (dqrun.h) may serve several sessions. One session at a time uses its workers; meanwhile
 * the work of other sessions runs on their own threads. */
#ifndef DQ_BASE_THREADS_H
#define DQ_BASE_THREADS_H

#include "base/error.h"

#include <stdatomic.h>

/** The threads of one session: a pool, and the flag that cancels the session's work. */
typedef struct dq_threads {
    dq_thread_pool *pool; /* NULL: only the caller's thread. */
    struct dq_threads *alone;
    atomic_bool *cancelled;
} dq_threads;

/** Creates a pool with one reference, the caller's, which dq_thread_pool_free releases. */
dq_status dq_pool_create(const dq_thread_pool_options *options, dq_thread_pool **out, dq_error *err);

/** Takes a reference to `pool`; NULL: no pool. */
dq_status dq_threads_create(dq_thread_pool *pool, dq_threads **out, dq_error *err);
void dq_threads_free(dq_threads *threads);
/** Gives the process-wide pool of all cores, which sessions without a pool of their own share. The first of
 * them creates it, the last one frees it. The caller releases its reference with dq_thread_pool_free. */
dq_status dq_threads_process_pool(dq_thread_pool **out, dq_error *err);
/** Number of threads, the caller's included, started or not; 1 for NULL. */
unsigned dq_threads_count(const dq_threads *threads);
/** The same session restricted to the caller's thread; NULL for NULL. */
static inline dq_threads *dq_threads_alone(dq_threads *threads)
{
    return threads ? threads->alone : NULL;
}

/** Sets or clears the cancellation of the session's work. While it is set, dq_parallel skips tasks that have
 * not begun. Async-signal-safe. */
static inline void dq_threads_set_cancelled(dq_threads *threads, bool cancelled)
{
    atomic_store_explicit(threads->cancelled, cancelled, memory_order_relaxed);
}
/** Whether work is cancelled. Results of dq_parallel may then be missing: they must not be used, least of all
 * as sizes or indices. False for NULL. */
static inline bool dq_threads_cancelled(const dq_threads *threads)
{
    return threads && atomic_load_explicit(threads->cancelled, memory_order_relaxed);
}

/** Processes the items [begin, end). `worker` is less than dq_threads_count and identifies the scratch that
 * this call may use. */
typedef void (*dq_range_fn)(void *arg, size_t begin, size_t end, unsigned worker);

/** Calls `fn` for the items 0 … n-1 on all threads, in tasks of `grain` items (the last may be smaller). The
 * tasks do not depend on the number of threads; only their assignment to threads does. `threads` NULL, or a
 * single task: runs on the calling thread. Skips tasks after the work is cancelled. */
void dq_parallel(dq_threads *threads, size_t n, size_t grain, dq_range_fn fn, void *arg);

/** A partition of `blocks` equal blocks of work among threads. If their number would leave threads idle at
 * the end, the last blocks, which may be smaller, are split into `parts` tasks each. Each thread's share is
 * then a contiguous range of whole blocks, and as many parts as the others have. */
typedef struct dq_partition {
    size_t blocks, whole, parts; /* Blocks `whole` … `blocks` - 1 are split. */
    size_t threads;
} dq_partition;

/** Makes the partition. `most`: the largest number of parts of a block. */
dq_partition dq_threads_cut(const dq_threads *threads, size_t blocks, size_t most);
static inline size_t dq_partition_count(const dq_partition *cut)
{
    return cut->whole + (cut->blocks - cut->whole) * cut->parts;
}
/** Gives the block of task i of dq_parallel, and the range [begin, end) of its n units that belongs to the
 * task. */
size_t dq_partition_piece(const dq_partition *cut, size_t i, size_t n, size_t *begin, size_t *end);

/** Lets the workers sleep when no work is expected for a while. Between jobs they spin, because waking a
 * thread takes longer than most jobs. */
void dq_threads_rest(dq_threads *threads);

#endif
