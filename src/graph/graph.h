/* SPDX-License-Identifier: Apache-2.0 */
/* The intermediate representation: graphs of nodes and values as a model says them. Plain data, in one arena;
 * knows neither protobuf nor operators.
 *
 * Life of a model: a parser (or a builder in code) adds inputs, initializers, nodes and outputs by name in
 * any order; dq_graph_link then ties names to values, checks single assignment, and sorts the nodes. After
 * that, nodes point to values and values to their producers. Everything belongs to dq_ir.arena. */
#ifndef DQ_GRAPH_GRAPH_H
#define DQ_GRAPH_GRAPH_H

#include "base/namemap.h"
#include "tensor/tensor.h"

#include <stdatomic.h>

typedef struct dq_ir dq_ir;

/* ---- Types -------------------------------------------------------------------------------------------- */

/** A declared type; tensor of DQ_UNDEFINED and no shape is "nothing declared". */
typedef struct dq_type {
    dq_kind kind;
    dq_dtype dtype; /* tensor and sparse: element; map: key */
    bool has_shape;
    uint32_t rank;
    const int64_t *dims;           /* -1: unknown or symbolic */
    const char *const *dim_names;  /* NULL, or per dimension a symbol or NULL */
    const struct dq_type *element; /* sequence, optional: of what; map: the value's type */
} dq_type;

/** "tensor(float)", "seq(tensor(int8))" into buffer; returns buffer. */
enum { DQ_TYPE_TEXT = 96 };
const char *dq_type_text(const dq_type *type, char buffer[DQ_TYPE_TEXT]);

/* ---- Attributes --------------------------------------------------------------------------------------- */

/** Numbered as AttributeProto.AttributeType. */
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
    DQ_ATTR_SPARSE_TENSOR = 11, /* never in the graph: the parser densifies it to DQ_ATTR_TENSOR */
    DQ_ATTR_SPARSE_TENSORS = 12,
    DQ_ATTR_TYPE_PROTO = 13,
    DQ_ATTR_TYPE_PROTOS = 14
} dq_attr_kind;

typedef struct dq_attr {
    const char *name;
    dq_attr_kind kind;
    const char *ref; /* inside a function body: the function's attribute that gives the value; else NULL */
    size_t count;    /* of the list kinds */
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

/** "int", "floats"… */
const char *dq_attr_kind_name(dq_attr_kind kind);
/** The graphs that an attribute holds, *graphs[0 … n-1], and their number n: 0 for other kinds. */
size_t dq_attr_graphs(const dq_attr *attr, dq_graph *const **graphs);

/* ---- Values and nodes --------------------------------------------------------------------------------- */

struct dq_value {
    const char *name;
    dq_type type;              /* as declared by value_info, input or output */
    const dq_tensor *constant; /* initializer; NULL otherwise */
    dq_node *producer;         /* NULL: graph input, or initializer */
    dq_graph *graph;           /* whose value it is; a subgraph may use those of its outer graphs */
    uint32_t id;               /* below dq_ir.value_count, unique in the model */
    uint32_t index;            /* in graph->all */
    bool is_input;             /* a graph input (may also have `constant`: then that is its default) */
    bool is_output;
    atomic_bool fed; /* an input of the main graph that has a constant: a run was once given another value */
};

struct dq_schema; /* src/schema */
struct dq_op;     /* src/ops */

struct dq_node {
    const char *name;   /* "" when the model gives none */
    const char *domain; /* "" for ai.onnx */
    const char *op_type;
    const char *overload; /* of a model-local function; "" usually */
    int version;          /* since_version of its schema once that is known; the same as opset until then */
    int opset;            /* version of `domain` that the node's model or function imports; 0: not imported */
    uint32_t in_count, out_count;
    const char **in_names, **out_names; /* "" for one that is left out */
    dq_value **in, **out;               /* after link; NULL where left out */
    uint32_t attr_count;
    dq_attr *attrs;
    dq_graph *graph;                /* the graph that the node stands in */
    const struct dq_schema *schema; /* after the schema check */
    const struct dq_op *op;         /* its implementation, after the check; NULL: none */
    bool made;                      /* by fusion: stands in no graph */
    const dq_node *made_for; /* by fusion: the node that it replaces, alone or with others, of the model or
                                made before; NULL: a node of the model */
    bool uncounted;          /* … for some ISA levels only: no work, which is the same at all levels */
    uint32_t position;       /* in dq_graph.nodes, after link */
};

/** Input i of a linked node; NULL: left out, or past the last. */
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
    dq_graph *outer; /* graph whose node holds this one as an attribute; NULL for the main graph */
    dq_node **nodes; /* in the order added; topological after link */
    uint32_t node_count, node_capacity;
    dq_value **inputs, **outputs; /* outputs: after link */
    uint32_t input_count, input_capacity, output_count, output_capacity;
    uint32_t name_capacity, type_capacity; /* of the next two, which fail to grow one by one */
    const char **output_names;
    dq_type *output_types;
    dq_namemap values; /* by name: inputs, initializers, value_info, and after link node outputs */
    dq_value **all;    /* every value of this graph, in order of creation */
    uint32_t value_count, value_capacity;
    dq_value **captures; /* after link: values of outer graphs that its nodes and outputs take, or graphs
                            inside it, each once, by rising id */
    uint32_t capture_count;
    uint32_t number; /* below dq_ir.graph_count, unique in the model */
    bool linked;
    dq_graph *made_before; /* the graph created before this one: dq_ir_free walks from dq_ir.last_made */
};

/** Whether the value has been its constant in all runs so far: an initializer that is no input, or an input
 * of the main graph that nobody has fed. */
