#!/usr/bin/env python3
"""What PyTorch makes of the network `cnn2-bn`, without its dropout, in 100 steps of AdamW.

Usage: cnn2_bn.py

writes cnn2_bn.json beside this program, which cnn2_bn_test.py compares with. Needs PyTorch, and
minutes. Both sides draw their first weights and batches here: weights of PyTorch's shapes, names
and ranges, images of a pattern for each class under noise.
"""
import json
import pathlib

import numpy as np

STEPS, BATCH, RATE = 100, 64, 0.001
CLASSES, SIDE = 10, 28
# By layer, [out, in, …] as PyTorch has them; those of norms begin as ones and zeros anyway.
SHAPES = {"0": (32, 1, 3, 3), "4": (64, 32, 3, 3), "9": (128, 64 * 7 * 7), "11": (CLASSES, 128)}
NORMS = ("1", "5")
# In double PyTorch's numbers are the same on every machine; its float32 convolutions are not, and
# rounding has moved the last losses by a part in 400.
DTYPES = ("float32", "float64")


def weights():
    """By name, in ±1/√fan_in, as PyTorch's layers begin; convolutions have no bias."""
    rng, drawn = np.random.default_rng(20), {}
    for layer, shape in SHAPES.items():
        limit = np.prod(shape[1:]) ** -0.5
        drawn[f"{layer}.weight"] = rng.uniform(-limit, limit, shape).astype(np.float32)
        if len(shape) == 2:
            drawn[f"{layer}.bias"] = rng.uniform(-limit, limit, shape[0]).astype(np.float32)
    return drawn


def batch(number):
    """Images [N, H, W, 1] and labels [N]: of step `number` from 0 on; the next is to evaluate."""
    patterns = np.random.default_rng(1).standard_normal((CLASSES, 7, 7))
    rng = np.random.default_rng([2, number])
    labels = rng.integers(0, CLASSES, BATCH).astype(np.int32)
    noise = rng.standard_normal((BATCH, SIDE, SIDE))
    images = np.kron(patterns, np.ones((4, 4)))[labels] + 3 * noise
    return images[..., None].astype(np.float32), labels


def network_of(nn):
    """By a module of layers, with the names and arguments that PyTorch's have."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding="same", bias=False),
        nn.BatchNorm2d(32, eps=1e-5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding="same", bias=False),
        nn.BatchNorm2d(64, eps=1e-5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 7 * 7, 128),
        nn.ReLU(),
        nn.Linear(128, CLASSES),
    )


def trained(dtype):
    import torch
    from torch import nn

    network = network_of(nn)
    first = {name: torch.tensor(array) for name, array in weights().items()}
    network.load_state_dict({**network.state_dict(), **first})
    kind = getattr(torch, dtype)
    network.to(kind)
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)

    def loss_of(number):
        images, labels = (torch.tensor(array) for array in batch(number))
        logits = network(images.movedim(-1, 1).to(kind))
        return nn.functional.cross_entropy(logits, labels.long())

    losses = []
    for step in range(STEPS):
        loss = loss_of(step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    network.eval()
    kept = {
        f"{norm}.{what}": rounded(getattr(network[int(norm)], what).tolist())
        for norm in NORMS
        for what in ("running_mean", "running_var")
    }
    with torch.no_grad():
        (evaluated,) = rounded([loss_of(STEPS).item()])
    return {"dtype": dtype, "losses": rounded(losses), "kept": kept, "evaluated": evaluated}


def rounded(numbers):
    """To the digits that float32 has."""
    return [float(f"{number:.8g}") for number in numbers]


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(trained(dtype)) for dtype in DTYPES)
    pathlib.Path(__file__).with_suffix(".json").write_text(f"[\n{lines}\n]\n")
