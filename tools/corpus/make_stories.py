#!/usr/bin/env python3
"""Writes data/stories.txt: short stories put together from plots with a memory.

A story picks its people, places and things once, so that names, pronouns and endings agree; a plot file lists its beats
in order, each with several wordings. A wording whose sentences have all been used is passed over while another can be
had. The text depends on the plots, the words and --seed, and on nothing else: the random numbers are our own.

    make_stories.py [--seed 1] [--size 1100000] [--out data/stories.txt]
    make_stories.py --check data/stories.txt
"""

import argparse
import re
import sys
from pathlib import Path

import words
from check_stories import check, sentences

HERE = Path(__file__).resolve().parent
TRIES = 24  # wordings tried for a beat before a repeated sentence is accepted
LONG = 14  # words; a longer sentence is taken only when nothing else can be had
PARAGRAPH = object()


class Random:
    """SplitMix64 (Steele, Lea and Flood 2014): the same numbers on every version of Python."""

    def __init__(self, seed):
        self.state = seed % 2**64

    def below(self, n):
        """An integer in [0, n)."""
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = self.state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return ((z ^ (z >> 31)) * n) >> 64

    def pick(self, items):
        return items[self.below(len(items))]

    def some(self, items, count):
        """`count` different items, in random order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(count)]


def split_outside_brackets(text):
    """The parts of "a|b|[c|d]" between the bars that stand in no bracket."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "[") - (c == "]")
        if c == "|" and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [p for p in parts + [text[start:].strip()] if p]


class Plot:
    """A plot file: `let` lines, beats (lists of wordings), paragraph breaks, and named pieces.

    let a, b = x ; y | z ; w    binds a and b to one of the pairs, once a story
    let a*2 = x | y | z         binds a and a2 to two different ones; values may stand on lines of their own, "  | x"
    ?line                       its beat is told half of the time
    @name                       stands for one of the lines of the piece "= name", here or in shared.txt
    {a x}, {the x}, {^x}        x after "a" or "an"; with "the" for its "a"; with a capital letter
    --                          a new paragraph
    let known = yes             the plot itself says who {f} is
    """

    def __init__(self, path):
        self.name = path.stem
        self.lets, self.beats, self.pieces = [], [], {}
        beat, piece = [], None
        for line in path.read_text("ascii").replace("\n  | ", " | ").splitlines() + [""]:
            if line.startswith("#"):
                continue
            if line.startswith("let "):
                names, values = line[4:].split("=", 1)
                self.lets.append((names.strip(), split_outside_brackets(values)))
            elif line.startswith("= "):
                piece = self.pieces.setdefault(line[2:].strip(), [])
            elif piece is not None:
                piece += [line] if line else []
            elif line and line != "--":
                beat.append(line)
            else:
                self.beats += [beat] if beat else []
                self.beats += [PARAGRAPH] if line == "--" else []
                beat = []


