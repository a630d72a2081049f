"""From what perf saw to folded stacks: a line "outermost;…;innermost count" each, as flame graph tools read them.

Threads have the names of what they are: StarPU's "CPU 0" is worker 0, the main thread of a program with workers its host.
Of a worker's stack what lies below the op is left out, since the worker's own loop is everywhere the same: the op stands on
its phase, "worker 0;forward;conv1: conv2d [xsmm];…". Where a worker runs no op it is in one of these instead:
  waits      in a step, until a task is ready: the table and the trace call it idle
  runtime    in a step, choosing the next task or ending the last
  StarPU     in StarPU's own code, which polls for work where no step is under way
  some op    in code that left no trace of its callers
"""
import re
from collections import Counter

import names
from command import Complaint

PHASES = "forward", "backward", "update", "staging", "evaluate", "init"
WORKERS = "workers"  # all of them as one
WAITS, RUNTIME, STARPU, SOME_OP = "waits", "runtime", "StarPU", "some op"
# Phase, operator, where, kernel, as src/runtime/build_program.cpp names them.
OP = re.compile(rf"({'|'.join(PHASES)}) (\S+)(?: (.+))? (\[[^\[\]]*\])$")

HEADER = re.compile(r"(\S.*?)\s+(\d+)/(\d+)(\s|$)")
FRAME = re.compile(r"\s+([0-9a-f]+) (.*) \((.*)\)$")
WORKER = re.compile(r"(CPU|CUDA) ?(\d[\d.]*)")
MAIN = {"main", "Py_RunMain"}
# What there is between a worker's loop and the kernels.
MEMBER, TASK = "arenite::runtime::Crew::work", re.compile(r"arenite::runtime::(Crew::perform|run_\w+|OrderedTask|Launcher)")
# How every call of the system begins, and what came from outside while the thread did something else.
ENTRANCE = re.compile(r"(entry_|do_syscall|x64_sys_call|asm_|__do_sys_|el0|do_el0|invoke_syscall|ret_from_)")
INTERRUPT = re.compile(r"(asm_)?(sysvec_|common_interrupt|exc_nmi|el\d+t?_\d+_irq)|irqentry_")
UNKNOWN = "[unknown]"


def is_worker(name):
    return name == WORKERS or re.fullmatch(r"(CUDA )?worker [\d.]+", name) is not None


def samples(lines):
    """((thread's name, pid, is main), ((symbol, object), … innermost first)) of perf script's lines. Others are passed over."""
    thread, frames = None, []
    for line in lines:
        line = line.rstrip("\n")
        frame = FRAME.match(line)
        if frame and thread:
            frames.append((frame[2], frame[3]))
            continue
        if thread:
            yield thread, tuple(frames)
            thread = None
        header = HEADER.match(line)
        if header:
            thread, frames = (header[1], int(header[2]), header[2] == header[3]), []
    if thread:
        yield thread, tuple(frames)


def is_system(dso):
    return dso.startswith("[kernel") or dso.startswith("[guest.kernel") or dso.endswith((".ko", ".ko.xz", ".ko.zst"))


def is_made(dso):
    """Code made at run time, which only a perf map names."""
    return re.fullmatch(r"/tmp/perf-\d+\.map", dso) is not None


class Frame:
    """One frame of a stack; `text` is how the picture has it, None where nothing is known of it."""

    def __init__(self, symbol, dso, demangled):
        self.symbol = demangled.get(symbol, symbol)
        self.made, self.system = is_made(dso), is_system(dso)
        self.op = OP.match(symbol) if self.made else None
        if symbol != UNKNOWN:
            self.text = symbol if self.made else names.shorten(self.symbol) + ("_[k]" if self.system else "")
        elif self.made:
            self.text = "[made at run time]"
        else:
            self.text = None if dso == UNKNOWN else f"[{dso.rsplit('/', 1)[-1]}]"


def without_entrances(frames):
    """Of the system's part what it was asked for, and where in it this was; nothing of interrupts, for which nobody asked."""
    user = [frame for frame in frames if not frame.system]
    system = [frame for frame in frames if frame.system]
    if system and INTERRUPT.match(system[0].symbol):
        return user
    system = [frame for frame in system if not ENTRANCE.match(frame.symbol)]
    return user + (system if len(system) < 3 else [system[0], system[-1]])


