/* SPDX-License-Identifier: Apache-2.0 */
#include "insight/report.h"

#include <string.h>

typedef struct copier {
    const char *at, *end;
    FILE *to;
    insight_cut *cuts;
    size_t cut_count;
} copier;

static void put(const copier *c, char byte)
{
    if (!c->to)
        return;
    if (byte == '<')
        fputs("\\u003c", c->to);
    else
        fputc(byte, c->to);
}

/* Copies up to the character after a text that begins here. */
static void copy_text(copier *c)
{
    put(c, *c->at++);
    while (c->at < c->end && *c->at != '"') {
        if (*c->at == '\\')
            put(c, *c->at++);
        if (c->at < c->end)
            put(c, *c->at++);
    }
    if (c->at < c->end)
        put(c, *c->at++);
}

static void copy_space(copier *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n'))
        put(c, *c->at++);
}

static bool is_key(const char *key, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(key, name, length) == 0;
}

/* Copies a value whole; with `drops`, arrays of those names in it become empty. */
static void copy_value(copier *c, const char *const *drops)
{
    size_t depth = 0;
    const char *key = NULL; /* the last text, without its quotation marks */
    size_t length = 0;
    do {
        if (*c->at == '"') {
            key = c->at + 1;
            copy_text(c);
            length = (size_t)(c->at - key) - 1;
            continue;
        }
        const bool opens = *c->at == '[' || *c->at == '{';
        bool is_dropped = false;
        for (size_t i = 0; *c->at == '[' && key && drops && drops[i]; i++)
            is_dropped = is_dropped || is_key(key, length, drops[i]);
        if (is_dropped) {
            copier skipped = *c;
            skipped.to = NULL;
            copy_value(&skipped, NULL);
            c->at = skipped.at;
            put(c, '[');
            put(c, ']');
            key = NULL;
            continue;
        }
        if (opens)
            depth++;
        else if (*c->at == ']' || *c->at == '}')
            depth--;
        else if (*c->at == ',')
            key = NULL;
        put(c, *c->at++);
    } while (c->at < c->end && (depth || (*c->at != ',' && *c->at != ']' && *c->at != '}')));
}

/* An array of the document's object that a cut names. */
static void copy_list(copier *c, insight_cut *cut)
{
    put(c, *c->at++);
    for (cut->total = cut->kept = 0; c->at < c->end && *c->at != ']'; cut->total++) {
        FILE *to = c->to;
        const bool stays = cut->total < cut->most;
        c->to = stays ? to : NULL;
        if (*c->at == ',')
            put(c, *c->at++);
        copy_space(c);
        copy_value(c, cut->keeps && !cut->keeps[cut->total] ? cut->drops : NULL);
        cut->kept += stays;
        c->to = to;
    }
    if (c->at < c->end)
        put(c, *c->at++);
}

void insight_cut_json(const char *json, size_t size, insight_cut *cuts, size_t cut_count, FILE *to)
{
    copier c = {json, json + size, to, cuts, cut_count};
    for (size_t i = 0; i < cut_count; i++)
        cuts[i].total = cuts[i].kept = 0;
    if (size)
        put(&c, *c.at++); /* the brace */
    while (c.at < c.end && *c.at != '}') {
        while (c.at < c.end && *c.at != '"')
            put(&c, *c.at++);
        const char *key = c.at + 1;
        if (c.at < c.end)
            copy_text(&c);
        const size_t length = (size_t)(c.at - key) - 1;
        while (c.at < c.end && (*c.at == ':' || *c.at == ' '))
            put(&c, *c.at++);
        insight_cut *cut = NULL;
        for (size_t i = 0; i < cut_count && !cut; i++)
            cut = is_key(key, length, cuts[i].list) ? &cuts[i] : NULL;
        if (cut && c.at < c.end && *c.at == '[')
            copy_list(&c, cut);
        else if (c.at < c.end)
            copy_value(&c, NULL);
    }
    while (c.at < c.end)
        put(&c, *c.at++);
}
