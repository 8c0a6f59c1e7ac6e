"""Records: the best networks that are known for a property, and the bounds that none can beat."""

from __future__ import annotations

from dataclasses import dataclass

from nsc.compiler.families import best, known, least_depth, least_size, shallowest
from nsc.compiler.verify import Property
from nsc.wording import count

# Beyond this many wires it takes seconds to construct the best networks.
MOST_WIRES = 4096


@dataclass(frozen=True)
class Records:
    """The least cost that is known on n wires; one network rarely has both the size and the depth.

    Attributes:
        n: number of wires.
        size, depth: fewest comparators and fewest layers that nsc knows or can construct; None where nsc has
            no list of the shallowest.
        least_size, least_depth: no network has fewer; None where no bound is known.
    """

    n: int
    size: int
    depth: int | None
    least_size: int | None
    least_depth: int | None

    @property
    def words(self) -> str:
        """The records in one line.

        >>> from nsc.compiler.verify import sort
        >>> records_of(sort(16)).words
        'best known on 16 wires: 60 comparators; 9 layers; lower bounds: 55 and 9'
        """
        words = f"best known on {count(self.n, 'wire')}: {count(self.size, 'comparator')}"
        if self.depth is not None:
            words += f"; {count(self.depth, 'layer')}"
        if self.least_size is not None:
            words += f"; lower bounds: {self.least_size:,} and {self.least_depth}"
        return words


def records_of(property_: Property) -> Records | None:
    """Return the records of a property, sort or the median; None for others and beyond MOST_WIRES wires."""
    n = property_.n
    if property_.presorted or n > MOST_WIRES:
        return None
    if property_.is_sort:
        return Records(n, best(n).size, shallowest(n).depth, least_size(n), least_depth(n))
    middle = range((n - 1) // 2, n // 2 + 1)
    (group, *others) = property_.groups
    if others or range(group.first, group.first + len(group.wires)) != middle or n not in known("medians"):
        return None
    return Records(n, min(network.size for network in known("medians")[n]), None, None, None)
