/* SPDX-License-Identifier: Apache-2.0 */
/* TfIdfVectorizer: counts how often each n-gram of a pool occurs in a row, also with skips between its
 * elements. If the mode says so, counts are weighted. `ngram_indexes` maps an n-gram to its position in the
 * result. */
#include "base/checked.h"
#include "ops/op.h"

#include <inttypes.h>
#include <string.h>

typedef struct state {
    const dq_attr *pool, *starts, *indices;
    size_t shortest, longest, max_distance; /* range of n-gram sizes; largest distance between elements */
    bool once;                              /* IDF: an n-gram counts once */
    size_t width;                           /* of a result row */
    float *weights;                         /* of each position of the result */
    size_t slots;                           /* a power of two */
    struct slot {
        size_t size, at, index; /* size 0: free; at: first element in the pool */
    } * table;
} state;

/* ---- The pool ------------------------------------------------------------------------------------------ */

static uint64_t join_hash(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15) ^ (hash >> 29);
}

/* Seeds a hash. It differs between processes if the system randomizes addresses, so that no file can prepare
 * n-grams that collide. */
static uint64_t hash_size(size_t size)
{
    static const char anchor = 0;
    return (uint64_t)(uintptr_t)&anchor ^ size;
}

/* First slot of a hash: from its high bits, which depend on everything that was hashed. */
static size_t first_slot(const state *s, uint64_t hash)
{
    return (size_t)(hash ^ hash >> 32) & (s->slots - 1);
}

static uint64_t hash_string(dq_string text)
{
    uint64_t hash = text.length;
    for (size_t i = 0; i < text.length; i++)
        hash = join_hash(hash, (unsigned char)text.bytes[i]);
    return hash;
}

static bool same_string(dq_string a, dq_string b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

static uint64_t hash_pool(const state *s, size_t i)
{
    return s->pool->kind == DQ_ATTR_STRINGS ? hash_string(s->pool->u.strings[i])
                                            : (uint64_t)s->pool->u.ints[i];
}

static bool same_in_pool(const state *s, size_t a, size_t b)
{
    return s->pool->kind == DQ_ATTR_STRINGS ? same_string(s->pool->u.strings[a], s->pool->u.strings[b])
                                            : s->pool->u.ints[a] == s->pool->u.ints[b];
}

/* Inserts an n-gram; it replaces an equal earlier one. */
static void insert(state *s, size_t at, size_t size, size_t index)
{
    uint64_t hash = hash_size(size);
    for (size_t k = 0; k < size; k++)
        hash = join_hash(hash, hash_pool(s, at + k));
    for (size_t i = first_slot(s, hash);; i = (i + 1) & (s->slots - 1)) {
        struct slot *slot = &s->table[i];
        bool same = slot->size == size;
        for (size_t k = 0; same && k < size; k++)
            same = same_in_pool(s, slot->at + k, at + k);
        if (slot->size == 0 || same) {
            *slot = (struct slot){size, at, index};
            return;
        }
    }
}

static dq_status read_pool(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_attr *strings = dq_node_attr(call->node, "pool_strings");
    const dq_attr *ints = dq_node_attr(call->node, "pool_int64s");
    bool text = call->in[0]->dtype == DQ_STRING;
    if (!strings == !ints || !strings == text)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "wants a pool of %s and no other",
                            text ? "strings" : "integers");
    s->pool = text ? strings : ints;
    s->starts = dq_node_attr(call->node, "ngram_counts");
    s->indices = dq_node_attr(call->node, "ngram_indexes");
    for (size_t i = 0; i < s->indices->count; i++) {
        int64_t index = s->indices->u.ints[i];
        if (index < 0 || index == INT64_MAX)
            return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'ngram_indexes' holds %" PRId64, index);
        s->width = (size_t)index + 1 > s->width ? (size_t)index + 1 : s->width;
    }
    int64_t shortest = dq_node_int(call->node, "min_gram_length", 1);
    int64_t longest = dq_node_int(call->node, "max_gram_length", 1);
    int64_t skips = dq_node_int(call->node, "max_skip_count", 0);
    if (shortest < 1 || longest < shortest || skips < 0 || skips == INT64_MAX)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "has n-grams of %" PRId64 " to %" PRId64 " elements with %" PRId64 " skips",
                            shortest, longest, skips);
    s->shortest = (size_t)shortest;
    s->longest = (size_t)longest < s->starts->count ? (size_t)longest : s->starts->count;
    s->max_distance = (size_t)skips + 1;
    return DQ_OK;
}

/* Inserts the n-grams of the requested sizes; without a table, only checks the lists. */
static dq_status walk_pool(const dq_op_call *call, state *s, dq_error *err)
{
    size_t number = 0;
    for (size_t size = 1; size <= s->starts->count; size++) {
        int64_t from = s->starts->u.ints[size - 1];
        int64_t to = size < s->starts->count ? s->starts->u.ints[size] : (int64_t)s->pool->count;
        if (from < 0 || to < from || to > (int64_t)s->pool->count || (size_t)(to - from) % size != 0)
            return dq_call_fail(call, err, DQ_BAD_MODEL,
                                "attribute 'ngram_counts' has %" PRId64 " to %" PRId64
                                " for n-grams of %zu elements",
                                from, to, size);
        for (size_t at = (size_t)from; at < (size_t)to; at += size, number++) {
            if (number >= s->indices->count)
                return dq_call_fail(call, err, DQ_BAD_MODEL,
                                    "has more n-grams than the %zu of 'ngram_indexes'", s->indices->count);
            if (s->table && size >= s->shortest && size <= s->longest)
                insert(s, at, size, (size_t)s->indices->u.ints[number]);
        }
    }
    return DQ_OK;
}

