/* SPDX-License-Identifier: Apache-2.0 */
/* Runs both models on each input, as written and cut at every matched value, and adds up the errors. */
#include "insight/edited.h"

#include "io/common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct observer {
    const insight_request *r;
    insight_comparison *c;
    insight_run reference, quantized, cut, reference_cut;
    const dq_tensor **refs;   /* of the current input, by pair */
    const dq_tensor **floors; /* the same, quantized and dequantized; NULL: not quantized */
    size_t input, label;
    dq_error *err;
} observer;

static const char *edit_name(char buffer[INSIGHT_EDIT_NAME], const char *what, size_t pair)
{
    snprintf(buffer, INSIGHT_EDIT_NAME, "dqrun_%s_%zu", what, pair);
    return buffer;
}

/* ---- Edits --------------------------------------------------------------------------------------------- */

static dq_status add_dequantize(model_edit *edit, const insight_pair *p, const char *codes,
                                const char *output, dq_error *err)
{
    const bool own = p->dequantized_scale != NULL;
    const char *const inputs[4] = {codes, own ? p->dequantized_scale : p->scale,
                                   own ? p->dequantized_zero_point : p->zero_point, NULL};
    return model_edit_add_node(edit, "DequantizeLinear", inputs, output, p->is_edit ? NULL : p->observed,
                               err);
}

static dq_status add_quantize(model_edit *edit, const insight_pair *p, const char *real, const char *output,
                              dq_error *err)
{
    const char *const inputs[4] = {real, p->scale, p->zero_point, NULL};
    return model_edit_add_node(edit, "QuantizeLinear", inputs, output, p->is_qoperator ? NULL : p->codes,
                               err);
}

/* The quantized model with a dequantized form of each quantized value. */
static dq_status open_quantized(observer *o, dq_error *err)
{
    const insight_comparison *c = o->c;
    model_edit *edit = NULL;
    bool is_edited = false;
    dq_status status = DQ_OK;
    for (size_t i = 0; i < c->pair_count; i++)
        is_edited = is_edited || c->pairs[i].is_edit;
    if (is_edited)
        status = model_edit_open(o->r->quantized_bytes, o->r->quantized_size, &edit, err);
    for (size_t i = 0; i < c->pair_count && status == DQ_OK; i++)
        if (c->pairs[i].is_edit)
            status = add_dequantize(edit, &c->pairs[i], c->pairs[i].codes, c->pairs[i].observed, err);
    if (status == DQ_OK)
        status = is_edited
                     ? insight_run_edit(&o->quantized, edit, o->r->quantized, o->r->quantized_dir, o->r, err)
                     : insight_run_model(&o->quantized, o->r->quantized, o->r, err);
    for (size_t i = 0; i < c->pair_count && status == DQ_OK; i++)
        status = insight_run_add_output(&o->quantized, c->pairs[i].observed, err);
    model_edit_close(edit);
    return status;
}

/* Whether the quantized model computes the value: an input has no error of its own but its quantizer's. */
static bool is_computed(const insight_pair *p)
{
    return p->node != NULL;
}

/* Cuts the quantized model at one pair: what reads the value reads an input, the reference, through the
 * quantizer. Without a float model, nodes that can read it unquantized do: nothing tells the noise of their
 * inputs from their own. */
