/* SPDX-License-Identifier: Apache-2.0 */
/* The text of dqrun inspect. */
#include "cli/inspect.h"
#include "cli/terminal.h"
#include "io/text.h"

#include <inttypes.h>
#include <string.h>

enum { TEXT = 512, MOST_OPERATORS = 12, MOST_REASONS = 6, MOST_VALUES = 6, BARS = 8 };

const char *cli_bytes_text(uint64_t bytes, char buffer[32])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double size = (double)bytes;
    size_t unit = 0;
    for (; size >= 1024 && unit < 4; unit++)
        size /= 1024;
    snprintf(buffer, 32, unit ? "%.1f %s" : "%.0f %s", size, bytes == 1 ? "byte" : units[unit]);
    return buffer;
}

static void title(const char *text)
{
    printf("\n%s%s%s\n", cli_style_on(stdout, CLI_STYLE_TITLE), text, cli_style_off(stdout));
}

/* A name of a file, fit for a terminal. */
static const char *name_of(const char *name, char buffer[TEXT])
{
    snprintf(buffer, TEXT, "%s", name);
    return io_printable(buffer);
}

static const char *scale_text(const insight_quantization *q, char buffer[TEXT])
{
    char granularity[100];
    int used = snprintf(buffer, TEXT, "%s", insight_granularity_text(q, granularity, sizeof granularity));
    if (!q->has_scale)
        used += snprintf(buffer + used, TEXT - (size_t)used, ", scale by data");
    else if (q->scale_min == q->scale_max)
        used += snprintf(buffer + used, TEXT - (size_t)used, ", scale %.6g", q->scale_min);
    else
        used +=
            snprintf(buffer + used, TEXT - (size_t)used, ", scales %.4g … %.4g", q->scale_min, q->scale_max);
    if (q->has_zero_point && q->zero_point_min == q->zero_point_max)
        snprintf(buffer + used, TEXT - (size_t)used, ", zero point %g", q->zero_point_min);
    else if (q->has_zero_point)
        snprintf(buffer + used, TEXT - (size_t)used, ", zero points %g … %g", q->zero_point_min,
                 q->zero_point_max);
    return buffer;
}

/* ---- Summary ------------------------------------------------------------------------------------------- */

static void print_values(const insight_model *m, const char *label, bool inputs)
{
    char name[TEXT], shape[TEXT];
    size_t count = 0;
    for (size_t i = 0; i < m->value_count; i++) {
        const insight_value *v = &m->values[i];
        if (inputs ? !v->is_input : !v->is_output)
            continue;
        if (count++ < MOST_VALUES)
            printf("%-12s %s: %s%s\n", count == 1 ? label : "", name_of(v->name, name), v->type,
                   insight_shape_text(v, shape, sizeof shape));
    }
    if (count > MOST_VALUES)
        printf("%-12s … %zu more\n", "", count - MOST_VALUES);
}

static void print_weights(const insight_model *m)
{
    char bytes[32];
    printf("%-12s %s", "weights", cli_bytes_text(m->weight_bytes, bytes));
    for (size_t i = 0; i < m->weight_count; i++)
        printf("%s%s %s in %zu tensor%s", i ? ", " : ": ", dq_dtype_name(m->weights[i].dtype),
               cli_bytes_text(m->weights[i].bytes, bytes), m->weights[i].tensors,
               m->weights[i].tensors == 1 ? "" : "s");
    printf("\n");
}

static void print_computes(const insight_model *m)
{
    const char *separator = "";
    printf("%-12s %zu: ", "nodes", m->node_count);
    for (size_t c = INSIGHT_COMPUTES; c-- > 0;) {
        static const insight_compute order[] = {INSIGHT_INTEGER,  INSIGHT_TILED, INSIGHT_WEIGHT_ONLY,
                                                INSIGHT_CONVERT,  INSIGHT_FLOAT, INSIGHT_OTHER,
                                                INSIGHT_PLANNING, INSIGHT_UNUSED};
        const insight_compute which = order[INSIGHT_COMPUTES - 1 - c];
        if (!m->computes[which])
            continue;
        printf("%s%zu %s", separator, m->computes[which], insight_compute_names[which]);
        separator = ", ";
    }
    printf("\n");
    if (m->work)
        printf("%-12s %.4g M operations in %zu step%s, %.1f %% on integers\n", "work", (double)m->work * 1e-6,
               m->step_count, m->step_count == 1 ? "" : "s", 100 * (double)m->integer_work / (double)m->work);
}

