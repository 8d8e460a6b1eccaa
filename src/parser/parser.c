/* SPDX-License-Identifier: Apache-2.0 */
#include "parser/parser.h"

#include "base/file.h"
#include "parser/external.h"
#include "parser/reader.h"
#include "parser/skeleton.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

const char *dq_proto_text(dq_reader *r, const char *text)
{
    return text && *text ? dq_arena_string(&r->ir->arena, text, strlen(text)) : "";
}

static dq_status read_text(dq_reader *r, const char *text, const char **out, dq_error *err)
{
    *out = dq_proto_text(r, text);
    return *out ? DQ_OK : dq_no_memory(err, strlen(text) + 1, "a name");
}

static dq_status read_texts(dq_reader *r, size_t count, char *const *texts, const char **out, dq_error *err)
{
    for (size_t i = 0; i < count; i++)
        DQ_TRY(read_text(r, texts[i], &out[i], err));
    return DQ_OK;
}

/* Limits of lists that are searched linearly for every node or attribute. Models have a few dozen entries; in
 * a file with many more, the product of two lengths would cost more than its size justifies. */
enum { MAX_ATTRIBUTES = 1000, MAX_OPSETS = 200 };

static dq_status check_count(size_t count, size_t most, const char *what, dq_error *err)
{
    return count <= most
               ? DQ_OK
               : dq_fail(err, DQ_OUT_OF_MEMORY, "has %zu %s, expected at most %zu", count, what, most);
}

/* ---- Nodes -------------------------------------------------------------------------------------------- */

/* Refuses two attributes of one name. Short lists are compared, long ones hashed. */
static dq_status check_attribute_names(const dq_attr *attrs, uint32_t count, dq_error *err)
{
    dq_namemap seen = {0};
    dq_status status = DQ_OK;
    for (uint32_t i = 0; i < count && status == DQ_OK; i++) {
        bool twice = false;
        if (count > 16) {
            twice = dq_namemap_get(&seen, attrs[i].name) != NULL;
            if (!twice && !dq_namemap_put(&seen, attrs[i].name, (void *)(uintptr_t)&attrs[i]))
                status = dq_no_memory(err, count, "the names of attributes");
        }
        for (uint32_t k = 0; count <= 16 && k < i && !twice; k++)
            twice = strcmp(attrs[k].name, attrs[i].name) == 0;
        if (twice)
            status = dq_fail(err, DQ_BAD_MODEL, "two attributes are named '%s'", attrs[i].name);
    }
    dq_namemap_free(&seen);
    return status;
}

static dq_status read_attributes(dq_reader *r, const dq_scope *scope, dq_graph *g, size_t count,
                                 Onnx__AttributeProto *const *protos, dq_attr *out, dq_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = dq_pb_text(protos[i]->name);
        if (!*name)
            return dq_fail(err, DQ_BAD_MODEL, "attribute %zu has no name", i);
        dq_status status = dq_proto_attribute(r, scope, g, protos[i], &out[i], err);
        if (status != DQ_OK) {
            dq_error_prefix(err, "attribute '%s' ", name);
            return status;
        }
    }
    return check_attribute_names(out, (uint32_t)count, err);
}

static dq_status fill_node(dq_reader *r, const dq_scope *scope, const Onnx__NodeProto *proto, dq_node *node,
                           dq_error *err)
{
    const char *overload = "";
    DQ_TRY(read_texts(r, proto->n_input, proto->input, node->in_names, err));
    DQ_TRY(read_texts(r, proto->n_output, proto->output, node->out_names, err));
    if (!*node->op_type)
        return dq_fail(err, DQ_BAD_MODEL, "has no operator");
    DQ_TRY(dq_pb_string(&r->memory, &proto->base, DQ_PB_NODE_OVERLOAD, &overload, err));
    DQ_TRY(read_text(r, overload, &node->overload, err));
    node->opset = dq_opset_version(scope->opsets, scope->opset_count, node->domain);
    node->version = node->opset;
    return read_attributes(r, scope, node->graph, proto->n_attribute, proto->attribute, node->attrs, err);
}

