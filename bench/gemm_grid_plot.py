# SPDX-License-Identifier: Apache-2.0
"""The heat map of gemm_grid.py in SVG: a row of panels for each product, a panel for each K, a cell for each M and N."""

from gemm_grid_models import PRODUCTS
from plot import text

CELL, LEFT, TOP, GAP, HEAD = 15, 66, 84, 14, 40  # pixels
# Share of the limit, upper end of each colour.
COLOURS = ((0.2, "#7f1d1d"), (0.4, "#d9480f"), (0.6, "#f59f00"), (0.75, "#ffe066"), (0.85, "#c0eb75"), (0.95, "#51a63f"), (9, "#1b5e20"))


def colour(share):
    return next(c for most, c in COLOURS if share < most)


def legend():
    low = 0
    for i, (most, c) in enumerate(COLOURS):
        x = LEFT + 108 * i
        yield f'<rect x="{x}" y="34" width="12" height="12" fill="{c}"/>'
        yield text(x + 17, 44, f"{low:.0%} to {most:.0%}" if most < 1 else f"{low:.0%} and more")
        low = most
    yield f'<circle cx="{LEFT + 6}" cy="60" r="3.5" fill="white" stroke="black"/>'
    yield text(LEFT + 17, 64, "cliff: below 0.9 of the rate of a neighbour that is smaller in one dimension, and the limits do not explain it")


def panel(x, y, k, cells, fallen, share, ms, ns):
    yield text(x, y - 18, f"K = {k}", 'font-size="11" font-weight="bold"')
    for j, n in enumerate(ns):
        yield text(x + CELL * j + CELL / 2 + 3, y - 3, str(n), f'font-size="7" fill="#555" transform="rotate(-50 {x + CELL * j + CELL / 2} {y - 3})"')
    yield f'<rect x="{x}" y="{y}" width="{CELL * len(ns)}" height="{CELL * len(ms)}" fill="#f3f3f3"/>'
    for p in cells:
        at = x + CELL * ns.index(p.n), y + CELL * ms.index(p.m)
        yield (f'<rect x="{at[0]}" y="{at[1]}" width="{CELL - 1}" height="{CELL - 1}" fill="{colour(share(p))}">'
               f"<title>{p.m}×{p.k}×{p.n}: {share(p):.2f}</title></rect>")
        if p in fallen:
            yield f'<circle cx="{at[0] + CELL / 2 - 0.5}" cy="{at[1] + CELL / 2 - 0.5}" r="3" fill="white" stroke="black"/>'


def draw(points, fallen, share, heading):
    """points: of gemm_grid.py; fallen: the cliffs among them; share: of the limit."""
    ks, ms, ns = (sorted({getattr(p, field) for p in points}) for field in "kmn")
    names = list(dict.fromkeys(p.product for p in points))
    width = LEFT + len(ks) * (CELL * len(ns) + GAP)
    step = HEAD + CELL * len(ms) + 26
    height = TOP + step * len(names)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           text(10, 20, f"Share of the limit by M (down) and N (across): {heading}", 'font-size="14" font-weight="bold"'), *legend()]
    for row, name in enumerate(names):
        y = TOP + step * row + HEAD
        out.append(text(10, y - 34 + 4, PRODUCTS[name].title, 'font-size="13" font-weight="bold"'))
        out += [text(LEFT - 6, y + CELL * i + 11, f"M = {m}" if i == 0 else str(m), 'font-size="9" fill="#555" text-anchor="end"') for i, m in enumerate(ms)]
        for column, k in enumerate(ks):
            cells = [p for p in points if p.product == name and p.k == k]
            out += panel(LEFT + column * (CELL * len(ns) + GAP), y, k, cells, fallen, share, ms, ns)
    return "\n".join([*out, "</svg>", ""])
