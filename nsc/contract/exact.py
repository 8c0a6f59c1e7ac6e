"""Exact kernels: the types that they sort, and what the compiler tells the runtime of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Types of values that exact kernels are built for, as torch and numpy call them, to those of
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
# Most values of a sample: for more, a proof takes seconds, and other sorts are as fast.
MOST = 1024


@dataclass(frozen=True)
class ExactSource:
    """The sources of an exact kernel.

    Attributes:
        name: of the kernel, an identifier.
        version: of nsc.
        n: values of a sample.
        outputs: results of a sample.
        operations: minima and maxima of a sample.
        straight: comparators of the straight-line code that the sources have of the network; 0: none.
        facts: what the kernel states of itself, JSON.
        texts: its sources, by target. A first line that defines NSC_ELEMENT chooses the type.
    """

    name: str
    version: str
    n: int
    outputs: int
    operations: int
    straight: int
    facts: str
    texts: Mapping[str, str]


def for_element(text: str, dtype: str) -> str:
    """Return the source of an exact kernel, or a filter, for a type of values, a key of ELEMENTS."""
    return f"#define NSC_ELEMENT {ELEMENTS[dtype]}\n{text}"