static dq_status read_nodes(dq_reader *r, const dq_scope *scope, size_t count, Onnx__NodeProto *const *protos,
                            dq_graph *g, dq_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const Onnx__NodeProto *proto = protos[i];
        dq_node *node = NULL;
        char text[DQ_NODE_TEXT];
        DQ_TRY(check_count(proto->n_input, INT32_MAX, "inputs in a node", err));
        DQ_TRY(check_count(proto->n_output, INT32_MAX, "outputs in a node", err));
        DQ_TRY(check_count(proto->n_attribute, MAX_ATTRIBUTES, "attributes in a node", err));
        DQ_TRY(dq_graph_add_node(g, (uint32_t)proto->n_input, (uint32_t)proto->n_output,
                                 (uint32_t)proto->n_attribute, &node, err));
        DQ_TRY(read_text(r, proto->name, &node->name, err));
        DQ_TRY(read_text(r, proto->op_type, &node->op_type, err));
        DQ_TRY(read_text(r, dq_domain_canonical(dq_pb_text(proto->domain)), &node->domain, err));
        dq_status status = fill_node(r, scope, proto, node, err);
        if (status != DQ_OK) {
            dq_error_prefix(err, "%s: ", dq_node_text(node, text));
            return status;
        }
    }
    return DQ_OK;
}

/* ---- Graphs ------------------------------------------------------------------------------------------- */

typedef dq_status (*add_fn)(dq_graph *g, const char *name, const dq_type *type, dq_error *err);

static dq_status read_values(dq_reader *r, size_t count, Onnx__ValueInfoProto *const *protos,
                             const char *what, dq_graph *g, add_fn add, dq_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = NULL;
        dq_type type;
        DQ_TRY(read_text(r, protos[i]->name, &name, err));
        dq_status status = dq_proto_type(r, protos[i]->type, &type, err);
        if (status != DQ_OK) {
            dq_error_prefix(err, "%s '%s' ", what, name);
            return status;
        }
        DQ_TRY(add(g, name, &type, err));
    }
    return DQ_OK;
}

static dq_status add_initializer(dq_reader *r, dq_graph *g, const char *proto_name, const dq_tensor *tensor,
                                 dq_error *err)
{
    const char *name = NULL;
    DQ_TRY(read_text(r, proto_name, &name, err));
    return dq_graph_add_initializer(g, name, tensor, err);
}

static dq_status read_initializers(dq_reader *r, const Onnx__GraphProto *proto, dq_graph *g, dq_error *err)
{
    for (size_t i = 0; i < proto->n_initializer; i++) {
        const dq_tensor *tensor = NULL;
        const char *name = dq_pb_text(proto->initializer[i]->name);
        dq_status status = dq_proto_initializer(r, proto->initializer[i], &tensor, err);
        if (status != DQ_OK) {
            dq_error_prefix(err, "initializer '%s' ", name);
            return status;
        }
        DQ_TRY(add_initializer(r, g, name, tensor, err));
    }
    for (size_t i = 0; i < proto->n_sparse_initializer; i++) {
        const Onnx__SparseTensorProto *sparse = proto->sparse_initializer[i];
        const dq_tensor *tensor = NULL;
        const char *name = sparse->values ? dq_pb_text(sparse->values->name) : "";
        dq_status status = dq_proto_sparse(r, sparse, &tensor, err);
        if (status != DQ_OK) {
            dq_error_prefix(err, "sparse initializer '%s' ", name);
            return status;
        }
        DQ_TRY(add_initializer(r, g, name, tensor, err));
    }
    return DQ_OK;
}

dq_status dq_proto_graph(dq_reader *r, const dq_scope *scope, const Onnx__GraphProto *proto, dq_graph *g,
                         dq_error *err)
{
    DQ_TRY(read_values(r, proto->n_input, proto->input, "input", g, dq_graph_add_input, err));
    DQ_TRY(read_initializers(r, proto, g, err));
    DQ_TRY(read_nodes(r, scope, proto->n_node, proto->node, g, err));
    DQ_TRY(read_values(r, proto->n_output, proto->output, "output", g, dq_graph_add_output, err));
    return read_values(r, proto->n_value_info, proto->value_info, "value", g, dq_graph_add_value_info, err);
}

/* ---- Opsets and functions ----------------------------------------------------------------------------- */

static dq_status read_opset(dq_reader *r, const Onnx__OperatorSetIdProto *proto, dq_opset *out, dq_error *err)
{
    const char *domain = dq_domain_canonical(dq_pb_text(proto->domain));
    const char *shown = *domain ? domain : "ai.onnx";
    if (proto->version < 1 || proto->version > INT_MAX)
        return dq_fail(err, DQ_BAD_MODEL, "imports %s %" PRId64 ", expected a version of 1 or more", shown,
                       proto->version);
    if (!*domain && proto->version > DQ_MAX_OPSET)
        return dq_fail(err, DQ_UNSUPPORTED, "imports %s %" PRId64 ", expected at most %d", shown,
                       proto->version, DQ_MAX_OPSET);
    out->version = (int)proto->version;
    return read_text(r, domain, &out->domain, err);
}

