"""A C header from Python, without torch: the text that `nsc header` writes."""

from __future__ import annotations

from collections.abc import Sequence

from nsc.arguments import names
from nsc.compiler.describe import Named
from nsc.compiler.header import compile_header
from nsc.compiler.request import Request
from nsc.compiler.selection import Selection
from nsc.join.budget import MAX_MEMORY, budget_of
from nsc.version import VERSION

__all__ = ["c_header"]


def c_header(
    network: Named,
    n: int | None = None,
    *,
    select: Selection | None = None,
    wires: Sequence[int] | None = None,
    remove_redundant: bool = False,
    dtypes: str | Sequence[str] = ("float32",),
    name: str | None = None,
    unproved: bool = False,
    format: str | None = None,
    index_base: int | None = None,
    max_memory: int = MAX_MEMORY,
    time_limit: float | None = None,
) -> str:
    """Prove a network and return a C header whose functions sort, or select, exactly.

    Args:
        network, n, select, wires, remove_redundant, unproved, format, index_base, max_memory, time_limit: as
            in `compile`.
        dtypes: types of values, one or several: float64, float32, int64, int32, int16, int8, uint64, uint32,
            uint16 and uint8.
        name: how the functions begin; None: the default name of a package of this network.

    Raises:
        Those of `compile`.

    >>> text = c_header("best", 16, dtypes=("int32", "float32"))
    >>> "void best_16_int32(const int32_t *x, int32_t *values)" in text
    True
    """
    request = Request(
        network=network,
        n=n,
        dtypes=names(dtypes),
        name=name,
        unproved=unproved,
        version=VERSION,
        format=format,
        index_base=index_base,
        select=select,
        wires=wires,
        remove_redundant=remove_redundant,
        is_header=True,
    )
    return compile_header(request, budget_of(max_memory, time_limit)).text
