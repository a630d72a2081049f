"""What a page names without running it: links, files, tests, options of `arenite`."""
import pathlib
import re
import shlex

import page as pages

# Words that stand for others.
PLACEHOLDER = re.compile(r"[<>*$…{}\[\]|=\s]|[A-Z]{4,}")
FILE = re.compile(r"[\w.+/-]+\.(?:c|cpp|hpp|h|cu|cuh|py|md|txt|ebnf|def|svg|json|csv|cmake|nix|arenite)")
# Where a name in a page may begin: the root, what programs include, the language's own layers.
BEGINNINGS = ("", "include", "include/arenite", "src", "python", "tests")


class Names:
    """`root` is the copy of the repository after the page's commands have run: what they have made counts."""

    def __init__(self, root, build_tests, help_of):
        self._root, self._tests, self._help = pathlib.Path(root), build_tests, help_of
        self._stems = {path.stem for path in self._root.rglob("*_test.*")} | set(build_tests)
        self.checked = 0

    def mistakes(self, path, page):
        found = [f"line {line}: {text}" for line, target in page.links for text in self._link(path, page, target)]
        for line, span in page.spans:
            found += [f"line {line}: `{span}`: {text}" for text in self._span(path, span)]
        return found

    def _link(self, path, page, target):
        if re.match(r"[a-z]+:", target):
            return
        self.checked += 1
        name, _, anchor = target.partition("#")
        file = (self._root / path).parent / name if name else self._root / path
        if name and not file.exists():
            yield f"a link to '{name}', which is not there"
        elif anchor and (not name or file.suffix == ".md"):
            headings = pages.read(file.read_text(encoding="utf-8")).headings if name else page.headings
            if anchor not in map(pages.slug, headings):
                yield f"a link to '{target}'; expected an anchor of " + ", ".join(sorted(map(pages.slug, headings)))

    def _span(self, path, span):
        words = split(span)
        if len(words) > 1 and words[0] in ("ctest", "scripts/test") and "-R" in words[:-1]:
            return self._regex(words[words.index("-R") + 1])
        if len(words) > 1 and words[0] == "arenite":
            return self._arenite(words[1:])
        if len(words) > 1 and re.match(r"(scripts|bench|datasets|examples|build)/", words[0]):
            return self._file(path, words[0])
        if re.fullmatch(r"\w+_test", span):
            self.checked += 1
            return [] if span in self._stems else ["no such test"]
        if PLACEHOLDER.search(span) or re.match(r"build/(?!release)", span):
            return []
        top = span.split("/")[0]
        if "/" in span and (FILE.fullmatch(span) or (top and (self._root / top).is_dir())):
            return self._file(path, span)
        return []

    def _file(self, path, name):
        self.checked += 1
        places = [self._root / beginning / name for beginning in BEGINNINGS] + [(self._root / path).parent / name]
        return [] if any(place.exists() for place in places) else ["no such file"]

    def _regex(self, regex):
        self.checked += 1
        if PLACEHOLDER.search(regex) or any(re.search(regex, name) for name in self._tests):
            return []
        return ["no test has such a name"]

    def _arenite(self, words):
        """`arenite SUBCOMMAND … --option`: both are in the help."""
        command = words[0]
        if command.startswith("-"):
            return []
        if not re.search(rf"^  {re.escape(command)}\s", self._help(""), re.M):
            return [f"arenite has no subcommand '{command}'"]
        self.checked += 1
        known = set(re.findall(r"--[a-z][\w-]*", self._help(command)))
        options = [word.partition("=")[0] for word in words[1:] if word.startswith("--")]
        return [f"arenite {command} has no {option}" for option in options if option not in known]


def split(text):
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
