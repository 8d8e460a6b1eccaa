/* SPDX-License-Identifier: Apache-2.0 */
/* The intermediate representation: graphs of nodes and values, as the model states them. It is plain data in
 * one arena and depends neither on protobuf nor on operators.
 *
 * Life cycle of a model: a parser (or the builder API) adds inputs, initializers, nodes and outputs by name,
 * in any order. dq_graph_link then resolves names to values, checks single assignment, and sorts the nodes
 * topologically. From then on nodes point to values, and values to their producers. dq_ir.arena owns
 * everything. */
#ifndef DQ_GRAPH_GRAPH_H
#define DQ_GRAPH_GRAPH_H

#include "base/namemap.h"
#include "tensor/tensor.h"

#include <stdatomic.h>

typedef struct dq_ir dq_ir;

/* ---- Types -------------------------------------------------------------------------------------------- */

/** A declared type. A tensor of DQ_UNDEFINED without shape means that nothing is declared. */
typedef struct dq_type {
    dq_kind kind;
    dq_dtype dtype; /* Tensor and sparse tensor: the element type; map: the key type. */
    bool has_shape;
    uint32_t rank;
    const int64_t *dims;           /* -1: unknown or symbolic. */
    const char *const *dim_names;  /* NULL, or for each dimension its symbol or NULL. */
    const struct dq_type *element; /* Sequence and optional: type of an item; map: type of a value. */
} dq_type;

/** Writes the type as text to `buffer`, such as "tensor(float)" or "seq(tensor(int8))". Returns `buffer`. */
enum { DQ_TYPE_TEXT = 96 };
const char *dq_type_text(const dq_type *type, char buffer[DQ_TYPE_TEXT]);

/* ---- Attributes --------------------------------------------------------------------------------------- */

/** Numbered as in AttributeProto.AttributeType. */
typedef enum dq_attr_kind {
    DQ_ATTR_UNDEFINED = 0,
    DQ_ATTR_FLOAT = 1,
    DQ_ATTR_INT = 2,
    DQ_ATTR_STRING = 3,
    DQ_ATTR_TENSOR = 4,
    DQ_ATTR_GRAPH = 5,
    DQ_ATTR_FLOATS = 6,
    DQ_ATTR_INTS = 7,
    DQ_ATTR_STRINGS = 8,
    DQ_ATTR_TENSORS = 9,
    DQ_ATTR_GRAPHS = 10,
    DQ_ATTR_SPARSE_TENSOR = 11, /* Never in the graph: the parser densifies it to DQ_ATTR_TENSOR. */
    DQ_ATTR_SPARSE_TENSORS = 12,
    DQ_ATTR_TYPE_PROTO = 13,
    DQ_ATTR_TYPE_PROTOS = 14
} dq_attr_kind;

typedef struct dq_attr {
    const char *name;
    dq_attr_kind kind;
    /* In a function body: name of the function's attribute that supplies the value; else NULL. */
    const char *ref;
    size_t count; /* Length, for the list kinds. */
    union {
        float f;
        int64_t i;
        dq_string s;
        const dq_tensor *tensor;
        dq_graph *graph;
        const float *floats;
        const int64_t *ints;
        const dq_string *strings;
        const dq_tensor *const *tensors;
        dq_graph *const *graphs;
        const dq_type *type;
        const dq_type *const *types;
    } u;
} dq_attr;

/** The kind's name: "int", "floats" … */
const char *dq_attr_kind_name(dq_attr_kind kind);
/** Gives the subgraphs of an attribute as (*graphs)[0 … n - 1] and returns n, which is 0 for other kinds. */
size_t dq_attr_graphs(const dq_attr *attr, dq_graph *const **graphs);

/* ---- Values and nodes --------------------------------------------------------------------------------- */

struct dq_value {
    const char *name;
    dq_type type;              /* As declared by value_info, input or output. */
    const dq_tensor *constant; /* The initializer's tensor; NULL otherwise. */
    dq_node *producer;         /* NULL: a graph input or an initializer. */
    dq_graph *graph; /* The graph that owns it. A subgraph may also use values of its outer graphs. */
    uint32_t id;     /* Unique in the model, less than dq_ir.value_count. */
    uint32_t index;  /* Index in graph->all. */
    bool is_input;   /* A graph input. If it also has `constant`, that is its default. */
    bool is_output;
    atomic_bool overridden; /* An input of the main graph that has a default: some run has overridden it. */
};

