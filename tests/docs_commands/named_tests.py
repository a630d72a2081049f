"""In place of ctest on a page: says whether the tests that it would run exist, without running them.
Usage: named_tests.py BUILD_FOLDER LOG, then ctest's arguments
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

SELF = pathlib.Path(__file__).resolve()


def real_ctest(log):
    """Behind the program that stands in for it, which is the first on PATH."""
    stand_in = str(pathlib.Path(log).parent / "bin")
    return shutil.which("ctest", path=os.pathsep.join(p for p in os.environ["PATH"].split(os.pathsep) if p != stand_in))


def count(ctest, build, selection):
    listed = subprocess.run([ctest, "--test-dir", build, "-N", *selection], capture_output=True, text=True).stdout
    return int(re.search(r"^Total Tests: (\d+)$", listed, re.M)[1])


def alternatives(regex):
    """Of 'a|b' or '^(a|b)$' each one, that no name stays when its test is gone."""
    inner = re.fullmatch(r"(\^?)\(([^()]*)\)(\$?)", regex)
    if inner:
        return [inner[1] + one + inner[3] for one in inner[2].split("|")]
    return regex.split("|") if "(" not in regex else [regex]


def main():
    build, log, *arguments = sys.argv[1:]
    ctest = real_ctest(log)
    parser = argparse.ArgumentParser(prog="ctest", add_help=False, allow_abbrev=False)
    parser.add_argument("-R", "--tests-regex", dest="regex")
    parser.add_argument("-E", "--exclude-regex", dest="excluded")
    parser.add_argument("-L", "--label-regex", dest="label")
    parser.add_argument("-LE", "--label-exclude", dest="excluded_label")
    parser.add_argument("--preset", default="release")
    parser.add_argument("--test-dir", default=".")
    given, _ = parser.parse_known_args(arguments)
    if given.preset != "release":
        sys.exit(f"ctest: preset {given.preset} is not built here")
    if "--preset" not in arguments and not (pathlib.Path(given.test_dir) / "CTestTestfile.cmake").is_file():
        sys.exit(f"ctest: no tests in '{given.test_dir}'; expected --test-dir build/release, or to be there")
    others = [text for option, value in (("-E", given.excluded), ("-L", given.label), ("-LE", given.excluded_label))
              if value for text in (option, value)]
    found = []
    for one in alternatives(given.regex) if given.regex else [""]:
        number = count(ctest, build, ["-R", one, *others] if one else others)
        if number == 0:
            sys.exit(f"ctest: no test is named '{one}'" + (f" with {' '.join(others)}" if others else ""))
        found.append(f"{one or 'all'}: {number}")
    with open(log, "a", encoding="utf-8") as file:
        print(f"tests that are there, not run once more ({', '.join(found)})", file=file)


if __name__ == "__main__":
    main()
