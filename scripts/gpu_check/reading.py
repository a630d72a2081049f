"""What programs print, as numbers. Each reader throws NotSaid where it does not find what it reads."""
import re

from running import OutOfTime

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}


class NotSaid(Exception):
    """A program's output that lacks what it should say."""


def ended(done, what):
    """Throws unless a program ended well."""
    if done.status is None:
        raise OutOfTime(f"{what}: {done.why}")
    if done.status != 0:
        raise NotSaid(f"{what}: {done.why}")


def search(pattern, text, what):
    found = re.search(pattern, text, re.MULTILINE)
    if not found:
        raise NotSaid(f"no {what} in the output")
    return found


def accuracy(text):
    """Of `arenite train`, in points."""
    return float(search(r"^test accuracy: ([\d.]+) %$", text, "test accuracy")[1])


def sha256(text):
    return search(r"^weights sha256: ([0-9a-f]{64})$", text, "hash of the weights")[1]


def heap_calls(text):
    """(calls, mappings, training steps, evaluation steps) of `arenite train --count-heap`."""
    found = search(r"^heap calls in (\d+) training and (\d+) evaluation steps after warm-up: (\d+), mappings: (\d+)$", text,
                   "count of heap calls")
    return int(found[3]), int(found[4]), int(found[1]), int(found[2])


def device_bytes(text):
    """Of the memory table's blocks in GPUs' memory, to the byte."""
    return int(search(r"^  on devices +[\d.]+ \w+ +(\d+) bytes$", text, "sum of the blocks on devices")[1])


def device_blocks(text):
    """{name: bytes as the table rounds them} of blocks in GPUs' memory."""
    found = re.findall(r"^  (\S+(?: \S+)*) +([\d.]+) (B|KiB|MiB)   device$", text, re.MULTILINE)
    return {name: round(float(number) * UNITS[unit]) for name, number, unit in found}


def steps(text):
    return int(search(r"^(\d+) steps, ", text, "count of steps")[1])


def gtest(text):
    """(passed, failed, skipped) of a GoogleTest program."""
    def count(word):
        found = re.search(rf"^\[  {word} *\] (\d+) tests?[,.]?", text, re.MULTILINE)
        return int(found[1]) if found else 0

    search(r"^\[=+\] .* ran\.", text, "end of the tests")
    return count("PASSED"), count("FAILED"), count("SKIPPED")


def gtest_skips(text):
    """{test: why} of those that a GoogleTest program skipped."""
    return {test: why.strip() for why, test in re.findall(r": Skipped\n(.*)\n(?:\n)*\[  SKIPPED \] (\S+) \(", text)}


def test_failures(text):
    """A line for each failure of a GoogleTest program, also of one that has not come to its end."""
    return [line for line in text.splitlines() if line.endswith(": Failure")]


def last_case(text):
    """What a program of tests was at when it was ended; empty where it does not say."""
    found = re.findall(r"^(?:case: |\[ RUN      \] )(.+)$", text, re.MULTILINE)
    return found[-1] if found else ""


def sanitizer_reports(text):
    """Lines of compute-sanitizer that tell of errors, also of one that has not come to its end."""
    return re.findall(r"^=+ (?:Invalid|Misaligned|Out-of-bounds|Error: |Race reported|Barrier error|Program hit).*$", text,
                      re.MULTILINE)


def sanitizer(text):
    """(errors or hazards, the line that says so) of compute-sanitizer."""
    pattern = r"^=+ ((?:ERROR SUMMARY: (\d+) errors?|RACECHECK SUMMARY: (\d+) hazards? displayed.*))$"
    search(pattern, text, "summary of compute-sanitizer")
    # One a process.
    found = [(int(errors or hazards), line) for line, errors, hazards in re.findall(pattern, text, re.MULTILINE)]
    return sum(errors for errors, _ in found), max(found)[1]


def call_difference(few, many, steps_between):
    """Calls a step, {"cudaMalloc": {"ours": 0.0, …}}, of two counts of the counter's, for functions that were called."""
    found = {}
    for name, by in many["calls"].items():
        before = few["calls"].get(name, {})
        if any(by.values()):
            found[name] = {owner: (calls - before.get(owner, 0)) / steps_between for owner, calls in by.items()}
    return found
