/* SPDX-License-Identifier: Apache-2.0 */
/* Where a quantized model loses accuracy: the sections of dqrun compare. docs/compare.md defines the measures. */

/* ---- Measures ----------------------------------------------------------------------------------------------- */

/* 0 where x is good, 1 where it is bad; between on a line, or on a logarithm. */
const ramp = (x, good, bad) => (Number.isNaN(x) ? NaN : Math.max(0, Math.min(1, (x - good) / (bad - good))));
const rampLog = (x, good, bad) => (x <= 0 ? 0 : ramp(Math.log(x), Math.log(good), Math.log(bad)));
const heatDb = (x) => ramp(x, 40, 8);
const rangeOf = (value, key) => (value.range ? num(value.range[key]) : NaN);
const clipped = (value, key) => (value.range ? value.range[key] / Math.max(1, value.range.elements) : NaN);
const codesUsed = (value) => (value.range ? value.range.quantized_values_used / value.range.quantized_values : NaN);
const errorOf = (value, which, key) => (value[which] ? num(value[which][key]) : NaN);

function measureColumns() {
  const ofError = (which) => (value) => errorOf(value, which, "sqnr_db");
  const columns = [
    { title: "Layer", words: true, get: (v) => v.name, show: (v) => layerLink(keyOf(v), v.name) },
    { title: "Operator", words: true, get: (v) => v.op || "input" },
    { title: "Own error dB", hint: "SQNR of the layer fed with reference inputs", get: ofError("own"), show: (v) => db(ofError("own")(v)), heat: (v) => heatDb(ofError("own")(v)) },
    { title: "Floor dB", hint: "SQNR of the float value merely quantized and dequantized", get: ofError("floor"), show: (v) => db(ofError("floor")(v)), heat: (v) => heatDb(ofError("floor")(v)) },
    { title: "So far dB", hint: "SQNR in the quantized model, with the errors of all layers before", get: ofError("so_far"), show: (v) => db(ofError("so_far")(v)), heat: (v) => heatDb(ofError("so_far")(v)) },
    { title: "Cosine so far", get: (v) => errorOf(v, "so_far", "cosine"), show: (v) => fixed(errorOf(v, "so_far", "cosine"), 5), heat: (v) => rampLog(1 - errorOf(v, "so_far", "cosine"), 1e-4, 0.1) },
    { title: "RMSE / scale", hint: "Of the floor; 0.289 for an ideal quantizer", get: (v) => errorOf(v, "floor", "rmse_over_scale"), show: (v) => sig(errorOf(v, "floor", "rmse_over_scale"), 3), heat: (v) => rampLog(errorOf(v, "floor", "rmse_over_scale"), 0.32, 8) },
    { title: "Clipped low", get: (v) => clipped(v, "clipped_low"), show: (v) => share(clipped(v, "clipped_low")), heat: (v) => rampLog(clipped(v, "clipped_low"), 1e-4, 0.1) },
    { title: "Clipped high", get: (v) => clipped(v, "clipped_high"), show: (v) => share(clipped(v, "clipped_high")), heat: (v) => rampLog(clipped(v, "clipped_high"), 1e-4, 0.1) },
    { title: "Range used", hint: "Of the range that the quantizer covers", get: (v) => rangeOf(v, "range_used"), show: (v) => share(rangeOf(v, "range_used")), heat: (v) => ramp(rangeOf(v, "range_used"), 0.8, 0.15) },
    { title: "Values taken", hint: "Different quantized values, of those that the type has", get: codesUsed, show: (v) => (v.range ? `${v.range.quantized_values_used} / ${v.range.quantized_values}` : NOTHING), heat: (v) => ramp(codesUsed(v), 0.5, 0.03) },
    { title: "Entropy bits", get: (v) => rangeOf(v, "entropy_bits"), show: (v) => fixed(rangeOf(v, "entropy_bits"), 2), heat: (v) => (v.range ? ramp(v.range.entropy_bits / Math.log2(v.range.quantized_values), 0.5, 0.1) : NaN) },
    { title: "At zero point", get: (v) => rangeOf(v, "at_zero_point"), show: (v) => share(rangeOf(v, "at_zero_point")) },
  ];
  if (compare.values.some((v) => v.gain_db !== null))
    columns.push({ title: "Gain left out dB", hint: "What the outputs gain when this quantizer is left out", get: (v) => num(v.gain_db), show: (v) => (v.gain_db === null ? NOTHING : fixed(v.gain_db, 2)), heat: (v) => ramp(num(v.gain_db), 0.3, 6), worst: "high" });
  for (const column of columns)
    if (/RMSE|Clipped/.test(column.title))
      column.worst = "high";
  return columns;
}

