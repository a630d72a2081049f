"""What contestants in Python share: the data, and turns on demand.

A contestant is a process that speaks lines of JSON. It begins with {"ready": true, "first_step": …} (the time of
time.monotonic at which its first step had ended), then answers {"run": seconds} with what it trained in about that
time; when its input ends, it ends.
"""
import argparse
import array
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


def serve(train, version, configuration):
    """`train(stop)` trains until stop(), which is asked after each step, and returns (samples, loss of the last step)."""
    steps = iter((True,))
    train(lambda: next(steps))
    say(ready=True, first_step=time.monotonic(), version=version, configuration=configuration)
    for line in sys.stdin:
        seconds = json.loads(line)["run"]
        start = time.monotonic()
        end = start + seconds
        samples, loss = train(lambda: time.monotonic() >= end)
        say(samples=samples, seconds=time.monotonic() - start, loss=loss)


# Libraries print to standard output what they like.
PROTOCOL = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
