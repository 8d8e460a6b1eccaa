/* SPDX-License-Identifier: Apache-2.0 */
/* src/api/thread_pool.c: the process's own, the caller's threads, processors; the log and progress
 * of sessions. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "small_model.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 300 };

static float x[N * N];

/* e = -Exp(x · w), in work that is worth sharing. */
static void build(void)
{
    static float w[N * N];
    for (int i = 0; i < N * N; i++) {
        w[i] = (float)(i % 17 - 8) / 64;
        x[i] = (float)(i % 23 - 11) / 64;
    }
    begin();
    input("x", DQ_FLOAT, 2, (int64_t[]){N, N});
    constant("w", DQ_FLOAT, 2, (int64_t[]){N, N}, w);
    node("MatMul", "x", "w", "m");
    node("Exp", "m", NULL, "p");
    node("Neg", "p", NULL, "e"); /* with Exp one loop, which the log tells */
    output("e");
    must(dq_builder_finish(b, NULL, &model, &err));
}

static dq_tensor *input_tensor;

static void open_with(const dq_session_options *options)
{
    if (!input_tensor)
        must(dq_tensor_wrap(DQ_FLOAT, 2, (int64_t[]){N, N}, x, sizeof x, &input_tensor, &err));
    must(dq_session_create(model, options, &session, &err));
    must(dq_session_set_input(session, "x", input_tensor, &err));
}

static void open_and_run(const dq_session_options *options)
{
    open_with(options);
    must(dq_session_run(session, &err));
}

static void end(void)
{
    dq_session_free(session);
    dq_model_free(model);
    dq_tensor_free(input_tensor);
    input_tensor = NULL;
}

/* The results with one thread, to which all others are equal. */
static const float *expected(void)
{
    static float y[N * N];
    dq_session_options options = DQ_SESSION_OPTIONS_INIT;
    options.threads = 1;
    open_and_run(&options);
    memcpy(y, data_of("e"), sizeof y);
    dq_session_free(session);
    return y;
}

/* ---- The process's pool ---------------------------------------------------------------------------------
 */

static unsigned threads_of_process(void)
{
    char line[128];
    unsigned count = 0;
    FILE *file = fopen("/proc/self/status", "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "Threads: %u", &count) == 1)
            break;
    fclose(file);
    return count;
}

START_TEST(sessions_without_a_pool_share_one)
{
    enum { SESSIONS = 5 };
    dq_session *sessions[SESSIONS];
    build();
    const unsigned before = threads_of_process();
    open_and_run(NULL);
    const unsigned cores = dq_session_threads(session);
    for (int i = 0; i < SESSIONS; i++) {
        sessions[i] = session;
        open_and_run(NULL);
        ck_assert_uint_eq(dq_session_threads(session), cores);
    }
    ck_assert_uint_le(threads_of_process(), before + cores - 1);
    dq_session_free(session);
    for (int i = 0; i < SESSIONS; i++)
        dq_session_free(sessions[i]);
    ck_assert_uint_eq(threads_of_process(), before); /* the last session has ended the pool's threads */
    open_and_run(NULL);                              /* which starts again */
    end();
}
END_TEST

START_TEST(a_forked_child_has_a_pool_of_its_own)
{
    int state;
    build();
    open_and_run(NULL);
    const pid_t child = fork();
    if (child == 0) {
        dq_session *parents = session;
        open_and_run(NULL); /* a new one */
        dq_session_free(parents);
        dq_session_free(session);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &state, 0), child);
    ck_assert(WIFEXITED(state) && WEXITSTATUS(state) == 0);
    end();
}
END_TEST

/* ---- The caller's threads -------------------------------------------------------------------------------
 */

typedef struct caller {
    atomic_uint calls, tasks;
    unsigned most;
    bool reversed; /* one task after the other, the last first */
} caller;

typedef struct call {
    void (*task)(void *arg, size_t i);
    void *arg;
    size_t i;
} call;

static void *run_call(void *arg)
{
    const call *c = arg;
    c->task(c->arg, c->i);
    return NULL;
}

static void parallel_for(void *arg, size_t count, void (*task)(void *arg, size_t i), void *task_arg)
{
    caller *c = arg;
    call calls[8];
    pthread_t threads[8];
    atomic_fetch_add(&c->calls, 1);
    atomic_fetch_add(&c->tasks, (unsigned)count);
    ck_assert_uint_le(count, c->most);
    for (size_t i = 0; i < count; i++)
        calls[i] = (call){task, task_arg, c->reversed ? count - 1 - i : i};
    for (size_t i = 0; i < count; i++)
        if (c->reversed)
            run_call(&calls[i]);
        else
            ck_assert_int_eq(pthread_create(&threads[i], NULL, run_call, &calls[i]), 0);
    for (size_t i = 0; i < count && !c->reversed; i++)
        pthread_join(threads[i], NULL);
}

