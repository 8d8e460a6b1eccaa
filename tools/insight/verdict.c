/* SPDX-License-Identifier: Apache-2.0 */
/* Names a cause and a cure for the worst values. The rules are one table: the first row whose condition holds
 * gives the cause. Values are ranked by the noise that they add themselves, relative to their signal. */
#include "insight/compare.h"
#include "io/common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Thresholds ---------------------------------------------------------------------------------------- */

/* A uniform 8-bit quantizer whose range fits gives 30 to 50 dB. Below, something can be gained. */
static const double GOOD_SQNR = 30;
/* More than half of the floor's noise comes from clipped values: a wider range removes more than it adds. */
static const double CLIP_SHARE = 0.5;
/* With less than a quarter of the range in use, two of the bits are lost. */
static const double RANGE_USED = 0.25;
/* All but one value in a thousand lie in a quarter of the range: rare outliers cost two of the bits. */
static const double OUTLIER_SHARE = 0.999, OUTLIER_RANGE = 0.25;
/* Ends that calibration rounds differ by less than this part of the range. */
static const double RANGE_SLACK = 0.05;
/* Rounding errors have a mean near 0. A mean of almost half a quantum is no rounding. */
static const double SHIFTED_QUANTA = 0.4;
/* Channels of an eighth of the largest channel's range lose three bits to a common scale. */
static const double CHANNEL_RATIO = 8, CHANNEL_SQNR = 20;
/* Rounding gives 0.289 quanta; more than a whole quantum is a different or clipped weight. */
static const double WEIGHT_QUANTA = 1;
/* A value whose noise so far is this many times its own has it from the nodes before. */
static const double INHERITED = 4;
/* Relative difference of scales that are meant to be equal. */
static const double SCALE_TOLERANCE = 1e-6;

enum { MOST_VERDICTS = 64 };

/* ---- Conditions ---------------------------------------------------------------------------------------- */

/* A value, and one of the constants of its node where a rule is about constants. */
typedef struct subject {
    const insight_comparison *c;
    const insight_pair *p;
    const insight_weight *w; /* NULL: none */
} subject;

/* Whether the noise comes from quantizing the result, and not from weights and bias. */
static bool is_floor(const subject *s)
{
    return s->p->has_floor && s->p->floor.noise >= s->p->own.noise / 2;
}

static bool is_range_at_fault(const subject *s)
{
    return s->p->has_range && is_floor(s);
}

static double zero_point_of(const dq_tensor *t)
{
    return t ? dq_tensor_value(t, 0) : 0;
}

static bool is_mismatch(const subject *s)
{
    const insight_pair *p = s->p;
    if (!p->has_range || !p->dequantized_scale_data)
        return false;
    const double scale = dq_tensor_value(p->dequantized_scale_data, 0);
    return fabs(scale - p->range.scale) > SCALE_TOLERANCE * p->range.scale ||
           zero_point_of(p->dequantized_zero_point_data) != p->range.zero_point;
}

static double clip_share(const insight_pair *p)
{
    return p->floor.noise > 0 ? p->range.clip_noise / p->floor.noise : 0;
}

/* Values clipped at one end while the other is unused: the range is as wide as the values, and displaced. */
static bool is_displaced(const subject *s)
{
    const insight_range *r = &s->p->range;
    if (!is_range_at_fault(s) || clip_share(s->p) < CLIP_SHARE)
        return false;
    const double width = r->high - r->low, needed = fmax(r->max, 0) - fmin(r->min, 0);
    const bool one_end = (r->clipped_high > 0) != (r->clipped_low > 0);
    return one_end && needed <= width * (1 + RANGE_SLACK);
}

static bool is_clipped(const subject *s)
{
    return is_range_at_fault(s) && clip_share(s->p) >= CLIP_SHARE;
}

static bool is_wide(const subject *s)
{
    return is_range_at_fault(s) && insight_range_used(&s->p->range) < RANGE_USED;
}

static bool has_outliers(const subject *s)
{
    const insight_range *r = &s->p->range;
    return is_range_at_fault(s) &&
           insight_percentile(r, OUTLIER_SHARE) < OUTLIER_RANGE * fmax(fabs(r->min), fabs(r->max));
}

static bool is_bias_overflow(const subject *s)
{
    return s->w && s->w->is_bias && s->w->saturated;
}

static bool is_bad_scale(const subject *s)
{
    return s->w && s->w->bad_scales;
}

/* All elements are off by about the same number of quanta. */
static bool is_weight_shifted(const subject *s)
{
    if (!s->w || s->w->is_bias)
        return false;
    const double shift = s->w->bias_over_scale,
                 rest = s->w->rmse_over_scale * s->w->rmse_over_scale - shift * shift;
    return fabs(shift) >= SHIFTED_QUANTA && rest <= fmax(0.25, shift * shift / 4);
}

