#!/usr/bin/env python3
"""The files that `arenite train` writes, and its standard output, on disks and paths that refuse them. Usage:
cli_outputs_test.py COMMAND [SANITIZER]

A file is whole or what it was before; what cannot be written ends with status 2 and a message."""
import json
import os
import pathlib
import re
import resource
import subprocess
import tempfile
import threading
import unittest

import cli_testing
from cli_testing import small, start, train

FOLDER = "expected a path in a folder that exists and may be written"
OPTIONS = {"--log": "log", "--plan-svg": "--plan-svg", "--plan-json": "--plan-json"}  # as messages name them


def limited(size):
    """No file may grow beyond this many bytes."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


class Outputs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def path(self, name):
        return str(self.root / name)

    def refused(self, done, message, status=2):
        self.assertRegex(done.stderr, rf"\Aarenite: {message}\n\Z")
        self.assertEqual(done.returncode, status)
        if done.stdout is not None:
            self.assertNotIn("test accuracy:", done.stdout)

    def refused_at_once(self, *arguments, message, **more):
        """Before even the data are looked for, and with all files as they were."""
        before = cli_testing.snapshot(self.root)
        done = train("--dataset", "mnist", "--data", self.path("no data"), *arguments, **more)
        self.refused(done, re.escape(message))
        self.assertEqual(done.stdout, "")
        self.assertEqual(cli_testing.snapshot(self.root), before)

    def whole_lines(self, path):
        text = pathlib.Path(path).read_text()
        self.assertTrue(text.endswith("\n"))
        return [json.loads(line) for line in text.splitlines()]

    def test_wrong_paths(self):
        (self.root / "file").write_text("mine")
        for option, name in OPTIONS.items():
            for path, reason, expected in [
                    (self.path("missing/x"), "No such file or directory", FOLDER),
                    (self.path("file/x"), "Not a directory", FOLDER),
                    (str(self.root), "Is a directory", "expected a path of a file")]:
                with self.subTest(option=option, path=path):
                    self.refused_at_once(option, path, message=f"{name} '{path}': cannot create it: {reason}; {expected}")

    def test_what_may_not_be_written(self):
        # Root may write everything: then somebody else has to try.
        other = {"preexec_fn": lambda: os.setuid(65534)} if os.getuid() == 0 else {}
        self.root.chmod(0o755)
        locked, open_to_all = self.root / "locked", self.root / "open"
        for folder, mode in ((locked, 0o555), (open_to_all, 0o777)):
            folder.mkdir()
            (folder / "theirs").write_text("older")
            (folder / "theirs").chmod(0o444)
            folder.chmod(mode)
        try:
            cli_testing.run("--version", **other)
        except PermissionError:
            self.skipTest("only root may run the command here")
        path = str(locked / "new")
        self.refused_at_once("--log", path, **other,
                             message=f"log '{path}': cannot create it: Permission denied; {FOLDER}")
        path = str(open_to_all / "theirs")  # the folder would let us replace it
        self.refused_at_once("--log", path, **other, message=f"log '{path}': cannot replace it: Permission denied; "
                                                             "expected a file that may be written")

    def test_one_file_for_two(self):
        (self.root / "link").symlink_to("x")
        for first, second, path in [("--log", "--plan-json", "x"), ("--plan-svg", "--plan-json", "./x"),
                                    ("--log", "--plan-svg", "link")]:
            self.refused_at_once(first, self.path("x"), second, self.path(path),
                                 message=f"{first} and {second} name the same file '{self.path(path)}'; "
                                         "expected a file of its own for each")

    def test_a_second_plan_is_a_file_too(self):
        self.refused_at_once("--arenas", "two", "--log", self.path("x.1"), "--plan-svg", self.path("x"),
                             message=f"--log and --plan-svg name the same file '{self.path('x.1')}'; "
                                     "expected a file of its own for each")

    def test_captures_are_files_too(self):
        for variable in ("ARENITE_TRACE", "ARENITE_MEMORY"):
            self.refused_at_once("--log", self.path("x"), **{variable: self.path("x")},
                                 message=f"--log and {variable} name the same file '{self.path('x')}'; "
                                         "expected a file of its own for each")

    def test_a_folder_that_is_gone(self):
        gone = self.root / "gone"
        gone.mkdir()
        script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
        done = subprocess.run(["sh", "-c", script, "sh", str(gone), cli_testing.COMMAND, *small("--log", "x")],
                              capture_output=True, text=True, timeout=120, env=cli_testing.clean_environment())
        self.refused(done, f"log 'x': cannot create it: No such file or directory; {FOLDER}")

    def test_an_older_log_stays_until_a_line_is_whole(self):
        log = self.root / "log"
        log.write_text("older\n")
        for arguments in (["--batch", "201"], ["--dataset", "mnist", "--data", self.path("missing")]):
            self.assertEqual(train("--log", str(log), *arguments).returncode, 2)
            self.assertEqual(cli_testing.snapshot(self.root), {"log": b"older\n"})
        process = start("--log", str(log), "--epochs", "1000000")
        for line in process.stdout:
            if line.startswith("epoch 2/"):
                break
        self.assertEqual(len(os.listdir(self.root)), 1)
        for line in log.read_text().splitlines():
            self.assertEqual(json.loads(line)["event"], "epoch")
        process.terminate()
        process.communicate()
        self.assertEqual(self.whole_lines(log)[-1]["event"], "end")

    def test_links_are_followed(self):
        (self.root / "far").mkdir()
        (self.root / "log").symlink_to("far/log")
        self.assertEqual(train("--log", self.path("log")).returncode, 0)
        self.assertTrue((self.root / "log").is_symlink())
        self.assertEqual(len(self.whole_lines(self.root / "far" / "log")), 2)

    def test_a_full_device(self):
        full = r"'/dev/full': cannot write it: No space left on device; expected room for \d+ more bytes"
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        done = train("--log", "/dev/full")
        self.refused(done, "log " + full)
        self.assertIn("\nepoch 1/1  loss", done.stdout)
        for option, other in (("--plan-svg", "--plan-json"), ("--plan-json", "--plan-svg")):
            done = train(option, "/dev/full", other, self.path("other"), "--log", self.path("log"))
            self.refused(done, f"{option} {full}")
            self.assertNotIn("epoch", done.stdout)
            self.assertEqual(cli_testing.snapshot(self.root), {})

    def test_a_full_disk(self):
        log = self.root / "log"
        log.write_text("older\n")
        too_large = "cannot write it: File too large; expected room for \\d+ more bytes"
        done = train("--log", str(log), preexec_fn=limited(10))
        self.refused(done, f"log '{log}': {too_large}")
        self.assertEqual(cli_testing.snapshot(self.root), {"log": b"older\n"})
        done = train("--log", str(log), "--epochs", "4", preexec_fn=limited(500))
        self.refused(done, f"log '{log}': {too_large}")
        self.assertEqual([line["epoch"] for line in self.whole_lines(log)], [0, 1])
        for option in ("--plan-svg", "--plan-json"):
            done = train(option, self.path("plan"), preexec_fn=limited(500))
            self.refused(done, f"{option} '{self.path('plan')}': {too_large}")
            self.assertNotIn("epoch", done.stdout)
        self.assertEqual(os.listdir(self.root), ["log"])

    def test_a_full_file_system(self):
        small_disk = self.root / "small"
        small_disk.mkdir()
        if os.getuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(small_disk)],
                                              stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no file system may be mounted here")
        self.addCleanup(subprocess.run, ["umount", str(small_disk)])
        (small_disk / "log").write_text("older\n")
        (small_disk / "filler").write_bytes(bytes(8 << 10))
        done = train("--plan-svg", str(small_disk / "plan.svg"), "--log", str(small_disk / "log"))
        self.refused(done, rf"--plan-svg '{small_disk}/plan.svg': cannot write it: No space left on device; expected "
                           r"room for \d+ more bytes")
        (small_disk / "filler").write_bytes(bytes(12 << 10))
        done = train("--log", str(small_disk / "log"))
        self.refused(done, rf"log '{small_disk}/log': cannot write it: No space left on device; expected room for "
                           r"\d+ more bytes")
        self.assertEqual(sorted(os.listdir(small_disk)), ["filler", "log"])
        self.assertEqual((small_disk / "log").read_text(), "older\n")

    def test_pictures_of_both_blocks_or_none(self):
        arguments = ("--arenas", "two", "--plan-svg", self.path("svg"), "--plan-json", self.path("json"), "--epochs", "0")
        self.assertEqual(train(*arguments).returncode, 0)
        self.assertEqual(sorted(os.listdir(self.root)), ["json", "json.1", "svg", "svg.1"])
        for name in os.listdir(self.root):
            os.remove(self.path(name))
        (self.root / "json.1").mkdir()
        self.refused(train(*arguments), rf"--plan-json '{self.path('json.1')}': cannot create it: Is a directory; "
                                        "expected a path of a file")
        self.assertEqual(os.listdir(self.root), ["json.1"])

    def test_a_pipe(self):
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        read = []
        reader = threading.Thread(target=lambda: read.extend(pathlib.Path(pipe).read_text().splitlines()))
        reader.start()
        self.assertEqual(train("--log", pipe, "--epochs", "2").returncode, 0)
        reader.join()
        self.assertEqual([json.loads(line)["event"] for line in read], ["epoch", "epoch", "end"])

    def test_the_standard_output(self):
        with open(self.path("out"), "w+") as out:
            out.write("before\n")
            out.flush()
            self.assertEqual(train("--log", "/dev/stdout", stdout=out).returncode, 0)
            out.seek(0)
            to_file = out.read()
        self.assertTrue(to_file.startswith("before\n"))
        for text in (to_file, train("--log", "/dev/stdout").stdout):
            self.assertRegex(text, r'\nepoch 1/1 [^\n]*\n\{"event":"epoch"[^\n]*\n\{"event":"end"[^\n]*\n')
            self.assertIn("\nweights sha256: ", text)

    def test_an_output_that_takes_no_more(self):
        log = self.path("log")
        if os.path.exists("/dev/full"):
            with open("/dev/full", "w") as full:
                done = train("--log", log, stdout=full)
            self.refused(done, "the output could not be written: No space left on device; expected a standard output "
                               "that takes it", status=1)
        process = start("--log", log, "--epochs", "1000000")
        process.stdout.close()
        error = process.stderr.read()
        self.assertEqual(process.wait(timeout=60), 1)
        process.stderr.close()
        self.assertEqual(error, "arenite: the output could not be written: Broken pipe; expected a standard output that "
                                "takes it\n")
        self.assertEqual(os.listdir(self.root), [])  # no line was whole: no file


if __name__ == "__main__":
    cli_testing.main()
