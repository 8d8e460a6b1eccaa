/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/x86/vec_avx2.h"

#include <stdint.h>

#include "kernels/x86/winograd_pairs.h"

#include "kernels/winograd_body.h"

const dq_winograd dq_winograd_avx2 = {.input = input, .product = product, .output = output};
