/* SPDX-License-Identifier: Apache-2.0 */
/* Where a quantized model loses accuracy: its values against those of the float model (dqrun compare).
 *
 * Three runs of each input give three errors of each value. All run the graph as written, without fusing:
 *
 *     float model                x ---- A ---- a ---- B ---- b        reference values x, a, b
 *     quantized model            x --q- A --q- a' --q- B --q- b'      so far:  b' against b
 *     quantized model, cut       a --q = a"                           floor:   a" against a
 *                                a" ------------- B --q- b"           own:     b" against B(a") of the float
 * model
 *
 * In the cut model each node reads the reference values, merely quantized and dequantized, instead of what
 * the node before it has computed. docs/compare.md defines the measures. */
#ifndef DQ_TOOLS_INSIGHT_COMPARE_H
#define DQ_TOOLS_INSIGHT_COMPARE_H

#include "insight/inspect.h"
#include "insight/measure.h"

/** A value of the float model and the value of the quantized model that stands for it. */
typedef struct insight_pair {
    const char *name;  /**< in the float model */
    const char *got;   /**< of the quantized model: the value before quantization, else as it is */
    const char *codes; /**< its quantized values; NULL: the value is not quantized */
    const char
        *observed;     /**< the float value that later nodes see; made by an edit where the model has none */
    bool is_edit;      /**< `observed` does not exist in the file */
    bool is_qoperator; /**< the node computes quantized values itself */
    const char *node;  /**< of the quantized model, that computes `got` or `codes`; NULL: an input */
    const char *float_node,
        *float_op;         /**< of the float model, that computes `name`; NULL: an input, or --ref */
    const char *quantizer; /**< the node that quantizes; NULL: none */
    const char *dequantized_scale, *dequantized_zero_point; /**< names that DequantizeLinear reads */
    const char *scale, *zero_point;                         /**< names; zero_point NULL: none */
    const dq_tensor *scale_data, *zero_point_data, *dequantized_zero_point_data, *dequantized_scale_data;
    dq_dtype dtype; /**< of the quantized values */
    size_t order;   /**< of its node in the quantized model */

    insight_error so_far, own, floor;
    bool has_own, has_floor, has_range;
    insight_range range;
    double gain_db; /**< what leaving this quantizer out gives the outputs; NaN: not measured */
} insight_pair;

/** A constant of the quantized model and the one of the float model. */
typedef struct insight_weight {
    const char *name;        /**< of the quantized values */
    const char *float_name;  /**< NULL with no float model */
    const char *dequantized; /**< the value that a node reads: of DequantizeLinear; NULL: QOperator */
    const char *node;        /**< of the quantized model, that reads it */
    const char *float_node;
    bool is_bias;
    dq_dtype dtype;
    insight_error error;
    double rmse_over_scale; /**< 1/sqrt(12) = 0.289 for an ideal quantizer */
    double bias_over_scale; /**< mean error in quanta */
    size_t channels;        /**< 1: per tensor */
    bool per_channel;       /**< the quantizer's scales are per channel or block */
    double *channel_sqnr;   /**< `channels` entries, of the node's output channels */
    double *channel_range;  /**< largest |w| of the float weights, by channel */
    double worst_channel_sqnr,
        channel_ratio; /**< channel_ratio: largest over smallest range of live channels */
    size_t worst_channel;
    size_t dead_channels; /**< channels whose quantized weights are all zero while the float ones are not */
    size_t bad_scales;    /**< scales that are zero, denormal or not finite */
    uint64_t saturated;   /**< elements at an end of the type where the float value is beyond it */
    double gain_db;
} insight_weight;

typedef struct insight_output {
    const char *name;
    insight_error error;
    bool has_classes; /**< of shape [N, classes] */
    size_t rows, flips, flip_limit;
    size_t *flipped; /**< row numbers over all inputs, up to flip_limit */
    size_t correct, float_correct, labelled;
} insight_output;

typedef enum insight_cause {
    INSIGHT_CAUSE_MISMATCH,
    INSIGHT_CAUSE_ZERO_POINT,
    INSIGHT_CAUSE_CLIPPED,
    INSIGHT_CAUSE_WIDE,
    INSIGHT_CAUSE_OUTLIERS,
    INSIGHT_CAUSE_BIAS_OVERFLOW,
    INSIGHT_CAUSE_BAD_SCALE,
    INSIGHT_CAUSE_WEIGHT_ZERO_POINT,
    INSIGHT_CAUSE_CHANNELS,
    INSIGHT_CAUSE_WEIGHTS_DIFFER,
    INSIGHT_CAUSE_SENSITIVE,
    INSIGHT_CAUSE_ACCUMULATION,
    INSIGHT_CAUSES
} insight_cause;

