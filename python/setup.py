"""Builds libarenite.so with CMake and puts it into the package: one wheel for every Python.

ARENITE_CMAKE_ARGS: more arguments for CMake, as "-DARENITE_NATIVE=OFF" for a wheel that other
    machines run.
ARENITE_BUILD_DIR: a build of the repository to take the library from, brought up to date first.
"""

import os
import pathlib
import shlex
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1
    from wheel.bdist_wheel import bdist_wheel

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
LIBRARY = "libarenite.so"


def built_library(folder):
    """Builds the library, nothing else, and returns where it is."""
    if not (ROOT / "src/c_api").is_dir():
        raise SystemExit(
            f"no C++ sources in {ROOT}; expected to be built inside of the repository: pip install "
            "./python"
        )
    if os.environ.get("ARENITE_BUILD_DIR"):
        folder = pathlib.Path(os.environ["ARENITE_BUILD_DIR"])
    else:
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        subprocess.run(
            [
                "cmake",
                "-S",
                ROOT,
                "-B",
                folder,
                *generator,
                "-DCMAKE_BUILD_TYPE=Release",
                "-DARENITE_TESTS=OFF",
                "-DARENITE_BENCH=OFF",
                *shlex.split(os.environ.get("ARENITE_CMAKE_ARGS", "")),
            ],
            check=True,
        )
    subprocess.run(
        [
            "cmake",
            "--build",
            folder,
            "--target",
            "arenite_shared",
            "--parallel",
            str(os.cpu_count()),
        ],
        check=True,
    )
    return folder / LIBRARY


class BuildWithLibrary(build_py):
    def run(self):
        # Modules of an earlier build would stay.
        shutil.rmtree(pathlib.Path(self.build_lib) / "arenite", ignore_errors=True)
        super().run()
        folder = pathlib.Path(self.get_finalized_command("build").build_temp).resolve() / "cmake"
        into = (
            HERE / "arenite"
            if getattr(self, "editable_mode", False)
            else pathlib.Path(self.build_lib) / "arenite"
        )
        shutil.copy(built_library(folder), into / LIBRARY)


class WheelOfThisPlatform(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class WithBinary(Distribution):
    def has_ext_modules(self):
        return True


setup(
    cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": WheelOfThisPlatform},
    distclass=WithBinary,
)
