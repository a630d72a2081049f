"""What contestants in Python share: the data, and turns on demand.

A contestant is a process that speaks lines of JSON. It begins with {"ready": true, "first_step": …} (the time of
time.monotonic at which its first step had ended), then answers {"run": seconds} with what it trained in about that
time, and {"kernels": seconds} with how long a GPU's kernels ran in such a turn; when its input ends, it ends.
"""
import argparse
import array
import ctypes
import json
import mmap
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from networks import NETWORKS  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--variant", required=True)
    parser.add_argument("--network", choices=NETWORKS, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--images", required=True, help="a raw IDX file, [N, H, W] or [N, H, W, C]")
    parser.add_argument("--labels", required=True, help="a raw IDX file, [N]")
    parser.add_argument("--device", default="cpu", help="where PyTorch trains")
    return parser.parse_args()


def idx(path):
    """The shape and the bytes of a raw IDX file."""
    with open(path, "rb") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    if len(data) < 4 or bytes(data[:3]) != b"\0\0\x08":
        raise ValueError(f"{path} is no IDX file of bytes")
    rank = data[3]
    extents = array.array("I", bytes(data[4:4 + 4 * rank]))
    if sys.byteorder == "little":
        extents.byteswap()
    return list(extents), data[4 + 4 * rank:]


def say(**what):
    print(json.dumps(what), file=PROTOCOL, flush=True)


def traced(train, seconds):
    """A turn, and for how long of it kernels ran: by the library that $ARENITE_KERNEL_TRACE names (bench/kernel_trace.cpp)."""
    try:
        library = ctypes.CDLL(os.environ["ARENITE_KERNEL_TRACE"])
        begin, finish = library.arenite_kernel_trace_start, library.arenite_kernel_trace_stop
    except KeyError:
        return {"error": "no library in $ARENITE_KERNEL_TRACE"}
    except (OSError, AttributeError) as error:
        return {"error": str(error)}
    if error := begin():
        return {"error": f"CUPTI refused: {error}"}
    start = time.monotonic()
    end = start + seconds
    samples, _ = train(lambda: time.monotonic() >= end)
    whole = time.monotonic() - start
    busy, kernels = ctypes.c_double(), ctypes.c_long()
    if error := finish(ctypes.byref(busy), ctypes.byref(kernels)):
        return {"error": f"CUPTI lost records: {error}"}
    return {"samples": samples, "seconds": whole, "busy_seconds": busy.value, "kernels": kernels.value}


def serve(train, version, configuration):
    """`train(stop)` trains until stop(), which is asked after each step, and returns (samples, loss of the last step)."""
    steps = iter((True,))
    train(lambda: next(steps))
    say(ready=True, first_step=time.monotonic(), version=version, configuration=configuration)
    for line in sys.stdin:
        asked = json.loads(line)
        if "kernels" in asked:
            say(**traced(train, asked["kernels"]))
            continue
        seconds = asked["run"]
        start = time.monotonic()
        end = start + seconds
        samples, loss = train(lambda: time.monotonic() >= end)
        say(samples=samples, seconds=time.monotonic() - start, loss=loss)


# Libraries print to standard output what they like.
PROTOCOL = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
