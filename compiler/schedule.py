"""Schedule: a network cut into the pieces that a kernel runs, as data that a template prints."""

from __future__ import annotations

from dataclasses import dataclass

from nsc.compiler.codelets import Codelet, Shape, cut, shapes_of
from nsc.compiler.network import Network

# The weights of a codelet begin at a multiple of this many, the widest register's lanes, so that sums
# over lanes can be added to them a register at a time.
SLOT_ALIGNMENT = 16


@dataclass(frozen=True)
class Schedule:
    """The order in which a kernel runs a network's comparators.

    Weights are stored in slots, codelet by codelet.

    Attributes:
        network: what is scheduled.
        codelets: its comparators cut into codelets, in order.
        shapes: the codelets' shapes, the most frequent first.
    """

    network: Network
    codelets: tuple[Codelet, ...]
    shapes: tuple[Shape, ...]

    def __post_init__(self) -> None:
        assert sum(len(codelet.shape) for codelet in self.codelets) == self.network.size
        assert {codelet.shape for codelet in self.codelets} == set(self.shapes)

    @property
    def loads(self) -> int:
        """Number of wires that the codelets load together."""
        return sum(len(codelet.wires) for codelet in self.codelets)

    @property
    def slots(self) -> int:
        """Number of weight slots."""
        return sum(map(slots_of, self.codelets))


def schedule(network: Network) -> Schedule:
    """Cut a network into codelets."""
    codelets = cut(network)
    return Schedule(network, codelets, shapes_of(codelets))


def slots_of(codelet: Codelet) -> int:
    """Return how many weight slots a codelet takes."""
    return -(-len(codelet.shape) // SLOT_ALIGNMENT) * SLOT_ALIGNMENT
