/* SPDX-License-Identifier: Apache-2.0 */
/* Tables whose columns sort, with a filter where they are long. */

const FIRST_ROWS = 100;

/* A column: {title, hint, get(row): what sorts, show(row): text or element, words: text column, long: wraps, heat(row): 0..1
 * or NaN, worst: "low" or "high" sorts first}. */
function cellOf(column, row, isFirst) {
  const value = column.show ? column.show(row) : column.get(row);
  const heat = column.heat ? column.heat(row) : NaN, warm = heat > 0.02;
  const kind = [column.words ? "words" : "", column.long ? "long" : "", warm ? "heat" : ""].join(" ").trim();
  return el(isFirst ? "th" : "td", { class: kind || null, scope: isFirst ? "row" : null, style: warm ? `--heat:${Math.min(1, heat).toFixed(2)}` : null },
    value === null || value === undefined || value === "" ? NOTHING : value);
}

function compareCells(a, b) {
  if (typeof a === "string" || typeof b === "string")
    return String(a).localeCompare(String(b), "en", { numeric: true });
  return a - b;
}

/* Rows without a number come last in both directions. */
function sortRows(rows, column, descending) {
  const missing = (value) => value === null || value === undefined || Number.isNaN(value);
  return rows.map((row, i) => ({ row, i, key: column.get(row) })).sort((a, b) => {
    if (missing(a.key) || missing(b.key))
      return missing(a.key) - missing(b.key) || a.i - b.i;
    return (descending ? -1 : 1) * compareCells(a.key, b.key) || a.i - b.i;
  }).map((item) => item.row);
}

/* options: caption, columns, rows, filter(row) → text to search, sort: [column index, descending]; small: no tools. */
function sortTable(options) {
  const { columns, rows } = options;
  let [at, descending] = options.sort || [-1, false], all = rows.length <= FIRST_ROWS, words = "";
  const body = el("tbody"), status = el("span", { role: "status" });
  const heads = columns.map((column, i) => el("th", { scope: "col", class: column.words ? "words" : null, title: column.hint || null },
    el("button", { type: "button", onclick: () => sortBy(i) }, column.title)));
  const more = el("button", { type: "button", onclick: () => { all = true; draw(); } });

  function draw() {
    let list = at < 0 ? rows : sortRows(rows, columns[at], descending);
    if (words)
      list = list.filter((row) => options.filter(row).toLowerCase().includes(words));
    const shown = all ? list : list.slice(0, FIRST_ROWS);
    body.replaceChildren(...shown.map((row) => el("tr", {}, columns.map((column, i) => cellOf(column, row, i === 0)))));
    heads.forEach((head, i) => (i === at ? head.setAttribute("aria-sort", descending ? "descending" : "ascending") : head.removeAttribute("aria-sort")));
    status.textContent = shown.length < rows.length ? `${shown.length} of ${rows.length}` : `${rows.length}`;
    more.hidden = shown.length === list.length;
    more.textContent = `Show all ${list.length}`;
  }
  function sortBy(i) {
    descending = i === at ? !descending : columns[i].worst === "high";
    at = i;
    draw();
  }
  draw();
  const table = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": options.caption },
    el("table", {}, el("caption", { class: "hidden" }, options.caption), el("thead", {}, el("tr", {}, heads)), body));
  if (options.small || rows.length <= 8)
    return table;
  const search = options.filter && el("label", {}, "Filter", el("input", {
    type: "search", oninput: (event) => { words = event.target.value.trim().toLowerCase(); draw(); } }));
  return el("div", {}, el("div", { class: "tools" }, search, el("span", {}, "Rows: ", status), more), table);
}

/* A list of terms: [[term, text or element], …]; empty ones are left out. */
const facts = (pairs) => el("dl", { class: "facts" }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== NOTHING)
  .map(([term, value]) => [el("dt", {}, term), el("dd", {}, value)]));

/* Key figures: [[term, value, small text, class], …]. */
const keyFigures = (list) => el("dl", { class: "keys" }, list.filter(Boolean).map(([term, value, small, kind]) =>
  el("div", { class: "key" }, el("dt", {}, term), el("dd", { class: kind || null }, value, small && el("small", {}, small)))));

const part = (id, title, lead, ...children) => ({ id, title, element: el("section", { class: "part", id, "aria-labelledby": id + "-title" },
  el("h2", { id: id + "-title", tabindex: -1 }, title), lead && el("p", { class: "lead" }, lead), children) });
const card = (...children) => el("div", { class: "card" }, children);

/* Text to paste, with a button that copies it. */
function paste(text) {
  const button = el("button", { type: "button", onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const range = document.createRange(); /* a file that may not write to the clipboard: select for Ctrl+C */
      range.selectNodeContents(pre);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      button.textContent = "Selected";
      return;
    }
    button.textContent = "Copied";
  } }, "Copy");
  const pre = el("pre", { tabindex: 0 }, text);
  return el("div", { class: "paste" }, pre, button);
}
