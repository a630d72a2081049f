#!/usr/bin/env python3
"""Writes hard planning tables whose optimum is known, since each was made by hiding a packing.

A packing in a strip of C bytes shows that C is enough; a moment at which C bytes are alive shows
that no less is. Both are checked before a table is written. C is in the file's name, as the field
names its hard instances: NAME.CAPACITY.csv. The families:

  cut      the strip cut into pieces without gaps, by pinwheels only: no cut goes straight through
  shrunk   pieces of mixed cuts, shrunk in time and in size until 89-98 % of the strip is full
  buddy    sizes that are powers of two: cuts in halves, shrunk in time to 89-98 %
  dropped  random buffers at random free places until nothing falls into place, then fillers
  mixed    like the field's A-E and I-K: long thin buffers, short fat ones (log size against log
           lifetime: -0.8), piled up and closed with fillers
  belt     like the field's F-H: all of similar size and lifetime, a few sections long

60 to some 300 buffers each. Every moment of `cut` is full; `shrunk` and `buddy` keep one full, the
others close some. Rows are shuffled, and sizes are multiples of 1 to 1024 bytes.
`arenite plan DIR/shrunk-120-7.1048576.csv` plans one.
"""
import argparse
import collections
import random
import sys

import table_file

# In `rows` of the strip: offset and size; what multiplies them is the strip's unit.
Piece = collections.namedtuple("Piece", "lower upper offset size")
# Moments, rows, bytes a row.
Strip = collections.namedtuple("Strip", "moments rows unit")

STRIPS = (Strip(96, 1024, 1024), Strip(192, 1500, 640), Strip(1024, 1024, 1024), Strip(100_000, 1_000_000, 1))


def capacity(strip):
    return strip.rows * strip.unit


def fill(strip, pieces):
    return sum((p.upper - p.lower) * p.size for p in pieces) / (strip.moments * strip.rows)


def live(pieces, moment):
    return sum(p.size for p in pieces if p.lower <= moment < p.upper)


def overlap(a, b):
    return a.lower < b.upper and b.lower < a.upper and a.offset < b.offset + b.size and b.offset < a.offset + a.size


# Cuts

def pinwheel(rng, piece):
    """Four pieces around a fifth, or none if there is no room."""
    width = piece.upper - piece.lower
    if width < 3 or piece.size < 3:
        return []
    first, second = sorted(rng.sample(range(1, width), 2))
    low, high = sorted(rng.sample(range(1, piece.size), 2))
    parts = [(0, second, 0, low), (second, width, 0, high), (first, width, high, piece.size),
             (0, first, low, piece.size), (first, second, low, high)]
    if rng.random() < 0.5:  # the other way round
        parts = [(width - b, width - a, bottom, top) for a, b, bottom, top in parts]
    return [Piece(piece.lower + a, piece.lower + b, piece.offset + bottom, top - bottom) for a, b, bottom, top in parts]


