"""Calls on a GPU: what they refuse, and the memory and the launches that they take."""

from __future__ import annotations

import functools
import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import nsc
from nsc.compiler.driver import compile_network
from nsc.compiler.network import Network
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.relaxed.levels import levels
from nsc.compiler.request import Request
from nsc.compiler.schedule import schedule
from nsc.contract.interface import function_name
from nsc.contract.launch import FUNCTIONS
from nsc.errors import BuildError, OperandError, PackageError, ToolchainError
from nsc.runtime.devices import cuda_module
from nsc.runtime.devices.launches import SHARED_KIB, launches
from nsc.runtime.relaxed import cubin, cuda
from nsc.runtime.relaxed.call import Call
from nsc.runtime.relaxed.kernel import Kernel

SLOW = pytest.mark.slow("kernels run on the CPU")


def test_a_package_without_the_target():
    kernel = Kernel(compile_network(Request("bitonic", 4)).package.files)
    with pytest.raises(PackageError, match=r"no CUDA kernels: compile it with targets=\('cpu', 'cuda'\)"):
        _ = kernel.launch
    with pytest.raises(OperandError, match="compiled for cpu: compile it with targets="):
        cuda.program_of(kernel, torch.device("cuda", 0))


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


@pytest.mark.slow("CuPy runs in a process of its own")
@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a driver of its own")
def test_what_the_driver_is_asked():
    """The tests of driven.py."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", Path(__file__).with_name("driven.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTEST_ADDOPTS": ""})
    assert done.returncode == 0, done.stdout


# ---------------------------------------------------------------------------------------- launches


def launch(n):
    """Return the launch parameters of n wires; comparators make no difference to blocks."""
    return levels(schedule(Network.from_layers(n, [])), arrays=3).launch


def test_every_block_fits_every_device():
    for n in (*range(1, 34), 63, 64, 65, 127, 128, 129, 511, 512, 513, 2047, 2048, 4096):
        facts = launch(n)
        for real, kib in itertools.product(("float32", "float64"), sorted(set(SHARED_KIB.values()))):
            blocks = launches(n, facts, (real,), kib << 10).blocks
            assert set(blocks) == {function_name(function, real) for function in FUNCTIONS}
            for function, block in blocks.items():
                assert block.shared_bytes <= kib << 10, (n, kib, function)
                assert block.threads % 32 == 0
                assert 0 < block.threads <= 1024, (n, function)


def test_a_network_too_wide_for_any_function_is_refused():
    """Keys or routing: a block that does not fit is refused before anything is compiled."""
    for n, shared, words in (
        (4096, 33792, r"a block of nsc_keys_f64 on 4096 wires takes 33,800 bytes"),
        (4096, 32767, r"the narrowest tile on 4096 wires takes 32,768 bytes"),
    ):
        with pytest.raises(BuildError, match=rf"{words}.* has {shared:,}: use a smaller network, or the cpu"):
            launches(n, launch(n), ("float64",), shared)


# ------------------------------------------------------------------------------------------ memory


def test_chunks_are_summed_in_order(tabled):
    tested = tabled("bitonic", 8)
    slots = tested.kernel.launch.slots
    for chunks in (2, 9, 16):
        parts = 10.0 ** torch.randint(-8, 8, (3, chunks, slots)) * torch.randn(3, chunks, slots).double()
        expected = parts[:, 0]
        for chunk in range(1, chunks):
            expected = expected + parts[:, chunk]
        sums = parts.clone()
        tested.program.launch("nsc_sum_f64", -(-3 * slots // 128), (3, chunks, sums, None, None, None, 0))
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


def backward_of_a_permutation(tested, batch):
    """Return a call of the backward pass of P, and the bytes of its results."""
    x, steepness, _ = tested.inputs("permutation", 0, batch)
    n, spec = tested.kernel.n, tested.kernel.spec
    grad = torch.ones(batch, n, n, dtype=x.dtype)

    def call():
        return cuda.relax_backward(Call.of(x, steepness, None, "permutation", spec), None, grad)

    return call, x.nbytes + steepness.numel() * x.element_size()


@SLOW
@pytest.mark.parametrize("routing", ["none", "permutation", "route"])
def test_kept_weights_change_no_bit(device, monkeypatch, routing):
    """And they spare the backward pass its keys."""
    tested = device("bitonic", 4, Relaxation(error_free=True))
    inputs = tested.inputs(routing, 2 if routing == "route" else 0)
    call = Call.of(*inputs, routing, tested.kernel.spec)
    kept = cuda.empty_kept(call)
    monkeypatch.setattr(cuda, "SCRATCH_BYTES", 0)  # several groups
    expected = cuda.relax(call)
    actual = cuda.relax(call, kept)
    grads = [None if result is None else torch.randn_like(result) for result in expected]
    backward = functools.partial(cuda.relax_backward, call, *grads)
    expected += backward()
    launches, launch = [], tested.program.launch
    tested.program.launch = lambda name, *arguments: launches.append(name) or launch(name, *arguments)
    actual += backward(kept=kept)
    assert "nsc_keys_backward_f64" in launches
    assert "nsc_keys_f64" not in launches
    for result, other in zip(actual, expected, strict=True):
        assert result is other is None or torch.equal(result, other)


def test_weights_are_kept_up_to_a_bound_and_if_there_is_memory(tabled, monkeypatch):
    tested = tabled("bitonic", 8)
    call = Call.of(*tested.inputs("none", 0), "none", tested.kernel.spec)
    size = cuda.empty_kept(call).nbytes
    monkeypatch.setattr(cuda, "MOST_KEPT_WEIGHTS", size - 1)
    assert cuda.empty_kept(call) is None
    monkeypatch.setattr(cuda, "MOST_KEPT_WEIGHTS", size)
    assert cuda.empty_kept(call) is not None

    def refuse(*_, **__):
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(torch.Tensor, "new_empty", refuse)
    assert cuda.empty_kept(call) is None


@SLOW
@pytest.mark.usefixtures("wide_blocks")
def test_kept_rows_are_bounded(tabled, monkeypatch):
    """As many blocks run as the bound allows, and at least one; the bits are the same."""
    tested = tabled("odd_even_merge", 40, dtype="float32")
    tested.program.blocks = 4
    call, results = backward_of_a_permutation(tested, 2)
    allocations, launch = Allocations(monkeypatch), tested.program.launch
    block = tested.kernel.launch.kept_rows_permutation * 32 * 4
    expected = call()

    def fails(*_):
        raise torch.OutOfMemoryError("no memory")

    for bound, blocks in ((4 * block, 4), (4 * block - 1, 3), (block, 1), (0, 1)):
        monkeypatch.setattr(cuda, "KEPT_BYTES", bound)
        assert torch.equal(allocations.of(call)[0], expected[0])
        assert blocks * block in allocations.bytes
        scratch = sum(allocations.bytes) - results
        tested.program.launch = fails
        with pytest.raises(torch.OutOfMemoryError, match=f"up to {scratch:,} bytes of scratch"):
            call()
        tested.program.launch = launch


@SLOW
def test_too_little_memory(tabled, monkeypatch):
    """Each allocation of a call in turn fails; the error says what to do, and the next call is right."""
    tested = tabled("bitonic", 8)
    x, steepness, target = tested.inputs("cross_entropy", 0, 2)
    spec, plain = tested.kernel.spec, torch.Tensor.new_empty
    calls = {
        "loss": lambda: cuda.loss(Call.of(x, steepness, target, "cross_entropy", spec)),
        "relax": lambda: cuda.relax(Call.of(x, steepness, None, "permutation", spec)),
        "backward": backward_of_a_permutation(tested, 2)[0],
    }
    for name, call in calls.items():
        expected = call()
        with monkeypatch.context() as patch:
            allocations = Allocations(patch)
            allocations.of(call)
        for number in range(len(allocations.bytes)):
            left = itertools.count(number, -1)

            def refusing(tensor, *arguments, left=left, **options):
                if next(left) <= 0:
                    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.")
                return plain(tensor, *arguments, **options)

            with monkeypatch.context() as patch:
                patch.setattr(torch.Tensor, "new_empty", refusing)
                with pytest.raises(
                    torch.OutOfMemoryError, match=r"2 samples .* smaller batch.*Tried to allocate"
                ):
                    call()
        assert all(a is b or torch.equal(a, b) for a, b in zip(call(), expected, strict=True)), name


def test_groups_fill_the_device_and_are_bounded(tabled, monkeypatch):
    tested = tabled("bitonic", 64, dtype="float32")
    call, _ = backward_of_a_permutation(tested, 7)
    allocations, launch = Allocations(monkeypatch), tested.kernel.launch
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
        tested.program.multiprocessors = multiprocessors
        assert torch.equal(allocations.of(call)[0], expected[0])
        weights = [shape for shape in allocations.shapes if shape[1:] == (launch.weight_numbers,)]
        assert weights[0][0] == group
