/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/trace.h"

#include "io/common.h"
#include "io/out_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Viewers open files of that many events quickly: about 40 MB. */
enum { MOST_EVENTS = 200000 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool keep(cli_trace_event **list, size_t *count, size_t *capacity, cli_trace_event event)
{
    cli_trace_event *grown = io_room(*list, *count, capacity, sizeof *grown);
    if (!grown)
        return false;
    *list = grown;
    (*list)[(*count)++] = event;
    return true;
}

/* What ended now and took so long. */
static cli_trace_event ended(cli_trace *trace, size_t step, double seconds)
{
    const double start = now() - seconds;
    if (trace->origin == 0)
        trace->origin = start;
    return (cli_trace_event){step, (start - trace->origin) * 1e6, seconds * 1e6};
}

void cli_trace_add(cli_trace *trace, size_t step, double seconds)
{
    trace->full = trace->full || trace->count >= MOST_EVENTS;
    if (!trace->full && !keep(&trace->events, &trace->count, &trace->capacity, ended(trace, step, seconds)))
        trace->status = DQ_OUT_OF_MEMORY;
}

void cli_trace_end_run(cli_trace *trace, double seconds)
{
    if (!trace->full &&
        !keep(&trace->runs, &trace->run_count, &trace->run_capacity, ended(trace, trace->run_count, seconds)))
        trace->status = DQ_OUT_OF_MEMORY;
}

/* A complete event ("X"): name, category and times; its arguments follow. */
static void begin_event(cli_json *json, const char *name, const char *category, const cli_trace_event *e,
                        double origin)
{
    cli_json_begin_object(json, NULL);
    cli_json_text(json, "ph", "X");
    cli_json_text(json, "name", name);
    cli_json_text(json, "cat", category);
    cli_json_int(json, "pid", 1);
    cli_json_int(json, "tid", 1);
    cli_json_decimal(json, "ts", e->start - origin, 3);
    cli_json_decimal(json, "dur", e->length, 3);
}

static void put_step(cli_json *json, const cli_profile_step *step, const cli_trace_event *e, double origin)
{
    begin_event(json, step->node, step->op, e, origin);
    cli_json_begin_object(json, "args");
    cli_json_text(json, "op", step->op);
    if (step->algorithm)
        cli_json_text(json, "algorithm", step->algorithm);
    if (step->macs) {
        cli_json_size(json, "macs", step->macs);
        cli_json_decimal(json, "GMAC/s", e->length > 0 ? (double)step->macs / e->length * 1e-3 : 0, 3);
    }
    if (step->bytes)
        cli_json_size(json, "bytes", step->bytes);
    cli_json_end_object(json);
    cli_json_end_object(json);
}

static void put_name(cli_json *json, const char *what, const char *name)
{
    cli_json_begin_object(json, NULL);
    cli_json_text(json, "ph", "M");
    cli_json_text(json, "name", what);
    cli_json_int(json, "pid", 1);
    cli_json_int(json, "tid", 1);
    cli_json_begin_object(json, "args");
    cli_json_text(json, "name", name);
    cli_json_end_object(json);
    cli_json_end_object(json);
}

static void put_trace(const cli_trace *trace, const cli_profile *profile, const char *model, cli_json *json)
{
    /* A run begins before its first step. */
    const double origin = trace->run_count ? trace->runs[0].start : 0;
    char name[40];
    cli_json_begin_object(json, NULL);
    cli_json_text(json, "displayTimeUnit", "ms");
    cli_json_begin_array(json, "traceEvents");
    put_name(json, "process_name", model);
    put_name(json, "thread_name", "steps");
    for (size_t i = 0, run = 0; i < trace->count; i++) {
        const cli_trace_event *e = &trace->events[i];
        for (; run < trace->run_count && trace->runs[run].start <= e->start; run++) {
            snprintf(name, sizeof name, "run %zu", run);
            begin_event(json, name, "run", &trace->runs[run], origin);
            cli_json_end_object(json);
        }
        if (run)
            put_step(json, &profile->steps[e->step], e, origin);
    }
    cli_json_end_array(json);
    cli_json_end_object(json);
}

dq_status cli_trace_write(const cli_trace *trace, const cli_profile *profile, const char *model,
                          const char *path, dq_error *err)
{
    cli_json json;
    char *text = NULL;
    size_t size = 0;
    out_file out;
    dq_status status =
        trace->status == DQ_OK
            ? cli_json_start(&json, err)
            : io_fail(err, DQ_OUT_OF_MEMORY, "out of memory for the trace of %zu steps", trace->count);
    if (status != DQ_OK)
        return status;
    put_trace(trace, profile, model, &json);
    status = cli_json_take(&json, &text, &size, err);
    if (status == DQ_OK)
        status = out_open(path, &out, err);
    if (status == DQ_OK) {
        const bool written = fwrite(text, 1, size, out.file) == size;
        status = out_close(
            &out, written ? DQ_OK : io_fail(err, DQ_IO, "cannot be written: %s", strerror(errno)), err);
    }
    free(text);
    return status == DQ_OK ? DQ_OK : io_prefix(err, status, path);
}

void cli_trace_clear(cli_trace *trace)
{
    free(trace->events);
    free(trace->runs);
    *trace = (cli_trace){0};
}
