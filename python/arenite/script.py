"""Graphs as scripts: the text that the library compiles (docs/scripts.md)."""

import itertools
import re
from typing import Any, Callable, Collection, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import graph
from .calls import WrittenName, call_text, number_text, quote
from .dtypes import NAMES
from .errors import InvalidError
from .graph import (
    BLOCK_PARAMETERS,
    BUFFER,
    DECLARATIONS,
    PARAMETER,
    STATE,
    Block,
    Data,
    Node,
    reachable,
    word,
)

_RAW_NAME = re.compile(r'[^\s,);#"\x00-\x20\x7f][^\s,);#\x00-\x20\x7f]*')
_DECLARED = re.compile(
    r"""\b(?:Constant|Parameter|State|Buffer)Tensor\s*\(\s*(?:"([^"\\]*)"|([^\s",);#]+))\s*,"""
    r"""\s*(\w+)\s*,\s*\[([\d\s,]*)\]\s*[,)]"""
)


class Script(NamedTuple):
    text: str
    data: Dict[str, Data]  # of what has some, by the name that the library has for it
    inputs: List[str]  # in the order of their declarations
    owned: Dict[str, Data]  # those of parameters and buffers, which modules have


_Kind = Callable[[Node], str]  # what a node is declared as


def _names(
    declared: Sequence[Node], suggested: Mapping[Node, str], kind: _Kind
) -> Dict[Node, str]:
    """A name for each: its own, which nobody else of its kind may have; else one suggested, or made
    up, and then counted.
    """
    names = {node: node.name for node in declared if node.name is not None}
    taken = set()
    for node, name in names.items():
        if (kind(node), name) in taken:
            raise InvalidError(
                f"two tensors named {name!r} by arenite.{word(node.op)}; expected a name of its own "
                "for each"
            )
        taken.add((kind(node), name))
    for node in declared:
        if node not in names:
            wish = suggested.get(node)
            counted = (f"{wish or word(node.op)}_{i}" for i in itertools.count(2 if wish else 0))
            wishes = itertools.chain([wish] if wish else [], counted)
            names[node] = next(name for name in wishes if (kind(node), name) not in taken)
            taken.add((kind(node), names[node]))
    return names


_CLASSES = {PARAMETER: "parameter", STATE: "optimizer_state", BUFFER: "buffer"}


def _kept_names(names: Mapping[Node, str], kind: _Kind) -> Dict[Node, str]:
    """What the library calls what a model is given and keeps: of those of one name the first has
    it, of constants, parameters, states and buffers.
    """
    taken, found = set(), {}
    for op in (graph.CONSTANT, *_CLASSES):
        for node, name in names.items():
            if kind(node) == op:
                while name in taken:
                    name = f"{_CLASSES[op]}/{name}"
                taken.add(name)
                found[node] = name
    return found


def declared_data(text: str) -> Dict[str, Tuple[str, graph.Shape]]:
    """Element types and shapes of a script's constants, and of what it keeps, by name: of those
    declared as people do it. Nothing is checked here.
    """
    found = {}
    for match in _DECLARED.finditer(re.sub(r"#.*", "", text)):
        name = match[1] if match[1] is not None else match[2]
        sizes = match[4].replace(",", " ").split()
        if match[3] in NAMES:
            found[name] = (match[3], tuple(map(int, sizes)))
    return found


def formulas_of(nodes: Sequence[Node]) -> List[str]:
    """The operators that nodes declare."""
    rules = [node.attributes.get("optimizer") for node in nodes]
    return list(dict.fromkeys(rule.declaration for rule in rules if isinstance(rule, WrittenName)))


