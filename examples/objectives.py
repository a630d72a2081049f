#!/usr/bin/env python3
"""One trainer for whatever has a loss: words of a sequence, an autoencoder, several labels at once, and two
losses in turn. examples/objectives.cpp has the same in C++; docs/python.md has a network of two inputs.
"""

import sys

import numpy as np

import arenite
import arenite.functional as F
from arenite import nn, optim

COUNT = 600
rng = np.random.default_rng(3)


def trainer(module, loss, **others):
    return arenite.Trainer(module, loss, optim.Adam(lr=0.01), batch=50, **others)


class Words(nn.Module):
    """Sequences [N, 8] of ten words, which are integers: one-hot, then added up over the sequence."""

    def __init__(self):
        self.first, self.last = nn.Linear(10, 32), nn.Linear(32, 9)

    def forward(self, words):
        one_hot = F.map("float32($1 == $2)", words.unsqueeze(2), np.arange(10, dtype=np.int32))
        return self.last(self.first(one_hot.sum(1)).relu())


def count_even_words():
    words = rng.integers(0, 10, (COUNT, 8))
    even = (words % 2 == 0).sum(1)
    made = trainer(Words(), "cross_entropy")
    made.fit(words, even, epochs=40)
    return made.evaluate(words, even).accuracy


def compress():
    """Points of a plane in eight dimensions, through a code of two numbers and back: the share of their
    variance that comes out."""
    points = rng.uniform(-1, 1, (COUNT, 2)) @ rng.uniform(-1, 1, (2, 8))
    made = trainer(nn.Sequential(nn.Linear(8, 2), nn.Linear(2, 8)), nn.MSELoss())
    made.fit(points, points, epochs=40)
    return 1 - made.evaluate(points, points).loss / np.mean(points**2)


def tag():
    """Three labels of a sample, of which any may hold: how many are right."""
    x = rng.uniform(-1, 1, (COUNT, 6))
    tags = x[:, :3] + x[:, 3:] > 0

    def loss(logits, held):  # binary cross-entropy
        return F.map("max($1, 0) - $1 * $2 + log1p(exp(-abs($1)))", logits, held).mean()

    def right(logits, held):
        return F.map("float32(($1 > 0) == ($2 > 0.5))", logits, held).mean()

    made = trainer(nn.Linear(6, 3), loss, metrics={"right": right})
    made.fit(x, tags, epochs=30)
    return made.evaluate(x, tags).metrics["right"]


class Head(nn.Module):
    def __init__(self, body):
        self.body, self.last = body, nn.Linear(32, 1)

    def forward(self, x):
        return self.last(self.body(x))


def take_turns():
    """One body with two heads, whose losses are trained in turn: a trainer each, over the same module.
    The loss of both, over that at first."""
    x = rng.uniform(-1, 1, (COUNT, 4))
    wanted = x[:, :1] + x[:, 1:2], x[:, 2:3] * x[:, 3:]
    body = nn.Sequential(nn.Linear(4, 32), nn.ReLU())
    both = [trainer(Head(body), nn.MSELoss()) for _ in wanted]

    def losses():
        return sum(one.evaluate(x, y).loss for one, y in zip(both, wanted))

    before = losses()
    for _ in range(30):
        for one, y in zip(both, wanted):
            one.fit(x, y)
    return losses() / before


def main():
    words, points, tags, turns = count_even_words(), compress(), tag(), take_turns()
    print(f"even words counted right      {words:.3f}")
    print(f"variance behind a code of two {points:.3f}")
    print(f"labels right                  {tags:.3f}")
    print(f"two losses in turn, of before {turns:.4f}")
    return 0 if words > 0.9 and points > 0.95 and tags > 0.95 and turns < 0.1 else 1


if __name__ == "__main__":
    sys.exit(main())
