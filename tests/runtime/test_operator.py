"""Catches operators that differ from the plain torch reference or torch, or break a law of sorting."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import platform
import subprocess
import sys

import pytest
import torch

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st
from networks import irregular

import nsc
from nsc.audit import laws
from nsc.compiler.driver import compile_network
from nsc.compiler.package import write
from nsc.compiler.request import Request
from nsc.compiler.selection import top_k
from nsc.contract.routings import LOSSES
from nsc.runtime.relaxed import reference

SIGMOIDS = ("logistic", "gaussian", "reciprocal", "cauchy", "optimal", "hard")
FAMILIES = ("odd_even", "bitonic", "odd_even_merge", "merge_exchange", "pairwise", "insertion")
FLOAT32, FLOAT64 = ("float32",), ("float64",)


@functools.cache
def operator(network="bitonic", n=8, dtypes=FLOAT32 + FLOAT64, **options):
    """Return an operator; each type that it has takes a build of its own."""
    return nsc.compile(network, n, dtypes=dtypes, **options)


def oracle(op, x, steepness, payload=None, routing="none"):
    batch = x.reshape(-1, op.n)
    s = torch.as_tensor(steepness, dtype=x.dtype).expand(len(batch))
    return reference.relax(op.kernel, batch, s, payload, routing)


SLOW = pytest.mark.slow("many kernels are built")
MORE = pytest.mark.nightly("more sizes, families and dtypes are built")


def check_against_reference(op, real="float64"):
    """Compare values, all routings, losses and all gradients, as `nsc verify` does."""
    assert laws.broken_law(op.kernel, real) is None


# By day each sigmoid is built in float64, the logistic one free of errors too; other tests take these.
VARIANTS = [
    ("logistic", 0.25, False, "float64"),
    ("logistic", 0.25, True, "float32"),
    pytest.param("logistic", 0, False, "float64", marks=SLOW),
    *(pytest.param(sigmoid, 0.25, False, "float64", marks=SLOW) for sigmoid in SIGMOIDS[1:]),
    pytest.param("logistic", 0.5, False, "float64", marks=MORE),
    *(
        pytest.param(sigmoid, 0.25, error_free, real, marks=MORE)
        for sigmoid in SIGMOIDS
        for error_free, real in ((False, "float32"), (True, "float32"), (True, "float64"))
    ),
]


@pytest.mark.parametrize(("sigmoid", "art_lambda", "error_free", "real"), VARIANTS)
def test_every_relaxation(sigmoid, art_lambda, error_free, real):
    options = {"relaxation": sigmoid, "art_lambda": art_lambda, "error_free": error_free}
    check_against_reference(operator("odd_even", 7, (real,), **options), real)


@SLOW
@pytest.mark.parametrize(
    ("network", "n"),
    [
        ("insertion", 19),  # most layers have few comparators
        *(("bitonic", n) for n in (5, 50)),
        *(pytest.param(network, n, marks=MORE) for network in FAMILIES for n in (2, 3, 17, 19)),
    ],
)
def test_every_family_and_size(network, n):
    check_against_reference(nsc.compile(network, n, dtypes=FLOAT64))


@SLOW
def test_differences_that_are_kept_segment_by_segment():
    op = operator("odd_even", 192, FLOAT64)
    x = torch.randn(1, 192, dtype=torch.float64, requires_grad=True)
    P, expected = op.sort_with_permutation(x, 5.0)[1], oracle(op, x, 5.0, routing="permutation")[1]
    torch.testing.assert_close(P, expected, rtol=1e-9, atol=1e-12)
    upstream = torch.rand_like(P)
    ours, theirs = (torch.autograd.grad(each, x, upstream)[0] for each in (P, expected))
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9 * theirs.abs().max().item())


@SLOW
@settings(max_examples=60)
@given(
    values=st.lists(st.floats(-1e3, 1e3, allow_nan=False, width=32), min_size=7, max_size=7),
    steepness=st.floats(1e-3, 1e3),
    sigmoid=st.sampled_from(SIGMOIDS[:-1]),
)
def test_laws(values, steepness, sigmoid):
    op = operator("odd_even", 7, FLOAT64, relaxation=sigmoid)
    x = torch.tensor(values, dtype=torch.float64)
    y, P = op.sort_with_permutation(x, steepness)
    assert bool(((P >= -1e-12) & (P <= 1 + 1e-12)).all())
    for axis in (0, 1):
        torch.testing.assert_close(P.sum(axis), torch.ones(7, dtype=P.dtype), rtol=0, atol=1e-12)
    torch.testing.assert_close(P @ x, y, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(y.sum(), x.sum(), rtol=1e-9, atol=1e-9)
    assert x.min() - 1e-9 <= y.min()
    assert y.max() <= x.max() + 1e-9
    torch.testing.assert_close(op.rank(x, steepness), P.T @ torch.arange(7.0, dtype=P.dtype))


@SLOW
def test_shifting_the_input_leaves_P_and_scaling_it_scales_the_steepness():
    x = torch.randn(5, 7, dtype=torch.float64)
    plain = operator("odd_even", 7, FLOAT64, art_lambda=0)
    P = plain.sort_with_permutation(x, 2.0)[1]
    torch.testing.assert_close(plain.sort_with_permutation(x + 3, 2.0)[1], P, rtol=0, atol=1e-12)
    torch.testing.assert_close(plain.sort_with_permutation(4 * x, 0.5)[1], P, rtol=0, atol=1e-12)
    replaced = operator("odd_even", 7, FLOAT64)
    P = replaced.sort_with_permutation(x, 2.0)[1]
    scaled = replaced.sort_with_permutation(4 * x, 2.0 / 4**0.75)[1]
    torch.testing.assert_close(scaled, P, rtol=0, atol=1e-8)


@SLOW
@pytest.mark.parametrize("sigmoid", SIGMOIDS)
def test_large_steepness_is_torch_sort(sigmoid):
    op = operator("odd_even", 7, FLOAT64, relaxation=sigmoid)
    x = torch.stack([torch.randperm(7) for _ in range(20)]).double()
    values, P = op.sort_with_permutation(x, 1e12)
    expected, indices = torch.sort(x)
    torch.testing.assert_close(values, expected, rtol=0, atol=1e-6)
    assert torch.equal(P.argmax(-1), indices)
    torch.testing.assert_close(P, torch.nn.functional.one_hot(indices, 7).double(), rtol=0, atol=1e-6)


@SLOW
@pytest.mark.parametrize(
    ("sigmoid", "monotone"),
    [("logistic", False), ("gaussian", False), ("reciprocal", True), ("cauchy", True), ("optimal", True)],
)
def test_monotone_families_have_no_negative_derivative(sigmoid, monotone):
    op = operator("odd_even", 6, FLOAT64, relaxation=sigmoid, art_lambda=0)
    lowest = min(
        torch.autograd.functional.jacobian(lambda x: oracle(op, x, 1.0)[0], x * scale).min().item()
        for x, scale in itertools.product(torch.randn(20, 6, dtype=torch.float64), (0.5, 2.0, 5.0))
    )
    assert (lowest >= -1e-12) == monotone


def test_error_free_values_are_exact_and_P_is_zero_one():
    op = operator("odd_even", 7, FLOAT32, error_free=True)
    x = torch.randn(10, 7)
    values, P = op.sort_with_permutation(x)
    expected, indices = torch.sort(x)
    assert torch.equal(values, expected)
    assert torch.equal(P, torch.nn.functional.one_hot(indices, 7).float())
    P_of_ties = op.sort_with_permutation(torch.zeros(1, 7))[1][0]
    assert torch.equal(P_of_ties, torch.eye(7)), "equal values keep their places"


@pytest.mark.parametrize("lead", [(), (2, 3), (0,)])
def test_any_leading_shape(lead):
    op = operator()
    x = torch.randn(*lead, 8, dtype=torch.float64, requires_grad=True)
    payload = torch.randn(*lead, 8, 5, dtype=torch.float64)
    values, P = op.sort_with_permutation(x)
    assert values.shape == (*lead, 8)
    assert P.shape == (*lead, 8, 8)
    torch.testing.assert_close(P @ x.unsqueeze(-1), values.unsqueeze(-1))
    assert op.rank(x).shape == (*lead, 8)
    torch.testing.assert_close(op.route(x, payload), P @ payload)
    top, rows = op.topk(x, 3)
    torch.testing.assert_close(top, values[..., 5:].flip(-1))
    torch.testing.assert_close(rows, P[..., 5:, :].flip(-2))
    hard, indices = op.hard_sort(x)
    assert torch.equal(hard, torch.sort(x).values)
    assert indices.shape == x.shape
    (grad,) = torch.autograd.grad(values.sum() + P.sum() + hard.sum(), x)
    assert grad.shape == x.shape


@SLOW
@pytest.mark.parametrize("n", [1, 2])
def test_smallest_networks(n):
    op = operator("bitonic", n, FLOAT32)
    x = torch.randn(3, n, requires_grad=True)
    target = torch.arange(n).expand(3, n)
    values, P = op.sort_with_permutation(x)
    assert P.shape == (3, n, n)
    loss = op.cross_entropy(x, target) + op.binary_cross_entropy(x, target) + values.sum()
    loss.backward()
    assert x.grad.isfinite().all()
    assert torch.equal(op.hard_sort(x)[0], torch.sort(x).values)
    assert op.topk(x, 1)[1].shape == (3, 1, n)
    if n == 1:
        assert torch.equal(values, x)
        assert torch.equal(P, torch.ones(3, 1, 1))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_dtypes_are_kept_and_halves_compute_in_float32(dtype):
    op = operator()
    x = torch.randn(4, 8).to(dtype).requires_grad_()
    values, P = op.sort_with_permutation(x, 2.0)
    assert values.dtype == P.dtype == dtype
    assert op.rank(x).dtype == dtype
    assert op.hard_sort(x)[0].dtype == dtype
    assert op.cross_entropy(x, torch.arange(8).expand(4, 8)).dtype == dtype
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    expected, routed = op.sort_with_permutation(x.to(wide), 2.0)
    assert torch.equal(values, expected.to(dtype))
    assert torch.equal(P, routed.to(dtype))
    (grad,) = torch.autograd.grad(values.float().square().sum(), x)
    assert grad.dtype == dtype
    assert grad.isfinite().all()


def test_route_takes_the_wider_dtype():
    op = operator()
    x, payload = torch.randn(2, 8), torch.randn(2, 8, 3, dtype=torch.float64)
    assert op.route(x, payload).dtype == torch.float64
    assert op.route(x.bfloat16(), payload.float()).dtype == torch.float32


def test_non_contiguous_inputs():
    op = operator()
    x = torch.randn(8, 6, dtype=torch.float64).T
    payload = torch.randn(3, 8, 6, dtype=torch.float64).permute(2, 1, 0)
    strided = torch.randn(6, 16, dtype=torch.float64)[:, ::2]
    for keys in (x, strided, x.flip(0), x[:1].expand(6, 8)):
        copy = keys.contiguous()
        assert torch.equal(op.sort(keys), op.sort(copy))
        assert torch.equal(op.route(keys, payload), op.route(copy, payload.contiguous()))
        assert torch.equal(op.hard_sort(keys)[1], op.hard_sort(copy)[1])
    leaf = torch.randn(2, 8, dtype=torch.float64, requires_grad=True)
    expanded = torch.ones(1, 1, 1, dtype=torch.float64).expand(2, 8, 8)
    (grad,) = torch.autograd.grad(op.sort_with_permutation(leaf)[1], leaf, expanded)
    torch.testing.assert_close(grad, torch.zeros_like(grad), rtol=0, atol=1e-9)


def test_steepness_none_is_twice_the_depth_and_tensors_act_as_floats():
    op = operator("bitonic", 8)
    x = torch.randn(3, 8)
    assert op.default_steepness == 12
    assert torch.equal(op.sort(x), op.sort(x, 12.0))
    assert torch.equal(op.sort(x), op.sort(x, 12))
    assert torch.equal(op.sort(x), op.sort(x, torch.tensor(12.0, dtype=torch.float64)))
    assert not torch.equal(op.sort(x), op.sort(x, 11.0))


def test_losses_of_a_zero_probability_are_cut():
    op = operator("bitonic", 8, FLOAT64, relaxation="hard")
    x = torch.arange(8.0, dtype=torch.float64, requires_grad=True)
    assert op.cross_entropy(x, torch.arange(8).flip(0)).item() == 80.0
    assert op.binary_cross_entropy(x, torch.arange(8).flip(0)).item() == 2 * 8 * 80 / 64
    assert op.cross_entropy(x, torch.arange(8)).item() == 0.0
    assert op.binary_cross_entropy(x, torch.arange(8)).item() == 0.0


def test_nan_spreads_and_never_hangs():
    op = operator("bitonic", 8)
    x = torch.randn(2, 8)
    x[0, 3] = torch.nan
    values, P = op.sort_with_permutation(x)
    assert values[0].isnan().all()
    assert not values[1].isnan().any()
    assert P[0].isnan().any()
    expected = oracle(op, x, op.default_steepness, routing="permutation")
    torch.testing.assert_close(values, expected[0], equal_nan=True)
    torch.testing.assert_close(P, expected[1], equal_nan=True)
    target = torch.arange(8).expand(2, 8)
    assert op.cross_entropy(x, target).isnan()
    assert op.binary_cross_entropy(x, target).isnan()
    assert operator("bitonic", 8, FLOAT64, relaxation="hard").sort(x.double())[0].isnan().all()


@SLOW
@pytest.mark.parametrize(
    ("sigmoid", "error_free"), [("logistic", False), ("cauchy", False), ("hard", False), ("logistic", True)]
)
def test_infinite_values_sort_exactly(sigmoid, error_free):
    op = operator("odd_even", 7, FLOAT64, relaxation=sigmoid, error_free=error_free)
    inf = torch.inf
    x = torch.tensor([[inf, 0.3, -inf, 1.2, inf, 0.4, 0.8]], dtype=torch.float64, requires_grad=True)
    values, P = op.sort_with_permutation(x, 1e3)
    expected, routed = oracle(op, x, 1e3, routing="permutation")
    torch.testing.assert_close(values, expected)
    assert torch.equal(values[0, [0, 5, 6]], torch.tensor([-inf, inf, inf], dtype=torch.float64))
    torch.testing.assert_close(
        values[0, 1:5], torch.tensor([0.3, 0.4, 0.8, 1.2], dtype=torch.float64), rtol=0, atol=0.02
    )
    torch.testing.assert_close(P, routed)
    for outs in ((values, P), (expected, routed)):
        (grad,) = torch.autograd.grad(
            (outs[1] * torch.arange(49.0).view(7, 7)).sum() + outs[0][0, 1:5].sum(), x
        )
        assert grad.isfinite().all()
        if outs[0] is values:
            ours = grad
    torch.testing.assert_close(ours, grad)


# A lane of a register is a sample for few wires, and a column of P for many.
@SLOW
@pytest.mark.parametrize(("n", "batch"), [(18, 40), (36, 1), (36, 3)])
def test_the_same_bits_twice_and_for_every_number_of_threads(n, batch):
    op = operator("bitonic", n, FLOAT32)
    x = torch.randn(batch, n, requires_grad=True)
    target = torch.stack([torch.randperm(n) for _ in range(batch)])
    upstream = torch.randn(batch, n, n)

    def run():
        values, P = op.sort_with_permutation(x, 20.0)
        loss = op.binary_cross_entropy(x, target, 20.0) + op.cross_entropy(x, target, 20.0)
        (grad,) = torch.autograd.grad((P * upstream).sum() + values.sum() + loss, x)
        return values, P, loss, grad, op.rank(x, 20.0)

    threads = torch.get_num_threads()
    try:
        results = []
        for count in (1, 2, 3, 1):
            torch.set_num_threads(count)
            results.append(run())
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@SLOW
@pytest.mark.parametrize(
    ("n", "size"), [pytest.param(3, 200, marks=pytest.mark.nightly("more networks are built")), (20, 150)]
)
def test_irregular_networks(n, size):
    """The networks exceed a codelet's length and wires, and have many shapes."""
    check_against_reference(
        nsc.compile(irregular(n, size, n), name=f"irregular_{n}", dtypes=FLOAT64, unproved=True)
    )


