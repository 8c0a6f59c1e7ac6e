"""`python tests/cuda/tensor_core_errors.py [N]`: the errors that benchmarks/tensor_cores.py states.

The kernels run in the emulation; 1024 wires take about a minute. The output is the errors of each form,
against float64 with the same weights.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import test_tensor_cores as emulated
import torch
from device import EmulatedProgram

from benchmarks import tensor_cores
from nsc.compiler.families import family_network
from nsc.runtime.devices import cuda

STEEPNESS = 20.0


def main(n: int, folder: Path) -> None:
    emulated.BATCH = 1
    torch.manual_seed(0)
    network = family_network("bitonic", n)
    kernel = emulated.compiled(network)
    product = EmulatedProgram(kernel, folder)
    cuda.program_of = lambda kernel, device: product
    cores = tensor_cores.TensorCores.of(network, kernel)
    program = emulated.EmulatedModule(cores.text, folder / "tensor_cores")
    tensor_cores.program_of = lambda source: program
    x, grad = torch.randn(1, n), torch.randn(1, n, n)
    steepness = torch.full((1,), STEEPNESS)
    with cuda.calling(x, steepness, None, "permutation", kernel.spec, with_gradients=True) as call:
        weights, P = call.empty_weights(1), torch.empty(1, n, n)
        call.keys(0, 1, None, weights)
        call.route(0, 1, weights, P)
        parts = call.empty_weight_grads(1)
        call.route_backward(0, 1, weights, grad, parts, None, None)
    keep, swap = (weights[:, k].double().unsqueeze(-1).requires_grad_() for k in range(2))
    expected = emulated.permutation(network, keep, swap)
    to_keep, to_swap = torch.autograd.grad(expected, (keep, swap), grad.double())
    used = [slot for _, slots in emulated.slots_of_comparators(network) for slot in slots]
    expected, expected_grads = expected.detach(), (to_keep - to_swap)[:, used, 0]
    forms = {"product": (P, parts.sum(1))}
    matrices = cores.matrices(weights)
    routed = cores.forward(matrices)
    forms["tensor cores"] = routed, cores.weight_gradients(weights, cores.backward(matrices, grad))
    for name, (entries, grads) in forms.items():
        large = expected >= emulated.LEAST_ENTRY
        relative = ((entries.double() - expected).abs() / expected)[large]
        error = (grads.double()[:, used] - expected_grads).abs().max() / expected_grads.abs().max()
        print(f"{name}: P {relative.max():.1e}, root mean square {relative.square().mean().sqrt():.1e}")
        print(f"{name}: gradients of weights {error:.1e} of the largest")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1024, Path(folder))
