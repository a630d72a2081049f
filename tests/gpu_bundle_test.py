#!/usr/bin/env python3
"""scripts/gpu-bundle: a build with CUDA is bundled, and the bundle run. Usage: gpu_bundle_test.py BUILD"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from in_folder import InFolder

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "gpu_check"))

import elf  # noqa: E402

PARTS = ["operators", "sanitizer", "training", "allocations", "kernels", "speed"]


class Bundle(InFolder):
    def bundle(self, *arguments, build=None):
        command = [sys.executable, ROOT / "scripts/gpu-bundle", "--no-build", "--build", build or BUILD, "-o",
                   self.folder / "bundle", *arguments]
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

    def one_library(self):
        """Whether programs share it, as those of the preset bundle do: else each has its own, and little is left for images."""
        return "ARENITE_ONE_LIBRARY:BOOL=ON\n" in (BUILD / "CMakeCache.txt").read_text()

    def test_runs_from_anywhere_with_nothing_but_itself(self):
        parts = [BUILD / "gpu_contestant", BUILD / "tests/gpu_programs_test", BUILD / "libarenite_cuda_counter.so"]
        if not all(part.exists() for part in parts):
            self.skipTest("no CUDA build with the target gpu_bundle_parts")
        done = self.bundle(*([] if self.one_library() else ["--images", "64"]))
        self.assertEqual(done.returncode, 0, done.stderr)
        moved, empty = self.folder / "moved here: now", self.folder / "empty"
        shutil.move(self.folder / "bundle", moved)
        empty.mkdir()
        files = [path for path in moved.rglob("*") if path.is_file()]
        self.assertLessEqual(sum(path.stat().st_size for path in files), (50 if self.one_library() else 60) << 20)
        for path in files:  # Ubuntu 22.04 has 2.35, and what Debian 12 builds is to run there
            if path.parent.name in ("bin", "lib") and elf.number(os.confstr("CS_GNU_LIBC_VERSION")) <= (2, 36):
                self.assertLessEqual(elf.number(elf.Dynamic(path).glibc()), (2, 35), path)
        for path in files:
            self.assertNotEqual(elf.kind(path.name), "nvidia", path)
            self.assertNotEqual(elf.kind(path.name), "glibc", path)
        for library, place in elf.libraries(moved / "bin/arenite").items():
            if library in ("libstdc++.so.6", "libgcc_s.so.1"):
                self.assertTrue((moved / "lib/fallback" / library).exists())
                self.assertNotIn(str(moved), str(place), "the machine's own, where it has one")
            elif elf.kind(library) == "bundled":
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
