/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/algorithm.h"

#include "base/cpu.h"
#include "kernels/kernels.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DQ_ALGORITHM_TABLE(family, table) extern const dq_algorithm_table table;
#include "ops/algorithm_tables.def"
#undef DQ_ALGORITHM_TABLE

static const dq_algorithm_table *const tables[] = {
#define DQ_ALGORITHM_TABLE(family, table) &table,
#include "ops/algorithm_tables.def"
#undef DQ_ALGORITHM_TABLE
};

const dq_algorithm_table *dq_algorithm_table_get(size_t i)
{
    return i < DQ_ALGORITHM_FAMILIES ? tables[i] : NULL;
}

const char *dq_algorithm_name(const dq_algorithm *row)
{
    return strchr(row->id, '=') + 1;
}

bool dq_not_applicable(dq_reason *reason, const char *format, ...)
{
    va_list args;
    if (!reason)
        return false;
    va_start(args, format);
    vsnprintf(reason->text, sizeof reason->text, format, args);
    va_end(args);
    return false;
}

bool dq_always_applicable(const void *problem, dq_reason *reason)
{
    (void)problem;
    (void)reason;
    return true;
}

/* ---- Costs -------------------------------------------------------------------------------------------- */

typedef struct rate {
    const char *id; /* of the row */
    unsigned isa;
    double macs, bytes; /* in a nanosecond */
    double call;        /* nanoseconds */
} rate;

static const rate rates[] = {
#define DQ_COST(table, row, level, macs, bytes, call) {#table "=" #row, DQ_ISA_##level, macs, bytes, call},
#include "ops/costs.def"
#undef DQ_COST
};

/* Rates of the highest level in the mask that costs.def lists; a level without rates has those of the next
 * lower. */
static const rate *find_rate(const char *id, unsigned isa)
{
    const rate *best = NULL;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if ((rates[i].isa & isa) && (!best || rates[i].isa > best->isa) && strcmp(rates[i].id, id) == 0)
            best = &rates[i];
    return best;
}

double dq_algorithm_cost(const dq_algorithm *row, const dq_algorithm_work *work, unsigned isa)
{
    const rate *r = find_rate(row->id, isa);
    return r ? work->macs / r->macs + work->bytes / r->bytes + work->calls * r->call : HUGE_VAL;
}

/* ---- Forced algorithms -------------------------------------------------------------------------------- */

static bool is_text(const char *s, const char *text, size_t length)
{
    return strlen(s) == length && memcmp(s, text, length) == 0;
}

static dq_status read_one(const char *text, size_t length, dq_forced_algorithms *forced, dq_error *err)
{
    const char *equals = memchr(text, '=', length);
    const size_t table = equals ? (size_t)(equals - text) : length;
    for (size_t i = 0; i < DQ_ALGORITHM_FAMILIES; i++) {
        if (!is_text(tables[i]->name, text, table))
            continue;
        for (size_t j = 0; j < tables[i]->count; j++)
            if (is_text(tables[i]->rows[j].id, text, length)) {
                forced->row[i] = &tables[i]->rows[j];
                return DQ_OK;
            }
        return dq_fail(err, DQ_INVALID_ARGUMENT,
                       "'%.*s' is no row of the algorithm table '%s'; 'dqrun algorithms' lists them",
                       (int)length, text, tables[i]->name);
    }
    return dq_fail(err, DQ_INVALID_ARGUMENT,
                   "'%.*s' names no algorithm table, expected TABLE=ROW; 'dqrun algorithms' lists them",
                   (int)length, text);
}

dq_status dq_forced_algorithms_read(const char *text, dq_forced_algorithms *forced, dq_error *err)
{
    memset(forced, 0, sizeof *forced);
    while (text && *text) {
        const size_t length = strcspn(text, ",");
        DQ_TRY(read_one(text, length, forced, err));
        text += length + (text[length] == ',');
    }
    return DQ_OK;
}

/* ---- The choice --------------------------------------------------------------------------------------- */

typedef struct candidate {
    bool applicable, of_result; /* of_result: the row has the result that the shapes determine */
    double cost;
    dq_algorithm_work work;
    dq_reason reason;
} candidate;

