/* The caller shares a job out and works at it itself; helpers join while it is open. It never waits for one
 * that has not joined: a helper that is asleep, or has no core to run on, costs nothing but its share. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime, sched_yield */
#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* Waking a helper takes longer than most operators: it stays awake for this long after work. */
enum { AWAKE_NS = 100000, LOOKS = 64 /* between two looks at the clock */ };

/* dq_threads.gate: whether the job is open, and the helpers inside. */
enum { OPEN = 1, INSIDE = 2 };

typedef struct helper {
    dq_threads *threads;
    pthread_t thread;
    unsigned worker;
} helper;

struct dq_threads {
    dq_range_fn fn; /* the job: written while the gate is 0 */
    void *arg;
    size_t n, grain;
    atomic_size_t next;
    atomic_uint gate, calls; /* calls: jobs so far */
    atomic_uint asleep;
    atomic_bool stop;
    pthread_mutex_t lock;
    pthread_cond_t called;
    unsigned count, started; /* helpers start with the first work: a small model never has one */
    bool refused;            /* the system gave no more threads */
    helper helpers[];
};

dq_status dq_threads_create(unsigned count, dq_threads **out, dq_error *err)
{
    size_t helpers = count > 1 ? count - 1 : 0, size = sizeof **out + helpers * sizeof(helper);
    dq_threads *threads = calloc(1, size);
    if (!threads)
        return dq_no_memory(err, size, "the thread pool");
    threads->count = count ? count : 1;
    pthread_mutex_init(&threads->lock, NULL);
    pthread_cond_init(&threads->called, NULL);
    *out = threads;
    return DQ_OK;
}

unsigned dq_threads_count(const dq_threads *threads)
{
    return threads ? threads->count : 1;
}

static inline void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Whoever comes takes the next piece until none is left: uneven pieces balance. */
static void work(dq_threads *threads, unsigned worker)
{
    for (;;) {
        size_t begin = atomic_fetch_add_explicit(&threads->next, threads->grain, memory_order_relaxed);
        if (begin >= threads->n)
            return;
        size_t left = threads->n - begin;
        threads->fn(threads->arg, begin, begin + (left < threads->grain ? left : threads->grain), worker);
    }
}

/* ---- Helpers ------------------------------------------------------------------------------------------ */

static bool called_awake(dq_threads *threads, unsigned seen)
{
    for (int64_t end = now() + AWAKE_NS; now() < end;)
        for (int i = 0; i < LOOKS; i++) {
            if (atomic_load_explicit(&threads->calls, memory_order_relaxed) != seen)
                return true;
            pause_briefly();
        }
    return false;
}

/* Until there is another call than number `seen`. Either this sees the call, or the call sees this asleep. */
static void wait_for_call(dq_threads *threads, unsigned seen)
{
    if (called_awake(threads, seen))
        return;
    pthread_mutex_lock(&threads->lock);
    atomic_fetch_add(&threads->asleep, 1);
    while (atomic_load(&threads->calls) == seen)
        pthread_cond_wait(&threads->called, &threads->lock);
    atomic_fetch_sub(&threads->asleep, 1);
    pthread_mutex_unlock(&threads->lock);
}

static bool join(dq_threads *threads)
{
    unsigned gate = atomic_load(&threads->gate);
    while (gate & OPEN)
        if (atomic_compare_exchange_weak(&threads->gate, &gate, gate + INSIDE))
            return true;
    return false;
}

static void *help(void *arg)
{
    const helper *h = arg;
    dq_threads *threads = h->threads;
    for (unsigned seen = 0; !atomic_load(&threads->stop); seen = atomic_load(&threads->calls)) {
        if (join(threads)) {
            work(threads, h->worker);
            atomic_fetch_sub(&threads->gate, INSIDE);
        }
        wait_for_call(threads, seen);
    }
    return NULL;
}

/* `most`: helpers that there is work for. */
static void call_helpers(dq_threads *threads, size_t most)
{
    atomic_fetch_add(&threads->calls, 1);
    if (atomic_load(&threads->asleep) == 0)
        return;
    pthread_mutex_lock(&threads->lock);
    for (size_t i = 0; i < most && i < threads->started; i++)
        pthread_cond_signal(&threads->called);
    pthread_mutex_unlock(&threads->lock);
}

void dq_threads_free(dq_threads *threads)
{
    if (!threads)
        return;
    atomic_store(&threads->stop, true);
    call_helpers(threads, SIZE_MAX);
    for (unsigned i = 0; i < threads->started; i++)
        pthread_join(threads->helpers[i].thread, NULL);
    pthread_cond_destroy(&threads->called);
    pthread_mutex_destroy(&threads->lock);
    free(threads);
}

/* ---- The caller --------------------------------------------------------------------------------------- */

static bool has_helpers(dq_threads *threads)
{
    if (!threads)
        return false;
    while (!threads->refused && threads->started + 1 < threads->count) {
        helper *h = threads->helpers + threads->started;
        h->threads = threads;
        h->worker = threads->started + 1;
        threads->refused = pthread_create(&h->thread, NULL, help, h) != 0;
        threads->started += !threads->refused;
    }
    return threads->started > 0;
}

/* No helper comes in any more, and those inside finish the pieces that they have. */
static void close_gate(dq_threads *threads)
{
    enum { PATIENCE = 1 << 12 };
    atomic_fetch_and(&threads->gate, ~(unsigned)OPEN);
    for (int i = 0; atomic_load(&threads->gate) != 0; i++)
        if (i < PATIENCE)
            pause_briefly();
        else
            sched_yield();
}

void dq_parallel(dq_threads *threads, size_t n, size_t grain, dq_range_fn fn, void *arg)
{
    if (n == 0)
        return;
    if (grain == 0)
        grain = 1;
    if (n <= grain || !has_helpers(threads)) {
        for (size_t begin = 0; begin < n; begin += grain) {
            size_t end = n - begin < grain ? n : begin + grain;
            fn(arg, begin, end, 0);
        }
        return;
    }
    threads->fn = fn;
    threads->arg = arg;
    threads->n = n;
    threads->grain = grain;
    atomic_store(&threads->next, 0);
    atomic_store(&threads->gate, OPEN);
    call_helpers(threads, (n - 1) / grain);
    work(threads, 0);
    close_gate(threads);
}
