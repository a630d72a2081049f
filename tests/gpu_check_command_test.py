#!/usr/bin/env python3
"""scripts/gpu-check whole, with programs that answer as a GPU's would."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

import gpu_fakes
from in_folder import InFolder

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "gpu_check"))

import nvidia  # noqa: E402

PARTS = ["operators", "sanitizer", "training", "allocations", "kernels", "speed"]


class Command(InFolder):
    """The whole command, with programs that answer as a GPU's would."""

    def command(self, *arguments, **how):
        build = gpu_fakes.build(self.folder / "a build", **how)
        python = gpu_fakes.python(self.folder / "python")
        return [sys.executable, str(ROOT / "scripts/gpu-check"), "--build", str(build), "--python", str(python), *arguments]

    def environment(self):
        return os.environ | {"PATH": f"{self.folder}/tools:{os.environ['PATH']}"}

    def results(self):
        file = self.folder / "results/results.json"
        return json.loads(file.read_text()) if file.exists() else None

    def check(self, *arguments, **how):
        done = subprocess.run(self.command(*arguments, **how), capture_output=True, text=True, cwd=self.folder,
                              env=self.environment())
        return done, self.results()

    def begun(self, what, *arguments, **how):
        """A check in the midst of this."""
        process = subprocess.Popen(self.command(*arguments, **how), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                   cwd=self.folder, env=self.environment())
        self.addCleanup(process.kill)
        self.addCleanup(process.stderr.close)
        for line in process.stderr:
            if what in line:
                return process
        self.fail(f"it ended before {what}")

    def children(self, pid):
        """Once there are some."""
        for _ in range(100):
            text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            if text:
                return [int(one) for one in text]
            time.sleep(0.05)
        return []

    def wait_for_end(self, pid):
        """Of a program that is nobody's child any more."""
        for _ in range(100):
            try:
                state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                return
            if state == "Z":
                return
            time.sleep(0.05)
        self.fail(f"{pid} goes on")

    def statuses(self, report):
        return {part["name"]: part["status"] for part in report["parts"]}

    def test_all_is_well(self):
        gpu_fakes.sanitizer(self.folder / "tools")
        done, report = self.check("--quick")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + (self.folder / "results/results.md").read_text())
        self.assertEqual(self.statuses(report), dict.fromkeys(PARTS, "passed") | {"speed": "incomplete"})
        self.assertEqual((report["format"], report["status"], report["environment"]["GPU"]),
                         ("arenite-gpu-check", "incomplete", "A fake GPU (1024 MiB)"))
        table = (self.folder / "results/results.md").read_text()
        for row in ("| test accuracy, GPU less CPU, mean of 1 seeds | +0.25 points | within ±0.5 | passed |",
                    "| ours and StarPU's are the plan's | 9,000 bytes | 9,000 bytes | passed |",
                    "| heap calls of ours, StarPU's and the system's in 70 steps more | 0 | 0 | passed |",
                    "| heap calls of NVIDIA's libraries in 70 steps more | libcuda.so.1 140 |  | - |",
                    "| cnn2 | 64 | relu(float32 [64]) of cnn2/64 | tiled 6.0 | cudnn 4.0 | 1.50× |",
                    "| cnn2 | 64 | 500 | 100 (5.00×) | 200 (2.50×) | - |",
                    "| cnn2, batch 64: PyTorch max-autotune | skipped: --quick compiles nothing; --resume without it does |  | skipped |",
                    "| cnn2 | 64 | 5.0 % (6, 121600.0 µs) | 80.0 % (6, 128000.0 µs) | 80.0 % (6, 64000.0 µs) | not measured |"):
            self.assertIn(row, table)
        self.assertRegex(done.stderr, r"\[0:\d\d\] training: cnn2 on cuda, seed 1 \(ETA: done in 8:\d\d at most\)")
        log = (self.folder / "tools/sanitizer.log").read_text().splitlines()
        self.assertEqual(len(log), 2)
        self.assertIn("--tool racecheck --kernel-name kns=arenite --error-exitcode 66", log[1])

    def test_kernels_of_nvidias_libraries_are_told_apart(self):
        gpu_fakes.sanitizer(self.folder / "tools", hazards=2)
        done, report = self.check("--only", "sanitizer")
        rows = {check["what"]: check["verdict"] for check in report["parts"][0]["checks"]}
        self.assertEqual({what: verdict for what, verdict in rows.items() if what.startswith("racecheck")},
                         {"racecheck: cnn1, steps one by one, our kernels": "FAILED",
                          "racecheck: operators, our kernels": "FAILED",
                          "racecheck: cnn1, steps one by one, kernels of NVIDIA's libraries": "-"})
        log = self.folder / "tools/sanitizer.log"
        self.assertIn("--kernel-name-exclude kns=arenite", log.read_text())
        log.unlink()
        gpu_fakes.sanitizer(self.folder / "tools")
        done, report = self.check("--resume", "--only", "sanitizer")
        self.assertEqual(len(log.read_text().splitlines()), 2, "those that had failed")
        self.assertEqual((len(report["parts"][0]["checks"]), self.statuses(report)), (7, {"sanitizer": "passed"}))
        done, report = self.check("--resume", "--quick", "--only", "sanitizer")
        self.assertEqual(len(report["parts"][0]["checks"]), 7, "it had passed")

    def test_all_cells_and_then_compiled_ones(self):
        done, report = self.check("--only", "speed")
        self.assertEqual((done.returncode, self.statuses(report)), (0, {"speed": "passed"}), done.stdout + done.stderr)
        measured = [line.split(" speed: ")[1].split(" (ETA")[0] for line in done.stderr.splitlines() if " speed: " in line]
        small = "cnn2/64, lenet5/64, cnn1/64, vgg-small/64"
        self.assertEqual(measured[:2], [f"{small}, plain", f"{small}, compiled"], "most of what is wanted is of these")
        self.assertEqual(len(measured), 4)
        rows = [check["what"] for check in report["parts"][0]["checks"]]
        for network in "cnn2", "lenet5", "cnn1", "vgg-small":
            for batch in 64, 256, 1024:
                self.assertIn(f"{network}, batch {batch}: ours over the best, CUDA graphs", rows)
        self.assertIn("| cnn2 | 1024 | 400 | 100 (4.00×) | 200 (2.00×) | 150 (2.67×) |",
                      (self.folder / "results/results.md").read_text())

    def test_kernels_that_were_measured_are_kept_for_later_runs(self):
        done, report = self.check("--quick", "--only", "kernels", "--networks", "cnn2")
        self.assertEqual((done.returncode, self.statuses(report)), (0, {"kernels": "passed"}), done.stdout + done.stderr)
        done, report = self.check("--quick", "--resume", "--only", "speed", "--networks", "cnn2")
        self.assertEqual(self.statuses(report), {"kernels": "passed", "speed": "incomplete"}, done.stdout + done.stderr)
        self.assertIn("| cnn2 | 64 | 500 | 100 (5.00×) |", (self.folder / "results/results.md").read_text())
        done, report = self.check("--quick", "--resume", "--networks", "cnn2,cnn1", "--only", "kernels")
        self.assertIn(" kernels: cnn1/64 ", done.stderr, "that one alone")
        self.assertEqual(report["parts"][0]["details"]["cells"], ["cnn2/64", "cnn1/64"])
        self.assertEqual(len(report["parts"][0]["details"]["choices"]["choices"]), 2)

    def test_cells_that_were_measured_with_other_kernels_are_measured_again(self):
        done, report = self.check("--quick", "--only", "speed", "--networks", "cnn2")
        self.assertIn("| cnn2 | 64 | 400 | 100 (4.00×) |", (self.folder / "results/results.md").read_text())
        self.assertIn("ours takes the kernels that part kernels found the fastest, but by themselves in cnn2/64, where none was "
                      "measured", report["parts"][0]["notes"])
        report["parts"][0]["checks"][0]["verdict"] = "skipped"
        (self.folder / "results/results.json").write_text(json.dumps(report))
        done, report = self.check("--quick", "--resume", "--only", "kernels,speed", "--networks", "cnn2")
        self.assertIn("| cnn2 | 64 | 500 | 100 (5.00×) |", (self.folder / "results/results.md").read_text())

    def test_a_kernel_that_does_not_run_is_a_failure(self):
        done, report = self.check("--quick", "--only", "kernels", kernel_fails=True)
        self.assertEqual((done.returncode, self.statuses(report)), (1, {"kernels": "FAILED"}))
        self.assertIn("cudnn of relu(float32 [64]) of cnn2/64: it fell over", report["parts"][0]["notes"])
        done, report = self.check("--quick", "--resume", "--only", "kernels")
        self.assertEqual((done.returncode, self.statuses(report)), (0, {"kernels": "passed"}), "timed again")
        self.assertEqual(len(report["parts"][0]["details"]["rows"]), 8)

    def test_resuming_measures_what_is_missing(self):
        gpu_fakes.sanitizer(self.folder / "tools")
        done, report = self.check("--only", "operators,kernels,speed", "--networks", "cnn2", "--batches", "64")
        self.assertEqual(self.statuses(report), {"operators": "passed", "kernels": "passed", "speed": "passed"}, done.stderr)
        # As if one mode of one cell, and a part, had not been reached.
        del report["parts"][2]["details"]["cells"]["cnn2/64"]["compiled"]
        report["parts"][2]["checks"][0]["verdict"] = "skipped"
        file = self.folder / "results/results.json"
        file.write_text(json.dumps(report))
        done, report = self.check("--resume", "--networks", "cnn2,lenet5", "--batches", "64")
        self.assertEqual((done.returncode, self.statuses(report)), (0, dict.fromkeys(PARTS, "passed")), done.stdout)
        self.assertNotIn(" operators: ", done.stderr, "it had passed")
        self.assertIn(" kernels: lenet5/64 ", done.stderr, "cnn2's are known")
        self.assertIn(" speed: lenet5/64, plain ", done.stderr)
        self.assertIn(" speed: cnn2/64, lenet5/64, compiled ", done.stderr)
        speed = next(part for part in report["parts"] if part["name"] == "speed")
        del speed["details"]["cells"]["cnn2/64"]["plain"]["contestants"]["arenite/arenite"]["traced"]
        file.write_text(json.dumps(report))
        done, report = self.check("--resume", "--networks", "cnn2,lenet5", "--batches", "64")
        self.assertIn(" speed: cnn2/64, plain ", done.stderr, "its kernels were not recorded")
        self.assertNotIn(" compiled ", done.stderr)
        file.write_text(file.read_text().replace('"PyTorch": "2.0', '"PyTorch": "1.9'))
        done, report = self.check("--resume", "--networks", "cnn2", "--batches", "64")
        self.assertIn(" speed: cnn2/64, plain ", done.stderr, "of another PyTorch")
        notes = next(part["notes"] for part in report["parts"] if part["name"] == "speed")
        self.assertIn("measured anew, for the earlier cells are of PyTorch 1.9", " ".join(notes))
        done, report = self.check("--resume", "--only", "training", gpu_accuracy=20.0)
        self.assertEqual((done.returncode, self.statuses(report)), (0, dict.fromkeys(PARTS, "passed")), "it had passed")

    def test_resuming_does_what_less_was_asked_for(self):
        gpu_fakes.sanitizer(self.folder / "tools")
        done, report = self.check("--only", "speed", "--networks", "cnn2", "--batches", "64")
        self.assertEqual(self.statuses(report), {"speed": "passed"}, done.stderr)
        done, report = self.check("--resume", "--only", "speed", "--batches", "64")
        self.assertIn(" speed: lenet5/64, cnn1/64, vgg-small/64, plain ", done.stderr)
        self.assertIn("vgg-small, batch 64: ours over the best, CUDA graphs", [row["what"] for row in report["parts"][0]["checks"]])
        self.check("--quick", "--only", "operators,sanitizer,training")
        done, report = self.check("--quick", "--resume", "--only", "operators,sanitizer,training")
        self.assertNotRegex(done.stderr, " (operators|sanitizer|training): ")
        done, report = self.check("--resume", "--only", "operators,sanitizer,training")
        self.assertNotIn(" operators: ", done.stderr)
        self.assertIn(" sanitizer: ", done.stderr)
        self.assertIn(" training: cnn2 on cuda, seed 3 ", done.stderr)

    def test_resuming_elsewhere_is_refused(self):
        done, report = self.check("--quick", "--only", "operators")
        file = self.folder / "results/results.json"
        file.write_text(file.read_text().replace("A fake GPU", "Another"))
        done, again = self.check("--quick", "--resume")
        self.assertEqual(done.returncode, 2)
        self.assertIn("the results are of GPU 'Another (1024 MiB)', and this is 'A fake GPU (1024 MiB)'", done.stderr)
        before = json.loads(file.read_text().replace("Another", "A fake GPU"))
        before["environment"]["cuDNN of ours"] = "9.1.0"
        file.write_text(json.dumps(before))
        done, again = self.check("--quick", "--resume")
        self.assertEqual(done.returncode, 2)
        self.assertIn("the results are of cuDNN of ours '9.1.0', and this is 'none'", done.stderr)
        for text, words in (("{", "results.json: JSONDecodeError"), ('{"format": "x", "version": 1}', "expected arenite-gpu-check")):
            file.write_text(text)
            done = subprocess.run(self.command("--resume"), capture_output=True, text=True, cwd=self.folder)
            self.assertEqual((done.returncode, file.read_text()), (2, text))
            self.assertIn(words, done.stderr)

    def test_who_kills_it_finds_what_was_done(self):
        beside = self.command("--resume", hangs="train")  # before the programs are begun that it writes
        process = self.begun("training: cnn2", "--quick", hangs="train")
        done = subprocess.run(beside, capture_output=True, text=True, cwd=self.folder, env=self.environment())
        self.assertEqual(done.returncode, 2)
        self.assertIn("results: another gpu-check is running there", done.stderr)
        children = self.children(process.pid)
        process.kill()
        process.wait()
        self.assertTrue(children)
        for child in children:
            self.wait_for_end(child)
        report = self.results()
        self.assertEqual(self.statuses(report)["operators"], "passed")
        whys = {part["name"]: part["skipped"] for part in report["parts"]}
        self.assertEqual((whys["allocations"], whys["speed"]), ("not reached", "not reached"))
        self.assertEqual([part["name"] for part in report["parts"] if part["running"]], ["training"])

    def test_what_was_measured_outlives_a_resume_that_does_not_come_to_it(self):
        self.check("--only", "speed", "--networks", "cnn2", "--batches", "64")
        before = self.results()["parts"][0]["details"]["cells"]
        self.assertEqual(set(before["cnn2/64"]), {"plain", "compiled"})
        process = self.begun("training: cnn2", "--resume", "--quick", "--networks", "cnn2", hangs="train")
        process.kill()
        process.wait()
        speed = next(part for part in self.results()["parts"] if part["name"] == "speed")
        self.assertEqual((speed["details"]["cells"], speed["skipped"]), (before, "not reached"))
        # Nor does one that finds no PyTorch lose what the other has measured.
        command = self.command("--resume", "--only", "speed", "--networks", "cnn2", "--batches", "64")
        command[command.index("--python") + 1] = shutil.which("true")
        subprocess.run(command, capture_output=True, cwd=self.folder, env=self.environment())
        speed = next(part for part in self.results()["parts"] if part["name"] == "speed")
        self.assertEqual(speed["details"]["cells"], before)
        self.assertFalse([note for note in speed["notes"] if "anew" in note])

    def test_who_ends_it_has_not_to_wait(self):
        process = self.begun("training: cnn2", "--quick", hangs="train")
        start = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 143)
        self.assertLess(time.monotonic() - start, 10)
        self.assertEqual(self.statuses(self.results())["operators"], "passed")

    def test_an_older_python_is_told_of(self):
        begin = "import runpy, sys; sys.version_info = (3, 8, 10); runpy.run_path(sys.argv[1], run_name='__main__')"
        done = subprocess.run([sys.executable, "-c", begin, str(ROOT / "scripts/gpu-check")], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (2, "gpu-check: this is Python 3.8; expected 3.9 or newer\n"))

    def test_sanitizer_begins_no_run_that_has_no_time(self):
        gpu_fakes.sanitizer(self.folder / "tools", takes=1.3)
        done, report = self.check("--only", "sanitizer", "--minutes", "1")  # ten seconds for this part
        rows = report["parts"][0]["checks"]
        self.assertEqual((rows[0]["verdict"], rows[-1]["found"]), ("passed", "skipped: no time was left; --resume begins here"))
        self.assertEqual(self.statuses(report), {"sanitizer": "incomplete"})

    def test_where_nothing_can_be_written(self):
        done = subprocess.run(self.command("--quick", "--only", "operators"), capture_output=True, text=True, cwd="/proc",
                              env=self.environment() | {"TMPDIR": str(self.folder)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"the tables go to {self.folder}/arenite-gpu-check", done.stderr)
        self.assertTrue((self.folder / "arenite-gpu-check/results.md").exists())

    def test_a_program_that_does_not_load_has_failed(self):
        command = self.command("--quick")
        gpu_fakes.program(self.folder / "a build/contestant", "import sys; sys.exit('no GLIBC_2.99')")
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.statuses(self.results()), dict.fromkeys(PARTS, "FAILED"))
        self.assertIn("GLIBC_2.99", self.results()["parts"][0]["checks"][0]["found"])

    def test_the_gpu_that_was_asked_for_is_the_only_one(self):
        done, report = self.check("--quick", "--only", "operators", "--device", "cuda:1", seen=("1",))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_what_fails_is_named_and_the_rest_runs(self):
        gpu_fakes.sanitizer(self.folder / "tools", hazards=3)
        done, report = self.check("--quick", gpu_accuracy=80.0, leak=1, tests_fail=True)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.statuses(report), dict.fromkeys(PARTS[:4], "FAILED") | {"kernels": "passed", "speed": "incomplete"})
        found = {check["what"]: check for part in report["parts"] for check in part["checks"]}
        self.assertEqual(found["test accuracy, GPU less CPU, mean of 1 seeds"]["found"], "-7.00 points")
        self.assertEqual(found["cudaMalloc a step (beyond 20 steps, 180 more)"]["found"], "1 (all in all: ours 205)")
        self.assertEqual(found["heap calls of ours, StarPU's and the system's in 70 steps more"]["found"], "program 70")
        self.assertIn("3 hazards", found["racecheck: cnn1, steps one by one, our kernels"]["found"])

    def test_a_program_that_dies_costs_its_part_alone(self):
        done, report = self.check("--quick", "--only", "training,allocations,speed", dies="train")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.statuses(report), {"training": "FAILED", "allocations": "FAILED", "speed": "incomplete"})
        self.assertIn("ended with status 3: out of breath", report["parts"][0]["checks"][0]["found"])

    def test_no_sanitizer_no_pytorch(self):
        build = gpu_fakes.build(self.folder / "build")
        done = subprocess.run([sys.executable, str(ROOT / "scripts/gpu-check"), "--build", str(build), "--quick", "--only",
                               "sanitizer,speed", "--python", shutil.which("true")], capture_output=True, text=True, cwd=self.folder,
                              env=os.environ | {"PATH": "/nonexistent"})
        table = (self.folder / "results/results.md").read_text()
        if not nvidia.find_tool("compute-sanitizer"):
            self.assertIn("| sanitizer | skipped: no compute-sanitizer", table)
        self.assertIn(f"no PyTorch in {shutil.which('true')}", table)
        self.assertIn(f"beside PyTorch | skipped: no PyTorch in {shutil.which('true')} ", table)
        self.assertIn("| speed | incomplete, 4 skipped |", table)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_gpu_that_lets_one_process_in(self):
        gpu_fakes.program(self.folder / "tools/nvidia-smi", "import sys\nprint('7, python, 300 MiB' if 'apps' in sys.argv[-2] else "
                          "'570.1, 81559 MiB, 9.0, 1980 MHz, Exclusive_Process')")
        done, report = self.check("--quick", "--only", "speed", "--networks", "cnn2")
        rows = {check["what"]: check["found"] for check in report["parts"][0]["checks"]}
        self.assertIn("the GPU's compute mode is Exclusive_Process", rows["cnn2, batch 64: beside PyTorch"])
        self.assertEqual(report["environment"]["others on the GPU at the end"], "7, python, 300 MiB")

    def test_no_device(self):
        done, report = self.check(devices=False)
        self.assertEqual(done.returncode, 77, done.stderr)
        for part in report["parts"]:
            self.assertEqual(part["status"], "skipped")
            self.assertRegex(part["skipped"], r"^no device: .*a fake without one")
        self.assertEqual([part["name"] for part in report["parts"]], PARTS)
        done, report = self.check("--device", "cuda:3")
        self.assertRegex(report["parts"][0]["skipped"], "^no device: .*cuda:3: a fake without one")

    def test_a_bundle_whose_libraries_are_missing(self):
        bundle = self.folder / "bundle"
        gpu_fakes.build(bundle / "bin")
        shutil.copy2(ROOT / "scripts/gpu-check", bundle)
        shutil.copytree(ROOT / "scripts/gpu_check", bundle / "gpu_check")
        (bundle / "MANIFEST").write_text("Arenite\ncommit: abc\nprocessor: no_such_flag\nnvidia: libcudart.so.99\n\n")
        done = subprocess.run([sys.executable, str(bundle / "gpu-check")], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 1 if nvidia.driver_is_there() else 77, done.stderr)
        self.assertIn("missing libraries of NVIDIA's: libcudart.so.99", done.stdout)
        self.assertIn("this processor lacks no_such_flag", done.stderr)
        self.assertIn("| bundle's commit | abc |", (self.folder / "results/results.md").read_text())

    def test_wrong_use(self):
        for arguments, words in ((["--only", "colour"], "'colour' is none of operators"),
                                 (["--minutes", "0"], "invalid minutes"), (["--device", "cpu"], "expected cuda or cuda:N"),
                                 (["--python", "/no/python"], "no program there"),
                                 (["--libraries", "/no/folder"], "no folder there"), (["--networks", "vgg"], "'vgg' is none of"),
                                 (["--batches", "64,1"], "'1' is none of 64, 256, 1024"),
                                 (["--batches", "x"], "'x' are no numbers")):
            done = subprocess.run([sys.executable, str(ROOT / "scripts/gpu-check"), *arguments], capture_output=True, text=True,
                                  cwd=self.folder)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(words, done.stderr)
        done = subprocess.run([sys.executable, str(ROOT / "scripts/gpu-check"), "--build", "nowhere"], capture_output=True,
                              text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("nowhere/arenite; build it: ", done.stderr)
        self.assertFalse((self.folder / "results").exists())


if __name__ == "__main__":
    unittest.main()
