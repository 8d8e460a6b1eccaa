/* SPDX-License-Identifier: Apache-2.0 */
/* --report FILE of inspect, compare and bench. */
#ifndef DQ_TOOLS_CLI_REPORT_H
#define DQ_TOOLS_CLI_REPORT_H

#include "insight/report.h"

/** Writes the page to a file, whole or not at all. */
dq_status cli_report_write(const char *path, const insight_report *report, dq_error *err);

/** The same with the model and its plan for the shapes of `tensors` (by input), which is made here. A model
 * that cannot be planned is shown without a plan. */
dq_status cli_report_write_with_model(const char *path, insight_report *report, dq_model *model,
                                      const dq_session_options *options, dq_tensor *const *tensors,
                                      dq_error *err);

#endif
