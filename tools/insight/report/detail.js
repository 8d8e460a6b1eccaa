/* SPDX-License-Identifier: Apache-2.0 */
/* One layer: all that the analyses say of it, in a dialog that the address names (#layer=NAME). */

function measuresOf(value) {
  const rows = ["own", "floor", "so_far"].filter((key) => value[key]).map((key) => ({ key, e: value[key] }));
  const titles = { own: "own error", floor: "floor", so_far: "so far" };
  return sortTable({ small: true, caption: `Errors of ${value.name}`, rows, columns: [
    { title: "Error", words: true, get: (r) => titles[r.key] },
    { title: "SQNR dB", get: (r) => worstOf(r.e), show: (r) => db(r.e.sqnr_db), heat: (r) => heatDb(worstOf(r.e)) },
    { title: "Cosine", get: (r) => num(r.e.cosine), show: (r) => fixed(r.e.cosine, 6) },
    { title: "RMSE", get: (r) => num(r.e.rmse), show: (r) => sig(r.e.rmse) },
    { title: "Mean", get: (r) => num(r.e.mean), show: (r) => sig(r.e.mean, 3) },
    { title: "Largest", get: (r) => num(r.e.largest), show: (r) => sig(r.e.largest) },
    { title: "RMSE / scale", get: (r) => num(r.e.rmse_over_scale), show: (r) => sig(r.e.rmse_over_scale, 3) },
    { title: "Worst input", get: (r) => num(r.e.worst_input), show: (r) => (r.e.worst_input === null ? NOTHING : `${r.e.worst_input}: ${db(r.e.worst_sqnr_db)} dB`) },
  ] });
}

function valueCard(value) {
  const range = value.range;
  return card(el("h3", {}, "Value ", value.name), facts([
    ["matched with", value.matched !== value.name ? value.matched : null], ["quantizer", value.quantizer], ["float node", value.float_node !== value.node ? value.float_node : null],
    ["type", value.type], ["elements compared", range ? num(range.elements).toLocaleString("en") : null],
    ["scale, zero point", range ? `${sig(range.scale, 6)}, ${sig(range.zero_point)}` : null],
    ["clipped low, high", range ? `${share(clipped(value, "clipped_low"))}, ${share(clipped(value, "clipped_high"))}` : null],
    ["share of clipping in the noise", range && range.clip_noise_share !== undefined ? share(range.clip_noise_share) : null],
    ["quantized values taken", range ? `${range.quantized_values_used} of ${range.quantized_values}, entropy ${fixed(range.entropy_bits, 2)} bits` : null],
    ["99.9 % of |values| below", range ? sig(range.p999) : null],
    ["outputs gain when left out", value.gain_db !== null ? `${fixed(value.gain_db, 2)} dB` : null],
  ]), el("p", {}), measuresOf(value), hasHistogram(value) && el("div", { style: "margin-top:12px" }, histogramFigure(value, "Before and after quantization")));
}

function weightCard(weight) {
  return card(el("h3", {}, weight.is_bias ? "Bias " : "Weight ", weight.name), facts([
    ["type", `${weight.type}, scales ${weight.per_channel ? "per channel" : "per tensor"}`], ["SQNR", `${withDb(worstOf(weight.error))}, worst channel ${weight.worst_channel}: ${withDb(weight.worst_channel_sqnr_db)}`],
    ["RMSE / scale", `${sig(weight.rmse_over_scale, 3)} (ideal: 0.289)`], ["bad scales", weight.bad_scales || null], ["saturated", weight.saturated || null],
    ["outputs gain when left out", weight.gain_db !== null ? `${fixed(weight.gain_db, 2)} dB` : null],
  ]), hasChannels(weight) && channelFigure(weight, ""));
}

const shapeText = (value) => (value.shape ? `[${value.shape.map((d) => (d === null ? "?" : d)).join(", ")}]` : "");
function quantizationText(q) {
  if (!q)
    return null;
  const kinds = { tensor: "per tensor", axis: `per axis ${q.axis}`, block: `per block of ${q.block_size} on axis ${q.axis}` };
  const range = (a, b) => (a === b ? sig(a) : `${sig(a)} … ${sig(b)}`);
  return [kinds[q.granularity] || q.granularity, q.scale_min !== undefined ? `scale ${range(num(q.scale_min), num(q.scale_max))}` : "", q.zero_point_min !== undefined ? `zero point ${range(num(q.zero_point_min), num(q.zero_point_max))}` : ""].filter(Boolean).join(", ");
}
const valueOf = (index) => (inspect && index !== null ? inspect.values[index] : null);

