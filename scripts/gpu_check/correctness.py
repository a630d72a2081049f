"""The parts that ask whether a GPU computes what it should: operators, sanitizer, training, allocations."""
import json
import pathlib
import statistics
import tempfile
import time

import elf
import nvidia
import reading
from running import run

MOST_POINTS = 0.5  # between test accuracies on CPU and GPU
SEEDS = 1, 2, 3
# At 0.02, the default, runs that round differently end up to 0.9 points apart; at this rate 0.2.
RATE = "0.005"
BATCH = 64
HEAP_STEPS = 20, 90  # of one epoch; the drawn set has no more


def operators(part, context):
    """Every kernel against the reference in double, and small programs against those of the CPU."""
    end = time.monotonic() + context.limit(part)
    for program, what in ((context.places.device_test, "kernels agree with the reference (1e-4 relative, fp32)"),
                          (context.places.program_test, "small programs agree with the CPU, and repeat their bits")):
        if not program.exists():
            part.skip(what, f"no {program}")
            continue
        context.show(part, program.name)
        done = run([program], end - time.monotonic(), context.environment)
        try:
            passed, failed, skipped = reading.gtest(done.out)
            found = f"{passed} tests passed, {failed} failed, {skipped} skipped, {done.seconds:.0f} s"
            part.check(what, found, "all tests pass", done.status == 0 and failed == 0 and skipped == 0 and passed > 0)
            part.notes += [line for line in done.out.splitlines() if "Failure" in line][:20]
        except reading.NotSaid:
            part.check(what, done.why, "all tests pass", False)


def train(context, *options, limit=600, environment=None, device="cuda"):
    return run([context.places.arenite, "train", "--device", context.device if device == "cuda" else device, *options], limit,
               environment or context.environment)


def sanitizer(part, context):
    """memcheck and racecheck on a small suite: some steps, recorded and not, then all operators as far as time goes."""
    tool = nvidia.find_tool("compute-sanitizer", context.site)
    if not tool:
        part.skipped = "no compute-sanitizer (it comes with the CUDA toolkit)"
        return
    end = time.monotonic() + context.limit(part)
    few = ["train", "--device", context.device, "--dataset", "synthetic", "--limit", "160", "--batch", "64", "--epochs", "1"]
    apart = ("cnn1, steps one by one", [context.places.arenite, *few, "--model", "cnn1", "--cuda-graphs", "off"])
    suite = [("cnn1, recorded steps", [context.places.arenite, *few, "--model", "cnn1"])]
    if not context.quick:
        suite += [("operators", [context.places.device_test]), apart,
                  ("cnn2, steps one by one", [context.places.arenite, *few, "--model", "cnn2", "--cuda-graphs", "off"])]
    # racecheck looks at shared memory, which the libraries' kernels have and ours have not: one run of it says all.
    runs = [("memcheck", *one) for one in suite] + [("racecheck", *apart)]
    for number, (check, what, command) in enumerate(runs):
        context.show(part, f"{check}, {what}")
        limit = (end - time.monotonic()) / (len(runs) - number) * (1 if number == len(runs) - 1 else 1.5)
        # Calls that a library makes to see whether they fail are no errors: ours are reported by the runtime.
        calls = ["--report-api-errors", "no"] if check == "memcheck" else []
        done = run([tool, "--tool", check, *calls, "--error-exitcode", "66", "--target-processes", "all", *command], limit,
                   context.environment)
        if done.status is None:
            part.skip(f"{check}: {what}", f"not done after {done.seconds:.0f} s")
            continue
        try:
            errors, line = reading.sanitizer(done.out + done.err)
            found = line if errors or done.status == 0 else f"{line}, but {done.why}"
            part.check(f"{check}: {what}", found, "0", errors == 0 and done.status == 0)
            if errors:
                part.notes += [text for text in (done.out + done.err).splitlines() if text.startswith("=====")][:30]
        except reading.NotSaid:
            part.check(f"{check}: {what}", done.why, "0", False)


