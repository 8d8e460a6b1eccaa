/* SPDX-License-Identifier: Apache-2.0 */
/* Drawings of a graph: dot for Graphviz, and an SVG laid out here.
 *
 * The layout is Sugiyama's: each node has the layer of its longest path from an input; an edge over several
 * layers gets a dummy node in each of them; barycenters of the neighbours order a layer; then each node moves
 * toward the mean of its neighbours as far as its row allows. Nodes that planning computes and initializers
 * are left out. */
#include "insight/json.h"

#include "io/common.h"
#include "io/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct style {
    const char *fill, *stroke;
} style;

static const style styles[INSIGHT_COMPUTES] = {
    [INSIGHT_UNUSED] = {"#f2f2f2", "#999999"},  [INSIGHT_PLANNING] = {"#f2f2f2", "#999999"},
    [INSIGHT_CONVERT] = {"#fff3c4", "#a07c00"}, [INSIGHT_INTEGER] = {"#cfe8d5", "#1f7a3d"},
    [INSIGHT_TILED] = {"#dff0c8", "#6b8e23"},   [INSIGHT_WEIGHT_ONLY] = {"#d6e4f7", "#2f5f9e"},
    [INSIGHT_FLOAT] = {"#f9d5cf", "#b03a2e"},   [INSIGHT_OTHER] = {"#e8e8ee", "#666677"},
};

static bool is_drawn(const insight_node *n)
{
    return !n->is_constant && n->compute != INSIGHT_PLANNING && n->compute != INSIGHT_UNUSED;
}

/* Text for XML; of a longer one the last `most` characters: names of layers differ at their ends. */
static void put_escaped(FILE *to, const char *text, size_t most)
{
    size_t length = 0;
    for (const char *c = text; *c; c++)
        length += ((unsigned char)*c & 0xC0) != 0x80;
    if (length > most)
        fputs("…", to);
    for (; length > most; text++)
        length -= ((unsigned char)text[1] & 0xC0) != 0x80;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '&')
            fputs("&amp;", to);
        else if (*c == '<')
            fputs("&lt;", to);
        else if (*c == '>')
            fputs("&gt;", to);
        else if (*c == '"')
            fputs("&quot;", to);
        else
            fputc(*c < 0x20 || *c == 0x7f ? '?' : *c, to);
    }
}

/* ---- dot ----------------------------------------------------------------------------------------------- */

static void put_dot_text(FILE *to, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fputc('\\', to);
        fputc(*c < 0x20 || *c == 0x7f ? '?' : *c, to);
    }
}

void insight_write_dot(const insight_model *m, FILE *to)
{
    char shape[400];
    fputs("digraph model {\n  node [shape=box, style=filled, fontname=\"sans-serif\", fontsize=10];\n"
          "  edge [fontname=\"sans-serif\", fontsize=8];\n",
          to);
    for (size_t i = 0; i < m->value_count; i++) {
        const insight_value *v = &m->values[i];
        if (!v->is_input && !v->is_output)
            continue;
        fprintf(to, "  v%zu [shape=ellipse, fillcolor=white, label=\"", i);
        put_dot_text(to, v->name);
        fprintf(to, "\\n%s%s\"];\n", v->type, insight_shape_text(v, shape, sizeof shape));
    }
    for (size_t i = 0; i < m->node_count; i++) {
        const insight_node *n = &m->nodes[i];
        if (!is_drawn(n))
            continue;
        fprintf(to, "  n%zu [fillcolor=\"%s\", color=\"%s\", label=\"", i, styles[n->compute].fill,
                styles[n->compute].stroke);
        put_dot_text(to, n->op_type);
        fputs("\\n", to);
        put_dot_text(to, n->name);
        fputs("\"];\n", to);
        for (size_t k = 0; k < n->input_count; k++) {
            const insight_value *v = n->inputs[k] == INSIGHT_NONE ? NULL : &m->values[n->inputs[k]];
            if (!v || v->is_constant)
                continue;
            if (v->producer == INSIGHT_NONE)
                fprintf(to, "  v%zu -> n%zu", n->inputs[k], i);
            else
                fprintf(to, "  n%zu -> n%zu", v->producer, i);
            fprintf(to, " [label=\"%s%s\"];\n", v->type, insight_shape_text(v, shape, sizeof shape));
        }
        for (size_t k = 0; k < n->output_count; k++)
            if (n->outputs[k] != INSIGHT_NONE && m->values[n->outputs[k]].is_output)
                fprintf(to, "  n%zu -> v%zu;\n", i, n->outputs[k]);
    }
    fputs("}\n", to);
}

