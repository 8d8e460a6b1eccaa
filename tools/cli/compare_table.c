/* SPDX-License-Identifier: Apache-2.0 */
/* The text of dqrun compare. */
#include "cli/compare_command.h"
#include "cli/terminal.h"
#include "io/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 512, MOST_ROWS = 12, MOST_VERDICTS = 5, MOST_FLIPS = 12, MOST_NAMES = 8, NAME_COLUMNS = 40 };

static void title(const char *text)
{
    printf("\n%s%s%s\n", cli_style_on(stdout, CLI_STYLE_TITLE), text, cli_style_off(stdout));
}

static const char *name_of(const char *name, char buffer[TEXT])
{
    snprintf(buffer, TEXT, "%s", name ? name : "-");
    return io_printable(buffer);
}

/* A name in a column: its end, where names of layers differ. */
static const char *cell_of(const char *name, char buffer[TEXT])
{
    char whole[TEXT];
    name_of(name, whole);
    const size_t length = strlen(whole);
    if (length <= NAME_COLUMNS)
        snprintf(buffer, TEXT, "%-*s", NAME_COLUMNS, whole);
    else
        snprintf(buffer, TEXT, "…%s", whole + length - (NAME_COLUMNS - 1));
    return buffer;
}

/* "34.2", "∞" or "-". */
static const char *decibels(double x, bool there, char buffer[32])
{
    if (!there || isnan(x))
        snprintf(buffer, 32, "%7s", "-");
    else if (isinf(x))
        snprintf(buffer, 32, "%7s", x > 0 ? "exact" : "-inf");
    else
        snprintf(buffer, 32, "%7.1f", x);
    return buffer;
}

/* ---- Outputs ------------------------------------------------------------------------------------------- */

static void print_output(const insight_comparison *c, const insight_output *o)
{
    char name[TEXT], sqnr[32];
    printf("%s: SQNR %s dB, cosine %.6f, largest error %.4g\n", name_of(o->name, name),
           decibels(insight_sqnr(&o->error), o->error.count, sqnr) + strspn(sqnr, " "),
           insight_cosine(&o->error), o->error.largest);
    if (!o->has_classes)
        return;
    printf("    top-1 differs in %zu of %zu rows", o->flips, o->rows);
    for (size_t i = 0; i < o->flips && i < MOST_FLIPS; i++)
        printf("%s%zu", i ? ", " : ": ", o->flipped[i]);
    printf("%s\n", o->flips > MOST_FLIPS ? " …" : "");
    if (c->has_labels && o->labelled)
        printf("    accuracy %.2f %% (%zu of %zu), float %.2f %%\n",
               100 * (double)o->correct / (double)o->labelled, o->correct, o->labelled,
               100 * (double)o->float_correct / (double)o->labelled);
}

static void print_matches(const insight_comparison *c)
{
    char name[TEXT];
    printf("matched %zu of %zu values, ", c->pair_count, c->float_value_count);
    if (c->folded_count)
        printf("%zu folded into the next, ", c->folded_count);
    printf("%zu weights, over %zu input%s\n", c->weight_count, c->input_count,
           c->input_count == 1 ? "" : "s");
    for (size_t i = 0; i < c->unmatched_count && i < MOST_NAMES; i++)
        printf("%s%s", i ? ", " : "not matched: ", name_of(c->unmatched[i], name));
    if (c->unmatched_count)
        printf("%s\n", c->unmatched_count > MOST_NAMES ? " …" : "");
    if (c->own_missing)
        printf("own errors and floors are not measured: %s\n", name_of(c->own_missing, name));
}

/* ---- Verdicts ------------------------------------------------------------------------------------------ */

