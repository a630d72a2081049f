"""A small network, the same in NumPy, and samples for it."""

from testing import floats, np

from arenite import nn


def two_layers(seed=1):
    rng = np.random.default_rng(seed)
    return nn.Sequential(nn.Linear(6, 5, rng=rng), nn.ReLU(), nn.Linear(5, 3, rng=rng))


class NumPySGD:
    """The same two layers, loss and optimizer, in double."""

    def __init__(self, network, lr, momentum=0.0, weight_decay=0.0):
        self.values = [value.astype(float) for value in network.state_dict().values()]
        self.velocities = [np.zeros_like(value) for value in self.values]
        self.lr, self.momentum, self.weight_decay = lr, momentum, weight_decay

    def step(self, x, y):
        x = x.astype(float)
        w, b, v, c = self.values
        hidden = np.maximum(x @ w + b, 0)
        logits = hidden @ v + c
        e = np.exp(logits - logits.max(1, keepdims=True))
        p = e / e.sum(1, keepdims=True)
        loss = -np.log(p[np.arange(len(y)), y]).mean()
        d = (p - np.eye(3)[y]) / len(y)
        inner = (d @ v.T) * (hidden > 0)
        for i, g in enumerate([x.T @ inner, inner.sum(0), hidden.T @ d, d.sum(0)]):
            g = g + self.weight_decay * self.values[i]
            self.velocities[i] = self.momentum * self.velocities[i] + g
            self.values[i] = self.values[i] - self.lr * self.velocities[i]
        return loss


def samples(count):
    x = floats(count, 6)
    return x, (x @ floats(6, 3)).argmax(1)
