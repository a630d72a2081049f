#!/usr/bin/env python3
"""`arenite train` on right input: output, log, what decides the weights. Usage: cli_test.py COMMAND [SANITIZER]"""
import json
import os
import pathlib
import re
import resource
import subprocess
import tempfile
import time
import unittest

import cli_testing
from cli_testing import run, small, train

LAST_LINES = re.compile(r"test accuracy: \d{1,3}\.\d\d %\nweights sha256: [0-9a-f]{64}\n\Z")


def nested(depth):
    """A script of so many blocks, one in the other."""
    text = "$3 = relu($1);\n"
    for i in range(4, 4 + depth):
        text = f"${i} = if($2) {{\n{text}yield ${i - 1};\n}} else {{\nyield $1;\n}};\n"
    return ("$1 = InputTensor(x, float32, [4]);\n$2 = InputTensor(c, int64, [1]);\n"
            f"{text}result = ${3 + depth};\n")


class FailedRun(unittest.TestCase):
    """The input was right: status 1."""

    def test_memory_refused(self):
        if cli_testing.SANITIZER:
            self.skipTest("a sanitizer reserves more address space than this allows")
        limit = (400 << 20) + cli_testing.libraries()
        done = run(*small("--model", "cnn2", "--limit", "6000", "--batch", "6000", "--shards", "1"),
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"^arenite: the system refused \d+ bytes.*memory for block '.*smaller batch")


    def test_any_limit_of_address_space(self):
        """Libraries that end the process where they get none, or jump to nowhere, are not asked then."""
        if cli_testing.SANITIZER:
            self.skipTest("a sanitizer reserves more address space than this allows")
        ended = set()
        for megabytes in range(26, 122, 3):
            limit = megabytes << 20
            done = run(*small("--model", "lenet5"),
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
            ended.add(done.returncode)
            with self.subTest(megabytes=megabytes):
                self.assertIn(done.returncode, (0, 1, 127), done.stderr)  # 127: by the loader
                if done.returncode == 1:
                    self.assertRegex(done.stderr, r"^arenite: (no memory left|the system refused) [^\n]*\n$")
        self.assertLessEqual({0, 1}, ended)


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

    def test_little_stack(self):
        if cli_testing.SANITIZER:
            self.skipTest("a sanitizer's frames are larger")
        plain = self.trained(train("--model", "cnn2"))
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "nested")
            script.write_text(nested(63))
            for kib in (128, 64, 32):
                little = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_STACK, (kib << 10, kib << 10))}
                self.assertEqual(self.trained(run(*small("--model", "cnn2"), **little)), plain, kib)
                planned = run("plan", str(script), **little)
                self.assertEqual(planned.returncode, 0, f"{kib} KiB: {planned.stderr}")

    def test_shards(self):
        four = self.trained(train("--model", "cnn1", "--shards", "4"))
        for at_once in "1", "2", "4":
            for workers in "1", "2":
                done = train("--model", "cnn1", "--shards", "4", "--at-once", at_once, "--workers", workers)
                self.assertEqual(self.trained(done), four, (at_once, workers))
                words = "4 shards; " if at_once == "4" else f"4 shards, {at_once} at once; "
                self.assertIn(f"batch 64 in {words}", done.stdout)
        self.assertNotEqual(self.trained(train("--model", "cnn1", "--shards", "2")), four)

    def test_optimizers(self):
        plain = train("--model", "cnn1")
        self.assertNotIn("optimizer", plain.stdout)
        for arguments, said in (
                (("--optimizer", "adamw", "--lr", "0.005", "--weight-decay", "0"),
                 "adamw: lr 0.005, beta1 0.9, beta2 0.999, eps 1e-08, weight_decay 0"),
                (("--clip-norm", "0.5", "--clip-value", "0.1"), "sgd: lr 0.02, momentum 0.9, weight_decay 0; "
                 "elements of gradients cut at 0.1; gradients at most 0.5 long"),
                (("--group", "rank=1:rate=0.5", "--group", "conv*:weight_decay=0.1"),
                 "sgd: lr 0.02, momentum 0.9, weight_decay 0; of at most 1 axes: rate 0.5; of 'conv*': weight_decay 0.1"),
                (("--ema", "0.5"), "sgd: lr 0.02, momentum 0.9, weight_decay 0; means that keep 0.5 are tested"),
                (("--schedule", "multi_step:at=1/3,gamma=0.5"),
                 "sgd: lr 0.02, momentum 0.9, weight_decay 0; schedule multi_step:at=1/3,gamma=0.5"),
                (("--schedule", "cosine:warm_up=2"), "sgd: lr 0.02, momentum 0.9, weight_decay 0; schedule cosine:warm_up=2")):
            with self.subTest(arguments=arguments):
                done = train("--model", "cnn1", *arguments)
                self.assertIn(f"\noptimizer {said}\n", done.stdout)
                if "--ema" in arguments:
                    self.assertEqual(self.trained(done), self.trained(plain))
                else:
                    self.assertNotEqual(self.trained(done), self.trained(plain))

    def test_batches_that_are_added_up_have_the_bits_of_shards(self):
        together = train("--model", "cnn1", "--batch", "40", "--shards", "4")
        for at_once in "1", "4":
            apart = train("--model", "cnn1", "--batch", "10", "--accumulate", "4", "--at-once", at_once)
            self.assertIn("; gradients of 4 batches added up\n", apart.stdout)
            self.assertEqual(self.trained(apart), self.trained(together))

    def test_a_loss_that_is_not_finite_ends_training(self):
        done = run("train", "--dataset", "synthetic", "--model", "cnn1", "--epochs", "2", "--limit", "640", "--lr", "1e38")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"arenite: program 'train', step \d+, check_loss 'loss' \(lane \d\): a loss of (NaN|infinity); "
                         r"expected a finite number \(hint: a smaller learning rate")
        went_on = train("--model", "cnn1", "--lr", "1e38", "--check-loss", "off")
        self.assertIn("; goes on where the loss is not finite\n", went_on.stdout)

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
        if cli_testing.SANITIZER:
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

    def test_products_in_bfloat16(self):
        plain = train("--model", "cnn1")
        self.assertNotIn("bfloat16", plain.stdout)
        ones = [train("--model", "cnn1", "--compute", "bfloat16", "--workers", workers, "--lanes", "2")
                for workers in ("1", "2")]
        for done in ones:
            self.assertIn("; products in bfloat16\n", done.stdout)
        first, second = map(self.trained, ones)
        self.assertEqual(first, second)  # the same bits for any number of workers
        self.assertNotEqual(first, self.trained(train("--model", "cnn1", "--lanes", "2")))
        explained = train("--compute", "bfloat16", "--explain", "--epochs", "0").stdout
        explained = explained[explained.index("  coarsen "):]  # behind what the passes said
        products = re.findall(r"^ +(?:dense|conv2d)\w* +\S+ +(\S+)", explained, re.M)
        self.assertGreater(len(products), 5)
        self.assertEqual([kernel for kernel in products if not kernel.endswith("_bf16")], [])

    def test_kernels_of_a_file(self):
        loss = "softmax_cross_entropy(float32 [8, 10], int32 [8], divisor={})"
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "kernels.json"
            for divisor, told in ((8, "a step takes 1 of the 1 that it names\n"),
                                  (16, "a step takes 0 of the 1 that it names (hint: they are for another")):
                file.write_text(json.dumps({"format": "arenite kernel choices 1", "measured_on": "paper", "choices": [
                    {"op": loss.format(divisor), "device": "cpu", "compute": "float32", "kernel": "plain"}]}))
                how = ("--model", "cnn1", "--batch", "8", "--lanes", "1", "--kernels", file)
                done = run(*small(*how))
                self.trained(done)
                self.assertIn(f"kernels of {file}, measured on paper: {told}", done.stdout)
                done = run(*small(*how, "--json"))
                self.assertEqual(done.returncode, 0, done.stderr)
                model = next(event for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "model")
                self.assertEqual((model["kernels"], model["kernels_taken"]), (str(file), int(divisor == 8)))

    def test_a_home_that_cannot_be_written(self):
        self.trained(train(HOME="/proc"))
        self.trained(train(HOME=""))

    def test_the_first_step_is_timed_from_the_process_on(self):
        begin = time.monotonic()
        done = train()
        took = time.monotonic() - begin
        self.trained(done)
        lines = done.stdout.splitlines()
        at = next(i for i, line in enumerate(lines) if line.startswith("first step after "))
        self.assertTrue(lines[at + 1].startswith("epoch 1/1 "), lines[at + 1])
        seconds = float(re.fullmatch(r"first step after (\d+\.\d\d) s", lines[at])[1])
        self.assertGreater(seconds, 0.01)  # StarPU alone takes longer
        self.assertLess(seconds, took + 0.02)  # the kernel counts in 0.01 s
        self.assertNotIn("first step", train("--epochs", "0").stdout)

    def test_a_script_that_becomes_the_command_is_not_timed(self):
        script = ["bash", "-c", 'sleep 3; exec "$0" "$@"', cli_testing.COMMAND, *small()]
        begin = time.monotonic()
        done = subprocess.run(script, capture_output=True, text=True, timeout=120, env=cli_testing.clean_environment())
        took = time.monotonic() - begin
        self.trained(done)
        self.assertLess(float(re.search(r"^first step after (\d+\.\d\d) s$", done.stdout, re.M)[1]), took - 2.9)

    def test_the_environment_says_how_many_workers(self):
        done = run(*small("--epochs", "0", without=["--workers"]), STARPU_NCPU="1")
        self.trained(done)
        self.assertRegex(done.stdout, r"1 CPU worker\b")


if __name__ == "__main__":
    cli_testing.main()
