"""Catches a long pass that differs from the ordinary passes, or from exact limits."""

import subprocess
import sys

import pytest
import torch

import nsc
from nsc import library
from nsc.runtime.build import cache
from nsc.runtime.build.toolchain import find_toolchain
from nsc.runtime.relaxed.library import Library

THRESHOLD = "constexpr int64_t fewest_long_wires = 8192;"
MORE = pytest.mark.nightly("more families, sizes and relaxations are built")
# Networks whose levels join ranges and parts of the wires in different ways.
NETWORKS = (
    pytest.param("bitonic", 64, {}, id="flipped"),
    pytest.param(
        "odd_even_merge", 75, {"error_free": True}, id="error-free, of any number of wires", marks=MORE
    ),
    pytest.param("odd_even", 41, {"relaxation": "gaussian"}, id="joined by most levels", marks=MORE),
    pytest.param("odd_even_merge", 3, {}, id="of parts without wires", marks=MORE),
)


def as_long(op):
    """Return an operator's own library, compiled as if its network were long."""
    text = library.expanded(op.kernel.sources["cpu"])
    assert text.count(THRESHOLD) == 1
    text = text.replace(THRESHOLD, "constexpr int64_t fewest_long_wires = 0;")
    built = cache.build(f"{op.name}_long", text, find_toolchain(relaxed=True))
    return Library(built.binary, op.kernel.reals)


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
@pytest.mark.parametrize(("family", "n", "options"), NETWORKS)
def test_the_long_pass_does_what_the_others_do(family, n, options):
    """Values have the same bits: they take the same operations, whatever the order of the comparators."""
    op = nsc.compile(family, n, dtypes="float64", **options)
    for batch in (1, 3, 20):
        for columns in (1, 4, 5):
            runs = []
            for take in (op.kernel.own_library, lambda: as_long(op)):
                op.kernel.serving = take()
                runs.append(results(op, batch, columns))
            torch.testing.assert_close(runs[1][:2], runs[0][:2], rtol=0, atol=0, equal_nan=True)
            torch.testing.assert_close(runs[1], runs[0], rtol=1e-11, atol=1e-11, equal_nan=True)


@pytest.mark.slow("kernels are built as users build them")
def test_bits_of_the_long_pass_depend_on_neither_threads_nor_the_batch():
    op = nsc.compile("bitonic", 64, dtypes="float64")
    op.kernel.serving = as_long(op)
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


LARGEST = 65536
CALLS = """
import resource, sys, torch, nsc

op, n = nsc.load(sys.argv[1]), int(sys.argv[2])
draw = torch.Generator().manual_seed(0)
x = torch.rand(1, n, generator=draw).argsort(-1).float()
sorted_values = torch.arange(float(n))[None]
assert torch.equal(op.sort(x, 1e20), sorted_values)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
x.requires_grad_()
ranks = op.rank(x, 1e20)
assert torch.equal(ranks, x)
ranks.sum().backward()
# x and the ranks take 256 KB each, kept weights of all comparators would take 53 MB.
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
assert grown < 32 << 10, f"{grown} KB"
assert torch.equal(op.route(x, x.unsqueeze(-1), 1e20).squeeze(-1), sorted_values)

target = torch.rand(1, n, generator=draw, dtype=torch.float64)
scores = torch.randn(1, n, generator=draw, dtype=torch.float64).requires_grad_()
loss = lambda of: nsc.nn.functional.spearman_loss(op, of, target, 4.0)
loss(scores).backward()
with torch.no_grad():
    for _ in range(3):
        # Neighbours are some 1e-5 apart, and steps that bring them closer bend the loss.
        along = torch.rand(1, n, generator=draw, dtype=torch.float64) * scores.grad.sign() * 1e-9
        change = loss(scores + along) - loss(scores - along)
        torch.testing.assert_close(change / 2, (scores.grad * along).sum(), rtol=1e-4, atol=0)
assert op.network.digest == op.kernel.manifest.network
"""


@pytest.mark.nightly("a network of 65,536 wires is proved, compiled and built")
def test_a_network_of_65536_wires(tmp_path):
    """Exact limits, a gradient against differences, and memory; its package names the family."""
    command = ("compile", "bitonic", "--n", str(LARGEST), "--dtype", "float32,float64", "--name", "largest")
    for words in (("-m", "nsc", *command, "-o", tmp_path), ("-c", CALLS, tmp_path / "largest", str(LARGEST))):
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "largest" / "network.json").stat().st_size < 200
    assert (tmp_path / "largest" / "manifest.json").stat().st_size < 2000
