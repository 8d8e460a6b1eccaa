/* SPDX-License-Identifier: Apache-2.0 */
/* What a model holds and how it is computed: the sections of dqrun inspect. */

const COMPUTES = { convert: "convert", integer: "integer", "tiled float": "tiled", "weight-only": "weight-only", float: "float", other: "other", planning: "planning", unused: "unused" };
const computeColour = (name) => `var(--${COMPUTES[name] || "other"})`;
const computeChip = (name) => el("span", { class: "chip", style: `--chip:${computeColour(name)}` }, name);
const COMPUTE_TEXTS = {
  integer: "on quantized values", "tiled float": "in float on tiles that are dequantized and quantized on the way", "weight-only": "float activations, quantized weights",
  float: "in float", convert: "QuantizeLinear or DequantizeLinear alone", other: "shapes, indices, masks", planning: "once, while planning", unused: "not needed" };

function integerShare() {
  return inspect.work && num(inspect.work.total) ? num(inspect.work.integer) / num(inspect.work.total) : NaN;
}

function inspectSummary() {
  const floats = inspect.computes.float, list = [
    ["Nodes", String(inspect.nodes_total || inspect.nodes.length), `in ${count(inspect.steps.length, "step")} of a run`],
    isNumber(integerShare()) && ["Work on integers", percent(integerShare()), `${metric(inspect.work.total, "")} multiply-adds and elements`, integerShare() > 0.9 ? "good" : integerShare() > 0.5 ? "warn" : "bad"],
    ["Nodes in float", String(floats), floats ? "reasons: table of nodes" : "none", floats ? "warn" : "good"],
    ["Weights", bytes(inspect.weight_bytes), inspect.weights.slice(0, 2).map((w) => `${w.type} ${bytes(w.bytes)}`).join(", ")],
    ["Memory for activations", bytes(inspect.memory.activation_bytes), `packed weights ${bytes(inspect.memory.packed_bytes)}`],
    inspect.problems.length ? ["Cannot run", count(inspect.problems.length, "node"), "", "bad"] : bench ? null : ["Instruction set", inspect.isa || NOTHING, "of this machine’s plan", "text"]];
  return keyFigures(list);
}

const interfaceCard = () => card(facts([
  ["inputs", inspect.inputs.map((i, k) => [k ? el("br") : "", `${inspect.values[i] ? inspect.values[i].name : i}: ${inspect.values[i] ? inspect.values[i].type + shapeText(inspect.values[i]) : ""}`])],
  ["outputs", inspect.outputs.map((i, k) => [k ? el("br") : "", `${inspect.values[i] ? inspect.values[i].name : i}: ${inspect.values[i] ? inspect.values[i].type + shapeText(inspect.values[i]) : ""}`])],
  ["made by", inspect.producer], ["operator sets", `${inspect.opsets}; IR version ${inspect.ir_version}`],
  ["weights", inspect.weights.map((w) => `${w.type} ${bytes(w.bytes)} in ${count(w.tensors, "tensor")}`).join(", ")], ["not planned", inspect.not_planned]]),
inspect.problems.length ? el("ul", { class: "bad" }, inspect.problems.map((text) => el("li", {}, text))) : null);

function operatorPart() {
  if (!inspect.operators.length)
    return null;
  const kinds = Object.keys(COMPUTES).filter((kind) => inspect.operators.some((o) => o.computes[kind]));
  const rows = inspect.operators.slice(0, 30).map((o) => ({ name: o.op, label: String(o.nodes), parts: kinds.map((kind) => [o.computes[kind], computeColour(kind)]),
    text: `${o.op}: ${count(o.nodes, "node")}\n${kinds.filter((kind) => o.computes[kind]).map((kind) => `${kind} ${o.computes[kind]}`).join(", ")}` }));
  return part("operators", "Operators", "How many nodes there are of each operator, and how they are computed.",
    card(figure({ name: "operators", label: `Nodes by operator: ${rows.slice(0, 5).map((r) => `${r.name} ${r.label}`).join(", ")}`, legend: kinds.map((kind) => [computeColour(kind), kind === COMPUTE_TEXTS[kind] ? kind : `${kind}: ${COMPUTE_TEXTS[kind]}`]),
      draw: (width) => barPlot(rows, width) })));
}

