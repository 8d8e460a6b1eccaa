#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens the reports of inspect, compare and bench in headless Chromium: report.py DQRUN

The reports are made of the shipped examples and of a small model with planted faults. In three widths, light and dark, each
figure must have drawn, nothing may be written to the console, no request may leave the file, and no part may be wider than
the window. Without Chromium these tests are skipped. The last line is `N passed, N failed, N skipped`.
"""

import html
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).parent))
import browser
import models

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SIZES = [(400, False), (900, True), (1600, False)]
EXPECTED = {  # figures that a report must have
    "inspect": {"operators", "graph", "memory", "buffer"},
    "compare": {"error by layer", "graph", "memory", "buffer", "histogram of conv1_relu"},
    "planted": {"error by layer", "graph", "histogram of relu1", "channels of w1_quantized"},
    "bench": {"time by operator", "time by layer", "roofline", "graph", "memory"},
}
FIGURES = "[...document.querySelectorAll('figure')].map(f => [f.dataset.figure, f.dataset.drawn, f.querySelectorAll('svg .mark, svg .vertex').length])"
# What is outside of the window without a part that scrolls.
TOO_WIDE = """[...document.querySelectorAll('main *')].filter(e => {
  const box = e.getBoundingClientRect();
  return box.width && box.right > innerWidth + 1 && !e.closest('.scroll, .graph, .canvas, .hidden');
}).map(e => e.tagName + '.' + e.className).slice(0, 5)"""
# Texts of one plot that cover each other. Names along an axis are slanted: their boxes tell nothing.
OVERLAPS = """[...document.querySelectorAll('figure .canvas svg')].flatMap(svg => {
  const boxes = [...svg.querySelectorAll('text')].filter(t => !t.hasAttribute('transform')).map(t => [t.textContent, t.getBoundingClientRect()]);
  const found = [];
  for (let i = 0; i < boxes.length; i++)
    for (let k = i + 1; k < boxes.length; k++) {
      const [a, b] = [boxes[i][1], boxes[k][1]];
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4)
        found.push(boxes[i][0] + ' | ' + boxes[k][0]);
    }
  return found;
}).slice(0, 5)"""

counts = {"passed": 0, "failed": 0, "skipped": 0}


def case(name, check):
    try:
        check()
        counts["passed"] += 1
    except Exception as error:  # noqa: BLE001
        counts["failed"] += 1
        print(f"FAILED {name}: {type(error).__name__}: {error}")


def planted(folder):
    """A model with a clipped range and weights of one scale."""
    model, feed = models.small_conv(), {"image": np.random.default_rng(0).normal(0, 1, (8, 3, 12, 12)).astype(np.float32)}
    quantizer = models.Quantizer(model, models.observe(model, feed), per_channel=False)
    quantizer.activations["relu1"][0] *= np.float32(0.25)
    quantizer.write(folder / "planted.onnx")
    onnx.save(model, folder / "planted_float.onnx")
    np.savez(folder / "planted.npz", **feed)
    return folder / "planted.onnx", folder / "planted.npz", "--float", folder / "planted_float.onnx"


def make(dqrun, folder):
    onnx.save(models.float_digits(EXAMPLES / "digits_qdq.onnx"), folder / "float.onnx")
    digits = EXAMPLES / "digits_qdq.onnx"
    commands = {
        "inspect": ["inspect", digits],
        "compare": ["compare", digits, EXAMPLES / "digits_test.npz", "--float", folder / "float.onnx", "--labels",
                    EXAMPLES / "digits_labels.npz", "--leave-one-out"],
        "planted": ["compare", *planted(folder)],
        "bench": ["bench", EXAMPLES / "digits_qoperator.onnx", EXAMPLES / "digits_test.npz", "--runs", "3"],
    }
    for name, command in commands.items():
        subprocess.run([dqrun, *map(str, command), "--report", str(folder / (name + ".html"))], check=True, stdout=subprocess.DEVNULL)
    return list(commands)


def embedded(path):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)[1])


def check_file(dqrun, folder, name):
    text = (folder / (name + ".html")).read_text()
    assert "http:" not in text and "https:" not in text, "the file names an address"
    assert not re.search(r"<(link|script|img)[^>]*(src|href)=\"(?!data:)", text), "the file names another one"
    data = embedded(folder / (name + ".html"))
    assert data["cut"] == [], data["cut"]
    if name == "inspect":
        got = subprocess.run([dqrun, "inspect", str(EXAMPLES / "digits_qdq.onnx"), "--json"], check=True, capture_output=True)
        assert data["inspect"] == json.loads(got.stdout)


def check_page(page, path, name, width, dark):
    page.open(path, width, 900, dark)
    figures = page.evaluate(FIGURES)
    missing = EXPECTED[name] - {figure for figure, _, _ in figures}
    assert not missing, f"no figure {missing}"
    empty = [figure for figure, drawn, marks in figures if drawn != "true" or not marks]
    assert not empty, f"nothing is drawn in {empty}"
    assert page.requests[1:] == [] or set(page.requests) == {page.requests[-1]}, page.requests
    words = page.evaluate("document.querySelector('main').textContent.match(/.{0,40}(?:undefined|NaN|\\[object).{0,20}/g)")
    assert not words, words
    for script in (TOO_WIDE, OVERLAPS):
        found = page.evaluate(script)
        assert not found, found
    check_quiet(page)


def check_quiet(page):
    assert not page.messages, page.messages


def check_links(page, path, name):
    """Each link to a layer opens it, the keyboard reaches a plot's values, tables sort."""
    page.open(path)
    links = page.evaluate("[...new Set([...document.querySelectorAll('main a[href^=\"#layer=\"]')].map(a => a.getAttribute('href')))]")
    assert links, "no link to a layer"
    for link in links[:12]:
        page.evaluate(f"location.hash = {json.dumps(link)}")
        page.settle()
        title = page.evaluate("document.querySelector('dialog[open] h2')?.textContent")
        assert title, f"{link} opens nothing"
        words = page.evaluate("document.querySelector('dialog').textContent.match(/.{0,40}(?:undefined|NaN|\\[object).{0,20}/g)")
        assert not words, f"{link}: {words}"
        empty = page.evaluate("[...document.querySelectorAll('dialog figure')].filter(f => f.dataset.drawn !== 'true').map(f => f.dataset.figure)")
        assert not empty, f"{link}: {empty}"
    page.press("Escape")
    page.settle()
    assert page.evaluate("!document.querySelector('dialog').open && !location.hash.startsWith('#layer=')"), "Escape does not close the layer"
    page.evaluate("document.querySelector('figure .canvas svg').focus()")
    page.press("ArrowRight")
    assert page.evaluate("!document.getElementById('tip').hidden && document.getElementById('tip').textContent"), "no text for a plot's value"
    if name != "inspect":
        page.evaluate("document.querySelectorAll('main thead button')[2].click()")
        assert page.evaluate("document.querySelector('main th[aria-sort]') !== null"), "the table does not sort"
    check_quiet(page)


