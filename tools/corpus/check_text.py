#!/usr/bin/env python3
"""Compares generated text with the corpus that a model learned from.

  check_text.py data/stories.txt generated.txt

Prints how many of the generated words occur in the corpus, and how many of the sentences occur there word for word; exits
with 1 unless at least 98 % of the words do and at most 30 % of the sentences do: a model should write, not recite.
"""
import re
import sys


def sentences(text):
    """Sentences with their words only, so that quotes and line ends do not matter."""
    return [" ".join(words(s)) for s in re.split(r"[.!?]", text) if words(s)]


def words(text):
    return re.findall(r"[a-z']+", text.lower())


def main():
    if len(sys.argv) != 3 or sys.argv[1].startswith("-"):
        print(__doc__.strip())
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    corpus, generated = (open(path, encoding="utf-8").read() for path in sys.argv[1:3])
    known_words, known_sentences = set(words(corpus)), set(sentences(corpus))
    # The first and the last sentence are cut off by the prompt and the end.
    written = sentences(generated)[1:-1]
    all_words = [w for s in written for w in s.split()]
    share_words = sum(w in known_words for w in all_words) / max(1, len(all_words))
    share_sentences = sum(s in known_sentences for s in written) / max(1, len(written))
    print(f"{len(written)} sentences, {len(all_words)} words: {100 * share_words:.2f} % of the words occur in the corpus, "
          f"{100 * share_sentences:.2f} % of the sentences do")
    unknown = sorted({w for w in all_words if w not in known_words})
    print("unknown:", " ".join(unknown[:40]))
    return 0 if share_words >= 0.98 and share_sentences <= 0.30 else 1


if __name__ == "__main__":
    sys.exit(main())
