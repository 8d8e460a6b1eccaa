/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include "common.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

const char *io_type_text(dq_dtype dtype, size_t rank, const int64_t *dims, char buffer[IO_TYPE_TEXT])
{
    size_t used = (size_t)snprintf(buffer, IO_TYPE_TEXT, "%s[", dq_dtype_name(dtype));
    for (size_t i = 0; i < rank && i < DQ_MAX_RANK; i++) {
        const char *sep = i ? "," : "";
        int n = dims[i] == -1 ? snprintf(buffer + used, IO_TYPE_TEXT - used, "%s?", sep)
                              : snprintf(buffer + used, IO_TYPE_TEXT - used, "%s%" PRId64, sep, dims[i]);
        used += (size_t)n;
    }
    snprintf(buffer + used, IO_TYPE_TEXT - used, "]");
    return buffer;
}

const char *io_index_text(const dq_tensor *t, size_t i, char buffer[IO_INDEX_TEXT])
{
    size_t rank = dq_tensor_rank(t);
    const int64_t *dims = dq_tensor_dims(t);
    int64_t at[DQ_MAX_RANK] = {0};
    for (size_t axis = rank; axis-- > 0;) {
        at[axis] = (int64_t)(i % (size_t)dims[axis]);
        i /= (size_t)dims[axis];
    }
    size_t used = (size_t)snprintf(buffer, IO_INDEX_TEXT, "[");
    for (size_t axis = 0; axis < rank; axis++)
        used +=
            (size_t)snprintf(buffer + used, IO_INDEX_TEXT - used, "%s%" PRId64, axis ? "," : "", at[axis]);
    snprintf(buffer + used, IO_INDEX_TEXT - used, "]");
    return buffer;
}

double io_part(const dq_tensor *tensor, size_t i, int which)
{
    dq_dtype dtype = dq_tensor_dtype(tensor);
    if (dtype == DQ_COMPLEX64)
        return (double)((const float *)dq_tensor_data(tensor))[2 * i + (size_t)which];
    if (dtype == DQ_COMPLEX128)
        return ((const double *)dq_tensor_data(tensor))[2 * i + (size_t)which];
    return which ? 0 : dq_tensor_value(tensor, i);
}

static void string_text(const dq_tensor *t, size_t i, char buffer[IO_VALUE_TEXT])
{
    enum { SHOWN = 40 };
    size_t length = 0;
    const char *s = dq_tensor_string(t, i, &length);
    size_t n = length < SHOWN ? length : SHOWN;
    while (n < length && n && ((unsigned char)s[n] & 0xC0) == 0x80)
        n--; /* Not inside a character. */
    snprintf(buffer, IO_VALUE_TEXT, "'%.*s%s'", (int)n, length ? s : "", n < length ? "…" : "");
    io_printable(buffer);
}

double io_unsigned_nan(double value)
{
    return isnan(value) ? (double)NAN : value;
}

const char *io_value_text(const dq_tensor *tensor, size_t i, int digits, char buffer[IO_VALUE_TEXT])
{
    dq_dtype dtype = dq_tensor_dtype(tensor);
    if (dtype == DQ_STRING)
        string_text(tensor, i, buffer);
    else if (dtype == DQ_BOOL)
        snprintf(buffer, IO_VALUE_TEXT, "%s", io_get_int(tensor, i) ? "true" : "false");
    else if (io_is_signed(dtype))
        snprintf(buffer, IO_VALUE_TEXT, "%" PRId64, (int64_t)io_get_int(tensor, i));
    else if (io_is_integer(dtype))
        snprintf(buffer, IO_VALUE_TEXT, "%" PRIu64, io_get_int(tensor, i));
    else if (dtype == DQ_COMPLEX64 || dtype == DQ_COMPLEX128)
        snprintf(buffer, IO_VALUE_TEXT, "%.*g%+.*gi", digits, io_unsigned_nan(io_part(tensor, i, 0)), digits,
                 io_unsigned_nan(io_part(tensor, i, 1)));
    else
        snprintf(buffer, IO_VALUE_TEXT, "%.*g", digits, io_unsigned_nan(dq_tensor_value(tensor, i)));
    return buffer;
}

char *io_printable(char *text)
{
    for (char *c = text; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7F)
            *c = '?';
    }
    return text;
}

/* Bytes of the well-formed UTF-8 sequence at the beginning of text; 0 if there is none (RFC 3629). */
static size_t utf8_length(const unsigned char *text, size_t length)
{
    unsigned char c = text[0];
    size_t size = c < 0x80                ? 1
                  : c >= 0xC2 && c < 0xE0 ? 2
                  : c >= 0xE0 && c < 0xF0 ? 3
                  : c >= 0xF0 && c < 0xF5 ? 4
                                          : 0;
    if (!size || size > length)
        return 0;
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    }
    bool overlong = (c == 0xE0 && text[1] < 0xA0) || (c == 0xF0 && text[1] < 0x90);
    bool no_character = (c == 0xED && text[1] > 0x9F) || (c == 0xF4 && text[1] > 0x8F);
    return overlong || no_character ? 0 : size;
}

void io_write_json(FILE *to, const char *text, size_t length)
{
    fputc('"', to);
    for (size_t i = 0, size; i < length; i += size) {
        unsigned char c = (unsigned char)text[i];
        size = utf8_length((const unsigned char *)text + i, length - i);
        if (!size) {
            fprintf(to, "\\ufffd");
            size = 1;
        } else if (c == '"' || c == '\\') {
            fprintf(to, "\\%c", c);
        } else if (c < 0x20) {
            fprintf(to, "\\u%04x", c);
        } else {
            fwrite(text + i, 1, size, to);
        }
    }
    fputc('"', to);
}
