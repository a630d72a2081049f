#!/usr/bin/env python3
"""The scripts for people, with stand-ins for what installs, builds and makes roots. Usage: scripts_test.py"""
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="arenite scripts ")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.tree, self.log = self.folder / "tree", self.folder / "log"
        self.log.touch()
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "ARENITE_"))}
        self.environment.update(PATH=f"{self.folder}/bin:{os.environ['PATH']}", LOG=str(self.log), TREE=str(self.tree),
                                HOME=str(self.folder), XDG_CACHE_HOME="", LC_ALL="C")

    def program(self, path, body='echo "${0##*/} $*" >>"$LOG"'):
        """A stand-in; one without a body says in the log how it was called."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    def on_path(self, name, *body):
        self.program(self.folder / "bin" / name, *body)

    def script(self, name):
        """A copy of it in the tree."""
        target = self.tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
        return target

    def run_it(self, *command, status=0, **how):
        how = {"env": self.environment, "cwd": self.folder} | how
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60, **how)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def logged(self):
        lines = self.log.read_text(encoding="utf-8").splitlines()
        self.log.write_text("", encoding="utf-8")
        return lines


class TwoCommands(Scripts):
    def setUp(self):
        super().setUp()
        for name in ("scripts/install-deps", "scripts/build", "build/release/arenite"):
            self.program(self.tree / name)
        self.on_path("ctest")

    def test_training_builds_the_command_alone(self):
        train = self.script("scripts/train")
        self.run_it(train, "--dataset", "synthetic")
        self.assertEqual(self.logged(), ["install-deps ", "build release --target=arenite_command",
                                         "arenite train --dataset synthetic"])

    def test_testing_builds_all(self):
        test = self.script("scripts/test")
        for words, selection in ((["-R", "conv2d"], "-L ^unit$ -R conv2d"), (["-L", "slow"], "-L slow"),
                                 (["--all", "-R", "conv2d"], "-R conv2d")):
            self.run_it(test, *words)
            self.assertEqual(self.logged(), [
                "install-deps ", "build release",
                f"ctest --test-dir {self.tree}/build/release --output-on-failure --no-tests=error --parallel "
                f"{len(os.sched_getaffinity(0)) + 1} {selection}"])

    def test_folders_to_look_in_change_nothing(self):
        """Where CDPATH chose the folder, cd says so."""
        self.script("scripts/train")
        environment = self.environment | {"CDPATH": f".:{self.folder}"}
        for words in (["scripts/train", "--dataset", "mnist"], ["bash", "train", "--dataset", "mnist"]):
            folder = self.tree if "/" in words[0] else self.tree / "scripts"
            self.run_it(*words, env=environment, cwd=folder)
            self.assertEqual(self.logged()[-1], "arenite train --dataset mnist")

    def test_every_script_is_safe_from_them(self):
        scripts = [path for folder in ("scripts", "datasets", ".ci", "bench") for path in (ROOT / folder).glob("*")
                   if path.is_file() and re.match(rb"#!.*\bbash\n", path.read_bytes())]
        self.assertGreater(len(scripts), 5)
        for path in scripts:
            for line in re.findall(r".*\$\(.*\bcd .*", path.read_text(encoding="utf-8")):
                self.assertRegex(line, r"CDPATH='' cd -- |cd \.\./", path.name)


class Build(Scripts):
    """Where nobody watches, with a stand-in for CMake."""

    def build(self, then="true", **variables):
        self.on_path("cmake", f"""test "$1" = --preset && exit
