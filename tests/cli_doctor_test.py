#!/usr/bin/env python3
"""`arenite doctor` on this machine, and on broken ones. Usage: cli_doctor_test.py COMMAND [SANITIZER]"""
import fcntl
import json
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import struct
import subprocess
import time

import cli_testing
from cli_doctor_testing import CHECKS, Doctor
from cli_testing import NAMES, run

HAS_SYS = os.path.isdir("/sys/devices/system")  # where the memory's size stands


class ThisMachine(Doctor):
    def test_words(self):
        """A line a check, then what belongs to it, indented; the sum at the end."""
        done = run("doctor")
        self.assertEqual(done.stderr, "")
        self.assertNotIn("\033", done.stdout)
        lines = done.stdout.splitlines()
        heads = [re.match(r"(ok   |note |fails)  (\w+) +\S", line) for line in lines[:-1]]
        self.assertEqual(tuple(head[2] for head in heads if head), CHECKS)
        self.assertEqual([line for line, head in zip(lines, heads) if not head and not line.startswith("       ")], [])
        self.assertEqual([line for line in lines if len(line) > 100 and " " in line.strip()[:80]], [])
        marks = [head[1].strip() for head in heads if head]
        count = {mark: marks.count(mark) for mark in ("ok", "note", "fails")}
        self.assertRegex(lines[-1], rf"^{count['ok']} ok, {count['note']} notes?, {count['fails']} fails?$")
        self.assertEqual(done.returncode, int(count["fails"] > 0))

    def test_what_is_needed_is_here(self):
        """These tests run where training does."""
        found = self.examined("starpu", "cpu", "processors", "locking", "folders", "run", status=0)
        self.assertTrue(found["run"]["facts"]["right"])
        version = json.loads(run("version", "--json").stdout)
        self.assertEqual(found["starpu"]["facts"]["version"], version["starpu"])
        self.assertTrue(os.path.exists(found["starpu"]["facts"]["library"]))
        facts = found["processors"]["facts"]
        self.assertEqual(facts["usable"], len(os.sched_getaffinity(0)))
        if HAS_SYS:
            self.assertGreater(facts["memory"], 1 << 28)
        self.assertEqual(found["run"]["facts"]["workers"], facts["workers"])
        self.assertEqual(found["cpu"]["facts"]["missing"], [])

    def test_agrees_with_training(self):
        """The memory to be locked is that of the main example: of images whose last batches are as Fashion-MNIST's."""
        if cli_testing.SANITIZER:
            self.skipTest("one table is like another")
        facts = self.examined("locking")["locking"]["facts"]
        folder = self.root / "mnist"
        folder.mkdir()
        for split, count in (("train", 60000), ("test", 10000)):
            images, labels = NAMES[split]
            (folder / images).write_bytes(struct.pack(">4B3I", 0, 0, 8, 3, count, 28, 28) + bytes(count * 784))
            (folder / labels).write_bytes(struct.pack(">4BI", 0, 0, 8, 1, count) + bytes(count))
        trained = run("train", "--dataset", "mnist", "--data", str(folder), "--epochs", "0", "--json", STARPU_NCPU="1")
        plan = next(event for event in map(json.loads, trained.stdout.splitlines()) if event["event"] == "plan")
        self.assertEqual(facts["needed"], plan["bytes"])
        self.assertEqual(facts["locked"], sum(block["bytes"] for block in plan["blocks"] if block["pinned"] == "locked"))

    def test_colour_on_terminals_only(self):
        def on_terminal(**environment):
            ours, theirs = pty.openpty()
            done = run("doctor", "starpu", stdout=theirs, TERM="xterm", **environment)
            os.close(theirs)
            text = b""
            fcntl.fcntl(ours, fcntl.F_SETFL, os.O_NONBLOCK)
            while True:
                try:
                    text += os.read(ours, 4096)
                except OSError:  # it was closed, and all is read
                    break
            os.close(ours)
            self.assertEqual(done.returncode, 0)
            return text.decode()

        self.assertRegex(on_terminal(), r"^\033\[3[23]m(ok|note)\033\[0m +starpu ")
        self.assertNotIn("\033", on_terminal(NO_COLOR="1"))

    def test_bad_arguments(self):
        done = run("doctor", "dta")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "arenite: CHECK: 'dta' (did you mean 'data'?); expected one of starpu, cpu, processors, gpu, "
                                      "locking, data, folders, perf, run (hint: see arenite doctor --help)\n")

    def test_an_output_that_takes_no_more(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "w") as full:
            done = run("doctor", "starpu", stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.startswith("arenite: the output could not be written: "), done.stderr)


