"""What a program that uses Arenite writes of itself when it is asked to: traces and pictures of its memory."""
import json
import re
import shlex
import xml.etree.ElementTree
from dataclasses import dataclass

import command
from command import Complaint

MOST_STEPS = 1000  # as src/runtime/capture/request.cpp has it
LONG = 100  # letters of a command that are shown


@dataclass
class Ran:
    """A command that was asked to write a file, and whether it did."""
    pid: int
    status: int
    wrote: bool


def record(words, path, environment):
    before = identity(path)
    pid, status = command.run(words, environment)
    return Ran(pid, status, identity(path) not in (None, before))


def identity(path):
    """Changes when a file is written anew."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def not_written(path, what, variable, status):
    """Why, as far as can be known from outside."""
    if status != 0:
        return Complaint(f"no {what}: the command ended with status {status} before it wrote {path}", status=status)
    return Complaint(f"no {what}: the command ran, but wrote no {path}",
                     f"only programs that train or evaluate with Arenite write one ({variable} asks them to)")


def read_trace(path):
    """A trace in Chrome's format. Raises Complaint where the file is none."""
    try:
        text = path.read_text(encoding="utf-8")
        whole = json.loads(text)
    except (OSError, ValueError) as error:
        raise Complaint(f"{path} is no JSON: {error}") from None
    whole = whole if isinstance(whole, dict) else {"traceEvents": whole}
    events = whole.get("traceEvents")
    if not isinstance(events, list) or not all(isinstance(event, dict) and isinstance(event.get("ph"), str) for event in events):
        raise Complaint(f"{path} is no trace: expected \"traceEvents\", a list of events with a phase \"ph\"")
    return whole


def trace_headline(whole):
    """One line: how much of what there is. Raises Complaint where there is no task in it."""
    def argument(event, name):
        return event["args"].get(name) if isinstance(event.get("args"), dict) else None
    events = whole["traceEvents"]
    tasks = [event for event in events if event["ph"] == "X" and argument(event, "task") is not None]
    if not tasks:
        raise Complaint("the trace holds no task: the command ended before its first step")
    # A process may build one program many times: their steps have the same numbers, in sets of their own.
    steps = {tuple(argument(task, name) for name in ("set", "program", "step")) for task in tasks}
    workers = {(task.get("pid"), task.get("tid")) for task in tasks}
    counters = {(event.get("pid"), event.get("name")) for event in events if event["ph"] == "C"}
    begin = min(float(task.get("ts", 0)) for task in tasks)
    end = max(float(task.get("ts", 0)) + float(task.get("dur", 0)) for task in tasks)
    return (f"{count(len(tasks), 'task')} in {count(len(steps), 'step')} on {count(len(workers), 'worker')}, "
            f"{count(len(counters), 'counter')}, {(end - begin) / 1000:.1f} ms")


def whose(whole, started):
    """Lines: the process that wrote the trace, where it says so, and that others may have; `started` is the command's own."""
    facts = whole.get("otherData")
    facts = facts if isinstance(facts, dict) else {}
    pid, words = facts.get("process"), facts.get("command")
    if not isinstance(pid, int):
        return []
    said = shlex.join(words) if isinstance(words, list) and all(isinstance(word, str) for word in words) else ""
    lines = [f"of process {pid}" + (f": {said if len(said) <= LONG else said[:LONG - 1] + '…'}" if said else "")]
    if pid != started:
        lines.append("the command started it; of several such processes the last to end is shown")
    return lines


def count(number, what):
    return f"{number} {what}{'s' * (number != 1)}"


def picture_size(path):
    """(width, height) of an SVG picture. Raises Complaint where the file is none."""
    try:
        root = xml.etree.ElementTree.parse(path).getroot()
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        raise Complaint(f"{path} is no SVG: {error}") from None
    if root.tag != "{http://www.w3.org/2000/svg}svg":
        raise Complaint(f"{path} is no SVG: its root is <{root.tag}>")
    return tuple(re.sub(r"\.0+$", "", root.get(name, "?")) for name in ("width", "height"))
