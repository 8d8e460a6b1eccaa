/* SPDX-License-Identifier: Apache-2.0 */
/* What the library does to its process: umask, fork, floating-point environment, files that are cut off. */
#define _GNU_SOURCE /* FE_… of all rounding modes, pthread_setname */
#include "small_model.h"

#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 300, ROUNDS = 12 };

/* AddressSanitizer's allocator, before LLVM 17, keeps its locks as they were in a forked child, which then
 * waits forever for one that another thread of the parent held. */
#if defined(__SANITIZE_ADDRESS__)
enum { CHILD_MAY_ALLOCATE = false };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { CHILD_MAY_ALLOCATE = false };
#else
enum { CHILD_MAY_ALLOCATE = true };
#endif
#else
enum { CHILD_MAY_ALLOCATE = true };
#endif

static char folder[] = "/tmp/dqrun-process-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_folder(void)
{
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

/* x[N,N] · w[N,N] + 1, and its quantization: work that is worth sharing. */
static void build(void)
{
    static float w[N * N], one[1] = {1}, scale[1] = {0.1f};
    for (int i = 0; i < N * N; i++)
        w[i] = (float)(i % 17 - 8); /* no flag is raised here */
    begin();
    input("x", DQ_FLOAT, 2, (int64_t[]){N, N});
    constant("w", DQ_FLOAT, 2, (int64_t[]){N, N}, w);
    constant("one", DQ_FLOAT, 1, (int64_t[]){1}, one);
    constant("scale", DQ_FLOAT, 0, NULL, scale);
    node("MatMul", "x", "w", "m");
    node("Add", "m", "one", "y");
    node("Exp", "x", NULL, "e");
    node("QuantizeLinear", "y", "scale", "q");
    output("y");
    output("e");
    output("q");
    must(dq_builder_finish(b, NULL, &model, &err));
}

/* Made once, as that raises flags. */
static float *input_data(void)
{
    static float x[N * N];
    for (int i = 0; i < N * N && x[N * N - 1] == 0; i++)
        x[i] = (float)(i % 23 - 11) / 3 + (i % 5 == 0 ? 1e-40f : 0); /* denormals, too, where i % 23 is 11 */
    return x;
}

/* ---- umask ----------------------------------------------------------------------------------------------
 */

static atomic_bool stop;

/* Makes files for as long as models are saved; returns how many anybody might write to. */
static void *make_files(void *arg)
{
    size_t open_to_all = 0;
    char path[256];
    snprintf(path, sizeof path, "%s/other", folder);
    for (size_t i = 0; !atomic_load(&stop); i++) {
        struct stat info;
        FILE *f = fopen(path, "w");
        if (!f || fstat(fileno(f), &info) != 0)
            return (void *)(uintptr_t)1;
        open_to_all += (info.st_mode & 0777) != 0640;
        fclose(f);
        remove(path);
    }
    (void)arg;
    return (void *)(uintptr_t)open_to_all;
}

START_TEST(saving_leaves_the_umask_alone)
{
    pthread_t thread;
    void *open_to_all = NULL;
    struct stat info;
    make_folder();
    build();
    mode_t old = umask(0027);
    atomic_store(&stop, false);
    ck_assert_int_eq(pthread_create(&thread, NULL, make_files, NULL), 0);
    for (int i = 0; i < 200; i++)
        must(dq_model_save(model, in_folder("saved.onnx"), &err));
    atomic_store(&stop, true);
    pthread_join(thread, &open_to_all);
    ck_assert_int_eq(stat(in_folder("saved.onnx"), &info), 0);
    ck_assert_int_eq(umask(old), 0027);
    ck_assert_int_eq(info.st_mode & 0777, 0640);
    ck_assert_uint_eq((uintptr_t)open_to_all, 0);
    remove(in_folder("saved.onnx"));
    ck_assert_int_eq(rmdir(folder), 0); /* nothing temporary is left */
    tear_down();
}
END_TEST

/* ---- fork -----------------------------------------------------------------------------------------------
 */

typedef struct runner {
    dq_session *session;
    atomic_bool *go_on;
    atomic_size_t runs;
    bool sessions_too; /* makes and frees them, too */
} runner;

static void *run_on(void *arg)
{
    runner *r = arg;
    dq_error own;
    while (atomic_load(r->go_on)) {
        if (r->sessions_too) {
            dq_session *s = NULL;
            dq_tensor *x = NULL;
            const dq_session_options options = {.size = sizeof(dq_session_options),
                                                .threads = 2,
                                                .isa = atomic_load(&r->runs) % 2 ? "c" : NULL};

            if (dq_session_create(model, &options, &s, &own) != DQ_OK ||
                dq_tensor_wrap(DQ_FLOAT, 2, (int64_t[]){N, N}, input_data(), N * N * sizeof(float), &x,
                               &own) != DQ_OK ||
                dq_session_set_input(s, "x", x, &own) != DQ_OK || dq_session_run(s, &own) != DQ_OK)
                return r;
            dq_session_free(s);
            dq_tensor_free(x);
        } else if (dq_session_run(r->session, &own) != DQ_OK) {
            return r;
        }
        atomic_fetch_add(&r->runs, 1);
    }
    return NULL;
}

/* In the child: an old session runs and is freed, and a new one is made. Its exit code says what failed. */
static void child(dq_session *old, const void *expected)
{
    const dq_tensor *y = NULL;
    dq_session *new = NULL;
    dq_error own;
    alarm(60); /* a hang is a signal */
    if (dq_session_run(old, &own) != DQ_OK || dq_session_get_output(old, "y", &y, &own) != DQ_OK)
        _exit(1);
    if (memcmp(dq_tensor_data(y), expected, N * N * sizeof(float)) != 0)
        _exit(2);
    dq_session_free(old);
    if (dq_session_create(model,
                          &(dq_session_options){.size = sizeof(dq_session_options), .threads = 1, .isa = "c"},
                          &new, &own) != DQ_OK ||
        dq_session_set_input(new, "x", made[made_count - 1], &own) != DQ_OK ||
        dq_session_run(new, &own) != DQ_OK)
        _exit(3);
    dq_session_free(new);
    _exit(0);
}

static void fork_while(bool sessions_too, dq_thread_pool *pool)
{
    build();
    dq_tensor *x = over(DQ_FLOAT, 2, (int64_t[]){N, N}, input_data());
    const dq_session_options options = {.size = sizeof(dq_session_options), .threads = 3, .pool = pool};
    static float expected[N * N];
    atomic_bool go_on = true;
    runner r = {.go_on = &go_on, .sessions_too = sessions_too};
    pthread_t thread;
    void *fault = NULL;
    must(dq_session_create(model, &options, &session, &err));
    must(dq_session_create(model, &options, &r.session, &err));
    must(dq_session_set_input(session, "x", x, &err));
    must(dq_session_set_input(r.session, "x", x, &err));
    must(dq_session_run(session, &err));
    memcpy(expected, data_of("y"), sizeof expected);
    ck_assert_int_eq(pthread_create(&thread, NULL, run_on, &r), 0);
    for (int i = 0; i < ROUNDS; i++) {
        const size_t seen = atomic_load(&r.runs);
        while (atomic_load(&r.runs) == seen && i % 2)
            usleep(100);
        if (i % 3 == 0) /* workers that spin, or fall asleep just now */
            must(dq_session_run(session, &err));
        pid_t pid = fork();
        if (pid == 0)
            child(session, expected);
        int state = 0;
        ck_assert_int_gt(pid, 0);
        ck_assert_int_eq(waitpid(pid, &state, 0), pid);
        ck_assert_msg(WIFEXITED(state) && WEXITSTATUS(state) == 0, "round %d: child ended with %d", i, state);
    }
    atomic_store(&go_on, false);
    pthread_join(thread, &fault);
    ck_assert_ptr_null(fault);
    must(dq_session_run(session, &err)); /* the parent goes on as before */
    ck_assert_mem_eq(data_of("y"), expected, sizeof expected);
    dq_session_free(r.session);
    tear_down();
}

START_TEST(a_child_runs_and_frees_while_another_thread_runs)
{
    fork_while(false, NULL);
}
END_TEST

START_TEST(a_child_finds_no_lock_taken)
{
    fork_while(true, NULL);
}
END_TEST

START_TEST(a_child_finds_no_pool_taken)
{
    dq_thread_pool *pool = NULL;
    must(dq_thread_pool_create(
        &(dq_thread_pool_options){.size = sizeof(dq_thread_pool_options), .threads = 3}, &pool, &err));
    fork_while(false, pool);
    dq_thread_pool_free(pool);
}
END_TEST

/* ---- Pools ----------------------------------------------------------------------------------------------
 */

START_TEST(sessions_share_a_pool)
{
    enum { SESSIONS = 4 };
    dq_thread_pool *pool = NULL;
    runner runners[SESSIONS];
    pthread_t threads[SESSIONS];
    static float expected[N * N];
    atomic_bool go_on = true;
    void *fault = NULL;
    must(dq_thread_pool_create(
        &(dq_thread_pool_options){.size = sizeof(dq_thread_pool_options), .threads = 3, .spin_us = 5}, &pool,
        &err));
    ck_assert_uint_eq(dq_thread_pool_threads(pool), 3);
    build();
    dq_tensor *x = over(DQ_FLOAT, 2, (int64_t[]){N, N}, input_data());
    open_session(1, false, NULL, NULL);
    must(dq_session_set_input(session, "x", x, &err));
    must(dq_session_run(session, &err));
    memcpy(expected, data_of("y"), sizeof expected);
    for (int i = 0; i < SESSIONS; i++) {
        const dq_session_options options = {.size = sizeof(dq_session_options), .threads = 7, .pool = pool};
        runners[i] = (runner){.go_on = &go_on};
        must(dq_session_create(model, &options, &runners[i].session, &err));
        ck_assert_uint_eq(dq_session_threads(runners[i].session), 3);
        must(dq_session_set_input(runners[i].session, "x", x, &err));
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_on, &runners[i]), 0);
    }
    dq_thread_pool_free(pool); /* the sessions keep it */
    for (int i = 0; i < SESSIONS; i++)
        while (atomic_load(&runners[i].runs) < 20)
            usleep(1000);
    atomic_store(&go_on, false);
    for (int i = 0; i < SESSIONS; i++) {
        const dq_tensor *y = NULL;
        pthread_join(threads[i], &fault);
        ck_assert_ptr_null(fault);
        must(dq_session_get_output(runners[i].session, "y", &y, &err));
        ck_assert_mem_eq(dq_tensor_data(y), expected, sizeof expected);
        dq_session_free(runners[i].session);
    }
    tear_down();
}
END_TEST

