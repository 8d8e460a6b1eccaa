/* SPDX-License-Identifier: Apache-2.0 */
/* A model and its plan as JSON. Nodes, values and steps refer to each other by index. */
#include "insight/json.h"

static const char *const granularities[] = {[DQ_GRANULARITY_UNKNOWN] = "unknown",
                                            [DQ_PER_TENSOR] = "tensor",
                                            [DQ_PER_AXIS] = "axis",
                                            [DQ_PER_BLOCK] = "block"};

static void put_index(cli_json *json, const char *key, size_t index)
{
    if (index == INSIGHT_NONE)
        cli_json_null(json, key);
    else
        cli_json_size(json, key, index);
}

static void put_indices(cli_json *json, const char *key, const size_t *indices, size_t count)
{
    cli_json_begin_array(json, key);
    for (size_t i = 0; i < count; i++)
        put_index(json, NULL, indices[i]);
    cli_json_end_array(json);
}

static void put_quantization(const insight_quantization *q, cli_json *json)
{
    if (!q->quantized) {
        cli_json_null(json, "quantization");
        return;
    }
    cli_json_begin_object(json, "quantization");
    cli_json_text(json, "granularity", granularities[q->granularity]);
    if (q->granularity == DQ_PER_AXIS || q->granularity == DQ_PER_BLOCK)
        cli_json_int(json, "axis", q->axis);
    if (q->granularity == DQ_PER_BLOCK)
        cli_json_int(json, "block_size", q->block_size);
    if (q->has_scale) {
        cli_json_size(json, "scales", q->scale_count);
        cli_json_double(json, "scale_min", q->scale_min);
        cli_json_double(json, "scale_max", q->scale_max);
    }
    if (q->has_zero_point) {
        cli_json_double(json, "zero_point_min", q->zero_point_min);
        cli_json_double(json, "zero_point_max", q->zero_point_max);
    }
    cli_json_text(json, "node", q->node);
    cli_json_end_object(json);
}

static void put_value(const insight_value *v, cli_json *json)
{
    cli_json_begin_object(json, NULL);
    cli_json_text(json, "name", v->name);
    cli_json_text(json, "type", v->type);
    if (v->has_shape) {
        cli_json_begin_array(json, "shape");
        for (size_t d = 0; d < v->rank; d++) {
            if (v->dims[d] >= 0)
                cli_json_int(json, NULL, v->dims[d]);
            else
                cli_json_text(json, NULL, v->dim_names ? v->dim_names[d] : NULL);
        }
        cli_json_end_array(json);
    } else {
        cli_json_null(json, "shape");
    }
    cli_json_text(json, "kind",
                  v->is_input         ? "input"
                  : v->is_initializer ? "initializer"
                  : v->is_constant    ? "constant"
                                      : "activation");
    cli_json_bool(json, "is_output", v->is_output);
    cli_json_size(json, "bytes", v->bytes);
    put_index(json, "producer", v->producer);
    put_quantization(&v->quantization, json);
    cli_json_end_object(json);
}

static void put_node(const insight_node *n, cli_json *json)
{
    cli_json_begin_object(json, NULL);
    cli_json_text(json, "name", n->name);
    cli_json_text(json, "op", n->op);
    put_indices(json, "inputs", n->inputs, n->input_count);
    put_indices(json, "outputs", n->outputs, n->output_count);
    cli_json_text(json, "computes", insight_compute_names[n->compute]);
    put_index(json, "step", n->step);
    cli_json_text(json, "why_float", n->reason);
    cli_json_text(json, "problem", n->problem);
    cli_json_end_object(json);
}

static void put_step(const insight_step *s, cli_json *json)
{
    cli_json_begin_object(json, NULL);
    cli_json_text(json, "op", s->op);
    cli_json_text(json, "node", s->name);
    cli_json_text(json, "algorithm", s->algorithm);
    cli_json_text(json, "decision", s->decision);
    cli_json_text(json, "computes", insight_compute_names[s->compute]);
    put_indices(json, "nodes", s->nodes, s->node_count);
    cli_json_size(json, "work", s->work);
    cli_json_size(json, "macs", s->macs);
    cli_json_size(json, "bytes", s->bytes);
    cli_json_size(json, "scratch_bytes", s->scratch_bytes);
    cli_json_size(json, "live_bytes", s->live_bytes);
    cli_json_end_object(json);
}

