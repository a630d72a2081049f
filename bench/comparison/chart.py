"""The report as a bar chart: SVG without scripts, fonts or pictures from elsewhere, readable on light and dark."""
from html import escape

from report import OURS, number, ours_of, place, rivals_of

# Of a palette that colour-blind people can tell apart, on white and on black.
COLOURS = {OURS: "#0072b2", "pytorch": "#d55e00", "jax": "#009e73", "onednn": "#a57200"}
OTHER = "#777777"
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #222 }
.title { font-size: 16px; font-weight: 600 }
.faint { fill: #666 }
.value { font-size: 11px }
.axis { stroke: #999; stroke-width: 1 }
.page { fill: #fff }
@media (prefers-color-scheme: dark) {
  text { fill: #e8e8e8 }
  .faint { fill: #aaa }
  .axis { stroke: #777 }
  .page { fill: #16181c }
}"""
WIDTH, LABELS, BARS, ROW, GAP = 960, 150, 520, 16, 14


def label(name):
    return {OURS: "Arenite", "pytorch": "PyTorch", "jax": "JAX", "onednn": "oneDNN"}.get(name, name)


def bars_of(cell, rivals):
    """(colour, full or faint, samples a second, words) from top to bottom."""
    ours = ours_of(cell)
    if ours:
        share = ours["gemm_percent"]
        yield COLOURS[OURS], 1, ours["samples_per_second"], (f"{share:.0f} % of GEMM" if share else "")
    for name in rivals:
        rival = cell["rivals"].get(name)
        if not rival:
            continue
        shown = [which for which in ("best", "default") if rival[which]]
        if rival["best"] == rival["default"]:
            shown = ["best"]
        for which in shown:
            way = rival[which].split("/")[-1]
            ratio = rival[f"ratio_to_{which}"]
            words = f"{label(name)} {way}" if way != name else label(name)
            yield (COLOURS.get(name, OTHER), 1 if which == "best" else 0.5,
                   cell["contestants"][rival[which]]["samples_per_second"],
                   words + (f", ours {number(ratio, '.2f')} ×" if ratio else ""))


def chart(report):
    rivals = rivals_of(report)
    groups = [(cell, list(bars_of(cell, rivals))) for cell in report["cells"]]
    parts, y = [], 92
    for cell, bars in groups:
        if not bars:
            continue
        network, batch, workers = place(cell)
        longest = max(bar[2] for bar in bars)
        middle = y + len(bars) * ROW / 2
        parts.append(f'<text x="{LABELS - 12}" y="{middle - 2}" text-anchor="end">{escape(network)}</text>')
        where = report["machine"].get("device") or f'{workers} worker{"s" * (workers != 1)}'
        parts.append(f'<text class="faint value" x="{LABELS - 12}" y="{middle + 12}" text-anchor="end">'
                     f'batch {batch}, {escape(where)}</text>')
        parts.append(f'<line class="axis" x1="{LABELS}" y1="{y - 3}" x2="{LABELS}" y2="{y + len(bars) * ROW + 1}"/>')
        for colour, opacity, rate, words in bars:
            width = max(1, BARS * rate / longest)
            parts.append(f'<rect x="{LABELS}" y="{y}" width="{width:.1f}" height="{ROW - 3}" fill="{colour}" '
                         f'fill-opacity="{opacity}"/>')
            parts.append(f'<text class="value" x="{LABELS + width + 6:.1f}" y="{y + ROW - 6}">{rate:,.0f}'
                         f'<tspan class="faint" dx="6">{escape(words)}</tspan></text>')
            y += ROW
        y += GAP
    legend, x = [], LABELS
    for name in [OURS, *rivals]:
        legend.append(f'<rect x="{x}" y="56" width="12" height="12" fill="{COLOURS.get(name, OTHER)}"/>'
                      f'<text x="{x + 18}" y="66">{escape(label(name))}</text>')
        x += 34 + 8 * len(label(name))
    legend.append(f'<text class="faint value" x="{x}" y="66">full: best way, pale: default; bars of a group share a scale</text>')
    machine = report["machine"]
    hardware = ", ".join([gpu["name"] for gpu in machine.get("gpus", [])] +
                         [machine["cpu"], f"{machine['cores']} cores", {"tfloat32": "tf32"}.get(machine.get("compute"), "fp32")])
    height = y + 10
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
        f'aria-label="Samples a second, Arenite and rivals">',
        f"<style>{STYLE}</style>", f'<rect class="page" width="{WIDTH}" height="{height}"/>',
        f'<text class="title" x="{LABELS}" y="26">Training: samples a second</text>',
        f'<text class="faint" x="{LABELS}" y="44">{escape(hardware)}; '
        f'median of {report["settings"]["rounds"]} interleaved rounds</text>', *legend, *parts, "</svg>", ""])
