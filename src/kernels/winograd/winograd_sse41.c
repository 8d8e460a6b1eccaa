/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd/vec_sse41.h"

#include <stdint.h>

#include "kernels/winograd/winograd_pairs.h"

#include "kernels/winograd/winograd_body.h"

const dq_winograd dq_winograd_sse41 = {.input = input, .product = product, .output = output};
