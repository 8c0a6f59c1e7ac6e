"""Tables: lines of initialisers, and the fields that kernels of all targets share."""

from __future__ import annotations

import json
from collections.abc import Iterable

from nsc.compiler.relaxations import Relaxation
from nsc.compiler.schedule import Schedule
from nsc.compiler.targets import records
from nsc.contract.interface import REALS


def head(header: records.Header, facts: str, schedule: Schedule, relaxation: Relaxation) -> records.Head:
    """Return the first lines of a kernel.

    Args:
        header: what they say of the package.
        facts: what the kernel states of itself when it is asked.
        schedule: what is run.
        relaxation: how comparators are softened.
    """
    return records.Head(
        **vars(header),
        counts=schedule.network.counts,
        digest=schedule.network.digest,
        relaxation=relaxation.describe(),
        facts=json.dumps(facts),
    )


def real_types(reals: tuple[str, ...]) -> tuple[records.Real, ...]:
    """Return arithmetic types, keys of REALS, as templates have them."""
    return tuple(records.Real(real, REALS[real].type, REALS[real].suffix) for real in reals)


def wrapped(items: Iterable[int | str]) -> tuple[str, ...]:
    """Return the items of a table, comma-separated, in lines of readable length."""
    lines = [""]
    for item in map(str, items):
        if len(lines[-1]) + len(item) > 96:
            lines.append("")
        lines[-1] += f"{item}, "
    return tuple(line.rstrip() for line in lines)


def braced(fields: Iterable[int | str]) -> str:
    """Return the initialiser of an entry of a table."""
    return f"{{{', '.join(map(str, fields))}}}"


def words(bits: int, count: int) -> list[str]:
    """Return bits as `count` words of 64, the lowest first."""
    return [hex(bits >> shift & (1 << 64) - 1) for shift in range(0, 64 * count, 64)]


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