/* ---- Layers -------------------------------------------------------------------------------------------- */

/* Sizes in pixels. */
enum { BOX_WIDTH = 168, BOX_HEIGHT = 36, GAP_X = 16, GAP_Y = 30, DUMMY_WIDTH = 8, MARGIN = 24, LEGEND = 40 };
enum { ORDER_SWEEPS = 8, PLACE_SWEEPS = 12, NAME_CHARACTERS = 25 };

typedef struct vertex {
    size_t node, value; /* one of them; both INSIGHT_NONE: a dummy */
    size_t layer, order;
    double x, key;
    size_t first_up, up_count, first_down, down_count; /* edges */
} vertex;

typedef struct edge {
    size_t from, to; /* vertices of layers that follow each other */
} edge;

typedef struct layout {
    insight_pool pool;
    size_t vertex_count, edge_count, layer_count, vertex_limit, edge_limit;
    vertex *vertices;
    edge *edges;         /* by `from` */
    size_t *ups, *downs; /* neighbours, by vertex */
    size_t **layers;     /* vertices from left to right */
    size_t *layer_sizes;
    size_t *node_vertex, *value_vertex;
    double width;
} layout;

/* Calls visit for each edge of the drawing, by vertex. */
static void each_link(const insight_model *m, const layout *l,
                      void (*visit)(void *arg, size_t from, size_t to), void *arg)
{
    for (size_t i = 0; i < m->node_count; i++) {
        const insight_node *n = &m->nodes[i];
        if (l->node_vertex[i] == INSIGHT_NONE)
            continue;
        for (size_t k = 0; k < n->input_count; k++) {
            const insight_value *v = n->inputs[k] == INSIGHT_NONE ? NULL : &m->values[n->inputs[k]];
            if (!v || v->is_constant)
                continue;
            const size_t from =
                v->producer == INSIGHT_NONE ? l->value_vertex[n->inputs[k]] : l->node_vertex[v->producer];
            if (from != INSIGHT_NONE)
                visit(arg, from, l->node_vertex[i]);
        }
        for (size_t k = 0; k < n->output_count; k++)
            if (n->outputs[k] != INSIGHT_NONE && m->values[n->outputs[k]].is_output)
                visit(arg, l->node_vertex[i], l->value_vertex[n->outputs[k]]);
    }
}

static void lower(void *arg, size_t from, size_t to)
{
    layout *l = arg;
    if (l->vertices[to].layer <= l->vertices[from].layer)
        l->vertices[to].layer = l->vertices[from].layer + 1;
}

/* Counts the vertices and edges that a link takes with its dummies. */
static void count_link(void *arg, size_t from, size_t to)
{
    layout *l = arg;
    const size_t span = l->vertices[to].layer - l->vertices[from].layer;
    l->edge_limit += span;
    l->vertex_limit += span - 1;
}

static void add_link(void *arg, size_t from, size_t to)
{
    layout *l = arg;
    for (size_t at = from; at != to;) {
        size_t next = to;
        if (l->vertices[at].layer + 1 < l->vertices[to].layer) {
            next = l->vertex_count++;
            l->vertices[next] =
                (vertex){.node = INSIGHT_NONE, .value = INSIGHT_NONE, .layer = l->vertices[at].layer + 1};
        }
        l->edges[l->edge_count++] = (edge){at, next};
        at = next;
    }
}

