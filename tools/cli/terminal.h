/* SPDX-License-Identifier: Apache-2.0 */
/* Output for terminals only: colors, and a progress bar on standard error. */
#ifndef DQ_TOOLS_CLI_TERMINAL_H
#define DQ_TOOLS_CLI_TERMINAL_H

#include "cli/options.h"

#include <stdio.h>

typedef enum cli_style { CLI_STYLE_TITLE, CLI_STYLE_GOOD, CLI_STYLE_BAD, CLI_STYLE_WARNING } cli_style;

/** Reads --color, --no-progress and --quiet. Before that, colors are automatic and there is no progress bar.
 */
void cli_terminal_start(const cli_options *options);

/** The escape sequences that begin and end a style on that stream. They are "" if it gets no colors: with
 * --color auto, if it is no terminal, NO_COLOR is set, or TERM is dumb. */
const char *cli_style_on(FILE *stream, cli_style style);
const char *cli_style_off(FILE *stream);

/** Prints "dqrun: warning: …" on standard error, unless --quiet. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** Prints "dqrun: …" on standard error. Control characters become '?'. */
void cli_complain(const char *message);

/** Begins work with progress; `what` must live until it ends. */
void cli_progress_begin(const char *what);
/** Reports the completed part of the work, 0 to 1. Draws the bar on a terminal, at most ten times a second,
 * after the work is known to take more than two seconds. */
void cli_progress(double done);
/** The same for work of unknown length: draws the number of nodes and the elapsed time. */
void cli_progress_nodes(uint64_t nodes);
/** Whether cli_progress may ever draw. */
bool cli_progress_allowed(void);
/** Erases the bar, if there is one. */
void cli_progress_end(void);

#endif
