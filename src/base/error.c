#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A sentence that does not fit ends in an ellipsis, cut at a whole UTF-8 character. */
static void mark_cut(char *message, size_t size)
{
    static const char dots[] = "…";
    size_t end = size - sizeof dots;
    while (end > 0 && ((unsigned char)message[end] & 0xC0) == 0x80)
        end--;
    memcpy(message + end, dots, sizeof dots);
}

/* Names come from files: control characters must not reach a terminal. */
static void blank_controls(char *message)
{
    for (; *message; message++)
        if ((unsigned char)*message < 0x20 || *message == 0x7F)
            *message = '?';
}

dq_status dq_fail(dq_error *err, dq_status status, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        int wanted = vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
        err->status = status;
        if (wanted >= (int)sizeof err->message)
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