static dq_status read_opsets(dq_reader *r, size_t count, Onnx__OperatorSetIdProto *const *protos,
                             dq_opset **out, uint32_t *out_count, dq_error *err)
{
    if (count > MAX_OPSETS)
        return dq_fail(err, DQ_OUT_OF_MEMORY, "imports %zu operator sets, expected at most %d", count,
                       MAX_OPSETS);
    *out = DQ_NEW_ARRAY(&r->ir->arena, count, dq_opset);
    if (!*out)
        return dq_no_memory(err, count * sizeof **out, "operator sets");
    for (size_t i = 0; i < count; i++) {
        DQ_TRY(read_opset(r, protos[i], &(*out)[i], err));
        int earlier = dq_opset_version(*out, i, (*out)[i].domain);
        if (earlier && earlier != (*out)[i].version)
            return dq_fail(err, DQ_BAD_MODEL, "imports both %s %d and %d",
                           *(*out)[i].domain ? (*out)[i].domain : "ai.onnx", earlier, (*out)[i].version);
    }
    *out_count = (uint32_t)count;
    return DQ_OK;
}

static dq_status read_list(dq_reader *r, size_t count, char *const *texts, size_t most, const char *what,
                           const char ***out, uint32_t *out_count, dq_error *err)
{
    DQ_TRY(check_count(count, most, what, err));
    *out = DQ_NEW_ARRAY(&r->ir->arena, count, const char *);
    if (!*out)
        return dq_no_memory(err, count * sizeof **out, what);
    *out_count = (uint32_t)count;
    return read_texts(r, count, texts, *out, err);
}

static dq_status read_body(dq_reader *r, const Onnx__FunctionProto *proto, dq_function *f, dq_error *err)
{
    size_t count = 0;
    ProtobufCMessage **defaults = NULL;
    DQ_TRY(read_list(r, proto->n_input, proto->input, INT32_MAX, "inputs", &f->inputs, &f->input_count, err));
    DQ_TRY(read_list(r, proto->n_output, proto->output, INT32_MAX, "outputs", &f->outputs, &f->output_count,
                     err));
    DQ_TRY(read_list(r, proto->n_attribute, proto->attribute, MAX_ATTRIBUTES, "attributes", &f->attr_names,
                     &f->attr_name_count, err));
    DQ_TRY(read_opsets(r, proto->n_opset_import, proto->opset_import, &f->opsets, &f->opset_count, err));
    DQ_TRY(dq_pb_messages(&r->memory, &proto->base, DQ_PB_FUNCTION_ATTRIBUTE_PROTO, &count, &defaults, err));
    DQ_TRY(check_count(count, MAX_ATTRIBUTES, "attributes with defaults", err));
    f->attr_defaults = DQ_NEW_ARRAY(&r->ir->arena, count, dq_attr);
    if (!f->attr_defaults)
        return dq_no_memory(err, count * sizeof *f->attr_defaults, "attributes");
    f->attr_default_count = (uint32_t)count;
    DQ_TRY(dq_graph_create(r->ir, f->name, NULL, &f->body, err));
    /* A default is a value: it cannot refer to an attribute. */
    dq_scope scope = {f->opsets, f->opset_count, false};
    DQ_TRY(
        read_attributes(r, &scope, f->body, count, (Onnx__AttributeProto **)defaults, f->attr_defaults, err));
    scope.in_function = true;
    return read_nodes(r, &scope, proto->n_node, proto->node, f->body, err);
}

static dq_status read_function(dq_reader *r, const Onnx__FunctionProto *proto, dq_function *f, dq_error *err)
{
    const char *overload = "";
    DQ_TRY(read_text(r, proto->name, &f->name, err));
    DQ_TRY(read_text(r, dq_domain_canonical(dq_pb_text(proto->domain)), &f->domain, err));
    DQ_TRY(dq_pb_string(&r->memory, &proto->base, DQ_PB_FUNCTION_OVERLOAD, &overload, err));
    DQ_TRY(read_text(r, overload, &f->overload, err));
    dq_status status = read_body(r, proto, f, err);
    if (status != DQ_OK)
        dq_error_prefix(err, "function '%s%s%s': ", f->domain, *f->domain ? "." : "", f->name);
    return status;
}

/* ---- The model ---------------------------------------------------------------------------------------- */

