/* Fuzz target: everything that happens to a model file before it runs. Built twice: with replay.c for the
 * normal tests, and with a fuzzing engine where -Dfuzz_engine names one. */
#include <dqrun/dqrun.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    /* Low, so that a file that asks for much is told so instead of taking the machine's time. */
    dq_load_options options = {
        .schemas = schemas(),
        .limits = {.tensor_bytes = 1 << 20, .session_bytes = 1 << 22, .nodes = 2000, .nesting = 8}};
    dq_model *model = NULL;
    dq_error err = {0};
    dq_status status = dq_model_load_memory(bytes, size, "fuzz.onnx", &options, &model, &err);
    if (status == DQ_OK)
        dq_model_check(model, ignore, NULL, &err);
    else if (status != err.status || err.message[0] == '\0' || status == DQ_INTERNAL || model)
        __builtin_trap();
    dq_model_free(model);
    return 0;
}
