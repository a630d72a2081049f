"""Runs a page from top to bottom, as one reader would, and says what was run, stood in for and skipped."""
import pathlib
import re
import subprocess
import tempfile
from dataclasses import dataclass, field

import page as pages
import scratch as scratches
import shell
import snippets
import transcript
from names import Names
from page import Mistake

HAS_AVX512 = "avx512f" in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
SECONDS, BUILD_SECONDS = 120, 1200
MOST_PRINTED = 8000  # characters of a command that has failed
RUN = ("sh", "console", "cpp", "c", "python", "arenite", "diff")
TEXTS = ("", "text", "csv", "json", "ebnf", "cmake", "nix", "toml", "yaml", "ini", "makefile")
# What stands in a block that nothing runs may not look like a command.
LOOKS_LIKE_COMMAND = re.compile(
    r"^\$ |^\s*(?:[$#] )?(?:sudo |\./|(?:scripts|bench|datasets|build/\w+|examples)/|(?:arenite|cmake|ctest|ninja|git"
    r"|pip3?|python3?|apt|apt-get|nix|perf|export|cd|mkdir|printf|cp|sed) )\S", re.M)
# Options of commands that name a file to write.
WRITES = re.compile(r"(?:--(?:out|csv|svg|log|json|plan-svg|plan-json|save|output)[ =]|\s-o |>>? ?)([\w./-]+\.\w+)")
REASONS = {
    "needs a GPU": None, "needs a network": None, "takes hours": None, "changes the machine": None,
    "CI runs it: step": lambda runner, name: f"step_{name}()" in runner.ci_script,
    "a test runs it:": lambda runner, name: name in runner.build_tests,
}


@dataclass
class Report:
    path: str
    run: int = 0
    files: int = 0
    compiled: int = 0
    checked: int = 0
    stood_in: list = field(default_factory=list)
    skipped: list = field(default_factory=list)
    mistakes: list = field(default_factory=list)

    def __str__(self):
        lines = [f"{self.path}: {self.run} commands run, {len(self.stood_in)} stood in for, {len(self.skipped)} "
                 f"skipped; {self.files} files written or compared, {self.compiled} snippets compiled, "
                 f"{self.checked} names checked"]
        lines += [f"  stood in for  {text}" for text in self.stood_in]
        lines += [f"  skipped       {text}" for text in self.skipped]
        lines += [f"  WRONG         {self.path}: {text}" for text in self.mistakes]
        return "\n".join(lines) + "\n"


def bare(command):
    """Its first line, less a comment behind it."""
    return re.sub(r"\s+#.*", "", command.split("\n")[0])