/* Quantizers and layers by the noise that they add, the worst first. */
const byNoise = () => sortRows(compare.values.filter((v) => v.own || v.floor), { get: (v) => Math.min(errorOf(v, "own", "sqnr_db"), v.floor ? errorOf(v, "floor", "sqnr_db") : Infinity) }, false);

/* ---- Summary and verdicts ----------------------------------------------------------------------------------- */

const gradeDb = (x) => (x >= 30 ? "good" : x >= 15 ? "warn" : "bad");

function compareSummary() {
  const list = [];
  for (const output of compare.outputs.slice(0, 4)) {
    const x = worstOf(output.error);
    list.push([`SQNR of output ${output.name}`, withDb(x), `cosine ${fixed(output.error ? output.error.cosine : NaN, 5)}`, gradeDb(x)]);
  }
  const classes = compare.outputs.find((output) => output.rows !== undefined);
  if (classes)
    list.push(["Top-1 class differs", `${classes.flips.length} of ${classes.rows}`, classes.flips.length ? `rows ${classes.flips.slice(0, 6).join(", ")}${classes.flips.length > 6 ? ", …" : ""}` : "in no row", classes.flips.length ? "warn" : "good"]);
  const labelled = compare.outputs.find((output) => output.labelled);
  if (labelled)
    list.push(["Accuracy", percent(labelled.correct / labelled.labelled, 2), `float: ${percent(labelled.float_correct / labelled.labelled, 2)}`]);
  list.push(["Problems found", String(compare.verdicts.length), compare.verdicts.length ? `first: ${compare.verdicts[0].title}` : "no layer stands out", compare.verdicts.length ? "bad" : "good"]);
  list.push(["Values matched", `${compare.matched} of ${compare.float_values}`, [compare.folded ? `${compare.folded} folded into the next` : "", count(compare.weights.length, "weight"), count(compare.inputs, "input")].filter(Boolean).join(", ")]);
  return [keyFigures(list), compare.own_missing && el("p", { class: "card notice" }, "Own errors and floors are missing: ", compare.own_missing)];
}

function verdictCard(verdict, i) {
  const value = compare.values[verdict.pair], suggested = verdict.suggested;
  return el("li", { class: "card verdict" }, el("span", { class: "rank", "aria-hidden": "true" }, i + 1), el("div", {},
    el("h3", {}, verdict.title, ": ", layerLink(value ? keyOf(value) : verdict.node, verdict.value)),
    el("dl", {}, el("dt", {}, "shown by"), el("dd", {}, verdict.why), el("dt", {}, "cure"), el("dd", {}, verdict.cure)),
    suggested && suggested.scale_name && paste(JSON.stringify({ [suggested.scale_name]: { scale: Number(num(suggested.scale).toPrecision(9)), zero_point: suggested.zero_point } }))));
}

const FIRST_VERDICTS = 6;

function moreVerdicts() {
  const rest = compare.verdicts.slice(FIRST_VERDICTS);
  if (!rest.length)
    return null;
  return el("details", { style: "margin-bottom:14px" }, el("summary", { style: "margin-bottom:10px" }, `${rest.length} more`),
    el("ol", { class: "verdicts", start: FIRST_VERDICTS + 1 }, rest.map((verdict, i) => verdictCard(verdict, FIRST_VERDICTS + i))));
}

function verdictPart() {
  const excluded = [...new Set(compare.verdicts.map((verdict) => verdict.exclude).filter(Boolean))];
  const list = compare.verdicts.length
    ? [el("ol", { class: "verdicts" }, compare.verdicts.slice(0, FIRST_VERDICTS).map(verdictCard)), moreVerdicts()]
    : card(compare.outputs.every((output) => worstOf(output.error) === Infinity) ? "The outputs are those of the float model."
      : "No layer adds noise above 30 dB below its signal. The error of the outputs is that of rounding in all layers together.");
  return part("verdicts", "Causes and cures", compare.verdicts.length ? "The worst layers first, with what shows the cause. “--fix FILE” writes a model with the new ranges." : null, list,
    excluded.length ? card(el("h3", {}, "To keep these nodes in float"), paste(`nodes_to_exclude=[${excluded.map((name) => JSON.stringify(name)).join(", ")}]`)) : null);
}

/* ---- Error by layer ----------------------------------------------------------------------------------------- */

