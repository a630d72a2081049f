#!/usr/bin/env python3
"""bench/compare --before, with contestants that do as they are told. Usage: compare_before_test.py"""
import json
import pathlib
import random
import sys
import tempfile
import unittest

from compare_fakes import executable, fake_program, measured, run_it

import before
from contestants import Cell, Way


class Verdicts(unittest.TestCase):
    """Of ratios that were drawn around a known one."""

    @staticmethod
    def ratios(middle, count=15, spread=0.02, seed=1):
        draw = random.Random(seed)
        return [middle * draw.lognormvariate(0, spread) for _ in range(count)]

    def test_known_ratios(self):
        for middle, word in ((0.9, "slower"), (0.99, "same"), (1, "same"), (1.01, "same"), (1.1, "faster")):
            found = before.verdict(self.ratios(middle))
            self.assertEqual(found["verdict"], word, middle)
            low, high = found["interval"]
            self.assertLessEqual(low, found["ratio"])
            self.assertLessEqual(found["ratio"], high)
            self.assertAlmostEqual(found["ratio"], middle, delta=0.02)
        self.assertEqual(before.verdict([0.95] * 15), {"ratio": 0.95, "interval": [0.95, 0.95], "verdict": "slower"})

    def test_a_noisy_median_below_the_limit_is_not_slower(self):
        found = before.verdict([0.5, 1.5] * 7 + [0.9])
        self.assertEqual((found["ratio"], found["verdict"]), (0.9, "same"))
        self.assertGreater(found["interval"][1], 1)

    def test_fewer_rounds_decide_nothing(self):
        self.assertEqual(before.verdict([0.5] * 14), {"verdict": "not decided"})
        self.assertEqual(before.judged({"arenite/arenite": {"rates": [1] * 15}}), {"verdict": "not decided"})

    def test_the_interval_holds_the_median_nine_times_in_ten(self):
        held, repeated = 0, before.interval(self.ratios(1, 25))
        for seed in range(100):
            low, high = before.interval(self.ratios(1, 25, seed=seed))
            held += low <= 1 <= high
        self.assertTrue(82 <= held <= 98, held)
        self.assertEqual(before.interval(self.ratios(1, 25)), repeated)

    def test_ours_and_the_older_one_change_places(self):
        # A process that starts, and its turns; warm-up first, our profile last.
        self.assertEqual(self.turns(("arenite", "before", "onednn"), 4), "AaBbOo" "abo" "bao" "abo" "bao" "a")

    def test_each_turn_has_a_process_of_its_own_where_it_should(self):
        self.assertEqual(self.turns(("arenite", "before"), 3, anew=True), "AaBb" "ab" "BbbAaa" "AaaBbb" "a")

    @staticmethod
    def turns(rivals, count, **how):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "turns"
            tell = "import json, sys, time\ndef note(who): open({0!r}, 'a').write(who)\nnote({1!r}.upper())\n" \
                   "print(json.dumps(dict(ready=True, first_step=time.monotonic(), version='', configuration='')), flush=True)\n" \
                   "for line in sys.stdin:\n  note({1!r})\n" \
                   "  print(json.dumps(dict(samples=1, seconds=1, loss=0)), flush=True)"
            measured(Cell("cnn2", 64, 1), [Way(rival, rival, (sys.executable, "-c", tell.format(str(log), rival[0])))
                                           for rival in rivals], count, **how)
            return log.read_text()


