/* SPDX-License-Identifier: Apache-2.0 */
/* src/parser/wire.c: the protobuf wire format at its ends: each length and number that just fits, and the
 * next one. */
#include "parser/wire.h"
#include "support/test_program.h"

#include <stdlib.h>
#include <string.h>

typedef struct sample {
    const char *bytes;
    size_t size;
    const char *message; /* NULL: one field that ends with the bytes … */
    uint32_t id;         /* … and has this number, */
    size_t contents;     /* and so many bytes of contents */
} sample;

#define BYTES(text) text, sizeof text - 1

static const sample samples[] = {
    {BYTES("\x08\x00"), NULL, 1, 1},
    {BYTES("\x0d"
           "1234"),
     NULL, 1, 4},
    {BYTES("\x09"
           "12345678"),
     NULL, 1, 8},
    {BYTES("\x0a\x03"
           "abc"),
     NULL, 1, 3},
    {BYTES("\x0a\x00"), NULL, 1, 0},
    /* the largest field number, in a tag of five bytes */
    {BYTES("\xf8\xff\xff\xff\x0f\x00"), NULL, (1 << 29) - 1, 1},
    /* tags and lengths of five bytes, though fewer would do */
    {BYTES("\x88\x80\x80\x80\x00\x00"), NULL, 1, 1},
    {BYTES("\x0a\x81\x80\x80\x80\x00z"), NULL, 1, 1},
    /* a number of ten bytes */
    {BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), NULL, 1, 10},

    {BYTES("\x08"), "is damaged or cut off: no whole number at byte 1", 0, 0},
    {BYTES("\x88"), "is damaged or cut off: no whole number at byte 0", 0, 0},
    {BYTES("\x0d"
           "123"),
     "is damaged or cut off: 4 bytes needed at byte 1, 3 left in their message", 0, 0},
    {BYTES("\x09"
           "1234567"),
     "is damaged or cut off: 8 bytes needed at byte 1, 7 left in their message", 0, 0},
    {BYTES("\x0a\x04"
           "abc"),
     "is damaged or cut off: 4 bytes needed at byte 2, 3 left in their message", 0, 0},
    {BYTES("\x0a\xff\xff\xff\xff\x0f"),
     "is damaged or cut off: 4294967295 bytes needed at byte 6, 0 left in their message", 0, 0},
    {BYTES("\x00\x00"), "is no ONNX model or is damaged: field number 0 at byte 0", 0, 0},
    {BYTES("\x80\x80\x80\x80\x10\x00"), "is no ONNX model or is damaged: field number 536870912 at byte 0", 0,
     0},
    {BYTES("\x88\x80\x80\x80\x80\x00\x00"), "is damaged or cut off: no whole number at byte 6", 0, 0},
    {BYTES("\x0a\x81\x80\x80\x80\x80\x00z"), "is damaged or cut off: no whole number at byte 7", 0, 0},
    {BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
     "is damaged or cut off: no whole number at byte 1", 0, 0},
    {BYTES("\x0b"), "is no ONNX model or is damaged: wire type 3 at byte 0", 0, 0},
    {BYTES("\x0f"), "is no ONNX model or is damaged: wire type 7 at byte 0", 0, 0},
};

START_TEST(one_field)
{
    const sample *s = &samples[_i];
    uint8_t *bytes = malloc(s->size); /* so that sanitizers see what is read past the end */
    dq_wire_field field;
    dq_error err = {0};
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, s->bytes, s->size);
    dq_wire w = {bytes, bytes + s->size};
    dq_status status = dq_wire_next(&w, bytes, &field, &err);
    if (s->message) {
        ck_assert_int_eq(status, DQ_BAD_MODEL);
        ck_assert_str_eq(err.message, s->message);
    } else {
        ck_assert_msg(status == DQ_OK, "%s", err.message);
        ck_assert_uint_eq(field.id, s->id);
        ck_assert_uint_eq(field.size, s->contents);
        ck_assert_ptr_eq(field.begin, bytes);
        ck_assert_ptr_eq(field.end, bytes + s->size);
        ck_assert_ptr_eq(w.at, w.end);
    }
    free(bytes);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("wire", NULL, NULL);
    add_loop_test(&tests, one_field, 0, (int)(sizeof samples / sizeof samples[0]));
    return test_program_run(&tests);
}
