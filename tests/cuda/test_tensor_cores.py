"""The routing on tensor cores, run in the emulation: products as the PTX ISA defines them, sums as coarse as known."""

from __future__ import annotations

import pytest
import torch
from device import EmulatedProgram
from test_kernels import irregular

from benchmarks import tensor_cores
from nsc.compiler.driver import Request, compile_network
from nsc.compiler.families import family_network
from nsc.compiler.schedule import in_levels, schedule
from nsc.runtime import cuda, nvrtc, reference
from nsc.runtime.kernel import register

NETWORKS = {
    "bitonic 128": family_network("bitonic", 128),
    "bitonic 256": family_network("bitonic", 256),
    "irregular 70": irregular(70),
}
BATCH = 2
# Of 3xTF32 given the weights: of each entry of P, and of gradients relative to the largest.
ENTRY_ERROR = 4e-6
GRADIENT_ERROR = 2e-6
# Where losses cut logarithms.
LEAST_ENTRY = 2.0**-115


@pytest.fixture(params=NETWORKS)
def cores(request, monkeypatch, tmp_path):
    network = NETWORKS[request.param]
    made = compile_network(
        Request(network, relaxation=tensor_cores.RELAXATION, targets=("cuda",), name="tested", unproved=True)
    )
    kernel = register(made.package.files)
    text = tensor_cores.TEXT.read_text()
    program = EmulatedProgram(kernel, tmp_path, edit=lambda product: product + text)
    monkeypatch.setattr(cuda, "program_of", lambda kernel, device: program)
    return tensor_cores.TensorCores(kernel, program, tensor_cores.tables(network, "cpu")), network


def mixed(network, keep, swap, block):
    """Route a block in float64 by the weights of each slot."""
    rows, slot = list(block.unbind(-2)), 0
    for codelet in in_levels(schedule(network))[0].codelets:
        for number, (a, b, _) in enumerate(codelet.shape):
            k, s = keep[:, slot + number, None], swap[:, slot + number, None]
            lo, hi = codelet.wires[a], codelet.wires[b]
            rows[lo], rows[hi] = k * rows[lo] + s * rows[hi], k * rows[hi] + s * rows[lo]
        slot += -(-len(codelet.shape) // 16) * 16
    return torch.stack(rows, -2)


@pytest.mark.parametrize("order", ["ascending", "shuffled"])
def test_as_float64_with_the_same_weights_and_as_the_reference(cores, order):
    cores, network = cores
    if order == "shuffled" and network.n > 128:
        pytest.skip("one order shows it")
    cores.program.order = order
    n, draw = network.n, torch.Generator().manual_seed(1)
    x = torch.randn(BATCH, n, generator=draw)
    steepness = torch.full((BATCH,), tensor_cores.STEEPNESS)
    grad = torch.randn(BATCH, n, n, generator=draw)
    call = cuda._call(x, steepness, None, "permutation", cores.kernel.spec)
    weights = call.empty_weights(BATCH)
    call.keys(0, BATCH, None, weights)
    keep, swap = (weights[:, k].double().requires_grad_() for k in range(2))
    wanted = mixed(network, keep, swap, torch.eye(n, dtype=torch.float64).expand(BATCH, n, n))
    matrices = cores.matrices(weights)
    found = cores.forward(matrices).double()
    errors = ((found - wanted).abs() / wanted)[wanted > LEAST_ENTRY]
    print(order, n, "P:", float(errors.max()), float(wanted[wanted>0].min()))
    assert errors.max() < ENTRY_ERROR
    to_keep, to_swap = torch.autograd.grad(wanted, (keep, swap), grad.double())
    wanted_grads = to_keep - to_swap
    found_grads = cores.weight_gradients(weights, cores.backward(matrices, grad)).double()
    used = wanted_grads != 0
    error = (found_grads - wanted_grads)[used].abs().max() / wanted_grads.abs().max()
    print("gradient:", float(error))
    assert error < GRADIENT_ERROR
    print(list(tensor_cores.problems(cores, x)))
