"""The report as text: tables of what rounds.py judged."""
OURS = "arenite"
PARTS = "kernels", "staging", "runtime", "idle"

NOT_KERNELS = """\
not kernels    share of a step in which no kernel runs: 1 − time of kernels, those at once counted once (CUPTI, in a turn of its
               own) / time of a step in the median round. Copies count as no kernels. A recording without kernels, or with more of
               them than the step is long, is not believed"""
NOTES = """\
samples/s      median of the rounds; spread: the fastest round over the slowest, how quiet the machine was
ratio          ours over theirs, the median over the rounds, whose turns follow one another; above 1: ours is faster
% GEMM         (FLOP of a sample's step by dense arithmetic × samples/s) over the matrix product measured in the same rounds on
               as many cores. Kernels that skip zeros or transform (sparse gradients, Winograd) do fewer operations than
               are counted: they may exceed what dense kernels could reach, and 100
start-up       from the process's start to the end of its first step, images in a raw IDX file, files in the page cache
peak RSS       the most memory the process ever had resident (VmHWM), libraries and images included
scaling        samples/s with several workers over one, the same of the matrix product, and the quotient of both"""


def table(heads, rows):
    """Columns as wide as they must be; numbers to the right."""
    widths = [max(len(str(row[i])) for row in [heads, *rows]) for i in range(len(heads))]
    left = {i for i in range(len(heads)) if rows and all(not str(row[i])[:1].isdigit() for row in rows)}
    return "\n".join("  " + "  ".join(f"{text!s:<{width}}" if i in left else f"{text!s:>{width}}"
                                      for i, (text, width) in enumerate(zip(row, widths))).rstrip()
                     for row in [heads, *rows])


def number(value, form):
    return "-" if value is None else format(value, form)


def ours_of(cell):
    return next((one for key, one in cell["contestants"].items() if key.startswith(OURS + "/")), None)


def rivals_of(report):
    return list(dict.fromkeys(name for cell in report["cells"] for name in cell["rivals"]))


def way_of(key):
    """Short, and another for the older build, whose way is ours."""
    return key.removesuffix("/" + OURS).split("/")[-1]


def place(cell):
    return cell["network"], cell["batch"], cell["workers"]


def with_ways(report):
    """Rivals that have more than one way, whose default and best are two columns."""
    return [name for name in rivals_of(report)
            if len({key for cell in report["cells"] for key in cell["contestants"] if key.startswith(name + "/")}) > 1]


def rates_table(report):
    rivals, several = rivals_of(report), with_ways(report)
    heads = ["network", "batch", "workers", "ours", "spread", "% GEMM"]
    for name in rivals:
        heads += [f"{name} default", "ratio", "best", "by", "ratio"] if name in several else [name, "ratio"]
    rows = []
    for cell in report["cells"]:
        ours = ours_of(cell) or {}
        row = [*place(cell), number(ours.get("samples_per_second"), ".0f"), number(ours.get("spread"), ".2f"),
               number(ours.get("gemm_percent"), ".1f")]
        for name in rivals:
            rival = cell["rivals"].get(name, {})
            default = cell["contestants"].get(rival.get("default"), {})
            best = cell["contestants"].get(rival.get("best"), {})
            if name in several:
                row += [number(default.get("samples_per_second"), ".0f"), number(rival.get("ratio_to_default"), ".2f")]
            row.append(number(best.get("samples_per_second"), ".0f"))
            if name in several:
                row.append((rival.get("best") or "-").split("/")[-1])
            row.append(number(rival.get("ratio_to_best"), ".2f"))
        rows.append(row)
    return table(heads, rows)


def every_way_table(report):
    keys = list(dict.fromkeys(key for cell in report["cells"] for key in cell["contestants"]))

    def entry(one):
        return "-" if one is None else f"{one['samples_per_second']:.0f} ({number(one['gemm_percent'], '.1f')})"

    return table(["network", "batch", "workers", *map(way_of, keys), "GEMM GFLOP/s"],
                 [[*place(cell), *(entry(cell["contestants"].get(key)) for key in keys),
                   number(cell.get("gemm_gflops"), ".0f")] for cell in report["cells"]])


def costs_table(report):
    """Start-up in seconds and peak RSS in MiB, ours and each rival's default and best."""
    rivals, several = rivals_of(report), with_ways(report)
    heads = ["network", "batch", "workers", "ours s", "MiB"]
    for name in rivals:
        heads += [f"{name} default s", "MiB", "best s", "MiB"] if name in several else [f"{name} s", "MiB"]
    rows = []
    for cell in report["cells"]:
        chosen = [ours_of(cell) or {}]
        for name in rivals:
            rival = cell["rivals"].get(name, {})
            chosen += [cell["contestants"].get(rival.get(which), {})
                       for which in (("default", "best") if name in several else ("best",))]
        row = [*place(cell)]
        for one in chosen:
            memory = one.get("peak_rss_bytes")
            row += [number(one.get("start_up_seconds"), ".2f"), number(memory and memory / 2**20, ".0f")]
        rows.append(row)
    return table(heads, rows)


