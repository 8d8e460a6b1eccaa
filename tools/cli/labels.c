/* SPDX-License-Identifier: Apache-2.0 */
/* --labels. */
#include "cli/outputs.h"
#include "io/common.h"
#include "io/npz.h"
#include "io/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TABLE = 20 };

dq_status cli_labels_read(const char *path, dq_tensor **out, dq_error *err)
{
    size_t length = strlen(path);
    if (length > 4 && !strcmp(path + length - 4, ".npy"))
        return npy_file_read(path, DQ_UNDEFINED, IO_TENSOR_LIMIT, out, err);
    npz *archive = NULL;
    dq_status status = npz_open(path, &archive, err);
    if (status != DQ_OK)
        return status;
    if (npz_count(archive) != 1)
        status =
            io_fail(err, DQ_BAD_INPUT, "holds %zu arrays, expected one with the labels", npz_count(archive));
    else
        status = npz_read(archive, 0, DQ_UNDEFINED, IO_TENSOR_LIMIT, out, err);
    npz_close(archive);
    return status;
}

static bool is_scores(const dq_tensor *t)
{
    dq_dtype dtype = dq_tensor_dtype(t);
    bool number = dtype != DQ_STRING && dtype != DQ_BOOL && dtype != DQ_COMPLEX64 && dtype != DQ_COMPLEX128;
    return number && dq_tensor_rank(t) == 2 && dq_tensor_dims(t)[1] > 0;
}

static size_t predict(const dq_tensor *scores, size_t row, size_t classes)
{
    size_t best = 0;
    double most = (double)NAN;
    for (size_t c = 0; c < classes; c++) {
        double score = dq_tensor_value(scores, row * classes + c);
        if (score > most || (isnan(most) && !isnan(score))) {
            most = score;
            best = c;
        }
    }
    return best;
}

/* Checks the labels: one per row, each of them a class. */
static dq_status check_labels(const dq_tensor *labels, const dq_tensor *scores, dq_error *err)
{
    const int64_t *dims = dq_tensor_dims(scores);
    char got[IO_TYPE_TEXT];
    io_type_text(dq_tensor_dtype(labels), dq_tensor_rank(labels), dq_tensor_dims(labels), got);
    if (!io_is_integer(dq_tensor_dtype(labels)) || dq_tensor_count(labels) != (size_t)dims[0] ||
        dq_tensor_rank(labels) < 1)
        return io_fail(err, DQ_BAD_INPUT,
                       "the labels are %s, expected one integer for each of %" PRId64 " rows", got, dims[0]);
    for (size_t i = 0; i < dq_tensor_count(labels); i++) {
        uint64_t label = io_get_int(labels, i);
        if (label >= (uint64_t)dims[1])
            return io_fail(err, DQ_BAD_INPUT, "label %zu is %" PRId64 ", expected 0 to %" PRId64, i,
                           (int64_t)label, dims[1] - 1);
    }
    return DQ_OK;
}

static void print_table(const size_t *table, size_t classes)
{
    int width = 5;
    for (size_t i = 0; i < classes * classes; i++) {
        int digits = snprintf(NULL, 0, "%zu", table[i]) + 1;
        width = digits > width ? digits : width;
    }
    printf("rows: label; columns: class with the largest score\n%*s", width, "");
    for (size_t c = 0; c < classes; c++)
        printf("%*zu", width, c);
    printf("\n");
    for (size_t r = 0; r < classes; r++) {
        printf("%*zu", width, r);
        for (size_t c = 0; c < classes; c++)
            printf("%*zu", width, table[r * classes + c]);
        printf("\n");
    }
}

static void print_json(cli_json *json, const size_t *table, size_t classes, size_t correct, size_t rows)
{
    cli_json_begin_object(json, "labels");
    cli_json_size(json, "correct", correct);
    cli_json_size(json, "rows", rows);
    cli_json_double(json, "accuracy", rows ? (double)correct / (double)rows : 0);
    if (classes > MAX_TABLE) {
        cli_json_null(json, "confusion");
    } else {
        cli_json_begin_array(json, "confusion");
        for (size_t r = 0; r < classes; r++) {
            cli_json_begin_array(json, NULL);
            for (size_t c = 0; c < classes; c++)
                cli_json_size(json, NULL, table[r * classes + c]);
            cli_json_end_array(json);
        }
        cli_json_end_array(json);
    }
    cli_json_end_object(json);
}

static dq_status score(const dq_tensor *labels, const dq_tensor *scores, bool quiet, cli_json *json,
                       dq_error *err)
{
    size_t rows = (size_t)dq_tensor_dims(scores)[0], classes = (size_t)dq_tensor_dims(scores)[1], correct = 0;
    bool tabled = classes <= MAX_TABLE;
    size_t table[MAX_TABLE * MAX_TABLE] = {0};
    dq_status status = check_labels(labels, scores, err);
    if (status != DQ_OK)
        return status;
    for (size_t i = 0; i < rows; i++) {
        size_t label = (size_t)io_get_int(labels, i), predicted = predict(scores, i, classes);
        correct += label == predicted;
        if (tabled)
            table[label * classes + predicted]++;
    }
    if (json)
        print_json(json, table, classes, correct, rows);
    if (json || quiet)
        return DQ_OK;
    printf("accuracy: %.1f %% (%zu of %zu)\n", rows ? 100.0 * (double)correct / (double)rows : 0.0, correct,
           rows);
    if (tabled)
        print_table(table, classes);
    return DQ_OK;
}

dq_status cli_labels(const cli_outputs *outputs, const cli_options *options, cli_json *json, dq_error *err)
{
    const dq_tensor *scores = NULL;
    for (size_t i = 0; i < outputs->count && !scores; i++) {
        if (is_scores(outputs->tensors[i]))
            scores = outputs->tensors[i];
    }
    if (!scores)
        return io_fail(err, DQ_BAD_INPUT,
                       "--labels needs an output of numbers with the shape [rows, classes]");
    dq_tensor *labels = NULL;
    dq_status status = cli_labels_read(options->labels, &labels, err);
    if (status == DQ_OK)
        status = score(labels, scores, options->quiet, json, err);
    dq_tensor_free(labels);
    return status == DQ_OK ? DQ_OK : io_prefix(err, status, options->labels);
}
