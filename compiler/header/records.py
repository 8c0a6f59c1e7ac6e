"""What the template of C headers is given."""

from __future__ import annotations

from dataclasses import dataclass

from nsc.compiler.text.records import Head


@dataclass(frozen=True)
class CSummary:
    """What the first lines of a C header say of its functions.

    Attributes:
        sample: how many values it has, in words.
        result_lines: what its results are, in words, as lines.
        of_one, of_row, of_column: where a result of one sample, of rows and of columns is.
        types: the names of the types of values, in words.
        stack_of_one, stack: bytes of stack that a call takes at most, with one sample and with a batch.
    """

    sample: str
    result_lines: tuple[str, ...]
    of_one: str
    of_row: str
    of_column: str
    types: str
    stack_of_one: str
    stack: str


@dataclass(frozen=True)
class CNetwork:
    """A network as C headers run it.

    Attributes:
        wires, comparators, outputs: how many.
        is_straight: whether it gets straight-line code, not a table.
        comparator_lines, input_lines, output_lines: the comparators, the wires, and each output with its
            wire, as lines of macros.
        pair_lines, output_wire_lines: the comparators and the wire of each output, as lines of tables.
        is_window: whether the values are pixels of a window.
        window_rows, window_columns: its size; 0 where there is none.
    """

    wires: int
    comparators: int
    outputs: int
    is_straight: bool
    comparator_lines: tuple[str, ...]
    input_lines: tuple[str, ...]
    output_lines: tuple[str, ...]
    pair_lines: tuple[str, ...]
    output_wire_lines: tuple[str, ...]
    is_window: bool
    window_rows: int
    window_columns: int


@dataclass(frozen=True)
class CWord:
    """Whole numbers that a comparator compares: their name in functions, and in C."""

    name: str
    type: str


@dataclass(frozen=True)
class CType:
    """A type of values of a C header, as C expressions.

    Attributes:
        name: of the type, as functions end.
        type: in C.
        rule: a line of dashes in front of its name.
        is_float: whether it is a floating-point type.
        key, key_type: the word whose order is that of the values: its name, and in C.
        bits: the unsigned whole numbers of its width.
        sign: the bit that makes keys unsigned, 0 where they are.
        sign_shift, size_bits: where the sign is, and the mask of all other bits.
        infinity: the bits of infinity; NaN has larger ones.
        is_pair: whether an item is a struct of a key and its place; else it is one word.
        item, item_type: what a key and its place are: the word's name, and in C.
        alone: what a comparator of pairs is told besides, whether a sample is sorted alone.
        item_key, item_place: the key of an item, in its lowest bits, and where it was.
        item_sign: the sign that the key of a zero or a NaN does not have.
        place_bits: bits of the place in an item of one word.
        lanes: samples that are sorted at a time.
    """

    name: str
    type: str
    rule: str
    is_float: bool
    key: str
    key_type: str
    bits: str
    sign: str
    sign_shift: int
    size_bits: str
    infinity: str
    is_pair: bool
    item: str
    item_type: str
    alone: str
    item_key: str
    item_place: str
    item_sign: str
    place_bits: int
    lanes: int


@dataclass(frozen=True)
class CHeader:
    """What header/header.h.j2 is given."""

    head: Head
    summary: CSummary
    network: CNetwork
    words: tuple[CWord, ...]
    has_pairs: bool
    types: tuple[CType, ...]