def scaling_table(report):
    return table(["network", "batch", "workers", "ours", "GEMM", "quotient"],
                 [[*place(row), *(f"{row[name]:.2f}" for name in ("ours", "gemm", "quotient"))]
                  for row in report["scaling"]])


def parts_table(report):
    rows = []
    for cell in report["cells"]:
        if cell["profile"]:
            times = cell["profile"]["us_per_step"]
            whole = sum(times[part] for part in PARTS)
            rows.append([*place(cell), ours_of(cell)["lanes"] or "-", *(f"{times[part]:.1f} ({100 * times[part] / whole:.1f} %)" for part in PARTS),
                         f"{whole / cell['workers']:.1f}"])
    return table(["network", "batch", "workers", "lanes", *PARTS, "µs a step"], rows)


def not_kernels_table(report):
    keys = list(dict.fromkeys(key for cell in report["cells"] for key in cell["contestants"]))

    def entry(one):
        if one is None:
            return "-"
        if "not_kernels" in one:
            return f"{100 * one['not_kernels']:.1f} % ({one['kernels_per_step']:.0f}, {one['busy_us_per_step']:.1f} µs)"
        return "not measured"

    return table(["network", "batch", "workers", *map(way_of, keys)],
                 [[*place(cell), *(entry(cell["contestants"].get(key)) for key in keys)] for cell in report["cells"]])


def why_not_traced(report):
    """Why kernels were not measured, each reason once."""
    return list(dict.fromkeys(f"{key}: {one['traced']['error'].removeprefix(key + ': ')}" for cell in report["cells"]
                              for key, one in cell["contestants"].items() if "error" in (one.get("traced") or {})))


def text(report):
    machine, parts = report["machine"], []
    lines = [f"{machine['cpu']}, {machine['cores']} cores; {machine['system']}"]
    for gpu in machine.get("gpus", []):
        lines.append(f"cuda:{gpu['index']}: {gpu['name']}, {gpu['bytes'] >> 20} MiB")
    if machine.get("gpus"):
        lines.append(f"on {machine['device']}, products of {machine['compute']}")
    for one in report["ceilings"]:
        lines.append(f"{one['workers']} core{'s' * (one['workers'] != 1)} at once: GEMM {one['gemm_gflops']:.0f} GFLOP/s, triad "
                     f"{one['triad_gb_s']:.1f} GB/s (one core's multiply-adds: {one['fma_gflops']:.0f} GFLOP/s)")
    for network, data in report["data"].items():
        lines.append(f"{network}: {data['images']} images, {data['dataset']} ({data['origin']}); "
                     f"{data['flops_per_sample'] / 1e6:.3f} MFLOP and {data['parameters']} parameters")
    parts.append("\n".join(lines))
    parts.append("Contestants\n" + "\n".join(
        f"  {key}: {one['version']}; {one['configuration']}" +
        ("; " + " ".join(f"{name}={value}" for name, value in one["environment"].items()) if one["environment"] else "")
        for key, one in report["contestants"].items()))
    if report["absent"]:
        parts.append("Absent\n" + "\n".join(f"  {reason}" for reason in report["absent"]))
    settings = report["settings"]
    rounds = f"median of {settings['rounds']} rounds of {settings['seconds']} s, interleaved"
    parts.append(f"Table 1: samples a second, {rounds}\n{rates_table(report)}")
    parts.append(f"Table 2: every way, samples a second (% of the GEMM beside it)\n{every_way_table(report)}")
    parts.append(f"Table 3: start-up and peak memory\n{costs_table(report)}")
    if report["scaling"]:
        parts.append(f"Table 4: several workers over one\n{scaling_table(report)}")
    if any(cell["profile"] for cell in report["cells"]):
        parts.append("Table 5: where our workers' time of a step goes, µs (workers × wall time)\n" + parts_table(report))
    if machine.get("gpus"):
        reasons = "".join(f"\n  {reason}" for reason in why_not_traced(report))
        parts.append("Table 6: share of a step that is not kernels (kernels a step, and how long they run)\n"
                     f"{not_kernels_table(report)}{reasons}")
        parts.append(NOT_KERNELS)
    parts.append(NOTES)
    return "\n\n".join(parts) + "\n"
