/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C and --timeout cancel the session's run. */
#ifndef DQ_TOOLS_CLI_INTERRUPT_H
#define DQ_TOOLS_CLI_INTERRUPT_H

#include "cli/table.h"

/** Starts the timer; 0: no timer. Until cli_interrupt_watch, the process exits when the time is over. */
void cli_interrupt_start(double timeout_seconds);

/** From now on the first SIGINT, unless it is ignored, and the timer cancel the session's run. The second
 * SIGINT kills the process by the default action. */
void cli_interrupt_watch(dq_session *session);

/** Stops the timer and restores SIGINT, so that the process may write its results. `status` is the result of
 * the runs. DQ_CANCELLED gets a message that names the cause. DQ_OK becomes DQ_CANCELLED with such a message
 * if a signal or the timer came too late for a run. */
dq_status cli_interrupt_end(dq_status status, dq_error *err);

/** The exit code for that status. */
int cli_interrupt_exit_code(dq_status status);

#endif