/* ---- The operator -------------------------------------------------------------------------------------- */

static dq_status infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    const char *mode = dq_node_string(call->node, "mode", "");
    state s = {0};
    if (in->rank > 2)
        return dq_call_fail_input(call, err, 0, "has rank %u, expected at most 2", in->rank);
    if (strcmp(mode, "TF") != 0 && strcmp(mode, "IDF") != 0 && strcmp(mode, "TFIDF") != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'mode' is '%s', expected TF, IDF or TFIDF",
                            mode);
    DQ_TRY(read_pool(call, &s, err));
    DQ_TRY(walk_pool(call, &s, err));
    const dq_attr *weights = dq_node_attr(call->node, "weights");
    if (weights && weights->count != s.indices->count)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'weights' has %zu elements, expected %zu (n-grams)", weights->count,
                            s.indices->count);
    int64_t dims[2] = {in->dims[0], (int64_t)s.width};
    return in->rank == 2 ? dq_call_output(call, 0, DQ_FLOAT, 2, dims, err)
                         : dq_call_output(call, 0, DQ_FLOAT, 1, dims + 1, err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    const dq_attr *weights = dq_node_attr(call->node, "weights");
    const char *mode = dq_node_string(call->node, "mode", "");
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(read_pool(call, s, err));
    s->once = strcmp(mode, "IDF") == 0;
    for (s->slots = 2; s->slots / 2 <= s->pool->count;)
        s->slots *= 2;
    s->table = DQ_NEW_ARRAY(call->arena, s->slots, struct slot);
    s->weights = DQ_NEW_ARRAY(call->arena, s->width + 1, float);
    if (!s->table || !s->weights)
        return dq_no_memory(err, s->slots * sizeof *s->table, "a pool of n-grams");
    for (size_t i = 0; i < s->width; i++)
        s->weights[i] = 1;
    for (size_t i = 0; weights && strcmp(mode, "TF") != 0 && i < weights->count; i++)
        s->weights[s->indices->u.ints[i]] = weights->u.floats[i];
    return walk_pool(call, s, err);
}

static uint64_t hash_input(const dq_tensor *t, size_t i)
{
    return t->dtype == DQ_STRING ? hash_string(dq_data(t, dq_string)[i]) : (uint64_t)dq_tensor_get_int(t, i);
}

static bool same_as_pool(const state *s, const dq_tensor *t, size_t i, size_t at)
{
    return t->dtype == DQ_STRING ? same_string(dq_data(t, dq_string)[i], s->pool->u.strings[at])
                                 : dq_tensor_get_int(t, i) == s->pool->u.ints[at];
}

/* The slot of the n-gram at element i whose elements have stride `distance`, or NULL. */
static const struct slot *find(const state *s, const dq_tensor *t, size_t i, size_t distance, size_t size)
{
    uint64_t hash = hash_size(size);
    for (size_t k = 0; k < size; k++)
        hash = join_hash(hash, hash_input(t, i + k * distance));
    for (size_t at = first_slot(s, hash); s->table[at].size; at = (at + 1) & (s->slots - 1)) {
        bool same = s->table[at].size == size;
        for (size_t k = 0; same && k < size; k++)
            same = same_as_pool(s, t, i + k * distance, s->table[at].at + k);
        if (same)
            return &s->table[at];
    }
    return NULL;
}

static void count_row(const dq_threads *threads, const state *s, const dq_tensor *t, size_t first, size_t n,
                      float *counts)
{
    for (size_t distance = 1; distance <= s->max_distance && distance <= n && !dq_threads_cancelled(threads);
         distance++)
        for (size_t size = s->shortest; size <= s->longest; size++) {
            if (size == 1 && distance > 1) /* single elements have no distance */
                continue;
            for (size_t i = 0; i < n && (n - 1 - i) / distance >= size - 1 && !dq_threads_cancelled(threads);
                 i++) {
                const struct slot *slot = find(s, t, first + i, distance, size);
                if (slot)
                    counts[slot->index] += 1;
            }
        }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    const dq_tensor *in = call->in[0];
    float *out = call->out[0]->data;
    size_t rows = in->rank == 2 ? (size_t)in->dims[0] : 1, n = rows ? in->count / rows : 0;
    for (size_t row = 0; row < rows && s->width && !dq_threads_cancelled(call->threads);
         row++, out += s->width) {
        memset(out, 0, s->width * sizeof *out);
        count_row(call->threads, s, in, row * n, n, out);
        for (size_t i = 0; i < s->width; i++)
            out[i] = (s->once && out[i] > 0 ? 1 : out[i]) * s->weights[i];
    }
    return DQ_OK;
}

const dq_op_impl dq_op_tfidf_vectorizer = {infer, prepare, run, 0};
