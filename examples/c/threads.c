/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one model from several threads, each with a session of its own.
 *
 *     threads examples/digits_qdq.onnx [THREADS]
 *
 * Shows: a model that threads share, one session a thread with one thread each (the batch is
 * parallel), results that do not depend on how the work is cut. */
#include <dqrun/dqrun.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGES = 960, PIXELS = 64, CLASSES = 10, BATCH = 32, MAX_THREADS = 64 };

static float images[IMAGES][PIXELS], scores[IMAGES][CLASSES];

typedef struct job {
    dq_model *model;
    size_t begin, end; /* images */
    dq_status status;
    dq_error err;
} job;

static dq_status run_batch(dq_session *session, size_t at, size_t count, dq_error *err)
{
    const int64_t in_dims[4] = {(int64_t)count, 1, 8, 8}, out_dims[2] = {(int64_t)count, CLASSES};
    dq_tensor *in = NULL, *out = NULL;
    dq_status status = dq_tensor_wrap(DQ_FLOAT, 4, in_dims, images[at], count * sizeof images[0], &in, err);
    if (status == DQ_OK)
        status = dq_tensor_wrap(DQ_FLOAT, 2, out_dims, scores[at], count * sizeof scores[0], &out, err);
    if (status == DQ_OK)
        status = dq_session_set_input(session, NULL, in, err);
    if (status == DQ_OK)
        status = dq_session_set_output(session, NULL, out, err); /* results go straight to `scores` */
    if (status == DQ_OK)
        status = dq_session_run(session, err);
    dq_tensor_free(in); /* the next run has other tensors */
    dq_tensor_free(out);
    return status;
}

static void *work(void *arg)
{
    job *j = (job *)arg;
    dq_session_options options = DQ_SESSION_OPTIONS_INIT;
    dq_session *session = NULL;
    options.threads = 1;
    j->status = dq_session_create(j->model, &options, &session, &j->err);
    for (size_t at = j->begin; at < j->end && j->status == DQ_OK; at += BATCH)
        j->status = run_batch(session, at, j->end - at < BATCH ? j->end - at : BATCH, &j->err);
    dq_session_free(session);
    return NULL;
}

/* All images with that many threads; the status of the first that failed. */
static dq_status run_all(dq_model *model, size_t threads, dq_error *err)
{
    pthread_t handles[MAX_THREADS];
    job jobs[MAX_THREADS];
    size_t started = 0;
    dq_status status = DQ_OK;
    for (; started < threads; started++) {
        job *j = &jobs[started];
        j->model = model;
        j->begin = IMAGES * started / threads;
        j->end = IMAGES * (started + 1) / threads;
        if (pthread_create(&handles[started], NULL, work, j) != 0) {
            snprintf(err->message, sizeof err->message, "thread %zu cannot be started", started);
            status = DQ_OUT_OF_MEMORY;
            break;
        }
    }
    for (size_t i = 0; i < started; i++) {
        pthread_join(handles[i], NULL);
        if (status == DQ_OK && jobs[i].status != DQ_OK) {
            status = jobs[i].status;
            *err = jobs[i].err;
        }
    }
    return status;
}

int main(int argc, char **argv)
{
    static float alone[IMAGES][CLASSES];
    size_t threads = argc > 2 ? (size_t)strtoul(argv[2], NULL, 10) : 2;
    dq_model *model = NULL;
    dq_error err;
    if (argc < 2 || threads < 1 || threads > MAX_THREADS)
        return fprintf(stderr, "usage: threads MODEL.onnx [THREADS: 1 to %d]\n", MAX_THREADS), 2;
    for (size_t i = 0; i < IMAGES * PIXELS; i++)
        images[i / PIXELS][i % PIXELS] = (float)(i * 2654435761u % 17); /* made up: 17 shades of grey */

    dq_status status = dq_model_load(argv[1], NULL, &model, &err);
    if (status == DQ_OK)
        status = run_all(model, 1, &err);
    memcpy(alone, scores, sizeof scores);
    memset(scores, 0, sizeof scores);
    if (status == DQ_OK)
        status = run_all(model, threads, &err);
    dq_model_free(model);
    if (status != DQ_OK)
        return fprintf(stderr, "threads: %s: %s\n", dq_status_name(status), err.message), (int)status;
    const int same = memcmp(alone, scores, sizeof scores) == 0;
    printf("%d images, 1 and %zu threads: %s\n", IMAGES, threads, same ? "the same bits" : "different bits");
    return !same;
}
