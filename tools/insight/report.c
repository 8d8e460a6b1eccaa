/* SPDX-License-Identifier: Apache-2.0 */
#include "insight/report.h"

#include "io/common.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A document, and one that is cut. */
typedef struct document {
    const char *key;
    char *text, *cut_text; /* malloc'ed */
    size_t size, cut_size;
} document;

enum { COMPARISON, MODEL, GRAPH, BENCH, DOCUMENTS };
/* Lists that grow with the model, of each document. */
enum { LISTS_OF_COMPARISON = 3, LISTS_OF_MODEL = 4, LISTS_OF_BENCH = 1, LISTS = 8 };

typedef struct writer {
    insight_pool pool;
    const insight_report *report;
    document documents[DOCUMENTS];
    insight_cut cuts[LISTS];
    bool *values, *weights; /* whose details stay */
    bool has_details_cut, has_graph_cut;
} writer;

/* What is left out over the limit, step by step: layers with details, items of a list. */
typedef struct level {
    size_t details, items;
} level;

static const level levels[] = {{SIZE_MAX, SIZE_MAX}, {200, SIZE_MAX}, {60, SIZE_MAX}, {24, 4000}, {24, 2000},
                               {12, 1000},           {12, 500},       {6, 200},       {6, 50}};
/* Vertices of a drawing that browsers still scroll smoothly. */
enum { GRAPH_ITEMS = 2000 };

/* ---- Documents ----------------------------------------------------------------------------------------- */

static dq_status take_text(cli_json *json, const char *key, document *to, dq_error *err)
{
    to->key = key;
    return cli_json_take(json, &to->text, &to->size, err);
}

static dq_status write_documents(writer *w, dq_error *err)
{
    cli_json json;
    dq_status status = DQ_OK;
    if (w->report->comparison) {
        status = cli_json_start(&json, err);
        if (status == DQ_OK) {
            insight_comparison_json(w->report->comparison, &json);
            status = take_text(&json, "compare", &w->documents[COMPARISON], err);
        }
    }
    if (status == DQ_OK && w->report->model) {
        status = cli_json_start(&json, err);
        if (status == DQ_OK) {
            insight_model_json(w->report->model, &json);
            status = take_text(&json, "inspect", &w->documents[MODEL], err);
        }
    }
    if (status == DQ_OK && w->report->model) {
        status = cli_json_start(&json, err);
        if (status == DQ_OK) {
            status = insight_layout_json(w->report->model, &json, err);
            dq_status taken = take_text(&json, "graph", &w->documents[GRAPH], status == DQ_OK ? err : NULL);
            status = status == DQ_OK ? taken : status;
        }
    }
    if (status == DQ_OK && w->report->bench) {
        document *bench = &w->documents[BENCH];
        bench->key = "bench";
        bench->size = strlen(w->report->bench);
        bench->text = strdup(w->report->bench);
        status = bench->text ? DQ_OK : io_no_memory(err);
    }
    return status;
}

/* ---- What stays ---------------------------------------------------------------------------------------- */

static int descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* The `most` items of the largest noise. */
static dq_status mark_largest(writer *w, const double *noise, size_t count, size_t most, bool *keeps,
                              dq_error *err)
{
    double *sorted = insight_alloc(&w->pool, count, sizeof *sorted);
    if (!sorted)
        return io_no_memory(err);
    memcpy(sorted, noise, count * sizeof *noise);
    qsort(sorted, count, sizeof *sorted, descending);
    for (size_t i = 0, kept = 0; i < count; i++) {
        keeps[i] = most >= count || (noise[i] >= sorted[most] && kept < most);
        kept += keeps[i];
    }
    return DQ_OK;
}

static double finite(double noise)
{
    return isnan(noise) ? -1 : noise;
}

static dq_status mark(writer *w, size_t most, dq_error *err)
{
    const insight_comparison *c = w->report->comparison;
    if (!c)
        return DQ_OK;
    const size_t count = c->pair_count > c->weight_count ? c->pair_count : c->weight_count;
    double *noise = insight_alloc(&w->pool, count, sizeof *noise);
    w->values = insight_alloc(&w->pool, c->pair_count, sizeof *w->values);
    w->weights = insight_alloc(&w->pool, c->weight_count, sizeof *w->weights);
    if (!noise || !w->values || !w->weights)
        return io_no_memory(err);
    for (size_t i = 0; i < c->pair_count; i++) {
        const insight_pair *p = &c->pairs[i];
        noise[i] = p->has_range ? fmax(p->has_own ? finite(insight_noise_ratio(&p->own)) : -1,
                                       p->has_floor ? finite(insight_noise_ratio(&p->floor)) : -1)
                                : -1;
    }
    dq_status status = mark_largest(w, noise, c->pair_count, most, w->values, err);
    for (size_t i = 0; i < c->weight_count; i++)
        noise[i] = finite(insight_noise_ratio(&c->weights[i].error));
    if (status == DQ_OK)
        status = mark_largest(w, noise, c->weight_count, most, w->weights, err);
    w->has_details_cut = most < c->pair_count || most < c->weight_count;
    return status;
}

