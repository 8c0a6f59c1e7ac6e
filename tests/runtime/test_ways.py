"""Catches a mode of torch in which a kernel would read memory that it may not; devices without kernels."""

from __future__ import annotations

import torch
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

from nsc.contract.targets import TARGETS
from nsc.runtime.dispatch.ways import Way, way_of
from nsc.runtime.relaxed.devices import BY_DEVICE, DEVICES


class Subclass(torch.Tensor):
    pass


class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


def test_plain_tensors():
    x = torch.ones(2)
    assert way_of(x, None, torch.nn.Parameter(x)) is Way.PLAIN
    assert way_of() is Way.PLAIN


def test_tensors_whose_memory_no_kernel_may_read():
    x = torch.ones(2)
    for other in (x.as_subclass(Subclass), x.to("meta"), torch._neg_view(x), x.to_sparse()):
        assert way_of(x, other) is Way.WATCHED
    with Mode():
        assert way_of(x) is Way.WATCHED


def test_a_tracer():
    ways = []

    def traced(x):
        ways.append(way_of(x))
        return x + 1

    torch.jit.trace(traced, torch.ones(2), check_trace=False)
    assert ways == [Way.WATCHED]


def test_transforms_and_forward_mode():
    ways = []

    def record(x):
        ways.append((way_of(x), way_of(x, with_tangents=False)))
        return (x * x).sum()

    torch.func.grad(record)(torch.ones(2))
    with forward_ad.dual_level():
        record(forward_ad.make_dual(torch.ones(2), torch.ones(2)))
    assert ways == [(Way.TRANSFORMED, Way.TRANSFORMED), (Way.FORWARD, Way.PLAIN)]


def test_a_compiled_program():
    @torch.compile(fullgraph=True, backend="eager")
    def compiled(x):
        return x + (1 if way_of(x) is Way.COMPILED else 0)

    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))


def test_every_device_of_a_target_has_kernels():
    assert set(DEVICES) == {device for target in TARGETS.values() for device in target.devices}
    assert BY_DEVICE[torch.device("cpu")] is DEVICES["cpu"]
    assert BY_DEVICE[torch.device("cuda:1")] is DEVICES["cuda"]
    assert BY_DEVICE[torch.device("meta")] is None
