#!/usr/bin/env python3
"""`arenite` where a standard descriptor is closed: nothing else gets its number, and what was to be printed. Usage:
cli_descriptors_test.py COMMAND [SANITIZER]"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import cli_testing
from cli_testing import small

TABLE = "id,lower,upper,size\na,0,2,3\nb,1,3,4\n"


def run_without(closed, *arguments):
    """As cli_testing.run, with these descriptors closed."""
    shell = "exec " + " ".join(f"{number}>&-" for number in closed) + '; exec "$0" "$@"'
    return subprocess.run(["sh", "-c", shell, cli_testing.COMMAND, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120, env=cli_testing.clean_environment())


class Closed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def without(self, closed, *arguments, status):
        done = run_without(closed, *arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        if status == 1 and 1 in closed:
            reason = "arenite: the output could not be written: Bad file descriptor; expected a standard output that takes it\n"
            self.assertEqual((done.stdout, done.stderr), ("", "" if 2 in closed else reason))
        return done

    def test_training(self):
        """Its files are its own, whether it ends well or for want of an output."""
        log, svg, plan = (self.root / name for name in ("log", "plan.svg", "plan.json"))
        for closed in ((0,), (2,), (1,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
            for words in ((), ("--json",)):
                with self.subTest(closed=closed, words=words):
                    self.without(closed, *small("--log", log, "--plan-svg", svg, "--plan-json", plan, *words), status=int(1 in closed))
                    if 1 in closed:  # it ends before the first epoch
                        self.assertEqual(os.listdir(self.root), [])
                        continue
                    self.assertEqual([json.loads(line)["event"] for line in log.read_text().splitlines()], ["epoch", "end"])
                    self.assertTrue(svg.read_text().startswith("<svg"))
                    self.assertEqual(json.loads(plan.read_text())["format"], "arenite plan 1")
                    for path in (log, svg, plan):
                        path.unlink()

    def test_training_without_files(self):
        """LIBXSMM's lock and StarPU's measurements are files as well."""
        self.without((1,), *small(), status=1)

    def test_plan(self):
        table, out = self.root / "table.csv", self.root / "plan.json"
        table.write_text(TABLE)
        for closed in ((0,), (1,), (2,), (0, 1, 2)):
            with self.subTest(closed=closed):
                self.without(closed, "plan", table, "--out", out, status=int(1 in closed))
                self.assertEqual(json.loads(out.read_text())["peak"], 7)
                out.unlink()
        self.assertEqual(table.read_text(), TABLE)

    def test_files_named_as_what_is_closed(self):
        table = self.root / "table.csv"
        table.write_text(TABLE)
        done = self.without((2,), "plan", table, "--out", "/dev/null", status=0)  # /dev/null is not what fills it
        self.assertIn("peak 7 bytes", done.stdout)
        done = self.without((0,), "plan", "/dev/stdin", status=2)
        self.assertEqual(done.stderr, "arenite: '/dev/stdin': a folder; expected a table or a graph script\n")

    def test_doctor(self):
        """Its checks answer through pipes."""
        for closed in ((0,), (2,), (0, 2)):
            with self.subTest(closed=closed):
                found = json.loads(self.without(closed, "doctor", "--json", "starpu", "folders", "run", status=0).stdout)
                self.assertEqual([check["problems"] for check in found["checks"] if check["mark"] == "fails"], [])

    def test_words(self):
        for arguments in (("--help",), ("version",), ("doctor", "starpu"), ("completion", "bash")):
            with self.subTest(arguments=arguments):
                self.without((1,), *arguments, status=1)

    def test_the_counter_of_heap_calls(self):
        """The program begins again with it, and is filled by then."""
        if cli_testing.SANITIZER:
            self.skipTest("a sanitizer has a malloc of its own")
        self.without((1,), *small("--count-heap"), status=1)
        self.assertIn("\nheap calls in ", self.without((0, 2), *small("--count-heap"), status=0).stdout)


if __name__ == "__main__":
    cli_testing.main()
