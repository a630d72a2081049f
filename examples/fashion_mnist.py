#!/usr/bin/env python3
"""Trains a convolutional network on Fashion-MNIST and prints its accuracy on the test images.

fashion_mnist.py FOLDER [--epochs N] [--limit SAMPLES]

FOLDER has the four IDX files, compressed or not: `datasets/fetch` gets them, `datasets/make-synthetic FOLDER` draws
others like them.
"""
import argparse
import gzip
import pathlib
import sys

import numpy as np

import arenite
from arenite import nn


def read_idx(folder, stem):
    """The uint8 array of an IDX file: two zeros, the type, the rank, big-endian sizes, the bytes."""
    path = next((p for p in (folder / stem, folder / (stem + ".gz")) if p.is_file()), None)
    if path is None:
        sys.exit(f"{folder}: no {stem}, nor {stem}.gz; expected the files of Fashion-MNIST (hint: datasets/fetch)")
    try:
        data = (gzip.open if path.suffix == ".gz" else open)(path, "rb").read()
    except (OSError, EOFError) as error:
        sys.exit(f"{path}: {error}; expected an IDX file")
    rank = data[3] if len(data) > 3 and data[:3] == b"\0\0\x08" else 0
    sizes = data[4 : 4 + 4 * rank]
    shape = [int(size) for size in np.frombuffer(sizes[: len(sizes) // 4 * 4], ">u4")]
    body = np.frombuffer(data[4 + 4 * rank :], np.uint8)
    if rank == 0 or len(shape) != rank or body.size != np.prod(shape):
        sys.exit(f"{path}: {len(data)} bytes that are no IDX file of uint8; expected the files of Fashion-MNIST")
    return body.reshape(shape)


def split(folder, stem, limit):
    images, labels = read_idx(folder, stem + "-images-idx3-ubyte"), read_idx(folder, stem + "-labels-idx1-ubyte")
    return images[:limit, :, :, None].astype(np.float32) / 255, labels[:limit].astype(np.int32)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    arguments.add_argument("--epochs", type=int, default=5)
    arguments.add_argument("--limit", type=int, help="samples of each split")
    given = arguments.parse_args()
    train, test = split(given.folder, "train", given.limit), split(given.folder, "t10k", given.limit)

    arenite.manual_seed(1)
    network = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(7 * 7 * 64, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip
    trainer = arenite.Trainer(
        network, optimizer=arenite.optim.SGD(lr=0.02, momentum=0.9), inputs=train[0].shape[1:], batch=64
    )
    print(trainer.plan)  # bytes of a step, before the first one
    try:
        trainer.fit(*train, epochs=given.epochs, validation=test)
    except (arenite.Error, KeyboardInterrupt) as error:
        sys.exit(str(error) or "interrupted")
    print(f"test accuracy: {trainer.evaluate(*test).accuracy:.4f}")


if __name__ == "__main__":
    main()
