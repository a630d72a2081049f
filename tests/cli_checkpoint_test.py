#!/usr/bin/env python3
"""`arenite train --save`, `--resume` and `arenite show`, killed and interrupted. Usage: cli_checkpoint_test.py COMMAND
[SANITIZER]. $ARENITE_KILLS: how often runs are killed in all (20)."""
import json
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import tempfile
import time
import unittest

import cli_testing
from cli_testing import run, start, train

# 20 steps an epoch, the last of them on a remainder.
NETWORK = ("--model", "lenet5", "--limit", "950", "--batch", "48", "--lr", "0.05")
LONG = 400  # epochs, of which there is time to see one; sanitizers are a hundred times as slow
SHA = re.compile(r"weights sha256: ([0-9a-f]{64})")


class SavedRuns(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.file = str(self.root / "run.st")

    def sha(self, done, status=0):
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return SHA.search(done.stdout)[1]

    def shown(self, file=None):
        done = run("show", "--json", file or self.file)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def expected(self, epochs):
        return self.sha(train(*NETWORK, "--epochs", str(epochs)))

    def left_over(self):
        return [name for name in os.listdir(self.root) if ".tmp-" in name]

class Checkpoints(SavedRuns):
    def test_killed_at_random_moments(self):
        """Half of the runs save each step, and so are mostly killed while they write."""
        epochs = "3" if cli_testing.SANITIZER else "8"
        expected = self.expected(epochs)
        kills = int(os.environ.get("ARENITE_KILLS", "4" if cli_testing.SANITIZER else "20"))
        chance = random.Random(7)
        killed = finished = 0
        while killed < kills:
            every = "1steps" if finished % 2 == 0 else "7steps"
            arguments = [*NETWORK, "--epochs", epochs, "--save", self.file, "--save-every", every,
                         "--workers", str(chance.choice((1, 2)))]
            if os.path.exists(self.file):
                arguments += ["--resume", self.file]
            process = start(*arguments)
            try:
                process.wait(chance.uniform(0.05, 0.6) * (10 if cli_testing.SANITIZER else 1))
            except subprocess.TimeoutExpired:
                process.kill()
                killed += 1
            out, error = process.communicate()
            if process.returncode == 0:
                self.assertEqual(SHA.search(out)[1], expected)
                self.assertEqual(self.left_over(), [])
                os.remove(self.file)
                finished += 1
            else:
                self.assertEqual(process.returncode, -signal.SIGKILL, error)
                self.assertLessEqual(len(self.left_over()), 1)
                if os.path.exists(self.file):
                    self.shown()
        arguments = ["--resume", self.file] if os.path.exists(self.file) else []
        done = train(*NETWORK, "--epochs", epochs, "--save", self.file, *arguments)
        self.assertEqual(self.sha(done), expected)
        self.assertEqual(self.left_over(), [])

    def test_interrupted(self):
        """The step ends, and the run is saved: status 130."""
        if cli_testing.SANITIZER:
            self.skipTest("so many epochs take minutes")
        expected = self.expected(LONG)
        process = start(*NETWORK, "--epochs", str(LONG), "--save", self.file)
        for line in process.stdout:
            if line.startswith("epoch 3/"):
                break
        process.send_signal(signal.SIGINT)
        out, error = process.communicate()
        self.assertEqual(process.returncode, 130, error)
        steps = re.search(r"^saved .* at step (\d+)$", out, re.MULTILINE)
        self.assertEqual(int(steps[1]), self.shown()["run"]["steps"])
        self.assertLess(int(steps[1]), LONG * 20)
        done = train(*NETWORK, "--epochs", str(LONG), "--resume", self.file)
        self.assertEqual(self.sha(done), expected)
        self.assertRegex(done.stdout, rf"goes on from {self.file}: step {steps[1]}, \d+ epochs done\n")
        self.assertNotIn(f"epoch 1/{LONG}", done.stdout)
        self.assertIn(f"epoch {LONG}/{LONG}", done.stdout)
        # A run that is over has nothing left to do.
        train(*NETWORK, "--epochs", "2", "--save", self.file)
        again = train(*NETWORK, "--epochs", "2", "--resume", self.file)
        self.assertIn("\nnothing is left to train: ", again.stdout)
        self.assertEqual(self.sha(again), self.expected(2))
        self.assertNotIn("epoch 3/", again.stdout)

    def test_reports_that_cannot_be_written(self):
        """What was trained is saved, for whoever goes on; a run that has not begun replaces none."""
        train(*NETWORK, "--epochs", "1", "--save", self.file)
        first = self.shown()["run"]["steps"]
        again = ("--epochs", "3", "--resume", self.file, "--save", self.file)
        done = train(*NETWORK, *again, "--log", "/dev/full")
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"saved to '{self.file}' before the end: step {first + 20}\n", done.stderr)
        with open("/dev/full", "w") as full:
            done = train(*NETWORK, *again, stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("before the end", done.stderr)
        self.assertEqual(self.shown()["run"]["steps"], first + 20)
        self.assertEqual(self.sha(train(*NETWORK, "--epochs", "3", "--resume", self.file)), self.expected(3))
        self.assertEqual(self.left_over(), [])

    def test_a_closed_terminal(self):
        process = start(*NETWORK, "--epochs", "1000000", "--save", self.file)
        for line in process.stdout:
            if line.startswith("epoch 1/"):
                break
        process.send_signal(signal.SIGHUP)
        process.communicate()
        self.assertEqual(process.returncode, 130)
        self.assertGreater(self.shown()["run"]["steps"], 0)

    def test_a_log_goes_on(self):
        log = self.root / "log"
        for epochs in ("2", "3"):
            more = ("--resume", self.file) if epochs == "3" else ()
            self.sha(train(*NETWORK, "--epochs", epochs, "--save", self.file, "--log", str(log), *more))
        self.assertEqual([(line["event"], line.get("epoch")) for line in map(json.loads, log.read_text().splitlines())],
                         [("epoch", 0), ("epoch", 1), ("epoch", 2), ("end", None)])

    def test_best_and_early_stop(self):
        best = str(self.root / "best.st")
        done = train("--lr", "0", "--epochs", "5", "--early-stop", "2", "--save-best", best, "--json")
        events = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(sum(event["event"] == "epoch" for event in events), 3)
        self.assertEqual([event for event in events if event["event"] == "saved"],
                         [{"event": "saved", "file": best, "steps": 4, "epochs": 1}])
        self.assertEqual(self.shown(best)["run"]["epochs"], 1)

    def test_resumed_events_and_weights(self):
        self.sha(train(*NETWORK, "--epochs", "2", "--save", self.file, "--save-every", "2epochs"))
        done = train(*NETWORK, "--epochs", "3", "--lanes", "1", "--resume", self.file, "--json")
        event = next(event for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "resumed")
        self.assertEqual((event["file"], event["steps"], event["epochs"]), (self.file, 40, 2))
        self.assertRegex(event["differs"], r"\b(lanes|shards) 1 for \d, kernels \w+ for \w+$")
        begun = train(*NETWORK, "--epochs", "0", "--optimizer", "adam", "--resume-weights", self.file)
        self.assertEqual(self.sha(begun), self.expected(2))

    def test_shows_what_a_file_holds(self):
        self.sha(train(*NETWORK, "--epochs", "1", "--save", self.file))
        done = run("show", self.file)
        self.assertRegex(done.stdout, rf"\A{self.file}: 21 tensors of 493652 bytes in sum, undamaged\n"
                                      r"a run at step 20: 1 epochs done\n")
        self.assertRegex(done.stdout, r"\n  conv1.weight +float32  \[5, 5, 1, 6\] +600\n")
        held = self.shown()
        self.assertEqual(held["run"]["identity"]["batch"], "48")
        self.assertEqual(held["tensors"][0], {"name": "conv1.weight", "type": "float32", "shape": [5, 5, 1, 6],
                                              "bytes": 600})
        header = json.dumps({"\x1b[2Ja\n": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]},
                             "__metadata__": {"said": "\x1b[31m"}}).encode()
        other = self.root / "other.st"
        other.write_bytes(len(header).to_bytes(8, "little") + header)
        self.assertEqual(run("show", str(other)).stdout,
                         f"{other}: 1 tensors of 0 bytes in sum, without a checksum\n"
                         '  said: "\\u001b[31m"\n  "\\u001b[2Ja\\n"  uint8    [0]                           0\n')
        data = bytearray(pathlib.Path(self.file).read_bytes())
        data[-1] ^= 1
        pathlib.Path(self.file).write_bytes(data)
        done = run("show", self.file)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, f"arenite: {self.file}: bytes with another SHA-256 than the file says; "
                                      "expected an undamaged file\n")


