/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/profile.h"

#include "cli/terminal.h"
#include "cli/trace.h"
#include "io/common.h"
#include "io/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cli_profile_begin(cli_profile *profile, bool counts)
{
    profile->at = 0;
    profile->counting = counts;
}

static cli_profile_step *add_step(cli_profile *profile, const dq_trace_event *event)
{
    cli_profile_step *grown = io_room(profile->steps, profile->count, &profile->capacity, sizeof *grown);
    if (!grown)
        return NULL;
    profile->steps = grown;
    cli_profile_step step = {
        strdup(event->node), strdup(event->op), event->algorithm, (double)INFINITY, 0, 0};
    if (!step.node || !step.op) {
        free(step.node);
        free(step.op);
        return NULL;
    }
    profile->steps[profile->count] = step;
    return &profile->steps[profile->count++];
}

void cli_profile_trace(void *arg, const dq_trace_event *event)
{
    cli_profile *profile = arg;
    cli_profile_step *step =
        profile->at < profile->count ? &profile->steps[profile->at] : add_step(profile, event);
    if (!step)
        profile->status = DQ_OUT_OF_MEMORY;
    else if (profile->counting)
        step->ms = fmin(step->ms, event->seconds * 1e3);
    if (profile->trace && profile->counting)
        cli_trace_add(profile->trace, profile->at, event->seconds);
    profile->at++;
}

/* A traced run takes the steps of the plan in their order; bodies of loops come in between. */
void cli_profile_end(cli_profile *profile, dq_session *session)
{
    size_t at = 0;
    for (size_t i = 0; i < dq_session_step_count(session); i++) {
        dq_step_info step = DQ_STEP_INFO_INIT;
        if (dq_session_step(session, i, &step, NULL) != DQ_OK)
            continue;
        size_t next = at;
        while (next < profile->count && strcmp(profile->steps[next].op, step.op) != 0)
            next++;
        if (next == profile->count)
            continue;
        profile->steps[next].macs = step.macs;
        profile->steps[next].bytes = step.bytes;
        at = next + 1;
    }
}

/* ---- Tables -------------------------------------------------------------------------------------------- */

typedef struct row {
    const cli_profile_step *first; /* Its position in the run breaks ties. */
    size_t steps;
    double ms;
} row;

static int slowest_first(const void *a, const void *b)
{
    const row *x = a, *y = b;
    if (x->ms != y->ms)
        return x->ms < y->ms ? 1 : -1;
    return (x->first > y->first) - (x->first < y->first);
}

static const char *algorithm_of(const row *r)
{
    return r->first->algorithm ? r->first->algorithm : "";
}

static int compare_operators(const row *x, const row *y)
{
    const int order = strcmp(x->first->op, y->first->op);
    return order ? order : strcmp(algorithm_of(x), algorithm_of(y));
}

static int by_operator(const void *a, const void *b)
{
    const row *x = a, *y = b;
    const int order = compare_operators(x, y);
    return order ? order : (x->first > y->first) - (x->first < y->first);
}

/* Merges rows of equal operator and algorithm; the rows are sorted by both. */
static size_t join(row *rows, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept && compare_operators(&rows[kept - 1], &rows[i]) == 0) {
            rows[kept - 1].steps += rows[i].steps;
            rows[kept - 1].ms += rows[i].ms;
        } else {
            rows[kept++] = rows[i];
        }
    }
    return kept;
}

/* The step's work a second in units of 10^9; blank where it has none. */
static const char *rate(uint64_t work, double ms, char text[16])
{
    text[0] = '\0';
    if (work && ms > 0)
        snprintf(text, 16, "%.1f", (double)work / ms * 1e-6);
    return text;
}

static double share(double ms, double run_ms)
{
    return run_ms > 0 ? 100 * ms / run_ms : 0;
}

