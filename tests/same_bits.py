#!/usr/bin/env python3
"""Same seed, same bits: trains networks with 1 to 4 workers, each run a process of its own, and compares the hashes
of the weights. Usage: same_bits.py COMMAND [--full]

Few drawn images; with --full all of Fashion-MNIST (exit status 77 where it is not here). The promise is for one
build and one target profile on one instruction set: other hashes elsewhere are no failure, two hashes here are."""
import argparse
import os
import re
import subprocess
import sys
import time

NETWORKS = ("lenet5", "cnn2")
WORKERS = (1, 2, 3, 4)  # more than there are cores on small machines: that is another scheduler
SKIPPED = 77


class NoData(Exception):
    pass


def weights_of(command, network, workers, seed, data):
    """The hash that `arenite train` ends with."""
    # Settings of whoever runs this must not decide anything.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("STARPU_")}
    done = subprocess.run([command, "train", "--model", network, "--epochs", "2", "--workers", str(workers),
                           "--seed", str(seed), *data],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    if done.returncode == 2 and "data set fashion-mnist" in done.stderr:
        raise NoData(done.stderr.strip())
    found = re.search(r"^weights sha256: ([0-9a-f]{64})$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or not found:
        raise RuntimeError(f"{network} with {workers} workers: status {done.returncode}\n{done.stdout}{done.stderr}")
    return found[1]


def compare(command, network, repeats, data):
    """Prints a line for each number of workers. Returns all hashes seen."""
    seen = {}
    for workers in WORKERS:
        hashes = [weights_of(command, network, workers, 1, data) for _ in range(repeats)]
        for text in hashes:
            seen[text] = seen.get(text, 0) + 1
        print(f"{network:<10} {workers:>7}   " + "  ".join(text[:12] for text in hashes), flush=True)
    return seen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", help="the program arenite")
    parser.add_argument("--full", action="store_true", help="all of Fashion-MNIST, three runs each instead of two")
    arguments = parser.parse_args()
    command = os.path.abspath(arguments.command)
    data = ["--dataset", "fashion-mnist"] if arguments.full else ["--dataset", "synthetic", "--limit", "200"]
    repeats = 3 if arguments.full else 2

    print("network    workers   weights after 2 epochs, each run a process", flush=True)
    start = time.monotonic()
    wrong, runs, hashes = [], 0, 0
    for network in NETWORKS:
        seen = compare(command, network, repeats, data)
        runs, hashes = runs + sum(seen.values()), hashes + len(seen)
        if len(seen) != 1:
            wrong.append(f"{network}: {len(seen)} hashes, " +
                         ", ".join(f"{text} {count} times" for text, count in seen.items()))
        if not arguments.full and weights_of(command, network, 2, 2, data) in seen:
            wrong.append(f"{network}: seed 2 has the weights of seed 1, so this shows nothing")
        for text in seen:
            print(f"{network}: {text}")
    print(f"{runs} runs, {hashes} hashes, {time.monotonic() - start:.0f} s")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except NoData as error:
        print(f"skipped: {error}")
        sys.exit(SKIPPED)
    except RuntimeError as error:
        sys.exit(str(error))
