/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves out one quantizer at a time, and ranks them by what the outputs gain.
 *
 * One model serves all runs: each quantizer's result goes through Where(switch, float value, quantized
 * value), and the switches are inputs. With many quantizers, groups are left out first; a group without a
 * gain is not looked into. */
#include "insight/edited.h"
#include "insight/float_forms.h"

#include "io/common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A group whose noise goes down by less than this part is not split. */
static const double LEAST_GAIN = 0.02;
/* Up to so many quantizers, each is measured by itself. */
enum { MOST_SINGLY = 32 };

/* A quantizer that can be left out, with those that share its scale: they quantize the same values again, as
 * after a Reshape, and one of them alone would hide what the others cost. */
typedef struct element {
    insight_pair *pair; /* the first of them; or: */
    insight_weight *weight;
    dq_tensor *on;
} element;

typedef struct experiment {
    const insight_request *r;
    insight_comparison *c;
    insight_run run;
    element *elements;
    size_t count;
    const char **outputs;   /* names in the edited model */
    dq_tensor **references; /* by input and output */
    double base_noise;      /* of all outputs, relative to each output's signal */
    size_t at;              /* the first element of the group at work, for the progress */
} experiment;

static const char *edit_name(char buffer[INSIGHT_EDIT_NAME], const char *what, size_t i)
{
    snprintf(buffer, INSIGHT_EDIT_NAME, "dqrun_%s_%zu", what, i);
    return buffer;
}

/* ---- The model ----------------------------------------------------------------------------------------- */

/* `quantized` becomes, for its readers and as an output, Where(switch, real, quantized). */
static dq_status add_switch(experiment *x, model_edit *edit, size_t i, const char *real,
                            const char *quantized, size_t serial, dq_error *err)
{
    char on[INSIGHT_EDIT_NAME], name[INSIGHT_EDIT_NAME];
    const char *const inputs[4] = {edit_name(on, "switch", i), real, quantized, NULL};
    edit_name(name, "chosen", serial);
    dq_status status = model_edit_redirect(edit, quantized, name, err);
    if (status == DQ_OK)
        status = model_edit_add_node(edit, "Where", inputs, name, NULL, err);
    for (size_t k = 0; k < x->c->output_count && status == DQ_OK; k++) {
        if (strcmp(x->c->outputs[k].name, quantized) != 0)
            continue;
        x->outputs[k] = insight_copy(&x->c->pool, name);
        status = x->outputs[k] ? DQ_OK : io_no_memory(err);
    }
    return status;
}

/* All DequantizeLinear nodes of the quantized value. */
static dq_status switch_pair(experiment *x, model_edit *edit, size_t i, const insight_pair *p, size_t *serial,
                             dq_error *err)
{
    const insight_model *m = &x->c->quantized;
    size_t count = 0;
    const dq_node *const *readers = NULL;
    const char *real = NULL;
    dq_status status = insight_unfold(x->c, edit, p, p->got, &real, err);
    if (status == DQ_OK)
        status = dq_value_consumers(m->model, m->values[insight_value_named(m, p->codes)].value, &count,
                                    &readers, err);
    for (size_t k = 0; k < count && status == DQ_OK; k++) {
        const size_t node = insight_find_node(m, readers[k]);
        if (node != INSIGHT_NONE && !strcmp(m->nodes[node].op_type, "DequantizeLinear"))
            status =
                add_switch(x, edit, i, real, m->values[m->nodes[node].outputs[0]].name, (*serial)++, err);
    }
    return status;
}

static bool can_leave_out(const insight_pair *p)
{
    return p->codes;
}

static bool shares_scale(const insight_pair *a, const insight_pair *b)
{
    return can_leave_out(a) && can_leave_out(b) && !strcmp(a->scale, b->scale);
}