class RefusedFiles(SavedRuns):
    """A save that fails is a warning while training goes on, and status 2 at its end; the older file stays."""

    def saved_once(self):
        self.sha(train(*NETWORK, "--epochs", "1", "--save", self.file))
        return pathlib.Path(self.file).read_bytes()

    def refused(self, done):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("arenite: not saved, and training goes on: ", done.stderr)
        self.assertIn("epoch 2/2", done.stdout)

    def test_file_too_large(self):
        before = self.saved_once()
        limit = 100_000
        done = run(*cli_testing.small(*NETWORK, "--epochs", "2", "--save", self.file, "--save-every", "7steps"),
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.refused(done)
        self.assertRegex(done.stderr, "cannot write it: File too large; expected room for")
        self.assertEqual(pathlib.Path(self.file).read_bytes(), before)
        self.assertEqual(self.left_over(), [])

    def test_full_disk(self):
        disk = self.root / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=800k", "tmpfs", str(disk)], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("nobody may mount a small disk here")
        self.addCleanup(subprocess.run, ["umount", str(disk)])
        file = disk / "run.st"
        self.sha(train(*NETWORK, "--epochs", "1", "--save", str(file)))
        before = file.read_bytes()
        done = train(*NETWORK, "--epochs", "2", "--save", str(file), "--save-every", "7steps")
        self.refused(done)
        self.assertIn("No space left on device", done.stderr)
        self.assertEqual(file.read_bytes(), before)
        self.assertEqual(os.listdir(disk), ["run.st"])

    def test_folder_that_goes_away(self):
        if cli_testing.SANITIZER:
            self.skipTest("so many epochs take minutes")
        folder = self.root / "gone"
        folder.mkdir()
        process = start(*NETWORK, "--epochs", str(LONG), "--save", str(folder / "run.st"), "--save-every", "1epochs")
        for line in process.stdout:
            if line.startswith("saved "):
                break
        for file in folder.iterdir():
            file.unlink(missing_ok=True)
        os.rename(folder, self.root / "elsewhere")
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate()
        self.assertEqual(process.returncode, 2, out + error)
        self.assertIn("arenite: not saved, and training goes on: ", error)
        self.assertIn("No such file or directory", error)

    def test_wrong_paths_show_before_any_work(self):
        for arguments, found in ((["--resume", "a", "--log", "a"], "--log and --resume name the same file 'a'"),
                                 (["--resume-weights", "a", "--plan-svg", "a"], "and --resume-weights name the same file"),
                                 (["--clip-norm", "1e-300"], "--clip-norm: '1e-300'; expected a finite number of at least "
                                                             "0, as float32 has it"),
                                 (["--save", "/nowhere/run.st"], "--save '/nowhere/run.st': cannot create it"),
                                 (["--save-best", "/proc/run.st"], "--save-best '/proc/run.st': cannot create it"),
                                 (["--save-every", "3"], "--save-every without --save; expected a file to save to"),
                                 (["--save", self.file, "--save-every", "3weeks"], "--save-every: '3weeks'; expected "),
                                 (["--save", self.file, "--save-best", self.file], "name the same file"),
                                 (["--resume", self.file], f"{self.file}: cannot open it: No such file"),
                                 (["--resume", "a", "--resume-weights", "b"], "together; expected one of them")):
            done = train(*NETWORK, *arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(found, done.stderr)
            self.assertNotIn("epoch", done.stdout)
            self.assertEqual(os.listdir(self.root), [])
        done = train(*NETWORK, "--epochs", "1", "--save-best", "/dev/full")
        self.assertEqual(done.returncode, 2)
        self.assertIn("arenite: --save-best '/dev/full' was not saved; expected a file that can be written", done.stderr)

    def test_what_is_read_is_not_replaced(self):
        self.sha(train(*NETWORK, "--epochs", "1", "--save", self.file))
        before = pathlib.Path(self.file).read_bytes()
        for arguments in (("evaluate", self.file, "--svg", self.file),
                          ("train", "--script", self.file, "--save", self.file),
                          ("train", "--resume", self.file, "--plan-json", self.file)):
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("name the same file", done.stderr)
        self.assertEqual(pathlib.Path(self.file).read_bytes(), before)


if __name__ == "__main__":
    cli_testing.main()
