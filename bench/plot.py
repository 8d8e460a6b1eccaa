# SPDX-License-Identifier: Apache-2.0
"""Ratios as bars on a logarithmic scale, in SVG."""

import math
from xml.sax.saxutils import escape

COLOURS = ("#2b6cb0", "#dd8b1f", "#5a9e4b")
LABELS, WIDTH, BAR, TOP = 370, 940, 9, 58  # pixels: names of cases, whole width, height of a bar, above the first


def place(ratio, low, high):
    """Pixels from the left, for a ratio on the scale from low to high."""
    share = math.log(min(max(ratio, low), high) / low) / math.log(high / low)
    return LABELS + share * (WIDTH - LABELS - 50)


def text(x, y, words, more=""):
    return f'<text x="{x:.0f}" y="{y:.0f}" {more}>{escape(words)}</text>'


def draw(rows, peers, heading):
    """rows: of compare.py; peers: titles by name. A bar begins at 1: to the right where dqrun is faster."""
    ratios = [ms / row["ms"] for row in rows for ms in row["peers"].values()]
    low, high = 0.25, max(4, min(32, 2 ** math.ceil(math.log2(max(ratios, default=1)))))
    step = BAR * len(peers) + 8
    height = TOP + step * len(rows) + 10
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
           text(10, 20, f"Time of others by dqrun's: {heading}", 'font-size="14" font-weight="bold"')]
    for i, (name, colour) in enumerate(zip(peers.values(), COLOURS)):
        out += [f'<rect x="{LABELS + 200 * i}" y="30" width="10" height="10" fill="{colour}"/>', text(LABELS + 14 + 200 * i, 39, name)]
    for power in range(round(math.log2(low)), round(math.log2(high)) + 1):
        x = place(2.0**power, low, high)
        out += [f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 4}" y2="{height - 8}" stroke="{"#444" if power == 0 else "#ddd"}"/>',
                text(x, TOP - 6, f"{2.0 ** power:g}", 'text-anchor="middle" font-size="10" fill="#666"')]
    for i, row in enumerate(rows):
        y = TOP + step * i
        out.append(text(LABELS - 8, y + step / 2 + 1, row["case"], 'text-anchor="end"'))
        for j, (peer, colour) in enumerate(zip(peers, COLOURS)):
            if peer not in row["peers"]:
                continue
            ratio = row["peers"][peer] / row["ms"]
            start, end = sorted((place(1, low, high), place(ratio, low, high)))
            bar = y + BAR * j + 2
            out += [f'<rect x="{start:.1f}" y="{bar}" width="{max(end - start, 0.5):.1f}" height="{BAR - 1}" fill="{colour}"/>',
                    text(end + 3, bar + BAR - 1, f"{ratio:.2f}", 'font-size="9" fill="#444"')]
    return "\n".join([*out, "</svg>", ""])
