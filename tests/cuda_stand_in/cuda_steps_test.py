#!/usr/bin/env python3
"""What a CUDA build's programs ask of CUDA, on its stand-in: all but the kernels is what runs on a GPU, StarPU's driver included.
Usage: cuda_steps_test.py BUILD STAND_IN"""
import json
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from in_folder import InFolder  # noqa: E402

BUILD, STAND_IN = (pathlib.Path(argument).absolute() for argument in (sys.argv.pop(1), sys.argv.pop(1)))
STEPS, EVALUATIONS = 20, 16  # of an epoch: 1,280 images to train on, and 1,000 to test on, by 64
EPOCHS = 2  # more in one run than in the other
MORE = EPOCHS * (STEPS + EVALUATIONS)
STATISTICS = EPOCHS * 4  # copies: cleared before a sweep, and read behind it


class Steps(InFolder):
    def run_on(self, *arguments, **environment):
        report = self.folder / "report.json"
        environment |= {"LD_PRELOAD": str(STAND_IN), "CUDA_STAND_IN_REPORT": str(report)}
        done = subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True, cwd=self.folder,
                              env=os.environ | environment)
        return done, json.loads(report.read_text()) if report.exists() else None

    def train(self, *options, epochs=1, **environment):
        return self.run_on(BUILD / "arenite", "train", "--dataset", "synthetic", "--limit", STEPS * 64, "--epochs", epochs,
                           "--model", "cnn1", *options, **environment)

    def trained(self, *options, epochs=1):
        done, report = self.train(*options, epochs=epochs)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(report["device_bytes_left"], 0)
        return report

    def of_steps(self, *options):
        """What so many epochs more ask for."""
        few, many = (self.trained(*options, epochs=epochs) for epochs in (1, 1 + EPOCHS))
        return {name: many[name] - few[name] for name in ("launches", "step_launches", "copies")}

    def test_a_step_is_one_launch_and_one_copy(self):
        self.assertEqual(self.of_steps("--device", "cuda"),
                         {"launches": 0, "step_launches": MORE, "copies": MORE + STATISTICS})

    def test_batches_that_are_copied_are_recorded_too(self):
        self.assertEqual(self.of_steps("--device", "cuda", "--resident-data", "off"),
                         {"launches": 0, "step_launches": 2 * MORE, "copies": STATISTICS})

    def test_without_recordings_kernels_are_launched(self):
        asked = self.of_steps("--device", "cuda", "--cuda-graphs", "off")
        self.assertEqual(asked["step_launches"], 0)
        self.assertGreater(asked["launches"], 5 * MORE)

    def test_kernels_are_put_in_place_early_where_that_is_wanted(self):
        done, report = self.train("--device", "cuda")
        self.assertGreater(report["early_launches"], 5)
        done, report = self.train("--device", "cuda", ARENITE_EARLY_LAUNCHES="off")
        self.assertEqual((done.returncode, report["early_launches"]), (0, 0))
        self.assertGreater(report["launches"], 5)
        done, _ = self.train("--device", "cuda", ARENITE_EARLY_LAUNCHES="no")
        self.assertEqual(done.returncode, 2)
        self.assertIn("ARENITE_EARLY_LAUNCHES='no'; expected on, or off to begin each kernel when the one before it has ended",
                      done.stderr)

    def test_only_gpus_that_were_asked_for_are_touched(self):
        for device, contexts in (("cpu", []), ("cuda", [0]), ("cuda:1", [1]), ("cuda+cpu", [0]), ("cuda:0+cuda:1", [0, 1])):
            with self.subTest(device=device):
                self.assertEqual(self.trained("--device", device)["contexts"], contexts)

    def test_branches_that_cuda_refuses_are_told_of_and_done_without(self):
        explained = ["train", "--dataset", "synthetic", "--limit", "640", "--epochs", "1", "--device", "cuda", "--explain"]
        done, _ = self.run_on(BUILD / "arenite", *explained)
        self.assertEqual(done.returncode, 0, done.stderr)
        done, _ = self.run_on(BUILD / "arenite", *explained, CUDA_STAND_IN_NO_BRANCHES="1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "^arenite: not recorded in branches: program 'train', .*: CUDA: an error of the "
                         "stand-in's; expected a task that CUDA can record")
        self.assertIn(", recorded, ", done.stdout)
        self.assertNotIn(" branches", done.stdout)

    def test_a_gpu_that_fails_while_programs_are_built_is_an_error(self):
        done, _ = self.train("--device", "cuda", CUDA_STAND_IN_LAUNCHES="5")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.splitlines()[-1],
                         "^arenite: program 'train', .*: CUDA: an illegal address, on a stand-in; expected ")

    def test_a_gpu_that_fails_is_told_of_before_starpu_ends_the_process(self):
        built = self.trained("--device", "cuda", epochs=0)["graph_launches"]  # about: it times some
        done, _ = self.train("--device", "cuda", epochs=20, CUDA_STAND_IN_LAUNCHES=str(built + 10 * STEPS))
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr.splitlines()[0], r"^arenite: GPU 0: an illegal address, on a stand-in "
                         r"\(program '(train|evaluate|evaluate\.rest)', step \d+ or behind it\)$")

    def test_gpu_check_finds_no_allocation_and_launches_all_kernels(self):
        done, _ = self.run_on(sys.executable, ROOT / "scripts" / "gpu-check", "--build", BUILD, "--quick", "--only",
                              "allocations,kernels", "--networks", "cnn1,vgg-small", "--minutes", "20")
        table = (self.folder / "results" / "results.md").read_text()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + table)
        results = json.loads((self.folder / "results" / "results.json").read_text())
        self.assertEqual({part["name"]: part["status"] for part in results["parts"]},
                         {"allocations": "passed", "kernels": "passed"}, table)


if __name__ == "__main__":
    unittest.main()
