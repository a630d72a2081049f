#!/usr/bin/env python3
"""scripts/profile: its verbs and errors, and a real run where perf is there and may watch.

Usage: profile_script_test.py ARENITE [SANITIZE] [unittest's own arguments, which begin with -]"""
import contextlib
import functools
import io
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import unittest
from collections import Counter

from profile_in_folder import SCRIPT, InFolder
from profile_samples import NEW, OLD, RECORDED

import captures
import headline
import stacks

ARENITE, SANITIZE = "", ""
FOLDED, _ = stacks.collapse(io.StringIO(RECORDED))


class Arguments(InFolder):
    def test_help_says_all(self):
        text = self.profile("--help").stdout
        for verb in "flamegraph", "difference", "trace", "memory":
            self.assertIn(verb, text)
            self.assertIn("usage: scripts/profile " + verb, self.profile(verb, "--help").stdout)

    def test_wrong_ones(self):
        for words, expected in {("flamegraph",): "no command; expected one behind '--'", ("flamegraph", "--"): "no command",
                                ("flamegraph", "true"): "unrecognized arguments: true", (): "VERB",
                                ("flame", "--", "true"): "invalid choice: 'flame'",
                                ("flamegraph", "--frequency", "0", "--", "true"): "'0'; expected a whole number from 1 to 20000",
                                ("trace", "--steps", "x", "--", "true"): "'x'; expected a whole number",
                                ("trace", "--steps", "1001", "--", "true"): "'1001'; expected a whole number from 1 to 1000",
                                ("difference", "a", "b", "--", "true"): "'difference' runs no command"}.items():
            self.assertIn(expected, self.profile(*words, status=2).stderr)

    def test_wrong_files_before_anything_runs(self):
        ran = self.program("run", "touch ran\n")
        for words, expected in {("-o", "missing/x.svg"): "missing is no folder", ("-o", "."): "is a folder",
                                ("-o", "x.svg", "--folded", "x.svg"): "name the same file x.svg"}.items():
            self.assertIn(expected, self.profile("flamegraph", *words, "--", ran, status=2).stderr)
        self.assertIn("cannot read none.folded", self.profile("flamegraph", "--before", "none.folded", "--", ran, status=1).stderr)
        for verb in "trace", "memory":
            self.assertIn("missing is no folder", self.profile(verb, "-o", "missing/x", "--", ran, status=2).stderr)
        self.assertFalse((self.folder / "ran").exists())

    def test_commands_that_are_none(self):
        (self.folder / "text").write_text("no program\n")
        for verb in "flamegraph", "trace", "memory":
            self.assertIn("no command 'nosuch'", self.profile(verb, "--", "nosuch", status=127).stderr)
            self.assertIn("no program that may be run", self.profile(verb, "--", "./text", status=126).stderr)
        (self.folder / "text").chmod(0o755)
        self.assertIn("in no format that this machine runs", self.profile("trace", "--", "./text", status=126).stderr)

    def test_two_files_of_stacks(self):
        (self.folder / "a.folded").write_text(stacks.text(OLD))
        (self.folder / "b.folded").write_text(stacks.text(NEW))
        done = self.profile("difference", "a.folded", "b.folded", "-o", "d.svg", "--renderer", "own")
        self.assertIn("+25.0 points  forward a: 50.0 % → 75.0 %", done.stderr)
        self.assertIn("a.folded → b.folded", (self.folder / "d.svg").read_text())
        self.assertEqual(captures.picture_size(self.folder / "d.svg")[0], "1200")
        (self.folder / "c").write_text("host;main 3\n")
        self.assertIn("no sample is of a worker in a step", self.profile("difference", "c", "c", "--steps", status=1).stderr)


# What perf does, for tests of what is around it.
FAKE_PERF = """
case $1 in
--version) echo "perf version 6.1.0" ;;
stat) echo '<not supported>,,cycles:u,0,100.00,,' >&2 ;;
record)
  for word; do case $word in --control=*) fds=${word#--control=fd:} ;; esac; done
  echo "$@" > recorded
  if [ -n "$PERF_SAYS" ]; then echo "$PERF_SAYS" >&2; exit 255; fi
  trap 'exit 0' INT
  printf 'ack\\n' >/proc/self/fd/${fds#*,}  # dash's >& takes one digit
  while :; do sleep 0.05; done ;;
script) cat "$PERF_SCRIPT" ;;
esac
"""


