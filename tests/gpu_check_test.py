#!/usr/bin/env python3
"""What scripts/gpu-check is made of, piece by piece."""
import functools
import gzip
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

import gpu_fakes
from in_folder import InFolder

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "gpu_check"))

import allocations  # noqa: E402
import context  # noqa: E402
import correctness  # noqa: E402
import elf  # noqa: E402
import goals  # noqa: E402
import nvidia  # noqa: E402
import places  # noqa: E402
import reading  # noqa: E402
import results  # noqa: E402
import running  # noqa: E402
import speed  # noqa: E402
import subset  # noqa: E402


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
                                       "\tlibgone.so => not found\n\tliba.so => /a b/liba.so (0x7f)\n\t/lib64/ld-linux-x86-64.so.2 (0x7f)\n"),
                         {"libz.so.1": "/lib/libz.so.1", "libgone.so": None, "liba.so": "/a b/liba.so",
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
            found = nvidia.find_libraries(["libcublas.so.13"], [folder / "torch", folder / "toolkit"],
                                          {"libcublas.so.13": ["/cache/libcublas.so.13"]}, lambda path: "cache" not in str(path))
            self.assertEqual(found, ([folder / "toolkit"], []), "one that does not fit is left for one that does")
            self.assertEqual(nvidia.others(missing, folders, cache), {"libcudart.so.13": f"libcudart.so.12 in {folder}/torch"})

    def test_libraries_of_pip_and_conda(self):
        with tempfile.TemporaryDirectory() as folder:
            wheel = pathlib.Path(folder) / "site[1]/nvidia/cu13/lib"
            wheel.mkdir(parents=True)
            found = nvidia.candidates([{"sites": [f"{folder}/site[1]"], "prefix": f"{folder}/conda"}])
            self.assertEqual([path for path in found if folder in str(path)], [wheel, pathlib.Path(folder) / "conda/lib"])

    def test_pythons_without_a_pytorch_that_sees_a_gpu(self):
        words = nvidia.why_no_torch([{"python": "a", "torch": "2.0", "available": False},
                                     {"python": "b", "error": "ModuleNotFoundError: no torch"}])
        self.assertEqual(words, "PyTorch 2.0 of a sees no GPU; no PyTorch in b (ModuleNotFoundError: no torch); --python FILE "
                         "names a Python that has it")
        known = nvidia.find_pythons(sys.executable)[0]
        self.assertEqual((known["python"], known["prefix"]), (sys.executable, sys.prefix))

    def test_a_gpu_among_those_that_may_be_seen(self):
        for listed, index, found in ((None, 2, "2"), ("3,5", 1, "5"), ("GPU-a, GPU-b", 0, "GPU-a"), ("", 1, "1")):
            environment = {} if listed is None else {"CUDA_VISIBLE_DEVICES": listed}
            self.assertEqual(nvidia.visible(index, environment), found)

    def test_a_driver_that_is_too_old(self):
        words = "the driver is for CUDA 12.8, and the programs are for CUDA 13: they need a newer driver, or its package " \
                "cuda-compat-13-0, whose folder LD_LIBRARY_PATH names"
        for drivers, compatible, path, why in (({None: 13020}, [], None, None), ({None: 0}, ["/c"], None, None),
                                               ({None: 12080}, [], None, words), ({None: 12080, "/c": 12090}, ["/c"], None, words),
                                               ({None: 12080, "/c": 13000}, ["/c"], "/c", None)):
            one = types.SimpleNamespace(environment={}, cuda="13")
            with mock.patch.object(nvidia, "newer_drivers", return_value=compatible), \
                    mock.patch.object(nvidia, "driver_cuda", lambda environment: drivers[environment.get("LD_LIBRARY_PATH")]):
                self.assertEqual(context.Context.old_driver(one), why)
            self.assertEqual(one.environment.get("LD_LIBRARY_PATH"), path)
        self.assertEqual(nvidia.driver_cuda({"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": "/nonexistent"}) % 10, 0)

    def test_other_gpus_are_left_alone(self):
        two = [{"name": "A", "uuid": "1"}, {"name": "B", "uuid": "2"}]
        for wanted, there, seen, left in (("cuda", two, None, "0"), ("cuda", two, "5,3", "5"), ("cuda:1", two, "5,3", "3"),
                                          ("cuda", two[:1], None, None)):
            with mock.patch.dict(os.environ), mock.patch.object(nvidia, "gpus", return_value=there):
                os.environ.pop("CUDA_VISIBLE_DEVICES", None)
                if seen:
                    os.environ["CUDA_VISIBLE_DEVICES"] = seen
                one = types.SimpleNamespace(wanted_device=wanted, visible=seen, all_gpus=True)
                context.Context.see_one_device(one)
                self.assertEqual(os.environ.get("CUDA_VISIBLE_DEVICES"), left)
                one.environment = dict(os.environ)
                self.assertEqual(context.Context.for_small_programs(one).get("CUDA_VISIBLE_DEVICES"), seen)
                one.all_gpus = False
                self.assertEqual(context.Context.for_small_programs(one).get("CUDA_VISIBLE_DEVICES"), left)

    def test_versions_that_are_needed(self):
        own = elf.Dynamic(next(path for name, path in elf.libraries(sys.executable).items() if name == "libc.so.6"))
        python = elf.Dynamic(os.path.realpath(sys.executable))
        self.assertRegex(python.glibc(), r"^GLIBC_2\.\d+$")
        self.assertNotIn("libc.so.6", own.versions())
        self.assertEqual(elf.newest(["GLIBC_2.9", "GLIBC_2.34", "GLIBC_PRIVATE", "GLIBCXX_3.4.30"], "GLIBC"), "GLIBC_2.34")
        self.assertEqual(elf.newest([], "GLIBC"), "")

    def test_a_machine_that_is_too_old(self):
        with tempfile.TemporaryDirectory() as folder:
            home = pathlib.Path(folder)
            (home / "MANIFEST").write_text("Arenite\nglibc: 2.34\nC++ library: GLIBCXX_3.4.30 CXXABI_1.3.13\n\n")
            found = places.Places(home)
            self.assertIsNone(found.too_old("2.34"))
            self.assertRegex(found.too_old("2.9"), "^this machine's glibc is 2.9; the programs need 2.34: ")
            library = home / "libstdc++.so.6"
            self.assertEqual(found.fallback([library]), home / "lib/fallback")
            library.write_bytes(b"\0GLIBCXX_3.4.30\0CXXABI_1.3.13\0")
            self.assertIsNone(found.fallback(["/nonexistent/libstdc++.so.6", library]))
            library.write_bytes(b"\0GLIBCXX_3.4.3\0CXXABI_1.3.13\0")
            self.assertEqual(found.fallback([library]), home / "lib/fallback")

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
        text = "[ RUN      ] A.B\n../a.cpp:98: Skipped\nno device: none\n[  SKIPPED ] A.B (0 ms)\n[ RUN      ] A.C\n" \
               "../a.cpp:9: Skipped\nnot here\n\n[  SKIPPED ] A.C (0 ms)\n"
        self.assertEqual(reading.gtest_skips(text), {"A.B": "no device: none", "A.C": "not here"})
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
        self.assertEqual(results.status_of([passed]), ("passed", 0))
        self.assertEqual(results.status_of([passed, skipped]), ("incomplete", 0))
        passed.skip("z", "no time")
        self.assertEqual([part.outcome for part in (passed, failed, skipped)],
                         ["incomplete, 1 skipped", "FAILED, 1 failed", "skipped: no tool"])
        self.assertEqual(results.status_of([passed, failed]), ("FAILED", 1))
        self.assertEqual(results.status_of([skipped]), ("skipped", 0))
        text = results.markdown({"GPU": "a|b"}, [passed, skipped])
        self.assertIn("| GPU | a\\|b |", text)
        self.assertIn("| c | skipped: no tool | 0 |", text)

    def test_out_of_time_is_no_fault(self):
        for done, verdict in ((running.Done(None, "", "", 1), "skipped"), (running.Done(1, "", "oh", 1), "FAILED")):
            part = running.Part("a")
            try:
                reading.ended(done, "a run")
            except (reading.NotSaid, running.OutOfTime) as error:
                part.program("trains", error)
            self.assertEqual(part.checks[0].verdict, verdict)
            tests, sanitized = running.Part("b"), running.Part("c")
            correctness.judge_tests(tests, "tests", done)
            correctness.judge_sanitizer(sanitized, "memcheck", done, True)
            self.assertEqual([tests.checks[0].verdict, sanitized.checks[0].verdict], [verdict, verdict])

    def test_what_failed_before_its_time_was_over_did_fail(self):
        part = running.Part("operators")
        text = "b.cpp:1: Failure\n1 is not 2\n[  FAILED  ] A.A (1 ms)\n[ RUN      ] A.B\ncase: conv2d [4, 3] same\n"
        for out in text, text.replace("Failure", "fine"):
            correctness.judge_tests(part, "tests", running.Done(None, out, "a warning", 60))
        self.assertEqual([(check.verdict, check.found) for check in part.checks],
                         [("FAILED", "1 failures, and not done after 60 s, at conv2d [4, 3] same"),
                          ("skipped", "skipped: not done after 60 s, at conv2d [4, 3] same")])
        self.assertEqual(part.notes, ["b.cpp:1: Failure"])
        part = running.Part("sanitizer")
        text = "========= COMPUTE-SANITIZER\n========= Invalid __global__ write of size 4 bytes\n=========     at f\n"
        for judged in True, False:
            correctness.judge_sanitizer(part, "memcheck", running.Done(None, text, "", 10), judged)
        self.assertEqual([(check.verdict, check.found) for check in part.checks],
                         [("FAILED", "1 reports, and not done after 10 s"), ("skipped", "skipped: not done after 10 s")])
        self.assertEqual(part.notes, ["========= Invalid __global__ write of size 4 bytes"])

    def test_tests_that_are_skipped(self):
        """They are told, and no pass; but gpu-check has found a device, and whoever has not is wrong."""
        for why, verdicts in (("no second GPU", ["passed", "skipped"]), ("no device: none", ["FAILED", "skipped"])):
            part = running.Part("operators")
            text = f"a.cpp:1: Skipped\n{why}\n[  SKIPPED ] A.B (0 ms)\n[==========] 2 tests ran.\n[  PASSED  ] 1 test.\n" \
                   "[  SKIPPED ] 1 test, listed below:\n"
            correctness.judge_tests(part, "tests", running.Done(0, text, "", 1))
            self.assertEqual([check.verdict for check in part.checks], verdicts)

    def test_a_program_is_ended_in_time(self):
        begin = time.monotonic()
        done = running.run(["sh", "-c", "echo begun; exec sleep 60"], 2)
        self.assertIsNone(done.status)
        self.assertRegex(done.why, r"^not done after \d+ s: begun$")
        self.assertLess(time.monotonic() - begin, 50)
        self.assertEqual(running.run(["/no/such/program"], 1).status, 127)

    def test_a_program_whose_parent_was_killed_before_it_does_not_begin(self):
        for parent, status in ((os.getpid(), 0), (os.getpid() + 1, -signal.SIGKILL)):
            done = subprocess.run(["true"], preexec_fn=functools.partial(running.end_with, parent))
            self.assertEqual(done.returncode, status)

    def test_somebody_looks_on(self):
        looks = []
        done = running.run([sys.executable, "-c", "import time; print('a'); time.sleep(2.5)"], 20, None,
                           lambda: looks.append(time.monotonic()))
        self.assertEqual((done.status, done.out), (0, "a\n"))
        self.assertGreaterEqual(len(looks), 2)


class Preloading(InFolder):
    def test_where_the_loader_would_split_the_path(self):
        for name, moved in (("a b", False), ("a:b", True), ("a;b", True)):
            library = self.folder / name / "libcounter.so"
            library.parent.mkdir()
            library.write_text(name)
            found = allocations.preloaded({"LD_LIBRARY_PATH": "/x", "A": "b"}, library, self.folder)
            home = self.folder if moved else library.parent
            self.assertEqual(found, {"LD_PRELOAD": "libcounter.so", "LD_LIBRARY_PATH": f"{home}:/x", "A": "b"})
            self.assertEqual((home / "libcounter.so").read_text(), name)


def contestant(rate, loss=0.5, spread=1.0, **more):
    return {"samples_per_second": rate, "rates": [rate], "spread": spread, "loss": loss, **more}


TRACED = {"not_kernels": 0.05, "kernels_per_step": 9.0, "busy_us_per_step": 100.0}


class Speed(unittest.TestCase):
    def judged(self, batch, ours, compiled=True, no_torch="", absent=(), **modes):
        """The part's rows of one cell, {what: check}, without the cell's name."""
        part = running.Part("speed")
        contestants = {"arenite/arenite": ours} | {f"pytorch/cuda_{way}": one for way, one in modes.items()}
        goals.judge(part, [f"cnn2/{batch}"], {f"cnn2/{batch}": {"plain": {"contestants": contestants, "absent": list(absent)}}},
                    no_torch, compiled)
        self.part = part
        return {check.what.partition(": ")[2]: check for check in part.checks}

    def verdicts(self, batch, eager, graphs, compiled=4):
        found = self.judged(batch, contestant(300, **TRACED), eager=contestant(300 / eager), graphs=contestant(300 / graphs),
                            **({"compile": contestant(300 / compiled)} if compiled else {}))
        return [check.verdict for what, check in found.items() if what.startswith("ours over")]

    def test_goals(self):
        self.assertEqual(self.verdicts(64, 3.1, 1.3), ["passed", "passed"])
        self.assertEqual(self.verdicts(64, 2.9, 1.1), ["FAILED", "FAILED"])
        self.assertEqual(self.verdicts(256, 2.9, 1.0), ["passed"])
        self.assertEqual(self.verdicts(256, 2.9, 0.9), ["FAILED"])

    def test_a_mode_that_is_missing_may_be_the_best(self):
        self.assertEqual(self.verdicts(64, 3.1, 1.3, compiled=None), ["passed", "skipped"])
        self.assertEqual(self.verdicts(64, 3.1, 1.1, compiled=None), ["passed", "FAILED"])
        found = self.judged(64, contestant(300, **TRACED), compiled=False, eager=contestant(90), graphs=contestant(200))
        self.assertEqual(found["ours over the best"].found, "skipped: 1.50× of CUDA graphs, without max-autotune; wanted ≥ 1.2×")
        self.assertIn("--quick compiles nothing", found["PyTorch max-autotune"].found)

    def test_what_is_missing_is_no_pass(self):
        rows = self.judged(64, contestant(300, **TRACED), absent=["pytorch/cuda_compile: no C compiler (cnn2, batch 64, cuda)"],
                           graphs=contestant(200))
        self.assertEqual(rows["PyTorch eager"].found, "skipped: no time was left; --resume goes on with it")
        self.assertIn("no C compiler", rows["PyTorch max-autotune"].found)
        self.assertEqual(self.part.status, "incomplete")
        part = running.Part("speed")
        goals.judge(part, speed.cells_of(speed.NETWORKS, speed.BATCHES), {}, "", True)
        self.assertEqual([check.verdict for check in part.checks], ["skipped"] * 12)
        self.assertEqual(part.status, "skipped")
        rows = self.judged(64, contestant(300, **TRACED), no_torch="none")
        self.assertEqual(rows["beside PyTorch"].verdict, "skipped")
        rows = self.judged(64, contestant(300, **TRACED), no_torch="none", eager=contestant(90))
        self.assertNotIn("beside PyTorch", rows)
        self.assertEqual((rows["ours over eager"].verdict, rows["PyTorch CUDA graphs"].found), ("passed", "skipped: none"))

    def test_losses(self):
        for ours, theirs, verdict in ((0.4, 0.5, "passed"), (1.4, 0.5, "passed"), (2.3, 0.5, "FAILED"),
                                      (float("nan"), 0.5, "FAILED"), (None, 0.5, "FAILED"), (0.4, float("inf"), "FAILED")):
            rows = self.judged(64, contestant(300, ours, **TRACED), eager=contestant(100, theirs))
            self.assertEqual(rows["losses in the last round"].verdict, verdict, (ours, theirs))

    def test_rounds_far_apart_are_told(self):
        rows = self.judged(256, contestant(300, spread=1.3, **TRACED), eager=contestant(100, spread=1.1),
                           graphs=contestant(60), compile=contestant(50))
        self.assertEqual(rows["ours over the best, eager"].found, "3.00× (rounds apart: ours 1.30)")

    def test_a_recording_that_is_not_believed_is_no_fault(self):
        what = "share of our step that is not kernels"
        self.assertEqual(self.judged(64, contestant(300, **TRACED))[what].verdict, "passed")
        self.assertEqual(self.judged(64, contestant(300, **(TRACED | {"not_kernels": 0.2})))[what].verdict, "FAILED")
        row = self.judged(64, contestant(300, traced={"error": "no kernel was recorded"}))[what]
        self.assertEqual((row.verdict, row.found), ("skipped", "skipped: no kernel was recorded"))

    def test_ratios_are_of_the_measurement_that_has_the_mode(self):
        row = goals.row_of({"plain": {"contestants": {"arenite/arenite": contestant(300), "pytorch/cuda_eager": contestant(100)},
                                      "absent": []},
                            "compiled": {"contestants": {"arenite/arenite": contestant(280),
                                                         "pytorch/cuda_compile": contestant(140)}, "absent": []}})
        self.assertEqual((row["ours"], row["ratios"]), (300, {"eager": 3.0, "max-autotune": 2.0}))

    def test_order_of_cells(self):
        self.assertEqual(speed.cells_of(speed.NETWORKS, (256, 64))[:5],
                         ["cnn2/64", "lenet5/64", "cnn1/64", "vgg-small/64", "cnn2/256"])


if __name__ == "__main__":
    unittest.main()
