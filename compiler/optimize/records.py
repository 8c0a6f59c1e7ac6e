"""Records: the best networks that are known for a property, and the bounds that none can beat."""

from __future__ import annotations

from dataclasses import dataclass

from nsc.compiler.families import (
    best,
    known,
    least_depth,
    least_size,
    shallowest,
    stated_depth,
    stated_size,
)
from nsc.compiler.verify import Property
from nsc.wording import count

# Beyond this many wires it takes seconds to construct the best networks.
MOST_RECORDED = 4096


@dataclass(frozen=True)
class Records:
    """The least cost that is known on n wires; one network rarely has both the size and the depth.

    Attributes:
        n: number of wires.
        size, depth: fewest comparators and fewest layers that nsc knows or can construct.
        least_size, least_depth: no network has fewer; None where no bound is known.
        stated_size, stated_depth: bounds that the published list states, without a published proof that is
            complete; None where it states none.
    """

    n: int
    size: int
    depth: int
    least_size: int | None = None
    least_depth: int | None = None
    stated_size: int | None = None
    stated_depth: int | None = None

    @property
    def words(self) -> str:
        """The records in one line.

        >>> from nsc.compiler.verify import sort
        >>> records_of(sort(9)).words
        'best known on 9 wires: 25 comparators; 7 layers; lower bounds: 25 and 7'
        """
        words = (
            f"best known on {count(self.n, 'wire')}: {count(self.size, 'comparator')}; "
            f"{count(self.depth, 'layer')}"
        )
        if self.least_size is not None:
            words += f"; lower bounds: {self.least_size:,} and {self.least_depth}"
        if self.stated_size is not None and self.stated_size != self.least_size:
            words += f" proved, the published list states {self.stated_size:,} and {self.stated_depth}"
        return words


def records_of(property_: Property) -> Records | None:
    """Return the records of sort or the median; None for other properties and beyond MOST_RECORDED wires."""
    n = property_.n
    if property_.presorted or n > MOST_RECORDED:
        return None
    if property_.is_sort:
        bounds = least_size(n), least_depth(n), stated_size(n), stated_depth(n)
        return Records(n, best(n).size, shallowest(n).depth, *bounds)
    middle = range((n - 1) // 2, n // 2 + 1)
    (group, *others) = property_.groups
    if others or range(group.first, group.first + len(group.wires)) != middle or n not in known("median"):
        return None
    medians = known("median")[n]
    return Records(n, medians[0].size, medians[-1].depth)