static dq_status cut_pair(model_edit *edit, const insight_pair *p, size_t i, bool has_model, dq_error *err)
{
    char ref[INSIGHT_EDIT_NAME], name[INSIGHT_EDIT_NAME], other[INSIGHT_EDIT_NAME];
    dq_status status = model_edit_add_input(edit, edit_name(ref, "ref", i), DQ_FLOAT, err);
    if (status != DQ_OK)
        return status;
    if (p->is_qoperator) {
        status = model_edit_redirect(edit, p->codes, edit_name(name, "cut", i), err);
        if (status == DQ_OK)
            status = add_quantize(edit, p, ref, name, err);
        if (status == DQ_OK)
            status = add_dequantize(edit, p, name, edit_name(other, "floor", i), err);
        return status == DQ_OK ? add_dequantize(edit, p, p->codes, edit_name(other, "own", i), err) : status;
    }
    status = model_edit_redirect(edit, p->got, ref, err);
    if (status == DQ_OK && !has_model && p->codes && !p->is_edit)
        status = model_edit_redirect(edit, p->observed, ref, err);
    if (status != DQ_OK || !p->codes)
        return status;
    status = add_dequantize(edit, p, p->codes, edit_name(other, "floor", i), err);
    if (status != DQ_OK || !is_computed(p))
        return status;
    status = add_quantize(edit, p, p->got, edit_name(name, "quantized", i), err);
    return status == DQ_OK ? add_dequantize(edit, p, name, edit_name(other, "own", i), err) : status;
}

static dq_status open_cut(observer *o, dq_error *err)
{
    const insight_comparison *c = o->c;
    model_edit *edit = NULL;
    char name[INSIGHT_EDIT_NAME];
    dq_status status = model_edit_open(o->r->quantized_bytes, o->r->quantized_size, &edit, err);
    for (size_t i = 0; i < c->pair_count && status == DQ_OK; i++)
        status = cut_pair(edit, &c->pairs[i], i, o->r->reference != NULL, err);
    if (status == DQ_OK)
        status = insight_run_edit(&o->cut, edit, o->r->quantized, o->r->quantized_dir, o->r, err);
    for (size_t i = 0; i < c->pair_count && status == DQ_OK; i++) {
        const insight_pair *p = &c->pairs[i];
        if (p->codes)
            status = insight_run_add_output(&o->cut, edit_name(name, "floor", i), err);
        if (status == DQ_OK && is_computed(p))
            status = insight_run_add_output(&o->cut, p->codes ? edit_name(name, "own", i) : p->got, err);
    }
    model_edit_close(edit);
    return status;
}

static dq_status open_reference_cut(observer *o, dq_error *err)
{
    const insight_comparison *c = o->c;
    model_edit *edit = NULL;
    char ref[INSIGHT_EDIT_NAME];
    dq_status status = model_edit_open(o->r->reference_bytes, o->r->reference_size, &edit, err);
    for (size_t i = 0; i < c->pair_count && status == DQ_OK; i++) {
        status = model_edit_add_input(edit, edit_name(ref, "ref", i), DQ_FLOAT, err);
        if (status == DQ_OK)
            status = model_edit_redirect(edit, c->pairs[i].name, ref, err);
    }
    if (status == DQ_OK)
        status = insight_run_edit(&o->reference_cut, edit, o->r->reference, o->r->reference_dir, o->r, err);
    for (size_t i = 0; i < c->pair_count && status == DQ_OK; i++)
        if (c->pairs[i].float_node)
            status = insight_run_add_output(&o->reference_cut, c->pairs[i].name, err);
    model_edit_close(edit);
    return status;
}

static dq_status open_reference(observer *o, dq_error *err)
{
    dq_status status = insight_run_model(&o->reference, o->r->reference, o->r, err);
    for (size_t i = 0; i < o->c->pair_count && status == DQ_OK; i++)
        if (o->c->pairs[i].float_node)
            status = insight_run_add_output(&o->reference, o->c->pairs[i].name, err);
    return status;
}

/* Own errors need models that can be cut: where that fails, they are left out with the reason. */
static dq_status skip_own(observer *o, dq_status status, const dq_error *why, dq_error *err)
{
    if (status == DQ_OK)
        return DQ_OK;
    if (status == DQ_OUT_OF_MEMORY || status == DQ_CANCELLED || status == DQ_INTERNAL) {
        if (err)
            *err = *why;
        return status;
    }
    o->c->own_missing = insight_copy(&o->c->pool, why->message);
    return o->c->own_missing ? DQ_OK : io_no_memory(err);
}

