/* SPDX-License-Identifier: Apache-2.0 */
/* src/rewrite/cse_quantize.c: readers of equal QuantizeLinear nodes read the result of the first one. */
#include "planned.h"
#include "support/test_program.h"

/* Two nodes of com.microsoft with scales for 2 channels, the second without attributes; their readers. The
 * schema gives axis no default: without it, it is 1. */
static void quantize_twice(const int64_t *first_axis)
{
    static float numbers[2] = {0.5f, 2};
    static dq_tensor scale = {.data = numbers};
    dq_type type = {.dtype = DQ_FLOAT};
    ck_assert_int_eq(dq_tensor_set_shape(&scale, DQ_FLOAT, 1, (int64_t[]){2}, 0, DQ_BAD_MODEL, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_initializer(g, "scale", &scale, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_input(g, "x", &type, &err), DQ_OK);
    const char *const in[] = {"x", "scale", NULL};
    dq_node *first = add("com.microsoft", "QuantizeLinear", in, "q0", first_axis ? 1 : 0);
    if (first_axis)
        first->attrs[0] = (dq_attr){.name = "axis", .kind = DQ_ATTR_INT, .u.i = *first_axis};
    add("com.microsoft", "QuantizeLinear", in, "q1", 0);
    add("", "Identity", (const char *[]){"q0", NULL}, "y0", 0);
    add("", "Identity", (const char *[]){"q1", NULL}, "y1", 0);
    ck_assert_int_eq(dq_graph_add_output(g, "y0", NULL, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_add_output(g, "y1", NULL, &err), DQ_OK);
    ck_assert_int_eq(dq_graph_link(g, &err), DQ_OK);
    ck_assert_int_eq(dq_program_create(ir, schemas, NULL, &program, &err), DQ_OK);
}

START_TEST(equal_nodes_are_one)
{
    quantize_twice(NULL);
    ck_assert_ptr_eq(g->nodes[3]->in[0], g->nodes[0]->out[0]);
}
END_TEST

START_TEST(an_attribute_that_only_one_has_keeps_them_apart)
{
    quantize_twice((int64_t[]){0});
    ck_assert_ptr_eq(g->nodes[2]->in[0], g->nodes[0]->out[0]);
    ck_assert_ptr_eq(g->nodes[3]->in[0], g->nodes[1]->out[0]);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("cse_quantize", set_up, tear_down);
    add_test(&tests, equal_nodes_are_one);
    add_test(&tests, an_attribute_that_only_one_has_keeps_them_apart);
    return test_program_run(&tests);
}