static bool is_channel_spread(const subject *s)
{
    return s->w && !s->w->is_bias && !s->w->per_channel && s->w->channel_ratio >= CHANNEL_RATIO &&
           s->w->worst_channel_sqnr < CHANNEL_SQNR;
}

static bool do_weights_differ(const subject *s)
{
    return s->w && s->w->rmse_over_scale > WEIGHT_QUANTA;
}

static bool is_sensitive(const subject *s)
{
    return !s->w;
}

/* ---- What shows it ------------------------------------------------------------------------------------- */

typedef const char *(*explain_fn)(const subject *s, insight_pool *pool);

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100 * (double)part / (double)whole : 0;
}

static const char *why_mismatch(const subject *s, insight_pool *pool)
{
    const insight_pair *p = s->p;
    return insight_format(pool,
                          "QuantizeLinear has scale %.6g and zero point %g, DequantizeLinear %.6g and %g",
                          p->range.scale, p->range.zero_point, dq_tensor_value(p->dequantized_scale_data, 0),
                          zero_point_of(p->dequantized_zero_point_data));
}

static const char *why_range(const subject *s, insight_pool *pool)
{
    const insight_range *r = &s->p->range;
    return insight_format(pool, "values %.4g … %.4g, range %.4g … %.4g: %.2f %% clipped low, %.2f %% high",
                          r->min, r->max, r->low, r->high, percent(r->clipped_low, r->count),
                          percent(r->clipped_high, r->count));
}

static const char *why_wide(const subject *s, insight_pool *pool)
{
    const insight_range *r = &s->p->range;
    return insight_format(
        pool, "values %.4g … %.4g use %.1f %% of the range %.4g … %.4g, %llu of %llu quantized values",
        r->min, r->max, 100 * insight_range_used(r), r->low, r->high,
        (unsigned long long)insight_codes_used(r), (unsigned long long)(r->q_max - r->q_min + 1));
}

static const char *why_outliers(const subject *s, insight_pool *pool)
{
    const insight_range *r = &s->p->range;
    return insight_format(
        pool, "99.9 %% of the values are within %.4g, the largest is %.4g; entropy %.2f bits",
        insight_percentile(r, OUTLIER_SHARE), fmax(fabs(r->min), fabs(r->max)), insight_entropy(r));
}

static const char *why_overflow(const subject *s, insight_pool *pool)
{
    return insight_format(pool,
                          "%llu elements of bias '%s' are at an end of int32 and the float bias is beyond it",
                          (unsigned long long)s->w->saturated, s->w->name);
}

static const char *why_scale(const subject *s, insight_pool *pool)
{
    return insight_format(pool, "%zu scales of '%s' are zero, denormal or not finite", s->w->bad_scales,
                          s->w->name);
}

static const char *why_shifted(const subject *s, insight_pool *pool)
{
    return insight_format(pool, "weights '%s' are off by %.3g quanta on average", s->w->name,
                          s->w->bias_over_scale);
}

static const char *why_channels(const subject *s, insight_pool *pool)
{
    return insight_format(
        pool,
        "one scale for the %zu channels of '%s', whose ranges differ by a factor of %.3g; channel %zu "
        "has an SQNR of %.1f dB",
        s->w->channels, s->w->name, s->w->channel_ratio, s->w->worst_channel, s->w->worst_channel_sqnr);
}

static const char *why_weights(const subject *s, insight_pool *pool)
{
    return insight_format(pool, "'%s' is %.3g quanta (rms) from the float values, expected 0.289 of rounding",
                          s->w->name, s->w->rmse_over_scale);
}

static const char *why_sensitive(const subject *s, insight_pool *pool)
{
    const double own = insight_sqnr(&s->p->own);
    return s->p->has_floor
               ? insight_format(pool, "adds noise at an SQNR of %.1f dB, of quantizing its result %.1f dB",
                                own, insight_sqnr(&s->p->floor))
               : insight_format(pool, "adds noise at an SQNR of %.1f dB", own);
}

static const char *why_accumulation(const subject *s, insight_pool *pool)
{
    return insight_format(pool, "SQNR so far %.1f dB, own %.1f dB: the noise comes from the nodes before",
                          insight_sqnr(&s->p->so_far), insight_sqnr(&s->p->own));
}

/* ---- The table ----------------------------------------------------------------------------------------- */

typedef struct rule {
    insight_cause cause;
    bool (*holds)(const subject *s);
    explain_fn why;
    bool is_always; /* holds whatever noise there is: the model contradicts itself */
    bool has_range; /* a new range mends it */
    bool excludes;  /* leaving the node in float mends it */
    const char *cure;
} rule;

