/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the passes of passes.def on a graph. */
#include "rewrite/rewriter.h"

#include "rewrite/match.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct row {
    dq_pass pass;
    dq_node_pass_fn *on_node;
    dq_graph_pass_fn *on_graph;
} row;

#define FUNCTIONS_MODEL(name) NULL, NULL
#define FUNCTIONS_PRECISION(name) NULL, dq_##name
#define FUNCTIONS_GRAPH(name) NULL, dq_##name
#define FUNCTIONS_NODE(name) dq_##name, NULL
#define DQ_PASS(kind, name, matches, replacement, exactness, tests)                                          \
    {{#name, DQ_PASS_##kind, matches, replacement, exactness, tests}, FUNCTIONS_##kind(name)},
static const row rows[] = {
#include "rewrite/passes.def"
};
#undef DQ_PASS
enum { ROWS = sizeof rows / sizeof rows[0] };
_Static_assert(ROWS <= 64, "a dq_pass_set has a bit for each pass");

const dq_pass *dq_pass_get(size_t index)
{
    return index < ROWS ? &rows[index].pass : NULL;
}

dq_status dq_pass_set_read(const char *names, dq_pass_set *out, dq_error *err)
{
    *out = 0;
    while (names && *names) {
        const size_t length = strcspn(names, ",");
        size_t i = 0;
        while (i < ROWS &&
               (strlen(rows[i].pass.name) != length || memcmp(rows[i].pass.name, names, length) != 0))
            i++;
        if (i == ROWS)
            return dq_fail(err, DQ_INVALID_ARGUMENT, "there is no pass '%.*s'; 'dqrun passes' lists them",
                           (int)length, names);
        if (rows[i].pass.kind == DQ_PASS_MODEL)
            return dq_fail(err, DQ_INVALID_ARGUMENT,
                           "pass '%s' runs when the model is loaded and cannot be disabled",
                           rows[i].pass.name);
        *out |= (dq_pass_set)1 << i;
        names += length + (names[length] == ',');
    }
    return DQ_OK;
}

/* ---- The list before the first pass ------------------------------------------------------------------- */

static bool is_quantization(const dq_node *node, const char *op)
{
    return strcmp(node->op_type, op) == 0 && (!*node->domain || strcmp(node->domain, "com.microsoft") == 0);
}

/* Derives result types that schemas do not determine: from opset 23 on that of DequantizeLinear, and those of
 * all values that depend on it. */
static dq_status refine_types(dq_rewriter *f, dq_dtype *dtypes, dq_error *err)
{
    bool open = false;
    for (uint32_t i = 0; i < f->graph->value_count; i++)
        dtypes[i] = f->request->dtypes[f->graph->all[i]->id];
    f->dtypes = dtypes;
    for (uint32_t n = 0; n < f->graph->node_count; n++) {
        const dq_node *node = f->graph->nodes[n];
        const dq_value *out = node->out_count > 0 ? node->out[0] : NULL;
        const bool dequantizes = is_quantization(node, "DequantizeLinear");
        dq_error unfit;
        if (!out || dtypes[out->index] || !node->schema ||
            (*node->domain && strcmp(node->domain, "com.microsoft") != 0))
            continue;
        if (dequantizes || is_quantization(node, "QuantizeLinear")) {
            const dq_dtype given = (dq_dtype)dq_node_int(node, "output_dtype", 0);
            const dq_value *zero = dq_node_input(node, 2);
            dtypes[out->index] = given         ? given
                                 : dequantizes ? dq_match_dtype(f, node->in[1])
                                 : zero        ? dq_match_dtype(f, zero)
                                               : DQ_UINT8;
            open = true;
        } else if (open && dq_rewriter_bind_types(f, node, dtypes, &unfit) == DQ_OUT_OF_MEMORY) {
            return dq_no_memory(err, 64, "a node's types");
        }
    }
    return DQ_OK;
}

static dq_status begin(dq_rewriter *f, dq_error *err)
{
    const dq_graph *g = f->graph;
    f->written_count = g->value_count + g->capture_count + 1;
    f->count = g->node_count;
    f->nodes = DQ_NEW_ARRAY(f->arena, f->count, dq_node *);
    dq_dtype *dtypes = DQ_NEW_ARRAY(f->scratch, g->value_count, dq_dtype);
    if (!f->nodes || !dtypes)
        return dq_no_memory(err, f->count * sizeof *f->nodes, "rewritten nodes");
    if (f->count)
        memcpy(f->nodes, g->nodes, f->count * sizeof *g->nodes);
    return refine_types(f, dtypes, err);
}

/* ---- Passes ------------------------------------------------------------------------------------------- */

static dq_status go_on(const dq_rewriter *f, dq_error *err)
{
    const dq_rewrite_request *r = f->request;
    if (f->failed)
        return DQ_OUT_OF_MEMORY;
    return r->cancelled && r->cancelled(r->arg) ? dq_fail(err, DQ_CANCELLED, "the run was cancelled") : DQ_OK;
}

static dq_status try_at_each_node(dq_rewriter *f, dq_node_pass_fn *pass, dq_error *err)
{
    for (f->at = 0; f->at < f->count; f->at++) {
        DQ_TRY(go_on(f, err));
        if (!f->nodes[f->at]->made && dq_rewriter_is_read(f, f->nodes[f->at]))
            (void)pass(f);
    }
    return go_on(f, err);
}

/* Makes the data structures that the first pass of a kind needs. */
static dq_status make_ready(dq_rewriter *f, dq_pass_kind kind, bool *checked, dq_error *err)
{
    bool good = true;
    if (kind != DQ_PASS_PRECISION && !f->records)
        good = dq_rewriter_make_records(f);
    if (good && kind == DQ_PASS_NODE && !*checked) {
        *checked = true;
        good = dq_rewriter_check_scales(f);
    }
    if (good && kind == DQ_PASS_GRAPH)
        good = dq_rewriter_apply_insertions(f);
    return good ? go_on(f, err) : DQ_OUT_OF_MEMORY;
}

static dq_status run_pass(dq_rewriter *f, const row *r, dq_error *err)
{
    f->pass = r->pass.name;
    if (r->on_node)
        DQ_TRY(try_at_each_node(f, r->on_node, err));
    else
        r->on_graph(f);
#ifndef NDEBUG
    if (!f->failed)
        DQ_TRY(dq_rewriter_verify(f, r->pass.name, err));
#endif
    return go_on(f, err);
}

static dq_status run_passes(dq_rewriter *f, dq_error *err)
{
    bool checked = false;
    DQ_TRY(begin(f, err));
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].pass.kind == DQ_PASS_MODEL)
            continue;
        DQ_TRY(make_ready(f, rows[i].pass.kind, &checked, err));
        if (!(f->request->disabled >> i & 1))
            DQ_TRY(run_pass(f, &rows[i], err));
    }
    return dq_rewriter_apply_insertions(f) ? DQ_OK : DQ_OUT_OF_MEMORY;
}

dq_status dq_rewrite(const dq_rewrite_request *request, dq_rewritten *out, dq_error *err)
{
    dq_arena scratch = {0};
    dq_rewriter f = {.request = request,
                     .graph = request->graph,
                     .requested = request->requested,
                     .requested_count = request->requested_count,
                     .arena = request->arena,
                     .scratch = &scratch,
                     .err = err};
    const dq_status status = run_passes(&f, err);
    dq_arena_free(&scratch);
    *out = (dq_rewritten){
        .nodes = f.nodes, .node_count = f.count, .values = f.values, .value_count = f.value_count};
    return status;
}

void dq_rewriter_explain(const dq_rewriter *f, const dq_node *node, const char *format, ...)
{
    char text[DQ_NODE_TEXT], decision[384], all[DQ_NODE_TEXT + 448];
    if (!f->request->explain || f->quiet)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(decision, sizeof decision, format, args);
    va_end(args);
    snprintf(all, sizeof all, "%s: %s%s%s", dq_node_text(node, text), f->pass ? f->pass : "",
             f->pass ? ": " : "", decision);
    f->request->explain(f->request->arg, all);
}
