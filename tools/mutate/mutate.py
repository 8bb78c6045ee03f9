#!/usr/bin/env python3
"""Tests the tests: makes small wrong versions of the numeric code, one at a time, and reports which of them the tests detect.

  tools/mutate/mutate.py                      the whole set, an hour and a half; continues after an interruption
  tools/mutate/mutate.py --only rope softmax  mutants of files whose path contains one of these words
  tools/mutate/mutate.py --list               what would be tried
  tools/mutate/mutate.py --scale 3            three times as many a file; --scale 0: every one there is
  tools/mutate/mutate.py --fixed quick        the fixed ones that belong to the tests (or: long)
  tools/mutate/mutate.py --report             writes the table of docs/proof.md from the results

A mutant changes one place of one source (operators.py says how). That source is compiled alone and linked with the objects
of a finished build (cmake --build build/release), and the quick tests are run on it. It is killed if one of them fails,
crashes or hangs. One that survives is a missing test, unless equivalent.toml says why no test could see it.
Results are kept in BUILD/mutants/results.jsonl. Exit code 1 if one survives, 2 if nothing could be tried.
"""
import argparse
import json
import re
import sys
import time
import tomllib
from collections import defaultdict
from pathlib import Path

import report
from operators import apply, mutants_of
from workbench import KILLED, NOT_COMPILED, SURVIVED, Workbench

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent

# Mutants of a file: in backward passes, elsewhere. The first pattern that fits counts.
PLAN = [
    (r"src/ops/causal_attention\.cpp", 48, 48),
    (r"src/ops/(layer_norm|rms_norm|linear_cross_entropy|matmul)\.cpp", 30, 18),
    (r"src/ops/scaled_dot_product_attention\.cpp", 0, 24),
    (r"src/ops/rope\.cpp", 12, 36),
    (r"src/ops/\w+\.cpp", 21, 12),
    (r"src/ops/\w+\.h", 6, 6),
    (r"src/core/math\.h", 0, 24),
    (r"src/core/lanes\.h", 0, 8),
    (r"include/handgrad/ops/dropout_mask\.h", 0, 4),
    (r"src/core/(gemm|views)\.cpp", 0, 18),
    (r"src/optim/optimizer\.cpp", 12, 60),
    (r"src/optim/schedule\.cpp", 0, 42),
    (r"src/autograd/(graph|parameter_store)\.cpp", 15, 15),
    (r"src/nn/\w+\.cpp", 0, 12),
]
FOLDERS = ["src/ops", "src/core", "src/optim", "src/autograd", "src/nn", "include/handgrad/core"]


def planned_files():
    """Headers last: all that read one are compiled for each of its mutants."""
    files = [p for folder in FOLDERS for p in (ROOT / folder).iterdir() if p.suffix in (".h", ".cpp")]
    paths = [p.relative_to(ROOT).as_posix() for p in files]
    for path in sorted(paths, key=lambda p: (p.endswith(".h"), p.startswith("include"), p)):
        for pattern, *counts in PLAN:
            if re.fullmatch(pattern, path):
                yield path, counts
                break


def choose(candidates, count):
    """`count` of them, each operator in turn; which one of an operator is decided by its key, so that it stays chosen."""
    queues = defaultdict(list)
    for mutant in sorted(candidates, key=lambda m: m.key):
        queues[mutant.operator].append(mutant)
    order = sorted(queues, key=lambda o: min(m.key for m in queues[o]))
    chosen = []
    while len(chosen) < count and any(queues.values()):
        for operator in order:
            if queues[operator] and len(chosen) < count:
                chosen.append(queues[operator].pop(0))
    return chosen


def planned_mutants(scale, only):
    for path, counts in planned_files():
        if only and not any(word in path for word in only):
            continue
        candidates = mutants_of(path, (ROOT / path).read_text())
        chosen = []
        for backward, count in zip((True, False), counts):
            part = [m for m in candidates if m.backward == backward]
            chosen += choose(part, count * scale if scale else len(part))
        yield from sorted(chosen, key=lambda m: m.span)


def filters_for(path):
    """First the tests that speak of the file, then the numeric ones, then all: most mutants die early."""
    stem = Path(path).stem
    camel = "".join(word.capitalize() for word in stem.split("_"))
    near = {"Gradient": ["Gradient.*"], "math": ["Exp.*", "NormalCdf.*", "Leaves.*", "IsFinite.*", "Gradient.*gelu*"],
            "lanes": ["Lanes.*"], "optimizer": ["AdamW.*", "Sgd.*", "Clipping.*", "Optimizers.*", "OptimizerReference.*"],
            **dict.fromkeys(["causal_attention", "scaled_dot_product_attention", "seen_product", "attention_checks"],
                            ["Gradient.*attention*", "*Attention*", "HiddenValue*", "SeenProduct*", "SingleKey*"]),
            "parameter_store": ["ParameterStore.*", "Backward.*"], "schedule": ["Schedule.*", "OptimizerReference.*"],
            "linear_cross_entropy": ["Gradient.*cross_entropy*", "CrossEntropy*"], "gemm": ["Gemm*"], "views": ["View.*", "BlockRows.*"]}.get(stem, [f"Gradient.{stem}*", f"*{camel}*"])
    return [":".join(near), "Gradient.*:Reference.*:ModelReference.*:CausalLm.*:Backward.*", "*"]


