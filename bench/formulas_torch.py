#!/usr/bin/env python3
"""Formulas on maps, by hand, and in PyTorch: ns an element.

Usage: formulas_torch.py FOLDER [--threads 1 2] [--elements 4096 262144 16777216] [--only NAME …]

FOLDER holds arenite_bench, whose cases of the same names these are: rows of 256 float32. PyTorch
runs each eagerly and compiled, with its allocator told to keep what it has. What both sides take is
the median of rounds; the last column is the faster of PyTorch's two over the better of ours.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

COLUMNS = 256
RATE, MOMENTUM = 0.01, 0.9
FORMULAS = (
    "relu_grad",
    "bias_gelu",
    "bias_gelu_grad",
    "normalize_relu",
    "dropout",
    "softmax",
    "layer_norm",
    "sgd_momentum",
    "adam",
)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--elements", type=int, nargs="+", default=[1 << 12, 1 << 18, 1 << 24])
    parser.add_argument("--only", nargs="+", choices=FORMULAS, default=FORMULAS)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def ours(options, formula, threads):
    """{(kernel, elements): ns an element}"""
    command = [
        str(options.folder / "arenite_bench"),
        f"--benchmark_filter=^formula/{formula}/.*threads:{threads}$",
        f"--benchmark_repetitions={options.rounds}",
        "--benchmark_min_time=0.1",
        "--benchmark_format=json",
    ]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = {}
    for one in json.loads(text)["benchmarks"]:
        if one.get("aggregate_name") == "median":
            _, _, kernel, elements = one["run_name"].split("/")[:4]
            # The time is of an iteration of one thread among all of theirs, of its share.
            found[kernel, int(elements)] = one["real_time"] * threads / int(elements)
    return found


def formulas(torch, elements):
    """{name: (eager, what to compile)}"""
    functional = torch.nn.functional
    rows = elements // COLUMNS
    draw = torch.Generator().manual_seed(1)

    def random(*shape):
        return torch.rand(shape, generator=draw) * 3 + 0.1

    x, slope, output = (random(rows, COLUMNS) for _ in range(3))
    bias, mean, scale, weight = (random(COLUMNS) for _ in range(4))
    parameter = torch.nn.Parameter(random(elements))
    parameter.grad = random(elements)
    first, second = torch.zeros(elements), torch.ones(elements)

    def sgd_momentum():
        first.mul_(MOMENTUM).add_(parameter.grad)
        parameter.data.add_(first, alpha=-RATE)

    def adam():
        first.mul_(0.9).add_(parameter.grad, alpha=0.1)
        second.mul_(0.999).addcmul_(parameter.grad, parameter.grad, value=0.001)
        parameter.data.addcdiv_(first, second.sqrt().mul_(1.5).add_(1e-8), value=-RATE)

    plain = {
        "relu_grad": lambda: torch.ops.aten.threshold_backward(slope, output, 0),
        "bias_gelu": lambda: functional.gelu(x + bias),
        "bias_gelu_grad": lambda: torch.ops.aten.gelu_backward(slope, x + bias),
        "normalize_relu": lambda: functional.relu((x - mean) * scale * weight + bias),
        "dropout": lambda: functional.dropout(x, 0.1, True),
        "softmax": lambda: torch.softmax(x, -1),
        "layer_norm": lambda: functional.layer_norm(x, (COLUMNS,), weight, bias),
    }
    made = {name: (compute, compute) for name, compute in plain.items()}
    optimizers = {
        "sgd_momentum": torch.optim.SGD([parameter], lr=RATE, momentum=MOMENTUM, fused=True),
        "adam": torch.optim.Adam([parameter], lr=RATE, fused=True),
    }
    made["sgd_momentum"] = (optimizers["sgd_momentum"].step, sgd_momentum)
    made["adam"] = (optimizers["adam"].step, adam)
    return made


def nanoseconds(compute, elements, rounds):
    for _ in range(3):
        compute()
    times = []
    for _ in range(rounds):
        repeats, begun = 0, time.perf_counter()
        while time.perf_counter() - begun < 0.1:
            for _ in range(max(1, (1 << 18) // elements)):
                compute()
                repeats += 1
        times.append((time.perf_counter() - begun) / repeats)
    return statistics.median(times) / elements * 1e9


def theirs(torch, options, formula, threads, elements):
    """Eagerly, and compiled."""
    torch.set_num_threads(threads)
    eager, plain = formulas(torch, elements)[formula]
    torch._dynamo.reset()
    compiled = torch.compile(plain)
    with torch.no_grad():
        return (
            nanoseconds(eager, elements, options.rounds),
            nanoseconds(compiled, elements, options.rounds),
        )


def main():
    options = arguments()
    keeps = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "-1"}
    if any(os.environ.get(name) != value for name, value in keeps.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **keeps})
    try:
        import torch
    except ImportError as error:
        sys.exit(f"formulas_torch.py: no PyTorch ({error}); pip install torch")
    print(f"PyTorch {torch.__version__}")
    names = ("fused", "tiles", "hand", "eager", "compiled")
    print("threads elements formula        " + "".join(f"{name:>10}" for name in names) + "     ratio")
    for threads in options.threads:
        for formula in options.only:
            mine = ours(options, formula, threads)
            for elements in options.elements:
                times = [mine.get((kernel, elements)) for kernel in names[:3]]
                times += theirs(torch, options, formula, threads, elements)
                best = min(time for time in times[:2] if time is not None)
                row = "".join(f"{'' if t is None else format(t, '.3f'):>10}" for t in times)
                ratio = min(times[3:]) / best
                print(f"{threads:7} {elements:8} {formula:15}{row}{ratio:10.2f}", flush=True)


if __name__ == "__main__":
    main()
