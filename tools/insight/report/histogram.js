/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms before and after quantization, and weights by channel. */

const FLOOR_SHARE = 1e-5; /* what the logarithmic axis begins with */

/* Shares of the values in `bins` equal bins over [low, high], of counts over [from, to]. A count that covers several bins is
 * spread over them. */
function rebin(counts, from, to, low, high, bins) {
  const shares = new Array(bins).fill(0), total = sum(counts) || 1, width = (high - low) / bins;
  counts.forEach((n, i) => {
    if (!n)
      return;
    const a = from + ((to - from) * i) / counts.length, b = from + ((to - from) * (i + 1)) / counts.length;
    const first = Math.max(0, Math.min(bins - 1, Math.floor((a - low) / width))), last = Math.max(first, Math.min(bins - 1, Math.ceil((b - low) / width - 1e-9) - 1));
    for (let k = first; k <= last; k++) {
      const overlap = first === last ? 1 : Math.max(0, Math.min(b, low + (k + 1) * width) - Math.max(a, low + k * width)) / (b - a || 1);
      shares[k] += (overlap * n) / total;
    }
  });
  return shares;
}

const hasHistogram = (value) => Boolean(value.range && value.range.histogram && value.range.histogram.counts.length);

function histogramPlot(value, width) {
  const range = value.range, own = range.histogram, q = range.quantized_counts || [];
  const scale = num(range.scale), ends = [num(range.low), num(range.high)];
  const low = Math.min(num(range.min), ends[0] - scale / 2), high = Math.max(num(range.max), ends[1] + scale / 2), bins = Math.max(48, Math.min(160, Math.floor(width / 4)));
  const before = rebin(own.counts, num(own.low), num(own.high), low, high, bins);
  const after = q.length ? rebin(q, ends[0] - scale / 2, ends[1] + scale / 2, low, high, bins) : null;
  const f = frame(width, 232, { left: 60, bottom: 28, top: 34, right: 16 });
  const top = largest(before.concat(after || []), 1e-3), y = logarithmic(FLOOR_SHARE, Math.min(1, top * 1.6), f.bottom, f.top), x = linear(low, high, f.left, f.right);
  const at = (s) => (s > FLOOR_SHARE ? Math.max(f.top, y(s)) : f.bottom), edge = (i) => f.left + ((f.right - f.left) * i) / bins;
  yAxis(f, y, (tick) => (tick >= 0.01 ? 100 * tick : Number((100 * tick).toPrecision(2))) + " %", y.ticks(5).filter((tick) => tick <= 1), null);
  const marks = before.map((s, i) => {
    const bar = svg("g", {}, svg("rect", { x: edge(i), y: f.top, width: edge(1) - edge(0), height: f.bottom - f.top, fill: "transparent" }),
      svg("rect", { x: edge(i), y: at(s), width: Math.max(0.5, edge(1) - edge(0) - 0.4), height: f.bottom - at(s), fill: "var(--own)", "fill-opacity": 0.55 }));
    f.root.append(bar);
    const [a, b] = [low + ((high - low) * i) / bins, low + ((high - low) * (i + 1)) / bins];
    return { element: bar, text: `${sig(a, 3)} … ${sig(b, 3)}\nbefore ${share(s)}${after ? `, after ${share(after[i])}` : ""}` };
  });
  if (after) {
    const line = after.map((s, i) => `L${edge(i).toFixed(1)} ${at(s).toFixed(1)}H${edge(i + 1).toFixed(1)}`).join("");
    f.root.append(svg("path", { d: `M${f.left} ${f.bottom}${line}V${f.bottom}`, fill: "none", stroke: "var(--after)", "stroke-width": 1.3, "pointer-events": "none" }));
  }
  ends.forEach((end, i) => {
    const px = x(end), rightward = px < (f.left + f.right) / 2, row = i === 1 && x(ends[1]) - x(ends[0]) < 130 ? 0 : 1;
    f.root.append(svg("line", { x1: px, x2: px, y1: f.top - 20 + 14 * row, y2: f.bottom, stroke: "var(--end)", "stroke-width": 1.6, "stroke-dasharray": "5 3", "pointer-events": "none" }),
      svg("text", { x: px + (rightward ? 4 : -4), y: f.top - 20 + 13 * row, "text-anchor": rightward ? "start" : "end", style: "fill:var(--end)" }, (i ? "high " : "low ") + sig(end, 3)));
  });
  xAxis(f, x, (tick) => sig(tick, 3), x.ticks(Math.max(3, Math.floor(width / 90))), null);
  return { root: f.root, marks };
}

