#!/usr/bin/env python3
"""`arenite train` as people call it: exit statuses, messages, output, log. Usage: cli_test.py COMMAND [SANITIZER]"""
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

COMMAND = SANITIZER = ""
SMALL = {"--model": "mlp", "--dataset": "synthetic", "--limit": "200", "--epochs": "1", "--workers": "1"}
LAST_LINES = re.compile(r"test accuracy: \d{1,3}\.\d\d %\nweights sha256: [0-9a-f]{64}\n\Z")


def clean_environment(**extra):
    # A test must not depend on the settings of whoever runs it, nor find his data.
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("STARPU_", "ARENITE_"))}
    kept.update(ARENITE_CACHE=FOLDER.name + "/cache", **extra)
    return kept


def run(*arguments, stdout=subprocess.PIPE, **environment):
    return subprocess.run([COMMAND, *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True,
                          timeout=120, env=clean_environment(**environment))


def small(*arguments, without=()):
    """`train` with small defaults for what the arguments do not say."""
    given = [text for option, value in SMALL.items() if option not in arguments and option not in without
             for text in (option, value)]
    return ["train", *given, *arguments]


def train(*arguments, **environment):
    return run(*small(*arguments), **environment)


class WrongInput(unittest.TestCase):
    """Each ends with status 2, one line that says what was found, and no step trained."""

    def refused(self, done, *words, status=2):
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertTrue(done.stderr.startswith("arenite: "), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        if done.stdout is not None:
            self.assertNotIn("test accuracy", done.stdout)

    def test_numbers(self):
        huge = "99999999999999999999999"
        cases = [(option, text) for option in ("--seed", "--epochs", "--batch", "--workers", "--lanes", "--limit")
                 for text in ("-1", huge, "", "1.5", "nan", "0x10", "7seven", " 1")]
        cases += [(option, "0") for option in ("--batch", "--workers", "--lanes", "--limit")]
        cases += [(option, text) for option in ("--lr", "--momentum", "--weight-decay")
                  for text in ("-1", "nan", "inf", "", "1e300", "fast", "0.1x")]
        cases += [("--momentum", "1"), ("--epochs", "1000001"), ("--batch", str((1 << 20) + 1)),
                  ("--lanes", "65"), ("--workers", "1025"), ("--seed", str(1 << 64))]
        for option, text in cases:
            with self.subTest(option=option, text=text):
                self.refused(train(option, text), f"{option}: '{text}'; expected")

    def test_names(self):
        for option, text, known in [("--model", "cnn_1", "cnn1"), ("--model", "", "cnn1"),
                                    ("--dataset", "fashion_mnist", "fashion-mnist"),
                                    ("--dataset", "FASHION-MNIST", "fashion-mnist"),
                                    ("--shuffle", "maybe", "on, off"), ("--arenas", "overlap", "overlay"),
                                    ("--arenas", "reset", "overlay")]:
            with self.subTest(option=option, text=text):
                self.refused(train(option, text), known)

    def test_initial_weights(self):
        for text in ("uniform:", "uniform:0", "uniform:-1", "uniform:nan", "uniform:inf", "uniform:1x", "uniform",
                     "", "normal:1"):
            with self.subTest(text=text):
                self.refused(train("--init", text), "--init " + text, "uniform:A")

    def test_arguments(self):
        self.refused(run(), "subcommand")
        self.refused(run("trian"), "trian")
        self.refused(train("--epoch", "3"), "--epoch")
        self.refused(train("extra"), "extra")
        self.refused(train("--seed"), "--seed")
        self.refused(train("--lr", "-inf"), "-inf")

    def test_a_batch_larger_than_the_set(self):
        self.refused(train("--batch", "201"), "a batch of 201 from 200 training images")

    def test_paths(self):
        with tempfile.TemporaryDirectory() as folder:
            missing = folder + "/missing/log.jsonl"
            self.refused(train("--log", missing), missing, "No such file")
            self.refused(train("--log", folder), folder, "directory")
            self.refused(train("--log", ""), "--log")
            self.refused(train("--data", folder + "/missing"), folder + "/missing")
            self.refused(train("--data", ""), "--data")
            self.refused(train("--dataset", "mnist", "--data", folder), folder)
            self.refused(train("--dataset", "mnist", "--data", COMMAND), COMMAND)
            if os.getuid() != 0:  # root may read everything
                locked = pathlib.Path(folder, "locked")
                locked.mkdir(mode=0)
                self.refused(train("--dataset", "mnist", "--data", str(locked)), str(locked))

    def test_an_empty_folder_is_never_replaced(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refused(train("--dataset", "fashion-mnist", "--data", folder), "fashion-mnist", folder)
            done = train("--dataset", "fashion-mnist", ARENITE_DATASETS=folder)
            self.refused(done, "fashion-mnist", folder)

    def test_a_set_without_files_takes_no_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refused(train("--dataset", "synthetic-color", "--data", folder), "synthetic-color", folder)

    def test_the_models_own_set_may_be_missing(self):
        done = run(*small("--model", "cnn1", without=["--dataset"]))
        self.refused(done, "data set fashion-mnist", "datasets/fetch fashion-mnist")

    def test_environment(self):
        # Without --workers the environment counts, and must be a number.
        for name, text in [("STARPU_NCPU", "abc"), ("STARPU_NCPU", "0"), ("STARPU_NCPU", "-2"),
                           ("STARPU_NCPU", "1000000"), ("STARPU_WORKERS_CPUID", "x"),
                           ("STARPU_WORKERS_CPUID", "3-1"), ("STARPU_CALIBRATE", "yes")]:
            with self.subTest(name=name, text=text):
                where = text if text == "1000000" else f"{name}='{text}'"
                self.refused(run(*small(without=["--workers"]), **{name: text}), where)


class FailedRun(unittest.TestCase):
    """The input was right: status 1."""

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_a_full_disk(self):
        done = train("--log", "/dev/full")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertTrue(done.stderr.startswith("arenite: log '/dev/full': could not be written"), done.stderr)
        with open("/dev/full", "w") as full:
            done = run(*small(), stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn("output", done.stderr)


    def test_memory_refused(self):
        if SANITIZER:
            self.skipTest("a sanitizer reserves more address space than this allows")
        limit = 600 << 20
        done = subprocess.run([COMMAND, *small("--model", "cnn2", "--limit", "6000", "--batch", "6000")],
                              capture_output=True, text=True, timeout=120, env=clean_environment(),
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"^arenite: the system refused \d+ bytes.*memory for block '.*smaller batch")


class Run(unittest.TestCase):
    def trained(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, LAST_LINES)
        return done.stdout.splitlines()[-1]

    def test_help(self):
        for arguments in (["--help"], ["train", "--help"], ["--version"]):
            done = run(*arguments)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(done.stderr, "")
            self.assertTrue(done.stdout)
        self.assertIn("all, if there are fewer", " ".join(run("train", "--help").stdout.split()))

    def test_log(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "log.jsonl")
            self.trained(train("--epochs", "3", "--log", str(log)))
            lines = [json.loads(line) for line in log.read_text().splitlines()]
        epochs = [line for line in lines if line["event"] == "epoch"]
        self.assertEqual([line["epoch"] for line in epochs], [0, 1, 2])
        for line in epochs:
            for key in ("loss", "train_accuracy", "test_accuracy", "seconds", "samples_per_second", "eval_seconds"):
                self.assertIsInstance(line[key], (int, float), key)
                self.assertGreaterEqual(line[key], 0, key)
            self.assertLessEqual(max(line["train_accuracy"], line["test_accuracy"]), 1)
            self.assertEqual(line["samples"], 200)
        self.assertRegex(lines[-1]["weights_sha256"], "^[0-9a-f]{64}$")

    def test_profile(self):
        done = train("--profile")
        self.trained(done)
        self.assertRegex(done.stdout, r"where \d+ steps of 'train' went: [\d.]+ µs a step on 1 worker\n")
        self.assertRegex(done.stdout, r"\n  dense +\S+ +\S+ +[\d.]+ +[\d.]+ %")
        self.assertNotIn("steps of 'train' went", train().stdout)
        none = train("--profile", "--epochs", "0")
        self.trained(none)
        self.assertIn("\nno profile: training ended before the last epoch, whose steps it is made of\n",
                      none.stdout)

    def test_a_model_names_its_data_set(self):
        if SANITIZER:
            self.skipTest("a thousand images take this network minutes")
        own = run(*small("--model", "vgg-small", "--epochs", "0", without=["--dataset"]))
        self.trained(own)
        self.assertIn("synthetic-color (drawn in memory, seed 1): 200 training", own.stdout)
        self.assertIn("images of [32, 32, 3]", own.stdout)
        explicit = run(*small("--model", "vgg-small", "--dataset", "synthetic", "--epochs", "0"))
        self.trained(explicit)
        self.assertIn("synthetic (drawn in memory, seed 1): 200 training", explicit.stdout)
        text = " ".join(run("train", "--help").stdout.split())
        self.assertIn("else those the model is meant for", text)
        self.assertIn("meant for synthetic-color", text)

    def test_no_epochs(self):
        self.trained(train("--epochs", "0"))

    def test_a_limit_above_the_set_uses_all(self):
        done = train("--limit", "1000000", "--epochs", "0")
        self.trained(done)
        self.assertIn("--limit 1000000: the set has only 6000 training images; all are used", done.stdout)

    def test_seeds_decide_the_weights(self):
        first, again, other, largest = (self.trained(train("--seed", seed))
                                        for seed in ("1", "1", "2", str((1 << 64) - 1)))
        self.assertEqual(first, again)
        self.assertEqual(len({first, other, largest}), 3)

    def test_explicit_workers_win_over_the_environment(self):
        for name, text in [("STARPU_NCPU", "64"), ("STARPU_NCPU", "0"), ("STARPU_NCPU", "abc"), ("STARPU_NCPU", ""),
                           ("STARPU_NCUDA", "abc"), ("STARPU_NOPENCL", "abc"), ("STARPU_SCHED", "nosuch"),
                           ("STARPU_WORKERS_CPUID", ""), ("STARPU_WORKERS_CPUID", "0"),
                           ("STARPU_WORKERS_CPUID", "0-")]:
            with self.subTest(name=name, text=text):
                done = train("--epochs", "0", **{name: text})
                self.trained(done)
                self.assertIn("1 CPU worker", done.stdout)

    def test_the_environment_says_how_many_workers(self):
        done = run(*small("--epochs", "0", without=["--workers"]), STARPU_NCPU="1")
        self.trained(done)
        self.assertRegex(done.stdout, r"1 CPU worker\b")

    def test_interrupt(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "log.jsonl")
            process = subprocess.Popen([COMMAND, *small("--epochs", "1000000", "--log", str(log))],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       env=clean_environment())
            deadline = time.monotonic() + 60
            while not (log.exists() and log.stat().st_size) and time.monotonic() < deadline:
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            start = time.monotonic()
            out, error = process.communicate(timeout=60)
            self.assertLess(time.monotonic() - start, 10)
            self.assertEqual(process.returncode, 130, error)
            self.assertIn("interrupted", out)
            self.assertRegex(out, LAST_LINES)
            for line in log.read_text().splitlines():
                if json.loads(line)["event"] == "epoch":
                    self.assertIn("test_accuracy", json.loads(line))


if __name__ == "__main__":
    COMMAND = os.path.abspath(sys.argv.pop(1))
    SANITIZER = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else ""
    FOLDER = tempfile.TemporaryDirectory()
    unittest.main()
