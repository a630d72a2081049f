"""The parts that ask whether a GPU computes what it should: operators, sanitizer, training."""
import statistics
import time

import nvidia
import reading
from running import NOTED, PASSED, OutOfTime, run

MOST_POINTS = 0.5  # between test accuracies on CPU and GPU
SEEDS = 1, 2, 3
# At 0.02, the default, runs that round differently end up to 0.9 points apart; at this rate 0.2.
RATE = "0.005"
BATCH = 64
OPERATORS = "operators"
DEVICE_TESTS = 0.65  # of the time of operators
OURS = "kns=arenite"  # every kernel of our own has it in its name


def operators(part, context, seconds):
    """Every kernel against the reference in double, and small programs against those of the CPU."""
    end = time.monotonic() + seconds
    for program, what in ((context.places.device_test, "kernels agree with the reference (1e-4 relative, fp32)"),
                          (context.places.program_test, "small programs agree with the CPU, and repeat their bits")):
        if not program.exists():
            part.skip(what, f"no {program}")
            continue
        context.show(part, program.name)
        left = end - time.monotonic()
        done = run([program], DEVICE_TESTS * left if program == context.places.device_test else left,
                   context.for_small_programs() if program == context.places.program_test else context.environment)
        judge_tests(part, what, done)
        context.save()


def judge_tests(part, what, done):
    """A program of tests. One that skips for want of a device fails: gpu-check has found one."""
    if done.status is None:
        at = reading.last_case(done.out)
        why = f"not done after {done.seconds:.0f} s, at {at}" if at else done.why
        failures = reading.test_failures(done.out)
        if failures:
            part.check(what, f"{len(failures)} failures, and {why}", "all tests pass", False)
            part.notes += failures[:20]
        else:
            part.skip(what, why)
        return
    try:
        passed, failed, skipped = reading.gtest(done.out)
    except reading.NotSaid:
        part.check(what, done.why, "all tests pass", False)
        return
    reasons = reading.gtest_skips(done.out)
    blind = [test for test, why in reasons.items() if why.startswith("no device: ")]
    found = f"{passed} tests passed, {failed} failed, {skipped} skipped, {done.seconds:.0f} s"
    part.check(what, found, "all tests pass", done.status == 0 and failed == 0 and not blind and passed > 0 and
               len(reasons) == skipped)
    for test, why in reasons.items():
        part.skip(test, why)
    part.notes += reading.test_failures(done.out)[:20]


def train(context, *options, limit=600, environment=None, device="cuda"):
    return run([context.places.arenite, "train", "--device", context.device if device == "cuda" else device, *options], limit,
               environment or context.environment)


def filters(tool):
    """Options of this compute-sanitizer for our own kernels, and for all others; None where it has none."""
    said = run([tool, "--help"], 20)
    for option in "--kernel-name", "--kernel-regex":  # as CUDA 12 and 11 call it
        if option in said.out + said.err:
            return [option, OURS], [f"{option}-exclude", OURS]
    return None, None


def sanitizer_runs(context, tool):
    """(check, what, options, command, whether what it finds is ours) of all that is tried."""
    few = ["train", "--device", context.device, "--dataset", "synthetic", "--limit", "160", "--batch", "64", "--epochs", "1"]
    recorded = ("cnn1, recorded steps", [context.places.arenite, *few, "--model", "cnn1"])
    apart = ("cnn1, steps one by one", [context.places.arenite, *few, "--model", "cnn1", "--cuda-graphs", "off"])
    # Calls that a library makes to see whether they fail are no errors: ours are reported by the runtime.
    memory = "memcheck", ["--report-api-errors", "no"]
    ours, theirs = filters(tool)
    runs = [(memory[0], recorded[0], memory[1], recorded[1], True)]
    if ours is None:
        return [*runs, ("racecheck", f"{apart[0]}, all kernels", [], apart[1], True)]
    runs.append(("racecheck", f"{apart[0]}, our kernels", ours, apart[1], True))
    if context.quick:
        return runs
    larger = [context.places.arenite, *few, "--model", "cnn2", "--cuda-graphs", "off"]
    # The longest last: it has the time that the others leave.
    return [*runs, (memory[0], apart[0], memory[1], apart[1], True),
            (memory[0], "cnn2, steps one by one", memory[1], larger, True),
            ("racecheck", f"{apart[0]}, kernels of NVIDIA's libraries", theirs, apart[1], False),
            (memory[0], OPERATORS, memory[1], [context.places.device_test], True),
            ("racecheck", f"{OPERATORS}, our kernels", ours, [context.places.device_test], True)]


def name_of(sanitizer_run):
    check, what, *_ = sanitizer_run
    return f"{check}: {what}"