static dq_status open_all(observer *o, dq_error *err)
{
    dq_error why = {0};
    dq_status status = o->r->reference ? open_reference(o, err) : DQ_OK;
    if (status == DQ_OK)
        status = open_quantized(o, err);
    if (status != DQ_OK)
        return status;
    status = open_cut(o, &why);
    if (status == DQ_OK && o->r->reference)
        status = open_reference_cut(o, &why);
    return skip_own(o, status, &why, err);
}

/* ---- References ---------------------------------------------------------------------------------------- */

/* The value of an input of the feed, where the pair is one. */
static const dq_tensor *fed(const observer *o, dq_tensor *const *tensors, const char *name)
{
    size_t index = 0;
    const dq_model *model = o->r->reference;
    dq_value_info info = DQ_VALUE_INFO_INIT;
    if (dq_model_find_input(model, name, &index, NULL) != DQ_OK)
        return NULL;
    size_t own = 0;
    if (dq_model_input(model, index, &info, NULL) == DQ_OK &&
        dq_model_find_input(o->r->quantized, info.name, &own, NULL) == DQ_OK)
        index = own;
    return tensors[index];
}

static dq_status get_references(observer *o, dq_tensor *const *tensors, dq_error *err)
{
    dq_status status = DQ_OK;
    if (o->r->reference) {
        status = insight_run_set_feed(&o->reference, o->r, tensors, err);
        if (status == DQ_OK)
            status = dq_session_run(o->reference.session, err);
    }
    for (size_t i = 0; i < o->c->pair_count && status == DQ_OK; i++) {
        const insight_pair *p = &o->c->pairs[i];
        o->refs[i] = NULL;
        if (o->r->reference && !p->float_node)
            o->refs[i] = fed(o, tensors, p->name);
        else if (o->r->reference)
            status = dq_session_get_output(o->reference.session, p->name, &o->refs[i], err);
        for (size_t k = 0; k < o->r->ref_count && !o->r->reference; k++)
            if (!strcmp(o->r->ref_names[k], p->name))
                o->refs[i] = o->r->ref_tensors[k];
    }
    return status;
}

/* ---- Outputs ------------------------------------------------------------------------------------------- */

static size_t top_of(const dq_tensor *t, size_t row, size_t classes)
{
    size_t top = 0;
    double best = (double)-INFINITY;
    for (size_t k = 0; k < classes; k++) {
        const double x = dq_tensor_value(t, row * classes + k);
        if (x > best) {
            best = x;
            top = k;
        }
    }
    return top;
}

static dq_status note_flip(observer *o, insight_output *out, size_t row, dq_error *err)
{
    if (out->flips == out->flip_limit) {
        const size_t limit = out->flip_limit ? 2 * out->flip_limit : 64;
        size_t *grown = insight_alloc(&o->c->pool, limit, sizeof *grown);
        if (!grown)
            return io_no_memory(err);
        if (out->flips)
            memcpy(grown, out->flipped, out->flips * sizeof *grown);
        out->flipped = grown;
        out->flip_limit = limit;
    }
    out->flipped[out->flips++] = row;
    return DQ_OK;
}

static dq_status compare_rows(observer *o, insight_output *out, const dq_tensor *reference,
                              const dq_tensor *got, dq_error *err)
{
    const size_t rank = dq_tensor_rank(got);
    const size_t classes = rank == 2 ? (size_t)dq_tensor_dims(got)[1] : 0;
    if (classes < 2 || dq_tensor_count(reference) != dq_tensor_count(got))
        return DQ_OK;
    dq_status status = DQ_OK;
    const size_t rows = (size_t)dq_tensor_dims(got)[0];
    out->has_classes = true;
    for (size_t i = 0; i < rows && status == DQ_OK; i++) {
        const size_t expected = top_of(reference, i, classes), top = top_of(got, i, classes),
                     row = out->rows++;
        if (expected != top)
            status = note_flip(o, out, row, err);
        if (row >= o->r->label_count)
            continue;
        out->labelled++;
        out->correct += (int64_t)top == o->r->labels[row];
        out->float_correct += (int64_t)expected == o->r->labels[row];
    }
    return status;
}

