/* SPDX-License-Identifier: Apache-2.0 */
/* What a model holds and what a session makes of it (dqrun inspect). */
#ifndef DQ_TOOLS_INSIGHT_INSPECT_H
#define DQ_TOOLS_INSIGHT_INSPECT_H

#include "insight/pool.h"

#include <stdio.h>

/** Instead of an index: there is none. */
#define INSIGHT_NONE SIZE_MAX

/** The arithmetic that computes a node or step. */
typedef enum insight_compute {
    INSIGHT_UNUSED,      /**< no output needs the node */
    INSIGHT_PLANNING,    /**< computed once, while the session plans: constants */
    INSIGHT_CONVERT,     /**< QuantizeLinear or DequantizeLinear on its own */
    INSIGHT_INTEGER,     /**< on quantized values */
    INSIGHT_TILED,       /**< float arithmetic on tiles that are dequantized and quantized on the way */
    INSIGHT_WEIGHT_ONLY, /**< float activations, quantized weights */
    INSIGHT_FLOAT,       /**< float, with any inputs */
    INSIGHT_OTHER,       /**< shapes, indices, masks, strings */
    INSIGHT_COMPUTES     /**< how many there are */
} insight_compute;

/** "integer", "float" …: the words of tables and JSON. */
extern const char *const insight_compute_names[INSIGHT_COMPUTES];

typedef struct insight_quantization {
    bool quantized;
    dq_granularity granularity;
    int64_t axis, block_size; /**< as in dq_quantization */
    bool has_scale;           /**< the scale is constant; its range: */
    size_t scale_count;
    double scale_min, scale_max;
    bool has_zero_point; /**< the zero point is constant; its range: */
    double zero_point_min, zero_point_max;
    const char *node; /**< name of the node that quantizes or dequantizes */
} insight_quantization;

typedef struct insight_value {
    const dq_value *value;
    const char *name, *type; /**< the type as "uint8", or "seq(tensor(float))" */
    bool is_constant;        /**< an initializer that is no input, or computed while planning */
    bool is_initializer, is_input, is_output;
    bool has_shape;
    size_t rank;
    const int64_t *dims; /**< of the plan where there is one, else declared: -1 unknown */
    const char *const *dim_names;
    uint64_t bytes;  /**< of an initializer; else 0 */
    size_t producer; /**< node; INSIGHT_NONE */
    insight_quantization quantization;
} insight_value;

typedef struct insight_node {
    const dq_node *node;
    const char *name; /**< its own, else that of its first output */
    const char *op;   /**< "com.microsoft.QGemm-1" */
    const char *op_type, *domain;
    size_t input_count, output_count;
    const size_t *inputs, *outputs; /**< values; INSIGHT_NONE: left out, or a value of an outer graph */
    bool is_constant;               /**< all inputs are constant */
    size_t step;                    /**< INSIGHT_NONE: none */
    insight_compute compute;
    const char *reason;  /**< why it computes on floats, from the rewriter or the graph; NULL: it does not */
    const char *problem; /**< why it cannot run; NULL: it can */
} insight_node;

typedef struct insight_step {
    const char *op;                   /**< "QLinearConv-10" */
    const char *algorithm, *decision; /**< NULL: none */
    const char *name;                 /**< of its node */
    insight_compute compute;
    size_t node_count;
    const size_t *nodes; /**< the written nodes that it computes */
    uint64_t work, scratch_bytes;
    uint64_t macs, bytes; /**< as in dq_step_info */
    uint64_t live_bytes;  /**< of the values in the session's buffer while it runs */
} insight_step;

/** Constants of one element type. */
typedef struct insight_weights {
    dq_dtype dtype;
    size_t tensors;
    uint64_t elements, bytes;
} insight_weights;

/** Nodes of one operator, by how they are computed. */
typedef struct insight_operator {
    const char *op;
    size_t count, computes[INSIGHT_COMPUTES];
} insight_operator;

typedef struct insight_life {
    const char *value, *memory_of;
    uint64_t offset, bytes;
    size_t first_step, last_step;
} insight_life;

typedef struct insight_model {
    insight_pool pool;
    const dq_model *model;
    const char *name, *producer, *opsets; /**< opsets as "ai.onnx 13, com.microsoft 1" */
    int64_t ir_version;
    size_t value_count, node_count, step_count, operator_count, weight_count, problem_count, life_count;
    insight_value *values;
    struct insight_handle *handles; /**< values and nodes by handle, for insight_find_value */
    size_t handle_count;
    insight_node *nodes; /**< in topological order */
    insight_step *steps;
    insight_operator *operators; /**< the most frequent first */
    insight_weights *weights;    /**< the most bytes first */
    const char **problems;       /**< messages of the nodes that cannot run */
    insight_life *lives;
    const char *not_planned; /**< why there are no steps; NULL: there are */
    const char *isa;
    uint64_t activation_bytes, packed_bytes, constant_bytes, weight_bytes;
    uint64_t peak_bytes; /**< the largest live_bytes, at: */
    size_t peak_step;
    size_t computes[INSIGHT_COMPUTES]; /**< nodes by how they are computed */
    uint64_t work, integer_work;       /**< of all steps; of those on quantized values */
} insight_model;

/** Reads model and plan. `options` are those of the session; `tensors` are the inputs, by their number, whose
 * shapes the plan is for; with `tensors` NULL nothing is planned, and `why_not` says why (NULL: it was not
 * asked for). A model that cannot be planned is no failure: not_planned says why. Free with
 * insight_model_free in every case; the model must outlive the result. */
dq_status insight_inspect(dq_model *model, const dq_session_options *options, dq_tensor *const *tensors,
                          const char *why_not, insight_model *out, dq_error *err);
void insight_model_free(insight_model *m);

/** The value with that handle; INSIGHT_NONE. */
size_t insight_find_value(const insight_model *m, const dq_value *value);
/** The node with that handle; INSIGHT_NONE. */
size_t insight_find_node(const insight_model *m, const dq_node *node);
/** "per tensor", "per axis 1", "per block of 32 on axis 0". Returns buffer. */
const char *insight_granularity_text(const insight_quantization *q, char *buffer, size_t size);
/** The shape as "[N,3,8]", "?" where unknown. Returns buffer. */
const char *insight_shape_text(const insight_value *v, char *buffer, size_t size);

/** Drawings of the nodes that a run computes, top down, on colours by how they are computed. */
void insight_write_dot(const insight_model *m, FILE *to);
dq_status insight_write_svg(const insight_model *m, FILE *to, dq_error *err);

/* ---- Parts that inspect.c calls ------------------------------------------------------------------------ */

/** Plans, and fills in steps, lives, memory, and how nodes are computed. */
dq_status insight_read_plan(insight_model *m, dq_model *model, const dq_session_options *options,
                            dq_tensor *const *tensors, dq_error *err);
/** Shapes of all values, from a plan of the graph as written. */
dq_status insight_read_shapes(insight_model *m, dq_model *model, dq_tensor *const *tensors, dq_error *err);
/** How a node with these operands computes, by its name and types alone. */
insight_compute insight_compute_of(const dq_node *node);

#endif
