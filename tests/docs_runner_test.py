#!/usr/bin/env python3
"""What runs the pages of the documentation, on pages that are wrong: each mistake is found, and nothing else.
Usage: docs_runner_test.py BUILD_FOLDER
"""
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "docs_commands"))

import page  # noqa: E402
import runner  # noqa: E402
import scratch  # noqa: E402
import shell  # noqa: E402
import transcript  # noqa: E402

BUILD = ""
# Enough of the repository for what follows: a copy of all of it takes seconds.
FEW = ("README.md", "LICENSE", ".gitignore", "docs/planning.md", "docs/pictures/unet.svg", "scripts/test",
       "tests/docs_runner_test.py", "include/arenite/plan/solve.hpp")


def run(text, path="docs/wrong.md"):
    """The report of a page with this text; `~` stands for a backtick."""
    return runner.Runner(path, BUILD, text.replace("~", "`")).run()


class Case(unittest.TestCase):
    def expect(self, report, *beginnings):
        """As many mistakes, which begin so."""
        self.assertEqual(len(report.mistakes), len(beginnings), report)
        for found, beginning in zip(report.mistakes, beginnings):
            self.assertTrue(found.startswith(beginning), f"{found}\nexpected: {beginning}")


class Commands(Case):
    def test_failures_are_found_and_the_rest_is_run(self):
        report = run("""
~~~sh
true
false              # it fails
(exit 3)           # status 3: as it should
true               # status 2
cp README.md build/
ls > build/list.txt
arenite plan examples/none.csv --out build/plan.json    # status 2
~~~
""")
        self.expect(report, "line 4: false", "line 6: true",
                    "line 9: arenite plan examples/none.csv --out build/plan.json    # status 2: it did not write")
        self.assertEqual(report.run, 7)

    def test_one_shell_runs_all(self):
        report = run("""
~~~sh
export NAME=value; cd build
lines() {
  cat <<END
$NAME and $(basename "$PWD")
END
}
~~~
~~~console
$ lines
value and build
$ printf '%s\\n' one \\
>   two
one
two
~~~
""")
        self.expect(report)
        self.assertEqual(report.run, 4)

    def test_nothing_hangs_and_nothing_is_left(self):
        self.addCleanup(setattr, runner, "SECONDS", runner.SECONDS)
        runner.SECONDS = 2
        report = run("""
~~~sh
cat
sleep 1000 &
sleep 1000
true
~~~
""")
        self.expect(report, "line 5: sleep 1000: it ran longer than 2 s")
        self.assertEqual(report.run, 3)
        self.expect(run("~~~sh\nexit 4\n~~~\n"), "line 2: exit 4: it ended the shell")

    def test_the_repository_stays_as_it_is(self):
        report = run("~~~sh\necho changed > README.md\nrm -r docs\nmkdir docs\n~~~\n")
        self.expect(report)
        self.assertNotEqual((scratch.ROOT / "README.md").read_text(), "changed\n")
        self.assertTrue((scratch.ROOT / "docs/planning.md").is_file())

    def test_other_presets_and_missing_tests_are_refused(self):
        report = run("""
~~~sh
scripts/build asan
ctest --test-dir build/release -R 'cli_test|no_such_test'
ctest -R cli_test
scripts/test -R cli_test
scripts/build release --target=no_such_target
~~~
""")
        self.expect(report, "line 3: scripts/build asan: status 1", "line 4: ctest", "line 5: ctest",
                    "line 7: scripts/build")
        self.assertIn("no test is named 'no_such_test'", report.mistakes[1])
        self.assertIn("expected --test-dir build/release", report.mistakes[2])


class Rules(Case):
    def test_skipping_needs_a_reason_that_holds(self):
        skipped = "\n<!-- test: skip: {} -->\n~~~sh\nfalse\n~~~\n"
        reasons = ("needs a GPU", "takes hours: 2", "CI runs it: step format", "CI runs it: step dance",
                   "a test runs it: cli_test", "a test runs it: no_test", "it is hard")
        report = run("".join(map(skipped.format, reasons)))
        self.expect(report, "line 19: skipped because 'CI runs it: step dance', but there is no 'dance'",
                    "line 29: skipped because 'a test runs it: no_test'",
                    "line 34: skipped because 'it is hard'; expected a reason")
        self.assertEqual((report.run, len(report.skipped)), (0, 4))

    def test_stand_ins(self):
        report = run("""
<!-- test: as: echo small > build/out.txt -->
~~~sh
false --large
~~~
<!-- test: line: false | as: cat build/out.txt -->
<!-- test: line: sudo | skip: changes the machine -->
<!-- test: line: absent | skip: needs a GPU -->
~~~console
$ false --really
small
$ sudo true
~~~
""")
        self.expect(report, "line 8: 'line: absent | skip: needs a GPU' says nothing of what stands below it")
        self.assertEqual((report.run, len(report.stood_in), len(report.skipped)), (2, 2, 1))

    def test_comments_belong_to_blocks(self):
        for text, message in (
                ("<!-- test: skp: needs a GPU -->\n", "line 1: '<!-- test: skp: needs a GPU -->'; expected one of"),
                ("<!-- test: skip: takes hours -->\nText.\n", "line 1: a comment for the tests; expected a block"),
                ("~~~sh\ntrue\n", "line 1: a block without an end")):
            with self.assertRaises(page.Mistake) as caught:
                run(text)
            self.assertTrue(str(caught.exception).startswith(message), caught.exception)


