"""JAX on the CPU, compiled. Run by bench/compare with the Python of the private venv."""
import serving  # first: it keeps standard output for the protocol

import collections
import math
import os

os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
from networks import Conv, Dense, MOMENTUM, NETWORKS, Pool, Relu, learning_rate, shapes, size  # noqa: E402

WAYS = {
    "jit": "jax.jit of the whole step, NHWC",
    "donate": "jax.jit of the whole step, NHWC, parameters and momenta donated, up to 4 steps under way",
}
AHEAD = 4  # a lax.scan over steps is slower by far: XLA does not run convolutions in a loop on its fast paths


def initial(network):
    """[(weights, bias)] of the layers that have them; weights of convolutions are HWIO."""
    random = numpy.random.default_rng(1)
    made = []
    for layer, before, _ in shapes(network):
        if isinstance(layer, Conv):
            shape = (layer.kernel, layer.kernel, before[2], layer.channels)
        elif isinstance(layer, Dense):
            shape = (size(before), layer.features)
        else:
            continue
        fan_in = size(shape[:-1])
        last = network.layers[-1] is layer
        bound, bias = math.sqrt((6 if network.he and not last else 1) / fan_in), 1 / math.sqrt(fan_in)
        made.append((jnp.asarray(random.uniform(-bound, bound, shape), jnp.float32),
                     jnp.asarray(random.uniform(-bias, bias, shape[-1:]), jnp.float32)))
    return made


def logits(network, values, x):
    values = iter(values)
    for layer in network.layers:
        if isinstance(layer, Conv):
            weights, bias = next(values)
            x = jax.lax.conv_general_dilated(x, weights, (1, 1), [(layer.padding,) * 2] * 2,
                                             dimension_numbers=("NHWC", "HWIO", "NHWC")) + bias
        elif isinstance(layer, Relu):
            x = jnp.maximum(x, 0)
        elif isinstance(layer, Pool):
            window = (1, layer.size, layer.size, 1)
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")
        elif isinstance(layer, Dense):
            weights, bias = next(values)
            x = x.reshape(len(x), -1) @ weights + bias
    return x


def main():
    options = serving.arguments()
    network, batch = NETWORKS[options.network], options.batch
    shape, pixels = serving.idx(options.images)
    _, labels = serving.idx(options.labels)
    pictures = numpy.frombuffer(pixels, numpy.uint8).reshape(*shape[:3], -1)
    images = jnp.asarray(pictures)
    labels = jnp.asarray(numpy.frombuffer(labels, numpy.uint8).astype(numpy.int32))
    rate, count = learning_rate(batch), len(pictures)

    def loss_of(values, pictures, classes):
        likelihoods = jax.nn.log_softmax(logits(network, values, pictures))
        return -jnp.take_along_axis(likelihoods, classes[:, None], 1).mean()

    def one(state, images, labels, chosen):
        values, momenta = state
        pictures = images[chosen].astype(jnp.float32) * (1 / 255)
        loss, gradients = jax.value_and_grad(loss_of)(values, pictures, labels[chosen])
        momenta = jax.tree.map(lambda m, g: MOMENTUM * m + g, momenta, gradients)
        values = jax.tree.map(lambda v, m: v - rate * m, values, momenta)
        return (values, momenta), loss

    donate = options.variant == "donate"
    compiled = jax.jit(one, donate_argnums=0) if donate else jax.jit(one)
    values = initial(network)
    state = values, jax.tree.map(jnp.zeros_like, values)
    random = numpy.random.default_rng(1)
    order, place = random.permutation(count).astype(numpy.int32), 0

    def train(stop):
        nonlocal state, order, place
        samples, under_way = 0, collections.deque()
        while True:
            if place + batch > count:
                order, place = random.permutation(count).astype(numpy.int32), 0
            chosen = order[place:place + batch]
            place += batch
            state, loss = compiled(state, images, labels, chosen)
            samples += batch
            under_way.append(loss)
            if not donate or len(under_way) > AHEAD:
                under_way.popleft().block_until_ready()
            if stop():
                return samples, float(loss)

    serving.serve(train, f"JAX {jax.__version__}", f"{WAYS[options.variant]}; a thread a worker; XLA flushes denormals itself")


if __name__ == "__main__":
    main()
