"""scripts/profile, run as people run it, in a folder of its own."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "profile"
sys.path.insert(0, str(ROOT / "scripts" / "profiling"))


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def program(self, name, text, folder=None):
        path = (folder or self.folder) / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}")
        path.chmod(0o755)
        return path

    def profile(self, *words, status=0, path=None, run=None, **variables):
        """`run` has more arguments for subprocess.run."""
        environment = dict(os.environ, **variables)
        if path is not None:
            environment["PATH"] = path
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 200}
        done = subprocess.run([sys.executable, SCRIPT, *map(str, words)], cwd=self.folder, env=environment, **how | (run or {}))
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(done.returncode, status, done.stderr)
        left = [entry.name for entry in self.folder.iterdir() if entry.name.startswith(".")]
        self.assertEqual(left, [])
        return done
