"""The part that measures: bench/compare on the GPU, a network and a batch at a time, for as long as time is left."""
import json
import os
import pathlib
import tempfile
import time

from running import run

NETWORKS, BATCHES = ("cnn2", "lenet5", "cnn1", "vgg-small"), (64, 256, 1024)
# As the goals name PyTorch's modes, and the ways of bench/compare that are these.
MODES = {"eager": "cuda_eager", "CUDA graphs": "cuda_graphs", "max-autotune": "cuda_compile"}
EAGER_GOAL, BEST_GOAL, FLOOR, MOST_NOT_KERNELS = 3.0, 1.2, 1.0, 0.10
GOAL_BATCH = 64
LEAST_SECONDS = 25  # for a cell; with less it is not begun
COMPILING = "cuda_compile"
COMPILED_SECONDS = 75  # for a cell of which a way compiles


def cells():
    """Batch 64 first: most goals are about it."""
    return [(network, batch) for batch in BATCHES for network in NETWORKS]


def wrapper(context, folder):
    """Our contestant with NVIDIA's libraries on its path, and no one else's: PyTorch brings its own."""
    script = folder / "contestant"
    exports = "".join(f"export {name}='{context.environment[name]}'\n" for name in ("LD_LIBRARY_PATH", "HWLOC_PLUGINS_PATH")
                      if context.environment.get(name))
    script.write_text(f"#!/bin/sh\n{exports}exec '{context.places.contestant}' \"$@\"\n")
    script.chmod(0o755)
    return script


def ways_of(quick, compiling):
    return [way for way in MODES.values() if way != COMPILING or (compiling and not quick)]


def compiles(batch, left, cells_left):
    """Whether there is time to: at batch 64 while it goes, elsewhere where all the other cells are measured then, too."""
    return left > (COMPILED_SECONDS + LEAST_SECONDS if batch == GOAL_BATCH else COMPILED_SECONDS * cells_left)


def command_of(context, program, network, batch, json_file, compiling):
    command = [context.python_here, context.places.compare, "--device", context.device, "--program", program, "--networks",
               network, "--batches", str(batch), "--rivals", "pytorch", "--json", json_file, "--rounds", "5",
               "--seconds", "0.1" if context.quick else "0.3", "--ways", ",".join(ways_of(context.quick, compiling)),
               "--dataset", context.places.data()[0]]
    if context.torch_python:
        command += ["--python", context.torch_python]
    return command


def speed(part, context):
    environment = dict(os.environ)
    environment.update({name: value for name, value in context.environment.items() if name.startswith("ARENITE_")})
    if context.places.kernel_trace.exists():
        environment["ARENITE_KERNEL_TRACE"] = str(context.places.kernel_trace)
    if not context.torch_python:
        part.notes.append(context.torch_reason)
    end = time.monotonic() + context.limit(part)
    reports, unfinished, uncompiled = {}, [], []
    wanted = [(network, batch) for network, batch in cells() if not context.quick or batch == GOAL_BATCH]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        # Compiled kernels of one cell may serve another: what is compiled twice costs the time of a cell that is not measured.
        environment.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder / "compiled"))
        program = wrapper(context, folder)
        for number, (network, batch) in enumerate(wanted):
            name = f"{network}/{batch}"
            compiling = compiles(batch, end - time.monotonic(), len(wanted) - number)
            done = None
            while end - time.monotonic() >= LEAST_SECONDS:
                context.show(part, f"{network}, batch {batch}{'' if compiling else ', not compiled'}, {number} of {len(wanted)}")
                file = folder / f"{network}-{batch}.json"
                left = end - time.monotonic()
                # A compilation that takes much longer than expected should not cost all other cells theirs.
                limit = min(left - LEAST_SECONDS, 1.5 * COMPILED_SECONDS) if compiling else left
                done = run(command_of(context, program, network, batch, file, compiling), limit, environment)
                if done.status is not None or not compiling:
                    break
                compiling = False  # once more, without
            if done is None or done.status is None:
                unfinished.append(name)
            elif done.status == 0:
                reports[network, batch] = json.loads(file.read_text())
                uncompiled += [name] if not compiling and context.torch_python and not context.quick else []
            else:
                part.check(f"{network}, batch {batch}", done.why, "measured", False)
    if uncompiled:
        part.notes.append(f"max-autotune was left out for want of time: {', '.join(uncompiled)}; --minutes gives more")
    if unfinished:
        part.notes.append(f"not measured for want of time: {', '.join(unfinished)}; --minutes gives more")
    judge(part, reports)