static void put_computes(const size_t computes[INSIGHT_COMPUTES], cli_json *json)
{
    cli_json_begin_object(json, "computes");
    for (size_t c = 0; c < INSIGHT_COMPUTES; c++)
        cli_json_size(json, insight_compute_names[c], computes[c]);
    cli_json_end_object(json);
}

static void put_counts(const insight_model *m, cli_json *json)
{
    put_computes(m->computes, json);
    cli_json_begin_array(json, "operators");
    for (size_t i = 0; i < m->operator_count; i++) {
        cli_json_begin_object(json, NULL);
        cli_json_text(json, "op", m->operators[i].op);
        cli_json_size(json, "nodes", m->operators[i].count);
        put_computes(m->operators[i].computes, json);
        cli_json_end_object(json);
    }
    cli_json_end_array(json);
    cli_json_begin_array(json, "weights");
    for (size_t i = 0; i < m->weight_count; i++) {
        cli_json_begin_object(json, NULL);
        cli_json_text(json, "type", dq_dtype_name(m->weights[i].dtype));
        cli_json_size(json, "tensors", m->weights[i].tensors);
        cli_json_size(json, "elements", m->weights[i].elements);
        cli_json_size(json, "bytes", m->weights[i].bytes);
        cli_json_end_object(json);
    }
    cli_json_end_array(json);
    cli_json_begin_array(json, "problems");
    for (size_t i = 0; i < m->problem_count; i++)
        cli_json_text(json, NULL, m->problems[i]);
    cli_json_end_array(json);
}

static void put_plan(const insight_model *m, cli_json *json)
{
    cli_json_text(json, "not_planned", m->not_planned);
    cli_json_text(json, "isa", m->isa);
    cli_json_begin_object(json, "memory");
    cli_json_size(json, "activation_bytes", m->activation_bytes);
    cli_json_size(json, "packed_bytes", m->packed_bytes);
    cli_json_size(json, "constant_bytes", m->constant_bytes);
    cli_json_size(json, "peak_bytes", m->peak_bytes);
    put_index(json, "peak_step", m->step_count ? m->peak_step : INSIGHT_NONE);
    cli_json_end_object(json);
    cli_json_begin_object(json, "work");
    cli_json_size(json, "total", m->work);
    cli_json_size(json, "integer", m->integer_work);
    cli_json_end_object(json);
    cli_json_begin_array(json, "steps");
    for (size_t i = 0; i < m->step_count; i++)
        put_step(&m->steps[i], json);
    cli_json_end_array(json);
    cli_json_begin_array(json, "lifetimes");
    for (size_t i = 0; i < m->life_count; i++) {
        const insight_life *life = &m->lives[i];
        cli_json_begin_object(json, NULL);
        cli_json_text(json, "value", life->value);
        cli_json_text(json, "memory_of", life->memory_of);
        cli_json_size(json, "offset", life->offset);
        cli_json_size(json, "bytes", life->bytes);
        cli_json_size(json, "first_step", life->first_step);
        cli_json_size(json, "last_step", life->last_step);
        cli_json_end_object(json);
    }
    cli_json_end_array(json);
}

static void put_interface(const insight_model *m, cli_json *json)
{
    cli_json_begin_array(json, "inputs");
    for (size_t i = 0; i < m->value_count; i++)
        if (m->values[i].is_input)
            cli_json_size(json, NULL, i);
    cli_json_end_array(json);
    cli_json_begin_array(json, "outputs");
    for (size_t i = 0; i < m->value_count; i++)
        if (m->values[i].is_output)
            cli_json_size(json, NULL, i);
    cli_json_end_array(json);
}

void insight_model_json(const insight_model *m, cli_json *json)
{
    cli_json_begin_object(json, NULL);
    cli_json_text(json, "model", m->name);
    cli_json_text(json, "producer", m->producer);
    cli_json_int(json, "ir_version", m->ir_version);
    cli_json_text(json, "opsets", m->opsets);
    put_interface(m, json);
    cli_json_size(json, "weight_bytes", m->weight_bytes);
    put_counts(m, json);
    put_plan(m, json);
    cli_json_begin_array(json, "values");
    for (size_t i = 0; i < m->value_count; i++)
        put_value(&m->values[i], json);
    cli_json_end_array(json);
    cli_json_begin_array(json, "nodes");
    for (size_t i = 0; i < m->node_count; i++)
        put_node(&m->nodes[i], json);
    cli_json_end_array(json);
    cli_json_end_object(json);
}
