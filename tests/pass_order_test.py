#!/usr/bin/env python3
"""Nothing but src/compile/ runs two passes one behind the other: their order is read in one place.

pass_order_test.py, in the repository.
"""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = "include/arenite/graph/passes.hpp"
# What a program is lowered by; the passes themselves, and their tests, may call what they like.
SEARCHED = ["include", "src", "codelets", "examples", "bench", "python"]
ALLOWED = ["src/compile/", "src/graph/passes/", HEADER]


def passes():
    """The functions that take a graph and change it, and `coarsen`, which makes tasks of it."""
    text = re.sub(r"//.*", "", (ROOT / HEADER).read_text())
    found = set(re.findall(r"\b(\w+)\((?:Graph& graph|const Graph& graph, const OperatorTable)", text))
    return found | {"add_gradients", "coarsen"}


def calls(text, names):
    text = re.sub(r"//.*", "", text)
    return {name for name in names if re.search(rf"(?:\bgraph::|[^\w:.>]){name}\((?!\))", text)
            and re.search(rf"\bgraph::{name}\(", text)}


class PassOrderTest(unittest.TestCase):
    def test_the_header_has_the_passes_that_we_know(self):
        self.assertLessEqual({"fuse", "split_batch", "add_training", "keep_buffers", "merge_sums", "split_features",
                              "split_rows", "group_updates", "fuse_updates", "place", "select", "in_place"}, passes())

    def test_a_second_lowering_is_found(self):
        self.assertEqual(calls("graph::fuse(g, t); graph::in_place(g); // graph::select(g)", passes()),
                         {"fuse", "in_place"})

    def test_nobody_else_calls_two_of_them(self):
        files = [path for folder in SEARCHED for path in sorted((ROOT / folder).rglob("*"))
                 if path.suffix in {".cpp", ".hpp", ".cu", ".h", ".py"}]
        self.assertGreater(len(files), 400)
        for path in files:
            name = str(path.relative_to(ROOT))
            if name.startswith(tuple(ALLOWED)) or re.search(r"_test\.(cpp|py)$|/testing\.hpp$|/tests/", name):
                continue
            self.assertLess(len(calls(path.read_text(errors="replace"), passes())), 2,
                            f"{name} lowers a graph by itself; compile::compile (src/compile/) does")


if __name__ == "__main__":
    unittest.main()