/* Live bytes over the steps, as a row of bars. */
static void print_memory(const insight_model *m)
{
    static const char *const bars[BARS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    enum { COLUMNS = 60 };
    char activations[32], packed[32], peak[32];
    printf("%-12s %s for activations, %s for packed weights\n", "memory",
           cli_bytes_text(m->activation_bytes, activations), cli_bytes_text(m->packed_bytes, packed));
    if (!m->peak_bytes)
        return;
    const size_t columns = m->step_count < COLUMNS ? m->step_count : COLUMNS;
    printf("%-12s ", "");
    for (size_t c = 0; c < columns; c++) {
        uint64_t most = 0;
        for (size_t s = c * m->step_count / columns; s < (c + 1) * m->step_count / columns; s++)
            most = m->steps[s].live_bytes > most ? m->steps[s].live_bytes : most;
        fputs(bars[most * (BARS - 1) / m->peak_bytes], stdout);
    }
    char name[TEXT];
    printf("  peak %s at step %zu, %s\n", cli_bytes_text(m->peak_bytes, peak), m->peak_step,
           name_of(m->steps[m->peak_step].name, name));
}

static void print_operators(const insight_model *m)
{
    title("operators");
    for (size_t i = 0; i < m->operator_count && i < MOST_OPERATORS; i++) {
        const insight_operator *o = &m->operators[i];
        printf("%6zu  %-36s", o->count, o->op);
        const char *separator = "";
        for (size_t c = 0; c < INSIGHT_COMPUTES; c++) {
            if (!o->computes[c])
                continue;
            printf("%s%zu %s", separator, o->computes[c], insight_compute_names[c]);
            separator = ", ";
        }
        printf("\n");
    }
    if (m->operator_count > MOST_OPERATORS)
        printf("        … %zu more\n", m->operator_count - MOST_OPERATORS);
}

/* The reasons for floats, each with the number of its nodes. */
static void print_reasons(const insight_model *m)
{
    size_t shown = 0;
    if (!m->computes[INSIGHT_FLOAT] || m->not_planned)
        return;
    title("why float");
    for (size_t i = 0; i < m->node_count && shown < MOST_REASONS; i++) {
        size_t before = 0, count = 0;
        if (!m->nodes[i].reason)
            continue;
        for (size_t k = 0; k < m->node_count; k++) {
            const bool same = m->nodes[k].reason && !strcmp(m->nodes[k].reason, m->nodes[i].reason);
            before += same && k < i;
            count += same;
        }
        if (before)
            continue;
        printf("%6zu  %s\n", count, m->nodes[i].reason);
        shown++;
    }
}

static void print_problems(const insight_model *m)
{
    if (!m->problem_count)
        return;
    title("what cannot run");
    for (size_t i = 0; i < m->problem_count; i++) {
        char line[1024];
        snprintf(line, sizeof line, "%s", m->problems[i]);
        printf("%s%s%s\n", cli_style_on(stdout, CLI_STYLE_BAD), io_printable(line), cli_style_off(stdout));
    }
}

/* ---- Nodes --------------------------------------------------------------------------------------------- */

static cli_style style_of(insight_compute compute)
{
    return compute == INSIGHT_INTEGER || compute == INSIGHT_TILED ? CLI_STYLE_GOOD
           : compute == INSIGHT_FLOAT                             ? CLI_STYLE_BAD
                                                                  : CLI_STYLE_WARNING;
}

static void print_value(const insight_value *v, const char *label)
{
    char name[TEXT], shape[TEXT], scale[TEXT];
    printf("        %-7s %s: %s%s", label, name_of(v->name, name), v->type,
           insight_shape_text(v, shape, sizeof shape));
    if (v->quantization.quantized)
        printf(", %s", scale_text(&v->quantization, scale));
    printf("\n");
}

static void print_node(const insight_model *m, size_t index)
{
    char name[TEXT];
    const insight_node *n = &m->nodes[index];
    const bool coloured =
        n->compute == INSIGHT_INTEGER || n->compute == INSIGHT_TILED || n->compute == INSIGHT_FLOAT;
    printf("%4zu  %s  %s  %s%s%s", index, n->op, name_of(n->name, name),
           coloured ? cli_style_on(stdout, style_of(n->compute)) : "", insight_compute_names[n->compute],
           coloured ? cli_style_off(stdout) : "");
    if (n->step != INSIGHT_NONE) {
        const insight_step *s = &m->steps[n->step];
        printf("  step %zu %s%s%s", n->step, s->op, s->algorithm ? " " : "",
               s->algorithm ? s->algorithm : "");
    }
    printf("\n");
    if (n->reason)
        printf("        float   %s\n", n->reason);
    for (size_t k = 0; k < n->input_count; k++)
        if (n->inputs[k] != INSIGHT_NONE && m->values[n->inputs[k]].is_initializer &&
            m->values[n->inputs[k]].quantization.quantized)
            print_value(&m->values[n->inputs[k]], "weight");
    for (size_t k = 0; k < n->output_count; k++)
        if (n->outputs[k] != INSIGHT_NONE)
            print_value(&m->values[n->outputs[k]], "result");
}

void cli_inspect_table(const insight_model *m)
{
    char text[TEXT];
    printf("%-12s %s\n", "model", name_of(m->name, text));
    printf("%-12s %s\n", "made by", name_of(*m->producer ? m->producer : "unknown", text));
    printf("%-12s %s; IR version %" PRId64 "\n", "opsets", name_of(m->opsets, text), m->ir_version);
    print_values(m, "inputs", true);
    print_values(m, "outputs", false);
    print_weights(m);
    print_computes(m);
    if (m->not_planned)
        printf("%-12s none: %s\n", "plan", name_of(m->not_planned, text));
    else
        print_memory(m);
    print_operators(m);
    print_reasons(m);
    print_problems(m);
    title("nodes");
    for (size_t i = 0; i < m->node_count; i++)
        print_node(m, i);
}