static dq_status cut_document(document *d, insight_cut *cuts, size_t count, dq_error *err)
{
    free(d->cut_text);
    d->cut_text = NULL;
    d->cut_size = 0;
    if (!d->text)
        return DQ_OK;
    FILE *to = open_memstream(&d->cut_text, &d->cut_size);
    if (!to)
        return io_no_memory(err);
    insight_cut_json(d->text, d->size, cuts, count, to);
    const bool bad = ferror(to) != 0;
    return fclose(to) || bad ? io_no_memory(err) : DQ_OK;
}

/* Cuts all documents to a level; `size` is what they take then. */
static dq_status cut(writer *w, const level *l, size_t *size, dq_error *err)
{
    static const char *const value_details[] = {"counts", "quantized_counts", NULL};
    static const char *const weight_details[] = {"channel_sqnr_db", "channel_range", NULL};
    dq_status status = mark(w, l->details, err);
    const insight_cut cuts[LISTS] = {{"values", l->items, w->values, value_details, 0, 0},
                                     {"weights", l->items, w->weights, weight_details, 0, 0},
                                     {"unmatched", l->items, NULL, NULL, 0, 0},
                                     {"nodes", l->items, NULL, NULL, 0, 0},
                                     {"values", l->items, NULL, NULL, 0, 0},
                                     {"steps", l->items, NULL, NULL, 0, 0},
                                     {"lifetimes", l->items, NULL, NULL, 0, 0},
                                     {"steps", l->items, NULL, NULL, 0, 0}};
    memcpy(w->cuts, cuts, sizeof cuts);
    insight_cut *const of_model = w->cuts + LISTS_OF_COMPARISON, *const of_bench = of_model + LISTS_OF_MODEL;
    if (status == DQ_OK)
        status = cut_document(&w->documents[COMPARISON], w->cuts, LISTS_OF_COMPARISON, err);
    if (status == DQ_OK)
        status = cut_document(&w->documents[MODEL], of_model, LISTS_OF_MODEL, err);
    if (status == DQ_OK)
        status = cut_document(&w->documents[BENCH], of_bench, LISTS_OF_BENCH, err);
    if (status == DQ_OK)
        status = cut_document(&w->documents[GRAPH], NULL, 0, err);
    w->has_graph_cut =
        w->report->model && (w->report->model->node_count > GRAPH_ITEMS || l->items < GRAPH_ITEMS);
    if (w->has_graph_cut)
        w->documents[GRAPH].cut_size = 0;
    *size = 0;
    for (size_t i = 0; i < DOCUMENTS; i++)
        *size += w->documents[i].cut_size;
    return status;
}

/* ---- The page ------------------------------------------------------------------------------------------ */

static void put_cuts(const writer *w, cli_json *json)
{
    static const char *const titles[LISTS] = {"values",
                                              "weights",
                                              "values without a match",
                                              "nodes",
                                              "values of the model",
                                              "steps",
                                              "lifetimes of values",
                                              "timed steps"};
    char text[160];
    cli_json_begin_array(json, "cut");
    if (w->has_details_cut)
        cli_json_text(json, NULL, "histograms and channels, of all but the layers with the largest error");
    if (w->has_graph_cut)
        cli_json_text(json, NULL, "the drawing of the graph");
    for (size_t i = 0; i < LISTS; i++) {
        const insight_cut *c = &w->cuts[i];
        if (c->kept == c->total)
            continue;
        snprintf(text, sizeof text, "%s: %zu of %zu are here", titles[i], c->kept, c->total);
        cli_json_text(json, NULL, text);
    }
    cli_json_end_array(json);
}

static dq_status put_page(const writer *w, FILE *to, dq_error *err)
{
    cli_json json;
    char *about = NULL;
    size_t size = 0;
    dq_status status = cli_json_start(&json, err);
    if (status != DQ_OK)
        return status;
    cli_json_begin_object(&json, NULL);
    cli_json_text(&json, "version", dq_version());
    put_cuts(w, &json);
    cli_json_end_object(&json);
    status = cli_json_take(&json, &about, &size, err);
    if (status == DQ_OK) {
        fwrite(insight_report_head, 1, insight_report_head_size, to);
        fwrite(about, 1, size - 1, to); /* without the brace */
        for (size_t i = 0; i < DOCUMENTS; i++) {
            if (!w->documents[i].cut_size)
                continue;
            fprintf(to, ",\n\"%s\": ", w->documents[i].key);
            fwrite(w->documents[i].cut_text, 1, w->documents[i].cut_size, to);
        }
        fputc('}', to);
        fwrite(insight_report_tail, 1, insight_report_tail_size, to);
        if (ferror(to))
            status = io_fail(err, DQ_IO, "cannot be written: %s", strerror(errno));
    }
    free(about);
    return status;
}

dq_status insight_write_report(const insight_report *report, FILE *to, dq_error *err)
{
    writer w = {.report = report};
    const size_t limit = report->limit ? report->limit : INSIGHT_REPORT_BYTES;
    size_t size = SIZE_MAX;
    dq_status status = write_documents(&w, err);
    for (size_t i = 0; i < sizeof levels / sizeof *levels && size > limit && status == DQ_OK; i++)
        status = cut(&w, &levels[i], &size, err);
    if (status == DQ_OK)
        status = put_page(&w, to, err);
    for (size_t i = 0; i < DOCUMENTS; i++) {
        free(w.documents[i].text);
        free(w.documents[i].cut_text);
    }
    insight_pool_free(&w.pool);
    return status;
}
