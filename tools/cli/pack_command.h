/* SPDX-License-Identifier: Apache-2.0 */
/* The command pack: writes the packed weights of a model. */
#ifndef DQ_TOOLS_CLI_PACK_COMMAND_H
#define DQ_TOOLS_CLI_PACK_COMMAND_H

#include "cli/options.h"

dq_status cli_pack(dq_schemas *schemas, const cli_options *options, dq_error *err);

#endif
