/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as JSON. Values, weights and verdicts refer to each other by index. */
#include "insight/json.h"

#include <math.h>

static void put_index(cli_json *json, const char *key, size_t index)
{
    if (index == INSIGHT_NONE)
        cli_json_null(json, key);
    else
        cli_json_size(json, key, index);
}

static void put_error(cli_json *json, const char *key, const insight_error *e, bool there, double scale)
{
    if (!there || !e->count) {
        cli_json_null(json, key);
        return;
    }
    cli_json_begin_object(json, key);
    cli_json_double(json, "sqnr_db", insight_sqnr(e));
    cli_json_double(json, "cosine", insight_cosine(e));
    cli_json_double(json, "largest", e->largest);
    cli_json_double(json, "rmse", insight_rmse(e));
    cli_json_double(json, "mean", insight_mean_error(e));
    if (scale > 0) {
        cli_json_double(json, "rmse_over_scale", insight_rmse(e) / scale);
        cli_json_double(json, "largest_quanta", e->largest / scale);
    }
    cli_json_size(json, "elements", e->count);
    cli_json_size(json, "not_finite", e->not_finite);
    put_index(json, "worst_input", e->inputs ? e->worst_input : INSIGHT_NONE);
    cli_json_double(json, "worst_sqnr_db", e->inputs ? e->worst_sqnr : (double)NAN);
    cli_json_end_object(json);
}

static void put_histogram(const insight_range *r, cli_json *json)
{
    cli_json_begin_object(json, "histogram");
    cli_json_double(json, "low", r->bins_low);
    cli_json_double(json, "high", r->bins_high);
    cli_json_begin_array(json, "counts");
    for (size_t i = 0; i < INSIGHT_BINS && r->has_bins; i++)
        cli_json_size(json, NULL, r->bins[i]);
    cli_json_end_array(json);
    cli_json_end_object(json);
    cli_json_begin_array(json, "quantized_counts");
    for (int64_t i = 0; r->q_max - r->q_min <= UINT8_MAX && i <= r->q_max - r->q_min; i++)
        cli_json_size(json, NULL, r->codes[i]);
    cli_json_end_array(json);
}

static void put_range(const insight_pair *p, cli_json *json)
{
    const insight_range *r = &p->range;
    if (!p->has_range) {
        cli_json_null(json, "range");
        return;
    }
    cli_json_begin_object(json, "range");
    cli_json_double(json, "scale", r->scale);
    cli_json_double(json, "zero_point", r->zero_point);
    cli_json_double(json, "low", r->low);
    cli_json_double(json, "high", r->high);
    cli_json_double(json, "min", r->min);
    cli_json_double(json, "max", r->max);
    cli_json_size(json, "elements", r->count);
    cli_json_size(json, "clipped_low", r->clipped_low);
    cli_json_size(json, "clipped_high", r->clipped_high);
    cli_json_double(json, "clip_noise_share", p->floor.noise > 0 ? r->clip_noise / p->floor.noise : 0);
    cli_json_size(json, "quantized_values", (size_t)(r->q_max - r->q_min + 1));
    cli_json_size(json, "quantized_values_used", insight_codes_used(r));
    cli_json_double(json, "entropy_bits", insight_entropy(r));
    cli_json_double(json, "at_zero_point", r->count ? (double)r->at_zero_point / (double)r->count : 0);
    cli_json_double(json, "range_used", insight_range_used(r));
    cli_json_double(json, "p999", insight_percentile(r, 0.999));
    put_histogram(r, json);
    cli_json_end_object(json);
}

static void put_pair(const insight_pair *p, bool has_gain, cli_json *json)
{
    const double scale = p->has_range ? p->range.scale : 0;
    cli_json_begin_object(json, NULL);
    cli_json_text(json, "name", p->name);
    cli_json_text(json, "matched", p->codes ? p->codes : p->got);
    cli_json_text(json, "node", p->node);
    cli_json_text(json, "float_node", p->float_node);
    cli_json_text(json, "op", p->float_op);
    cli_json_text(json, "quantizer", p->quantizer);
    cli_json_text(json, "type", p->codes ? dq_dtype_name(p->dtype) : "float");
    put_error(json, "own", &p->own, p->has_own, scale);
    put_error(json, "so_far", &p->so_far, true, scale);
    put_error(json, "floor", &p->floor, p->has_floor, scale);
    put_range(p, json);
    if (has_gain && !isnan(p->gain_db) && p->codes)
        cli_json_double(json, "gain_db", p->gain_db);
    else
        cli_json_null(json, "gain_db");
    cli_json_end_object(json);
}

