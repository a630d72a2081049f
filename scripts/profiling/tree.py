"""Folded stacks as a tree of frames, with the shares of one profile or of two."""
import math
import re
from dataclasses import dataclass, field

from stacks import PHASES


@dataclass
class Node:
    """A frame and what stands on it. Counts are of samples in it or above it."""
    name: str
    count: int = 0
    before: int = 0
    children: dict = field(default_factory=dict)

    def child(self, name):
        return self.children.setdefault(name, Node(name))

    def in_order(self):
        """Phases as they come in a step, all else by name, and worker 2 before worker 10."""
        def key(node):
            phase = PHASES.index(node.name) if node.name in PHASES else len(PHASES)
            return phase, [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", node.name)]
        return sorted(self.children.values(), key=key)


def build(folded, before=None):
    """The root of one profile or, with the other's counts as `before`, of two."""
    root = Node("all")
    for counts, attribute in ((folded, "count"), (before or {}, "before")):
        for stack, count in counts.items():
            node = root
            setattr(node, attribute, getattr(node, attribute) + count)
            for name in stack:
                node = node.child(name)
                setattr(node, attribute, getattr(node, attribute) + count)
    return root


def walk(root):
    """(node, depth, x, path of names) of each frame, x in the root's count; parents come first."""
    rest = [(root, 0, 0, ())]
    while rest:
        node, depth, x, path = rest.pop()
        yield node, depth, x, path
        for child in node.in_order():
            rest.append((child, depth + 1, x, (*path, child.name)))
            x += child.count


@dataclass
class Change:
    """Of a frame's share from one profile to the next, in percent of all samples."""
    old: float
    new: float
    chance: float  # two standard deviations of the difference, were both profiles of the same

    @property
    def points(self):
        return self.new - self.old

    @property
    def is_chance(self):
        return abs(self.points) <= self.chance

    def __str__(self):
        return f"{self.old:.1f} % → {self.new:.1f} % ({self.points:+.1f} points{', by chance' if self.is_chance else ''})"


def change(node, root):
    old, new = node.before / root.before, node.count / root.count
    both = (node.before + node.count) / (root.before + root.count)
    chance = 2 * math.sqrt(both * (1 - both) * (1 / root.before + 1 / root.count))
    return Change(100 * old, 100 * new, 100 * chance)
