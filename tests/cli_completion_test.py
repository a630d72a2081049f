#!/usr/bin/env python3
"""`arenite completion`: each script knows every option, and shells complete with them. Usage: cli_completion_test.py COMMAND
[SANITIZER]"""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time
import unittest

import cli_testing
from cli_testing import run

SUBCOMMANDS = ("train", "evaluate", "predict", "plan", "show", "doctor", "completion", "version")


def options_of(*command):
    """Its short and long options, as its help lists them."""
    listed = re.findall(r"^  ((?:-\w, )?--[\w-]+)", run(*command, "--help").stdout, re.M)
    return [name for names in listed for name in names.split(", ")]


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("a table.csv", "plan.json"):
            (self.folder / name).touch()
        (self.folder / "planned").mkdir()

        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home = pathlib.Path(home.name)

    def script(self, shell):
        path = self.home / f"arenite.{shell}"
        if not path.exists():
            done = run("completion", shell)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            path.write_text(done.stdout)
        return path

    def shell(self, *command):
        if not shutil.which(command[0]):
            self.skipTest(f"no {command[0]}")
        home = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"), str(self.home))
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=self.folder,
                              env=cli_testing.clean_environment(**home))
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def knows_all(self, text, section, pattern):
        """In the part of the text that is about a subcommand, a place for each of its options."""
        for name in ("", *SUBCOMMANDS):
            command = [name] if name else []
            about = "\n".join(re.findall(section(name), text, re.M | re.S))
            options = options_of(*command)
            self.assertGreater(len(options), 1)
            for option in options:
                self.assertRegex(about, pattern(option), f"{name} {option}")


class Bash(Scripts):
    def complete(self, *words):
        """What is offered for the last of these words, as bash divides a line into them."""
        program = f"""source {self.script('bash')}
complete -p arenite
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_arenite
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
        out = self.shell("bash", "--norc", "-c", program, "bash", "arenite", *words).splitlines()
        self.assertEqual(out[0], "complete -F _arenite arenite")
        return sorted(filter(None, out[1:]))

    def test_knows_all(self):
        self.knows_all(self.script("bash").read_text(), lambda name: rf"^    '{name} '\*\).*?;;$",
                       lambda option: rf"[' ]{option}[' ]")

    def test_is_a_right_script(self):
        self.shell("bash", "-n", str(self.script("bash")))
        if shutil.which("shellcheck"):
            self.shell("shellcheck", "-s", "bash", str(self.script("bash")))

    def test_subcommands(self):
        self.assertEqual(self.complete(""), sorted(SUBCOMMANDS))
        self.assertEqual(self.complete("tr"), ["train"])
        self.assertEqual(self.complete("nothing"), [])
        self.assertEqual(self.complete("--v"), ["--version"])

    def test_options(self):
        self.assertEqual(self.complete("train", "--mo"), ["--model", "--momentum"])
        self.assertEqual(self.complete("train", ""), sorted(options_of("train")))
        self.assertEqual(self.complete("train", "--json", "--dr"), ["--draw"])
        self.assertEqual(self.complete("plan", "plan.json", "--v"), ["--verify"])

    def test_values(self):
        self.assertEqual(self.complete("train", "--model", ""), sorted(["mlp", "cnn1", "lenet5", "cnn2", "cnn2-bn", "vgg-small"]))
        self.assertEqual(self.complete("train", "--dataset", "syn"), ["synthetic", "synthetic-color"])
        self.assertEqual(self.complete("train", "--fuse", "o"), ["off", "on"])
        self.assertEqual(self.complete("plan", "--effort", ""), ["default", "fast", "max"])
        self.assertEqual(self.complete("completion", ""), ["bash", "fish", "zsh"])
        self.assertEqual(self.complete("doctor", "data", "fo"), ["folders"])
        self.assertEqual(self.complete("train", "--epochs", ""), [])

    def test_values_behind_an_equals_sign(self):
        # Bash makes three words of it, and replaces the last.
        self.assertEqual(self.complete("train", "--model", "=", "c"), ["cnn1", "cnn2", "cnn2-bn"])
        self.assertEqual(self.complete("train", "--fuse", "="), ["off", "on"])
        self.assertEqual(self.complete("train", "--log", "=", "pl"), ["plan.json", "planned"])
        self.assertEqual(self.complete("train", "--model", "=", "cnn1", "--dr"), ["--draw"])
        # Without = in COMP_WORDBREAKS it is one.
        self.assertEqual(self.complete("train", "--model=c"), ["--model=cnn1", "--model=cnn2", "--model=cnn2-bn"])

    def test_values_with_a_colon(self):
        self.assertEqual(self.complete("plan", "mod"), sorted(f"model:{name}" for name in ("mlp", "cnn1", "lenet5", "cnn2", "cnn2-bn", "vgg-small")))
        self.assertEqual(self.complete("plan", "model", ":", "cn"), ["cnn1", "cnn2", "cnn2-bn"])
        self.assertEqual(self.complete("plan", "model", ":", "cnn2", "--ef"), ["--effort"])

    def test_files_and_folders(self):
        self.assertEqual(self.complete("train", "--log", ""), ["a table.csv", "plan.json", "planned"])
        self.assertEqual(self.complete("train", "--data", ""), ["planned"])
        self.assertEqual(self.complete("plan", "a"), ["a table.csv"])


class Zsh(Scripts):
    """Completion runs in its line editor alone, which wants a terminal."""

    def setUp(self):
        super().setUp()
        self.terminal = None

    def start(self):
        """A shell that writes its line into a file, and empties it, on Ctrl-X b."""
        if not shutil.which("zsh"):
            self.skipTest("no zsh")
        (self.home / ".zshrc").write_text(f"""
