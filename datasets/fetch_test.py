#!/usr/bin/env python3
"""datasets/fetch against a server on this machine that cuts, lies, cannot resume or is not there.

What needs the real files takes them from $ARENITE_DATASETS/fashion-mnist and is skipped without.
"""
import gzip
import http.server
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import unittest

FETCH = pathlib.Path(__file__).resolve().parent / "fetch"
FILES = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
TOOLS = [tool for tool in ("curl", "wget", "python3") if shutil.which(tool)]
REAL = pathlib.Path(os.environ.get("ARENITE_DATASETS", "/nonexistent")) / "fashion-mnist"
needs_data = unittest.skipUnless(all((REAL / name).exists() for name in FILES),
                                 "real data: set ARENITE_DATASETS to the folder above fashion-mnist/")


class Server(http.server.ThreadingHTTPServer):
    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = files      # name -> bytes
        self.ranges = True      # whether it can resume
        self.cut = None         # bytes after which an answer is cut
        self.asked = []         # (name, first byte)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def base(self):
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        pass  # a client that hangs up is part of the test


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def do_GET(self):
        server, name = self.server, self.path.rsplit("/", 1)[-1]
        body, first = server.files.get(name), 0
        if body is None:
            return self.send_error(404)
        wanted = self.headers.get("Range")
        if wanted and server.ranges:
            first = int(wanted.removeprefix("bytes=").rstrip("-"))
            if first >= len(body):
                server.asked.append((name, first))
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(body)}")
                self.send_header("Content-Length", "0")
                return self.end_headers()
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{len(body) - 1}/{len(body)}")
        else:
            self.send_response(200)
        server.asked.append((name, first))
        self.send_header("Content-Length", str(len(body) - first))
        self.end_headers()
        self.wfile.write(body[first:] if server.cut is None else body[first:first + server.cut])


class FetchTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="arenite-fetch-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.target = self.folder / "cache" / "fashion-mnist"
        real = {name: (REAL / name).read_bytes() for name in FILES} if REAL.exists() else {}
        self.server = Server(real)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def path_with_only(self, tool):
        """A PATH on which `tool` is the only one that can download."""
        bin_folder = self.folder / f"bin-{tool}"
        bin_folder.mkdir()
        for name in ("bash", "cat", "flock", "gzip", "head", "id", "mkdir", "mv", "rm", "sha256sum", "wc", "env", tool):
            if found := shutil.which(name):
                (bin_folder / name).symlink_to(found)
        return str(bin_folder)

    def fetch(self, *arguments, tool=None, **variables):
        environment = {"HOME": str(self.folder), "ARENITE_CACHE": str(self.folder / "cache"),
                       "ARENITE_FETCH_BASE": self.server.base, "PATH": os.environ["PATH"], **variables}
        if tool:
            environment["PATH"] = self.path_with_only(tool)
        return subprocess.run([str(FETCH), *arguments], env=environment, text=True, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def assert_whole(self):
        for name in FILES:
            self.assertEqual((self.target / name).read_bytes(), (REAL / name).read_bytes(), name)
        self.assertEqual(sorted(entry.name for entry in self.target.iterdir()), sorted(FILES))

    @needs_data
    def test_every_tool_fetches_and_then_has_nothing_to_do(self):
        for tool in TOOLS:
            with self.subTest(tool):
                shutil.rmtree(self.target, ignore_errors=True)
                done = self.fetch("fashion-mnist", tool=tool)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assert_whole()
                self.server.asked.clear()
                self.assertEqual(self.fetch("fashion-mnist").returncode, 0)
                self.assertEqual(self.server.asked, [])
                self.assertEqual(self.fetch("--find", "fashion-mnist").stdout.strip(), str(self.target))

    @needs_data
    def test_every_tool_goes_on_after_a_cut(self):
        for tool in TOOLS:
            with self.subTest(tool):
                shutil.rmtree(self.target, ignore_errors=True)
                self.server.cut = 10_000_000
                self.server.asked.clear()
                done = self.fetch("fashion-mnist", tool=tool)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assert_whole()
                starts = [first for name, first in self.server.asked if name == "train-images-idx3-ubyte.gz"]
                self.assertEqual(starts, [0, 10_000_000, 20_000_000])

    @needs_data
    def test_a_part_from_an_earlier_run_is_used(self):
        self.target.mkdir(parents=True)
        name = "train-images-idx3-ubyte.gz"
        (self.target / f"{name}.part").write_bytes((REAL / name).read_bytes()[:5_000_000])
        done = self.fetch("fashion-mnist")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn((name, 5_000_000), self.server.asked)
        self.assert_whole()

    @needs_data
    def test_a_part_that_is_whole_or_wrong(self):
        for content in (lambda real: real, lambda real: b"x" * 100, lambda real: real + b"more"):
            shutil.rmtree(self.target, ignore_errors=True)
            self.target.mkdir(parents=True)
            name = "t10k-labels-idx1-ubyte.gz"
            (self.target / f"{name}.part").write_bytes(content((REAL / name).read_bytes()))
            done = self.fetch("fashion-mnist")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_whole()

    @needs_data
    def test_a_server_that_cannot_resume(self):
        self.server.ranges = False
        name = "t10k-images-idx3-ubyte.gz"
        for tool in TOOLS:
            with self.subTest(tool):
                shutil.rmtree(self.target, ignore_errors=True)
                self.target.mkdir(parents=True)
                (self.target / f"{name}.part").write_bytes((REAL / name).read_bytes()[:1000])
                done = self.fetch("fashion-mnist", tool=tool)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assert_whole()

    @needs_data
    def test_a_damaged_file_is_fetched_again(self):
        self.assertEqual(self.fetch("fashion-mnist").returncode, 0)
        (self.target / "t10k-labels-idx1-ubyte.gz").write_bytes(b"damaged")
        done = self.fetch("fashion-mnist")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("is damaged", done.stderr)
        self.assert_whole()

    @needs_data
    def test_other_plain_files_make_way(self):
        """The loader takes them before packed ones; they may be somebody's, and are kept under another name."""
        self.assertEqual(self.fetch("fashion-mnist").returncode, 0)
        for name in ("t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte"):
            (self.target / name).write_bytes(b"mine")
            self.server.asked.clear()
            done = self.fetch("fashion-mnist")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"{name} is damaged or other data", done.stderr)
            self.assertEqual(self.server.asked, [])  # what is behind it was right
            self.assertEqual((self.target / f"{name}.wrong").read_bytes(), b"mine")
            (self.target / f"{name}.wrong").unlink()
            self.assert_whole()

    @needs_data
    def test_wrong_files_stay_until_there_is_a_right_one(self):
        self.target.mkdir(parents=True)
        name = "t10k-labels-idx1-ubyte"
        (self.target / name).write_bytes(b"mine")
        done = self.fetch("fashion-mnist", ARENITE_FETCH_BASE="http://127.0.0.1:1")
        self.assertEqual(done.returncode, 1)
        self.assertEqual((self.target / name).read_bytes(), b"mine")
        self.assertEqual(self.fetch("fashion-mnist").returncode, 0)
        (self.target / f"{name}.wrong").unlink()
        self.assert_whole()

    @needs_data
    def test_unpacked_files_of_either_spelling_are_right(self):
        self.target.mkdir(parents=True)
        for index, name in enumerate(FILES):
            plain = name.removesuffix(".gz")
            plain = plain.replace("-idx", ".idx") if index % 2 else plain
            (self.target / plain).write_bytes(gzip.decompress((REAL / name).read_bytes()))
        before = sorted(entry.name for entry in self.target.iterdir())
        done = self.fetch("fashion-mnist")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.server.asked, [])
        self.assertEqual(sorted(entry.name for entry in self.target.iterdir()), before)

    def test_a_wrong_checksum_leaves_nothing(self):
        self.server.files = {name: gzip.compress(b"something else") for name in FILES}
        for tool in TOOLS:
            with self.subTest(tool):
                done = self.fetch("fashion-mnist", tool=tool)
                self.assertEqual(done.returncode, 1)
                self.assertIn("wrong checksum", done.stderr)
                self.assertEqual([entry.name for entry in self.target.glob("*gz*")], [])

    def test_no_network_and_no_file_fail_with_a_way_out(self):
        self.server.files = {}
        for tool in TOOLS:
            for base in ("http://127.0.0.1:1", self.server.base):
                with self.subTest(tool=tool, base=base):
                    shutil.rmtree(self.folder / f"bin-{tool}", ignore_errors=True)
                    done = self.fetch("mnist", tool=tool, ARENITE_FETCH_BASE=base)
                    self.assertEqual(done.returncode, 1)
                    self.assertIn("copy the four files into", done.stderr)

    def test_find_looks_where_the_loader_looks(self):
        self.assertEqual(self.fetch("--find", "mnist").returncode, 1)
        cache, own = self.folder / "cache" / "mnist", self.folder / "sets" / "mnist"
        for folder, names in ((cache, FILES), (own, [n.replace("-idx", ".idx").removesuffix(".gz") for n in FILES])):
            folder.mkdir(parents=True)
            for name in names:
                (folder / name).touch()
        self.assertEqual(self.fetch("--find", "mnist").stdout.strip(), str(cache))
        found = self.fetch("--find", "mnist", ARENITE_DATASETS=str(own.parent))
        self.assertEqual(found.stdout.strip(), str(own))

    def test_wrong_arguments(self):
        for arguments in ((), ("cifar",), ("--to", "x", "mnist", "fashion-mnist")):
            self.assertEqual(self.fetch(*arguments).returncode, 2)
        self.assertEqual(self.fetch("--help").returncode, 0)


if __name__ == "__main__":
    unittest.main()
