/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/x86/vec_sse41.h"

#define ISA(name) name##_sse41

#include "kernels/wconv_rows_body.h"
#include "kernels/wgemm_body.h"
#include "kernels/wrow_body.h"
