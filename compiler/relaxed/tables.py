"""Tables: fields that relaxed kernels in C++ and in CUDA share."""

from __future__ import annotations

from nsc.compiler.relaxations import Relaxation
from nsc.compiler.relaxed import records
from nsc.compiler.schedule import Schedule
from nsc.compiler.text.records import Real
from nsc.contract.interface import REALS


def real_types(reals: tuple[str, ...]) -> tuple[Real, ...]:
    """Return arithmetic types, keys of REALS, as templates have them."""
    return tuple(Real(real, REALS[real].type, REALS[real].suffix) for real in reals)


def spread_begins(schedule: Schedule) -> dict[tuple[int, ...], int]:
    """Return where each spread begins in the table of spreads, which has each once."""
    begins: dict[tuple[int, ...], int] = {}
    end = 0
    for codelet in schedule.codelets:
        if codelet.spread not in begins:
            begins[codelet.spread] = end
            end += len(codelet.spread)
    return begins


def arrays_of_weights(relaxation: Relaxation) -> int:
    """Return how many numbers the keys pass leaves for each comparator."""
    return 5 if relaxation.error_free else 3


def softened(relaxation: Relaxation) -> records.Relaxation:
    """Return a relaxation by its names in nsc/relaxed/relaxations.h."""
    strength, root = relaxation.art_lambda, relaxation.root
    return records.Relaxation(
        words=relaxation.describe(),
        sigmoid=relaxation.sigmoid,
        replacement=f"nsc::Root<{root}>" if root else "nsc::Power<Lambda>" if strength else "nsc::Unchanged",
        strength="" if root or not strength else strength.hex(),
        error_free=str(relaxation.error_free).lower(),
    )
