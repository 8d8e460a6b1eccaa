/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/text/regex.h"

#include <string.h>

enum { MAX_STEPS = 20000, MAX_REPEATS = 1000, MAX_DEPTH = 200, ANY_REPEATS = -1 };

/* The first three kinds consume a character; the next four are assertions. */
typedef enum kind { CHAR, SET, ANY, BEGIN, END, WORD_EDGE, NO_WORD_EDGE, SPLIT, JUMP, MATCH } kind;

typedef struct range {
    uint32_t low, high;
} range;

typedef struct step {
    kind what;
    bool except;       /* SET: matches characters outside the ranges */
    uint32_t a, b;     /* CHAR: the code point; SET: first range and number of ranges */
    int32_t to, or_to; /* targets relative to this step; JUMP: `to`; SPLIT: both */
} step;

struct dq_regex {
    step *steps;
    range *ranges;
    uint32_t count, range_count, step_capacity, range_capacity;
    bool fold, dot_all;
};

/* ---- Compiling ----------------------------------------------------------------------------------------- */

typedef struct parser {
    dq_string text;
    size_t at;
    unsigned depth;
    bool quoted; /* between \Q and \E */
    dq_regex *r;
    dq_arena *arena;
    dq_error *err;
} parser;

static dq_status bad(parser *p, const char *what)
{
    return dq_fail(p->err, DQ_BAD_MODEL, "the pattern '%.100s' %s at byte %zu", p->text.bytes, what, p->at);
}

static bool ended(const parser *p)
{
    return p->at >= p->text.length;
}

static bool looks_at(const parser *p, const char *word)
{
    size_t length = strlen(word);
    return p->text.length - p->at >= length && memcmp(p->text.bytes + p->at, word, length) == 0;
}

static bool take(parser *p, const char *word)
{
    bool there = looks_at(p, word);
    p->at += there ? strlen(word) : 0;
    return there;
}

static uint32_t next_code(parser *p)
{
    size_t length;
    uint32_t code = dq_text_code(p->text, p->at, &length);
    p->at += length;
    return code;
}

static dq_status emit(parser *p, step s)
{
    dq_regex *r = p->r;
    if (r->count == MAX_STEPS)
        return dq_fail(p->err, DQ_OUT_OF_MEMORY, "the pattern needs more than %d steps", MAX_STEPS);
    if (r->count == r->step_capacity) {
        uint32_t capacity = r->step_capacity ? 2 * r->step_capacity : 64;
        step *grown = DQ_NEW_ARRAY(p->arena, capacity, step);
        if (!grown)
            return dq_no_memory(p->err, capacity * sizeof *grown, "a pattern");
        if (r->count)
            memcpy(grown, r->steps, r->count * sizeof *grown);
        r->steps = grown;
        r->step_capacity = capacity;
    }
    r->steps[r->count++] = s;
    return DQ_OK;
}

static dq_status add_range(parser *p, uint32_t low, uint32_t high)
{
    dq_regex *r = p->r;
    if (r->range_count == r->range_capacity) {
        uint32_t capacity = r->range_capacity ? 2 * r->range_capacity : 32;
        range *grown = DQ_NEW_ARRAY(p->arena, capacity, range);
        if (!grown)
            return dq_no_memory(p->err, capacity * sizeof *grown, "a pattern");
        if (r->range_count)
            memcpy(grown, r->ranges, r->range_count * sizeof *grown);
        r->ranges = grown;
        r->range_capacity = capacity;
    }
    r->ranges[r->range_count++] = (range){low, high};
    return DQ_OK;
}

/* The ranges of a named class as pairs of characters: "09AZ" has two. */
static const char *class_of(char name)
{
    switch (name) {
    case 'd':
        return "09";
    case 'w':
        return "09AZaz__";
    default:
        return "\t\n\f\r  ";
    }
}

