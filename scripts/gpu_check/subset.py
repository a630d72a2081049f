"""The first images of a data set, as the same four files."""
import gzip
import pathlib
import struct

FILES = {"train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
         "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")}


class BadData(Exception):
    """A file that is not what it should be."""


def read(folder, name):
    """The bytes of a file that is plain or packed, under either spelling of its name."""
    for spelling in name, name.replace("-idx", ".idx"):
        for path in folder / spelling, folder / (spelling + ".gz"):
            if not path.exists():
                continue
            try:
                return path.read_bytes() if path.suffix != ".gz" else gzip.decompress(path.read_bytes())
            except (OSError, EOFError) as error:
                raise BadData(f"{path}: {error}") from None
    raise BadData(f"no {name} in {folder}")


def first(data, count, where):
    """An IDX file of the first `count` items of one, or of all, if there are fewer."""
    if len(data) < 8 or data[:3] != b"\0\0\x08":
        raise BadData(f"{where}: no IDX file of bytes")
    rank = data[3]
    if rank < 1 or len(data) < 4 + 4 * rank:
        raise BadData(f"{where}: no IDX file of bytes")
    extents = list(struct.unpack_from(f">{rank}I", data, 4))
    item = 1
    for extent in extents[1:]:
        item *= extent
    if len(data) != 4 + 4 * rank + extents[0] * item:
        raise BadData(f"{where}: {len(data)} bytes; expected {4 + 4 * rank + extents[0] * item}")
    kept = min(count, extents[0])
    return data[:4] + struct.pack(f">{rank}I", kept, *extents[1:]) + data[4 + 4 * rank:4 + 4 * rank + kept * item]


def cut(source, target, train, test):
    """Writes `source`'s first images and labels as packed files to `target`; the counts that were kept."""
    target = pathlib.Path(target)
    target.mkdir(parents=True)
    kept = {}
    for split, count in (("train", train), ("test", test)):
        for name in FILES[split]:
            data = first(read(pathlib.Path(source), name), count, name)
            counted = struct.unpack_from(">I", data, 4)[0]
            if kept.setdefault(split, counted) != counted:
                raise BadData(f"{source}: {kept[split]} {split} images and {counted} labels")
            # Without a time: the same bytes each time.
            (target / (name + ".gz")).write_bytes(gzip.compress(data, 9, mtime=0))
    return kept
