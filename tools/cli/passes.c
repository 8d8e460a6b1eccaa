/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun passes. */
#include "cli/json.h"
#include "cli/lists.h"
#include "cli/terminal.h"

static dq_status print_json(dq_error *err)
{
    cli_json json;
    dq_pass_info pass = DQ_PASS_INFO_INIT;
    dq_status status = cli_json_start(&json, err);
    if (status != DQ_OK)
        return status;
    cli_json_begin_array(&json, NULL);
    for (size_t i = 0; i < dq_pass_count() && dq_pass_describe(i, &pass, NULL) == DQ_OK; i++) {
        cli_json_begin_object(&json, NULL);
        cli_json_text(&json, "name", pass.name);
        cli_json_text(&json, "scope", pass.scope);
        cli_json_text(&json, "matches", pass.matches);
        cli_json_text(&json, "replacement", pass.replacement);
        cli_json_text(&json, "exactness", pass.exactness);
        cli_json_end_object(&json);
    }
    cli_json_end_array(&json);
    return cli_json_finish(&json, DQ_OK, err);
}

dq_status cli_passes(const cli_options *options, dq_error *err)
{
    dq_pass_info pass = DQ_PASS_INFO_INIT;
    if (options->json)
        return print_json(err);
    for (size_t i = 0; i < dq_pass_count(); i++) {
        const dq_status status = dq_pass_describe(i, &pass, err);
        if (status != DQ_OK)
            return status;
        printf("%s%s%s\n", cli_style_on(stdout, CLI_STYLE_TITLE), pass.name, cli_style_off(stdout));
        printf("    matches    %s\n    becomes    %s\n    exactness  %s\n", pass.matches, pass.replacement,
               pass.exactness);
    }
    return DQ_OK;
}
