/* SPDX-License-Identifier: Apache-2.0 */
/* Measures of error and of quantization, which accumulate over inputs. docs/compare.md defines each. */
#ifndef DQ_TOOLS_INSIGHT_MEASURE_H
#define DQ_TOOLS_INSIGHT_MEASURE_H

#include "insight/pool.h"

/** Of a difference, over all elements of all inputs. Pairs of which one is NaN or infinite are counted alone.
 */
typedef struct insight_error {
    uint64_t count, not_finite;
    double signal, noise;        /**< sums of ref² and of (got - ref)² */
    double product, got_squares; /**< sums of ref·got and got² */
    double bias;                 /**< sum of got - ref */
    double largest;              /**< largest |got - ref| */
    size_t inputs;
    size_t worst_input; /**< the input of the lowest SQNR, and that SQNR: */
    double worst_sqnr;
} insight_error;

/** Adds the elements of one input; input numbers count from 0. Tensors of different counts add nothing and
 * return false. */
bool insight_error_add(insight_error *e, const dq_tensor *reference, const dq_tensor *got, size_t input);
/** Adds one element, without an input that it belongs to. */
void insight_error_add_element(insight_error *e, double reference, double got);

/** Signal to quantization noise in dB: 10·log10(signal / noise). Infinity where nothing differs; NaN before
 * the first element; -Infinity for noise on a reference of zeros. */
double insight_sqnr(const insight_error *e);
/** noise / signal, 0 where nothing differs; infinite for noise on zeros. */
double insight_noise_ratio(const insight_error *e);
double insight_cosine(const insight_error *e);
double insight_rmse(const insight_error *e);
double insight_mean_error(const insight_error *e);

/** Bins of the histogram of reference values. */
enum { INSIGHT_BINS = 128 };

/** How a quantizer's range fits the reference values. */
typedef struct insight_range {
    double scale, zero_point; /**< of the quantizer, per tensor */
    double low, high;         /**< real numbers of the smallest and largest quantized value */
    int64_t q_min, q_max;
    uint64_t count, clipped_low, clipped_high; /**< values beyond the ends by more than half a quantum */
    double clip_noise;                         /**< sum of squares of what clipping cuts off */
    double min, max;                           /**< of the reference values */
    uint64_t at_zero_point;
    uint64_t *codes; /**< how often each quantized value is taken, from q_min; NULL over 16 bits */
    uint64_t bins[INSIGHT_BINS]; /**< histogram of the reference values over [bins_low, bins_high] */
    double bins_low, bins_high;
    bool has_bins;
} insight_range;

/** Starts with the quantizer's parameters. DQ_UNSUPPORTED (without a message) for types that are no integers
 * of up to 16 bits. */
dq_status insight_range_start(insight_range *r, dq_dtype dtype, double scale, double zero_point,
                              insight_pool *pool, dq_error *err);
void insight_range_add(insight_range *r, const dq_tensor *reference);
/** Of the quantized values that the reference takes: how many, and their entropy in bits. */
uint64_t insight_codes_used(const insight_range *r);
double insight_entropy(const insight_range *r);
/** The part of the covered range that the reference values use, 0 to 1. */
double insight_range_used(const insight_range *r);
/** The smallest t for which a share of at least `share` of the reference values has |x| <= t, to a bin's
 * width. */
double insight_percentile(const insight_range *r, double share);

/** dq_tensor_value, without its cost for the types of most weights. */
double insight_element(const dq_tensor *t, size_t i);

/** The ends of an integer type's quantized values; false for other types. */
bool insight_code_range(dq_dtype dtype, int64_t *min, int64_t *max);

#endif
