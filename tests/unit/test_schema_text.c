/* SPDX-License-Identifier: Apache-2.0 */
/* Schema text from friends and strangers: what is understood, what a user's files replace, what is refused.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/yaml_tree.h"
#include "schema_set.h"
#include "support/test_program.h"

static void setup(void)
{
    ck_assert_int_eq(dq_schemas_create(&set, &err), DQ_OK);
}

static void teardown(void)
{
    dq_schemas_free(set);
}

static void expect(dq_status got, dq_status expected, const char *message)
{
    ck_assert_int_eq(got, expected);
    ck_assert_int_eq(err.status, expected);
    ck_assert_str_eq(err.message, message);
}

static dq_status add(const char *yaml)
{
    return dq_schemas_add_yaml(set, yaml, strlen(yaml), "f.yaml", &err);
}

static void must_add(const char *yaml)
{
    ck_assert_msg(add(yaml) == DQ_OK, "%s", err.message);
}

/* ---- Defaults ---- */

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

/* ---- The user's files -------------------------------------------------------------------------------- */

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

START_TEST(arity_follows_from_the_lists_when_it_is_not_given)
{
    must_add("name: A\nsince_version: 1\noutputs: [{name: y, type_str: tensor(float)}]\ninputs:\n"
             "- {name: a, type_str: tensor(float), min_arity: 0}\n- {name: b, type_str: tensor(float)}\n"
             "- {name: c, type_str: tensor(float), tags: [variadic], min_arity: 2}\n---\n"
             "name: B\nsince_version: 1\noutputs: []\ninputs:\n- {name: a, type_str: tensor(float)}\n"
             "- {name: b, type_str: tensor(float), tags: [optional, differentiable]}\n---\n"
             "name: C\nsince_version: 1\noutputs: []\ninputs:\n"
             "- {name: a, type_str: tensor(float), tags: [variadic, heterogeneous], min_arity: 0}\n");
    const dq_schema *s = find("A", 1);
    ck_assert_int_eq(s->inputs[0].option, DQ_OPTIONAL);
    ck_assert_int_eq(s->inputs[1].option, DQ_SINGLE);
    ck_assert_uint_eq(s->min_input, 4);
    ck_assert_uint_eq(s->max_input, DQ_UNBOUNDED);
    ck_assert_uint_eq(s->min_output, 1);
    ck_assert_uint_eq(s->max_output, 1);
    s = find("B", 1);
    ck_assert_uint_eq(s->min_input, 1);
    ck_assert_uint_eq(s->max_input, 2);
    s = find("C", 1);
    ck_assert_int_eq(s->inputs[0].option, DQ_VARIADIC);
    ck_assert(!s->inputs[0].homogeneous);
    ck_assert_uint_eq(s->min_input, 0);
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
    snprintf(path, sizeof path, "%s/Two.yaml:1: a schema is a list, expected a mapping", inner);
    expect(dq_schemas_add_dir(set, folder, &err), DQ_BAD_MODEL, path);
    snprintf(path, sizeof path, "rm -r %s", folder);
    ck_assert_int_eq(system(path), 0);
    snprintf(path, sizeof path, "schema folder '%s': No such file or directory", folder);
    expect(dq_schemas_add_dir(set, folder, &err), DQ_INVALID_ARGUMENT, path);
}
END_TEST

/* ---- Bad YAML ---------------------------------------------------------------------------------------- */

#define HEAD "name: N\nsince_version: 1\n"
#define ENDS "inputs: []\noutputs: []\n"

