"""Today's build against an older one: whether it is slower, whether its weights have the same bits, and its heap calls."""
import json
import os
import random
import statistics
import subprocess
from dataclasses import replace

from networks import MOMENTUM, learning_rate
from report import number, place, table

LEAST_ROUNDS = 15  # fewer decide nothing
RESAMPLES = 2000
SLOWER, FASTER = 0.97, 1 / 0.97
STEPS = 3  # of `arenite train`, whose weights are compared
OURS, BEFORE = "arenite/arenite", "before/arenite"


def way(ours, program):
    """The older contestant is asked as ours is: of the same options it must know those that it knew."""
    return replace(ours, rival="before", command=(str(program), *ours.command[1:]))


def interval(ratios):
    """That of 90 % for their median, by bootstrap; the same for the same ratios."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    tail = RESAMPLES // 20
    return medians[tail], medians[-1 - tail]


def verdict(ratios):
    """Now over before, a ratio a round."""
    if len(ratios) < LEAST_ROUNDS:
        return {"verdict": "not decided"}
    middle, (low, high) = statistics.median(ratios), interval(ratios)
    word = "slower" if middle < SLOWER and high < 1 else "faster" if middle > FASTER and low > 1 else "same"
    return {"ratio": middle, "interval": [low, high], "verdict": word}


def judged(contestants):
    """Of a cell's contestants: the verdict, none where one of both is missing."""
    both = [contestants.get(key, {"rates": []})["rates"] for key in (OURS, BEFORE)]
    return verdict([now / before for now, before in zip(*both)])


def trained(program, cell, dataset, places, libraries, patience):
    """How a few steps of the `arenite` beside a contestant end, heap calls counted; None and a reason where they fail."""
    arenite = program.resolve().with_name("arenite")
    command = [arenite, "train", "--json", "--count-heap", "--model", cell.network, "--dataset", dataset,
               "--batch", cell.batch, "--workers", cell.workers, "--limit", STEPS * cell.batch, "--epochs", 1,
               "--lr", learning_rate(cell.batch), "--momentum", MOMENTUM, *places]
    environment = os.environ | ({"LD_LIBRARY_PATH": libraries} if libraries else {})
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment, timeout=patience)
        if done.returncode:
            return None, f"{arenite}: {(done.stderr.strip().splitlines() or [f'status {done.returncode}'])[-1]}"
        return next(event for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "end"), None
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    except (ValueError, TypeError, KeyError, StopIteration):
        return None, f"{arenite}: it did not say how it ended"


def ends(programs, *how):
    """Of both programs, the older first: hashes of the weights and heap calls. Without them, why not."""
    found = []
    for program in programs:
        end, why = trained(program, *how)
        if end is None:
            return {"not_compared": why, "broken": program == programs[-1]}
        found.append(end)
    return {name: [end[name] for end in found] for name in ("weights_sha256", "heap_calls")}


def other_bits(cell):
    return len(set(cell["before"].get("weights_sha256", ()))) > 1


def more_heap_calls(cell):
    before, now = cell["before"].get("heap_calls") or (0, 0)
    return now > before


def fine(report):
    """Whether every cell is decided and none slower, of other bits or with more heap calls, as far as the older build can
    be compared."""
    return all(cell["before"]["verdict"] in ("same", "faster") and not cell["before"].get("broken")
               and not other_bits(cell) and not more_heap_calls(cell) for cell in report["cells"])


def row(cell):
    one = cell["before"]
    rates = [cell["contestants"].get(key, {}).get("samples_per_second") for key in (BEFORE, OURS)]
    hashes, calls = one.get("weights_sha256"), one.get("heap_calls")
    return [*place(cell), *(number(rate, ".0f") for rate in rates), number(one.get("ratio"), ".3f"),
            "–".join(f"{end:.3f}" for end in one["interval"]) if "interval" in one else "-", one["verdict"],
            "-" if not hashes else "equal" if hashes[0] == hashes[1] else "differ",
            "-" if not calls else calls[1] if calls[0] == calls[1] else f"{calls[0]}, now {calls[1]}"]


def text(report):
    cells = report["cells"]

    def those(words, found):
        names = ["/".join(map(str, place(cell))) for cell in cells if found(cell)]
        return [f"{words} {', '.join(names)}"] if names else []

    said = [*those("slower:", lambda cell: cell["before"]["verdict"] == "slower"),
            *those("not decided:", lambda cell: cell["before"]["verdict"] == "not decided"),
            *those("other bits:", other_bits),
            *those("more heap calls:", more_heap_calls),
            *those("bits and heap calls not compared:", lambda cell: "not_compared" in cell["before"])]
    heads = ["network", "batch", "workers", "before", "now", "ratio", "90 % interval", "verdict", "bits", "heap calls"]
    return (f"Before and now: samples a second, {report['settings']['rounds']} pairs of turns; "
            f"before: {report['settings']['before']}\n{table(heads, list(map(row, cells)))}\n"
            f"slower: the median of the pairs' ratios (now over before) is below {SLOWER}, and its interval below 1; "
            f"faster: above {FASTER:.3f}, and its interval above 1\n\n"
            f"{'; '.join(said) or f'none of {len(cells)} slower, bits as before, no more heap calls'}\n")