echo "[0/2] Looking"; echo "[1/3] Building a.o"; echo "a.cpp: warning: odd"; sleep 1.1; echo "[2/3] Building b.o"; {then}""")
        self.tree.mkdir(exist_ok=True)
        return self.run_it(self.script("scripts/build"), "release", status=0 if then == "true" else 1,
                           env=self.environment | variables).stderr.splitlines()

    def test_it_says_how_far_it_is(self):
        begun, *lines = self.build(ARENITE_PROGRESS_SECONDS="1")
        self.assertEqual(begun, "Building preset release in build/release")
        self.assertRegex(lines[-1], r"^  2 of 3, 0:\d\d, about 0:\d\d to go$")
        self.assertEqual(self.build(), [begun], "too short for a line")
        self.assertEqual(len(self.build(ARENITE_PROGRESS_SECONDS="0")), 3)

    def test_what_failed_is_told(self):
        said = self.build('echo "FAILED: b.o"; echo "b.cpp: error: bad"; exit 1')
        self.assertEqual(said[1:], ["[0/2] Looking", "a.cpp: warning: odd", "FAILED: b.o", "b.cpp: error: bad"])


class Dependencies(Scripts):
    def names(self, *options):
        return set(self.run_it(ROOT / "scripts/install-deps", "--names", *options).stdout.split())

    def test_the_page_lists_what_is_asked_for(self):
        """What debootstrap was told to bring along is not among what was installed then."""
        page = (ROOT / "docs/packages.md").read_text(encoding="utf-8")
        there = set(re.search(r"--include=([\w,-]+)", page)[1].split(","))
        asked, all_of_them = [set(re.split(r",\s+", text.strip())) for text in page.split("\n\n")
                              if re.fullmatch(r"(\S+,\s+)+\S+", text.strip())]
        self.assertEqual(asked, self.names() - there)
        self.assertLess(asked, all_of_them)

    def installs(self, apt_get, status=0):
        """What is called where one package is missing."""
        self.on_path("dpkg-query", 'test "$3" != curl || test -e "$LOG.done" && echo installed')
        self.on_path("dpkg", 'echo "dpkg $*" >>"$LOG"; touch "$LOG.configured"')
        self.on_path("apt-get", f'for last; do :; done; echo "apt-get $last" >>"$LOG"; {apt_get}')
        self.on_path("sudo", 'test "$1" = -n && shift; exec "$@"')
        done = self.run_it(ROOT / "scripts/install-deps", status=status)
        self.assertEqual(done.stderr.splitlines()[0], "Installing: curl")
        return done.stderr.splitlines()[1:], self.logged()

    def test_one_that_is_missing(self):
        self.assertEqual(self.installs("true"), ([], ["apt-get curl"]))

    def test_goes_on_where_an_installation_was_interrupted(self):
        said, called = self.installs('test -e "$LOG.configured" || { echo "dpkg was interrupted"; exit 100; }')
        self.assertEqual(said, [])
        self.assertEqual(called, ["apt-get curl", "dpkg --configure -a", "apt-get update", "apt-get curl"])

    def test_says_what_apt_says(self):
        said, called = self.installs('echo "no such package"; exit 100', status=1)
        self.assertEqual(said, ["no such package", "no such package", "install-deps: apt could not install: curl"])
        self.assertEqual(called[-1], "apt-get update")


def may_unshare():
    return os.geteuid() == 0 and subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "sh", "-c", "mount -t tmpfs none /tmp"], stderr=subprocess.DEVNULL).returncode == 0


@unittest.skipUnless(all(map(shutil.which, ("unshare", "git"))) and may_unshare(), "roots are for root, with git and unshare")
class BuildStarpu(Scripts):
    # Lines like StarPU's.
    HOST = ("static void measure_bandwidth_between_host_and_dev_on_numa_with_cuda"
            "(int dev, unsigned numa, int cpu, struct dev_timing *dev_timing_per_cpu)\n{\n")
    PEER = ("static void measure_bandwidth_between_dev_and_dev_cuda"
            "(int src, int dst, double *timingr, double *latencyr)\n{\n")
    OTHER = "\tcudaFree(0);\n}\nstatic void other(void)\n{\n}\n"
    BUS = HOST + OTHER + PEER + OTHER
    UNMEASURED = (HOST + "\tdev_timing_per_cpu->timing_htod = dev_timing_per_cpu->timing_dtoh = 1e-4; "
                  "dev_timing_per_cpu->latency_htod = dev_timing_per_cpu->latency_dtoh = 10;\n\treturn;\n" + OTHER +
                  PEER + "\t*timingr = 1e-4; *latencyr = 10;\n\treturn;\n" + OTHER)

    def setUp(self):
        super().setUp()
        self.program(self.tree / "scripts/install-deps")
        self.program(self.folder / "cuda/bin/nvcc", "echo 'Cuda compilation tools, release 12.4, V12.4.131'")
        # What would be compiled is kept as it is then.
        self.on_path("make", f"cp \"$2/../source/src/core/perfmodel/perfmodel_bus.c\" '{self.folder}/compiled'; exit 1")

    def build(self, bus, status=1):
        source = self.folder / "starpu"
        self.program(source / "configure", "mkdir include; echo '#define STARPU_USE_CUDA 1' >include/starpu_config.h")
        (source / "STARPU-VERSION").write_text("STARPU_EFFECTIVE_VERSION=1.4.10\n", encoding="utf-8")
        (source / "src/core/perfmodel").mkdir(parents=True)
        (source / "src/core/perfmodel/perfmodel_bus.c").write_text(bus, encoding="utf-8")
        subprocess.run(["tar", "-cf", self.folder / "starpu.tar", "-C", self.folder, "starpu"], check=True)
        return self.run_it(self.script("scripts/build-starpu"), "--source", self.folder / "starpu.tar", "--prefix",
                           self.folder / "prefix", "--cuda", self.folder / "cuda", status=status)

    def test_gpus_are_not_measured(self):
        self.build(self.BUS)
        self.assertEqual((self.folder / "compiled").read_text(encoding="utf-8"), self.UNMEASURED)

    def test_a_starpu_that_measures_them_otherwise_is_refused(self):
        for known in (self.HOST, self.PEER):
            with self.subTest(without=known):
                shutil.rmtree(self.folder / "starpu", ignore_errors=True)
                done = self.build(self.BUS.replace(known, known.replace("measure_", "estimate_")))
                self.assertIn("perfmodel_bus.c measures GPUs in another way", done.stderr)
                self.assertFalse((self.folder / "compiled").exists())


class Repository(Scripts):
    """The tree is a repository of its own."""

    def commit(self):
        self.environment.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1")
        for words in (["init", "--quiet"], ["add", "--all"],
                      ["-c", "user.name=me", "-c", "user.email=me@localhost", "commit", "--quiet", "--message", "all"]):
            self.run_it("git", "-C", self.tree, *words)


@unittest.skipUnless(shutil.which("git"), "no git")
class Ci(Repository):
    ALWAYS = ["dependencies", "format", "release", "train", "asan", "tsan", "fuzz", "tidy", "cuda"]

    def setUp(self):
        super().setUp()
        self.ci, self.passed = self.script(".ci/run"), self.tree / "build/ci-passed"
        self.script(".gitignore")
        (self.tree / "build").mkdir()
        for name in ("install-deps", "build", "train", "tidy", "build-starpu"):
            self.program(self.tree / "scripts" / name)
        self.program(self.tree / "scripts/test", "mkdir -p build/release/docs_commands; echo 100% tests passed, 0 failed out of 3"
                     "; echo a page >build/release/docs_commands/page.txt")
        for name in ("clang-format", "ctest", "nvcc"):
            self.on_path(name)
        self.commit()

    def ran(self, *steps, status=0):
        """The steps that were begun, and the last lines."""
        lines = self.run_it(self.ci, *steps, status=status).stdout.splitlines()
        return re.findall(r"^== (\w+)$", "\n".join(lines), re.M), lines[-3:]

    def test_a_tree_that_passed_is_noted(self):
        self.passed.write_text("another\n")
        steps, lines = self.ran()
        self.assertEqual((steps, lines[1:]), (self.ALWAYS, ["", "100% tests passed, 0 failed out of 3"]))
        tree = self.run_it("git", "-C", self.tree, "rev-parse", "HEAD^{tree}").stdout
        self.assertEqual(self.passed.read_text(), tree)
        self.ran("format")
        self.assertEqual(self.passed.read_text(), tree, "one step says nothing of the others")
        self.assertEqual(self.ran("full")[0], self.ALWAYS + ["debug", "sanitizers", "bundle", "slow"])
        self.assertEqual(self.passed.read_text(), tree)

    def test_a_checkout_that_is_not_clean_is_not_noted(self):
        (self.tree / "new").touch()
        self.assertIn("build/ci-passed is not written: the checkout is not clean", self.ran()[1][0])
        self.assertFalse(self.passed.exists())

    def test_nor_is_one_where_a_step_failed_or_was_left_out(self):
        self.ran()
        self.on_path("clang-format", "exit 1")
        self.program(self.tree / "bad.cpp")
        self.commit()
        self.ran(status=123)
        self.assertFalse(self.passed.exists())
        if not os.path.exists("/usr/local/cuda/bin/nvcc"):
            self.on_path("clang-format")
            (self.folder / "bin/nvcc").unlink()
            self.assertIn("build/ci-passed is not written: step cuda was left out", self.ran()[1][0])
            self.assertFalse(self.passed.exists())


@unittest.skipUnless(shutil.which("git"), "no git")
class Tidy(Repository):
    """With stand-ins for clang, and a build that knows the headers of one file of two."""

    def setUp(self):
        super().setUp()
        self.tidy = self.script("scripts/tidy")
        for name in (".clang-tidy", "src/a.cpp", "src/b.cpp", "src/b_test.cpp", "src/a.hpp", "src/b.hpp"):
            (self.tree / name).parent.mkdir(exist_ok=True)
            (self.tree / name).touch()
        build = self.tree / "build/asan"
        build.mkdir(parents=True)
        (build / "compile_commands.json").write_text(json.dumps([
            {"directory": str(build), "file": str(self.tree / f"src/{name}.cpp"),
             "command": f"/usr/bin/ccache clang++ -O1 -o {name}.o -c '{self.tree}/src/{name}.cpp'"} for name in "ab"]))
        self.on_path("ninja", r"printf 'a.o: #deps 2, deps mtime 1 (VALID)\n    ../../src/a.cpp\n    ../../src/a.hpp\n\n'")
        self.on_path("clang++", "echo x: ../../src/b.cpp ../../src/b.hpp")
        self.on_path("clang-tidy", 'test "$1" = --version || echo "$4" >>"$LOG"')
        self.commit()

    def checked(self, *words, status=0):
        self.said = self.run_it(self.tidy, *words, status=status).stdout
        return sorted(self.logged())

    def test_what_was_clean_is_not_checked_again(self):
        self.assertEqual(self.checked(), ["src/a.cpp", "src/b.cpp"])
        self.assertEqual(self.checked(), [])
        for name in "ab":
            (self.tree / f"src/{name}.hpp").write_text("int changed;")
            self.assertEqual(self.checked(), [f"src/{name}.cpp"])
        (self.tree / ".clang-tidy").write_text("Checks: others")
        self.assertEqual(self.checked(self.tree / "src/b.cpp"), ["src/b.cpp"])

    def test_what_was_not_clean_is(self):
        self.on_path("clang-tidy", 'test "$1" = --version && exit; echo "$4" >>"$LOG"; echo "$4: bad"; test "$4" != src/b.cpp')
        self.assertEqual(self.checked(status=1), ["src/a.cpp", "src/b.cpp"])
        self.assertIn("src/b.cpp: bad\n", self.said)
        self.assertEqual(self.checked(status=1), ["src/b.cpp"])

    def test_what_time_does_not_allow_is_told(self):
        self.assertEqual(self.checked("--seconds", "0"), [])
        self.assertEqual(self.said, "tidy: 2 of 2 files were not reached in 0 s: scripts/tidy, by hand\n")
        self.assertEqual(self.checked(), ["src/a.cpp", "src/b.cpp"])


class UnderLoad(Scripts):
    def test_it_counts_what_fails(self):
        """One test fails where there is but one processor, and one always."""
        cases = [f'<testcase name="{name}" status="{status}"/>' for name, status in (("good", "run"), ("bad", "fail"),
                                                                                       ("skipped", "notrun"))]
        self.on_path("ctest", f"""echo "$*" >>"$LOG"
