"""Tables: lines of initialisers, and the fields that kernels of all targets share."""

from __future__ import annotations

from nsc.compiler.relaxed import records
from nsc.compiler.relaxed.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.schedule import Schedule
from nsc.compiler.text.records import Real
from nsc.contract.interface import ART_EPSILON, REALS


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
    """Return a relaxation as C++ expressions."""
    sigmoid, strength, root = SIGMOIDS[relaxation.sigmoid], relaxation.art_lambda, relaxation.root
    art = "No activation replacement: phi(d) = d."
    stretch = elasticity = "all(real(1))"
    if strength:
        art = f"phi(d) = d / (|d| + {ART_EPSILON!r})^lambda, lambda = {strength!r}."
        shifted = f"size + real({ART_EPSILON!r})"
        # The high part of λ has 12 bits, so that its products with exponents are exact.
        high = round(strength * 4096) / 4096
        parts = ", ".join(map(_literal, (strength, high, strength - high)))
        stretch = (
            f"inverse_root<{root}, real>({shifted})" if root else f"inverse_power<real>({shifted}, {parts})"
        )
        over_size = f"* power_of<{root}>(stretch)" if root else f"/ ({shifted})"
        elasticity = f"{_literal(1 - strength)} + {_literal(strength)} * real({ART_EPSILON!r}) {over_size}"
    return records.Relaxation(
        words=relaxation.describe(),
        source=f"{relaxation.sigmoid}, {sigmoid.source}",
        art=art,
        tail=sigmoid.tail,
        slope=sigmoid.slope,
        stretch=stretch,
        elasticity=elasticity,
        error_free=str(relaxation.error_free).lower(),
    )


def _literal(value: float) -> str:
    """Return a C++ constant that round-trips in every arithmetic type."""
    return f"real({value.hex()})"
