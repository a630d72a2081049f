#!/usr/bin/env python3
"""The projects that have Arenite's sources in them, by add_subdirectory. All of the library is built once more: what ccache
knows takes seconds. Usage: install_sources_test.py BUILD_FOLDER"""
import contextlib
import re
import shutil
import unittest

import install_testing as testing
from install_testing import CONSUMER, ROOT, compile_command, run

# So that ccache knows the objects: as the build at hand, and always in the same folder. It says nothing of speed, and is
# not optimised.
SAME = ("CMAKE_CXX_FLAGS", "CMAKE_PREFIX_PATH", "ARENITE_WERROR", "ARENITE_NATIVE", "ARENITE_CHECKED",
        "ARENITE_PLAIN_KERNELS")


@contextlib.contextmanager
def fresh(folder):
    """It is empty, and is gone afterwards."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Sources(unittest.TestCase):
    def test_they_hand_on_nothing_of_ours(self):
        with fresh(testing.BUILD.with_name(testing.BUILD.name + "-sources")) as build:
            same = [f"-D{name}={testing.CACHE[name]}" for name in SAME if name in testing.CACHE]
            testing.configure(CONSUMER / "cpp", build, f"-DARENITE_SOURCE={ROOT}", "-DARENITE_CUDA=OFF", "-DCMAKE_BUILD_TYPE=None", *same)
            flags = compile_command(build)
            self.assertIn(f"-I{ROOT}/include", flags)
            self.assertFalse([flag for flag in flags if re.match("-[Wf]|-DARENITE|-isystem", flag)])
            for room in ("tests", "bench", "examples"):
                self.assertFalse((build / "arenite" / room).exists())
            self.assertNotIn("areniteConfig", (build / "arenite/cmake_install.cmake").read_text())
            run(testing.CMAKE, "--build", build, timeout=1700)
            self.assertRegex(run(build / "train", env={}), r"^peak 12288, optimal\nloss ")
            made = {path.name for path in build.iterdir()} - {"arenite", "train"}
            self.assertFalse({name for name in made if "arenite" in name}, "all of ours stays in a folder of its own")


if __name__ == "__main__":
    testing.main()