class BeforeAndNow(unittest.TestCase):
    """The whole command, with programs that answer as the built ones do."""
    END = "print(json.dumps(dict(event='data')))\nprint(json.dumps(dict(event='end', weights_sha256={!r}, heap_calls={})))"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.now = fake_program(self.folder / "now" / "contestant", 100)

    def compared(self, older, *more):
        file = self.folder / "all.json"
        done = run_it("--program", str(self.now), "--before", str(older), "--seconds", "0.01", "--workers", "1",
                      "--json", str(file), *(more or ("--cells", "cnn2/64")))
        return done, json.loads(file.read_text() or "{}") if file.exists() else {}

    def test_a_slower_build_is_found(self):
        for rate, word, status in ((105, "slower", 1), (102, "same", 0), (90, "faster", 0)):
            done, report = self.compared(fake_program(self.folder / "older" / "contestant", rate))
            self.assertEqual(done.returncode, status, done.stderr)
            cell = report["cells"][0]
            self.assertEqual((cell["before"]["verdict"], len(cell["contestants"]["before/arenite"]["rates"])), (word, 15))
            self.assertEqual(list(cell["contestants"]), ["arenite/arenite", "before/arenite"])
            self.assertRegex(done.stdout, rf"cnn2 +64 +1 +{rate} +100 +{100 / rate:.3f} +[0-9.]+–[0-9.]+ +{word} +- +-\n")
            self.assertRegex(done.stdout, r"network +batch +workers +arenite +before +GEMM")
            self.assertEqual("slower: cnn2/64/1; " in done.stdout.splitlines()[-1], word == "slower")
            self.assertIn(f"absent: bits and heap calls: [Errno 2] No such file or directory: '{self.folder}/older/arenite'",
                          done.stderr)

    def test_bits_and_heap_calls(self):
        older = fake_program(self.folder / "older" / "contestant", 100)
        cells = "cnn2/64/1, mlp/10/1"
        for sha, calls, columns, line, status in (
                ("aa", (0, 0), "equal +0", "none of 2 slower, bits as before, no more heap calls", 0),
                ("bb", (0, 0), "differ +0", f"other bits: {cells}", 1),
                ("aa", (2, 0), "equal +2, now 0", "none of 2 slower, bits as before, no more heap calls", 0),
                ("aa", (0, 1), "equal +0, now 1", f"more heap calls: {cells}", 1)):
            executable(self.folder / "now" / "arenite", self.END.format("aa", calls[1]))
            executable(self.folder / "older" / "arenite", self.END.format(sha, calls[0]))
            done, report = self.compared(older, "--cells", "cnn2/64,mlp/10")
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertRegex(done.stdout, rf"same +{columns}\n")
            self.assertEqual(done.stdout.splitlines()[-1], line)
            self.assertEqual(report["cells"][1]["before"]["weights_sha256"], [sha, "aa"])
            self.assertEqual(report["cells"][1]["before"]["heap_calls"], list(calls))
        executable(self.folder / "older" / "arenite", "sys.exit('no such option')")
        done, report = self.compared(older)
        self.assertEqual(report["cells"][0]["before"]["not_compared"], f"{self.folder}/older/arenite: no such option")
        self.assertEqual(done.returncode, 0)
        executable(self.folder / "older" / "arenite", self.END.format("aa", 0))
        executable(self.folder / "now" / "arenite", "sys.exit('broken')")
        done, report = self.compared(older)
        self.assertEqual(report["cells"][0]["before"]["not_compared"], f"{self.folder}/now/arenite: broken")
        self.assertEqual(done.returncode, 1)

    def test_an_older_build_that_cannot_take_part(self):
        for text, why in (("sys.exit('no StarPU')", "no StarPU"), ("print('hello')", "no JSON but 'hello\\n'")):
            done, report = self.compared(executable(self.folder / "older" / "contestant", text))
            self.assertEqual((done.returncode, done.stdout, report), (1, "", {}))
            self.assertIn(f"{self.folder}/older/contestant does not answer as a contestant does: {why}", done.stderr)
        (self.folder / "older" / "contestant").write_text("neither ELF nor script")
        self.assertIn("Exec format error", self.compared(self.folder / "older" / "contestant")[0].stderr)

    def test_an_older_build_that_dies_leaves_its_cell_undecided(self):
        done, report = self.compared(fake_program(self.folder / "older" / "contestant", 100, dies=2))
        self.assertEqual(done.returncode, 1)
        self.assertIn("absent: before/arenite: ended with status 1: out of breath (cnn2, batch 64, 1 worker)", done.stderr)
        self.assertIn("not decided: cnn2/64/1", done.stdout.splitlines()[-1])
        self.assertEqual(report["cells"][0]["before"]["verdict"], "not decided")


if __name__ == "__main__":
    unittest.main()
