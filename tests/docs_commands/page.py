"""A page of Markdown as the tests see it: its fenced blocks with what is said of them, links, and names."""
import re
from dataclasses import dataclass, field

COMMENT = re.compile(r"<!--\s*test:\s*(.*?)\s*-->", re.S)
FENCE = re.compile(r"^( *)(`{3,})(.*)$")
# `**`name/of/a.file`**` on a line of its own: the block below is that file.
FILE_LABEL = re.compile(r"^\*\*`([^`]+)`\*\*$")
KINDS = ("skip", "as", "line", "vary", "varies", "before", "page")


class Mistake(Exception):
    """Something is wrong with a page; the text says where."""


@dataclass
class Rule:
    """What a comment says of the block below it: `<!-- test: KIND: TEXT -->`."""
    kind: str
    text: str
    line: int
    used: bool = False


@dataclass
class Block:
    language: str
    text: str
    line: int  # of its first line of text
    file: str = ""  # what the label above says that it is
    rules: list = field(default_factory=list)

    def rule(self, kind):
        """The block's only rule of this kind, or None."""
        found = [rule for rule in self.rules if rule.kind == kind]
        if len(found) > 1:
            raise Mistake(f"line {found[1].line}: a second '{kind}'; expected one for a block")
        for rule in found:
            rule.used = True
        return found[0].text if found else None


@dataclass
class Page:
    blocks: list
    rules: list  # of the page as a whole
    links: list  # (line, target)
    spans: list  # (line, inline code)
    headings: list

    def unused(self):
        return [rule for rule in [*self.rules, *(r for b in self.blocks for r in b.rules)] if not rule.used]


def slug(heading):
    """As GitHub names a heading's anchor."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")


def read_rule(text, line):
    kind, _, rest = text.partition(":")
    if kind not in KINDS or not rest.strip():
        raise Mistake(f"line {line}: '<!-- test: {text} -->'; expected one of "
                      + ", ".join(f"'{kind}: …'" for kind in KINDS))
    return Rule(kind, rest.strip("\n") if kind == "before" else rest.strip(), line)


class Reader:
    """Line by line; what is pending waits for the block that it speaks of."""

    def __init__(self, text):
        self.lines = text.split("\n")
        self.page = Page([], [], [], [], [])
        self.rules, self.file, self.prose = [], "", []

    def read(self):
        at = 0
        while at < len(self.lines):
            at = self.read_line(at)
        self.expect_no_rules()
        self.read_prose()
        return self.page

    def read_line(self, at):
        line = self.lines[at]
        if line.lstrip().startswith("<!--"):
            return self.read_comment(at)
        fence = FENCE.match(line)
        if fence:
            return self.read_block(at, fence)
        label = FILE_LABEL.match(line.strip())
        if label:
            self.file = label[1]
        elif line.strip():
            self.expect_no_rules()
            self.file = ""
            if line.startswith("#"):
                self.page.headings.append(line.lstrip("#").strip())
        self.prose.append((at + 1, line))
        return at + 1

    def read_comment(self, at):
        last = at
        while "-->" not in self.lines[last]:
            last += 1
            if last == len(self.lines):
                raise Mistake(f"line {at + 1}: a comment without an end; expected -->")
        for found in COMMENT.finditer("\n".join(self.lines[at:last + 1])):
            rule = read_rule(found[1], at + 1)
            (self.page.rules if rule.kind == "page" else self.rules).append(rule)
        return last + 1

    def read_block(self, at, fence):
        indent, ticks, language = fence[1], fence[2], fence[3].strip()
        body, end = [], at + 1
        while end < len(self.lines) and self.lines[end].strip() != ticks:
            body.append(self.lines[end].removeprefix(indent))
            end += 1
        if end == len(self.lines):
            raise Mistake(f"line {at + 1}: a block without an end; expected {ticks}")
        self.page.blocks.append(Block(language, "".join(line + "\n" for line in body), at + 2, self.file, self.rules))
        self.rules, self.file = [], ""
        return end + 1

    def expect_no_rules(self):
        if self.rules:
            raise Mistake(f"line {self.rules[0].line}: a comment for the tests; expected a block right below it")

    def read_prose(self):
        text = "\n".join(line for _, line in self.prose)
        numbers = [number for number, line in self.prose for _ in line + "\n"]
        # Code may break at a line's end, links may hold code.
        for found in re.finditer(r"(?<!`)`([^`]+)`(?!`)", text):
            self.page.spans.append((numbers[found.start()], " ".join(found[1].split())))
        for found in re.finditer(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", lambda code: "·" * len(code[0]), text)):
            self.page.links.append((numbers[found.start()], found[1]))


def read(text):
    return Reader(text).read()
