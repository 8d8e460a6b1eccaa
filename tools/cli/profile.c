/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/profile.h"

#include "cli/terminal.h"
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
    if (profile->count == profile->capacity) {
        size_t capacity = profile->capacity ? 2 * profile->capacity : 64;
        cli_profile_step *grown = realloc(profile->steps, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        profile->steps = grown;
        profile->capacity = capacity;
    }
    cli_profile_step step = {strdup(event->node), strdup(event->op), event->algorithm, (double)INFINITY};
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
    profile->at++;
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
    printf("\n%s%-46s %10s  %7s  %s%s\n", on, "step", "least ms", "share", "node", off);
    for (size_t i = 0; i < profile->count; i++) {
        char node[256];
        snprintf(node, sizeof node, "%s", rows[i].first->node);
        printf("%-46s %10.3f  %5.1f %%  %s\n", rows[i].first->op, rows[i].ms, share(rows[i].ms, run_ms),
               io_printable(node));
    }
    free(operators);
    free(rows);
    return DQ_OK;
}

void cli_profile_print_json(const cli_profile *profile, cli_json *json)
{
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