class Results:
    def __init__(self, path):
        self.path, self.rows = path, {}
        if path.exists():
            for line in path.read_text().splitlines():
                row = json.loads(line)
                self.rows[row["key"]] = row

    def add(self, mutant, verdict, killer):
        row = {"key": mutant.key, "path": mutant.path, "operator": mutant.operator, "backward": mutant.backward,
               "before": mutant.before, "after": mutant.after, "verdict": verdict, "by": killer}
        self.rows[mutant.key] = row
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def describe(mutant):
    return f"{mutant.path}:{mutant.line} [{mutant.operator}] {mutant.function}\n    - {mutant.before}\n    + {mutant.after}"


def sound(bench, path):
    """Whether an unchanged source passes: if it does not, mutants would be called killed, or uncompilable, for nothing."""
    verdict, killer = bench.try_text(path, (ROOT / path).read_text(), ["*"])
    if verdict != SURVIVED:
        print(f"{path}, unchanged: {verdict} {killer}; build this tree and make its quick tests pass first")
    return verdict == SURVIVED


def run_set(bench, mutants, results, again, whole):
    pending = [m for m in mutants if again or results.rows.get(m.key, {}).get("verdict") not in (KILLED, NOT_COMPILED)]
    reasons = report.read_reasons(HERE / "equivalent.toml")
    pending = [m for m in pending if again or m.key not in reasons]
    if pending and not sound(bench, pending[0].path):
        return 2
    started = time.monotonic()
    for number, mutant in enumerate(pending):
        text = apply((ROOT / mutant.path).read_text(), mutant)
        verdict, killer = bench.try_text(mutant.path, text, filters_for(mutant.path))
        results.add(mutant, verdict, killer)
        left_min = (time.monotonic() - started) / (number + 1) * (len(pending) - number - 1) / 60
        print(f"{number + 1}/{len(pending)} {mutant.path}:{mutant.line} {mutant.operator}: {verdict} {killer}"
              f"  ({left_min:.0f} min left)", flush=True)
        if verdict == SURVIVED:
            print(describe(mutant), f"\n    key {mutant.key}", flush=True)
    survivors = [m for m in mutants
                 if results.rows.get(m.key, {}).get("verdict") == SURVIVED and m.key not in reasons]
    print(report.summary(mutants, results.rows, reasons, whole))
    return 1 if survivors else 0


def run_fixed(bench, label):
    """Fixed mutants are named by their text, so that a change of the code they break is a change here, too."""
    fixed = tomllib.loads((HERE / "fixed.toml").read_text())["mutant"]
    wrong = 0
    for case in (c for c in fixed if c["label"] == label):
        text = (ROOT / case["path"]).read_text()
        if text.count(case["before"]) != 1:
            print(f"fixed.toml: {case['path']} should hold this once: {case['before']}")
            wrong += 1
            continue
        changed = text.replace(case["before"], case["after"])
        expected = KILLED if case["before"] != case["after"] else SURVIVED
        verdict, killer = bench.try_text(case["path"], changed, [case["tests"]])
        print(f"{case['path']}: {case['what']}: {verdict} {killer}", flush=True)
        wrong += verdict != expected
    return 1 if wrong else 0


def _count(text):
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a count from 0, got {text}")
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda folder: Path(folder).resolve(), default=ROOT / "build/release", help="a finished build")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="files whose path contains one of these")
    parser.add_argument("--scale", type=_count, default=1, help="multiple of the planned number per file; 0: all, one of each set of identical lines")
    parser.add_argument("--again", action="store_true", help="also those with a result, and equivalent ones")
    parser.add_argument("--list", action="store_true", help="say what would be tried, and stop")
    parser.add_argument("--fixed", choices=["quick", "long"], help="the fixed mutants of the tests")
    parser.add_argument("--report", action="store_true", help="write the table of docs/proof.md")
    options = parser.parse_args()

    mutants = [] if options.fixed else list(planned_mutants(options.scale, options.only))
    if not mutants and not options.fixed:
        print("no mutant to try: no file has one of these in its path: " + " ".join(options.only))
        return 2
    if options.list:
        for mutant in mutants:
            print(describe(mutant))
        print(f"{len(mutants)} mutants")
        return 0
    if not (options.build / "tests/quick_tests").exists():
        print(f"{options.build}: no finished build here; make one with: cmake --preset release && cmake --build build/release")
        return 2
    folder = options.build / "mutants"
    folder.mkdir(exist_ok=True)
    results = Results(folder / "results.jsonl")
    if options.report:
        report.write(ROOT / "docs/proof.md", mutants, results.rows, report.read_reasons(HERE / "equivalent.toml"))
        return 0
    bench = Workbench(ROOT, options.build, folder / (options.fixed or "set"))
    return run_fixed(bench, options.fixed) if options.fixed else run_set(bench, mutants, results, options.again, not options.only)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # the reader of --list has seen enough
        sys.stderr.close()
    except KeyboardInterrupt:
        print("stopped; the same command continues from here")
        sys.exit(130)
