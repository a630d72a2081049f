"""What the tests of the `arenite` command share: running it, and small data sets to run it on."""
import gzip
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

COMMAND = SANITIZER = ""
SMALL = {"--model": "mlp", "--dataset": "synthetic", "--limit": "200", "--epochs": "1", "--workers": "1"}
SIZE = 4  # rows and columns of a small set's images
NAMES = {"train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
         "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")}


def main():
    """Runs the calling file's tests. Its arguments: COMMAND [SANITIZER] [unittest's own]."""
    global COMMAND, SANITIZER, CACHE
    COMMAND = os.path.abspath(sys.argv.pop(1))
    SANITIZER = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else ""
    CACHE = tempfile.TemporaryDirectory()
    unittest.main()


def clean_environment(**extra):
    # A test must not depend on the settings of whoever runs it, nor find his data.
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("STARPU_", "ARENITE_"))}
    kept.update({"ARENITE_CACHE": CACHE.name + "/cache", "ARENITE_PERF_MAP": "0", **extra})  # leaves no files in /tmp
    return kept


def run(*arguments, stdout=subprocess.PIPE, preexec_fn=None, cwd=None, **environment):
    return subprocess.run([COMMAND, *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=cwd,
                          timeout=600, env=clean_environment(**environment), preexec_fn=preexec_fn)


def small(*arguments, without=()):
    """`train` with small defaults for what the arguments do not say."""
    given = [text for option, value in SMALL.items() if option not in arguments and option not in without
             for text in (option, value)]
    return ["train", *given, *arguments]


def train(*arguments, **environment):
    return run(*small(*arguments), **environment)


def start_command(*arguments, **environment):
    """As `run`, under way."""
    return subprocess.Popen([COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env=clean_environment(**environment))


def start(*arguments, **environment):
    """As `train`, under way."""
    return start_command(*small(*arguments), **environment)


def libraries():
    """Bytes of the command's shared libraries: those of CUDA fill hundreds of MiB of addresses."""
    listed = subprocess.run(["ldd", COMMAND], capture_output=True, text=True).stdout
    return sum(os.stat(file).st_size for file in re.findall(r"=> (/\S+)", listed))


def idx(dims, values):
    return struct.pack(f">HBB{len(dims)}I", 0, 8, len(dims), *dims) + bytes(values)


def write_set(folder, train_count=20, test_count=10, packed=False):
    """A set of MNIST's file names. Returns its folder."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", train_count), ("test", test_count)):
        images, labels = NAMES[split]
        files = {images: idx((count, SIZE, SIZE), (i * 7 % 256 for i in range(count * SIZE * SIZE))),
                 labels: idx((count,), (i % 10 for i in range(count)))}
        for name, content in files.items():
            if packed:
                # Without a time, so that offsets in messages are the same each time.
                (folder / (name + ".gz")).write_bytes(gzip.compress(content, mtime=0))
            else:
                (folder / name).write_bytes(content)
    return folder


def snapshot(folder):
    """All files below a folder, with what they hold."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
            for path in pathlib.Path(folder).rglob("*") if not path.is_dir()}
