"""The C interface of kernels: its version, its arithmetic types, its functions and their status codes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from nsc import library

# The version of the interface: a runtime calls kernels of this version alone.
KERNEL_ABI = 11


class Status(IntEnum):
    """The result of a C function."""

    OK = 0
    OUT_OF_MEMORY = 1
    BAD_STEEPNESS = 2
    BAD_TARGET = 3
    NO_RANK = 4


@dataclass(frozen=True)
class Real:
    """An arithmetic type that kernels are compiled for.

    Attributes:
        name: as torch and numpy call it.
        type: as C++ calls it.
        whole: the whole numbers of its width in C++.
        suffix: how the functions for it end.
        bytes: its width.
        serves: dtypes of tensors that are computed in this type.
    """

    name: str
    type: str
    whole: str
    suffix: str
    bytes: int
    serves: tuple[str, ...]


REALS: dict[str, Real] = {
    real.name: real
    for real in (
        Real("float32", "float", "int32_t", "f32", 4, ("float32", "bfloat16", "float16")),
        Real("float64", "double", "int64_t", "f64", 8, ("float64",)),
    )
}


_CALL = (
    "int32_t routing",
    "int64_t batch",
    "const real *x",
    "const real *steepness",
    "int64_t steepness_stride",
    "const void *payload",
    "int64_t payload_stride",
    "int64_t payload_columns",
)
# The parameters of the functions of nsc/relaxed/kernel.h, by the names that `function_name` completes. `real`
# is the arithmetic type. All functions return a status, an int32_t.
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "forward": (*_CALL, "real *values", "real *routed", "nsc_parallel_for pool"),
    "backward": (
        *_CALL,
        "const real *values_grad",
        "const real *routed_grad",
        "real *x_grad",
        "real *steepness_grad",
        "real *payload_grad",
        "real *losses",
        "nsc_parallel_for pool",
    ),
}


# The ε of the activation replacement trick, which keeps it finite at ties; the value of diffsort.
ART_EPSILON = library.constant("art_epsilon", "relaxed/relaxations.h")


def function_name(name: str, real: str) -> str:
    """Return the name of a kernel's function for an arithmetic type, such as nsc_forward_f32."""
    return f"nsc_{name}_{REALS[real].suffix}"