static const dq_tensor *reference_output(const observer *o, size_t index, const char *name)
{
    const dq_tensor *t = NULL;
    dq_value_info info = DQ_VALUE_INFO_INIT;
    for (size_t k = 0; k < o->r->ref_count && !o->r->reference; k++)
        if (!strcmp(o->r->ref_names[k], name))
            return o->r->ref_tensors[k];
    if (!o->r->reference)
        return NULL;
    if (dq_session_get_output(o->reference.session, name, &t, NULL) == DQ_OK)
        return t;
    return dq_model_output(o->r->reference, index, &info, NULL) == DQ_OK &&
                   dq_session_get_output(o->reference.session, info.name, &t, NULL) == DQ_OK
               ? t
               : NULL;
}

static dq_status compare_outputs(observer *o, dq_error *err)
{
    dq_status status = DQ_OK;
    for (size_t i = 0; i < o->c->output_count && status == DQ_OK; i++) {
        insight_output *out = &o->c->outputs[i];
        const dq_tensor *got = NULL, *reference = reference_output(o, i, out->name);
        status = dq_session_get_output(o->quantized.session, out->name, &got, err);
        if (status != DQ_OK || !reference || dq_tensor_kind(got) != DQ_KIND_TENSOR)
            continue;
        insight_error_add(&out->error, reference, got, o->input);
        status = compare_rows(o, out, reference, got, err);
    }
    return status;
}

/* ---- One input ----------------------------------------------------------------------------------------- */

static dq_status no_such_shape(const observer *o, const insight_pair *p, const dq_tensor *got, dq_error *err)
{
    return io_fail(
        err, DQ_BAD_MODEL,
        "value '%s' has %zu elements in the quantized model, expected the %zu of '%s' in the float one "
        "(input %zu); match another value with --map",
        p->observed, dq_tensor_count(got), dq_tensor_count(o->refs[p - o->c->pairs]), p->name, o->input);
}

static dq_status observe_quantized(observer *o, dq_tensor *const *tensors, dq_error *err)
{
    dq_status status = insight_run_set_feed(&o->quantized, o->r, tensors, err);
    if (status == DQ_OK)
        status = dq_session_run(o->quantized.session, err);
    for (size_t i = 0; i < o->c->pair_count && status == DQ_OK; i++) {
        insight_pair *p = &o->c->pairs[i];
        const dq_tensor *got = NULL;
        status = dq_session_get_output(o->quantized.session, p->observed, &got, err);
        if (status != DQ_OK || !o->refs[i])
            continue;
        if (!insight_error_add(&p->so_far, o->refs[i], got, o->input))
            return no_such_shape(o, p, got, err);
        if (p->has_range)
            insight_range_add(&p->range, o->refs[i]);
    }
    return status == DQ_OK ? compare_outputs(o, err) : status;
}

static dq_status run_cut(observer *o, insight_run *run, dq_tensor *const *tensors, bool quantized,
                         dq_error *err)
{
    char name[INSIGHT_EDIT_NAME];
    dq_status status = insight_run_set_feed(run, o->r, tensors, err);
    for (size_t i = 0; i < o->c->pair_count && status == DQ_OK; i++) {
        const dq_tensor *value = quantized && o->floors[i] ? o->floors[i] : o->refs[i];
        if (value)
            status = dq_session_set_input(run->session, edit_name(name, "ref", i), value, err);
    }
    return status == DQ_OK ? dq_session_run(run->session, err) : status;
}