function histogramFigure(value, title) {
  const range = value.range, lost = clipped(value, "clipped_low") + clipped(value, "clipped_high");
  const note = `values ${sig(range.min, 3)} … ${sig(range.max, 3)}, range ${sig(range.low, 3)} … ${sig(range.high, 3)}; ${lost > 0 ? share(lost) + " clipped" : "none clipped"}; ${share(range.range_used)} of the range used`;
  return figure({ name: "histogram of " + value.name, title, note, label: `Histogram of ${value.name}: ${note}`, draw: (width) => histogramPlot(value, width),
    legend: [["var(--own)", "before (float)"], ...(range.quantized_counts && range.quantized_counts.length ? [["var(--after)", "after quantization", true]] : []), ["var(--end)", "ends of the range", true]],
    table: () => sortTable({ small: true, caption: `Histogram of ${value.name}`, rows: range.histogram.counts.map((n, i) => ({ n, i })),
      columns: [{ title: "From", get: (r) => num(range.histogram.low) + ((range.histogram.high - range.histogram.low) * r.i) / range.histogram.counts.length, show: (r) => sig(num(range.histogram.low) + ((range.histogram.high - range.histogram.low) * r.i) / range.histogram.counts.length, 4) },
        { title: "Values", get: (r) => r.n }] }) });
}

function histogramPart() {
  const list = byNoise().filter(hasHistogram);
  if (!list.length)
    return null;
  return part("histograms", "Before and after quantization", "The layers whose quantizers lose most. The axis of shares is logarithmic, so that tails show. Every layer with a quantizer has its histogram on its own page.",
    el("div", { class: "grid" }, list.slice(0, 6).map((v) => card(histogramFigure(v, layerLink(keyOf(v), v.name))))));
}

/* ---- Weights ------------------------------------------------------------------------------------------------ */

function channelPlot(weight, width) {
  const ranges = weight.channel_range.map(num), sqnr = weight.channel_sqnr_db.map(num), n = Math.max(ranges.length, sqnr.length);
  const f = frame(width, 240, { left: 56, bottom: 36, right: 16, top: 10 }), split = ranges.length ? f.top + (f.bottom - f.top) * 0.56 : f.top;
  const x = (i) => f.left + ((f.right - f.left) * i) / n, bar = (f.right - f.left) / n, live = ranges.filter((r) => r > 0), marks = [];
  if (live.length) {
    const top = { ...f, bottom: split - 12 }, low = least(live) / 1.6, high = largest(live) * 1.3;
    const y = high / low > 30 ? logarithmic(low, high, top.bottom, top.top) : linear(0, high, top.bottom, top.top);
    yAxis(top, y, (tick) => sig(tick, 2), y.ticks(3), "largest |w|");
    ranges.forEach((r, i) => {
      const py = r > 0 ? y(r) : top.bottom - 1;
      f.root.append(svg("rect", { x: x(i), y: py, width: Math.max(0.6, bar - (bar > 3 ? 1 : 0)), height: top.bottom - py, fill: r > 0 ? "var(--own)" : "var(--bad)", "fill-opacity": 0.75 }));
    });
  }
  const finite = sqnr.filter((s) => Number.isFinite(s)), bottom = { ...f, top: split + 4 };
  const y = linear(Math.min(0, Math.floor(least(finite, 0) / 10) * 10), Math.min(TOP_DB, largest(finite, 30) + 5), bottom.bottom, bottom.top);
  yAxis(bottom, y, (tick) => sig(tick, 3), y.ticks(3), "SQNR dB");
  sqnr.forEach((s, i) => {
    const py = Number.isFinite(s) ? Math.max(bottom.top, y(Math.min(s, TOP_DB))) : bottom.top;
    f.root.append(svg("circle", { cx: x(i + 0.5), cy: py, r: n > 120 ? 1.6 : 2.6, fill: "var(--sofar)" }));
  });
  for (let i = 0; i < n; i++) {
    const area = svg("rect", { x: x(i), y: f.top, width: bar, height: f.bottom - f.top, fill: "transparent", stroke: "none" });
    f.root.append(area);
    marks.push({ element: area, text: `channel ${i}\n${ranges.length ? `largest |w| ${sig(ranges[i], 4)}, ` : ""}SQNR ${withDb(sqnr[i])}` });
  }
  const ticks = niceTicks(0, Math.max(1, n - 1), Math.max(2, Math.min(8, width / 70))).filter(Number.isInteger);
  xAxis(f, (tick) => x(tick + 0.5), String, n === 1 ? [0] : ticks, "channel");
  return { root: f.root, marks };
}

