/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of winograd_product.h for ISA levels that sum 16-bit products in pairs. */
#include <string.h>

enum { VECTORS = VF_LANES > 8 ? 1 : 2 };

static inline void pairs_of(const int16_t *u, vi w[VECTORS])
{
    for (int k = 0; k < VECTORS; k++)
        w[k] = vi_load(u + 2 * VF_LANES * k);
}

static inline void add_products(vi sum[VECTORS], const int16_t *v, const vi w[VECTORS])
{
    int32_t both;
    memcpy(&both, v, sizeof both);
    vi pair = vi_set(both);
    for (int k = 0; k < VECTORS; k++)
        sum[k] = vi_add(sum[k], vi_dot_16(pair, w[k]));
}
