"""P on tensor cores, run in the emulation: products as the PTX ISA defines them, sums as coarse as any known."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from device import EmulatedProgram
from emulated import Emulated
from test_kernels import irregular

from benchmarks import tensor_cores
from nsc.compiler.driver import Request, compile_network
from nsc.compiler.families import family_network
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.schedule import in_levels, schedule, slots_of
from nsc.runtime import cuda, nvrtc
from nsc.runtime.kernel import register

ROOT = Path(__file__).parents[2]
NETWORKS = {
    "bitonic 128": family_network("bitonic", 128),
    "bitonic 256": family_network("bitonic", 256),
    "irregular 48": irregular(48),  # codelets of all widths, columns that fill no tile
}
BATCH = 3
# 3xTF32 given the weights: of each entry of P, and of gradients relative to the largest.
ENTRY_ERROR = 4e-6
GRADIENT_ERROR = 1e-6
# Where losses cut logarithms.
LEAST_ENTRY = 2.0**-115


class EmulatedModule:
    """Implements `cuda.Program` for the experiment's text."""

    def __init__(self, text, folder, order="ascending", blocks=5):
        folder.mkdir()
        self._kernels = Emulated(text, folder)
        self.order, self.blocks = order, blocks

    def resident_blocks(self, function, threads, shared_bytes):
        return self.blocks

    def launch(self, function, blocks, threads, shared_bytes, arguments):
        values = [a if isinstance(a, torch.Tensor) else ctypes.c_int64(a) for a in arguments]
        shared_bytes = -(-shared_bytes // 16) * 16
        self._kernels.launch(function, (blocks, 1, 1), (threads, 1, 1), values, shared_bytes, self.order)


def compiled(network):
    relaxation = Relaxation("logistic", tensor_cores.ART_LAMBDA)
    request = Request(network, relaxation=relaxation, targets=("cuda",), name="tested", unproved=True)
    return register(compile_network(request).package.files)


@pytest.fixture
def cores(monkeypatch, tmp_path):
    def make(network, edit=str, with_keys=True):
        kernel = compiled(network)
        if with_keys:
            product = EmulatedProgram(kernel, tmp_path)
            monkeypatch.setattr(cuda, "program_of", lambda kernel, device: product)
        monkeypatch.setattr(tensor_cores, "DEVICE", "cpu")
        return tensor_cores.TensorCores.of(
            network, kernel, lambda text: EmulatedModule(edit(text), tmp_path / "tensor_cores")
        )

    return make


def random_weights(cores):
    """Return weights as the keys pass leaves them, of both tails."""
    launch, draw = cores.kernel.launch, torch.Generator().manual_seed(1)
    v = (60 * torch.randn(BATCH, launch.slots, generator=draw)).clamp(-80, 80)
    return torch.stack([v.sigmoid(), (-v).sigmoid(), v], 1).contiguous()


def slots_of_comparators(network):
    """Return each codelet with its comparators' slots."""
    slot = 0
    for codelet in in_levels(schedule(network))[0].codelets:
        yield codelet, range(slot, slot + len(codelet.shape))
        slot += slots_of(codelet)


def permutation(network, keep, swap):
    """Return P in float64 from the weights of each slot, (batch, slots, 1)."""
    rows = list(torch.eye(network.n, dtype=torch.float64).expand(BATCH, -1, -1).unbind(-2))
    for codelet, slots in slots_of_comparators(network):
        for pair, slot in zip(codelet.shape, slots, strict=True):
            a, b, lo, hi = keep[:, slot], swap[:, slot], codelet.wires[pair.a], codelet.wires[pair.b]
            rows[lo], rows[hi] = a * rows[lo] + b * rows[hi], a * rows[hi] + b * rows[lo]
    return torch.stack(rows, -2)


@pytest.mark.parametrize("name", NETWORKS)
def test_right(cores, name):
    """As float64 given the weights, and as the reference given x."""
    network = NETWORKS[name]
    cores = cores(network)
    assert list(tensor_cores.problems(cores, BATCH)) == []
    weights = random_weights(cores)
    keep, swap = (weights[:, k].double().unsqueeze(-1).requires_grad_() for k in range(2))
    wanted = permutation(network, keep, swap)
    matrices = cores.matrices(weights)
    found = cores.forward(matrices).double()
    tiny = wanted < LEAST_ENTRY
    assert tiny.any()
    assert ((found - wanted).abs() / wanted)[~tiny].max() < ENTRY_ERROR
    assert found[tiny].max() <= LEAST_ENTRY * (1 + ENTRY_ERROR)
    grad = torch.randn(found.shape, generator=torch.Generator().manual_seed(2))
    to_keep, to_swap = torch.autograd.grad(wanted, (keep, swap), grad.double())
    used = [slot for _, slots in slots_of_comparators(network) for slot in slots]
    wanted_grads = (to_keep - to_swap)[:, used, 0]
    found_grads = cores.weight_gradients(weights, cores.backward(matrices, grad))[:, used]
    print(name, float(((found - wanted).abs() / wanted)[~tiny].max()), float((found_grads - wanted_grads).abs().max() / wanted_grads.abs().max()))
    assert (found_grads - wanted_grads).abs().max() < GRADIENT_ERROR * wanted_grads.abs().max()


def test_the_bits_depend_on_no_order_no_company_and_no_number_of_blocks(cores):
    network = irregular(40)
    cores = cores(network, with_keys=False)
    weights = random_weights(cores)
    grad = torch.randn(BATCH, cores.kernel.n, cores.kernel.n)
    used = [slot for _, slots in slots_of_comparators(network) for slot in slots]

    def run(first, end):
        matrices = cores.matrices(weights[first:end])
        matrix_grads = cores.backward(matrices, grad[first:end])
        weight_grads = cores.weight_gradients(weights[first:end], matrix_grads)
        return cores.forward(matrices), matrix_grads, weight_grads[:, used]

    alone = [torch.cat(parts) for parts in zip(*(run(i, i + 1) for i in range(BATCH)), strict=True)]
    for order, blocks in (("ascending", 1), ("descending", 3), ("shuffled", 64)):
        cores.program.order, cores.program.blocks = order, blocks
        for found, wanted in zip(run(0, BATCH), alone, strict=True):
            assert torch.equal(found, wanted), order


@pytest.mark.parametrize(
    ("right", "wrong", "where"),
    [
        ("add_product(sum, left[k].low, right[k].high);", "", "P"),  # a part less
        ("(2 * codelet + 1) * matrix_size", "2 * codelet * matrix_size", "gradient of x"),  # not transposed
    ],
)
def test_the_benchmark_finds_what_is_wrong(cores, right, wrong, where):
    def edit(text):
        assert right in text
        return text.replace(right, wrong)

    found = list(tensor_cores.problems(cores(family_network("bitonic", 32), edit), BATCH))
    assert any(f"bitonic 32, {where}: off by" in problem for problem in found), found


def test_every_pass_is_timed(cores):
    cores = cores(family_network("bitonic", 32))

    def seconds_of(call):
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    timings = tensor_cores.measure(cores, 2, seconds_of)
    assert len(timings) == 6
    assert all(timing.seconds > 0 for timing in timings)


def test_without_a_gpu_it_says_so():
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "benchmarks.tensor_cores"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.returncode == 2
    assert "torch sees no CUDA device" in done.stderr


@pytest.mark.parametrize(("n", "architecture"), [(128, "sm_80"), (1024, "sm_90")])
def test_compiles_without_warnings_or_spills(n, architecture):
    network = family_network("bitonic", n)
    version = ".".join(map(str, nvrtc._nvrtc().getVersion()))
    text = tensor_cores.text(network, compiled(network))
    _, log = nvrtc.Nvrtc(architecture, version).compiled(text)
    assert "warning" not in log
    found = nvrtc.resources(log)
    assert set(found) == {"tensor_matrices", "tensor_forward", "tensor_backward", "tensor_weights"}
    assert not any(spilled for _, spilled in found.values())
