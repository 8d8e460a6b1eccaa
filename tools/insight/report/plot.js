/* SPDX-License-Identifier: Apache-2.0 */
/* Figures: axes, marks that the pointer and the keyboard reach, and a table as the text alternative. */

/* ---- Tooltip ------------------------------------------------------------------------------------------------ */

const tip = byId("tip");

function showTip(text, x, y) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(6, Math.min(x + 14, innerWidth - box.width - 6)) + "px";
  tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(6, y - box.height - 12) : y + 18) + "px";
}
const hideTip = () => { tip.hidden = true; };

/* Dialogs are above the page, and so must be the tooltip. */
const moveTip = () => { (byId("layer").open ? byId("layer") : document.body).append(tip); };

/* Marks: {element, text, layer}. The pointer shows a mark's text, a click opens its layer. With the keyboard the plot is
 * one stop: arrow keys go from mark to mark, Enter opens. */
function makeReachable(root, marks) {
  let at = -1;
  const nodes = new Map(marks.map((mark, i) => [mark.element, i]));
  const select = (i) => {
    if (at >= 0)
      marks[at].element.classList.remove("on");
    at = i;
    if (i < 0)
      return hideTip();
    const { element, text } = marks[i];
    element.classList.add("on");
    element.scrollIntoView({ block: "nearest", inline: "nearest" });
    const box = element.getBoundingClientRect();
    showTip(text, box.left + box.width / 2, box.top + box.height / 2);
  };
  const markAt = (event) => nodes.get(event.target.closest ? event.target.closest(".mark") : null);
  root.addEventListener("pointermove", (event) => {
    const i = markAt(event);
    if (i === undefined)
      return hideTip();
    showTip(marks[i].text, event.clientX, event.clientY);
  });
  root.addEventListener("pointerleave", hideTip);
  root.addEventListener("click", (event) => {
    const i = markAt(event);
    if (i !== undefined && marks[i].layer)
      openLayer(marks[i].layer);
  });
  root.addEventListener("blur", () => select(-1));
  root.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
    if (event.key in steps)
      select(Math.max(0, Math.min(marks.length - 1, at + steps[event.key])));
    else if (event.key === "Enter" && at >= 0 && marks[at].layer)
      openLayer(marks[at].layer);
    else if (event.key === "Escape" && at >= 0)
      select(-1);
    else
      return;
    event.preventDefault();
    event.stopPropagation();
  });
  for (const { element, layer } of marks)
    element.classList.add("mark", ...(layer ? ["open"] : []));
}

/* ---- Figures ------------------------------------------------------------------------------------------------ */

const redraws = new Map(); /* by element whose width a drawing follows */
const watcher = new ResizeObserver((entries) => {
  for (const entry of entries) {
    const draw = redraws.get(entry.target);
    if (!entry.target.isConnected)
      redraws.delete(entry.target), watcher.unobserve(entry.target);
    else if (draw)
      requestAnimationFrame(draw);
  }
});

/* options: title, note, legend: [[colour, text, is a line]], label: the plot in a sentence, draw(width) → {root, marks},
 * table: () → element. The figure's data-drawn tells whether its marks are there. */
function figure(options) {
  const canvas = el("div", { class: "canvas" });
  const legend = options.legend && el("ul", { class: "legend" }, options.legend.map(([colour, text, line]) =>
    el("li", {}, el("i", { class: line ? "line" : "", style: `background:${colour}` }), text)));
  const box = el("figure", { "data-drawn": "false", "data-figure": options.name || options.title },
    options.title && el("figcaption", {}, options.title), options.note && el("p", { class: "note" }, options.note), legend, canvas);
  let drawn = 0;
  const draw = () => {
    const width = Math.floor(canvas.clientWidth);
    if (!width || width === drawn)
      return;
    drawn = width;
    const { root, marks } = options.draw(width);
    const keys = marks.some((mark) => mark.layer) ? "Arrow keys move between values, Enter opens the layer." : "Arrow keys move between values.";
    fill(root, { tabindex: 0, role: "group", "aria-roledescription": "plot", "aria-label": `${options.label || options.title}. ${keys}` }, []);
    makeReachable(root, marks);
    canvas.replaceChildren(root);
    box.dataset.drawn = String(marks.length > 0);
  };
  redraws.set(canvas, draw);
  watcher.observe(canvas);
  if (options.table) {
    const details = el("details", { class: "alternative" }, el("summary", {}, "These values as a table"));
    details.addEventListener("toggle", () => {
      if (details.open && details.childElementCount === 1)
        details.append(options.table());
    });
    box.append(details);
  }
  return box;
}

/* ---- Axes --------------------------------------------------------------------------------------------------- */

function niceTicks(low, high, most) {
  const rough = (high - low) / Math.max(1, most), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++)
    ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

/* Whole numbers of bytes, KiB, MiB…: steps are powers of two. */
function byteTicks(low, high, most) {
  const step = 2 ** Math.ceil(Math.log2(Math.max(1, (high - low) / Math.max(1, most)))), ticks = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step)
    ticks.push(at);
  return ticks;
}