START_TEST(work_runs_on_the_callers_threads)
{
    build();
    const float *y = expected();
    const unsigned before = threads_of_process();
    for (int reversed = 0; reversed < 2; reversed++) {
        caller c = {.most = 3, .reversed = reversed};
        dq_thread_pool_options options = DQ_THREAD_POOL_OPTIONS_INIT;
        dq_session_options of_session = DQ_SESSION_OPTIONS_INIT;
        dq_thread_pool *pool = NULL;
        options.threads = 3;
        options.parallel_for = parallel_for;
        options.parallel_for_arg = &c;
        must(dq_thread_pool_create(&options, &pool, &err));
        ck_assert_uint_eq(dq_thread_pool_threads(pool), 3);
        of_session.pool = pool;
        open_and_run(&of_session);
        ck_assert_mem_eq(data_of("e"), y, sizeof x);
        ck_assert_uint_gt(c.calls, 0);
        ck_assert_uint_gt(c.tasks, c.calls);
        ck_assert_uint_eq(threads_of_process(), before); /* the pool has started none */
        dq_session_free(session);
        dq_thread_pool_free(pool);
    }
    session = NULL;
    end();
}
END_TEST

/* ---- Processors -----------------------------------------------------------------------------------------
 */

START_TEST(threads_stay_on_their_processors)
{
    cpu_set_t set;
    unsigned cpus[1] = {0};
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    while (!CPU_ISSET(cpus[0], &set))
        cpus[0]++;
    dq_thread_pool_options options = DQ_THREAD_POOL_OPTIONS_INIT;
    dq_session_options of_session = DQ_SESSION_OPTIONS_INIT;
    dq_thread_pool *pool = NULL;
    build();
    const float *y = expected();
    options.threads = 3;
    options.cpus = cpus;
    options.cpu_count = 1;
    must(dq_thread_pool_create(&options, &pool, &err));
    of_session.pool = pool;
    open_and_run(&of_session);
    ck_assert_mem_eq(data_of("e"), y, sizeof x);
    dq_thread_pool_free(pool); /* the session keeps it */
    end();
}
END_TEST

START_TEST(impossible_processors_are_refused)
{
    static const unsigned none[] = {1u << 30};
    dq_thread_pool_options options = DQ_THREAD_POOL_OPTIONS_INIT;
    dq_thread_pool *pool = NULL;
    options.cpu_count = 1;
    refused(dq_thread_pool_create(&options, &pool, &err), DQ_INVALID_ARGUMENT,
            "dq_thread_pool_create: options.cpus is NULL, expected 1 processors");
    options.cpus = none;
    refused(dq_thread_pool_create(&options, &pool, &err), DQ_INVALID_ARGUMENT,
            "dq_thread_pool_create: options.cpus[0] is 1073741824, expected a processor that this process "
            "may run on");
    options.parallel_for = parallel_for;
    refused(
        dq_thread_pool_create(&options, &pool, &err), DQ_INVALID_ARGUMENT,
        "dq_thread_pool_create: options.cpus and options.parallel_for are both set, expected one of them: "
        "the threads of parallel_for are the caller's");
}
END_TEST

/* ---- Log and progress ------------------------------------------------------------------------------------
 */

typedef struct heard {
    unsigned records, calls[3];
    uint64_t nodes, work, total;
    unsigned cancel_at; /* in this phase; 0: never */
    pthread_t thread;
} heard;

static void hear_record(void *arg, const dq_log_record *record)
{
    heard *h = arg;
    ck_assert_uint_eq(record->size, sizeof *record);
    ck_assert(record->kind == DQ_LOG_REWRITE || record->kind == DQ_LOG_PLAN);
    ck_assert_ptr_null(strchr(record->message, '\n'));
    h->records++;
}

static int hear_progress(void *arg, const dq_progress *progress)
{
    heard *h = arg;
    ck_assert_uint_eq(progress->size, sizeof *progress);
    ck_assert(pthread_equal(pthread_self(), h->thread));
    h->calls[progress->phase]++;
    if (progress->nodes) { /* else a phase begins */
        ck_assert_uint_eq(progress->nodes, h->nodes + 1);
        ck_assert_uint_ge(progress->work, h->work);
    }
    h->nodes = progress->nodes;
    h->work = progress->work;
    h->total = progress->total_work;
    return h->cancel_at == (unsigned)progress->phase;
}

START_TEST(progress_is_reported_and_can_cancel)
{
    heard h = {.thread = pthread_self()};
    dq_session_options options = DQ_SESSION_OPTIONS_INIT;
    build();
    options.log = hear_record;
    options.progress = hear_progress;
    options.arg = &h;
    open_and_run(&options);
    ck_assert_uint_gt(h.records, 0);
    ck_assert_uint_ge(h.calls[DQ_PHASE_PLAN], 2);
    ck_assert_uint_ge(h.calls[DQ_PHASE_RUN], 2);
    ck_assert_uint_eq(h.work, h.total);
    ck_assert_uint_ge(h.total, (uint64_t)N * N * N);
    h.cancel_at = DQ_PHASE_RUN;
    ck_assert_int_eq(dq_session_run(session, &err), DQ_CANCELLED);
    h.cancel_at = 0;
    must(dq_session_run(session, &err)); /* the session goes on */

    dq_session_free(session);
    h.cancel_at = DQ_PHASE_PLAN;
    open_with(&options);
    ck_assert_int_eq(dq_session_run(session, &err), DQ_CANCELLED);
    h.cancel_at = 0;
    must(dq_session_run(session, &err));
    end();
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("thread_pool", NULL, NULL);
    add_test(&tests, sessions_without_a_pool_share_one);
    add_test(&tests, a_forked_child_has_a_pool_of_its_own);
    add_test(&tests, work_runs_on_the_callers_threads);
    add_test(&tests, threads_stay_on_their_processors);
    add_test(&tests, impossible_processors_are_refused);
    add_test(&tests, progress_is_reported_and_can_cancel);
    return test_program_run(&tests);
}