static dq_status switch_pairs(experiment *x, model_edit *edit, size_t i, size_t *serial, dq_error *err)
{
    dq_status status = DQ_OK;
    for (size_t k = 0; k < x->c->pair_count && status == DQ_OK; k++)
        if (shares_scale(x->elements[i].pair, &x->c->pairs[k]) && !insight_needs_float_form(&x->c->pairs[k]))
            status = switch_pair(x, edit, i, &x->c->pairs[k], serial, err);
    return status;
}

static const dq_tensor *float_data(const experiment *x, const insight_weight *w)
{
    return insight_constant_named(&x->c->reference, w->float_name);
}

static dq_status switch_weight(experiment *x, model_edit *edit, size_t i, size_t *serial, dq_error *err)
{
    if (!x->elements[i].weight->dequantized)
        return DQ_OK; /* add_float_forms does it */
    char name[INSIGHT_EDIT_NAME];
    const insight_weight *w = x->elements[i].weight;
    dq_status status = model_edit_add_initializer(edit, edit_name(name, "weight", i), float_data(x, w), err);
    return status == DQ_OK ? add_switch(x, edit, i, name, w->dequantized, (*serial)++, err) : status;
}

static dq_status list_elements(experiment *x, dq_error *err)
{
    insight_comparison *c = x->c;
    x->elements = insight_alloc(&c->pool, c->pair_count + c->weight_count, sizeof *x->elements);
    x->outputs = insight_alloc(&c->pool, c->output_count, sizeof *x->outputs);
    x->references = insight_alloc(&c->pool, c->output_count * x->r->feed.count, sizeof *x->references);
    if (!x->elements || !x->outputs || !x->references)
        return io_no_memory(err);
    for (size_t k = 0; k < c->output_count; k++)
        x->outputs[k] = c->outputs[k].name;
    for (size_t i = 0; i < c->pair_count; i++) {
        c->pairs[i].gain_db = (double)NAN;
        bool is_new = can_leave_out(&c->pairs[i]);
        for (size_t k = 0; k < x->count && is_new; k++)
            is_new = !shares_scale(x->elements[k].pair, &c->pairs[i]);
        if (is_new)
            x->elements[x->count++].pair = &c->pairs[i];
    }
    for (size_t i = 0; i < c->weight_count; i++) {
        insight_weight *w = &c->weights[i];
        const dq_tensor *data = float_data(x, w);
        w->gain_db = (double)NAN;
        if (data && dq_tensor_dtype(data) == DQ_FLOAT)
            x->elements[x->count++].weight = w;
    }
    dq_status status = DQ_OK;
    for (size_t i = 0; i < x->count && status == DQ_OK; i++)
        status = dq_tensor_create(DQ_BOOL, 0, NULL, &x->elements[i].on, err);
    return status;
}

/* Switches of operators that compute quantized values. */
static dq_status add_float_forms(experiment *x, model_edit *edit, dq_error *err)
{
    insight_comparison *c = x->c;
    char name[INSIGHT_EDIT_NAME];
    insight_switches switches = {.outputs = x->outputs};
    switches.pairs = insight_alloc(&c->pool, c->pair_count, sizeof *switches.pairs);
    switches.weights = insight_alloc(&c->pool, c->weight_count, sizeof *switches.weights);
    if (!switches.pairs || !switches.weights)
        return io_no_memory(err);
    bool any = false;
    for (size_t i = 0; i < x->count; i++) {
        const char *on = insight_copy(&c->pool, edit_name(name, "switch", i));
        if (!on)
            return io_no_memory(err);
        for (size_t k = 0; k < c->pair_count && x->elements[i].pair; k++) {
            if (!insight_needs_float_form(&c->pairs[k]) || !shares_scale(x->elements[i].pair, &c->pairs[k]))
                continue;
            switches.pairs[k] = on;
            any = true;
        }
        if (x->elements[i].weight && !x->elements[i].weight->dequantized)
            switches.weights[x->elements[i].weight - c->weights] = on;
    }
    return any ? insight_add_float_forms(c, edit, &switches, err) : DQ_OK;
}

