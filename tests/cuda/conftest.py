"""Devices for the tests of CUDA kernels."""

from __future__ import annotations

import functools

import pytest
from device import NEWEST, OLDEST, SHARED_BYTES, Device

from nsc.compiler.relaxations import Relaxation
from nsc.compiler.relaxed import levels
from nsc.compiler.request import Request


@pytest.fixture(
    scope="session",
    params=[NEWEST, pytest.param(OLDEST, marks=pytest.mark.nightly("the PTX of the oldest NVRTC runs too"))],
    ids=["newest", "oldest"],
)
def compiler(request):
    """What makes PTX of the kernels."""
    return request.param


@pytest.fixture
def device(monkeypatch, compiler):
    def make(network, n=None, relaxation=None, dtype="float64", shared_bytes=SHARED_BYTES, **options):
        relaxation = relaxation or Relaxation()
        options |= {"name": "tested", "unproved": True}
        request = Request(network, n, relaxation, (dtype,), ("cuda",), **options)
        return Device(monkeypatch, request, shared_bytes=shared_bytes, compiler=compiler)

    return make


@pytest.fixture
def tabled(device):
    """A device on which all codelets run from tables, which builds in a fraction of the time."""
    return functools.partial(device, straight_line=0)


@pytest.fixture
def wide_blocks(monkeypatch):
    """Let two warps share a tile from 32 wires on, and a sample's keys, as they do beyond 128 wires.

    No rows are kept in shared memory then.
    """
    monkeypatch.setattr(levels, "WIRES_PER_WARP", 32)
    monkeypatch.setattr(levels, "LEAST_SAMPLE_THREADS", 64)
    monkeypatch.setattr(levels, "MOST_TILE_BYTES", 0)