def training(part, context):
    """cnn2 learns as much on the GPU as on the CPU; a GPU run repeats its bits, recorded or not."""
    end = time.monotonic() + context.limit(part)
    name, _ = context.places.data()
    size = ["--limit", "2000", "--epochs", "1"] if context.quick else ["--limit", "20000", "--epochs", "4", "--lr", RATE]
    common = ["--model", "cnn2", "--dataset", name, "--batch", str(BATCH), *size]
    part.notes.append(f"cnn2 on {name}, batch {BATCH}, {' '.join(size)}")

    def once(device, seed, *more):
        context.show(part, f"cnn2 on {device}, seed {seed}{''.join(' ' + word for word in more)}")
        done = train(context, *common, "--seed", str(seed), *more, limit=end - time.monotonic(), device=device)
        if done.status != 0:
            raise reading.NotSaid(f"{device}, seed {seed}: {done.why}")
        return reading.accuracy(done.out), reading.sha256(done.out), done.seconds

    try:
        points = {"cpu": [], "cuda": []}
        first = once("cuda", SEEDS[0])
        points["cuda"].append(first[0])
        for what, more in (("two runs on the GPU give the same bits", ()),
                           ("with and without CUDA graphs: the same bits", ("--cuda-graphs", "off"))):
            again = once("cuda", SEEDS[0], *more)
            part.check(what, f"{first[1][:12]}, {again[1][:12]}", "equal hashes of the weights", first[1] == again[1])
        for seed in SEEDS[:1] if context.quick else SEEDS:
            if seed != SEEDS[0]:
                if end - time.monotonic() < 1.3 * (taken + first[2]):
                    part.notes.append(f"no time for more than {len(points['cpu'])} of {len(SEEDS)} seeds")
                    break
                points["cuda"].append(once("cuda", seed)[0])
            accuracy, _, taken = once("cpu", seed)
            points["cpu"].append(accuracy)
        means = {device: statistics.mean(values) for device, values in points.items()}
        for device, values in points.items():
            part.note(f"test accuracy on {device}", f"{means[device]:.2f} % ({', '.join(f'{one:.2f}' for one in values)})")
        difference = means["cuda"] - means["cpu"]
        part.check(f"test accuracy, GPU less CPU, mean of {len(points['cpu'])} seeds", f"{difference:+.2f} points",
                   f"within ±{MOST_POINTS}", abs(difference) <= MOST_POINTS)
        part.details["accuracy"] = points
    except reading.NotSaid as error:
        part.check("trains to the end", str(error), "done", False)


def counted(context, folder, epochs, limit):
    """(what a training run said, what the counter wrote), of 20 steps and an evaluation an epoch."""
    file = folder / f"counts-{epochs}.json"
    environment = dict(context.environment, ARENITE_CUDA_COUNTS=str(file), LD_PRELOAD=str(context.places.cuda_counter))
    done = train(context, "--model", "cnn2", "--dataset", "synthetic", "--limit", str(20 * BATCH), "--batch", str(BATCH),
                 "--epochs", str(epochs), limit=limit, environment=environment)
    if done.status != 0:
        raise reading.NotSaid(f"{epochs} epochs: {done.why}")
    try:
        return done.out, json.loads(file.read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise reading.NotSaid(f"the counter wrote nothing: {error}") from None


def allocations(part, context):
    """What a step asks of CUDA and of the heap: nothing. What is held on the device: what the plan says."""
    end = time.monotonic() + context.limit(part)
    if not context.places.cuda_counter.exists():
        part.skip("calls of CUDA's allocators a step", f"no {context.places.cuda_counter}")
    else:
        try:
            with tempfile.TemporaryDirectory() as folder:
                context.show(part, "20 steps, then 200, with CUDA's allocators counted")
                (short, few), (long, many) = (counted(context, pathlib.Path(folder), epochs, end - time.monotonic())
                                              for epochs in (1, 10))
            judge_counts(part, short, few, long, many)
        except reading.NotSaid as error:
            part.check("calls of CUDA's allocators a step", str(error), "0", False)
    if not context.places.heap_counter.exists():
        part.skip("heap calls a step", f"no {context.places.heap_counter}")
        return
    context.show(part, "20 steps, then 90, with heap calls counted")
    try:
        with tempfile.TemporaryDirectory() as folder:
            (_, few), (said, many) = (heap_counted(context, pathlib.Path(folder), steps, end - time.monotonic())
                                      for steps in HEAP_STEPS)
        judge_heap(part, said, few, many)
    except reading.NotSaid as error:
        part.check("heap calls a step", str(error), "0", False)


def heap_counted(context, folder, steps, limit):
    """As `counted`, of the heap: {library: calls}. One epoch, so that only steps differ."""
    file = folder / f"callers-{steps}.json"
    environment = dict(context.environment, ARENITE_HEAP_CALLERS=str(file), LD_PRELOAD=str(context.places.heap_counter))
    done = train(context, "--model", "cnn2", "--dataset", "synthetic", "--limit", str(steps * BATCH), "--batch", str(BATCH),
                 "--epochs", "1", limit=limit, environment=environment)
    if done.status != 0:
        raise reading.NotSaid(f"{steps} steps: {done.why}")
    try:
        return done.out, json.loads(file.read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise reading.NotSaid(f"the counter wrote nothing: {error}") from None


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
    part.details["heap"] = {f"{HEAP_STEPS[0]} steps": few, f"{HEAP_STEPS[1]} steps": many}


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
    part.note("bytes on the device at most", f"ours {peak['ours']:,}, StarPU's {peak['starpu']:,}, by libraries of NVIDIA's "
              f"through the shared libcudart {peak['nvidia']:,}")
    part.check("ours and StarPU's are the plan's", f"{peak['ours'] + peak['starpu']:,} bytes", f"{planned:,} bytes",
               peak["ours"] + peak["starpu"] == planned)
    for name, size in reading.device_blocks(long).items():
        part.note(f"block {name}", f"{size:,} bytes (rounded)")
    if many["untracked"]:
        part.notes.append(f"{many['untracked']} allocations beyond the counter's table are missing from these bytes")
    part.details["counts"] = {"20 steps": few, "200 steps": many}