/* Vertices of what is drawn; their layers. */
static dq_status make_vertices(const insight_model *m, layout *l, dq_error *err)
{
    l->node_vertex = insight_alloc(&l->pool, m->node_count, sizeof *l->node_vertex);
    l->value_vertex = insight_alloc(&l->pool, m->value_count, sizeof *l->value_vertex);
    vertex *own = insight_alloc(&l->pool, m->node_count + m->value_count, sizeof *own);
    if (!l->node_vertex || !l->value_vertex || !own)
        return io_no_memory(err);
    for (size_t i = 0; i < m->value_count; i++) {
        const bool drawn = (m->values[i].is_input || m->values[i].is_output) && !m->values[i].is_initializer;
        l->value_vertex[i] = drawn ? l->vertex_count : INSIGHT_NONE;
        if (drawn)
            own[l->vertex_count++] = (vertex){.node = INSIGHT_NONE, .value = i};
    }
    for (size_t i = 0; i < m->node_count; i++) {
        const bool drawn = is_drawn(&m->nodes[i]);
        l->node_vertex[i] = drawn ? l->vertex_count : INSIGHT_NONE;
        if (drawn)
            own[l->vertex_count++] = (vertex){.node = i, .value = INSIGHT_NONE};
    }
    l->vertices = own;
    each_link(m, l, lower, l); /* nodes are in topological order */
    l->vertex_limit = l->vertex_count;
    each_link(m, l, count_link, l);
    l->vertices = insight_alloc(&l->pool, l->vertex_limit, sizeof *l->vertices);
    l->edges = insight_alloc(&l->pool, l->edge_limit, sizeof *l->edges);
    if (!l->vertices || !l->edges)
        return io_no_memory(err);
    memcpy(l->vertices, own, l->vertex_count * sizeof *own);
    each_link(m, l, add_link, l);
    return DQ_OK;
}

static dq_status list_neighbours(layout *l, dq_error *err)
{
    l->ups = insight_alloc(&l->pool, l->edge_count, sizeof *l->ups);
    l->downs = insight_alloc(&l->pool, l->edge_count, sizeof *l->downs);
    if (!l->ups || !l->downs)
        return io_no_memory(err);
    for (size_t e = 0; e < l->edge_count; e++) {
        l->vertices[l->edges[e].to].up_count++;
        l->vertices[l->edges[e].from].down_count++;
    }
    size_t up = 0, down = 0;
    for (size_t i = 0; i < l->vertex_count; i++) {
        vertex *v = &l->vertices[i];
        v->first_up = up;
        v->first_down = down;
        up += v->up_count;
        down += v->down_count;
        v->up_count = v->down_count = 0;
    }
    for (size_t e = 0; e < l->edge_count; e++) {
        vertex *from = &l->vertices[l->edges[e].from], *to = &l->vertices[l->edges[e].to];
        l->ups[to->first_up + to->up_count++] = l->edges[e].from;
        l->downs[from->first_down + from->down_count++] = l->edges[e].to;
    }
    return DQ_OK;
}

static dq_status make_layers(layout *l, dq_error *err)
{
    for (size_t i = 0; i < l->vertex_count; i++)
        l->layer_count =
            l->vertices[i].layer + 1 > l->layer_count ? l->vertices[i].layer + 1 : l->layer_count;
    l->layers = insight_alloc(&l->pool, l->layer_count, sizeof *l->layers);
    l->layer_sizes = insight_alloc(&l->pool, l->layer_count, sizeof *l->layer_sizes);
    if (!l->layers || !l->layer_sizes)
        return io_no_memory(err);
    for (size_t i = 0; i < l->vertex_count; i++)
        l->layer_sizes[l->vertices[i].layer]++;
    for (size_t k = 0; k < l->layer_count; k++) {
        l->layers[k] = insight_alloc(&l->pool, l->layer_sizes[k], sizeof **l->layers);
        if (!l->layers[k])
            return io_no_memory(err);
        l->layer_sizes[k] = 0;
    }
    for (size_t i = 0; i < l->vertex_count; i++) {
        vertex *v = &l->vertices[i];
        v->order = l->layer_sizes[v->layer];
        l->layers[v->layer][l->layer_sizes[v->layer]++] = i;
    }
    return DQ_OK;
}

