#!/usr/bin/env python3
"""Runs what a page of the documentation shows: its commands, programs, files, links and names.
Usage: docs_commands_test.py BUILD_FOLDER PAGE

Fails when a command fails, or ends with another status than its comment `# status N` says; when a file it was to write
is missing; when something else is printed than a transcript (console) shows; when code does not compile or run; when a
link, a file, a test or an option is not there. What was run, stood in for and skipped is printed, and kept in
BUILD_FOLDER/docs_commands. Exit status 77: the page needs NumPy or perf, and they are not here.

How pages say what: CONTRIBUTING.md, "Writing pages".
"""
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "docs_commands"))

import runner  # noqa: E402
from page import Mistake  # noqa: E402

SKIPPED = 77


def perf_may_watch():
    with tempfile.TemporaryDirectory() as folder:
        command = ["perf", "record", "--quiet", "-e", "cpu-clock", "-o", f"{folder}/data", "--", "true"]
        return shutil.which("perf") is not None and subprocess.run(command, capture_output=True).returncode == 0


def why_not(text):
    """What a page needs and this machine lacks, or ""."""
    if "```python\n" in text and not importlib.util.find_spec("numpy"):
        return f"{sys.executable} has no NumPy (scripts/install-deps installs it)"
    if "<!-- test: page: needs perf -->" in text and not perf_may_watch():
        return "perf is not here, or may not watch (scripts/install-deps --profile; arenite doctor perf)"
    return ""


def report_of(path, build):
    try:
        return runner.Runner(path, build).run()
    except Mistake as mistake:
        return runner.Report(path, mistakes=[str(mistake)])


def main():
    build, path = sys.argv[1:]
    if reason := why_not((HERE.parent / path).read_text(encoding="utf-8")):
        print(f"SKIPPED: {reason}", file=sys.stderr)
        return SKIPPED
    reports = pathlib.Path(build) / "docs_commands"
    reports.mkdir(exist_ok=True)
    report = report_of(path, build)
    (reports / path.replace("/", ".").replace(".md", ".txt")).write_text(str(report), encoding="utf-8")
    print(report, end="")
    return 1 if report.mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
