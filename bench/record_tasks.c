/* SPDX-License-Identifier: Apache-2.0 */
/* Records the parallel jobs of a run, for bench/scaling.py.
 *
 *     record_tasks MODEL INPUTS.npz THREADS RUNS    JSON: the steps of a run, their jobs, the time of each
 * task record_tasks --lines MODEL INPUTS.npz THREADS JSON: cache lines that tasks of several threads write
 *     record_tasks --pool THREADS                   JSON: times of the thread pool itself
 *
 * The program replaces dq_parallel by a version that runs all tasks on the calling thread and measures each.
 * Operators still see a pool of THREADS threads, and choose the same tasks as with so many. Times are the
 * least of RUNS runs. */
#define dq_parallel dq_parallel_of_pool
#include "base/threads.c" /* Not the library's copy: all symbols of that file are defined here. */
#undef dq_parallel

#include "io/common.h"
#include "io/npz.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_INPUTS = 128,
    MOST_BLOCKS = 4096,
    LINE_BYTES = 64,
    POOL_REPEATS = 2001,
    EXCHANGES = 1000,
    MOST_THREADS = 64
};

typedef struct job {
    size_t items, grain, tasks, first_task;
    double seconds;                     /* Of all tasks, in the current run. */
    size_t written_lines, shared_lines; /* With --lines. */
} job;

typedef struct step {
    char *node, *op;
    const char *algorithm;
    double serial; /* Seconds outside of jobs. */
    size_t first_job, job_count;
    uint64_t macs, bytes;
} step;

/* Memory of the session. Its lines are compared with a copy after each task. */
typedef struct block {
    unsigned char *data, *copy;
    unsigned *owner; /* By line: thread that wrote it in this job + 1; 0: none; SHARED: several. */
    size_t size;
} block;
#define SHARED 0xFFFFFFFFu

static struct {
    bool on, first_run, inside, lines;
    unsigned threads;
    job *jobs;
    double *task_seconds;
    step *steps;
    size_t job_count, task_count, step_count, job_capacity, task_capacity, step_capacity;
    size_t next_job, next_step, step_job; /* Of the current run. */
    double clock_seconds;
    block blocks[MOST_BLOCKS];
    size_t block_count;
    size_t all_written, all_shared;
} rec;

_Noreturn static void fail(const char *what, const dq_error *err)
{
    fprintf(stderr, "record_tasks: %s%s%s\n", what, err ? ": " : "", err ? err->message : "");
    exit(1);
}

static void need(const char *what, dq_status status, const dq_error *err)
{
    if (status != DQ_OK)
        fail(what, err);
}

static void *grow(void *array, size_t *capacity, size_t count, size_t width)
{
    void *grown = io_room(array, count, capacity, width);
    if (!grown)
        fail("out of memory", NULL);
    return grown;
}

static double now(void)
{
    return (double)now_ns() * 1e-9;
}

/* ---- Cache lines that several threads write ----------------------------------------------------------- */

static void *allocate(void *arg, size_t bytes, size_t alignment)
{
    (void)arg;
    const size_t size = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    block b = {aligned_alloc(LINE_BYTES, size), malloc(size), calloc(size / LINE_BYTES, sizeof(unsigned)),
               size};
    (void)alignment; /* At most 64. */
    if (rec.block_count == MOST_BLOCKS || !b.data || !b.copy || !b.owner)
        fail("out of memory", NULL);
    memset(b.data, 0xA5, size);
    rec.blocks[rec.block_count++] = b;
    return b.data;
}

static void release(void *arg, void *memory, size_t bytes)
{
    (void)arg;
    (void)bytes;
    for (size_t i = 0; i < rec.block_count; i++)
        if (rec.blocks[i].data == memory) {
            free(rec.blocks[i].data);
            free(rec.blocks[i].copy);
            free(rec.blocks[i].owner);
            rec.blocks[i] = rec.blocks[--rec.block_count];
            return;
        }
}