class AroundPerf(InFolder):
    def setUp(self):
        super().setUp()
        self.tools = self.folder / "tools"
        self.program("perf", FAKE_PERF, self.tools)
        (self.folder / "recording").write_text(RECORDED)
        self.path = f"{self.tools}:{os.environ['PATH']}"

    def flamegraph(self, *words, recording="recording", **rest):
        return self.profile("flamegraph", *words, path=rest.pop("path", self.path), PERF_SCRIPT=recording, **rest)

    def test_a_picture_its_stacks_and_its_headline(self):
        done = self.flamegraph("-o", "x.svg", "--", "sh", "-c", "echo map=$ARENITE_PERF_MAP")
        self.assertEqual(done.stdout, "map=1\n")
        self.assertIn("profile: x.svg: 8 samples, 997 a second of cpu-clock; all stacks in x.folded\n", done.stderr)
        self.assertIn("25.0 %  backward conv2: conv2d_relu_max_pool2d_grad_input [sparse]", done.stderr)
        self.assertEqual(stacks.read(self.folder / "x.folded"), FOLDED)
        self.assertIn("sh -c", (self.folder / "x.svg").read_text())
        self.assertRegex((self.folder / "recorded").read_text(), r"record --call-graph fp --event cpu-clock --freq 997 ")

    def test_options(self):
        done = self.flamegraph("--title", "A & B", "--frequency", "99", "--event", "faults", "--steps", "--merge", "--folded", "kept", "--", "true")
        self.assertRegex((self.folder / "recorded").read_text(), "--event faults --freq 99 ")
        text = (self.folder / "flamegraph.svg").read_text()
        self.assertIn("A &amp; B", text)
        self.assertIn("<title>workers\n6 samples", text)
        self.assertNotIn("<title>host", text)
        self.assertIn("all stacks in kept", done.stderr)
        self.assertEqual(sum(stacks.read(self.folder / "kept").values()), 8)

    def test_stacks_stay_here_where_the_picture_is_no_file(self):
        (self.folder / "link").symlink_to("/proc/self/fd/1")
        done = self.flamegraph("-o", "link", "--renderer", "own", "--", "true")
        self.assertIn("<svg ", done.stdout)
        self.assertEqual(stacks.read(self.folder / "flamegraph.folded"), FOLDED)

    def test_the_difference_to_an_earlier_run(self):
        (self.folder / "old").write_text("host;main;data::draw 1000\n")
        done = self.flamegraph("--before", "old", "--renderer", "own", "--", "true")
        self.assertIn("against 1000 samples of old", (self.folder / "flamegraph.svg").read_text())
        self.assertIn("points", done.stderr)

    def test_a_commands_status_is_passed_on(self):
        done = self.flamegraph("--", "sh", "-c", "exit 7", status=7)
        self.assertIn("the command ended with status 7", done.stderr)
        self.assertTrue((self.folder / "flamegraph.svg").exists())
        self.flamegraph("--", "sh", "-c", "kill -KILL $$", status=128 + signal.SIGKILL)

    def test_no_samples(self):
        (self.folder / "nothing").write_text("")
        self.assertIn("no samples", self.flamegraph("--", "true", recording="nothing", status=1).stderr)
        self.assertIn("no samples", self.flamegraph("--", "sh", "-c", "exit 5", recording="nothing", status=5).stderr)
        self.assertFalse((self.folder / "flamegraph.svg").exists())

    def test_no_perf(self):
        bare = self.folder / "bare"
        bare.mkdir()
        for tool in "sh", "true":
            (bare / tool).symlink_to(shutil.which(tool))
        done = self.flamegraph("--", "true", path=str(bare), status=1)
        self.assertIn("no 'perf' on PATH", done.stderr)
        self.assertIn("apt-get install linux-perf", done.stderr)
        self.program("perf", "echo 'E: linux-perf-5.10 is not installed.' >&2; exit 1\n", self.tools)
        done = self.flamegraph("--", "true", status=1)
        self.assertIn("does not run: E: linux-perf-5.10 is not installed.", done.stderr)

    def test_perf_that_may_not(self):
        ran = self.program("run", "touch ran\n")
        done = self.flamegraph("--", ran, status=1, PERF_SAYS="Error: Access to performance monitoring is limited. Operation not permitted")
        self.assertRegex(done.stderr, "perf may not record: .*\n  hint: ")
        done = self.flamegraph("--", ran, status=1, PERF_SAYS="event syntax error: 'nonsense'")
        self.assertIn("perf does not record: event syntax error: 'nonsense'", done.stderr)
        self.assertFalse((self.folder / "ran").exists())

    def test_names_of_this_run_are_removed_and_no_others(self):
        other = pathlib.Path("/tmp/perf-4194999.map")  # no process can have that number
        other.write_text("1 1 x\n")
        self.addCleanup(other.unlink)
        done = self.flamegraph("--", "sh", "-c", "echo 1 1 x > /tmp/perf-$$.map; echo $$")
        self.assertFalse(pathlib.Path(f"/tmp/perf-{done.stdout.strip()}.map").exists())
        self.assertTrue(other.exists())

    def begin(self, *command):
        """The script in a process group of its own, as a shell begins it, once the command runs."""
        process = subprocess.Popen([sys.executable, SCRIPT, "flamegraph", "--", *command], cwd=self.folder, start_new_session=True,
                                   env=dict(os.environ, PATH=self.path, PERF_SCRIPT="recording"), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "begun\n")
        return process

    def test_an_interrupt_ends_the_command_and_the_picture_is_made(self):
        patient = "trap 'echo told; exit 3' INT TERM; echo begun; while :; do sleep 0.05; done"
        for number in signal.SIGINT, signal.SIGTERM:
            process = self.begin("sh", "-c", patient)
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, out), (3, "told\n"), err)
            self.assertIn("profile: flamegraph.svg: 8 samples", err)
        process = self.begin("sh", "-c", "echo begun; exec sleep 60")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("profile: flamegraph.svg: 8 samples", err)

    def test_ctrl_c_reaches_the_command_once(self):
        """As a terminal sends it: to all of the group."""
        import pty
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.environ.update(PATH=self.path, PERF_SCRIPT="recording")
            count = "n=0; trap 'n=$((n+1))' INT; echo begun; i=0; while [ $i -lt 20 ]; do sleep 0.05; i=$((i+1)); done; echo told $n; exit 3"
            os.execv(sys.executable, [sys.executable, str(SCRIPT), "flamegraph", "--", "sh", "-c", count])
        said = b""
        with contextlib.suppress(OSError):
            while b"begun" not in said:
                said += os.read(terminal, 1000)
            os.write(terminal, b"\x03")
            while True:
                said += os.read(terminal, 1000)
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(status), 3, said)
        self.assertIn(b"told 1", said)
        self.assertIn(b"profile: flamegraph.svg", said)

    def test_standard_tools(self):
        self.program("flamegraph.pl", 'echo "$@" > drawn; cat > given; echo "<svg/>"\n', self.tools)
        self.flamegraph("--title", "T", "--renderer", "own", "--", "true")
        self.assertFalse((self.folder / "drawn").exists())
        self.flamegraph("--title", "T", "--", "true")
        self.assertEqual((self.folder / "drawn").read_text(), "--title T --width 1200 --colors java --hash\n")
        self.assertEqual((self.folder / "given").read_text(), stacks.text(FOLDED))
        self.assertEqual((self.folder / "flamegraph.svg").read_text(), "<svg/>\n")
        (self.folder / "old").write_text("a;b 3\n")
        done = self.flamegraph("--before", "old", "--renderer", "standard", "--", "sh", "-c", "touch ran", status=1)
        self.assertIn("difffolded.pl on PATH", done.stderr)
        self.assertFalse((self.folder / "ran").exists())  # the tools were asked for first
        self.program("difffolded.pl", 'printf "%s\\n" "$1"; cat "$2"\n', self.tools)
        self.flamegraph("--before", "old", "--", "true")
        self.assertEqual((self.folder / "given").read_text(), "-n\na;b 3\n")
        self.program("flamegraph.pl", "echo broken >&2; exit 9\n", self.tools)
        self.assertIn("flamegraph.pl failed: broken", self.flamegraph("--", "true", status=1).stderr)


