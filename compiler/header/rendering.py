"""The C target: a schedule to the text of a header that sorts, or selects, numbers exactly.

It has no relaxation, and nothing to load it: a C program includes it. The network stands in it once, as a
macro that each type's functions apply to their own comparator, or, if it is large, as a table.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from nsc.compiler.header.records import CHeader, CNetwork, CSummary, CType, CWord
from nsc.compiler.schedule import Schedule
from nsc.compiler.text.lines import braced, filled, wrapped
from nsc.compiler.text.records import Header, head_of
from nsc.contract import c_types
from nsc.contract.c_types import C_TYPES
from nsc.contract.straight_line import LIMITS
from nsc.templates import fill
from nsc.wording import count

# Bytes of the samples of a wire that straight-line code takes at a time: a cache line.
LINE_BYTES = 64
# Samples that a network from a table takes at a time, on so many wires at most: more take too much stack.
TABLE_LANES, MOST_WIRES_IN_LANES = 16, 1024
_RULE = "-" * 90
_INFINITY = {32: "0x7f800000u", 64: "UINT64_C(0x7ff0000000000000)"}
# Bits of a number that holds a key and its place.
_ITEM_BITS = {8: 32, 16: 32, 32: 64}


def render(
    header: Header,
    schedule: Schedule,
    types: tuple[str, ...],
    ranks: Sequence[int] | None = None,
    window: tuple[int, int] | None = None,
) -> str:
    """Return the text of a C header; the same arguments, the same text.

    Args:
        header: what its first lines say.
        schedule: what is run, codelet by codelet.
        types: names of types of values, keys of C_TYPES.
        ranks: the rank of each output; None: the network sorts.
        window: rows and columns of pixels, whose values the wires are, row by row; None: any values.
    """
    network = schedule.network
    outputs = range(network.n) if schedule.outputs is None else schedule.outputs
    is_straight = network.size <= LIMITS.header_comparators
    lanes = {
        name: LINE_BYTES // (C_TYPES[name].bits // 8)
        if is_straight
        else TABLE_LANES
        if network.n <= MOST_WIRES_IN_LANES
        else 1
        for name in types
    }
    each = tuple(_type(C_TYPES[name], header.name, lanes[name]) for name in types)
    words = {type_.key: type_.key_type for type_ in each} | {
        type_.item: type_.item_type for type_ in each if not type_.is_pair
    }
    is_one = len(outputs) == 1
    stacks = [
        [_stack(C_TYPES[name], samples, network.n, len(outputs)) for name in types for samples in batch]
        for batch in ([1], {1, *lanes.values()})
    ]
    summary = CSummary(
        sample=count(network.n, "value"),
        result_lines=_result_lines(ranks),
        of_one="the result is values[0]" if is_one else "result r is values[r]",
        of_row="its result is values[s]" if is_one else f"its result r is values[s * {len(outputs)} + r]",
        of_column="its result is values[s]" if is_one else "its result r is values[r * values_stride + s]",
        types=", ".join(types),
        stack_of_one=_bytes(max(stacks[0])),
        stack=_bytes(max(stacks[1])),
    )
    return fill(
        "header/header.h.j2",
        CHeader(
            head=head_of(header, network),
            summary=summary,
            network=_network(schedule, outputs, is_straight, window),
            words=tuple(CWord(name, word) for name, word in words.items()),
            has_pairs=any(type_.is_pair for type_ in each),
            types=each,
        ),
    )


def _network(
    schedule: Schedule, outputs: Iterable[int], is_straight: bool, window: tuple[int, int] | None
) -> CNetwork:
    network, wires = schedule.network, list(outputs)
    pairs = [pair for codelet in schedule.codelets for pair in codelet.comparators()]
    return CNetwork(
        wires=network.n,
        comparators=network.size,
        outputs=len(wires),
        is_straight=is_straight,
        comparator_lines=_calls(pairs),
        input_lines=_calls((wire,) for wire in range(network.n)),
        output_lines=_calls(enumerate(wires)),
        pair_lines=wrapped(map(braced, pairs)),
        output_wire_lines=wrapped(wires),
        is_window=window is not None,
        window_rows=window[0] if window else 0,
        window_columns=window[1] if window else 0,
    )


def _type(type_: c_types.CType, name: str, lanes: int) -> CType:
    """Return a type's fields; those that only floating-point types need are of no use in the others."""
    bits = type_.bits
    is_pair = bits not in _ITEM_BITS
    item_bits = _ITEM_BITS.get(bits, 0)
    place_bits = item_bits // 2
    place = "item.place" if is_pair else f"(item & {_literal((1 << place_bits) - 1, item_bits)})"
    unsigned = f"uint{bits}_t"
    return CType(
        name=type_.name,
        type=type_.type,
        rule=_RULE[len(type_.name) :],
        is_float=type_.is_float,
        key=type_.key.removesuffix("_t"),
        key_type=type_.key,
        bits=unsigned,
        sign=_literal(1 << bits - 1 if type_.is_signed else 0, bits),
        sign_shift=bits - 1,
        size_bits=_literal((1 << bits - 1) - 1, bits),
        infinity=_INFINITY.get(bits, "0"),
        is_pair=is_pair,
        item="pair" if is_pair else f"uint{item_bits}",
        item_type=f"{name}_pair" if is_pair else f"uint{item_bits}_t",
        alone=", lanes == 1" if is_pair else "",
        item_key="item.key" if is_pair else f"(item >> {place_bits})",
        item_place=f"{place} >> 1" if type_.is_float else place,
        item_sign="(item.place & 1)" if is_pair else "(item & 1)",
        place_bits=place_bits,
        lanes=lanes,
    )


def _literal(value: int, bits: int) -> str:
    return f"UINT64_C({value:#x})" if bits == 64 else f"{value:#x}u"


def _result_lines(ranks: Sequence[int] | None) -> tuple[str, ...]:
    """Return in words what a sample's results are."""
    if ranks is None:
        return ("Its results are all of them, the smallest first.",)
    if len(ranks) == 1:
        return (f"Its result is the value of rank {ranks[0]}; 0 is the smallest.",)
    names = ", ".join(map(str, ranks))
    return tuple(textwrap.wrap(f"Its results are the values of ranks {names}; 0 is the smallest.", 112))


def _stack(type_: c_types.CType, lanes: int, wires: int, outputs: int) -> int:
    """Return bytes of stack that so many samples with indices take: their items, and blocks of a batch."""
    size = type_.bits // 8
    item = _ITEM_BITS.get(type_.bits, 128) // 8
    blocks = wires * size + outputs * (2 * size + 4) if lanes > 1 else 0
    return lanes * (wires * item + blocks)


def _bytes(number: int) -> str:
    """Return a number of bytes in words, with 100 more for what a compiler keeps besides."""
    return f"{number + 100:,} bytes" if number < 1024 else f"{-(-(number + 100) // 1024):,} KB"


def _calls(arguments: Iterable[tuple[int, ...]]) -> tuple[str, ...]:
    """Return C(…) of each, as the lines of a macro: all but the last end in a backslash."""
    *lines, last = filled((f"C({', '.join(map(str, numbers))})" for numbers in arguments), 108)
    return (*(f"{line} \\" for line in lines), last)