static void begin_lines(void)
{
    for (size_t i = 0; i < rec.block_count; i++) {
        const block *b = &rec.blocks[i];
        memcpy(b->copy, b->data, b->size);
        memset(b->owner, 0, b->size / LINE_BYTES * sizeof *b->owner);
    }
}

/* Adds the lines that `thread` has changed since the last call. */
static void note_lines(unsigned thread)
{
    for (size_t i = 0; i < rec.block_count; i++) {
        const block *b = &rec.blocks[i];
        for (size_t at = 0; at < b->size; at += LINE_BYTES) {
            if (memcmp(b->data + at, b->copy + at, LINE_BYTES) == 0)
                continue;
            unsigned *owner = &b->owner[at / LINE_BYTES];
            *owner = *owner == 0 || *owner == thread + 1 ? thread + 1 : SHARED;
            memcpy(b->copy + at, b->data + at, LINE_BYTES);
        }
    }
}

static void end_lines(job *j)
{
    for (size_t i = 0; i < rec.block_count; i++)
        for (size_t line = 0; line < rec.blocks[i].size / LINE_BYTES; line++) {
            j->written_lines += rec.blocks[i].owner[line] != 0;
            j->shared_lines += rec.blocks[i].owner[line] == SHARED;
        }
}

/* The thread whose range has task i, as share_out divides them. */
static unsigned owner_of(size_t i, size_t tasks)
{
    const size_t each = tasks / rec.threads, more = tasks % rec.threads;
    return (unsigned)(i < more * (each + 1) ? i / (each + 1) : more + (i - more * (each + 1)) / each);
}

/* ---- Recording ---------------------------------------------------------------------------------------- */

static job *begin_job(size_t n, size_t grain)
{
    if (rec.first_run) {
        rec.jobs = grow(rec.jobs, &rec.job_capacity, rec.job_count, sizeof *rec.jobs);
        rec.jobs[rec.job_count++] = (job){
            .items = n, .grain = grain, .tasks = n / grain + (n % grain != 0), .first_task = rec.task_count};
    }
    job *j = &rec.jobs[rec.next_job];
    if (rec.next_job++ == rec.job_count || j->items != n || j->grain != grain)
        fail("two runs had different jobs", NULL);
    j->seconds = 0;
    return j;
}

static void add_task(job *j, size_t i, double seconds)
{
    seconds = fmax(seconds - rec.clock_seconds, 0);
    j->seconds += seconds;
    if (rec.first_run) {
        rec.task_seconds =
            grow(rec.task_seconds, &rec.task_capacity, rec.task_count, sizeof *rec.task_seconds);
        rec.task_seconds[rec.task_count++] = seconds;
    } else {
        double *least = &rec.task_seconds[j->first_task + i];
        *least = fmin(*least, seconds);
    }
}

void dq_parallel(dq_threads *threads, size_t n, size_t grain, dq_range_fn fn,
                 void *arg); /* As in threads.h. */
void dq_parallel(dq_threads *threads, size_t n, size_t grain, dq_range_fn fn, void *arg)
{
    grain = grain ? grain : 1;
    const bool is_job = rec.on && !rec.inside && n > grain && threads && threads->pool;
    if (!is_job) {
        work_alone(threads, n, grain, fn, arg);
        return;
    }
    rec.inside = true;
    job *j = begin_job(n, grain);
    if (rec.lines)
        begin_lines();
    double before = now();
    for (size_t i = 0; i < j->tasks; i++) {
        const size_t begin = i * grain, end = n - begin < grain ? n : begin + grain;
        const unsigned thread = rec.lines ? owner_of(i, j->tasks) : 0;
        fn(arg, begin, end, thread);
        const double after = now();
        add_task(j, i, after - before);
        before = after;
        if (rec.lines)
            note_lines(thread);
    }
    if (rec.lines)
        end_lines(j);
    rec.inside = false;
}