@functools.cache
def why_not_real():
    """Why perf cannot be tried here; empty: it can."""
    if SANITIZE:
        return "sanitizers change the stacks"
    if not shutil.which("perf"):
        return "no perf on PATH (scripts/install-deps --profile)"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, SCRIPT, "flamegraph", "-o", f"{folder}/x.svg", "--", sys.executable, "-c",
                               "sum(i * i for i in range(2000000))"], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"perf does not record here: {done.stderr.strip()}"


class Real(InFolder):
    def setUp(self):
        super().setUp()
        why = why_not_real()
        if why:
            print(f"NOT TRIED, {self.id().rsplit('.', 1)[-1]}: {why}", file=sys.stderr)
            self.skipTest(why)

    def train(self, *words):
        return [ARENITE, "train", "--dataset", "synthetic", "--model", "cnn2", *words]

    def test_a_training_run(self):
        done = self.profile("flamegraph", "-o", "x.svg", "--", *self.train("--epochs", "4"))
        self.assertRegex(done.stdout, "weights sha256: [0-9a-f]{64}")
        folded = stacks.read(self.folder / "x.folded")
        steps = headline.in_steps(folded)
        _, workers, _ = headline.parts(steps)
        in_ops = Counter({True: 0, False: 0})
        for stack, count in steps.items():
            if "waits" not in stack:
                in_ops[any(name in stacks.PHASES for name in stack)] += count
        self.assertGreaterEqual(in_ops[True], 0.9 * sum(in_ops.values()), workers)
        found = stacks.text(folded)
        self.assertRegex(found, r"worker 0;forward;conv1: conv2d_relu_max_pool2d \[\w+\]")
        self.assertRegex(found, r"worker \d;backward;conv2: conv2d_relu_max_pool2d_grad_\w+ \[\w+\]")
        self.assertRegex(found, r"worker \d;update;dense1.weight: dense_grad_weight_sgd \[\w+\]")
        self.assertIn("host;main;", found)
        if " avx" in pathlib.Path("/proc/cpuinfo").read_text():
            self.assertRegex(found, r"worker \d;\w+;dense1: \w+ \[xsmm\](;[^;\n]+)*;xsmm gemm m\d+ n\d+ k\d+")
        captures.picture_size(self.folder / "x.svg")
        self.assertIn("conv1: conv2d_relu_max_pool2d", (self.folder / "x.svg").read_text())
        self.assertIn("% in ops", done.stderr)

    def test_the_picture_of_an_interrupted_run(self):
        process = subprocess.Popen([sys.executable, SCRIPT, "flamegraph", "--", *self.train("--epochs", "100000")], cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in process.stdout:
            if line.startswith("epoch"):
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=100)
        self.assertIn("interrupted", out)
        self.assertIn("profile: flamegraph.svg", err)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("forward;conv1", (self.folder / "flamegraph.folded").read_text())


