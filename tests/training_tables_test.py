#!/usr/bin/env python3
"""bench/training_tables.py, and plans of what it writes. Usage: training_tables_test.py COMMAND [SANITIZER]"""
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import cli_testing

BENCH = pathlib.Path(__file__).resolve().parent.parent / "bench"
sys.path.insert(0, str(BENCH))
from training_tape import Tape  # noqa: E402


def generate(*arguments):
    return subprocess.run([sys.executable, BENCH / "training_tables.py", *map(str, arguments)],
                          capture_output=True, text=True)


class Lifetimes(unittest.TestCase):
    """Of programs small enough to work out by hand."""

    def lifetimes(self, tape):
        return {b.name: (b.lower, b.upper) for b in tape.buffers()}

    def test_in_place_after_the_last_reader_only(self):
        tape = Tape()
        a = tape.op("a", [], ("a", (4,)))
        b = tape.op("b", [a], ("b", (4,)), overwrite=[a])  # a is read once more
        tape.op("c", [a, b], ("c", (4,)), overwrite=[b], workspace=8)
        self.assertEqual(self.lifetimes(tape), {"a": (0, 3), "b": (1, 3), "c.workspace": (2, 3)})

    def test_never_in_place_of_the_batch_of_other_sizes_or_of_an_operand_twice(self):
        tape = Tape()
        given = tape.batch("given", 4)
        a = tape.op("a", [given], ("a", (4,)), overwrite=[given])
        b = tape.op("b", [a], ("b", (2,)), overwrite=[a])
        tape.op("c", [b, tape.view(b, "reshaped", (1, 2))], ("c", (2,)), overwrite=[b])
        self.assertEqual(self.lifetimes(tape), {"a": (0, 2), "b": (1, 3), "c": (2, 3)})

    def test_a_view_keeps_its_bytes_alive(self):
        tape = Tape()
        view = tape.view(tape.op("a", [], ("a", (4,))), "view", (2, 2))
        tape.op("b", [], ("b", (1,)))
        tape.op("c", [view], ("c", (1,)))
        self.assertEqual(self.lifetimes(tape), {"a": (0, 3), "b": (1, 2), "c": (2, 3)})


class Tables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def test_every_network_is_planned_optimally(self):
        # The script itself compares the numbers of parameters with the published ones.
        for layout, spaces in (("overlay", 1), ("two", 2)):
            tables = self.root / "made" / layout
            result = generate(tables, "--layout", layout, "--sum")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual(sorted(os.listdir(tables)), ["gpt2.csv", "resnet18.csv", "vgg16.csv"])
            out = self.root / "plan.json"
            for line in result.stdout.splitlines()[1:]:
                name, _, buffers, _, two, overlay, *_ = line.split()
                with self.subTest(layout=layout, name=name):
                    planned = cli_testing.run("plan", str(tables / f"{name}.csv"), "--out", str(out))
                    self.assertEqual((planned.returncode, planned.stderr), (0, ""))
                    self.assertEqual(planned.stdout.count("optimal: proved"), spaces)
                    plan = json.loads(out.read_text())
                    self.assertEqual(len(plan["buffers"]), int(buffers))
                    peak = sum(space["peak"] for space in plan["spaces"]) / (1 << 20)
                    self.assertAlmostEqual(peak, float(two if layout == "two" else overlay), delta=0.1)

    def test_what_is_saved(self):
        self.assertEqual(generate(self.root, "--network", "resnet18", "--batch", 2).returncode, 0)
        with open(self.root / "resnet18.csv", newline="") as file:
            rows = {row["id"]: row for row in csv.DictReader(file)}
        end = max(int(row["upper"]) for row in rows.values())
        image = 2 * 112 * 112 * 64 * 4
        self.assertEqual([int(rows["conv1.out"][key]) for key in ("lower", "upper", "size")], [0, end - 4, image])
        self.assertEqual(int(rows["pool1.winners"]["size"]), image // 4 // 4)
        self.assertNotIn("relu1.out", rows)  # in place
        self.assertNotIn("conv1.input.grad", rows)  # nobody wants it
        self.assertEqual(sum(name.endswith((".weight.grad", ".bias.grad")) for name in rows), 22)

    def test_bad_arguments(self):
        for arguments, message in (((), "required: OUT_DIR"),
                                   ((self.root, "--batch", "0"), "'0'; expected a whole number of 1 to 4096"),
                                   ((self.root, "--layout", "reset"), "invalid choice: 'reset'"),
                                   ((__file__,), f"'{__file__}': File exists; expected a folder")):
            with self.subTest(arguments=arguments):
                result = generate(*arguments)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn(message, result.stderr)
        self.assertEqual(os.listdir(self.root), [])


if __name__ == "__main__":
    cli_testing.main()