static void trace(void *arg, const dq_trace_event *event)
{
    (void)arg;
    if (!rec.on)
        return;
    double serial = event->seconds;
    for (size_t i = rec.step_job; i < rec.next_job; i++)
        serial -= rec.jobs[i].seconds + (double)rec.jobs[i].tasks * rec.clock_seconds;
    serial = fmax(serial, 0);
    if (rec.first_run) {
        rec.steps = grow(rec.steps, &rec.step_capacity, rec.step_count, sizeof *rec.steps);
        rec.steps[rec.step_count++] = (step){.node = strdup(event->node),
                                             .op = strdup(event->op),
                                             .algorithm = event->algorithm,
                                             .serial = serial,
                                             .first_job = rec.step_job,
                                             .job_count = rec.next_job - rec.step_job};
    }
    if (rec.next_step == rec.step_count)
        fail("two runs had different steps", NULL);
    step *s = &rec.steps[rec.next_step++];
    s->serial = fmin(s->serial, serial);
    rec.step_job = rec.next_job;
}

/* The time of one look at the clock: the least mean of many, since other processes may come between. */
static void measure_clock(void)
{
    rec.clock_seconds = 1;
    for (int repeat = 0; repeat < 100; repeat++) {
        const double begin = now();
        for (int i = 0; i < 1000; i++)
            (void)now();
        rec.clock_seconds = fmin(rec.clock_seconds, (now() - begin) / 1001);
    }
}

/* As in the profile of `dqrun bench`: a traced run takes the steps of the plan in their order. */
static void add_counts(dq_session *session)
{
    size_t at = 0;
    for (size_t i = 0; i < dq_session_step_count(session); i++) {
        dq_step_info info = DQ_STEP_INFO_INIT;
        if (dq_session_step(session, i, &info, NULL) != DQ_OK)
            continue;
        size_t next = at;
        while (next < rec.step_count && strcmp(rec.steps[next].op, info.op) != 0)
            next++;
        if (next == rec.step_count)
            continue;
        rec.steps[next].macs = info.macs;
        rec.steps[next].bytes = info.bytes;
        at = next + 1;
    }
}

static void print_text(const char *text)
{
    putchar('"');
    for (; text && *text; text++)
        if (*text == '"' || *text == '\\' || (unsigned char)*text < ' ')
            printf("\\u%04x", (unsigned)(unsigned char)*text);
        else
            putchar(*text);
    putchar('"');
}

static void print_step(const step *s)
{
    printf("  {\"node\": ");
    print_text(s->node);
    printf(", \"op\": ");
    print_text(s->op);
    printf(", \"algorithm\": ");
    print_text(s->algorithm);
    printf(", \"serial_us\": %.3f, \"macs\": %llu, \"bytes\": %llu, \"jobs\": [", s->serial * 1e6,
           (unsigned long long)s->macs, (unsigned long long)s->bytes);
    for (size_t i = 0; i < s->job_count; i++) {
        const job *j = &rec.jobs[s->first_job + i];
        printf("%s{\"items\": %zu, \"grain\": %zu, ", i ? ", " : "", j->items, j->grain);
        if (rec.lines)
            printf("\"tasks\": %zu, \"written_lines\": %zu, \"shared_lines\": %zu}", j->tasks,
                   j->written_lines, j->shared_lines);
        else
            printf("\"task_us\": [");
        for (size_t t = 0; !rec.lines && t < j->tasks; t++)
            printf("%s%.3f", t ? ", " : "", rec.task_seconds[j->first_task + t] * 1e6);
        printf(rec.lines ? "" : "]}");
    }
    printf("]}");
}

static void set_inputs(dq_session *session, const char *path, dq_tensor **tensors)
{
    dq_error err;
    npz *archive = NULL;
    need(path, npz_open(path, &archive, &err), &err);
    for (size_t i = 0; i < npz_count(archive) && i < MOST_INPUTS; i++) {
        need(npz_name(archive, i), npz_read(archive, i, DQ_UNDEFINED, IO_TENSOR_LIMIT, &tensors[i], &err),
             &err);
        need(npz_name(archive, i), dq_session_set_input(session, npz_name(archive, i), tensors[i], &err),
             &err);
    }
    npz_close(archive);
}

