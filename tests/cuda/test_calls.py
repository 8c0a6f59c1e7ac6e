"""Calls on a GPU: what they refuse, and the memory and the launches that they take."""

from __future__ import annotations

import functools
import sys

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import nsc
from nsc.compiler.driver import compile_network
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.request import Request
from nsc.errors import OperandError, PackageError, ToolchainError
from nsc.runtime.devices import cuda_module
from nsc.runtime.relaxed import cubin, cuda
from nsc.runtime.relaxed.kernel import Kernel

EMULATED = pytest.mark.slow("kernels run on the CPU")


def test_a_package_without_the_target():
    kernel = Kernel(compile_network(Request("bitonic", 4)).package.files)
    with pytest.raises(PackageError, match=r"no CUDA kernels: compile it with targets=\('cpu', 'cuda'\)"):
        _ = kernel.launch


def test_operators_say_what_they_are_compiled_for():
    x = torch.zeros(2, 4)
    with pytest.raises(
        OperandError, match=r"x is on cpu, this op is compiled for cuda: .* targets=\('cpu', 'cuda'\)"
    ):
        nsc.compile("bitonic", 4, targets=("cuda",)).sort(x)
    with FakeTensorMode():
        on_gpu = torch.empty(2, 4, device="cuda")
        with pytest.raises(OperandError, match=r"x is on cuda:0, this op is compiled for cpu"):
            nsc.compile("bitonic", 4).sort(on_gpu)
        op = nsc.compile("bitonic", 4, targets=("cpu", "cuda"))
        values, P = op.sort_with_permutation(on_gpu)
        assert (values.device.type, P.shape, P.dtype) == ("cuda", (2, 4, 4), torch.float32)
        assert (
            op.cross_entropy(on_gpu.half(), torch.zeros(2, 4, dtype=torch.int64, device="cuda")).dtype
            == torch.half
        )


def test_without_cupy_one_error_says_what_is_missing(monkeypatch):
    for name in ("cupy", "cupy.cuda"):
        monkeypatch.setitem(sys.modules, name, None)
    kernel = Kernel(compile_network(Request("bitonic", 4, targets=("cuda",))).package.files)
    for build in (lambda: cubin.build(kernel, "sm_90", "forward"), lambda: cuda_module._cupy()):
        with pytest.raises(ToolchainError, match=r"pip install cupy-cuda13x"):
            build()


