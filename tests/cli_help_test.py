#!/usr/bin/env python3
"""What `arenite` says of itself: help, versions, and what it says without arguments. Usage: cli_help_test.py COMMAND
[SANITIZER]"""
import json
import re
import shlex
import tempfile
import unittest

import cli_testing
from cli_testing import run

SUBCOMMANDS = ("train", "evaluate", "predict", "plan", "show", "doctor", "completion", "version")
# Those that each can end with, besides 0 and 2.
STATUSES = {"": {1, 3, 130}, "train": {1, 130}, "evaluate": {1, 130},
            "predict": {1, 130}, "plan": {1, 3, 130}, "show": set(), "doctor": {1, 130}, "completion": set(), "version": set()}


def help_of(*command):
    return run(*command, "--help").stdout


class Help(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # By the subcommand's name; that of `arenite` itself is empty.
        cls.helps = {name: help_of(*filter(None, [name])) for name in ("", *SUBCOMMANDS)}

    def test_is_of_one_form(self):
        for name, text in self.helps.items():
            with self.subTest(command=name):
                done = run(*filter(None, [name]), "-h")
                self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", text))
                lines = text.splitlines()
                self.assertEqual([line for line in lines if len(line) > 100 or line != line.rstrip()], [])
                self.assertNotIn("\n\n\n", text)
                self.assertRegex(lines[0], r"^[A-Z][^.]+\.$")
                usage = [line for line in lines if line.startswith("usage: ")]
                self.assertEqual(len(usage), 1)
                self.assertTrue(usage[0].startswith(f"usage: arenite {name or 'SUBCOMMAND'} "), usage)
                headings = re.findall(r"^([A-Z][^.:\n]*)$", text, re.M)
                self.assertEqual(len(headings), len(set(headings)), headings)
                self.assertIn("Options", headings)
                self.assertIn("Exit status", headings)

    def test_every_option_says_what_it_does(self):
        for name, text in self.helps.items():
            with self.subTest(command=name):
                for line in re.finditer(r"^  (?:-\w, )?--([\w-]+)(?: \S+)?(.*)\n(.*)", text, re.M):
                    said = line[2] or line[3]
                    self.assertRegex(said, r"^ {2,}\S.*\w", line[0])

    def test_says_how_each_ends(self):
        for name, text in self.helps.items():
            with self.subTest(command=name):
                block = text[text.index("\nExit status\n"):]
                self.assertEqual({int(status) for status in re.findall(r"^  (\d+) ", block, re.M)}, {0, 2} | STATUSES[name])

    def test_leads_to_a_first_training_and_a_first_plan(self):
        text = help_of()
        for words in ("arenite doctor ", "arenite train --dataset synthetic", "arenite plan buffers.csv", "docs/command-line.md"):
            self.assertIn(words, text)
        for name in SUBCOMMANDS:
            self.assertRegex(text, rf"(?m)^  {name} +[A-Z]")

    def test_examples_are_right(self):
        """They fail for want of files at most, which is not what arguments are refused with."""
        if cli_testing.SANITIZER:
            self.skipTest("a training of 12,000 images takes minutes")
        with tempfile.TemporaryDirectory() as folder:
            for name, text in self.helps.items():
                with self.subTest(command=name):
                    block = text.partition("\nExamples\n")[2].partition("\nExit status\n")[0]
                    examples = re.findall(r"^  arenite (.*?)(?:  .*)?$", block, re.M)
                    self.assertEqual(bool(examples), name != "version")
                    for example in examples:
                        arguments = shlex.split(re.split(" [|>] ", example)[0])
                        done = run(*arguments, cwd=folder)
                        self.assertNotRegex(done.stderr, r"--help\)", example)
                        self.assertIn(done.returncode, {0, 1, 2}, example)

    def test_nothing_to_do(self):
        done = run()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        first, _, rest = done.stderr.partition("\n")
        self.assertEqual(first, "arenite: no subcommand; expected one of these (hint: see arenite --help)")
        self.assertEqual(re.findall(r"^  (\w+) +[A-Z]", rest, re.M), list(SUBCOMMANDS))
        self.assertIn("arenite train --dataset synthetic --epochs 2", rest)


class Version(unittest.TestCase):
    def test_words(self):
        done = run("version")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"\Aarenite \d+\.\d+\.\d+\nStarPU \d+\.\d+\.\d+\nCUDA: .+\n\Z")
        self.assertEqual(run("--version").stdout, done.stdout)

    def test_json(self):
        done = run("version", "--json")
        self.assertEqual((done.returncode, done.stderr, done.stdout.count("\n")), (0, "", 1))
        said = json.loads(done.stdout)
        words = run("version").stdout
        self.assertIn(f"arenite {said['arenite']}\nStarPU {said['starpu']}\n", words)
        self.assertEqual(bool(said["cuda"]["devices"]), "no device" not in words)
        if not said["cuda"]["devices"]:
            self.assertIn(f"({said['cuda']['reason']})", words)


if __name__ == "__main__":
    cli_testing.main()