static void record(const char *path, const char *inputs, unsigned threads, size_t runs)
{
    dq_error err;
    dq_model *model = NULL;
    dq_session *session = NULL;
    dq_tensor *tensors[MOST_INPUTS] = {0};
    dq_memory_info memory = DQ_MEMORY_INFO_INIT;
    const dq_allocator allocator = {sizeof allocator, allocate, release, NULL};
    const dq_session_options options = {.size = sizeof options,
                                        .threads = threads,
                                        .trace = trace,
                                        .allocator = rec.lines ? &allocator : NULL};
    rec.threads = threads;
    measure_clock();
    need(path, dq_model_load(path, NULL, &model, &err), &err);
    need("session", dq_session_create(model, &options, &session, &err), &err);
    set_inputs(session, inputs, tensors);
    need("run", dq_session_run(session, &err), &err); /* Plans; not recorded. */
    double least = (double)INFINITY;
    rec.on = true;
    for (size_t i = 0; i < runs; i++) {
        rec.first_run = i == 0;
        rec.next_job = rec.next_step = rec.step_job = 0;
        const double begin = now();
        need("run", dq_session_run(session, &err), &err);
        least = fmin(least, now() - begin);
    }
    add_counts(session);
    need("memory", dq_session_memory(session, &memory, &err), &err);
    printf("{\"threads\": %u, \"run_us\": %.3f, \"weight_bytes\": %llu, \"activation_bytes\": %llu, "
           "\"steps\": [\n",
           threads, least * 1e6, (unsigned long long)memory.weight_bytes,
           (unsigned long long)memory.activation_bytes);
    for (size_t i = 0; i < rec.step_count; i++) {
        print_step(&rec.steps[i]);
        printf(i + 1 < rec.step_count ? ",\n" : "]}\n");
    }
    dq_session_free(session);
    dq_model_free(model);
    for (size_t i = 0; i < MOST_INPUTS; i++)
        dq_tensor_free(tensors[i]);
}

/* ---- The pool itself ---------------------------------------------------------------------------------- */

typedef struct beat {
    double length, begin[MOST_THREADS], end[MOST_THREADS]; /* Task by task. */
    unsigned workers[MOST_THREADS];
} beat;

static void spend(void *arg, size_t begin, size_t end, unsigned worker)
{
    beat *b = arg;
    for (size_t i = begin; i < end; i++) {
        b->begin[i] = b->end[i] = now();
        b->workers[i] = worker;
        while (b->end[i] < b->begin[i] + b->length)
            b->end[i] = now();
    }
}

static void nothing(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)arg, (void)begin, (void)end, (void)worker;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
    return count ? values[count / 2] * 1e6 : 0;
}

/* Jobs of one task for each thread, `idle` seconds after each other: when the caller and the worker with the
 * second task begin, and when the call returns. */
static void print_latency(dq_threads *threads, const char *name, double idle, size_t repeats)
{
    static double own[POOL_REPEATS], other[POOL_REPEATS], after[POOL_REPEATS];
    size_t count = 0;
    for (size_t i = 0; i < repeats; i++) {
        beat b = {.length = 100e-6};
        const double from = now() + idle;
        while (now() < from)
            pause_a_little();
        const double called = now();
        dq_parallel_of_pool(threads, dq_threads_count(threads), 1, spend, &b);
        const double returned = now();
        if (b.workers[0] == b.workers[1])
            continue; /* The worker came too late. */
        own[count] = b.begin[0] - called;
        other[count] = b.begin[1] - called;
        double end = 0;
        for (size_t t = 0; t < dq_threads_count(threads); t++)
            end = fmax(end, b.end[t]);
        after[count++] = returned - end;
    }
    printf("\"%s\": {\"caller_us\": %.3f, \"worker_us\": %.3f, \"end_us\": %.3f},\n", name,
           median(own, count), median(other, count), median(after, count));
}

