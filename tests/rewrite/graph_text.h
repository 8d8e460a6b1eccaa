/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as text, for tests of the rewriter: a line is
 *
 *     x uint8[1,4]                   an input
 *     s = float[] 0.5                an initializer: all elements are the number, or one number each
 *     y, z = domain.Op(x, -, s) k=1  a node; '-' leaves an input out; attributes are ints, lists of ints, or
 * words
 *     -> y                           the outputs
 */
#ifndef DQ_TESTS_GRAPH_TEXT_H
#define DQ_TESTS_GRAPH_TEXT_H

#include "base/codec.h"
#include "unit/planned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_WORDS = 16, TEXT_SIZE = 4096 };

/* Splits at any of the separators, in place. */
static size_t text_split(char *text, const char *separators, char *words[TEXT_WORDS])
{
    size_t count = 0;
    for (char *word = strtok(text, separators); word; word = strtok(NULL, separators)) {
        ck_assert_uint_lt(count, TEXT_WORDS);
        words[count++] = word;
    }
    return count;
}

static char *text_keep(const char *text)
{
    char *kept = dq_arena_string(&ir->arena, text, strlen(text));
    ck_assert_ptr_nonnull(kept);
    return kept;
}

/* "uint8[1,4]"; returns the rank. */
static size_t text_type(const char *text, dq_dtype *dtype, int64_t dims[DQ_MAX_RANK])
{
    char name[64];
    const char *open = strchr(text, '[');
    size_t rank = 0;
    ck_assert_ptr_nonnull(open);
    snprintf(name, sizeof name, "%.*s", (int)(open - text), text);
    *dtype = dq_dtype_from_name(name);
    ck_assert_msg(*dtype != DQ_UNDEFINED, "no element type '%s'", name);
    for (char *end, *at = (char *)(uintptr_t)open + 1; *at != ']'; at = *end == ',' ? end + 1 : end)
        dims[rank++] = strtoll(at, &end, 10);
    return rank;
}

static void text_initializer(const char *name, const char *type, size_t count, char *const *numbers)
{
    dq_dtype dtype;
    int64_t dims[DQ_MAX_RANK];
    dq_tensor *t;
    const size_t rank = text_type(type, &dtype, dims);
    ck_assert_int_eq(dq_tensor_new(&ir->arena, dtype, rank, dims, 0, &t, &err), DQ_OK);
    for (size_t i = 0; i < t->count; i++) {
        const double number = strtod(numbers[count == 1 ? 0 : i % count], NULL);
        if (dtype == DQ_FLOAT)
            dq_data(t, float)[i] = (float)number;
        else if (dtype == DQ_FLOAT16)
            dq_data(t, uint16_t)[i] = dq_f32_to_f16((float)number);
        else
            dq_tensor_put_int(t, i, (int64_t)number);
    }
    ck_assert_int_eq(dq_graph_add_initializer(g, name, t, &err), DQ_OK);
}

static void text_attribute(dq_attr *attr, char *word)
{
    char *value = strchr(word, '=');
    int64_t *ints = DQ_NEW_ARRAY(&ir->arena, TEXT_WORDS, int64_t);
    size_t count = 0;
    ck_assert_ptr_nonnull(value);
    *value++ = 0;
    *attr = (dq_attr){.name = text_keep(word)};
    if (*value != '-' && (*value < '0' || *value > '9')) {
        attr->kind = DQ_ATTR_STRING;
        attr->u.s = (dq_string){text_keep(value), strlen(value)};
        return;
    }
    for (char *end, *at = value; *at; at = *end == ',' ? end + 1 : end)
        ints[count++] = strtoll(at, &end, 10);
    attr->kind = strchr(value, ',') ? DQ_ATTR_INTS : DQ_ATTR_INT;
    attr->count = count;
    if (attr->kind == DQ_ATTR_INTS)
        attr->u.ints = ints;
    else
        attr->u.i = ints[0];
}

static void text_node(char *outs, char *call)
{
    char *open = strchr(call, '('), *close = strchr(call, ')'), *dot;
    char *in[TEXT_WORDS], *out[TEXT_WORDS], *attrs[TEXT_WORDS];
    *open = *close = 0;
    const size_t attr_count = text_split(close + 1, " ", attrs), in_count = text_split(open + 1, ", ", in),
                 out_count = text_split(outs, ", ", out);
    dq_node *node;
    ck_assert_int_eq(
        dq_graph_add_node(g, (uint32_t)in_count, (uint32_t)out_count, (uint32_t)attr_count, &node, &err),
        DQ_OK);
    dot = strrchr(call, '.');
    node->domain = dot ? text_keep((*dot = 0, call)) : "";
    node->op_type = text_keep(dot ? dot + 1 : call);
    node->opset = dot ? 1 : 21;
    for (size_t i = 0; i < in_count; i++)
        node->in_names[i] = strcmp(in[i], "-") == 0 ? "" : text_keep(in[i]);
    for (size_t i = 0; i < out_count; i++)
        node->out_names[i] = text_keep(out[i]);
    for (size_t i = 0; i < attr_count; i++)
        text_attribute(&node->attrs[i], attrs[i]);
}

