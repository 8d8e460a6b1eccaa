/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that are cancelled, by other threads and by signal handlers, while they plan and while they run; and
 * the limit of work. */
#define _GNU_SOURCE
#include "small_model.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A constant of zeros, made from its shape while the model is planned. */
static void zeros(const char *name, int64_t a, int64_t c)
{
    static int64_t shapes[8][2];
    static size_t used;
    char shape[64];
    int64_t *v = shapes[used++ % 8];
    snprintf(shape, sizeof shape, "%s_shape", name);
    int64_t rank = 2;
    v[0] = a, v[1] = c;
    constant(shape, DQ_INT64, 1, &rank, v);
    node("ConstantOfShape", shape, NULL, name);
}

/* ---- Work that takes long -------------------------------------------------------------------------------
 */

typedef struct work {
    const char *name;
    void (*build)(void); /* x -> y */
    int64_t rank, dims[4];
    bool in_plan;   /* y does not depend on x: it is computed while planning */
    uint64_t least; /* its work is more */
} work;

static void product(void)
{
    node("MatMul", "x", "x", "y");
}

static void products(void) /* many small ones */
{
    node("MatMul", "x", "x", "y");
}

static void convolution(void)
{
    static float w[64 * 64 * 25];
    constant("w", DQ_FLOAT, 4, (int64_t[]){64, 64, 5, 5}, w);
    node("Conv", "x", "w", "y");
}

static void integers(void)
{
    static float scale[1] = {1};
    static uint8_t w[64 * 64 * 9];
    constant("s", DQ_FLOAT, 0, NULL, scale);
    constant("w", DQ_UINT8, 4, (int64_t[]){64, 64, 3, 3}, w);
    node("QuantizeLinear", "x", "s", "q");
    node("ConvInteger", "q", "w", "y");
}

static void integer_product(void)
{
    static float scale[1] = {1};
    constant("s", DQ_FLOAT, 0, NULL, scale);
    node("QuantizeLinear", "x", "s", "q");
    node("MatMulInteger", "q", "q", "y");
}

static void sums(void)
{
    const char *ins[] = {"x", "x"}, *out = "y";
    const dq_attribute equation = {
        .size = sizeof(dq_attribute), .name = "equation", .kind = DQ_ATTRIBUTE_STRING, .s = "aij,ajk->ik"};
    must(add_node(b, "", "Einsum", "y", 2, ins, 1, &out, 1, &equation, &err));
}

static void pool(void)
{
    const char *ins[] = {"x"}, *out = "y";
    const dq_attribute kernel = {.size = sizeof(dq_attribute),
                                 .name = "kernel_shape",
                                 .kind = DQ_ATTRIBUTE_INTS,
                                 .ints = (int64_t[]){61, 61},
                                 .count = 2};
    must(add_node(b, "", "LpPool", "y", 1, ins, 1, &out, 1, &kernel, &err));
}

static void elements(void)
{
    char name[16], before[16] = "x";
    for (int i = 0; i < 400; i++) {
        snprintf(name, sizeof name, "t%d", i);
        node(i % 2 ? "Sinh" : "Asinh", before, NULL, name);
        strcpy(before, name);
    }
    node("Identity", before, NULL, "y");
}

static void recurrent(void)
{
    enum { H = 128 };
    static float w[4 * H * H], r[4 * H * H];
    const char *ins[] = {"x", "w", "r"}, *out = "y";
    const dq_attribute hidden = {
        .size = sizeof(dq_attribute), .name = "hidden_size", .kind = DQ_ATTRIBUTE_INT, .i = H};
    constant("w", DQ_FLOAT, 3, (int64_t[]){1, 4 * H, H}, w);
    constant("r", DQ_FLOAT, 3, (int64_t[]){1, 4 * H, H}, r);
    must(add_node(b, "", "LSTM", "y", 3, ins, 1, &out, 1, &hidden, &err));
}

static void ranks(void)
{
    const char *ins[] = {"x", "k"}, *out[] = {"y", "i"};
    static int64_t k[1] = {2};
    constant("k", DQ_INT64, 1, (int64_t[]){1}, k);
    must(add_node(b, "", "TopK", "y", 2, ins, 2, out, 0, NULL, &err));
}

