/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd/vec_avx2.h"

#include <stdint.h>

#include "kernels/winograd/winograd_pairs.h"

#include "kernels/winograd/winograd_body.h"

const dq_winograd_s8 dq_winograd_s8_avx2 = {.input = input, .product = product, .output = output};
