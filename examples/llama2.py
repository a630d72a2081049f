#!/usr/bin/env python3
"""A llama-2 decoder: reads a checkpoint of llama2.c, is compiled once for one token, and generates.

    llama2.py model.bin --tokenizer tokenizer.bin --prompt "Once upon a time"
    llama2.py --config 288,768,6,6,6,32000,256    random weights: what they take, and how long
    llama2.py model.bin --print-script            the same model as a script

Keys and values of earlier positions stay in buffers of the model, from one evaluation to the next.
All memory that a token touches is planned before the first one, and printed.
"""
import argparse
import contextlib
import math
import os
import re
import struct
import sys
import time
import typing

import numpy as np

import arenite
from arenite import functional as F

BOS = 1  # the token before every text
NEWER = 0x616B3432  # what checkpoints of later versions begin with


class Config(typing.NamedTuple):
    """The header of a checkpoint."""
    dim: int
    hidden_dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    vocab_size: int  # in files negative where the classifier has weights of its own
    seq_len: int
    shared: bool = True  # the classifier is the token embedding

    @property
    def head_dim(self):
        return self.dim // self.n_heads

    def __str__(self):
        sizes = ", ".join(f"{name} {value}" for name, value in zip(self._fields, self[:7]))
        return sizes + ("" if self.shared else ", a classifier of its own")


def config_of(numbers, where):
    """A Config of seven integers, whatever they are. Throws ValueError."""
    config = Config(*numbers, shared=numbers[5] > 0)._replace(vocab_size=abs(numbers[5]))
    for name, number in zip(Config._fields, config[:7]):
        least = BOS + 1 if name == "vocab_size" else 1
        if number < least:
            raise ValueError(f"{where}: {name} is {number}; expected {least} or more")
    for name, number, by, parts in (("dim", config.dim, "n_heads", config.n_heads),
                                    ("n_heads", config.n_heads, "n_kv_heads", config.n_kv_heads)):
        if number % parts:
            raise ValueError(f"{where}: {name} is {number}; expected a multiple of {parts}, which "
                             f"{by} is")
    if config.head_dim % 2:
        raise ValueError(f"{where}: dim is {config.dim}, n_heads {config.n_heads}; expected an "
                         "even number a head, of which pairs are rotated")
    return config


