/* Schemas: reading YAML from friends and strangers, finding versions, holding nodes and types against them.
 */
#include <check.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/schema.h"
#include "schema/yaml_tree.h"

static dq_schemas *set;
static dq_ir *ir;
static dq_error err;

static void setup(void)
{
    ck_assert_int_eq(dq_schemas_create(&set, &err), DQ_OK);
    ck_assert_int_eq(dq_ir_create("test", NULL, &ir, &err), DQ_OK);
    if (!ir->graph)
        ck_assert_int_eq(dq_graph_create(ir, "main", NULL, &ir->graph, &err), DQ_OK);
}

static void teardown(void)
{
    dq_ir_free(ir);
    dq_schemas_free(set);
}

static const dq_schema *find(const char *name, int opset)
{
    const dq_schema *schema = NULL;
    dq_status status = dq_schemas_find(set, "", name, opset, &schema, &err);
    ck_assert_msg(status == DQ_OK, "%s", err.message);
    return schema;
}

/* A node with `in` inputs and `out` outputs; a name in `gaps` ("i1", "o0") is left out. */
static dq_node *node_of(uint32_t in, uint32_t out, uint32_t attrs, const char *gaps)
{
    dq_node *node = NULL;
    ck_assert_int_eq(dq_graph_add_node(ir->graph, in, out, attrs, &node, &err), DQ_OK);
    node->name = "";
    node->domain = node->overload = "";
    node->op_type = "Test";
    for (uint32_t i = 0; i < in; i++) {
        char name[16];
        snprintf(name, sizeof name, "i%u", i);
        node->in_names[i] = strstr(gaps, name) ? "" : "x";
    }
    for (uint32_t i = 0; i < out; i++) {
        char name[16];
        snprintf(name, sizeof name, "o%u", i);
        node->out_names[i] = strstr(gaps, name) ? "" : "y";
    }
    return node;
}

static void expect(dq_status got, dq_status wanted, const char *sentence)
{
    ck_assert_int_eq(got, wanted);
    ck_assert_int_eq(err.status, wanted);
    ck_assert_str_eq(err.message, sentence);
}

/* ---- Finding --------------------------------------------------------------------------------------------
 */

START_TEST(newest_version_not_above_the_import)
{
    static const int wanted[][2] = {{10, 10}, {12, 10}, {13, 13}, {18, 13}, {19, 19}, {20, 19}, {21, 21},
                                    {22, 21}, {23, 23}, {24, 24}, {25, 25}, {27, 25}, {28, 28}, {99, 28}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        ck_assert_int_eq(find("QuantizeLinear", wanted[i][0])->since_version, wanted[i][1]);
    const dq_schema *same = NULL;
    ck_assert_int_eq(dq_schemas_find(set, "ai.onnx", "QuantizeLinear", 28, &same, &err), DQ_OK);
    ck_assert_ptr_eq(same, find("QuantizeLinear", 28));
}
END_TEST

START_TEST(what_is_not_found_says_why)
{
    const dq_schema *schema = NULL;
    expect(dq_schemas_find(set, "", "Quantise", 21, &schema, &err), DQ_UNSUPPORTED,
           "there is no schema for operator 'Quantise' of domain 'ai.onnx'");
    expect(dq_schemas_find(set, "my.domain", "Add", 1, &schema, &err), DQ_UNSUPPORTED,
           "there is no schema for operator 'Add' of domain 'my.domain'");
    expect(dq_schemas_find(set, "", "BitCast", 21, &schema, &err), DQ_BAD_MODEL,
           "operator 'BitCast' came with version 26 of domain 'ai.onnx', the model imports version 21");
    expect(dq_schemas_find(set, "com.microsoft", "QGemm", 0, &schema, &err), DQ_BAD_MODEL,
           "operator 'QGemm' is of domain 'com.microsoft', which the model does not import");
    ck_assert_ptr_null(schema);
}
END_TEST

typedef struct last_row {
    const dq_schema *schema;
    size_t count;
} last_row;

static int check_order(void *arg, const dq_schema *schema)
{
    last_row *last = arg;
    if (last->schema) {
        int order = strcmp(last->schema->domain, schema->domain);
        order = order ? order : strcmp(last->schema->name, schema->name);
        ck_assert(order < 0 || (order == 0 && last->schema->since_version < schema->since_version));
    }
    ck_assert_uint_le(schema->min_input, schema->max_input);
    *last = (last_row){schema, last->count + 1};
    return 0;
}

START_TEST(all_embedded_schemas_are_read_in_order)
{
    last_row last = {0};
    ck_assert_msg(dq_schemas_each(set, check_order, &last, &err) == DQ_OK, "%s", err.message);
    ck_assert_uint_ge(last.count, 250);
    ck_assert_uint_ge(dq_embedded_schema_count, 50);
}
END_TEST

static void *find_many(void *arg)
{
    (void)arg;
    static const char *const names[] = {"Cast", "Conv", "QuantizeLinear", "Identity", "Max", "Reshape"};
    const dq_schema *schema = NULL;
    for (unsigned i = 0; i < 200; i++)
        if (dq_schemas_find(set, "", names[i % 6], 28, &schema, NULL) ||
            strcmp(schema->name, names[i % 6]) != 0)
            return &set;
    return NULL;
}

START_TEST(threads_may_look_up_at_once)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, find_many, NULL), 0);
    for (int i = 0; i < 4; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
}
END_TEST

