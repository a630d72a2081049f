"""Graphs as scripts: the text that the library compiles (docs/scripts.md). Loops only, however deep
the graph.
"""

import re
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from . import graph
from .blocks import BLOCK_PARAMETERS
from .dtypes import NAMES
from .errors import InvalidError
from .graph import DECLARATIONS, Block, Data, Node, TensorList, reachable

_RAW_NAME = re.compile(r'[^\s,);#"\x00-\x20\x7f][^\s,);#\x00-\x20\x7f]*')
_DECLARED = re.compile(
    r"""\b(?:Constant|Parameter)Tensor\s*\(\s*(?:"([^"\\]*)"|([^\s",);#]+))\s*,"""
    r"""\s*(\w+)\s*,\s*\[([\d\s,]*)\]\s*\)"""
)
_DEFAULT_NAMES = {
    graph.INPUT: "input",
    graph.CONSTANT: "constant",
    graph.BUFFER: "buffer",
    graph.PARAMETER: "parameter",
    graph.STATE: "state",
}


class Script(NamedTuple):
    text: str
    data: Dict[str, Data]  # of constants and parameters, by name
    inputs: List[str]  # in the order of their declarations
    names: Dict[Node, str]  # of all that is declared


def quote(text: str) -> str:
    return '"' + "".join(_escape(c) for c in text) + '"'


def _escape(c: str) -> str:
    if c in '"\\':
        return "\\" + c
    if c in "\n\t":
        return {"\n": "\\n", "\t": "\\t"}[c]
    return f"\\x{ord(c):02x}" if ord(c) < 0x20 or ord(c) == 0x7F else c


def name_text(name: str) -> str:
    """A declared name as scripts have it: in quotes where it would end too early without."""
    return name if _RAW_NAME.fullmatch(name) else quote(name)


def _names(declared: Sequence[Node], suggested: Mapping[Node, str]) -> Dict[Node, str]:
    """A name for each: its own, which nobody else may have; else one suggested, or made up, and
    then counted.
    """
    names: Dict[Node, str] = {}
    taken = set()
    for node in declared:
        if node.name is None:
            continue
        if node.name in taken:
            raise InvalidError(
                f"two tensors named {node.name!r}; expected a name of its own for each"
            )
        taken.add(node.name)
        names[node] = node.name
    for node in declared:
        if node in names:
            continue
        wish = suggested.get(node)
        number = 2 if wish else 0
        name = wish or f"{_DEFAULT_NAMES[node.op]}_0"
        while name in taken:
            name = f"{wish or _DEFAULT_NAMES[node.op]}_{number}"
            number += 1
        taken.add(name)
        names[node] = name
    return names


def declared_data(text: str) -> Dict[str, Tuple[str, graph.Shape]]:
    """Element types and shapes of a script's constants and parameters, by name: of those declared
    as people do it. Nothing is checked here.
    """
    found = {}
    for match in _DECLARED.finditer(re.sub(r"#.*", "", text)):
        name = match[1] if match[1] is not None else match[2]
        sizes = match[4].replace(",", " ").split()
        if match[3] in NAMES:
            found[name] = (match[3], tuple(map(int, sizes)))
    return found


