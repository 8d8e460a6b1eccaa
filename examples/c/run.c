/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a model on one image and prints its scores.
 *
 *     run examples/digits_qdq.onnx
 *
 * Shows: loading, a session, an input over the program's own memory, outputs, errors. */
#include <dqrun/dqrun.h>

#include <stdio.h>

/* A handwritten 1, in 17 shades of grey. */
static float image[64] = {0,  0, 0, 12, 13, 5,  0,  0,  0,  0, 0, 11, 16, 9,  0,  0,  0,  0,  3, 15, 16, 6,
                          0,  0, 0, 7,  15, 16, 16, 2,  0,  0, 0, 0,  1,  16, 16, 3,  0,  0,  0, 0,  1,  16,
                          16, 6, 0, 0,  0,  0,  1,  16, 16, 6, 0, 0,  0,  0,  0,  11, 16, 10, 0, 0};

int main(int argc, char **argv)
{
    const int64_t dims[4] = {1, 1, 8, 8};
    dq_model *model = NULL;
    dq_session *session = NULL;
    dq_tensor *input = NULL;
    const dq_tensor *scores = NULL; /* the session's own: valid until its next run */
    dq_error err;
    if (argc != 2)
        return fprintf(stderr, "usage: run MODEL.onnx\n"), 2;

    dq_status status = dq_model_load(argv[1], NULL, &model, &err);
    if (status == DQ_OK)
        status = dq_session_create(model, NULL, &session, &err);
    if (status == DQ_OK)
        status = dq_tensor_wrap(DQ_FLOAT, 4, dims, image, sizeof image, &input, &err);
    if (status == DQ_OK)
        status = dq_session_set_input(session, NULL, input, &err); /* NULL: the first input */
    if (status == DQ_OK)
        status = dq_session_run(session, &err);
    if (status == DQ_OK)
        status = dq_session_get_output(session, NULL, &scores, &err);

    if (status == DQ_OK) {
        const float *values = (const float *)dq_tensor_data(scores);
        size_t best = 0;
        for (size_t i = 0; i < dq_tensor_count(scores); i++) {
            printf("%zu: %6.2f\n", i, values[i]);
            if (values[i] > values[best])
                best = i;
        }
        printf("this is a %zu\n", best);
    } else {
        fprintf(stderr, "run: %s: %s\n", dq_status_name(status), err.message);
    }
    dq_session_free(session); /* all of these accept NULL */
    dq_model_free(model);
    dq_tensor_free(input);
    return (int)status;
}
