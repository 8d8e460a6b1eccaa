/* SPDX-License-Identifier: Apache-2.0 */
/* StringConcat, StringSplit, StringNormalizer, RegexFullMatch. Substrings point into the input's bytes; new
 * strings are allocated in call->strings. */
#include "base/checked.h"
#include "ops/broadcast.h"
#include "ops/text/regex.h"
#include "ops/text/text_case.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const dq_string *strings_of(const dq_tensor *t)
{
    return t->data;
}

/* ---- StringConcat -------------------------------------------------------------------------------------- */

static dq_status concat_infer(dq_op_call *call, dq_error *err)
{
    return dq_loop_infer(call, (const uint32_t[]){0, 1}, 2, DQ_STRING, err);
}

static dq_status join(const dq_op_call *call, dq_string a, dq_string b, dq_string *out, dq_error *err)
{
    size_t length;
    char *bytes =
        dq_add_size(a.length, b.length, &length) ? dq_arena_alloc(call->strings, length + 1, 1) : NULL;
    if (!bytes)
        return dq_no_memory(err, a.length, "a string");
    if (a.length)
        memcpy(bytes, a.bytes, a.length);
    if (b.length)
        memcpy(bytes + a.length, b.bytes, b.length);
    *out = (dq_string){bytes, length};
    return DQ_OK;
}

static dq_status concat_run(const dq_op_call *call, dq_error *err)
{
    dq_tensor *out = call->out[0];
    size_t strides[2][DQ_MAX_RANK];
    for (uint32_t k = 0; k < 2; k++)
        dq_broadcast_strides(call->in[k], out->rank, out->dims, strides[k]);
    for (size_t i = 0; i < out->count; i++) {
        size_t at[2] = {0};
        for (size_t d = out->rank, rest = i; d-- > 0; rest /= (size_t)out->dims[d])
            for (size_t k = 0; k < 2; k++)
                at[k] += rest % (size_t)out->dims[d] * strides[k][d];
        DQ_TRY(join(call, strings_of(call->in[0])[at[0]], strings_of(call->in[1])[at[1]],
                    &dq_data(out, dq_string)[i], err));
    }
    return DQ_OK;
}

const dq_op_impl dq_op_string_concat = {concat_infer, NULL, concat_run, 0};

/* ---- StringSplit --------------------------------------------------------------------------------------- */

typedef struct splitter {
    const char *delimiter; /* "": whitespace */
    size_t length;
    size_t most; /* maximum number of parts */
} splitter;

static splitter read_splitter(const dq_op_call *call)
{
    const dq_attr *delimiter = dq_node_attr(call->node, "delimiter");
    int64_t splits = dq_node_int(call->node, "maxsplit", -1);
    splitter s = {"", 0, splits < 0 ? SIZE_MAX : (size_t)splits + 1};
    if (delimiter && delimiter->u.s.length) {
        s.delimiter = delimiter->u.s.bytes;
        s.length = delimiter->u.s.length;
    }
    return s;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The end of the part that begins at `from`. *next is the begin of the next part, or past the string's end if
 * there is none. */
static size_t part_end(const splitter *s, dq_string text, size_t from, size_t *next)
{
    size_t i = from;
    if (s->length == 0) {
        while (i < text.length && !is_space(text.bytes[i]))
            i++;
        for (*next = i; *next < text.length && is_space(text.bytes[*next]);)
            ++*next;
        *next = *next == text.length ? text.length + 1 : *next;
        return i;
    }
    for (; i + s->length <= text.length; i++)
        if (memcmp(text.bytes + i, s->delimiter, s->length) == 0) {
            *next = i + s->length;
            return i;
        }
    *next = text.length + 1;
    return text.length;
}

/* Splits the text and returns the number of parts; parts NULL: counts only. */
static size_t split(const splitter *s, dq_string text, dq_string *parts)
{
    size_t from = 0, count = 0, next;
    while (s->length == 0 && from < text.length && is_space(text.bytes[from]))
        from++;
    if (s->length == 0 && from == text.length)
        return 0;
    for (; from <= text.length; from = next) {
        size_t end = part_end(s, text, from, &next);
        if (count + 1 >= s->most) { /* the last part is the rest */
            end = text.length;
            next = text.length + 1;
        }
        if (parts)
            parts[count] = (dq_string){end > from ? text.bytes + from : "", end - from};
        count++;
    }
    return count;
}

static dq_status split_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    splitter s = read_splitter(call);
    int64_t dims[DQ_MAX_RANK + 1];
    size_t most = 0;
    DQ_TRY(dq_call_need(call, 0));
    for (size_t i = 0; i < in->count; i++) {
        size_t parts = split(&s, strings_of(in)[i], NULL);
        most = parts > most ? parts : most;
    }
    for (size_t d = 0; d < in->rank; d++)
        dims[d] = in->dims[d];
    dims[in->rank] = (int64_t)most;
    DQ_TRY(dq_call_output_like(call, 1, DQ_INT64, in, err));
    return dq_call_output(call, 0, DQ_STRING, in->rank + 1u, dims, err);
}

