#!/usr/bin/env python3
"""Prints python/arenite/functional.pyi: what `arenite.functional` has, for type checkers.

Its functions are those that the module imports; formulas (src/expr/formulas.def) are made when they are
asked for, and only this says their operands. After either has changed:

    python/stubs.py > python/arenite/functional.pyi
"""

import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
HEAD = '''"""What `arenite.functional` has. Printed by python/stubs.py."""

'''


def imports(text):
    """The names that a module gives on, by where they are from."""
    found = {}
    for source, names in re.findall(r"^from (\.\w+) import (\([^)]*\)|.*)", text, re.M):
        for name, own in re.findall(r"(\w+) as (\w+)", names):
            if not own.startswith("_"):
                found.setdefault(source, []).append((name, own))
    return found


def formulas(text):
    """Operands, and numbers with what they are unless somebody says otherwise, by name."""
    found = {}
    for name, operands in re.findall(r"^ARENITE_(?:FORMULA|ROWS)\((\w+), \((.*?)\),", text, re.M):
        parts = [part.split() for part in operands.split(", ")]
        tensors = [part[1] for part in parts if part[0] == "T"]
        numbers = [(part[1], part[3]) for part in parts if part[0] != "T"]
        found[name] = tensors, numbers
    return found


def stub():
    given = imports((HERE / "arenite/functional.py").read_text(encoding="utf-8"))
    text = HEAD + "from .tensor import Tensor as _Tensor, TensorLike as _TensorLike\n"
    for source, names in given.items():
        text += f"from {source} import {', '.join(f'{name} as {own}' for name, own in names)}\n"
    known = {own for names in given.values() for _, own in names}
    made = formulas((HERE.parent / "src/expr/formulas.def").read_text(encoding="utf-8"))
    for name, (tensors, numbers) in sorted(made.items()):
        if name in known:
            continue
        parts = [f"{operand}: _TensorLike" for operand in tensors] + ["/"]
        if numbers:
            parts += ["*", *(f"{number}: float = {standard}" for number, standard in numbers)]
        text += f"\ndef {name}({', '.join(parts)}) -> _Tensor: ..."
    return text + "\n"


if __name__ == "__main__":
    print(stub(), end="")