def ratio(ours, theirs):
    """The median over the rounds of ours over theirs, as bench/compare has it."""
    pairs = sorted(a / b for a, b in zip(ours["rates"], theirs["rates"]))
    middle = len(pairs) // 2
    return pairs[middle] if len(pairs) % 2 else (pairs[middle - 1] + pairs[middle]) / 2


def row_of(report):
    """{"ours", "modes": {mode: samples/s}, "ratios", "not_kernels": {who: share}} of a report's one cell."""
    contestants = report["cells"][0]["contestants"]
    ours = contestants.get("arenite/arenite")
    row = {"ours": ours and ours["samples_per_second"], "modes": {}, "ratios": {}, "not_kernels": {}}
    if ours:
        row["not_kernels"]["ours"] = ours.get("not_kernels")
    for mode, way in MODES.items():
        theirs = contestants.get(f"pytorch/{way}")
        if theirs:
            row["modes"][mode] = theirs["samples_per_second"]
            row["not_kernels"][mode] = theirs.get("not_kernels")
            if ours:
                row["ratios"][mode] = ratio(ours, theirs)
    return row


def share(value):
    return "not measured" if value is None else f"{100 * value:.1f} %"


def judge(part, reports):
    rows, shares = [], []
    for (network, batch), report in reports.items():
        row = row_of(report)
        rows.append([network, batch, number(row["ours"]), *(
            f"{number(row['modes'].get(mode))} ({row['ratios'][mode]:.2f}×)" if mode in row["ratios"] else
            number(row["modes"].get(mode)) for mode in MODES)])
        shares.append([network, batch, *(share(row["not_kernels"].get(who)) for who in ("ours", *MODES))])
        part.notes += [reason for reason in report["absent"] if reason not in part.notes]
        judge_row(part, f"{network}, batch {batch}", batch, row)
    if rows:
        part.details["tables"] = [(["network", "batch", "ours, samples/s", *(f"PyTorch {mode} (ours over it)" for mode in MODES)],
                                   rows),
                                  (["share of a step that is not kernels", "batch", "ours", *MODES], shares)]
    part.details["cells"] = {f"{network}/{batch}": report for (network, batch), report in reports.items()}


def judge_row(part, where, batch, row):
    if row["ours"] is None:
        part.check(where, "Arenite did not train", "trained", False)
        return
    missing = [mode for mode in MODES if mode not in row["ratios"]]
    if not row["ratios"]:
        part.skip(f"{where}: beside PyTorch", "PyTorch did not train")
    else:
        best = min(row["ratios"], key=lambda mode: row["ratios"][mode])
        least, of_all = row["ratios"][best], f" (without {', '.join(missing)})" if missing else ""
        if batch == GOAL_BATCH:
            if "eager" in row["ratios"]:
                part.check(f"{where}: ours over eager", f"{row['ratios']['eager']:.2f}×", f"≥ {EAGER_GOAL}×",
                           row["ratios"]["eager"] >= EAGER_GOAL)
            part.check(f"{where}: ours over the best, {best}{of_all}", f"{least:.2f}×", f"≥ {BEST_GOAL}×", least >= BEST_GOAL)
        else:
            part.check(f"{where}: ours over the best, {best}{of_all}", f"{least:.2f}×", f"≥ {FLOOR}×", least >= FLOOR)
    found = row["not_kernels"].get("ours")
    if found is None:
        part.skip(f"{where}: share of our step that is not kernels", "not measured (no CUPTI)")
    else:
        part.check(f"{where}: share of our step that is not kernels", share(found), f"≤ {100 * MOST_NOT_KERNELS:.0f} %",
                   found <= MOST_NOT_KERNELS)


def number(value):
    return "-" if value is None else f"{value:,.0f}"