static dq_status split_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const dq_tensor *in = call->in[0];
    splitter s = read_splitter(call);
    dq_tensor *parts = call->out[0], *counts = call->out_count > 1 ? call->out[1] : NULL;
    size_t row = parts && in->count ? parts->count / in->count : 0;
    for (size_t i = 0; i < in->count; i++) {
        dq_string *to = parts ? dq_data(parts, dq_string) + i * row : NULL;
        size_t found = split(&s, strings_of(in)[i], to);
        for (size_t k = found; to && k < row; k++)
            to[k] = (dq_string){"", 0};
        if (counts)
            dq_data(counts, int64_t)[i] = (int64_t)found;
    }
    return DQ_OK;
}

const dq_op_impl dq_op_string_split = {split_infer, NULL, split_run, 0};

/* ---- StringNormalizer ---------------------------------------------------------------------------------- */

/* Stop words sorted by memcmp, in lower case unless case matters. */
typedef struct stop_words {
    dq_string *words;
    size_t count;
    bool exact;
    dq_arena arena, text; /* of the words; of the text to look up */
} stop_words;

static int compare_strings(const void *a, const void *b)
{
    const dq_string *x = a, *y = b;
    const size_t least = x->length < y->length ? x->length : y->length;
    const int order = least ? memcmp(x->bytes, y->bytes, least) : 0;
    return order ? order : x->length < y->length ? -1 : x->length > y->length;
}

static dq_status read_stop_words(const dq_op_call *call, stop_words *s, dq_error *err)
{
    const dq_attr *value = dq_node_attr(call->node, "stopwords");
    *s = (stop_words){.exact = dq_node_int(call->node, "is_case_sensitive", 0) != 0,
                      .count = value ? value->count : 0};
    s->words = DQ_NEW_ARRAY(&s->arena, s->count, dq_string);
    bool good = s->words != NULL;
    for (size_t i = 0; good && i < s->count; i++) {
        s->words[i] = value->u.strings[i];
        good = s->exact || dq_text_change(&s->arena, s->words[i], false, &s->words[i]);
    }
    if (!good)
        return dq_no_memory(err, s->count * sizeof *s->words, "stop words");
    if (s->count)
        qsort(s->words, s->count, sizeof *s->words, compare_strings);
    return DQ_OK;
}

static void free_stop_words(stop_words *s)
{
    dq_arena_free(&s->arena);
    dq_arena_free(&s->text);
}

static dq_status is_stop_word(stop_words *s, dq_string text, bool *is, dq_error *err)
{
    *is = false;
    if (!s->count)
        return DQ_OK;
    dq_arena_reset(&s->text);
    if (!s->exact && !dq_text_change(&s->text, text, false, &text))
        return dq_no_memory(err, text.length, "a string");
    *is = bsearch(&text, s->words, s->count, sizeof *s->words, compare_strings) != NULL;
    return DQ_OK;
}

