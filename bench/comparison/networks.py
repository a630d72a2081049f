"""The networks of the comparison: shapes, parameters, and floating-point operations of a sample.

They are those of `arenite train --model`, layer for layer; contestants in Python build theirs from here.
"""
from dataclasses import dataclass


@dataclass(frozen=True)
class Conv:
    channels: int
    kernel: int
    padding: int


@dataclass(frozen=True)
class Pool:
    size: int = 2


@dataclass(frozen=True)
class Dense:
    features: int


@dataclass(frozen=True)
class Relu:
    pass


@dataclass(frozen=True)
class Network:
    name: str
    image: tuple  # height, width, channels
    layers: tuple
    he: bool = False  # hidden weights begin in ±√(6/fan_in), else all in ±1/√fan_in


def conv(channels, kernel, padding):
    return Conv(channels, kernel, padding), Relu()


def block(channels):
    return *conv(channels, 3, 1), *conv(channels, 3, 1), Pool()


GREY, COLOUR = (28, 28, 1), (32, 32, 3)
NETWORKS = {network.name: network for network in (
    Network("mlp", GREY, (Dense(512), Relu(), Dense(10))),
    Network("cnn1", GREY, (*conv(4, 3, 0), Pool(), Dense(10))),
    Network("lenet5", GREY, (*conv(6, 5, 2), Pool(), *conv(16, 5, 0), Pool(), Dense(120), Relu(), Dense(84), Relu(),
                             Dense(10))),
    Network("cnn2", GREY, (*conv(32, 3, 1), Pool(), *conv(64, 3, 1), Pool(), Dense(128), Relu(), Dense(10))),
    Network("vgg-small", COLOUR, (*block(64), *block(128), *block(256), Dense(512), Relu(), Dense(10)), he=True),
)}


def shapes(network):
    """Each layer with what it takes and gives: (layer, shape before, shape after); images are (H, W, C)."""
    shape = network.image
    for layer in network.layers:
        before = shape
        if isinstance(layer, Conv):
            shape = (*(side + 2 * layer.padding - layer.kernel + 1 for side in before[:2]), layer.channels)
        elif isinstance(layer, Pool):
            shape = (*(side // layer.size for side in before[:2]), before[2])
        elif isinstance(layer, Dense):
            shape = (layer.features,)
        yield layer, before, shape


def size(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


def products(network):
    """Multiply-adds of one image's forward pass, by layers that have any."""
    for layer, before, after in shapes(network):
        if isinstance(layer, Conv):
            yield size(after) * before[2] * layer.kernel**2
        elif isinstance(layer, Dense):
            yield size(before) * layer.features


def training_flops(network):
    """Of one sample's step, two a multiply-add: three times the forward pass (itself, the gradients of inputs and of
    weights), less the gradient of the images, which nobody needs. ReLU, pooling, biases, loss and update not counted.
    """
    forward = list(products(network))
    return 2 * (3 * sum(forward) - forward[0])


def parameters(network):
    count = 0
    for layer, before, _ in shapes(network):
        if isinstance(layer, Conv):
            count += layer.channels * (before[2] * layer.kernel**2 + 1)
        elif isinstance(layer, Dense):
            count += layer.features * (size(before) + 1)
    return count


def learning_rate(batch):
    """The same for everybody; small batches take smaller steps, so that no network stops learning."""
    return 0.02 * min(64, batch) / 64


MOMENTUM = 0.9
