"""Long networks: what takes the long pass, against the ordinary passes and against exact limits."""

import pytest
import torch

import nsc
from nsc import library
from nsc.runtime.build import cache
from nsc.runtime.build.toolchain import find_toolchain
from nsc.runtime.relaxed.library import Library

THRESHOLD = "constexpr int64_t fewest_long_wires = 8192;"
# Networks whose levels join ranges and parts of the wires in different ways.
NETWORKS = {
    "flipped": ("bitonic", 64, {}),
    "of any number of wires": ("odd_even_merge", 75, {}),
    "joined by most levels": ("odd_even", 41, {"relaxation": "gaussian"}),
    "error-free": ("bitonic", 64, {"error_free": True}),
    "of parts without wires": ("odd_even_merge", 3, {}),
}


def as_long(op):
    """Return an operator's own library, compiled as if its network were long."""
    text = library.expanded(op.kernel.sources["cpu"])
    assert text.count(THRESHOLD) == 1
    text = text.replace(THRESHOLD, "constexpr int64_t fewest_long_wires = 0;")
    built = cache.build(f"{op.name}_long", text, find_toolchain(relaxed=True), op.kernel.manifest.nsc)
    return Library(built.binary, op.kernel.manifest.stated("cpu"), op.kernel.reals)


def results(op, batch, columns):
    """Return what an operator does for a few columns, and its gradients."""
    draw = torch.Generator().manual_seed(batch)
    x = torch.randn(batch, op.n, generator=draw, dtype=torch.float64, requires_grad=True)
    steepness = torch.rand(batch, generator=draw, dtype=torch.float64).add(1).requires_grad_()
    payload = torch.randn(batch, op.n, columns, generator=draw, dtype=torch.float64, requires_grad=True)
    extreme = torch.where(x > 1, torch.inf, torch.where(x < -1, torch.nan, x)).detach().requires_grad_()
    made = [op.sort(x, steepness), op.sort(extreme, steepness), op.rank(x, steepness)]
    made += [op.route(x, payload, steepness), *op.topk(x, min(columns, op.n), steepness)]
    total = sum((result * result.detach().cos()).nan_to_num(0).sum() for result in made)
    return [*made, *torch.autograd.grad(total, (x, steepness, payload, extreme))]


@pytest.mark.slow("kernels are built as users build them")
@pytest.mark.parametrize("name", NETWORKS)
def test_the_long_pass_does_what_the_others_do(name):
    """Values have the same bits: they take the same operations, whatever the order of the comparators."""
    family, n, options = NETWORKS[name]
    op = nsc.compile(family, n, dtypes="float64", **options)
    for batch in (1, 3, 20):
        for columns in (1, 4, 5):
            runs = []
            for take in (op.kernel.own_library, lambda: as_long(op)):
                op.kernel._library = take()
                runs.append(results(op, batch, columns))
            torch.testing.assert_close(runs[1][:2], runs[0][:2], rtol=0, atol=0, equal_nan=True)
            torch.testing.assert_close(runs[1], runs[0], rtol=1e-11, atol=1e-11, equal_nan=True)


@pytest.mark.slow("kernels are built as users build them")
def test_bits_of_the_long_pass_depend_on_neither_threads_nor_the_batch():
    op = nsc.compile("bitonic", 64, dtypes="float64")
    op.kernel._library = as_long(op)
    x = torch.randn(20, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def gradients(of):
        of = of.clone().requires_grad_()
        steepness = torch.full(of.shape[:1], 3.0, dtype=torch.float64).requires_grad_()
        ranks = op.rank(of, steepness)
        return [ranks.detach(), *torch.autograd.grad((ranks * ranks.detach().cos()).sum(), (of, steepness))]

    together = gradients(x)
    before = torch.get_num_threads()
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            for sample in (0, 19):
                for result, whole in zip(gradients(x[sample : sample + 1]), together, strict=True):
                    assert torch.equal(result[0], whole[sample])
    finally:
        torch.set_num_threads(before)