typedef struct insight_verdict {
    insight_cause cause;
    size_t pair;        /**< index */
    size_t weight;      /**< index; INSIGHT_NONE */
    double noise_ratio; /**< of the error that ranks it */
    const char *why;    /**< the numbers that show the cause */
    const char *cure;
    const char *exclude; /**< the node of the float model for nodes_to_exclude; NULL: no use */
    bool has_fix;        /**< new parameters of the quantizer: */
    double new_scale, new_zero_point;
} insight_verdict;

typedef struct insight_map {
    const char *float_name, *name;
} insight_map;

typedef struct insight_comparison {
    insight_pool pool;
    insight_model quantized, reference; /**< `reference` is empty with --ref */
    size_t pair_count, weight_count, output_count, verdict_count, unmatched_count, input_count;
    size_t folded_count;      /**< values that are gone with an operator that reads them */
    size_t float_value_count; /**< values of the float model that could be matched */
    insight_pair *pairs;      /**< in the order of the quantized model */
    insight_weight *weights;
    insight_output *outputs;
    insight_verdict *verdicts; /**< the worst first */
    const char **unmatched;
    const char *own_missing; /**< why there are no own errors and floors; NULL: there are */
    const char *leave_one_out_missing;
    bool has_leave_one_out, has_labels;
    size_t runs; /**< of leave one out */
} insight_comparison;

/** Feeds input number `index`: sets `tensors` of the models' inputs by number; they live until the next call.
 */
typedef struct insight_feed {
    size_t count;
    dq_status (*read)(void *arg, size_t index, dq_tensor *const **tensors, dq_error *err);
    void *arg;
    /** Called before each input with the stage's name and the part of it that is done; a result other than 0
     * cancels. NULL: none. */
    int (*progress)(void *arg, const char *stage, double done);
} insight_feed;

/** What is asked for. */
typedef struct insight_request {
    dq_model *quantized, *reference; /**< reference NULL: reference values come from: */
    size_t ref_count;
    const char *const *ref_names;
    const dq_tensor *const *ref_tensors;
    const void *quantized_bytes, *reference_bytes; /**< the files, for edits */
    size_t quantized_size, reference_size;
    const char *quantized_dir, *reference_dir; /**< of external data */
    dq_schemas *schemas;
    const dq_session_options *options;
    const insight_map *maps;
    size_t map_count;
    bool leave_one_out;
    const int64_t *labels; /**< NULL: none */
    size_t label_count;
    insight_feed feed;
} insight_request;

/** Compares. Free with insight_comparison_free in every case; models must outlive the result. */
dq_status insight_compare(const insight_request *request, insight_comparison *out, dq_error *err);
void insight_comparison_free(insight_comparison *c);

/** The bytes of the quantized model with the ranges that the verdicts suggest, malloc'ed; `changed` counts
 * the quantizers. */
dq_status insight_fix(const insight_request *request, const insight_comparison *c, void **bytes, size_t *size,
                      size_t *changed, dq_error *err);

/** "clipped", … and a few words for people. */
extern const char *const insight_cause_names[INSIGHT_CAUSES];
extern const char *const insight_cause_titles[INSIGHT_CAUSES];

/* ---- Parts that compare.c calls ------------------------------------------------------------------------ */

dq_status insight_match(const insight_request *r, insight_comparison *c, dq_error *err);
/** Extends `to`, the float value of each value of the quantized model (INSIGHT_NONE: not known), by
 * structure. */
dq_status insight_align(insight_comparison *c, size_t *to, dq_error *err);
dq_status insight_match_weights(insight_comparison *c, dq_error *err);
/** A quantized constant of the quantized model as a float tensor. */
dq_status insight_dequantized(const insight_comparison *c, size_t value, dq_tensor **out, dq_error *err);
dq_status insight_observe(const insight_request *r, insight_comparison *c, dq_error *err);
dq_status insight_leave_one_out(const insight_request *r, insight_comparison *c, dq_error *err);
dq_status insight_judge(insight_comparison *c, dq_error *err);

/** The node of that model with this output; INSIGHT_NONE. */
size_t insight_producer(const insight_model *m, const char *value);
/** The value of that name; INSIGHT_NONE. */
size_t insight_value_named(const insight_model *m, const char *name);
/** `name` without the suffixes that quantizers add. Returns buffer. */
const char *insight_base_name(const char *name, char *buffer, size_t size);

#endif