struct dq_schema; /* src/schema */
struct dq_op;     /* src/ops */

struct dq_node {
    const char *name;   /* "" if the model gives none. */
    const char *domain; /* "" for ai.onnx. */
    const char *op_type;
    const char *overload; /* Overload of a model-local function; usually "". */
    int version;          /* since_version of its schema; equal to opset until the schema is known. */
    int opset; /* Version of `domain` that the node's model or function imports; 0: not imported. */
    uint32_t in_count, out_count;
    const char **in_names, **out_names; /* "" if omitted. */
    dq_value **in, **out;               /* Set by link; NULL if omitted. */
    uint32_t attr_count;
    dq_attr *attrs;
    dq_graph *graph;                /* The graph that contains the node. */
    const struct dq_schema *schema; /* Set by the schema check. */
    const struct dq_op *op;         /* Its implementation, set by the check; NULL: none. */
    bool made;                      /* Synthetic: made by the rewriter, not in the list of any graph. */
    const dq_node *made_for; /* Of a synthetic node: the node that it replaces, alone or with others; that one
                                may be synthetic itself. NULL: a node of the model. */
    bool uncounted; /* Of a synthetic node that only some ISA levels need: it counts no work, so that the work
                       is equal at all levels. */
    uint32_t position; /* Index in dq_graph.nodes, set by link. */
};

/** Input i of a linked node. NULL: omitted, or past the last. */
static inline dq_value *dq_node_input(const dq_node *node, uint32_t i)
{
    return i < node->in_count ? node->in[i] : NULL;
}

typedef struct dq_opset {
    const char *domain;
    int version;
} dq_opset;

/** An entry of the model's metadata_props. */
typedef struct dq_metadata {
    const char *key, *value;
} dq_metadata;

struct dq_graph {
    dq_ir *ir;
    const char *name;
    dq_graph *outer; /* The graph whose node has this one as an attribute; NULL for the main graph. */
    dq_node **nodes; /* In the order of addition; in topological order after link. */
    uint32_t node_count, node_capacity;
    dq_value **inputs, **outputs; /* outputs: set by link. */
    uint32_t input_count, input_capacity, output_count, output_capacity;
    uint32_t name_capacity,
        /* Capacities of output_names and output_types: one of the two may fail to grow after the other has
           grown. */
        type_capacity;
    const char **output_names;
    dq_type *output_types;
    dq_namemap values; /* By name: inputs, initializers, value_info; after link also node outputs. */
    dq_value **all;    /* All values of this graph, in the order of creation. */
    uint32_t value_count, value_capacity;
    dq_value **captures; /* Set by link: values of outer graphs that its nodes, its outputs or its subgraphs
                            use. Each once, by rising id. */
    uint32_t capture_count;
    uint32_t number; /* Unique in the model, less than dq_ir.graph_count. */
    bool linked;
    /* The previously created graph: dq_ir_free walks this list from dq_ir.last_made. */
    dq_graph *made_before;
};

/** Whether the value was its constant in all runs so far: an initializer that is no input, or an input of the
 * main graph that no run has overridden. */
static inline bool dq_value_holds(const dq_value *v)
{
    return v->constant && (!v->is_input || (!v->graph->outer && !atomic_load(&v->overridden)));
}

/** A model-local function. Inlining replaces each call by a copy of the body. */
typedef struct dq_function {
    const char *domain, *name, *overload;
    uint32_t input_count, output_count, attr_name_count, attr_default_count, opset_count;
    const char **inputs, **outputs;
    const char **attr_names; /* Attributes without a default. */
    dq_attr *attr_defaults;  /* Attributes with a default. */
    dq_opset *opsets;
    dq_graph *body; /* Never linked: its names are local to the function. */
} dq_function;

struct dq_ir {
    dq_arena arena;
    dq_allocator allocator; /* Of the arena and the lists of graphs; zeros: malloc. */
    const char *path;       /* For messages: the model's file name as the user gave it. */
    int64_t ir_version;
    /* "" and 0 if the model does not set them: */
    const char *producer, *producer_version, *domain, *doc;
    int64_t model_version;
    dq_metadata *metadata;
    uint32_t metadata_count;
    dq_opset *opsets;
    uint32_t opset_count;
    dq_function *functions;
    uint32_t function_count;
    dq_graph *graph;        /* The main graph. */
    dq_graph *last_made;    /* Head of the list of all graphs ever created, unreachable ones included. */
    uint32_t value_count;   /* Ids assigned so far. */
    uint32_t graph_count;   /* Numbers assigned so far. */
    dq_limits limits;       /* With defaults filled in. */
    const dq_dtype *dtypes; /* By value id: element types of tensors as far as schemas determine them; NULL
                               before the schema check. */
    struct dq_views *views; /* graph/views.h */
    void (*release)(void *arg); /* Frees the memory that tensors point to (mapped files); may be NULL. */
    void *release_arg;
};