static dq_status open_switched(experiment *x, dq_error *err)
{
    char name[INSIGHT_EDIT_NAME];
    model_edit *edit = NULL;
    size_t serial = 0;
    dq_status status = model_edit_open(x->r->quantized_bytes, x->r->quantized_size, &edit, err);
    for (size_t i = 0; i < x->count && status == DQ_OK; i++) {
        status = model_edit_add_input(edit, edit_name(name, "switch", i), DQ_BOOL, err);
        if (status == DQ_OK)
            status = x->elements[i].pair ? switch_pairs(x, edit, i, &serial, err)
                                         : switch_weight(x, edit, i, &serial, err);
    }
    if (status == DQ_OK)
        status = add_float_forms(x, edit, err);
    if (status == DQ_OK)
        status = insight_run_edit(&x->run, edit, x->r->quantized, x->r->quantized_dir, x->r, err);
    for (size_t k = 0; k < x->c->output_count && status == DQ_OK; k++)
        status = insight_run_add_output(&x->run, x->outputs[k], err);
    for (size_t i = 0; i < x->count && status == DQ_OK; i++)
        status = dq_session_set_input(x->run.session, edit_name(name, "switch", i), x->elements[i].on, err);
    model_edit_close(edit);
    return status;
}

/* ---- References ---------------------------------------------------------------------------------------- */

static dq_status copy_tensor(const dq_tensor *from, dq_tensor **to, dq_error *err)
{
    dq_status status =
        dq_tensor_create(dq_tensor_dtype(from), dq_tensor_rank(from), dq_tensor_dims(from), to, err);
    if (status == DQ_OK && dq_tensor_size(from))
        memcpy(dq_tensor_mutable_data(*to), dq_tensor_data(from), dq_tensor_size(from));
    return status;
}

/* The float model's output of that name, else of that number. */
static dq_status get_reference(const experiment *x, dq_session *session, size_t k, const dq_tensor **out,
                               dq_error *err)
{
    dq_value_info info = DQ_VALUE_INFO_INIT;
    if (dq_session_get_output(session, x->c->outputs[k].name, out, NULL) == DQ_OK)
        return DQ_OK;
    dq_status status = dq_model_output(x->r->reference, k, &info, err);
    return status == DQ_OK ? dq_session_get_output(session, info.name, out, err) : status;
}

static dq_status run_reference(experiment *x, dq_error *err)
{
    insight_run run = {0};
    dq_status status = insight_run_model(&run, x->r->reference, x->r, err);
    for (size_t i = 0; i < x->r->feed.count && status == DQ_OK; i++) {
        dq_tensor *const *tensors = NULL;
        status = x->r->feed.read(x->r->feed.arg, i, &tensors, err);
        if (status == DQ_OK)
            status = insight_run_set_feed(&run, x->r, tensors, err);
        if (status == DQ_OK)
            status = dq_session_run(run.session, err);
        for (size_t k = 0; k < x->c->output_count && status == DQ_OK; k++) {
            const dq_tensor *t = NULL;
            status = get_reference(x, run.session, k, &t, err);
            if (status == DQ_OK && dq_tensor_kind(t) == DQ_KIND_TENSOR && dq_tensor_dtype(t) != DQ_STRING)
                status = copy_tensor(t, &x->references[i * x->c->output_count + k], err);
        }
    }
    insight_run_close(&run);
    return status;
}

/* ---- Measuring ----------------------------------------------------------------------------------------- */

static void turn(experiment *x, size_t from, size_t to, bool on)
{
    for (size_t i = from; i < to; i++)
        *(bool *)dq_tensor_mutable_data(x->elements[i].on) = on;
}

