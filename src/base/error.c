/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Ends a truncated message with an ellipsis, after a whole UTF-8 character. */
static void mark_cut(char *message, size_t size)
{
    static const char dots[] = "…";
    size_t end = size - sizeof dots;
    while (end > 0 && ((unsigned char)message[end] & 0xC0) == 0x80)
        end--;
    memcpy(message + end, dots, sizeof dots);
}

/* Bytes of the character at `s`; 0: it is not UTF-8, or a control character. */
static size_t character(const unsigned char *s)
{
    static const uint32_t least[] = {0x20, 0xA0, 0x800, 0x10000};
    size_t more = s[0] >= 0xF0 ? 3 : s[0] >= 0xE0 ? 2 : s[0] >= 0xC0 ? 1 : 0;
    uint32_t c = more ? s[0] & 0x3Fu >> more : s[0];
    for (size_t i = 1; i <= more; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3Fu);
    }
    bool stray = (more == 0 && c >= 0x7F) || (c >= 0xD800 && c < 0xE000) || c > 0x10FFFF || s[0] >= 0xF8;
    return stray || c < least[more] ? 0 : more + 1;
}

/* Replaces control characters and invalid text: names come from files, and must not control a terminal or a
 * log. */
static void blank_controls(char *message)
{
    for (size_t n; *message; message += n) {
        n = character((const unsigned char *)message);
        if (n == 0) {
            *message = '?';
            n = 1;
        }
    }
}

const char *dq_status_name(dq_status status)
{
    static const struct {
        dq_status status;
        const char *name;
    } names[] = {{DQ_OK, "DQ_OK"},
                 {DQ_INVALID_ARGUMENT, "DQ_INVALID_ARGUMENT"},
                 {DQ_BAD_MODEL, "DQ_BAD_MODEL"},
                 {DQ_BAD_INPUT, "DQ_BAD_INPUT"},
                 {DQ_UNSUPPORTED, "DQ_UNSUPPORTED"},
                 {DQ_OUT_OF_MEMORY, "DQ_OUT_OF_MEMORY"},
                 {DQ_INTERNAL, "DQ_INTERNAL"},
                 {DQ_IO, "DQ_IO"},
                 {DQ_CANCELLED, "DQ_CANCELLED"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].status == status)
            return names[i].name;
    return "unknown status";
}

dq_status dq_fail(dq_error *err, dq_status status, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        int length = vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
        err->status = status;
        if (length >= (int)sizeof err->message)
            mark_cut(err->message, sizeof err->message);
        blank_controls(err->message);
    }
    return status;
}

void dq_error_prefix(dq_error *err, const char *format, ...)
{
    if (!err)
        return;
    char old[sizeof err->message];
    memcpy(old, err->message, sizeof old);
    va_list args;
    va_start(args, format);
    int head = vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    if (head < 0)
        head = 0;
    if ((size_t)head + strlen(old) >= sizeof err->message) {
        if ((size_t)head < sizeof err->message)
            strncpy(err->message + head, old, sizeof err->message - (size_t)head - 1);
        err->message[sizeof err->message - 1] = '\0';
        mark_cut(err->message, sizeof err->message);
    } else {
        memcpy(err->message + head, old, strlen(old) + 1);
    }
    blank_controls(err->message);
}

dq_status dq_no_memory(dq_error *err, size_t bytes, const char *what)
{
    return dq_fail(err, DQ_OUT_OF_MEMORY, "out of memory: %zu bytes for %s", bytes, what);
}
