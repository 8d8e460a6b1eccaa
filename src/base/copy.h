/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of few bytes, in pieces of fixed sizes: a call, or an instruction for strings, takes longer than
 * these do. */
#ifndef DQ_BASE_COPY_H
#define DQ_BASE_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** memcpy of a row that is mostly short: some bytes are written twice. */
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