const hasChannels = (weight) => weight.channel_sqnr_db.length > 1;

function channelFigure(weight, title) {
  const note = `${weight.type}, scales ${weight.per_channel ? "per channel" : "per tensor"}; largest over smallest range ${sig(weight.channel_ratio, 3)}${weight.dead_channels ? `; ${count(weight.dead_channels, "dead channel")}` : ""}`;
  return figure({ name: "channels of " + weight.name, title, note, label: `Ranges and SQNR by channel of ${weight.name}: ${note}`, draw: (width) => channelPlot(weight, width),
    legend: [["var(--own)", "largest |w| of the channel"], ["var(--sofar)", "SQNR of the channel"]],
    table: () => sortTable({ caption: `Channels of ${weight.name}`, rows: weight.channel_sqnr_db.map((s, i) => ({ i, s: num(s), r: num(weight.channel_range[i]) })),
      columns: [{ title: "Channel", get: (r) => r.i }, { title: "Largest |w|", get: (r) => r.r, show: (r) => sig(r.r) }, { title: "SQNR dB", get: (r) => r.s, show: (r) => db(r.s) }] }) });
}

function weightColumns() {
  return [
    { title: "Weight", words: true, get: (w) => w.name, show: (w) => layerLink(w.node || w.name, w.name) },
    { title: "Type", words: true, get: (w) => w.type + (w.is_bias ? " bias" : "") },
    { title: "Scales", words: true, get: (w) => (w.per_channel ? "per channel" : "per tensor") },
    { title: "SQNR dB", get: (w) => worstOf(w.error), show: (w) => db(worstOf(w.error)), heat: (w) => heatDb(worstOf(w.error)) },
    { title: "Worst channel dB", get: (w) => num(w.worst_channel_sqnr_db), show: (w) => db(w.worst_channel_sqnr_db), heat: (w) => heatDb(num(w.worst_channel_sqnr_db)) },
    { title: "RMSE / scale", hint: "0.289 for an ideal quantizer", worst: "high", get: (w) => num(w.rmse_over_scale), show: (w) => sig(w.rmse_over_scale, 3), heat: (w) => rampLog(num(w.rmse_over_scale), 0.32, 8) },
    { title: "Channel ratio", hint: "Largest over smallest range of the channels", worst: "high", get: (w) => num(w.channel_ratio), show: (w) => sig(w.channel_ratio, 3), heat: (w) => (w.per_channel ? NaN : rampLog(num(w.channel_ratio), 4, 100)) },
    { title: "Dead channels", worst: "high", get: (w) => w.dead_channels, heat: (w) => (w.dead_channels ? 0.8 : 0) },
    { title: "Bad scales", hint: "Zero, denormal or not finite", worst: "high", get: (w) => w.bad_scales, heat: (w) => (w.bad_scales ? 1 : 0) },
    { title: "Saturated", hint: "Values beyond an end of the type", worst: "high", get: (w) => w.saturated, heat: (w) => (w.saturated ? 0.6 : 0) },
  ];
}

function weightPart() {
  const weights = sortRows(compare.weights, { get: (w) => worstOf(w.error) }, false);
  if (!weights.length)
    return null;
  const shown = weights.filter((w) => hasChannels(w) && !w.is_bias).slice(0, 6);
  return part("weights", "Weights by channel", "The weights of the lowest SQNR. Where scales are per tensor, a channel of a small range has few quantized values: its SQNR falls.",
    el("div", { class: "grid" }, shown.map((w) => card(channelFigure(w, layerLink(w.node || w.name, w.name))))), el("p", {}),
    sortTable({ caption: "Weights", columns: weightColumns(), rows: weights, filter: (w) => `${w.name} ${w.node}` }));
}
