"""A llama-2 decoder in plain NumPy and double, and checkpoints of random weights: what
llama2_test.py compares examples/llama2.py with. Shares nothing with the example."""
import collections
import struct

import numpy as np

Config = collections.namedtuple(
    "Config", "dim hidden_dim n_layers n_heads n_kv_heads vocab_size seq_len shared")


def random_weights(config, seed):
    """All tensors of a checkpoint, by name, in the order of the file."""
    random = np.random.default_rng(seed)
    dim, hidden, layers, vocab = config.dim, config.hidden_dim, config.n_layers, config.vocab_size
    head = dim // config.n_heads
    kv_dim = head * config.n_kv_heads

    def matrix(*shape):
        return (random.standard_normal(shape) / np.sqrt(shape[-1])).astype("<f4")

    def norm(*shape):
        return random.uniform(0.5, 1.5, shape).astype("<f4")

    angles = np.outer(np.arange(config.seq_len), 10000.0 ** (-np.arange(0, head, 2) / head))
    weights = {
        # Small beside what the layers add, or a tied classifier would repeat the same token.
        "token_embedding": (0.2 * random.standard_normal((vocab, dim))).astype("<f4"),
        "rms_att": norm(layers, dim),
        "wq": matrix(layers, dim, dim),
        "wk": matrix(layers, kv_dim, dim),
        "wv": matrix(layers, kv_dim, dim),
        "wo": matrix(layers, dim, dim),
        "rms_ffn": norm(layers, dim),
        "w1": matrix(layers, hidden, dim),
        "w2": matrix(layers, dim, hidden),
        "w3": matrix(layers, hidden, dim),
        "rms_final": norm(dim),
        "freq_cis_real": np.cos(angles).astype("<f4"),
        "freq_cis_imag": np.sin(angles).astype("<f4")}
    if not config.shared:
        weights["wcls"] = matrix(vocab, dim)
    return weights


def checkpoint_bytes(config, weights):
    vocab = config.vocab_size if config.shared else -config.vocab_size
    header = struct.pack("<7i", *config[:5], vocab, config.seq_len)
    return header + b"".join(weight.tobytes() for weight in weights.values())


def rms_norm(x, weight):
    return x / np.sqrt(np.mean(x * x) + 1e-5) * weight


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


class Decoder:
    """One token at a time; keys and values of earlier positions are kept."""

    def __init__(self, config, weights):
        self.config = config
        self.weights = {name: w.astype(np.float64) for name, w in weights.items()}
        kv_dim = config.dim // config.n_heads * config.n_kv_heads
        self.keys = np.zeros((config.n_layers, config.seq_len, kv_dim))
        self.values = np.zeros_like(self.keys)

    def rotate(self, x, position):
        """Neighbours in a head are complex numbers, turned by angles that grow by position."""
        w = self.weights
        turn = w["freq_cis_real"][position] + 1j * w["freq_cis_imag"][position]
        pairs = x.reshape(-1, len(turn), 2)
        turned = (pairs[..., 0] + 1j * pairs[..., 1]) * turn
        return np.stack([turned.real, turned.imag], -1).reshape(x.shape)

    def attend(self, layer, query, position):
        heads, head = self.config.n_heads, self.config.dim // self.config.n_heads
        group = heads // self.config.n_kv_heads
        result = np.empty_like(query)
        for h in range(heads):
            mine = slice(h * head, (h + 1) * head)
            theirs = slice(h // group * head, (h // group + 1) * head)
            scores = self.keys[layer, :position + 1, theirs] @ query[mine] / np.sqrt(head)
            result[mine] = softmax(scores) @ self.values[layer, :position + 1, theirs]
        return result

    def step(self, token, position):
        w = self.weights
        x = w["token_embedding"][token]
        for i in range(self.config.n_layers):
            h = rms_norm(x, w["rms_att"][i])
            self.keys[i, position] = self.rotate(w["wk"][i] @ h, position)
            self.values[i, position] = w["wv"][i] @ h
            x = x + w["wo"][i] @ self.attend(i, self.rotate(w["wq"][i] @ h, position), position)
            h = rms_norm(x, w["rms_ffn"][i])
            gate = w["w1"][i] @ h
            x = x + w["w2"][i] @ (gate / (1 + np.exp(-gate)) * (w["w3"][i] @ h))
        return w["token_embedding" if self.config.shared else "wcls"] @ rms_norm(x, w["rms_final"])

    def greedy(self, token, count):
        """`count` tokens behind the first one, each the likeliest, and the least lead of one."""
        tokens, lead = [], np.inf
        for position in range(count):
            logits = self.step(token, position)
            second, first = np.sort(logits)[-2:]
            lead = min(lead, first - second)
            token = int(np.argmax(logits))
            tokens.append(token)
        return tokens, lead
