"""The part that counts what a step asks of CUDA and of the heap: nothing. What is held on the device: what the plan says."""
import json
import pathlib
import shutil
import tempfile
import time

import elf
import reading
from correctness import BATCH, train
from running import OutOfTime

HEAP_STEPS = 20, 90  # of one epoch; the drawn set has no more
SPLITS = ":;$"  # what the loader takes for something else in LD_LIBRARY_PATH


def allocations(part, context, seconds):
    end = time.monotonic() + seconds

    def left():
        return end - time.monotonic()

    counters = {"calls of CUDA's allocators a step": (context.places.cuda_counter, count_cuda),
                "heap calls a step": (context.places.heap_counter, count_heap)}
    there = any(counter.exists() for counter, _ in counters.values())
    try:
        if there:  # what is measured once on a machine, and kept, is in no count
            context.show(part, "a run that is not counted")
            reading.ended(train(context, *steps_of(20, 1), limit=left()), "a run that is not counted")
    except (reading.NotSaid, OutOfTime) as error:
        part.program("trains to the end", error)
        return
    for what, (counter, count) in counters.items():
        if not counter.exists():
            part.skip(what, f"no {counter}")
            continue
        try:
            with tempfile.TemporaryDirectory() as folder:
                count(part, context, pathlib.Path(folder), left)
        except (reading.NotSaid, OutOfTime) as error:
            part.program(what, error)
        context.save()


def steps_of(steps, epochs):
    return ["--model", "cnn2", "--dataset", "synthetic", "--limit", str(steps * BATCH), "--batch", str(BATCH), "--epochs",
            str(epochs)]


def preloaded(environment, library, folder):
    """The environment that preloads a library wherever it lies: by its name, for the loader splits paths at spaces."""
    home = library.parent
    if any(one in str(home) for one in SPLITS):
        home = folder
        shutil.copy2(library, home)
    path = ":".join(filter(None, (str(home), environment.get("LD_LIBRARY_PATH"))))
    first = ":".join(filter(None, (library.name, environment.get("LD_PRELOAD"))))
    return dict(environment, LD_PRELOAD=first, LD_LIBRARY_PATH=path)


def counted(context, library, variable, file, options, limit):
    """(what a training run said, what the preloaded counter wrote)."""
    environment = preloaded(context.environment, library, file.parent)
    environment[variable] = str(file)
    done = train(context, *options, limit=limit, environment=environment)
    reading.ended(done, " ".join(options[-5:]))
    try:
        return done.out, json.loads(file.read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise reading.NotSaid(f"the counter wrote nothing: {error}") from None


def count_cuda(part, context, folder, left):
    context.show(part, "20 steps, then 200, with CUDA's allocators counted")
    (short, few), (long, many) = (counted(context, context.places.cuda_counter, "ARENITE_CUDA_COUNTS",
                                          folder / f"counts-{epochs}.json", steps_of(20, epochs), left()) for epochs in (1, 10))
    judge_counts(part, short, few, long, many)


def count_heap(part, context, folder, left):
    """Of one epoch, so that only steps differ: {library: calls}, of those made while steps were under way."""
    context.show(part, "20 steps, then 90, with heap calls counted")
    (_, few), (said, many) = (counted(context, context.places.heap_counter, "ARENITE_HEAP_CALLERS",
                                      folder / f"callers-{steps}.json", steps_of(steps, 1), left()) for steps in HEAP_STEPS)
    part.details["heap"] = {f"{HEAP_STEPS[0]} steps": few, f"{HEAP_STEPS[1]} steps": many}
    judge_heap(part, said, few["steps"], many["steps"])


def judge_heap(part, said, few, many):
    heap, maps, steps, evaluations = reading.heap_calls(said)
    part.note(f"heap calls of the whole process in {steps} training and {evaluations} evaluation steps",
              f"{heap}, mappings {maps}")
    between = HEAP_STEPS[1] - HEAP_STEPS[0]
    grown = {library: calls - few.get(library, 0) for library, calls in many.items() if calls != few.get(library, 0)}
    theirs = {library: calls for library, calls in grown.items() if elf.kind(library) == "nvidia"}
    ours = {library: calls for library, calls in grown.items() if library not in theirs}
    part.check(f"heap calls of ours, StarPU's and the system's in {between} steps more", listed(ours) or "0", "0", not ours)
    part.note(f"heap calls of NVIDIA's libraries in {between} steps more", listed(theirs) or "0")


def listed(calls):
    return ", ".join(f"{library} {count}" for library, count in calls.items())


def judge_counts(part, short, few, long, many):
    between = reading.steps(long) - reading.steps(short)
    a_step = reading.call_difference(few, many, between)
    for name, by in a_step.items():
        whole = ", ".join(f"{owner} {many['calls'][name][owner]}" for owner in by if many["calls"][name][owner])
        part.check(f"{name} a step (beyond 20 steps, {between} more)", f"{sum(by.values()):g} (all in all: {whole})", "0",
                   not any(by.values()))
    peak, planned = many["peak_device_bytes"], reading.device_bytes(long)
    built = many.get("peak_device_bytes_while_building")
    if built:
        part.note("bytes on the device at most while programs are built and kernels tried", f"ours {built['ours']:,}, StarPU's "
                  f"{built['starpu']:,}, NVIDIA's {built['nvidia']:,}")
    part.note("bytes on the device at most", f"ours {peak['ours']:,}, StarPU's {peak['starpu']:,}, by libraries of NVIDIA's "
              f"through the shared libcudart {peak['nvidia']:,}")
    part.check("ours and StarPU's are the plan's", f"{peak['ours'] + peak['starpu']:,} bytes", f"{planned:,} bytes",
               peak["ours"] + peak["starpu"] == planned)
    for name, size in reading.device_blocks(long).items():
        part.note(f"block {name}", f"{size:,} bytes (rounded)")
    if many["untracked"]:
        part.notes.append(f"{many['untracked']} allocations beyond the counter's table are missing from these bytes")
    part.details["counts"] = {"20 steps": few, "200 steps": many}
