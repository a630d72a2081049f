#!/usr/bin/env python3
"""The counter of CUDA's memory, before a libcudart that is none. Usage: counter_test.py COUNTER PROGRAM"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest


def counted(steps, *more, **environment):
    """What the counter wrote of counted_program; None where it wrote nothing."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "counts.json"
        done = subprocess.run([PROGRAM, str(steps), *more], capture_output=True, text=True, env=os.environ | {
            "LD_PRELOAD": COUNTER, "ARENITE_CUDA_COUNTS": str(file)} | environment)
        if done.returncode or done.stderr:
            raise AssertionError(f"status {done.returncode}: {done.stderr}")
        return json.loads(file.read_text()) if file.exists() else None


class Counter(unittest.TestCase):
    def test_counts_calls_by_who_made_them(self):
        calls = counted(0)["calls"]
        made = {name: by for name, by in calls.items() if any(by.values())}
        self.assertEqual(made, {
            "cudaMalloc": {"ours": 2, "starpu": 1, "nvidia": 0}, "cudaFree": {"ours": 3, "starpu": 0, "nvidia": 0},
            "cudaMallocPitch": {"ours": 1, "starpu": 0, "nvidia": 0},
            "cudaHostRegister": {"ours": 1, "starpu": 0, "nvidia": 0},
            "cudaHostUnregister": {"ours": 1, "starpu": 0, "nvidia": 0}})

    def test_holds_bytes_until_they_are_given_back(self):
        counts = counted(0)
        self.assertEqual(counts["peak_device_bytes"], {"ours": 1000 + 768, "starpu": 64, "nvidia": 0, "all": 1832})
        self.assertEqual(counts["device_bytes_left"], {"ours": 768, "starpu": 0, "nvidia": 0, "all": 768})
        self.assertEqual(counts["untracked"], 0)

    def test_peaks_begin_anew_when_programs_are_built(self):
        counts = counted(0, "build")
        self.assertEqual(counts["peak_device_bytes_while_building"], {"ours": 6768, "starpu": 64, "nvidia": 0, "all": 6832})
        self.assertEqual(counts["peak_device_bytes"], {"ours": 1768, "starpu": 64, "nvidia": 0, "all": 1832})
        self.assertNotIn("peak_device_bytes_while_building", counted(0))

    def test_loses_no_call_of_any_thread(self):
        counts = counted(5000)
        for name in "cudaMallocAsync", "cudaFreeAsync":
            self.assertEqual(counts["calls"][name]["ours"], 4 * 5000)
        self.assertEqual(counts["device_bytes_left"]["all"], 768)

    def test_writes_nothing_unasked(self):
        self.assertIsNone(counted(0, ARENITE_CUDA_COUNTS=""))


if __name__ == "__main__":
    COUNTER, PROGRAM = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
    unittest.main()