static void determinant(void)
{
    node("EyeLike", "x", NULL, "one"); /* of zeros it ends at once */
    node("Add", "x", "one", "matrix");
    node("Det", "matrix", NULL, "y");
}

static void neighbours(void)
{
    const char *ins[] = {"x"}, *out = "y";
    const dq_attribute size = {
        .size = sizeof(dq_attribute), .name = "size", .kind = DQ_ATTRIBUTE_INT, .i = 20001};
    must(add_node(b, "", "LRN", "y", 1, ins, 1, &out, 1, &size, &err));
}

/* Boxes of one size: none overlaps another by more than everything, so that all are chosen. */
static void boxes(void)
{
    enum { BOXES = 60000 };
    static float corners[BOXES * 4], overlap[1] = {1}, most_of_scores[1] = {-1};
    static int64_t most[1] = {BOXES};
    const char *ins[] = {"boxes", "x", "most", "overlap", "lowest"}, *out = "y";
    for (size_t i = 0; i < BOXES; i++)
        memcpy(&corners[4 * i], (float[]){0, 0, 1, 1}, 4 * sizeof(float));
    constant("boxes", DQ_FLOAT, 3, (int64_t[]){1, BOXES, 4}, corners);
    constant("most", DQ_INT64, 1, (int64_t[]){1}, most);
    constant("overlap", DQ_FLOAT, 1, (int64_t[]){1}, overlap);
    constant("lowest", DQ_FLOAT, 1, (int64_t[]){1}, most_of_scores);
    must(add_node(b, "", "NonMaxSuppression", "y", 5, ins, 1, &out, 0, NULL, &err));
}

static void regions(void)
{
    enum { REGIONS = 2000 };
    static float rois[REGIONS * 5];
    const char *ins[] = {"x", "rois"}, *out = "y";
    const dq_attribute shape = {.size = sizeof(dq_attribute),
                                .name = "pooled_shape",
                                .kind = DQ_ATTRIBUTE_INTS,
                                .ints = (int64_t[]){1, 1},
                                .count = 2};
    for (size_t i = 0; i < REGIONS; i++)
        memcpy(&rois[5 * i], (float[]){0, 0, 0, 1000, 1000}, 5 * sizeof(float));
    constant("rois", DQ_FLOAT, 2, (int64_t[]){REGIONS, 5}, rois);
    must(add_node(b, "", "MaxRoiPool", "y", 2, ins, 1, &out, 1, &shape, &err));
}

static void skips(void)
{
    const char *ins[] = {"t"}, *out = "y";
    int64_t zero = 0, starts[2] = {0, 0}, pool[2] = {1, 2};
    const dq_attribute attributes[] = {
        {.size = sizeof(dq_attribute), .name = "mode", .kind = DQ_ATTRIBUTE_STRING, .s = "TF"},
        {.size = sizeof(dq_attribute), .name = "min_gram_length", .kind = DQ_ATTRIBUTE_INT, .i = 2},
        {.size = sizeof(dq_attribute), .name = "max_gram_length", .kind = DQ_ATTRIBUTE_INT, .i = 2},
        {.size = sizeof(dq_attribute), .name = "max_skip_count", .kind = DQ_ATTRIBUTE_INT, .i = 100000},
        {.size = sizeof(dq_attribute),
         .name = "ngram_counts",
         .kind = DQ_ATTRIBUTE_INTS,
         .ints = starts,
         .count = 2},
        {.size = sizeof(dq_attribute),
         .name = "ngram_indexes",
         .kind = DQ_ATTRIBUTE_INTS,
         .ints = &zero,
         .count = 1},
        {.size = sizeof(dq_attribute),
         .name = "pool_int64s",
         .kind = DQ_ATTRIBUTE_INTS,
         .ints = pool,
         .count = 2},
    };
    const dq_attribute to = {
        .size = sizeof(dq_attribute), .name = "to", .kind = DQ_ATTRIBUTE_INT, .i = DQ_INT64};
    must(add_node(b, "", "Cast", "t", 1, &(const char *){"x"}, 1, &(const char *){"t"}, 1, &to, &err));
    must(add_node(b, "", "TfIdfVectorizer", "y", 1, ins, 1, &out, sizeof attributes / sizeof *attributes,
                  attributes, &err));
}

