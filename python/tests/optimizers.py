#!/usr/bin/env python3
"""What optimizers make of a weight in 20 steps, as PyTorch has them, and Lion and LAMB as their
papers do, in NumPy.

Usage: optimizers.py

writes optimizers.json beside this program, schedules.json with the factors of schedules, and
training.json with parameter groups and averages, which optim_test.py compares with. Needs PyTorch. The loss is Σ curvature · weight² / 2 + Σ slope(t) · weight, so that gradients change with the weight
and from step to step.
"""
import json
import pathlib

import numpy as np

WEIGHT = [1.0, -2.0, 0.5, 0.003, 0.0, -0.7]
CURVATURE = [1.0, 0.1, 3.0, 20.0, 0.5, 1.5]
STEPS, KEPT = 20, (1, 2, 20)

# By class, as both libraries have it, and its arguments.
CASES = [
    ["SGD", {"lr": 0.1}],
    ["SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}],
    ["SGD", {"lr": 0.05, "momentum": 0.8, "dampening": 0.3, "weight_decay": 0.02}],
    ["SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.02}],
    ["Adam", {}],
    ["Adam", {"lr": 0.1, "betas": [0.8, 0.95], "eps": 1e-4, "weight_decay": 0.1}],
    ["Adam", {"lr": 0.1, "amsgrad": True}],
    ["AdamW", {}],
    ["AdamW", {"lr": 0.1, "betas": [0.7, 0.9], "weight_decay": 0.3}],
    ["AdamW", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.0}],
    ["RMSprop", {}],
    ["RMSprop", {"lr": 0.02, "alpha": 0.9, "eps": 1e-3, "weight_decay": 0.1}],
    ["RMSprop", {"lr": 0.02, "momentum": 0.9}],
    ["RMSprop", {"lr": 0.02, "centered": True, "eps": 1e-2}],
    ["RMSprop", {"lr": 0.02, "centered": True, "momentum": 0.5, "eps": 1e-2}],
    ["Adagrad", {}],
    ["Adagrad", {"lr": 0.5, "lr_decay": 0.1, "weight_decay": 0.05}],
    ["Adadelta", {}],
    ["Adadelta", {"lr": 2.0, "rho": 0.7, "eps": 1e-3, "weight_decay": 0.1}],
    ["Lion", {}],
    ["Lion", {"lr": 0.05, "betas": [0.8, 0.95], "weight_decay": 0.2}],
    ["LAMB", {}],
    ["LAMB", {"lr": 0.1, "betas": [0.8, 0.95], "eps": 1e-4, "weight_decay": 0.0}],
]


# By name, as scripts have it, its numbers, and PyTorch's scheduler with its arguments.
SCHEDULES = [
    ["constant", {"steps": 4, "factor": 0.25}, "ConstantLR", {"total_iters": 4, "factor": 0.25}],
    ["linear", {"steps": 8, "first": 0.2, "last": 0.9}, "LinearLR",
     {"total_iters": 8, "start_factor": 0.2, "end_factor": 0.9}],
    ["polynomial", {"steps": 12, "power": 2}, "PolynomialLR", {"total_iters": 12, "power": 2}],
    ["exponential", {"gamma": 0.9}, "ExponentialLR", {"gamma": 0.9}],
    ["staircase", {"steps": 5, "gamma": 0.5}, "StepLR", {"step_size": 5, "gamma": 0.5}],
    ["multi_step", {"at": [3, 4, 11], "gamma": 0.3}, "MultiStepLR",
     {"milestones": [3, 4, 11], "gamma": 0.3}],
    ["cosine", {"steps": 20, "least": 0.1}, "CosineAnnealingLR", {"T_max": 20, "eta_min": 0.1}],
    ["cosine_restarts", {"period": 7, "least": 0.1}, "CosineAnnealingWarmRestarts",
     {"T_0": 7, "eta_min": 0.1}],
    ["one_cycle", {"steps": 21}, "OneCycleLR", {"max_lr": 1.0, "total_steps": 21}],
    ["triangle", {"up": 3, "down": 4, "first": 0.2}, "CyclicLR",
     {"base_lr": 0.2, "max_lr": 1.0, "step_size_up": 3, "step_size_down": 4, "cycle_momentum": False}],
]


# Two weights, of which the second is in a group of its own; and means over steps.
GROUP = {"lr": 0.02, "weight_decay": 0.3}
AVERAGES = [{"decay": 0.9}, {"decay": 0.0}, {"decay": 0.0, "begin": 5, "every": 3}]


def slope(step):
    """Of each element, in float32."""
    return np.cos(3.0 * step + np.arange(len(WEIGHT))).astype(np.float32)


def with_torch(name, arguments):
    import torch

    weight = torch.nn.Parameter(torch.tensor(WEIGHT))
    curvature = torch.tensor(CURVATURE)
    optimizer = getattr(torch.optim, name)([weight], **arguments)
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        (curvature * weight * weight / 2 + torch.tensor(slope(step)) * weight).sum().backward()
        optimizer.step()
        yield step, weight.detach().numpy()


def groups_with_torch():
    import torch

    first, second = (torch.nn.Parameter(torch.tensor(WEIGHT)) for _ in range(2))
    curvature = torch.tensor(CURVATURE)
    optimizer = torch.optim.AdamW(
        [{"params": [first]}, {"params": [second], **GROUP}], lr=0.1, weight_decay=0.0
    )
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        for weight in first, second:
            (curvature * weight * weight / 2 + torch.tensor(slope(step)) * weight).sum().backward()
        optimizer.step()
    return [[float(x) for x in weight.detach()] for weight in (first, second)]


def averages_with_torch(decay, begin=1, every=1):
    import torch
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(torch.tensor(WEIGHT))
    how = {"multi_avg_fn": get_ema_multi_avg_fn(decay)} if decay else {}
    mean = AveragedModel(module, **how)
    curvature = torch.tensor(CURVATURE)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        weight = module.weight
        (curvature * weight * weight / 2 + torch.tensor(slope(step)) * weight).sum().backward()
        optimizer.step()
        if step >= begin and (step - begin) % every == 0:
            mean.update_parameters(module)
    return [float(x) for x in mean.module.weight.detach()]


def factors(name, arguments):
    import torch

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0, momentum=0.9)
    scheduler = getattr(torch.optim.lr_scheduler, name)(optimizer, **arguments)
    for _ in range(STEPS):
        yield optimizer.param_groups[0]["lr"]
        optimizer.step()
        scheduler.step()


