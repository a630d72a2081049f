#!/usr/bin/env python3
"""What PyTorch makes of a network with dropout in some steps of training, by masks that are given.

Usage: dropout.py

writes dropout.json beside this program, which norm_test.py compares with. Needs PyTorch. Its own
masks are others, and follow from what its generator drew before; those here are the library's, and
part of the file.
"""
import json
import pathlib

import numpy as np

ROWS, IN, HIDDEN, OUT = 6, 4, 8, 2
RATE, SEED, LR, STEPS = 0.25, 3, 0.05, 5
SHAPES = {"first": (IN, HIDDEN), "second": (HIDDEN, OUT)}


def numbers(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def weights():
    return {name: numbers(shape, 10 + i) for i, (name, shape) in enumerate(SHAPES.items())}


def batch(step):
    return numbers((ROWS, IN), 100 + step), numbers((ROWS, OUT), 200 + step)


def masks():
    """Which hidden elements stay, by step."""
    import arenite
    import arenite.functional as F

    x = arenite.input("x", (ROWS, HIDDEN))
    scale = arenite.parameter(np.ones(HIDDEN, np.float32), name="scale")
    y = F.dropout(x * scale, RATE, SEED)
    model = arenite.compile(y, updates=[arenite.train(y.sum(), arenite.optim.SGD(lr=0.0))])
    ones = np.ones((ROWS, HIDDEN), np.float32)
    return [(model.train_step(ones) != 0).astype(int).tolist() for _ in range(STEPS)]


def trained(given):
    import torch

    first, second = (torch.tensor(w, dtype=torch.float64) for w in weights().values())
    first.requires_grad_()
    second.requires_grad_()
    descent = torch.optim.SGD([first, second], lr=LR)
    outputs = []
    for step, mask in enumerate(given):
        x, target = (torch.tensor(array, dtype=torch.float64) for array in batch(step))
        hidden = x @ first
        # As torch.nn.functional.dropout has it, of a mask.
        kept = torch.where(torch.tensor(mask) == 1, hidden / (1 - RATE), torch.zeros(()).double())
        y = kept @ second
        loss = (y * target + y * y / 10).sum()
        descent.zero_grad()
        loss.backward()
        descent.step()
        outputs.append(y.detach().flatten().tolist())
    found = {name: w.detach().flatten().tolist() for name, w in zip(SHAPES, (first, second))}
    return {"masks": given, "outputs": outputs, "weights": found}


if __name__ == "__main__":
    pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(trained(masks())) + "\n")
