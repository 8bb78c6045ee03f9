#!/usr/bin/env python3
"""Draws the losses of a run, training and validation, as an SVG picture: plot_metrics.py RUN/metrics.jsonl OUT.svg

Losses that are no finite number (of updates that were skipped) are left out.
"""
import json
import math
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 360, 60, 20, 40, 50


def read(path):
    rows = [json.loads(line) for line in open(path, encoding="utf-8")]
    return {s: [(r["step"], float(r["loss"])) for r in rows if r["split"] == s and math.isfinite(float(r["loss"]))]
            for s in ("train", "val")}


def draw(losses):
    points = losses["train"] + losses["val"]
    last, top = max(s for s, _ in points), max(v for _, v in points)
    x = lambda step: LEFT + (WIDTH - LEFT - RIGHT) * step / last
    y = lambda loss: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * loss / top
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="13">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    step = 0.5 if top < 3 else 1.0 if top < 20 else 10.0 ** math.floor(math.log10(top))
    for i in range(int(top / step) + 1):
        out.append(f'<line x1="{LEFT}" y1="{y(i * step):.1f}" x2="{WIDTH - RIGHT}" y2="{y(i * step):.1f}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 8}" y="{y(i * step) + 4:.1f}" text-anchor="end">{i * step:g}</text>')
    for i in range(5):
        s = last * i // 4
        out.append(f'<text x="{x(s):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{s}</text>')
    for split, colour, name, at in (("train", "#888", "training", 0), ("val", "#c03", "validation", 110)):
        path = " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in losses[split])
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out.append(f'<line x1="{LEFT + at}" y1="20" x2="{LEFT + at + 20}" y2="20" stroke="{colour}" stroke-width="2"/>'
                   f'<text x="{LEFT + at + 26}" y="24">{name}</text>')
    if losses["val"]:
        out.append(f'<text x="{WIDTH - RIGHT}" y="24" text-anchor="end">validation loss at the end: '
                   f'{losses["val"][-1][1]:.3f} nats a character</text>')
    out.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">step</text></svg>')
    return "\n".join(out) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    losses = read(sys.argv[1])
    if not losses["train"] + losses["val"]:
        sys.exit(f"{sys.argv[1]}: no loss to draw")
    open(sys.argv[2], "w", encoding="utf-8").write(draw(losses))


if __name__ == "__main__":
    main()
