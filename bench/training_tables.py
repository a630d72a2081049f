#!/usr/bin/env python3
"""Writes what one training step of published networks keeps in memory, as planning tables.

A step is forward, backward and SGD, op by op, in float32; time is the number of an op. Parameters,
their momentum and the batch are persistent and not in the tables; activations, what is saved for
backward, gradients and workspaces are. training_tape.py derives lifetimes and in-place decisions,
training_layers.py says what each layer saves.

  resnet18  He, Zhang, Ren and Sun 2015, Deep Residual Learning; 224x224, batch 32
  vgg16     Simonyan and Zisserman 2014, Very Deep Convolutional Networks, its D; 224x224, batch 32
  gpt2      Radford et al. 2019, the smallest: 12 layers, 12 heads, width 768, vocabulary 50257;
            4 sequences of 256; the head is tied to the embedding; no dropout

`arenite plan OUT_DIR/vgg16.csv` plans one.
"""
import argparse
import sys

import table_file
import training_layers as nn
from training_tape import ALIGNMENT, Tape, aligned

MIB = 1 << 20
# As two host memories, because nothing may share bytes across them.
ARENAS = {False: "cpu:0/host", True: "cpu:1/host"}


def basic_block(tape, x, name, channels, stride):
    y = nn.convolution(tape, x, f"{name}.conv1", channels, 3, stride, 1)
    y = nn.relu(tape, nn.batch_norm(tape, y, f"{name}.bn1"), f"{name}.relu1")
    y = nn.convolution(tape, y, f"{name}.conv2", channels, 3, 1, 1)
    y = nn.batch_norm(tape, y, f"{name}.bn2")
    if x.shape != y.shape:
        x = nn.convolution(tape, x, f"{name}.down.conv", channels, 1, stride)
        x = nn.batch_norm(tape, x, f"{name}.down.bn")
    return nn.relu(tape, nn.add(tape, y, x, f"{name}.add"), f"{name}.relu2")


def resnet18(tape, batch):
    x = nn.convolution(tape, tape.batch("images", batch, 224, 224, 3), "conv1", 64, 7, 2, 3)
    x = nn.relu(tape, nn.batch_norm(tape, x, "bn1"), "relu1")
    x = nn.max_pool(tape, x, "pool1", 3, 2, 1)
    for stage, channels in enumerate((64, 128, 256, 512), start=1):
        for block in range(2):
            stride = 2 if stage > 1 and block == 0 else 1
            x = basic_block(tape, x, f"layer{stage}.{block}", channels, stride)
    x = nn.dense(tape, nn.average(tape, x, "average"), "fc", 1000)
    nn.cross_entropy(tape, x, tape.batch("labels", batch), "loss")


def vgg16(tape, batch):
    x = tape.batch("images", batch, 224, 224, 3)
    for stage, (channels, layers) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)), start=1):
        for layer in range(1, layers + 1):
            x = nn.convolution(tape, x, f"conv{stage}_{layer}", channels, 3, 1, 1, bias=True)
            x = nn.relu(tape, x, f"relu{stage}_{layer}")
        x = nn.max_pool(tape, x, f"pool{stage}", 2, 2)
    x = nn.flatten(tape, x, "flatten")
    for number in (6, 7):
        x = nn.relu(tape, nn.dense(tape, x, f"fc{number}", 4096), f"relu{number}")
        x = nn.dropout(tape, x, f"dropout{number}")
    x = nn.dense(tape, x, "fc8", 1000)
    nn.cross_entropy(tape, x, tape.batch("labels", batch), "loss")


def gpt2_layer(tape, x, name, heads):
    y = nn.layer_norm(tape, x, f"{name}.ln1")
    y = nn.dense(tape, y, f"{name}.attention.qkv", 3 * x.shape[-1])
    y = nn.attention(tape, y, f"{name}.attention", heads)
    x = nn.add(tape, nn.dense(tape, y, f"{name}.attention.project", x.shape[-1]), x, f"{name}.add1")
    y = nn.layer_norm(tape, x, f"{name}.ln2")
    y = nn.gelu(tape, nn.dense(tape, y, f"{name}.mlp.up", 4 * x.shape[-1]), f"{name}.mlp.gelu")
    return nn.add(tape, nn.dense(tape, y, f"{name}.mlp.down", x.shape[-1]), x, f"{name}.add2")


