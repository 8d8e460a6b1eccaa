/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/x86/vec_sse41.h"

#define ISA(name) name##_sse41

#include "kernels/dwconv_rows_s16_body.h"
#include "kernels/gemm_s16_body.h"
#include "kernels/gemv_s16s8_body.h"
