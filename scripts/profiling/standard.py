"""Brendan Gregg's flame graph tools, where they are on PATH."""
import pathlib
import shutil
import subprocess
import tempfile

import stacks
from command import Complaint

TOOLS = "flamegraph.pl", "difffolded.pl"


def have(difference):
    return all(shutil.which(tool) for tool in TOOLS[:1 + difference])


def run(words, text):
    done = subprocess.run(words, input=text, capture_output=True, text=True, errors="replace")
    if done.returncode != 0 or not done.stdout:
        raise Complaint(f"{words[0]} failed: {' '.join(done.stderr.split())[:300]}", "--renderer own does without it")
    return done.stdout


def draw(folded, title, width, before=None):
    """The picture of stacks, or of their difference to others, in shares of their samples."""
    text = stacks.text(folded)
    if before:
        with tempfile.TemporaryDirectory(prefix="arenite-profile-") as folder:
            files = pathlib.Path(folder, "before"), pathlib.Path(folder, "after")
            for file, counts in zip(files, (before, folded)):
                file.write_text(stacks.text(counts), encoding="utf-8")
            text = run(["difffolded.pl", "-n", *map(str, files)], "")
    return run(["flamegraph.pl", "--title", title, "--width", str(width), "--colors", "java", "--hash"], text)