static void shrunk(void)
{
    static int64_t sizes[4] = {1, 1, 2, 2};
    const char *ins[] = {"x", "", "", "sizes"}, *out = "y";
    const dq_attribute attributes[] = {
        {.size = sizeof(dq_attribute), .name = "mode", .kind = DQ_ATTRIBUTE_STRING, .s = "cubic"},
        {.size = sizeof(dq_attribute), .name = "antialias", .kind = DQ_ATTRIBUTE_INT, .i = 1}};
    constant("sizes", DQ_INT64, 1, (int64_t[]){4}, sizes);
    must(add_node(b, "", "Resize", "y", 4, ins, 1, &out, 2, attributes, &err));
}

static void folded(void)
{
    zeros("z", 2000, 2000);
    node("MatMul", "z", "z", "zz");
    node("MatMul", "zz", "z", "zzz");
    node("ReduceSum", "zzz", NULL, "sum");
    node("Add", "x", "sum", "y");
}

static const work works[] = {
    {"MatMul", product, 2, {4000, 4000}, false, 64000000000},
    {"MatMul of many", products, 4, {32, 32, 128, 128}, false, 2147483648},
    {"Conv", convolution, 4, {4, 64, 300, 300}, false, 35800000000},
    {"ConvInteger", integers, 4, {2, 64, 300, 300}, false, 6000000000},
    {"MatMulInteger", integer_product, 2, {4000, 4000}, false, 64000000000},
    {"Einsum", sums, 3, {100, 800, 800}, false, 51200000000},
    {"LpPool", pool, 4, {4, 16, 300, 300}, false, 13000000000},
    {"elements", elements, 2, {1000, 2000}, false, 400000000},
    {"LSTM", recurrent, 3, {1000, 32, 128}, false, 4000000000},
    {"TopK", ranks, 2, {40, 500000}, false, 20000000},
    {"Det", determinant, 2, {1500, 1500}, false, 1000000000},
    {"LRN", neighbours, 4, {1, 40001, 8, 8}, false, 50000000000},
    {"NonMaxSuppression", boxes, 3, {1, 1, 60000}, false, 3500000000},
    {"MaxRoiPool", regions, 4, {1, 1, 1000, 1000}, false, 2000000000},
    {"TfIdfVectorizer", skips, 1, {100000}, false, 20000000000},
    {"Resize", shrunk, 4, {1, 1, 3000, 3000}, false, 130000000},
    {"constants", folded, 1, {1}, true, 15900000000},
};
enum { WORKS = sizeof works / sizeof *works };

static dq_tensor *open_work(const work *w, unsigned threads)
{
    dq_tensor *x = NULL;
    must(dq_tensor_create(DQ_FLOAT, (size_t)w->rank, w->dims, &x, &err));
    begin();
    input("x", DQ_FLOAT, (size_t)w->rank, w->dims);
    w->build();
    output("y");
    must(dq_builder_finish(b, NULL, &model, &err));
    open_session(threads, false, NULL, NULL);
    must(dq_session_set_input(session, "x", x, &err));
    return keep(x);
}

/* ---- Cancelling -----------------------------------------------------------------------------------------
 */

typedef struct canceller {
    double after; /* seconds */
    double at;    /* when it was done */
} canceller;

static void *cancel_later(void *arg)
{
    canceller *c = arg;
    usleep((useconds_t)(c->after * 1e6));
    c->at = now();
    dq_session_cancel(session);
    return NULL;
}

/* Seconds that a run takes to end after it was cancelled; negative: it had ended before. */
static double latency(double after)
{
    pthread_t thread;
    canceller c = {.after = after};
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_later, &c), 0);
    dq_status status = dq_session_run(session, &err);
    const double end = now();
    pthread_join(thread, NULL);
    if (status == DQ_OK) {
        refused(dq_session_run(session, &err), DQ_CANCELLED, "m: the run was cancelled");
        return -1;
    }
    refused(status, DQ_CANCELLED, "m: the run was cancelled");
    return end - c.at;
}

