/* A pool in which nobody waits for a thread that has not begun to work. Other pools' callers wait until each
 * thread has looked at each piece of work; where something else keeps a core busy, that takes as long as the
 * system lets that run. Here a thread enters a job while it is open, and the caller, who works as well,
 * closes it when nothing is left and waits for those inside. */
#define _XOPEN_SOURCE 700
#include "base/threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The gate: how many threads are inside, whether it is open, and the job's number. A thread that sleeps until
 * the number comes round misses a job, which does no harm. */
#define INSIDE 0xFFFu
#define OPEN 0x1000u
#define JOB 0x2000u
#define NUMBER (~(JOB - 1))

/* What of a job one thread begins with, and the others take what is left of: neighbouring items stay on one
 * core from job to job, as far as that goes, and so does what they read and write. */
typedef struct share {
    atomic_size_t next; /* item that nobody has taken yet; of `end` and above there are none */
    size_t end;
    char apart[64 - sizeof(atomic_size_t) - sizeof(size_t)]; /* each in a cache line of its own */
} share;

typedef struct dq_worker {
    dq_threads *threads;
    unsigned number;
    pthread_t thread;
} dq_worker;

struct dq_threads {
    unsigned count;
    /* Started with the first work that is worth sharing, a small model never starts a thread: as many of the
     * count - 1 as the system gives. */
    dq_worker *workers;
    unsigned started;
    bool asked;

    /* The job; written while the gate is closed and nobody inside. */
    dq_range_fn fn;
    void *arg;
    size_t grain;

    share *shares; /* one a thread */

    char before_gate[64]; /* what all look at is in a cache line of its own, too */
    atomic_uint gate;
    char before_rest[64];

    atomic_bool rest;    /* no work is to come for a while */
    atomic_uint asleep;  /* workers that wait for `work` */
    atomic_bool waiting; /* the caller waits for `none_inside` */
    bool over;           /* under the lock */
    pthread_mutex_t lock;
    pthread_cond_t work, none_inside;
};

/* How often a thread looks again before it sleeps: up to a millisecond, as waking one takes longer than
 * most work. */
enum { LOOKS = 1 << 15 };

static void pause_a_little(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* `yield` is over at once */
#endif
}

dq_status dq_threads_create(unsigned count, dq_threads **out, dq_error *err)
{
    dq_threads *threads = calloc(1, sizeof *threads);
    if (threads)
        threads->shares = calloc(count ? count : 1, sizeof *threads->shares);
    if (!threads || !threads->shares) {
        free(threads);
        return dq_no_memory(err, sizeof *threads, "the thread pool");
    }
    threads->count = count ? count : 1;
    pthread_mutex_init(&threads->lock, NULL);
    pthread_cond_init(&threads->work, NULL);
    pthread_cond_init(&threads->none_inside, NULL);
    *out = threads;
    return DQ_OK;
}

void dq_threads_free(dq_threads *threads)
{
    if (!threads)
        return;
    dq_threads_rest(threads);
    pthread_mutex_lock(&threads->lock);
    threads->over = true;
    pthread_mutex_unlock(&threads->lock);
    pthread_cond_broadcast(&threads->work);
    for (unsigned i = 0; i < threads->started; i++)
        pthread_join(threads->workers[i].thread, NULL);
    pthread_cond_destroy(&threads->none_inside);
    pthread_cond_destroy(&threads->work);
    pthread_mutex_destroy(&threads->lock);
    free(threads->workers);
    free(threads->shares);
    free(threads);
}

unsigned dq_threads_count(const dq_threads *threads)
{
    return threads ? threads->count : 1;
}

/* Whoever is inside takes the next piece of its share, then of those of others until none is left: uneven
 * pieces balance. */
static void take_pieces(dq_threads *threads, unsigned worker)
{
    for (unsigned i = 0; i < threads->count; i++) {
        share *s = &threads->shares[(worker + i) % threads->count];
        while (atomic_load_explicit(&s->next, memory_order_relaxed) < s->end) {
            size_t begin = atomic_fetch_add_explicit(&s->next, threads->grain, memory_order_relaxed);
            if (begin >= s->end)
                break;
            size_t end = s->end - begin < threads->grain ? s->end : begin + threads->grain;
            threads->fn(threads->arg, begin, end, worker);
        }
    }
}

/* Enters an open job that is not the one numbered *seen. */
static bool enter(dq_threads *threads, unsigned *seen)
{
    unsigned gate = atomic_load(&threads->gate);
    while ((gate & OPEN) && (gate & NUMBER) != *seen)
        if (atomic_compare_exchange_weak(&threads->gate, &gate, gate + 1)) {
            *seen = gate & NUMBER;
            return true;
        }
    return false;
}

/* Orders that a sleeper and who wakes it rely on are those of sequential consistency: the one says that it
 * sleeps and looks at the gate again, the other changes the gate and looks for sleepers. */
static void wake(dq_threads *threads, pthread_cond_t *sleepers, size_t most)
{
    pthread_mutex_lock(&threads->lock); /* who has said that it sleeps does so now */
    pthread_mutex_unlock(&threads->lock);
    if (most >= threads->started)
        pthread_cond_broadcast(sleepers);
    else
        for (size_t i = 0; i < most; i++)
            pthread_cond_signal(sleepers);
}

static void leave(dq_threads *threads)
{
    unsigned gate = atomic_fetch_sub(&threads->gate, 1) - 1;
    if ((gate & INSIDE) == 0 && atomic_load(&threads->waiting))
        wake(threads, &threads->none_inside, 1);
}

