"""What the tests of `cmake --install` share: a build, its installation in a folder that was moved, and projects on it."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONSUMER = ROOT / "tests/consumer"
# Nothing but the wish that hwloc be silent, where it is built without a /sys.
NO_ENVIRONMENT = {name: text for name, text in os.environ.items() if name == "HWLOC_HIDE_ERRORS"}


def main():
    """Runs the calling file's tests. Its arguments: BUILD_FOLDER [unittest's own]."""
    global BUILD, CACHE, CMAKE, CXX, CC, VERSION
    if len(sys.argv) < 2 or not os.path.isfile(os.path.join(sys.argv[1], "CMakeCache.txt")):
        sys.exit(f"usage: {sys.argv[0]} BUILD_FOLDER [TEST…]")
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    CACHE = dict(re.findall(r"^([\w.-]+):\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M))
    CMAKE, CXX = CACHE["CMAKE_COMMAND"], CACHE["CMAKE_CXX_COMPILER"]
    CC = CACHE.get("CMAKE_C_COMPILER") or shutil.which("cc")
    VERSION = CACHE["CMAKE_PROJECT_VERSION"]
    unittest.main()


def run(*command, status=0, cwd=None, env=None, stdin=None, timeout=200):
    """What the command printed. Fails where it ends otherwise."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=env, input=stdin, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
    if done.returncode != status:
        raise AssertionError(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout}")
    return done.stdout


@contextlib.contextmanager
def manifests_kept():
    """The lists of what was installed are those of whoever installed this build himself."""
    def read():
        return {path: path.read_bytes() for path in BUILD.glob("install_manifest*.txt")}

    before = read()
    try:
        yield
    finally:
        for path in read():
            path.unlink()
        for path, content in before.items():
            path.write_bytes(content)


def install(prefix, *arguments):
    """The paths that CMake says it has installed."""
    with manifests_kept():
        for path in BUILD.glob("install_manifest*.txt"):
            path.unlink()
        run(CMAKE, "--install", BUILD, "--prefix", prefix, *arguments)
        (manifest,) = BUILD.glob("install_manifest*.txt")
        return set(manifest.read_text().splitlines())


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def configure(source, build, *arguments, status=0, **how):
    return run(CMAKE, "-S", source, "-B", build, "-G", CACHE["CMAKE_GENERATOR"], f"-DCMAKE_CXX_COMPILER={CXX}",
               "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *arguments, status=status, **how)


def compile_command(build):
    """The flags with which a consumer's only source is compiled."""
    commands = json.loads((build / "compile_commands.json").read_text())
    (text,) = [entry["command"] for entry in commands if entry["file"].startswith(str(CONSUMER))]
    return text.split()


class Moved:
    """Installed in one folder, which is moved to another place below `folder`."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.first, self.prefix = self.folder / "first", self.folder / "elsewhere/moved"
        self.manifest = {os.path.relpath(path, self.first) for path in install(self.first)}
        self.prefix.parent.mkdir()
        self.first.rename(self.prefix)
        (config,) = self.prefix.rglob("areniteConfig.cmake")
        self.libraries = config.parent.parent.parent
        # Where else what this build was made of stands.
        self.places = ";".join(filter(None, [str(self.prefix), CACHE.get("CMAKE_PREFIX_PATH")]))

    def pkg_config(self, *arguments):
        # Ours alone: it names no other module.
        env = {"PATH": os.environ["PATH"], "PKG_CONFIG_LIBDIR": str(self.libraries / "pkgconfig")}
        return run(CACHE["PKG_CONFIG_EXECUTABLE"], *arguments, env=env).split()