/* Long single steps end soon. DQRUN_LATENCY prints how soon. */
START_TEST(a_run_ends_soon)
{
    const work *w = &works[_i / 2];
    double longest = 0;
    open_work(w, _i % 2 ? 2 : 1);
    for (int i = 0; i < 3; i++) {
        const double took = latency(0.02 + 0.04 * i);
        longest = took > longest ? took : longest;
    }
    if (getenv("DQRUN_LATENCY"))
        fprintf(stderr, "%-16s %d threads %8.3f ms\n", w->name, 1 + _i % 2, longest * 1e3);
    ck_assert_msg(longest < 10, "%s took %g s", w->name, longest); /* generous: a busy machine, sanitizers */
    tear_down();
}
END_TEST

static void on_alarm(int number)
{
    (void)number;
    dq_session_cancel(session);
}

START_TEST(a_signal_handler_cancels)
{
    const struct sigaction action = {.sa_handler = on_alarm};
    struct sigaction before;
    struct itimerval clock = {
        .it_value = {.tv_usec = 3000}}; /* the fastest of these runs takes 7 ms at least */
    open_work(&works[_i], 2);
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &clock, NULL);
    refused(dq_session_run(session, &err), DQ_CANCELLED, "m: the run was cancelled");
    sigaction(SIGALRM, &before, NULL);
    tear_down();
}
END_TEST

/* After a run that was cancelled anywhere, the session and others of its model give what they would have
 * given. */
START_TEST(results_are_as_ever_after_a_cancelled_run)
{
    enum { ROWS = 200, COLS = 300, TRIES = 60 };
    static float data[ROWS * COLS], w[COLS * COLS], scale[1] = {0.1f};
    static float expected[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++)
        data[i] = (float)(i % 19 - 9);
    for (int i = 0; i < COLS * COLS; i++)
        w[i] = (float)(i % 7 - 3);
    double whole = 0;
    for (int i = -1; i < TRIES; i++) {
        begin();
        input("x", DQ_FLOAT, 2, (int64_t[]){ROWS, COLS});
        constant("w", DQ_FLOAT, 2, (int64_t[]){COLS, COLS}, w);
        constant("s", DQ_FLOAT, 0, NULL, scale);
        node("MatMul", "w", "w", "ww"); /* folded: kept in the model for all sessions */
        node("MatMul", "x", "ww", "m");
        node("QuantizeLinear", "m", "s", "q");
        node("DequantizeLinear", "q", "s", "y");
        output("y");
        must(dq_builder_finish(b, NULL, &model, &err));
        for (int again = 0; again < 2; again++) {
            open_session(2, false, NULL, NULL);
            must(dq_session_set_input(session, "x", over(DQ_FLOAT, 2, (int64_t[]){ROWS, COLS}, data), &err));
            if (i >= 0 && !again)
                (void)latency(whole * 1.2 * i / TRIES);
            const double start = now();
            must(dq_session_run(session, &err));
            whole = i < 0 && !again ? now() - start : whole;
            if (i < 0)
                memcpy(expected, data_of("y"), sizeof expected);
            ck_assert_mem_eq(data_of("y"), expected, sizeof expected);
            dq_session_free(session);
            session = NULL;
        }
        tear_down();
    }
}
END_TEST

START_TEST(a_cancel_lasts_until_a_run_ends_by_it)
{
    float x[2] = {1, 2};
    begin();
    input("x", DQ_FLOAT, 1, (int64_t[]){2});
    node("Neg", "x", NULL, "y");
    output("y");
    finish();
    must(dq_session_set_input(session, "x", row(2, x), &err));
    dq_session_cancel(session);
    dq_session_cancel(session);
    refused(dq_session_run(session, &err), DQ_CANCELLED, "m: the run was cancelled");
    ck_assert_int_eq(dq_session_get_output(session, "y", &(const dq_tensor *){NULL}, &err),
                     DQ_INVALID_ARGUMENT);
    must(dq_session_run(session, &err));
    ck_assert(((const float *)data_of("y"))[1] == -2);
    tear_down();
}
END_TEST

/* ---- The limit of work ----------------------------------------------------------------------------------
 */

