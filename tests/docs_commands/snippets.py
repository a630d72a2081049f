"""Whether C and C++ on a page compile.

A program with a `main` is taken as it stands. Anything else becomes the body of one: its #includes go in front, then
<arenite/arenite.hpp>, <iostream> and `using namespace arenite`, then what `<!-- test: before: CODE -->` declares.
"""
import json
import pathlib
import re
import shlex
import subprocess

LIKE = "examples/plan_memory.cpp"


def flags_of(build):
    """Those of an example, less what names its files."""
    commands = json.loads((pathlib.Path(build) / "compile_commands.json").read_text(encoding="utf-8"))
    words = next(shlex.split(entry["command"]) for entry in commands if entry["file"].endswith(LIKE))
    while not re.search(r"(\+\+|cc|clang)[-\d.]*$", words[0]):
        words = words[1:]  # ccache
    kept, skip = [], False
    for word in words:
        if skip or word in ("-o", "-c"):
            skip = word == "-o"
            continue
        if not word.endswith(".cpp"):
            kept.append(word)
    return kept


def program_of(snippet, before):
    if re.search(r"\bmain\(", snippet):
        return snippet
    includes = "".join(re.findall(r"^#include.*\n", snippet, re.M))
    body = re.sub(r"^#include.*\n", "", snippet, flags=re.M)
    return (f"{includes}#include <arenite/arenite.hpp>\n#include <iostream>\nusing namespace arenite;\n"
            f"int main() {{\n{before}\n#line 1 \"page\"\n{body}}}\n")


def compile_errors(language, snippet, before, build, include, file):
    """What the compiler says; empty when all is well."""
    if language == "c":
        file = file.with_suffix(".c")
        command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{include}"]
        text = snippet
    else:
        command = [*flags_of(build), "-Werror", "-Wno-unused-variable"]
        text = program_of(snippet, before)
    file.write_text(text, encoding="utf-8")
    done = subprocess.run([*command, "-fsyntax-only", str(file)], capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr or f"status {done.returncode}"