def check_names(page):
    """Whatever has a role that needs a name has one."""
    unnamed = page.evaluate("""[...document.querySelectorAll('button, select, input, [role=region], [role=group], nav, dialog, section')]
        .filter(e => !e.getAttribute('aria-label') && !e.getAttribute('aria-labelledby') && !e.textContent.trim() && !e.closest('label'))
        .map(e => e.outerHTML.slice(0, 80))""")
    assert not unnamed, unnamed
    assert page.evaluate("document.documentElement.lang && document.title && document.querySelectorAll('h1').length === 1")


def check_frame(page, folder, name):
    """The page in a sandboxed frame, as notebooks show it: a link opens its layer."""
    text = (folder / (name + ".html")).read_text()
    frame = folder / "frame.html"
    frame.write_text(f'<!doctype html><title>notebook</title><iframe style="width:900px;height:800px" sandbox="allow-scripts" srcdoc="{html.escape(text)}"></iframe>')
    page.open(frame)
    page.settle()
    tree = page.send("Page.getFrameTree")["frameTree"]["childFrames"]
    world = page.send("Page.createIsolatedWorld", frameId=tree[0]["frame"]["id"])["executionContextId"]

    def inside(script):
        return page.send("Runtime.evaluate", expression=script, contextId=world, returnByValue=True)["result"].get("value")

    drawn = inside("[...document.querySelectorAll('figure')].every(f => f.dataset.drawn === 'true') && document.querySelectorAll('figure').length")
    assert drawn, "the frame has figures that are not drawn"
    inside("document.querySelector('main a[href^=\"#layer=\"]').click()")
    page.settle()
    assert inside("document.querySelector('dialog[open] h2')?.textContent"), "a link in the frame opens nothing"
    check_quiet(page)


def check_limit(dqrun, folder):
    """Over the limit the page is cut and says so: a model of 6,000 nodes."""
    nodes = [onnx.helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"], name=f"a rather long name of node number {i:06} <b>") for i in range(6000)]
    info = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [4]) for n in ("v0", "v6000")]
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph(nodes, "many", info[:1], info[1:]), opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), folder / "many.onnx")
    subprocess.run([dqrun, "inspect", str(folder / "many.onnx"), "--report", str(folder / "many.html")], check=True, stdout=subprocess.DEVNULL)
    assert (folder / "many.html").stat().st_size < 9 << 20
    assert any("graph" in text for text in embedded(folder / "many.html")["cut"])


def main():
    dqrun = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kinds = make(dqrun, folder)
        for kind in kinds:
            case(f"file of {kind}", lambda kind=kind: check_file(dqrun, folder, kind))
        case("size limit", lambda: check_limit(dqrun, folder))
        if not browser.find():
            counts["skipped"] += len(kinds) * (len(SIZES) + 2) + 2
        else:
            with browser.Browser() as page:
                for kind in kinds:
                    for width, dark in SIZES:
                        case(f"{kind}, {width} wide", lambda k=kind, w=width, d=dark: check_page(page, folder / (k + ".html"), k, w, d))
                    case(f"links of {kind}", lambda k=kind: check_links(page, folder / (k + ".html"), k))
                    case(f"names of {kind}", lambda: check_names(page))
                case("page in a frame", lambda: check_frame(page, folder, "compare"))
                case("page of a model that is cut", lambda: (page.open(folder / "many.html"), check_quiet(page)))
    print(", ".join(f"{n} {word}" for word, n in counts.items()))
    sys.exit(counts["failed"] > 0)


if __name__ == "__main__":
    main()
