#!/usr/bin/env python3
"""docs/python.md: its blocks run, one after the other, and it names every operator."""

import contextlib
import io
import os
import re
import tempfile

import testing

import arenite

PAGE = (testing.ROOT / "docs/python.md").read_text(encoding="utf-8")


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
                self.assertEqual(sorted(os.listdir()), ["digits.safetensors", "plan.svg"])
            finally:
                os.chdir(here)

    def test_every_operator_is_named(self):
        named = set(re.findall(r"`(\w+)`", PAGE))
        self.assertEqual(set(arenite.functional.__all__) - named, set())


if __name__ == "__main__":
    testing.main()
