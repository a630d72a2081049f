#!/usr/bin/env python3
"""`cmake --install`: what it installs stands where docs/install.md says, works from any folder, and is found and used by
the projects in tests/consumer. Usage: install_test.py BUILD_FOLDER"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import tempfile
import unittest

import install_testing as testing
from install_testing import CONSUMER, NO_ENVIRONMENT, ROOT, compile_command, files, install, run

PAGE = (ROOT / "docs/install.md").read_text(encoding="utf-8")
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
# GCC's -Wextra wants every field of a designated initializer.
STRICT_USE = [*STRICT, "-Wno-missing-field-initializers"]


def setUpModule():
    global FOLDER, PREFIX, MOVED, COMPLETIONS
    folder = tempfile.TemporaryDirectory(prefix="arenite-install-")
    unittest.addModuleCleanup(folder.cleanup)
    MOVED = testing.Moved(folder.name)
    FOLDER, PREFIX = MOVED.folder, MOVED.prefix
    COMPLETIONS = testing.CACHE.get("ARENITE_COMPLETIONS") == "ON"


def configure(source, build, *arguments, **how):
    return testing.configure(source, build, f"-DCMAKE_PREFIX_PATH={MOVED.places}", *arguments, **how)


class Files(unittest.TestCase):
    def test_they_stand_where_the_page_says(self):
        if testing.CACHE["CMAKE_BUILD_TYPE"] != "Release" or testing.CACHE["CMAKE_INSTALL_LIBDIR"] != "lib" or not COMPLETIONS:
            self.skipTest("the page shows a build for release with all its parts, by default folders")
        (shown,) = [block.split() for block in re.findall(r"^```text\n(.*?)^```$", PAGE, re.M | re.S)]
        stands = [name for name in files(PREFIX) if not re.match("include/arenite/.*/|share/doc/arenite/docs/", name)]
        self.assertEqual(shown, sorted(stands))

    def test_the_manifest_names_all(self):
        self.assertEqual(MOVED.manifest, files(PREFIX))

    def test_every_public_header_is_there(self):
        public = {f"include/{name}" for name in files(ROOT / "include")}
        self.assertGreater(len(public), 40)
        self.assertEqual({name for name in files(PREFIX) if name.startswith("include/")} - public,
                         {"include/arenite/hamkaas.h"})
        self.assertLessEqual(public, files(PREFIX))

    def test_every_page_is_there(self):
        """With whatever of it links lead to."""
        pages = {f"share/doc/arenite/docs/{name}" for name in files(ROOT / "docs")}
        self.assertEqual({name for name in files(PREFIX) if name.startswith("share/doc/arenite/docs/")}, pages)
        for path in sorted((PREFIX / "share/doc/arenite").rglob("*.md")):
            for target in re.findall(r"\]\(([\w./-]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
                original = (ROOT / path.parent.relative_to(PREFIX / "share/doc/arenite") / target).resolve()
                if original.is_relative_to(ROOT / "docs") or original == ROOT / "README.md":
                    self.assertTrue((path.parent / target).exists(), f"{path}: {target}")

    def test_components_share_them_out(self):
        parts = []
        for component in ("command", "libraries", "development"):
            place = FOLDER / component
            install(place, "--component", component)
            parts.append(files(place) - {"share/doc/arenite/LICENSE"})
        command, libraries, development = parts
        self.assertIn("bin/arenite", command)
        self.assertFalse([name for name in command if name.startswith(("include/", "lib/cmake"))])
        self.assertFalse([name for name in libraries if not re.search(r"/lib(arenite|hamkaas)\.so\.", name)])
        self.assertEqual(command | libraries | development, files(PREFIX) - {"share/doc/arenite/LICENSE"})
        self.assertEqual(sum(map(len, parts)), len(files(PREFIX)) - 1)

    def test_none_knows_where_it_was_made(self):
        for name in files(PREFIX):
            content = (PREFIX / name).read_bytes()
            with self.subTest(file=name):
                self.assertNotIn(os.fsencode(MOVED.first), content)
                if b"\0" not in content:
                    for place in (testing.BUILD, ROOT / "include", ROOT / "src", ROOT / "cmake"):
                        self.assertNotIn(os.fsencode(place), content)

    def test_shared_libraries_carry_their_version(self):
        for name in ("arenite", "hamkaas"):
            library = MOVED.libraries / f"lib{name}.so"
            self.assertRegex(os.readlink(library), rf"^lib{name}\.so\.\d+\.\d+$")
            self.assertEqual(library.resolve().name, f"lib{name}.so.{testing.VERSION}")


class Page(unittest.TestCase):
    def test_its_commands(self):
        """All of them, in a home of their own. What would install packages, and build what is built, stands in."""
        if not COMPLETIONS or testing.CACHE.get("CMAKE_PREFIX_PATH"):
            self.skipTest("the page is for builds with completions, on the system's libraries")
        home, clone = FOLDER / "home", FOLDER / "clone"
        (clone / "build").mkdir(parents=True)
        home.mkdir()
        (clone / "build/release").symlink_to(testing.BUILD)
        (clone / "tests").symlink_to(ROOT / "tests")
        (clone / "scripts").mkdir()
        for name in ("install-deps", "build", "build-starpu"):
            (clone / "scripts" / name).write_text("#!/bin/sh\necho stands in\n")
            (clone / "scripts" / name).chmod(0o755)
        blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)
        self.assertGreater(len(blocks), 5)
        with testing.manifests_kept():
            for block in blocks:
                if "xargs" in block:  # never what somebody else has installed
                    listed = (testing.BUILD / "install_manifest.txt").read_text().splitlines()
                    self.assertEqual([path for path in listed if not path.startswith(f"{home}/")], [])
                run("bash", "-euo", "pipefail", "-c", block, cwd=clone, env=dict(os.environ, HOME=str(home)))
        self.assertEqual(files(home / "arenite"), set())


class Headers(unittest.TestCase):
    def test_each_stands_alone(self):
        empty = FOLDER / "empty"
        empty.mkdir()
        include = PREFIX / "include"
        jobs = [(testing.CXX, "c++", "-std=c++20", name) for name in files(include)]
        if testing.CC:
            jobs += [(testing.CC, "c", "-std=c99", name) for name in files(include) if name.endswith(".h")]

        def check(job):
            compiler, language, standard, name = job
            run(compiler, standard, *STRICT, "-fsyntax-only", "-I", include, "-x", language, "-", cwd=empty,
                stdin=f"#include <{name}>\n")

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for job, done in [(job, pool.submit(check, job)) for job in jobs]:
                with self.subTest(header=job[3], compiler=job[0]):
                    done.result()


class Consumers(unittest.TestCase):
    def assert_trains(self, program):
        printed = run(program, env=NO_ENVIRONMENT)
        self.assertRegex(printed, r"^peak 12288, optimal\nloss 2\.\d+ -> [01]\.\d+\n$")

    def assert_evaluates(self, program):
        self.assertEqual(run(program, env=NO_ENVIRONMENT), f"version {testing.VERSION}: 3 0, 7 0\n")

    def test_cpp_by_find_package(self):
        build = FOLDER / "cpp"
        configure(CONSUMER / "cpp", build, "-DCMAKE_CXX_FLAGS=" + " ".join(STRICT_USE))
        flags = compile_command(build)
        self.assertEqual({flag for flag in flags if re.match("-[WDf]", flag)}, set(STRICT_USE) - {"-pedantic"})
        self.assertEqual([flags[at + 1] for at, flag in enumerate(flags) if flag == "-isystem"], [str(PREFIX / "include")])
        self.assertFalse([flag for flag in flags if flag.startswith("-I")])
        run(testing.CMAKE, "--build", build)
        self.assert_trains(build / "train")

    def test_cpp_by_pkg_config(self):
        (include,) = MOVED.pkg_config("--cflags", "arenite")
        self.assertEqual(include[:2], "-I")
        self.assertEqual(pathlib.Path(include[2:]).resolve(), PREFIX / "include")
        libraries = MOVED.pkg_config("--libs", "arenite")
        # Folders outside of the system's are the caller's affair when a program begins.
        found = [f"-Wl,-rpath,{flag[2:]}" for flag in libraries if flag.startswith("-L")]
        run(testing.CXX, "-std=c++20", *STRICT_USE, include, CONSUMER / "cpp/train.cpp", *libraries, *found, "-o", FOLDER / "train")
        self.assert_trains(FOLDER / "train")

    def test_c_by_find_package(self):
        if not testing.CC:
            self.skipTest("no C compiler")
        build = FOLDER / "c"
        configure(CONSUMER / "c", build, f"-DCMAKE_C_COMPILER={testing.CC}", "-DCMAKE_C_FLAGS=-std=c99 " + " ".join(STRICT))
        run(testing.CMAKE, "--build", build)
        self.assert_evaluates(build / "evaluate")
        self.assertEqual(run(build / "inverse", env=NO_ENVIRONMENT), "0.5 0.25\n")

    def test_c_by_pkg_config(self):
        if not testing.CC:
            self.skipTest("no C compiler")
        self.assertEqual(MOVED.pkg_config("--modversion", "arenite-c"), [testing.VERSION])
        (folder,) = MOVED.pkg_config("--variable=libdir", "arenite-c")
        run(testing.CC, "-std=c99", *STRICT, CONSUMER / "c/evaluate.c", *MOVED.pkg_config("--cflags", "--libs", "arenite-c"),
            f"-Wl,-rpath,{folder}", "-o", FOLDER / "evaluate")
        self.assert_evaluates(FOLDER / "evaluate")


class Refusals(unittest.TestCase):
    def refused(self, project, find):
        """What CMake says, on one line."""
        source = FOLDER / "refused"
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir()
        (source / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.25)\nproject({project})\n"
                                               f"find_package(arenite {find} REQUIRED)\n")
        return " ".join(configure(source, source / "build", status=1).split())

    def test_another_version(self):
        major, minor, _ = map(int, testing.VERSION.split("."))
        for version in ("99", "0.0", f"{major}.{minor - 1}", f"{major}.{minor + 1}"):
            with self.subTest(version=version):
                said = self.refused("none LANGUAGES NONE", version)
                self.assertIn(f'configuration file for package "arenite" that is compatible with requested version '
                              f'"{version}"', said)
                self.assertIn(f"areniteConfig.cmake, version: {testing.VERSION}", said)

    def test_an_unknown_component(self):
        self.assertIn("no component 'fortran' in", self.refused("none LANGUAGES NONE", "COMPONENTS fortran"))

    def test_cpp_in_a_project_without(self):
        said = self.refused("none LANGUAGES NONE", "COMPONENTS cpp")
        self.assertIn("the component cpp needs a project of C++", said)

    def test_a_library_that_is_gone(self):
        env = dict(os.environ, PKG_CONFIG_LIBDIR=str(FOLDER))
        env.pop("PKG_CONFIG_PATH", None)
        said = configure(CONSUMER / "cpp", FOLDER / "gone", "-DPKG_CONFIG_USE_CMAKE_PREFIX_PATH=OFF", env=env, status=1)
        self.assertRegex(" ".join(said.split()), r"pkg-config finds no starpu-1\.\d, which the library was built with")


class Command(unittest.TestCase):
    """From where the folder was moved to, with an empty environment, in a folder of its own."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))

    def arenite(self, *arguments):
        return run(PREFIX / "bin/arenite", *arguments, cwd=self.folder, env=NO_ENVIRONMENT)

    def test_version(self):
        self.assertEqual(self.arenite("--version").splitlines()[0], f"arenite {testing.VERSION}")

    def test_plans(self):
        (self.folder / "table.csv").write_text("id,lower,upper,size\na,0,3,4096\nb,1,2,8192\nc,2,4,8192\n")
        self.assertIn("peak 12,288 bytes, optimal", self.arenite("plan", "table.csv"))

    def test_helps_name_pages_that_are_there(self):
        pages = PREFIX / "share/doc/arenite"
        for command in ((), ("train",), ("plan",), ("doctor",), ("completion",)):
            with self.subTest(command=command):
                said = " ".join(self.arenite(*command, "--help").split())
                names, place = re.search(r"Read on: (.*) in (/\S+)$", said).groups()
                self.assertEqual(pathlib.Path(place), pages)
                for name in re.split(", | and ", names):
                    self.assertTrue((pages / name).is_file(), name)

    def test_hints_name_the_script_that_is_there(self):
        """Which runs from any folder, and mends what the doctor finds."""
        script = PREFIX / "share/arenite/datasets/fetch"
        sets, data = self.folder / "sets", os.environ.get("ARENITE_DATASETS")
        (sets / "fashion-mnist").mkdir(parents=True)
        (sets / "fashion-mnist/train-images-idx3-ubyte").write_bytes(b"no images")
        env = {"ARENITE_DATASETS": str(sets), "ARENITE_CACHE": str(self.folder / "cache")}
        said = run(PREFIX / "bin/arenite", "doctor", "data", cwd=self.folder, env=env, status=1)
        command = f"{script} --to {sets}/fashion-mnist fashion-mnist"
        self.assertIn(f"fetch it again: {command}", " ".join(said.split()))
        said = run(PREFIX / "bin/arenite", "train", "--dataset", "mnist", cwd=self.folder, env=env, status=2)
        self.assertIn(f"(hint: fetch it: {script} mnist; or set ARENITE_DATASETS", said)
        if not data or not os.path.isdir(f"{data}/fashion-mnist") or not shutil.which("curl"):
            self.skipTest("Fashion-MNIST is not here (ARENITE_DATASETS), or no curl, which reads file://")
        run("sh", "-c", command, cwd=self.folder, env=dict(env, PATH=os.environ["PATH"], ARENITE_FETCH_BASE=pathlib.Path(data).as_uri()))
        said = run(PREFIX / "bin/arenite", "doctor", "data", cwd=self.folder, env=env)
        self.assertIn("the SHA-256 of all four files is right", said)

    def test_trains_and_counts(self):
        printed = self.arenite("train", "--dataset", "synthetic", "--epochs", "1", "--limit", "200", "--count-heap")
        self.assertIn("\nheap calls in 4 training and 16 evaluation steps after warm-up: 0, mappings: 0\n", printed)
        self.assertEqual(list(self.folder.iterdir()), [])


