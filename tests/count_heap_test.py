#!/usr/bin/env python3
"""`arenite train --count-heap`: how the program begins again, and what it reports.
Usage: count_heap_test.py COMMAND [SANITIZER]"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import cli_testing

LIBRARY = "libarenite_heap_counter.so"
NOT_COUNTED = "\nheap calls: not counted (--count-heap counts them)\n"
# Two epochs of three whole batches and a remainder; a thousand test images.
COUNTED = "\nheap calls in 8 training and 32 evaluation steps after warm-up: 0, mappings: 0\n"


def built_library():
    return os.path.join(os.path.dirname(cli_testing.COMMAND), LIBRARY)


def train(*arguments, command=None, **environment):
    environment = cli_testing.clean_environment(**{"LD_PRELOAD": "", **environment})
    return subprocess.run([command or cli_testing.COMMAND, *cli_testing.small("--epochs", "2", *arguments)],
                          capture_output=True, text=True, timeout=120, env=environment)


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def trained(self, *arguments, **how):
        done = train(*arguments, **how)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def refused(self, status, *words, command=None):
        done = train("--count-heap", command=command)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertIn("arenite: --count-heap: ", done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(done.stdout, "")

    def copy(self, place, library=None):
        """The command in a folder of its own, the library where it is told."""
        command = self.folder / place
        command.parent.mkdir(parents=True)
        shutil.copy2(cli_testing.COMMAND, command)
        if library:
            (self.folder / library).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(built_library(), self.folder / library)
        return str(command)


class AnyBuild(Runs):
    def test_nobody_counts_unasked(self):
        log = self.folder / "log.jsonl"
        self.assertIn(NOT_COUNTED, self.trained("--log", str(log)).stdout)
        self.assertIsNone(json.loads(log.read_text().splitlines()[-1])["heap_calls"])

    def test_a_sanitizer_has_the_heap(self):
        if not cli_testing.SANITIZER:
            self.skipTest("a build that counts")
        self.refused(2, "sanitizer", "scripts/build release")


class BuildThatCounts(Runs):
    def setUp(self):
        if cli_testing.SANITIZER:
            self.skipTest("a sanitizer has the heap")
        super().setUp()

    def test_no_step_calls_the_heap(self):
        plain = self.trained().stdout.splitlines()[-1]
        for workers in ("1", "2"):
            with self.subTest(workers=workers):
                log = self.folder / "log.jsonl"
                done = self.trained("--count-heap", "--workers", workers, "--log", str(log))
                self.assertIn(COUNTED, done.stdout)
                self.assertIn("\nhandles registered after warm-up: 0, blocks: 0, pins: 0\n", done.stdout)
                self.assertEqual(done.stdout.splitlines()[-1], plain)
                self.assertEqual(done.stdout.count("\nmodel "), 1)
                self.assertEqual(json.loads(log.read_text().splitlines()[-1])["heap_calls"], 0)

    def test_no_step_in_bfloat16_calls_the_heap(self):
        self.assertIn(COUNTED, self.trained("--count-heap", "--model", "cnn1", "--compute", "bfloat16").stdout)

    def test_whoever_preloads_the_library_needs_no_option(self):
        self.assertIn(COUNTED, self.trained(LD_PRELOAD=built_library()).stdout)

    def test_says_whose_calls_they_were(self):
        file = self.folder / "callers.json"
        self.trained(LD_PRELOAD=built_library())
        self.assertFalse(file.exists())
        done = self.trained(LD_PRELOAD=built_library(), ARENITE_HEAP_CALLERS=str(file))
        self.assertIn(COUNTED, done.stdout)
        counted = json.loads(file.read_text())
        self.assertEqual({name: calls for name, calls in counted["steps"].items() if calls}, {})
        callers = counted["process"]
        self.assertGreater(callers["program"] + callers["libstdc++.so.6"], 1000)
        self.assertGreater(sum(calls for name, calls in callers.items() if name.startswith("libstarpu")), 1000)
        self.assertNotIn(LIBRARY, callers)

    def test_tells_calls_in_steps_apart(self):
        file = self.folder / "callers.json"
        text = ("import ctypes\nc = ctypes.CDLL(None)\nc.arenite_heap_steps(1)\n"
                "for _ in range(500): c.malloc(16)\nc.arenite_heap_steps(0)")
        subprocess.run([sys.executable, "-c", text], check=True,
                       env=os.environ | {"LD_PRELOAD": built_library(), "ARENITE_HEAP_CALLERS": str(file)})
        counted = json.loads(file.read_text())
        in_steps = sum(counted["steps"].values())
        self.assertGreaterEqual(in_steps, 500)
        self.assertLess(in_steps, sum(counted["process"].values()))

    def test_keeps_what_was_preloaded(self):
        # The loader complains each time the program begins.
        done = self.trained("--count-heap", LD_PRELOAD="no-such-library.so")
        self.assertIn(COUNTED, done.stdout)
        self.assertEqual(done.stderr.count("no-such-library.so"), 2, done.stderr)

    def test_finds_the_library_where_it_is_installed(self):
        command = self.copy("bin/arenite", library="lib/arenite/" + LIBRARY)
        self.assertIn(COUNTED, self.trained("--count-heap", command=command).stdout)

    def test_says_where_it_looked(self):
        self.refused(2, f"no {LIBRARY}", f"'{self.folder}/bin' or '{self.folder}/lib/arenite'",
                     command=self.copy("bin/arenite"))

    def test_refuses_a_path_that_cannot_be_preloaded(self):
        command = self.copy("a folder/arenite", library="a folder/" + LIBRARY)
        self.refused(2, f"a folder/{LIBRARY}", "without spaces", command=command)

    def test_begins_again_only_once(self):
        command = self.copy("bin/arenite")
        (self.folder / "bin" / LIBRARY).write_text("no library")
        self.refused(1, "was not preloaded", command=command)


if __name__ == "__main__":
    cli_testing.main()