/* Session over a model of products, pools and constants, with a limit. */
static void open_limited(uint64_t limit, const char *isa, unsigned threads, float *data)
{
    enum { C = 8 };
    static float w[C * C * 9], s[1] = {0.5f};
    static uint8_t z[1] = {3};
    static int8_t codes[C * C * 9];
    begin();
    input("x", DQ_FLOAT, 4, (int64_t[]){6, C, 20, 20});
    constant("w", DQ_FLOAT, 4, (int64_t[]){C, C, 3, 3}, w);
    constant("s", DQ_FLOAT, 0, NULL, s);
    constant("z", DQ_UINT8, 0, NULL, z);
    constant("codes", DQ_INT8, 4, (int64_t[]){C, C, 3, 3}, codes);
    must(add_node(b, "", "QuantizeLinear", "q", 3, (const char *[]){"x", "s", "z"}, 1, &(const char *){"q"},
                  0, NULL, &err));
    must(add_node(b, "", "DequantizeLinear", "d", 3, (const char *[]){"q", "s", "z"}, 1, &(const char *){"d"},
                  0, NULL, &err));
    node("DequantizeLinear", "codes", "s", "wd");
    node("Conv", "d", "wd", "c");
    must(add_node(b, "", "QuantizeLinear", "cq", 3, (const char *[]){"c", "s", "z"}, 1, &(const char *){"cq"},
                  0, NULL, &err));
    must(add_node(b, "", "DequantizeLinear", "cd", 3, (const char *[]){"cq", "s", "z"}, 1,
                  &(const char *){"cd"}, 0, NULL, &err));
    const char *cd = "cd", *pooled = "pooled";
    const dq_attribute kernel = {.size = sizeof(dq_attribute),
                                 .name = "kernel_shape",
                                 .kind = DQ_ATTRIBUTE_INTS,
                                 .ints = (int64_t[]){3, 3},
                                 .count = 2};
    must(add_node(b, "", "AveragePool", "p", 1, &cd, 1, &pooled, 1, &kernel, &err));
    must(add_node(b, "", "QuantizeLinear", "pq", 3, (const char *[]){"pooled", "s", "z"}, 1,
                  &(const char *){"pq"}, 0, NULL, &err));
    must(add_node(b, "", "DequantizeLinear", "pd", 3, (const char *[]){"pq", "s", "z"}, 1,
                  &(const char *){"pd"}, 0, NULL, &err));
    node("Conv", "pd", "w", "e");
    node("NonZero", "e", NULL, "n"); /* planned in the run */
    node("Mul", "n", "n", "y");
    output("y");
    must(dq_builder_finish(
        b,
        &(dq_load_options){.size = sizeof(dq_load_options),
                           .limits = &(dq_limits){.size = sizeof(dq_limits), .work = limit}},
        &model, &err));
    must(dq_session_create(
        model, &(dq_session_options){.size = sizeof(dq_session_options), .threads = threads, .isa = isa},
        &session, &err));
    must(dq_session_set_input(session, "x", over(DQ_FLOAT, 4, (int64_t[]){6, C, 20, 20}, data), &err));
}

static bool suffices(uint64_t limit, const char *isa, unsigned threads)
{
    static float data[6 * 8 * 20 * 20];
    for (int i = 0; i < 6 * 8 * 20 * 20; i++)
        data[i] = (float)(i % 31 - 15);
    open_limited(limit, isa, threads, data);
    dq_status first = dq_session_run(session, &err);
    ck_assert(first == DQ_OK || first == DQ_OUT_OF_MEMORY);
    for (int i = 0; i < 2; i++) /* a second run, of which all is planned, ends in the same way */
        ck_assert_int_eq(dq_session_run(session, &err), first);
    dq_session_free(session); /* so does another session, for which constants are folded already */
    must(dq_session_create(
        model, &(dq_session_options){.size = sizeof(dq_session_options), .threads = threads, .isa = isa},
        &session, &err));
    must(dq_session_set_input(session, "x", made[made_count - 1], &err));
    ck_assert_int_eq(dq_session_run(session, &err), first);
    tear_down();
    return first == DQ_OK;
}

