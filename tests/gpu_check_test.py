#!/usr/bin/env python3
"""scripts/gpu-bundle and scripts/gpu-check as far as a machine without a GPU can. Usage: gpu_check_test.py BUILD

Programs that answer as a GPU's would stand in for those of a build; a build with CUDA is bundled, too, and the bundle run."""
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import gpu_fakes

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "gpu_check"))

import elf  # noqa: E402
import nvidia  # noqa: E402
import places  # noqa: E402
import reading  # noqa: E402
import results  # noqa: E402
import running  # noqa: E402
import speed  # noqa: E402
import subset  # noqa: E402

PARTS = ["operators", "sanitizer", "training", "allocations", "speed"]


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def idx(self, name, *extents, packed=False):
        count = 1
        for extent in extents:
            count *= extent
        data = b"\0\0\x08" + bytes([len(extents)]) + b"".join(e.to_bytes(4, "big") for e in extents) + bytes(
            i % 256 for i in range(count))
        (self.folder / (name + ".gz" * packed)).write_bytes(gzip.compress(data) if packed else data)
        return data


class Libraries(unittest.TestCase):
    def test_whose_a_library_is(self):
        for name, kind in {"libc.so.6": "glibc", "ld-linux-x86-64.so.2": "glibc", "libm.so.6": "glibc", "librt.so.1": "glibc",
                           "libcuda.so.1": "nvidia", "libcudart.so.13": "nvidia", "libcublasLt.so.13": "nvidia",
                           "libnvJitLink.so.13": "nvidia", "libnvrtc-builtins.so.13.0": "nvidia", "libcudnn.so.9": "nvidia",
                           "libcudnn_engines_precompiled.so.9": "nvidia", "libcusparse.so.12": "nvidia",
                           "libstarpu-1.4.so.9": "bundled", "libstdc++.so.6": "bundled", "libcrypto.so.3": "bundled",
                           "libgcc_s.so.1": "bundled", "libcurl.so.4": "bundled", "libmd.so.0": "bundled",
                           "libgomp.so.1": "bundled"}.items():
            self.assertEqual(elf.kind(name), kind, name)

    def test_what_ldd_says(self):
        self.assertEqual(elf.parse_ldd("\tlinux-vdso.so.1 (0x7ff)\n\tlibz.so.1 => /lib/libz.so.1 (0x7f)\n"
                                       "\tlibgone.so => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x7f)\n"),
                         {"libz.so.1": "/lib/libz.so.1", "libgone.so": None,
                          "ld-linux-x86-64.so.2": "/lib64/ld-linux-x86-64.so.2"})

    def test_no_elf_file(self):
        with self.assertRaisesRegex(elf.NoElf, "gpu_check_test.py is no ELF file"):
            elf.Dynamic(__file__)

    def test_nvidias_are_found_where_they_are(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for place in "toolkit/libcublas.so.13", "torch/libcudart.so.12":
                (folder / place).parent.mkdir()
                (folder / place).touch()
            cache = nvidia.parse_cache("2 libs found\n\tlibnvJitLink.so.13 (libc6,x86-64) => /usr/lib/libnvJitLink.so.13\n"
                                       "\tlibold.so (libc6) => /usr/lib32/libold.so\n")
            self.assertEqual(cache, {"libnvJitLink.so.13": ["/usr/lib/libnvJitLink.so.13"]})
            folders = [folder / "torch", folder / "toolkit"]
            chosen, missing = nvidia.find_libraries(["libnvJitLink.so.13", "libcublas.so.13", "libcudart.so.13"], folders, cache)
            self.assertEqual((chosen, missing), ([folder / "toolkit"], ["libcudart.so.13"]))
            self.assertEqual(nvidia.others(missing, folders, cache), {"libcudart.so.13": f"libcudart.so.12 in {folder}/torch"})

    def test_what_a_processor_lacks(self):
        manifest = places.read_manifest("Arenite\ncommit: 1 2\nprocessor: avx2 avx512f\n\n 12 bin/a: b\n")
        self.assertEqual(manifest, {"commit": "1 2", "processor": "avx2 avx512f"})
        self.assertEqual(places.lacking(manifest, "model name : x\nflags\t\t: sse2 avx2\n"), ["avx512f"])
        self.assertEqual(places.lacking({"processor": "any x86-64"}, "flags : sse2\n"), [])


class Subsets(InFolder):
    def test_the_first_images(self):
        (self.folder / "set").mkdir()
        for split, count in (("train", 6), ("test", 4)):
            images, labels = (f"set/{name}" for name in subset.FILES[split])
            self.idx(images, count, 3, 2, packed=split == "train")
            self.idx(labels, count)
        kept = subset.cut(self.folder / "set", self.folder / "out", 5, 100)
        self.assertEqual(kept, {"train": 5, "test": 4})
        data = gzip.decompress((self.folder / "out/train-images-idx3-ubyte.gz").read_bytes())
        self.assertEqual(data, b"\0\0\x08\x03" + bytes([0, 0, 0, 5, 0, 0, 0, 3, 0, 0, 0, 2]) + bytes(range(30)))

    def test_what_is_no_set(self):
        with self.assertRaisesRegex(subset.BadData, "no a in "):
            subset.read(self.folder, "a")
        (self.folder / "a.gz").write_bytes(b"no gzip")
        with self.assertRaisesRegex(subset.BadData, "a.gz: "):
            subset.read(self.folder, "a")
        whole = self.idx("b", 4, 2)
        for bad in b"", b"\0\0\x09\1\0\0\0\0", whole[:-1], whole + b"x", b"\0\0\x08\xff\0\0\0\0":
            with self.assertRaises(subset.BadData):
                subset.first(bad, 2, "b")


class Reading(unittest.TestCase):
    def test_what_training_says(self):
        text = gpu_fakes.training(accuracy=87.65, sha="ab" * 32, steps=20)
        self.assertEqual((reading.accuracy(text), reading.sha256(text), reading.steps(text)), (87.65, "ab" * 32, 20))
        self.assertEqual(reading.heap_calls(text), (0, 0, 20, 16))
        self.assertEqual(reading.device_bytes(text), 9000)
        self.assertEqual(reading.device_blocks(text), {"state": 5000, "step": 4000})
        for read in reading.accuracy, reading.sha256, reading.heap_calls, reading.device_bytes:
            with self.assertRaises(reading.NotSaid):
                read("nothing of the kind")

    def test_what_tests_say(self):
        text = "[==========] 3 tests from 1 test suite ran. (12 ms total)\n[  PASSED  ] 1 test.\n[  SKIPPED ] 1 test, listed " \
               "below:\n[  SKIPPED ] A.B\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.C\n"
        self.assertEqual(reading.gtest(text), (1, 1, 1))
        with self.assertRaises(reading.NotSaid):
            reading.gtest("[ RUN      ] A.B\n")

    def test_what_the_sanitizer_says(self):
        self.assertEqual(reading.sanitizer("x\n========= ERROR SUMMARY: 0 errors\n"), (0, "ERROR SUMMARY: 0 errors"))
        self.assertEqual(reading.sanitizer("========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)\n")[0], 2)

    def test_calls_a_step(self):
        few, many = gpu_fakes.counts(5, 1), gpu_fakes.counts(5 + 180, 1)
        self.assertEqual(reading.call_difference(few, many, 180), {
            "cudaMalloc": {"ours": 1, "starpu": 0}, "cudaHostAlloc": {"ours": 0, "starpu": 0}})


class Results(unittest.TestCase):
    def test_statuses(self):
        passed, failed, skipped = (running.Part(name) for name in "abc")
        passed.check("x", "1", "1", True), failed.check("y", "2", "1", False)
        skipped.skipped = "no tool"
        self.assertEqual([part.status for part in (passed, failed, skipped)], ["passed", "FAILED", "skipped"])
        passed.skip("z", "no time")
        self.assertEqual([part.outcome for part in (passed, failed, skipped)],
                         ["passed, 1 skipped", "FAILED, 1 failed", "skipped: no tool"])
        self.assertEqual(results.status_of([passed, skipped]), ("passed", 0))
        self.assertEqual(results.status_of([passed, failed]), ("FAILED", 1))
        text = results.markdown({"GPU": "a|b"}, [passed, skipped])
        self.assertIn("| GPU | a\\|b |", text)
        self.assertIn("| c | skipped: no tool | 0 |", text)

    def test_goals_of_speed(self):
        def row(**ratios):
            return {"ours": 300.0, "modes": dict.fromkeys(ratios, 100.0), "ratios": ratios, "not_kernels": {"ours": 0.05}}

        for batch, ratios, verdicts in ((64, {"eager": 3.1, "CUDA graphs": 1.3}, ["passed"] * 3),
                                        (64, {"eager": 2.9, "CUDA graphs": 1.1}, ["FAILED", "FAILED", "passed"]),
                                        (256, {"eager": 2.9, "CUDA graphs": 1.0}, ["passed"] * 2),
                                        (256, {"eager": 2.9, "CUDA graphs": 0.9}, ["FAILED", "passed"]),
                                        (64, {}, ["skipped", "passed"])):
            part = running.Part("speed")
            speed.judge_row(part, "cnn2", batch, row(**ratios))
            self.assertEqual([check.verdict for check in part.checks], verdicts, ratios)

    def test_what_is_compiled_when_time_is_short(self):
        self.assertEqual(speed.cells()[:5], [("cnn2", 64), ("lenet5", 64), ("cnn1", 64), ("vgg-small", 64), ("cnn2", 256)])
        self.assertEqual(speed.ways_of(False, True), ["cuda_eager", "cuda_graphs", "cuda_compile"])
        self.assertEqual(speed.ways_of(True, True), ["cuda_eager", "cuda_graphs"])
        self.assertTrue(speed.compiles(64, 280, 12))
        self.assertFalse(speed.compiles(64, 90, 9))
        self.assertFalse(speed.compiles(256, 280, 8))
        self.assertTrue(speed.compiles(256, 1200, 8))

    def test_a_program_is_ended_in_time(self):
        done = running.run([sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(60)"], 0.5)
        self.assertIsNone(done.status)
        self.assertRegex(done.why, "^not done after [01] s: begun$")
        self.assertEqual(running.run(["/no/such/program"], 1).status, 127)


class Command(InFolder):
    """The whole command, with programs that answer as a GPU's would."""

    def check(self, *arguments, environment=None, **how):
        build = gpu_fakes.build(self.folder / "build", **how)
        python = gpu_fakes.python(self.folder / "python")
        done = subprocess.run(
            [sys.executable, str(ROOT / "scripts/gpu-check"), "--build", str(build), "--python", str(python), *arguments],
            capture_output=True, text=True, cwd=self.folder,
            env=os.environ | {"PATH": f"{self.folder}/tools:{os.environ['PATH']}", **(environment or {})})
        file = self.folder / "results/results.json"
        return done, json.loads(file.read_text()) if file.exists() else None

    def statuses(self, report):
        return {part["name"]: part["status"] for part in report["parts"]}

    def test_all_is_well(self):
        gpu_fakes.sanitizer(self.folder / "tools")
        done, report = self.check("--quick")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + (self.folder / "results/results.md").read_text())
        self.assertEqual(self.statuses(report), dict.fromkeys(PARTS, "passed"))
        self.assertEqual((report["format"], report["status"], report["environment"]["GPU"]),
                         ("arenite-gpu-check", "passed", "A fake GPU (1024 MiB)"))
        table = (self.folder / "results/results.md").read_text()
        for row in ("| test accuracy, GPU less CPU, mean of 1 seeds | +0.25 points | within ±0.5 | passed |",
                    "| ours and StarPU's are the plan's | 9,000 bytes | 9,000 bytes | passed |",
                    "| heap calls of ours, StarPU's and the system's in 70 steps more | 0 | 0 | passed |",
                    "| heap calls of NVIDIA's libraries in 70 steps more | libcuda.so.1 140 |  | - |",
                    "| cnn2 | 64 | 400 | 100 (4.00×) | 200 (2.00×) | - |",
                    "| cnn2 | 64 | 5.0 % | 80.0 % | 80.0 % | not measured |"):
            self.assertIn(row, table)
        self.assertRegex(done.stderr, r"\[0:\d\d\] training: cnn2 on cuda, seed 1 \(ETA: done in 9:\d\d at most\)")

    def test_what_fails_is_named_and_the_rest_runs(self):
        gpu_fakes.sanitizer(self.folder / "tools", hazards=3)
        done, report = self.check("--quick", gpu_accuracy=80.0, leak=1, tests_fail=True)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.statuses(report), dict.fromkeys(PARTS[:4], "FAILED") | {"speed": "passed"})
        found = {check["what"]: check for part in report["parts"] for check in part["checks"]}
        self.assertEqual(found["test accuracy, GPU less CPU, mean of 1 seeds"]["found"], "-7.00 points")
        self.assertEqual(found["cudaMalloc a step (beyond 20 steps, 180 more)"]["found"], "1 (all in all: ours 205)")
        self.assertEqual(found["heap calls of ours, StarPU's and the system's in 70 steps more"]["found"], "program 70")
        self.assertIn("3 hazards", found["racecheck: cnn1, steps one by one"]["found"])

    def test_a_program_that_dies_costs_its_part_alone(self):
        done, report = self.check("--quick", "--only", "training,allocations,speed", dies="train")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.statuses(report), {"training": "FAILED", "allocations": "FAILED", "speed": "passed"})
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
        self.assertIn("beside PyTorch | skipped: PyTorch did not train", table)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_no_device(self):
        done, report = self.check(devices=False)
        self.assertEqual(done.returncode, 77, done.stderr)
        for part in report["parts"]:
            self.assertEqual(part["status"], "skipped")
            self.assertRegex(part["skipped"], r"^no device: .*a fake without one")
        self.assertEqual([part["name"] for part in report["parts"]], PARTS)
        done, report = self.check("--device", "cuda:3")
        self.assertEqual(report["parts"][0]["skipped"], "no device: cuda:3 is none of cuda:0")

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
                                 (["--python", "/no/python"], "no program there")):
            done = subprocess.run([sys.executable, str(ROOT / "scripts/gpu-check"), *arguments], capture_output=True, text=True,
                                  cwd=self.folder)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(words, done.stderr)
        done = subprocess.run([sys.executable, str(ROOT / "scripts/gpu-check"), "--build", "nowhere"], capture_output=True,
                              text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("nowhere/arenite; build it: ", done.stderr)
        self.assertFalse((self.folder / "results").exists())


class Bundle(InFolder):
    def bundle(self, *arguments, build=None):
        command = [sys.executable, ROOT / "scripts/gpu-bundle", "--no-build", "--build", build or BUILD, "-o",
                   self.folder / "bundle", "--images", "64", *arguments]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True)

    def test_wrong_use(self):
        done = self.bundle(build=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"no build in {self.folder}; make one: ", done.stderr)
        (self.folder / "bundle").mkdir()
        (self.folder / "bundle/mine").write_text("precious")
        done = self.bundle()
        self.assertEqual((done.returncode, (self.folder / "bundle/mine").read_text()), (1, "precious"))
        self.assertIn("bundle holds something else; expected no such folder", done.stderr)
        self.assertEqual(self.bundle("--images", "1").returncode, 2)

    def test_runs_from_anywhere_with_nothing_but_itself(self):
        parts = [BUILD / "gpu_contestant", BUILD / "tests/gpu_programs_test", BUILD / "libarenite_cuda_counter.so"]
        if not all(part.exists() for part in parts):
            self.skipTest("no CUDA build with the target gpu_bundle_parts")
        done = self.bundle()
        self.assertEqual(done.returncode, 0, done.stderr)
        moved, empty = self.folder / "moved", self.folder / "empty"
        shutil.move(self.folder / "bundle", moved)
        empty.mkdir()
        files = [path for path in moved.rglob("*") if path.is_file()]
        self.assertLessEqual(sum(path.stat().st_size for path in files), 60 << 20)
        for path in files:
            self.assertNotEqual(elf.kind(path.name), "nvidia", path)
            self.assertNotEqual(elf.kind(path.name), "glibc", path)
        for library, place in elf.libraries(moved / "bin/arenite").items():
            if elf.kind(library) == "bundled":
                self.assertEqual(pathlib.Path(place).resolve().parent, moved / "lib", library)
        # A machine that has a device shows none to those who may see none.
        done = subprocess.run([str(moved / "gpu-check")], cwd=empty, capture_output=True, text=True,
                              env={"CUDA_VISIBLE_DEVICES": "", "PATH": "/usr/bin:/bin"})
        self.assertEqual(done.returncode, 77, done.stdout + done.stderr)
        report = json.loads((empty / "results/results.json").read_text())
        self.assertEqual([part["name"] for part in report["parts"]], PARTS)
        for part in report["parts"]:
            self.assertTrue(part["skipped"].startswith("no device: "), part)
        table = (empty / "results/results.md").read_text()
        self.assertEqual(len(re.findall(r"^skipped: no device: ", table, re.M)), len(PARTS))
        done = subprocess.run([str(moved / "bin/arenite"), "train", "--dataset", "synthetic", "--limit", "100", "--epochs", "1",
                               "--model", "mlp"], cwd=empty, capture_output=True, text=True, env={})
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