enum { MAX_ROWS = 16, LINE = 192 };

static candidate consider(const dq_algorithm *row, const void *problem, int result, unsigned isa,
                          bool with_reason)
{
    candidate c = {.of_result = row->result == result};
    c.applicable = row->is_applicable(problem, with_reason ? &c.reason : NULL);
    if (!c.applicable)
        return c;
    c.work = row->work(problem);
    c.cost = dq_algorithm_cost(row, &c.work, isa);
    return c;
}

/* Considers each row. Returns the row of the lowest cost among the applicable ones that have the result that
 * the shapes determine. NULL: there is none. */
static const dq_algorithm *find_cheapest(const dq_algorithm_table *table, const void *problem, unsigned isa,
                                         bool with_reasons, candidate candidates[MAX_ROWS])
{
    const int result = table->result ? table->result(problem) : table->rows[0].result;
    const dq_algorithm *cheapest = NULL;
    double least = HUGE_VAL;
    for (size_t i = 0; i < table->count; i++) {
        const candidate *c = &candidates[i];
        candidates[i] = consider(&table->rows[i], problem, result, isa, with_reasons);
        if (c->applicable && c->of_result && c->cost < least) {
            least = c->cost;
            cheapest = &table->rows[i];
        }
    }
    return cheapest;
}

/* Example: "12.3 us (5.9 M multiply-adds, 0.4 KB moved, 8 calls)" */
static int describe(const candidate *c, char *to, size_t size)
{
    return snprintf(to, size, "%.4g us (%.4g M multiply-adds, %.4g KB moved, %.4g calls)", c->cost / 1e3,
                    c->work.macs / 1e6, c->work.bytes / 1e3, c->work.calls);
}

/* Describes the chosen row, then each of the others after "; ". */
static const char *explain(const dq_op_call *call, const dq_algorithm_table *table,
                           const dq_algorithm *chosen, const candidate *candidates, bool forced)
{
    const size_t size = (table->count + 1) * LINE;
    char *text = dq_arena_alloc(call->arena, size, 1);
    if (!text)
        return NULL;
    char *to = text, *end = text + size;
    to += snprintf(to, LINE, "algorithm %s%s, ", chosen->id, forced ? ", forced" : "");
    to += describe(&candidates[chosen - table->rows], to, LINE);
    for (size_t i = 0; i < table->count; i++) {
        const candidate *c = &candidates[i];
        if (&table->rows[i] == chosen)
            continue;
        to += snprintf(to, (size_t)(end - to), "; %s: ", dq_algorithm_name(&table->rows[i]));
        if (!c->applicable)
            to += snprintf(to, (size_t)(end - to), "not applicable: %s", c->reason.text);
        else if (!c->of_result)
            to += snprintf(to, (size_t)(end - to), "these shapes have a result of other bits");
        else
            to += describe(c, to, (size_t)(end - to));
    }
    return text;
}

const dq_algorithm *dq_algorithm_cheapest(dq_algorithm_family family, const void *problem, unsigned isa)
{
    candidate candidates[MAX_ROWS];
    return find_cheapest(tables[family], problem, isa, false, candidates);
}

dq_status dq_algorithm_choose(dq_op_call *call, dq_algorithm_family family, const void *problem,
                              const dq_algorithm **row, dq_error *err)
{
    const dq_algorithm_table *table = tables[family];
    const dq_algorithm *forced = call->forced ? call->forced->row[family] : NULL;
    candidate candidates[MAX_ROWS];
    const dq_algorithm *chosen =
        find_cheapest(table, problem, call->kernels->isa, call->explain || forced, candidates);
    if (forced) {
        const candidate *c = &candidates[forced - table->rows];
        if (!c->applicable)
            return dq_call_fail(call, err, DQ_INVALID_ARGUMENT, "algorithm %s is not applicable: %s",
                                forced->id, c->reason.text);
        chosen = forced;
    }
    if (!chosen)
        return dq_call_fail(call, err, DQ_INTERNAL, "no algorithm of %s is applicable", table->name);
    call->algorithm = chosen;
    if (call->explain)
        call->explanation = explain(call, table, chosen, candidates, forced != NULL);
    *row = chosen;
    return DQ_OK;
}
