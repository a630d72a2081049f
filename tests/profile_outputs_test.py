#!/usr/bin/env python3
"""scripts/profile: the files it writes, and those that it has commands write. Runs nothing that was built."""
import json
import os
import shutil
import stat
import subprocess
import threading
import unittest

from profile_in_folder import SCRIPT, InFolder
from profile_samples import NEW, OLD

import paje
import stacks

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="800" height="300"/>'
NOBODY = 65534

TRACE = {"traceEvents": [
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 0, "args": {"name": "worker 0"}},
    {"ph": "X", "name": "conv1", "pid": 1, "tid": 0, "ts": 10, "dur": 1500, "args": {"program": "train", "step": 3, "task": 0}},
    {"ph": "X", "name": "conv1", "pid": 1, "tid": 1, "ts": 2010, "dur": 500, "args": {"program": "train", "step": 4, "task": 0}},
    {"ph": "C", "name": "live bytes", "pid": 1, "ts": 10, "args": {"bytes": 5}}]}


class Outputs(InFolder):
    """What a picture's name may name. A link to standard output stands in for /dev/stdout, lest a mistake replace that."""

    def setUp(self):
        super().setUp()
        (self.folder / "a.folded").write_text(stacks.text(OLD))
        (self.folder / "b.folded").write_text(stacks.text(NEW))
        (self.folder / "link").symlink_to("/proc/self/fd/1")

    def draw(self, out, status=0, **rest):
        return self.profile("difference", "a.folded", "b.folded", "--renderer", "own", "-o", out, status=status, **rest)

    def assertDrawn(self, text):
        self.assertRegex(text, r"(?s)\A<svg .*</svg>\n\Z")

    def test_a_pipe_stays_a_pipe(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        read = []
        reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
        reader.start()
        self.draw(pipe)
        self.assertTrue(stat.S_ISFIFO(pipe.lstat().st_mode))
        reader.join(60)
        self.assertDrawn(read[0])

    def test_standard_output_gets_the_picture(self):
        self.assertDrawn(self.draw("link").stdout)
        with open(self.folder / "printed", "w+", encoding="utf-8") as printed:
            printed.write("before\n")
            printed.flush()
            self.draw("link", run={"stdout": printed})
            printed.write("after\n")
        before, _, rest = (self.folder / "printed").read_text().partition("\n")
        self.assertEqual((before, rest[-6:]), ("before", "after\n"))
        self.assertDrawn(rest[:-6])
        self.assertEqual(os.readlink(self.folder / "link"), "/proc/self/fd/1")

    def test_a_device_stays_a_device(self):
        device = self.folder / "device"
        try:
            os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))  # as /dev/null
            open(device, "wb").close()
        except PermissionError:
            self.skipTest("no device may be made here")
        self.draw(device)
        self.assertTrue(stat.S_ISCHR(device.lstat().st_mode))

    def test_links_lead_to_what_is_written(self):
        (self.folder / "there").mkdir()
        for link, target in {"old.svg": "there/old.svg", "new.svg": "there/new.svg"}.items():
            (self.folder / link).symlink_to(target)
        (self.folder / "there" / "old.svg").write_text("old")
        for link in "old.svg", "new.svg":
            self.draw(link)
            self.assertTrue((self.folder / link).is_symlink())
            self.assertDrawn((self.folder / "there" / link).read_text())
        (self.folder / "lost.svg").symlink_to("nowhere/lost.svg")
        self.assertIn("nowhere is no folder", self.draw("lost.svg", status=2).stderr)
        (self.folder / "round.svg").symlink_to("round.svg")
        self.assertIn("symbolic links", self.draw("round.svg", status=2).stderr)

    def test_names_and_permissions(self):
        self.draw("x" * 250)
        self.assertDrawn((self.folder / ("x" * 250)).read_text())
        self.assertIn("File name too long", self.draw("x" * 300, status=2).stderr)
        (self.folder / "mine.svg").write_text("old")
        (self.folder / "mine.svg").chmod(0o640)
        self.draw("mine.svg")
        self.assertEqual(stat.S_IMODE((self.folder / "mine.svg").stat().st_mode), 0o640)

    def test_what_may_not_be_written(self):
        how = {}
        if os.geteuid() == 0:  # who may write everywhere
            how = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "executable": "/usr/bin/python3"}
            self.folder.chmod(0o755)
            try:
                subprocess.run(["python3", SCRIPT, "--help"], capture_output=True, check=True, **how)
            except (OSError, subprocess.CalledProcessError):
                self.skipTest("as another user than root neither Python nor the script can be read")
        for name, mode, expected in ("closed", 0o000, "Permission denied"), ("kept", 0o555, "kept cannot be written"):
            (self.folder / name).mkdir(mode=mode)
            self.addCleanup((self.folder / name).chmod, 0o755)
            for verb in "flamegraph", "trace", "memory":
                self.assertIn(expected, self.profile(verb, "-o", f"{name}/x", "--", "true", status=2, run=how).stderr)
        (self.folder / "kept.svg").write_text("kept")
        (self.folder / "kept.svg").chmod(0o444)
        self.assertIn("may not be replaced", self.draw("kept.svg", status=2, run=how).stderr)

    def test_what_a_command_writes_has_to_be_a_file(self):
        os.mkfifo(self.folder / "pipe")
        ran = self.program("run", "touch ran\n")
        for verb in "trace", "memory":
            for out in "pipe", "link":
                self.assertIn("a device, a pipe or a socket; expected a path of a file",
                              self.profile(verb, "-o", out, "--", ran, status=2).stderr)
            with open(self.folder / "printed", "w", encoding="utf-8") as printed:
                self.assertIn("what is printed goes there", self.profile(verb, "-o", "link", "--", ran, status=2, run={"stdout": printed}).stderr)
        self.assertFalse((self.folder / "ran").exists())
        self.assertTrue(stat.S_ISFIFO((self.folder / "pipe").lstat().st_mode))


