/* The thread pool of a session. */
#ifndef DQ_BASE_THREADS_H
#define DQ_BASE_THREADS_H

#include "base/error.h"

typedef struct dq_threads dq_threads;

/** `count` threads in all, the caller's among them; at least 1. They start with the first work that is
 * shared; when the system refuses them, the caller does all of it. */
dq_status dq_threads_create(unsigned count, dq_threads **out, dq_error *err);
void dq_threads_free(dq_threads *threads);
unsigned dq_threads_count(const dq_threads *threads); /**< 1 for NULL */

/** Work on items [begin, end). `worker` is below dq_threads_count: it names the scratch that this call may
 * use. */
typedef void (*dq_range_fn)(void *arg, size_t begin, size_t end, unsigned worker);

/** Calls fn over 0 … n-1 in pieces of `grain` items (the last may be shorter), on all threads. The pieces do
 *  not depend on the thread count, only which thread takes which. `threads` NULL, or one piece: runs here. */
void dq_parallel(dq_threads *threads, size_t n, size_t grain, dq_range_fn fn, void *arg);

/** Workers wait for the next work awake, as waking one takes longer than most work: this sends them to sleep,
 * once no more is to come for a while. */
void dq_threads_rest(dq_threads *threads);

#endif
