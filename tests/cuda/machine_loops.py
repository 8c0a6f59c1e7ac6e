"""The instructions that a warp runs for a codelet, sm_90: one turn of the loop over codelets."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass, field

from machine_code import CODELET_WIRES, butterflies, cubin_and_log, disassembler

from nsc.compiler.schedule import WIRES_PER_WARP
from nsc.contract.interface import function_name

_LABEL = re.compile(r"(\.L_x_\d+):")
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)([.\w]*)(.*?);(.*)")
# In the operands of a branch: its condition, and its target.
_CONDITION = re.compile(r"\bU?P\d\b")
_TARGET = re.compile(r"\.L_x_\d+")
_ENDS = ("BRA", "BRX", "EXIT", "RET")
# An exchange between lanes weighs more than any number of other instructions.
_EXCHANGE_WEIGHT = 10_000


@dataclass
class _Block:
    """Instructions without a branch among them, and the numbers of the blocks that may follow."""

    names: list[str] = field(default_factory=list)
    following: list[int] = field(default_factory=list)

    @property
    def weight(self) -> int:
        return len(self.names) + _EXCHANGE_WEIGHT * self.names.count("SHFL")


def product_turns() -> dict[str, list[Counter[str]]]:
    """Return the turns of the float32 routing and exact sort on codelets of 16 wires and 32 comparators.

    There are two shapes, so that the choice between them counts.
    """
    names = {"route": "FFMA", "route_backward": "FFMA", "sort": "SEL"}
    functions = disassembled(cubin_and_log(butterflies(WIRES_PER_WARP, shapes=2), "float32", names)[0])
    return {f: turns(functions[function_name(f, "float32")], name) for f, name in names.items()}


def disassembled(cubin: bytes) -> dict[str, str]:
    """Return the machine code of each function of a cubin as text."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [disassembler(), "--print-code", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    sections = re.split(r"^\.text\.", text, flags=re.MULTILINE)[1:]
    return {section[: section.index(":")]: section for section in sections}


def turns(code: str, name: str) -> list[Counter[str]]:
    """Return the instructions of a turn of each innermost loop with CODELET_WIRES of a name, or more.

    A turn takes the path with the most exchanges between lanes, and the longest of these, where lanes run
    together. Code for a sample on one lane, and for exchanges of lanes apart, does not count.
    """
    blocks = _ordered(_blocks(code))
    loops = _loops(blocks)
    turns_of_loops = []
    for head, body in sorted(loops.items()):
        if any(other != head and other in body for other in loops):
            continue
        counts = Counter(name for block in _longest(blocks, head, body) for name in blocks[block].names)
        if counts[name] >= CODELET_WIRES:
            turns_of_loops.append(counts)
    return turns_of_loops


def _blocks(code: str) -> list[_Block]:
    blocks, numbers, jumps, closed = [_Block()], {}, [], set()
    for line in code.splitlines():
        if label := _LABEL.match(line):
            if blocks[-1].names:
                blocks.append(_Block())
            numbers[label[1]] = len(blocks) - 1
        elif instruction := _INSTRUCTION.search(line):
            predicate, name, suffix, operands, remark = instruction.groups()
            if name == "NOP":
                continue
            blocks[-1].names.append(name)
            if name not in _ENDS:
                continue
            # Lanes that run together do not branch here.
            is_apart = ".DIV" in suffix
            if name in ("BRA", "BRX") and not is_apart:
                jumps += [(len(blocks) - 1, target) for target in _TARGET.findall(operands + remark)]
            if not (predicate or is_apart or _CONDITION.search(operands)):
                closed.add(len(blocks) - 1)
            blocks.append(_Block())
    for number in set(range(len(blocks) - 1)) - closed:
        blocks[number].following.append(number + 1)
    for number, target in jumps:
        blocks[number].following.append(numbers[target])
    return blocks


def _ordered(blocks: list[_Block]) -> list[_Block]:
    """Return the reachable blocks, each behind all blocks that lead to it except by closing a loop."""
    finished, seen, stack = [], {0}, [(0, iter(blocks[0].following))]
    while stack:
        number, following = stack[-1]
        new = next((other for other in following if other not in seen), None)
        if new is None:
            finished.append(number)
            stack.pop()
        else:
            seen.add(new)
            stack.append((new, iter(blocks[new].following)))
    order = finished[::-1]
    place = {number: index for index, number in enumerate(order)}
    return [
        _Block(blocks[number].names, [place[other] for other in blocks[number].following]) for number in order
    ]


def _loops(blocks: list[_Block]) -> dict[int, set[int]]:
    """Return the loops by their first blocks; a branch to an earlier block closes a loop."""
    before: dict[int, list[int]] = {number: [] for number in range(len(blocks))}
    for number, block in enumerate(blocks):
        for following in block.following:
            before[following].append(number)
    loops: dict[int, set[int]] = {}
    for head, sources in before.items():
        stack = [number for number in sources if number >= head]
        body = {head}
        while stack:
            number = stack.pop()
            if number not in body:
                body.add(number)
                stack += before[number]
        if any(number >= head for number in sources):
            loops[head] = body
    return loops


def _longest(blocks: list[_Block], head: int, body: set[int]) -> list[int]:
    """Return the blocks of a turn: the heaviest path from the first block back to it."""
    best = {head: (blocks[head].weight, [head])}
    for number in sorted(body):
        if number not in best:
            continue
        weight, path = best[number]
        for following in blocks[number].following:
            if following in body and following > number:
                longer = weight + blocks[following].weight, [*path, following]
                best[following] = max(best.get(following, longer), longer)
    return max(best[number] for number in body if number in best and head in blocks[number].following)[1]
