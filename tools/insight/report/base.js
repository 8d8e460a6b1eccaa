/* SPDX-License-Identifier: Apache-2.0 */
/* The analysis, elements, and numbers as texts. */
const data = JSON.parse(document.getElementById("data").textContent);
const compare = data.compare, inspect = data.inspect, bench = data.bench;
const byId = (id) => document.getElementById(id);
const SVG = byId("icon").namespaceURI;

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on"))
      element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}
const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

/* ---- Numbers ------------------------------------------------------------------------------------------------ */

/* JSON writes NaN and infinities as texts. */
const num = (value) => (value === null || value === undefined ? NaN : Number(value));
const isNumber = (value) => Number.isFinite(num(value));
const NOTHING = "–";

function sig(value, digits = 4) {
  const x = num(value);
  if (Number.isNaN(x))
    return NOTHING;
  if (!Number.isFinite(x))
    return x > 0 ? "∞" : "−∞";
  const size = Math.abs(x);
  const text = size !== 0 && (size < 1e-4 || size >= 1e6) ? x.toExponential(digits - 2) : String(Number(x.toPrecision(digits)));
  return text.replace("-", "−");
}
const fixed = (value, places) => (isNumber(value) ? num(value).toFixed(places).replace(/^-(?=[0.]*$)/, "").replace("-", "−") : sig(value));
/* An infinite ratio: nothing differs. */
function db(value) {
  const x = num(value);
  return x === Infinity ? "exact" : Number.isFinite(x) ? fixed(x, 1) : sig(x);
}
const withDb = (value) => db(value) + (isNumber(value) ? " dB" : "");
const percent = (value, places = 1) => (isNumber(value) ? fixed(100 * num(value), places) + " %" : NOTHING);
/* Small shares keep a digit: 0.004 %. */
function share(value) {
  const x = num(value) * 100;
  if (!Number.isFinite(x))
    return NOTHING;
  return (x === 0 || x >= 10 ? x.toFixed(x === 0 ? 0 : 1) : x >= 0.01 ? x.toFixed(2) : "<0.01") + " %";
}
function scaled(value, base, units, unit) {
  let x = num(value), step = 0;
  if (!Number.isFinite(x))
    return NOTHING;
  for (; Math.abs(x) >= base && step < units.length - 1; step++)
    x /= base;
  const digits = Math.abs(x) >= 100 || (step === 0 && Number.isInteger(x)) ? 0 : Math.abs(x) >= 10 ? 1 : 2;
  return `${x.toFixed(digits)} ${units[step]}${unit}`.trim();
}
const bytes = (value) => scaled(value, 1024, ["bytes", "KiB", "MiB", "GiB", "TiB"], "");
const metric = (value, unit) => scaled(value, 1000, ["", "k", "M", "G", "T", "P"], unit);
const count = (value, one, many) => `${num(value).toLocaleString("en")} ${num(value) === 1 ? one : many || one + "s"}`;
const ms = (value) => (num(value) >= 100 ? fixed(value, 1) : num(value) >= 1 ? fixed(value, 3) : fixed(num(value) * 1000, 1))
  + (num(value) >= 1 ? " ms" : " µs");

const shorten = (text, most) => (text.length > most ? text.slice(0, Math.ceil(most / 2) - 1) + "…" + text.slice(text.length - Math.floor(most / 2)) : text);
const sum = (list) => list.reduce((a, b) => a + b, 0);
/* Of long lists; Math.max(...list) has a limit. */
const largest = (list, start = -Infinity) => list.reduce((a, b) => (b > a ? b : a), start);
const least = (list, start = Infinity) => list.reduce((a, b) => (b < a ? b : a), start);
const worstOf = (error) => (error ? num(error.sqnr_db) : NaN);

/* ---- Layers ------------------------------------------------------------------------------------------------- */

/* A layer is a node of the model, by name, with what each analysis says of it; an input is one, too. */
const layers = new Map();

function layerOf(name) {
  if (!layers.has(name))
    layers.set(name, { name, values: [], weights: [], verdicts: [], times: [], node: null });
  return layers.get(name);
}
const keyOf = (value) => value.node || value.quantizer || value.name;
const layerLink = (name, text) => (name && layers.has(name) ? el("a", { href: "#layer=" + encodeURIComponent(name) }, text || name) : text || name || NOTHING);
/* The frame of a notebook has no address of its own: links are followed by the script. */
const isFramed = location.protocol === "about:";
const openLayer = (name) => (isFramed ? showLayer(name) : void (location.hash = "layer=" + encodeURIComponent(name)));

function indexLayers() {
  for (const node of inspect ? inspect.nodes : [])
    layerOf(node.name).node = node;
  for (const value of compare ? compare.values : [])
    layerOf(keyOf(value)).values.push(value);
  for (const weight of compare ? compare.weights : [])
    layerOf(weight.node || weight.name).weights.push(weight);
  for (const verdict of compare ? compare.verdicts : []) {
    const value = compare.values[verdict.pair];
    layerOf(value ? keyOf(value) : verdict.node).verdicts.push(verdict);
  }
  for (const step of bench && bench.steps ? bench.steps : []) {
    layerOf(step.node).times.push(step);
  }
}