static void text_line(char *line)
{
    char *words[TEXT_WORDS], *equals = strstr(line, " = ");
    dq_type type = {.has_shape = true};
    if (strncmp(line, "-> ", 3) == 0) {
        const size_t count = text_split(line + 3, ", ", words);
        for (size_t i = 0; i < count; i++)
            ck_assert_int_eq(dq_graph_add_output(g, text_keep(words[i]), NULL, &err), DQ_OK);
    } else if (!equals) {
        int64_t *dims = DQ_NEW_ARRAY(&ir->arena, DQ_MAX_RANK, int64_t);
        ck_assert_uint_eq(text_split(line, " ", words), 2);
        type.rank = (uint32_t)text_type(words[1], &type.dtype, dims);
        type.dims = dims;
        ck_assert_int_eq(dq_graph_add_input(g, text_keep(words[0]), &type, &err), DQ_OK);
    } else if (*equals = 0, strchr(equals + 3, '(')) {
        text_node(line, equals + 3);
    } else {
        const size_t count = text_split(equals + 3, " ", words);
        ck_assert_uint_ge(count, 2);
        text_initializer(text_keep(line), words[0], count - 1, words + 1);
    }
}

/* Adds the lines to the main graph and links it. */
static void graph_from_text(const char *text)
{
    while (*text) {
        char line[512];
        const size_t length = strcspn(text, "\n");
        ck_assert_uint_lt(length, sizeof line);
        snprintf(line, sizeof line, "%.*s", (int)length, text);
        if (*line)
            text_line(line);
        text += length + (text[length] == '\n');
    }
    ck_assert_msg(dq_graph_link(g, &err) == DQ_OK, "%s", err.message);
}

/* ---- Printing ----------------------------------------------------------------------------------------- */

typedef struct text_out {
    char text[TEXT_SIZE];
    size_t length;
    uint32_t made[64]; /* ids of values that passes have made, by the order in which they are printed */
    uint32_t made_count;
} text_out;

static void text_put(text_out *to, const char *text)
{
    to->length += (size_t)snprintf(to->text + to->length, sizeof to->text - to->length, "%s", text);
    ck_assert_uint_lt(to->length, sizeof to->text);
}

/* A value of the model by its name, a new constant as "#uint8[4]", another new value as "%1". */
static void text_put_value(text_out *to, const dq_value *v)
{
    char word[64 + DQ_SHAPE_TEXT], dims[DQ_SHAPE_TEXT];
    uint32_t i = 0;
    if (!v) {
        text_put(to, "-");
    } else if (v->id < ir->value_count) {
        text_put(to, v->name);
    } else if (v->constant) {
        snprintf(word, sizeof word, "#%s%s", dq_dtype_name(v->constant->dtype),
                 dq_shape_text(v->constant->rank, v->constant->dims, dims));
        text_put(to, word);
    } else {
        while (i < to->made_count && to->made[i] != v->id)
            i++;
        if (i == to->made_count)
            to->made[to->made_count++] = v->id;
        snprintf(word, sizeof word, "%%%u", i + 1);
        text_put(to, word);
    }
}

static void text_put_values(text_out *to, uint32_t count, dq_value *const *values)
{
    while (count && !values[count - 1])
        count--;
    for (uint32_t i = 0; i < count; i++) {
        text_put(to, i ? ", " : "");
        text_put_value(to, values[i]);
    }
}

/* The nodes that the outputs need, a line each, without attributes. */
static void nodes_to_text(dq_node *const *nodes, uint32_t count, uint32_t value_count, text_out *to)
{
    bool *read = calloc(value_count, sizeof *read), *needed = calloc(count + 1u, sizeof *needed);
    for (uint32_t i = 0; i < g->output_count; i++)
        read[g->outputs[i]->id] = true;
    for (uint32_t n = count; n-- > 0;) {
        for (uint32_t i = 0; i < nodes[n]->out_count; i++)
            needed[n] = needed[n] || (nodes[n]->out[i] && read[nodes[n]->out[i]->id]);
        for (uint32_t i = 0; needed[n] && i < nodes[n]->in_count; i++)
            if (nodes[n]->in[i])
                read[nodes[n]->in[i]->id] = true;
    }
    for (uint32_t n = 0; n < count; n++) {
        if (!needed[n])
            continue;
        text_put_values(to, nodes[n]->out_count, nodes[n]->out);
        text_put(to, " = ");
        text_put(to, nodes[n]->domain);
        text_put(to, *nodes[n]->domain ? "." : "");
        text_put(to, nodes[n]->op_type);
        text_put(to, "(");
        text_put_values(to, nodes[n]->in_count, nodes[n]->in);
        text_put(to, ")\n");
    }
    free(read);
    free(needed);
}

#endif
