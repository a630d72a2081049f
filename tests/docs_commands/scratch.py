"""A copy of the repository in which the commands of a page run, so that the sources stay as they are.

Its build/release holds links to what is built already. Only in pages that say `<!-- test: page: builds -->` do
scripts/build and ctest do their work there, and ccache spares them most of it. Elsewhere building is a matter of course,
and of tests ctest is asked only whether they exist: they are tests of this same build.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
# The remainders of batches of 64 are those of Fashion-MNIST's 60000 and 10000, and so the plans are the same.
TRAINING_IMAGES, TEST_IMAGES = 40 * 64 + 60000 % 64, 8 * 64 + 10000 % 64
# What a build makes for itself.
NOT_LINKED = ("CMakeCache.txt", "CMakeFiles", "Testing", "build.ninja", ".ninja_log", ".ninja_deps")


def sources():
    """The files of the repository, those not yet committed included; of an unpacked archive all but what is built."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                                check=True, stdout=subprocess.PIPE, text=True).stdout
        return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]
    return [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
            if path.is_file() and path.relative_to(ROOT).parts[0] != "build"]


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


class Scratch:
    """Folders of its own under `folder`: root (the copy), bin, home, data, steps."""

    def __init__(self, folder, build, builds=False, is_checkout=False):
        """`builds`: as above. `is_checkout`: for commands of git."""
        self.folder, self.build, self.builds = pathlib.Path(folder), pathlib.Path(build), builds
        self.root, self.log = self.folder / "arenite", self.folder / "log"
        self.sources = frozenset(sources())
        for name in self.sources:
            target = self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
        if is_checkout:
            self._commit()
        self.log.touch()
        self._draw_data()
        self._write_programs()
        if builds:
            self._configure()
        else:
            self._link_build()

    def environment(self):
        """What a reader has; nothing of whoever runs the tests but where programs are."""
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("STARPU_", "ARENITE_", "PYTHON", "CTEST_", "GIT_", "LD_PRELOAD"))}
        home, temporary, release = self.folder / "home", self.folder / "tmp", self.root / "build/release"
        for folder in (home, temporary):
            folder.mkdir(exist_ok=True)
        kept.update({
            "HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "TMPDIR": str(temporary), "LC_ALL": "C.UTF-8",
            "PATH": os.pathsep.join([str(self.folder / "bin"), str(release), kept["PATH"]]),
            "ARENITE_CACHE": str(home / ".cache/arenite"), "ARENITE_DATASETS": str(self.folder / "data"),
            # Nothing is fetched: no test needs a network.
            "ARENITE_FETCH_BASE": "http://127.0.0.1:9",
            "PYTHONPATH": str(self.root / "python"), "ARENITE_LIBRARY": str(release / "libarenite.so"),
            "CCACHE_BASEDIR": str(self.root), "CCACHE_NOHASHDIR": "1",
        })
        if "CCACHE_DIR" not in kept and shutil.which("ccache"):
            kept["CCACHE_DIR"] = subprocess.run(["ccache", "--get-config", "cache_dir"], check=True,
                                                stdout=subprocess.PIPE, text=True).stdout.strip()
        return kept

    def stood_in(self):
        """What the programs of `bin` and the replaced scripts have said since they were last asked."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        self.log.write_text("", encoding="utf-8")
        return lines

    def _commit(self):
        git = ["git", "-c", "user.name=reader", "-c", "user.email=reader@localhost", "-c", "init.defaultBranch=main"]
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "as it is"]):
            subprocess.run([*git, *command], cwd=self.root, check=True)

    def _draw_data(self):
        """Few images, drawn, where Fashion-MNIST is looked for."""
        subprocess.run([self.build / "arenite_make_synthetic", self.folder / "data/fashion-mnist", "--train",
                        str(TRAINING_IMAGES), "--test", str(TEST_IMAGES)], check=True, stdout=subprocess.DEVNULL)

    def _write_programs(self):
        log, quoted = shlex.quote(str(self.log)), shlex.quote
        for name in ("python", "python3"):
            write_program(self.folder / "bin" / name, f'#!/bin/sh\nexec {quoted(sys.executable)} "$@"\n')
        # Tests install nothing.
        write_program(self.root / "scripts/install-deps", f"""#!/bin/sh
case " $* " in
  *" --list "* | *" --help "* | *" -h "*) exec {quoted(str(ROOT / "scripts/install-deps"))} "$@" ;;
esac
""")
        if self.builds:
            return
        in_place, build = quoted(sys.executable) + " " + quoted(str(HERE)), quoted(str(self.build))
        write_program(self.folder / "bin/ctest", f"""#!/bin/sh
exec {in_place}/named_tests.py {build} {log} "$@"
""")
        write_program(self.root / "scripts/build", f"""#!/bin/sh
cd {quoted(str(self.root))} || exit
case $1 in
  release) exec {in_place}/build_examples.py {build} {log} "$@" ;;
  *) echo "the tests of the pages build the preset release only" >&2; exit 1 ;;
esac
""")

    def _link_build(self):
        release = self.root / "build/release"
        release.mkdir(parents=True)
        for entry in self.build.iterdir():
            if entry.name not in NOT_LINKED:
                (release / entry.name).symlink_to(entry)

    def _configure(self):
        """As the build at hand is, so that ccache knows its objects."""
        cache = (self.build / "CMakeCache.txt").read_text(encoding="utf-8")
        own = re.findall(r"^((?:ARENITE_\w+|CMAKE_PREFIX_PATH|CMAKE_CXX_COMPILER):\w+)=(.*)$", cache, re.M)
        settings = [f"-D{name}={value}" for name, value in own if not name.endswith((":INTERNAL", ":STATIC"))]
        subprocess.run(["cmake", "--preset", "release", "--no-warn-unused-cli", *settings], cwd=self.root,
                       env=self.environment(), check=True, stdout=subprocess.DEVNULL)