/* ---- Floating-point environment -------------------------------------------------------------------------
 */

#if defined(__x86_64__)
static unsigned control(void)
{
    unsigned csr;
    __asm__ volatile("stmxcsr %0" : "=m"(csr));
    return csr;
}

static void set_control(unsigned csr)
{
    __asm__ volatile("ldmxcsr %0" : : "m"(csr));
}

enum { FTZ_DAZ = 0x8040 };
#else
static unsigned control(void)
{
    return 0;
}

static void set_control(unsigned csr)
{
    (void)csr;
}

enum { FTZ_DAZ = 0 };
#endif

static void same(unsigned expected, int rounding)
{
    ck_assert_uint_eq(control(), expected);
    ck_assert_int_eq(fegetround(), rounding);
}

/* Results of the model, made and run in this environment with so many threads: y, e and q in a row. */
static void compute(int rounding, unsigned bits, unsigned threads, unsigned char *out)
{
    static const char *const outputs[] = {"y", "e", "q"};
    fesetround(rounding);
    set_control(control() | bits);
    feraiseexcept(FE_INEXACT);
    const unsigned before = control();
    build();
    same(before, rounding);
    open_session(threads, false, NULL, NULL);
    same(before, rounding);
    must(dq_session_set_input(session, "x", over(DQ_FLOAT, 2, (int64_t[]){N, N}, input_data()), &err));
    must(dq_session_run(session, &err));
    same(before, rounding);
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        const dq_tensor *t = NULL;
        must(dq_session_get_output(session, outputs[i], &t, &err));
        memcpy(out, dq_tensor_data(t), dq_tensor_size(t));
        out += dq_tensor_size(t);
    }
    must(dq_model_save(model, in_folder("env.onnx"), &err));
    same(before, rounding);
    dq_model *again = NULL;
    must(dq_model_load(in_folder("env.onnx"), NULL, &again, &err));
    same(before, rounding);
    dq_model_free(again);
    ck_assert(dq_tensor_value(over(DQ_FLOAT, 0, NULL, &(float){1e-40f}), 0) != 0);
    same(before, rounding);
    tear_down();
    set_control(control() & ~(unsigned)FTZ_DAZ);
    fesetround(FE_TONEAREST);
}

