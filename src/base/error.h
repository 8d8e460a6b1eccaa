/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: a status and a message. A function that can fail returns a dq_status and takes the caller's
 * dq_error last. The message is written next to the check that detects the fault. */
#ifndef DQ_BASE_ERROR_H
#define DQ_BASE_ERROR_H

#include <dqrun/dqrun.h>

#if defined(__GNUC__)
#define DQ_PRINTF(format_index, first_arg) __attribute__((format(printf, format_index, first_arg)))
#else
#define DQ_PRINTF(format_index, first_arg)
#endif

/** Fills `err` (may be NULL) and returns `status`. The message has no newline and no final period. */
dq_status dq_fail(dq_error *err, dq_status status, const char *format, ...) DQ_PRINTF(3, 4);

/** Prefixes the message in `err`: "model.onnx: node 'conv1' (QLinearConv-10): ". */
void dq_error_prefix(dq_error *err, const char *format, ...) DQ_PRINTF(2, 3);

/** Returns DQ_OUT_OF_MEMORY, with the requested size and its purpose in the message. */
dq_status dq_no_memory(dq_error *err, size_t bytes, const char *what);

/** Refuses a NULL argument of the calling public function: "dq_model_load: path is NULL". The function must
 * have a parameter `err`. */
#define DQ_NOT_NULL(argument)                                                                                \
    do {                                                                                                     \
        if (!(argument))                                                                                     \
            return dq_fail(err, DQ_INVALID_ARGUMENT, "%s: %s is NULL", __func__, #argument);                 \
    } while (0)

/** Returns from the calling function if `call` does not give DQ_OK. */
#define DQ_TRY(call)                                                                                         \
    do {                                                                                                     \
        dq_status dq_try_status_ = (call);                                                                   \
        if (dq_try_status_ != DQ_OK)                                                                         \
            return dq_try_status_;                                                                           \
    } while (0)

#endif
