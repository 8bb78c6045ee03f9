#!/usr/bin/env python3
"""Draws the losses of runs, training and validation, as an SVG picture: plot_metrics.py RUN... OUT.svg

RUN is a run folder or its metrics.jsonl. Several runs are drawn together. Losses that are not finite (of skipped
updates) and lines that are not rows of metrics are omitted. OUT must end in .svg and is never one of the inputs.
"""
import json
import math
import os
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, LEGEND = 720, 360, 60, 20, 40, 50, 18
COLOURS = ("#c03", "#06c", "#080", "#a50", "#707", "#088", "#555", "#c0c")


def metrics_file(path):
    return os.path.join(path, "metrics.jsonl") if os.path.isdir(path) else path


def parse(line):
    """(split, step, loss); None for rows without a loss. Raises ValueError, KeyError or TypeError for other lines."""
    row = json.loads(line)
    return (row["split"], int(row["step"]), float(row["loss"])) if row["split"] in ("train", "val") else None


def parse_all(path, lines):
    rows, foreign = [], []
    for number, line in enumerate(lines, 1):
        try:
            rows += [parse(line)] if line.strip() else []
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            foreign.append(number)
    if foreign and not any(rows):
        sys.exit(f"{path}:{foreign[0]}: not a row of metrics")
    if foreign:
        print(f"note: {path}:{foreign[0]}: not a row of metrics; {len(foreign)} of {len(lines)} lines are left out",
              file=sys.stderr)
    return [row for row in rows if row]


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n")
    except OSError as error:
        sys.exit(f"cannot read {path}: {error.strerror}")
    # A run that is still written to may end in half a row, without a line break.
    rows = parse_all(path, lines[:-1])
    losses = {s: [(step, loss) for split, step, loss in rows if split == s and math.isfinite(loss)]
              for s in ("train", "val")}
    if not losses["train"] + losses["val"]:
        sys.exit(f"{path}: no loss to draw")
    return losses


def name_of(path):
    parts = [p for p in os.path.abspath(path).split(os.sep) if p]
    return parts[-2] if len(parts) > 1 and parts[-1] == "metrics.jsonl" else parts[-1]


def tick(top):
    return 0.5 if 1 <= top < 3 else 1.0 if 3 <= top < 20 else 10.0 ** math.floor(math.log10(top))


def line(points, colour, x, y, more=""):
    path = " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{more}/>'


def key(at, height, colour, name, more=""):
    return (f'<line x1="{at}" y1="{height}" x2="{at + 20}" y2="{height}" stroke="{colour}" stroke-width="2"{more}/>'
            f'<text x="{at + 26}" y="{height + 4}">{escape(name)}</text>')


def draw(runs):
    """runs: [(name, losses)]"""
    points = [p for _, losses in runs for p in losses["train"] + losses["val"]]
    last, top = max(1, max(s for s, _ in points)), max(v for _, v in points)
    top = top if top > 0 else 1.0  # a text of one token has a loss of 0
    head = TOP if len(runs) == 1 else TOP + LEGEND * (len(runs) - 1)
    height = HEIGHT + head - TOP
    x = lambda step: LEFT + (WIDTH - LEFT - RIGHT) * step / last
    y = lambda loss: height - BOTTOM - (height - head - BOTTOM) * loss / top
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="13">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>']
    step = tick(top)
    for i in range(int(top / step) + 1):
        out.append(f'<line x1="{LEFT}" y1="{y(i * step):.1f}" x2="{WIDTH - RIGHT}" y2="{y(i * step):.1f}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 8}" y="{y(i * step) + 4:.1f}" text-anchor="end">{i * step:g}</text>')
    for i in range(5):
        s = last * i // 4
        out.append(f'<text x="{x(s):.1f}" y="{height - BOTTOM + 20}" text-anchor="middle">{s}</text>')
    if len(runs) == 1:
        losses = runs[0][1]
        for split, colour, name, at in (("train", "#888", "training", 0), ("val", "#c03", "validation", 110)):
            out += [line(losses[split], colour, x, y), key(LEFT + at, 20, colour, name)]
        if losses["val"]:
            out.append(f'<text x="{WIDTH - RIGHT}" y="24" text-anchor="end">validation loss at the end: '
                       f'{losses["val"][-1][1]:.3f} nats a token</text>')
    for number, (name, losses) in enumerate(runs if len(runs) > 1 else []):
        colour = COLOURS[number % len(COLOURS)]
        end = f': validation {losses["val"][-1][1]:.3f}' if losses["val"] else ""
        out += [line(losses["train"], colour, x, y, ' opacity="0.35"'), line(losses["val"], colour, x, y),
                key(LEFT, 20 + LEGEND * number, colour, f"{name}{end} (training: pale)")]
    out.append(f'<text x="{WIDTH / 2}" y="{height - 10}" text-anchor="middle">step</text></svg>')
    return "\n".join(out) + "\n"


def main():
    if len(sys.argv) < 3 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    *inputs, picture = sys.argv[1:]
    if not picture.lower().endswith(".svg") or os.path.isdir(picture):
        sys.exit(f"the last argument names the picture, which ends in .svg; got {picture}")
    paths = [metrics_file(path) for path in inputs]
    # A hard link or a symbolic one to an input is that input.
    for path in paths:
        if os.path.exists(picture) and os.path.exists(path) and os.path.samefile(path, picture):
            sys.exit(f"{picture}: is one of the inputs")
    if os.path.realpath(picture).lower().endswith(".jsonl"):
        sys.exit(f"{picture}: leads to a .jsonl file, which is never written over")
    text = draw([(name_of(path), read(path)) for path in paths])
    try:
        with open(picture, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        sys.exit(f"cannot write {picture}: {error.strerror}")


if __name__ == "__main__":
    main()