def in_time(rng, piece):
    width = piece.upper - piece.lower
    if width < 2:
        return []
    at = piece.lower + rng.randint(max(1, width // 4), max(1, 3 * width // 4))
    return [piece._replace(upper=at), piece._replace(lower=at)]


def in_size(rng, piece):
    if piece.size < 2:
        return []
    low = rng.randint(max(1, piece.size // 4), max(1, 3 * piece.size // 4))
    return [piece._replace(size=low), piece._replace(offset=piece.offset + low, size=piece.size - low)]


def in_halves(_, piece):
    half = piece.size // 2
    return [piece._replace(size=half), piece._replace(offset=piece.offset + half, size=half)] if half else []


def dissect(rng, strip, count, cuts):
    """Cuts pieces, larger ones sooner, until there are `count` of them."""
    pieces = [Piece(0, strip.moments, 0, strip.rows)]
    for _ in range(20 * count):
        if len(pieces) >= count:
            break
        weights = [((p.upper - p.lower) * p.size) ** 0.7 for p in pieces]
        chosen = rng.choices(range(len(pieces)), weights)[0]
        parts = rng.choice(cuts)(rng, pieces[chosen])
        if parts:
            pieces[chosen:chosen + 1] = parts
    return pieces


def shrink(rng, strip, pieces, in_size_too):
    """Makes gaps everywhere but at one moment, until the strip is 89-98 % full."""
    wanted = rng.uniform(0.89, 0.98)
    full = rng.randrange(strip.moments)
    pieces = list(pieces)
    area = round(fill(strip, pieces) * strip.moments * strip.rows)
    for _ in range(100 * len(pieces)):
        if area <= wanted * strip.moments * strip.rows:
            break
        at = rng.randrange(len(pieces))
        old = pieces[at]
        kept = old.lower <= full < old.upper
        if in_size_too and not kept and rng.random() < 0.5:
            less = rng.randint(0, old.size // 4)
            new = old._replace(size=old.size - less, offset=old.offset + rng.choice((0, less)))
        else:
            less = rng.randint(0, (old.upper - old.lower) // 4)
            new = rng.choice((old._replace(lower=old.lower + less), old._replace(upper=old.upper - less)))
            if kept and not new.lower <= full < new.upper:
                continue
        pieces[at] = new
        area -= (old.upper - old.lower) * old.size - (new.upper - new.lower) * new.size
    return pieces


# Drops

def gaps(strip, pieces, lower, upper):
    """Free (offset, size) during [lower, upper), lowest first."""
    end = 0
    for p in sorted((p for p in pieces if p.lower < upper and lower < p.upper), key=lambda p: p.offset):
        if p.offset > end:
            yield end, p.offset - end
        end = max(end, p.offset + p.size)
    if end < strip.rows:
        yield end, strip.rows - end


def drop(rng, strip, count, shape, pile):
    """Places random buffers until there are `count`, or some dozens in a row find no place.

    `shape` draws (lifetime, size) for a mean share of the strip's area, which falls as places grow
    scarce. With `pile` each takes the lowest of several places, else any.
    """
    pieces, misses = [], 0
    while len(pieces) < count and misses < 60:
        width, size = shape(rng, strip, 1 / count / (1 + misses // 8))
        places = []
        for _ in range(12 if pile else 2):
            lower = rng.randint(0, strip.moments - width)
            for offset, room in gaps(strip, pieces, lower, lower + width):
                if room >= size:
                    higher = 0 if pile else rng.randint(0, room - size)
                    places.append(Piece(lower, lower + width, offset + higher, size))
        if not places:
            misses += 1
            continue
        pieces.append(min(places, key=lambda p: p.offset) if pile else rng.choice(places))
        misses = 0
    return pieces


def longest(strip, pieces, piece):
    """How far a piece may last to either side without meeting another."""
    beside = [p for p in pieces if p.offset < piece.offset + piece.size and piece.offset < p.offset + p.size]
    return (max((p.upper for p in beside if p.upper <= piece.lower), default=0),
            min((p.lower for p in beside if p.lower >= piece.upper), default=strip.moments))


def close(rng, strip, pieces, grow, full):
    """Lets a share of the pieces last longer, then fills the fullest moment, and up to `full` while
    there are fewer than 300 pieces."""
    for at in rng.sample(range(len(pieces)), round(grow * len(pieces))):
        lower, upper = longest(strip, pieces[:at] + pieces[at + 1:], pieces[at])
        pieces[at] = pieces[at]._replace(lower=lower, upper=upper)
    for moment in sorted({p.lower for p in pieces}, key=lambda t: -live(pieces, t))[:full]:
        for offset, size in list(gaps(strip, pieces, moment, moment + 1)):
            filler = Piece(moment, moment + 1, offset, size)
            lower, upper = longest(strip, pieces, filler)
            pieces.append(filler._replace(lower=rng.randint(lower, moment), upper=rng.randint(moment + 1, upper)))
        if len(pieces) >= 300:
            break
    return pieces


def between(rng, low, high):
    """Uniform in the logarithm."""
    return low * (high / low) ** rng.random()


def rectangle(strip, width, height):
    """Of these shares of the strip's sides."""
    return (min(strip.moments, max(1, round(strip.moments * width))),
            min(strip.rows, max(1, round(strip.rows * height))))


def any_shape(rng, strip, share):
    side = share ** 0.5
    return rectangle(strip, between(rng, side / 4, side * 4), between(rng, side / 4, side * 4))


def mixed_shape(rng, strip, share):
    """A share of the strip's area, split between size and lifetime at random."""
    area, lean = between(rng, share / 3, share * 3), rng.uniform(0.05, 0.95)
    return rectangle(strip, area ** lean, area ** (1 - lean))


def belt_shape(rng, strip, share):
    side = share ** 0.5
    return rectangle(strip, rng.uniform(0.25, 0.85) * side, rng.uniform(0.55, 1.8) * side)


def cut(rng, strip, count):
    return dissect(rng, strip, count, [pinwheel])


def shrunk(rng, strip, count):
    return shrink(rng, strip, dissect(rng, strip, count, [pinwheel, in_time, in_size]), in_size_too=True)


def buddy(rng, strip, count):
    return shrink(rng, strip, dissect(rng, strip, count, [in_halves, in_time]), in_size_too=False)


def dropped(rng, strip, count):
    pieces = drop(rng, strip, count, any_shape, pile=False)
    return close(rng, strip, pieces, grow=0.5, full=rng.choice((1, 4, 16)))


def mixed(rng, strip, count):
    pieces = drop(rng, strip, count, mixed_shape, pile=True)
    return close(rng, strip, pieces, grow=0.7, full=rng.choice((1, 4, 16)))


def belt(rng, strip, count):
    pieces = drop(rng, strip, count, belt_shape, pile=True)
    return close(rng, strip, pieces, grow=0.2, full=rng.choice((16, 64)))


FAMILIES = {make.__name__: make for make in (cut, shrunk, buddy, dropped, mixed, belt)}


def check(strip, pieces):
    """That C is the optimum: the packing is sound and somewhere all of C is alive."""
    for at, p in enumerate(pieces):
        assert 0 <= p.lower < p.upper <= strip.moments and 0 <= p.offset < p.offset + p.size <= strip.rows, p
        for other in pieces[:at]:
            assert not overlap(p, other), (p, other)
    assert table_file.max_live((p.lower, p.upper, p.size) for p in pieces) == strip.rows, "no moment is full"


def hide(seed, family, number):
    """The `number`th instance of a family: its strip and its pieces, shuffled."""
    rng = random.Random(f"{seed} {family} {number}")
    strip = rng.choice([s for s in STRIPS if family != "buddy" or s.rows == 1024])
    pieces = FAMILIES[family](rng, strip, rng.randint(60, 300))
    check(strip, pieces)
    rng.shuffle(pieces)
    return strip, pieces


def whole_number(text):
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"'{text}'; expected a whole number of 1 to 10000")
    return int(text)


def arguments():
    parser = argparse.ArgumentParser(description="Write planning tables with a known optimum.")
    parser.add_argument("out_dir", metavar="OUT_DIR", help="the tables' folder, made if it is missing")
    parser.add_argument("--seed", type=whole_number, default=1, help="other tables for another seed (default 1)")
    parser.add_argument("--count", type=whole_number, default=10, help="tables of each family (default 10)")
    parser.add_argument("--family", action="append", choices=FAMILIES, help="only this one; may be repeated")
    return parser.parse_args()


def main():
    options = arguments()
    folder = table_file.folder(options.out_dir)
    for family in options.family or FAMILIES:
        for number in range(1, options.count + 1):
            strip, pieces = hide(options.seed, family, number)
            rows = [[at, p.lower, p.upper, p.size * strip.unit] for at, p in enumerate(pieces)]
            name = f"{family}-{len(pieces)}-{number}.{capacity(strip)}.csv"
            table_file.write_table(folder / name, ["id", "lower", "upper", "size"], rows)
            print(f"{name}: {100 * fill(strip, pieces):.1f} % full")


if __name__ == "__main__":
    try:
        main()
    except table_file.BadTable as error:
        print(f"hidden_packings.py: {error}", file=sys.stderr)
        sys.exit(2)
