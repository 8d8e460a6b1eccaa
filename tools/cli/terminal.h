/* SPDX-License-Identifier: Apache-2.0 */
/* What a terminal gets more than a file or pipe: colors, and a progress bar on standard error. */
#ifndef DQ_TOOLS_CLI_TERMINAL_H
#define DQ_TOOLS_CLI_TERMINAL_H

#include "cli/options.h"

#include <stdio.h>

typedef enum cli_style { CLI_STYLE_TITLE, CLI_STYLE_GOOD, CLI_STYLE_BAD, CLI_STYLE_WARNING } cli_style;

/** Reads --color, --no-progress and --quiet. Before that, colors are automatic and there is no progress bar.
 */
void cli_terminal_start(const cli_options *options);

/** The escape sequences that begin and end a style on that stream; "" where it gets no colors: with --color
 * auto, where it is no terminal, NO_COLOR is set, or TERM is dumb. */
const char *cli_style_on(FILE *stream, cli_style style);
const char *cli_style_off(FILE *stream);

/** "dqrun: warning: …" on standard error, unless --quiet. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** "dqrun: …" on standard error. Control characters become '?'. */
void cli_complain(const char *message);

/** Work begins that is counted; `what` lives until it ends. */
void cli_progress_begin(const char *what);
/** That part of the work is done, 0 to 1. Draws the bar at most ten times a second, on a terminal, once the
 * work is known to take more than two seconds. */
void cli_progress(double done);
/** The same for work whose end is not known: draws the number of nodes and the time spent. */
void cli_progress_nodes(uint64_t nodes);
/** Whether cli_progress may ever draw. */
bool cli_progress_allowed(void);
/** Erases the bar. May be called when there is none. */
void cli_progress_end(void);

#endif
