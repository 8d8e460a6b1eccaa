/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: a model file, from parsing to a run on made-up inputs. Built twice: with replay.c for the
 * normal tests, and with a fuzzing engine where -Dfuzz_engine names one. */
#include <dqrun/dqrun.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { INPUTS_MAX = 16, FREE_DIM = 2 };

/* Parsed once: an operator's schema is read on its first use. */
static dq_schemas *schemas(void)
{
    static dq_schemas *set;
    if (!set && dq_schemas_create(&set, NULL) != DQ_OK)
        __builtin_trap();
    return set;
}

static void ignore(void *arg, const dq_error *why)
{
    (void)arg;
    if (why->status == DQ_OK || why->message[0] == '\0')
        __builtin_trap(); /* every fault has a sentence */
}

static void need_message(dq_status status, const dq_error *err)
{
    if (status != DQ_OK && (status != err->status || err->message[0] == '\0' || status == DQ_INTERNAL))
        __builtin_trap();
}

/* A tensor as the model declares it, of small values that each type has; NULL for what is not a small tensor.
 */
static dq_tensor *made_up(const dq_value_info *info)
{
    int64_t dims[DQ_MAX_RANK] = {0};
    size_t elements = 1;
    if (info->kind != DQ_KIND_TENSOR || info->dtype == DQ_UNDEFINED || info->rank > DQ_MAX_RANK)
        return NULL;
    for (size_t d = 0; d < info->rank; d++) {
        dims[d] = info->dims[d] < 0 ? FREE_DIM : info->dims[d];
        if (dims[d] > 1 << 16)
            return NULL;
        elements *= (size_t)dims[d];
        if (elements > 1 << 16)
            return NULL;
    }
    dq_tensor *tensor = NULL;
    if (dq_tensor_create(info->dtype, info->rank, dims, &tensor, NULL) != DQ_OK)
        return NULL;
    /* Indices, axes and shapes are int64: small ones come further than huge ones. */
    uint8_t *data = dq_tensor_mutable_data(tensor);
    size_t stride = info->dtype == DQ_INT64 ? sizeof(int64_t) : 1;
    unsigned values = info->dtype == DQ_INT64 ? 3 : info->dtype == DQ_BOOL ? 2 : 64;
    for (size_t i = 0; data && i < dq_tensor_size(tensor); i += stride)
        data[i] = (uint8_t)(i / stride * 37 % values);
    return tensor;
}

static void run(dq_model *model, bool no_fuse)
{
    dq_session_options options = {.size = sizeof(dq_session_options), .threads = 1, .no_fuse = no_fuse};
    dq_session *session = NULL;
    dq_tensor *inputs[INPUTS_MAX] = {0};
    dq_error err = {0};
    size_t count = dq_model_input_count(model);
    dq_status status = dq_session_create(model, &options, &session, &err);
    for (size_t i = 0; status == DQ_OK && i < count && i < INPUTS_MAX; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        if (dq_model_input(model, i, &info, NULL) == DQ_OK && (inputs[i] = made_up(&info)))
            status = dq_session_set_input(session, info.name, inputs[i], &err);
    }
    if (status == DQ_OK)
        status = dq_session_run(session, &err); /* also without an input that could not be made: it says so */
    need_message(status, &err);
    dq_session_free(session);
    for (size_t i = 0; i < INPUTS_MAX; i++)
        dq_tensor_free(inputs[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    /* Low, so that a file that asks for much is told so instead of taking the machine's time. */
    dq_load_options options = {.size = sizeof(dq_load_options),
                               .schemas = schemas(),
                               .limits = &(dq_limits){.size = sizeof(dq_limits),
                                                      .tensor_bytes = 1 << 18,
                                                      .session_bytes = 1 << 22,
                                                      .nodes = 2000,
                                                      .nesting = 8}};
    dq_model *model = NULL;
    dq_error err = {0};
    dq_status status = dq_model_load_memory(bytes, size, "fuzz.onnx", &options, &model, &err);
    need_message(status, &err);
    if (status == DQ_OK && dq_model_check(model, ignore, NULL, &err) == DQ_OK) {
        run(model, false);
        run(model, true);
    } else if (status != DQ_OK && model) {
        __builtin_trap();
    }
    dq_model_free(model);
    return 0;
}
