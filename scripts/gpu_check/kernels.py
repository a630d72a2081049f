"""The part that times each GPU kernel of the networks' steps by itself. Where an op has several, `speed` is given the fastest."""
import hashlib
import json
import pathlib
import tempfile

from running import run

TIMED = "all kernels are timed"


def timed(details):
    """The cells of which every kernel was timed: one that failed may do better another time."""
    failed = {f"{row['network']}/{row['batch']}" for row in details.get("rows", []) if "error" in row}
    return [cell for cell in details.get("cells", []) if cell not in failed]


def covers(part, cells):
    """Whether a part's results are of all these."""
    return set(cells) <= set(timed(part.details))


def fingerprint(details, cell):
    """Of the kernels that a cell's own ops are given; None where none was measured."""
    network, batch = cell.split("/")
    ops = {row["op"] for row in details.get("rows", []) if (row["network"], str(row["batch"])) == (network, batch)}
    chosen = sorted((one["op"], one["kernel"]) for one in chosen_of(details) if one["op"] in ops)
    return hashlib.sha256(json.dumps(chosen).encode()).hexdigest()[:12] if chosen else None


def chosen_of(details):
    return (details.get("choices") or {}).get("choices", [])


def kernels(part, context, seconds):
    program = context.places.gpu_kernels
    known = context.kernels
    missing = [cell for cell in context.cells if cell not in timed(known)]
    if not program.exists():
        part.skip(TIMED, f"no {program}")
        return
    context.show(part, ", ".join(missing) or "what is known")
    with tempfile.TemporaryDirectory() as folder:
        times, choices = pathlib.Path(folder) / "timed.json", pathlib.Path(folder) / "choices.json"
        if missing:
            done = run([program, "--cells", ",".join(missing), "--json", times, "--choose", choices], seconds,
                       context.environment)
            if done.status is None:
                part.skip(TIMED, f"{done.why}; --resume goes on with it")
            elif done.status:
                part.check(TIMED, done.why, "they are", False)
        if choices.exists():  # as far as there was time
            known = joined(known, json.loads(times.read_text()), json.loads(choices.read_text()))
    part.details |= known
    context.kernels = known
    judge(part)


def joined(known, more, choices):
    """What was known, and more of the same: {"cells": …, "rows": …, "choices": …}. What was timed again is as it is now."""
    ops = {one["op"] for one in choices["choices"]}
    kept = [one for one in chosen_of(known) if one["op"] not in ops]
    cells = [cell for cell in known.get("cells", []) if cell not in more["cells"]]
    rows = [row for row in known.get("rows", []) if f"{row['network']}/{row['batch']}" in cells]
    return {"cells": cells + more["cells"], "rows": rows + more["rows"], "choices": choices | {"choices": kept + choices["choices"]}}


def judge(part):
    """By the rows and choices that gpu_kernels wrote."""
    rows = part.details.get("rows", [])
    if not rows:
        return
    failed = [row for row in rows if "error" in row]
    part.check("kernels that run", f"{len(rows) - len(failed)} of {len(rows)}", "all", not failed)
    part.notes += [f"{row['kernel']} of {row['op']}: {row['error']}" for row in failed[:10]]
    times = {(row["op"], row["kernel"]): row["microseconds"] for row in rows if "error" not in row}
    chosen = {one["op"]: one["kernel"] for one in chosen_of(part.details)}
    table, taken, fastest = [], 0, 0
    for row in rows:
        kernel = chosen.get(row["op"], row["kernel"])
        own, best = times.get((row["op"], row["kernel"])), times.get((row["op"], kernel))
        if not row["chosen"] or own is None or best is None:
            continue
        taken, fastest = taken + own, fastest + best
        if kernel != row["kernel"]:
            table.append([row["network"], row["batch"], row["op"], f"{row['kernel']} {own:.1f}", f"{kernel} {best:.1f}",
                          f"{own / best:.2f}×"])
    part.note("ops of which another kernel than programs take by themselves is faster", f"{len(table)} of {len(chosen)} that "
              "have several")
    if fastest:
        part.note("all different ops once each: programs' own kernels, the fastest", f"{taken:.0f} µs, {fastest:.0f} µs "
                  f"({taken / fastest:.2f}×)")
    part.details["tables"] = [[["network", "batch", "op", "taken, µs", "fastest, µs", ""], table]] if table else []
