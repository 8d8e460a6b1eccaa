/* SPDX-License-Identifier: Apache-2.0 */
/* Analyses as JSON and as HTML, for callers that know nothing of their structs: the Python package. This
 * header needs only dqrun.h, and cffi reads it. */
#ifndef DQ_TOOLS_INSIGHT_DOCUMENT_H
#define DQ_TOOLS_INSIGHT_DOCUMENT_H

#include <dqrun/dqrun.h>

/** All malloc'ed. */
typedef struct insight_document {
    char *json; /* as dqrun --json prints it */
    size_t json_size;
    char *html; /* as dqrun --report writes it */
    size_t html_size;
    void *fixed; /* the model with suggested ranges; NULL: not asked for */
    size_t fixed_size, fixed_count;
} insight_document;

/** What is compared: as insight_request in compare.h says. */
typedef struct insight_task {
    dq_model *quantized, *reference; /* reference NULL: reference values come from: */
    size_t ref_count;
    const char *const *ref_names;
    const dq_tensor *const *ref_tensors;
    const void *quantized_bytes, *reference_bytes; /* the files */
    size_t quantized_size, reference_size;
    const char *quantized_dir, *reference_dir; /* of external data */
    const dq_session_options *options;
    size_t map_count;
    const char *const *map_floats, *const *map_names;
    bool leave_one_out, fixes;
    const int64_t *labels; /* NULL: none */
    size_t label_count;
    size_t input_count;
    /** Sets `tensors`, the inputs of the models by number; they live until the next call. */
    dq_status (*read)(void *arg, size_t index, dq_tensor *const **tensors, dq_error *err);
    /** Phase and the part of it that is done; other than 0: cancel. */
    int (*progress)(void *arg, const char *what, double done);
    void *arg;
} insight_task;

/** As dqrun inspect. `tensors`: by input, what the plan is for; NULL: nothing is planned. */
dq_status insight_document_inspect(dq_model *model, const dq_session_options *options,
                                   dq_tensor *const *tensors, insight_document *out, dq_error *err);
/** As dqrun compare. */
dq_status insight_document_compare(const insight_task *task, insight_document *out, dq_error *err);
/** Frees what there is, also after a failure. */
void insight_document_free(insight_document *document);

#endif
