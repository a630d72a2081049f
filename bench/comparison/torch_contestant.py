"""PyTorch on the CPU, in one of its ways. Run by bench/compare with the Python of the private venv."""
import serving  # first: it keeps standard output for the protocol

import math
import torch
from torch.nn import functional
from networks import Conv, Dense, MOMENTUM, NETWORKS, Pool, Relu, learning_rate, shapes, size

WAYS = {
    "eager": "eager, NCHW, torch.optim.SGD as it comes",
    "tuned": "eager, NCHW, fused SGD",
    "channels_last": "eager, channels_last, fused SGD",
    "trace": "torch.jit.trace of network and loss, channels_last, fused SGD",
    "compile": "torch.compile of network and loss (channels_last), fused SGD",
    "compile_step": "torch.compile of the whole step: loss, gradients, update",
}


def modules(network):
    """A Sequential that ends in logits; weights begin as PyTorch's layers begin theirs, or as Arenite's vgg-small."""
    made = []
    flat = False
    for layer, before, _ in shapes(network):
        if isinstance(layer, Conv):
            made.append(torch.nn.Conv2d(before[2], layer.channels, layer.kernel, padding=layer.padding))
        elif isinstance(layer, Relu):
            made.append(torch.nn.ReLU(inplace=True))
        elif isinstance(layer, Pool):
            made.append(torch.nn.MaxPool2d(layer.size))
        elif isinstance(layer, Dense):
            if not flat:
                made.append(torch.nn.Flatten())
            flat = True
            made.append(torch.nn.Linear(size(before), layer.features))
    weighted = [one for one in made if isinstance(one, (torch.nn.Conv2d, torch.nn.Linear))]
    for one in weighted:
        fan_in = one.weight[0].numel()
        bound = math.sqrt((6 if network.he and one is not weighted[-1] else 1) / fan_in)
        torch.nn.init.uniform_(one.weight, -bound, bound)
        torch.nn.init.uniform_(one.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))
    return torch.nn.Sequential(*made)


def load(options, channels_last):
    """All images as bytes, [N, C, H, W] or [N, H, W, C], and their labels."""
    shape, pixels = serving.idx(options.images)
    _, labels = serving.idx(options.labels)
    images = torch.frombuffer(pixels, dtype=torch.uint8).reshape(*shape[:3], -1)
    if not channels_last:
        images = images.permute(0, 3, 1, 2).contiguous()
    return images, torch.frombuffer(labels, dtype=torch.uint8).to(torch.int64)


def floats(pixels, channels_last):
    """A batch of bytes for a network. Faster than a copy of floats in memory, by four times fewer bytes to fetch."""
    if channels_last:
        pixels = pixels.permute(0, 3, 1, 2)
    return pixels.to(torch.float32).mul_(1 / 255)


def flushes_everywhere():
    """Whether the threads of a parallel loop flush denormals, too: they inherit it if they begin later."""
    tiny = torch.full((1 << 20,), 1e-38)
    return not bool((tiny * 1e-3).any())


def plain_step(options, network, images, channels_last):
    """A step as (bytes, labels) -> loss, by modules and an optimizer."""
    model = modules(network)
    way = options.variant
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
    rate = learning_rate(options.batch)
    if way == "eager":
        optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=MOMENTUM)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=MOMENTUM, fused=True)

    def loss_of(pixels, labels):
        return functional.cross_entropy(model(floats(pixels, channels_last)), labels)

    if way == "trace":
        class Loss(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, pixels, labels):
                return functional.cross_entropy(self.model(floats(pixels, channels_last)), labels)

        loss_of = torch.jit.trace(Loss(), (images[:options.batch], torch.zeros(options.batch, dtype=torch.int64)))
    elif way == "compile":
        loss_of = torch.compile(loss_of, fullgraph=True)

    def step(pixels, labels):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(pixels, labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


def compiled_step(options, network, channels_last):
    """Loss, gradients and update in one compiled function of parameters and momenta."""
    model = modules(network)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
    names = [name for name, _ in model.named_parameters()]
    values = [value.detach() for value in model.parameters()]
    momenta = [torch.zeros_like(value) for value in values]
    rate = learning_rate(options.batch)

    def loss_of(values, pixels, labels):
        pictures = floats(pixels, channels_last)
        logits = torch.func.functional_call(model, dict(zip(names, values)), (pictures,))
        return functional.cross_entropy(logits, labels)

    gradient = torch.func.grad_and_value(loss_of)

    @torch.compile(fullgraph=True)
    def update(values, momenta, pixels, labels):
        gradients, loss = gradient(values, pixels, labels)
        for value, momentum, change in zip(values, momenta, gradients):
            momentum.mul_(MOMENTUM).add_(change)
            value.sub_(momentum, alpha=rate)
        return loss

    def step(pixels, labels):
        with torch.no_grad():
            return update(values, momenta, pixels, labels)

    return step


def main():
    options = serving.arguments()
    torch.set_flush_denormal(True)  # before the first parallel loop: its threads inherit the mode
    torch.set_num_threads(options.workers)
    torch.set_num_interop_threads(1)
    torch.manual_seed(1)
    network = NETWORKS[options.network]
    channels_last = options.variant not in ("eager", "tuned") and network.name != "mlp"
    images, labels = load(options, channels_last)
    if options.variant == "compile_step":
        step = compiled_step(options, network, channels_last)
    else:
        step = plain_step(options, network, images, channels_last)
    count, batch = len(images), options.batch
    order, place = torch.randperm(count), 0

    def train(stop):
        nonlocal order, place
        samples = 0
        while True:
            if place + batch > count:
                order, place = torch.randperm(count), 0
            chosen = order[place:place + batch]
            place += batch
            loss = step(images.index_select(0, chosen), labels.index_select(0, chosen))
            samples += batch
            if stop():
                return samples, float(loss.detach())

    library = next((line.strip(" -").split(" (")[0] for line in torch.__config__.show().splitlines() if "MKL-DNN" in line),
                   "no oneDNN")
    flushed = "flushed" if flushes_everywhere() else "NOT flushed"
    serving.serve(train, f"PyTorch {torch.__version__}", "; ".join([
        WAYS[options.variant], "a thread a worker", f"{torch.backends.cpu.get_cpu_capability()}, {library}",
        f"denormals {flushed} on all threads"]))


if __name__ == "__main__":
    main()
