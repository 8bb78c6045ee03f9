"""The figures that data/stories.txt must reach."""

import re
from collections import Counter


def sentences(text):
    """The sentences of `text`: each ends with . ? or ! and the quote after it, or with its line."""
    return [s for line in text.split("\n") for s in re.split(r'(?<=[.!?])\s+|(?<=[.!?]")\s+', line) if s]


def word_forms(text):
    return re.findall(r"[a-z]+(?:['-][a-z]+)*", text.lower())


def check(data):
    """Prints the figures of a text (bytes) against their limits; True if all are kept."""
    text = data.decode("latin-1")
    all_sentences = sentences(text)
    counts = Counter(all_sentences)
    once = sum(1 for n in counts.values() if n == 1) / len(all_sentences)
    words = word_forms(text)
    grams = Counter()
    for sentence in all_sentences:
        w = word_forms(sentence)
        grams.update({tuple(w[i:i + 8]) for i in range(len(w) - 7)})
    gram, gram_count = grams.most_common(1)[0]
    forms = Counter(words)
    characters = Counter(text)
    figures = [
        ("bytes", len(data), 1_000_000 <= len(data) <= 1_200_000),
        ("stories", text.count("\n\n") + 1, True),
        ("sentences", len(all_sentences), True),
        ("words a sentence", f"{len(words) / len(all_sentences):.1f}", True),
        ("sentences that occur once, %", f"{100 * once:.2f}", once >= 0.95),
        ("distinct sentences, %", f"{100 * len(counts) / len(all_sentences):.2f}", True),
        ("word forms", len(forms), len(forms) >= 800),
        ("word forms used fewer than 20 times", sum(1 for n in forms.values() if n < 20), True),
        ("commonest 8 words, % of sentences", f"{100 * gram_count / len(all_sentences):.3f} ({' '.join(gram)})",
         gram_count <= 0.005 * len(all_sentences)),
        ("characters", f"{len(characters)}: {''.join(sorted(characters))!r}", all(ord(c) < 128 for c in characters)),
        ("commonest sentence", counts.most_common(1)[0], True),
    ]
    for name, value, kept in figures:
        print(f"{'  ' if kept else '! '}{name}: {value}")
    return all(kept for _, _, kept in figures)
