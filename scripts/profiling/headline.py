"""What a profile says in a few lines."""
from collections import Counter

import captures
import stacks
from tree import Node, change


FEW = 200  # samples


def parts(folded):
    """Counters of samples: of ops over all workers, of workers by what they do, and of functions that run themselves."""
    ops, workers, functions = Counter(), Counter(), Counter()
    for stack, count in folded.items():
        functions[stack[-1]] += count
        at = next((i for i, name in enumerate(stack) if stacks.is_worker(name)), None)
        if at is None or len(stack) == at + 1:
            continue
        below = stack[at + 1]
        workers["ops" if below in stacks.PHASES or below == stacks.SOME_OP else below] += count
        if below in stacks.PHASES and len(stack) > at + 2:
            ops[f"{below} {stack[at + 2]}"] += count
    return ops, workers, functions


def merged(folded):
    """All workers as one, whose name is "workers"."""
    together = Counter()
    for stack, count in folded.items():
        together[tuple(stacks.WORKERS if stacks.is_worker(name) and i < 2 else name for i, name in enumerate(stack))] += count
    return together


def in_steps(folded):
    """Only the samples of workers, and not of those that poll StarPU in no step."""
    def kept(stack):
        return any(stacks.is_worker(name) and below != stacks.STARPU for name, below in zip(stack, stack[1:]))
    return Counter({stack: count for stack, count in folded.items() if kept(stack)})


def top(folded, most=5):
    """Lines: the ops that take most, or the functions where there are no ops; then what workers do."""
    ops, workers, functions = parts(folded)
    total = sum(folded.values())
    lines = [f"{100 * count / total:5.1f} %  {name}" for name, count in (ops or functions).most_common(most)]
    if workers:
        known = sum(workers.values())
        names = {"ops": "in ops", stacks.WAITS: "waiting until a task is ready", stacks.RUNTIME: "between tasks",
                 stacks.STARPU: "in StarPU, polling for work"}
        said = [f"{100 * workers[key] / known:.1f} % {text}" for key, text in names.items() if workers[key]]
        lines.append("of the workers' samples " + ", ".join(said))
    if total < FEW:
        lines.append(f"{captures.count(total, 'sample')} say{'s' * (total == 1)} little: let it run longer, or raise --frequency")
    return lines


def changed(before, folded, most=5):
    """Lines: the ops, or functions, whose share changed most, beyond chance."""
    old, new = parts(before), parts(folded)
    at = 0 if old[0] and new[0] else 2
    root = Node("all", sum(folded.values()), sum(before.values()))
    changes = {name: change(Node(name, new[at][name], old[at][name]), root) for name in {*old[at], *new[at]}}
    real = sorted((name for name, found in changes.items() if not found.is_chance), key=lambda name: -abs(changes[name].points))
    return [f"{changes[name].points:+6.1f} points  {name}: {changes[name].old:.1f} % → {changes[name].new:.1f} %"
            for name in real[:most]] or ["nothing changed beyond what chance makes"]