def test_chunks_are_summed_in_order(tabled):
    emulated = tabled("bitonic", 8)
    slots = emulated.kernel.launch.slots
    for chunks in (2, 9, 16):
        parts = 10.0 ** torch.randint(-8, 8, (3, chunks, slots)) * torch.randn(3, chunks, slots).double()
        expected = parts[:, 0]
        for chunk in range(1, chunks):
            expected = expected + parts[:, chunk]
        sums = parts.clone()
        emulated.program.launch("nsc_sum_f64", -(-3 * slots // 128), (3, chunks, sums, None, None, None, 0))
        assert torch.equal(sums[:, 0], expected)
        assert torch.equal(sums[:, 1:], parts[:, 1:])


class Allocations:
    """The tensors that a call allocates.

    Attributes:
        shapes: of each tensor.
        bytes: of each tensor.
    """

    def __init__(self, monkeypatch):
        self.shapes, self.bytes = [], []
        plain = torch.Tensor.new_empty

        def recorded(tensor, *arguments, **options):
            empty = plain(tensor, *arguments, **options)
            self.shapes.append(tuple(empty.shape))
            self.bytes.append(empty.nbytes)
            return empty

        monkeypatch.setattr(torch.Tensor, "new_empty", recorded)

    def of(self, call):
        self.shapes.clear()
        self.bytes.clear()
        return call()


def backward_of_a_permutation(emulated, batch):
    """Return a call of the backward pass of P, and the bytes of its results."""
    x, steepness, _ = emulated.inputs("permutation", 0, batch)
    n, spec = emulated.kernel.n, emulated.kernel.spec
    grad = torch.ones(batch, n, n, dtype=x.dtype)

    def call():
        return cuda.relax_backward_unchecked(None, grad, x, steepness, None, "permutation", spec)

    return call, x.nbytes + steepness.numel() * x.element_size()


@EMULATED
@pytest.mark.parametrize("routing", ["none", "permutation", "route"])
def test_kept_weights_change_no_bit(tabled, monkeypatch, routing):
    """And they spare the backward pass its keys."""
    emulated = tabled("bitonic", 8, relaxation=Relaxation(error_free=True))
    inputs = emulated.inputs(routing, 2 if routing == "route" else 0)
    kept = cuda.empty_kept(inputs[0], routing, emulated.kernel.spec)
    monkeypatch.setattr(cuda, "SCRATCH_BYTES", 0)  # several groups
    expected = cuda.relax_unchecked(*inputs, routing, emulated.kernel.spec)
    actual = cuda.relax_unchecked(*inputs, routing, emulated.kernel.spec, kept)
    grads = [None if result is None else torch.randn_like(result) for result in expected]
    backward = functools.partial(
        cuda.relax_backward_unchecked, *grads, *inputs, routing, emulated.kernel.spec
    )
    expected += backward()
    launches, launch = [], emulated.program.launch
    emulated.program.launch = lambda name, *arguments: launches.append(name) or launch(name, *arguments)
    actual += backward(kept=kept)
    assert "nsc_keys_backward_f64" in launches
    assert "nsc_keys_f64" not in launches
    for result, other in zip(actual, expected, strict=True):
        assert result is other is None or torch.equal(result, other)


@EMULATED
def test_weights_are_kept_up_to_a_bound(tabled, monkeypatch):
    emulated = tabled("bitonic", 8)
    x, spec = emulated.inputs("none", 0)[0], emulated.kernel.spec
    size = cuda.empty_kept(x, "none", spec).nbytes
    monkeypatch.setattr(cuda, "MOST_KEPT_WEIGHTS", size)
    assert cuda.empty_kept(x, "none", spec) is not None
    monkeypatch.setattr(cuda, "MOST_KEPT_WEIGHTS", size - 1)
    assert cuda.empty_kept(x, "none", spec) is None


@EMULATED
def test_weights_are_kept_only_if_there_is_memory(tabled, monkeypatch):
    emulated = tabled("bitonic", 8)

    def refuse(*_, **__):
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(torch.Tensor, "new_empty", refuse)
    assert cuda.empty_kept(emulated.inputs("none", 0)[0], "none", emulated.kernel.spec) is None


@EMULATED
def test_kept_rows_are_bounded(tabled, monkeypatch):
    """As many blocks run as the bound allows, and at least one; the bits are the same."""
    emulated = tabled("odd_even_merge", 136, dtype="float32")
    emulated.program.blocks = 4
    call, results = backward_of_a_permutation(emulated, 2)
    allocations, launch = Allocations(monkeypatch), emulated.program.launch
    block = emulated.kernel.launch.kept_rows_permutation * 32 * 4
    expected = call()

    def fails(*_):
        raise torch.OutOfMemoryError("no memory")

    for bound, blocks in ((4 * block, 4), (4 * block - 1, 3), (block, 1), (0, 1)):
        monkeypatch.setattr(cuda, "KEPT_BYTES", bound)
        assert torch.equal(allocations.of(call)[0], expected[0])
        assert blocks * block in allocations.bytes
        scratch = sum(allocations.bytes) - results
        emulated.program.launch = fails
        with pytest.raises(torch.OutOfMemoryError, match=f"up to {scratch:,} bytes of scratch"):
            call()
        emulated.program.launch = launch


def test_groups_fill_the_device_and_are_bounded(tabled, monkeypatch):
    emulated = tabled("bitonic", 64, dtype="float32")
    call, _ = backward_of_a_permutation(emulated, 7)
    allocations, launch = Allocations(monkeypatch), emulated.kernel.launch
    each = (launch.arrays + 2) * launch.slots * 4  # two chunks of 32 columns
    expected = call()
    for aim, most, multiprocessors, group in (
        (2 * each, 100 * each, 5, 5),
        (6 * each, 100 * each, 5, 6),
        (2 * each, 4 * each, 5, 4),
        (2 * each, each - 1, 5, 1),
        (100 * each, 100 * each, 5, 7),
    ):
        monkeypatch.setattr(cuda, "SCRATCH_BYTES", aim)
        monkeypatch.setattr(cuda, "MOST_SCRATCH_BYTES", most)
        emulated.program.multiprocessors = multiprocessors
        assert torch.equal(allocations.of(call)[0], expected[0])
        weights = [shape for shape in allocations.shapes if shape[1:] == (launch.weight_numbers,)]
        assert weights[0][0] == group
