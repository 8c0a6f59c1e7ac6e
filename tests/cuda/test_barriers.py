"""Each barrier of the CUDA kernels is needed: without it their PTX has a race."""

from __future__ import annotations

import functools
import re
import tempfile
from pathlib import Path

import pytest
import torch
from checked import ROUTED, Device
from emulated import EmulationError

from nsc.compiler.request import Request
from nsc.runtime.relaxed import cuda

NIGHTLY_BARRIER = pytest.mark.nightly("each barrier is taken out")
# A call of a barrier in the library of headers; how many there are, and those whose lack shows quickly.
BARRIER = re.compile(r"(?<![\w:])(?:Tile<Plan, real>::wait|share\.wait|wait|__syncwarp|__syncthreads)\(\);")
BARRIERS, QUICK_BARRIERS = 24, (2, 13)
# One warp a tile, several, and tiles so narrow that a task has several slices: type, wires, shared memory and
# batch. A barrier that all of them can do without is one too many.
PLACES = {
    "a warp": ("float32", 48, 227 << 10, 3),
    "a block": ("float64", 136, 227 << 10, 2),
    "a merge": ("float32", 128, 227 << 10, 1),
    "slices": ("float64", 136, 5 * 136 * 8, 1),
}


def without_barrier(number, source):
    places = list(BARRIER.finditer(source))
    assert len(places) == BARRIERS
    return source[: places[number].start()] + ";" + source[places[number].end() :]


@pytest.mark.slow("kernels run on the CPU")
@pytest.mark.parametrize(
    "number",
    [pytest.param(each, marks=[] if each in QUICK_BARRIERS else NIGHTLY_BARRIER) for each in range(BARRIERS)],
)
def test_a_missing_barrier_is_a_race(monkeypatch, tmp_path, number):
    """The PTX shows it in any order of the threads; the text shows some of them, in some orders."""

    def run():
        for dtype, n, shared_bytes, batch in PLACES.values():
            request = Request(
                "bitonic", n, dtypes=(dtype,), targets=("cuda",), unproved=True, straight_line=0
            )
            folder = Path(tempfile.mkdtemp(dir=tmp_path))
            edit = functools.partial(without_barrier, number)
            device = Device(monkeypatch, folder, request, shared_bytes=shared_bytes, edit=edit)
            # A block has several tasks, and some entries of P are large: the rest of their columns is read.
            device.steepness, device.program.blocks = 10.0, 1
            for routing, columns in ROUTED:
                device.check(routing, columns, batch)
            x, steepness, target = device.inputs("cross_entropy", 0, batch)
            wrong = torch.where(torch.arange(n) < 2, n, target[:, 2:3])
            cuda.relax_unchecked(x, steepness, wrong, "cross_entropy", device.kernel.spec)

    with pytest.raises(EmulationError, match=r"a race|nobody wrote"):
        run()