class _Printer:
    def __init__(self, nodes: Sequence[Node], names: Mapping[Node, str]):
        self.names = names
        self.numbers: Dict[int, int] = {}  # of a node's first result
        self.next_number = 1
        self.lines: List[str] = []
        self.of_block: Dict[Optional[Block], List[Node]] = {}
        for node in nodes:
            self.of_block.setdefault(node.block, []).append(node)

    def number(self, node: Node) -> str:
        """Numbers a node's results; their list."""
        self.numbers[id(node)] = self.next_number
        self.next_number += len(node.results)
        return ", ".join(f"${self.numbers[id(node)] + i}" for i in range(len(node.results)))

    def reference(self, tensor: Any) -> str:
        return "_" if tensor is None else f"${self.numbers[id(tensor.node)] + tensor.index}"

    def literal(self, value: Any) -> str:
        if isinstance(value, TensorList):
            return f"[{', '.join(map(self.reference, value))}]"
        if isinstance(value, (tuple, list)):
            return f"[{', '.join(str(int(v)) for v in value)}]"
        if isinstance(value, Name):
            return str(value)
        if isinstance(value, str):
            return quote(value)
        if isinstance(value, (bool, int, np.integer)):
            return str(int(value))
        return repr(float(value))

    def call(self, node: Node) -> str:
        operands = list(node.operands)
        while operands and operands[-1] is None:
            operands.pop()
        words = [self.reference(operand) for operand in operands]
        words += [f"{name}={self.literal(value)}" for name, value in node.attributes.items()]
        return f"{node.op}({', '.join(words)})"

    def declare(self, node: Node) -> None:
        ((shape, dtype),) = node.results
        name = name_text(self.names[node])
        self.lines.append(f"{self.number(node)} = {node.op}({name}, {dtype}, {list(shape)});")

    def block(self, block: Optional[Block]) -> None:
        """The statements of a block and of those inside of it. A stack of what is still to be
        written, for depth.
        """
        waiting: List[Any] = [iter(self.of_block.get(block, []))]
        indent = 0
        while waiting:
            item = waiting[-1]
            if isinstance(item, _End):
                waiting.pop()
                yields = ", ".join(map(self.reference, item.block.yields))
                self.lines.append("  " * indent + f"yield {yields};")
                indent -= 1
                self.lines.append("  " * indent + item.text)
                if item.results is not None:
                    self.numbers[id(item.results)] = item.first
                continue
            if isinstance(item, _Begin):
                waiting.pop()
                indent += 1
                if item.block.parameters:
                    self.lines[-1] += f" ({self.number(item.block.parameters[0].node)}) {{"
                else:
                    self.lines[-1] += " {"
                waiting.append(item.end)
                waiting.append(iter(self.of_block.get(item.block, [])))
                continue
            node = next(item, None)
            if node is None:
                waiting.pop()
            elif node.op == BLOCK_PARAMETERS:
                pass
            elif node.blocks:
                call = self.call(node)
                left = self.number(node)
                first = self.numbers.pop(id(node))  # nobody inside may read it
                self.lines.append("  " * indent + f"{left} = {call}")
                last = len(node.blocks) - 1
                for i, inner in reversed(list(enumerate(node.blocks))):
                    end = _End(
                        inner, "};" if i == last else "} else", node if i == last else None, first
                    )
                    waiting.append(_Begin(inner, end))
            else:
                call = self.call(node)
                left = f"{self.number(node)} = " if node.results else ""
                note = " @update" if node.op in ("sgd", "multi_sgd") else ""
                self.lines.append("  " * indent + f"{left}{call}{note};")


class _End(NamedTuple):
    block: Block
    text: str
    results: Optional[Node]
    first: int


class _Begin(NamedTuple):
    block: Block
    end: _End


class Name(str):
    """An attribute that scripts write without quotes, as `optimizer=sgd`."""


def script_of(
    outputs: Sequence[Any],
    inputs: Iterable[Node] = (),
    updates: Iterable[Any] = (),
    suggested: Optional[Mapping[Node, str]] = None,
) -> Script:
    """The script that computes the outputs, tensors, and does the updates.

    inputs: declared first, in this order, whether they are read or not.
    suggested: names of declarations that have none of their own.
    """
    inputs, updates = list(inputs), list(updates)
    nodes = reachable(
        [*inputs, *(tensor.node for tensor in outputs), *(update.node for update in updates)]
    )
    given = set(inputs)
    declared = inputs + [node for node in nodes if node.op in DECLARATIONS and node not in given]
    names = _names(declared, suggested or {})
    printer = _Printer([node for node in nodes if node.op not in DECLARATIONS], names)
    for node in declared:
        printer.declare(node)
    printer.block(None)
    results = ", ".join(map(printer.reference, outputs)) or "_"
    printer.lines.append(f"result = {results};")
    data = {names[node]: node.data for node in declared if node.data is not None}
    return Script(
        "\n".join(printer.lines) + "\n",
        data,
        [names[node] for node in declared if node.op == graph.INPUT],
        names,
    )


def to_script(*outputs: Any) -> str:
    """The script of tensors, as text."""
    return script_of(outputs).text
