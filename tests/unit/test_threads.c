/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/threads.c: work is divided among threads. */
#include "base/threads.c" /* Not the library's copy: tests call its static functions. */
#include "support/test_program.h"
#include "support/threads_of.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

typedef struct visits {
    atomic_uint count[1000];
    atomic_uint wrong;
    size_t grain;
    unsigned workers;
} visits;

static void visit(void *arg, size_t begin, size_t end, unsigned worker)
{
    visits *v = arg;
    if (begin % v->grain || end - begin > v->grain || worker >= v->workers)
        atomic_fetch_add(&v->wrong, 1);
    sigset_t blocked; /* the process's signals are not for workers, a fault of their own is */
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    if (sigismember(&blocked, SIGINT) != (worker > 0) || sigismember(&blocked, SIGSEGV))
        atomic_fetch_add(&v->wrong, 1);
    for (size_t i = begin; i < end; i++)
        atomic_fetch_add(&v->count[i], 1);
}

START_TEST(threads_visit_every_item_once)
{
    static visits v;
    dq_error err;
    dq_threads *threads = NULL;
    ck_assert_int_eq(threads_of((unsigned)_i, &threads, &err), DQ_OK);
    v.workers = dq_threads_count(threads);
    for (size_t n = 0; n <= 1000; n += 125)
        for (v.grain = 1; v.grain < 200; v.grain += 66) {
            memset(v.count, 0, sizeof v.count);
            dq_parallel(threads, n, v.grain, visit, &v);
            for (size_t i = 0; i < 1000; i++)
                v.wrong += v.count[i] != (i < n);
            if (n % 2) /* work finds them awake and asleep */
                dq_threads_rest(threads);
        }
    ck_assert_uint_eq(v.wrong, 0);
    dq_threads_free(threads);
}
END_TEST

typedef struct sum {
    atomic_size_t items, calls;
} sum;

static void add_items(void *arg, size_t begin, size_t end, unsigned worker)
{
    sum *s = arg;
    (void)worker;
    for (size_t i = begin; i < end; i++)
        atomic_fetch_add_explicit(&s->items, i + 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->calls, 1, memory_order_relaxed);
}

/* Jobs that end before most threads have heard of them, one after another on the same memory: what a late
 * thread would take from the next job, or twice, would be missing or too much. */
START_TEST(late_threads_disturb_nothing)
{
    dq_error err;
    dq_threads *threads = NULL;
    ck_assert_int_eq(threads_of(40, &threads, &err), DQ_OK);
    for (size_t round = 0; round < 3000; round++) {
        sum s = {0};
        size_t n = 2 + round % 7, grain = 1 + round % 2;
        dq_parallel(threads, n, grain, add_items, &s);
        ck_assert_uint_eq(s.items, n * (n + 1) / 2);
        ck_assert_uint_eq(s.calls, (n + grain - 1) / grain);
        if (round % 100 == 0)
            dq_threads_rest(threads);
    }
    dq_threads_free(threads);
}
END_TEST

/* Threads without work would take cache lines from those that work, and the caller would wait for them. A
 * pool that has begun no job has started no thread: the test enters in the place of workers. */
START_TEST(a_job_admits_a_thread_for_each_task)
{
    enum { THREADS = 6 };
    dq_error err;
    dq_threads *threads = NULL;
    ck_assert_int_eq(threads_of(THREADS, &threads, &err), DQ_OK);
    dq_thread_pool *pool = threads->pool;
    pool->grain = 3;
    for (size_t tasks = 2; tasks <= 10; tasks++) {
        unsigned entered = 0;
        open_job(pool, tasks * pool->grain - 1);
        for (unsigned worker = 1; worker < THREADS; worker++) {
            unsigned seen = 0;
            entered += enter(pool, &seen);
            ck_assert_uint_eq(seen, atomic_load(&pool->gate) & NUMBER); /* It does not look again. */
            ck_assert(!enter(pool, &seen));
        }
        ck_assert_uint_eq(entered + 1, tasks < THREADS ? tasks : THREADS);
        while (entered--)
            leave(pool);
        close_job(pool);
        ck_assert(!enter(pool, &(unsigned){0}));
    }
    dq_threads_free(threads);
}
END_TEST

/* Units of every block once and in order, and where units suffice as many pieces for each thread, and as much
 * work as can be. */
START_TEST(blocks_are_cut_so_that_no_thread_is_left_over)
{
    dq_error err;
    dq_threads *threads = NULL;
    unsigned count = (unsigned)_i;
    ck_assert_int_eq(threads_of(count, &threads, &err), DQ_OK);
    for (size_t blocks = 0; blocks < 20; blocks++)
        for (size_t units = 1; units < 20; units++) {
            dq_partition cut = dq_threads_cut(threads, blocks, units);
            size_t next[20] = {0}, begin, end, pieces = dq_partition_count(&cut), work[5] = {0};
            for (size_t i = 0; i < pieces; i++) {
                size_t block = dq_partition_piece(&cut, i, units, &begin, &end);
                ck_assert_uint_lt(block, blocks);
                ck_assert_uint_eq(begin, next[block]);
                ck_assert_uint_lt(begin, end);
                next[block] = end;
                work[i * count / pieces] += end - begin;
            }
            for (size_t i = 0; i < blocks; i++)
                ck_assert_uint_eq(next[i], units);
            if (units >= count)
                ck_assert_uint_eq(pieces % count, 0);
            for (size_t i = 0; i < count && units % count == 0; i++)
                ck_assert_uint_eq(work[i], blocks * units / count);
        }
    dq_threads_free(threads);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("threads", NULL, NULL);
    add_loop_test(&tests, threads_visit_every_item_once, 1, 5);
    add_test(&tests, late_threads_disturb_nothing);
    add_test(&tests, a_job_admits_a_thread_for_each_task);
    add_loop_test(&tests, blocks_are_cut_so_that_no_thread_is_left_over, 1, 5);
    return test_program_run(&tests);
}