static const rule rules[] = {
    {INSIGHT_CAUSE_MISMATCH, is_mismatch, why_mismatch, true, true, false,
     "give QuantizeLinear and DequantizeLinear the same scale and zero point"},
    {INSIGHT_CAUSE_BIAS_OVERFLOW, is_bias_overflow, why_overflow, true, false, true,
     "give the weights of these channels a larger scale, so that input scale * weight scale can hold the "
     "bias"},
    {INSIGHT_CAUSE_BAD_SCALE, is_bad_scale, why_scale, true, false, true,
     "quantize the weights again with a smallest scale above 1e-30"},
    {INSIGHT_CAUSE_ZERO_POINT, is_displaced, why_range, false, true, false,
     "correct the zero point: the range is wide enough but displaced"},
    {INSIGHT_CAUSE_CLIPPED, is_clipped, why_range, false, true, false,
     "widen the range: calibrate with these inputs, or with MinMax instead of a percentile"},
    {INSIGHT_CAUSE_WIDE, is_wide, why_wide, false, true, false,
     "narrow the range: calibrate again with inputs like these, by percentile or entropy"},
    {INSIGHT_CAUSE_OUTLIERS, has_outliers, why_outliers, false, false, true,
     "calibrate by percentile or entropy; if accuracy drops, use 16-bit activations here or exclude the "
     "node"},
    {INSIGHT_CAUSE_WEIGHT_ZERO_POINT, is_weight_shifted, why_shifted, false, false, true,
     "correct the zero point of the weights, or quantize them again"},
    {INSIGHT_CAUSE_CHANNELS, is_channel_spread, why_channels, false, false, true,
     "quantize the weights per channel (per_channel=True)"},
    {INSIGHT_CAUSE_WEIGHTS_DIFFER, do_weights_differ, why_weights, false, false, true,
     "quantize this node's weights again from the float model"},
    {INSIGHT_CAUSE_SENSITIVE, is_sensitive, why_sensitive, false, false, true,
     "leave the node in float, or give it 16-bit activations"},
};

static const char accumulation_cure[] =
    "no single node is at fault: use 16-bit activations, or exclude the nodes that leave-one-out ranks first";

const char *const insight_cause_names[INSIGHT_CAUSES] = {
    [INSIGHT_CAUSE_MISMATCH] = "mismatch",       [INSIGHT_CAUSE_ZERO_POINT] = "zero_point",
    [INSIGHT_CAUSE_CLIPPED] = "clipped",         [INSIGHT_CAUSE_WIDE] = "wide_range",
    [INSIGHT_CAUSE_OUTLIERS] = "outliers",       [INSIGHT_CAUSE_BIAS_OVERFLOW] = "bias_overflow",
    [INSIGHT_CAUSE_BAD_SCALE] = "bad_scale",     [INSIGHT_CAUSE_WEIGHT_ZERO_POINT] = "weight_zero_point",
    [INSIGHT_CAUSE_CHANNELS] = "channel_spread", [INSIGHT_CAUSE_WEIGHTS_DIFFER] = "weights_differ",
    [INSIGHT_CAUSE_SENSITIVE] = "sensitive",     [INSIGHT_CAUSE_ACCUMULATION] = "accumulation",
};

const char *const insight_cause_titles[INSIGHT_CAUSES] = {
    [INSIGHT_CAUSE_MISMATCH] = "quantized and dequantized differently",
    [INSIGHT_CAUSE_ZERO_POINT] = "wrong zero point",
    [INSIGHT_CAUSE_CLIPPED] = "clipped range",
    [INSIGHT_CAUSE_WIDE] = "range far too wide",
    [INSIGHT_CAUSE_OUTLIERS] = "outliers widen the range",
    [INSIGHT_CAUSE_BIAS_OVERFLOW] = "bias overflows int32",
    [INSIGHT_CAUSE_BAD_SCALE] = "scale is zero or denormal",
    [INSIGHT_CAUSE_WEIGHT_ZERO_POINT] = "wrong zero point of weights",
    [INSIGHT_CAUSE_CHANNELS] = "channels of different ranges",
    [INSIGHT_CAUSE_WEIGHTS_DIFFER] = "weights differ from the float model",
    [INSIGHT_CAUSE_SENSITIVE] = "sensitive node",
    [INSIGHT_CAUSE_ACCUMULATION] = "accumulated noise",
};

/* ---- Judging ------------------------------------------------------------------------------------------- */