static void print_verdict(const insight_comparison *c, size_t i)
{
    const insight_verdict *v = &c->verdicts[i];
    const insight_pair *p = &c->pairs[v->pair];
    char name[TEXT], node[TEXT];
    printf("%2zu  %s%s%s: %s (node %s)\n", i + 1, cli_style_on(stdout, CLI_STYLE_BAD),
           insight_cause_titles[v->cause], cli_style_off(stdout), name_of(p->name, name),
           name_of(p->node ? p->node : p->quantizer, node));
    printf("    shown by  %s\n    cure      %s\n", name_of(v->why, name), v->cure);
    if (v->has_fix)
        printf("    range     {\"%s\": {\"scale\": %.9g, \"zero_point\": %g}}\n", name_of(p->scale, name),
               (double)(float)v->new_scale, v->new_zero_point);
}

static void print_verdicts(const insight_comparison *c)
{
    char name[TEXT];
    bool first = true;
    title("verdict");
    if (!c->verdict_count)
        printf("no value adds noise above 30 dB below its signal\n");
    for (size_t i = 0; i < c->verdict_count && i < MOST_VERDICTS; i++)
        print_verdict(c, i);
    if (c->verdict_count > MOST_VERDICTS)
        printf("    … %zu more\n", c->verdict_count - MOST_VERDICTS);
    for (size_t i = 0; i < c->verdict_count && i < MOST_VERDICTS; i++) {
        if (!c->verdicts[i].exclude)
            continue;
        printf("%s\"%s\"", first ? "nodes_to_exclude=[" : ", ", name_of(c->verdicts[i].exclude, name));
        first = false;
    }
    if (!first)
        printf("]\n");
}

/* ---- Values -------------------------------------------------------------------------------------------- */

static int by_own_noise(const void *a, const void *b)
{
    const insight_pair *x = *(const insight_pair *const *)a, *y = *(const insight_pair *const *)b;
    const double p = x->has_own ? insight_noise_ratio(&x->own) : insight_noise_ratio(&x->so_far);
    const double q = y->has_own ? insight_noise_ratio(&y->own) : insight_noise_ratio(&y->so_far);
    return p != q ? (p < q ? 1 : -1) : (x > y) - (x < y);
}

static void print_pair(const insight_pair *p)
{
    char name[TEXT], own[32], so_far[32], floor[32];
    printf("%s %s %s %s", cell_of(p->name, name), decibels(insight_sqnr(&p->own), p->has_own, own),
           decibels(insight_sqnr(&p->floor), p->has_floor, floor),
           decibels(insight_sqnr(&p->so_far), p->so_far.count, so_far));
    if (p->has_range) {
        const insight_range *r = &p->range;
        const double count = r->count ? (double)r->count : 1;
        printf("  %6.2f %6.2f  %5.1f %5llu  %5.2f", 100 * (double)r->clipped_low / count,
               100 * (double)r->clipped_high / count, 100 * insight_range_used(r),
               (unsigned long long)insight_codes_used(r), insight_entropy(r));
    }
    printf("\n");
}

static void print_pairs(const insight_comparison *c, bool all)
{
    const insight_pair **sorted = malloc((c->pair_count + 1) * sizeof *sorted);
    if (!sorted)
        return;
    for (size_t i = 0; i < c->pair_count; i++)
        sorted[i] = &c->pairs[i];
    if (!all && c->pair_count)
        qsort(sorted, c->pair_count, sizeof *sorted, by_own_noise);
    const size_t rows = all || c->pair_count < MOST_ROWS ? c->pair_count : MOST_ROWS;
    title(all ? "values: SQNR in dB; parts in %; entropy in bits"
              : "values that add most noise: SQNR in dB; parts in %; entropy in bits");
    printf("%-*s %7s %7s %7s  %6s %6s  %5s %5s  %5s\n", NAME_COLUMNS, "value", "own", "floor", "so far",
           "low", "high", "range", "used", "entr.");
    for (size_t i = 0; i < rows; i++)
        print_pair(sorted[i]);
    if (rows < c->pair_count)
        printf("… %zu more with --verbose\n", c->pair_count - rows);
    free(sorted);
}