/* ---- Positions ----------------------------------------------------------------------------------------- */

/* Mean over the neighbours above or below; the vertex's own where it has none. */
static double mean_of(const layout *l, const vertex *v, bool above, bool of_x)
{
    const size_t count = above ? v->up_count : v->down_count;
    const size_t *list = above ? l->ups + v->first_up : l->downs + v->first_down;
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += of_x ? l->vertices[list[i]].x : (double)l->vertices[list[i]].order;
    return count ? sum / (double)count : of_x ? v->x : (double)v->order;
}

/* Insertion sort: stable, and layers are nearly sorted after the first sweeps. */
static void sort_layer(layout *l, size_t layer, bool above)
{
    size_t *list = l->layers[layer];
    for (size_t i = 0; i < l->layer_sizes[layer]; i++)
        l->vertices[list[i]].key = mean_of(l, &l->vertices[list[i]], above, false);
    for (size_t i = 1; i < l->layer_sizes[layer]; i++) {
        const size_t moved = list[i];
        size_t k = i;
        for (; k && l->vertices[list[k - 1]].key > l->vertices[moved].key; k--)
            list[k] = list[k - 1];
        list[k] = moved;
    }
    for (size_t i = 0; i < l->layer_sizes[layer]; i++)
        l->vertices[list[i]].order = i;
}

static double width_of(const vertex *v)
{
    return v->node == INSIGHT_NONE && v->value == INSIGHT_NONE ? DUMMY_WIDTH : BOX_WIDTH;
}

static double least_distance(const vertex *a, const vertex *b)
{
    return (width_of(a) + width_of(b)) / 2 + GAP_X;
}

/* Moves a layer's vertices to the means of their neighbours: once pushed from the left, once from the right,
 * and the middle of both, which keeps the distances too. */
static void place_layer(layout *l, size_t layer, bool above)
{
    const size_t *list = l->layers[layer], count = l->layer_sizes[layer];
    double edge_x = 0;
    for (size_t i = 0; i < count; i++) {
        vertex *v = &l->vertices[list[i]];
        const double goal = mean_of(l, v, above, true);
        v->key = i && goal < edge_x + least_distance(&l->vertices[list[i - 1]], v)
                     ? edge_x + least_distance(&l->vertices[list[i - 1]], v)
                     : goal;
        edge_x = v->key;
    }
    for (size_t i = count; i-- > 0;) {
        vertex *v = &l->vertices[list[i]];
        double goal = mean_of(l, v, above, true);
        if (i + 1 < count && goal > edge_x - least_distance(v, &l->vertices[list[i + 1]]))
            goal = edge_x - least_distance(v, &l->vertices[list[i + 1]]);
        edge_x = goal;
        v->key = (v->key + goal) / 2;
    }
    for (size_t i = 0; i < count; i++)
        l->vertices[list[i]].x = l->vertices[list[i]].key;
}

static void assign_positions(layout *l)
{
    for (int sweep = 0; sweep < ORDER_SWEEPS; sweep++) {
        for (size_t k = 0; k < l->layer_count; k++)
            sort_layer(l, sweep % 2 ? l->layer_count - 1 - k : k, sweep % 2 == 0);
    }
    for (size_t k = 0; k < l->layer_count; k++) {
        double x = 0;
        for (size_t i = 0; i < l->layer_sizes[k]; i++) {
            vertex *v = &l->vertices[l->layers[k][i]];
            x += i ? least_distance(&l->vertices[l->layers[k][i - 1]], v) : 0;
            v->x = x;
        }
    }
    for (int sweep = 0; sweep < PLACE_SWEEPS; sweep++) {
        for (size_t k = 0; k < l->layer_count; k++)
            place_layer(l, sweep % 2 ? l->layer_count - 1 - k : k, sweep % 2 == 0);
    }
    double least = 0, most = 0;
    for (size_t i = 0; i < l->vertex_count; i++) {
        const double half = width_of(&l->vertices[i]) / 2;
        least = !i || l->vertices[i].x - half < least ? l->vertices[i].x - half : least;
        most = !i || l->vertices[i].x + half > most ? l->vertices[i].x + half : most;
    }
    for (size_t i = 0; i < l->vertex_count; i++)
        l->vertices[i].x += MARGIN - least;
    l->width = most - least + 2 * MARGIN;
}