const SERIES = [["own", "own error", "var(--own)"], ["floor", "floor: quantized and dequantized only", "var(--floor)"], ["so_far", "accumulated so far", "var(--sofar)"]];
const TOP_DB = 90; /* float rounding is above: those values are drawn at the upper end */

function errorPlot(width) {
  const values = compare.values, names = values.map((v) => v.name), first = Math.max(14, nameSpace(names.slice(0, 1), 20) - 58);
  const step = Math.max(13, (width - 106 - first) / Math.max(1, values.length)), space = nameSpace(names, step), wide = Math.max(width, 106 + first + step * values.length);
  const f = frame(wide, 300 + space, { left: 58, right: 24, top: 16, bottom: space });
  const all = values.flatMap((v) => SERIES.map(([key]) => errorOf(v, key, "sqnr_db"))).filter((x) => Number.isFinite(x) && x < TOP_DB);
  const high = Math.min(TOP_DB, Math.ceil((largest(all, 20) + 4) / 10) * 10), low = Math.min(0, Math.floor(least(all, 0) / 10) * 10);
  const exact = f.top + 4, y = linear(low, high, f.bottom, f.top + 34), x = linear(0, Math.max(1, values.length - 1), f.left + first, f.right - 12);
  const at = (value) => (value === Infinity || value > high ? exact : Number.isFinite(value) ? Math.min(f.bottom, y(value)) : NaN);
  yAxis(f, y, (tick) => String(tick).replace("-", "−"), y.ticks(7), "SQNR in dB (more is better)");
  f.root.append(svg("text", { x: f.left - 7, y: exact + 4, "text-anchor": "end" }, "exact"), svg("line", { class: "gridline", x1: f.left, x2: f.right, y1: exact, y2: exact, "stroke-dasharray": "3 4" }));
  nameAxis(f, names, x, values.length > 1 ? step : 60);
  for (const [key, , colour] of SERIES) {
    const points = values.map((v, i) => [x(i), at(errorOf(v, key, "sqnr_db"))]).filter(([, py]) => !Number.isNaN(py));
    f.root.append(svg("polyline", { points: points.map((p) => p.map((c) => c.toFixed(1)).join(",")).join(" "), fill: "none", stroke: colour, "stroke-width": 1.6, "stroke-opacity": key === "so_far" ? 0.9 : 0.45, "stroke-dasharray": key === "floor" ? "4 3" : null }));
  }
  const half = values.length > 1 ? (x(1) - x(0)) / 2 : 20;
  const marks = values.map((v, i) => {
    const group = svg("g", {}, svg("rect", { x: x(i) - half, y: f.top, width: 2 * half, height: f.bottom - f.top, fill: "transparent", stroke: "none" }));
    SERIES.forEach(([key, , colour], k) => {
      const py = at(errorOf(v, key, "sqnr_db"));
      if (!Number.isNaN(py))
        group.append(k === 1 ? svg("rect", { x: x(i) - 3.2, y: py - 3.2, width: 6.4, height: 6.4, fill: colour }) : svg("circle", { cx: x(i), cy: py, r: k === 0 ? 4.2 : 3.4, fill: colour }));
    });
    f.root.append(group);
    return { element: group, layer: keyOf(v), text: `${v.name}${v.op ? ` (${v.op})` : ""}\nown ${withDb(errorOf(v, "own", "sqnr_db"))}, floor ${withDb(errorOf(v, "floor", "sqnr_db"))}\nso far ${withDb(errorOf(v, "so_far", "sqnr_db"))}` };
  });
  return { root: f.root, marks };
}

function errorPart() {
  const worst = byNoise()[0];
  return part("errors", "Error by layer", "In the order of the run. A layer whose own error is far below its neighbours is where accuracy is lost; where own error equals the floor, the range of its quantizer is the cause.",
    card(figure({ name: "error by layer", label: `SQNR of ${compare.values.length} layers${worst ? `; the layer that adds most noise is ${worst.name}` : ""}`,
      legend: SERIES.map(([, text, colour]) => [colour, text, true]), draw: errorPlot })));
}

function heatPart() {
  return part("measures", "Layers × measures", "Red marks what is bad, on the same scale in every report. Each column sorts; each name opens the layer.",
    sortTable({ caption: "Measures by layer", columns: measureColumns(), rows: byNoise().concat(compare.values.filter((v) => !v.own && !v.floor)), filter: (v) => `${v.name} ${v.op} ${v.node}` }));
}
