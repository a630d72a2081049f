#!/usr/bin/env python3
"""Nothing but src/compile/ runs two passes one behind the other: their order is read in one place. What a file takes of
others is read off its object, however it is written. Usage: pass_order_test.py BUILD_FOLDER"""
import collections
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = "include/arenite/graph/passes.hpp"
# The table; the passes themselves; and what scripts say of training, which is no program yet.
ALLOWED = ("src/compile/", "src/graph/passes/", "src/graph/parser_training.cpp")
BUILD = None


def passes():
    """The functions that take a graph and change it, and `coarsen`, which makes tasks of it."""
    text = re.sub(r"//.*", "", (ROOT / HEADER).read_text())
    found = set(re.findall(r"\b(\w+)\((?:Graph& graph|const Graph& graph, const OperatorTable)", text))
    return found | {"add_gradients", "coarsen"}


def taken(listed):
    """source -> what of the passes and of their table it takes, of what `nm -CuA` says."""
    names = "|".join(passes())
    found = collections.defaultdict(set)
    for line in listed.splitlines():
        if match := re.search(rf"(\S+)\.dir/(\S+)\.o: +U arenite::(?:graph::({names})|compile::(passes|run))\(", line):
            target, source, one, table = match.groups()
            folder = "" if target.endswith("CMakeFiles/arenite") else f"{target.partition('/CMakeFiles/')[0]}/"
            found[folder + source].add(one or f"compile::{table}")
    return found


def lowering(found):
    """The rooms that lower a graph by themselves: several passes, or the table's, in whichever of their files."""
    rooms = collections.defaultdict(set)
    for source, names in found.items():
        if not source.startswith(ALLOWED):
            rooms[pathlib.PurePath(source).parts[:2]] |= names
    return {"/".join(room): names for room, names in rooms.items()
            if len(names) > 1 or any(name.startswith("compile::") for name in names)}


class PassOrderTest(unittest.TestCase):
    def test_the_header_has_the_passes_that_we_know(self):
        self.assertLessEqual({"fuse", "split_batch", "add_training", "keep_state", "merge_sums", "split_features",
                              "split_rows", "group_updates", "fuse_updates", "place", "select", "in_place"}, passes())

    def test_a_second_lowering_is_found(self):
        said = """/b/CMakeFiles/arenite.dir/src/model/a.cpp.o:                 U arenite::graph::fuse(arenite::graph::Graph&)
/b/CMakeFiles/arenite.dir/src/model/b.cpp.o:                 U arenite::graph::select(arenite::graph::Graph&)
/b/CMakeFiles/arenite.dir/src/model/b.cpp.o:                 U arenite::graph::fused_cost()
/b/CMakeFiles/arenite.dir/src/train/c.cpp.o:                 U arenite::graph::coarsen(arenite::graph::Graph const&)
/b/src/cli/CMakeFiles/arenite_cli.dir/d.cpp.o:                 U arenite::compile::run(int)
"""
        self.assertEqual(lowering(taken(said.replace("/b/", ""))),
                         {"src/model": {"fuse", "select"}, "src/cli": {"compile::run"}})

    def test_nobody_else_takes_two_of_them(self):
        objects = [path.relative_to(BUILD) for path in BUILD.rglob("*.cpp.o")]
        objects = [path for path in objects if path.parts[0] != "tests" and not re.search(r"_test\.dir/|testing", str(path))]
        self.assertGreater(len(objects), 250)
        found = taken(subprocess.run(["nm", "-CuA", *objects], cwd=BUILD, capture_output=True, text=True, check=True).stdout)
        self.assertGreater(len(found["src/compile/passes.cpp"]), 10)
        self.assertEqual(lowering(found), {}, "compile::compile (src/compile/) lowers graphs")


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1))
    unittest.main()
