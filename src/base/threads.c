#include "base/threads.h"

#include <pthreadpool.h>
#include <stdatomic.h>
#include <stdlib.h>

struct dq_threads {
    pthreadpool_t pool; /* NULL until there is work for it: a small model never starts a thread */
    bool refused;       /* the system gave no threads */
    bool awake;         /* workers look out for work without sleeping */
    unsigned count;
};

typedef struct job {
    dq_range_fn fn;
    void *arg;
    size_t n, grain;
    atomic_size_t next;
} job;

dq_status dq_threads_create(unsigned count, dq_threads **out, dq_error *err)
{
    dq_threads *threads = calloc(1, sizeof *threads);
    if (!threads)
        return dq_no_memory(err, sizeof *threads, "the thread pool");
    threads->count = count ? count : 1;
    *out = threads;
    return DQ_OK;
}

void dq_threads_free(dq_threads *threads)
{
    if (!threads)
        return;
    if (threads->pool)
        pthreadpool_destroy(threads->pool);
    free(threads);
}

unsigned dq_threads_count(const dq_threads *threads)
{
    return threads ? threads->count : 1;
}

/* Each worker takes the next piece until none is left: uneven pieces balance, and the worker's number stays
 * the same for its scratch. */
static void work(void *context, size_t worker)
{
    job *j = context;
    for (;;) {
        size_t begin = atomic_fetch_add_explicit(&j->next, j->grain, memory_order_relaxed);
        if (begin >= j->n)
            return;
        size_t end = j->n - begin < j->grain ? j->n : begin + j->grain;
        j->fn(j->arg, begin, end, (unsigned)worker);
    }
}

/* Whether there are workers: started with the first work that is worth sharing. */
static bool has_workers(dq_threads *threads)
{
    if (!threads || threads->count < 2)
        return false;
    if (!threads->pool && !threads->refused) {
        threads->pool = pthreadpool_create(threads->count);
        threads->refused = !threads->pool;
    }
    return threads->pool != NULL;
}

void dq_parallel(dq_threads *threads, size_t n, size_t grain, dq_range_fn fn, void *arg)
{
    if (n == 0)
        return;
    if (grain == 0)
        grain = 1;
    if (n <= grain || !has_workers(threads)) {
        for (size_t begin = 0; begin < n; begin += grain) {
            size_t end = n - begin < grain ? n : begin + grain;
            fn(arg, begin, end, 0);
        }
        return;
    }
    job j = {.fn = fn, .arg = arg, .n = n, .grain = grain};
    atomic_init(&j.next, 0);
    threads->awake = true;
    pthreadpool_parallelize_1d(threads->pool, work, &j, threads->count, 0);
}

dq_cut dq_threads_cut(const dq_threads *threads, size_t blocks, size_t most)
{
    size_t count = dq_threads_count(threads), over = blocks % count, parts = 1;
    dq_cut cut = {blocks, blocks, 1};
    if (over == 0 || most < 2)
        return cut;
    while (parts < most && parts < count && over * parts % count != 0)
        parts++;
    cut.whole = blocks - over;
    cut.parts = parts;
    return cut;
}

static void nothing(void *context, size_t worker)
{
    (void)context;
    (void)worker;
}

void dq_threads_rest(dq_threads *threads)
{
    if (!threads->awake)
        return;
    pthreadpool_parallelize_1d(threads->pool, nothing, NULL, threads->count, PTHREADPOOL_FLAG_YIELD_WORKERS);
    threads->awake = false;
}
