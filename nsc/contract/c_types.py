"""The types of values that a C header serves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CType:
    """A type of values of a C header.

    Attributes:
        name: as torch and numpy call it, and as functions end.
        type: as C calls it.
        bits: its width.
        key: the whole numbers, in the order of its values, that are compared.
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
