"""The part that times each GPU kernel of the networks' steps by itself. Where an op has several, `speed` is given the fastest."""
import json
import pathlib
import tempfile

from running import run

TIMED = "all kernels are timed"


def kernels(part, context, seconds):
    program = context.places.gpu_kernels
    if not program.exists():
        part.skip(TIMED, f"no {program}")
        return
    batches = [64] if context.quick else sorted(context.batches)
    context.show(part, f"{', '.join(context.networks)}, batches {', '.join(map(str, batches))}")
    with tempfile.TemporaryDirectory() as folder:
        rows, choices = pathlib.Path(folder) / "rows.json", pathlib.Path(folder) / "choices.json"
        done = run([program, "--networks", ",".join(context.networks), "--batches", ",".join(map(str, batches)), "--json", rows,
                    "--choose", choices], seconds, context.environment)
        if done.status is None:
            part.skip(TIMED, done.why)
        elif done.status:
            part.check(TIMED, done.why, "they are", False)
        if choices.exists():  # as far as there was time
            judge(part, json.loads(rows.read_text()), json.loads(choices.read_text()))
            context.choices = part.details["choices"]


def judge(part, rows, choices):
    """`rows` and `choices` as gpu_kernels writes them."""
    failed = [row for row in rows if "error" in row]
    part.check("kernels that run", f"{len(rows) - len(failed)} of {len(rows)}", "all", rows and not failed)
    part.notes += [f"{row['kernel']} of {row['op']}: {row['error']}" for row in failed[:10]]
    times = {(row["op"], row["kernel"]): row["microseconds"] for row in rows if "error" not in row}
    chosen = {choice["op"]: choice["kernel"] for choice in choices["choices"]}
    table, taken, fastest = [], 0, 0
    for row in rows:
        if not row["chosen"]:
            continue
        kernel = chosen.get(row["op"], row["kernel"])
        own, best = times.get((row["op"], row["kernel"])), times.get((row["op"], kernel))
        if own is None or best is None:
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
    part.details |= {"tables": [[["network", "batch", "op", "taken, µs", "fastest, µs", ""], table]] if table else [],
                     "rows": rows, "choices": choices}