/* Reads the model's producer, version, documentation and metadata. */
static dq_status read_origin(dq_reader *r, const Onnx__ModelProto *proto, dq_error *err)
{
    dq_ir *ir = r->ir;
    const size_t count = proto->n_metadata_props;
    DQ_TRY(read_text(r, proto->producer_name, &ir->producer, err));
    DQ_TRY(read_text(r, proto->producer_version, &ir->producer_version, err));
    DQ_TRY(read_text(r, proto->domain, &ir->domain, err));
    DQ_TRY(read_text(r, proto->doc_string, &ir->doc, err));
    ir->model_version = proto->model_version;
    DQ_TRY(check_count(count, INT32_MAX, "entries of metadata", err));
    ir->metadata = DQ_NEW_ARRAY(&ir->arena, count, dq_metadata);
    if (!ir->metadata)
        return dq_no_memory(err, count * sizeof *ir->metadata, "a model's metadata");
    for (size_t i = 0; i < count; i++) {
        DQ_TRY(read_text(r, proto->metadata_props[i]->key, &ir->metadata[i].key, err));
        DQ_TRY(read_text(r, proto->metadata_props[i]->value, &ir->metadata[i].value, err));
    }
    ir->metadata_count = (uint32_t)count;
    return DQ_OK;
}

static dq_status read_model(dq_reader *r, const Onnx__ModelProto *proto, dq_error *err)
{
    dq_ir *ir = r->ir;
    if (!proto->graph)
        return dq_fail(err, DQ_BAD_MODEL, "has no graph: it is no ONNX model or is damaged");
    if (proto->ir_version < 3 || proto->ir_version > DQ_MAX_IR_VERSION)
        return dq_fail(err, proto->ir_version < 1 ? DQ_BAD_MODEL : DQ_UNSUPPORTED,
                       "has IR version %" PRId64 ", expected 3 to %d", proto->ir_version, DQ_MAX_IR_VERSION);
    ir->ir_version = proto->ir_version;
    DQ_TRY(read_origin(r, proto, err));
    DQ_TRY(read_opsets(r, proto->n_opset_import, proto->opset_import, &ir->opsets, &ir->opset_count, err));
    DQ_TRY(check_count(proto->n_functions, INT32_MAX, "functions", err));
    ir->functions = DQ_NEW_ARRAY(&ir->arena, proto->n_functions, dq_function);
    if (!ir->functions)
        return dq_no_memory(err, proto->n_functions * sizeof *ir->functions, "functions");
    for (size_t i = 0; i < proto->n_functions; i++) {
        DQ_TRY(read_function(r, proto->functions[i], &ir->functions[i], err));
        ir->function_count++;
    }
    const char *name = NULL;
    DQ_TRY(read_text(r, proto->graph->name, &name, err));
    DQ_TRY(dq_graph_create(ir, name, NULL, &ir->graph, err));
    dq_scope scope = {ir->opsets, ir->opset_count, false};
    return dq_proto_graph(r, &scope, proto->graph, ir->graph, err);
}

/* Limit of the memory of unpacked messages, per byte of the skeleton. Measured on models of many small parts,
 * the worst case, valid models take up to 11 times their size; crafted two-byte messages could take 50. */
enum { MEMORY_PER_BYTE = 20, MEMORY_AT_LEAST = 1 << 20 };

static dq_status parse_bytes(dq_reader *r, size_t size, dq_error *err)
{
    dq_skeleton skeleton = {0};
    ProtobufCMessage *model = NULL;
    if (size == 0)
        return dq_fail(err, DQ_BAD_MODEL, "is empty");
    DQ_TRY(dq_skeleton_make(r->bytes, size, &r->ir->limits, &skeleton, err));
    r->memory.limit =
        MEMORY_AT_LEAST + MEMORY_PER_BYTE * skeleton.size; /* The skeleton is smaller than 2 GiB. */
    dq_status status =
        dq_pb_unpack(&r->memory, &onnx__model_proto__descriptor, skeleton.bytes, skeleton.size, &model, err);
    dq_skeleton_free(&skeleton);
    if (status == DQ_OK)
        status = read_model(r, (const Onnx__ModelProto *)model, err);
    dq_arena_free(&r->memory.arena);
    return status;
}

/* The memory to which a model's tensors point. */
typedef struct backing {
    dq_file file;
    dq_externals *externals;
} backing;

static void release_backing(void *arg)
{
    backing *b = arg;
    if (b->externals)
        dq_externals_close(b->externals);
    dq_file_unmap(&b->file);
}

static dq_status create(const char *name, const dq_load_options *options, dq_ir **ir, backing **out,
                        dq_error *err)
{
    DQ_TRY(
        dq_ir_create(name, options ? options->limits : NULL, options ? options->allocator : NULL, ir, err));
    *out = DQ_NEW(&(*ir)->arena, backing);
    if (!*out)
        return dq_no_memory(err, sizeof **out, "a model");
    (*ir)->release = release_backing;
    (*ir)->release_arg = *out;
    return DQ_OK;
}