static int by_weight_noise(const void *a, const void *b)
{
    const insight_weight *x = *(const insight_weight *const *)a, *y = *(const insight_weight *const *)b;
    const double p = insight_noise_ratio(&x->error), q = insight_noise_ratio(&y->error);
    return p != q ? (p < q ? 1 : -1) : (x > y) - (x < y);
}

static void print_weights(const insight_comparison *c, bool all)
{
    char name[TEXT], sqnr[32], worst[32];
    const insight_weight **sorted = malloc((c->weight_count + 1) * sizeof *sorted);
    if (!sorted || !c->weight_count) {
        free(sorted);
        return;
    }
    for (size_t i = 0; i < c->weight_count; i++)
        sorted[i] = &c->weights[i];
    if (!all)
        qsort(sorted, c->weight_count, sizeof *sorted, by_weight_noise);
    const size_t rows = all || c->weight_count < MOST_ROWS ? c->weight_count : MOST_ROWS;
    title("weights: SQNR in dB; error in quanta");
    printf("%-*s %7s %7s  %7s  %8s %5s %9s\n", NAME_COLUMNS, "weight", "SQNR", "worst", "quanta", "ch.ratio",
           "dead", "saturated");
    for (size_t i = 0; i < rows; i++) {
        const insight_weight *w = sorted[i];
        printf("%s %s %s  %7.3f  %8.3g %5zu %9llu\n", cell_of(w->name, name),
               decibels(insight_sqnr(&w->error), w->error.count, sqnr),
               decibels(w->worst_channel_sqnr, true, worst), w->rmse_over_scale, w->channel_ratio,
               w->dead_channels, (unsigned long long)w->saturated);
    }
    if (rows < c->weight_count)
        printf("… %zu more with --verbose\n", c->weight_count - rows);
    free(sorted);
}

/* ---- Leave one out ------------------------------------------------------------------------------------- */

typedef struct gain {
    const char *name;
    double db;
} gain;

static int by_gain(const void *a, const void *b)
{
    const gain *x = a, *y = b;
    return x->db != y->db ? (x->db < y->db ? 1 : -1) : strcmp(x->name, y->name);
}

static void print_gains(const insight_comparison *c, bool all)
{
    char name[TEXT];
    size_t count = 0;
    gain *gains = malloc((c->pair_count + c->weight_count + 1) * sizeof *gains);
    for (size_t i = 0; gains && i < c->pair_count; i++)
        if (c->pairs[i].codes && !isnan(c->pairs[i].gain_db))
            gains[count++] = (gain){c->pairs[i].name, c->pairs[i].gain_db};
    for (size_t i = 0; gains && i < c->weight_count; i++)
        if (!isnan(c->weights[i].gain_db))
            gains[count++] = (gain){c->weights[i].name, c->weights[i].gain_db};
    if (count)
        qsort(gains, count, sizeof *gains, by_gain);
    title("leave one out: what the outputs gain in dB when it stays in float");
    for (size_t i = 0; i < count && (all || i < MOST_ROWS); i++)
        printf("%s %+7.2f\n", cell_of(gains[i].name, name), gains[i].db);
    if (!count)
        printf("no quantizer that can be left out changes the outputs\n");
    printf("%zu runs of all inputs\n", c->runs);
    free(gains);
}

void cli_compare_table(const insight_comparison *c, bool all)
{
    char name[TEXT];
    printf("%s against %s\n", name_of(c->quantized.name, name),
           c->reference.name ? c->reference.name : "reference values");
    print_matches(c);
    title("outputs");
    for (size_t i = 0; i < c->output_count; i++)
        print_output(c, &c->outputs[i]);
    print_verdicts(c);
    print_pairs(c, all);
    print_weights(c, all);
    if (c->leave_one_out_missing)
        printf("\nleave one out is not measured: %s\n", name_of(c->leave_one_out_missing, name));
    else if (c->has_leave_one_out)
        print_gains(c, all);
}
