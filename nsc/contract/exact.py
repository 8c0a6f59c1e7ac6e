"""Exact kernels and C headers: the types that they sort, and the facts about a kernel for the runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Maps types of values that exact kernels are built for, as torch and numpy call them, to types of
# nsc/elements.h.
ELEMENTS = {
    "float64": "float64",
    "float32": "float32",
    "bfloat16": "bfloat16",
    "float16": "float16",
    "int64": "int64",
    "int32": "int32",
    "int16": "int16",
    "int8": "int8",
    "uint64": "uint64",
    "uint32": "uint32",
    "uint16": "uint16",
    "uint8": "uint8",
    "bool": "uint8",
}
# How a call of a kernel orders values, as SortOrder of nsc/exact/kernel.h: ascending, with NaN last;
# descending, with NaN first; descending, with NaN last.
ASCENDING, DESCENDING, NAN_LAST = range(3)
# Most values of a sample: for more, a proof takes seconds, and other sorts are as fast.
MOST = 1024


@dataclass(frozen=True)
class CType:
    """A type of values of a C header.

    Attributes:
        name: as torch and numpy call it, and as functions end.
        type: as C calls it.
        bits: its width.
        key: the type of the whole numbers that are compared; they have the order of its values.
        is_signed: whether it has negative values.
        is_float: whether it is a floating-point type.
    """

    name: str
    type: str
    bits: int
    key: str
    is_signed: bool
    is_float: bool


C_TYPES: dict[str, CType] = {
    type_.name: type_
    for type_ in (
        CType("float64", "double", 64, "int64_t", True, True),
        CType("float32", "float", 32, "int32_t", True, True),
        *(
            CType(f"{word}{bits}", f"{word}{bits}_t", bits, f"{word}{bits}_t", word == "int", False)
            for word in ("int", "uint")
            for bits in (64, 32, 16, 8)
        ),
    )
}


@dataclass(frozen=True)
class ExactSource:
    """The sources of an exact kernel.

    Attributes:
        name: of the kernel, an identifier.
        n: values of a sample.
        outputs: results of a sample.
        operations: minima and maxima of a sample.
        straight: comparators that the sources have as straight-line code; 0: they have no such code.
        texts: its sources, by target. `for_element` chooses the type.
    """

    name: str
    n: int
    outputs: int
    operations: int
    straight: int
    texts: Mapping[str, str]


def for_element(text: str, dtype: str, channels: int = 1, may_miss: bool = False) -> str:
    """Return the source of an exact kernel, or a filter, for a type of values.

    Args:
        text: the source for all types.
        dtype: a key of ELEMENTS.
        channels: for a filter, the number of values in a pixel, which lie side by side.
        may_miss: for a filter, whether values may be missing.
    """
    text = text if channels == 1 else f"#define NSC_CHANNELS {channels}\n{text}"
    text = f"#define NSC_MISSING 1\n{text}" if may_miss else text
    return f"#define NSC_ELEMENT {ELEMENTS[dtype]}\n{text}"
