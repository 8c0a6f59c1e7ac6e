"""P on tensor cores, run in the emulation, whose sums are as coarse as any processor's are known to be."""

from __future__ import annotations

import ctypes
import importlib
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from click.testing import CliRunner
from device import EmulatedProgram
from emulated import ORDERS, Emulated
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
# Given the weights: of each entry of P, and of gradients relative to the largest.
ENTRY_ERROR = 4e-6
GRADIENT_ERROR = 1e-6
# Where losses cut logarithms.
LEAST_ENTRY = 2.0**-115


class EmulatedModule:
    """Implements `tensor_cores.Program`."""

    def __init__(self, text, folder):
        folder.mkdir()
        self._kernels = Emulated(text, folder)
        self.order, self.blocks = "ascending", 5

    def resident_blocks(self, function, threads, shared_bytes):
        return self.blocks

    def launch(self, function, blocks, threads, shared_bytes, arguments):
        values = [a if isinstance(a, torch.Tensor) else ctypes.c_int64(a) for a in arguments]
        shared_bytes = -(-shared_bytes // 16) * 16
        self._kernels.launch(function, (blocks, 1, 1), (threads, 1, 1), values, shared_bytes, self.order)


MMA_KERNEL = """
extern "C" __global__ void one_mma(const float *a, const float *b, float *sum) {
    const int g = threadIdx.x / 4, c = threadIdx.x % 4;
    uint32_t left[4], right[2];
    float part[4];
    for (int i = 0; i < 4; ++i) {
        left[i] = __float_as_int(a[(g + 8 * (i % 2)) * 8 + c + 4 * (i / 2)]);
        part[i] = sum[(g + 8 * (i / 2)) * 8 + 2 * c + i % 2];
    }
    for (int i = 0; i < 2; ++i) right[i] = __float_as_int(b[(c + 4 * i) * 8 + g]);
    mma_m16n8k8_tf32(part, left, right);
    for (int i = 0; i < 4; ++i) sum[(g + 8 * (i / 2)) * 8 + 2 * c + i % 2] = part[i];
}
"""


def test_the_emulated_product_of_matrices(tmp_path):
    kernels, draw = Emulated(MMA_KERNEL, tmp_path), torch.Generator().manual_seed(1)
    a, b, added = (
        torch.randint(-9, 10, shape, generator=draw).float() for shape in ((16, 8), (8, 8), (16, 8))
    )
    for order in ORDERS:
        found = added.clone()
        kernels.launch("one_mma", (1, 1, 1), (32, 1, 1), (a, b, found), order=order)
        assert torch.equal(found, a @ b + added)
    # The last 13 bits of a factor are ignored, and sums are cut at the last bit of their largest term.
    a, b, sums = torch.zeros(16, 8), torch.zeros(8, 8), torch.zeros(16, 8)
    a[0, 0], a[1, 1], a[2, 1] = 1 + 2**-10 + 2**-11, -0.75, 0.75
    b[0, 0], b[1, 1] = 1, 1
    sums[1, 1] = sums[2, 1] = 2.0**23
    kernels.launch("one_mma", (1, 1, 1), (32, 1, 1), (a, b, sums))
    assert sums[0, 0] == 1 + 2**-10
    assert sums[1, 1] == sums[2, 1] == 2.0**23
    a[0, 0] = torch.inf
    kernels.launch("one_mma", (1, 1, 1), (32, 1, 1), (a, b, sums))
    assert sums[0, 0] == torch.inf
    assert sums[0, 1].isnan()  # infinity times 0
    assert sums[1].isfinite().all()


def compiled(network):
    relaxation = Relaxation("logistic", tensor_cores.ART_LAMBDA)
    request = Request(network, relaxation=relaxation, targets=("cuda",), name="tested", unproved=True)
    return register(compile_network(request).package.files)


@pytest.fixture
def cores(monkeypatch, tmp_path):
    def make(network, with_keys=True):
        kernel = compiled(network)
        if with_keys:
            product = EmulatedProgram(kernel, tmp_path)
            monkeypatch.setattr(cuda, "program_of", lambda kernel, device: product)
        monkeypatch.setattr(tensor_cores, "DEVICE", "cpu")
        return tensor_cores.TensorCores.of(
            network, kernel, lambda text: EmulatedModule(text, tmp_path / "tensor_cores")
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


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    """A machine whose GPU is the emulation, and a text that may be wrong."""
    edits = []

    def loaded(text):
        for right, wrong in edits:
            assert right in text
            text = text.replace(right, wrong)
        return EmulatedModule(text, tmp_path / "tensor_cores")

    def seconds_of(call):
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    programs = {}

    def program_of(kernel, device):
        if kernel not in programs:
            programs[kernel] = EmulatedProgram(kernel, tmp_path)
        return programs[kernel]

    monkeypatch.setattr(cuda, "program_of", program_of)
    monkeypatch.setattr(tensor_cores, "DEVICE", "cpu")
    monkeypatch.setattr(tensor_cores, "SIZES", (32,))
    monkeypatch.setattr(tensor_cores, "MOST_SAMPLES", 2)
    monkeypatch.setattr(tensor_cores, "CupyModule", loaded)
    monkeypatch.setattr(tensor_cores, "seconds_by_events", seconds_of)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "an emulation")
    properties = SimpleNamespace(shared_memory_per_block_optin=99 << 10)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda: properties)
    return edits