def sanitizer(part, context, seconds):
    """memcheck, and racecheck of kernels that use shared memory: some steps, recorded and not, and all operators. What an
    earlier run has passed (--resume) leaves its time to the others."""
    tool = nvidia.find_tool("compute-sanitizer", context.sites)
    if not tool:
        part.skipped = "no compute-sanitizer (it comes with the CUDA toolkit)"
        return
    end = time.monotonic() + seconds
    # CUDA and the libraries alone take that long to start there: rather few runs than none that ends.
    least = 30 * min(1, context.scale)
    part.details["quick"] = context.quick
    runs = sanitizer_runs(context, tool)
    earlier = context.earlier.get(part.name)
    # Rows of runs that --quick leaves out stay too, whatever they say.
    names = [name_of(one) for one in runs]
    known = [check for check in (earlier.checks if earlier else []) if check.verdict in (PASSED, NOTED) or
             check.what not in names]
    part.checks = list(known)
    runs = [one for one in runs if name_of(one) not in [check.what for check in known]]
    weights = [3 if what.startswith(OPERATORS) else 1 for _, what, *_ in runs]
    for number, (check, what, options, command, judged) in enumerate(runs):
        context.show(part, f"{check}, {what}")
        left = end - time.monotonic()
        if number > 0 and left < least:
            part.skip(name_of(runs[number]), "no time was left; --resume begins here")
            continue
        limit = min(left, max(least, 1.3 * weights[number] / sum(weights[number:]) * left))
        done = run([tool, "--tool", check, *options, "--error-exitcode", "66", "--target-processes", "all", *command], limit,
                   context.environment)
        judge_sanitizer(part, name_of(runs[number]), done, judged)
        context.save()


def judge_sanitizer(part, what, done, judged):
    reports = reading.sanitizer_reports(done.out + done.err)
    if done.status is None and reports and judged:
        part.check(what, f"{len(reports)} reports, and not done after {done.seconds:.0f} s", "0", False)
        part.notes += reports[:30]
        return
    if done.status is None:
        part.skip(what, f"not done after {done.seconds:.0f} s")
        return
    try:
        errors, line = reading.sanitizer(done.out + done.err)
    except reading.NotSaid:
        part.check(what, done.why, "0", False)
        return
    found = line if errors or done.status == 0 else f"{line}, but {done.why}"
    if judged:
        part.check(what, found, "0", errors == 0 and done.status == 0)
    else:
        part.note(what, found)
    if errors:
        part.notes += [text for text in (done.out + done.err).splitlines() if text.startswith("=====")][:30]


def training(part, context, seconds):
    """cnn2 learns as much on the GPU as on the CPU; a GPU run repeats its bits, recorded or not, kernels put in place early or
    not."""
    end = time.monotonic() + seconds
    part.details["quick"] = context.quick
    name, _ = context.places.data()
    size = ["--limit", "2000", "--epochs", "1"] if context.quick else ["--limit", "20000", "--epochs", "4", "--lr", RATE]
    common = ["--model", "cnn2", "--dataset", name, "--batch", str(BATCH), *size]
    part.notes.append(f"cnn2 on {name}, batch {BATCH}, {' '.join(size)}")

    def once(device, seed, *more, **variables):
        words = [*more, *(f"{name}={value}" for name, value in variables.items())]
        context.show(part, f"cnn2 on {device}, seed {seed}{''.join(' ' + word for word in words)}")
        done = train(context, *common, "--seed", str(seed), *more, limit=end - time.monotonic(), device=device,
                     environment={**context.environment, **variables})
        reading.ended(done, f"{device}, seed {seed}")
        accuracy = reading.accuracy(done.out)
        points[device].append(accuracy)
        part.details["accuracy"] = points
        context.save()
        return accuracy, reading.sha256(done.out), done.seconds

    points = {"cpu": [], "cuda": []}
    try:
        first = once("cuda", SEEDS[0])
        for what, more, variables in (
                ("two runs on the GPU give the same bits", (), {}),
                ("with and without CUDA graphs: the same bits", ("--cuda-graphs", "off"), {}),
                ("with and without kernels put in place early: the same bits", (), {"ARENITE_EARLY_LAUNCHES": "off"})):
            again = once("cuda", SEEDS[0], *more, **variables)
            points["cuda"].pop()  # the same run again
            part.check(what, f"{first[1][:12]}, {again[1][:12]}", "equal hashes of the weights", first[1] == again[1])
        for seed in SEEDS[:1] if context.quick else SEEDS:
            if seed != SEEDS[0]:
                if end - time.monotonic() < 1.3 * (taken + first[2]):
                    part.skip("more seeds", f"no time for more than {len(points['cpu'])} of {len(SEEDS)}")
                    break
                once("cuda", seed)
            _, _, taken = once("cpu", seed)
        judge_accuracy(part, points)
    except (reading.NotSaid, OutOfTime) as error:
        part.program("trains to the end", error)


def judge_accuracy(part, points):
    means = {device: statistics.mean(values) for device, values in points.items()}
    for device, values in points.items():
        part.note(f"test accuracy on {device}", f"{means[device]:.2f} % ({', '.join(f'{one:.2f}' for one in values)})")
    difference = means["cuda"] - means["cpu"]
    part.check(f"test accuracy, GPU less CPU, mean of {len(points['cpu'])} seeds", f"{difference:+.2f} points",
               f"within ±{MOST_POINTS}", abs(difference) <= MOST_POINTS)
