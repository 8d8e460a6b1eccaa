/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel work of a session: on the threads of a pool, until somebody cancels it.
 *
 * A dq_thread_pool (dqrun.h) may serve several sessions. One of them has its workers at a time; work that
 * another session has meanwhile runs on that session's own thread. */
#ifndef DQ_BASE_THREADS_H
#define DQ_BASE_THREADS_H

#include "base/error.h"

#include <stdatomic.h>

/** What one session works with: a pool, and the flag that cancels the session's work. */
typedef struct dq_threads {
    dq_thread_pool *pool; /* NULL: the caller's thread alone */
    struct dq_threads *alone;
    atomic_bool *cancelled;
} dq_threads;

/** A pool with one user, the caller; dq_thread_pool_free gives it back. */
dq_status dq_pool_create(const dq_thread_pool_options *options, dq_thread_pool **out, dq_error *err);

/** Keeps `pool` alive; NULL: no pool. */
dq_status dq_threads_create(dq_thread_pool *pool, dq_threads **out, dq_error *err);
void dq_threads_free(dq_threads *threads);
/** The pool of all cores that sessions without a pool of their own share: made for the first of them, freed
 * with the last. The caller's use of it ends with dq_thread_pool_free. */
dq_status dq_threads_process_pool(dq_thread_pool **out, dq_error *err);
/** Threads in all, the caller's among them, whether they are started or not; 1 for NULL. */
unsigned dq_threads_count(const dq_threads *threads);
/** The same session's work on the caller's thread alone; NULL for NULL. */
static inline dq_threads *dq_threads_alone(dq_threads *threads)
{
    return threads ? threads->alone : NULL;
}

/** Cancels the session's work: from now on dq_parallel skips what it has not begun, until `cancelled` is
 * false again. Async-signal-safe. */
static inline void dq_threads_set_cancelled(dq_threads *threads, bool cancelled)
{
    atomic_store_explicit(threads->cancelled, cancelled, memory_order_relaxed);
}
/** Whether work is cancelled. What dq_parallel was to compute may then be missing: its results must not be
 * used, least of all as sizes and indices. False for NULL. */
static inline bool dq_threads_cancelled(const dq_threads *threads)
{
    return threads && atomic_load_explicit(threads->cancelled, memory_order_relaxed);
}

/** Work on items [begin, end). `worker` is below dq_threads_count: it names the scratch that this call may
 * use. */
typedef void (*dq_range_fn)(void *arg, size_t begin, size_t end, unsigned worker);

/** Calls fn over 0 … n-1 in pieces of `grain` items (the last may be shorter), on all threads. The pieces do
 *  not depend on the thread count, only which thread takes which. `threads` NULL, or one piece: runs here.
 * Skips pieces once the work is cancelled. */
void dq_parallel(dq_threads *threads, size_t n, size_t grain, dq_range_fn fn, void *arg);

/** How `blocks` pieces of work of one size go to threads: where their number leaves some threads without work
 * at the end, the last ones, which may be smaller, are cut, each into `parts`. Each thread's share is then of
 * as many whole blocks, neighbours, and of as many parts. */
typedef struct dq_partition {
    size_t blocks, whole, parts; /* blocks whole … blocks - 1 are cut */
    size_t threads;
} dq_partition;

/** `most`: into how many parts a block can be cut. */
dq_partition dq_threads_cut(const dq_threads *threads, size_t blocks, size_t most);
static inline size_t dq_partition_count(const dq_partition *cut)
{
    return cut->whole + (cut->blocks - cut->whole) * cut->parts;
}
/** The block of piece i of dq_parallel, and which of its n units, in order, are the piece's. */
size_t dq_partition_piece(const dq_partition *cut, size_t i, size_t n, size_t *begin, size_t *end);

/** Workers wait for the next work awake, as waking one takes longer than most work: this sends them to sleep,
 * once no more is to come for a while. */
void dq_threads_rest(dq_threads *threads);

#endif