function valueItem(index) {
  const value = valueOf(index);
  if (!value)
    return null;
  const producer = value.producer !== null ? inspect.nodes[value.producer] : null, q = quantizationText(value.quantization);
  return el("li", {}, producer ? layerLink(producer.name, value.name) : value.name, ` ${value.type}${shapeText(value)}`, value.kind !== "activation" ? ` (${value.kind})` : "", q ? `: ${q}` : "");
}

function nodeCard(node) {
  const step = node.step !== null && inspect.steps[node.step];
  const others = step ? step.nodes.map((i) => inspect.nodes[i]).filter((n) => n && n !== node) : [];
  const list = (indices) => { const items = indices.map(valueItem).filter(Boolean); return items.length ? el("ul", { style: "margin:0;padding-left:18px" }, items) : null; };
  return card(el("h3", {}, "Node of the model"), facts([
    ["operator", node.op], ["computes", computeChip(node.computes)], ["why float", node.why_float], ["cannot run", node.problem],
    ["step", step ? `${node.step}: ${step.op}${step.algorithm ? `, ${step.algorithm}` : ""}` : null], ["decision", step ? step.decision : null],
    ["the step also computes", others.length ? others.slice(0, 12).map((n, i) => [i ? ", " : "", layerLink(n.name)]) : null],
    ["inputs", list(node.inputs)], ["outputs", list(node.outputs)],
  ]));
}

function timeCard(step) {
  const all = sum(bench.steps.map((s) => s.ms));
  return card(el("h3", {}, "Time"), facts([["step", step.op], ["algorithm", step.algorithm], ["least time", `${ms(step.ms)}, ${percent(step.ms / all)} of all steps`],
    ["multiply-adds", step.macs ? `${metric(step.macs, "")}, ${metric(macRate(step), "MAC/s")}` : null], ["memory traffic, at least", step.bytes ? `${bytes(step.bytes)}, ${metric(byteRate(step), "B/s")}` : null]]));
}

/* Layers in the order in which one goes through them: the worst first where errors are known. */
function sequence() {
  const list = compare ? byNoise().map(keyOf) : bench && bench.steps ? sortRows(bench.steps, { get: (s) => s.ms }, true).map((s) => s.node) : inspect ? inspect.nodes.map((n) => n.name) : [];
  return [...new Set(list)];
}

function showLayer(name) {
  const dialog = byId("layer"), layer = layers.get(name);
  if (!layer)
    return;
  const list = sequence(), at = list.indexOf(name);
  const go = (i, text, label) => el("button", { type: "button", disabled: at < 0 || i < 0 || i >= list.length, "aria-label": label, onclick: () => openLayer(list[i]) }, text);
  const inside = el("div", { class: "inside" },
    layer.verdicts.map((verdict) => card(el("h3", { class: "bad" }, verdict.title), facts([["shown by", verdict.why], ["cure", verdict.cure], ["keep in float", verdict.exclude]]))),
    layer.values.map(valueCard), layer.weights.map(weightCard), layer.times.map(timeCard), layer.node && nodeCard(layer.node));
  dialog.replaceChildren(el("header", {}, el("h2", { id: "layer-title", tabindex: -1 }, name), go(at - 1, "‹ Previous", "Previous layer"), go(at + 1, "Next ›", "Next layer"),
    el("button", { type: "button", onclick: () => dialog.close() }, "Close")), inside);
  if (!dialog.open)
    dialog.showModal();
  hideTip();
  moveTip();
  dialog.scrollTop = 0;
  byId("layer-title").focus();
}

function followAddress(address) {
  const match = address.match(/^#layer=(.*)$/), dialog = byId("layer");
  if (match)
    showLayer(decodeURIComponent(match[1]));
  else if (dialog.open)
    dialog.close();
}

byId("layer").addEventListener("close", () => {
  hideTip();
  moveTip();
  byId("layer").replaceChildren();
  if (!isFramed && location.hash.startsWith("#layer="))
    history.replaceState(null, "", location.pathname + location.search);
});
byId("layer").addEventListener("click", (event) => {
  if (event.target === byId("layer")) /* outside of its content */
    byId("layer").close();
});
if (isFramed)
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']"), address = link && link.getAttribute("href");
    if (!link)
      return;
    event.preventDefault();
    followAddress(address);
    if (byId(address.slice(1)))
      byId(address.slice(1)).scrollIntoView();
  });