static dq_status add_class(parser *p, const char *pairs, bool except)
{
    uint32_t from = 0;
    for (; *pairs; pairs += 2) { /* pairs are in ascending order */
        uint32_t low = (unsigned char)pairs[0], high = (unsigned char)pairs[1];
        if (!except)
            DQ_TRY(add_range(p, low, high));
        else if (low > from)
            DQ_TRY(add_range(p, from, low - 1));
        from = high + 1;
    }
    return except ? add_range(p, from, 0x10FFFF) : DQ_OK;
}

static bool is_class(char c)
{
    return c != 0 && strchr("dwsDWS", c) != NULL;
}

static dq_status class_escape(parser *p)
{
    char c = p->text.bytes[p->at++];
    bool except = c < 'a';
    return add_class(p, class_of((char)(except ? c + 32 : c)), except);
}

static int hex(char c)
{
    const char *digits = "0123456789abcdef",
               *found = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* Reads the code point after \x: two digits, or up to six in braces. */
static dq_status hex_code(parser *p, uint32_t *code)
{
    bool braces = take(p, "{");
    size_t digits = 0;
    *code = 0;
    while (!ended(p) && hex(p->text.bytes[p->at]) >= 0 && digits < (braces ? 6u : 2u)) {
        *code = *code * 16 + (uint32_t)hex(p->text.bytes[p->at++]);
        digits++;
    }
    if (digits == 0 || (!braces && digits < 2) || (braces && !take(p, "}")) || *code > 0x10FFFF)
        return bad(p, "has a wrong number");
    return DQ_OK;
}

/* Reads an escaped character; p->at is after the backslash. */
static dq_status escaped_code(parser *p, uint32_t *code)
{
    static const char names[] = "tnrfva", code_points[] = "\t\n\r\f\v\a";
    if (ended(p))
        return bad(p, "ends in a backslash");
    char c = p->text.bytes[p->at];
    const char *name = c ? strchr(names, c) : NULL;
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (take(p, "x"))
        return hex_code(p, code);
    if (letter && !name)
        return dq_fail(p->err, DQ_UNSUPPORTED, "the pattern '%.100s' has '\\%c', which is not known here",
                       p->text.bytes, c);
    *code = name ? (unsigned char)code_points[name - names] : next_code(p);
    p->at += name ? 1 : 0;
    return DQ_OK;
}

static dq_status named_class(parser *p)
{
    static const struct {
        const char *name, *pairs;
    } classes[] = {{"[:alnum:]", "09AZaz"},   {"[:alpha:]", "AZaz"},    {"[:digit:]", "09"},
                   {"[:lower:]", "az"},       {"[:upper:]", "AZ"},      {"[:space:]", "\t\r  "},
                   {"[:punct:]", "!/:@[`{~"}, {"[:word:]", "09AZ__az"}, {"[:xdigit:]", "09AFaf"},
                   {"[:blank:]", "\t\t  "}};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (take(p, classes[i].name))
            return add_class(p, classes[i].pairs, false);
    return bad(p, "has a class that is not known");
}

static dq_status set_item(parser *p)
{
    uint32_t low, high;
    if (looks_at(p, "[:"))
        return named_class(p);
    if (take(p, "\\")) {
        if (!ended(p) && is_class(p->text.bytes[p->at]))
            return class_escape(p);
        DQ_TRY(escaped_code(p, &low));
    } else {
        low = next_code(p);
    }
    high = low;
    if (p->text.length - p->at >= 2 && p->text.bytes[p->at] == '-' && p->text.bytes[p->at + 1] != ']') {
        p->at++;
        high = 0;
        if (take(p, "\\"))
            DQ_TRY(escaped_code(p, &high));
        else
            high = next_code(p);
    }
    return high < low ? bad(p, "has a range that ends before it begins") : add_range(p, low, high);
}

static dq_status parse_set(parser *p)
{
    step s = {.what = SET, .except = take(p, "^"), .a = p->r->range_count};
    for (bool first = true; first || !looks_at(p, "]"); first = false) {
        if (ended(p))
            return bad(p, "has a set without an end");
        DQ_TRY(set_item(p));
    }
    p->at++;
    s.b = p->r->range_count - s.a;
    return emit(p, s);
}

static dq_status parse_choice(parser *p);

static dq_status parse_group(parser *p)
{
    if (take(p, "?")) {
        bool plain = take(p, ":"),
             named = !plain && (take(p, "P<") || (!looks_at(p, "<=") && !looks_at(p, "<!") && take(p, "<")));
        while (named && !ended(p) && p->text.bytes[p->at] != '>')
            p->at++;
        if (named && !take(p, ">"))
            return bad(p, "has a name without an end");
        if (!plain && !named)
            return dq_fail(p->err, DQ_UNSUPPORTED, "the pattern '%.100s' has a group that is not known here",
                           p->text.bytes);
    }
    if (++p->depth > MAX_DEPTH)
        return bad(p, "nests too deep");
    DQ_TRY(parse_choice(p));
    p->depth--;
    return take(p, ")") ? DQ_OK : bad(p, "has a group without an end");
}

static dq_status parse_escape(parser *p)
{
    uint32_t code;
    if (!ended(p) && is_class(p->text.bytes[p->at])) {
        step s = {.what = SET, .a = p->r->range_count};
        DQ_TRY(class_escape(p));
        s.b = p->r->range_count - s.a;
        return emit(p, s);
    }
    if (take(p, "A"))
        return emit(p, (step){.what = BEGIN});
    if (take(p, "z"))
        return emit(p, (step){.what = END});
    if (take(p, "b"))
        return emit(p, (step){.what = WORD_EDGE});
    if (take(p, "B"))
        return emit(p, (step){.what = NO_WORD_EDGE});
    if (take(p, "Q")) {
        p->quoted = true;
        return DQ_OK;
    }
    DQ_TRY(escaped_code(p, &code));
    return emit(p, (step){.what = CHAR, .a = code});
}

static dq_status parse_quoted(parser *p)
{
    if (!take(p, "\\E")) {
        DQ_TRY(emit(p, (step){.what = CHAR, .a = next_code(p)}));
        p->quoted = !take(p, "\\E");
        return DQ_OK;
    }
    p->quoted = false;
    return DQ_OK;
}

static dq_status parse_atom(parser *p)
{
    if (p->quoted)
        return parse_quoted(p);
    if (take(p, "("))
        return parse_group(p);
    if (take(p, "["))
        return parse_set(p);
    if (take(p, "."))
        return emit(p, (step){.what = ANY});
    if (take(p, "^"))
        return emit(p, (step){.what = BEGIN});
    if (take(p, "$"))
        return emit(p, (step){.what = END});
    if (take(p, "\\"))
        return parse_escape(p);
    if (looks_at(p, "*") || looks_at(p, "+") || looks_at(p, "?"))
        return bad(p, "repeats nothing");
    return emit(p, (step){.what = CHAR, .a = next_code(p)});
}

/* Inserts a step before the steps from `at` on. Targets are relative and within a piece or at its end, so
 * that a piece may be moved and copied. */
static dq_status insert(parser *p, uint32_t at, step s)
{
    DQ_TRY(emit(p, s));
    step *steps = p->r->steps;
    memmove(steps + at + 1, steps + at, (p->r->count - 1 - at) * sizeof *steps);
    steps[at] = s;
    return DQ_OK;
}

static dq_status copy(parser *p, uint32_t from, uint32_t size)
{
    for (uint32_t i = from; i < from + size; i++)
        DQ_TRY(emit(p, p->r->steps[i]));
    return DQ_OK;
}

/* Repeats the piece from `start` on, `least` to `most` times. */
static dq_status repeat(parser *p, uint32_t start, int least, int most)
{
    int32_t size = (int32_t)(p->r->count - start), each = size + 1;
    uint32_t master = start, n = (uint32_t)size;
    if (most == 0)
        p->r->count = start;
    for (int i = 1; i < least; i++)
        DQ_TRY(copy(p, master, n));
    for (int i = least; i < most; i++) {
        step split = {.what = SPLIT, .to = 1, .or_to = (most - i) * each};
        if (i > 0) {
            DQ_TRY(emit(p, split));
            DQ_TRY(copy(p, master, n));
        } else {
            DQ_TRY(insert(p, start, split));
            master++;
        }
    }
    if (most != ANY_REPEATS)
        return DQ_OK;
    if (least > 0)
        return emit(p, (step){.what = SPLIT, .to = -size, .or_to = 1});
    DQ_TRY(insert(p, start, (step){.what = SPLIT, .to = 1, .or_to = size + 2}));
    return emit(p, (step){.what = JUMP, .to = -each});
}

static bool read_count(parser *p, int *count)
{
    size_t from = p->at;
    *count = 0;
    while (!ended(p) && p->text.bytes[p->at] >= '0' && p->text.bytes[p->at] <= '9' && *count <= MAX_REPEATS)
        *count = *count * 10 + (p->text.bytes[p->at++] - '0');
    return p->at > from;
}

/* Reads {n}, {n,} or {n,m}; anything else in braces is literal text. */
static bool braces(parser *p, int *least, int *most)
{
    size_t from = p->at;
    bool counts = take(p, "{") && read_count(p, least);
    *most = *least;
    if (counts && take(p, ",") && !read_count(p, most))
        *most = ANY_REPEATS;
    if (counts && take(p, "}"))
        return true;
    p->at = from;
    return false;
}

static dq_status parse_piece(parser *p)
{
    uint32_t start = p->r->count;
    DQ_TRY(parse_atom(p));
    int least = 0, most = 0;
    while (!p->quoted && !ended(p)) {
        if (looks_at(p, "*") || looks_at(p, "+")) {
            least = p->text.bytes[p->at++] == '+';
            most = ANY_REPEATS;
        } else if (take(p, "?"))
            most = 1;
        else if (!braces(p, &least, &most))
            return DQ_OK;
        take(p, "?"); /* lazy: the same strings match */
        if (least > MAX_REPEATS || most > MAX_REPEATS || (most != ANY_REPEATS && most < least))
            return bad(p, "has a wrong count");
        if (p->r->count > start)
            DQ_TRY(repeat(p, start, least, most));
        least = most = 0;
    }
    return DQ_OK;
}

static dq_status parse_choice(parser *p)
{
    /* `pending` is a linked list of jumps to the end: each holds the index of the one before. */
    uint32_t start = p->r->count, pending = UINT32_MAX;
    while (!ended(p) && (p->quoted || !looks_at(p, ")"))) {
        if (p->quoted || !take(p, "|")) {
            DQ_TRY(parse_piece(p));
            continue;
        }
        int32_t size = (int32_t)(p->r->count - start);
        DQ_TRY(insert(p, start, (step){.what = SPLIT, .to = 1, .or_to = size + 2}));
        DQ_TRY(emit(p, (step){.what = JUMP, .a = pending}));
        pending = p->r->count - 1;
        start = p->r->count;
    }
    while (pending != UINT32_MAX) {
        step *jump = &p->r->steps[pending];
        jump->to = (int32_t)(p->r->count - pending);
        pending = jump->a;
    }
    return DQ_OK;
}

dq_status dq_regex_compile(dq_string pattern, dq_arena *arena, dq_regex **out, dq_error *err)
{
    dq_regex *r = DQ_NEW(arena, dq_regex);
    parser p = {.text = pattern, .r = r, .arena = arena, .err = err};
    if (!r)
        return dq_no_memory(err, sizeof *r, "a pattern");
    while (looks_at(&p, "(?i)") || looks_at(&p, "(?s)")) {
        r->fold = r->fold || p.text.bytes[p.at + 2] == 'i';
        r->dot_all = r->dot_all || p.text.bytes[p.at + 2] == 's';
        p.at += 4;
    }
    DQ_TRY(parse_choice(&p));
    if (!ended(&p))
        return bad(&p, "closes a group that is not open");
    *out = r;
    return emit(&p, (step){.what = MATCH});
}

/* ---- Matching ------------------------------------------------------------------------------------------ */

typedef struct matcher {
    const dq_regex *r;
    dq_string text;
    size_t at;
    uint32_t *now, *next, *stack, *mark; /* mark[i]: last round in which step i was reached */
    uint32_t now_count, next_count, round;
} matcher;

size_t dq_regex_scratch(const dq_regex *r)
{
    return (size_t)r->count * 5 * sizeof(uint32_t);
}

static bool is_word(dq_string text, size_t at)
{
    char c = at < text.length ? text.bytes[at] : 0;
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool holds(const matcher *m, kind what)
{
    bool edge = (m->at > 0 && is_word(m->text, m->at - 1)) != is_word(m->text, m->at);
    switch (what) {
    case BEGIN:
        return m->at == 0;
    case END:
        return m->at == m->text.length;
    case WORD_EDGE:
        return edge;
    default:
        return !edge;
    }
}

/* Adds the steps that consume a character (or end the match) and are reachable from `start` without consuming
 * one. */
static void reach(matcher *m, uint32_t start)
{
    uint32_t top = 0;
    m->stack[top++] = start;
    while (top > 0) {
        uint32_t i = m->stack[--top];
        const step *s = &m->r->steps[i];
        if (m->mark[i] == m->round)
            continue;
        m->mark[i] = m->round;
        if (s->what == JUMP || s->what == SPLIT)
            m->stack[top++] = (uint32_t)((int32_t)i + s->to);
        if (s->what == SPLIT)
            m->stack[top++] = (uint32_t)((int32_t)i + s->or_to);
        if (s->what >= BEGIN && s->what <= NO_WORD_EDGE && holds(m, s->what))
            m->stack[top++] = i + 1;
        if (s->what <= ANY || s->what == MATCH)
            m->next[m->next_count++] = i;
    }
}

static bool in_set(const dq_regex *r, const step *s, uint32_t code)
{
    for (uint32_t k = s->a; k < s->a + s->b; k++)
        if (code >= r->ranges[k].low && code <= r->ranges[k].high)
            return true;
    return false;
}

static bool reads(const dq_regex *r, const step *s, uint32_t code)
{
    uint32_t other = code;
    if (r->fold)
        other = dq_code_lower(code) == code ? dq_code_upper(code) : dq_code_lower(code);
    switch (s->what) {
    case CHAR:
        return code == s->a || other == s->a;
    case SET:
        return (in_set(r, s, code) || in_set(r, s, other)) != s->except;
    case ANY:
        return code != '\n' || r->dot_all;
    default:
        return false;
    }
}

static void start_round(matcher *m)
{
    uint32_t *kept = m->now;
    m->now = m->next;
    m->now_count = m->next_count;
    m->next = kept;
    m->next_count = 0;
    m->round++;
}

bool dq_regex_matches(const dq_regex *r, dq_string text, void *scratch)
{
    uint32_t *capacity = scratch, n = r->count;
    matcher m = {.r = r,
                 .text = text,
                 .now = capacity,
                 .next = capacity + n,
                 .mark = capacity + 2 * (size_t)n,
                 .stack = capacity + 3 * (size_t)n};
    memset(m.mark, 0, n * sizeof *m.mark);
    m.round = 1;
    reach(&m, 0);
    for (size_t at = 0; at < text.length && m.next_count > 0;) {
        size_t length;
        uint32_t code = dq_text_code(text, at, &length);
        start_round(&m);
        m.at = at += length;
        for (uint32_t k = 0; k < m.now_count; k++)
            if (reads(r, &r->steps[m.now[k]], code))
                reach(&m, m.now[k] + 1);
    }
    for (uint32_t k = 0; m.at == text.length && k < m.next_count; k++)
        if (r->steps[m.next[k]].what == MATCH)
            return true;
    return false;
}
