/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what a session plans for a model, for tools/walkthrough.py.
 *
 *     describe MODEL.onnx BATCH ISA DISABLED_PASSES
 *
 * BATCH stands for each unknown dimension. A line is "step", "value" or "memory" and its fields, cut by tabs.
 */
#include <dqrun/dqrun.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_INPUTS = 8 };

static dq_error err;

static void must(dq_status status)
{
    if (status == DQ_OK)
        return;
    fprintf(stderr, "describe: %s\n", err.message);
    exit((int)status);
}

static void print_names(size_t count, const dq_value *const *values)
{
    for (size_t i = 0; i < count; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        if (values[i])
            must(dq_value_describe(values[i], &info, &err));
        printf("%s%s", i ? ", " : "", values[i] ? info.name : "-");
    }
}

static void print_step(dq_session *session, size_t i)
{
    dq_step_info step = DQ_STEP_INFO_INIT;
    dq_node_info node = DQ_NODE_INFO_INIT;
    must(dq_session_step(session, i, &step, &err));
    must(dq_node_describe(step.node, &node, &err));
    printf("step\t%s%s%s\t", node.domain, *node.domain ? "." : "", node.op_type);
    print_names(node.output_count, node.outputs);
    printf("\t");
    print_names(node.input_count, node.inputs);
    printf("\t%s\t%" PRIu64 "\t%" PRIu64 "\t", step.algorithm ? step.algorithm : "", step.work,
           step.scratch_bytes);
    for (size_t k = 0; k < step.written_count; k++) {
        must(dq_node_describe(step.written[k], &node, &err));
        printf("%s%s", k ? ", " : "", node.op_type);
    }
    printf("\n");
}

static int print_lifetime(void *arg, const dq_lifetime *l)
{
    dq_value_info value = DQ_VALUE_INFO_INIT, owner = DQ_VALUE_INFO_INIT;
    (void)arg;
    must(dq_value_describe(l->value, &value, &err));
    must(dq_value_describe(l->memory_of, &owner, &err));
    printf("value\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%zu\t%zu\n", value.name, owner.name, l->offset, l->bytes,
           l->first_step, l->last_step);
    return 0;
}

int main(int argc, char **argv)
{
    dq_model *model = NULL;
    dq_session *session = NULL;
    dq_tensor *inputs[MAX_INPUTS] = {0};
    dq_session_options options = DQ_SESSION_OPTIONS_INIT;
    dq_memory_info memory = DQ_MEMORY_INFO_INIT;
    if (argc != 5)
        return fprintf(stderr, "usage: describe MODEL BATCH ISA DISABLED_PASSES\n"), 2;
    options.threads = 1;
    options.isa = argv[3];
    options.disabled_passes = argv[4];
    must(dq_model_load(argv[1], NULL, &model, &err));
    must(dq_session_create(model, &options, &session, &err));
    for (size_t i = 0; i < dq_model_input_count(model) && i < MAX_INPUTS; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        int64_t dims[DQ_MAX_RANK];
        must(dq_model_input(model, i, &info, &err));
        for (size_t d = 0; d < info.rank; d++)
            dims[d] = info.dims[d] < 0 ? strtoll(argv[2], NULL, 10) : info.dims[d];
        must(dq_tensor_create(info.dtype, info.rank, dims, &inputs[i], &err));
        must(dq_session_set_input(session, info.name, inputs[i], &err));
    }
    must(dq_session_prepare(session, &err));
    for (size_t i = 0; i < dq_session_step_count(session); i++)
        print_step(session, i);
    must(dq_session_lifetimes(session, print_lifetime, NULL, &err));
    must(dq_session_memory(session, &memory, &err));
    printf("memory\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", memory.activation_bytes, memory.weight_bytes,
           memory.constant_bytes);
    dq_session_free(session);
    dq_model_free(model);
    for (size_t i = 0; i < MAX_INPUTS; i++)
        dq_tensor_free(inputs[i]);
    return 0;
}