/* ---- Building ----------------------------------------------------------------------------------------- */

/** The functions below keep strings and arrays by reference: these must live in ir->arena (or be static).
 * They return DQ_OUT_OF_MEMORY, or DQ_BAD_MODEL with a message that does not name the model's path.
 * dq_ir_create copies the allocator (NULL: malloc). */
dq_status dq_ir_create(const char *path, const dq_limits *limits, const dq_allocator *allocator, dq_ir **out,
                       dq_error *err);
void dq_ir_free(dq_ir *ir);
/** Copies the limits and replaces zeros by the defaults. NULL: all defaults. */
dq_limits dq_limits_complete(const dq_limits *requested);

dq_status dq_graph_create(dq_ir *ir, const char *name, dq_graph *outer, dq_graph **out, dq_error *err);
/** These append in the order of the calls. `type` NULL: nothing is declared. Names of inputs are unique, and
 * so are names of initializers; an initializer with the name of an input is that input's default.
 * dq_graph_link resolves an output to its value. The first declared type of a value stays. A value is created
 * when its name first occurs. */
dq_status dq_graph_add_input(dq_graph *g, const char *name, const dq_type *type, dq_error *err);
dq_status dq_graph_add_output(dq_graph *g, const char *name, const dq_type *type, dq_error *err);
dq_status dq_graph_add_value_info(dq_graph *g, const char *name, const dq_type *type, dq_error *err);
dq_status dq_graph_add_initializer(dq_graph *g, const char *name, const dq_tensor *tensor, dq_error *err);
/** Appends a node with arrays for its names and attributes. The caller fills in in_names and out_names
 * (zeroed; each needs a string), attrs, name, domain, op_type, overload and opset. */
dq_status dq_graph_add_node(dq_graph *g, uint32_t in_count, uint32_t out_count, uint32_t attr_count,
                            dq_node **out, dq_error *err);

/** Looks up the value of that name in `g` itself, and creates it if there is none. */
dq_status dq_graph_value(dq_graph *g, const char *name, dq_value **out, dq_error *err);

/** Resolves the names in `g` and in its subgraphs to values, and sorts the nodes topologically; an order that
 * already is topological stays. Refuses a value that is assigned twice, a name that nothing produces, and a
 * cycle. A subgraph sees the values of its outer graphs. */
dq_status dq_graph_link(dq_graph *g, dq_error *err);

/** Calls `use` for each value of its own or an outer graph that the node needs: its inputs, and the captures
 * of each subgraph. A value may come more than once. The subgraphs must be linked. */
typedef void (*dq_use_fn)(void *arg, dq_value *v);
void dq_node_each_use(const dq_node *node, dq_use_fn use, void *arg);

/* ---- Looking things up -------------------------------------------------------------------------------- */

/** The imported version of a domain ("" and "ai.onnx" are the same); 0 if it is not imported. */
int dq_opset_version(const dq_opset *opsets, size_t count, const char *domain);
/** The canonical spelling of a domain: "ai.onnx" becomes "". */
const char *dq_domain_canonical(const char *domain);

const dq_attr *dq_node_attr(const dq_node *node, const char *name); /* NULL: absent. */
int64_t dq_node_int(const dq_node *node, const char *name, int64_t absent);
float dq_node_float(const dq_node *node, const char *name, float absent);
/** The parser zero-terminates the bytes of string attributes. */
const char *dq_node_string(const dq_node *node, const char *name, const char *absent);
/** The list and its length; NULL and 0 if absent. */
const int64_t *dq_node_ints(const dq_node *node, const char *name, size_t *count);

/** Writes a description of the node to `buffer`: "node 'conv1' (QLinearConv-10)", or "node 7 (…)" without a
 * name. The version is that of the schema once known, else of the opset. Returns `buffer`. */
enum { DQ_NODE_TEXT = 256 };
const char *dq_node_text(const dq_node *node, char buffer[DQ_NODE_TEXT]);

#endif