case "$*" in *" -I 1,"*) tests='{"".join(cases)}' ;; esac
test "$tests" && test $(nproc) = 1 && tests=$tests'<testcase name="lonely" status="fail"/>'
while test $# -gt 0; do test "$1" = --output-junit && report=$2; shift; done
echo "<testsuite>$tests</testsuite>" >"$report" """)
        script = self.script("scripts/test-under-load")
        build = self.tree / "build/release"
        build.mkdir(parents=True)
        done = self.run_it(script, "--build", build, "--rounds", "2", "-R", "a", status=1)
        table = [line.split() for line in done.stdout.splitlines() if line.startswith(("failed,", "bad", "lonely"))]
        processors = len(os.sched_getaffinity(0))
        others = "2" if processors == 1 else "0"
        self.assertEqual(table, [["failed,", "of", "2", "busy", "one-core", "slow-disk"], ["bad", "2", "2", "2"],
                                 ["lonely", others, "2", others]])
        calls = self.logged()
        self.assertEqual(len(calls), 2 * (2 + processors))
        self.assertTrue(all(call.endswith(" -L ^unit$ -R a") for call in calls), calls)
        self.on_path("ctest", "echo no such folder; exit 1")
        self.assertIn("no tests were run", self.run_it(script, "--build", build, status=1).stderr)


class CleanRoom(Repository):
    """In a repository of its own, with a root that is a few empty folders."""

    def setUp(self):
        super().setUp()
        self.environment.pop("SUDO_UID", None)
        self.clean_room = self.script("scripts/clean-room")
        self.commit()
        self.on_path("apt-get", "echo http://127.0.0.1:9 bookworm main")
        self.on_path("apt-config")
        self.on_path("debootstrap", 'for part in proc sys dev root etc/apt/apt.conf.d; do mkdir -p "$4/$part"; done')

    def test_what_runs_there_ends_with_it(self):
        ours, theirs = os.pipe()
        self.addCleanup(os.close, ours)
        # Written to once it runs, and open for as long as anything does.
        self.on_path("chroot", f"echo started >&{theirs}; sleep 50")
        started = subprocess.Popen([self.clean_room, "train"], cwd=self.folder, env=self.environment, pass_fds=[theirs],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        os.close(theirs)
        self.assertTrue(select.select([ours], [], [], 40)[0])
        if os.read(ours, 100) != b"started\n":
            self.fail(started.communicate()[0])
        started.send_signal(signal.SIGTERM)
        said = started.communicate(timeout=20)[0]
        self.assertEqual(started.returncode, -signal.SIGTERM, said)
        self.assertTrue(select.select([ours], [], [], 20)[0], "something still runs")
        self.assertEqual(os.read(ours, 100), b"")

    def test_it_takes_what_is_committed(self):
        self.on_path("chroot", 'git -C "$1/root" clone --quiet arenite.bundle arenite && echo trained')
        self.on_path("dpkg-query", "echo")
        done = self.run_it(self.clean_room, "train")
        self.assertIn("\ntrained\n", f"\n{done.stdout}")
        self.assertIn("status 0", done.stderr)
        self.assertTrue((self.tree / "build/clean-room/train/root/arenite/scripts/clean-room").exists())

    def test_a_checkout_of_somebody_else(self):
        for path in (self.tree, self.tree / ".git"):
            os.chown(path, 65534, 65534)
        said = self.run_it(self.clean_room, "train", status=1).stderr
        self.assertIn("dubious ownership", said)
        self.assertIn(f"clean-room: git could not pack HEAD of {self.tree}", said)


class CompilerCache(Scripts):
    def test_an_old_precompiled_header_is_gone_before_the_new_one_is_made(self):
        old, header = self.folder / "all.hxx.gch", self.folder / "all.hxx"
        old.touch()
        header.touch()
        self.on_path("c++", 'echo "$LC_ALL $CCACHE_SLOPPINESS $*" >>"$LOG"')
        self.run_it("sh", ROOT / "cmake/ccache.sh", "env", "c++", "-include", header, "-o", old, "-c", "all.cxx")
        self.assertEqual(self.logged(), [f" pch_defines,time_macros -include {header} -o {old} -c all.cxx"])
        self.assertEqual((old.exists(), header.exists()), (False, True))

    def test_a_header_that_clang_precompiled_is_known_by_the_texts_in_it(self):
        (self.folder / "a.hpp").write_text("one")
        self.on_path("clang++", 'echo "$*" >>"$LOG"; echo "x.pch: all.hxx \\\\\n a.hpp" >rule.d; touch x.pch')
        self.on_path("ccache", 'echo "ccache $*" >>"$LOG"')
        sums = []
        for text in ("1", "2", "1"):
            (self.folder / "all.hxx").write_text(text)
            self.run_it("sh", ROOT / "cmake/ccache.sh", "ccache", "clang++", "-MF", "rule.d", "-o", "x.pch", cwd=self.folder)
            sums.append((self.folder / "x.pch.sum").read_text())
        self.assertEqual(self.logged(), ["-MF rule.d -o x.pch"] * 3)
        self.assertEqual((sums[0] == sums[2], sums[0] == sums[1]), (True, False))

    def test_paths_that_clang_alone_reads_are_relative(self):
        self.on_path("ccache", 'echo "$*" >>"$LOG"')
        self.run_it("sh", ROOT / "cmake/ccache.sh", "ccache", "clang++", "-Xclang", self.folder / "x.pch", self.folder / "a.cpp",
                    cwd=self.folder)
        self.assertEqual(self.logged(), [f"clang++ -Xclang x.pch {self.folder}/a.cpp"])


if __name__ == "__main__":
    unittest.main()
