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

/** How `blocks` pieces of work of one size go to threads: where their number leaves some threads without work
 * at the end, the last ones, which may be smaller, are cut, each into `parts`. Each thread's share is then of
 * as many whole blocks, neighbours, and of as many parts. */
typedef struct dq_cut {
    size_t blocks, whole, parts; /* blocks whole … blocks - 1 are cut */
    size_t threads;
} dq_cut;

/** `most`: into how many parts a block can be cut. */
dq_cut dq_threads_cut(const dq_threads *threads, size_t blocks, size_t most);
static inline size_t dq_cut_count(const dq_cut *cut)
{
    return cut->whole + (cut->blocks - cut->whole) * cut->parts;
}
/** The block of piece i of dq_parallel, and which of its n units, in order, are the piece's. */
size_t dq_cut_piece(const dq_cut *cut, size_t i, size_t n, size_t *begin, size_t *end);

/** Workers wait for the next work awake, as waking one takes longer than most work: this sends them to sleep,
 * once no more is to come for a while. */
void dq_threads_rest(dq_threads *threads);

#endif