class Story:
    """The memory of one story, and the telling of lines with it."""

    def __init__(self, plot, shared, rng):
        self.rng, self.fresh, self.told = rng, {}, ""
        self.pieces = {**shared.pieces, **plot.pieces}
        self.memory = {}
        season = [values for names, values in plot.lets if names == "season"]
        self.memory["season"] = rng.pick(season[0] if season else list(words.SKIES))
        self.people()
        self.things()
        for names, values in plot.lets:
            if names != "season":
                self.bind(names, values)
        self.new_paragraph()

    def people(self):
        m, rng = self.memory, self.rng
        named = rng.some([(n, words.HE) for n in words.BOYS] + [(n, words.SHE) for n in words.GIRLS], 2)
        for prefix, (name, forms) in zip(("h", "f"), named):
            m[prefix] = name
            m.update({("" if prefix == "h" else "f") + k: v for k, v in forms.items()})
        m["kin"], forms = rng.pick(words.KIN)
        m.update({"kin" + k: v for k, v in forms.items()})
        m["g"], forms = rng.pick([(n, words.HE) for n in words.MEN] + [(n, words.SHE) for n in words.WOMEN])
        m.update({"g" + k: v for k, v in forms.items()})

    def things(self):
        m, rng = self.memory, self.rng
        for i, (place, at) in enumerate(rng.some(words.PLACES, 3), 1):
            m[f"p{i}"], m[f"at{i}"] = place, at
        for key, items in (("food", words.FOODS), ("color", words.COLORS), ("toy", words.TOYS)):
            m[key], m[key + "2"] = rng.some(items, 2)
        for key, items in (("pet", words.PETS), ("pn", words.PET_NAMES), ("wild", words.WILD),
                           ("coat", words.COATS), ("game", words.GAMES), ("feeling", words.FEELINGS)):
            m[key] = rng.pick(items)
        m["home"], m["here"] = rng.pick(words.HOMES)
        # What is drawn anew at every use, and never twice in a story until all have been used.
        self.lists = {"sign": words.SIGNS[m["season"]], "chore": words.CHORES, "trait": words.TRAITS,
                      "dream": words.DREAMS, "any_food": words.FOODS, "any_dish": words.DISHES}

    def bind(self, names, values):
        if "*2" in names:
            name = names.replace("*2", "")
            self.memory[name], self.memory[name + "2"] = map(self.expand, self.rng.some(values, 2))
            return
        names = [n.strip() for n in names.split(",")]
        for name, value in zip(names, self.rng.pick(values).split(" ; "), strict=True):
            self.memory[name] = self.expand(value.strip())

    def new_paragraph(self):
        self.memory["sky"] = self.rng.pick(words.SKIES[self.memory["season"]])

    def look_up(self, key):
        if key not in self.lists:
            return self.memory[key]
        left = self.fresh.setdefault(key, [])
        if not left:
            left += self.lists[key]
        return left.pop(self.rng.below(len(left)))

    def expand(self, text):
        """`text` with [one|of|these] chosen and {slots} filled, until none is left."""
        while True:
            before = text
            text = re.sub(r"\[([^\[\]]*)\]", lambda m: self.rng.pick(m[1].split("|")), text, count=1)
            if text == before:
                text = re.sub(r"\{(\^|a |the )?(\w+)\}", self.fill, text, count=1)
            if text == before:
                return text

    def fill(self, match):
        mark, value = match[1] or "", self.look_up(match[2])
        if mark == "^":
            return value[0].upper() + value[1:]
        if mark == "the ":
            return "the " + re.sub(r"^(an?|the) ", "", value)
        if mark == "a ":
            return ("an " if re.match(r"(?!use|uni|one)[aeiou]", value) else "a ") + value
        return value

    def wording(self, beat):
        """One telling of a beat, with capital letters where sentences begin."""
        line = self.rng.pick(beat).lstrip("?")
        while line.startswith("@"):
            line = self.rng.pick(self.pieces[line[1:]])
        text = self.introduce_friend(self.expand(line))
        starts = r'(^"?|[.!?] "?|\." "?)([a-z])'
        return re.sub(starts, lambda m: m[1] + m[2].upper(), text)

    def introduce_friend(self, text):
        """`text` with "his friend" before the name, where the friend is first named and it is not in speech."""
        before, name, after = text.partition(self.memory["f"])
        if "known" in self.memory or not name or name in self.told or before.count('"') % 2:
            return text
        return f"{before}{self.memory['his']} friend {name}{after}"

    def tell(self, beats, seen):
        """The story's text; adds its sentences to `seen`."""
        paragraphs = [[]]
        for beat in beats:
            if beat is PARAGRAPH:
                paragraphs.append([])
                self.new_paragraph()
            elif not beat[0].startswith("?") or self.rng.below(2):
                text = self.least_used(beat, seen)
                seen.update(sentences(text))
                self.told += text
                paragraphs[-1].append(text)
        return "\n".join(" ".join(p) for p in paragraphs)

    def least_used(self, beat, seen):
        """The wording with the fewest repeated sentences, then the fewest long ones, of those tried."""
        best, best_faults = "", None
        for _ in range(TRIES):
            text = self.wording(beat)
            told = sentences(text)
            faults = (sum(s in seen for s in told), sum(len(s.split()) > LONG for s in told))
            if best_faults is None or faults < best_faults:
                best, best_faults = text, faults
            if faults == (0, 0):
                break
        return best


def make(seed, size):
    """About `size` characters of stories, a blank line between them; every round tells each plot once."""
    rng = Random(seed)
    paths = sorted((HERE / "plots").glob("*.txt"), key=lambda p: p.name)
    shared = Plot(HERE / "plots" / "shared.txt")
    plots = [Plot(p) for p in paths if p.stem != "shared"]
    seen, stories, length = set(), [], 0
    while length < size:
        for plot in rng.some(plots, len(plots)):
            stories.append(Story(plot, shared, rng).tell(plot.beats, seen))
            length += len(stories[-1]) + 2
    return "\n\n".join(stories) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--size", type=int, default=1_100_000, help="characters, about")
    parser.add_argument("--out", type=Path, default=HERE.parent.parent / "data" / "stories.txt")
    parser.add_argument("--check", type=Path, metavar="FILE", help="print a text's figures; exit 1 if one is missed")
    args = parser.parse_args()
    if args.check:
        sys.exit(0 if check(args.check.read_bytes()) else 1)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_bytes(make(args.seed, args.size).encode("ascii"))


if __name__ == "__main__":
    main()