static dq_status observe_cut(observer *o, dq_tensor *const *tensors, dq_error *err)
{
    char name[INSIGHT_EDIT_NAME];
    memset(o->floors, 0, o->c->pair_count * sizeof *o->floors);
    dq_status status = run_cut(o, &o->cut, tensors, false, err);
    for (size_t i = 0; i < o->c->pair_count && status == DQ_OK; i++)
        if (o->c->pairs[i].codes)
            status = dq_session_get_output(o->cut.session, edit_name(name, "floor", i), &o->floors[i], err);
    if (status == DQ_OK && o->r->reference)
        status = run_cut(o, &o->reference_cut, tensors, true, err);
    for (size_t i = 0; i < o->c->pair_count && status == DQ_OK; i++) {
        insight_pair *p = &o->c->pairs[i];
        const dq_tensor *own = NULL, *expected = o->refs[i];
        if (!o->refs[i])
            continue;
        p->has_floor = o->floors[i] && insight_error_add(&p->floor, o->refs[i], o->floors[i], o->input);
        if (!is_computed(p)) {
            p->own = p->floor;
            p->has_own = p->has_floor;
            continue;
        }
        status =
            dq_session_get_output(o->cut.session, p->codes ? edit_name(name, "own", i) : p->got, &own, err);
        if (status == DQ_OK && o->r->reference && p->float_node)
            status = dq_session_get_output(o->reference_cut.session, p->name, &expected, err);
        p->has_own = status == DQ_OK && insight_error_add(&p->own, expected, own, o->input);
    }
    return status;
}

static dq_status observe_input(observer *o, dq_error *err)
{
    dq_tensor *const *tensors = NULL;
    dq_error why = {0};
    const insight_feed *feed = &o->r->feed;
    if (feed->progress && feed->progress(feed->arg, "compare", (double)o->input / (double)feed->count))
        return io_fail(err, DQ_CANCELLED, "cancelled");
    dq_status status = feed->read(feed->arg, o->input, &tensors, err);
    if (status == DQ_OK)
        status = get_references(o, tensors, err);
    if (status == DQ_OK)
        status = observe_quantized(o, tensors, err);
    if (status != DQ_OK || o->c->own_missing)
        return status;
    return skip_own(o, observe_cut(o, tensors, &why), &why, err);
}

/* ---- All of it ----------------------------------------------------------------------------------------- */

static dq_status start_ranges(insight_comparison *c, dq_error *err)
{
    for (size_t i = 0; i < c->pair_count; i++) {
        insight_pair *p = &c->pairs[i];
        if (!p->codes || dq_tensor_count(p->scale_data) != 1)
            continue;
        const double scale = dq_tensor_value(p->scale_data, 0);
        const double zero_point = p->zero_point_data ? dq_tensor_value(p->zero_point_data, 0) : 0;
        const dq_status status = insight_range_start(&p->range, p->dtype, scale, zero_point, &c->pool, err);
        if (status != DQ_OK && status != DQ_UNSUPPORTED)
            return status;
        p->has_range = status == DQ_OK && scale > 0;
    }
    return DQ_OK;
}

static dq_status start_outputs(observer *o, dq_error *err)
{
    insight_comparison *c = o->c;
    dq_status status = DQ_OK;
    c->output_count = dq_model_output_count(o->r->quantized);
    c->outputs = insight_alloc(&c->pool, c->output_count, sizeof *c->outputs);
    o->refs = insight_alloc(&c->pool, c->pair_count, sizeof *o->refs);
    o->floors = insight_alloc(&c->pool, c->pair_count, sizeof *o->floors);
    if (!c->outputs || !o->refs || !o->floors)
        return io_no_memory(err);
    for (size_t i = 0; i < c->output_count && status == DQ_OK; i++) {
        dq_value_info info = DQ_VALUE_INFO_INIT;
        status = dq_model_output(o->r->quantized, i, &info, err);
        c->outputs[i].name = info.name;
    }
    c->has_labels = o->r->labels != NULL;
    return status;
}

dq_status insight_observe(const insight_request *r, insight_comparison *c, dq_error *err)
{
    observer o = {.r = r, .c = c, .err = err};
    dq_status status = start_ranges(c, err);
    if (status == DQ_OK)
        status = start_outputs(&o, err);
    if (status == DQ_OK)
        status = open_all(&o, err);
    for (; o.input < r->feed.count && status == DQ_OK; o.input++)
        status = observe_input(&o, err);
    c->input_count = o.input;
    insight_run_close(&o.cut);
    insight_run_close(&o.reference_cut);
    insight_run_close(&o.quantized);
    insight_run_close(&o.reference);
    return status;
}