TIMED = (
    "matrices",
    "forward",
    "backward",
    "gradients of weights",
    "product, forward",
    "product, backward",
)


def test_the_benchmark_checks_and_times_every_pass(gpu):
    done = CliRunner().invoke(tensor_cores.main)
    assert done.exit_code == 0, done.output
    device, *lines = done.output.splitlines()
    assert device == "an emulation"
    assert [line.rpartition(":")[0] for line in lines] == [f"bitonic 32, batch 2, {name}" for name in TIMED]


def test_a_network_that_the_device_has_no_memory_for_is_left_out(gpu, monkeypatch):
    monkeypatch.setattr(tensor_cores, "SIZES", (1024,))
    monkeypatch.setattr(tensor_cores, "CupyModule", lambda text: None)
    done = CliRunner().invoke(tensor_cores.main)
    assert done.exit_code == 0
    assert "bitonic 1024 takes 131,200 bytes of a block's 101,376: left out" in done.output


@pytest.mark.parametrize(
    ("right", "wrong", "where"),
    [
        ("add_product(sum, left[k].low, right[k].high);", "", "P"),  # a part less
        ("(2 * codelet + 1) * matrix_size", "2 * codelet * matrix_size", "gradient of x"),  # not transposed
    ],
)
def test_the_benchmark_finds_what_is_wrong(gpu, right, wrong, where):
    gpu.append((right, wrong))
    done = CliRunner().invoke(tensor_cores.main)
    assert done.exit_code == 1
    assert f"WRONG: bitonic 32, {where}: off by" in done.output
    assert "bitonic 32, batch 2, forward:" in done.output


def test_without_a_gpu_it_says_so():
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "benchmarks.tensor_cores"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.returncode == 2
    assert "torch sees no CUDA device" in done.stderr


def test_few_reads_of_shared_memory_collide():
    codelets = schedule(family_network("bitonic", 1024)).codelets
    reads = collisions = 0
    for codelet in codelets:
        rows = [tensor_cores.row_of(wire) for wire in codelet.wires]
        for first in range(0, 32, 8):
            lanes = [divmod(lane, 4) for lane in range(first, first + 8)]
            for i in range(4):
                own = [rows[8 * (i // 2) + 2 * c + i % 2] ^ 4 * g for g, c in lanes]  # for a product
                across = [rows[g + 8 * (i // 2)] ^ 4 * c + 16 * (i % 2) for g, c in lanes]  # for a gradient
                for places in (own, across):
                    reads += 1
                    collisions += len({place // 4 % 8 for place in places}) < len(lanes)
    assert collisions < 0.05 * reads


@pytest.mark.parametrize(("n", "architecture"), [(128, "sm_80"), (1024, "sm_90")])
def test_compiles_without_warnings_or_spills(n, architecture):
    network = family_network("bitonic", n)
    _, log = nvrtc.Nvrtc(architecture, "any").compiled(tensor_cores.text(network, compiled(network)))
    assert "warning" not in log
    assert re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log) == [("0", "0")] * 4


def test_cupy_compiles_it_with_the_benchmarks_options(monkeypatch):
    compiler = importlib.import_module("cupy.cuda.compiler")
    # What CuPy asks a device for.
    monkeypatch.setattr(compiler, "_get_arch_for_options_for_nvrtc", lambda arch: ("-arch=sm_90", "cubin"))
    network = family_network("bitonic", 16)
    text = tensor_cores.text(network, compiled(network))
    cubin, _ = compiler.compile_using_nvrtc(text, tensor_cores.OPTIONS, arch="90")
    assert cubin[:4] == b"\x7fELF"
