/* SPDX-License-Identifier: Apache-2.0 */
/* Models that are made from a file by edits, and their sessions. Every session runs the graph as written. */
#ifndef DQ_TOOLS_INSIGHT_EDITED_H
#define DQ_TOOLS_INSIGHT_EDITED_H

#include "insight/compare.h"
#include "io/model_edit.h"

/** Room for the names that edits make. */
enum { INSIGHT_EDIT_NAME = 64 };

/** A model and its session. Starts as {0}. */
typedef struct insight_run {
    void *bytes; /**< of the edited file, which the model reads */
    dq_model *model;
    bool owns_model;
    dq_session *session;
} insight_run;

/** Takes over a loaded model. */
dq_status insight_run_model(insight_run *run, dq_model *model, const insight_request *r, dq_error *err);
/** Loads what the edit holds. `like` is the model whose name messages have; `dir` has its external data. */
dq_status insight_run_edit(insight_run *run, const model_edit *edit, const dq_model *like, const char *dir,
                           const insight_request *r, dq_error *err);
void insight_run_close(insight_run *run);

/** Makes the value an output of the session, unless it is one. */
dq_status insight_run_add_output(insight_run *run, const char *name, dq_error *err);
/** Sets the inputs of the feed: each of the model's by the name that it has in the quantized model, else by
 * number. */
dq_status insight_run_set_feed(insight_run *run, const insight_request *r, dq_tensor *const *tensors,
                               dq_error *err);

#endif