static void put_weight(const insight_weight *w, bool has_gain, cli_json *json)
{
    cli_json_begin_object(json, NULL);
    cli_json_text(json, "name", w->name);
    cli_json_text(json, "float_name", w->float_name);
    cli_json_text(json, "node", w->node);
    cli_json_text(json, "float_node", w->float_node);
    cli_json_text(json, "type", dq_dtype_name(w->dtype));
    cli_json_bool(json, "is_bias", w->is_bias);
    cli_json_bool(json, "per_channel", w->per_channel);
    put_error(json, "error", &w->error, true, 0);
    cli_json_double(json, "rmse_over_scale", w->rmse_over_scale);
    cli_json_double(json, "mean_quanta", w->bias_over_scale);
    cli_json_double(json, "worst_channel_sqnr_db", w->worst_channel_sqnr);
    cli_json_size(json, "worst_channel", w->worst_channel);
    cli_json_double(json, "channel_ratio", w->channel_ratio);
    cli_json_size(json, "dead_channels", w->dead_channels);
    cli_json_size(json, "bad_scales", w->bad_scales);
    cli_json_size(json, "saturated", w->saturated);
    cli_json_begin_array(json, "channel_sqnr_db");
    for (size_t i = 0; i < w->channels; i++)
        cli_json_double(json, NULL, w->channel_sqnr[i]);
    cli_json_end_array(json);
    cli_json_begin_array(json, "channel_range");
    for (size_t i = 0; i < w->channels; i++)
        cli_json_double(json, NULL, w->channel_range[i]);
    cli_json_end_array(json);
    if (has_gain && !isnan(w->gain_db))
        cli_json_double(json, "gain_db", w->gain_db);
    else
        cli_json_null(json, "gain_db");
    cli_json_end_object(json);
}

static void put_output(const insight_comparison *c, const insight_output *o, cli_json *json)
{
    cli_json_begin_object(json, NULL);
    cli_json_text(json, "name", o->name);
    put_error(json, "error", &o->error, true, 0);
    if (o->has_classes) {
        cli_json_size(json, "rows", o->rows);
        cli_json_begin_array(json, "flips");
        for (size_t i = 0; i < o->flips; i++)
            cli_json_size(json, NULL, o->flipped[i]);
        cli_json_end_array(json);
    }
    if (c->has_labels && o->labelled) {
        cli_json_size(json, "labelled", o->labelled);
        cli_json_size(json, "correct", o->correct);
        cli_json_size(json, "float_correct", o->float_correct);
    }
    cli_json_end_object(json);
}

static void put_verdict(const insight_comparison *c, const insight_verdict *v, cli_json *json)
{
    const insight_pair *p = &c->pairs[v->pair];
    cli_json_begin_object(json, NULL);
    cli_json_text(json, "cause", insight_cause_names[v->cause]);
    cli_json_text(json, "title", insight_cause_titles[v->cause]);
    cli_json_text(json, "value", p->name);
    cli_json_text(json, "node", p->node ? p->node : p->quantizer);
    cli_json_size(json, "pair", v->pair);
    put_index(json, "weight", v->weight);
    cli_json_double(json, "noise_ratio", v->noise_ratio);
    cli_json_text(json, "why", v->why);
    cli_json_text(json, "cure", v->cure);
    cli_json_text(json, "exclude", v->exclude);
    if (v->has_fix) {
        cli_json_begin_object(json, "suggested");
        cli_json_text(json, "scale_name", p->scale);
        cli_json_double(json, "scale", v->new_scale);
        cli_json_double(json, "zero_point", v->new_zero_point);
        cli_json_end_object(json);
    } else {
        cli_json_null(json, "suggested");
    }
    cli_json_end_object(json);
}

void insight_comparison_json(const insight_comparison *c, cli_json *json)
{
    cli_json_begin_object(json, NULL);
    cli_json_text(json, "model", c->quantized.name);
    cli_json_text(json, "float_model", c->reference.name);
    cli_json_size(json, "inputs", c->input_count);
    cli_json_size(json, "matched", c->pair_count);
    cli_json_size(json, "folded", c->folded_count);
    cli_json_size(json, "float_values", c->float_value_count);
    cli_json_begin_array(json, "unmatched");
    for (size_t i = 0; i < c->unmatched_count; i++)
        cli_json_text(json, NULL, c->unmatched[i]);
    cli_json_end_array(json);
    cli_json_text(json, "own_missing", c->own_missing);
    cli_json_text(json, "leave_one_out_missing", c->leave_one_out_missing);
    cli_json_size(json, "leave_one_out_runs", c->runs);
    cli_json_begin_array(json, "verdicts");
    for (size_t i = 0; i < c->verdict_count; i++)
        put_verdict(c, &c->verdicts[i], json);
    cli_json_end_array(json);
    cli_json_begin_array(json, "outputs");
    for (size_t i = 0; i < c->output_count; i++)
        put_output(c, &c->outputs[i], json);
    cli_json_end_array(json);
    cli_json_begin_array(json, "values");
    for (size_t i = 0; i < c->pair_count; i++)
        put_pair(&c->pairs[i], c->has_leave_one_out, json);
    cli_json_end_array(json);
    cli_json_begin_array(json, "weights");
    for (size_t i = 0; i < c->weight_count; i++)
        put_weight(&c->weights[i], c->has_leave_one_out, json);
    cli_json_end_array(json);
    cli_json_end_object(json);
}
