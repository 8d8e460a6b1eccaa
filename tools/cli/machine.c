/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/machine.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS = 384 }; /* of square matrices: three of them fit in the second-level cache as int8 */
#define SECONDS 0.06 /* for each measure */
#define COPY_BYTES ((size_t)48 << 20)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- Products ------------------------------------------------------------------------------------------ */

typedef struct product {
    dq_builder *builder;
    dq_model *model;
    dq_session *session;
    dq_tensor *input;
    void *weights, *data;
} product;

static dq_status add_weights(product *p, dq_dtype dtype, size_t size)
{
    static const int64_t dims[2] = {ROWS, ROWS};
    dq_tensor *t = NULL;
    p->weights = malloc(size);
    if (!p->weights)
        return DQ_OUT_OF_MEMORY;
    for (size_t i = 0; i < (size_t)ROWS * ROWS; i++) {
        if (dtype == DQ_FLOAT)
            ((float *)p->weights)[i] = (float)(i % 17) * 0.125f - 1;
        else
            ((int8_t *)p->weights)[i] = (int8_t)(i % 201 - 100);
    }
    dq_status status = dq_tensor_wrap_const(dtype, 2, dims, p->weights, size, &t, NULL);
    if (status == DQ_OK)
        status = dq_builder_initializer(p->builder, "w", t, NULL);
    dq_tensor_free(t);
    return status;
}

/* MatMul of floats, or MatMulInteger of uint8 and int8, whose sums are the result: no requantization. */
static dq_status add_nodes(product *p, bool integers)
{
    static const int64_t dims[2] = {ROWS, ROWS};
    static const char *const inputs[] = {"x", "w"};
    dq_node_spec spec = DQ_NODE_SPEC_INIT;
    const char *output = NULL;
    spec.op_type = integers ? "MatMulInteger" : "MatMul";
    spec.inputs = inputs;
    spec.input_count = 2;
    spec.output_count = 1;
    dq_status status = dq_builder_opset(p->builder, "", 21, NULL);
    if (status == DQ_OK)
        status = dq_builder_input(p->builder, "x", integers ? DQ_UINT8 : DQ_FLOAT, 2, dims, NULL, NULL);
    if (status == DQ_OK)
        status = add_weights(p, integers ? DQ_INT8 : DQ_FLOAT,
                             (size_t)ROWS * ROWS * (integers ? 1 : sizeof(float)));
    if (status == DQ_OK)
        status = dq_builder_node(p->builder, &spec, &output, NULL);
    return status == DQ_OK
               ? dq_builder_output(p->builder, output, integers ? DQ_INT32 : DQ_FLOAT, 2, dims, NULL, NULL)
               : status;
}

static dq_status start(product *p, const dq_session_options *options, bool integers)
{
    static const int64_t dims[2] = {ROWS, ROWS};
    const size_t size = (size_t)ROWS * ROWS * (integers ? 1 : sizeof(float));
    dq_status status = dq_builder_create("machine", &p->builder, NULL);
    if (status == DQ_OK)
        status = add_nodes(p, integers);
    if (status == DQ_OK) {
        status = dq_builder_finish(p->builder, NULL, &p->model, NULL);
        p->builder = NULL;
    }
    if (status == DQ_OK)
        status = dq_session_create(p->model, options, &p->session, NULL);
    p->data = calloc(1, size);
    if (status == DQ_OK)
        status = p->data ? dq_tensor_wrap_const(integers ? DQ_UINT8 : DQ_FLOAT, 2, dims, p->data, size,
                                                &p->input, NULL)
                         : DQ_OUT_OF_MEMORY;
    return status == DQ_OK ? dq_session_set_input(p->session, "x", p->input, NULL) : status;
}

static double product_rate(const dq_session_options *options, bool integers)
{
    product p = {0};
    double best = HUGE_VAL;
    dq_status status = start(&p, options, integers);
    const double end = now() + SECONDS;
    for (int run = 0; status == DQ_OK && (run < 3 || now() < end); run++) {
        const double begin = now();
        status = dq_session_run(p.session, NULL);
        best = run ? fmin(best, now() - begin) : best; /* the first run plans */
    }
    dq_session_free(p.session);
    dq_model_free(p.model);
    dq_builder_free(p.builder);
    dq_tensor_free(p.input);
    free(p.weights);
    free(p.data);
    return status == DQ_OK && best > 0 ? (double)ROWS * ROWS * ROWS / best : 0;
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

typedef struct copier {
    size_t size;
    double rate; /* bytes a second, read and written */
} copier;

/* Copies for a while. All threads do so at the same time, and their rates add up. */
static void *copy(void *arg)
{
    copier *c = arg;
    char *from = malloc(c->size), *to = malloc(c->size);
    if (from && to) {
        memset(from, 1, c->size);
        memset(to, 2, c->size);
        const double begin = now();
        size_t rounds = 0;
        do {
            from[rounds % c->size] = (char)rounds;
            memcpy(to, from, c->size);
            rounds += to[rounds % c->size] == (char)rounds; /* the copy is used */
        } while (now() < begin + SECONDS);
        c->rate = 2 * (double)c->size * (double)rounds / (now() - begin);
    }
    free(from);
    free(to);
    return NULL;
}

static double copy_rate(unsigned threads)
{
    pthread_t *ids = calloc(threads, sizeof *ids);
    copier *parts = calloc(threads, sizeof *parts);
    double rate = 0;
    unsigned started = 1;
    if (ids && parts) {
        for (unsigned i = 0; i < threads; i++)
            parts[i].size = COPY_BYTES / threads;
        while (started < threads && !pthread_create(&ids[started], NULL, copy, &parts[started]))
            started++;
        copy(&parts[0]);
        for (unsigned i = 0; i < started; i++) {
            if (i)
                pthread_join(ids[i], NULL);
            rate += parts[i].rate;
        }
    }
    free(ids);
    free(parts);
    return rate;
}

void cli_machine_measure(const dq_session_options *options, unsigned threads, cli_machine *out)
{
    dq_session_options own = *options;
    own.trace = NULL;
    own.arg = NULL;
    own.log = NULL;
    own.progress = NULL;
    own.threads = threads;
    own.algorithms = NULL;
    own.disabled_passes = NULL;
    *out =
        (cli_machine){product_rate(&own, true), product_rate(&own, false), copy_rate(threads ? threads : 1)};
}
