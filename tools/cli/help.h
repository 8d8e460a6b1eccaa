/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that are made of the tables in cli/table.h. All go to a stream. */
#ifndef DQ_TOOLS_CLI_HELP_H
#define DQ_TOOLS_CLI_HELP_H

#include "cli/table.h"

#include <stdio.h>

/** The help of a command; of CLI_COMMANDS: of dqrun, its commands, inputs, environment and exit codes. No
 * line is longer than 80 columns. */
void cli_print_help(FILE *to, cli_command topic);

/** The manual page dqrun(1) as roff text, for man and mandoc. */
void cli_print_man(FILE *to);

/** The completion script of that shell. DQ_INVALID_ARGUMENT for another than bash, zsh and fish. */
dq_status cli_print_completion(FILE *to, const char *shell, dq_error *err);

/** Whether help, page and completions show an option for that command (CLI_COMMANDS: for any of them). */
bool cli_is_listed(const cli_option *option, cli_command command);

/** "-o, --output FILE", "    --json". */
enum { CLI_TERM_BYTES = 64 };
const char *cli_option_term(const cli_option *option, char buffer[CLI_TERM_BYTES]);

#endif