class Completions(unittest.TestCase):
    """Each shell takes the file that it would find itself, and completes the name of a subcommand with it."""

    def setUp(self):
        if not COMPLETIONS:
            self.skipTest("built with ARENITE_COMPLETIONS=OFF")

    def shell(self, name, *arguments):
        if not shutil.which(name):
            self.skipTest(f"no {name}")
        home = tempfile.mkdtemp(dir=FOLDER)
        path = f"{PREFIX}/bin:{os.environ['PATH']}"
        return run(name, *arguments, cwd=home, env={"HOME": home, "PATH": path, "TERM": "dumb"}).split()

    def test_bash(self):
        printed = self.shell("bash", "--norc", "--noprofile", "-c", f"""set -e
source {PREFIX}/share/bash-completion/completions/arenite
COMP_WORDS=(arenite tr) COMP_CWORD=1 COMP_LINE='arenite tr' COMP_POINT=10
$(complete -p arenite | sed -E 's/.* -F ([^ ]+) .*/\\1/') arenite tr arenite
printf '%s\\n' "${{COMPREPLY[@]}}" """)
        self.assertEqual(printed, ["train"])

    def test_zsh(self):
        printed = self.shell("zsh", "-f", "-c", f"""fpath=({PREFIX}/share/zsh/site-functions $fpath)
autoload -Uz compinit && compinit -u -D && autoload +X _arenite && print $_comps[arenite] $+functions[_arenite]""")
        self.assertEqual(printed, ["_arenite", "1"])

    def test_fish(self):
        printed = self.shell("fish", "--no-config", "-c", f"""source {PREFIX}/share/fish/vendor_completions.d/arenite.fish
complete -C 'arenite tr'""")
        self.assertEqual(printed[0], "train")


if __name__ == "__main__":
    testing.main()
