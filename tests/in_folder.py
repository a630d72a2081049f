"""Tests that have a folder of their own."""
import gzip
import pathlib
import tempfile
import unittest


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def idx(self, name, *extents, packed=False):
        count = 1
        for extent in extents:
            count *= extent
        data = b"\0\0\x08" + bytes([len(extents)]) + b"".join(e.to_bytes(4, "big") for e in extents) + bytes(
            i % 256 for i in range(count))
        (self.folder / (name + ".gz" * packed)).write_bytes(gzip.compress(data) if packed else data)
        return data