/* ---- What rows hold -------------------------------------------------------------------------------------
 */

static const dq_schema_attr *attr_of(const dq_schema *schema, const char *name)
{
    for (uint32_t i = 0; i < schema->attr_count; i++)
        if (strcmp(schema->attrs[i].name, name) == 0)
            return &schema->attrs[i];
    ck_abort_msg("no attribute %s", name);
    return NULL;
}

static bool same_float(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

START_TEST(a_row_holds_what_the_standard_says)
{
    const dq_schema *s = find("QuantizeLinear", 21);
    ck_assert_uint_eq(s->min_input, 2);
    ck_assert_uint_eq(s->max_input, 3);
    ck_assert_str_eq(s->inputs[2].name, "y_zero_point");
    ck_assert_int_eq(s->inputs[1].option, DQ_SINGLE);
    ck_assert_int_eq(s->inputs[2].option, DQ_OPTIONAL);
    ck_assert(dq_type_set_has(&s->inputs[2].types, DQ_FORM_TENSOR, DQ_INT4));
    ck_assert(!dq_type_set_has(&s->inputs[2].types, DQ_FORM_TENSOR, DQ_INT2));
    ck_assert(!dq_type_set_has(&s->inputs[2].types, DQ_FORM_SEQUENCE, DQ_INT4));
    ck_assert_int_eq(attr_of(s, "saturate")->value.u.i, 1);
    ck_assert(attr_of(find("Cast", 21), "to")->required);
    ck_assert(!attr_of(find("ConstantOfShape", 21), "value")->has_default);
    const dq_attr *alpha = &attr_of(find("Gemm", 13), "alpha")->value;
    ck_assert_int_eq(alpha->kind, DQ_ATTR_FLOAT);
    ck_assert(same_float(alpha->u.f, 1.0f));
    const dq_attr *pad = &attr_of(find("Conv", 22), "auto_pad")->value;
    ck_assert_str_eq(pad->u.s.bytes, "NOTSET");
    ck_assert_uint_eq(pad->u.s.length, 6);
    s = find("Concat", 13);
    ck_assert_int_eq(s->inputs[0].option, DQ_VARIADIC);
    ck_assert_uint_eq(s->max_input, DQ_UNBOUNDED);
    ck_assert_ptr_eq(dq_schema_input(s, 7), &s->inputs[0]);
    ck_assert(dq_type_set_has(&find("Identity", 16)->inputs[0].types, DQ_FORM_OPTIONAL_SEQUENCE, DQ_STRING));
}
END_TEST

static dq_status add(const char *yaml)
{
    return dq_schemas_add_yaml(set, yaml, strlen(yaml), "f.yaml", &err);
}

static void must_add(const char *yaml)
{
    ck_assert_msg(add(yaml) == DQ_OK, "%s", err.message);
}

START_TEST(floats_keep_their_bits)
{
    must_add(
        "name: F\nsince_version: 1\ninputs: []\noutputs: []\nattributes:\n"
        "- {name: a, type: FLOAT, default: 0.1}\n- {name: b, type: FLOAT, default: 1.17549435e-38}\n"
        "- {name: c, type: FLOAT, default: -3.4028235e+38}\n- {name: d, type: FLOAT, default: .nan}\n"
        "- {name: e, type: FLOATS, default: [-.inf, 1, 16777217]}\n- {name: f, type: FLOAT, default: -0.0}\n"
        "- {name: g, type: INTS, default: [-9223372036854775808, 0]}\n- {name: h, type: strings, default: "
        "['', b]}\n"
        "- {name: i, type: STRING, default: ''}\n- {name: j, type: STRING, default: null}\n");
    const dq_schema *s = find("F", 1);
    ck_assert(same_float(attr_of(s, "a")->value.u.f, 0.1f));
    ck_assert(same_float(attr_of(s, "b")->value.u.f, FLT_MIN));
    ck_assert(same_float(attr_of(s, "c")->value.u.f, -FLT_MAX));
    ck_assert(isnan(attr_of(s, "d")->value.u.f));
    const dq_attr *e = &attr_of(s, "e")->value;
    ck_assert_uint_eq(e->count, 3);
    ck_assert(isinf(e->u.floats[0]) && e->u.floats[0] < 0);
    ck_assert(same_float(e->u.floats[2], 16777216.0f));
    ck_assert(signbit(attr_of(s, "f")->value.u.f));
    ck_assert_int_eq(attr_of(s, "g")->value.u.ints[0], INT64_MIN);
    ck_assert_uint_eq(attr_of(s, "h")->value.u.strings[0].length, 0);
    ck_assert_str_eq(attr_of(s, "h")->value.u.strings[1].bytes, "b");
    ck_assert(attr_of(s, "i")->has_default);
    ck_assert(!attr_of(s, "j")->has_default);
}
END_TEST

/* ---- The user's files -----------------------------------------------------------------------------------
 */

/* In the form of a dump: quoted text over lines, empty tags, no word about what is optional. */
static const char dumped[] =
    "domain: ''\nname: Mystery\nsince_version: 7\nmin_input: 2\nmax_input: 3\n"
    "min_output: 1\nmax_output: 2147483647\n"
    "doc: '\n\n  It''s a text\n\n  over lines: with [signs] {in it}.\n\n  '\nattributes: []\n"
    "inputs:\n- name: x\n  type_str: T1\n  description: A.\n  min_arity: 1\n  tags: []\n"
    "- name: on\n  type_str: tensor(float)\n  description: ''\n  min_arity: 1\n  tags: []\n"
    "- name: y\n  type_str: T1\n  description: C\n  min_arity: 1\n  tags: []\n"
    "outputs:\n- name: z\n  type_str: T1\n  description: D\n  min_arity: 1\n  tags: []\n"
    "type_constraints:\n- type_param_str: T1\n  description: E\n  allowed_type_strs:\n"
    "  - tensor(float)\n  - seq(tensor(float8e4m3fn))\n"
    "support_level: COMMON\ndeprecated: false\n";

START_TEST(a_dump_without_tags_is_understood)
{
    must_add(dumped);
    const dq_schema *s = find("Mystery", 7);
    ck_assert_int_eq(s->inputs[0].option, DQ_SINGLE);
    ck_assert_int_eq(s->inputs[1].option, DQ_SINGLE);
    ck_assert_int_eq(s->inputs[2].option, DQ_OPTIONAL);
    ck_assert_int_eq(s->outputs[0].option, DQ_VARIADIC);
    ck_assert_str_eq(s->inputs[1].name, "on");
    ck_assert(dq_type_set_has(&s->inputs[0].types, DQ_FORM_SEQUENCE, DQ_FLOAT8E4M3FN));
    ck_assert_int_eq(s->inputs[1].variable, -1);
}
END_TEST

START_TEST(a_user_row_replaces_only_its_own_version)
{
    const dq_schema *before = find("Relu", 13);
    must_add("name: Relu\nsince_version: 13\nmin_input: 2\nmax_input: 2\ninputs:\n- {name: X, type_str: "
             "tensor(float)}\n"
             "outputs:\n- {name: Y, type_str: tensor(float)}\n---\n"
             "name: Relu\nsince_version: 20\ninputs: []\noutputs: []\n---\n"
             "domain: my.own\nname: Relu\nsince_version: 1\ninputs: []\noutputs: []\n");
    ck_assert_int_eq(before->min_input, 1);
    ck_assert_uint_eq(find("Relu", 13)->min_input, 2);
    ck_assert_uint_eq(find("Relu", 19)->min_input, 1);
    ck_assert_int_eq(find("Relu", 19)->since_version, 14);
    ck_assert_int_eq(find("Relu", 28)->since_version, 20);
    const dq_schema *own = NULL;
    ck_assert_int_eq(dq_schemas_find(set, "my.own", "Relu", 3, &own, &err), DQ_OK);
    ck_assert_uint_eq(own->max_input, 0);
    expect(dq_schema_check_node(find("Relu", 13), node_of(1, 1, 0, ""), &err), DQ_BAD_MODEL,
           "has 1 input, wanted 2");
}
END_TEST

START_TEST(a_row_given_before_the_first_look_up_wins_too)
{
    must_add("name: Relu\nsince_version: 14\nmin_input: 0\ninputs: []\noutputs: []\n");
    ck_assert_uint_eq(find("Relu", 14)->max_input, 0);
    ck_assert_uint_eq(find("Relu", 13)->max_input, 1);
}
END_TEST

START_TEST(a_wrong_text_adds_nothing)
{
    ck_assert_int_eq(add("name: New\nsince_version: 1\ninputs: []\noutputs: []\n---\nname: New\n"),
                     DQ_BAD_MODEL);
    const dq_schema *schema = NULL;
    ck_assert_int_eq(dq_schemas_find(set, "", "New", 9, &schema, &err), DQ_UNSUPPORTED);
}
END_TEST

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(a_folder_is_read_with_its_folders)
{
    char folder[] = "/tmp/dqrun_schema_XXXXXX", inner[64], path[128];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(inner, sizeof inner, "%s/my.own", folder);
    snprintf(path, sizeof path, "schema folder '%s' holds no .yaml file", folder);
    expect(dq_schemas_add_dir(set, folder, &err), DQ_INVALID_ARGUMENT, path);
    ck_assert_int_eq(mkdir(inner, 0700), 0);
    write_file(folder, "README", "no: [schema");
    write_file(inner, "One.yaml", "domain: my.own\nname: One\nsince_version: 2\ninputs: []\noutputs: []\n");
    ck_assert_msg(dq_schemas_add_dir(set, folder, &err) == DQ_OK, "%s", err.message);
    const dq_schema *one = NULL;
    ck_assert_int_eq(dq_schemas_find(set, "my.own", "One", 2, &one, &err), DQ_OK);
    write_file(inner, "Two.yaml", "- 1");
    snprintf(path, sizeof path, "%s/Two.yaml:1: a schema is a list, wanted a mapping", inner);
    expect(dq_schemas_add_dir(set, folder, &err), DQ_BAD_MODEL, path);
    snprintf(path, sizeof path, "rm -r %s", folder);
    ck_assert_int_eq(system(path), 0);
    snprintf(path, sizeof path, "schema folder '%s': No such file or directory", folder);
    expect(dq_schemas_add_dir(set, folder, &err), DQ_INVALID_ARGUMENT, path);
}
END_TEST

/* ---- Bad YAML -------------------------------------------------------------------------------------------
 */

#define HEAD "name: N\nsince_version: 1\n"
#define ENDS "inputs: []\noutputs: []\n"

static const struct {
    const char *yaml;
    dq_status status;
    const char *sentence;
} bad[] = {
    {"name: [", DQ_BAD_MODEL, NULL},
    {"\x01", DQ_BAD_MODEL, NULL},
    {"\xff\xff", DQ_BAD_MODEL, NULL},
    {"just text", DQ_BAD_MODEL, "f.yaml:1: a schema is a text, wanted a mapping"},
    {HEAD, DQ_BAD_MODEL, "f.yaml:1: a schema lacks the key 'inputs'"},
    {"since_version: 1\n" ENDS, DQ_BAD_MODEL, "f.yaml:1: a schema lacks the key 'name'"},
    {HEAD ENDS "colour: red\n", DQ_BAD_MODEL, "f.yaml:5: a schema has the unknown key 'colour'"},
    {HEAD ENDS "name: M\n", DQ_BAD_MODEL, "f.yaml:5: key 'name' stands twice, first on line 1"},
    {"name: ''\nsince_version: 1\n" ENDS, DQ_BAD_MODEL, "f.yaml:1: name is empty"},
    {"name: \"a\\0b\"\nsince_version: 1\n" ENDS, DQ_BAD_MODEL, "f.yaml:1: a text holds a zero byte"},
    {"name: {a: 1}\nsince_version: 1\n" ENDS, DQ_BAD_MODEL, "f.yaml:1: name is a mapping, wanted a text"},
    {"name: N\nsince_version: one\n" ENDS, DQ_BAD_MODEL,
     "f.yaml:2: since_version is 'one', wanted a number from 1 to 1000000"},
    {"name: N\nsince_version: 0\n" ENDS, DQ_BAD_MODEL,
     "f.yaml:2: since_version is '0', wanted a number from 1 to 1000000"},
    {"name: N\nsince_version: 99999999999999999999\n" ENDS, DQ_BAD_MODEL,
     "f.yaml:2: since_version is '99999999999999999999', wanted a number from 1 to 1000000"},
    {HEAD ENDS "min_input: -1\n", DQ_BAD_MODEL,
     "f.yaml:5: min_input is '-1', wanted a number from 0 to 2147483647"},
    {HEAD ENDS "min_input: 3\nmax_input: 2\n", DQ_BAD_MODEL, "f.yaml:5: min_input is 3, above max_input, 2"},
    {HEAD ENDS "deprecated: perhaps\n", DQ_BAD_MODEL,
     "f.yaml:5: deprecated is 'perhaps', wanted true or false"},
    {HEAD ENDS "---\n" HEAD ENDS, DQ_BAD_MODEL, "f.yaml:6: operator 'N' has since_version 1 twice"},
    {HEAD "inputs: x\noutputs: []\n", DQ_BAD_MODEL, "f.yaml:3: inputs is a text, wanted a list"},
    {HEAD "inputs: [{name: x, type_str: T}]\noutputs: []\n", DQ_BAD_MODEL,
     "f.yaml:3: type_str 'T' is neither a type variable of type_constraints nor a type"},
    {HEAD "inputs: [{name: x, type_str: tensor(float), tags: [maybe]}]\noutputs: []\n", DQ_BAD_MODEL,
     "f.yaml:3: 'maybe' is no tag; there are optional, variadic, heterogeneous, differentiable and "
     "non-differentiable"},
    {HEAD
     "inputs:\n- {name: x, type_str: tensor(float), tags: [variadic]}\n- {name: y, type_str: tensor(float)}\n"
     "outputs: []\n",
     DQ_BAD_MODEL, "f.yaml:5: 'x' is variadic and not the last of inputs"},
    {HEAD ENDS "type_constraints: [{type_param_str: T, allowed_type_strs: []}]\n", DQ_BAD_MODEL,
     "f.yaml:5: type variable 'T' allows no type"},
    {HEAD ENDS "type_constraints: [{type_param_str: T, allowed_type_strs: [tensor(half)]}]\n", DQ_BAD_MODEL,
     "f.yaml:5: 'tensor(half)' is no type that dqrun knows"},
    {HEAD ENDS "attributes: [{name: a, type: NUMBER}]\n", DQ_BAD_MODEL,
     "f.yaml:5: 'NUMBER' is no attribute type; there are INT, FLOAT, STRING, TENSOR, GRAPH, SPARSE_TENSOR, "
     "TYPE_PROTO and each with S"},
    {HEAD ENDS "attributes: [{name: a, type: INT, default: '1'}]\n", DQ_BAD_MODEL,
     "f.yaml:5: the default of attribute 'a' is 1 in quotes, wanted int"},
    {HEAD ENDS "attributes: [{name: a, type: INT, default: 9223372036854775808}]\n", DQ_BAD_MODEL,
     "f.yaml:5: the default of attribute 'a' is 9223372036854775808, wanted int"},
    {HEAD ENDS "attributes: [{name: a, type: FLOAT, default: 1e39}]\n", DQ_BAD_MODEL,
     "f.yaml:5: the default of attribute 'a' is 1e39, wanted float"},
    {HEAD ENDS "attributes: [{name: a, type: FLOAT, default: 0x10}]\n", DQ_BAD_MODEL,
     "f.yaml:5: the default of attribute 'a' is 0x10, wanted float"},
    {HEAD ENDS "attributes: [{name: a, type: INTS, default: 1}]\n", DQ_BAD_MODEL,
     "f.yaml:5: the default of attribute 'a' is 1, wanted ints"},
    {HEAD ENDS "attributes: [{name: a, type: INT, required: true, default: 1}]\n", DQ_BAD_MODEL,
     "f.yaml:5: attribute 'a' is required and has a default"},
    {HEAD ENDS "attributes: [{name: a, type: TENSOR, default: 1}]\n", DQ_BAD_MODEL,
     "f.yaml:5: attribute 'a' of type tensor has a default, which only numbers and texts may"},
    {HEAD ENDS "attributes: [{name: a, type: INT}, {name: a, type: INT}]\n", DQ_BAD_MODEL,
     "f.yaml:5: attribute 'a' stands twice"},
    {HEAD ENDS "doc: !!binary aGk=\n", DQ_BAD_MODEL,
     "f.yaml:5: tag 'tag:yaml.org,2002:binary' is not allowed"},
    {HEAD ENDS "doc: *d\n", DQ_BAD_MODEL, "f.yaml:5: alias *d names no anchor before it"},
    {HEAD ENDS "doc: &d [*d]\n", DQ_BAD_MODEL, "f.yaml:5: alias *d stands inside its own anchor"},
    {HEAD ENDS "? [a]\n: b\n", DQ_BAD_MODEL, "f.yaml:5: a key is a list, wanted a text"},
    {HEAD ENDS "doc: [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]\n", DQ_OUT_OF_MEMORY,
     "f.yaml:5: nested too deep, the limit is 16"},
    {"a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c "
     "[*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
     "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
     DQ_OUT_OF_MEMORY, "f.yaml:5: too many nodes, aliases expanded, the limit is 100000"},
};

START_TEST(bad_text_gets_one_sentence)
{
    dq_status status = add(bad[_i].yaml);
    ck_assert_msg(status == bad[_i].status, "case %d gave %d: %s", _i, status, err.message);
    if (bad[_i].sentence)
        ck_assert_str_eq(err.message, bad[_i].sentence);
    else
        ck_assert_int_eq(strncmp(err.message, "f.yaml", 6), 0);
}
END_TEST

/* `text` many times over. */
static char *repeated(const char *text, size_t times)
{
    size_t length = strlen(text);
    char *all = malloc(length * times + 1);
    ck_assert_ptr_nonnull(all);
    for (size_t i = 0; i < times; i++)
        memcpy(all + i * length, text, length);
    all[length * times] = '\0';
    return all;
}

static void expect_limit(const char *head, const char *text, size_t times, const char *sentence)
{
    char *many = repeated(text, times);
    char *all = malloc(strlen(head) + strlen(many) + 3);
    ck_assert_ptr_nonnull(all);
    sprintf(all, "%s%s", head, many);
    ck_assert_int_eq(add(all), DQ_OUT_OF_MEMORY);
    ck_assert_str_eq(err.message, sentence);
    free(all);
    free(many);
}

START_TEST(large_text_meets_a_limit)
{
    expect_limit("", "#", DQ_YAML_MAX_BYTES + 1, "f.yaml: has 4194305 bytes, the limit is 4194304");
    expect_limit("[", "1,", 100001, "f.yaml:1: too many nodes, aliases expanded, the limit is 100000");
    expect_limit("[", "&a 1,", 300, "f.yaml:1: too many anchors, the limit is 256");
}
END_TEST

START_TEST(long_lists_meet_a_limit)
{
    char *rows = repeated("- {name: x, type_str: tensor(float)}\n", DQ_MAX_SCHEMA_ROWS + 1);
    char text[8000];
    snprintf(text, sizeof text, HEAD "outputs: []\ninputs:\n%s", rows);
    free(rows);
    expect(add(text), DQ_OUT_OF_MEMORY, "f.yaml:5: inputs has 65 rows, the limit is 64");
}
END_TEST

/* ---- Nodes ----------------------------------------------------------------------------------------------
 */

START_TEST(arity_is_checked)
{
    const dq_schema *quantize = find("QuantizeLinear", 21), *conv = find("QLinearConv", 10);
    expect(dq_schema_check_node(quantize, node_of(1, 1, 0, ""), &err), DQ_BAD_MODEL,
           "has 1 input, wanted 2 to 3");
    expect(dq_schema_check_node(quantize, node_of(4, 1, 0, ""), &err), DQ_BAD_MODEL,
           "has 4 inputs, wanted 2 to 3");
    expect(dq_schema_check_node(quantize, node_of(2, 2, 0, ""), &err), DQ_BAD_MODEL,
           "has 2 outputs, wanted 1");
    expect(dq_schema_check_node(find("Concat", 13), node_of(0, 1, 0, ""), &err), DQ_BAD_MODEL,
           "has 0 inputs, wanted at least 1");
    expect(dq_schema_check_node(conv, node_of(8, 1, 0, "i4"), &err), DQ_BAD_MODEL,
           "input 4 'w_scale' is left out, and it is not optional");
    expect(dq_schema_check_node(conv, node_of(8, 1, 0, "o0"), &err), DQ_BAD_MODEL,
           "output 0 'y' is left out, and it is not optional");
    ck_assert_int_eq(dq_schema_check_node(conv, node_of(9, 1, 0, "i8"), &err), DQ_OK);
    ck_assert_int_eq(dq_schema_check_node(find("Clip", 13), node_of(3, 1, 0, "i1"), &err), DQ_OK);
    ck_assert_int_eq(dq_schema_check_node(find("MaxPool", 12), node_of(1, 2, 0, "o1"), &err), DQ_BAD_MODEL);
    ck_assert_str_eq(err.message, "lacks the attribute 'kernel_shape' of type ints, which is required");
}
END_TEST

START_TEST(attributes_are_checked)
{
    const dq_schema *cast = find("Cast", 21);
    dq_node *node = node_of(1, 1, 1, "");
    node->attrs[0] = (dq_attr){.name = "too", .kind = DQ_ATTR_INT};
    expect(dq_schema_check_node(cast, node, &err), DQ_BAD_MODEL,
           "has the attribute 'too', which the operator does not know; it has saturate, to");
    node->attrs[0] = (dq_attr){.name = "to", .kind = DQ_ATTR_STRING, .u.s = {"FLOAT", 5}};
    expect(dq_schema_check_node(cast, node, &err), DQ_BAD_MODEL,
           "attribute 'to' is of type string, wanted int");
    node->attrs[0] = (dq_attr){.name = "to", .kind = DQ_ATTR_INT, .ref = "dtype"};
    expect(dq_schema_check_node(cast, node, &err), DQ_BAD_MODEL,
           "attribute 'to' refers to attribute 'dtype' of a function, and is in none");
    node->attrs[0].ref = NULL;
    ck_assert_int_eq(dq_schema_check_node(cast, node, &err), DQ_OK);
    ck_assert_ptr_eq(node->schema, cast);
    node = node_of(1, 1, 2, "");
    node->attrs[0] = node->attrs[1] = (dq_attr){.name = "to", .kind = DQ_ATTR_INT};
    expect(dq_schema_check_node(cast, node, &err), DQ_BAD_MODEL, "has the attribute 'to' twice");
    node = node_of(1, 1, 1, "");
    node->attrs[0] = (dq_attr){.name = "to", .kind = DQ_ATTR_INT};
    expect(dq_schema_check_node(find("Relu", 14), node, &err), DQ_BAD_MODEL,
           "has the attribute 'to', which the operator does not know; it has none");
    node = node_of(0, 1, 1, "");
    node->attrs[0] = (dq_attr){.name = "sparse_value", .kind = DQ_ATTR_TENSOR};
    ck_assert_int_eq(dq_schema_check_node(find("Constant", 21), node, &err), DQ_OK);
}
END_TEST

START_TEST(absent_attributes_get_their_defaults)
{
    dq_node *node = node_of(2, 1, 1, "");
    node->attrs[0] = (dq_attr){.name = "axis", .kind = DQ_ATTR_INT, .u.i = -1};
    ck_assert_int_eq(dq_schema_check_node(find("QuantizeLinear", 21), node, &err), DQ_OK);
    ck_assert_uint_eq(node->attr_count, 4);
    ck_assert_int_eq(dq_node_int(node, "axis", 99), -1);
    ck_assert_int_eq(dq_node_int(node, "saturate", 99), 1);
    ck_assert_int_eq(dq_node_int(node, "block_size", 99), 0);
    ck_assert_int_eq(dq_node_int(node, "precision", 99), 99);
    ck_assert_int_eq(dq_schema_check_node(find("QuantizeLinear", 21), node, &err), DQ_OK);
    ck_assert_uint_eq(node->attr_count, 4);
    node = node_of(2, 1, 0, "");
    ck_assert_int_eq(dq_schema_check_node(find("Conv", 22), node, &err), DQ_OK);
    ck_assert_str_eq(dq_node_string(node, "auto_pad", ""), "NOTSET");
    ck_assert_ptr_null(dq_node_attr(node, "pads"));
}
END_TEST

START_TEST(withdrawn_operators_are_refused)
{
    must_add(HEAD "inputs: []\noutputs: []\n---\nname: N\nsince_version: 5\ninputs: []\noutputs: []\n"
                  "deprecated: true\n");
    ck_assert_int_eq(dq_schema_check_node(find("N", 4), node_of(0, 0, 0, ""), &err), DQ_OK);
    expect(dq_schema_check_node(find("N", 6), node_of(0, 0, 0, ""), &err), DQ_BAD_MODEL,
           "the operator is withdrawn since version 5 of its domain");
}
END_TEST

/* ---- Types ----------------------------------------------------------------------------------------------
 */

#define TENSOR(d) (&(const dq_type){.kind = DQ_KIND_TENSOR, .dtype = (d)})

static void expect_type(const dq_type *type, const char *wanted)
{
    char text[DQ_TYPE_TEXT];
    ck_assert_str_eq(dq_type_text(type, text), wanted);
}

START_TEST(types_are_bound_through_variables)
{
    dq_type out[3];
    const dq_schema *s = find("QuantizeLinear", 21);
    const dq_node *node = node_of(3, 1, 0, "");
    const dq_type *in[3] = {TENSOR(DQ_FLOAT), TENSOR(DQ_FLOAT), TENSOR(DQ_INT8)};
    ck_assert_int_eq(dq_schema_bind_types(s, node, in, out, &err), DQ_OK);
    expect_type(&out[0], "tensor(int8)");
    in[2] = TENSOR(DQ_INT32);
    expect(
        dq_schema_bind_types(s, node, in, out, &err), DQ_BAD_MODEL,
        "input 2 'y_zero_point' is tensor(int32), wanted one of tensor(uint8), tensor(int8), tensor(uint16), "
        "tensor(int16), tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2), "
        "tensor(float8e5m2fnuz), tensor(uint4), tensor(int4)");
    in[1] = TENSOR(DQ_FLOAT16);
    in[2] = NULL;
    expect(dq_schema_bind_types(s, node, in, out, &err), DQ_BAD_MODEL,
           "input 1 'y_scale' is tensor(float16), wanted tensor(float), the type of input 0 'x'");
    in[1] = TENSOR(DQ_UNDEFINED);
    ck_assert_int_eq(dq_schema_bind_types(s, node, in, out, &err), DQ_OK);
    ck_assert_int_eq(out[0].kind, DQ_KIND_TENSOR);
    ck_assert_int_eq(out[0].dtype, DQ_UNDEFINED);
}
END_TEST

START_TEST(types_that_one_schema_fixes)
{
    dq_type out[3];
    const dq_type *in[4] = {TENSOR(DQ_UINT8), TENSOR(DQ_INT8), NULL, TENSOR(DQ_INT8)};
    ck_assert_int_eq(dq_schema_bind_types(find("MatMulInteger", 10), node_of(4, 1, 0, "i2"), in, out, &err),
                     DQ_OK);
    expect_type(&out[0], "tensor(int32)");
    in[3] = TENSOR(DQ_UINT8);
    expect(dq_schema_bind_types(find("MatMulInteger", 10), node_of(4, 1, 0, "i2"), in, out, &err),
           DQ_BAD_MODEL,
           "input 3 'b_zero_point' is tensor(uint8), wanted tensor(int8), the type of input 1 'B'");
    in[0] = TENSOR(DQ_DOUBLE);
    expect(dq_schema_bind_types(find("DynamicQuantizeLinear", 11), node_of(1, 3, 0, ""), in, out, &err),
           DQ_BAD_MODEL, "input 0 'x' is tensor(double), wanted tensor(float)");
    in[0] = TENSOR(DQ_FLOAT);
    ck_assert_int_eq(
        dq_schema_bind_types(find("DynamicQuantizeLinear", 11), node_of(1, 3, 0, ""), in, out, &err), DQ_OK);
    expect_type(&out[0], "tensor(uint8)");
    expect_type(&out[1], "tensor(float)");
    in[1] = TENSOR(DQ_FLOAT);
    in[2] = TENSOR(DQ_DOUBLE);
    expect(dq_schema_bind_types(find("Concat", 13), node_of(3, 1, 0, ""), in, out, &err), DQ_BAD_MODEL,
           "input 2 'inputs' is tensor(double), wanted tensor(float), the type of input 0 'inputs'");
}
END_TEST

START_TEST(sequences_optionals_and_maps_are_bound)
{
    dq_type out[1], sequence = {.kind = DQ_KIND_SEQUENCE, .element = TENSOR(DQ_INT8)};
    dq_type optional = {.kind = DQ_KIND_OPTIONAL, .element = &sequence};
    dq_type nested = {.kind = DQ_KIND_SEQUENCE, .element = &sequence};
    dq_type map = {.kind = DQ_KIND_MAP, .dtype = DQ_STRING, .element = TENSOR(DQ_FLOAT)};
    const dq_type *in[1] = {&optional};
    const dq_node *node = node_of(1, 1, 0, "");
    ck_assert_int_eq(dq_schema_bind_types(find("Identity", 16), node, in, out, &err), DQ_OK);
    expect_type(&out[0], "optional(seq(tensor(int8)))");
    in[0] = &sequence;
    ck_assert_int_eq(dq_schema_bind_types(find("Identity", 16), node, in, out, &err), DQ_OK);
    expect_type(&out[0], "seq(tensor(int8))");
    expect(dq_schema_bind_types(find("Abs", 6), node, in, out, &err), DQ_BAD_MODEL,
           "input 0 'X' is seq(tensor(int8)), wanted one of tensor(float), tensor(uint8), tensor(int8), "
           "tensor(uint16), tensor(int16), tensor(int32), tensor(int64), tensor(float16), tensor(double), "
           "tensor(uint32), tensor(uint64)");
    must_add(
        HEAD
        "inputs: [{name: x, type_str: T, tags: [variadic, heterogeneous]}]\n"
        "outputs: [{name: y, type_str: T}]\n"
        "type_constraints: [{type_param_str: T, allowed_type_strs: ['map(string, float)', tensor(int8)]}]\n");
    in[0] = &nested;
    expect(dq_schema_bind_types(find("N", 1), node, in, out, &err), DQ_BAD_MODEL,
           "input 0 'x' is seq(seq(tensor(int8))), wanted one of tensor(int8), map(string, float)");
    const dq_type *mixed[2] = {&map, TENSOR(DQ_INT8)};
    ck_assert_msg(dq_schema_bind_types(find("N", 1), node_of(2, 1, 0, ""), mixed, out, &err) == DQ_OK, "%s",
                  err.message);
    ck_assert_int_eq(out[0].dtype, DQ_UNDEFINED);
}
END_TEST

START_TEST(constraints_as_text)
{
    char text[64];
    static const char wanted[] = "T1: tensor(float); T2: tensor(uint8)";
    ck_assert_uint_eq(dq_schema_types_text(find("DynamicQuantizeLinear", 11), text, sizeof text),
                      strlen(wanted));
    ck_assert_str_eq(text, wanted);
    ck_assert_uint_eq(dq_schema_types_text(find("DynamicQuantizeLinear", 11), text, 12), strlen(wanted));
    ck_assert_str_eq(text, "T1: tensor(");
    ck_assert_uint_eq(dq_schema_types_text(find("DynamicQuantizeLinear", 11), NULL, 0), strlen(wanted));
}
END_TEST

static TCase *one_case(const char *name)
{
    TCase *tests = tcase_create(name);
    tcase_add_checked_fixture(tests, setup, teardown);
    return tests;
}

int main(void)
{
    Suite *suite = suite_create("schema");
    TCase *rows = one_case("rows"), *texts = one_case("texts"), *nodes = one_case("nodes");
    tcase_add_test(rows, newest_version_not_above_the_import);
    tcase_add_test(rows, what_is_not_found_says_why);
    tcase_add_test(rows, all_embedded_schemas_are_read_in_order);
    tcase_add_test(rows, threads_may_look_up_at_once);
    tcase_add_test(rows, a_row_holds_what_the_standard_says);
    tcase_add_test(texts, floats_keep_their_bits);
    tcase_add_test(texts, a_dump_without_tags_is_understood);
    tcase_add_test(texts, a_user_row_replaces_only_its_own_version);
    tcase_add_test(texts, a_row_given_before_the_first_look_up_wins_too);
    tcase_add_test(texts, a_wrong_text_adds_nothing);
    tcase_add_test(texts, a_folder_is_read_with_its_folders);
    tcase_add_loop_test(texts, bad_text_gets_one_sentence, 0, sizeof bad / sizeof *bad);
    tcase_add_test(texts, large_text_meets_a_limit);
    tcase_add_test(texts, long_lists_meet_a_limit);
    tcase_add_test(nodes, arity_is_checked);
    tcase_add_test(nodes, attributes_are_checked);
    tcase_add_test(nodes, absent_attributes_get_their_defaults);
    tcase_add_test(nodes, withdrawn_operators_are_refused);
    tcase_add_test(nodes, types_are_bound_through_variables);
    tcase_add_test(nodes, types_that_one_schema_fixes);
    tcase_add_test(nodes, sequences_optionals_and_maps_are_bound);
    tcase_add_test(nodes, constraints_as_text);
    suite_add_tcase(suite, rows);
    suite_add_tcase(suite, texts);
    suite_add_tcase(suite, nodes);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