@pytest.mark.slow("kernels are built for other registers")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the flags are of x86")
@pytest.mark.parametrize(
    "flag",
    [pytest.param("-mno-avx512f", marks=pytest.mark.nightly("AVX2 serves where tests run")), "-mno-avx"],
)
def test_narrower_registers(flag, monkeypatch):
    """AVX2 and SSE2 run the same source with fewer lanes."""
    monkeypatch.setenv("NSC_CXX", f"g++ {flag}")
    # A process loads a kernel once: no other test uses this name.
    op = nsc.compile("bitonic", 18, name=f"narrow{flag.replace('-', '_')}", dtypes=FLOAT64)
    check_against_reference(op)
    assert flag in op.kernel.build().command


@SLOW
@pytest.mark.parametrize(
    ("n", "error_free", "dtypes"), [(5, False, FLOAT32), (5, True, FLOAT64), (18, False, FLOAT32)]
)
def test_a_samples_results_do_not_depend_on_its_company(n, error_free, dtypes):
    """The lanes of the keys pass are comparators of a single sample, and samples of a larger batch."""
    op, dtype = operator("bitonic", n, dtypes, error_free=error_free), getattr(torch, *dtypes)
    crowd = torch.randn(40, n, dtype=dtype)
    crowd[3, 1] = torch.inf  # its group takes the path for infinite values
    crowd[25, 2] = torch.nan
    ranks = torch.rand(40, n).argsort(-1)
    upstream, values_upstream = torch.randn(40, n, n, dtype=dtype), torch.randn(40, n, dtype=dtype)

    def results(rows):
        x = crowd[rows].clone().requires_grad_()
        steepness = torch.tensor(7.0, dtype=dtype, requires_grad=True)
        values, P = op.sort_with_permutation(x, steepness)
        total = (P * upstream[rows]).sum() + (values * values_upstream[rows]).sum()
        alone = torch.autograd.grad(op.sort(x, steepness), x, values_upstream[rows])[0]
        loss = torch.autograd.grad(op.cross_entropy(x, ranks[rows], steepness) * len(rows), x)[0]
        return values, P, torch.autograd.grad(total, x)[0], alone, loss

    whole = results(list(range(40)))
    for rows in ([0], [5], list(range(4, 20)), list(range(30, 40))):
        for in_whole, in_part in zip(whole, results(rows), strict=True):
            torch.testing.assert_close(in_part, in_whole[rows], rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_by_its_name(name):
    op = operator()
    x, target = torch.randn(2, 3, 8), torch.rand(2, 3, 8).argsort(-1)
    expected = op.loss(name, x, target, 2.0)
    if hasattr(op, name):  # some losses have a method of their own
        assert torch.equal(getattr(op, name)(x, target, 2.0), expected)
    module = nsc.nn.SortingNetwork(op, steepness=2.0)
    assert torch.allclose(module.loss(name, x, target), expected)


def test_an_unknown_loss_lists_the_known():
    op = operator()
    with pytest.raises(nsc.OperandError, match=rf"no loss 'hinge'; known: {', '.join(LOSSES)}"):
        op.loss("hinge", torch.randn(1, 8), torch.arange(8).unsqueeze(0))


def test_an_operator_has_its_network_and_proof(tmp_path):
    compiled = compile_network(Request("odd_even", 5, select=top_k(2)))
    operator = nsc.load(write(compiled.package, tmp_path))
    assert operator.network == compiled.network
    assert operator.proof == compiled.proof
    assert operator.network is operator.network
    assert nsc.compile("bitonic", 4).proof.sentence() == "sorts"


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def restated(files, old, new):
    """Return a package's files with another fact in manifest and source, which agree on all else."""
    texts = {name: text.replace(old, new) for name, text in files.items() if not name.endswith(".json")}
    manifest = json.loads(files["manifest.json"].replace(old, new))
    manifest["files"] |= {name: sha256(text) for name, text in texts.items()}
    return {**files, **texts, "manifest.json": json.dumps(manifest)}


def test_a_proof_of_something_else_is_refused():
    """Of another network, or of another property of this one, though manifest and source have its digest."""
    operator = nsc.compile("odd_even", 5, select=nsc.ranks(3, 4))
    files = dict(operator.kernel.files)
    for proof, message in (
        (nsc.compile("odd_even", 5).proof, r"proof\.json: the proof is of another network"),
        (
            nsc.verify(operator.network, property="top-1"),
            r"proof\.json is of top-1: compile the package again",
        ),
    ):
        text = proof.to_json()
        edited = restated(files, sha256(files["proof.json"]), sha256(text)) | {"proof.json": text}
        with pytest.raises(nsc.PackageError, match=message):
            nsc.Selector(edited).proof  # noqa: B018
    edited = restated(files, json.loads(files["manifest.json"])["network"], "0" * 64)
    with pytest.raises(nsc.PackageError, match=r"network\.json is not the manifest's network"):
        nsc.Selector(edited).network  # noqa: B018


@SLOW
def test_a_package_is_loaded_without_the_compiler(tmp_path):
    folder = write(compile_network(Request("odd_even", 5)).package, tmp_path)
    code = (
        "import sys, torch, nsc\n"
        f"operator = nsc.load({str(folder)!r})\n"
        "operator.sort(torch.randn(2, 5)), operator.cross_entropy(torch.randn(1, 5), torch.arange(5)[None])\n"
        "assert not [name for name in sys.modules if name.startswith('nsc.compiler')]\n"
        "assert operator.network.n == 5\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
