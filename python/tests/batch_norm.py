#!/usr/bin/env python3
"""What PyTorch's batch normalisation gives in some steps of training, and in an evaluation.

Usage: batch_norm.py

writes batch_norm.json beside this program, which norm_test.py compares with. Needs PyTorch. The loss
is Σ y · target + y² / 10, of an input each of whose elements is multiplied by a weight of its own.
"""
import json
import pathlib

import numpy as np

CASES = [
    {"shape": [12, 3], "arguments": {}},
    {"shape": [7, 3], "arguments": {"eps": 1e-3, "momentum": 0.5}},
    {"shape": [4, 5, 3], "arguments": {"affine": False}},
    {"shape": [4, 5, 6, 2], "arguments": {"momentum": 0.01}},
]
STEPS, RATE = 4, 0.05


def numbers(shape, seed):
    """Of a batch, with means and deviations of its own."""
    x = np.random.default_rng(seed).standard_normal(shape)
    return (x * (1 + seed % 3) + np.arange(shape[-1]) - 1).astype(np.float32)


def first(shape):
    """The running statistics, and the weights before the layer, that training begins with."""
    at = np.arange(shape[-1])
    return {"running_mean": 0.5 - at, "running_var": 1.0 + at, "scale": np.ones(shape)}


def case(shape, arguments):
    import torch

    channels = shape[-1]
    kind = torch.nn.BatchNorm2d if len(shape) == 4 else torch.nn.BatchNorm1d
    layer = kind(channels, **arguments).double()
    begin = {name: torch.tensor(values) for name, values in first(shape).items()}
    layer.running_mean.copy_(begin["running_mean"])
    layer.running_var.copy_(begin["running_var"])
    scale = begin["scale"].clone().requires_grad_()

    def run(x):
        moved = torch.tensor(x.astype(np.float64)) * scale
        return torch.movedim(layer(torch.movedim(moved, -1, 1)), 1, -1)

    trained = [scale, *layer.parameters()]
    descent = torch.optim.SGD(trained, lr=RATE)
    outputs = []
    for step in range(STEPS):
        y = run(numbers(shape, step))
        loss = (y * torch.tensor(numbers(shape, step + 100).astype(np.float64)) + y * y / 10).sum()
        descent.zero_grad()
        loss.backward()
        descent.step()
        outputs.append(y.detach().flatten()[:6].tolist())
    layer.eval()
    found = {"scale": scale, "running_mean": layer.running_mean, "running_var": layer.running_var}
    if layer.weight is not None:
        found.update(weight=layer.weight, bias=layer.bias)
    kept = {name: value.detach().flatten()[:12].tolist() for name, value in found.items()}
    evaluated = run(numbers(shape, 50)).detach().flatten()[:6].tolist()
    return {"shape": shape, "arguments": arguments, "outputs": outputs, "kept": kept,
            "evaluated": evaluated}


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(case(**one)) for one in CASES)
    pathlib.Path(__file__).with_suffix(".json").write_text(f"[\n{lines}\n]\n")
