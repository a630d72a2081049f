"""StarPU's own trace, where StarPU was built with FxT: in Paje's format, for ViTE."""
import os
import pathlib
import re
import shutil
import subprocess

import outputs
from command import Complaint

# Only in a library that was built with FxT.
MARK = b"starpu_fxt_generate_trace"


def library_of(words):
    """The libstarpu that the command's program loads at its start; None where it is none of such a program."""
    program = shutil.which(words[0])
    loader = shutil.which("ldd")
    if not program or not loader:
        return None
    for candidate in (program, os.environ.get("ARENITE_LIBRARY", "")):
        if not candidate:
            continue
        done = subprocess.run([loader, candidate], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        found = re.search(r"=> (\S*/libstarpu-[\d.]+\.so\S*)", done.stdout)
        if found:
            return pathlib.Path(found[1])
    return None


def has_fxt(library):
    try:
        return MARK in library.read_bytes()
    except OSError:
        return False


def tool_beside(library):
    """starpu_fxt_tool of the same StarPU, or the one on PATH."""
    beside = library.resolve().parent.parent / "bin" / "starpu_fxt_tool"
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("starpu_fxt_tool")


def environment(folder):
    """What makes StarPU write its events into the folder. Crews of Arenite would hide the tasks from it."""
    return {"STARPU_FXT_TRACE": "1", "STARPU_FXT_PREFIX": f"{folder}/", "STARPU_GENERATE_TRACE": "0", "ARENITE_CREW": "off"}


def convert(tool, folder, into):
    """Events to Paje. Raises Complaint where there are none."""
    events = sorted(path for path in pathlib.Path(folder).iterdir() if path.name.startswith("prof_file"))
    if not events:
        raise Complaint("StarPU wrote no events, though it was built with FxT: the command ended before StarPU did")
    words = [tool, *(word for path in events for word in ("-i", str(path)))]
    done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    made = pathlib.Path(folder) / "paje.trace"
    if done.returncode != 0 or not made.is_file() or not made.stat().st_size:
        said = " ".join((done.stderr or done.stdout).split())[:300] or f"it ended with status {done.returncode} and said nothing"
        raise Complaint(f"{tool} makes no trace of StarPU's events: {said}")
    outputs.write(into, made.read_bytes())
