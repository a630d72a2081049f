#!/usr/bin/env python3
"""One evaluation of the MLP 784-1000-10 (dense, ReLU, dense) beside PyTorch's eager mode.

Usage: mlp_torch.py FOLDER [--batch 128] [--threads 2] [--rounds 15] [--evaluations 100]

FOLDER holds libarenite.so. Each side is a process of its own, and they take turns: while one
computes, the threads of the other sleep. PyTorch runs the script's ops (x @ w + b) and its own
linear layers; the ratio is that of medians of single evaluations, theirs over ours.
"""
import argparse
import array
import ctypes
import json
import pathlib
import random
import statistics
import subprocess
import sys
import time

INPUTS, HIDDEN, OUTPUTS = 784, 1000, 10
SCRIPT = """
$1 = InputTensor(input, float32, [{batch}, 28, 28]);
$2 = ReshapeNode($1, [{batch}, 784]);
$3 = ConstantTensor(constant_0, float32, [784, 1000]);
$4 = MatMulNode($2, $3);
$5 = ConstantTensor(constant_1, float32, [1, 1000]);
$6 = SumNode($4, $5);
$7 = ReLUNode($6);
$8 = ConstantTensor(constant_2, float32, [1000, 10]);
$9 = MatMulNode($7, $8);
$10 = ConstantTensor(constant_3, float32, [1, 10]);
$11 = SumNode($9, $10);
result = $11;
"""


def numbers(batch):
    """The input and the four constants, the same in every process."""
    draw = random.Random(1)
    sizes = batch * INPUTS, INPUTS * HIDDEN, HIDDEN, HIDDEN * OUTPUTS, OUTPUTS
    return [array.array("f", (draw.uniform(-0.1, 0.1) for _ in range(size))) for size in sizes]


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("bytes", ctypes.c_int64)]


class SessionOptions(ctypes.Structure):
    _fields_ = [("device", ctypes.c_char_p), ("workers", ctypes.c_int)]


def tensor(name, values):
    return Tensor(name, values.buffer_info()[0], len(values) * values.itemsize)


def arenite(options):
    """{name: what evaluates once}, and where the result is then."""
    try:
        lib = ctypes.CDLL(str(pathlib.Path(options.folder).resolve() / "libarenite.so"))
    except OSError as error:
        sys.exit(f"mlp_torch.py: {error}; expected a folder with libarenite.so, such as build/release")
    message = ctypes.c_char_p()

    def call(function, *arguments):
        if function(*arguments, ctypes.byref(message)):
            sys.exit(f"mlp_torch.py: {message.value.decode()}")

    x, *constants = numbers(options.batch)
    session, model = ctypes.c_void_p(), ctypes.c_void_p()
    call(lib.arenite_session_create, ctypes.byref(SessionOptions(b"cpu", options.threads)),
         ctypes.byref(session))
    named = (Tensor * 4)(*(tensor(b"constant_%d" % i, c) for i, c in enumerate(constants)))
    call(lib.arenite_model_create, session, SCRIPT.format(batch=options.batch).encode(), named,
         ctypes.c_size_t(4), None, ctypes.byref(model))
    y = array.array("f", bytes(4 * options.batch * OUTPUTS))
    given = tensor(b"input", x)
    place = ctypes.c_void_p(y.buffer_info()[0])
    arguments = (model, ctypes.byref(given), ctypes.c_size_t(1), ctypes.byref(place),
                 ctypes.c_size_t(1))
    keep = x, constants, session
    return {"arenite": lambda: keep and call(lib.arenite_model_evaluate, *arguments)}, lambda: y


def torch(options):
    try:
        import torch as framework
    except ImportError as error:
        sys.exit(f"mlp_torch.py: no PyTorch for {sys.executable} ({error}); `pip install torch` "
                 "in an environment of its own, and run this with that Python")
    framework.set_num_threads(options.threads)
    shapes = (options.batch, 28, 28), (INPUTS, HIDDEN), (1, HIDDEN), (HIDDEN, OUTPUTS), (1, OUTPUTS)
    x, w1, b1, w2, b2 = (framework.frombuffer(values, dtype=framework.float32).reshape(shape)
                         for values, shape in zip(numbers(options.batch), shapes))
    first, second = framework.nn.Linear(INPUTS, HIDDEN), framework.nn.Linear(HIDDEN, OUTPUTS)
    result = []

    def script():
        with framework.inference_mode():
            result[:] = [framework.relu(x.reshape(-1, INPUTS) @ w1 + b1) @ w2 + b2]

    def linear():
        with framework.inference_mode():
            result[:] = [second(framework.relu(first(x.reshape(-1, INPUTS))))]

    with framework.no_grad():
        for layer, weight, bias in ((first, w1, b1), (second, w2, b2)):
            layer.weight.copy_(weight.T)
            layer.bias.copy_(bias[0])
    return {"torch": script, "torch linear": linear}, lambda: result[0].flatten().tolist()


def serve(options):
    """A side: for each line that names something to time, the times in microseconds."""
    sides, result = (arenite if options.side == "arenite" else torch)(options)
    for evaluate in sides.values():
        evaluate()
    print(json.dumps({"sides": list(sides), "result": list(result())}), flush=True)
    for line in sys.stdin:
        evaluate, times = sides[line.strip()], []
        for _ in range(options.evaluations // 5):
            evaluate()
        for _ in range(options.evaluations):
            start = time.perf_counter()
            evaluate()
            times.append((time.perf_counter() - start) * 1e6)
        print(json.dumps(times), flush=True)


def start(side):
    child = subprocess.Popen([sys.executable, __file__, *sys.argv[1:], "--side", side],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    first = child.stdout.readline()
    if not first:
        sys.exit(child.wait() or f"mlp_torch.py: {side} gave no result")
    return child, json.loads(first)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--evaluations", type=int, default=100)
    parser.add_argument("--side", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        return serve(options)

    ours, mine = start("arenite")
    rival, theirs = start("torch")
    worst = max(abs(a - b) for a, b in zip(mine["result"], theirs["result"]))
    largest = max(map(abs, theirs["result"]))
    if worst > 1e-4 * largest:
        sys.exit(f"mlp_torch.py: results differ by {worst} of {largest}")
    turns = [(ours, name) for name in mine["sides"]] + [(rival, name) for name in theirs["sides"]]
    rounds = []
    for _ in range(options.rounds):
        medians = {}
        for child, name in turns:
            time.sleep(0.1)  # until the other side's threads have gone to sleep
            print(name, file=child.stdin, flush=True)
            medians[name] = statistics.median(json.loads(child.stdout.readline()))
        rounds.append(medians)
    print(f"{'':14} us, median   best round   over arenite: median, least, most")
    for _, name in turns:
        times = sorted(one[name] for one in rounds)
        ratios = sorted(one[name] / one["arenite"] for one in rounds)
        print(f"{name:14} {statistics.median(times):10.0f} {times[0]:12.0f}"
              f" {statistics.median(ratios):22.2f} {ratios[0]:7.2f} {ratios[-1]:6.2f}")
    for child in (ours, rival):
        child.stdin.close()
        child.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