class Blocks(Case):
    def test_nothing_escapes(self):
        report = run("""
~~~
arenite train
~~~
~~~text
$ ls
~~~
~~~bash
ls
~~~
~~~
a -> b
~~~
""")
        self.expect(report, "line 3: commands in a block of text", "line 6: commands in a block of text",
                    "line 9: a block of 'bash'")

    def test_code(self):
        report = run("""
~~~cpp
plan::Problem problem;
std::cout << problem.size();
~~~
~~~cpp
plan::Problem problem = 3;
~~~
<!-- test: before: plan::Problem problem; -->
~~~cpp
problem.add({.name = "x", .bytes = 1, .lifetime = {0, 1}});
~~~
~~~python
value = 3
~~~
~~~python
assert value == 3
print(absent)
~~~
~~~arenite
$1 = rellu($0);
~~~
""")
        self.expect(report, "line 7: it does not compile", "line 17: it fails", "line 21: arenite plan")
        self.assertEqual(report.compiled, 3)

    def test_files(self):
        report = run("""
**~build/here.txt~**
~~~text
written
~~~
**~LICENSE~**
~~~text
Do as you like.
~~~
~~~console
$ cat build/here.txt
written
~~~
~~~diff
--- a/.gitignore
+++ b/.gitignore
@@ -1,1 +1,1 @@
-no such line
+another
~~~
![a picture](pictures/unet.svg)
""")
        self.expect(report, "line 8: it differs from the repository's LICENSE", "line 15: it does not apply",
                    "no command of the page makes docs/pictures/unet.svg")

    def test_pictures_are_what_commands_make(self):
        text = """
~~~sh
printf 'id,lower,upper,size\\na,0,1,SIZE\\n' > build/one.csv
arenite plan build/one.csv --svg docs/pictures/unet.svg
~~~
![a picture](pictures/unet.svg)
"""
        self.expect(run(text.replace("SIZE", "8")), "docs/pictures/unet.svg is not what the page's command makes")
        self.expect(run("<!-- test: varies: docs/pictures/unet.svg -->" + text.replace("SIZE", "8")))

    def test_names(self):
        report = run("""
# A heading, with ~code~
[right](../README.md), [here](#a-heading-with-code), [gone](none.md), [nowhere](#nothing), [web](https://example.org/).
~tests/docs_runner_test.py~, ~tests/none_test.py~, ~arenite/plan/solve.hpp~, ~docs_runner_test~, ~no_such_test~,
~ctest -R no_such_test~, ~arenite dance~, ~arenite plan --no-such-option~, ~arenite train --epochs 3~, ~codelets/<op>/~
""")
        self.expect(report, "line 3: a link to 'none.md'",
                    "line 3: a link to '#nothing'; expected an anchor of a-heading-with-code",
                    "line 4: `tests/none_test.py`: no such file", "line 4: `no_such_test`: no such test",
                    "line 5: `ctest -R no_such_test`: no test", "line 5: `arenite dance`: arenite has no subcommand",
                    "line 5: `arenite plan --no-such-option`: arenite plan has no --no-such-option")


class Transcripts(unittest.TestCase):
    def test_what_may_differ(self):
        for shown, printed in (
                ("a b", "a b"), ("took 3.0 ms", "took 12.5 ms"), ("  2.72 s  22084 samples/s", " 13.1 s   9 samples/s"),
                ("a … c", "a b c"), ("…\nlast", "1\n2\nlast"), ("first\n…", "first"), ("a\n…\nb\n…\nc", "a\nb\nb\nc"),
                ("hash " + "0" * 64, "hash " + "f" * 64), ("step  8 KiB   locked", "step  8 KiB   no (the limit is 0)")):
            self.assertIsNone(transcript.mismatch(shown, printed), (shown, printed))

    def test_what_may_not(self):
        for shown, printed in (
                ("a b", "a  b"), ("peak 3 bytes", "peak 4 bytes"), ("a", ""), ("", "a"), ("a\n…\nb", "a\nc"),
                ("a.c", "abc"), ("took 3 ms", "took long"), ("8 KiB", "9 KiB"), ("locked up", "no (why) up")):
            self.assertIsNotNone(transcript.mismatch(shown, printed), (shown, printed))

    def test_lines_that_vary(self):
        self.assertIsNone(transcript.mismatch("epoch 1/10  loss 0.55", "epoch 1/3   loss 1.25", "epoch"))
        self.assertIsNone(transcript.mismatch("on 2 workers, 3 of them", "on 1 worker, 1 of them", "workers"))
        self.assertIsNotNone(transcript.mismatch("on 2 workers", "on 1 works", "workers"))
        self.assertIsNotNone(transcript.mismatch("epoch 1\npeak 2", "epoch 2\npeak 3", "epoch"))
        self.assertIsNotNone(transcript.mismatch("epoch 1", "epoch one", "epoch"))

    def test_the_message_says_where(self):
        for shown, printed, message in (
                ("a\nb\nc", "a\nb\nd", "line 3 of the output is 'd'; the page shows 'c'"),
                ("a\nb", "a", "line 2 of the output is nothing more; the page shows 'b'")):
            self.assertEqual(transcript.mismatch(shown, printed), message)


class Statements(unittest.TestCase):
    def test_they_end_where_the_shell_says(self):
        text = "a\n\n# comment\nb \\\n  c\ncat <<END\nx\nEND\nfor i in 1; do\n  d\ndone\ne 'open"
        self.assertEqual(shell.statements(text), [(0, "a"), (3, "b \\\n  c"), (5, "cat <<END\nx\nEND"),
                                                  (8, "for i in 1; do\n  d\ndone"), (11, "e 'open")])


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    scratch.sources = lambda: FEW
    unittest.main()
