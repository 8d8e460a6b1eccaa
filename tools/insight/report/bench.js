/* SPDX-License-Identifier: Apache-2.0 */
/* What costs the time: the sections of dqrun bench --profile. */

const macRate = (step) => (step.macs && step.ms > 0 ? step.macs / (step.ms / 1000) : NaN);
const byteRate = (step) => (step.bytes && step.ms > 0 ? step.bytes / (step.ms / 1000) : NaN);
const limits = () => bench.machine || {};
/* The least time that the machine allows for the step's multiply-adds and bytes. */
function limitMs(step) {
  const planned = inspect && inspect.steps.find((s) => s.node === step.node && s.op === step.op), machine = limits();
  const macs = planned && planned.computes === "integer" ? machine.integer_macs_per_s : machine.float_macs_per_s;
  return step.macs && macs ? 1000 * Math.max(step.macs / macs, step.bytes / (machine.bytes_per_s || Infinity)) : NaN;
}
const stepColour = (step) => {
  const planned = inspect && inspect.steps.find((s) => s.node === step.node && s.op === step.op);
  return computeColour(planned ? planned.computes : "other");
};

function benchSummary() {
  const macs = sum(bench.steps.map((s) => s.macs || 0)), machine = limits();
  return keyFigures([["Median time of a run", ms(bench.median_ms), `least ${ms(bench.min_ms)}, p99 ${ms(bench.p99_ms)}`], ["Runs", String(bench.runs), bench.made_up_inputs ? "inputs made up" : "given inputs"],
    ["Instruction set", bench.isa, count(bench.threads, "thread"), "text"], ["Peak memory", bytes(bench.peak_rss_kib * 1024), `loading ${ms(bench.load_ms)}, first run ${ms(bench.first_run_ms)}`],
    macs ? ["Multiply-adds of a run", metric(macs, ""), metric(macs / (bench.min_ms / 1000), "MAC/s")] : null,
    machine.integer_macs_per_s ? ["Limit of the machine", metric(machine.integer_macs_per_s, "MAC/s"), `int8; float ${metric(machine.float_macs_per_s, "MAC/s")}, memory ${metric(machine.bytes_per_s, "B/s")}`] : null]);
}

function timePart() {
  if (!bench.steps.length)
    return null;
  const all = Math.max(bench.min_ms, sum(bench.steps.map((s) => s.ms))), rows = sortRows(bench.steps, { get: (s) => s.ms }, true);
  const bar = (s) => ({ name: s.node, label: `${ms(s.ms)}`, parts: [[s.ms, stepColour(s)]], layer: layers.has(s.node) ? s.node : null,
    text: `${s.node}\n${s.op}${s.algorithm ? `, ${s.algorithm}` : ""}\n${ms(s.ms)}, ${percent(s.ms / all)} of a run${s.macs ? `\n${metric(s.macs, "")} multiply-adds, ${metric(macRate(s), "MAC/s")}` : ""}` });
  const groups = new Map();
  for (const s of bench.steps) {
    const key = `${s.op} ${s.algorithm || ""}`;
    const group = groups.get(key) || { op: s.op, algorithm: s.algorithm, ms: 0, steps: 0, colour: stepColour(s) };
    group.ms += s.ms;
    group.steps++;
    groups.set(key, group);
  }
  const operators = sortRows([...groups.values()], { get: (g) => g.ms }, true).map((g) => ({ name: g.algorithm ? `${g.op} ${g.algorithm.split("=").pop()}` : g.op, label: ms(g.ms), parts: [[g.ms, g.colour]], text: `${g.op}${g.algorithm ? `, ${g.algorithm}` : ""}\n${count(g.steps, "step")}, ${ms(g.ms)}, ${percent(g.ms / all)} of a run` }));
  const used = [...new Set(bench.steps.map(stepColour))], legend = Object.keys(COMPUTES).filter((k) => used.includes(computeColour(k)) && k !== "unused").map((k) => [computeColour(k), k]);
  return part("time", "Time by layer", "The least time that each step took in the runs that were counted, the slowest first.",
    card(figure({ name: "time by operator", title: "By operator and algorithm", label: `Time by operator: ${operators.slice(0, 4).map((o) => `${o.name} ${o.label}`).join(", ")}`, legend, draw: (width) => barPlot(operators.slice(0, 20), width) })),
    card(figure({ name: "time by layer", title: "By layer", note: rows.length > 30 ? `The slowest 30 of ${rows.length} steps; the table has all.` : null, label: `Time by layer: ${rows.slice(0, 4).map((s) => `${s.node} ${ms(s.ms)}`).join(", ")}`, legend, draw: (width) => barPlot(rows.slice(0, 30).map(bar), width) })));
}

/* ---- Roofline ----------------------------------------------------------------------------------------------- */

