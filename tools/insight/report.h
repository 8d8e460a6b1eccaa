/* SPDX-License-Identifier: Apache-2.0 */
/* Analyses as one HTML file that needs nothing else: a template (insight/report/) with the JSON in it.
 * docs/report.md describes the page. */
#ifndef DQ_TOOLS_INSIGHT_REPORT_H
#define DQ_TOOLS_INSIGHT_REPORT_H

#include "insight/json.h"

/** Bytes of JSON that a report holds at most, unless it says otherwise. */
#define INSIGHT_REPORT_BYTES ((size_t)8 << 20)

/** What a report shows; what is NULL is left out. */
typedef struct insight_report {
    const insight_comparison *comparison;
    const insight_model *model; /**< with its plan, where there is one: the graph and the memory */
    const char *bench;          /**< the JSON of dqrun bench --profile */
    size_t limit;               /**< bytes of JSON; 0: INSIGHT_REPORT_BYTES */
} insight_report;

/** Writes the page. Over the limit, histograms and channels of the least important layers are left out, then
 * the ends of long lists; the page says so. */
dq_status insight_write_report(const insight_report *report, FILE *to, dq_error *err);

/** The template, before and after the JSON; made by insight/report/embed.py. */
extern const unsigned char insight_report_head[], insight_report_tail[];
extern const size_t insight_report_head_size, insight_report_tail_size;

/* ---- Parts that report.c calls ------------------------------------------------------------------------- */

/** What insight_cut_json leaves out. */
typedef struct insight_cut {
    const char *list;         /**< only this member of the document's object */
    size_t most;              /**< items that stay, the first ones */
    const bool *keeps;        /**< by item: its details stay; NULL: those of all */
    const char *const *drops; /**< the arrays that are details, ends with NULL: they become [] */
    size_t total, kept;       /**< set: items that were there, and that stayed */
} insight_cut;

/** Copies a document of cli_json, less what the cuts leave out, as one that HTML can hold: "<" becomes
 * \u003c. */
void insight_cut_json(const char *json, size_t size, insight_cut *cuts, size_t cut_count, FILE *to);

#endif
