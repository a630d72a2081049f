#!/usr/bin/env python3
"""Runs what a page of the documentation shows: its commands, programs, files, links and names.
Usage: docs_commands_test.py BUILD_FOLDER PAGE

Fails when a command fails, or ends with another status than its comment `# status N` says; when a file it was to write
is missing; when something else is printed than a transcript (console) shows; when code does not compile or run; when a
link, a file, a test or an option is not there. What was run, stood in for and skipped is printed, and kept in
BUILD_FOLDER/docs_commands. Exit status 77: the page has Python, and this one has no NumPy.

How pages say what: CONTRIBUTING.md, "Writing pages".
"""
import importlib.util
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "docs_commands"))

import runner  # noqa: E402
from page import Mistake  # noqa: E402

SKIPPED = 77


def report_of(path, build):
    try:
        return runner.Runner(path, build).run()
    except Mistake as mistake:
        return runner.Report(path, mistakes=[str(mistake)])


def main():
    build, path = sys.argv[1:]
    if "```python\n" in (HERE.parent / path).read_text(encoding="utf-8") and not importlib.util.find_spec("numpy"):
        print(f"SKIPPED: {sys.executable} has no NumPy (scripts/install-deps installs it)", file=sys.stderr)
        return SKIPPED
    reports = pathlib.Path(build) / "docs_commands"
    reports.mkdir(exist_ok=True)
    report = report_of(path, build)
    (reports / path.replace("/", ".").replace(".md", ".txt")).write_text(str(report), encoding="utf-8")
    print(report, end="")
    return 1 if report.mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
