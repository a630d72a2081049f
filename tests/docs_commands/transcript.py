"""Whether a command printed what a page shows.

In what a page shows, `…` stands for any text within a line, and alone on a line for any lines. Times and rates (numbers
in front of s, ms, µs, ns, min, or of a unit a second, as in steps/s) and hashes may differ: other digits, and other spaces
beside them. On lines that `<!-- test: vary: REGEX -->` matches, all numbers may, and there may be one of what is many: for
what depends on the machine or the data. `locked` at the end of a line stands for whatever the machine's limits allow.
"""
import re

NUMBER = r"[-+−]?\d[\d,.]*(?:e[-+]?\d+)?"
TIME = re.compile(rf"{NUMBER}(?=\s?(?:(?:s|ms|µs|ns|min)\b|[A-Za-z]+/s\b))")
LOCKED = re.compile(r"\blocked$")
HASH = re.compile(r"\b[0-9a-f]{40,}\b")


def line_pattern(line, vary):
    """A regular expression for one line."""
    loose = vary or TIME.search(line)
    wild = re.compile("|".join([HASH.pattern, LOCKED.pattern, "…", NUMBER if vary else TIME.pattern]))
    pattern, end = "", 0
    for found in wild.finditer(line):
        pattern += literal(line[end:found.start()], loose, vary)
        pattern += stands_for(found[0])
        end = found.end()
    return re.compile(pattern + literal(line[end:], loose, vary) + r"\s*")


def stands_for(shown):
    if shown == "…":
        return ".*"
    if shown == "locked":
        return r"(?:locked|cuda|no \(.*\))"
    return HASH.pattern if HASH.fullmatch(shown) else NUMBER


def literal(text, loose, vary):
    """Columns move when numbers in them have another width, and a plural goes with its number."""
    if not loose:
        return re.escape(text)
    pattern = "".join(r"\s+" if part.isspace() else re.escape(part) for part in re.split(r"(\s+)", text) if part)
    return re.sub(r"(?<=[a-z])s\b", "s?", pattern) if vary else pattern


def mismatch(shown, printed, vary=None):
    """None, or what is wrong: the first line that is shown and was not printed, or the other way round."""
    expected, actual = shown.splitlines(), printed.splitlines()
    furthest = [0, 0]

    # Which lines each `…` stands for is tried out; `seen` keeps that polynomial.
    seen = set()

    def matches(i, j):
        stack = [(i, j)]
        while stack:
            i, j = stack.pop()
            if (i, j) in seen:
                continue
            seen.add((i, j))
            if i + j > sum(furthest):
                furthest[:] = i, j
            if i == len(expected):
                if j == len(actual):
                    return True
                continue
            if expected[i].strip() == "…":
                stack.append((i + 1, j))
                if j < len(actual):
                    stack.append((i, j + 1))
            elif j < len(actual):
                varies = bool(vary and re.search(vary, expected[i]))
                if line_pattern(expected[i], varies).fullmatch(actual[j]):
                    stack.append((i + 1, j + 1))
        return False

    if matches(0, 0):
        return None
    i, j = furthest
    wanted = repr(expected[i]) if i < len(expected) else "nothing more"
    found = repr(actual[j]) if j < len(actual) else "nothing more"
    return f"line {j + 1} of the output is {found}; the page shows {wanted}"
