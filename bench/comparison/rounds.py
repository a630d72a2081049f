"""Measuring: the contestants of a cell in turn, round after round, and what the rounds say."""
import statistics
import sys
import time

from contestants import Absent, Cell, Child

WARM_UP = 0.3  # seconds: caches, predictors and the clock's rate settle
TRACED = 0.2  # seconds in which a GPU's kernels are recorded, of thousands a second
TRACING_PATIENCE = 10  # seconds: CUPTI may hang, and is not worth a cell
LEAST_SHARE = -0.02  # of a step that is not kernels: further below zero the recording is wrong
OURS, BEFORE, CEILING = "arenite", "before", "gemm"


class Progress:
    """How many processes of how many have been measured, and an ETA; on a terminal only."""

    def __init__(self, total, out=sys.stderr):
        self.total, self.done, self.start, self.out = total, 0, time.monotonic(), out

    def show(self, what):
        if self.out.isatty():
            eta = ""
            if self.done:
                left = round((time.monotonic() - self.start) / self.done * (self.total - self.done))
                eta = f", ETA {left // 60}:{left % 60:02}"
            self.out.write(f"\r\033[K{self.done} of {self.total} measurements{eta}: {what}")
            self.out.flush()

    def end(self):
        if self.out.isatty():
            self.out.write("\r\033[K")
            self.out.flush()


class Board:
    """Who takes part, and who no more: an absence is said once, and a rival that dies in one cell may live in others."""

    def __init__(self, out=sys.stderr):
        self.out, self.absences, self.known = out, [], {}

    def absent(self, reason, where=None):
        text = f"{reason} ({where})" if where else str(reason)
        if text not in self.absences:
            self.absences.append(text)
            print(f"\r\033[Kabsent: {text}" if self.out.isatty() else f"absent: {text}", file=self.out, flush=True)

    def meet(self, child):
        self.known.setdefault(child.way.key, {"version": child.version, "configuration": child.configuration,
                                              "environment": child.way.environment})


def need_memory(way, bytes_wanted):
    """All contestants of a cell are in memory at once; one too many would have the system kill another."""
    with open("/proc/meminfo") as memory:
        available = int(next(line for line in memory if line.startswith("MemAvailable:")).split()[1]) * 1024
    if available < 1.5 * bytes_wanted:
        raise Absent(f"{way.key}: only {available >> 20} MiB of memory left beside the others; --ways or --rivals chooses fewer")


def measure(cell, ways, data, rounds, seconds, board, progress, patience=600, on_rates=lambda results: None, anew=False):
    """{key: {"rates": [samples a second], "loss": …, "start_up_seconds": …, "peak_rss_bytes": …}}, and our profile.

    `patience` is how long one may take to answer; on_rates(results) is called once all rates are known. `anew`: each turn
    has a process of its own, since where one's memory happens to lie may cost it some percent as long as it lives.
    """
    children, results, profile = {}, {}, None

    def leave(key, reason):
        board.absent(reason, cell)
        children.pop(key).end()
        results.pop(key, None)

    def start(way):
        children[way.key] = child = Child(way, cell, data, patience)
        board.meet(child)
        child.ask(run=min(WARM_UP, seconds))
        return child

    try:
        for way in ways:
            progress.show(f"{way.key} starts, {cell}")
            try:
                if children and way.rival != CEILING:
                    need_memory(way, max(child.peak_rss() for child in children.values()))
                child = start(way)
                results[way.key] = {"rates": [], "start_up_seconds": child.start_up,
                                    "configuration": child.configuration, "lanes": child.lanes}
            except Absent as reason:
                if way.key in children:
                    leave(way.key, reason)
                else:
                    board.absent(reason, cell)
        for number in range(rounds):
            progress.show(f"round {number + 1} of {rounds}, {cell}")
            turns = list(children.items())
            if number % 2 and [child.way.rival for _, child in turns[:2]] == [OURS, BEFORE]:
                turns[:2] = turns[1::-1]  # neither always follows the other
            for key, child in turns:
                try:
                    if anew and number > 0:
                        child.end()
                        child = start(child.way)
                    turn = child.ask(run=seconds)
                except Absent as reason:
                    leave(key, reason)
                    continue
                results[key]["rates"].append(turn["samples"] / turn["seconds"])
                results[key]["loss"] = turn["loss"]
        on_rates(results)
        for key, child in list(children.items()):
            results[key]["peak_rss_bytes"] = child.peak_rss()
            if cell.device != "cpu":
                try:
                    results[key]["traced"] = child.ask(patience=TRACING_PATIENCE, kernels=min(TRACED, seconds))
                except Absent as reason:  # its rates stand
                    results[key]["traced"] = {"error": str(reason)}
                    children.pop(key).end()
            elif child.way.rival == OURS:
                try:
                    profile = child.ask(profile=seconds)
                except Absent as reason:
                    leave(key, reason)
    finally:
        for child in children.values():
            child.end()
    progress.done += 1
    return results, profile