/* Waits for a job and enters it; false when there are no more. */
static bool next_job(dq_threads *threads, unsigned *seen)
{
    for (int i = 0; i < LOOKS && !atomic_load_explicit(&threads->rest, memory_order_relaxed); i++) {
        if (enter(threads, seen))
            return true;
        pause_a_little();
    }
    bool entered;
    pthread_mutex_lock(&threads->lock);
    atomic_fetch_add(&threads->asleep, 1);
    while (!(entered = enter(threads, seen)) && !threads->over)
        pthread_cond_wait(&threads->work, &threads->lock);
    atomic_fetch_sub(&threads->asleep, 1);
    pthread_mutex_unlock(&threads->lock);
    return entered;
}

static void *serve(void *arg)
{
    const dq_worker *self = arg;
    unsigned seen = 0;
    while (next_job(self->threads, &seen)) {
        take_pieces(self->threads, self->number);
        leave(self->threads);
    }
    return NULL;
}

/* The process's signals are for its own threads, but not what a thread's own fault or a profiler raises. */
static sigset_t signals_of_others(void)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF};
    sigset_t set;
    sigfillset(&set);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        sigdelset(&set, own[i]);
    return set;
}

static void start_workers(dq_threads *threads)
{
    unsigned most = threads->count - 1 < INSIDE ? threads->count - 1 : INSIDE;
    sigset_t others = signals_of_others(), before;
    threads->workers = calloc(most, sizeof *threads->workers);
    if (!threads->workers || pthread_sigmask(SIG_BLOCK, &others, &before) != 0)
        return;
    for (unsigned i = 0; i < most; i++) {
        dq_worker *w = &threads->workers[i];
        *w = (dq_worker){.threads = threads, .number = i + 1};
        if (pthread_create(&w->thread, NULL, serve, w) != 0)
            break;
        threads->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool has_workers(dq_threads *threads)
{
    if (!threads || threads->count < 2)
        return false;
    if (!threads->asked)
        start_workers(threads);
    threads->asked = true;
    return threads->started > 0;
}

/* Shares are of whole pieces, as many each as there are. */
static void share_out(dq_threads *threads, size_t n, size_t pieces)
{
    const size_t each = pieces / threads->count, more = pieces % threads->count;
    size_t at = 0;
    for (unsigned i = 0; i < threads->count; i++) {
        share *s = &threads->shares[i];
        atomic_store_explicit(&s->next, at, memory_order_relaxed);
        const size_t size = (each + (i < more)) * threads->grain;
        at = n - at < size ? n : at + size;
        s->end = at;
    }
}

static void open_job(dq_threads *threads, size_t n)
{
    unsigned gate = atomic_load_explicit(&threads->gate, memory_order_relaxed);
    const size_t pieces = n / threads->grain + (n % threads->grain != 0);
    share_out(threads, n, pieces);
    atomic_store_explicit(&threads->rest, false, memory_order_relaxed);
    atomic_store(&threads->gate, (gate + JOB) | OPEN);
    if (atomic_load(&threads->asleep) > 0)
        wake(threads, &threads->work, pieces - 1);
}

static void close_job(dq_threads *threads)
{
    unsigned inside = atomic_fetch_and(&threads->gate, ~OPEN) & INSIDE;
    for (int i = 0; i < LOOKS && inside; i++) {
        pause_a_little();
        inside = atomic_load(&threads->gate) & INSIDE;
    }
    if (!inside)
        return;
    pthread_mutex_lock(&threads->lock);
    atomic_store(&threads->waiting, true);
    while (atomic_load(&threads->gate) & INSIDE)
        pthread_cond_wait(&threads->none_inside, &threads->lock);
    atomic_store(&threads->waiting, false);
    pthread_mutex_unlock(&threads->lock);
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
    threads->fn = fn;
    threads->arg = arg;
    threads->grain = grain;
    open_job(threads, n);
    take_pieces(threads, 0);
    close_job(threads);
}

dq_cut dq_threads_cut(const dq_threads *threads, size_t blocks, size_t most)
{
    size_t count = dq_threads_count(threads), over = blocks % count, parts = 1;
    dq_cut cut = {blocks, blocks, 1, count};
    if (over == 0 || most < 2)
        return cut;
    while (parts < most && parts < count && over * parts % count != 0)
        parts++;
    cut.whole = blocks - over;
    cut.parts = parts;
    return cut;
}

size_t dq_cut_piece(const dq_cut *cut, size_t i, size_t n, size_t *begin, size_t *end)
{
    const size_t over = cut->blocks - cut->whole, over_parts = over * cut->parts;
    const bool even = over && cut->whole % cut->threads == 0 && over_parts % cut->threads == 0;
    const size_t shares = even ? cut->threads : 1, blocks = cut->whole / shares, parts = over_parts / shares;
    const size_t number = i / (blocks + parts), at = i % (blocks + parts);
    *begin = 0;
    *end = n;
    if (at < blocks)
        return number * blocks + at;
    const size_t cuts = number * parts + at - blocks, part = cuts % cut->parts;
    *begin = n / cut->parts * part + (part < n % cut->parts ? part : n % cut->parts);
    *end = *begin + n / cut->parts + (part < n % cut->parts);
    return cut->whole + cuts / cut->parts;
}

void dq_threads_rest(dq_threads *threads)
{
    atomic_store_explicit(&threads->rest, true, memory_order_relaxed);
}
