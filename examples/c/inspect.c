/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the nodes of a model with the quantization of their values, and the steps that a session makes of
 * them.
 *
 *     inspect MODEL.onnx [BATCH]
 *
 * BATCH stands for each unknown dimension of the inputs (1). */
#include <dqrun/dqrun.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const dq_error *err)
{
    fprintf(stderr, "inspect: %s\n", err->message);
    return (int)err->status;
}

/* ---- The model ----------------------------------------------------------------------------------------- */

static void print_scale(const dq_quantization *q)
{
    static const char *const words[] = {"of unknown granularity", "per tensor", "per axis", "per block"};
    printf("  %s", words[q->granularity]);
    if (q->granularity == DQ_PER_AXIS || q->granularity == DQ_PER_BLOCK)
        printf(" (axis %" PRId64 ")", q->axis);
    if (q->granularity == DQ_PER_BLOCK)
        printf(" of %" PRId64, q->block_size);
    if (q->scale_data)
        printf(", scale %g%s", dq_tensor_value(q->scale_data, 0),
               dq_tensor_count(q->scale_data) > 1 ? ", …" : "");
    else if (q->scale)
        printf(", scale computed in each run");
    if (q->zero_point_data)
        printf(", zero point %g", dq_tensor_value(q->zero_point_data, 0));
}

/* A value that the node reads or gives, and how it is quantized. */
static dq_status print_value(const dq_model *model, const char *role, const dq_value *value, dq_error *err)
{
    dq_value_info info = DQ_VALUE_INFO_INIT;
    dq_quantization q = DQ_QUANTIZATION_INIT;
    dq_status status = dq_value_describe(value, &info, err);
    if (status == DQ_OK)
        status = dq_value_quantization(model, value, &q, err);
    if (status != DQ_OK || !q.quantized)
        return status;
    printf("    %s %s: %s", role, info.name, info.type);
    print_scale(&q);
    printf("\n");
    return DQ_OK;
}

static dq_status print_node(const dq_model *model, const dq_node *node, dq_error *err)
{
    dq_node_info info = DQ_NODE_INFO_INIT;
    dq_status status = dq_node_describe(node, &info, err);
    if (status != DQ_OK)
        return status;
    printf("  %s-%d %s\n", info.op_type, info.since_version, info.name);
    for (size_t i = 0; status == DQ_OK && i < info.input_count; i++)
        if (info.inputs[i])
            status = print_value(model, "reads", info.inputs[i], err);
    for (size_t i = 0; status == DQ_OK && i < info.output_count; i++)
        if (info.outputs[i])
            status = print_value(model, "gives", info.outputs[i], err);
    return status;
}

static dq_status print_model(const dq_model *model, dq_error *err)
{
    dq_model_info info = DQ_MODEL_INFO_INIT;
    dq_graph_info graph = DQ_GRAPH_INFO_INIT;
    dq_status status = dq_model_describe(model, &info, err);
    if (status == DQ_OK)
        status = dq_graph_describe(info.graph, &graph, err);
    if (status != DQ_OK)
        return status;
    printf("%s: IR version %" PRId64 ", by %s, %zu nodes\n", info.name, info.ir_version,
           *info.producer_name ? info.producer_name : "(unknown)", graph.node_count);
    for (size_t i = 0; status == DQ_OK && i < graph.node_count; i++)
        status = print_node(model, graph.nodes[i], err);
    return status;
}

/* ---- The session --------------------------------------------------------------------------------------- */

static int print_output(void *arg, const dq_value_info *output)
{
    (void)arg;
    printf("  gives %s: %s", output->name, output->type);
    for (size_t d = 0; output->has_shape && d < output->rank; d++)
        printf("%s%" PRId64, d ? "," : " [", output->dims[d]);
    printf("%s\n", output->has_shape && output->rank ? "]" : "");
    return 0;
}

static dq_status print_steps(dq_session *session, dq_error *err)
{
    dq_status status = DQ_OK;
    for (size_t i = 0; status == DQ_OK && i < dq_session_step_count(session); i++) {
        dq_step_info step = DQ_STEP_INFO_INIT;
        status = dq_session_step(session, i, &step, err);
        if (status != DQ_OK)
            break;
        printf("  %zu %s: work %" PRIu64, i, step.op, step.work);
        for (size_t k = 0; status == DQ_OK && k < step.written_count; k++) {
            dq_node_info node = DQ_NODE_INFO_INIT;
            status = dq_node_describe(step.written[k], &node, err);
            printf("%s%s", k ? ", " : "; computes ", node.op_type);
        }
        printf("%s%s\n", step.decision ? "; " : "", step.decision ? step.decision : "");
    }
    return status;
}

/* A tensor of zeros for each input: planning looks at shapes alone. */
static dq_status set_inputs(const dq_model *model, dq_session *session, int64_t batch, dq_tensor **tensors,
                            dq_error *err)
{
    dq_status status = DQ_OK;
    for (size_t i = 0; status == DQ_OK && i < dq_model_input_count(model); i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        int64_t dims[DQ_MAX_RANK];
        status = dq_model_input(model, i, &info, err);
        if (status != DQ_OK || info.optional)
            continue;
        for (size_t d = 0; d < info.rank; d++)
            dims[d] = info.dims[d] < 0 ? batch : info.dims[d];
        status = dq_tensor_create(info.dtype, info.rank, dims, &tensors[i], err);
        if (status == DQ_OK)
            status = dq_session_set_input(session, info.name, tensors[i], err);
    }
    return status;
}

static dq_status print_session(const dq_model *model, dq_session *session, int64_t batch, dq_error *err)
{
    const size_t count = dq_model_input_count(model);
    dq_tensor **tensors = (dq_tensor **)calloc(count + 1, sizeof *tensors);
    dq_memory_info memory = DQ_MEMORY_INFO_INIT;
    if (!tensors) {
        *err = (dq_error){DQ_OUT_OF_MEMORY, "out of memory"};
        return DQ_OUT_OF_MEMORY;
    }
    printf("a session for a batch of %" PRId64 ":\n", batch);
    dq_status status = set_inputs(model, session, batch, tensors, err);
    if (status == DQ_OK)
        status = dq_session_infer(session, 0, NULL, print_output, NULL, &memory, err);
    if (status == DQ_OK) {
        printf("  takes %" PRIu64 " bytes for activations, %" PRIu64 " for packed weights, %" PRIu64
               " for constants\n",
               memory.activation_bytes, memory.weight_bytes, memory.constant_bytes);
        status = dq_session_prepare(session, err);
    }
    if (status == DQ_OK)
        status = print_steps(session, err);
    for (size_t i = 0; i < count; i++)
        dq_tensor_free(tensors[i]);
    free(tensors);
    return status;
}

int main(int argc, char **argv)
{
    const int64_t batch = argc > 2 ? strtoll(argv[2], NULL, 10) : 1;
    dq_model *model = NULL;
    dq_session *session = NULL;
    dq_error err;
    if (argc < 2 || batch < 1) {
        fprintf(stderr, "usage: inspect MODEL.onnx [BATCH]\n");
        return 2;
    }
    dq_status status = dq_model_load(argv[1], NULL, &model, &err);
    if (status == DQ_OK)
        status = print_model(model, &err);
    if (status == DQ_OK)
        status = dq_session_create(model, NULL, &session, &err);
    if (status == DQ_OK)
        status = print_session(model, session, batch, &err);
    dq_session_free(session);
    dq_model_free(model);
    return status == DQ_OK ? 0 : fail(&err);
}