/* Parses the bytes. `file`: the file of the bytes, or NULL. */
static dq_status parse(dq_ir *ir, backing *b, const dq_file *file, const uint8_t *bytes, size_t size,
                       const char *base_dir, const dq_load_options *options, dq_error *err)
{
    DQ_TRY(dq_externals_create(&ir->arena, base_dir, options, ir->limits.file_bytes, &b->externals, err));
    dq_reader reader = {.ir = ir, .bytes = bytes, .file = file, .externals = b->externals};
    return parse_bytes(&reader, size, err);
}

/* Returns the model, or frees it after an error. */
static dq_status finish(dq_status status, dq_ir *ir, const char *prefix, dq_ir **out, dq_error *err)
{
    if (status == DQ_OK) {
        *out = ir;
        return DQ_OK;
    }
    if (prefix)
        dq_error_prefix(err, "%s: ", prefix);
    dq_ir_free(ir);
    return status;
}

/* The folder of a file, in the arena; NULL: out of memory. */
static const char *folder_of(const char *path, dq_arena *arena)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return ".";
    return slash == path ? "/" : dq_arena_string(arena, path, (size_t)(slash - path));
}

/* Parses the model in b->file, unless `status` is an error. */
static dq_status parse_file(dq_status status, const char *name, const char *base_dir, dq_ir *ir, backing *b,
                            const dq_load_options *options, dq_ir **out, dq_error *err)
{
    if (status != DQ_OK) /* The message already has the name. */
        return finish(status, ir, NULL, out, err);
    status = parse(ir, b, &b->file, b->file.bytes, b->file.size, base_dir, options, err);
    return finish(status, ir, name, out, err);
}

static const char *base_dir_of(const dq_load_options *options)
{
    return options ? options->base_dir : NULL;
}

dq_status dq_parse_file(const char *path, const dq_load_options *options, dq_ir **out, dq_error *err)
{
    dq_ir *ir = NULL;
    backing *b = NULL;
    dq_status status = create(path, options, &ir, &b, err);
    const char *folder = status == DQ_OK ? folder_of(path, &ir->arena) : NULL;
    if (status == DQ_OK && !folder)
        status = dq_no_memory(err, strlen(path), "the model's folder");
    if (status != DQ_OK)
        return finish(status, ir, path, out, err);
    status = dq_file_map(path, ir->limits.file_bytes, &ir->allocator, DQ_BAD_MODEL, &b->file, err);
    return parse_file(status, path, folder, ir, b, options, out, err);
}

dq_status dq_parse_fd(int fd, const char *name, const dq_load_options *options, dq_ir **out, dq_error *err)
{
    dq_ir *ir = NULL;
    backing *b = NULL;
    dq_status status = create(name, options, &ir, &b, err);
    if (status != DQ_OK)
        return finish(status, ir, name, out, err);
    status = dq_file_load_fd(fd, name, ir->limits.file_bytes, &ir->allocator, DQ_BAD_MODEL, &b->file, err);
    return parse_file(status, name, base_dir_of(options), ir, b, options, out, err);
}

dq_status dq_parse_read(dq_read_fn read, void *arg, const char *name, const dq_load_options *options,
                        dq_ir **out, dq_error *err)
{
    dq_ir *ir = NULL;
    backing *b = NULL;
    dq_status status = create(name, options, &ir, &b, err);
    if (status != DQ_OK)
        return finish(status, ir, name, out, err);
    status =
        dq_file_read(read, arg, name, ir->limits.file_bytes, &ir->allocator, DQ_BAD_MODEL, &b->file, err);
    return parse_file(status, name, base_dir_of(options), ir, b, options, out, err);
}

dq_status dq_parse_memory(const void *bytes, size_t size, const char *name, const dq_load_options *options,
                          dq_ir **out, dq_error *err)
{
    dq_ir *ir = NULL;
    backing *b = NULL;
    dq_status status = create(name, options, &ir, &b, err);
    if (status != DQ_OK)
        return finish(status, ir, name, out, err);
    if (size > ir->limits.file_bytes)
        status = dq_fail(err, DQ_OUT_OF_MEMORY, "has %zu bytes, over the limit of %" PRIu64, size,
                         ir->limits.file_bytes);
    else
        status = parse(ir, b, NULL, bytes, size, base_dir_of(options), options, err);
    return finish(status, ir, name, out, err);
}