START_TEST(the_limit_of_work_is_the_same_everywhere)
{
    uint64_t low = 1, high = 100000000; /* the least that suffices lies between */
    const char *isa;
    bool available;
    ck_assert(suffices(0, NULL, 1) && suffices(high, NULL, 1) && !suffices(low, NULL, 1));
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        *(suffices(middle, "c", 1) ? &high : &low) = middle;
    }
    ck_assert_uint_gt(low, 6 * 8 * 18 * 18 * 8 * 9); /* the first Conv's multiply-adds */
    ck_assert_uint_lt(high, 4 * 6 * 8 * 18 * 18 * 8 * 9);
    for (size_t i = 0; (isa = dq_isa_name(i, &available)); i++)
        for (unsigned threads = 1; available && threads <= 3; threads++) {
            ck_assert_msg(suffices(high, isa, threads), "%s, %u threads: %s", isa, threads, err.message);
            ck_assert_msg(!suffices(low, isa, threads), "%s, %u threads", isa, threads);
        }
}
END_TEST

/* Every long step counts as much work as it is, and stops before it begins. */
START_TEST(the_limit_of_work_ends_long_steps)
{
    const work *w = &works[_i];
    dq_tensor *x = NULL;
    must(dq_tensor_create(DQ_FLOAT, (size_t)w->rank, w->dims, &x, &err));
    begin();
    input("x", DQ_FLOAT, (size_t)w->rank, w->dims);
    w->build();
    output("y");
    must(dq_builder_finish(
        b,
        &(dq_load_options){.size = sizeof(dq_load_options),
                           .limits = &(dq_limits){.size = sizeof(dq_limits), .work = w->least}},
        &model, &err));
    open_session(1, false, NULL, NULL);
    must(dq_session_set_input(session, "x", keep(x), &err));
    const double start = now();
    ck_assert_msg(dq_session_run(session, &err) == DQ_OUT_OF_MEMORY, "%s: more than %g", w->name,
                  (double)w->least);
    const double took = now() - start;
    if (getenv("DQRUN_LATENCY"))
        fprintf(stderr, "%-16s %8.3f ms\n", w->name, took * 1e3);
    ck_assert_msg(took < 10, "%s took %g s", w->name, took); /* generous: a busy machine, sanitizers */
    tear_down();
}
END_TEST

/* What single operators count: 1, and what the header says. */
START_TEST(work_is_what_the_header_says)
{
    static float x[6 * 7], w[7 * 5];
    static const struct {
        const char *op;
        bool two;
        uint64_t work;
    } cases[] = {{"Neg", false, 1 + 6 * 7}, {"MatMul", true, 1 + 6 * 5 * 7}, {"ReduceSum", false, 1 + 6 * 7},
                 {"Shape", false, 1 + 2},   {"NonZero", false, 1 + 6 * 7},   {"ArgMax", false, 1 + 6 * 7}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint64_t less = 0; less < 2; less++) {
            begin();
            input("x", DQ_FLOAT, 2, (int64_t[]){6, 7});
            constant("w", DQ_FLOAT, 2, (int64_t[]){7, 5}, w);
            node(cases[i].op, "x", cases[i].two ? "w" : NULL, "y");
            output("y");
            must(dq_builder_finish(b,
                                   &(dq_load_options){.size = sizeof(dq_load_options),
                                                      .limits = &(dq_limits){.size = sizeof(dq_limits),
                                                                             .work = cases[i].work - less}},
                                   &model, &err));
            open_session(1, false, NULL, NULL);
            must(dq_session_set_input(session, "x", over(DQ_FLOAT, 2, (int64_t[]){6, 7}, x), &err));
            dq_status status = dq_session_run(session, &err);
            ck_assert_msg(status == (less ? DQ_OUT_OF_MEMORY : DQ_OK), "%s: %s", cases[i].op, err.message);
            tear_down();
        }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("cancel", NULL, NULL);
    add_loop_test(&tests, a_run_ends_soon, 0, 2 * WORKS);
    add_loop_test(&tests, a_signal_handler_cancels, 0, 3);
    add_test(&tests, results_are_as_ever_after_a_cancelled_run);
    add_test(&tests, a_cancel_lasts_until_a_run_ends_by_it);
    add_test(&tests, the_limit_of_work_is_the_same_everywhere);
    add_test(&tests, work_is_what_the_header_says);
    add_loop_test(&tests, the_limit_of_work_ends_long_steps, 0, WORKS);
    return test_program_run(&tests);
}
