#!/usr/bin/env python3
"""Whether samples keep up: `Trainer.fit` on arrays of all kinds, beside float32 numbers in memory.

Usage: sources.py FOLDER [--samples 20000] [--rounds 7] [--models mlp,cnn]

FOLDER is a build's, with libarenite.so. In a round each source goes through one epoch, in an order of its
own, on the same network with the same numbers: bytes that are scaled, float64 and int32 that are cast,
files that are mapped (.npy, of float32 and of bytes), and batches that Python hands over one by one to
`trainer.step`. Ratios are medians, over rounds, of samples a second beside float32 in memory.
"""

import argparse
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
NETWORKS = {
    "mlp": lambda nn: nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)),
    "cnn": lambda nn: nn.Sequential(
        nn.Conv2d(1, 16, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 10)
    ),
}


def sources(np, arenite, images, folder):
    """By name: the same numbers, 0 to 1."""
    numbers = (images / np.float32(255)).astype(np.float32)
    for name, array in (("numbers", numbers), ("bytes", images)):
        np.save(folder / f"{name}.npy", array)
    mapped = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("numbers", "bytes")}
    return {
        "float32": numbers,
        "bytes, scaled": arenite.scaled(images, 1 / 255),
        "float64": numbers.astype(np.float64),
        "int32, scaled": arenite.scaled(images.astype(np.int32), 1 / 255),
        "mapped float32": mapped["numbers"],
        "mapped bytes, scaled": arenite.scaled(mapped["bytes"], 1 / 255),
        "batches, by step": numbers,
    }


def epoch(trainer, name, x, y):
    """Seconds."""
    start = time.perf_counter()
    if name == "batches, by step":
        for first in range(0, len(y), trainer.batch):
            trainer.step(x[first : first + trainer.batch], y[first : first + trainer.batch])
    else:
        trainer.fit(x, y, epochs=1, progress=False)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--samples", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--models", default=",".join(NETWORKS))
    given = parser.parse_args()
    os.environ["ARENITE_LIBRARY"] = str((given.folder / "libarenite.so").resolve())
    sys.path.insert(0, str(ROOT / "python"))
    import numpy as np

    import arenite
    from arenite import nn, optim

    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (given.samples, 28, 28, 1), dtype=np.uint8)
    labels = rng.integers(0, 10, given.samples).astype(np.int32)
    with tempfile.TemporaryDirectory() as folder:
        all_sources = sources(np, arenite, images, pathlib.Path(folder))
        for model in given.models.split(","):
            trainers = {
                name: arenite.Trainer(NETWORKS[model](nn), "cross_entropy", optim.SGD(lr=0.01), batch=64)
                for name in all_sources
            }
            for name, x in all_sources.items():  # builds
                epoch(trainers[name], name, x, labels)
            rounds = []
            for _ in range(given.rounds):
                order = random.sample(list(all_sources), len(all_sources))
                rounds.append({name: epoch(trainers[name], name, all_sources[name], labels) for name in order})
            print(f"{model}, {given.samples} samples an epoch, {given.rounds} rounds")
            for name in all_sources:
                rate = given.samples / statistics.median(one[name] for one in rounds)
                ratio = statistics.median(one["float32"] / one[name] for one in rounds)
                print(f"  {name:<22}{rate:>10.0f} samples/s{ratio:>8.3f}")


if __name__ == "__main__":
    main()