/* ---- Memory ------------------------------------------------------------------------------------------------- */

const stepName = (i) => (inspect.steps[i] ? inspect.steps[i].node : i >= inspect.steps.length ? "the end of the run" : String(i));

function memoryPlot(width) {
  const steps = inspect.steps, f = frame(width, 200, { left: 76, bottom: 38, right: 16 });
  const high = largest(steps.map((s) => num(s.live_bytes)), 1), x = linear(0, steps.length, f.left, f.right), y = linear(0, high * 1.06, f.bottom, f.top);
  yAxis(f, y, bytes, byteTicks(0, high, 6), null);
  const marks = steps.map((s, i) => {
    const group = svg("g", {}, svg("rect", { x: x(i), y: f.top, width: x(i + 1) - x(i), height: f.bottom - f.top, fill: "transparent" }),
      svg("rect", { x: x(i), y: y(num(s.live_bytes)), width: Math.max(0.6, x(i + 1) - x(i) - (x(1) - x(0) > 5 ? 1 : 0)), height: f.bottom - y(num(s.live_bytes)), fill: i === inspect.memory.peak_step ? "var(--sofar)" : "var(--own)", "fill-opacity": 0.8 }));
    f.root.append(group);
    return { element: group, layer: layers.has(s.node) ? s.node : null, text: `step ${i}: ${s.node}\n${s.op}\nlive ${bytes(s.live_bytes)}, scratch ${bytes(s.scratch_bytes)}` };
  });
  xAxis(f, (tick) => x(tick + 0.5), String, niceTicks(0, Math.max(1, steps.length - 1), Math.max(2, Math.min(10, width / 80))).filter((t) => Number.isInteger(t) && t < steps.length), "step");
  return { root: f.root, marks };
}

/* Rectangles of the buffer: from first to last step, from offset to offset + bytes. Views have their owner's. */
function ownersOf(lifetimes) {
  const owners = new Map();
  for (const life of lifetimes) {
    const own = owners.get(life.memory_of);
    if (!own)
      owners.set(life.memory_of, { ...life, name: life.memory_of, views: life.value === life.memory_of ? [] : [life.value] });
    else {
      own.first_step = Math.min(own.first_step, life.first_step);
      own.last_step = Math.max(own.last_step, life.last_step);
      const end = Math.max(own.offset + own.bytes, life.offset + life.bytes);
      own.offset = Math.min(own.offset, life.offset);
      own.bytes = end - own.offset;
      if (life.value !== life.memory_of)
        own.views.push(life.value);
    }
  }
  return [...owners.values()];
}

function bufferPlot(owners, width) {
  const low = least(owners.map((o) => o.offset), Infinity), high = largest(owners.map((o) => o.offset + o.bytes), 1);
  const f = frame(width, 300, { left: 76, bottom: 38, right: 16 }), x = linear(0, inspect.steps.length, f.left, f.right), y = linear(low, high, f.bottom, f.top);
  yAxis(f, y, bytes, byteTicks(low, high, 7), null);
  const marks = owners.map((o, i) => {
    const w = Math.max(2, x(Math.min(o.last_step + 1, inspect.steps.length)) - x(o.first_step) - 0.6), h = Math.max(1.5, y(o.offset) - y(o.offset + o.bytes) - 0.6);
    const box = svg("rect", { x: x(o.first_step), y: y(o.offset + o.bytes), width: w, height: h, rx: h > 6 ? 2 : 0, fill: ["var(--own)", "var(--integer)", "var(--tiled)", "var(--convert)", "var(--other)"][i % 5], "fill-opacity": 0.6 });
    f.root.append(box);
    if (w > 60 && h > 15)
      f.root.append(svg("text", { class: "strong", x: x(o.first_step) + 5, y: y(o.offset + o.bytes / 2) + 4, "pointer-events": "none", style: "font-weight:400" }, shorten(o.name, Math.floor((w - 8) / 6.6))));
    return { element: box, text: `${o.name}: ${bytes(o.bytes)} at ${o.offset}\nfrom ${stepName(o.first_step)}\nto ${stepName(o.last_step)}${o.views.length ? `\nviews: ${o.views.slice(0, 4).join(", ")}` : ""}` };
  });
  xAxis(f, x, String, niceTicks(0, Math.max(1, inspect.steps.length), Math.max(2, Math.min(10, width / 80))).filter(Number.isInteger), "step");
  return { root: f.root, marks };
}