/* Two threads that pass a cache line to each other. */
static void pass_line(void *arg, size_t begin, size_t end, unsigned worker)
{
    atomic_uint *turn = arg;
    (void)worker;
    const double until = now() + 1; /* One thread alone has nobody to wait for. */
    for (size_t i = begin; i < end; i++)
        for (unsigned at = 0; at < EXCHANGES; at++) {
            for (unsigned looks = 1; atomic_load(turn) % 2 != i % 2; looks++)
                if (looks % 65536 == 0 && now() > until)
                    return;
            atomic_fetch_add(turn, 1);
        }
}

/* The median time of a cache line from one thread to the other, in microseconds. */
static double exchange_time(dq_threads *threads)
{
    static _Alignas(128) atomic_uint turn;
    static double times[101];
    for (size_t i = 0; i < 101; i++) {
        const double begin = now();
        atomic_store(&turn, 0);
        dq_parallel_of_pool(threads, 2, 1, pass_line, &turn);
        times[i] = (now() - begin) / (2.0 * EXCHANGES);
    }
    return median(times, 101);
}

typedef struct reading {
    const uint64_t *words;
    _Atomic uint64_t sum; /* So that the loads are not left out. */
} reading;

static void read_words(void *arg, size_t begin, size_t end, unsigned worker)
{
    reading *r = arg;
    uint64_t sums[8] = {0};
    (void)worker;
    for (size_t i = begin; i + 8 <= end; i += 8)
        for (size_t k = 0; k < 8; k++)
            sums[k] += r->words[i + k];
    for (size_t k = 0; k < 8; k++)
        r->sum += sums[k];
}

/* Rate at which all threads together read `bytes` bytes, in GB/s. */
static double read_rate(dq_threads *threads, size_t bytes)
{
    const size_t count = bytes / sizeof(uint64_t);
    uint64_t *words = malloc(bytes);
    if (!words)
        fail("out of memory", NULL);
    for (size_t i = 0; i < count; i++)
        words[i] = i;
    reading r = {.words = words};
    double least = (double)INFINITY;
    for (int i = 0; i < 10; i++) {
        const double begin = now();
        dq_parallel_of_pool(threads, count, 8192, read_words, &r);
        least = fmin(least, now() - begin);
    }
    free(words);
    return (double)bytes * 1e-9 / least;
}

static void measure_pool(unsigned count)
{
    dq_error err;
    dq_thread_pool *pool = NULL;
    dq_threads *threads = NULL;
    if (count < 2 || count > MOST_THREADS)
        fail("expected 2 to 64 threads", NULL);
    const dq_thread_pool_options options = {.size = sizeof options, .threads = count};
    need("pool", dq_pool_create(&options, &pool, &err), &err);
    need("threads", dq_threads_create(pool, &threads, &err), &err);
    dq_parallel_of_pool(threads, count, 1, nothing, NULL); /* Starts the workers. */
    printf("{");
    print_latency(threads, "polling", 0, POOL_REPEATS);
    print_latency(threads, "asleep", 150e-6, 501);
    double begin = now();
    for (int i = 0; i < 100000; i++)
        dq_parallel_of_pool(threads, count, 1, nothing, NULL);
    printf("\"empty_job_us\": %.3f, ", (now() - begin) * 10);
    printf("\"line_us\": %.4f, ", exchange_time(threads));
    printf("\"memory_gb_s\": %.1f, \"cache_gb_s\": %.1f}\n", read_rate(threads, (size_t)256 << 20),
           read_rate(threads, (size_t)8 << 20));
    dq_threads_free(threads);
    dq_thread_pool_free(pool);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--pool") == 0) {
        measure_pool((unsigned)atoi(argv[2]));
    } else if (argc == 5 && strcmp(argv[1], "--lines") == 0) {
        rec.lines = true;
        record(argv[2], argv[3], (unsigned)atoi(argv[4]), 1);
    } else if (argc == 5) {
        record(argv[1], argv[2], (unsigned)atoi(argv[3]), (size_t)atoi(argv[4]));
    } else {
        fail("expected MODEL INPUTS THREADS RUNS, --lines MODEL INPUTS THREADS or --pool THREADS", NULL);
    }
    return 0;
}