class Switches(InFolder):
    """Of the program itself: it takes what the script sets, and that changes no result."""

    def sha(self, **variables):
        done = subprocess.run([ARENITE, "train", "--dataset", "synthetic", "--model", "lenet5", "--epochs", "1", "--limit", "640"],
                              env=dict(os.environ, **variables), capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr)
        return re.search("weights sha256: (.*)", done.stdout)[1]

    def test_bits_stay_the_same(self):
        plain = self.sha()
        self.assertEqual(self.sha(ARENITE_CREW="off"), plain)
        process = subprocess.Popen([ARENITE, "train", "--dataset", "synthetic", "--model", "lenet5", "--epochs", "1", "--limit", "640"],
                                   env=dict(os.environ, ARENITE_PERF_MAP="1"), stdout=subprocess.PIPE, text=True)
        out, _ = process.communicate(timeout=200)
        named = pathlib.Path(f"/tmp/perf-{process.pid}.map")
        self.assertIn(f"weights sha256: {plain}", out)
        self.assertEqual(stat.S_IMODE(named.stat().st_mode), 0o600)
        lines = named.read_text().splitlines()
        named.unlink()
        self.assertTrue(all(re.fullmatch(r"[0-9a-f]+ [0-9a-f]+ \S.*", line) for line in lines))
        if os.uname().machine in ("x86_64", "aarch64"):
            self.assertTrue(any(" update sgd conv1.bias [" in line for line in lines))

    def test_as_many_steps_as_the_script_lets_through(self):
        words = [ARENITE, "train", "--dataset", "synthetic", "--model", "mlp", "--epochs", "1", "--limit", "64"]
        for steps, status in {captures.MOST_STEPS: 0, captures.MOST_STEPS + 1: 2}.items():
            variables = {"ARENITE_TRACE": str(self.folder / "t.json"), "ARENITE_TRACE_STEPS": str(steps)}
            done = subprocess.run(words, env=dict(os.environ, **variables), capture_output=True, text=True, timeout=200)
            self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn(f"a whole number of 1 to {captures.MOST_STEPS}", done.stderr)

    def test_wrong_values(self):
        for name, value in {"ARENITE_PERF_MAP": "2", "ARENITE_CREW": "no"}.items():
            done = subprocess.run([ARENITE, "train", "--dataset", "synthetic", "--model", "mlp", "--epochs", "1", "--limit", "64"],
                                  env=dict(os.environ, **{name: value}), capture_output=True, text=True, timeout=200)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"{name}='{value}'; expected", done.stderr)


if __name__ == "__main__":
    ARENITE = os.path.abspath(sys.argv.pop(1))
    SANITIZE = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else ""
    for setting in [name for name in os.environ if name.startswith(("ARENITE_", "STARPU_"))]:
        del os.environ[setting]
    unittest.main()
