/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench.h"

#include "cli/inputs.h"
#include "cli/interrupt.h"
#include "cli/model.h"
#include "cli/profile.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/trace.h"
#include "io/common.h"
#include "io/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

typedef struct bench {
    dq_model *model;
    dq_session *session;
    cli_inputs inputs;
    double load_ms, first_run_ms;
    double *times; /* Of the measured runs, in ms. */
    size_t count, capacity;
    long peak_kib; /* After the runs. */
    cli_profile profile;
    cli_trace trace;
} bench;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static dq_status load(bench *b, dq_schemas *schemas, const cli_options *o, dq_error *err)
{
    dq_session_options session_options = cli_session_options(o);
    if (o->profile || o->trace) {
        b->profile.trace = o->trace ? &b->trace : NULL;
        session_options.trace = cli_profile_trace;
        session_options.arg = &b->profile;
    }
    double start = now_ms();
    dq_status status = cli_model_load(o, schemas, &b->model, err);
    if (status == DQ_OK)
        status = dq_session_create(b->model, &session_options, &b->session, err);
    b->load_ms = now_ms() - start;
    if (status == DQ_OK)
        status = cli_inputs_gather(b->model, o, o->inputs, o->input_count, &b->inputs, err);
    return status == DQ_OK ? cli_inputs_set(&b->inputs, b->session, err) : status;
}

static dq_status run_once(bench *b, bool counts, double *ms, dq_error *err)
{
    cli_profile_begin(&b->profile, counts);
    double start = now_ms();
    dq_status status = dq_session_run(b->session, err);
    *ms = now_ms() - start;
    if (b->profile.trace && counts)
        cli_trace_end_run(&b->trace, *ms * 1e-3);
    return status;
}

static dq_status keep(bench *b, double ms, dq_error *err)
{
    double *grown = io_room(b->times, b->count, &b->capacity, sizeof *grown);
    if (!grown)
        return io_fail(err, DQ_OUT_OF_MEMORY, "out of memory for the times of %zu runs", b->count + 1);
    b->times = grown;
    b->times[b->count++] = ms;
    return DQ_OK;
}

static dq_status measure(bench *b, const cli_options *o, dq_error *err)
{
    double ms = 0;
    dq_status status = run_once(b, false, &b->first_run_ms, err);
    cli_progress_begin("warmup");
    for (uint64_t i = 0; i < o->warmup && status == DQ_OK; i++) {
        cli_progress((double)i / (double)o->warmup);
        status = run_once(b, false, &ms, err);
    }
    cli_progress_begin("bench");
    double start = now_ms(), end = start + o->seconds * 1e3;
    while (status == DQ_OK && (o->runs ? b->count < o->runs : !b->count || now_ms() < end)) {
        cli_progress(o->runs ? (double)b->count / (double)o->runs : (now_ms() - start) / (end - start));
        status = run_once(b, true, &ms, err);
        if (status == DQ_OK)
            status = keep(b, ms, err);
    }
    cli_progress_end();
    if (status == DQ_OK && b->profile.status != DQ_OK)
        status = io_fail(err, b->profile.status, "out of memory for the times of %zu steps", b->profile.at);
    return status;
}

/* ---- Figures ------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A percentile of the sorted times. */
static double percentile(const bench *b, double percent)
{
    size_t rank = (size_t)ceil(percent / 100 * (double)b->count);
    return b->times[rank ? rank - 1 : 0];
}

/* Reads the peak from the status file: Linux's getrusage includes the peak of the parent process from before
 * exec. */
static long peak_kib(void)
{
    struct rusage usage;
    char line[128];
    long peak = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && peak < 0 && fgets(line, sizeof line, status))
        if (strncmp(line, "VmHWM:", 6) == 0)
            peak = strtol(line + 6, NULL, 10);
    if (status)
        fclose(status);
    getrusage(RUSAGE_SELF, &usage);
    return peak < 0 ? usage.ru_maxrss : peak;
}

typedef struct figure {
    const char *label, *key;
    double ms;
} figure;

enum { FIGURES = 7 };

