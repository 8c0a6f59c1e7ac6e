"""Launches: the launch parameters of CUDA kernels, and constants of how threads share their work."""

from __future__ import annotations

from dataclasses import dataclass

from nsc import library

# Threads of a warp.
WARP = 32
# Bytes of a row that a lane holds: two columns of float32, or one column of float64. Wider lanes share
# addresses, weights and sums between more columns, and take more registers.
LANE_BYTES = 8
# The columns of a sample's P are cut into so many pieces; each piece has its own sums of weight gradients.
# The number is constant, so the bits depend neither on the number of threads nor on the batch.
MOST_CHUNKS = int(library.constant("most_chunks", "relaxed/call.h"))
# The functions of a kernel, by the parts that are compiled separately. Each function exists for every
# arithmetic type.
PARTS = {
    "forward": ("keys", "route"),
    "backward": ("keys_backward", "sum", "route_backward"),
    "reversed": ("reversed",),
}
FUNCTIONS = tuple(function for functions in PARTS.values() for function in functions)


@dataclass(frozen=True)
class Launch:
    """Launch parameters of a kernel, stored in the manifest.

    The routing works on tiles: some columns each, in shared memory. The backward routing keeps the rows that
    the codelets of a tile load. `kept_rows` and the three fields after it count these rows for a tile.

    Attributes:
        slots: places in each array of a sample's weights.
        arrays: arrays of weights that a sample has.
        kept_rows: kept rows if all codelets run, as for a payload.
        kept_rows_permutation: the most kept rows if the columns are P's, where only a light cone runs.
        kept_rows_front: the most kept rows if a loss factors the final merge, so that only codelets in front
            of it run; 0: no loss does.
        kept_rows_in_block: `kept_rows` if shared memory holds them; 0: the memory of the call holds them.
        merge_layers: layers of the final merge, if losses factor it; 0: no loss does.
        tile_threads: threads that share a tile.
        tile_lanes: the most lanes of a tile; each lane holds LANE_BYTES of a row.
        widest_group: the most columns of one sample in a tile.
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
        """Numbers that the keys pass stores for a sample; see `kept_numbers` in relaxed/cuda/network.h."""
        wires = 1 << self.merge_layers
        return self.arrays * self.slots + (wires * self.merge_layers + wires if self.merge_layers else 0)


def sample_places(n: int) -> int:
    """Return the places that a sample's wires take in a block's shared memory.

    Every WARP wires are followed by an unused place, so that wires whose distance is a multiple of WARP lie
    in different banks. The last place is no wire's.
    """
    return n + n // WARP + 1