class WrittenByArenite(InFolder):
    def test_a_trace(self):
        (self.folder / "made").write_text(json.dumps(TRACE))
        done = self.profile("trace", "-o", "t.json", "--steps", "5", "--", "sh", "-c",
                            'cp made "$ARENITE_TRACE"; echo $ARENITE_TRACE_STEPS $ARENITE_CREW')
        self.assertEqual(done.stdout, "5\n")
        self.assertIn("profile: t.json: 2 tasks in 2 steps on 2 workers, 1 counter, 2.5 ms\n", done.stderr)
        self.assertIn("ui.perfetto.dev", done.stderr)
        done = self.profile("trace", "--", "sh", "-c", 'cp made "$ARENITE_TRACE"; exit 4', status=4)

    def test_whose_trace_it_is(self):
        def written(by, words):
            (self.folder / "made").write_text(json.dumps(dict(TRACE, otherData={"process": "PID", "command": words})))
            return f"sed 's/\"PID\"/'{by}'/' made > \"$ARENITE_TRACE\""
        own = self.profile("trace", "--", "sh", "-c", "echo $$; " + written("$$", ["train", "a b"]))
        self.assertIn(f"\n  of process {own.stdout.strip()}: train 'a b'\n  open it", own.stderr)
        other = self.profile("trace", "--", "sh", "-c", written("1", ["train"] * 50)).stderr
        self.assertRegex(other, r"\n  of process 1: (train )+t?r?a?i?n?…\n  the command started it; of several such processes the last")

    def test_steps_of_sets(self):
        events = [dict(event, args=dict(event["args"], set=number, step=3)) for number in (0, 1) for event in TRACE["traceEvents"][1:3]]
        (self.folder / "made").write_text(json.dumps({"traceEvents": events}))
        self.assertIn(": 4 tasks in 2 steps on", self.profile("trace", "--", "sh", "-c", 'cp made "$ARENITE_TRACE"').stderr)

    def test_none_came(self):
        self.assertIn("the command ran, but wrote no trace.json", self.profile("trace", "--", "true", status=1).stderr)
        self.assertIn("ended with status 6 before", self.profile("trace", "--", "sh", "-c", "exit 6", status=6).stderr)
        (self.folder / "trace.json").write_text(json.dumps(TRACE))  # of an earlier run
        self.assertIn("wrote no trace.json", self.profile("trace", "--", "true", status=1).stderr)
        self.assertIn("wrote no memory.svg", self.profile("memory", "--", "true", status=1).stderr)

    def test_what_came_is_looked_at(self):
        for text, expected in {"{": "is no JSON", "[]": "holds no task", "{}": "is no trace", '{"traceEvents": [{}]}': "is no trace",
                               '{"traceEvents": [{"ph": "C", "name": "x"}]}': "holds no task"}.items():
            (self.folder / "made").write_text(text)
            self.assertIn(expected, self.profile("trace", "--", "sh", "-c", 'cat made > "$ARENITE_TRACE"', status=1).stderr)
        (self.folder / "made").write_text("<html/>")
        self.assertIn("its root is <html>", self.profile("memory", "--", "sh", "-c", 'cp made "$ARENITE_MEMORY"', status=1).stderr)
        (self.folder / "made").write_text("<svg")
        self.assertIn("is no SVG", self.profile("memory", "--", "sh", "-c", 'cp made "$ARENITE_MEMORY"', status=1).stderr)

    def test_a_picture_of_the_memory(self):
        (self.folder / "made").write_text(SVG)
        done = self.profile("memory", "-o", "m.svg", "--", "sh", "-c", 'cp made "$ARENITE_MEMORY"')
        self.assertIn("profile: m.svg: 800 × 300, 0 KiB", done.stderr)

    def test_pajes_format_where_starpu_has_it(self):
        self.assertIn("'true' loads no StarPU", self.profile("trace", "--paje", "on", "--", "true", status=1).stderr)
        library = self.folder / "lib" / "libstarpu-1.4.so.9"
        library.parent.mkdir()
        library.write_bytes(b"\x7fELF")
        self.assertFalse(paje.has_fxt(library))
        library.write_bytes(b"\x7fELF\0starpu_fxt_generate_trace\0")
        self.assertTrue(paje.has_fxt(library))
        self.assertFalse(paje.has_fxt(self.folder / "missing"))
        # A program that loads it, as ldd says.
        tools = self.folder / "tools"
        self.program("ldd", f"echo '  libstarpu-1.4.so.9 => {library} (0x1)'\n", tools)
        (self.folder / "made").write_text(json.dumps(TRACE))
        train = self.program("train", 'echo $ARENITE_CREW $STARPU_FXT_TRACE; cp made "$ARENITE_TRACE"; echo e > "${STARPU_FXT_PREFIX}prof_file_me_0"\n')
        path = f"{tools}:{os.environ['PATH']}"
        if not shutil.which("starpu_fxt_tool"):
            self.assertIn("no starpu_fxt_tool beside", self.profile("trace", "--paje", "on", "--", train, path=path, status=1).stderr)
        self.program("starpu_fxt_tool", 'cat "$2" > paje.trace\n', self.folder / "bin")
        done = self.profile("trace", "-o", "t.json", "--", train, path=path)
        self.assertEqual(done.stdout, "off 1\n")
        self.assertIn("profile: t.paje: StarPU's own trace", done.stderr)
        (self.folder / "folder.paje").mkdir()
        self.assertIn("folder.paje is a folder", self.profile("trace", "-o", "folder.json", "--", train, path=path, status=2).stderr)
        self.assertEqual((self.folder / "t.paje").read_text(), "e\n")
        self.assertEqual(self.profile("trace", "--paje", "off", "--", train, path=path).stdout, "\n")
        self.program("starpu_fxt_tool", "echo cannot >&2; exit 1\n", self.folder / "bin")
        self.assertIn("makes no trace of StarPU's events: cannot", self.profile("trace", "--", train, path=path, status=1).stderr)


if __name__ == "__main__":
    for setting in [name for name in os.environ if name.startswith(("ARENITE_", "STARPU_"))]:
        del os.environ[setting]
    unittest.main()