/* ---- SVG ----------------------------------------------------------------------------------------------- */

static double top_of(const vertex *v)
{
    return LEGEND + MARGIN + (double)v->layer * (BOX_HEIGHT + GAP_Y);
}

static bool is_dummy(const vertex *v)
{
    return v->node == INSIGHT_NONE && v->value == INSIGHT_NONE;
}

static void put_edge(const layout *l, const edge *e, FILE *to)
{
    const vertex *a = &l->vertices[e->from], *b = &l->vertices[e->to];
    const double y = top_of(a) + (is_dummy(a) ? BOX_HEIGHT / 2.0 : BOX_HEIGHT);
    const double end = top_of(b) + (is_dummy(b) ? BOX_HEIGHT / 2.0 : 0), middle = (y + end) / 2;
    fprintf(to, "<path d=\"M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f\"%s/>\n", a->x, y, a->x, middle, b->x,
            middle, b->x, end, is_dummy(b) ? "" : " marker-end=\"url(#arrow)\"");
}

static void put_texts(FILE *to, const vertex *v, const char *first, const char *second)
{
    fprintf(to, "<text x=\"%.0f\" y=\"%.0f\" class=\"op\">", v->x, top_of(v) + 15);
    put_escaped(to, first, NAME_CHARACTERS);
    fprintf(to, "</text><text x=\"%.0f\" y=\"%.0f\">", v->x, top_of(v) + 29);
    put_escaped(to, second, NAME_CHARACTERS);
    fputs("</text>", to);
}

/* The tooltip has what the box has no space for. */
static void put_title(const insight_model *m, const insight_node *n, FILE *to)
{
    char shape[400];
    fputs("<title>", to);
    put_escaped(to, n->name, SIZE_MAX);
    fprintf(to, " (%s)\ncomputes: %s", n->op, insight_compute_names[n->compute]);
    if (n->step != INSIGHT_NONE)
        fprintf(to, "\nstep %zu: %s", n->step, m->steps[n->step].op);
    if (n->reason)
        fprintf(to, "\nwhy float: ");
    put_escaped(to, n->reason ? n->reason : "", SIZE_MAX);
    for (size_t k = 0; k < n->output_count; k++) {
        if (n->outputs[k] == INSIGHT_NONE)
            continue;
        const insight_value *v = &m->values[n->outputs[k]];
        fputc('\n', to);
        put_escaped(to, v->name, SIZE_MAX);
        fprintf(to, ": %s%s", v->type, insight_shape_text(v, shape, sizeof shape));
        if (v->quantization.has_scale)
            fprintf(to, ", scale %.6g", v->quantization.scale_max);
    }
    fputs("</title>", to);
}

static void put_vertex(const insight_model *m, const vertex *v, FILE *to)
{
    char shape[400];
    if (is_dummy(v))
        return;
    const insight_node *n = v->node == INSIGHT_NONE ? NULL : &m->nodes[v->node];
    fprintf(to,
            "<g><rect x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" rx=\"%d\" fill=\"%s\" stroke=\"%s\"/>",
            v->x - BOX_WIDTH / 2.0, top_of(v), BOX_WIDTH, BOX_HEIGHT, n ? 4 : BOX_HEIGHT / 2,
            n ? styles[n->compute].fill : "#ffffff", n ? styles[n->compute].stroke : "#333333");
    if (n) {
        put_title(m, n, to);
        put_texts(to, v, n->op_type, n->name);
    } else {
        const insight_value *value = &m->values[v->value];
        char type[440];
        snprintf(type, sizeof type, "%.30s%s", value->type, insight_shape_text(value, shape, sizeof shape));
        put_texts(to, v, value->name, type);
    }
    fputs("</g>\n", to);
}

