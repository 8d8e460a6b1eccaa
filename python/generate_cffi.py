#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the C source of the extension module dqrun._native: generate_cffi.py HEADER DOCUMENT-HEADER OUTPUT.c COMPILER…

The public header and that of the analyses (tools/insight/document.h) are what cffi reads, after the preprocessor, without the
headers that they include."""

import subprocess
import sys

import cffi

# Called by the C library, implemented in Python (_insight.py, _model.py, _session.py).
CALLBACKS = """
extern "Python" void dqrun_python_report(void *arg, const dq_error *why);
extern "Python" void dqrun_python_log(void *arg, const dq_log_record *record);
extern "Python" void dqrun_python_trace(void *arg, const dq_trace_event *event);
extern "Python" int dqrun_python_poll(void *arg);
extern "Python" dq_status dqrun_python_input(void *arg, size_t index, dq_tensor *const **tensors, dq_error *err);
extern "Python" int dqrun_python_compared(void *arg, const char *what, double done);
"""

HELPERS = """
typedef struct dqrun_python_output {
    dq_tensor *tensor;
    void *data;
    size_t size, count, rank;
    int kind, dtype;
    int64_t dims[16];
} dqrun_python_output;
dq_status dqrun_python_feed(dq_session *session, const char *name, int dtype, size_t rank, const int64_t *dims, const void *data,
                            size_t size, dq_tensor **tensor, dq_error *err);
dq_status dqrun_python_take(dq_session *session, const char *name, dqrun_python_output *output, dq_error *err);
int dqrun_python_progress(void *arg, const dq_progress *progress);
int dqrun_python_command(int argc, char **argv);
"""

SOURCE = """
#include "insight/document.h"
#include <time.h>

int dqrun_python_command(int argc, char **argv); /* tools/dqrun.c */
static int dqrun_python_poll(void *arg);

typedef struct dqrun_python_output {
    dq_tensor *tensor;
    void *data;
    size_t size, count, rank;
    int kind, dtype;
    int64_t dims[DQ_MAX_RANK];
} dqrun_python_output;

/* What a run does for each input and output, in one call from Python in place of several. */
static dq_status dqrun_python_feed(dq_session *session, const char *name, int dtype, size_t rank, const int64_t *dims,
                                   const void *data, size_t size, dq_tensor **tensor, dq_error *err)
{
    dq_status status = dq_tensor_wrap_const((dq_dtype)dtype, rank, dims, data, size, tensor, err);
    if (status == DQ_OK && (status = dq_session_set_input(session, name, *tensor, err)) != DQ_OK)
        dq_tensor_free(*tensor);
    return status;
}

static dq_status dqrun_python_take(dq_session *session, const char *name, dqrun_python_output *output, dq_error *err)
{
    dq_status status = dq_session_take_output(session, name, &output->tensor, err);
    if (status != DQ_OK)
        return status;
    dq_tensor *t = output->tensor;
    output->data = dq_tensor_mutable_data(t);
    output->size = dq_tensor_size(t);
    output->count = dq_tensor_count(t);
    output->rank = dq_tensor_rank(t);
    output->kind = (int)dq_tensor_kind(t);
    output->dtype = (int)dq_tensor_dtype(t);
    for (size_t i = 0; i < output->rank; i++)
        output->dims[i] = dq_tensor_dims(t)[i];
    return DQ_OK;
}

/* Signals wait until Python code runs. A run that takes long enters some ten times a second, which has the
 * interpreter call its handlers; what they raise cancels the run. */
static int dqrun_python_progress(void *arg, const dq_progress *progress)
{
    enum { POLL_NS = 100000000 };
    static _Thread_local int64_t last;
    struct timespec now;
    (void)progress;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    if (ns - last < POLL_NS)
        return 0;
    last = ns;
    return dqrun_python_poll(arg);
}
"""


def declarations(headers, compiler):
    text = ""
    for header in headers:
        with open(header, encoding="utf-8") as file:
            text += "".join(line for line in file if not line.startswith("#include"))
    return subprocess.run([*compiler, "-E", "-P", "-xc", "-"], input=text, capture_output=True, text=True, check=True).stdout


def main():
    header, documents, output, *compiler = sys.argv[1:]
    ffi = cffi.FFI()
    ffi.cdef(declarations([header, documents], compiler))
    ffi.cdef(CALLBACKS + HELPERS)
    ffi.set_source("dqrun._native", SOURCE, py_limited_api=True)
    ffi.emit_c_code(output)


if __name__ == "__main__":
    main()
