/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd/vec_sse41.h"

#include <stdint.h>

#include "kernels/winograd/winograd_pairs.h"

#include "kernels/winograd/winograd_body.h"

const dq_winograd_s8 dq_winograd_s8_sse41 = {.input = input, .product = product, .output = output};
