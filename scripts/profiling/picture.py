"""A flame graph as one SVG file: a picture where scripts do not run, with zoom and search where they do."""
import colorsys
import html
import pathlib
import re
import zlib
from collections import Counter

import stacks
import tree

WIDTH, MARGIN, ROW = 1200, 10, 17
LETTER = 6.63  # pixels, of a monospaced font of 11
TITLE, TOP = 24, 58
LEAST = 0.4  # pixels: narrower frames are left out

# Hue, saturation and lightness; what stands on a phase has its hue.
PHASE_COLOURS = {"forward": (135, 42, 66), "backward": (22, 78, 70), "update": (265, 55, 78), "staging": (185, 48, 68),
                 "evaluate": (212, 60, 73), "init": (330, 35, 74)}
THREAD, ROOT = (215, 22, 80), (0, 0, 83)
OTHERS = {"LIBXSMM's code": (52, 88, 62), "waits until a task is ready": (0, 0, 91), "in StarPU, polling": (0, 0, 87),
          "runtime": (215, 32, 70), "an op that left no trace": (120, 12, 80), "system": (350, 62, 78),
          "other code": (38, 45, 76)}
RED, BLUE, SAME = (4, 80), (215, 80), (0, 0, 93)
PALE, DARK = 90, 58

# Where, operator and what of its gradients it makes: when there is no room for all, that says most.
OP = re.compile(r"(.*: )(\w+?)(_grad_\w+)? \[[^\]]*\]")

STYLE = """text{font:11px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1b1b1b}
.sans{font-family:system-ui,'Helvetica Neue',Arial,'DejaVu Sans',sans-serif;font-size:12px}
.head{font-size:16px;font-weight:600}.quiet{fill:#5c5c5c}.button{fill:#2257a5;cursor:pointer}
#frames rect{stroke:#fff;stroke-width:.6}#frames g{cursor:pointer}#frames text{pointer-events:none}
#frames g:hover rect{stroke:#1b1b1b;stroke-width:1}#frames .hit rect{fill:#d63ad6}"""


