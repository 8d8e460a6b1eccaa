/* SPDX-License-Identifier: Apache-2.0 */
/* A soak: a model runs many times with changing shapes, and its memory must stay flat.
 *
 *     soak RUNS MODEL…
 *
 * Each model runs RUNS times on made-up inputs, whose free dimensions are drawn anew in each run. The session
 * is made again after every 1,000 runs, the model loaded again after every 10,000. Resident memory after the
 * first tenth, in which every shape has been seen, is the bound: at the end it may be 1 MiB more, for the
 * allocator. Prints a line a model; exits with 1 if a run fails or memory grows. */
#include "support/random.h"

#include <dqrun/dqrun.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    INPUTS_MAX = 16,
    DIM_MAX = 24, /* of a free dimension */
    RUNS_OF_A_SESSION = 1000,
    RUNS_OF_A_MODEL = 10000,
    GROWTH_MAX = 1 << 20
};

static uint64_t state = 1;

static uint32_t draw(uint32_t below)
{
    return random_below(&state, below);
}

static dq_error err;

static void must(dq_status status)
{
    if (status == DQ_OK)
        return;
    fprintf(stderr, "soak: %s\n", err.message);
    exit(1);
}

/* Bytes of this process in memory. */
static int64_t resident(void)
{
    long total = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &total, &pages) != 2)
        pages = 0;
    if (file)
        fclose(file);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

/* A tensor of the declared type: one draw for all free dimensions of a run, so that inputs fit each other. */
static dq_tensor *made_up(const dq_value_info *info, int64_t free_dim)
{
    int64_t dims[DQ_MAX_RANK] = {0};
    dq_tensor *tensor = NULL;
    for (size_t d = 0; d < info->rank; d++)
        dims[d] = info->dims[d] < 0 ? free_dim : info->dims[d];
    must(dq_tensor_create(info->dtype, info->rank, dims, &tensor, &err));
    uint8_t *data = dq_tensor_mutable_data(tensor);
    for (size_t i = 0; i < dq_tensor_size(tensor); i++)
        data[i] = (uint8_t)(info->dtype == DQ_FLOAT && i % 4 == 3 ? 0x3F : draw(64));
    return tensor;
}

static void run_once(const dq_model *model, dq_session *session)
{
    dq_tensor *inputs[INPUTS_MAX] = {0};
    size_t count = dq_model_input_count(model);
    int64_t free_dim = 1 + draw(DIM_MAX);
    for (size_t i = 0; i < count && i < INPUTS_MAX; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        must(dq_model_input(model, i, &info, NULL));
        inputs[i] = made_up(&info, free_dim);
        must(dq_session_set_input(session, info.name, inputs[i], &err));
    }
    must(dq_session_run(session, &err));
    for (size_t i = 0; i < INPUTS_MAX; i++)
        dq_tensor_free(inputs[i]);
}

static bool stays_flat(const char *path, unsigned long runs)
{
    const dq_session_options options = {.size = sizeof(dq_session_options), .threads = 1};
    dq_model *model = NULL;
    dq_session *session = NULL;
    int64_t bound = 0;
    for (unsigned long i = 0; i < runs; i++) {
        if (i % RUNS_OF_A_SESSION == 0) {
            dq_session_free(session);
            session = NULL;
        }
        if (i % RUNS_OF_A_MODEL == 0) {
            dq_model_free(model);
            model = NULL;
            must(dq_model_load(path, NULL, &model, &err));
        }
        if (!session)
            must(dq_session_create(model, &options, &session, &err));
        run_once(model, session);
        if (i == runs / 10)
            bound = resident() + GROWTH_MAX;
    }
    int64_t end = resident();
    dq_session_free(session);
    dq_model_free(model);
    printf("%s: %lu runs, %" PRId64 " KiB after a tenth, %" PRId64 " KiB at the end\n", path, runs,
           (bound - GROWTH_MAX) / 1024, end / 1024);
    return end <= bound;
}

int main(int argc, char **argv)
{
    unsigned long runs = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;
    bool flat = runs > 0;
    for (int i = 2; i < argc; i++)
        flat = stays_flat(argv[i], runs) && flat;
    return !flat;
}