function linear(low, high, from, to) {
  const place = (x) => from + ((x - low) / (high - low || 1)) * (to - from);
  place.ticks = (most) => niceTicks(low, high, most);
  return place;
}
function logarithmic(low, high, from, to) {
  const a = Math.log10(low), b = Math.log10(high), place = (x) => from + ((Math.log10(x) - a) / (b - a || 1)) * (to - from);
  place.ticks = (most) => {
    const ticks = [], every = Math.max(1, Math.ceil((b - a) / most)), steps = b - a < 2 ? [1, 2, 5] : [1];
    for (let power = Math.floor(a); power <= b + 1e-9; power += every)
      ticks.push(...steps.map((step) => step * 10 ** power).filter((tick) => tick >= low * 0.999 && tick <= high * 1.001));
    return ticks.length > 1 ? ticks : [low, high];
  };
  return place;
}

/* A drawing of that size with the space that axes take. */
function frame(width, height, margin) {
  const m = { left: 50, right: 14, top: 12, bottom: 34, ...margin };
  const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  return { root, m, width, height, left: m.left, right: width - m.right, top: m.top, bottom: height - m.bottom };
}
function yAxis(f, place, text, ticks, title) {
  for (const tick of ticks) {
    const y = place(tick);
    f.root.append(svg("line", { class: "gridline", x1: f.left, x2: f.right, y1: y, y2: y }),
      svg("text", { x: f.left - 7, y: y + 4, "text-anchor": "end" }, text(tick)));
  }
  if (title)
    f.root.append(svg("text", { x: 12, y: (f.top + f.bottom) / 2, transform: `rotate(-90 12 ${(f.top + f.bottom) / 2})`, "text-anchor": "middle" }, title));
}
function xAxis(f, place, text, ticks, title) {
  f.root.append(svg("line", { class: "axis", x1: f.left, x2: f.right, y1: f.bottom, y2: f.bottom }));
  for (const tick of ticks) {
    const x = place(tick), label = text(tick), half = label.length * 3.2;
    const anchor = x + half > f.width ? "end" : x - half < 0 ? "start" : "middle";
    f.root.append(svg("line", { class: "axis", x1: x, x2: x, y1: f.bottom, y2: f.bottom + 4 }),
      svg("text", { x: anchor === "end" ? f.width - 1 : x, y: f.bottom + 17, "text-anchor": anchor }, label));
  }
  if (title)
    f.root.append(svg("text", { x: (f.left + f.right) / 2, y: f.height - 2, "text-anchor": "middle" }, title));
}

/* Names along an axis, slanted; of many every n-th. Returns what to add to the bottom margin. */
const NAME_CHARACTERS = 18;
const nameEvery = (step) => Math.max(1, Math.ceil(15 / step));
const nameSpace = (names, step) => 22 + 4.6 * Math.min(NAME_CHARACTERS, largest(names.filter((name, i) => i % nameEvery(step) === 0).map((name) => name.length), 1));
function nameAxis(f, names, place, step) {
  const every = nameEvery(step);
  f.root.append(svg("line", { class: "axis", x1: f.left, x2: f.right, y1: f.bottom, y2: f.bottom }));
  names.forEach((name, i) => {
    if (i % every)
      return;
    const x = place(i);
    f.root.append(svg("text", { x, y: f.bottom + 12, "text-anchor": "end", transform: `rotate(-45 ${x} ${f.bottom + 12})` }, shorten(name, NAME_CHARACTERS)));
  });
}

/* Horizontal bars with names: rows of {name, parts: [[length, colour]], label, text, layer}. */
function barPlot(rows, width) {
  const ROW = 24, names = Math.min(Math.round(width * 0.36), 260), characters = Math.max(8, Math.floor((names - 12) / 7.3));
  const f = frame(width, rows.length * ROW + 8, { left: names, right: 74, top: 4, bottom: 4 });
  const most = largest(rows.map((row) => sum(row.parts.map(([length]) => length))), 0) || 1;
  const place = linear(0, most, f.left, f.right), marks = [];
  rows.forEach((row, i) => {
    const y = f.top + i * ROW, group = svg("g", {});
    let at = f.left;
    group.append(svg("rect", { x: 0, y, width, height: ROW, fill: "transparent" }));
    for (const [length, colour] of row.parts) {
      const end = at + (place(length) - f.left);
      group.append(svg("rect", { x: at, y: y + 4, width: Math.max(end - at, length > 0 ? 1 : 0), height: ROW - 8, fill: colour, rx: 2 }));
      at = end;
    }
    group.append(svg("text", { x: f.left - 8, y: y + 16, "text-anchor": "end" }, shorten(row.name, characters)),
      svg("text", { class: "strong", x: at + 6, y: y + 16 }, row.label));
    f.root.append(group);
    marks.push({ element: group, text: row.text || `${row.name}\n${row.label}`, layer: row.layer });
  });
  return { root: f.root, marks };
}
