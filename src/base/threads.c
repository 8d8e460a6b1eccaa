/* SPDX-License-Identifier: Apache-2.0 */
/* A thread pool in which no caller waits for a thread that has not begun to work. In most pools, the caller
 * waits until each thread has seen each job; if another process occupies a core, that takes until its time
 * slice ends. Here a thread enters a job while the job is open. The caller, who works as well, closes it when
 * no item is left, and waits for the threads inside. */
#define _XOPEN_SOURCE 700
#include "base/threads.h"

#include "base/cpu.h"
#include "base/fpenv.h"
#include "base/lock.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

/* The fields of `gate`: number of threads inside, an open flag, and the job's number. A thread that sleeps
 * until the number wraps around misses a job, which is harmless. */
#define INSIDE 0xFFFu
#define OPEN 0x1000u
#define JOB 0x2000u
#define NUMBER (~(JOB - 1))

/* Distance of fields that several threads write: two cache lines, because processors fetch lines in pairs. */
#define INTERFERENCE_BYTES 128

/* A thread's share of a job. It takes items of its own share first, then of others. Neighboring items, and
 * the memory that they use, thereby stay on one core from job to job. */
typedef struct share {
    atomic_size_t next; /* First item that is not taken; none if it is `end` or more. */
    size_t end;
    char padding[INTERFERENCE_BYTES - sizeof(atomic_size_t) -
                 sizeof(size_t)]; /* Each share has cache lines of its own. */
} share;

typedef struct dq_worker {
    dq_thread_pool *pool;
    unsigned number;
    pthread_t thread;
} dq_worker;

struct dq_thread_pool {
    unsigned count;
    atomic_uint users;    /* References: the caller's handle, and each dq_threads. */
    bool is_process_wide; /* `process_wide` points to it until its last reference is released. */
    /* The caller's threads, used instead of workers of the pool; NULL: none. */
    void (*parallel_for)(void *arg, size_t count, void (*task)(void *task_arg, size_t i), void *task_arg);
    void *parallel_for_arg;
    unsigned *cpus; /* Worker i runs on cpus[(i - 1) % cpu_count]; NULL: no affinity. */
    size_t cpu_count;
    uint64_t spin_ns; /* Time for which a worker spins for the next job before it sleeps. */
    /* Started with the first job that is worth sharing, so that a small model starts no thread. Up to count -
     * 1, as many as the system allows. */
    dq_worker *workers;
    unsigned started;
    bool asked;
    unsigned generation; /* Fork generation when they were started; see has_workers. */
    unsigned born;       /* Fork generation when the pool was made. */

    share *shares; /* One per thread. */

    /* A caller writes the next job while workers poll the gate and read the fields above. */
    char before_job[INTERFERENCE_BYTES];
    /* Set while a job runs. Two callers do not share the workers: the second works alone. */
    atomic_bool busy;
    /* The job; written while the gate is closed and no thread is inside. */
    dq_range_fn fn;
    void *arg;
    size_t grain;
    unsigned share_count; /* Threads that the job is divided among: not more than it has tasks. */
    const atomic_bool *cancelled;

    char before_gate[INTERFERENCE_BYTES];
    atomic_uint gate;
    atomic_uint admitted; /* Number of workers that may be inside; constant while the gate is open. */
    char before_rest[INTERFERENCE_BYTES];

    atomic_bool rest;    /* No work is expected for a while. */
    atomic_uint asleep;  /* Workers that wait for `work`. */
    atomic_bool waiting; /* The caller waits for `none_inside`. */
    bool over;           /* Guarded by the lock. */
    pthread_mutex_t lock;
    pthread_cond_t work, none_inside;
};

/* Spin times of a worker for the next job, and of a caller for the end of one. Waking a thread takes 5 to 50
 * us, longer than most jobs; jobs of a run follow each other within microseconds. The caller spins longer,
 * because its job is in progress. */
enum { SPIN_US = 50, SPIN_JOB_US = 200, LOOKS_PER_CLOCK = 16 };

