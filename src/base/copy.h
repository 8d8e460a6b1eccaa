/* SPDX-License-Identifier: Apache-2.0 */
/* Inline copies of short rows, in loads and stores of fixed sizes: faster than a call of memcpy or a string
 * instruction for few bytes. */
#ifndef DQ_BASE_COPY_H
#define DQ_BASE_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** memcpy for rows that usually are short. It copies some bytes twice. */
static inline void dq_copy_row(void *out, const void *in, size_t n)
{
    enum { PIECE = 16, HALF = PIECE / 2, QUARTER = HALF / 2 };
    uint8_t *to = out;
    const uint8_t *from = in;
    if (n >= PIECE) {
        for (size_t i = 0; i < n - PIECE; i += PIECE)
            memcpy(to + i, from + i, PIECE);
        memcpy(to + n - PIECE, from + n - PIECE, PIECE);
    } else if (n >= HALF) {
        memcpy(to, from, HALF);
        memcpy(to + n - HALF, from + n - HALF, HALF);
    } else if (n >= QUARTER) {
        memcpy(to, from, QUARTER);
        memcpy(to + n - QUARTER, from + n - QUARTER, QUARTER);
    } else if (n) {
        to[0] = from[0];
        to[n / 2] = from[n / 2];
        to[n - 1] = from[n - 1];
    }
}

#endif
