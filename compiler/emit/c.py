"""The C header of a network: functions that sort, or select, numbers exactly.

A header has no relaxation, and nothing to load it: a C program includes it. The network stands in it once, as
a macro that each type's functions apply to their own comparator, or, if it is large, as a table.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

from nsc.compiler.emit.plan import Plan
from nsc.compiler.text import braced, filled, wrapped
from nsc.contract.exact import C_TYPES, CType
from nsc.wording import count

# Bytes of the samples of a wire that straight-line code takes at a time: a cache line.
LINE_BYTES = 64
# Samples that a network from a table takes at a time, on so many wires at most: more take too much stack.
TABLE_LANES, MOST_WIRES_IN_LANES = 16, 1024
_RULE = "-" * 90
_INFINITY = {32: "0x7f800000u", 64: "UINT64_C(0x7ff0000000000000)"}
# Bits of a number that holds a key and its place.
_ITEM_BITS = {8: 32, 16: 32, 32: 64}
# Parameters and arguments of the functions that give indices, by their places in header.h.j2.
_ARGUMENTS = {
    "parameter": ", uint32_t *indices",
    "restricted": ", uint32_t *NSC_RESTRICT indices",
    "argument": ", indices",
    "places": ", places",
    "of_sample": ", indices + s",
    "place": ", (uint32_t)wire",
}


def facts(plan: Plan) -> dict[str, Any]:
    """Return what the template of C headers needs of a plan."""
    request, head, network, outputs = plan.request, plan.head, plan.network, plan.outputs
    types = [C_TYPES[name] for name in request.dtypes]
    lanes = {
        type_: LINE_BYTES // (type_.bits // 8)
        if plan.is_straight
        else TABLE_LANES
        if network.n <= MOST_WIRES_IN_LANES
        else 1
        for type_ in types
    }
    stacks = [
        [_stack(type_, samples, network.n, len(outputs)) for type_ in types for samples in batch]
        for batch in ([1], {1, *lanes.values()})
    ]
    is_one = len(outputs) == 1
    results = f"Its {'result is' if is_one else 'results are'} {plan.results}."
    written = [_type(type_, head.name, lanes[type_]) for type_ in types]
    words = {form["word"]: form["word_type"] for each in written for form in each["forms"]}
    has_pairs = words.pop("pair", None) is not None
    return {
        "outputs": len(outputs),
        "window": request.window and {"rows": request.window[0], "columns": request.window[1]},
        "sample": count(network.n, "value"),
        "result_lines": textwrap.wrap(results, 112),
        "of_one": "the result is values[0]" if is_one else "result r is values[r]",
        "of_row": "its result is values[s]" if is_one else f"its result r is values[s * {len(outputs)} + r]",
        "of_column": "its result is values[s]" if is_one else "its result r is values[r * values_stride + s]",
        "type_names": ", ".join(request.dtypes),
        "stack_of_one": _bytes(max(stacks[0])),
        "stack": _bytes(max(stacks[1])),
        "comparator_lines": _calls(plan.comparators),
        "input_lines": _calls((wire,) for wire in range(network.n)),
        "output_lines": _calls(enumerate(outputs)),
        "pair_lines": wrapped(map(braced, plan.comparators)),
        "output_wire_lines": wrapped(outputs),
        "words": words.items(),
        "has_pairs": has_pairs,
        "types": written,
    }


def _type(type_: CType, name: str, lanes: int) -> dict[str, Any]:
    """Return what the template prints for a type; only floating-point types need all of it.

    A key is a whole number in the order of the values. An item is a key with the place of its value: a word
    of twice the width, whose lower half is the place, or a pair.
    """
    bits = type_.bits
    is_pair = bits not in _ITEM_BITS
    item_bits = _ITEM_BITS.get(bits, 0)
    place_bits = item_bits // 2
    place = "item.place" if is_pair else f"(item & {_literal((1 << place_bits) - 1, item_bits)})"
    item_type = f"{name}_pair" if is_pair else f"uint{item_bits}_t"
    keys = {
        "has_indices": False,
        "suffix": "",
        "word": type_.key.removesuffix("_t"),
        "word_type": type_.key,
        "alone": "",
        "enter": "key",
        "leave": "value",
        **dict.fromkeys(_ARGUMENTS, ""),
    }
    items = {
        "has_indices": True,
        "suffix": "_indices",
        "word": "pair" if is_pair else f"uint{item_bits}",
        "word_type": item_type,
        # A comparator of pairs is told whether a sample is sorted alone.
        "alone": ", lanes == 1" if is_pair else "",
        "enter": "item",
        "leave": "item_value",
        **_ARGUMENTS,
    }
    return {
        "name": type_.name,
        "type": type_.type,
        "rule": _RULE[len(type_.name) :],
        "is_float": type_.is_float,
        "key_type": type_.key,
        "bits": f"uint{bits}_t",
        # The bit that makes signed keys unsigned; 0 for unsigned keys.
        "sign": _literal(1 << bits - 1 if type_.is_signed else 0, bits),
        "sign_shift": bits - 1,
        "size_bits": _literal((1 << bits - 1) - 1, bits),
        "infinity": _INFINITY.get(bits, "0"),
        "is_pair": is_pair,
        "item_type": item_type,
        "item_key": "item.key" if is_pair else f"(item >> {place_bits})",
        "item_place": f"{place} >> 1" if type_.is_float else place,
        # The sign that the key of a zero or a NaN does not have.
        "item_sign": "(item.place & 1)" if is_pair else "(item & 1)",
        "place_bits": place_bits,
        "lanes": lanes,
        "forms": (keys, items),
    }


def _literal(value: int, bits: int) -> str:
    return f"UINT64_C({value:#x})" if bits == 64 else f"{value:#x}u"


def _stack(type_: CType, lanes: int, wires: int, outputs: int) -> int:
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
