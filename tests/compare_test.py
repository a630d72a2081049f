#!/usr/bin/env python3
"""The parts of bench/compare that measure nothing, with contestants that do as they are told. Usage: compare_test.py"""
import io
import json
import os
import pathlib
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as xml

from compare_fakes import fake, fake_program, measured, run_it

import chart
import report as reports
import rounds
from contestants import Absent, Cell, Child, Way, gpu_ways, ways
from networks import NETWORKS, learning_rate, parameters, training_flops


def whole_report(contestants, workers=(1,)):
    boards, cells = [], []
    for count in workers:
        cell, board = measured(Cell("cnn2", 64, count), contestants)
        cells.append(cell), boards.append(board)
    return {"format": "arenite-compare", "version": 1,
            "machine": {"cpu": "A <cpu> & more", "cores": 2, "system": "here"},
            "settings": {"rounds": 3, "seconds": 0.01},
            "ceilings": [{"workers": count, "fma_gflops": 190.0, "gemm_gflops": 170.0 * count, "triad_gb_s": 10.0}
                         for count in workers],
            "data": {"cnn2": {"dataset": "fake", "origin": "nowhere", "images": 1, "flops_per_sample": 1e6,
                              "parameters": 1}},
            "contestants": boards[0].known, "absent": boards[0].absences, "cells": cells,
            "scaling": rounds.scaling(cells)}


class Networks(unittest.TestCase):
    def test_operations_of_a_sample(self):
        # Multiply-adds by hand: three directions, two operations each, without the gradient of the images.
        expected = {
            "mlp": 2 * (2 * 784 * 512 + 3 * 512 * 10),
            "cnn1": 2 * (2 * 26 * 26 * 4 * 9 + 3 * 13 * 13 * 4 * 10),
            "lenet5": 2 * (2 * 28 * 28 * 6 * 25 + 3 * (10 * 10 * 16 * 6 * 25 + 400 * 120 + 120 * 84 + 84 * 10)),
            "cnn2": 2 * (2 * 28 * 28 * 32 * 9 + 3 * (14 * 14 * 64 * 32 * 9 + 3136 * 128 + 128 * 10)),
        }
        for name, flops in expected.items():
            self.assertEqual(training_flops(NETWORKS[name]), flops, name)
        for name, millions in {"cnn1": "0.138", "lenet5": "2.26", "cnn2": "25.0"}.items():
            digits = len(millions.split(".")[1])
            self.assertEqual(f"{training_flops(NETWORKS[name]) / 1e6:.{digits}f}", millions)

    def test_parameters(self):
        self.assertEqual(parameters(NETWORKS["cnn2"]), 320 + 18496 + 3136 * 128 + 128 + 1290)
        self.assertEqual(parameters(NETWORKS["cnn1"]), 40 + 6770)

    def test_learning_rate(self):
        self.assertEqual([learning_rate(batch) for batch in (32, 64, 1024)], [0.01, 0.02, 0.02])