/* Noise over signal, summed over the outputs, with the switches as they are. */
static dq_status measure(experiment *x, double *ratio, dq_error *err)
{
    dq_status status = DQ_OK;
    insight_error *errors = calloc(x->c->output_count + 1, sizeof *errors);
    if (!errors)
        return io_no_memory(err);
    x->c->runs++;
    for (size_t i = 0; i < x->r->feed.count && status == DQ_OK; i++) {
        dq_tensor *const *tensors = NULL;
        const double inputs = (double)i / (double)x->r->feed.count;
        if (x->r->feed.progress && x->r->feed.progress(x->r->feed.arg, "leave one out",
                                                       ((double)x->at + inputs) / ((double)x->count + 1)))
            status = io_fail(err, DQ_CANCELLED, "cancelled");
        if (status == DQ_OK)
            status = x->r->feed.read(x->r->feed.arg, i, &tensors, err);
        if (status == DQ_OK)
            status = insight_run_set_feed(&x->run, x->r, tensors, err);
        if (status == DQ_OK)
            status = dq_session_run(x->run.session, err);
        for (size_t k = 0; k < x->c->output_count && status == DQ_OK; k++) {
            const dq_tensor *got = NULL, *reference = x->references[i * x->c->output_count + k];
            status = dq_session_get_output(x->run.session, x->outputs[k], &got, err);
            if (status == DQ_OK && reference)
                insight_error_add(&errors[k], reference, got, i);
        }
    }
    *ratio = 0;
    for (size_t k = 0; k < x->c->output_count; k++)
        *ratio += insight_noise_ratio(&errors[k]);
    free(errors);
    return status;
}

static dq_status measure_group(experiment *x, size_t from, size_t to, dq_error *err)
{
    double ratio = 0;
    x->at = from;
    turn(x, from, to, true);
    dq_status status = measure(x, &ratio, err);
    turn(x, from, to, false);
    if (status != DQ_OK)
        return status;
    if (to - from == 1) {
        const double gain = ratio > 0 ? 10 * log10(x->base_noise / ratio) : (double)INFINITY;
        for (size_t i = 0; x->elements[from].pair && i < x->c->pair_count; i++)
            if (shares_scale(x->elements[from].pair, &x->c->pairs[i]))
                x->c->pairs[i].gain_db = gain;
        if (x->elements[from].weight)
            x->elements[from].weight->gain_db = gain;
        return DQ_OK;
    }
    if (x->base_noise - ratio < LEAST_GAIN * x->base_noise)
        return DQ_OK;
    const size_t middle = from + (to - from) / 2;
    status = measure_group(x, from, middle, err);
    return status == DQ_OK ? measure_group(x, middle, to, err) : status;
}

static dq_status measure_all(experiment *x, dq_error *err)
{
    dq_status status = measure(x, &x->base_noise, err);
    if (status != DQ_OK || !(x->base_noise > 0))
        return status;
    if (x->count > MOST_SINGLY)
        return measure_group(x, 0, x->count, err);
    for (size_t i = 0; i < x->count && status == DQ_OK; i++)
        status = measure_group(x, i, i + 1, err);
    return status;
}

dq_status insight_leave_one_out(const insight_request *r, insight_comparison *c, dq_error *err)
{
    experiment x = {.r = r, .c = c};
    if (!r->reference) {
        c->leave_one_out_missing = "it needs --float: reference values alone cannot stand in for a quantizer";
        return DQ_OK;
    }
    dq_status status = list_elements(&x, err);
    if (status == DQ_OK && !x.count) {
        c->leave_one_out_missing =
            "no quantizer of this model has constant parameters and a match in the float model";
        return DQ_OK;
    }
    if (status == DQ_OK)
        status = run_reference(&x, err);
    if (status == DQ_OK)
        status = open_switched(&x, err);
    if (status == DQ_OK)
        status = measure_all(&x, err);
    c->has_leave_one_out = status == DQ_OK;
    for (size_t i = 0; i < x.count; i++)
        dq_tensor_free(x.elements[i].on);
    for (size_t i = 0; x.references && i < c->output_count * r->feed.count; i++)
        dq_tensor_free(x.references[i]);
    insight_run_close(&x.run);
    return status;
}
