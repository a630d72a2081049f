"""results.md and results.json of what the parts found."""
import json
import os

from running import FAILED, INCOMPLETE, PASSED, SKIPPED, Check, Part

FORMAT, VERSION = "arenite-gpu-check", 2


def escape(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def table(heads, rows):
    """In Markdown."""
    lines = ["| " + " | ".join(map(escape, heads)) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(map(escape, row)) + " |" for row in rows])


def status_of(parts):
    """(word, exit status) of the whole."""
    known = {part.status for part in parts}
    if FAILED in known:
        return FAILED, 1
    if known <= {PASSED}:
        return PASSED, 0
    return (SKIPPED, 0) if known == {SKIPPED} else (INCOMPLETE, 0)


def markdown(environment, parts):
    pieces = ["# Arenite on a GPU", table(["", ""], environment.items()),
              "## Summary", table(["part", "outcome", "seconds"], [
                  [part.name, part.outcome, f"{part.seconds:.0f}"] for part in parts])]
    for part in parts:
        pieces.append(f"## {part.name}")
        if part.skipped:
            pieces.append(f"skipped: {part.skipped}")
        if part.checks:
            pieces.append(table(["check", "found", "wanted", "verdict"],
                                [[check.what, check.found, check.wanted, check.verdict] for check in part.checks]))
        for heads, rows in part.details.get("tables") or []:
            pieces.append(table(heads, rows))
        if part.notes:
            pieces.append("\n".join(f"- {escape(note)}" for note in part.notes))
    return "\n\n".join(pieces) + "\n"


def as_json(environment, parts):
    return json.dumps({
        "format": FORMAT, "version": VERSION, "status": status_of(parts)[0], "environment": environment,
        "parts": [{"name": part.name, "status": part.status, "skipped": part.skipped or None, "running": part.running,
                   "seconds": round(part.seconds, 3), "checks": [vars(check) for check in part.checks],
                   "notes": part.notes, "details": part.details}
                  for part in parts]}, indent=1, default=str) + "\n"


def write(folder, environment, parts):
    """Both, each whole or as it was."""
    for name, text in (("results.md", markdown(environment, parts)), ("results.json", as_json(environment, parts))):
        beside = folder / f".{name}.{os.getpid()}"
        beside.write_text(text, encoding="utf-8")
        beside.rename(folder / name)


class Unreadable(Exception):
    """Earlier results that cannot be gone on with."""


def read(folder):
    """(environment, {name: Part}) of an earlier results.json."""
    file = folder / "results.json"
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
        if known["format"] != FORMAT or known["version"] != VERSION:
            raise Unreadable(f"{file}: expected {FORMAT}, version {VERSION}")
        parts = [Part(one["name"], [Check(**check) for check in one["checks"]], one["notes"], one["seconds"],
                      one["skipped"] or "", one["running"], one["details"]) for one in known["parts"]]
        return known["environment"], {part.name: part for part in parts}
    except OSError as error:
        raise Unreadable(f"{file}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"{file}: {type(error).__name__}: {error}; expected what gpu-check writes") from None
