/* SPDX-License-Identifier: Apache-2.0 */
/* src/exec/bound_outputs.c over random graphs and memory: a run gives the same bytes as one that computes all
 * outputs in memory of their own and copies them at the end. */
#include "small_model.h"
#include "support/random.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { SIDE = 24, SIZE = SIDE * SIDE, INPUTS = 3, NODES = 9, OUTPUTS = 4, POOL = 12 * SIZE };

static uint64_t state;

static uint32_t below(uint32_t n)
{
    return random_below(&state, n);
}

static const int64_t form[2] = {SIDE, SIDE};

/* Splits the value in two, and puts the halves together the other way round, one of them or both computed
 * there. */
static void swap_halves(const char *in, const char *out, uint32_t i)
{
    char a[8], z[8], c[8], d[8];
    snprintf(a, sizeof a, "a%u", i);
    snprintf(z, sizeof z, "z%u", i);
    snprintf(c, sizeof c, "c%u", i);
    snprintf(d, sizeof d, "d%u", i);
    const bool both = below(2);
    const char *halves[2] = {a, z}, *swapped[2] = {c, both ? d : a};
    const dq_attribute
        axis = {.size = sizeof(dq_attribute), .name = "axis", .kind = DQ_ATTRIBUTE_INT, .i = 0},
        two = {.size = sizeof(dq_attribute), .name = "num_outputs", .kind = DQ_ATTRIBUTE_INT, .i = 2};
    must(add_node(b, "", "Split", a, 1, &in, 2, halves, 1, &two, &err));
    node("Neg", z, NULL, c);
    if (both)
        node("Neg", a, NULL, d);
    must(add_node(b, "", "Concat", out, 2, swapped, 1, &out, 1, &axis, &err));
}

/* Takes another shape and the first one again. */
static void reshape_twice(const char *in, const char *out, uint32_t i)
{
    char a[8], z[8];
    snprintf(a, sizeof a, "a%u", i);
    snprintf(z, sizeof z, "z%u", i);
    node("Reshape", in, "flat", a);
    if (below(2))
        node("Neg", a, NULL, z);
    node("Reshape", below(2) ? a : in, "whole", out);
}

/* A random graph of values v0 … of one form: v0 to v2 are its inputs. */
static void make_any(void)
{
    static const char *const ops[] = {"Add",  "Add",      "Mul",     "MatMul",   "Neg",
                                      "Relu", "Identity", "Softmax", "Transpose"};
    enum { COUNT = sizeof ops / sizeof *ops, BINARY = 4 };
    static int64_t flat[1] = {SIZE}, whole[2] = {SIDE, SIDE};
    char a[8], c[8], y[8];
    begin();
    constant("flat", DQ_INT64, 1, (int64_t[]){1}, flat);
    constant("whole", DQ_INT64, 1, (int64_t[]){2}, whole);
    for (uint32_t i = 0; i < INPUTS + NODES; i++) {
        const uint32_t kind = below(COUNT + 2);
        snprintf(y, sizeof y, "v%u", i);
        if (i < INPUTS) {
            input(y, DQ_FLOAT, 2, form);
            continue;
        }
        snprintf(a, sizeof a, "v%u", below(3) ? i - 1 - below(3) : below(i));
        snprintf(c, sizeof c, "v%u", below(i));
        if (kind < COUNT)
            node(ops[kind], a, kind < BINARY ? c : NULL, y);
        else if (kind == COUNT)
            swap_halves(a, y, i);
        else
            reshape_twice(a, y, i);
    }
    for (uint32_t i = 0, v = INPUTS + NODES; i < OUTPUTS; i++) {
        v -= 1 + below(3);
        snprintf(y, sizeof y, "v%u", v);
        output(y);
    }
}

typedef struct places {
    size_t in[INPUTS], out[OUTPUTS]; /* floats from the pool's begin; SIZE_MAX: no target */
} places;

/* Outputs apart from one another, inputs anywhere, often where an output is. */
static void choose(places *p, size_t outputs)
{
    for (size_t i = 0; i < outputs; i++) {
        bool stride = false;
        while (!stride) {
            p->out[i] = below(POOL - SIZE + 1);
            stride = true;
            for (size_t k = 0; k < i; k++)
                stride = stride && (p->out[i] >= p->out[k] + SIZE || p->out[k] >= p->out[i] + SIZE);
        }
    }
    for (size_t i = 0; i < INPUTS; i++) {
        p->in[i] = below(3) ? p->out[below((uint32_t)outputs)] : below(POOL - SIZE + 1);
        p->in[i] -= below(3) || p->in[i] < 8 ? 0 : below(8);
    }
    for (size_t i = 0; i < outputs; i++)
        if (below(4) == 0)
            p->out[i] = SIZE_MAX;
}

