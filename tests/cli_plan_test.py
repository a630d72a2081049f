#!/usr/bin/env python3
"""`arenite plan`. Usage: cli_plan_test.py COMMAND [SANITIZER]"""
import json
import os
import pathlib
import tempfile
import unittest
import xml.etree.ElementTree

import cli_testing
from cli_testing import run

# 4 bytes are live at any time, but no plan takes less than 5.
GADGET = """id,lower,upper,size
a,0,1,2
b,0,3,2
c,1,5,1
d,1,4,1
e,3,4,1
f,3,5,1
g,4,6,2
h,5,6,2
"""
HELP = " (hint: see arenite plan --help)"


class Plan(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.table = self.root / "table.csv"
        self.table.write_text(GADGET)

    def plan(self, *arguments):
        return run("plan", str(self.table), *map(str, arguments))

    def refused(self, result, message, status=2):
        self.assertEqual((result.returncode, result.stdout, result.stderr), (status, "", f"arenite: {message}\n"))

    def test_outputs(self):
        out, offsets, svg = (self.root / name for name in ("plan.json", "offsets.csv", "plan.svg"))
        result = self.plan("--out", out, "--csv", offsets, "--svg", svg)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertTrue(result.stdout.startswith(
            "8 buffers of 12 bytes in sum\n"
            "cpu:0/host: peak 5 bytes, optimal: proved (first_fit_by_size)\n"
            "  lower bound 5 (search), max-live 4\nplanned in "), result.stdout)
        plan = json.loads(out.read_text())
        self.assertEqual([plan[key] for key in ("peak", "max_live", "lower_bound", "optimal")], [5, 4, 5, True])
        self.assertGreaterEqual(plan["milliseconds"], 0)
        placed = {buffer["name"]: buffer["offset"] for buffer in plan["buffers"]}
        header, *rows = offsets.read_text().splitlines()
        self.assertEqual(header, "id,lower,upper,size,offset")
        self.assertEqual(rows, [f"{row},{placed[row[0]]}" for row in GADGET.splitlines()[1:]])
        self.assertTrue(xml.etree.ElementTree.parse(svg).getroot().tag.endswith("svg"))

        sound = self.plan("--verify", out)
        self.assertEqual(sound.returncode, 0)
        self.assertTrue(sound.stdout.startswith("sound: 8 buffers"))
        self.assertIn("not confirmed", sound.stdout)

    def test_the_same_plan_again_and_from_shuffled_rows(self):
        header, *rows = GADGET.splitlines(keepends=True)
        plans = []
        for table in (GADGET, GADGET, header + "".join(reversed(rows))):
            self.table.write_text(table)
            offsets = self.root / "offsets.csv"
            self.assertEqual(self.plan("--csv", offsets).returncode, 0)
            plans.append(sorted(offsets.read_text().splitlines()))
        self.assertEqual(plans[0], plans[1])
        self.assertEqual(plans[0], plans[2])

    def test_capacity(self):
        self.assertEqual(self.plan("--capacity", "5").returncode, 0)
        out = self.root / "plan.json"
        for strategy, capacity, verdict, needed, says in (
                ("auto", 4, "infeasible: proved", 5, "infeasible: proved: at least 5 bytes"),
                ("bump", 6, "not found within budget", 12, "not found within budget: the best plan takes 12 bytes")):
            result = self.plan("--capacity", capacity, "--strategy", strategy, "--out", out)
            self.assertEqual(result.returncode, 3)
            self.assertIn(f"arenite: space cpu:0/host: {says}; expected at most the capacity of {capacity} bytes "
                          "(hint: alive together: 'a' (2 bytes, lifetime [0, 1)), 'b'", result.stderr)
            plan = json.loads(out.read_text())
            self.assertEqual([plan[key] for key in ("verdict", "capacity", "bytes_needed", "buffers_at_peak")],
                             [verdict, capacity, needed, ["a", "b"]])

    def test_bad_plans(self):
        out = self.root / "plan.json"
        self.plan("--out", out)
        text = out.read_text()
        out.write_text(text.replace('"optimal":true,"strategy"', '"optimal":false,"strategy"'))
        result = self.plan("--verify", out)
        self.assertEqual(result.returncode, 2)
        self.assertIn("'optimal' exactly when the two are equal", result.stderr)
        out.write_text(text[:-20])
        self.assertEqual(self.plan("--verify", out).returncode, 2)

    def test_bad_input(self):
        cases = [("", ": no header; expected a first line such as 'id,lower,upper,size'"),
                 ("id,lower,upper,size\na,0,1,x\n",
                  ", line 2, column 7: size 'x'; expected a whole number of 0 to 1,152,921,504,606,846,976"),
                 ("id,lower,upper,size\na,1,1,5\n",
                  ", line 2, column 5: the lifetime [1, 1); expected an upper above the lower")]
        for text, message in cases:
            with self.subTest(text=text):
                self.table.write_text(text)
                self.refused(self.plan("--out", self.root / "plan.json"), f"{self.table}{message}")
        self.assertEqual(os.listdir(self.root), ["table.csv"])
        self.refused(run("plan", str(self.root)), f"'{self.root}': a folder; expected a CSV file")
        self.refused(run("plan", str(self.root / "none")),
                     f"'{self.root / 'none'}': No such file or directory; expected a CSV file that can be read")

    def test_bad_arguments(self):
        self.refused(run("plan"), f"no INPUT; expected a path{HELP}")
        self.refused(self.plan("--effort", "more"), f"--effort: 'more'; expected one of fast, default, max{HELP}")
        self.refused(self.plan("--align", "3"), f"--align: '3'; expected a power of two of at most 2^40{HELP}")
        self.refused(self.plan("--capacity", "-1"),
                     f"--capacity: '-1'; expected a whole number of 0 to 1152921504606846976{HELP}")
        self.refused(self.plan("--strategi", "bump"), f"unknown argument '--strategi'; expected options of plan{HELP}")
        result = self.plan("--out", self.root / "no" / "plan.json")
        self.assertEqual(result.returncode, 2)
        self.assertIn("No such file or directory", result.stderr)


if __name__ == "__main__":
    cli_testing.main()
