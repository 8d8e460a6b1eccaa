/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is compiled against an older dqrun.h and linked with today's library: it passes each struct
 * that grows in the size that the older header has. Prints "ok". */
#include <dqrun/dqrun.h>

#include <stdio.h>
#include <string.h>

#define NEED(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            printf("line %d: %s; last error: %s\n", __LINE__, #condition, err.message);                      \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

static dq_error err;

static void count_steps(void *arg, const dq_trace_event *event)
{
    if (event->size >= sizeof *event && event->output_count == 1 && event->outputs[0])
        ++*(int *)arg;
}

static int count_rows(void *arg, const dq_operator_info *info)
{
    *(int *)arg += info->size >= sizeof *info && !strcmp(info->name, "QLinearConv") && info->implemented;
    return 0;
}

/* y[N] = the position of the largest of x[N,3]. */
static int build(dq_model **model)
{
    static const int64_t in[] = {-1, 3}, out[] = {-1};
    static const char *const names[] = {"N", NULL}, *const x[] = {"x"}, *const y[] = {"y"};
    dq_attribute attributes[2] = {DQ_ATTRIBUTE_INIT, DQ_ATTRIBUTE_INIT};
    dq_node_spec node = DQ_NODE_SPEC_INIT;
    dq_limits limits = DQ_LIMITS_INIT;
    dq_load_options options = DQ_LOAD_OPTIONS_INIT;
    dq_builder *b = NULL;
    attributes[0].name = "axis";
    attributes[0].kind = DQ_ATTRIBUTE_INT;
    attributes[0].i = 1;
    attributes[1].name = "keepdims";
    attributes[1].kind = DQ_ATTRIBUTE_INT;
    node.op_type = "ArgMax";
    node.input_count = node.output_count = 1;
    node.inputs = x;
    node.outputs = y;
    node.attribute_count = 2;
    node.attributes = attributes;
    limits.nodes = 1;
    options.limits = &limits;
    NEED(!dq_builder_create("m", &b, &err) && !dq_builder_opset(b, "", 21, &err));
    NEED(!dq_builder_input(b, "x", DQ_FLOAT, 2, in, names, &err));
    NEED(!dq_builder_node(b, &node, NULL, &err));
    NEED(!dq_builder_output(b, "y", DQ_INT64, 1, out, names, &err));
    NEED(!dq_builder_finish(b, &options, model, &err));
    return 0;
}

static int run(dq_model *model)
{
    static const float data[6] = {1, 3, 2, 9, 8, 7};
    static const int64_t dims[] = {2, 3};
    struct {
        dq_value_info info;
        char after[64]; /* what a larger struct of the library would overwrite */
    } workspace = {DQ_VALUE_INFO_INIT, {0}};
    dq_thread_pool_options pool_options = DQ_THREAD_POOL_OPTIONS_INIT;
    dq_session_options options = DQ_SESSION_OPTIONS_INIT;
    dq_thread_pool *pool = NULL;
    dq_session *session = NULL;
    dq_tensor *x = NULL;
    const dq_tensor *y = NULL;
    int steps = 0;
    pool_options.threads = 2;
    NEED(!dq_thread_pool_create(&pool_options, &pool, &err) && dq_thread_pool_threads(pool) == 2);
    options.pool = pool;
    options.isa = "c";
    options.trace = count_steps;
    options.arg = &steps;
    memset(workspace.after, 0x5a, sizeof workspace.after);
    NEED(!dq_model_input(model, 0, &workspace.info, &err) && workspace.info.size == sizeof workspace.info);
    NEED(!strcmp(workspace.info.name, "x") && workspace.info.rank == 2 &&
         !strcmp(workspace.info.dim_names[0], "N"));
    for (size_t i = 0; i < sizeof workspace.after; i++)
        NEED(workspace.after[i] == 0x5a);
    NEED(!dq_session_create(model, &options, &session, &err) && !strcmp(dq_session_isa(session), "c"));
    NEED(!dq_tensor_wrap_const(DQ_FLOAT, 2, dims, data, sizeof data, &x, &err));
    NEED(!dq_session_set_input(session, NULL, x, &err) && !dq_session_run(session, &err));
    NEED(!dq_session_get_output(session, "y", &y, &err) && dq_tensor_count(y) == 2);
    NEED(dq_tensor_value(y, 0) == 1 && dq_tensor_value(y, 1) == 0 && steps == 1);
    dq_session_free(session);
    dq_thread_pool_free(pool);
    dq_tensor_free(x);
    return 0;
}

static int list(void)
{
    char types[64];
    int rows = 0;
    dq_operator_info info = DQ_OPERATOR_INFO_INIT;
    info.domain = "";
    info.name = "Relu";
    info.since_version = 14;
    NEED(!dq_schemas_list(NULL, count_rows, &rows, &err) && rows > 0);
    NEED(dq_schemas_types(NULL, &info, types, sizeof types) > 0);
    return 0;
}

int main(void)
{
    dq_model *model = NULL;
    if (build(&model) || run(model) || list())
        return 1;
    dq_model_free(model);
    puts("ok");
    return 0;
}
