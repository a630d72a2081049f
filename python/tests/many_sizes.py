#!/usr/bin/env python3
"""Trains on batches of 64 sizes, and predicts for as many, three times. Prints the process's memory in
KiB: after the first time, and at the end.
"""

import os

from testing import np

import arenite
from arenite import nn


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


arenite.manual_seed(0)
network = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(14 * 14 * 8, 64), nn.ReLU(), nn.Linear(64, 10),
)
trainer = arenite.Trainer(network, optimizer=arenite.optim.SGD(lr=0.01, momentum=0.9), batch=64)
x = np.random.default_rng(0).random((64, 28, 28, 1), dtype=np.float32)
y = np.arange(64, dtype=np.int32) % 10
for round in range(3):
    for count in range(1, 65):
        trainer.step(x[:count], y[:count])
    for count in range(1, 65):
        trainer.predict(x[:count])
    if round != 1:
        print(resident())