static void pause_a_little(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* `yield` returns at once. */
#endif
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The state of a wait that begins with spinning. */
typedef struct spin {
    uint64_t end; /* 0: not begun. */
    unsigned looks;
} spin;

static bool go_on_looking(spin *s, uint64_t ns)
{
    pause_a_little();
    if (s->looks++ % LOOKS_PER_CLOCK)
        return true;
    const uint64_t now = now_ns();
    if (!s->end)
        s->end = now + ns;
    return now < s->end;
}

/* ---- Making and freeing ------------------------------------------------------------------------------- */

/* The first session without a pool of its own creates it, the last one frees it. */
static dq_thread_pool *process_wide;
static dq_lock process_wide_lock = DQ_LOCK_INIT;

static dq_status check_cpus(const dq_thread_pool_options *o, dq_error *err)
{
    if (o->cpu_count && !o->cpus)
        return dq_fail(err, DQ_INVALID_ARGUMENT,
                       "dq_thread_pool_create: options.cpus is NULL, expected %zu processors", o->cpu_count);
    if (o->cpu_count && o->parallel_for)
        return dq_fail(err, DQ_INVALID_ARGUMENT,
                       "dq_thread_pool_create: options.cpus and options.parallel_for are both set, expected "
                       "one of them: the "
                       "threads of parallel_for are the caller's");
    for (size_t i = 0; i < o->cpu_count; i++)
        if (!dq_cpu_usable(o->cpus[i]))
            return dq_fail(err, DQ_INVALID_ARGUMENT,
                           "dq_thread_pool_create: options.cpus[%zu] is %u, expected a processor that this "
                           "process may run on",
                           i, o->cpus[i]);
    return DQ_OK;
}

static void free_memory(dq_thread_pool *pool)
{
    free(pool->workers);
    free(pool->shares);
    free(pool->cpus);
    free(pool);
}

dq_status dq_pool_create(const dq_thread_pool_options *options, dq_thread_pool **out, dq_error *err)
{
    DQ_TRY(check_cpus(options, err));
    DQ_TRY(dq_fork_watch(err));
    unsigned count = options->threads ? options->threads : dq_cpu_cores();
    dq_thread_pool *pool = calloc(1, sizeof *pool);
    if (pool) {
        pool->shares = calloc(count, sizeof *pool->shares);
        pool->cpus = calloc(options->cpu_count + 1, sizeof *pool->cpus);
    }
    if (!pool || !pool->shares || !pool->cpus) {
        if (pool)
            free_memory(pool);
        return dq_no_memory(err, sizeof *pool, "the thread pool");
    }
    pool->count = count;
    pool->born = dq_fork_generation();
    pool->parallel_for = options->parallel_for;
    pool->parallel_for_arg = options->parallel_for_arg;
    pool->cpu_count = options->cpu_count;
    for (size_t i = 0; i < options->cpu_count; i++)
        pool->cpus[i] = options->cpus[i];
    atomic_init(&pool->users, 1);
    pool->spin_ns = (options->spin_us ? options->spin_us : SPIN_US) * (uint64_t)1000;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->none_inside, NULL);
    *out = pool;
    return DQ_OK;
}

/* Ends the workers. In a forked child they do not exist, and the state of the lock is unknown. */
static void end_workers(dq_thread_pool *pool)
{
    if (pool->started && pool->generation != dq_fork_generation())
        return;
    atomic_store_explicit(&pool->rest, true, memory_order_relaxed);
    pthread_mutex_lock(&pool->lock);
    pool->over = true;
    pthread_mutex_unlock(&pool->lock);
    pthread_cond_broadcast(&pool->work);
    for (unsigned i = 0; i < pool->started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->none_inside);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
}

/* Releases a reference. True: it was the last. No session can get the process-wide pool between its last
 * release and its end. */
static bool give_back(dq_thread_pool *pool)
{
    if (!pool->is_process_wide)
        return atomic_fetch_sub(&pool->users, 1) == 1;
    dq_lock_take(&process_wide_lock);
    const bool last = atomic_fetch_sub(&pool->users, 1) == 1;
    if (last && process_wide == pool)
        process_wide = NULL;
    dq_lock_release(&process_wide_lock);
    return last;
}