PS1='$ '
autoload -Uz compinit && compinit -u -D
source {self.script('zsh')}
take() {{ print -rn -- "$BUFFER" > {self.home}/part && mv {self.home}/part {self.home}/line; BUFFER= }}
zle -N take
bindkey '^Xb' take
""")
        environment = cli_testing.clean_environment(HOME=str(self.home), ZDOTDIR=str(self.home), TERM="dumb")
        ours, theirs = pty.openpty()
        zsh = subprocess.Popen(["zsh", "--no-globalrcs", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, cwd=self.folder,
                               env=environment, start_new_session=True)
        os.close(theirs)
        self.addCleanup(os.close, ours)
        self.addCleanup(zsh.wait)
        self.addCleanup(zsh.kill)
        self.terminal = ours

    def complete(self, line):
        """What a line becomes by one press of Tab."""
        if self.terminal is None:
            self.start()
        taken, shown = self.home / "line", b""
        os.write(self.terminal, f"{line}\t\x18b".encode())
        until = time.monotonic() + 20
        while not taken.exists():
            self.assertLess(time.monotonic(), until, shown)
            if select.select([self.terminal], [], [], 0.01)[0]:  # else it would wait for a reader
                shown += os.read(self.terminal, 4096)
        text = taken.read_text()
        taken.unlink()
        return text

    def completes(self, *lines):
        for line, becomes in lines:
            with self.subTest(line=line):
                self.assertEqual(self.complete(line), becomes)

    def test_subcommands_and_options(self):
        self.completes(("arenite tr", "arenite train "),
                       ("arenite nothing", "arenite nothing"),
                       ("arenite --v", "arenite --version "),
                       ("arenite train --mod", "arenite train --model="),
                       ("arenite train --json --dr", "arenite train --json --draw "),
                       ("arenite plan plan.json --verif", "arenite plan plan.json --verify="),
                       ("arenite train --json --js", "arenite train --json --js"))  # it was given

    def test_values(self):
        self.completes(("arenite train --model l", "arenite train --model lenet5 "),
                       ("arenite train --model=l", "arenite train --model=lenet5 "),
                       ("arenite train --model=cn", "arenite train --model=cnn"),
                       ("arenite train --fuse=of", "arenite train --fuse=off "),
                       ("arenite plan --effort m", "arenite plan --effort max "),
                       ("arenite completion z", "arenite completion zsh "),
                       ("arenite doctor data fo", "arenite doctor data folders "),
                       ("arenite train --epochs 1", "arenite train --epochs 1"))

    def test_values_with_a_colon(self):
        self.completes(("arenite plan mod", "arenite plan model:"),
                       ("arenite plan model:le", "arenite plan model:lenet5 "),
                       ("arenite train --init u", "arenite train --init uniform:"),
                       ("arenite train --init=u", "arenite train --init=uniform:"))

    def test_quoted_values(self):
        self.completes(('arenite train --model "l', 'arenite train --model "lenet5" '),
                       ('arenite train --model="l', "arenite train --model=lenet5 "),
                       ("arenite train --model='l", "arenite train --model=lenet5 "),
                       ("arenite plan 'model:le", "arenite plan 'model:lenet5' "))

    def test_files_and_folders(self):
        self.completes(("arenite plan a", "arenite plan a\\ table.csv "),
                       ("arenite plan 'a", "arenite plan 'a table.csv' "),
                       ("arenite train --log=plan.", "arenite train --log=plan.json "),
                       ('arenite train --log "plan.', 'arenite train --log "plan.json" '),
                       ("arenite train --data p", "arenite train --data planned/"),
                       ("arenite train --data=p", "arenite train --data=planned/"))

    def test_knows_all(self):
        def section(name):
            return rf"^        {name}\)$.*?;;$" if name else r"_arguments -C.*?->argument"
        self.knows_all(self.script("zsh").read_text(), section, lambda option: rf"\){option}[=\[]|'\*{option}[=\[]")

    def test_is_a_right_script(self):
        self.shell("zsh", "-n", str(self.script("zsh")))


class Fish(Scripts):
    def complete(self, line):
        out = self.shell("fish", "--no-config", "-c", f"source {self.script('fish')}; complete -C '{line}'")
        return sorted(line.partition("\t")[0] for line in out.splitlines())

    def test_knows_all(self):
        def section(name):
            condition = f"'__fish_seen_subcommand_from {name}'" if name else "'__fish_use_subcommand'"
            return rf"^complete -c arenite -n {condition} [^\n]*$"
        self.knows_all(self.script("fish").read_text(), section,
                       lambda option: rf" -l {option[2:]} " if option.startswith("--") else rf" -s {option[1:]} ")

    def test_is_a_right_script(self):
        self.shell("fish", "--no-execute", str(self.script("fish")))

    def test_completes(self):
        self.assertEqual(self.complete("arenite "), sorted(SUBCOMMANDS))
        self.assertEqual(self.complete("arenite train --mo"), ["--model", "--momentum"])
        self.assertEqual(self.complete("arenite train --dataset syn"), ["synthetic", "synthetic-color"])
        self.assertEqual(self.complete("arenite train --fuse=o"), ["--fuse=off", "--fuse=on"])
        self.assertEqual(self.complete("arenite train --data "), ["planned/"])
        self.assertIn("plan.json", self.complete("arenite plan --verify "))
        self.assertEqual(self.complete("arenite completion "), ["bash", "fish", "zsh"])


class Refusals(unittest.TestCase):
    def test_other_shells(self):
        done = run("completion", "tcsh")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "arenite: SHELL: 'tcsh' (did you mean 'bash'?); expected one of bash, zsh, fish "
                                      "(hint: see arenite completion --help)\n")
        self.assertEqual(run("completion").stderr,
                         "arenite: no SHELL; expected one of bash, zsh, fish (hint: see arenite completion --help)\n")


if __name__ == "__main__":
    cli_testing.main()
