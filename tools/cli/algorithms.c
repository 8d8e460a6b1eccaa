/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun algorithms. */
#include "cli/json.h"
#include "cli/lists.h"
#include "cli/terminal.h"

#include <string.h>

static dq_status print_json(dq_error *err)
{
    cli_json json;
    dq_algorithm_info row = DQ_ALGORITHM_INFO_INIT;
    dq_status status = cli_json_start(&json, err);
    if (status != DQ_OK)
        return status;
    cli_json_begin_array(&json, NULL);
    for (size_t i = 0; i < dq_algorithm_count() && dq_algorithm_describe(i, &row, NULL) == DQ_OK; i++) {
        cli_json_begin_object(&json, NULL);
        cli_json_text(&json, "id", row.id);
        cli_json_text(&json, "summary", row.summary);
        cli_json_text(&json, "table", row.table);
        cli_json_text(&json, "table_summary", row.table_summary);
        cli_json_size(&json, "result", row.result);
        cli_json_end_object(&json);
    }
    cli_json_end_array(&json);
    return cli_json_finish(&json, DQ_OK, err);
}

dq_status cli_algorithms(const cli_options *options, dq_error *err)
{
    dq_algorithm_info row = DQ_ALGORITHM_INFO_INIT;
    const char *table = "";
    if (options->json)
        return print_json(err);
    for (size_t i = 0; i < dq_algorithm_count(); i++) {
        const dq_status status = dq_algorithm_describe(i, &row, err);
        if (status != DQ_OK)
            return status;
        if (strcmp(row.table, table) != 0)
            printf("%s%s%s  %s\n", cli_style_on(stdout, CLI_STYLE_TITLE), row.table, cli_style_off(stdout),
                   row.table_summary);
        table = row.table;
        printf("    %-24s %s", row.id + strlen(row.table) + 1, row.summary);
        if (row.result)
            printf(" (result %zu)", row.result);
        printf("\n");
    }
    return DQ_OK;
}
