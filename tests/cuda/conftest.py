"""Devices for the tests of CUDA kernels."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import pytest
from checked import Device
from device import MACHINES, OTHER_MACHINE

from nsc.compiler.relaxations import Relaxation
from nsc.compiler.request import Request
from nsc.compiler.schedule.cutting import STRAIGHT_LINE


@pytest.fixture(params=["ptx", *(pytest.param(each, marks=OTHER_MACHINE) for each in ("oldest ptx", "text"))])
def device(monkeypatch, tmp_path, request):
    machine = MACHINES[request.param]

    def make(
        network,
        n=None,
        relaxation=None,
        dtype="float64",
        select=None,
        straight_line=STRAIGHT_LINE,
        **options,
    ):
        compiled = Request(
            network,
            n,
            relaxation or Relaxation(),
            (dtype,),
            ("cuda",),
            name="tested",
            unproved=True,
            select=select,
            straight_line=straight_line,
        )
        # The loader knows a library by its path: each has a folder of its own.
        return Device(monkeypatch, Path(tempfile.mkdtemp(dir=tmp_path)), compiled, machine=machine, **options)

    return make


@pytest.fixture
def tabled(device):
    """A device on which all codelets run from tables, which builds in a fraction of the time."""
    return functools.partial(device, straight_line=0)
