"""In place of scripts/build on a page: all is built already, but examples that the page has changed. They are compiled
and linked as the build does it. Usage: build_examples.py BUILD_FOLDER LOG release [--target=NAME…], in the copy of the
repository
"""
import pathlib
import shlex
import subprocess
import sys

from scratch import ROOT


def command_for(build, target):
    """The last command that makes a target, as words."""
    listed = subprocess.run(["ninja", "-C", build, "-t", "commands", target], stdout=subprocess.PIPE, text=True,
                            check=True)
    return [word for word in shlex.split(listed.stdout.splitlines()[-1]) if word not in (":", "&&")]


def build_example(build, name, here):
    """In `here`, the copy, from its own source."""
    object_file = f"examples/CMakeFiles/{name}.dir/{name}.cpp.o"
    own_object, program = here / "build" / f"{name}.o", here / "build/release" / name
    program.unlink()  # a link to the one that is built already
    replaced = {object_file: str(own_object), name: str(program), str(ROOT / f"examples/{name}.cpp"):
                str(here / f"examples/{name}.cpp"), f"{object_file}.d": str(own_object) + ".d"}
    for target in (object_file, name):
        subprocess.run([replaced.get(word, word) for word in command_for(build, target)], cwd=build, check=True)


def main():
    build, log, _, *options = sys.argv[1:]
    here = pathlib.Path.cwd()
    done = ""
    for name in (option.removeprefix("--target=") for option in options if option.startswith("--target=")):
        source = here / f"examples/{name}.cpp"
        if source.is_file() and source.read_bytes() != (ROOT / f"examples/{name}.cpp").read_bytes():
            build_example(build, name, here)
            done = f"compiled {name} against the library as it was built"
        elif subprocess.run(["ninja", "-C", build, "-t", "query", name], capture_output=True).returncode != 0:
            sys.exit(f"build: no target '{name}'")
    if done:
        with open(log, "a", encoding="utf-8") as file:
            print(done, file=file)


if __name__ == "__main__":
    main()