class Rounds(unittest.TestCase):
    def test_medians_and_ratios(self):
        def result(*rates):
            return {"rates": list(rates), "loss": 1.0, "start_up_seconds": 0.1, "peak_rss_bytes": 1 << 20}

        cell = rounds.judged(Cell("cnn1", 10, 1), {
            "arenite/arenite": result(100, 300, 200), "pytorch/eager": result(50, 50, 100),
            "pytorch/compile": result(100, 60, 200), "onednn/onednn": result(400, 400, 400),
            "gemm/gemm": result(1e9, 2e9, 4e9)}, None, 1e7, {"pytorch": "pytorch/eager", "onednn": "onednn/onednn"})
        ours = cell["contestants"]["arenite/arenite"]
        self.assertEqual((ours["samples_per_second"], ours["spread"], ours["gflops"]), (200, 3, 2))
        self.assertEqual(ours["gemm_percent"], 100)  # of 2 GFLOP/s, the median of the ceiling's rounds
        self.assertEqual(cell["rivals"]["pytorch"], {"default": "pytorch/eager", "best": "pytorch/compile",
                                                     "ratio_to_default": 2, "ratio_to_best": 1})
        self.assertEqual(cell["rivals"]["onednn"]["ratio_to_best"], 0.5)
        self.assertNotIn("gemm/gemm", cell["contestants"])

    def test_scaling(self):
        def cell(workers, rate, gemm):
            return {"network": "cnn2", "batch": 64, "workers": workers, "gemm_gflops": gemm,
                    "contestants": {"arenite/arenite": {"samples_per_second": rate}}}

        self.assertEqual(rounds.scaling([cell(1, 100, 50), cell(2, 150, 80)]),
                         [{"network": "cnn2", "batch": 64, "workers": 2, "ours": 1.5, "gemm": 1.6, "quotient": 1.5 / 1.6}])
        self.assertEqual(rounds.scaling([cell(2, 150, 80)]), [])

    def test_turns_alternate_and_rest(self):
        cell, board = measured(Cell("cnn2", 64, 1), [fake("arenite", "arenite", 100, lanes=2), fake("pytorch", "eager", 50)])
        self.assertEqual(board.absences, [])
        # The first turn warms up; a fake's rate changes from turn to turn, theirs together.
        self.assertEqual(cell["contestants"]["arenite/arenite"]["rates"], [100, 200, 100])
        self.assertEqual(cell["contestants"]["pytorch/eager"]["rates"], [50, 100, 50])
        self.assertEqual(cell["rivals"]["pytorch"]["ratio_to_best"], 2)
        self.assertGreater(cell["contestants"]["pytorch/eager"]["peak_rss_bytes"], 1 << 20)
        self.assertEqual(cell["profile"]["us_per_step"]["kernels"], 90)

    def test_a_child_stands_still_between_turns(self):
        child = Child(fake("pytorch", "eager"), Cell("cnn2", 64, 1), pathlib.Path("nowhere"))
        try:
            def state():
                return pathlib.Path(f"/proc/{child.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]

            end = time.monotonic() + 10
            while state() != "T" and time.monotonic() < end:
                time.sleep(0.01)
            self.assertEqual(state(), "T")
            self.assertEqual(child.ask(run=0.01)["samples"], 200)
        finally:
            child.end()

    def test_who_cannot_start_is_named_and_the_rest_runs(self):
        cell, board = measured(Cell("cnn2", 64, 1), [
            fake("arenite", "arenite"), fake("pytorch", "eager", dies=0), Way("jax", "jit", ("/no/such/program",)),
            fake("onednn", "onednn", 25)])
        self.assertEqual(list(cell["contestants"]), ["arenite/arenite", "onednn/onednn"])
        self.assertEqual(board.absences[0], "pytorch/eager: ended with status 1: no such module as was needed "
                                            "(cnn2, batch 64, 1 worker)")
        self.assertIn("jax/jit: ", board.absences[1])
        self.assertIn("/no/such/program", board.absences[1])
        self.assertEqual(cell["rivals"]["onednn"]["ratio_to_best"], 4)

    def test_who_dies_is_named_and_the_rest_runs(self):
        cell, board = measured(Cell("cnn2", 64, 1), [
            fake("arenite", "arenite"), fake("pytorch", "eager", dies=3), fake("pytorch", "compile", 50)])
        self.assertEqual(board.absences, ["pytorch/eager: ended with status 1: out of breath (cnn2, batch 64, 1 worker)"])
        self.assertEqual(cell["rivals"]["pytorch"]["default"], None)
        self.assertEqual(cell["rivals"]["pytorch"]["ratio_to_default"], None)
        self.assertEqual(cell["rivals"]["pytorch"]["best"], "pytorch/compile")
        self.assertEqual(len(cell["contestants"]["arenite/arenite"]["rates"]), 3)

    def test_who_says_no_json_or_nothing_is_named(self):
        for command, words in ((("echo", "hello"), "no JSON but b'hello'"), (("sleep", "60"), "no answer within 0.2 s")):
            shell = (sys.executable, "-c", f"import os; os.execvp({command[0]!r}, {list(command)!r})")
            with self.assertRaises(Absent) as caught:
                Child(Way("pytorch", "eager", shell), Cell("cnn2", 64, 1), pathlib.Path("nowhere"),
                      patience=10 if command[0] == "echo" else 0.2)
            self.assertEqual(str(caught.exception), f"pytorch/eager: {words}")


class Reports(unittest.TestCase):
    def setUp(self):
        self.report = whole_report([
            fake("arenite", "arenite", 100, lanes=4), fake("pytorch", "eager", 20), fake("pytorch", "compile", 50),
            fake("jax", "jit", dies=1), fake("onednn", "onednn", 40), fake("gemm", "gemm", 10**9)])

    def test_text(self):
        text = reports.text(self.report)
        self.assertIn("jax/jit: ended with status 1: out of breath", text)
        row = next(line for line in text.splitlines() if line.split()[:3] == ["cnn2", "64", "1"])
        # ours 100 or 200 with the ceiling 1 or 2 GFLOP/s, and 1 MFLOP a sample
        self.assertEqual(row.split(), ["cnn2", "64", "1", "100", "2.00", "10.0", "20", "5.00", "50", "compile", "2.00",
                                       "40", "2.50"])
        self.assertIn("90.0 (90.0 %)", text)
        self.assertIn("they may exceed what dense kernels could reach", text)

    def test_text_without_ours(self):
        report = whole_report([fake("arenite", "arenite", dies=0), fake("pytorch", "eager", 20)])
        self.assertIn("  20", reports.text(report))
        xml.fromstring(chart.chart(report))

    def test_json(self):
        read = json.loads(json.dumps(self.report))
        cell = read["cells"][0]
        self.assertEqual(set(cell), {"network", "batch", "workers", "flops_per_sample", "contestants", "rivals", "profile",
                                     "gemm_gflops", "gemm_rates"})
        for one in cell["contestants"].values():
            self.assertEqual(set(one), {"rates", "start_up_seconds", "configuration", "lanes", "loss", "peak_rss_bytes",
                                        "samples_per_second", "spread", "gflops", "gemm_percent"})

    def test_chart(self):
        svg = chart.chart(self.report)
        root = xml.fromstring(svg)
        name = "{http://www.w3.org/2000/svg}"
        self.assertEqual(root.tag, name + "svg")
        words = ["".join(text.itertext()) for text in root.iter(name + "text")]
        self.assertTrue(any("A <cpu> & more" in text for text in words))
        self.assertTrue(any("PyTorch compile, ours 2.00 ×" in text for text in words))
        longest = max(float(bar.get("width")) for bar in root.iter(name + "rect") if bar.get("x") == str(chart.LABELS)
                      and bar.get("y") != "56")
        self.assertEqual(longest, chart.BARS)
        for link in ("href", "url(", "@import", "<script"):
            self.assertNotIn(link, svg)


class OnGpus(unittest.TestCase):
    """What is another on a GPU: ways, command lines, the share that is not kernels."""
    cell = Cell("cnn2", 64, 1, "cuda:0")
    # 100 samples took 0.8 s of kernels when recorded: of steps at 100 samples a second, a fifth is none.
    traced = {"samples": 100, "seconds": 2.0, "busy_seconds": 0.8, "kernels": 12}

    def report(self, *contestants):
        cell, board = measured(self.cell, contestants)
        return {"machine": {"cpu": "c", "cores": 2, "system": "s", "device": "cuda:0", "compute": "tfloat32",
                            "gpus": [{"index": 0, "name": "A GPU", "bytes": 1 << 34}]},
                "settings": {"rounds": 3, "seconds": 0.01}, "ceilings": [], "data": {}, "contestants": board.known,
                "absent": board.absences, "cells": [cell], "scaling": []}

    def test_ways(self):
        keys = [way.key for way in gpu_ways("contestant", "python", "cuda:0", "float32")]
        self.assertEqual(keys, ["arenite/arenite", "pytorch/cuda_eager", "pytorch/cuda_graphs", "pytorch/cuda_compile",
                                "pytorch/cuda_compile_graphs"])
        for way in gpu_ways("contestant", "python", "cuda:1", "tfloat32"):
            self.assertIn("cuda:1", way.command)
            if way.rival == "arenite":
                self.assertEqual(way.command, ("contestant", "--device", "cuda:1", "--compute", "tfloat32"))
            else:
                self.assertTrue(way.name.endswith("_tf32"), way.name)

    def test_all_cores_feed_a_gpu(self):
        tell = "import json, os, time; print(json.dumps(dict(ready=True, first_step=time.monotonic(), " \
               "version=str(len(os.sched_getaffinity(0))), configuration='')), flush=True); input()"
        for cell, cores in ((self.cell, len(os.sched_getaffinity(0))), (Cell("cnn2", 64, 1), 1)):
            child = Child(Way("pytorch", "eager", (sys.executable, "-c", tell)), cell, pathlib.Path("nowhere"))
            child.end()
            self.assertEqual(child.version, str(cores), cell)
        self.assertEqual(str(self.cell), "cnn2, batch 64, cuda:0")

    def test_share_that_is_not_kernels(self):
        report = self.report(fake("arenite", "arenite", 100, traced=self.traced),
                             fake("pytorch", "cuda_eager", 50, traced={"error": "no CUPTI"}))
        ours = report["cells"][0]["contestants"]["arenite/arenite"]
        self.assertAlmostEqual(ours["not_kernels"], 0.2)
        self.assertIsNone(report["cells"][0]["profile"])
        text = reports.text(report)
        self.assertIn("cuda:0: A GPU, 16384 MiB", text)
        self.assertRegex(text, r"cnn2 +64 +1 +20.0 % \(8, 512000.0 µs\) +not measured\n  pytorch/cuda_eager: no CUPTI\n")
        svg = chart.chart(report)
        self.assertIn("A GPU, c, 2 cores, tf32; ", svg)
        self.assertIn("batch 64, cuda:0<", svg)

    def test_a_recording_that_cannot_be_true(self):
        for recorded, share, error in ((dict(kernels=0, busy_seconds=0.0), None, "no kernel was recorded"),
                                       (dict(busy_seconds=1.019), -0.019, None),
                                       (dict(busy_seconds=1.4), None, "kernels of 896000 µs in steps of 640000 µs: not believed")):
            report = self.report(fake("arenite", "arenite", 100, traced=self.traced | recorded))
            ours = report["cells"][0]["contestants"]["arenite/arenite"]
            self.assertEqual(ours["traced"].get("error"), error)
            if share is None:
                self.assertNotIn("not_kernels", ours)
            else:
                self.assertAlmostEqual(ours["not_kernels"], share)

    def test_rates_are_known_before_kernels_are_recorded(self):
        seen = []
        rounds.measure(self.cell, [fake("arenite", "arenite", dies=5)], pathlib.Path("nowhere"), 3, 0.01,
                       rounds.Board(io.StringIO()), rounds.Progress(1, io.StringIO()), 20,
                       lambda results: seen.append({key: len(one["rates"]) for key, one in results.items()}))
        self.assertEqual(seen, [{"arenite/arenite": 3}])

    def test_who_hangs_is_not_waited_for(self):
        sleeps = Way("arenite", "arenite", (sys.executable, "-c", "import time; time.sleep(60)"))
        with self.assertRaisesRegex(Absent, "no answer within 0.2 s"):
            Child(sleeps, self.cell, pathlib.Path("nowhere"), 0.2)

    def test_libraries_are_for_our_program_alone(self):
        for way in gpu_ways("contestant", "python", "cuda:0", "float32", "/a:/b"):
            self.assertEqual(way.environment.get("LD_LIBRARY_PATH"), "/a:/b" if way.rival == "arenite" else None)

    def test_who_dies_when_recorded_keeps_its_rates(self):
        # A turn to warm up, three rounds, and the recording.
        report = self.report(fake("arenite", "arenite", 100, dies=5), fake("pytorch", "cuda_eager", 50, traced=self.traced))
        ours = report["cells"][0]["contestants"]["arenite/arenite"]
        self.assertEqual((len(ours["rates"]), "not_kernels" in ours), (3, False))
        self.assertIn("  arenite/arenite: ended with status 1: out of breath", reports.text(report))


class Command(unittest.TestCase):
    def test_wrong_options(self):
        for arguments, words in ((["--networks", "cnn3"], "'cnn3' is none of mlp, cnn1"),
                                 (["--cells", "cnn2/x"], "'cnn2/x' is no NETWORK/BATCH"),
                                 (["--batches", "0"], "0 is less than 1"), (["--batches", "ten"], "'ten' is no number"),
                                 (["--rounds", "-1"], "invalid positive number value"),
                                 (["--workers", "4096"], "this process has only"),
                                 (["--device", "gpu"], "'gpu' is none of cpu, cuda, cuda:N"),
                                 (["--compute", "tfloat32"], "it needs --device cuda"),
                                 (["--device", "cuda", "--compute", "half"], "invalid choice: 'half'"),
                                 (["--before", "/no/such/contestant"], "--before /no/such/contestant: no file there"),
                                 (["--before", "/etc/passwd"], "--before /etc/passwd: no program"),
                                 (["--before", "/"], "--before /: no program"),
                                 (["--before", "/bin/true", "--rounds", "14"], "fewer than 15 decide nothing")):
            done = run_it(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(words, done.stderr)

    def test_no_program(self):
        done = run_it("--program", "/no/such/contestant")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no program /no/such/contestant; build it: ", done.stderr)

    def test_no_device(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "contestant"
            for said, status, words in (("dict(cpu='c', devices=[], reason='no driver')", 77, "no device: no driver"),
                                        ("dict(cpu='c', devices=[dict(index=1, name='G', bytes=1)], reason='')", 77,
                                         "no device: cuda:0 is none of cuda:1 (G)"), ("1 / 0", 1, "ZeroDivisionError")):
                program.write_text(f"#!{sys.executable}\nimport json, sys\nassert '--list-devices' in sys.argv\n"
                                   f"print(json.dumps({said}))\n")
                program.chmod(0o755)
                done = run_it("--program", str(program), "--device", "cuda:0", "--json", str(program) + ".json")
                self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
                self.assertIn(words, done.stderr)
                self.assertFalse(pathlib.Path(str(program) + ".json").exists())

    def test_a_missing_rival_is_named_with_how_to_get_it(self):
        """The whole command, with a program that answers as the built one does, and an empty environment."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            program = fake_program(folder / "contestant", 100)
            done = run_it("--program", str(program), "--quick", "--networks", "cnn2,mlp", "--workers", "1",
                               "--venv", str(folder / "venv"), "--json", str(folder / "all.json"),
                               "--svg", str(folder / "all.svg"))
            self.assertEqual(done.returncode, 0, done.stderr)
            for rival in "pytorch", "jax":
                self.assertIn(f"absent: {rival}: no {folder}/venv/bin/python; `bench/compare --setup-venv DIR` installs it",
                              done.stderr)
            self.assertIn("absent: onednn/onednn: ended with status 1: a build without it (cnn2", done.stderr)
            report = json.loads((folder / "all.json").read_text())
            self.assertEqual(set(report), {"format", "version", "machine", "settings", "ceilings", "data", "contestants",
                                           "absent", "cells", "scaling"})
            self.assertEqual([cell["network"] for cell in report["cells"]], ["cnn2", "mlp"])
            self.assertEqual(len(report["absent"]), 4)
            xml.parse(folder / "all.svg")

    def test_every_way_is_known_once(self):
        keys = [way.key for way in [*ways("contestant", "python"), *gpu_ways("contestant", "python", "cuda", "float32")[1:]]]
        self.assertEqual(len(keys), len(set(keys)))
        self.assertEqual(keys[0], "arenite/arenite")


if __name__ == "__main__":
    unittest.main()
