"""What a program that uses Arenite writes of itself when it is asked to: traces and pictures of its memory."""
import json
import re
import xml.etree.ElementTree

import command
from command import Complaint


def record(words, path, environment):
    """(the command's status, whether it wrote the file)."""
    before = identity(path)
    status = command.run(words, environment)
    return status, identity(path) not in (None, before)


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


def trace_events(path):
    """The events of a trace in Chrome's format. Raises Complaint where the file is none."""
    try:
        text = path.read_text(encoding="utf-8")
        whole = json.loads(text)
    except (OSError, ValueError) as error:
        raise Complaint(f"{path} is no JSON: {error}") from None
    events = whole.get("traceEvents") if isinstance(whole, dict) else whole
    if not isinstance(events, list) or not all(isinstance(event, dict) and isinstance(event.get("ph"), str) for event in events):
        raise Complaint(f"{path} is no trace: expected \"traceEvents\", a list of events with a phase \"ph\"")
    return events


def trace_headline(events):
    """One line: how much of what there is. Raises Complaint where there is no task in it."""
    def argument(event, name):
        return event["args"].get(name) if isinstance(event.get("args"), dict) else None
    tasks = [event for event in events if event["ph"] == "X" and argument(event, "task") is not None]
    if not tasks:
        raise Complaint("the trace holds no task: the command ended before its first step")
    steps = {(argument(task, "program"), argument(task, "step")) for task in tasks}
    workers = {(task.get("pid"), task.get("tid")) for task in tasks}
    counters = {(event.get("pid"), event.get("name")) for event in events if event["ph"] == "C"}
    begin = min(float(task.get("ts", 0)) for task in tasks)
    end = max(float(task.get("ts", 0)) + float(task.get("dur", 0)) for task in tasks)
    return (f"{count(len(tasks), 'task')} in {count(len(steps), 'step')} on {count(len(workers), 'worker')}, "
            f"{count(len(counters), 'counter')}, {(end - begin) / 1000:.1f} ms")


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
