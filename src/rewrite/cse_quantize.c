/* SPDX-License-Identifier: Apache-2.0 */
/* Common-subexpression elimination for QuantizeLinear: readers of a duplicate use the result of the first
 * node. Duplicates have equal inputs and attributes. */
#include "rewrite/match.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_COMPARED = 8 }; /* Quantizations of one value that are compared. */

static bool same_value(const dq_value *a, const dq_value *b)
{
    const dq_tensor *s = dq_match_constant(a), *t = dq_match_constant(b);
    return a == b ||
           (s && t && !a->is_input && !b->is_input && s->dtype == t->dtype && dq_tensor_same_shape(s, t) &&
            s->count > 0 && memcmp(s->data, t->data, (s->count * dq_dtype_get(s->dtype)->bits + 7) / 8) == 0);
}

static bool same_attrs(const dq_node *a, const dq_node *b)
{
    bool same = a->attr_count == b->attr_count;
    for (uint32_t i = 0; same && i < a->attr_count; i++) {
        const dq_attr *own = &a->attrs[i], *other = dq_node_attr(b, own->name);
        same = other && own->kind == DQ_ATTR_INT && other->kind == DQ_ATTR_INT && own->u.i == other->u.i;
    }
    return same;
}

static bool are_duplicates(const dq_node *a, const dq_node *b)
{
    bool same = strcmp(a->op_type, b->op_type) == 0 && strcmp(a->domain, b->domain) == 0 &&
                a->version == b->version && a->in_count == b->in_count && same_attrs(a, b);
    for (uint32_t i = 0; same && i < a->in_count; i++)
        same = same_value(a->in[i], b->in[i]);
    return same;
}

static bool quantizes(const dq_node *node)
{
    return strcmp(node->op_type, "QuantizeLinear") == 0 && node->schema && node->in[0] && node->out[0];
}

typedef struct duplicates {
    dq_value **first; /* By value id: the quantized values that replace it, or NULL. */
    /* By value id. quantizer: the last QuantizeLinear of the value. next: of quantized values, the
     * QuantizeLinear before. */
    const dq_node **quantizer, **next;
} duplicates;

static void merge(const dq_graph *g, const duplicates *t)
{
    for (uint32_t n = 0; n < g->node_count; n++) {
        dq_node *node = g->nodes[n];
        for (uint32_t i = 0; i < node->in_count; i++)
            if (node->in[i] && node->in[i]->graph == g && t->first[node->in[i]->id])
                node->in[i] = t->first[node->in[i]->id];
        if (!quantizes(node))
            continue;
        const uint32_t of = node->in[0]->id;
        const dq_node *other = t->quantizer[of];
        for (int i = 1; other && !(other->graph == g && are_duplicates(node, other)); i++)
            other = i < MAX_COMPARED ? t->next[other->out[0]->id] : NULL;
        if (other) {
            t->first[node->out[0]->id] = other->out[0];
            continue;
        }
        t->next[node->out[0]->id] = t->quantizer[of];
        t->quantizer[of] = node;
    }
}

bool dq_cse_quantize(dq_ir *ir)
{
    const size_t count = (size_t)ir->value_count + 1;
    duplicates t = {calloc(count, sizeof *t.first), calloc(count, sizeof *t.quantizer),
                    calloc(count, sizeof *t.next)};
    const bool good = t.first && t.quantizer && t.next;
    for (const dq_graph *g = ir->last_made; good && g; g = g->made_before)
        if (g->linked)
            merge(g, &t);
    free(t.first);
    free((void *)(uintptr_t)t.quantizer);
    free((void *)(uintptr_t)t.next);
    return good;
}