def escape(text):
    """For XML, which has no sign at all for most control characters."""
    return html.escape(re.sub("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "�", text), quote=True)


def colour(hue, saturation, lightness):
    red, green, blue = colorsys.hls_to_rgb(hue / 360, min(lightness, 97) / 100, saturation / 100)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"


def kind_of(path):
    """What the legend calls a frame, by the names from the outermost to it; "" of roots and threads."""
    name = path[-1] if path else "all"
    if name.endswith("_[k]"):
        return "system"
    if name.startswith("xsmm "):
        return "LIBXSMM's code"
    at = next((i for i, part in enumerate(path) if stacks.is_worker(part)), None)
    if at is None:
        is_thread = not path or name == "host" or len(path) == 1
        return "" if is_thread else "other code"
    below = path[at + 1] if len(path) > at + 1 else ""
    kinds = {stacks.WAITS: "waits until a task is ready", stacks.STARPU: "in StarPU, polling", stacks.RUNTIME: "runtime",
             stacks.SOME_OP: "an op that left no trace", "": ""}
    return below if below in stacks.PHASES else kinds.get(below, "other code")


def usual_colour(path):
    kind = kind_of(path)
    if not kind:
        return colour(*(THREAD if path else ROOT))
    hue, saturation, lightness = PHASE_COLOURS.get(kind) or OTHERS[kind]
    # Neighbours differ a little, the same function never; what stands on an op is lighter than it.
    shade = zlib.crc32(path[-1].encode(errors="replace")) % 7 - 3
    if kind in PHASE_COLOURS and path[-1] not in stacks.PHASES:
        lightness += 4 if path[-1].endswith("]") else 12
    return colour(hue + (2 * shade if saturation > 40 else 0), saturation, lightness + shade / 2)


def difference_colour(change, most):
    """Red for more, blue for less, and none for what chance explains."""
    if change.is_chance:
        return colour(*SAME)
    strength = min(1, abs(change.points) / most)
    hue, saturation = RED if change.points > 0 else BLUE
    return colour(hue, saturation, PALE + (DARK - PALE) * strength)


def legend(kinds):
    order = [*PHASE_COLOURS, *OTHERS]
    return [(colour(*(PHASE_COLOURS.get(kind) or OTHERS[kind])), kind) for kind in order if kind in kinds]


def share(count, total):
    return f"{count} samples, {100 * count / total:.2f} %" if count != 1 else f"1 sample, {100 / total:.2f} %"


class Picture:
    def __init__(self, title, subtitle, width=WIDTH):
        self.title, self.subtitle, self.width = title, subtitle, width
        self.inner = width - 2 * MARGIN

    def label(self, name, space):
        """As flame.js does it: whole, cut, or not at all."""
        room = int((space - 6) / LETTER)
        if len(name) <= room:
            return name
        if room < 3:
            return ""
        op = OP.fullmatch(name)
        if op:
            where, operator, gradient = op.group(1), op.group(2), op.group(3) or ""
            shorter = [where + operator + gradient, *([f"{where}…{gradient[1:]}"] if gradient else [])]
            name = next((text for text in shorter if len(text) <= room), name)
        return name if len(name) <= room else name[:room - 1] + "…"

    def frame(self, x, y, width, name, details, fill):
        label = self.label(name, width)
        text = f'<text x="{MARGIN + x + 3:.1f}" y="{y + 12}">{escape(label)}</text>' if label else ""
        return (f'<g><title>{escape(name)}\n{escape(details)}</title><rect x="{MARGIN + x:.2f}" y="{y}" width="{width:.2f}" '
                f'height="{ROW - 1}" fill="{fill}"/>{text}</g>')

    def draw(self, root, details_of, colour_of, notes=()):
        """`details_of(node)` is what hovering tells, `colour_of(node, path)` a frame's fill."""
        shown = [(node, depth, x * self.inner / root.count, path) for node, depth, x, path in tree.walk(root)
                 if node.count * self.inner >= LEAST * root.count]
        rows = 1 + max(depth for _, depth, _, _ in shown)
        bottom = TOP + rows * ROW
        parts = [self.frame(x, bottom - (depth + 1) * ROW, node.count * self.inner / root.count,
                            node.name, details_of(node), colour_of(node, path)) for node, depth, x, path in shown]
        return self.around(parts, bottom, notes)

    def around(self, parts, bottom, notes):
        """The whole file; notes are (colour, text) and stand in as many lines as they need."""
        below, x, y = [], MARGIN, bottom + 16
        for fill, text in notes:
            room = 22 + 6.8 * len(text)
            if x > MARGIN and x + room > self.width - MARGIN:
                x, y = MARGIN, y + 18
            below.append(f'<rect x="{x:.0f}" y="{y - 10}" width="12" height="12" fill="{fill}" stroke="#8a8a8a" stroke-width=".5"/>'
                         f'<text class="sans" x="{x + 17:.0f}" y="{y}">{escape(text)}</text>')
            x += room + 12
        height = y + 30
        script = (pathlib.Path(__file__).parent / "flame.js").read_text(encoding="utf-8")
        middle = self.width / 2
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {height}" width="{self.width}" height="{height}">',
            f"<title>{escape(self.title)}</title><style>{STYLE}</style>",
            f'<rect width="{self.width}" height="{height}" fill="#fff"/>',
            f'<text class="sans head" x="{middle}" y="{TITLE}" text-anchor="middle">{escape(self.title)}</text>',
            f'<text class="sans quiet" x="{middle}" y="{TITLE + 18}" text-anchor="middle">{escape(self.subtitle)}</text>',
            f'<text id="reset" class="sans button" x="{MARGIN}" y="{TITLE}" style="display:none">whole picture</text>',
            f'<text id="search" class="sans button" x="{self.width - MARGIN}" y="{TITLE}" text-anchor="end" '
            'style="display:none">search</text>',
            f'<g id="frames" data-width="{self.inner}" data-left="{MARGIN}" data-letter="{LETTER}">',
            *parts, "</g>", *below,
            f'<text id="details" class="sans" x="{MARGIN}" y="{height - 9}"> </text>',
            f'<text id="found" class="sans" x="{self.width - MARGIN}" y="{TITLE + 18}" text-anchor="end"></text>',
            f'<text id="how" class="sans quiet" x="{self.width - MARGIN}" y="{height - 9}" text-anchor="end"></text>',
            f"<script><![CDATA[\n{script}]]></script>", "</svg>", ""])


def flame_graph(folded, title, subtitle, width=WIDTH):
    root = tree.build(folded)
    picture = Picture(title, subtitle, width)
    kinds = {kind_of(path) for node, _, _, path in tree.walk(root) if node.count * picture.inner >= root.count}
    return picture.draw(root, lambda node: share(node.count, root.count), lambda _, path: usual_colour(path), legend(kinds))


def difference_graph(before, folded, title, subtitle, width=WIDTH):
    """Widths are of `folded`, colours of what changed since `before`, both in shares of their own samples."""
    root = tree.build(folded, before)
    changes = [tree.change(node, root) for node, depth, _, _ in tree.walk(root) if depth]
    most = max((abs(change.points) for change in changes if not change.is_chance), default=1)
    notes = [(colour(*RED, DARK), f"larger share than before (darkest: {most:.1f} points)"),
             (colour(*BLUE, DARK), "smaller share"), (colour(*SAME), "no difference beyond chance"), *gone(root)]
    return Picture(title, subtitle, width).draw(root, lambda node: str(tree.change(node, root)),
                                                lambda node, _: difference_colour(tree.change(node, root), most), notes)


def gone(root, most=3):
    """Notes on the largest frames that the newer profile has no more, and so no place for."""
    paths = {path: node for node, _, _, path in tree.walk(root) if not node.count}
    lost = Counter()
    for path, node in paths.items():
        if path[:-1] not in paths and not tree.change(node, root).is_chance:
            lost[node.name] += node.before
    return [("#fff", f"gone: {name} ({100 * count / root.before:.1f} %)") for name, count in lost.most_common(most)]
