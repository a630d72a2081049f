#!/usr/bin/env python3
"""docs/python.md and the README: their blocks run, one after the other, and every operator is
named.
"""

import contextlib
import io
import os
import re
import tempfile

import testing
from testing import floats, np

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
    def test_every_block_runs(self):
        blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
        self.assertGreater(len(blocks), 5)
        names, here = {}, os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                for block in blocks:
                    with self.subTest(block), contextlib.redirect_stdout(io.StringIO()):
                        exec(compile(block, "docs/python.md", "exec"), names)
                self.assertEqual(sorted(os.listdir()), ["digits.safetensors", "plan.svg", "run.safetensors"])
            finally:
                os.chdir(here)

    def test_the_readmes_block_runs(self):
        (block,) = re.findall(r"^```python\n(.*?)^```$", README, re.M | re.S)
        names = {"images": floats(128, 28, 28, 1), "labels": np.arange(128) % 10}
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
