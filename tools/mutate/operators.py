"""The small mistakes: each operator yields (begin, end, replacement) for the places where it applies."""
import hashlib
import re
from dataclasses import dataclass

from cpp_text import (enclosing, expression_end, left_operand, matching, right_operand, statement_begin, tokens_of)


@dataclass(frozen=True)
class Mutant:
    path: str  # from the project's root
    operator: str
    line: int
    before: str  # the source lines that change, white space folded
    after: str
    function: str
    backward: bool
    span: tuple  # (begin, end, replacement) in the text

    @property
    def key(self):
        """Stays the same while the changed lines do, wherever they move to in the file."""
        return hashlib.sha256("\0".join((self.path, self.before, self.after)).encode()).hexdigest()[:10]


def apply(text, mutant):
    begin, end, replacement = mutant.span
    return text[:begin] + replacement + text[end:]


def mutants_of(path, text):
    """All candidates of one file, in order of place."""
    tokens = tokens_of(text)
    seen, found = set(), []
    for name, operator in OPERATORS.items():
        for k, begin, end, replacement in operator(tokens, text):
            if _out_of_scope(tokens, k):
                continue
            first = text.rfind("\n", 0, begin) + 1
            last = text.find("\n", end)
            before = " ".join(text[first:last].split())
            after = " ".join((text[first:begin] + replacement + text[end:last]).split())
            mutant = Mutant(path, name, text.count("\n", 0, begin) + 1, before, after, tokens[k].function,
                            tokens[k].backward, (begin, end, replacement))
            if before != after and mutant.key not in seen:
                seen.add(mutant.key)
                found.append(mutant)
    return sorted(found, key=lambda m: m.span)


def _out_of_scope(tokens, k):
    """Checks of arguments have tests of their own, one an error; here is about numbers."""
    t = tokens[k]
    if not t.function or t.function.startswith("check_") or t.function.endswith(("_name", "to_string")):
        return True
    i = statement_begin(tokens, k)
    if any(tokens[j].text in ("throw", "static_assert", "constexpr", "using") for j in range(i, min(i + 2, len(tokens)))):
        return True
    while (around := enclosing(tokens, k)) >= 0 and tokens[around].text != "{":  # a condition that leads to a throw
        if tokens[around].text == "(" and around and tokens[around - 1].text == "if":
            after = matching(tokens, around) + 1
            return tokens[after].text == "throw" or (tokens[after].text == "{" and tokens[after + 1].text == "throw")
        if tokens[around].text == "(" and around and tokens[around - 1].text in ("ShapeError", "RangeError", "format", "assert"):
            return True
        k = around
    return False


def _in_for_head(tokens, k):
    around = enclosing(tokens, k)
    return around > 0 and tokens[around].text == "(" and tokens[around - 1].text == "for"


def _text(tokens, text, first, last):
    return text[tokens[first].begin:tokens[last].end]


def sign(tokens, text):
    for k, t in enumerate(tokens):
        if t.text in "+-" and t.spaced:
            yield k, t.begin, t.end, "-" if t.text == "+" else "+"
        elif t.text in ("+=", "-=") and not _in_for_head(tokens, k):
            yield k, t.begin, t.end, "-=" if t.text == "+=" else "+="
        elif t.text == "-" and (tokens[k - 1].text == "return" or not re.match(r"[\w)\]]", tokens[k - 1].text)):
            yield k, t.begin, t.end, ""


def assign(tokens, text):
    for k, t in enumerate(tokens):
        if t.text in ("+=", "-=", "*=") and not _in_for_head(tokens, k):
            yield k, t.begin, t.end, "="
        elif t.text == "add" and tokens[k - 1].text == "::" and tokens[k - 2].text == "Store":
            yield k, t.begin, t.end, "assign"


_WHOLE = {"Index", "auto", "bool", "int", "View", "Rows", "Heads", "Shape", "Stack", "Scratch", "Operand", "size_t",
          "uint64_t", "uint32_t", "uint8_t", "span"}


_NOT_DOUBLED = {"{", "?", "true", "false", "std", "&&", "||", "Shape", "=", "row", "format"}


def double(tokens, text):
    """Factor 2."""
    for k, t in enumerate(tokens):
        if t.text not in ("=", "+=", "-=", "return") or _in_for_head(tokens, k):
            continue
        first, last = k + 1, expression_end(tokens, k + 1)
        begin = statement_begin(tokens, k)
        if any(x.text == "*" and not x.spaced for x in tokens[begin:k]):  # a pointer
            continue
        head = {x.text for x in tokens[begin:k]}
        body = {x.text for x in tokens[first:last + 1]}
        rhs = _text(tokens, text, first, last) if first <= last else "0"
        if rhs in ("0", "0.0", "S(0)") or head & _WHOLE or body & _NOT_DOUBLED or tokens[first].text == "[":
            continue
        yield k, tokens[first].begin, tokens[last].end, f"({rhs}) + ({rhs})"


def statement(tokens, text):
    """A term that is never added."""
    for k, t in enumerate(tokens):
        if t.text in ("+=", "-=", "*=") and not _in_for_head(tokens, k):
            begin, last = statement_begin(tokens, k), expression_end(tokens, k + 1)
            if tokens[last + 1].text == ";":
                yield k, tokens[begin].begin, tokens[last].end, ""


def term(tokens, text):
    """A term of a sum dropped."""
    for k, t in enumerate(tokens):
        if t.text in "+-" and t.spaced:
            last = right_operand(tokens, k, False)
            yield k, tokens[k - 1].end, tokens[last].end, ""


