/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/text/text_case.h"

#include <string.h>

enum { STRAY = 0xDC00 /* code points of bytes that are not UTF-8: no text has code points there */ };

uint32_t dq_text_code(dq_string text, size_t at, size_t *length)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    unsigned first = (unsigned char)text.bytes[at];
    size_t more = first < 0x80                    ? 0
                  : first >= 0xC2 && first < 0xE0 ? 1
                  : first >= 0xE0 && first < 0xF0 ? 2
                                                  : 3;
    uint32_t code = more == 0 ? first : first & (0x3Fu >> more);
    bool fits = (first < 0x80 || (first >= 0xC2 && first < 0xF5)) && more < text.length - at;
    for (size_t k = 1; fits && k <= more; k++) {
        unsigned byte = (unsigned char)text.bytes[at + k];
        fits = (byte & 0xC0) == 0x80;
        code = code << 6 | (byte & 0x3F);
    }
    fits = fits && code >= least[more] && code < 0x110000 && (code < 0xD800 || code > 0xDFFF);
    *length = fits ? more + 1 : 1;
    return fits ? code : STRAY + first;
}

static size_t encode(uint32_t code, char to[4])
{
    if (code >= STRAY && code < STRAY + 0x100) {
        to[0] = (char)(code - STRAY);
        return 1;
    }
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    size_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    for (size_t k = more; k > 0; k--, code >>= 6)
        to[k] = (char)(0x80 | (code & 0x3F));
    to[0] = (char)((0xFF00u >> (more + 1) & 0xFF) | code);
    return more + 1;
}

/* Whether c is a letter of Latin Extended-A, where upper and lower case alternate. Which of the two is even
 * depends on the subrange. */
static bool is_pair(uint32_t c, bool *upper)
{
    bool even = (c >= 0x100 && c <= 0x137 && c != 0x130 && c != 0x131) || (c >= 0x14A && c <= 0x177);
    bool odd = (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E);
    *upper = even ? c % 2 == 0 : c % 2 == 1;
    return even || odd;
}

uint32_t dq_code_lower(uint32_t c)
{
    bool upper;
    if ((c >= 'A' && c <= 'Z') || (c >= 0xC0 && c <= 0xDE && c != 0xD7) ||
        (c >= 0x391 && c <= 0x3A9 && c != 0x3A2) || (c >= 0x410 && c <= 0x42F))
        return c + 32;
    if (c >= 0x400 && c <= 0x40F)
        return c + 80;
    return is_pair(c, &upper) && upper ? c + 1 : c == 0x178 ? 0xFF : c;
}

uint32_t dq_code_upper(uint32_t c)
{
    bool upper;
    if ((c >= 'a' && c <= 'z') || (c >= 0xE0 && c <= 0xFE && c != 0xF7) ||
        (c >= 0x3B1 && c <= 0x3C9 && c != 0x3C2) || (c >= 0x430 && c <= 0x44F))
        return c - 32;
    if (c >= 0x450 && c <= 0x45F)
        return c - 80;
    return is_pair(c, &upper) && !upper ? c - 1 : c == 0xFF ? 0x178 : c;
}

bool dq_text_change(dq_arena *arena, dq_string text, bool upper, dq_string *out)
{
    /* both cases of every letter above have the same length */
    char *bytes = dq_arena_alloc(arena, text.length + 1, 1);
    if (!bytes)
        return false;
    size_t length;
    for (size_t at = 0; at < text.length; at += length) {
        char coded[4];
        uint32_t code = dq_text_code(text, at, &length);
        size_t n = encode(upper ? dq_code_upper(code) : dq_code_lower(code), coded);
        memcpy(bytes + at, coded, n < length ? n : length);
    }
    *out = (dq_string){bytes, text.length};
    return true;
}
