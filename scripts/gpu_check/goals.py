"""What the part that measures has found, against the goals of speed."""
import math

# As the goals name PyTorch's modes, and the ways of bench/compare that are these.
MODES = {"eager": "cuda_eager", "CUDA graphs": "cuda_graphs", "max-autotune": "cuda_compile"}
COMPILING = "max-autotune"
EAGER_GOAL, BEST_GOAL, FLOOR, MOST_NOT_KERNELS = 3.0, 1.2, 1.0, 0.10
GOAL_BATCH = 64
QUIET = 1.2  # the fastest round over the slowest
NO_TIME = "no time was left; --resume goes on with it"
MOST_LOSS = 1.0  # above PyTorch's: all begin near 2.3, and take different numbers of steps


def ratio(ours, theirs):
    """The median over the rounds of ours over theirs, as bench/compare has it."""
    pairs = sorted(a / b for a, b in zip(ours["rates"], theirs["rates"]))
    middle = len(pairs) // 2
    return pairs[middle] if len(pairs) % 2 else (pairs[middle - 1] + pairs[middle]) / 2


def row_of(cell):
    """A cell's two measurements as one: {"ours", "modes": {mode: samples/s}, "ratios", "spreads", "losses", "traced": {who: …},
    "why": {mode: why it is missing}}. A ratio is of the measurement that has its mode."""
    row = {"ours": None, "modes": {}, "ratios": {}, "spreads": {}, "losses": {}, "traced": {}, "why": {}}
    for measurement in filter(None, (cell.get("plain"), cell.get("compiled"))):
        contestants = measurement["contestants"]
        ours = contestants.get("arenite/arenite")
        if ours and row["ours"] is None:
            row["ours"], row["spreads"]["ours"], row["losses"]["ours"] = ours["samples_per_second"], ours["spread"], ours["loss"]
            row["traced"]["ours"] = ours
        for reason in measurement["absent"]:
            if reason.startswith("arenite/arenite:"):
                row["why"].setdefault("ours", reason)
        for mode, way in MODES.items():
            theirs = contestants.get(f"pytorch/{way}")
            if theirs:
                row["modes"][mode] = theirs["samples_per_second"]
                row["spreads"][mode], row["losses"][mode], row["traced"][mode] = theirs["spread"], theirs["loss"], theirs
                if ours:
                    row["ratios"][mode] = ratio(ours, theirs)
            for reason in measurement["absent"]:
                if reason.startswith((f"pytorch/{way}:", "pytorch:")):
                    row["why"].setdefault(mode, reason)
    return row


def judge(part, wanted, measured, no_torch, compiled):
    """Rows for every cell that is wanted, measured or not. `no_torch` is why there is no PyTorch, or ""."""
    rates, shares = [], []
    for name in wanted:
        network, batch = name.split("/")
        where = f"{network}, batch {batch}"
        if not measured.get(name):
            part.skip(where, f"not measured: {NO_TIME}")
            continue
        row = row_of(measured[name])
        if not compiled:
            row["why"].setdefault(COMPILING, "--quick compiles nothing; --resume without it does")
        rates.append([network, batch, number(row["ours"]), *(rate(row, mode) for mode in MODES)])
        shares.append([network, batch, *(share(row["traced"].get(who)) for who in ("ours", *MODES))])
        judge_row(part, where, int(batch), row, no_torch)
    if rates:
        part.details["tables"] = [
            (["network", "batch", "ours, samples/s", *(f"PyTorch {mode} (ours over it)" for mode in MODES)], rates),
            (["share of a step that is not kernels (kernels a step, µs of them)", "batch", "ours", *MODES], shares)]


def rate(row, mode):
    found = number(row["modes"].get(mode))
    return f"{found} ({row['ratios'][mode]:.2f}×)" if mode in row["ratios"] else found


def share(one):
    if not one or one.get("not_kernels") is None:
        return "not measured"
    return f"{100 * one['not_kernels']:.1f} % ({one['kernels_per_step']:.0f}, {one['busy_us_per_step']:.1f} µs)"


def judge_row(part, where, batch, row, no_torch):
    if row["ours"] is None:
        part.check(where, f"Arenite did not train: {row['why'].get('ours', 'no word of why')}", "trained", False)
        return
    missing = [mode for mode in MODES if mode not in row["ratios"]]
    if no_torch and not row["ratios"]:
        part.skip(f"{where}: beside PyTorch", no_torch)
    else:  # an earlier run may have seen a PyTorch
        for mode in missing:
            part.skip(f"{where}: PyTorch {mode}", row["why"].get(mode, no_torch or NO_TIME))
    if row["ratios"]:
        judge_ratios(part, where, batch, row)
    judge_losses(part, f"{where}: losses in the last round", row["losses"])
    what, ours = f"{where}: share of our step that is not kernels", row["traced"].get("ours") or {}
    if ours.get("not_kernels") is None:
        part.skip(what, (ours.get("traced") or {}).get("error", NO_TIME))
    else:
        part.check(what, share(ours), f"≤ {100 * MOST_NOT_KERNELS:.0f} %", ours["not_kernels"] <= MOST_NOT_KERNELS)


def judge_ratios(part, where, batch, row):
    def found(mode):
        loud = [f"{who} {row['spreads'][who]:.2f}" for who in ("ours", mode) if row["spreads"].get(who, 1) >= QUIET]
        return f"{row['ratios'][mode]:.2f}×" + (f" (rounds apart: {', '.join(loud)})" if loud else "")

    if batch == GOAL_BATCH and "eager" in row["ratios"]:
        part.check(f"{where}: ours over eager", found("eager"), f"≥ {EAGER_GOAL}×", row["ratios"]["eager"] >= EAGER_GOAL)
    best = min(row["ratios"], key=lambda mode: row["ratios"][mode])
    goal = BEST_GOAL if batch == GOAL_BATCH else FLOOR
    what, fast = f"{where}: ours over the best, {best}", row["ratios"][best] >= goal
    missing = [mode for mode in MODES if mode not in row["ratios"]]
    if fast and missing:  # one of these may be better
        part.skip(f"{where}: ours over the best", f"{found(best)} of {best}, without {', '.join(missing)}; wanted ≥ {goal}×")
    else:
        part.check(what, found(best), f"≥ {goal}×", fast)


def judge_losses(part, what, losses):
    """Numbers, and ours not far above theirs: who computes nothing is fast."""
    finite = all(isinstance(loss, (int, float)) and math.isfinite(loss) for loss in losses.values())
    theirs = [loss for who, loss in losses.items() if who != "ours"]
    wanted = f"finite, ours at most {MOST_LOSS} above theirs" if theirs else "finite"
    part.check(what, ", ".join(f"{who} {loss if loss is None else format(loss, '.3f')}" for who, loss in losses.items()), wanted,
               finite and (not theirs or losses["ours"] <= max(theirs) + MOST_LOSS))


def number(value):
    return "-" if value is None else f"{value:,.0f}"
