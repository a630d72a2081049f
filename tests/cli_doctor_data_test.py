#!/usr/bin/env python3
"""What `arenite doctor data` finds, and that it is mended by what it says. Usage: cli_doctor_data_test.py COMMAND [SANITIZER]"""
import os
import pathlib
import re
import resource
import shutil
import subprocess

import cli_testing
from cli_doctor_testing import Doctor
from cli_testing import NAMES, run

ROOT = pathlib.Path(__file__).resolve().parent.parent


def checksums():
    """Of Fashion-MNIST's files, as datasets/fetch has them."""
    script = (ROOT / "datasets/fetch").read_text(encoding="utf-8")
    block = re.search(r"fashion-mnist\)\n +cat <<'END'\n(.*?)END", script, re.S)[1]
    return dict(reversed(line.removesuffix(".gz").split()) for line in block.splitlines())


class Data(Doctor):
    def looked_at(self, status, folder):
        return self.examined("data", status=status, ARENITE_DATASETS=str(folder), ARENITE_CACHE=str(self.root / "cache"))["data"]

    def test_missing(self):
        problem = self.problem(self.looked_at(0, self.root), "note")
        self.assertIn(f"{self.root}/fashion-mnist, {self.root}/cache/fashion-mnist", problem["what"])
        for way in ("fetch it, in Arenite's source: datasets/fetch fashion-mnist;", "ARENITE_DATASETS", "arenite train --dataset synthetic"):
            self.assertIn(way, problem["mend"])

    def test_damaged(self):
        folder = cli_testing.write_set(self.root / "fashion-mnist")
        images = folder / NAMES["train"][0]
        images.write_bytes(images.read_bytes()[:100])
        check = self.looked_at(1, self.root)
        self.assertEqual(check["says"], f"Fashion-MNIST in {folder} cannot be read")
        problem = self.problem(check, "fails")
        self.assertIn(f"{images}, byte 100: a file of 100 bytes", problem["what"])
        self.assertEqual(problem["mend"], f"fetch it again, in Arenite's source: datasets/fetch --to {folder} fashion-mnist")
        images.unlink()
        self.assertIn("no file train-images", self.problem(self.looked_at(1, self.root), "fails")["what"])

    def test_other_data_of_this_name(self):
        folder = cli_testing.write_set(self.root / "fashion-mnist")
        check = self.looked_at(1, self.root)
        what = self.problem(check, "fails")["what"]
        name = NAMES["train"][0]
        self.assertIn(f"{folder} holds other data under this name: {name} has SHA-256 ", what)
        self.assertIn(f"expected {checksums()[name]}", what)
        self.assertEqual((check["facts"]["found"], check["facts"]["right"]), (True, False))

    def mended(self, root, problem):
        """By what the doctor says, in Arenite's source, as from a place that has the set."""
        command = re.fullmatch(r"fetch it again, in Arenite's source: (.*?)(?:; or name .*)?", problem["mend"])[1]
        base = pathlib.Path(os.environ["ARENITE_DATASETS"]).as_uri()
        environment = cli_testing.clean_environment(ARENITE_CACHE=str(self.root / "cache"), ARENITE_DATASETS=str(root), ARENITE_FETCH_BASE=base)
        done = subprocess.run(command, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        check = self.looked_at(0, root)
        self.assertEqual((check["mark"], check["facts"]["right"]), ("ok", True), done.stderr)

    def test_the_mend_mends(self):
        root = os.environ.get("ARENITE_DATASETS")
        if not root or not os.path.isdir(f"{root}/fashion-mnist"):
            self.skipTest("Fashion-MNIST is not here: set ARENITE_DATASETS")
        if not shutil.which("curl"):
            self.skipTest("no curl, which reads file://")
        ours = self.root / "it's a folder"
        folder = ours / "fashion-mnist"
        shutil.copytree(f"{root}/fashion-mnist", folder)
        images, labels = NAMES["train"]

        def cut():
            path = folder / f"{images}.gz"
            path.write_bytes(path.read_bytes()[:1000])

        def lose():
            (folder / f"{labels}.gz").unlink()

        def other_set():
            """Plain files are taken first, in the one spelling and the other."""
            cli_testing.write_set(folder)
            for name in NAMES["test"]:
                (folder / name).rename(folder / name.replace("-idx", ".idx"))

        for damage in (cut, lose, other_set):
            with self.subTest(damage=damage.__name__):
                damage()
                self.mended(ours, self.problem(self.looked_at(1, ours), "fails"))
        self.assertEqual(len(list(folder.glob("*.wrong"))), 4)  # they may have been somebody's

    def test_what_no_fetch_mends(self):
        if cli_testing.SANITIZER:
            self.skipTest("a sanitizer needs files and addresses of its own")
        folder = cli_testing.write_set(self.root / "fashion-mnist")
        images = folder / NAMES["train"][0]
        environment = {"ARENITE_DATASETS": str(self.root), "ARENITE_CACHE": str(self.root / "cache")}

        def mend(limit, number):
            how = {"preexec_fn": lambda: resource.setrlimit(limit, (number, number))}
            return self.problem(self.examined("data", status=1, **how, **environment)["data"], "fails")

        few = mend(resource.RLIMIT_NOFILE, 7)
        self.assertIn("Too many open files", few["what"])
        self.assertEqual(few["mend"], "raise the limit of open files, `ulimit -n`")
        with open(images, "r+b") as file:  # a file that no map has room for
            file.truncate(1 << 30)
        small = mend(resource.RLIMIT_AS, (900 << 20) + cli_testing.libraries())
        self.assertIn("cannot map: Cannot allocate memory", small["what"])
        self.assertIn("`ulimit -v`", small["mend"])

    def test_what_may_not_be_read(self):
        other = {"preexec_fn": lambda: os.setuid(65534)} if os.getuid() == 0 else {}
        folder = cli_testing.write_set(self.root / "fashion-mnist")
        try:
            run("--version", **other)
        except PermissionError:
            self.skipTest("only root may run the command here")
        for path, mode, command in ((folder / NAMES["test"][1], 0o000, f"chmod -R a+rX {folder}"),
                                    (folder, 0o644, f"chmod -R a+rX {folder}"),
                                    (self.root, 0o644, f"chmod a+x {self.root}")):
            with self.subTest(path=path):
                self.root.chmod(0o755)
                before = path.stat().st_mode
                path.chmod(mode)
                found = self.examined("data", status=1, ARENITE_DATASETS=str(self.root), ARENITE_CACHE="/nowhere", **other)["data"]
                problem = self.problem(found, "fails")
                self.assertIn("Permission denied", problem["what"])
                self.assertEqual(problem["mend"], f"let this user read it, as its owner: {command}")
                subprocess.run(command, shell=True, check=True)
                found = self.examined("data", status=1, ARENITE_DATASETS=str(self.root), ARENITE_CACHE="/nowhere", **other)["data"]
                self.assertIn("holds other data", self.problem(found, "fails")["what"])
                path.chmod(before)

    def test_fashion_mnist(self):
        """Whole, and with one pixel changed in each file."""
        root = os.environ.get("ARENITE_DATASETS")
        if not root or not os.path.isdir(f"{root}/fashion-mnist"):
            self.skipTest("Fashion-MNIST is not here: set ARENITE_DATASETS")
        check = self.looked_at(0, root)
        self.assertEqual((check["mark"], check["facts"]["right"]), ("ok", True))
        # In the cache they lie unpacked.
        unpacked = sorted((self.root / "cache" / "unpacked").iterdir())
        folder = self.root / "fashion-mnist"
        for name in checksums():
            source = next(path for path in unpacked if path.name.startswith(name))
            folder.mkdir(exist_ok=True)
            shutil.copy(source, folder / name)
        self.assertEqual(self.looked_at(0, self.root)["mark"], "ok")
        for name, sha256 in checksums().items():
            path = folder / name
            whole = path.read_bytes()
            path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
            self.assertRegex(self.problem(self.looked_at(1, self.root), "fails")["what"],
                             rf"{name} has SHA-256 (?!{sha256})[0-9a-f]+; expected {sha256}")
            path.write_bytes(whole)


if __name__ == "__main__":
    cli_testing.main()