def shapes_of(config):
    """The tensors of a checkpoint, in the order of the file."""
    dim, hidden, layers = config.dim, config.hidden_dim, config.n_layers
    kv_dim, angles = config.head_dim * config.n_kv_heads, (config.seq_len, config.head_dim // 2)
    shapes = {"token_embedding": (config.vocab_size, dim), "rms_att": (layers, dim),
              "wq": (layers, dim, dim), "wk": (layers, kv_dim, dim), "wv": (layers, kv_dim, dim),
              "wo": (layers, dim, dim), "rms_ffn": (layers, dim), "w1": (layers, hidden, dim),
              "w2": (layers, dim, hidden), "w3": (layers, hidden, dim), "rms_final": (dim,),
              "freq_cis_real": angles, "freq_cis_imag": angles}
    if not config.shared:
        shapes["wcls"] = (config.vocab_size, dim)
    return shapes


def read_checkpoint(path):
    """The Config and {name: float32 array} of a file of version 0. Throws ValueError, OSError."""
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        header = file.read(28)
        if len(header) < 28:
            raise ValueError(f"{path}: {len(header)} bytes; expected a header of 28")
        numbers = struct.unpack("<7i", header)
        if numbers[0] == NEWER:
            raise ValueError(f"{path}: a checkpoint of version {numbers[1]}; expected version 0")
        config = config_of(numbers, path)
        shapes = shapes_of(config)
        expected = 28 + 4 * sum(map(math.prod, shapes.values()))
        if size != expected:
            raise ValueError(f"{path}: {size} bytes; expected {expected} for {config}")
        weights = {}
        for name, shape in shapes.items():
            weights[name] = np.fromfile(file, "<f4", math.prod(shape)).reshape(shape)
            if not np.isfinite(weights[name]).all():
                raise ValueError(f"{path}: {name} holds infinities or what is no number; expected "
                                 "finite numbers")
    return config, weights


def random_weights(config, seed):
    random = np.random.default_rng(seed)
    speeds = 1e4 ** (-np.arange(0, config.head_dim, 2) / config.head_dim)
    angles = np.outer(np.arange(config.seq_len), speeds)
    weights = {}
    for name, shape in shapes_of(config).items():
        if name.startswith("rms"):
            weights[name] = np.ones(shape, "f4")
        elif name.startswith("freq"):
            weights[name] = (np.cos if name.endswith("real") else np.sin)(angles).astype("f4")
        else:
            weights[name] = random.standard_normal(shape, "f4") * np.float32(shape[-1] ** -0.5)
    return weights


class Tokenizer:
    """A tokenizer.bin of llama2.c: the longest length, then score, length and bytes of each token.

    Throws ValueError, OSError."""

    def __init__(self, path, vocab_size):
        with open(path, "rb") as file:
            data = file.read()
        self.pieces, self.scores = [], []
        at = 4
        for token in range(vocab_size):
            if at + 8 > len(data):
                raise ValueError(f"{path}: it ends behind {token} tokens; expected {vocab_size}")
            score, length = struct.unpack_from("<fI", data, at)
            at += 8
            if length > len(data) - at:
                raise ValueError(f"{path}: token {token} has {length} bytes; expected at most the "
                                 f"{len(data) - at} that are left")
            if math.isnan(score):
                raise ValueError(f"{path}: the score of token {token} is nan; expected a number")
            self.pieces.append(data[at:at + length])
            self.scores.append(score)
            at += length
        if at != len(data):
            raise ValueError(f"{path}: {len(data)} bytes; expected {at} for {vocab_size} tokens")
        self.tokens = {piece: token for token, piece in enumerate(self.pieces)}

    def encode(self, text):
        """A token a character, or a byte where there is none for it; then the best pairs merge."""
        tokens = []
        for character in " " + text if text else "":
            piece = character.encode()
            tokens += [self.tokens[piece]] if piece in self.tokens else map(self.byte, piece)
        while True:
            merged = [self.tokens.get(self.pieces[a] + self.pieces[b])
                      for a, b in zip(tokens, tokens[1:])]
            best = max((i for i, token in enumerate(merged) if token is not None),
                       key=lambda i: self.scores[merged[i]], default=None)
            if best is None:
                return [BOS] + tokens
            tokens[best:best + 2] = [merged[best]]

    def byte(self, value):
        """The 256 bytes stand behind three special tokens."""
        if value + 3 >= len(self.pieces):
            raise ValueError(f"byte {value} in the prompt; expected what {len(self.pieces)} tokens "
                             "can say")
        return value + 3

    def decode(self, previous, token):
        piece = self.pieces[token]
        if previous == BOS and piece.startswith(b" "):
            piece = piece[1:]
        byte = re.fullmatch(rb"<0x([0-9A-Fa-f]{2})>", piece)
        return bytes([int(byte[1], 16)]) if byte else piece


def build(config, weights):
    """The logits [1, vocab_size] of one token at one position, both int64 [1] inputs."""
    seq_len, head_dim = config.seq_len, config.head_dim
    heads, kv_heads = config.n_heads, config.n_kv_heads
    token = arenite.input("token", (1,), "int64")
    position = arenite.input("position", (1,), "int64")
    # Checked before anything is written: the row behind a head's last one would be another head's.
    positions = arenite.constant(np.arange(seq_len, dtype="i8"), "positions")
    position = F.dynamic_slice(positions, position, rows=1)
    length = position + 1

    turns = np.stack([weights["freq_cis_real"], weights["freq_cis_imag"]], -1)
    turn = F.dynamic_slice(arenite.constant(turns, "rotation"), position, rows=1)

    # 1/√head_dim for positions so far, and 0 for later ones: sliced_softmax leaves their scores as
    # they are, and the caches may hold what came there in an earlier text.
    scales = np.zeros(2 * seq_len - 1, "f4")
    scales[:seq_len] = head_dim ** -0.5
    scales = arenite.constant(scales, "scales")
    scale = F.dynamic_slice(scales, seq_len - 1 - position, rows=seq_len).reshape(1, 1, seq_len)

    # In caches a head's rows lie side by side, as products want them: no copy turns them around.
    rows = [position] + [position + head * seq_len for head in range(1, kv_heads)]

    def cached(new, name):
        new = new.reshape(kv_heads, head_dim)
        cache = arenite.buffer((kv_heads * seq_len, head_dim), name=name)
        for head, row in enumerate(rows):
            cache = cache.replace(new[head:head + 1], row)
        return cache.reshape(kv_heads, seq_len, head_dim)

    def rotated(x, count):
        return F.complex_mul(x.reshape(count, head_dim // 2, 2), turn)

    embedding = arenite.constant(weights["token_embedding"], "token_embedding")
    x = F.dynamic_slice(embedding, token, rows=1)
    for i in range(config.n_layers):
        def weight(name):
            return arenite.constant(weights[name][i], f"layers.{i}.{name}")

        def linear(x, name):
            return F.matmul(x, weight(name), transpose_b=1)

        h = F.rms_norm(x, weight("rms_att"))
        keys = cached(rotated(linear(h, "wk"), kv_heads), f"layers.{i}.keys")
        values = cached(linear(h, "wv"), f"layers.{i}.values")
        queries = rotated(linear(h, "wq"), heads).reshape(kv_heads, heads // kv_heads, head_dim)
        scores = F.matmul(queries, keys, transpose_b=1) * scale
        attention = F.matmul(F.sliced_softmax(scores, length), values)
        x = x + linear(attention.reshape(1, config.dim), "wo")
        h = F.rms_norm(x, weight("rms_ffn"))
        x = x + linear(linear(h, "w1").silu() * linear(h, "w3"), "w2")
    x = F.rms_norm(x, arenite.constant(weights["rms_final"], "rms_final"))
    classifier = embedding if config.shared else arenite.constant(weights["wcls"], "wcls")
    return F.matmul(x, classifier, transpose_b=1)


class Decoder:
    """A compiled model, and the keys and values of the tokens it was given."""

    def __init__(self, config, weights, workers=0):
        session = arenite.Session(workers=workers)
        self.model = arenite.compile(build(config, weights), session=session)
        self.token, self.position = np.zeros(1, "i8"), np.zeros(1, "i8")
        self.output = np.zeros((1, config.vocab_size), "f4")
        self.weight_bytes = sum(weight.nbytes for weight in weights.values())

    def logits(self, token, position):
        """For each token what speaks for its coming next; overwritten by the next call."""
        self.token[0], self.position[0] = token, position
        self.model.run({"token": self.token, "position": self.position}, out=[self.output])
        return self.output[0]

    def memory(self):
        plan = self.model.plan
        least = "proved least" if plan.optimal else f"least known: {plan.lower_bound:,}"
        return (f"planned memory: {plan.bytes:,} bytes, of which {plan.arena_bytes:,} come and go "
                f"({least}); weights: {self.weight_bytes:,} bytes")


def chooser(temperature, seed):
    """What takes a token by its logits: the best one, or by chance."""
    if temperature == 0:
        return lambda logits: int(np.argmax(logits))
    random = np.random.default_rng(seed)

    def choose(logits):
        heights = np.cumsum(np.exp((logits - logits.max()).astype(np.float64) / temperature))
        return int(np.searchsorted(heights[:-1], random.random() * heights[-1], side="right"))

    return choose


def generate(decoder, prompt, steps, choose):
    """Yields what follows the first token: the rest of the prompt, then its own, until the end of
    the text or `steps` tokens."""
    token = prompt[0]
    for position in range(steps):
        logits = decoder.logits(token, position)
        prompted = position + 1 < len(prompt)
        token = prompt[position + 1] if prompted else choose(logits)
        if token == BOS and not prompted:
            return
        yield token


def seven_numbers(text):
    try:
        numbers = [int(number) for number in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != 7:
        raise argparse.ArgumentTypeError(f"{text!r}; expected seven integers, as the header has: "
                                         + ",".join(Config._fields[:7]))
    return numbers


def arguments():
    parser = argparse.ArgumentParser(description="Generates text with a llama-2 decoder.")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("checkpoint", nargs="?", help="a file of llama2.c, version 0")
    source.add_argument("--config", type=seven_numbers, metavar="N,N,N,N,N,N,N",
                        help="random weights of these sizes: " + ",".join(Config._fields[:7]))
    parser.add_argument("--tokenizer", help="its tokenizer.bin; without one tokens are numbers")
    parser.add_argument("--prompt", default="", help="how the text begins")
    parser.add_argument("--steps", type=int, help="tokens at most; else all that there is room for")
    parser.add_argument("--temperature", type=float, default=0.0,
                        help="0: always the likeliest token (default)")
    parser.add_argument("--seed", type=int, default=0, help="of random weights and choices")
    parser.add_argument("--workers", type=int, default=0, help="threads; 0: one a processor (default)")
    parser.add_argument("--print-script", action="store_true", help="print the model, run nothing")
    return parser.parse_args()


def run(args):
    if not 0 <= args.temperature < math.inf:
        raise ValueError(f"--temperature {args.temperature}; expected 0 or more")
    if args.seed < 0:
        raise ValueError(f"--seed {args.seed}; expected 0 or more")
    if args.prompt and not args.tokenizer:
        raise ValueError("--prompt without --tokenizer; expected both")
    if args.config:
        config = config_of(args.config, "--config")
        weights = random_weights(config, args.seed)
    else:
        config, weights = read_checkpoint(args.checkpoint)
    steps = config.seq_len if args.steps is None else args.steps
    if not 0 <= steps <= config.seq_len:
        raise ValueError(f"--steps {steps}; expected 0 to {config.seq_len}, as there is room for")
    tokenizer = Tokenizer(args.tokenizer, config.vocab_size) if args.tokenizer else None
    prompt = tokenizer.encode(args.prompt) if tokenizer else [BOS]
    if len(prompt) > config.seq_len:
        raise ValueError(f"the prompt has {len(prompt)} tokens; expected at most {config.seq_len}, "
                         "as there is room for")

    if args.print_script:
        print(f"# {config}", arenite.to_script(build(config, weights)), sep="\n", end="")
        return
    begin = time.perf_counter()
    decoder = Decoder(config, weights, args.workers)
    print(f"{config}\ncompiled in {time.perf_counter() - begin:.2f} s\n{decoder.memory()}",
          file=sys.stderr)

    previous, count, out = BOS, 0, sys.stdout.buffer
    with contextlib.suppress(KeyboardInterrupt):
        for token in generate(decoder, prompt, steps, chooser(args.temperature, args.seed)):
            if count == 0:
                begin = time.perf_counter()  # from the second evaluation on: the first one warms up
            out.write(tokenizer.decode(previous, token) if tokenizer else b"%d " % token)
            out.flush()
            previous, count = token, count + 1
    seconds = time.perf_counter() - begin
    out.write(b"\n")
    speed = f", {(count - 1) / seconds:.1f} tokens/s" if count > 1 else ""
    print(f"{count} tokens{speed}", file=sys.stderr)


def main():
    try:
        run(arguments())
    except (ValueError, OSError, MemoryError, arenite.Error) as error:
        print(f"llama2.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
