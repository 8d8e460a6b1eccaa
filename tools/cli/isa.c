/* SPDX-License-Identifier: Apache-2.0 */
/* --isa, DQRUN_ISA and dqrun isa. */
#include "cli/lists.h"

#include "cli/json.h"
#include "cli/suggest.h"
#include "cli/terminal.h"
#include "io/common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lists the levels of this processor, or all of this build: "c, sse41, avx2". */
static void list_levels(bool all, char *text, size_t size)
{
    bool available;
    const char *name;
    size_t used = 0;
    *text = 0;
    for (size_t i = 0; (name = dq_isa_name(i, &available)) != NULL; i++) {
        if ((all || available) && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", name);
    }
}

/* Checks a level that an option or variable names. */
static dq_status check_level(const char *from, const char *level, dq_error *err)
{
    char list[256], text[CLI_SUGGEST_TEXT];
    const char *name;
    bool available;
    cli_suggestion suggestion = cli_suggest_for(level);
    for (size_t i = 0; (name = dq_isa_name(i, &available)) != NULL; i++) {
        cli_suggest_try(&suggestion, name);
        if (strcmp(name, level) != 0)
            continue;
        list_levels(false, list, sizeof list);
        return available ? DQ_OK
                         : io_fail(err, DQ_INVALID_ARGUMENT,
                                   "%s is '%s', which this processor lacks; it has %s", from, name, list);
    }
    list_levels(true, list, sizeof list);
    return io_fail(err, DQ_INVALID_ARGUMENT, "%s is '%s', expected one of %s%s", from, level, list,
                   cli_suggest_text(&suggestion, "", text));
}

dq_status cli_choose_isa(cli_options *options, dq_error *err)
{
    const char *from = "--isa", *level;
    if (!options->isa && cli_options_table[CLI_OPTION_ISA].commands >> options->command & 1) {
        level = getenv("DQRUN_ISA");
        options->isa = level && *level ? level : NULL;
        options->isa_from_environment = options->isa != NULL;
        from = "environment variable DQRUN_ISA";
    }
    dq_status status = options->isa ? check_level(from, options->isa, err) : DQ_OK;
    return status == DQ_OK && options->against_isa ? check_level("--against-isa", options->against_isa, err)
                                                   : status;
}

/* The highest level that a session uses: one of the processor, not above --isa. */
static const char *used_level(const cli_options *options)
{
    bool available;
    const char *name, *used = "";
    for (size_t i = 0; (name = dq_isa_name(i, &available)) != NULL; i++) {
        if (available)
            used = name;
        if (options->isa && !strcmp(name, options->isa))
            break;
    }
    return used;
}

static dq_status print_json(const cli_options *options, const char *used, dq_error *err)
{
    cli_json json;
    bool available;
    const char *name;
    dq_status status = cli_json_start(&json, err);
    if (status != DQ_OK)
        return status;
    cli_json_begin_object(&json, NULL);
    cli_json_text(&json, "used", used);
    cli_json_text(&json, "set_by",
                  !options->isa                   ? NULL
                  : options->isa_from_environment ? "DQRUN_ISA"
                                                  : "--isa");
    cli_json_begin_array(&json, "levels");
    for (size_t i = 0; (name = dq_isa_name(i, &available)) != NULL; i++) {
        cli_json_begin_object(&json, NULL);
        cli_json_text(&json, "name", name);
        cli_json_bool(&json, "available", available);
        cli_json_end_object(&json);
    }
    cli_json_end_array(&json);
    cli_json_end_object(&json);
    return cli_json_finish(&json, DQ_OK, err);
}

dq_status cli_isa(const cli_options *options, dq_error *err)
{
    bool available;
    const char *name, *used = used_level(options);
    if (options->json)
        return print_json(options, used, err);
    printf("%s%-12s  %-14s%s\n", cli_style_on(stdout, CLI_STYLE_TITLE), "level", "this processor",
           cli_style_off(stdout));
    for (size_t i = 0; (name = dq_isa_name(i, &available)) != NULL; i++) {
        bool is_used = !strcmp(name, used);
        printf("%s%-12s  %s%s%s\n", is_used ? cli_style_on(stdout, CLI_STYLE_GOOD) : "", name,
               available ? "yes" : "no", is_used ? ", used" : "", is_used ? cli_style_off(stdout) : "");
    }
    if (options->isa)
        printf("The level is set by %s.\n", options->isa_from_environment ? "DQRUN_ISA" : "--isa");
    return DQ_OK;
}
