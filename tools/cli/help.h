/* SPDX-License-Identifier: Apache-2.0 */
/* Texts generated from the tables in cli/table.h, written to a stream. */
#ifndef DQ_TOOLS_CLI_HELP_H
#define DQ_TOOLS_CLI_HELP_H

#include "cli/table.h"

#include <stdio.h>

/** Prints the help of a command. CLI_COMMANDS: the help of dqrun, with its commands, inputs, environment and
 * exit codes. Lines have at most 80 columns. */
void cli_print_help(FILE *to, cli_command topic);

/** Prints the manual page dqrun(1) as roff text, for man and mandoc. */
void cli_print_man(FILE *to);

/** Prints the completion script of a shell. DQ_INVALID_ARGUMENT unless it is bash, zsh or fish. */
dq_status cli_print_completion(FILE *to, const char *shell, dq_error *err);

/** Whether help, page and completions show an option for that command (CLI_COMMANDS: for any of them). */
bool cli_is_listed(const cli_option *option, cli_command command);

/** The option as the help shows it: "-o, --output FILE", "    --json". */
enum { CLI_TERM_BYTES = 64 };
const char *cli_option_term(const cli_option *option, char buffer[CLI_TERM_BYTES]);

#endif
