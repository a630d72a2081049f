#!/usr/bin/env python3
"""bench/hidden_packings.py, bench/big_strips.py and bench/plan_tables.py. Usage: hidden_packings_test.py COMMAND [SANITIZER]"""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import cli_testing

BENCH = pathlib.Path(__file__).resolve().parent.parent / "bench"
sys.path.insert(0, str(BENCH))
import hidden_packings as hidden  # noqa: E402


def script(name, *arguments):
    return subprocess.run([sys.executable, BENCH / name, *map(str, arguments)], capture_output=True, text=True)


class HiddenPackings(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def tables(self, folder, *arguments):
        result = script("hidden_packings.py", self.root / folder, "--count", 1, *arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return {path.name: path.read_bytes() for path in (self.root / folder).iterdir()}

    def test_the_capacity_is_the_most_alive_and_a_seed_makes_one_set_of_tables(self):
        first = self.tables("a")
        self.assertEqual(first, self.tables("b"))
        self.assertEqual(sorted(name.split("-")[0] for name in first), sorted(hidden.FAMILIES))
        self.assertFalse(set(first.values()) & set(self.tables("c", "--seed", 2).values()))
        out = self.root / "plan.json"
        for name in first:
            with self.subTest(name=name):
                result = cli_testing.run("plan", str(self.root / "a" / name), "--effort", "fast", "--out", str(out))
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                plan = json.loads(out.read_text())
                self.assertEqual((str(plan["max_live"]), str(len(plan["buffers"]))),
                                 (name.split(".")[1], name.split("-")[1]))

    def test_sizes_of_buddies(self):
        for name, text in self.tables("a", "--family", "buddy").items():
            sizes = {int(row["size"]) for row in csv.DictReader(text.decode().splitlines())}
            self.assertTrue(all(size & (size - 1) == 0 for size in sizes), f"{name}: {sizes}")

    def test_cuts_fill_the_strip_and_none_goes_straight_through(self):
        strip, pieces = hidden.hide(1, "cut", 1)
        self.assertEqual(hidden.fill(strip, pieces), 1)
        for at in range(1, strip.moments):
            self.assertTrue(any(p.lower < at < p.upper for p in pieces))
        for row in range(1, strip.rows):
            self.assertTrue(any(p.offset < row < p.offset + p.size for p in pieces))

    def test_unsound_packings_are_noticed(self):
        strip, piece = hidden.Strip(4, 4, 1), hidden.Piece
        hidden.check(strip, [piece(0, 2, 0, 4), piece(2, 4, 1, 2)])
        for pieces in ([piece(0, 2, 0, 4), piece(1, 3, 3, 1)],  # both have row 3 at moment 1
                       [piece(0, 2, 0, 3), piece(2, 4, 0, 3)],  # no moment is full
                       [piece(0, 5, 0, 4)], [piece(0, 4, 1, 4)], [piece(1, 1, 0, 4)]):
            with self.subTest(pieces=pieces), self.assertRaises(AssertionError):
                hidden.check(strip, pieces)

    def test_peaks_beside_capacities(self):
        table = self.root / "two-2-1.12.csv"
        table.write_text("id,lower,upper,size\na,0,2,4\nb,1,3,5\n")
        result = script("plan_tables.py", cli_testing.COMMAND, table)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"two-2-1\.12\.csv +0\.7500 +\d+ ms +proved\n")
        self.assertRegex(result.stdout, r"\ntwo +1 +1 +0\.7500 +0\.7500 +\d+ +\d+\n$")
        self.assertIn("No such file", script("plan_tables.py", self.root / "none", table).stderr)
        self.assertIn("no capacity; expected a name", script("plan_tables.py", cli_testing.COMMAND, "a.csv").stderr)

    def test_strips_are_full(self):
        result = script("big_strips.py", self.root / "strips", "--buffers", 700)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "strip-700-1.1000000.csv\n", ""))
        text = (self.root / "strips" / "strip-700-1.1000000.csv").read_text()
        rows = [{name: int(value) for name, value in row.items()} for row in csv.DictReader(text.splitlines())]
        self.assertEqual(len(rows), 700)
        self.assertEqual(sum((row["upper"] - row["lower"]) * row["size"] for row in rows), 100_000 * 1_000_000)
        result = script("big_strips.py", self.root, "--buffers", 1)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("'1'; expected a whole number of 2 to 1000000", result.stderr)

    def test_bad_arguments(self):
        for arguments, message in (((), "required: OUT_DIR"),
                                   ((self.root, "--count", "x"), "'x'; expected a whole number of 1 to 10000"),
                                   ((__file__,), f"'{__file__}': File exists; expected a folder")):
            with self.subTest(arguments=arguments):
                result = script("hidden_packings.py", *arguments)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn(message, result.stderr)


if __name__ == "__main__":
    cli_testing.main()
