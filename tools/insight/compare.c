/* SPDX-License-Identifier: Apache-2.0 */
#include "insight/compare.h"

/* What follows relies on nodes that fit their schemas. */
static dq_status check(const dq_model *model, dq_error *err)
{
    return dq_model_check(model, NULL, NULL, err);
}

dq_status insight_compare(const insight_request *r, insight_comparison *out, dq_error *err)
{
    *out = (insight_comparison){0};
    dq_status status = check(r->quantized, err);
    if (status == DQ_OK && r->reference)
        status = check(r->reference, err);
    if (status == DQ_OK)
        status = insight_inspect(r->quantized, r->options, NULL, NULL, &out->quantized, err);
    if (status == DQ_OK && r->reference)
        status = insight_inspect(r->reference, r->options, NULL, NULL, &out->reference, err);
    if (status == DQ_OK)
        status = insight_match(r, out, err);
    if (status == DQ_OK)
        status = insight_match_weights(out, err);
    if (status == DQ_OK)
        status = insight_observe(r, out, err);
    if (status == DQ_OK && r->leave_one_out)
        status = insight_leave_one_out(r, out, err);
    return status == DQ_OK ? insight_judge(out, err) : status;
}

void insight_comparison_free(insight_comparison *c)
{
    insight_model_free(&c->quantized);
    insight_model_free(&c->reference);
    insight_pool_free(&c->pool);
    *c = (insight_comparison){0};
}
