"""What became of the mutants: a summary for the terminal and the tables of docs/proof.md."""
import tomllib
from collections import Counter

BEGIN, END = "<!-- mutants: written by tools/mutate/mutate.py --report -->", "<!-- end of mutants -->"
COLUMNS = ["killed", "survived", "equivalent", "did not compile", "not tried"]


def read_reasons(path):
    """Key of a mutant -> why no test can tell it from the original."""
    entries = tomllib.loads(path.read_text()).get("equivalent", []) if path.exists() else []
    return {e["key"]: e for e in entries}


def verdict_of(mutant, rows, reasons):
    row = rows.get(mutant.key)
    if row and row["verdict"] == "killed":
        return "killed"  # also where a reason claims otherwise
    if mutant.key in reasons:
        return "equivalent"
    return row["verdict"] if row else "not tried"


def counts_by(mutants, rows, reasons, group):
    table = {}
    for mutant in mutants:
        table.setdefault(group(mutant), Counter())[verdict_of(mutant, rows, reasons)] += 1
    return table


def score(total):
    decided = total["killed"] + total["survived"]
    return 100.0 * total["killed"] / decided if decided else 0.0


def summary(mutants, rows, reasons, whole=True):
    total = sum(counts_by(mutants, rows, reasons, lambda m: "").values(), Counter())
    lines = [f"{len(mutants)} mutants: " + ", ".join(f"{total[c]} {c}" for c in COLUMNS if total[c]),
             f"mutation score {score(total):.1f} % (killed of those that compile and are not equivalent)"]
    stale = sorted(set(reasons) - {m.key for m in mutants})
    if stale and whole:
        lines.append(f"{len(stale)} entries of equivalent.toml name no mutant of this set")
    wrong = [k for k in reasons if rows.get(k, {}).get("verdict") == "killed"]
    if wrong:
        lines.append("called equivalent, but killed: " + ", ".join(wrong))
    return "\n".join(lines)


def _table(title, table):
    lines = [f"| {title} | " + " | ".join(COLUMNS[:4]) + " |", "|---|" + "---|" * 4]
    for name, counts in table.items():
        lines.append(f"| {name} | " + " | ".join(str(counts[c]) if counts[c] else "" for c in COLUMNS[:4]) + " |")
    return lines


def write(path, mutants, rows, reasons):
    by_file = counts_by(mutants, rows, reasons, lambda m: f"`{m.path}`")
    by_operator = counts_by(sorted(mutants, key=lambda m: m.operator), rows, reasons, lambda m: m.operator)
    by_place = counts_by(sorted(mutants, key=lambda m: not m.backward), rows, reasons,
                         lambda m: "backward passes" if m.backward else "everything else")
    lines = [BEGIN, "", summary(mutants, rows, reasons).replace("\n", "; ") + ".", ""]
    lines += _table("where", by_place) + [""] + _table("mistake", by_operator) + [""] + _table("file", by_file) + [""]
    kept = [m for m in mutants if verdict_of(m, rows, reasons) == "equivalent"]
    groups = {}
    for mutant in kept:
        groups.setdefault(reasons[mutant.key]["reason"], []).append(mutant)
    lines += ["Equivalent mutants, and why no test can see them:", ""]
    for reason, members in groups.items():
        lines.append(f"- {reason}")
        lines += [f"  - `{m.path}`: `{_cut(m)}`" for m in members]
    survivors = [m for m in mutants if verdict_of(m, rows, reasons) == "survived"]
    if survivors:
        lines += ["", "Survivors:", ""] + [f"- `{m.path}`: `{m.before}` became `{m.after}`" for m in survivors]
    text = path.read_text()
    head, rest = text.split(BEGIN)
    path.write_text(head + "\n".join(lines) + "\n\n" + END + rest.split(END)[1])


def _cut(mutant):
    """The changed line, with what went and what came."""
    a, b = mutant.before, mutant.after
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    stop = 0
    while stop < min(len(a), len(b)) - start and a[-1 - stop] == b[-1 - stop]:
        stop += 1
    begin = max(0, start - 40)
    return f"{'...' if begin else ''}{a[begin:start]}[{a[start:len(a) - stop]} -> {b[start:len(b) - stop]}]{a[len(a) - stop:][:40]}"