function memoryPart() {
  if (!inspect.steps.length)
    return null;
  const peak = inspect.memory.peak_step, owners = ownersOf(inspect.lifetimes);
  return part("memory", "Memory over time", "Bytes of the values that are alive at each step of a run, and where in the buffer each value is.",
    card(figure({ name: "memory", title: "Live bytes", note: peak !== null ? `Peak ${bytes(inspect.memory.peak_bytes)} at step ${peak}, ${stepName(peak)}. Weights and scratch memory are not in it.` : null, draw: memoryPlot,
      label: `Live bytes by step; peak ${bytes(inspect.memory.peak_bytes)}`,
      table: () => sortTable({ small: true, caption: "Live bytes by step", rows: inspect.steps.map((s, i) => ({ ...s, i })), columns: [{ title: "Step", get: (s) => s.i }, { title: "Node", words: true, get: (s) => s.node, show: (s) => layerLink(s.node) },
        { title: "Live", worst: "high", get: (s) => num(s.live_bytes), show: (s) => bytes(s.live_bytes) }, { title: "Scratch", worst: "high", get: (s) => num(s.scratch_bytes), show: (s) => bytes(s.scratch_bytes) }] }) })),
    owners.length ? card(figure({ name: "buffer", title: "Buffer of activations", label: `${owners.length} values in the buffer of ${bytes(inspect.memory.activation_bytes)}`, draw: (width) => bufferPlot(owners, width),
      table: () => sortTable({ small: true, caption: "Values in the buffer", rows: owners, columns: [{ title: "Value", words: true, get: (o) => o.name }, { title: "Offset", get: (o) => o.offset }, { title: "Bytes", worst: "high", get: (o) => o.bytes, show: (o) => bytes(o.bytes) },
        { title: "First step", get: (o) => o.first_step }, { title: "Last step", get: (o) => o.last_step }] }) })) : null);
}

/* ---- Nodes -------------------------------------------------------------------------------------------------- */

function nodePart() {
  if (!inspect.nodes.length)
    return null;
  const shown = inspect.nodes.map((node, i) => ({ ...node, i }));
  const result = (node) => valueOf(node.outputs.find((o) => o !== null) ?? null);
  const columns = [
    { title: "Node", words: true, get: (n) => n.name, show: (n) => layerLink(n.name) }, { title: "No.", get: (n) => n.i }, { title: "Operator", words: true, get: (n) => n.op },
    { title: "Computes", words: true, get: (n) => n.computes, show: (n) => computeChip(n.computes) }, { title: "Step", get: (n) => (n.step === null ? NaN : n.step), show: (n) => (n.step === null ? NOTHING : String(n.step)) },
    { title: "Algorithm", words: true, get: (n) => (inspect.steps[n.step] || {}).algorithm || "" },
    { title: "Result", words: true, get: (n) => (result(n) ? result(n).type + shapeText(result(n)) : "") },
    { title: "Quantization", words: true, long: true, get: (n) => (result(n) && quantizationText(result(n).quantization)) || "" },
    { title: "Why float, or why not at all", words: true, long: true, get: (n) => n.problem || n.why_float || "" }];
  return part("nodes", "Nodes", null, sortTable({ caption: "Nodes of the model", columns, rows: shown, filter: (n) => `${n.name} ${n.op} ${n.computes} ${n.why_float || ""}` }));
}
