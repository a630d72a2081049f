#!/usr/bin/env python3
"""The wheel: one for every Python, with the library in it, and nothing else to install but NumPy.

ARENITE_BUILD_DIR names a build to take the library from; without it all is built. Nothing is
downloaded.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

import testing

MISSING = []
for module in ("pip", "setuptools", "wheel"):
    if (
        subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode
        != 0
    ):
        MISSING.append(module)
if MISSING:
    print(f"SKIPPED: {sys.executable} has no {', '.join(MISSING)}", file=sys.stderr)
    sys.exit(testing.SKIPPED)


class Wheel(unittest.TestCase):
    def test_it_is_built_installed_and_used(self):
        with tempfile.TemporaryDirectory() as folder:
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
            built = subprocess.run(
                [
                    *pip,
                    "wheel",
                    "--no-build-isolation",
                    "--no-deps",
                    "--no-index",
                    "-w",
                    folder,
                    testing.ROOT / "python",
                ],
                capture_output=True,
                text=True,
            )
            self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
            (wheel,) = pathlib.Path(folder).glob("*.whl")
            self.assertRegex(wheel.name, r"^arenite-[\d.]+-py3-none-linux_\w+\.whl$")
            names = zipfile.ZipFile(wheel).namelist()
            for name in ("arenite/libarenite.so", "arenite/py.typed", "arenite/__init__.py"):
                self.assertIn(name, names)
            modules = {name for name in names if name.endswith(".py")}
            package = testing.ROOT / "python/arenite"
            self.assertEqual(modules, {f"arenite/{path.name}" for path in package.glob("*.py")})

            site = pathlib.Path(folder) / "site"
            subprocess.run(
                [*pip, "install", "--no-deps", "--no-index", "--target", site, wheel],
                check=True,
                capture_output=True,
            )
            environment = {
                name: value for name, value in os.environ.items() if name != "ARENITE_LIBRARY"
            }
            environment["PYTHONPATH"] = str(site)
            done = subprocess.run(
                [sys.executable, "-m", "arenite"],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
            )
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(f"({site / 'arenite' / 'libarenite.so'})", done.stdout)


if __name__ == "__main__":
    testing.main()