class _Printer:
    def __init__(
        self,
        nodes: Sequence[Node],
        names: Mapping[Node, str],
        sizes: Mapping[str, int],
        kind: _Kind,
        trained: Optional[Collection[Node]],
    ):
        self.names, self.sizes, self.kind, self.trained = names, sizes, kind, trained
        self.numbers: Dict[int, int] = {}  # of a node's first result
        self.next_number = 1
        self.lines = formulas_of(nodes)
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

    def size(self, size: int) -> Optional[int]:
        """What a named one is; none where that is left open."""
        return self.sizes.get(getattr(size, "name", ""))

    def call(self, node: Node) -> str:
        operands = list(node.operands)
        while operands and operands[-1] is None:
            operands.pop()
        return call_text(
            node.op, operands, node.attributes, self.reference, lambda n: number_text(self.size(n) or n)
        )

    def declare(self, node: Node) -> None:
        ((shape, dtype),) = node.results
        name = self.names[node]
        if not _RAW_NAME.fullmatch(name):  # it would end too early
            name = quote(name)
        sizes = ", ".join(repr(self.size(n) or n) for n in shape)  # of named ones with their bounds
        if self.trained is None:
            is_frozen = node.data is not None and not node.data.trainable
        else:
            is_frozen = node.op == PARAMETER and node not in self.trained
        frozen = ", frozen" if is_frozen else ""
        declared = f"{self.kind(node)}({name}, {dtype}, [{sizes}]{frozen})"
        self.lines.append(f"{self.number(node)} = {declared};")

    def block(self, block: Optional[Block], indent: str = "") -> None:
        """The statements of a block and of those inside of it."""
        for node in self.of_block.get(block, []):
            if node.op == BLOCK_PARAMETERS:
                continue
            call = self.call(node)
            left = f"{self.number(node)} = " if node.results else ""
            note = " @update" if node.is_update else ""
            self.lines.append(f"{indent}{left}{call}{note}" + ("" if node.blocks else ";"))
            for inner in node.blocks:
                parameters = inner.parameters and f" ({self.number(inner.parameters[0].node)})"
                self.lines[-1] += f"{parameters or ''} {{"
                self.block(inner, indent + "  ")
                yields = ", ".join(map(self.reference, inner.yields))
                self.lines.append(f"{indent}  yield {yields};")
                self.lines.append(indent + ("};" if inner is node.blocks[-1] else "} else"))


def script_of(
    outputs: Sequence[Any],
    inputs: Iterable[Node] = (),
    updates: Iterable[Any] = (),
    suggested: Optional[Mapping[Node, str]] = None,
    sizes: Optional[Mapping[str, int]] = None,
    entries: Optional[Mapping[str, Sequence[Any]]] = None,
    settings: Optional[Mapping[str, str]] = None,
    constants: str = graph.CONSTANT,
    trained: Optional[Collection[Node]] = None,
) -> Script:
    """The script that computes the outputs, tensors, and does the updates.

    inputs: declared first, in this order, whether they are read or not.
    suggested: names of declarations that have none of their own.
    sizes: what named sizes are; others are left open.
    entries: outputs of other ways to run it, by name.
    settings: what scripts say of these besides, "(mode=train)".
    constants: what they are declared as.
    trained: parameters that are not frozen; None: whatever they are now.
    """
    inputs = list(inputs)
    ends = [tensor.node for tensor in outputs] + [update.node for update in updates]
    for its in (entries or {}).values():
        ends += [tensor.node for tensor in its]
    nodes = reachable([*inputs, *ends])
    declared = list(dict.fromkeys([*inputs, *(n for n in nodes if n.op in DECLARATIONS)]))

    def kind(node: Node) -> str:
        return constants if node.op == graph.CONSTANT else node.op

    names = _names(declared, suggested or {}, kind)
    computed = [node for node in nodes if node.op not in DECLARATIONS]
    printer = _Printer(computed, names, sizes or {}, kind, trained)
    for node in declared:
        printer.declare(node)
    printer.block(None)
    for name, its in (entries or {}).items():
        found = ", ".join(map(printer.reference, its)) or "_"
        said = (settings or {}).get(name, "")
        printer.lines.append(f"entry {quote(name)}{said} = {found};")
    results = ", ".join(map(printer.reference, outputs)) or "_"
    printer.lines.append(f"result = {results};")
    kept = _kept_names(names, kind)
    data = {name: node.data for node, name in kept.items() if node.data is not None}
    read = [names[node] for node in declared if node.op == graph.INPUT]
    owned = {kept[node]: node.data for node in kept if node.data and node.op in (PARAMETER, BUFFER)}
    return Script("\n".join(printer.lines) + "\n", data, read, owned)


def to_script(*outputs: Any) -> str:
    """The script of tensors, as text."""
    return script_of(outputs).text