/* The type's grid over the values that were seen, and zero: whole powers are not needed. */
static void suggest_range(const insight_pair *p, insight_verdict *v)
{
    const insight_range *r = &p->range;
    const double low = fmin(r->min, 0), high = fmax(r->max, 0), steps = (double)(r->q_max - r->q_min);
    const bool symmetric = r->q_min < 0 && r->zero_point == 0 && low < 0;
    if (!(high > low))
        return;
    v->has_fix = true;
    v->new_scale = symmetric ? fmax(high / (double)r->q_max, low / (double)r->q_min) : (high - low) / steps;
    v->new_zero_point = symmetric ? 0 : nearbyint((double)r->q_min - low / v->new_scale);
}

static bool same_text(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

/* The first rule that holds, for the value alone and with each constant of its node. */
static const rule *find_rule(subject *s, size_t *weight)
{
    const insight_comparison *c = s->c;
    const bool is_bad = s->p->has_own && insight_sqnr(&s->p->own) < GOOD_SQNR;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (!is_bad && !rules[i].is_always)
            continue;
        *weight = INSIGHT_NONE;
        s->w = NULL;
        if (rules[i].holds(s))
            return &rules[i];
        for (size_t k = 0; k < c->weight_count; k++) {
            s->w = &c->weights[k];
            *weight = k;
            if (same_text(s->w->node, s->p->node) && !is_floor(s) && rules[i].holds(s))
                return &rules[i];
        }
    }
    return NULL;
}

static int worst_first(const void *a, const void *b)
{
    const insight_verdict *x = a, *y = b;
    if (x->noise_ratio != y->noise_ratio)
        return x->noise_ratio < y->noise_ratio ? 1 : -1;
    return (x->pair > y->pair) - (x->pair < y->pair);
}

static dq_status add_verdict(insight_comparison *c, size_t pair, const rule *found, subject *s, size_t weight,
                             dq_error *err)
{
    const insight_pair *p = &c->pairs[pair];
    s->w = weight == INSIGHT_NONE ? NULL : &c->weights[weight];
    insight_verdict *v = &c->verdicts[c->verdict_count++];
    *v = (insight_verdict){.cause = found->cause,
                           .pair = pair,
                           .weight = weight,
                           .noise_ratio = insight_noise_ratio(&p->own),
                           .why = found->why(s, &c->pool),
                           .cure = found->cure,
                           .exclude = found->excludes ? p->float_node : NULL};
    if (found->has_range)
        suggest_range(p, v);
    return v->why ? DQ_OK : io_no_memory(err);
}

/* Where no value is at fault by itself, the one with the most inherited noise. */
static dq_status judge_accumulation(insight_comparison *c, dq_error *err)
{
    size_t worst = INSIGHT_NONE;
    for (size_t i = 0; i < c->pair_count; i++) {
        const insight_pair *p = &c->pairs[i];
        const double ratio = insight_noise_ratio(&p->so_far);
        if (insight_sqnr(&p->so_far) < GOOD_SQNR && p->has_own &&
            ratio > INHERITED * insight_noise_ratio(&p->own) &&
            (worst == INSIGHT_NONE || ratio > insight_noise_ratio(&c->pairs[worst].so_far)))
            worst = i;
    }
    if (worst == INSIGHT_NONE)
        return DQ_OK;
    const subject s = {.c = c, .p = &c->pairs[worst]};
    c->verdicts[c->verdict_count++] = (insight_verdict){.cause = INSIGHT_CAUSE_ACCUMULATION,
                                                        .pair = worst,
                                                        .weight = INSIGHT_NONE,
                                                        .noise_ratio = insight_noise_ratio(&s.p->so_far),
                                                        .why = why_accumulation(&s, &c->pool),
                                                        .cure = accumulation_cure};
    return c->verdicts[c->verdict_count - 1].why ? DQ_OK : io_no_memory(err);
}

dq_status insight_judge(insight_comparison *c, dq_error *err)
{
    dq_status status = DQ_OK;
    c->verdicts = insight_alloc(&c->pool, c->pair_count + 1, sizeof *c->verdicts);
    if (!c->verdicts)
        return io_no_memory(err);
    for (size_t i = 0; i < c->pair_count && status == DQ_OK; i++) {
        subject s = {.c = c, .p = &c->pairs[i]};
        size_t weight = INSIGHT_NONE;
        const rule *found = find_rule(&s, &weight);
        if (found)
            status = add_verdict(c, i, found, &s, weight, err);
    }
    if (status == DQ_OK && !c->verdict_count)
        status = judge_accumulation(c, err);
    if (c->verdict_count)
        qsort(c->verdicts, c->verdict_count, sizeof *c->verdicts, worst_first);
    c->verdict_count = c->verdict_count < MOST_VERDICTS ? c->verdict_count : MOST_VERDICTS;
    return status;
}
