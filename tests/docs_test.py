#!/usr/bin/env python3
"""The scripts of docs/scripts.md: each is read and planned, and every operator has one. Usage: docs_test.py COMMAND"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import cli_testing

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs/scripts.md").read_text(encoding="utf-8")
FORMULAS = (ROOT / "src/expr/formulas.def").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```arenite\n(.*?)^```$", PAGE, re.M | re.S)
# What gradients are made of is written by add_gradients, and what ops are in a mode by apply_mode, not by people.
WRITTEN_BY_PASSES = re.compile(r"_grad(_|$)|_in_training$")


def operators():
    names = set()
    for folder in re.findall(r"^ARENITE_OPERATOR\((\w+)\)", (ROOT / "codelets/operators.def").read_text(encoding="utf-8"), re.M):
        text = (ROOT / f"codelets/{folder}/{folder}.cpp").read_text(encoding="utf-8")
        # Fields of a definition, or what makes the definitions of several.
        found = re.findall(r'\.name = "(\w+)"[,;]$|= definition\("(\w+)"', text, re.M)
        assert found or folder == "optimizer", f"no operator found in codelets/{folder}"
        names |= {field or made for field, made in found}
    names |= set(re.findall(r"^ARENITE_FORMULA\((\w+)", FORMULAS, re.M))
    return {name for name in names if not WRITTEN_BY_PASSES.search(name)}


class Scripts(unittest.TestCase):
    def test_every_example_is_planned(self):
        self.assertGreater(len(EXAMPLES), 20)
        with tempfile.TemporaryDirectory() as folder:
            for number, example in enumerate(EXAMPLES):
                script = pathlib.Path(folder) / f"example_{number}.txt"
                script.write_text(example, encoding="utf-8")
                done = subprocess.run([cli_testing.COMMAND, "plan", script], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), example)

    def test_a_buffer_is_replaced_once_in_each_version(self):
        script = """$1 = BufferTensor(state, float32, [4, 64]);
$2 = InputTensor(row, float32, [1, 64]);
$3 = InputTensor(begin, int64, [1]);
$4 = replace_slice($1, $2, $3);
$5 = replace_slice(VERSION, $2, $3);
result = _;
"""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "script.txt"
            path.write_text(script.replace("VERSION", "$4"))
            done = cli_testing.run("plan", path)
            self.assertIn("2 ops in ", done.stdout)
            path.write_text(script.replace("VERSION", "$1"))
            done = cli_testing.run("plan", path)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr, f"arenite: {path}:5:6: replace_slice #1: a second new version of 'state', which "
                             "replace_slice #0 has replaced; expected one update of each version of what persists "
                             "(hint: update that op's result instead)\n")

    def test_every_operator_has_an_example(self):
        known = operators()
        self.assertIn("relu", known)
        shown = set(re.findall(r"\b(\w+)\(", "".join(EXAMPLES)))
        self.assertEqual(known - shown, set())

    def test_every_optimizer_is_in_the_table(self):
        rows = "".join(line for line in PAGE.splitlines() if line.startswith("| `"))
        known = re.findall(r"^ARENITE(?:_ROWS)?_OPTIMIZER\((\w+)", FORMULAS, re.M)
        self.assertGreater(len(known), 10)
        self.assertEqual([name for name in known if f"`{name}`" not in rows], [])


if __name__ == "__main__":
    cli_testing.main()
