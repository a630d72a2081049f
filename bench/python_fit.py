#!/usr/bin/env python3
"""`Trainer.fit` in Python beside `arenite train`, and `predict` beside `evaluate`.

Usage: python_fit.py FOLDER [--models lenet5,cnn2] [--limit 20000] [--rounds 7] [--batch 64]

FOLDER is a build's, with `arenite` and libarenite.so; the images are Fashion-MNIST's, as the command
finds them. In a round both train the same network for two epochs, now the one first and now the
other, and the second epoch counts. Ratios are medians of those of rounds: samples a second of Python
over those of the command; and of predictions of 10,000 images over their evaluation, both in Python.
"""

import argparse
import gzip
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


def network_of(nn, name):
    if name == "lenet5":
        return nn.Sequential(
            nn.Conv2d(1, 6, 5, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
            nn.Linear(84, 10),
        )
    if name == "cnn2":
        return nn.Sequential(
            nn.Conv2d(1, 32, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(7 * 7 * 64, 128), nn.ReLU(), nn.Linear(128, 10),
        )
    sys.exit(f"a model {name!r}; expected lenet5 or cnn2")


def read_idx(folder, stem):
    import numpy as np

    for path in folder / stem, folder / f"{stem}.gz":
        if path.is_file():
            data = (gzip.open if path.suffix == ".gz" else open)(path, "rb").read()
            rank = data[3]
            shape = np.frombuffer(data[4 : 4 + 4 * rank], ">u4").astype(int)
            return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)
    sys.exit(f"{folder / stem}: expected the files of Fashion-MNIST")


def in_turn(rounds, one, other):
    """Medians of both, and of what the other is of the one in the same round."""
    pairs = []
    for round in range(rounds):
        if round % 2:
            second = other()
            pairs.append((one(), second))
        else:
            pairs.append((one(), other()))
    medians = [statistics.median(side) for side in zip(*pairs)]
    return (*medians, statistics.median(b / a for a, b in pairs))


class Sides:
    def __init__(self, given):
        self.given = given
        self.command = given.folder / "arenite"
        found = subprocess.run(
            [ROOT / "datasets/fetch", "--find", "fashion-mnist"], capture_output=True, text=True
        )
        if found.returncode != 0:
            sys.exit(found.stderr.strip() or "Fashion-MNIST was not found")
        self.data = pathlib.Path(found.stdout.strip())
        images = read_idx(self.data, "train-images-idx3-ubyte")
        self.images = images[..., None]
        self.labels = read_idx(self.data, "train-labels-idx1-ubyte")

    def of_command(self, model):
        run = subprocess.run(
            [self.command, "train", "--model", model, "--dataset", "fashion-mnist", "--data",
             self.data, "--limit", str(self.given.limit), "--batch", str(self.given.batch),
             "--epochs", "2", "--json"],
            capture_output=True, text=True, check=True,
        )
        events = [json.loads(line) for line in run.stdout.splitlines()]
        return [one["samples_per_second"] for one in events if one["event"] == "epoch"][-1]

    def trainer(self, arenite, model):
        return arenite.Trainer(
            network_of(arenite.nn, model), optimizer=arenite.optim.SGD(lr=0.02, momentum=0.9),
            batch=self.given.batch,
        )

    def of_python(self, arenite, model):
        limit = self.given.limit
        given = arenite.scaled(self.images[:limit], 1 / 255)
        history = self.trainer(arenite, model).fit(given, self.labels[:limit], epochs=2, seed=1)
        return limit / history[-1].seconds

    def of_predictions(self, arenite, model):
        trainer = self.trainer(arenite, model)
        given, labels = arenite.scaled(self.images[:10000], 1 / 255), self.labels[:10000]
        trainer.evaluate(given, labels), trainer.predict(given)  # which build their programs

        def rate(call):
            begin = time.perf_counter()
            call()
            return 10000 / (time.perf_counter() - begin)

        return in_turn(
            3 * self.given.rounds,
            lambda: rate(lambda: trainer.evaluate(given, labels)),
            lambda: rate(lambda: trainer.predict(given)),
        )


def main():
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    arguments.add_argument("--models", default="lenet5,cnn2")
    arguments.add_argument("--limit", type=int, default=20000)
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--batch", type=int, default=64)
    given = arguments.parse_args()
    os.environ["ARENITE_LIBRARY"] = str(given.folder.resolve() / "libarenite.so")
    sys.path.insert(0, str(ROOT / "python"))
    import arenite

    sides = Sides(given)
    print("model   command/s  python/s  ratio   evaluate/s  predict/s  ratio")
    for model in given.models.split(","):
        command, python, fitted = in_turn(
            given.rounds, lambda: sides.of_command(model), lambda: sides.of_python(arenite, model)
        )
        evaluated, predicted, told = sides.of_predictions(arenite, model)
        print(
            f"{model:7} {command:9.0f} {python:9.0f}  {fitted:.3f} {evaluated:11.0f} "
            f"{predicted:10.0f}  {told:.3f}"
        )


if __name__ == "__main__":
    main()