class Broken(Doctor):
    def test_settings_that_starpu_cannot_read(self):
        for name, text, expected in (("STARPU_NCPU", "abc", "expected a number of workers of at least 1"),
                                     ("STARPU_CALIBRATE", "yes", "expected a whole number"),
                                     ("STARPU_WORKERS_CPUID", "x", "expected numbers and ranges of processors")):
            with self.subTest(name=name):
                found = self.examined("starpu", "locking", "run", status=1, **{name: text})
                self.assertIn(f"set: {name}={text}", found["starpu"]["details"])
                for check in ("locking", "run"):
                    self.assertIn(f"{name}='{text}'; {expected}", self.problem(found[check], "fails")["what"])

    def test_folders_that_cannot_be_written(self):
        temporary = self.root / "temporary"
        temporary.mkdir()
        found = self.examined("folders", status=0, HOME="/proc", XDG_CACHE_HOME="", ARENITE_CACHE="", TMPDIR=str(temporary))["folders"]
        self.assertEqual([problem["mark"] for problem in found["problems"]], ["note", "note"])
        for folder in (found["facts"]["cache"], found["facts"]["measurements"]):
            self.assertTrue(folder.startswith(str(temporary)), folder)
        found = self.examined("folders", status=1, HOME="/proc", XDG_CACHE_HOME="", ARENITE_CACHE="", TMPDIR="/proc")["folders"]
        self.assertEqual([problem["mark"] for problem in found["problems"]], ["fails", "fails"])
        self.assertEqual(found["facts"], {"cache": None, "measurements": None})
        found = self.examined("folders", status=1, ARENITE_CACHE="/proc/cache")["folders"]
        self.assertIn("set ARENITE_CACHE to one", self.problem(found, "fails")["mend"])

    def test_memory_that_may_not_be_locked(self):
        if cli_testing.SANITIZER:
            self.skipTest("a sanitizer locks nothing, and says that it did")
        if os.getuid() == 0 and not shutil.which("setpriv"):
            self.skipTest("root is not bound by the limit")
        unprivileged = ["setpriv", "--inh-caps", "-ipc_lock", "--bounding-set", "-ipc_lock"] if os.getuid() == 0 else []
        for limit in (0, 1 << 20):
            done = subprocess.run([*unprivileged, cli_testing.COMMAND, "doctor", "--json", "locking"], capture_output=True,
                                  text=True, timeout=120, env=cli_testing.clean_environment(),
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit)))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            check = json.loads(done.stdout)["checks"][0]
            self.assertEqual((check["facts"]["limit"], check["facts"]["cap_ipc_lock"]), (limit, False))
            self.assertLessEqual(check["facts"]["locked"], limit)
            self.assertIn("block 'state' is not locked", self.problem(check, "note")["what"])
            self.assertIn("`ulimit -l unlimited`", check["problems"][0]["mend"])

    def test_memory_that_is_refused(self):
        """Then StarPU ends the process in ways of its own, which are findings."""
        if cli_testing.SANITIZER:
            self.skipTest("a sanitizer reserves more address space than this allows")
        ended = []
        for size in [*range(0, 72, 8), *range(72, 1024, 16)]:  # the first are enough without CUDA's libraries
            if {"fails", "ok"} <= set(ended):
                break
            limit = (size << 20) + cli_testing.libraries()
            how = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))}
            if run("version", **how).returncode == 0:  # else not even this program starts
                found = self.examined("processors", "locking", "run", **how)
                ended.append(found["run"]["mark"])
                for check in found.values():
                    for problem in check["problems"]:
                        self.assertNotIn("smaller batch", problem["mend"])
                        if problem["mark"] == "fails":
                            self.assertIn("`ulimit -v`", problem["mend"])
        self.assertIn("fails", ended)
        self.assertIn("ok", ended)

    def test_no_process_for_the_checks(self):
        if cli_testing.SANITIZER:
            self.skipTest("a sanitizer needs files of its own")
        found = self.examined("starpu", "perf", status=1, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4)))
        for check in found.values():
            self.assertIn("no process could be started: Too many open files", self.problem(check, "fails")["what"])

    def test_no_perf(self):
        def perf():
            check = self.examined("perf", status=0, PATH=f"{self.root}:/usr/bin:/bin")["perf"]
            self.assertEqual((check["mark"], check["facts"]["perf"], check["says"]), ("note", None, "no perf"))
            return check["problems"][0]

        program = self.root / "perf"
        for script in ("echo 'WARNING: perf not found for kernel 6.1' >&2; exit 2", "exit 0"):
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
            self.assertIn("linux-perf", perf()["mend"])
        program.write_text(f"#!/bin/sh\nexec {shutil.which('sleep')} 60\n")
        self.assertEqual(perf(), {"mark": "note", "what": "no answer within 5 s", "mend": "see what `perf --version` does"})

    def test_an_interrupt_leaves_nothing(self):
        """Nor what a check has started has started."""
        program, started = self.root / "perf", self.root / "started"
        program.write_text(f"#!/bin/sh\nsleep 77 &\necho $! > {started}.part; mv {started}.part {started}; wait\n")
        program.chmod(0o755)
        for number in (signal.SIGINT, signal.SIGTERM):
            started.unlink(missing_ok=True)
            process = cli_testing.start_command("doctor", "perf", PATH=f"{self.root}:{os.environ['PATH']}")
            until = time.monotonic() + 30
            while not started.exists() and time.monotonic() < until:
                time.sleep(0.01)
            sleep = int(started.read_text())
            process.send_signal(number)
            self.assertEqual((process.communicate(timeout=60)[1], process.returncode), ("", 130))

            def ended():
                try:
                    return pathlib.Path(f"/proc/{sleep}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
                except FileNotFoundError:
                    return True

            until = time.monotonic() + 5
            while not ended() and time.monotonic() < until:
                time.sleep(0.01)
            self.assertTrue(ended())

    def test_a_group_with_fewer_processors(self):
        if len(os.sched_getaffinity(0)) < 2 or not HAS_SYS:
            self.skipTest("one processor, or no /sys")
        one = {"preexec_fn": lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})}
        found = self.examined("processors", status=0, **one)["processors"]
        self.assertEqual([found["facts"][name] for name in ("allowed", "usable", "workers")], [1, 1, 1])
        self.assertEqual(found["mark"], "ok")
        found = self.examined("processors", status=0, STARPU_NCPU="2", **one)["processors"]
        self.assertIn("STARPU_NCPU=1", self.problem(found, "note")["mend"])

    def test_a_cpu_without_the_kernels_instructions(self):
        if cli_testing.SANITIZER:
            self.skipTest("a sanitizer's address space is more than an emulator gives")
        emulator = shutil.which("qemu-x86_64")
        if not emulator or not self.examined("cpu")["cpu"]["facts"].get("avx512"):
            self.skipTest("no emulator, or no AVX-512")
        done = subprocess.run([emulator, "-cpu", "Haswell", cli_testing.COMMAND, "doctor", "--json", "cpu", "run"],
                              capture_output=True, text=True, timeout=200, env=cli_testing.clean_environment())
        found = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
        built_for = found["cpu"]["facts"]["kernels_built_for"]
        self.assertEqual("avx512f" in found["cpu"]["facts"]["missing"], "avx512f" in built_for)
        if "avx512f" in built_for:
            self.assertIn("-DARENITE_NATIVE=OFF", self.problem(found["cpu"], "fails")["mend"])


if __name__ == "__main__":
    cli_testing.main()
