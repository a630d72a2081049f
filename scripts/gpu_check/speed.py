"""The part that measures: bench/compare on the GPU. The smallest batch first, of which most is wanted: all its cells without
what has to be compiled, then compiled; then the others, as far as time goes. What an earlier run has measured (--resume) is not
measured again."""
import json
import os
import pathlib
import tempfile
import time

import goals
import kernels
from cells import cells_of
from running import run

NETWORKS, BATCHES = ("cnn2", "lenet5", "cnn1", "vgg-small"), (64, 256, 1024)
PLAIN, COMPILED = "plain", "compiled"  # the two measurements of a cell
WAYS = {PLAIN: ["cuda_eager", "cuda_graphs"], COMPILED: ["cuda_compile"]}
LEAST_SECONDS = {PLAIN: 15, COMPILED: 45}  # for a cell; with less none is begun
PATIENCE = {PLAIN: 90, COMPILED: 180}  # seconds: a contestant that does not start costs no more


def environment_of(context):
    """Of bench/compare and PyTorch, which brings libraries of its own: ours are for our program alone."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STARPU_")}
    environment.update({name: value for name, value in context.environment.items()
                        if name.startswith(("ARENITE_", "STARPU_", "HWLOC_"))})
    if context.places.kernel_trace.exists():
        environment["ARENITE_KERNEL_TRACE"] = str(context.places.kernel_trace)
    # What was compiled for one cell, or in an earlier run, is not compiled again.
    environment["TORCHINDUCTOR_CACHE_DIR"] = str(context.cached("compiled"))
    environment["TRITON_CACHE_DIR"] = str(context.cached("triton"))
    environment["ARENITE_LAYOUTS"] = str(context.cached("layouts") / f"{context.gpu.get('uuid', 'gpu')}.json")
    return environment


def command_of(context, cells, kind, file, choices=None):
    """`choices`: a file of kernels for ours."""
    command = [context.python_here, context.places.compare, "--device", context.device, "--program", context.places.contestant,
               "--cells", ",".join(cells), "--rivals", "pytorch", "--json", file, "--rounds", "3" if context.quick else "5",
               "--seconds", "0.1" if context.quick else "0.2", "--ways", ",".join(WAYS[kind]), "--patience", PATIENCE[kind],
               "--dataset", context.places.data()[0]]
    if choices:
        command += ["--kernels", choices]
    if context.environment.get("LD_LIBRARY_PATH"):
        command += ["--libraries", context.environment["LD_LIBRARY_PATH"]]
    if context.torch_python:
        command += ["--python", context.torch_python]
    return command


def is_whole(measured, name, kind, torch, chosen):
    """Whether a cell was measured with all that take part in it, to the end, and ours with these kernels."""
    cell = measured.get(name, {}).get(kind)
    wanted = ["arenite/arenite", *(f"pytorch/{way}" for way in WAYS[kind] if torch)]
    return (cell is not None and cell.get("kernels") == chosen and
            all("traced" in cell["contestants"].get(key, {}) for key in wanted))


def versions_of(context):
    """What rates depend on besides the programs of ours, as far as it is known now."""
    known = {"PyTorch": context.found.get("PyTorch") if context.torch_python else None, "driver": context.found.get("driver")}
    return {name: version for name, version in known.items() if version}


class Measuring:
    """Cells as they come, and the part's table of them."""

    def __init__(self, part, context):
        self.part, self.context = part, context
        self.wanted = context.cells
        earlier = context.earlier.get("speed")
        self.measured = dict(earlier.details.get("cells", {})) if earlier else {}
        self.versions = versions_of(context)
        before = earlier.details.get("versions", {}) if earlier else {}
        others = [f"{name} {version}" for name, version in before.items() if self.versions.get(name, version) != version]
        if self.measured and others:
            self.measured = {}
            part.notes.append(f"measured anew, for the earlier cells are of {', '.join(others)}")
        self.versions = before | self.versions
        self.failures = []
        self.seen = None

    def chosen(self, name):
        return kernels.fingerprint(self.context.kernels, name)

    def take(self, file, kind):
        """What bench/compare has written by now."""
        try:
            text = file.read_text()
            report = json.loads(text) if text and text != self.seen else None
        except (OSError, ValueError):
            return
        if report is None:
            return
        self.seen = text
        for cell in report["cells"]:
            name = f"{cell['network']}/{cell['batch']}"
            self.measured[name] = self.measured.get(name, {}) | {
                kind: {"contestants": cell["contestants"], "absent": report["absent"], "kernels": self.chosen(name)}}
        self.judge()

    def judge(self):
        context = self.context
        self.part.checks = []
        # What an earlier run measured stays in the table, whatever this one was asked for.
        names = [name for name in cells_of(NETWORKS, BATCHES) if name in self.wanted or self.measured.get(name)]
        goals.judge(self.part, names, self.measured, context.torch_reason, compiled=not context.quick)
        for what, why in self.failures:
            self.part.check(what, why, "measured", False)
        self.part.details |= {"cells": self.measured, "versions": self.versions}
        context.save()

    def measure(self, kind, cells, folder, end):
        """Those of the cells that lack it, in one run of bench/compare."""
        names = [name for name in cells
                 if not is_whole(self.measured, name, kind, self.context.torch_python, self.chosen(name))]
        if not names or end - time.monotonic() < LEAST_SECONDS[kind]:
            return
        file, choices = pathlib.Path(folder) / f"{kind}.json", None
        if kernels.chosen_of(self.context.kernels):
            choices = pathlib.Path(folder) / "choices.json"
            choices.write_text(json.dumps(self.context.kernels["choices"]))
        self.context.show(self.part, f"{', '.join(names)}, {kind}")
        done = run(command_of(self.context, names, kind, file, choices), end - time.monotonic(), environment_of(self.context),
                   lambda: self.take(file, kind))
        self.take(file, kind)
        if done.status not in (0, None):
            self.failures.append((f"bench/compare, {kind}", done.why))


def batch_of(cell):
    return int(cell.split("/")[1])


def speed(part, context, seconds):
    end = time.monotonic() + seconds
    mode = context.found.get("compute mode", "")
    if context.torch_python and mode.startswith("Exclusive"):  # contestants of a cell are on the GPU together
        context.torch_python = None
        context.torch_reason = f"the GPU's compute mode is {mode}, which lets one process in: nvidia-smi -c DEFAULT lets more"
    if not context.torch_python:
        part.notes.append(context.torch_reason)
    measuring = Measuring(part, context)
    unmeasured = [name for name in measuring.wanted if measuring.chosen(name) is None]
    part.notes.append("ours takes the kernels that part kernels found the fastest" +
                      (f", but by themselves in {', '.join(unmeasured)}, where none was measured" if unmeasured else ""))
    first = batch_of(measuring.wanted[0])
    with tempfile.TemporaryDirectory() as folder:
        for is_first in True, False:
            cells = [name for name in measuring.wanted if (batch_of(name) == first) == is_first]
            measuring.measure(PLAIN, cells, folder, end)
            if context.torch_python and not context.quick:
                measuring.measure(COMPILED, cells, folder, end)
    measuring.judge()