def judged(cell, results, profile, flops, defaults):
    """A cell of the report: medians, ratios, shares of the ceiling measured in the same rounds.

    `defaults` has each rival's default way: {"pytorch": "pytorch/eager"}.
    """
    cell_report = {"network": cell.network, "batch": cell.batch, "workers": cell.workers, "flops_per_sample": flops,
                   "contestants": {}, "rivals": {}}
    gemm = None
    for key, result in results.items():
        middle = statistics.median(result["rates"])
        if key.startswith(CEILING + "/"):
            gemm = cell_report["gemm_gflops"] = middle / 1e9
            cell_report["gemm_rates"] = result["rates"]
            continue
        cell_report["contestants"][key] = result | {"samples_per_second": middle,
                                                    "spread": max(result["rates"]) / min(result["rates"]),
                                                    "gflops": middle * flops / 1e9}
        traced = result.get("traced")
        if traced and "busy_seconds" in traced:
            # Recording slows launches, so the time of kernels is held against that of steps without it.
            judge_traced(cell_report["contestants"][key], traced, cell.batch, middle)
    for one in cell_report["contestants"].values():
        one["gemm_percent"] = 100 * one["gflops"] / gemm if gemm else None
    ours = next((one for key, one in cell_report["contestants"].items() if key.startswith(OURS + "/")), None)
    for rival in dict.fromkeys(key.split("/")[0] for key in cell_report["contestants"]):
        if rival != OURS:
            cell_report["rivals"][rival] = against(ours, rival, cell_report["contestants"], defaults.get(rival))
    cell_report["profile"] = profile
    return cell_report


def judge_traced(one, traced, batch, samples_per_second):
    """Kernels and µs of them in a step, and the share of a step that is not kernels, where the recording can be true."""
    if traced["kernels"] == 0:
        one["traced"] = traced | {"error": "no kernel was recorded"}
        return
    steps = traced["samples"] / batch
    one["kernels_per_step"] = traced["kernels"] / steps
    one["busy_us_per_step"] = 1e6 * traced["busy_seconds"] / steps
    share = 1 - traced["busy_seconds"] / traced["samples"] * samples_per_second
    if share < LEAST_SHARE:
        one["traced"] = traced | {"error": f"kernels of {one['busy_us_per_step']:.0f} µs in steps of "
                                           f"{1e6 * batch / samples_per_second:.0f} µs: not believed"}
    else:
        one["not_kernels"] = share


def against(ours, rival, contestants, default):
    """A rival's default, where it ran, and its best; ours over both: medians of the rounds' ratios."""
    keys = [key for key in contestants if key.startswith(rival + "/")]
    report = {"default": default if default in keys else None,
              "best": max(keys, key=lambda key: contestants[key]["samples_per_second"])}
    for name in ("default", "best"):
        ratio = None
        if ours and report[name]:
            theirs = contestants[report[name]]["rates"]
            ratio = statistics.median(a / b for a, b in zip(ours["rates"], theirs))
        report[f"ratio_to_{name}"] = ratio
    return report


def scaling(cells):
    """Ours and the ceiling, several workers over one, where a report has both."""
    by_case = {(cell["network"], cell["batch"], cell["workers"]): cell for cell in cells}
    found = []
    for (network, batch, workers), cell in by_case.items():
        one = by_case.get((network, batch, 1))
        if workers == 1 or one is None:
            continue
        pairs = [next((c["samples_per_second"] for key, c in which["contestants"].items()
                       if key.startswith(OURS + "/")), None) for which in (one, cell)]
        ceilings = [which.get("gemm_gflops") for which in (one, cell)]
        if None not in pairs and None not in ceilings:
            ours, gemm = pairs[1] / pairs[0], ceilings[1] / ceilings[0]
            found.append({"network": network, "batch": batch, "workers": workers, "ours": ours, "gemm": gemm,
                          "quotient": ours / gemm})
    return found


def cells_of(networks, batches, workers, device="cpu"):
    """Workers next to one another, so that what is compared lies close in time."""
    return [Cell(network, batch, count, device) for network in networks for batch in batches for count in workers]