def factor(tokens, text):
    """A scale or divisor dropped."""
    for k, t in enumerate(tokens):
        if t.text in "*/%" and t.spaced:
            last = right_operand(tokens, k, True)
            yield k, tokens[k - 1].end, tokens[last].end, ""


def operands(tokens, text):
    """a - b and a / b turned round."""
    for k, t in enumerate(tokens):
        if t.text in "-/" and t.spaced:
            product = t.text == "/"
            first, last = left_operand(tokens, k, product), right_operand(tokens, k, product)
            if first < k < last + 1:
                left, right = _text(tokens, text, first, k - 1), _text(tokens, text, k + 1, last)
                yield k, tokens[first].begin, tokens[last].end, f"({right}) {t.text} ({left})"


def arguments(tokens, text):
    """Two neighbouring arguments, saved values or braced members exchanged; so are indices like (i, j)."""
    for k, t in enumerate(tokens):
        if t.text != "," or tokens[k - 1].text == ">":
            continue
        a, b = tokens[k - 1], tokens[k + 1]
        simple = re.fullmatch(r"[a-z]\w*", a.text) and re.fullmatch(r"[a-z]\w*", b.text)
        if simple and tokens[k - 2].text in "(,[{" and tokens[k + 2].text in "),]}" and a.function and _in_call(tokens, k):
            yield k, a.begin, b.end, f"{b.text}, {a.text}"


def _in_call(tokens, k):
    """Not the parameters of a lambda: there both names change places, and nothing else."""
    around = enclosing(tokens, k)
    if around < 1:
        return False
    if tokens[around].text == "[":
        return tokens[around - 1].text == "&"  # const auto& [a, b] = saved
    return tokens[around - 1].text != "]" and tokens[around - 1].text not in ("for", "if")


def bound(tokens, text):
    """A loop that begins one late or ends one early."""
    for k, t in enumerate(tokens):
        if not _in_for_head(tokens, k):
            continue
        if t.text == "<" and t.spaced:
            last = expression_end(tokens, k + 1)
            yield k, tokens[last].end, tokens[last].end, " - 1"
        elif t.text == "=" and tokens[k + 1].text == "0":
            yield k, tokens[k + 1].begin, tokens[k + 1].end, "1"


_TURNED = {"<": "<=", ">": ">=", "<=": "<", ">=": ">", "==": "!=", "!=": "=="}
_OPPOSITE = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def comparison(tokens, text):
    for k, t in enumerate(tokens):
        if t.text in _TURNED and t.spaced and not _in_for_head(tokens, k):
            yield k, t.begin, t.end, _TURNED[t.text]
            if t.text in _OPPOSITE:
                yield k, t.begin, t.end, _OPPOSITE[t.text]


_FLAGS = {"true": "false", "false": "true", "min": "max", "max": "min", "cos": "sin", "sin": "cos",
          "cosines": "sines", "sines": "cosines", "cosine": "sine", "sine": "cosine"}


def flag(tokens, text):
    """A transposed operand, the wrong one of two functions, a truth turned round."""
    for k, t in enumerate(tokens):
        if t.text in _FLAGS and tokens[k - 1].text not in ("*", "&"):
            yield k, t.begin, t.end, _FLAGS[t.text]
        elif t.text in ("yes", "no") and tokens[k - 1].text == "::" and tokens[k - 2].text == "Transpose":
            yield k, t.begin, t.end, "no" if t.text == "yes" else "yes"


def branch(tokens, text):
    """c ? a : b with a and b exchanged; a condition turned round."""
    for k, t in enumerate(tokens):
        if t.text == "?":
            colon, depth = k + 1, 0
            while tokens[colon].text != ":" or depth:
                depth += (tokens[colon].text == "?") - (tokens[colon].text == ":")
                colon = matching(tokens, colon) + 1 if tokens[colon].text in "([{" else colon + 1
            last = expression_end(tokens, colon + 1)
            first, second = _text(tokens, text, k + 1, colon - 1), _text(tokens, text, colon + 1, last)
            yield k, tokens[k + 1].begin, tokens[last].end, f"{second} : {first}"
        elif t.text == "if" and tokens[k + 1].text == "(":
            last = matching(tokens, k + 1)
            after = tokens[last + 1].text if tokens[last + 1].text != "{" else tokens[last + 2].text
            if after != "throw":
                yield k + 1, tokens[k + 1].end, tokens[last].begin, "!(" + _text(tokens, text, k + 2, last - 1) + ")"


def constant(tokens, text):
    """A number of the formula one per cent too large."""
    for k, t in enumerate(tokens):
        if re.fullmatch(r"\d+\.\d*(?:[eE][+-]?\d+)?f?", t.text) and float(t.text.rstrip("f")) != 0.0:
            number = t.text.rstrip("f")
            yield k, t.begin, t.end, repr(float(number) * 1.01) + t.text[len(number):]


def saved(tokens, text):
    """The input kept for the backward pass instead of the output, or one saved value in place of another."""
    for k, t in enumerate(tokens):
        if t.text == "saves" and [x.text for x in tokens[k + 1:k + 7]] == ["(", "y", ".", "var", "(", ")"]:
            yield k, tokens[k + 2].begin, tokens[k + 6].end, "x"


OPERATORS = {f.__name__: f for f in (sign, assign, double, statement, term, factor, operands, arguments, bound, comparison,
                                     flag, branch, constant, saved)}
