/* SPDX-License-Identifier: Apache-2.0 */
/* Parser of the header of a .npy array: a magic string, a length, and a Python literal such as
 * {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } */
#include "npy.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Far larger than any header of a plain array. One of a structured type could be longer, but is refused
 * anyway. */
enum { MAX_HEADER = 1 << 16 };

typedef struct parser {
    const char *at, *end;
} parser;

static void skip_space(parser *p)
{
    while (p->at < p->end && isspace((unsigned char)*p->at))
        p->at++;
}

static bool take(parser *p, char c)
{
    skip_space(p);
    if (p->at == p->end || *p->at != c)
        return false;
    p->at++;
    return true;
}

static bool take_word(parser *p, const char *word)
{
    size_t n = strlen(word);
    skip_space(p);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

/* Parses a quoted string without escapes, which descr and the keys never have. */
static bool take_string(parser *p, char *text, size_t capacity)
{
    skip_space(p);
    if (p->at == p->end || (*p->at != '\'' && *p->at != '"'))
        return false;
    char quote = *p->at++;
    size_t n = 0;
    while (p->at < p->end && *p->at != quote) {
        if (*p->at == '\\' || n + 1 >= capacity || !isprint((unsigned char)*p->at))
            return false;
        text[n++] = *p->at++;
    }
    text[n] = 0;
    return take(p, quote);
}

static bool take_dimension(parser *p, int64_t *value)
{
    skip_space(p);
    const char *start = p->at;
    int64_t v = 0;
    while (p->at < p->end && isdigit((unsigned char)*p->at)) {
        int digit = *p->at++ - '0';
        if (v > (INT64_MAX - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    if (p->at == start)
        return false;
    take(p, 'L'); /* Python 2 wrote long integers with this suffix. */
    *value = v;
    return true;
}

static dq_status take_shape(parser *p, npy_header *h, dq_error *err)
{
    bool good = take(p, '(');
    h->rank = 0;
    while (good && !take(p, ')')) {
        if (h->rank == DQ_MAX_RANK)
            return io_fail(err, DQ_BAD_INPUT, "has more than %d dimensions", DQ_MAX_RANK);
        good = take_dimension(p, &h->dims[h->rank++]);
        if (good && !take(p, ',')) {
            good = h->rank > 1 && take(p, ')'); /* (3) is a number in Python, no shape. */
            break;
        }
    }
    return good ? DQ_OK
                : io_fail(err, DQ_BAD_INPUT, "has a .npy header whose shape is no tuple of dimensions");
}

static dq_dtype number_type(char kind, size_t size)
{
    static const struct {
        char kind;
        size_t size;
        dq_dtype dtype;
    } rows[] = {
        {'b', 1, DQ_BOOL},      {'i', 1, DQ_INT8},        {'i', 2, DQ_INT16},  {'i', 4, DQ_INT32},
        {'i', 8, DQ_INT64},     {'u', 1, DQ_UINT8},       {'u', 2, DQ_UINT16}, {'u', 4, DQ_UINT32},
        {'u', 8, DQ_UINT64},    {'f', 2, DQ_FLOAT16},     {'f', 4, DQ_FLOAT},  {'f', 8, DQ_DOUBLE},
        {'c', 8, DQ_COMPLEX64}, {'c', 16, DQ_COMPLEX128},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].kind == kind && rows[i].size == size)
            return rows[i].dtype;
    }
    return DQ_UNDEFINED;
}

/* Parses "<f4": byte order, kind, bytes of an element (characters for U). */
static dq_status read_descr(npy_header *h, dq_error *err)
{
    const char *d = h->descr;
    char order = *d && strchr("<>|=", *d) ? *d++ : '=';
    h->kind = *d ? *d++ : 0;
    if (h->kind == 'O')
        return io_fail(err, DQ_BAD_INPUT,
                       "holds pickled Python objects, expected numbers, bools or fixed strings");
    char *end = NULL;
    unsigned long size = isdigit((unsigned char)*d) ? strtoul(d, &end, 10) : 0;
    bool good = end && *end == 0 && size <= (1ul << 30);
    h->big_endian = order == '>';
    h->itemsize = h->kind == 'U' ? size * 4 : size;
    h->dtype = h->kind == 'S' || h->kind == 'U' ? DQ_STRING : number_type(h->kind, size);
    if (h->kind == 'f' && size == 1)
        h->kind = 'V';
    bool raw = h->kind == 'V' && (size == 1 || size == 2);
    if (!good || (h->dtype == DQ_UNDEFINED && !raw))
        return io_fail(err, DQ_BAD_INPUT, "has numpy type '%s', expected one that ONNX has", h->descr);
    return DQ_OK;
}

enum { HAS_DESCR = 1, HAS_ORDER = 2, HAS_SHAPE = 4, HAS_ALL = 7 };

static dq_status take_entry(parser *p, npy_header *h, unsigned *seen, dq_error *err)
{
    char key[16];
    bool good = take_string(p, key, sizeof key) && take(p, ':');
    unsigned bit = 0;
    if (good && !strcmp(key, "descr")) {
        bit = HAS_DESCR;
        skip_space(p);
        if (p->at < p->end && *p->at == '[')
            return io_fail(err, DQ_BAD_INPUT, "is a structured array, expected one of plain elements");
        good = take_string(p, h->descr, sizeof h->descr);
    } else if (good && !strcmp(key, "fortran_order")) {
        bit = HAS_ORDER;
        h->fortran = take_word(p, "True");
        good = h->fortran || take_word(p, "False");
    } else if (good && !strcmp(key, "shape")) {
        bit = HAS_SHAPE;
        dq_status status = take_shape(p, h, err);
        if (status != DQ_OK)
            return status;
    }
    if (!good || !bit || *seen & bit)
        return io_fail(err, DQ_BAD_INPUT,
                       "has a .npy header that is not the keys descr, fortran_order and shape, once each");
    *seen |= bit;
    return DQ_OK;
}

static dq_status parse_literal(const char *text, size_t length, npy_header *h, dq_error *err)
{
    parser p = {text, text + length};
    unsigned seen = 0;
    bool good = take(&p, '{');
    while (good && !take(&p, '}')) {
        dq_status status = take_entry(&p, h, &seen, err);
        if (status != DQ_OK)
            return status;
        if (!take(&p, ',')) {
            good = take(&p, '}');
            break;
        }
    }
    skip_space(&p);
    if (!good || p.at != p.end || seen != HAS_ALL)
        return io_fail(err, DQ_BAD_INPUT,
                       "has a .npy header that is not the keys descr, fortran_order and shape, once each");
    return read_descr(h, err);
}

static dq_status check_size(uint64_t size, uint64_t used, npy_header *h, dq_error *err)
{
    bool fits = io_count(h->rank, h->dims, &h->count);
    fits = fits && (h->itemsize == 0 || h->count <= SIZE_MAX / h->itemsize);
    h->data_size = fits ? h->count * h->itemsize : 0;
    if (!fits || size - used != h->data_size)
        return io_fail(err, DQ_BAD_INPUT, "has %llu bytes of data, and its .npy header declares %s%zu",
                       (unsigned long long)(size - used), fits ? "" : "more than ",
                       fits ? h->data_size : SIZE_MAX);
    return DQ_OK;
}

dq_status npy_read_header(io_source *source, npy_header *header, dq_error *err)
{
    uint8_t start[12] = {0};
    *header = (npy_header){0};
    if (source->size < 10)
        return io_fail(err, DQ_BAD_INPUT, "is no .npy array: it has only %llu bytes",
                       (unsigned long long)source->size);
    dq_status status = source->read(source->arg, start, 10, err);
    if (status != DQ_OK)
        return status;
    if (memcmp(start, "\x93NUMPY", 6) != 0)
        return io_fail(err, DQ_BAD_INPUT, "is no .npy array: it does not begin with \\x93NUMPY");
    if (start[6] < 1 || start[6] > 3)
        return io_fail(err, DQ_BAD_INPUT, "has version %u of .npy, expected 1 to 3", start[6]);
    uint64_t used = 10, length = start[8] | (unsigned)start[9] << 8;
    if (start[6] > 1) {
        if (source->size < 12)
            return io_fail(err, DQ_BAD_INPUT, "is cut off in its .npy header");
        status = source->read(source->arg, start + 10, 2, err);
        if (status != DQ_OK)
            return status;
        used = 12;
        length |= (uint64_t)start[10] << 16 | (uint64_t)start[11] << 24;
    }
    if (length > source->size - used || length > MAX_HEADER)
        return io_fail(
            err, DQ_BAD_INPUT, "has a .npy header of %llu bytes, expected at most %llu",
            (unsigned long long)length,
            (unsigned long long)(source->size - used < MAX_HEADER ? source->size - used : MAX_HEADER));
    char *text = malloc(length + 1);
    if (!text)
        return io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is for its header");
    status = source->read(source->arg, text, length, err);
    if (status == DQ_OK)
        status = parse_literal(text, length, header, err);
    free(text);
    return status == DQ_OK ? check_size(source->size, used + length, header, err) : status;
}
