/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of operator schemas: YAML text, and a model whose nodes are checked against what it defines.
 *
 * The model has a node `Probe` of the domain `fuzz`, and a Relu, so that text may define the one and override
 * the other. What is accepted is also listed with its types. */
#include <dqrun/dqrun.h>

int LLVMFuzzerTestOneInput(const uint8_t *text, size_t size);

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static dq_status checked(dq_status status, const dq_error *err)
{
    must(status == DQ_OK || (status == err->status && err->message[0] != '\0' && status != DQ_INTERNAL));
    return status;
}

static void fault(void *arg, const dq_error *why)
{
    (void)arg;
    must(why->status != DQ_OK && why->message[0] != '\0');
}

/* x → Probe {axis, scales} → y → Relu → z, with an optional second input left out. */
static void check_model(dq_schemas *set)
{
    static const float scales[] = {0.5f, 2};
    static const char *const in[] = {"x", ""};
    static const char *const mid[] = {"y", "unused"}, *const out[] = {"z"};
    const dq_attribute attributes[] = {
        {.size = sizeof(dq_attribute), .name = "axis", .kind = DQ_ATTRIBUTE_INT, .i = -1},
        {.size = sizeof(dq_attribute),
         .name = "scales",
         .kind = DQ_ATTRIBUTE_FLOATS,
         .floats = scales,
         .count = 2}};
    const dq_load_options options = {.size = sizeof(dq_load_options), .schemas = set};
    dq_error err = {0};
    dq_builder *b = NULL;
    dq_model *model = NULL;
    must(dq_builder_create("probe", &b, &err) == DQ_OK);
    must(dq_builder_opset(b, "", 21, &err) == DQ_OK && dq_builder_opset(b, "fuzz", 3, &err) == DQ_OK);
    must(dq_builder_input(b, "x", DQ_FLOAT, 1, (int64_t[]){4}, NULL, &err) == DQ_OK);
    const dq_node_spec probe = {.size = sizeof probe,
                                .domain = "fuzz",
                                .op_type = "Probe",
                                .input_count = 2,
                                .inputs = in,
                                .output_count = 2,
                                .outputs = mid,
                                .attribute_count = 2,
                                .attributes = attributes};
    const dq_node_spec relu = {.size = sizeof relu,
                               .op_type = "Relu",
                               .input_count = 1,
                               .inputs = mid,
                               .output_count = 1,
                               .outputs = out};
    must(dq_builder_node(b, &probe, NULL, &err) == DQ_OK && dq_builder_node(b, &relu, NULL, &err) == DQ_OK);
    must(dq_builder_output(b, "z", DQ_FLOAT, 1, (int64_t[]){4}, NULL, &err) == DQ_OK);
    if (checked(dq_builder_finish(b, &options, &model, &err), &err) == DQ_OK)
        checked(dq_model_check(model, fault, NULL, &err), &err);
    dq_model_free(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *text, size_t size)
{
    dq_error err = {0};
    dq_schemas *set = NULL;
    char types[256];
    must(dq_schemas_create(&set, &err) == DQ_OK);
    if (checked(dq_schemas_add_yaml(set, (const char *)text, size, "fuzz.yaml", &err), &err) == DQ_OK) {
        const dq_operator_info probe = {
            .size = sizeof(dq_operator_info), .domain = "fuzz", .name = "Probe", .since_version = 1};
        dq_schemas_types(set, &probe, types, sizeof types);
        check_model(set);
    }
    dq_schemas_free(set);
    return 0;
}