static void print(bench *b, const cli_options *o, const figure figures[FIGURES])
{
    for (size_t i = 0; i < FIGURES; i++)
        printf("%-12s %12.3f ms\n", figures[i].label, figures[i].ms);
    printf("%-12s %12zu\n%-12s %12ld KiB\n%-12s %12u\n%-12s %12s\n%-12s %12s\n", "runs", b->count,
           "peak memory", b->peak_kib, "threads", dq_session_threads(b->session), "ISA",
           dq_session_isa(b->session), "inputs", cli_inputs_made_up(o) ? "made up" : "given");
}

static void put_json(bench *b, const cli_options *o, const figure figures[FIGURES], cli_json *json)
{
    cli_json_begin_object(json, NULL);
    cli_json_text(json, "model", o->model);
    for (size_t i = 0; i < FIGURES; i++)
        cli_json_decimal(json, figures[i].key, figures[i].ms, 6);
    cli_json_size(json, "runs", b->count);
    cli_json_int(json, "peak_rss_kib", b->peak_kib);
    cli_json_size(json, "threads", dq_session_threads(b->session));
    cli_json_text(json, "isa", dq_session_isa(b->session));
    cli_json_bool(json, "made_up_inputs", cli_inputs_made_up(o));
    if (o->profile)
        cli_profile_print_json(&b->profile, json);
    cli_json_end_object(json);
}

static dq_status print_json(bench *b, const cli_options *o, const figure figures[FIGURES], dq_error *err)
{
    cli_json json;
    dq_status status = cli_json_start(&json, err);
    if (status != DQ_OK)
        return status;
    put_json(b, o, figures, &json);
    return cli_json_finish(&json, DQ_OK, err);
}

static dq_status write_report(bench *b, const cli_options *o, const figure figures[FIGURES], dq_error *err)
{
    const dq_session_options options = cli_session_options(o);
    cli_json json;
    char *text = NULL;
    size_t size = 0;
    dq_status status = cli_json_start(&json, err);
    if (status != DQ_OK)
        return status;
    put_json(b, o, figures, &json);
    status = cli_json_take(&json, &text, &size, err);
    if (status == DQ_OK)
        status = cli_report_write_with_model(o->report, &(insight_report){.bench = text}, b->model, &options,
                                             b->inputs.tensors, err);
    free(text);
    return status;
}

static dq_status report(bench *b, const cli_options *o, dq_error *err)
{
    qsort(b->times, b->count, sizeof *b->times, ascending);
    double sum = 0;
    for (size_t i = 0; i < b->count; i++)
        sum += b->times[i];
    size_t middle = b->count / 2;
    double median = b->count % 2 ? b->times[middle] : (b->times[middle - 1] + b->times[middle]) / 2;
    const figure figures[FIGURES] = {
        {"load", "load_ms", b->load_ms},
        {"first run", "first_run_ms", b->first_run_ms},
        {"min", "min_ms", b->times[0]},
        {"median", "median_ms", median},
        {"mean", "mean_ms", sum / (double)b->count},
        {"p90", "p90_ms", percentile(b, 90)},
        {"p99", "p99_ms", percentile(b, 99)},
    };
    dq_status status = DQ_OK;
    if (o->json)
        status = print_json(b, o, figures, err);
    else
        print(b, o, figures);
    if (!o->json && o->profile)
        status = cli_profile_print(&b->profile, b->times[0], err);
    if (status == DQ_OK && o->report)
        status = write_report(b, o, figures, err);
    if (status == DQ_OK && o->trace)
        status = cli_trace_write(&b->trace, &b->profile, o->model, o->trace, err);
    return status;
}

dq_status cli_bench(dq_schemas *schemas, const cli_options *o, dq_error *err)
{
    bench b = {0};
    dq_status status = load(&b, schemas, o, err);
    if (status == DQ_OK) {
        cli_interrupt_watch(b.session);
        status = cli_interrupt_end(measure(&b, o, err), err);
    }
    b.peak_kib = peak_kib();
    if (status == DQ_OK && (o->profile || o->trace)) {
        const dq_session_options options = cli_session_options(o);
        cli_profile_end(&b.profile, b.session);
        if (o->profile)
            cli_machine_measure(&options, dq_session_threads(b.session), &b.profile.machine);
    }
    if (status == DQ_OK)
        status = report(&b, o, err);
    dq_session_free(b.session);
    cli_inputs_clear(&b.inputs);
    dq_model_free(b.model);
    cli_profile_clear(&b.profile);
    cli_trace_clear(&b.trace);
    free(b.times);
    return status;
}
