/* SPDX-License-Identifier: Apache-2.0 */
/* Float forms of operators that compute quantized values (QLinearConv …), so that their quantizers can be
 * left out. */
#ifndef DQ_TOOLS_INSIGHT_FLOAT_FORMS_H
#define DQ_TOOLS_INSIGHT_FLOAT_FORMS_H

#include "insight/compare.h"
#include "io/model_edit.h"

/** Names of bool inputs that leave a quantizer out; entries NULL: it is never left out. */
typedef struct insight_switches {
    const char **pairs;   /**< by pair */
    const char **weights; /**< by weight */
    const char **outputs; /**< by output: replaced by the value that stands for it in the edited model */
} insight_switches;

/** Whether the quantizer of the value or constant is one that only a float form can leave out. */
bool insight_needs_float_form(const insight_pair *p);

/** The initializer of that name; NULL: none. */
const dq_tensor *insight_constant_named(const insight_model *m, const char *name);

/** *unfolded is the float value that stands for the pair, made of the float result `real` of its node. Where
 * the range of the quantizer does the work of a Relu or Clip that the float model has, the operator is added
 * again. */
dq_status insight_unfold(insight_comparison *c, model_edit *edit, const insight_pair *p, const char *real,
                         const char **unfolded, dq_error *err);

/** Adds, for each quantized value from the inputs on, the real number that stands for it:
 *
 *     x --DequantizeLinear--> Conv --+-------------------------> Where --> next operator
 *                                    +-- Quantize, Dequantize -->
 *
 * Readers of the model's DequantizeLinear nodes read it. Data movement on quantized values moves it. After an
 * operator that has no float form here, the quantized values of the model are dequantized: what is left out
 * before it has no effect after it. */
dq_status insight_add_float_forms(insight_comparison *c, model_edit *edit, const insight_switches *switches,
                                  dq_error *err);

#endif
