"""Request: what to compile, checked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from nsc.arguments import integer, wholes
from nsc.compiler.describe import Named
from nsc.compiler.package import check_name
from nsc.compiler.relaxations import Relaxation
from nsc.contract.interface import REALS
from nsc.contract.targets import TARGETS
from nsc.errors import LoweringError, NetworkError
from nsc.wording import argument


@dataclass(frozen=True)
class Request:
    """What to compile.

    Args:
        network, n, format, index_base: what names a network, as `describe` takes it.
        relaxation: how comparators are softened.
        dtypes: arithmetic types to compile for, keys of REALS.
        targets: what machines to compile for, keys of TARGETS.
        name: the package's name; None: made from the network, n and what is not default.
        unproved: whether a network that no exact method settled is accepted.
        version: the version of nsc, for headers.
        select: what is wanted if not all values sorted: "top-K", "median" or "rank-R,R,…".
        wires: where the network's outputs for that are, smallest first, or for ranks as they are named;
            None: where a sorting network has them.
        without_redundant: whether comparators that exchange nothing go, which changes soft values.

    Raises:
        NetworkError: n or an index base that is no integer.
        LoweringError: an unknown dtype or target, no dtype, or a name that no package may have.
    """

    network: Named
    n: int | None = None
    relaxation: Relaxation = field(default_factory=Relaxation)
    dtypes: tuple[str, ...] = ("float32",)
    targets: tuple[str, ...] = ("cpu",)
    name: str | None = None
    unproved: bool = False
    version: str = "0"
    format: str | None = None
    index_base: int | None = None
    select: str | None = None
    wires: Sequence[int] | None = None
    without_redundant: bool = False

    def __post_init__(self) -> None:
        for name in ("n", "index_base"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else integer(name, value, NetworkError))
        for name in ("unproved", "without_redundant"):
            object.__setattr__(self, name, bool(getattr(self, name)))
        unknown = [dtype for dtype in self.dtypes if dtype not in REALS]
        if unknown or not self.dtypes:
            raise LoweringError(
                f"dtypes must be some of {', '.join(REALS)} (float32 also serves bfloat16 and "
                f"float16), got {', '.join(map(repr, self.dtypes)) or 'none'}"
            )
        if not self.targets or any(target not in TARGETS for target in self.targets):
            raise LoweringError(
                f"targets must be some of {', '.join(TARGETS)}, got "
                f"{', '.join(map(repr, self.targets)) or 'none'}"
            )
        if self.name is not None:
            check_name(self.name)
        if self.select is None and self.wires is not None:
            raise LoweringError(
                f"{argument('wires')} says where selected values are: name what is selected, or leave it out"
            )
        if self.wires is not None:
            object.__setattr__(self, "wires", _wholes("wires", self.wires))
        if self.select is not None and not re.fullmatch(r"top-\d+|median|rank-[\d,]+", self.select):
            raise LoweringError(f"what is selected is top-K, median or rank-R,R,…; got {self.select!r}")
        ordered = tuple(dtype for dtype in REALS if dtype in self.dtypes)
        object.__setattr__(self, "dtypes", ordered)
        object.__setattr__(self, "targets", tuple(target for target in TARGETS if target in self.targets))


def _wholes(name: str, values: object) -> tuple[int, ...]:
    """Return an argument that must list whole numbers, none below 0."""
    numbers = wholes(values)
    if not numbers or min(numbers) < 0:
        raise LoweringError(f"{argument(name)} must list integers that are 0 or more, got {values!r}")
    return numbers


def selection(top_k: int | None, median: bool, ranks: Sequence[int] | None) -> str | None:
    """Return what is selected as a request names it; None where nothing is named.

    Raises:
        LoweringError: more than one is named, or what is no whole number.
    """
    named = []
    if top_k is not None:
        k = integer("top_k", top_k, LoweringError)
        if k < 1:
            raise LoweringError(f"{argument('top_k')} must be 1 or more, got {k}")
        named.append(f"top-{k}")
    if median:
        named.append("median")
    if ranks is not None:
        named.append(f"rank-{','.join(map(str, _wholes('ranks', ranks)))}")
    if len(named) > 1:
        choices = ", ".join(map(argument, ("top_k", "median", "ranks")))
        raise LoweringError(f"one of {choices} can be selected at a time, got {len(named)}")
    return named[0] if named else None
