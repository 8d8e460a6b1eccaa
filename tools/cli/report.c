/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report.h"

#include "io/common.h"
#include "io/out_file.h"

dq_status cli_report_write(const char *path, const insight_report *report, dq_error *err)
{
    out_file out;
    dq_status status = out_open(path, &out, err);
    if (status == DQ_OK)
        status = out_close(&out, insight_write_report(report, out.file, err), err);
    return status == DQ_OK ? DQ_OK : io_prefix(err, status, path);
}

dq_status cli_report_write_with_model(const char *path, insight_report *report, dq_model *model,
                                      const dq_session_options *options, dq_tensor *const *tensors,
                                      dq_error *err)
{
    insight_model m = {0};
    dq_status status = insight_inspect(model, options, tensors, NULL, &m, err);
    report->model = &m;
    if (status == DQ_OK)
        status = cli_report_write(path, report, err);
    report->model = NULL;
    insight_model_free(&m);
    return status;
}