class Runner:
    def __init__(self, path, build, text=None):
        self.path, self.build = path, pathlib.Path(build).resolve()
        text = (scratches.ROOT / path).read_text(encoding="utf-8") if text is None else text
        self.page = pages.read(text)
        self.report = Report(path)
        self.ci_script = (scratches.ROOT / ".ci/run").read_text(encoding="utf-8")
        self.build_tests = set(re.findall(r"^ +Test +#\d+: (\S+)", subprocess.run(
            ["ctest", "--test-dir", self.build, "-N"], capture_output=True, text=True).stdout, re.M))
        # Files that commands have made, would have made, and make anew each time.
        self.written, self.unseen, self.varies = set(), set(), set()
        self.builds = any(rule.text == "builds" for rule in self.page.rules)
        for rule in self.page.rules:
            rule.used = rule.text in ("builds", "needs perf")

    def run(self):
        with tempfile.TemporaryDirectory(prefix="arenite-docs-") as folder:
            uses_git = any(block.language == "diff" or re.search(r"\bgit ", block.text) for block in self.page.blocks)
            self.scratch = scratches.Scratch(folder, self.build, self.builds, uses_git)
            environment = self.scratch.environment()
            self.bash = shell.bash(self.scratch.root, environment, self.scratch.folder / "steps/bash")
            self.python = None
            try:
                for block in self.page.blocks:
                    self._guarded(block, self._run_block)
            except shell.Died as death:
                self._wrong(block, f"{death}\nwhat follows on the page was not run")
            finally:
                self.bash.close()
                if self.python:
                    self.python.close()
            self._check_the_rest(environment)
        return self.report

    def _guarded(self, block, run, *arguments):
        """What follows a mistake is run all the same. Returns what `run` does, or None."""
        try:
            return run(block, *arguments)
        except Mistake as mistake:
            self._wrong(block, str(mistake))
            return None

    def _run_block(self, block):
        reason = block.rule("skip")
        if reason is not None:
            return self._skip_block(block, reason)
        varies = block.rule("varies")
        self.varies |= set(varies.split()) if varies else set()
        if block.file:
            return self._write_file(block)
        if block.language in RUN:
            return getattr(self, "_run_" + block.language)(block)
        if block.language not in TEXTS:
            raise Mistake(f"a block of '{block.language}'; expected one of {', '.join(RUN)}, or text that holds no "
                          "commands: " + ", ".join(filter(None, TEXTS)))
        if LOOKS_LIKE_COMMAND.search(block.text):
            raise Mistake("commands in a block of text, where nothing runs them; expected a block of sh or console")
        return None

    def _skip_block(self, block, reason):
        if block.language == "console":
            commands = [command for _, command, _ in self._commands_with_output(block)]
        elif block.language == "sh":
            commands = [command for _, command in shell.statements(block.text)]
        else:
            commands = [block.text]
        for command in commands:
            self._skip(command, reason)

    def _run_cpp(self, block):
        self.report.compiled += 1
        errors = snippets.compile_errors(block.language, block.text, block.rule("before") or "", self.build,
                                         scratches.ROOT / "include", self.scratch.folder / "snippet.cpp")
        if errors:
            raise Mistake(f"it does not compile:\n{errors}")

    _run_c = _run_cpp

    def _run_arenite(self, block):
        (self.scratch.root / "block.arenite").write_text(block.text, encoding="utf-8")
        self._run_one("arenite plan block.arenite > /dev/null && rm block.arenite", 0, block.line)

    def _run_sh(self, block):
        whole = block.rule("as")
        if whole is not None:
            self.report.stood_in.append(f"{block.text.strip()} -> {whole}")
            return self._run_one(whole, 0, block.line)
        for offset, command in shell.statements(block.text):
            self._guarded(block, self._run_ruled, command, block.line + offset)
        return None

    def _run_console(self, block):
        vary = block.rule("vary")
        if not HAS_AVX512:
            vary = "."  # plans and results are those of one instruction set
        for line, command, shown in self._commands_with_output(block):
            printed = self._guarded(block, self._run_ruled, command, line)
            wrong = printed is not None and transcript.mismatch(shown, printed, vary)
            if wrong:
                self._wrong(block, f"{command}: {wrong}\nprinted:\n{printed}", line)

    def _commands_with_output(self, block):
        """(line, command, what is shown below it) each."""
        found = []
        for number, line in enumerate(block.text.splitlines(), block.line):
            if line.startswith("$ "):
                found.append([number, line[2:], []])
            elif not found:
                raise Mistake("output before the first command; expected '$ COMMAND'")
            elif line.startswith("> ") and not found[-1][2] and not shell.is_complete(found[-1][1]):
                found[-1][1] += "\n" + line[2:]
            else:
                found[-1][2].append(line)
        return [(line, command, "\n".join(output)) for line, command, output in found]

    def _run_ruled(self, block, command, line):
        """By the block's rules for commands that begin like this one. Returns what was printed, or None."""
        expected = re.search(r"#\s*status (\d+)\b", command)
        status = int(expected[1]) if expected else 0
        for rule in block.rules:
            if rule.kind != "line":
                continue
            beginning, _, what = rule.text.partition(" | ")
            if not command.startswith(beginning):
                continue
            rule.used = True
            kind, _, text = what.partition(":")
            if kind == "skip":
                self._skip(command, text.strip())
                return None
            if kind != "as":
                raise Mistake(f"line {rule.line}: '{what}'; expected 'skip: REASON' or 'as: COMMAND'")
            self.report.stood_in.append(f"{bare(command)} -> {text.strip()}")
            return self._run_one(text.strip(), status, line)
        return self._run_one(command, status, line)

    def _run_one(self, command, status, line):
        self.report.run += 1
        promised = {name: self._stamp(name) for name in WRITES.findall(command)}
        try:
            found, printed = self.bash.run(command, BUILD_SECONDS if self.builds else SECONDS)
        except shell.Died as death:
            raise shell.Died(f"line {line}: {command}: {death}") from None
        self.report.stood_in += [f"{bare(command)} -> {text}" for text in self.scratch.stood_in()]
        if found != status:
            raise Mistake(f"line {line}: {command}: status {found}, expected {status}\n{printed[-MOST_PRINTED:]}")
        for name, before in promised.items():
            if self._stamp(name) == before:
                raise Mistake(f"line {line}: {command}: it did not write '{name}'")
            self.written.add(name)
        return printed

    def _stamp(self, name):
        """What tells one writing of a file from the next."""
        folder = self.bash.run("pwd", SECONDS)[1].strip()
        try:
            state = (pathlib.Path(folder) / name).stat()
            return state.st_ino, state.st_mtime_ns
        except OSError:
            return None

    def _run_python(self, block):
        self.report.run += 1
        if self.python is None:
            self.python = shell.python(self.scratch.root, self.scratch.environment(),
                                       self.scratch.folder / "steps/python")
        status, printed = self.python.run((block.rule("before") or "") + "\n" + block.text, SECONDS, ".py")
        if status != 0:
            raise Mistake(f"it fails:\n{printed}")

    def _write_file(self, block):
        """A file that the repository has is shown as it is; any other one is written for the commands that follow."""
        self.report.files += 1
        target = self.scratch.root / block.file
        if block.file in self.scratch.sources:
            if (scratches.ROOT / block.file).read_text(encoding="utf-8") != block.text:
                raise Mistake(f"it differs from the repository's {block.file}")
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(block.text, encoding="utf-8")

    def _run_diff(self, block):
        self.report.files += 1
        done = subprocess.run(["git", "apply", "-"], cwd=self.scratch.root, input=block.text, capture_output=True,
                              text=True)
        if done.returncode != 0:
            raise Mistake(f"it does not apply:\n{done.stderr}")

    def _skip(self, command, reason):
        for known, check in REASONS.items():
            if not reason.startswith(known):
                continue
            name = reason.removeprefix(known).strip()
            if check and not check(self, name):
                raise Mistake(f"skipped because '{reason}', but there is no '{name}'")
            self.report.skipped.append(f"{bare(command)}  ({reason})")
            self.unseen |= set(WRITES.findall(command))
            return
        raise Mistake(f"skipped because '{reason}'; expected a reason that begins with one of: " + "; ".join(REASONS))

    def _check_the_rest(self, environment):
        help_of = self._help_reader(environment)
        names = Names(self.scratch.root, self.build_tests, help_of)
        self.report.mistakes += names.mistakes(self.path, self.page)
        self.report.checked = names.checked
        self.report.mistakes += self._pictures()
        for rule in self.page.unused():
            self.report.mistakes.append(
                f"line {rule.line}: '{rule.kind}: {rule.text}' says nothing of what stands below it")

    def _help_reader(self, environment):
        known = {}

        def help_of(command):
            if command not in known:
                known[command] = subprocess.run([self.build / "arenite", *command.split(), "--help"], env=environment,
                                                capture_output=True, text=True).stdout
            return known[command]
        return help_of

    def _pictures(self):
        """Those that the page shows are what its commands make."""
        shown = {f"docs/{target}" for _, target in self.page.links if target.startswith("pictures/")}
        for name in sorted(shown - self.unseen):
            ours = scratches.ROOT / name
            if name not in self.written:
                yield f"no command of the page makes {name}"
            elif name in self.varies or not ours.is_file():
                continue  # a link to what is not there is found elsewhere
            elif ours.read_bytes() != (self.scratch.root / name).read_bytes():
                yield f"{name} is not what the page's command makes"

    def _wrong(self, block, text, line=None):
        where = "" if text.startswith("line ") else f"line {line or block.line}: "
        self.report.mistakes.append(where + text)