dq_status cli_profile_print(const cli_profile *profile, double run_ms, dq_error *err)
{
    row *rows = malloc((profile->count + 1) * sizeof *rows);
    row *operators = malloc((profile->count + 1) * sizeof *operators);
    if (!rows || !operators) {
        free(rows);
        free(operators);
        return io_fail(err, DQ_OUT_OF_MEMORY, "out of memory for the times of %zu steps", profile->count);
    }
    double rest = run_ms;
    for (size_t i = 0; i < profile->count; i++) {
        rows[i] = (row){&profile->steps[i], 1, profile->steps[i].ms};
        rest -= rows[i].ms;
    }
    qsort(rows, profile->count, sizeof *rows, slowest_first);
    memcpy(operators, rows, profile->count * sizeof *rows);
    qsort(operators, profile->count, sizeof *operators, by_operator);
    size_t kinds = join(operators, profile->count);
    qsort(operators, kinds, sizeof *operators, slowest_first);
    const char *on = cli_style_on(stdout, CLI_STYLE_TITLE), *off = cli_style_off(stdout);
    printf("\n%s%-40s %5s %10s  %7s  %s%s\n", on, "operator", "steps", "least ms", "share", "algorithm", off);
    for (size_t i = 0; i < kinds; i++)
        printf("%-40s %5zu %10.3f  %5.1f %%%s%s\n", operators[i].first->op, operators[i].steps,
               operators[i].ms, share(operators[i].ms, run_ms), *algorithm_of(&operators[i]) ? "  " : "",
               algorithm_of(&operators[i]));
    printf("%-40s %5s %10.3f  %5.1f %%\n", "outside of steps", "", rest, share(rest, run_ms));
    const cli_machine *m = &profile->machine;
    printf("\n%s%-46s %10s  %7s  %7s  %7s  %s%s\n", on, "step", "least ms", "share", "GMAC/s", "GB/s", "node",
           off);
    for (size_t i = 0; i < profile->count; i++) {
        char node[256], macs[16], bytes[16];
        const cli_profile_step *step = rows[i].first;
        snprintf(node, sizeof node, "%s", step->node);
        printf("%-46s %10.3f  %5.1f %%  %7s  %7s  %s\n", step->op, rows[i].ms, share(rows[i].ms, run_ms),
               rate(step->macs, step->ms, macs), rate(step->bytes, step->ms, bytes), io_printable(node));
    }
    if (m->integer_macs > 0 && m->float_macs > 0 && m->bytes > 0)
        printf("\nthis machine, measured: %.1f GMAC/s on int8, %.1f GMAC/s on float, memory %.1f GB/s\n",
               m->integer_macs * 1e-9, m->float_macs * 1e-9, m->bytes * 1e-9);
    free(operators);
    free(rows);
    return DQ_OK;
}

void cli_profile_print_json(const cli_profile *profile, cli_json *json)
{
    const cli_machine *m = &profile->machine;
    cli_json_begin_object(json, "machine");
    cli_json_decimal(json, "integer_macs_per_s", m->integer_macs, 0);
    cli_json_decimal(json, "float_macs_per_s", m->float_macs, 0);
    cli_json_decimal(json, "bytes_per_s", m->bytes, 0);
    cli_json_end_object(json);
    cli_json_begin_array(json, "steps");
    for (size_t i = 0; i < profile->count; i++) {
        const cli_profile_step *step = &profile->steps[i];
        cli_json_begin_object(json, NULL);
        cli_json_text(json, "node", step->node);
        cli_json_text(json, "op", step->op);
        if (step->algorithm)
            cli_json_text(json, "algorithm", step->algorithm);
        else
            cli_json_null(json, "algorithm");
        cli_json_decimal(json, "ms", step->ms, 6);
        cli_json_size(json, "macs", step->macs);
        cli_json_size(json, "bytes", step->bytes);
        cli_json_end_object(json);
    }
    cli_json_end_array(json);
}

void cli_profile_clear(cli_profile *profile)
{
    for (size_t i = 0; i < profile->count; i++) {
        free(profile->steps[i].node);
        free(profile->steps[i].op);
    }
    free(profile->steps);
    *profile = (cli_profile){0};
}