static float pool[POOL], expected[POOL], stride[INPUTS][SIZE];

static void fill_pool(void)
{
    for (size_t i = 0; i < POOL; i++)
        pool[i] = (float)below(64) / 16 - 2;
}

/* What must be there afterwards. */
static void run_strided(dq_session *plain, const places *p, size_t outputs)
{
    char name[8];
    memcpy(expected, pool, sizeof pool);
    for (size_t i = 0; i < INPUTS; i++) {
        memcpy(stride[i], pool + p->in[i], sizeof stride[i]);
        snprintf(name, sizeof name, "v%zu", i);
        dq_tensor *t = NULL;
        must(dq_tensor_wrap(DQ_FLOAT, 2, form, stride[i], sizeof stride[i], &t, &err));
        must(dq_session_set_input(plain, name, t, &err));
        if (made_count > 32)
            dq_tensor_free(made[--made_count]);
        keep(t);
    }
    must(dq_session_run(plain, &err));
    for (size_t i = 0; i < outputs; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        const dq_tensor *t = NULL;
        must(dq_model_output(model, i, &info, NULL));
        must(dq_session_get_output(plain, info.name, &t, &err));
        if (p->out[i] != SIZE_MAX)
            memcpy(expected + p->out[i], dq_tensor_data(t), sizeof stride[0]);
    }
}

/* Binds, runs, and frees the tensors again. Returns how many outputs were computed where they belong. */
static size_t run_there(const places *p, size_t outputs)
{
    dq_tensor *ins[INPUTS], *outs[OUTPUTS] = {NULL};
    char name[8];
    size_t there = 0;
    for (size_t i = 0; i < INPUTS; i++) {
        snprintf(name, sizeof name, "v%zu", i);
        must(dq_tensor_wrap(DQ_FLOAT, 2, form, pool + p->in[i], sizeof stride[0], &ins[i], &err));
        must(dq_session_set_input(session, name, ins[i], &err));
    }
    for (size_t i = 0; i < outputs; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        must(dq_model_output(model, i, &info, NULL));
        if (p->out[i] != SIZE_MAX)
            must(dq_tensor_wrap(DQ_FLOAT, 2, form, pool + p->out[i], sizeof stride[0], &outs[i], &err));
        must(dq_session_set_output(session, info.name, outs[i], &err));
    }
    must(dq_session_run(session, &err));
    for (size_t i = 0; i < outputs; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        must(dq_model_output(model, i, &info, NULL));
        there += p->out[i] != SIZE_MAX && data_of(info.name) == pool + p->out[i];
    }
    for (size_t i = 0; i < INPUTS; i++)
        dq_tensor_free(ins[i]);
    for (size_t i = 0; i < outputs; i++)
        dq_tensor_free(outs[i]);
    return there;
}

START_TEST(any_graph_in_any_memory)
{
    size_t there = 0, runs = 0;
    dq_session *plain = NULL;
    state = (uint64_t)_i + 1;
    for (int graph = 0; graph < 100; graph++) {
        make_any();
        must(dq_builder_finish(b, NULL, &model, &err));
        const bool no_fuse = below(2);
        const dq_session_options options = {
            .size = sizeof(dq_session_options), .threads = 1, .no_fuse = no_fuse};
        open_session(1 + below(2), no_fuse, NULL, NULL);
        must(dq_session_create(model, &options, &plain, &err));
        for (int run = 0; run < 8; run++) {
            places p;
            const size_t outputs = dq_model_output_count(model);
            choose(&p, outputs);
            fill_pool();
            run_strided(plain, &p, outputs);
            there += run_there(&p, outputs);
            ck_assert_msg(memcmp(pool, expected, sizeof pool) == 0, "seed %d, graph %d, run %d", _i, graph,
                          run);
            runs++;
        }
        dq_session_free(plain);
        tear_down();
    }
    ck_assert_uint_gt(runs, 100);
    ck_assert_uint_gt(there, runs / 2);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("bound_outputs_random", NULL, tear_down);
    add_loop_test(&tests, any_graph_in_any_memory, 0, 10);
    return test_program_run(&tests);
}
