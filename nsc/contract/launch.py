"""Launches: the launch parameters of CUDA kernels, and constants of how threads share their work."""

from __future__ import annotations

from dataclasses import dataclass

from nsc import library

# Threads of a warp.
WARP = 32
# Bytes of a row that a lane holds: two columns of float32, one of float64. Wider lanes share addresses,
# weights and sums between more columns, and take more registers.
LANE_BYTES = 8
# Pieces that the columns of a sample's P are cut into, each with its own sums of weight gradients. It is a
# constant so that the bits depend neither on the number of threads nor on the batch.
MOST_CHUNKS = int(library.constant("most_chunks", "relaxed/call.h"))
# The functions of a kernel, each for every arithmetic type, in the parts that are compiled by themselves.
PARTS = {
    "forward": ("keys", "route"),
    "backward": ("keys_backward", "sum", "route_backward"),
    "reversed": ("reversed",),
}
FUNCTIONS = tuple(function for functions in PARTS.values() for function in functions)


@dataclass(frozen=True)
class Launch:
    """Launch parameters of a kernel, stored in the manifest.

    Attributes:
        slots: places for weights, per sample and array.
        arrays: arrays of weights.
        kept_rows: rows that the backward routing keeps of what the codelets load.
        kept_rows_permutation: the same for a tile of P, at most.
        kept_rows_front: the same in front of the merge that a loss takes apart.
        kept_rows_in_block: rows of a tile that are kept in shared memory; 0: the memory of a call has them.
        merge_layers: of that merge; 0: there is none.
        tile_threads: threads that share a tile of columns.
        tile_lanes: lanes that a tile of columns lies on, at most.
        widest_group: columns of a tile that a sample takes, at most.
        routing_threads: threads of a block of the routing.
        sample_threads: threads that share a sample's keys.
        keys_threads: threads of a block of the keys pass.
    """

    slots: int
    arrays: int
    kept_rows: int
    kept_rows_permutation: int
    kept_rows_front: int
    kept_rows_in_block: int
    merge_layers: int
    tile_threads: int
    tile_lanes: int
    widest_group: int
    routing_threads: int
    sample_threads: int
    keys_threads: int

    @property
    def weight_numbers(self) -> int:
        """Numbers that the keys pass leaves of a sample; see `kept_numbers` in relaxed/cuda/network.h."""
        wires = 1 << self.merge_layers
        return self.arrays * self.slots + (wires * self.merge_layers + wires if self.merge_layers else 0)


def sample_places(n: int) -> int:
    """Return the places that a sample's wires take in a block's shared memory.

    One more for every WARP wires, so that wires whose distance is a multiple of WARP lie in different banks;
    the last place is no wire's.
    """
    return n + n // WARP + 1
