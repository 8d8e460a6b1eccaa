/* What winograd_body.h wants of an instruction set that sums products of 16 bits in pairs. */
#include <string.h>

static inline void two_vectors(const int16_t *u, vi w[2])
{
    w[0] = vi_load(u);
    w[1] = vi_load(u + 2 * VF_LANES);
}

static inline void add_products(vi sum[2], const int16_t *v, const vi w[2])
{
    int32_t both;
    memcpy(&both, v, sizeof both);
    vi pair = vi_set(both);
    sum[0] = vi_add(sum[0], vi_dot_16(pair, w[0]));
    sum[1] = vi_add(sum[1], vi_dot_16(pair, w[1]));
}
