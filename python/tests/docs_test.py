#!/usr/bin/env python3
"""docs/python.md, docs/coming-from-pytorch.md and the README: their blocks run, one after the other,
and every operator is named.
"""

import contextlib
import io
import os
import re
import tempfile

import testing
from testing import np

import arenite

README = (testing.ROOT / "README.md").read_text(encoding="utf-8")
SCRIPTS = "".join(
    re.findall(
        r"^```arenite\n(.*?)^```$",
        (testing.ROOT / "docs/scripts.md").read_text(encoding="utf-8"),
        re.M | re.S,
    )
)
PAGE = (testing.ROOT / "docs/python.md").read_text(encoding="utf-8")
FUNCTIONS = {
    name
    for name, value in vars(arenite.functional).items()
    if callable(value) and not name.startswith("_")
}


class Page(testing.TestCase):
    def run_blocks(self, name, files):
        """What they have defined; `files` are left behind."""
        page = (testing.ROOT / "docs" / name).read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
        self.assertGreater(len(blocks), 3)
        names, here = {}, os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                for block in blocks:
                    with self.subTest(block), contextlib.redirect_stdout(io.StringIO()):
                        exec(compile(block, name, "exec"), names)
                self.assertEqual(sorted(os.listdir()), files)
            finally:
                os.chdir(here)
        return names

    def test_every_block_runs(self):
        self.run_blocks("python.md", ["digits.safetensors", "plan.svg", "run.safetensors"])

    def test_every_line_for_those_who_come_from_pytorch(self):
        names = self.run_blocks("coming-from-pytorch.md", ["model.st"])
        names["x"] = arenite.input("x", (4, 4))
        page = (testing.ROOT / "docs/coming-from-pytorch.md").read_text(encoding="utf-8")
        done, says = {True: 0, False: 0}, False
        for line in page.splitlines():
            cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
            if cells[0] == "PyTorch":
                says = cells[1] == "what the error says"
            elif line.startswith("| `"):
                done[says] += 1
                with self.subTest(line):
                    if not says:
                        exec(cells[1], names)
                        continue
                    with self.assertRaises((arenite.Error, AttributeError)) as caught:
                        exec(cells[0], names)
                    self.assertIn(cells[1].split("…")[0], str(caught.exception))
        self.assertEqual(done, {True: 9, False: 38})
        found = eval("of_dense_behind_flatten(a.reshape(1, -1), 2, 3, 4)", {**names, "a": np.arange(24)})
        self.assertEqual(found.ravel().tolist(), np.arange(24).reshape(2, 3, 4).transpose(1, 2, 0).ravel().tolist())

    def test_the_readmes_block_runs(self):
        (block,) = re.findall(r"^```python\n(.*?)^```$", README, re.M | re.S)
        images = np.random.default_rng(0).standard_normal((128, 28, 28, 1)).astype(np.float32)
        names = {"images": images, "labels": np.arange(128) % 10}
        arenite.manual_seed(0)
        exec(compile(block, "README.md", "exec"), names)
        self.assertLess(names["trainer"].evaluate(names["images"], names["labels"]).loss, 2.4)

    def test_every_statement_of_a_script_is_a_function(self):
        declared = set(re.findall(r"^formula (\w+)", SCRIPTS, re.M))
        calls = re.sub(r"^entry .*", "", SCRIPTS, flags=re.M)
        calls = re.sub(r"^formula [^{]*\{[^}]*\}", "", calls, flags=re.M)
        calls = re.sub(r"\{[^{}$]*\$1[^{}]*\}", "", calls)  # but of formulas
        calls = re.sub(r"\w+Tensor\(.*", "", calls)
        statements = set(re.findall(r"^\$?.*?\b([a-z]\w+)\(", calls, re.M))
        self.assertIn("relu", statements)
        others = {"if": "cond", "sum": "sum_of"}
        statements -= {"average", "check_loss"} | declared  # what arenite.train writes
        wanted = {others.get(name, name) for name in statements}
        self.assertEqual(wanted - set(dir(arenite.functional)), set())

    def test_every_operator_is_named(self):
        named = set(re.findall(r"`(\w+)`", PAGE))
        self.assertEqual(FUNCTIONS - named, set())


if __name__ == "__main__":
    testing.main()