def gpt2(tape, batch, length=256, width=768, heads=12, vocabulary=50257, longest=1024):
    ids, labels = tape.batch("ids", batch, length), tape.batch("labels", batch, length)
    table, positions = tape.parameter("table", vocabulary, width), tape.parameter("positions", longest, width)
    x = nn.embedding(tape, ids, "embedding", table, positions)
    for layer in range(12):
        x = gpt2_layer(tape, x, f"layer{layer}", heads)
    x = nn.tied_head(tape, nn.layer_norm(tape, x, "ln"), "head", table)
    nn.cross_entropy(tape, x, labels, "loss")


# Builder, batch, and the published number of parameters.
NETWORKS = {"resnet18": (resnet18, 32, 11_689_512),
            "vgg16": (vgg16, 32, 138_357_544),
            "gpt2": (gpt2, 4, 124_439_808)}


def record(name, batch=None):
    """One step of a network, on a tape."""
    build, usual_batch, parameters = NETWORKS[name]
    tape = Tape()
    build(tape, batch or usual_batch)
    tape.run_backward()
    assert tape.parameter_count() == parameters, f"{name}: {tape.parameter_count()} parameters, not {parameters}"
    assert set(tape.updates) == set(tape.parameters), f"{name}: a parameter is not updated once"
    return tape


def write(path, buffers, layout):
    columns = ["id", "lower", "upper", "size", "alignment"]
    rows = [[b.name, b.lower, b.upper, b.size, ALIGNMENT] for b in buffers]
    if layout == "two":
        columns.append("space")
        for row, buffer in zip(rows, buffers):
            row.append(ARENAS[buffer.backward])
    table_file.write_table(path, columns, rows)


def live_mib(buffers):
    return table_file.max_live((b.lower, b.upper, aligned(b.size)) for b in buffers) / MIB


def sums(name, batch, buffers):
    """A line of --sum: most bytes alive at once, which no plan can pass below."""
    apart = sum(aligned(b.size) for b in buffers) / MIB
    two = sum(live_mib([b for b in buffers if b.backward == late]) for late in (False, True))
    overlay = live_mib(buffers)
    return (f"{name:10} {batch:5} {len(buffers):7} {apart:10.1f} {two:10.1f} {overlay:10.1f}"
            f" {100 * (1 - overlay / two):7.1f} %")


def whole_number(text):
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 4096:
        raise argparse.ArgumentTypeError(f"'{text}'; expected a whole number of 1 to 4096")
    return int(text)


def arguments():
    parser = argparse.ArgumentParser(description="Write planning tables of training steps.")
    parser.add_argument("out_dir", metavar="OUT_DIR", help="the tables' folder, made if it is missing")
    parser.add_argument("--network", action="append", choices=NETWORKS, help="only this one; may be repeated")
    parser.add_argument("--batch", type=whole_number, help="samples a step, in place of each network's own")
    parser.add_argument("--layout", choices=("overlay", "two"), default="overlay",
                        help="two: what is first written in backward has a memory of its own, cpu:1/host")
    parser.add_argument("--sum", action="store_true",
                        help="print, in MiB, the sum of all buffers and the most alive at once, by layout")
    return parser.parse_args()


def main():
    options = arguments()
    folder = table_file.folder(options.out_dir)
    if options.sum:
        print(f"{'network':10} {'batch':>5} {'buffers':>7} {'separate':>10} {'two':>10} {'overlay':>10} {'saved':>9}")
    for name in options.network or NETWORKS:
        buffers = record(name, options.batch).buffers()
        write(folder / f"{name}.csv", buffers, options.layout)
        if options.sum:
            print(sums(name, options.batch or NETWORKS[name][1], buffers))


if __name__ == "__main__":
    try:
        main()
    except table_file.BadTable as error:
        print(f"training_tables.py: {error}", file=sys.stderr)
        sys.exit(2)
