"""Launches: the threads, work and shared memory of a block of each CUDA function."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from nsc.contract.exact import ExactSource
from nsc.contract.interface import REALS, function_name
from nsc.contract.launch import FUNCTIONS, LANE_BYTES, WARP, Launch, sample_places
from nsc.errors import BuildError

# Shared memory that a block may ask for, in KiB (CUDA C++ Programming Guide, table of technical
# specifications per compute capability).
SHARED_KIB = {
    "sm_70": 96,
    "sm_72": 96,
    "sm_75": 64,
    "sm_80": 163,
    "sm_86": 99,
    "sm_87": 163,
    "sm_88": 99,
    "sm_89": 99,
    "sm_90": 227,
    "sm_100": 227,
    "sm_103": 227,
    "sm_110": 227,
    "sm_120": 99,
    "sm_121": 99,
}

# The functions of an exact kernel, library/nsc/exact/cuda/kernel.h.
_EXACT = "nsc_exact_"
EXACT_VALUES, EXACT_PAIRS = f"{_EXACT}values", f"{_EXACT}pairs"
# Most comparators that a thread runs as straight-line code, by the bytes of an item: the build takes up to
# four seconds, and what a thread holds stays in its registers.
_STRAIGHT_COMPARATORS = {4: 1600, 8: 600, 16: 200}
# A block has so many warps with a tile each, at most; or it has so many threads that share a tile of so many
# bytes. A tile of that size leaves room for several blocks.
_MOST_WARPS = 4
_SHARING_THREADS = 256
_SHARED_TILE_BYTES = 32 << 10


@dataclass(frozen=True)
class Block:
    """A block of a function.

    Attributes:
        threads: how many it has.
        items: how many samples (keys and exact sorting), tiles of columns (routing) or slots (sums) it works
            on at a time.
        shared_bytes: its shared memory.
    """

    threads: int
    items: int
    shared_bytes: int


@dataclass(frozen=True)
class Launches:
    """How a kernel is launched on a kind of device.

    Attributes:
        tile_lanes: lanes that a tile of columns lies on.
        blocks: the blocks of each function, by its name.
    """

    tile_lanes: int
    blocks: dict[str, Block]

    @property
    def defines(self) -> tuple[tuple[str, str], ...]:
        """The macros that the build defines, names and values."""
        return (("NSC_TILE_LANES", str(self.tile_lanes)),)


def launches(n: int, launch: Launch, reals: Iterable[str], shared_bytes: int) -> Launches:
    """Return how a kernel is launched where a block may ask for so much shared memory.

    Args:
        n: number of wires.
        launch: the kernel's launch parameters.
        reals: the arithmetic types that it is compiled for.
        shared_bytes: what a block of the device may ask for.

    Raises:
        BuildError: the least that a block works on does not fit.
    """
    blocks: dict[str, Block] = {}
    lanes = _tile_lanes(n, launch, shared_bytes)
    tiles = launch.routing_threads // launch.tile_threads
    row_bytes = tiles * lanes * LANE_BYTES
    routing = Block(launch.routing_threads, tiles, n * row_bytes)
    backward = replace(routing, shared_bytes=(n + launch.kept_rows_in_block) * row_bytes)
    for real in sorted(reals):
        samples = launch.keys_threads // launch.sample_threads
        keys = Block(launch.keys_threads, samples, samples * sample_places(n) * REALS[real].bytes)
        by_name = dict.fromkeys(FUNCTIONS, routing) | {
            "keys": keys,
            "keys_backward": keys,
            "route_backward": backward,
            "sum": Block(launch.keys_threads, launch.keys_threads, 0),
        }
        blocks |= {function_name(name, real): block for name, block in by_name.items()}
    for function, block in blocks.items():
        _check_fits(f"a block of {function}", n, block.shared_bytes, shared_bytes)
    return Launches(lanes, blocks)


@dataclass(frozen=True)
class ExactLaunches:
    """How an exact kernel is launched on a kind of device.

    Attributes:
        blocks: the blocks of each function, by its name.
        straight: the functions that run straight-line code, where a thread has a sample of its own.
    """

    blocks: dict[str, Block]
    straight: frozenset[str]

    @property
    def defines(self) -> tuple[tuple[str, str], ...]:
        """The macros that the build defines, names and values."""
        return tuple(
            (f"NSC_STRAIGHT_{function.removeprefix(_EXACT).upper()}", str(function in self.straight).lower())
            for function in self.blocks
        )


def exact_launches(source: ExactSource, value_bytes: int, shared_bytes: int) -> ExactLaunches:
    """Return how an exact kernel is launched where a block may ask for so much shared memory.

    Args:
        source: the kernel.
        value_bytes: of a value's type.
        shared_bytes: what a block of the device may ask for.
    """
    blocks, straight = {}, set()
    item_bytes = {EXACT_VALUES: max(4, value_bytes), EXACT_PAIRS: max(4, 2 * value_bytes)}
    for function, each in item_bytes.items():
        # A warp's tile has a column for each sample; a place between its rows avoids conflicts of banks.
        warp_bytes = (WARP + 1) * source.n * each
        if 0 < source.straight <= _STRAIGHT_COMPARATORS[each] and warp_bytes <= shared_bytes:
            straight.add(function)
            warps = min(_MOST_WARPS, shared_bytes // warp_bytes)
            blocks[function] = Block(warps * WARP, warps * WARP, warps * warp_bytes)
        else:
            # The largest power of two: 1,024 of the largest items fit every device.
            fitting = max(1, _SHARED_TILE_BYTES // (source.n * each))
            samples = min(WARP, 1 << (fitting.bit_length() - 1))
            blocks[function] = Block(_SHARING_THREADS, samples, samples * source.n * each)
    return ExactLaunches(blocks, frozenset(straight))


def _tile_lanes(n: int, launch: Launch, shared_bytes: int) -> int:
    """Return how many lanes a tile of columns lies on: as many as a block's shared memory holds."""
    lane_bytes = launch.routing_threads // launch.tile_threads * n * LANE_BYTES
    _check_fits("the narrowest tile", n, lane_bytes, shared_bytes)
    return min(launch.tile_lanes, 1 << ((shared_bytes // lane_bytes).bit_length() - 1))


def _check_fits(subject: str, n: int, needed: int, shared_bytes: int) -> None:
    if needed > shared_bytes:
        raise BuildError(
            f"{subject} on {n} wires takes {needed:,} bytes of shared memory, a block of the device has "
            f"{shared_bytes:,}: use a smaller network, or the cpu target"
        )
