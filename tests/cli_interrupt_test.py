#!/usr/bin/env python3
"""Ctrl-C and SIGTERM at every moment of `arenite train`. Usage: cli_interrupt_test.py COMMAND [SANITIZER]

The first one ends training within a step, with the results so far, whole files and status 130; a second one
ends the process."""
import fcntl
import json
import os
import pathlib
import re
import select
import signal
import tempfile
import time
import unittest

import cli_testing
from cli_testing import start

MESSAGE = ("arenite: interrupted: training ends after the step under way, then follows the test accuracy; a second "
           "interrupt ends the process at once\n")
NOTHING = "interrupted before the first step: nothing was trained\n"
LAST_LINES = re.compile(r"test accuracy: \d{1,3}\.\d\d %\nweights sha256: [0-9a-f]{64}\n\Z")
STEPS = re.compile(r"^(\d+) steps, ", re.MULTILINE)
# On one core steps take some 0.4 s, an evaluation 2 s.
SLOW = ("--model", "vgg-small", "--dataset", "synthetic-color", "--batch", "64", "--limit", "6000")


class Interrupt(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.log = self.root / "log"
        self.log.write_text("older\n")

    def start(self, *arguments):
        process = start("--log", str(self.log), *arguments)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        return process

    def lines_until(self, process, begin):
        """What is printed up to the line that begins so."""
        text = ""
        for line in process.stdout:
            text += line
            if line.startswith(begin):
                return text
        self.fail(f"no line '{begin}' in:\n{text}{process.stderr.read()}")

    def ended(self, process, printed=""):
        """Ended in order: everything it printed, and the log's lines."""
        out, error = process.communicate(timeout=100)
        self.assertEqual(error, MESSAGE)
        self.assertEqual(process.returncode, 130, out)
        self.assertEqual(os.listdir(self.root), ["log"])
        out = printed + out
        if out.endswith(NOTHING):  # whether or not it had told what it was about to do
            self.assertEqual(self.log.read_text(), "older\n")
            return out, []
        self.assertRegex(out, LAST_LINES)
        self.assertIn("\ninterrupted: training ended after the current step\n", out)
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        self.assertEqual([line["event"] for line in lines], ["epoch"] * (len(lines) - 1) + ["end"])
        return out, lines

    def test_within_a_step(self):
        if cli_testing.SANITIZER:
            self.skipTest("a step of this network takes minutes")
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number.name):
                process = self.start(*SLOW, "--epochs", "1")
                printed = self.lines_until(process, "  max-live bound")
                begin = time.monotonic()
                time.sleep(0.5)
                process.send_signal(number)
                before = time.monotonic() - begin
                out, lines = self.ended(process, printed)
                steps, seconds = int(STEPS.search(out)[1]), lines[0]["seconds"]
                self.assertEqual(lines[0]["samples"], 64 * steps)
                # The step under way, one that was submitted ahead, and one that began with the signal.
                self.assertLess(seconds, before + 3 * seconds / steps + 0.2)
                self.assertLess(steps, 90)

    def test_in_the_middle_of_quick_steps(self):
        process = self.start("--epochs", "1000000")
        printed = self.lines_until(process, "epoch 2/")
        process.send_signal(signal.SIGINT)
        since = time.monotonic()
        out, lines = self.ended(process, printed)
        self.assertLess(time.monotonic() - since, 30)
        self.assertEqual(len(lines) - 1, out.count("\nepoch "))
        self.assertIn("test_accuracy", lines[-2])

    def test_while_evaluating(self):
        if cli_testing.SANITIZER:
            self.skipTest("an evaluation takes minutes")
        # One short step an epoch: nearly all of the time goes into evaluations.
        process = self.start("--model", "vgg-small", "--dataset", "synthetic-color", "--limit", "64", "--epochs", "1000")
        printed = self.lines_until(process, "epoch 1/")
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, lines = self.ended(process, printed)
        self.assertLessEqual(int(STEPS.search(out)[1]), 3)
        self.assertEqual(f"test accuracy: {lines[-1]['test_accuracy'] * 100:.2f} %", out.splitlines()[-2])

    def test_from_the_start(self):
        # While the command reads, plans and builds; before that it ends as any process does.
        outcomes = set()
        for delay in range(0, 400, 20):
            self.log.write_text("older\n")
            process = self.start("--epochs", "1000000")
            time.sleep(delay / 1000)
            process.send_signal(signal.SIGINT)
            if process.wait(timeout=60) == -signal.SIGINT:
                self.assertEqual(cli_testing.snapshot(self.root), {"log": b"older\n"})
                process.communicate()
                outcomes.add("at once")
            else:
                outcomes.add("nothing" if self.ended(process)[0].endswith(NOTHING) else "trained")
        self.assertLessEqual(outcomes, {"at once", "nothing", "trained"})

    def test_a_second_one_ends_the_process(self):
        if cli_testing.SANITIZER:
            self.skipTest("a step of this network takes minutes")
        for first, second in ((signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGINT),
                              (signal.SIGINT, signal.SIGTERM)):
            with self.subTest(first=first.name, second=second.name):
                self.log.write_text("older\n")
                process = self.start(*SLOW, "--epochs", "1")
                self.lines_until(process, "  max-live bound")
                time.sleep(0.2)
                process.send_signal(first)
                self.assertEqual(process.stderr.readline(), MESSAGE)
                process.send_signal(second)
                out, error = process.communicate(timeout=10)
                self.assertEqual(process.returncode, -second)
                self.assertEqual(error, "")
                self.assertEqual(self.log.read_text(), "older\n")

    def test_a_reader_that_pauses(self):
        # A write that waits for room must go on after the signal.
        process = self.start("--explain", "--draw", "--lanes", "8", "--model", "lenet5", "--epochs", "1000000")
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        ready, _, _ = select.select([process.stdout], [], [], 120)
        self.assertTrue(ready, "nothing is printed")
        time.sleep(0.5)  # now the pipe is full
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.stderr.readline(), MESSAGE)
        time.sleep(0.2)
        out, error = process.communicate(timeout=60)
        self.assertEqual((process.returncode, error), (130, ""))
        self.assertGreater(len(out), 8192)
        self.assertIn("total", out)
        self.assertTrue(out.endswith(NOTHING) or LAST_LINES.search(out), out[-300:])


if __name__ == "__main__":
    cli_testing.main()