static const struct {
    const char *yaml;
    dq_status status;
    const char *message;
} bad[] = {
    {"name: [", DQ_BAD_MODEL, NULL},
    {"\x01", DQ_BAD_MODEL, NULL},
    {"\xff\xff", DQ_BAD_MODEL, NULL},
    {"just text", DQ_BAD_MODEL, "f.yaml:1: a schema is a text, expected a mapping"},
    {HEAD, DQ_BAD_MODEL, "f.yaml:1: a schema lacks the key 'inputs'"},
    {"since_version: 1\n" ENDS, DQ_BAD_MODEL, "f.yaml:1: a schema lacks the key 'name'"},
    {HEAD ENDS "colour: red\n", DQ_BAD_MODEL, "f.yaml:5: a schema has the unknown key 'colour'"},
    {HEAD ENDS "name: M\n", DQ_BAD_MODEL, "f.yaml:5: key 'name' stands twice, first on line 1"},
    {"name: ''\nsince_version: 1\n" ENDS, DQ_BAD_MODEL, "f.yaml:1: name is empty"},
    {"name: \"a\\0b\"\nsince_version: 1\n" ENDS, DQ_BAD_MODEL, "f.yaml:1: a text holds a zero byte"},
    {"name: {a: 1}\nsince_version: 1\n" ENDS, DQ_BAD_MODEL, "f.yaml:1: name is a mapping, expected a text"},
    {"name: N\nsince_version: one\n" ENDS, DQ_BAD_MODEL,
     "f.yaml:2: since_version is 'one', expected a number from 1 to 1000000"},
    {"name: N\nsince_version: 0\n" ENDS, DQ_BAD_MODEL,
     "f.yaml:2: since_version is '0', expected a number from 1 to 1000000"},
    {"name: N\nsince_version: 99999999999999999999\n" ENDS, DQ_BAD_MODEL,
     "f.yaml:2: since_version is '99999999999999999999', expected a number from 1 to 1000000"},
    {HEAD ENDS "min_input: -1\n", DQ_BAD_MODEL,
     "f.yaml:5: min_input is '-1', expected a number from 0 to 2147483647"},
    {HEAD ENDS "min_input: 3\nmax_input: 2\n", DQ_BAD_MODEL, "f.yaml:5: min_input is 3, above max_input, 2"},
    {HEAD ENDS "deprecated: perhaps\n", DQ_BAD_MODEL,
     "f.yaml:5: deprecated is 'perhaps', expected true or false"},
    {HEAD ENDS "---\n" HEAD ENDS, DQ_BAD_MODEL, "f.yaml:6: operator 'N' has since_version 1 twice"},
    {HEAD "inputs: x\noutputs: []\n", DQ_BAD_MODEL, "f.yaml:3: inputs is a text, expected a list"},
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
     "f.yaml:5: the default of attribute 'a' is 1 in quotes, expected int"},
    {HEAD ENDS "attributes: [{name: a, type: INT, default: 9223372036854775808}]\n", DQ_BAD_MODEL,
     "f.yaml:5: the default of attribute 'a' is 9223372036854775808, expected int"},
    {HEAD ENDS "attributes: [{name: a, type: FLOAT, default: 1e39}]\n", DQ_BAD_MODEL,
     "f.yaml:5: the default of attribute 'a' is 1e39, expected float"},
    {HEAD ENDS "attributes: [{name: a, type: FLOAT, default: '1.5'}]\n", DQ_BAD_MODEL,
     "f.yaml:5: the default of attribute 'a' is 1.5 in quotes, expected float"},
    {HEAD ENDS "attributes: [{name: a, type: FLOAT, default: 0x10}]\n", DQ_BAD_MODEL,
     "f.yaml:5: the default of attribute 'a' is 0x10, expected float"},
    {HEAD ENDS "attributes: [{name: a, type: INTS, default: 1}]\n", DQ_BAD_MODEL,
     "f.yaml:5: the default of attribute 'a' is 1, expected ints"},
    {HEAD ENDS "attributes: [{name: a, type: STRINGS, default: [b, [c]]}]\n", DQ_BAD_MODEL,
     "f.yaml:5: the default of attribute 'a' is a list, expected string"},
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
    {HEAD ENDS "? [a]\n: b\n", DQ_BAD_MODEL, "f.yaml:5: a key is a list, expected a text"},
    {HEAD ENDS "doc: [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]\n", DQ_OUT_OF_MEMORY,
     "f.yaml:5: nested too deep, the limit is 16"},
    {HEAD ENDS "doc: &d text\n---\n" HEAD ENDS "doc: *d\n", DQ_BAD_MODEL,
     "f.yaml:11: alias *d names no anchor before it"},
    {"a: &a [[[[[[[[[1]]]]]]]]]\nb: [[[[[[*a]]]]]]\n", DQ_OUT_OF_MEMORY,
     "f.yaml:2: nested too deep, the limit is 16"},
    {"a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c "
     "[*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
     "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
     DQ_OUT_OF_MEMORY, "f.yaml:5: too many nodes, aliases expanded, the limit is 100000"},
};

START_TEST(bad_text_gets_one_message)
{
    dq_status status = add(bad[_i].yaml);
    ck_assert_msg(status == bad[_i].status, "case %d gave %u: %s", _i, (unsigned)status, err.message);
    if (bad[_i].message)
        ck_assert_str_eq(err.message, bad[_i].message);
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

START_TEST(anchors_belong_to_one_document)
{
    char *types = repeated("&a tensor(float), ", 200);
    char text[9000];
    static const char schema[] = "name: %s\nsince_version: 1\n" ENDS
                                 "type_constraints:\n- type_param_str: T\n  allowed_type_strs: [%s *a]\n";
    int first = snprintf(text, sizeof text, schema, "N", types);
    int mark = snprintf(text + first, sizeof text - (size_t)first, "---\n");
    snprintf(text + first + mark, sizeof text - (size_t)(first + mark), schema, "M", types);
    free(types);
    must_add(text);
    ck_assert_uint_eq(find("M", 1)->constraint_count, 1);
}
END_TEST

static void expect_limit(const char *head, const char *text, size_t times, const char *message)
{
    char *many = repeated(text, times);
    char *all = malloc(strlen(head) + strlen(many) + 3);
    ck_assert_ptr_nonnull(all);
    sprintf(all, "%s%s", head, many);
    ck_assert_int_eq(add(all), DQ_OUT_OF_MEMORY);
    ck_assert_str_eq(err.message, message);
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

START_TEST(a_mapping_with_many_keys_meets_a_limit)
{
    char text[1000] = "";
    for (unsigned i = 0; i <= DQ_YAML_MAX_KEYS; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "k%u: 1\n", i);
    expect(add(text), DQ_OUT_OF_MEMORY, "f.yaml:65: too many keys in a mapping, the limit is 64");
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

int main(void)
{
    test_program tests = test_program_begin("schema_text", setup, teardown);
    add_test(&tests, floats_keep_their_bits);
    add_test(&tests, a_dump_without_tags_is_understood);
    add_test(&tests, arity_follows_from_the_lists_when_it_is_not_given);
    add_test(&tests, anchors_belong_to_one_document);
    add_test(&tests, a_user_row_replaces_only_its_own_version);
    add_test(&tests, a_row_given_before_the_first_look_up_wins_too);
    add_test(&tests, a_wrong_text_adds_nothing);
    add_test(&tests, a_folder_is_read_with_its_folders);
    add_loop_test(&tests, bad_text_gets_one_message, 0, sizeof bad / sizeof *bad);
    add_test(&tests, large_text_meets_a_limit);
    add_test(&tests, a_mapping_with_many_keys_meets_a_limit);
    add_test(&tests, long_lists_meet_a_limit);
    return test_program_run(&tests);
}
