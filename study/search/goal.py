"""Goal: what a search looks for, and what a network costs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from nsc import library
from nsc.compiler.families import Comparator
from nsc.compiler.network import Network, check_wires
from nsc.compiler.optimize import counts
from nsc.compiler.verify import Property
from nsc.compiler.verify.question import in_place, sorted_groups
from nsc.errors import NetworkError, PropertyError
from nsc.wording import argument, count

# A 0-1 input is one 64-bit word, bit w on wire w. The public lists end here too.
MOST_WIRES = int(library.constant("most_wires", "search/comparators.h"))

Cost = tuple[int, ...]


class Objective(Enum):
    """What a search makes small; each value is its number in nsc/search/problem.h."""

    SIZE = 0
    DEPTH = 1
    COST = 2


@dataclass(frozen=True)
class Goal:
    """What a search looks for: networks of a property that cost little.

    Attributes:
        wanted: what the network must do. Each rank lies on the wire of its number.
        objective: what counts first: comparators, layers, or the minima and maxima that the outputs need.
        depth: the most layers; None: any number.
        symmetric: whether a comparator comes with its mirror image, wire w for wire n - 1 - w.
        prefix: comparators that stay in front, in standard form.

    Raises:
        NetworkError: too many wires, a prefix that is not in standard form, or no symmetric networks.
        PropertyError: a rank on a wire of another number.
    """

    wanted: Property
    objective: Objective = Objective.SIZE
    depth: int | None = None
    symmetric: bool = False
    prefix: tuple[Comparator, ...] = ()

    def __post_init__(self) -> None:
        n = check_wires(self.n)
        if not 2 <= n <= MOST_WIRES:
            raise NetworkError(f"a search takes 2 to {MOST_WIRES} wires, got {n}")
        if not in_place(self.ranks, self.wanted.off_by):
            raise PropertyError(
                f"a search leaves each rank on the wire of its number: leave {argument('wires')} out"
            )
        if any(not 0 <= lo < hi < n for lo, hi in self.prefix):
            raise NetworkError("the first layers of a search put each minimum on the lower wire")
        if self.symmetric:
            _check_symmetric(self)

    @property
    def n(self) -> int:
        """Number of wires."""
        return self.wanted.n

    @property
    def ranks(self) -> dict[int, range]:
        """The ranks that each output may carry, behind the comparators of `behind`."""
        return sorted_groups(self.wanted)[1]

    @property
    def behind(self) -> tuple[Comparator, ...]:
        """Comparators that give each of some outputs a rank of its own, where any order of them is right."""
        return tuple(sorted_groups(self.wanted)[0])

    def expanded(self, comparators: Sequence[Comparator]) -> Sequence[Comparator]:
        """Return the comparators that a list stands for: with symmetry each mirror image is added."""
        return with_images(self.n, comparators) if self.symmetric else comparators

    def network(self, comparators: Sequence[Comparator]) -> Network:
        """Return the network of a list behind the prefix, each comparator in its earliest layer."""
        return Network.from_comparators(self.n, [*self.prefix, *self.expanded(comparators)])

    def cost(self, network: Network) -> Cost:
        """Return what a network costs, the first number counts most: layers beyond `depth` before all."""
        own = counts(network, self.wanted)
        excess = 0 if self.depth is None else max(0, own.depth - self.depth)
        terms = {
            Objective.SIZE: (own.size, own.depth),
            Objective.DEPTH: (own.depth, own.size),
            Objective.COST: (own.half_operations, own.size, own.depth),
        }
        return (excess, *terms[self.objective])

    def words(self, network: Network) -> str:
        """Return the cost of a network in words."""
        own = counts(network, self.wanted)
        halves = f"{count(own.half_operations, 'half operation')}, " * (self.objective is Objective.COST)
        return f"{halves}{count(own.size, 'comparator')}, {count(own.depth, 'layer')}"


def first_layers(n: int, layers: int) -> tuple[Comparator, ...]:
    """Return the first layers of a search from nothing.

    The first layer joins each wire w to n - 1 - w. Each next one does the same inside the upper and the lower
    half of each group of wires that the layer before had. They are symmetric. Of 2^k wires, k layers are
    Green's, up to the names of wires. Once each group is one wire, there are no more layers.

    Source: Knuth 5.3.4: some smallest and some shallowest network has any given first layer that leaves at
    most one wire alone; M. W. Green's sorter of 16 wires for more layers, where this is not proved.

    >>> first_layers(4, 2)
    ((0, 3), (1, 2), (0, 1), (2, 3))
    """
    groups = [range(n)]
    comparators: list[Comparator] = []
    for _ in range(layers):
        comparators += [(group[k], group[-1 - k]) for group in groups for k in range(len(group) // 2)]
        halves = ((group[: len(group) // 2], group[(len(group) + 1) // 2 :]) for group in groups)
        groups = [half for pair in halves for half in pair if len(half) > 1]
        if not groups:
            break
    return tuple(comparators)


def mirrored(n: int, comparator: Comparator) -> Comparator:
    """Return a comparator upside down: its ends at n - 1 - w, exchanged."""
    lo, hi = comparator
    return n - 1 - hi, n - 1 - lo


def with_images(n: int, halves: Sequence[Comparator]) -> list[Comparator]:
    """Return comparators with the mirror image of each behind it, if it is another one."""
    images = [(each, mirrored(n, each)) for each in halves]
    return [each for pair in images for each in dict.fromkeys(pair)]


def without_images(network: Network) -> list[Comparator]:
    """Return one of each comparator and its mirror image, layer by layer.

    Raises:
        NetworkError: a layer has a comparator and not its mirror image.
    """
    n = network.n
    halves = []
    for index, layer in enumerate(network.layers()):
        pairs = {(lo, hi) for lo, hi in layer.tolist()}
        alone = [pair for pair in sorted(pairs) if mirrored(n, pair) not in pairs]
        if alone:
            lo, hi = alone[0]
            raise NetworkError(
                f"the network is not symmetric: layer {index} has {lo}:{hi} and not its mirror image "
                f"{n - 1 - hi}:{n - 1 - lo}: leave {argument('symmetric', True)} out"
            )
        halves += [pair for pair in sorted(pairs) if pair <= mirrored(n, pair)]
    return halves


def _check_symmetric(goal: Goal) -> None:
    """Raise NetworkError if a goal has no symmetric networks, or its prefix is not one."""
    n = goal.n
    if n % 2:
        raise NetworkError(
            f"no symmetric network compares the middle one of {n} wires: "
            f"leave {argument('symmetric', True)} out, or search an even number of wires"
        )
    groups = {(group.wires, group.first) for group in goal.wanted.groups}
    images = {
        (tuple(sorted(n - 1 - wire for wire in wires)), n - first - len(wires)) for wires, first in groups
    }
    runs = {frozenset(run) for run in goal.wanted.presorted}
    if images != groups or {frozenset(n - 1 - wire for wire in run) for run in runs} != runs:
        raise NetworkError(
            f"{goal.wanted.name} is not the same upside down: leave {argument('symmetric', True)} out"
        )
    without_images(Network.from_comparators(n, goal.prefix))
