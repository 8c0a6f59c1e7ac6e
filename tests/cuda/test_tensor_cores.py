"""P on tensor cores, in the emulation, which sums as coarsely as any processor is known to."""

from __future__ import annotations

import ctypes
import importlib
import re

import pytest
import torch
from device import EmulatedProgram
from emulated import ORDERS, Emulated
from test_kernels import irregular

from benchmarks import tensor_cores
from benchmarks.gpu import checks
from benchmarks.gpu.building import ART_LAMBDA
from nsc.compiler.driver import compile_network
from nsc.compiler.families import family_network
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.request import Request
from nsc.compiler.schedule import in_levels, schedule, slots_of
from nsc.runtime.build import nvrtc
from nsc.runtime.devices import cuda
from nsc.runtime.kernel import register

NETWORKS = {
    "bitonic 64": family_network("bitonic", 64),
    "irregular 40": irregular(40),  # codelets of all widths, columns that fill no tile
}
# The product's kernels of the routing take a minute to compile, and the experiment runs none of them.
ROUTING = re.compile(r'extern "C" __global__ void\s[^{;]*?\bnsc_(?:route|reversed)\w*\(.*?^}\n', re.S | re.M)
BATCH = 3
# Errors for given weights: relative to each entry of P, and to the largest gradient.
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
        actual = added.clone()
        kernels.launch("one_mma", (1, 1, 1), (32, 1, 1), (a, b, actual), order=order)
        assert torch.equal(actual, a @ b + added)
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
    relaxation = Relaxation("logistic", ART_LAMBDA)
    request = Request(network, relaxation=relaxation, targets=("cuda",), name="tested", unproved=True)
    return register(compile_network(request).package.files)


@pytest.fixture
def cores(monkeypatch, tmp_path):
    """Return a function that builds the experiment on a network, with its text edited, for the emulation."""

    def make(network, edit=str):
        kernel = compiled(network)
        product = EmulatedProgram(kernel, tmp_path, edit=without_routing)
        cores = tensor_cores.TensorCores.of(network, kernel)
        program = EmulatedModule(edit(cores.text), tmp_path / "tensor_cores")
        monkeypatch.setattr(cuda, "program_of", lambda kernel, device: product)
        monkeypatch.setattr(tensor_cores, "program_of", lambda source: program)
        monkeypatch.setattr(checks, "DEVICE", "cpu")
        return cores

    return make


def without_routing(text):
    cut, kernels = ROUTING.subn("", text)
    assert kernels == 4
    return cut


def random_weights(cores):
    """Return random weights, stored as by the keys pass, with both tails."""
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


@pytest.mark.parametrize(("name", "chunks"), [("bitonic 64", 1), ("bitonic 64", 2), ("irregular 40", 4)])
def test_right(cores, monkeypatch, name, chunks):
    """As in float64 for the same weights, and as the reference for the same x."""
    monkeypatch.setattr(tensor_cores, "MOST_CHUNKS", chunks)  # 1: one chunk has several tiles
    network = NETWORKS[name]
    cores = cores(network)
    assert list(checks._check_tensor_cores(cores, BATCH)) == []
    weights = random_weights(cores)
    keep, swap = (weights[:, k].double().unsqueeze(-1).requires_grad_() for k in range(2))
    expected = permutation(network, keep, swap)
    matrices = cores.matrices(weights)
    actual = cores.forward(matrices).double()
    tiny = expected < LEAST_ENTRY
    assert tiny.any()
    assert ((actual - expected).abs() / expected)[~tiny].max() < ENTRY_ERROR
    assert actual[tiny].max() <= LEAST_ENTRY * (1 + ENTRY_ERROR)
    grad = torch.randn(actual.shape, generator=torch.Generator().manual_seed(2))
    to_keep, to_swap = torch.autograd.grad(expected, (keep, swap), grad.double())
    used = [slot for _, slots in slots_of_comparators(network) for slot in slots]
    expected_grads = (to_keep - to_swap)[:, used, 0]
    actual_grads = cores.weight_gradients(weights, cores.backward(matrices, grad))[:, used]
    assert (actual_grads - expected_grads).abs().max() < GRADIENT_ERROR * expected_grads.abs().max()


def test_the_bits_depend_on_no_order_no_company_and_no_number_of_blocks(cores):
    network = irregular(40)
    cores = cores(network)
    program = tensor_cores.program_of(cores.text)
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
        program.order, program.blocks = order, blocks
        for actual, expected in zip(run(0, BATCH), alone, strict=True):
            assert torch.equal(actual, expected), order


@pytest.mark.parametrize(
    ("right", "wrong", "output"),
    [
        # No low parts; a matrix that is not transposed.
        ("value - __int_as_float(int32_t(factor.high[i]))", "0.0f", "the routed output"),
        ("(2 * codelet + 1) * matrix_size", "2 * codelet * matrix_size", "the gradient of x"),
    ],
)
def test_the_check_finds_what_is_wrong(cores, right, wrong, output):
    def edit(text):
        assert right in text
        return text.replace(right, wrong)

    network = family_network("bitonic", 32)  # its rows go through several codelets
    problems = list(checks._check_tensor_cores(cores(network, edit), BATCH))
    assert any(problem.startswith(f"{output} off by") for problem in problems)


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
    # CuPy asks a device for this.
    monkeypatch.setattr(compiler, "_get_arch_for_options_for_nvrtc", lambda arch: ("-arch=sm_90", "cubin"))
    network = family_network("bitonic", 16)
    text = tensor_cores.text(network, compiled(network))
    cubin, _ = compiler.compile_using_nvrtc(text, tensor_cores.OPTIONS, arch="90")
    assert cubin[:4] == b"\x7fELF"
