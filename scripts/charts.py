#!/usr/bin/env python3
"""Operations a second by the size of data: one chart out of those that `thermocline-peers chart`
drew for each size, and the rates in them as a file.

    scripts/charts.py     reads docs/charts/peers-SIZEx-ROWB.svg, writes docs/charts/by-size.svg
                          and docs/benchmarks/raw/peers.csv
"""

import csv
import re
from math import log10
from pathlib import Path

CHARTS = Path(__file__).resolve().parents[1] / "docs/charts"
RATES = CHARTS.parent / "benchmarks/raw/peers.csv"
CELL = "Zipf 1, 90% reads, 16 in flight"
SYSTEMS = {"thermocline": "#0b6e99", "lmdb": "#d9a05b", "rocksdb-row-cache": "#8a8a8a"}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 320, 70, 180, 40, 50
LEAST, MOST = 1e4, 1e6


def rates():
    """Size, bytes of a row, cell, system and operations a second, by size."""
    found = []
    for path in CHARTS.glob("peers-*.svg"):
        size, row = re.fullmatch(r"peers-([\d.]+)x-(\d+)B", path.stem).groups()
        texts = re.findall(r"<text [^>]*>([^<]*)</text>", path.read_text())
        cell = system = None
        for text in texts:
            if text.endswith(", operations/s"):
                cell = text.split(" rows, ")[1].removesuffix(", operations/s")
            elif text.isdigit():
                found.append((float(size), int(row), cell, system, int(text)))
            elif text.startswith("bound "):
                found.append((float(size), int(row), cell, "bound", int(text.split()[1])))
            else:
                system = text
    return sorted(found)


def chart(found):
    sizes = sorted({size for size, row, cell, system, _ in found if cell == CELL and row == 1000})

    def across(size):
        return LEFT + (WIDTH - LEFT - RIGHT) * sizes.index(size) / (len(sizes) - 1)

    def down(rate):
        share = (log10(rate) - log10(LEAST)) / (log10(MOST) - log10(LEAST))
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{LEFT}" y="22" font-weight="bold">operations/s by size of data, {CELL}, rows of 1 KB</text>',
    ]
    for rate in (10_000, 30_000, 100_000, 300_000, 1_000_000):
        y = down(rate)
        out.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        shown = f"{rate:,}".replace(",", " ")
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{shown}</text>')
    for size in sizes:
        out.append(f'<text x="{across(size):.1f}" y="{HEIGHT - 28}" text-anchor="middle">{size:g}×</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    out.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">data, in memory limits of 256 MB</text>')
    heights = []
    for system, colour in SYSTEMS.items():
        points = [
            (across(size), down(rate), rate)
            for size, row, cell, name, rate in found
            if cell == CELL and row == 1000 and name == system
        ]
        line = "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in points)
        out.append(f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y, _ in points]
        x, y, rate = points[-1]
        while any(abs(y - other) < 15 for other in heights):
            y += 3
        heights.append(y)
        shown = f"{rate:,}".replace(",", " ")
        out.append(f'<text x="{x + 10:.1f}" y="{y + 4:.1f}" fill="{colour}">{system} {shown}</text>')
    return "\n".join(out + ["</svg>", ""])


found = rates()
with RATES.open("w", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["times_the_limit", "row_bytes", "cell", "system", "ops_per_s"])
    writer.writerows((f"{size:g}", *rest) for size, *rest in found)
(CHARTS / "by-size.svg").write_text(chart(found))
print(f"{len(found)} rates")