function rooflinePlot(steps, width) {
  const machine = limits(), f = frame(width, 400, { left: 84, bottom: 42, right: 18, top: 18 });
  const intensity = (s) => s.macs / s.bytes, roofs = [["int8", machine.integer_macs_per_s, "var(--integer)"], ["float", machine.float_macs_per_s, "var(--float)"]].filter(([, rate]) => rate > 0);
  const xs = steps.map(intensity), ys = steps.map(macRate), top = largest(roofs.map(([, rate]) => rate), largest(ys));
  const ridge = largest(roofs.map(([, rate]) => rate / machine.bytes_per_s), 1);
  const xLow = Math.min(least(xs) / 2, 0.1), xHigh = Math.max(largest(xs) * 2, ridge * 4), yHigh = top * 2, yLow = Math.min(least(ys) / 2, yHigh / 100);
  const x = logarithmic(xLow, xHigh, f.left, f.right), y = logarithmic(yLow, yHigh, f.bottom, f.top);
  yAxis(f, y, (tick) => metric(tick, "MAC/s").replace(/\.0+ /, " "), y.ticks(6), null);
  roofs.forEach(([name, rate, colour], k) => {
    const turn = rate / machine.bytes_per_s, start = Math.max(xLow, yLow / machine.bytes_per_s);
    f.root.append(svg("path", { d: `M${x(start)} ${y(start * machine.bytes_per_s)}L${x(turn)} ${y(rate)}H${f.right}`, fill: "none", stroke: colour, "stroke-width": 2 }));
    if (k === 0 && x(turn) - x(start) > 140) {
      const middle = Math.sqrt(start * turn), angle = (-Math.atan2(y(start * machine.bytes_per_s) - y(rate), x(turn) - x(start)) * 180) / Math.PI, px = x(middle), py = y(middle * machine.bytes_per_s) - 7;
      f.root.append(svg("text", { x: px, y: py, transform: `rotate(${angle} ${px} ${py})`, "text-anchor": "middle" }, `memory: ${metric(machine.bytes_per_s, "B/s")}`));
    }
  });
  const most = largest(steps.map((s) => s.ms), 1e-9);
  const marks = sortRows(steps, { get: (s) => s.ms }, true).map((s) => {
    const dot = svg("circle", { cx: x(intensity(s)), cy: y(macRate(s)), r: 3.5 + 9 * Math.sqrt(s.ms / most), fill: stepColour(s), "fill-opacity": 0.6, stroke: stepColour(s) });
    f.root.append(dot);
    return { element: dot, layer: layers.has(s.node) ? s.node : null, text: `${s.node}\n${s.op}${s.algorithm ? `, ${s.algorithm}` : ""}\n${metric(macRate(s), "MAC/s")} at ${sig(intensity(s), 3)} MAC per byte\n${ms(s.ms)}` };
  });
  for (const [name, rate] of roofs)
    f.root.append(svg("text", { class: "halo", x: f.right - 4, y: y(rate) + (rate < largest(roofs.map((roof) => roof[1])) ? 16 : -7), "text-anchor": "end", "pointer-events": "none" }, `${name}: ${metric(rate, "MAC/s")}`));
  xAxis(f, x, (tick) => sig(tick, 2), x.ticks(Math.max(3, width / 110)), "multiply-adds per byte of memory traffic");
  return { root: f.root, marks };
}

function rooflinePart() {
  const steps = bench.steps.filter((s) => s.macs > 0 && s.bytes > 0 && s.ms > 0);
  if (!steps.length || !limits().bytes_per_s)
    return null;
  return part("roofline", "Roofline", "Each dot is a step with multiply-adds; its size is its time. The lines are what this machine can do: a dot far below them has something to gain, a dot near the slope waits for memory.",
    card(figure({ name: "roofline", label: `Multiply-adds a second against multiply-adds per byte, for ${count(steps.length, "step")}`, draw: (width) => rooflinePlot(steps, width) })));
}

function stepPart() {
  if (!bench.steps.length)
    return null;
  const all = Math.max(bench.min_ms, sum(bench.steps.map((s) => s.ms)));
  const columns = [{ title: "Node", words: true, get: (s) => s.node, show: (s) => layerLink(s.node) }, { title: "No.", get: (s) => s.i }, { title: "Operator", words: true, get: (s) => s.op }, { title: "Algorithm", words: true, get: (s) => s.algorithm || "" },
    { title: "Least time", worst: "high", get: (s) => s.ms, show: (s) => ms(s.ms), heat: (s) => s.ms / all }, { title: "Share", worst: "high", get: (s) => s.ms / all, show: (s) => percent(s.ms / all) },
    { title: "Multiply-adds", worst: "high", get: (s) => s.macs || NaN, show: (s) => (s.macs ? metric(s.macs, "") : NOTHING) }, { title: "MAC/s", get: macRate, show: (s) => metric(macRate(s), "") },
    { title: "Bytes", worst: "high", get: (s) => s.bytes || NaN, show: (s) => (s.bytes ? bytes(s.bytes) : NOTHING) }, { title: "B/s", get: byteRate, show: (s) => metric(byteRate(s), "") },
    { title: "Of the limit", hint: "Share of what the roofline allows", get: (s) => limitMs(s) / s.ms, show: (s) => percent(limitMs(s) / s.ms, 0), heat: (s) => ramp(limitMs(s) / s.ms, 0.5, 0.02) * Math.min(1, (10 * s.ms) / all) }];
  return part("steps", "Steps", null, sortTable({ caption: "Steps of a run", columns, rows: bench.steps.map((s, i) => ({ ...s, i })), filter: (s) => `${s.node} ${s.op} ${s.algorithm || ""}`, sort: [4, true] }));
}
