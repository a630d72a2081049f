#!/usr/bin/env python3
"""Writes large hard planning tables whose optimum is known: a full strip of bytes and time, cut in pieces.

Every moment is full, so the strip's bytes are the optimum; they are in the file's name, as the field names
its hard instances. Cuts go straight through a piece, in time or in size, the largest pieces first but for
some luck, so that long thin buffers lie among short fat ones. Rows are shuffled.
`python3 bench/big_strips.py DIR --buffers 20000; arenite plan DIR/strip-20000-1.1000000.csv` plans one.
"""
import argparse
import heapq
import random
import sys

import table_file

MOMENTS, BYTES = 100_000, 1_000_000


def cut(count, seed):
    """`count` pieces (lower, upper, size)."""
    rng = random.Random(f"{seed} {count}")
    heap, made = [(0, 0, 0, MOMENTS, BYTES)], 0
    pieces = []
    while len(heap) + len(pieces) < count:
        _, _, lower, upper, size = heapq.heappop(heap)
        length = upper - lower
        if length == 1 and size == 1:
            pieces.append((lower, upper, size))
            continue
        share = rng.uniform(0.15, 0.85)
        if size == 1 or (length > 1 and rng.random() < 0.5):
            at = lower + min(max(1, int(length * share)), length - 1)
            parts = [(lower, at, size), (at, upper, size)]
        else:
            low = min(max(1, int(size * share)), size - 1)
            parts = [(lower, upper, low), (lower, upper, size - low)]
        for begin, end, height in parts:
            made += 1
            heapq.heappush(heap, (-(end - begin) * height * rng.uniform(0.3, 1), made, begin, end, height))
    pieces += [entry[2:] for entry in heap]
    rng.shuffle(pieces)
    return pieces


def number(least, most):
    def read(text):
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"'{text}'; expected a whole number of {least} to {most}")
        return int(text)
    return read


def main():
    parser = argparse.ArgumentParser(description="Write large planning tables with a known optimum.")
    parser.add_argument("out_dir", metavar="OUT_DIR", help="the tables' folder, made if it is missing")
    parser.add_argument("--buffers", type=number(2, 1_000_000), action="append", required=True,
                        help="a table of so many; may be repeated")
    parser.add_argument("--seed", type=number(1, 10_000), default=1, help="other tables for another seed (default 1)")
    options = parser.parse_args()
    folder = table_file.folder(options.out_dir)
    for count in options.buffers:
        pieces = cut(count, options.seed)
        assert table_file.max_live(pieces) == BYTES
        name = f"strip-{count}-{options.seed}.{BYTES}.csv"
        table_file.write_table(folder / name, ["id", "lower", "upper", "size"],
                               [[at, *piece] for at, piece in enumerate(pieces)])
        print(name)


if __name__ == "__main__":
    try:
        main()
    except table_file.BadTable as error:
        print(f"big_strips.py: {error}", file=sys.stderr)
        sys.exit(2)
