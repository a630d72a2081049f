#!/usr/bin/env python3
"""`--json` of `arenite train` and `arenite plan`: the fields that docs/command-line.md promises, and what words say beside
them. Usage: cli_json_test.py COMMAND [SANITIZER]"""
import json
import os
import pathlib
import re
import signal
import tempfile
import unittest

import cli_testing
from cli_testing import run, small, start, train

PAGE = (pathlib.Path(__file__).resolve().parent.parent / "docs/command-line.md").read_text(encoding="utf-8")
GADGET = "id,lower,upper,size\na,0,1,2\nb,0,3,2\nc,1,5,1\nd,1,4,1\ne,3,4,1\nf,3,5,1\ng,4,6,2\nh,5,6,2\n"


def documented(heading):
    """The fields in the table below a heading of the page."""
    section = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", PAGE, re.M | re.S)[1]
    return re.findall(r"^\| `(\w+)`", section, re.M)


def events(text):
    """Every line of a text, each an object."""
    assert text.endswith("\n"), text
    return [json.loads(line) for line in text.splitlines()]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)


class Train(Case):
    def ran(self, *arguments, **environment):
        done = train("--json", *arguments, **environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return events(done.stdout)

    def test_an_object_for_each_event(self):
        said = self.ran("--epochs", "2", "--profile")
        self.assertEqual([event["event"] for event in said],
                         ["data", "model", "plan", "first_step", "epoch", "epoch", "profile", "end"])
        for event in said:
            self.assertEqual(["event", *documented(f"Event `{event['event']}`")], list(event))
        data, model, plan, first, *epochs, profile, end = said
        self.assertEqual((data["name"], data["training_images"], data["image"]), ("synthetic", 200, [28, 28, 1]))
        self.assertEqual((model["name"], model["batch"], model["lr"], model["workers"]), ("mlp", 64, 0.02, 1))
        self.assertEqual(plan["bytes"], sum(block["bytes"] for block in plan["blocks"]))
        self.assertEqual((plan["peak"], plan["optimal"]), (plan["lower_bound"], True))
        self.assertEqual([epoch["epoch"] for epoch in epochs], [0, 1])
        self.assertEqual((profile["program"], profile["workers"]), ("train", 1))
        self.assertEqual(end["steps"], 8)
        self.assertEqual(end["first_step_seconds"], first["seconds"])
        self.assertEqual([end[key] for key in ("handles", "blocks", "pins", "heap_calls")], [0, 0, 0, None])

    def test_says_what_words_say(self):
        words = train().stdout
        said = {event["event"]: event for event in self.ran()}
        self.assertIn(f"\nweights sha256: {said['end']['weights_sha256']}\n", words)
        self.assertIn(f"\ntest accuracy: {said['end']['test_accuracy'] * 100:.2f} %\n", words)
        self.assertIn(f"\nmodel mlp: {said['model']['summary']}; batch 64 in {said['model']['lanes']} ", words)
        for block in said["plan"]["blocks"]:
            self.assertRegex(words, rf"\n  {re.escape(block['block'])} +\S+ \w+   {re.escape(block['pinned'])}\n")
        self.assertIn(f"  {'total':<21} ", words)

    def test_the_log_has_the_same_lines(self):
        log = self.root / "log"
        done = train("--json", "--epochs", "2", "--log", str(log))
        lines = done.stdout.splitlines()
        self.assertEqual(log.read_text().splitlines(),
                         [line for line in lines if json.loads(line)["event"] in ("epoch", "end")])

    def test_what_is_for_people_goes_to_standard_error(self):
        plan = self.root / "plan.svg"
        done = train("--json", "--explain", "--draw", "--plan-svg", str(plan))
        self.assertEqual(done.returncode, 0)
        self.assertEqual([event["event"] for event in events(done.stdout)][:3], ["data", "model", "plan"])
        self.assertIn("program 'train': ", done.stderr)
        self.assertTrue(plan.exists())

    def test_no_profile_without_an_epoch(self):
        said = self.ran("--profile", "--epochs", "0")
        self.assertEqual([event["event"] for event in said], ["data", "model", "plan", "profile", "end"])
        self.assertEqual(said[-2], {"event": "profile", "steps": 0})
        self.assertIsNone(said[-1]["first_step_seconds"])

    def test_counted_heap_calls(self):
        if cli_testing.SANITIZER:
            self.skipTest("a sanitizer has the heap")
        end = self.ran("--count-heap")[-1]
        self.assertEqual((end["heap_calls"], end["map_calls"]), (0, 0))

    def test_errors_are_messages(self):
        done = train("--json", "--batch", "201")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertTrue(done.stderr.startswith("arenite: a batch of 201 from 200 training samples; expected "))

    def test_interrupts(self):
        process = start("--json", "--epochs", "1000000")
        self.addCleanup(process.kill)
        text = ""
        for line in process.stdout:
            text += line
            if json.loads(line).get("epoch") == 1:
                break
        process.send_signal(signal.SIGINT)
        rest, error = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 130)
        self.assertTrue(error.startswith("arenite: interrupted: "))
        said = events(text + rest)
        self.assertEqual([event["event"] for event in said[-2:]], ["interrupted", "end"])
        self.assertEqual(said[-2], {"event": "interrupted", "steps": said[-1]["steps"]})

    def test_a_path_that_is_no_text(self):
        folder = os.fsencode(self.root) + b"/\xff"
        cli_testing.write_set(os.fsdecode(folder))
        done = run(*small("--json", "--dataset", "mnist", "--data", os.fsdecode(folder), "--batch", "4"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(events(done.stdout)[0]["origin"], f"{self.root}/\N{REPLACEMENT CHARACTER}")


class Plan(Case):
    def setUp(self):
        super().setUp()
        self.table = self.root / "table.csv"
        self.table.write_text(GADGET)

    def plan(self, *arguments, input=None, status=0):
        done = run("plan", str(input or self.table), "--json", *map(str, arguments))
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout.count("\n"), 1)
        self.assertEqual(bool(done.stderr), status != 0)
        return json.loads(done.stdout)

    def refused(self, message, *arguments):
        done = run("plan", str(self.table), "--json", *map(str, arguments))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn(message, done.stderr)

    def test_a_table(self):
        out = self.root / "plan.json"
        said, plan = self.plan("--out", out), json.loads(out.read_text())
        self.assertEqual((said["input"], said["kind"]), (str(self.table), "table"))
        self.assertEqual((said["buffer_count"], said["bytes_in_sum"]), (8, 12))
        # What the plan's own file says, but for the buffers.
        shared = [key for key in said if key not in ("input", "kind", "buffer_count", "bytes_in_sum")]
        self.assertEqual({key: said[key] for key in shared}, {key: plan[key] for key in shared})
        self.assertEqual(set(plan) - set(shared), {"format", "buffers", "reuse"})
        self.assertEqual((said["peak"], said["optimal"]), (5, True))
        self.assertEqual(set(said) - set(documented("The summary of `arenite plan`")), set())

    def test_models_and_scripts(self):
        script = self.root / "net"
        script.write_text("$1 = InputTensor(x, float32, [rows<=8, 4]);\n$2 = ParameterTensor(w, float32, [4, 4]);\n"
                          "$3 = dense($1, $2);\n$4 = dense($3, $2);\nresult = $4;\n")
        known = set(documented("The summary of `arenite plan`"))
        for input, kind in (("model:mlp?batch=32", "model"), (script, "script")):
            said = self.plan(input=input)
            self.assertEqual(said["kind"], kind)
            self.assertEqual(set(said) - known, set())
            words = run("plan", str(input)).stdout
            self.assertIn(f"\n{said['ops']} op", words)
            self.assertIn(f" peak {said['peak']:,} bytes", words)
        self.assertEqual(said["bounds"], {"rows": 8})

    def test_what_is_missing(self):
        for capacity, verdict, needed in ((4, "infeasible: proved", 5), (3, "infeasible: proved", 5)):
            said = self.plan("--capacity", capacity, status=3)
            self.assertEqual((said["verdict"], said["capacity"], said["bytes_needed"], said["buffers_at_peak"]),
                             (verdict, capacity, needed, ["a", "b"]))
        self.assertNotIn("verdict", self.plan("--capacity", 5))

    def test_verify(self):
        out = self.root / "plan.json"
        said = self.plan("--out", out)
        sound = self.plan("--verify", out)
        self.assertEqual(sound["verified"], str(out))
        self.assertEqual([sound[key] for key in ("peak", "lower_bound", "spaces")],
                         [said[key] for key in ("peak", "lower_bound", "spaces")])
        self.assertEqual(self.plan("--verify", out, "--capacity", 4, status=3)["bytes_needed"], 5)
        plan = json.loads(out.read_text())
        for buffer in plan["buffers"]:
            buffer["offset"] = 0
        out.write_text(json.dumps(plan))
        self.refused("overlap", "--verify", out)

    def test_errors_are_messages(self):
        self.refused("--effort: 'none'; expected one of fast, default, max", "--effort", "none")
        self.table.write_text("id,lower\n")
        self.refused("table.csv, line 1", "--out", self.root / "plan.json")
        self.assertEqual(os.listdir(self.root), ["table.csv"])


if __name__ == "__main__":
    cli_testing.main()
