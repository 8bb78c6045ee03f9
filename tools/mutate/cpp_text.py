"""C++ text as a list of tokens, and where its functions are: just enough to change one token on purpose.

Comments, strings and preprocessor lines are not tokens and are never changed. The style of this project
(.clang-format) is relied on: a binary operator has space on both sides, a pointer or a template bracket does not.
"""
import re
from dataclasses import dataclass

_SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)
_TOKEN = re.compile(
    r"[A-Za-z_]\w*|0x[0-9a-fA-F]+u?|(?:\d[\d']*\.?\d*(?:[eE][+-]?\d+)?)[fuUlL]*"
    r"|<<=|>>=|->|::|\+\+|--|&&|\|\||[-+*/%&|^=!<>]=|<<|[-+*/%&|^!~=<>?:;,.()\[\]{}]")
OPENERS, CLOSERS = {"(": ")", "[": "]", "{": "}"}, {")": "(", "]": "[", "}": "{"}


@dataclass
class Token:
    text: str
    begin: int
    end: int
    spaced: bool  # white space on both sides: a binary operator, for signs that can be others
    function: str = ""  # the function around it, "" outside of all
    backward: bool = False  # in a backward pass: by the function's name, or in an on_backward closure


def tokens_of(text):
    blank = _SKIPPED.sub(lambda m: re.sub(r"[^\n]", " ", m.group()) if m.group()[0] in "/#" or m.group().lstrip()[0] == "#"
                         else '"' + " " * (len(m.group()) - 2) + '"', text)
    found = []
    for m in _TOKEN.finditer(blank):
        spaced = blank[m.start() - 1].isspace() and m.end() < len(blank) and blank[m.end()].isspace()
        found.append(Token(m.group(), m.start(), m.end(), spaced))
    _name_functions(found)
    return found


def _name_functions(tokens):
    name, floor, depth, boundary = "", 0, 0, 0
    closure_end = -1
    for k, t in enumerate(tokens):
        if t.text == "{":
            if not name:
                name, floor = _header_name(tokens[boundary:k]), depth
            depth += 1
        elif t.text == "}":
            depth -= 1
            if name and depth == floor:
                name = ""
        if t.text == "on_backward" and k + 1 < len(tokens):
            closure_end = matching(tokens, k + 1)
        t.function = name
        t.backward = "backward" in name or "slope" in name or "gradient" in name or k < closure_end
        if not name and t.text in "{};":
            boundary = k + 1


def _header_name(header):
    """The function that a brace after these tokens opens; "" for a namespace, class or enumeration."""
    if any(t.text in ("namespace", "enum") for t in header):
        return ""
    depth = 0  # of template brackets
    for a, b in zip(header, header[1:]):
        if a.text == "<" and not a.spaced:
            depth += 1
        if a.text == ">" and not a.spaced:
            depth = max(0, depth - 1)
        if depth == 0 and b.text == "(" and re.match(r"[A-Za-z_]", a.text):
            return a.text
    return ""


def matching(tokens, k):
    """The index of the bracket that closes (or opens) the one at k."""
    step, depth = (1, 0) if tokens[k].text in OPENERS else (-1, 0)
    ups, downs = (OPENERS, CLOSERS) if step == 1 else (CLOSERS, OPENERS)
    while True:
        depth += (tokens[k].text in ups) - (tokens[k].text in downs)
        if depth == 0:
            return k
        k += step


_LOOSE = {",", ";", "=", "+=", "-=", "*=", "/=", "return", "?", ":", "&&", "||", "==", "!=", "<=", ">=", "+", "-"}


def _ends_operand(tokens, k, tight):
    t = tokens[k]
    if t.text in ("<", ">", "*", "/", "%", "+", "-"):
        sums = t.text in "+-"
        return t.spaced and (sums or t.text in "<>" or not tight)
    return t.text in _LOOSE


def left_operand(tokens, k, product):
    """First token of the operand to the left of the operator at k; `product`: it is * / or %."""
    i = k - 1
    while i >= 0:
        t = tokens[i]
        if t.text in CLOSERS:
            i = matching(tokens, i)
        elif t.text in OPENERS or (_ends_operand(tokens, i, product) if product else _ends_sum(tokens, i)):
            break
        i -= 1
    return i + 1


def _ends_sum(tokens, k):
    t = tokens[k]
    return t.text not in "+-*/%" and _ends_operand(tokens, k, True) or (t.text in "<>" and t.spaced)


def right_operand(tokens, k, product):
    """Last token of the operand to the right of the operator at k."""
    i = k + 1
    while i < len(tokens):
        t = tokens[i]
        if t.text in OPENERS:
            i = matching(tokens, i)
        elif t.text in CLOSERS or (_ends_operand(tokens, i, not product) and i > k + 1):
            break
        i += 1
    return i - 1


def statement_begin(tokens, k):
    """First token of the statement or declarator around k; a loop's head is not part of it."""
    i = k - 1
    while i >= 0 and tokens[i].text not in ("{", "}", ";", "("):
        if tokens[i].text == ")":
            before = tokens[matching(tokens, i) - 1].text
            if before in ("for", "if", "while"):
                break
        if tokens[i].text in CLOSERS:
            i = matching(tokens, i)
        if tokens[i].text == "else":
            break
        i -= 1
    return i + 1


def enclosing(tokens, k):
    """The index of the innermost bracket open at k, -1 if there is none."""
    i = k - 1
    while i >= 0:
        if tokens[i].text in CLOSERS:
            i = matching(tokens, i)
        elif tokens[i].text in OPENERS:
            return i
        i -= 1
    return -1


def expression_end(tokens, k):
    """Last token of the expression that begins at k: before a ; , or closing bracket of its own level."""
    i = k
    while i < len(tokens):
        if tokens[i].text in OPENERS:
            i = matching(tokens, i)
        elif tokens[i].text in CLOSERS or tokens[i].text in (";", ","):
            break
        i += 1
    return i - 1