def first(frames, holds):
    """Where the outermost frame is of which this holds; None: nowhere."""
    return next((i for i, frame in enumerate(frames) if holds(frame)), None)


def on_op(op, frames):
    """An op, and its functions without the name that they share with it."""
    phase, operator, where, kernel = op.groups()
    inner = (re.sub(r"^(\w+)::", lambda found: "" if operator.startswith(found[1]) else found[0], text) for text in texts(frames))
    return [phase, f"{where}: {operator} {kernel}" if where else f"{operator} {kernel}", *inner]


def of_worker(frames):
    """The texts above a worker's name, outermost first."""
    at = first(frames, lambda frame: frame.op)
    if at is not None:
        return on_op(frames[at].op, without_entrances(frames[at + 1:]))
    at = first(frames, lambda frame: frame.made or frame.symbol.startswith("arenite::codelets::"))
    if at is not None:
        return [SOME_OP, *texts(without_entrances(frames[at:]))]
    at = first(frames, lambda frame: frame.symbol.startswith("arenite::"))
    if at is None:
        known = texts([frame for frame in frames if not frame.system])
        return [STARPU, *known[-1:]]
    if first(frames, lambda frame: TASK.match(frame.symbol)) is None and first(
            frames, lambda frame: frame.symbol.startswith(MEMBER)) is not None:
        return [WAITS]
    return [RUNTIME, *texts(without_entrances(frames[at:]))]


def of_others(frames):
    return texts(without_entrances(frames[first(frames, lambda frame: frame.symbol in MAIN) or 0:]))


def texts(frames):
    return [frame.text for frame in frames if frame.text]


class Processes:
    """What the threads of each process are called."""

    def __init__(self, threads):
        self.with_workers = {pid for name, pid, _ in threads if WORKER.fullmatch(name)}
        self.mains = {pid: name for name, pid, main in threads if main}
        programs = {self.program(pid) for _, pid, _ in threads}
        self.several = len(programs) > 1

    def program(self, pid):
        return self.mains.get(pid, f"process {pid}")

    def worker(self, thread):
        name, pid, _ = thread
        found = WORKER.fullmatch(name)
        return None if not found or pid not in self.with_workers else ("CUDA " if found[1] == "CUDA" else "") + "worker " + found[2]

    def texts(self, thread):
        """The outermost frames: the program, where there are several, and the thread."""
        name, pid, main = thread
        thread_name = self.worker(thread) or ("host" if main and pid in self.with_workers else name)
        program = name if main else self.program(pid)
        return [program] * (self.several and program != thread_name) + [thread_name]


def clean(text):
    """Of the two signs that folded stacks use themselves."""
    return " ".join(text.replace(";", ":").split())


def collapse(lines):
    """(Counter of stacks, outermost first, pids) of perf script's lines."""
    seen = Counter(samples(lines))
    threads = {thread for thread, _ in seen}
    processes = Processes(sorted(threads))
    demangled = names.demangle({symbol for _, stack in seen for symbol, _ in stack})
    frames = {frame: Frame(*frame, demangled) for frame in {frame for _, stack in seen for frame in stack}}
    folded = Counter()
    for (thread, stack), count in seen.items():
        inner = (of_worker if processes.worker(thread) else of_others)([frames[frame] for frame in reversed(stack)])
        folded[tuple(clean(text) for text in processes.texts(thread) + inner)] += count
    return folded, {pid for _, pid, _ in threads}


def text(folded):
    return "".join(f"{';'.join(stack)} {folded[stack]}\n" for stack in sorted(folded))


def read(path):
    """Raises Complaint where the file is none of folded stacks."""
    folded = Counter()
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                stack, _, count = line.rstrip().rpartition(" ")
                if not stack or not count.isdigit():
                    raise Complaint(f"{path}:{number}: '{line.strip()[:60]}'; expected frames separated by ';', a space and a count",
                                    "flamegraph writes such a file beside its picture")
                folded[tuple(stack.split(";"))] += int(count)
    except OSError as error:
        raise Complaint(f"cannot read {path}: {error.strerror}") from None
    if not sum(folded.values()):
        raise Complaint(f"{path} holds no samples")
    return folded