START_TEST(the_callers_floating_point_environment_changes_nothing)
{
    static unsigned char expected[N * N * 9], got[N * N * 9];
    static const int roundings[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST};
    make_folder();
    (void)input_data();
    compute(FE_TONEAREST, 0, 1, expected);
    for (size_t i = 0; i < sizeof roundings / sizeof *roundings; i++)
        for (unsigned threads = 1; threads <= 2; threads++) {
            memset(got, 0, sizeof got);
            compute(roundings[i], FTZ_DAZ, threads, got);
            ck_assert_mem_eq(got, expected, sizeof expected);
        }
    remove(in_folder("env.onnx"));
    rmdir(folder);
}
END_TEST

/* ---- Files ----------------------------------------------------------------------------------------------
 */

/* A file of less than 1 MiB may be cut off as soon as the model is there. */
START_TEST(a_small_file_may_be_cut_off)
{
    static float expected[N * N];
    make_folder();
    build();
    open_session(1, false, NULL, NULL);
    dq_tensor *x = over(DQ_FLOAT, 2, (int64_t[]){N, N}, input_data());
    must(dq_session_set_input(session, "x", x, &err));
    must(dq_session_run(session, &err));
    memcpy(expected, data_of("y"), sizeof expected);
    must(dq_model_save(model, in_folder("cut.onnx"), &err));
    dq_session_free(session);
    dq_model_free(model);
    must(dq_model_load(in_folder("cut.onnx"), NULL, &model, &err));
    ck_assert_int_eq(truncate(in_folder("cut.onnx"), 0), 0);
    open_session(1, false, NULL, NULL);
    must(dq_session_set_input(session, "x", x, &err));
    must(dq_session_run(session, &err));
    ck_assert_mem_eq(data_of("y"), expected, sizeof expected);
    ck_assert_int_eq(dq_model_load(in_folder("cut.onnx"), NULL, &(dq_model *){NULL}, &err), DQ_BAD_MODEL);
    remove(in_folder("cut.onnx"));
    rmdir(folder);
    tear_down();
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("process", NULL, NULL);
    add_test(&tests, saving_leaves_the_umask_alone);
    if (CHILD_MAY_ALLOCATE) {
        add_test(&tests, a_child_runs_and_frees_while_another_thread_runs);
        add_test(&tests, a_child_finds_no_lock_taken);
        add_test(&tests, a_child_finds_no_pool_taken);
    }
    add_test(&tests, sessions_share_a_pool);
    add_test(&tests, the_callers_floating_point_environment_changes_nothing);
    add_test(&tests, a_small_file_may_be_cut_off);
    return test_program_run(&tests);
}
