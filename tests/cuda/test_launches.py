"""The threads and the shared memory of blocks fit every listed device."""

from __future__ import annotations

import itertools

import pytest

from nsc.compiler.network import Network
from nsc.compiler.relaxed.levels import levels
from nsc.compiler.schedule import schedule
from nsc.contract.interface import function_name
from nsc.contract.launch import FUNCTIONS
from nsc.errors import BuildError
from nsc.runtime.devices.launches import SHARED_KIB, launches

# Threads of a block come in warps, up to a limit.
WARP, MOST_THREADS = 32, 1024


def launch(n):
    """Return the launch parameters of n wires; comparators make no difference to blocks."""
    return levels(schedule(Network.from_layers(n, [])), arrays=3).launch


def test_every_block_fits_every_device():
    for n in (*range(1, 130), *range(130, 4096, 31), 4096):
        facts = launch(n)
        for real, kib in itertools.product(("float32", "float64"), sorted(set(SHARED_KIB.values()))):
            blocks = launches(n, facts, (real,), kib << 10).blocks
            assert set(blocks) == {function_name(function, real) for function in FUNCTIONS}
            for function, block in blocks.items():
                assert block.shared_bytes <= kib << 10, (n, kib, function)
                assert block.threads % WARP == 0
                assert 0 < block.threads <= MOST_THREADS, (n, function)


def test_a_network_too_wide_for_any_function_is_refused():
    """Keys or routing: a block that does not fit is refused before anything is compiled."""
    for n, shared, words in (
        (4096, 33792, r"a block of nsc_keys_f64 on 4096 wires takes 33,800 bytes"),
        (4096, 32767, r"the narrowest tile on 4096 wires takes 32,768 bytes"),
    ):
        with pytest.raises(BuildError, match=rf"{words}.* has {shared:,}: use a smaller network, or the cpu"):
            launches(n, launch(n), ("float64",), shared)


def test_only_the_types_that_a_kernel_has_count():
    blocks = launches(4096, launch(4096), ("float32",), 64 << 10).blocks
    assert set(blocks) == {function_name(function, "float32") for function in FUNCTIONS}