void dq_thread_pool_free(dq_thread_pool *pool)
{
    if (!pool || !give_back(pool))
        return;
    end_workers(pool);
    free_memory(pool);
}

dq_status dq_threads_process_pool(dq_thread_pool **out, dq_error *err)
{
    DQ_TRY(dq_fork_watch(err));
    dq_lock_take(&process_wide_lock);
    const dq_thread_pool_options all_cores = {.size = sizeof all_cores};
    /* The workers of a pool from before a fork do not exist in the child: its sessions keep that pool, new
     * ones get another. */
    dq_thread_pool *pool = process_wide && process_wide->born == dq_fork_generation() ? process_wide : NULL;
    dq_status status = DQ_OK;
    if (pool) {
        atomic_fetch_add(&pool->users, 1);
    } else if ((status = dq_pool_create(&all_cores, &pool, err)) == DQ_OK) {
        pool->is_process_wide = true;
        process_wide = pool;
    }
    dq_lock_release(&process_wide_lock);
    if (status == DQ_OK)
        *out = pool;
    return status;
}

unsigned dq_thread_pool_threads(const dq_thread_pool *pool)
{
    return pool->count;
}

/* The object of dq_threads_create: `all` and `alone` share the flag. */
typedef struct session_threads {
    dq_threads all, alone;
    atomic_bool cancelled;
} session_threads;

dq_status dq_threads_create(dq_thread_pool *pool, dq_threads **out, dq_error *err)
{
    session_threads *t = calloc(1, sizeof *t);
    if (!t)
        return dq_no_memory(err, sizeof *t, "the threads of a session");
    atomic_init(&t->cancelled, false);
    t->all = (dq_threads){.pool = pool, .alone = &t->alone, .cancelled = &t->cancelled};
    t->alone = (dq_threads){.alone = &t->alone, .cancelled = &t->cancelled};
    if (pool)
        atomic_fetch_add(&pool->users, 1);
    *out = &t->all;
    return DQ_OK;
}

void dq_threads_free(dq_threads *threads)
{
    if (!threads)
        return;
    dq_thread_pool_free(threads->pool);
    free(threads); /* The first member. */
}

unsigned dq_threads_count(const dq_threads *threads)
{
    return threads && threads->pool ? threads->pool->count : 1;
}

/* ---- Jobs --------------------------------------------------------------------------------------------- */

/* Takes tasks of the thread's own share, then of the others', until none is left: work stealing balances
 * uneven tasks. */
static void take_pieces(dq_thread_pool *pool, unsigned worker)
{
    for (unsigned i = 0; i < pool->share_count; i++) {
        share *s = &pool->shares[(worker + i) % pool->share_count];
        while (atomic_load_explicit(&s->next, memory_order_relaxed) < s->end &&
               !atomic_load_explicit(pool->cancelled, memory_order_relaxed)) {
            size_t begin = atomic_fetch_add_explicit(&s->next, pool->grain, memory_order_relaxed);
            if (begin >= s->end)
                break;
            size_t end = s->end - begin < pool->grain ? s->end : begin + pool->grain;
            pool->fn(pool->arg, begin, end, worker);
        }
    }
}

/* Enters an open job other than the one numbered *seen. A job with as many workers inside as it has tasks for
 * counts as seen: workers leave only when no task is left. */
static bool enter(dq_thread_pool *pool, unsigned *seen)
{
    unsigned gate = atomic_load(&pool->gate);
    while ((gate & OPEN) && (gate & NUMBER) != *seen) {
        const bool is_full = (gate & INSIDE) >= atomic_load_explicit(&pool->admitted, memory_order_relaxed);
        if (is_full || atomic_compare_exchange_weak(&pool->gate, &gate, gate + 1)) {
            *seen = gate & NUMBER;
            return !is_full;
        }
    }
    return false;
}

/* A sleeper and its waker rely on sequential consistency: the sleeper announces that it sleeps and then
 * checks the gate again; the waker changes the gate and then checks for sleepers. */
