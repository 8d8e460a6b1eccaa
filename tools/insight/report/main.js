/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the sections together. */

function cutNotice() {
  if (!data.cut || !data.cut.length)
    return null;
  return el("div", { class: "card notice" }, el("strong", {}, "This report is cut to a size that browsers open quickly. "), "Left out: ", data.cut.join("; "), ". The command with --json prints all of it.");
}

function markCurrent(parts) {
  const links = new Map(parts.map((p) => [p.element, byId("contents").querySelector(`a[href="#${p.id}"]`)])), seen = new Set();
  new IntersectionObserver((entries) => {
    for (const entry of entries)
      entry.isIntersecting ? seen.add(entry.target) : seen.delete(entry.target);
    const first = parts.find((p) => seen.has(p.element));
    for (const [element, link] of links)
      first && element === first.element ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
  }, { rootMargin: "-8% 0px -60% 0px" }).observe(parts[0].element);
  return parts;
}

function main() {
  indexLayers();
  const kind = compare ? "compare" : bench ? "bench --profile" : "inspect";
  const name = (compare || bench || inspect).model;
  byId("kind").textContent = `dqrun ${kind}${data.version ? ", version " + data.version : ""}`;
  byId("model").textContent = name.split("/").pop();
  byId("about").textContent = compare ? `${name} against ${compare.float_model || "reference values"}` : name;
  document.title = `${name.split("/").pop()}: dqrun ${kind}`;
  const summary = part("summary", "Summary", null, cutNotice(), compare ? compareSummary() : bench ? benchSummary() : null, inspect ? inspectSummary() : null, inspect && !compare ? interfaceCard() : null);
  const parts = [summary,
    ...(compare ? [verdictPart(), errorPart(), heatPart(), histogramPart(), weightPart()] : []),
    ...(bench ? [timePart(), rooflinePart(), stepPart()] : []),
    ...(inspect ? [compare || bench ? null : operatorPart(), graphPart(), memoryPart(), nodePart()] : []),
    compare && compare.unmatched.length ? part("unmatched", "Values without a match", "Values of the float model that no value of the quantized model stands for. “--map FLOAT=NAME” matches them.", card(el("p", { class: "names", style: "margin:0" }, compare.unmatched.join(", ")))) : null].filter(Boolean);
  byId("main").append(...parts.map((p) => p.element));
  byId("contents").append(el("ul", {}, parts.map((p) => el("li", {}, el("a", { href: "#" + p.id }, p.title)))));
  markCurrent(parts);
  addEventListener("hashchange", () => followAddress(location.hash));
  followAddress(location.hash);
}

main();