static dq_status count_kept(stop_words *s, const dq_tensor *in, int64_t *kept, dq_error *err)
{
    *kept = 0;
    for (size_t i = 0; i < in->count; i++) {
        bool stops;
        DQ_TRY(is_stop_word(s, strings_of(in)[i], &stops, err));
        *kept += !stops;
    }
    return DQ_OK;
}

static dq_status normalizer_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    const char *action = dq_node_string(call->node, "case_change_action", "NONE");
    char text[DQ_SHAPE_TEXT];
    if (in->rank < 1 || in->rank > 2 || (in->rank == 2 && in->dims[0] != 1))
        return dq_call_fail_input(call, err, 0, "has shape %s, expected a list or one row",
                                  dq_shape_text(in->rank, in->dims, text));
    if (strcmp(action, "NONE") != 0 && strcmp(action, "LOWER") != 0 && strcmp(action, "UPPER") != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'case_change_action' is '%s', expected NONE, LOWER or UPPER", action);
    DQ_TRY(dq_call_need(call, 0));
    stop_words words;
    int64_t kept = 0;
    dq_status status = read_stop_words(call, &words, err);
    if (status == DQ_OK)
        status = count_kept(&words, in, &kept, err);
    free_stop_words(&words);
    DQ_TRY(status);
    if (kept == 0) /* no word kept: the result is one empty string */
        kept = 1;
    const int64_t dims[2] = {in->rank == 2 ? 1 : kept, kept};
    return dq_call_output(call, 0, DQ_STRING, in->rank, dims, err);
}

static dq_status normalize(const dq_op_call *call, stop_words *words, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    const char *action = dq_node_string(call->node, "case_change_action", "NONE");
    dq_string *to = call->out[0]->data;
    to[0] = (dq_string){"", 0};
    for (size_t i = 0; i < in->count; i++) {
        dq_string text = strings_of(in)[i];
        bool stops;
        DQ_TRY(is_stop_word(words, text, &stops, err));
        if (stops)
            continue;
        if (*action != 'N' && !dq_text_change(call->strings, text, *action == 'U', &text))
            return dq_no_memory(err, text.length, "a string");
        *to++ = text;
    }
    return DQ_OK;
}

static dq_status normalizer_run(const dq_op_call *call, dq_error *err)
{
    stop_words words;
    dq_status status = read_stop_words(call, &words, err);
    if (status == DQ_OK)
        status = normalize(call, &words, err);
    free_stop_words(&words);
    return status;
}

const dq_op_impl dq_op_string_normalizer = {normalizer_infer, NULL, normalizer_run, 0};

/* ---- RegexFullMatch ------------------------------------------------------------------------------------ */

static dq_status match_infer(dq_op_call *call, dq_error *err)
{
    if (!dq_node_attr(call->node, "pattern"))
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has no attribute 'pattern'");
    return dq_call_output_like(call, 0, DQ_BOOL, call->in[0], err);
}

static dq_status match_prepare(dq_op_call *call, dq_error *err)
{
    dq_regex *regex = NULL;
    DQ_TRY(dq_regex_compile(dq_node_attr(call->node, "pattern")->u.s, call->arena, &regex, err));
    call->state = regex;
    call->scratch_size = dq_regex_scratch(regex);
    return DQ_OK;
}

static dq_status match_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    for (size_t i = 0; i < call->in[0]->count; i++)
        dq_data(call->out[0], uint8_t)[i] =
            dq_regex_matches(call->state, strings_of(call->in[0])[i], call->scratch);
    return DQ_OK;
}

const dq_op_impl dq_op_regex_full_match = {match_infer, match_prepare, match_run, 0};
