/* SPDX-License-Identifier: Apache-2.0 */
/* The graph, drawn at the positions that dqrun has computed; colours by how nodes compute, by error or by time. */

const BOX = { width: 168, height: 36 };

/* By node name, what colours it: a share 0 (good) to 1 (bad) or NaN. */
function graphModes() {
  const modes = [["computes", "how it computes", null]];
  if (compare) {
    const noise = new Map(), put = (name, x) => { if (name && !(noise.get(name) <= x)) noise.set(name, x); };
    for (const value of compare.values) {
      const own = errorOf(value, value.own ? "own" : "so_far", "sqnr_db");
      put(value.node, own);
      put(value.quantizer, own);
    }
    modes.push(["own", "own error", (name) => heatDb(noise.has(name) ? noise.get(name) : NaN)]);
    const far = new Map();
    for (const value of compare.values)
      for (const name of [value.node, value.quantizer])
        if (name)
          far.set(name, errorOf(value, "so_far", "sqnr_db"));
    modes.push(["so_far", "error so far", (name) => heatDb(far.has(name) ? far.get(name) : NaN)]);
  }
  if (bench && bench.steps && inspect.steps.length) {
    const most = largest(bench.steps.map((s) => s.ms), 1e-9), times = new Map();
    for (const step of bench.steps)
      times.set(step.node, step.ms);
    modes.push(["time", "time of its step", (name) => {
      const layer = layers.get(name), step = layer && layer.node && layer.node.step !== null ? inspect.steps[layer.node.step] : null;
      return step && times.has(step.node) ? times.get(step.node) / most : NaN;
    }]);
  }
  return modes;
}

function graphVertex([kind, index, x, y], colourOf) {
  const node = kind === 0 ? inspect.nodes[index] : null, value = kind === 1 ? inspect.values[index] : null;
  if (!node && !value)
    return null;
  const [first, second] = node ? [node.op.replace(/-\d+$/, "").split(".").pop(), node.name] : [value.name, value.type + shapeText(value)];
  const box = svg("rect", { class: "vertex", x: x - BOX.width / 2, y, width: BOX.width, height: BOX.height, rx: node ? 5 : BOX.height / 2 });
  const group = svg("g", {}, box, svg("text", { x, y: y + 15, "font-weight": 650 }, shorten(first, 25)), svg("text", { x, y: y + 29 }, shorten(second, 25)),
    svg("title", {}, node ? `${node.name} (${node.op})\ncomputes: ${node.computes}${node.why_float ? `\nwhy float: ${node.why_float}` : ""}` : `${first}: ${second}`));
  const paint = () => {
    const colour = node ? colourOf(node) : null;
    box.setAttribute("style", colour ? `fill:color-mix(in srgb, ${colour[0]} ${colour[1]}%, var(--card));stroke:${colour[0]}` : "fill:var(--card);stroke:var(--soft)");
  };
  paint();
  return { group: node ? svg("a", { href: "#layer=" + encodeURIComponent(node.name), "aria-label": `${node.name}, ${node.op}, ${node.computes}` }, group) : group, paint };
}

function graphPart() {
  const graph = data.graph;
  if (!graph || !graph.vertices.length)
    return null;
  const modes = graphModes();
  let mode = compare ? modes[1] : modes[0], zoom = 1;
  const colourOf = (node) => {
    if (!mode[2])
      return [computeColour(node.computes), 34];
    const heat = mode[2](node.name);
    return Number.isNaN(heat) ? ["var(--floor)", 8] : heat < 0.12 ? ["var(--good)", 14] : ["var(--bad)", Math.round(14 + 60 * Math.min(1, heat))];
  };
  const root = svg("svg", { viewBox: `0 0 ${graph.width} ${graph.height}`, role: "group", "aria-label": `Graph of ${inspect.nodes.length} nodes, from inputs at the top to outputs` });
  root.append(svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, svg("path", { d: "M0 0L8 4L0 8z", fill: "var(--soft)" }))));
  for (const [from, to] of graph.edges) {
    const [kindA, , ax, ay] = graph.vertices[from], [kindB, , bx, by] = graph.vertices[to];
    const y = ay + (kindA === 2 ? BOX.height / 2 : BOX.height), end = by + (kindB === 2 ? BOX.height / 2 : 0), middle = (y + end) / 2;
    root.append(svg("path", { class: "edge", d: `M${ax} ${y}C${ax} ${middle} ${bx} ${middle} ${bx} ${end}`, "marker-end": kindB === 2 ? null : "url(#arrow)" }));
  }
  const drawn = graph.vertices.map((vertex) => graphVertex(vertex, colourOf)).filter(Boolean);
  root.append(...drawn.map((vertex) => vertex.group));
  const frameBox = el("div", { class: "graph", tabindex: 0, role: "region", "aria-label": "Graph; arrow keys scroll, Tab goes from node to node" }, root);
  const size = (to) => {
    zoom = Math.max(0.1, Math.min(2, to));
    root.setAttribute("width", Math.round(graph.width * zoom));
    root.setAttribute("height", Math.round(graph.height * zoom));
  };
  const fit = () => size(Math.min(1, (frameBox.clientWidth - 2) / graph.width));
  size(1);
  requestAnimationFrame(() => { size(Math.max(0.6, Math.min(1, (frameBox.clientWidth - 2) / graph.width))); frameBox.scrollLeft = (graph.width * zoom - frameBox.clientWidth) / 2; });
  const kinds = Object.keys(COMPUTES).filter((kind) => inspect.computes[kind] && kind !== "planning" && kind !== "unused");
  const legend = el("ul", { class: "legend" });
  const explain = () => legend.replaceChildren(...(mode[2] ? [["var(--good)", "good"], ["var(--bad)", mode[0] === "time" ? "slow: share of the slowest step" : "bad: from 40 dB (good) to 8 dB"], ["var(--floor)", "not measured"]] : kinds.map((kind) => [computeColour(kind), kind]))
    .map(([colour, text]) => el("li", {}, el("i", { style: `background:${colour}` }), text)));
  explain();
  const choice = el("select", { onchange: (event) => { mode = modes.find((m) => m[0] === event.target.value); drawn.forEach((vertex) => vertex.paint()); explain(); } },
    modes.map(([key, text]) => el("option", { value: key, selected: key === mode[0] }, text)));
  const box = el("figure", { "data-drawn": String(drawn.length > 0), "data-figure": "graph" },
    el("div", { class: "tools" }, modes.length > 1 ? el("label", {}, "Colour", choice) : null, el("button", { type: "button", "aria-label": "Zoom out", onclick: () => size(zoom / 1.25) }, "−"),
      el("button", { type: "button", "aria-label": "Zoom in", onclick: () => size(zoom * 1.25) }, "+"), el("button", { type: "button", onclick: fit }, "Fit width")), legend, frameBox);
  return part("graph", "Graph", "Each box opens its node. Nodes that are computed once, while planning, and initializers are left out.", box);
}
