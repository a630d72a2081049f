"""What the tests of `arenite doctor` share: what its checks found, read strictly."""
import json
import pathlib
import tempfile
import unittest

from cli_testing import run

CHECKS = ("starpu", "cpu", "processors", "gpu", "locking", "data", "folders", "perf", "run")


class Doctor(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def examined(self, *checks, status=None, **how):
        """What the checks found, by their names."""
        done = run("doctor", "--json", *checks, **how)
        self.assertEqual(done.stderr, "")
        said = json.loads(done.stdout)
        self.assertEqual(list(said), ["arenite", "ok", "checks"])
        failed = any(check["mark"] == "fails" for check in said["checks"])
        self.assertEqual((said["ok"], done.returncode), (not failed, int(failed)))
        if status is not None:
            self.assertEqual(done.returncode, status, done.stdout)
        self.assertEqual([check["check"] for check in said["checks"]], [name for name in CHECKS if name in checks or not checks])
        for check in said["checks"]:
            self.assertEqual(list(check), ["check", "mark", "says", "details", "problems", "facts"])
            self.assertTrue(check["says"])
            marks = [problem["mark"] for problem in check["problems"]]
            self.assertEqual(check["mark"], "fails" if "fails" in marks else "note" if marks else "ok")
        return {check.pop("check"): check for check in said["checks"]}

    def problem(self, check, mark):
        """The only one of a check."""
        self.assertEqual([problem["mark"] for problem in check["problems"]], [mark], check)
        return check["problems"][0]