static void put_legend(const insight_model *m, FILE *to)
{
    int x = MARGIN;
    for (int c = INSIGHT_CONVERT; c < INSIGHT_COMPUTES; c++) {
        if (!m->computes[c])
            continue;
        fprintf(to,
                "<rect x=\"%d\" y=\"14\" width=\"16\" height=\"16\" rx=\"3\" fill=\"%s\" stroke=\"%s\"/>"
                "<text x=\"%d\" y=\"26\" class=\"legend\">%s %zu</text>\n",
                x, styles[c].fill, styles[c].stroke, x + 22, insight_compute_names[c], m->computes[c]);
        x += 130;
    }
}

static void put_svg(const insight_model *m, const layout *l, FILE *to)
{
    const double least = MARGIN + 130 * (INSIGHT_COMPUTES - INSIGHT_CONVERT);
    const double width = l->width > least ? l->width : least;
    const double height = LEGEND + 2 * MARGIN + (double)l->layer_count * (BOX_HEIGHT + GAP_Y);
    fprintf(
        to,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
        "font-family=\"sans-serif\" font-size=\"10\">\n"
        "<style>text{text-anchor:middle;fill:#222}.op{font-weight:bold}.legend{text-anchor:start;font-size:"
        "12px}"
        "path{fill:none;stroke:#777}#arrow path{fill:#777;stroke:none}</style>\n"
        "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" "
        "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
        width, height, width, height);
    put_legend(m, to);
    for (size_t e = 0; e < l->edge_count; e++)
        put_edge(l, &l->edges[e], to);
    for (size_t i = 0; i < l->vertex_count; i++)
        put_vertex(m, &l->vertices[i], to);
    fputs("</svg>\n", to);
}

static dq_status lay_out(const insight_model *m, layout *l, dq_error *err)
{
    dq_status status = make_vertices(m, l, err);
    if (status == DQ_OK)
        status = list_neighbours(l, err);
    if (status == DQ_OK)
        status = make_layers(l, err);
    if (status == DQ_OK)
        assign_positions(l);
    return status;
}

dq_status insight_write_svg(const insight_model *m, FILE *to, dq_error *err)
{
    layout l = {0};
    dq_status status = lay_out(m, &l, err);
    if (status == DQ_OK)
        put_svg(m, &l, to);
    insight_pool_free(&l.pool);
    return status;
}

/* ---- Positions as JSON --------------------------------------------------------------------------------- */

static void put_position(const vertex *v, cli_json *json)
{
    cli_json_begin_array(json, NULL);
    cli_json_size(json, NULL, v->node != INSIGHT_NONE ? 0 : v->value != INSIGHT_NONE ? 1 : 2);
    if (is_dummy(v))
        cli_json_null(json, NULL);
    else
        cli_json_size(json, NULL, v->node != INSIGHT_NONE ? v->node : v->value);
    cli_json_decimal(json, NULL, v->x, 1);
    cli_json_decimal(json, NULL, top_of(v) - LEGEND, 0);
    cli_json_end_array(json);
}

dq_status insight_layout_json(const insight_model *m, cli_json *json, dq_error *err)
{
    layout l = {0};
    dq_status status = lay_out(m, &l, err);
    if (status == DQ_OK) {
        cli_json_begin_object(json, NULL);
        cli_json_decimal(json, "width", l.width, 0);
        cli_json_decimal(json, "height", 2 * MARGIN + (double)l.layer_count * (BOX_HEIGHT + GAP_Y), 0);
        cli_json_begin_array(json, "vertices");
        for (size_t i = 0; i < l.vertex_count; i++)
            put_position(&l.vertices[i], json);
        cli_json_end_array(json);
        cli_json_begin_array(json, "edges");
        for (size_t e = 0; e < l.edge_count; e++) {
            cli_json_begin_array(json, NULL);
            cli_json_size(json, NULL, l.edges[e].from);
            cli_json_size(json, NULL, l.edges[e].to);
            cli_json_end_array(json);
        }
        cli_json_end_array(json);
        cli_json_end_object(json);
    }
    insight_pool_free(&l.pool);
    return status;
}