static inline bool dq_value_holds(const dq_value *v)
{
    return v->constant && (!v->is_input || (!v->graph->outer && !atomic_load(&v->fed)));
}

/** A model-local function: a body that is copied in place of each node that calls it. */
typedef struct dq_function {
    const char *domain, *name, *overload;
    uint32_t input_count, output_count, attr_name_count, attr_default_count, opset_count;
    const char **inputs, **outputs;
    const char **attr_names; /* attributes without a default */
    dq_attr *attr_defaults;  /* attributes with one */
    dq_opset *opsets;
    dq_graph *body; /* never linked: names are those of the function */
} dq_function;

struct dq_ir {
    dq_arena arena;
    dq_allocator allocator; /* of the arena and the lists of graphs; zeros: malloc */
    const char *path;       /* for sentences: the model's file name as the user gave it */
    int64_t ir_version;
    /* "" and 0 when the model does not say: */
    const char *producer, *producer_version, *domain, *doc;
    int64_t model_version;
    dq_metadata *metadata;
    uint32_t metadata_count;
    dq_opset *opsets;
    uint32_t opset_count;
    dq_function *functions;
    uint32_t function_count;
    dq_graph *graph;            /* the main graph */
    dq_graph *last_made;        /* every graph ever created, also those that nothing points to any more */
    uint32_t value_count;       /* ids handed out so far */
    uint32_t graph_count;       /* numbers handed out so far */
    dq_limits limits;           /* with defaults filled in */
    const dq_dtype *dtypes;     /* by value id: element types of tensors as far as the schemas tell; NULL
                                   before the schema check */
    struct dq_views *views;     /* graph/views.h */
    void (*release)(void *arg); /* frees what the tensors point into (mapped files); may be NULL */
    void *release_arg;
};

/* ---- Building ----------------------------------------------------------------------------------------- */

/** Strings and arrays given to these are kept by reference: they must live in ir->arena (or be static). All
 * give DQ_OUT_OF_MEMORY, or DQ_BAD_MODEL with a sentence without the model's path. The allocator (NULL:
 * malloc) is copied. */
dq_status dq_ir_create(const char *path, const dq_limits *limits, const dq_allocator *allocator, dq_ir **out,
                       dq_error *err);
void dq_ir_free(dq_ir *ir);
/** The limits with defaults in place of zeros; NULL: all defaults. */
dq_limits dq_limits_complete(const dq_limits *requested);

dq_status dq_graph_create(dq_ir *ir, const char *name, dq_graph *outer, dq_graph **out, dq_error *err);
/** In the order of the calls. `type` NULL: nothing is declared. Inputs and initializers have names of their
 * own (an initializer may have an input's: its default); an output is tied to its value by dq_graph_link; a
 * type that a value has stays. Values come into being with the first mention of their name. */
dq_status dq_graph_add_input(dq_graph *g, const char *name, const dq_type *type, dq_error *err);
dq_status dq_graph_add_output(dq_graph *g, const char *name, const dq_type *type, dq_error *err);
dq_status dq_graph_add_value_info(dq_graph *g, const char *name, const dq_type *type, dq_error *err);
dq_status dq_graph_add_initializer(dq_graph *g, const char *name, const dq_tensor *tensor, dq_error *err);
/** A node with room for its names and attributes, which the caller fills in: in_names, out_names (both
 * zeroed: fill each with a string), attrs, name, domain, op_type, overload, opset. */
dq_status dq_graph_add_node(dq_graph *g, uint32_t in_count, uint32_t out_count, uint32_t attr_count,
                            dq_node **out, dq_error *err);

/** The value of that name in g itself, made when there is none. */
dq_status dq_graph_value(dq_graph *g, const char *name, dq_value **out, dq_error *err);

/** Ties the names of g, and of the graphs in its nodes' attributes, to values; refuses a value that is
 * assigned twice, a name that nothing gives, a cycle. Sorts nodes topologically, keeping the model's order
 * where it is one. An inner graph sees the values of its outer ones. */
dq_status dq_graph_link(dq_graph *g, dq_error *err);

/** Calls `use` for each value that the node needs of its own graph or of those around it: its inputs, and
 * the captures of each graph in its attributes; some more than once. After link of those graphs. */
typedef void (*dq_use_fn)(void *arg, dq_value *v);
void dq_node_each_use(const dq_node *node, dq_use_fn use, void *arg);

/* ---- Looking things up -------------------------------------------------------------------------------- */

/** The imported version of a domain ("" and "ai.onnx" are one); 0 when it is not imported. */
int dq_opset_version(const dq_opset *opsets, size_t count, const char *domain);
/** The domain without its other spelling: "ai.onnx" becomes "". */
const char *dq_domain_canonical(const char *domain);

const dq_attr *dq_node_attr(const dq_node *node, const char *name); /* NULL: absent */
int64_t dq_node_int(const dq_node *node, const char *name, int64_t absent);
float dq_node_float(const dq_node *node, const char *name, float absent);
/** A string attribute's bytes are zero-terminated by the parser. */
const char *dq_node_string(const dq_node *node, const char *name, const char *absent);
/** The list and its length; NULL and 0 when absent. */
const int64_t *dq_node_ints(const dq_node *node, const char *name, size_t *count);

/** "node 'conv1' (QLinearConv-10)", or "node 7 (…)" when it has no name; the schema's version once known,
 * else the opset. Into buffer; returns buffer. */
enum { DQ_NODE_TEXT = 256 };
const char *dq_node_text(const dq_node *node, char buffer[DQ_NODE_TEXT]);

#endif
