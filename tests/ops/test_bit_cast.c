/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

START_TEST(same_bits)
{
    ops_case c;
    ops_begin(&c, "", "BitCast", 26);
    ops_int(&c, "to", DQ_INT32);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 3), OPS_VALUES(1, -0.0, -2));
    ops_must_run(&c);
    ops_want_bits(&c, 0, DQ_INT32, OPS_DIMS(1, 3), (const uint64_t[]){0x3f800000, 0x80000000, 0xc0000000});
    ops_end(&c);

    ops_begin(&c, "", "BitCast", 26);
    ops_int(&c, "to", DQ_FLOAT4E2M1);
    ops_in(&c, DQ_UINT4, OPS_DIMS(3), OPS_VALUES(7, 9, 0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT4E2M1, OPS_DIMS(3), OPS_VALUES(6, -0.5, 0));
    ops_end(&c);

    ops_begin(&c, "", "BitCast", 26);
    ops_int(&c, "to", DQ_UINT8);
    ops_in(&c, DQ_BOOL, OPS_SCALAR, OPS_VALUES(1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_SCALAR, OPS_VALUES(1));
    ops_end(&c);
}
END_TEST

START_TEST(refused)
{
    ops_case c;
    ops_begin(&c, "", "BitCast", 26);
    ops_int(&c, "to", DQ_INT16);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL,
                    "attribute 'to' is int16 of 16 bits, expected a type of 32 bits as input 0 of float has");
    ops_end(&c);

    ops_begin(&c, "", "BitCast", 26);
    ops_int(&c, "to", DQ_STRING);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "attribute 'to' is 8, expected the number of a type other than string");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("bit_cast", NULL, NULL);
    add_test(&tests, same_bits);
    add_test(&tests, refused);
    return test_program_run(&tests);
}