static void wake(dq_thread_pool *pool, pthread_cond_t *sleepers, size_t most)
{
    pthread_mutex_lock(&pool->lock); /* A thread that announced that it sleeps has begun to wait now. */
    pthread_mutex_unlock(&pool->lock);
    if (most >= pool->started)
        pthread_cond_broadcast(sleepers);
    else
        for (size_t i = 0; i < most; i++)
            pthread_cond_signal(sleepers);
}

static void leave(dq_thread_pool *pool)
{
    unsigned gate = atomic_fetch_sub(&pool->gate, 1) - 1;
    if ((gate & INSIDE) == 0 && atomic_load(&pool->waiting))
        wake(pool, &pool->none_inside, 1);
}

/* Waits for a job and enters it. False: the pool ends. */
static bool next_job(dq_thread_pool *pool, unsigned *seen)
{
    spin looking = {0};
    do {
        if (enter(pool, seen))
            return true;
    } while (!atomic_load_explicit(&pool->rest, memory_order_relaxed) &&
             go_on_looking(&looking, pool->spin_ns));
    bool entered;
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->asleep, 1);
    while (!(entered = enter(pool, seen)) && !pool->over)
        pthread_cond_wait(&pool->work, &pool->lock);
    atomic_fetch_sub(&pool->asleep, 1);
    pthread_mutex_unlock(&pool->lock);
    return entered;
}

static void *serve(void *arg)
{
    const dq_worker *self = arg;
    const dq_thread_pool *pool = self->pool;
    unsigned seen = 0;
    if (pool->cpu_count)
        dq_cpu_pin(pool->cpus[(self->number - 1) % pool->cpu_count]);
    while (next_job(self->pool, &seen)) {
        take_pieces(self->pool, self->number);
        leave(self->pool);
    }
    return NULL;
}

/* The signals that workers block. The process's signals are for its own threads, except those that a thread's
 * own fault or a profiler raises. */
static sigset_t signals_of_others(void)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF};
    sigset_t set;
    sigfillset(&set);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        sigdelset(&set, own[i]);
    return set;
}