def lion(weight, gradient, state, _, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
    mean = state.get("mean", 0)
    update = np.sign(betas[0] * mean + (1 - betas[0]) * gradient)
    state["mean"] = betas[1] * mean + (1 - betas[1]) * gradient
    return weight - lr * (update + weight_decay * weight)


def lamb(weight, gradient, state, t, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
    state["m"] = betas[0] * state.get("m", 0) + (1 - betas[0]) * gradient
    state["v"] = betas[1] * state.get("v", 0) + (1 - betas[1]) * gradient**2
    m, v = state["m"] / (1 - betas[0] ** t), state["v"] / (1 - betas[1] ** t)
    update = m / (np.sqrt(v) + eps) + weight_decay * weight
    lengths = np.linalg.norm(weight), np.linalg.norm(update)
    trust = lengths[0] / lengths[1] if min(lengths) > 0 else 1
    return weight - lr * trust * update


def by_paper(rule, arguments):
    weight, state = np.array(WEIGHT), {}
    for step in range(1, STEPS + 1):
        weight = rule(weight, np.array(CURVATURE) * weight + slope(step), state, step, **arguments)
        yield step, weight


def main():
    rows = []
    for name, arguments in CASES:
        rule = {"Lion": lion, "LAMB": lamb}.get(name)
        made = by_paper(rule, arguments) if rule else with_torch(name, arguments)
        weights = {step: [float(x) for x in weight] for step, weight in made if step in KEPT}
        rows.append(json.dumps({"optimizer": name, "arguments": arguments, "weights": weights}))
    write("optimizers.json", rows)
    write(
        "schedules.json",
        [
            json.dumps({"name": name, "numbers": numbers, "factors": list(factors(*of))})
            for name, numbers, *of in SCHEDULES
        ],
    )


    rows = [json.dumps({"groups": groups_with_torch()})]
    rows += [json.dumps({"average": one, "weight": averages_with_torch(**one)}) for one in AVERAGES]
    write("training.json", rows)


def write(name, rows):
    path = pathlib.Path(__file__).with_name(name)
    path.write_text("[\n" + ",\n".join(rows) + "\n]\n")


if __name__ == "__main__":
    main()
