"""PyTorch on a GPU, in one of its ways. Run by bench/compare with the Python that has it.

Images and labels lie on the device, as bytes, before the first step: a step copies nothing from the host. A batch is
gathered and made floats there, in recorded and compiled ways within what is recorded or compiled. The host waits for
steps that it is far ahead of, and at the end of a turn.
"""
import serving  # first: it keeps standard output for the protocol

import inspect
import json
import os
import time
import torch
from torch.nn import functional
from networks import MOMENTUM, NETWORKS, learning_rate
from torch_contestant import floats, load, modules

WAYS = {
    "cuda_eager": "eager",
    "cuda_graphs": "the whole step, update included, recorded as one CUDA graph",
    "cuda_compile": 'torch.compile(mode="max-autotune") of gathering, network and loss, with its CUDA graphs',
    "cuda_compile_graphs": 'torch.compile(mode="max-autotune-no-cudagraphs") of the same, and the whole step, update '
                           "included, recorded as one CUDA graph",
}
RECORDED = "cuda_graphs", "cuda_compile_graphs"
WARM_UP = 3  # steps before a recording: PyTorch's documentation asks for them
TRIAL = 40  # steps by which a layout is chosen
UPDATE = "fused" if "fused" in inspect.signature(torch.optim.SGD).parameters else "foreach"  # before PyTorch 2.3
AHEAD = 8  # steps, twice as many at most: recorded ones would be enqueued by the thousand in a turn, and outlast it


class Steps:
    """Steps of one way: `step(chosen)` enqueues one on these samples, and returns its loss on the device."""

    def __init__(self, way, options, network, device, images, labels, channels_last):
        self.images, self.labels, self.channels_last = images, labels, channels_last
        self.model = modules(network).to(device)
        if channels_last:
            self.model = self.model.to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=learning_rate(options.batch), momentum=MOMENTUM,
                                         **{UPDATE: True})
        self.loss_of = self.plain_loss
        if way.startswith("cuda_compile"):  # else its CUDA graphs would copy all images in each step
            for fixed in images, labels:
                torch._dynamo.mark_static_address(fixed)
        if way == "cuda_compile":
            self.loss_of = torch.compile(self.plain_loss, mode="max-autotune", fullgraph=True, dynamic=False)
        elif way == "cuda_compile_graphs":
            self.loss_of = torch.compile(self.plain_loss, mode="max-autotune-no-cudagraphs", fullgraph=True,
                                         dynamic=False)
        self.step = self.plain_step
        if way in RECORDED and device.type == "cuda":
            self.record(options.batch, device)

    def plain_loss(self, chosen):
        pixels = self.images.index_select(0, chosen)
        return functional.cross_entropy(self.model(floats(pixels, self.channels_last)), self.labels.index_select(0, chosen))

    def plain_step(self, chosen):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss_of(chosen)
        loss.backward()
        self.optimizer.step()
        return loss

    def record(self, batch, device):
        """As PyTorch's documentation records a whole step; gradients live in the graph's own memory."""
        self.chosen = torch.arange(batch, device=device)
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(WARM_UP):
                self.plain_step(self.chosen)
        torch.cuda.current_stream().wait_stream(beside)
        self.optimizer.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.loss = self.loss_of(self.chosen)
            self.loss.backward()
            self.optimizer.step()
        self.step = self.replay

    def replay(self, chosen):
        self.chosen.copy_(chosen)
        self.graph.replay()
        return self.loss


def wait(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class Lead:
    """Of the host over the device."""

    def __init__(self, device):
        self.steps, self.last, self.there = 0, None, device.type == "cuda"

    def step(self):
        self.steps += 1
        if not self.there or self.steps % AHEAD:
            return
        if self.last:
            self.last.synchronize()
        self.last = torch.cuda.Event()
        self.last.record()


def seconds_of(steps, count, batch, device):
    """Of TRIAL steps, behind as many that warm up."""
    chosen = torch.randint(count, (batch,), device=device)
    for _ in range(2):
        wait(device)
        start = time.monotonic()
        for _ in range(TRIAL):
            steps.step(chosen)
        wait(device)
        taken = time.monotonic() - start
    return taken


def layouts():
    """What earlier contestants have found, and the file: $ARENITE_LAYOUTS, which a caller names who measures one GPU alone."""
    file = os.environ.get("ARENITE_LAYOUTS")
    try:
        with open(file) as known:
            return json.load(known), file
    except (OSError, TypeError, ValueError):
        return {}, file


def known_layout(name):
    return layouts()[0].get(name)


def keep_layout(name, channels_last):
    known, file = layouts()
    if file:
        with open(file + ".new", "w") as out:
            json.dump(known | {name: channels_last}, out)
        os.replace(file + ".new", file)


def main():
    options = serving.arguments()
    way = options.variant.removesuffix("_tf32")
    tf32 = way != options.variant
    device = torch.device(options.device)
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True
    if device.type == "cuda":
        torch.cuda.set_device(device)
    torch.manual_seed(1)
    network = NETWORKS[options.network]

    def on_device(channels_last):
        return [one.to(device) for one in load(options, channels_last)]

    # Which layout is faster differs from GPU to GPU and with TF32: trial steps tell, recorded ones for all ways but eager,
    # whose small steps the host decides.
    trial_way = "cuda_eager" if way == "cuda_eager" else "cuda_graphs"
    channels_last = False
    if network.name != "mlp":
        name = f"{torch.__version__}/{network.name}/{options.batch}/{trial_way}{'/tf32' * tf32}"
        channels_last = known_layout(name)
        if channels_last is None:
            taken = {}
            for layout in (False, True):
                images, labels = on_device(layout)
                trial = Steps(trial_way, options, network, device, images, labels, layout)
                taken[layout] = seconds_of(trial, len(images), options.batch, device)
            channels_last = taken[True] < taken[False]
            del trial
            keep_layout(name, channels_last)
    images, labels = on_device(channels_last)
    steps = Steps(way, options, network, device, images, labels, channels_last)
    count, batch = len(images), options.batch
    order, place, lead = torch.randperm(count, device=device), 0, Lead(device)

    def train(stop):
        nonlocal order, place
        samples = 0
        while True:
            if place + batch > count:
                order, place = torch.randperm(count, device=device), 0
            loss = steps.step(order[place:place + batch])
            place += batch
            samples += batch
            lead.step()
            if stop():
                return samples, float(loss.detach())  # waits for the device

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "the CPU"
    serving.serve(train, f"PyTorch {torch.__version__}", "; ".join([
        WAYS[way], f"update {UPDATE}", "channels_last" if channels_last else "NCHW", f"TF32 {'allowed' if tf32 else 'not allowed'}",
        f"cuDNN {torch.backends.cudnn.version()}, benchmarked", f"images on {name}"]))


if __name__ == "__main__":
    main()