static void start_workers(dq_thread_pool *pool)
{
    unsigned most = pool->count - 1 < INSIDE ? pool->count - 1 : INSIDE;
    sigset_t others = signals_of_others(), before;
    pool->generation = dq_fork_generation();
    pool->workers = calloc(most, sizeof *pool->workers);
    if (!pool->workers || pthread_sigmask(SIG_BLOCK, &others, &before) != 0)
        return;
    for (unsigned i = 0; i < most; i++) {
        dq_worker *w = &pool->workers[i];
        *w = (dq_worker){.pool = pool, .number = i + 1};
        if (pthread_create(&w->thread, NULL, serve, w) != 0)
            break;
        pool->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Whether there are workers; starts them if necessary. The caller has set `busy`. A forked child has no
 * workers and starts none: the state of the pool may be that of another thread's job in the parent. */
static bool has_workers(dq_thread_pool *pool)
{
    if (!pool->asked)
        start_workers(pool);
    pool->asked = true;
    return pool->started > 0 && pool->generation == dq_fork_generation();
}

/* Divides the tasks into equal shares of whole tasks, one for each thread, but not more than there are tasks.
 */
static void share_out(dq_thread_pool *pool, size_t n, size_t pieces)
{
    pool->share_count = pieces < pool->count ? (unsigned)pieces : pool->count;
    const size_t each = pieces / pool->share_count, more = pieces % pool->share_count;
    size_t at = 0;
    for (unsigned i = 0; i < pool->share_count; i++) {
        share *s = &pool->shares[i];
        atomic_store_explicit(&s->next, at, memory_order_relaxed);
        const size_t size = (each + (i < more)) * pool->grain;
        at = n - at < size ? n : at + size;
        s->end = at;
    }
}

static void open_job(dq_thread_pool *pool, size_t n)
{
    unsigned gate = atomic_load_explicit(&pool->gate, memory_order_relaxed);
    const size_t pieces = n / pool->grain + (n % pool->grain != 0);
    share_out(pool, n, pieces);
    atomic_store_explicit(&pool->admitted, pool->share_count - 1, memory_order_relaxed);
    /* Workers poll this flag: a store without need would take its line from all of them. */
    if (atomic_load_explicit(&pool->rest, memory_order_relaxed))
        atomic_store_explicit(&pool->rest, false, memory_order_relaxed);
    atomic_store(&pool->gate, (gate + JOB) | OPEN);
    if (atomic_load(&pool->asleep) > 0)
        wake(pool, &pool->work, pieces - 1);
}

static void close_job(dq_thread_pool *pool)
{
    unsigned inside = atomic_fetch_and(&pool->gate, ~OPEN) & INSIDE;
    const uint64_t least = SPIN_JOB_US * (uint64_t)1000;
    spin looking = {0};
    while (inside && go_on_looking(&looking, pool->spin_ns > least ? pool->spin_ns : least))
        inside = atomic_load(&pool->gate) & INSIDE;
    if (!inside)
        return;
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->waiting, true);
    while (atomic_load(&pool->gate) & INSIDE)
        pthread_cond_wait(&pool->none_inside, &pool->lock);
    atomic_store(&pool->waiting, false);
    pthread_mutex_unlock(&pool->lock);
}

/* Task i of the caller's parallel_for does the work of worker i. */
static void run_task(void *arg, size_t i)
{
    const dq_fpenv own = dq_fpenv_enter();
    take_pieces(arg, (unsigned)i);
    dq_fpenv_leave(own);
}

static void work_on_callers_threads(dq_thread_pool *pool, size_t n)
{
    const size_t pieces = n / pool->grain + (n % pool->grain != 0);
    share_out(pool, n, pieces);
    pool->parallel_for(pool->parallel_for_arg, pool->share_count, run_task, pool);
    take_pieces(pool, 0); /* Tasks that parallel_for has not run. */
}

static void work_alone(const dq_threads *threads, size_t n, size_t grain, dq_range_fn fn, void *arg)
{
    for (size_t begin = 0; begin < n && !dq_threads_cancelled(threads); begin += grain) {
        size_t end = n - begin < grain ? n : begin + grain;
        fn(arg, begin, end, 0);
    }
}

void dq_parallel(dq_threads *threads, size_t n, size_t grain, dq_range_fn fn, void *arg)
{
    dq_thread_pool *pool = threads ? threads->pool : NULL;
    if (n == 0)
        return;
    if (grain == 0)
        grain = 1;
    if (n <= grain || !pool || pool->count < 2 ||
        atomic_exchange_explicit(&pool->busy, true, memory_order_acquire)) {
        work_alone(threads, n, grain, fn, arg);
        return;
    }
    const bool shared = pool->parallel_for || has_workers(pool);
    if (shared) {
        pool->fn = fn;
        pool->arg = arg;
        pool->grain = grain;
        pool->cancelled = threads->cancelled;
    }
    if (pool->parallel_for) {
        work_on_callers_threads(pool, n);
    } else if (shared) {
        open_job(pool, n);
        take_pieces(pool, 0);
        close_job(pool);
    }
    atomic_store_explicit(&pool->busy, false, memory_order_release);
    if (!shared)
        work_alone(threads, n, grain, fn, arg);
}

dq_partition dq_threads_cut(const dq_threads *threads, size_t blocks, size_t most)
{
    size_t count = dq_threads_count(threads), over = blocks % count, parts = 1;
    dq_partition cut = {blocks, blocks, 1, count};
    if (over == 0 || most < 2)
        return cut;
    while (parts < most && parts < count && over * parts % count != 0)
        parts++;
    cut.whole = blocks - over;
    cut.parts = parts;
    return cut;
}

size_t dq_partition_piece(const dq_partition *cut, size_t i, size_t n, size_t *begin, size_t *end)
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
    if (threads->pool)
        atomic_store_explicit(&threads->pool->rest, true, memory_order_relaxed);
}
