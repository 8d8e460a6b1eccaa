/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out on order. In a normal build this file's functions take the place of the C library's
 * for the whole process, so that libyaml and protobuf-c run out of memory too. AddressSanitizer needs that
 * place for itself: there only the calls from dqrun's own objects are caught (the linker's --wrap). So are
 * mappings of files and beginning threads in both. */
#ifndef DQRUN_TESTS_OOM_ALLOC_H
#define DQRUN_TESTS_OOM_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/** The allocation number `nth` from now on (1 is the next) fails, and no other. 0: none. */
void oom_arm(size_t nth);
/** Ends that; whether the allocation came and failed. */
bool oom_disarm(void);
/** Pieces of memory that were allocated here and not yet freed. */
size_t oom_live(void);

#endif
