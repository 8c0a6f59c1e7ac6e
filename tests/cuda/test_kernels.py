"""The CUDA kernels, run on the CPU, against the plain torch reference: every operator, every relaxation."""

from __future__ import annotations

import functools
import re

import pytest
import torch
from device import BATCH, ROUTED, SHARED_BYTES, TOLERANCE, Device, irregular, targets
from machine import ORDERS, LaunchError

from nsc import library
from nsc.compiler.driver import compile_network
from nsc.compiler.network import Network
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.relaxed import levels
from nsc.compiler.request import Request
from nsc.compiler.schedule.cutting import STRAIGHT_LINE
from nsc.compiler.selection import ranks
from nsc.contract.routings import IGNORED, LOSSES, ROUTINGS
from nsc.errors import BuildError, OperandError
from nsc.runtime.relaxed import cuda, reference
from nsc.runtime.relaxed.call import Call, is_loss
from nsc.runtime.relaxed.kernel import Kernel

NETWORKS = [
    (Network.from_layers(1, []), 1, "float64"),
    (Network.from_layers(2, [[(0, 1)]]), 2, "float32"),
    ("odd_even", 3, "float64"),
    ("odd_even", 5, "float32"),
    ("bitonic", 8, "float64"),
    ("bitonic", 16, "float32"),
    (irregular(33), 33, "float64"),
    ("bitonic", 64, "float32"),
    ("odd_even_merge", 136, "float64"),
    ("bitonic", 256, "float32"),
]
# Kernels of more wires run on the CPU for seconds.
MOST_QUICK_WIRES = 7
SLOW = pytest.mark.slow("kernels run on the CPU")
NIGHTLY = pytest.mark.nightly("more sizes run on the CPU")
# From this many wires on, fewer routings are tested.
MANY_WIRES = 128
# Their widths are between others', or test_a_tile_of_several_warps takes the same way.
NIGHTLY_WIRES = (5, 33, 64, 136, 256)
# Up to this many wires all shapes have straight-line code here.
MOST_STRAIGHT_WIRES = 32
FEWER = [
    ("permutation", 0),
    ("transposed", 1),
    ("rows", 2),
    ("cross_entropy", 0),
    ("cross_entropy_of_intervals", 0),
    ("binary_cross_entropy_of_shares", 0),
]


@pytest.mark.parametrize(
    ("network", "n", "dtype"),
    [
        pytest.param(
            *each,
            id=f"{each[1]}-{each[2]}",
            marks=NIGHTLY if each[1] in NIGHTLY_WIRES else [SLOW] if each[1] > MOST_QUICK_WIRES else [],
        )
        for each in NETWORKS
    ],
)
def test_every_operator(device, network, n, dtype):
    # Some shapes run from their table, as those of large irregular networks do.
    tested = device(network, n, dtype=dtype, straight_line=STRAIGHT_LINE if n <= MOST_STRAIGHT_WIRES else 40)
    for number, (routing, columns) in enumerate(ROUTED if n < MANY_WIRES else FEWER):
        tested.program.order = list(ORDERS)[number % len(ORDERS)]
        tested.check(routing, columns, batch=BATCH if n < MANY_WIRES else 1)


@SLOW
@pytest.mark.usefixtures("wide_blocks")
def test_a_tile_of_several_warps(device):
    tested = device("odd_even_merge", 40, straight_line=40)
    assert (tested.kernel.launch.tile_threads, tested.kernel.launch.sample_threads) == (64, 64)
    for number, (routing, columns) in enumerate(FEWER):
        tested.program.order = list(ORDERS)[number % len(ORDERS)]
        tested.check(routing, columns, batch=2)


@pytest.mark.nightly("1,024 wires run for a minute")
def test_the_shipped_form_of_1024_wires(monkeypatch):
    request = Request("bitonic", 1024, targets=("cuda",))
    shipped = Device(monkeypatch, request)
    shipped.check("permutation", 0, batch=1)
    shipped.check("cross_entropy", 0, batch=1)


@SLOW
@pytest.mark.parametrize(
    ("network", "n", "dtype"),
    [
        ("bitonic", 8, "float32"),
        ("bitonic", 128, "float32"),
        pytest.param("odd_even_merge", 136, "float64", marks=NIGHTLY),
    ],
    ids=["a warp", "a merge", "a block"],
)
def test_losses_where_scores_lie_far_apart(tabled, network, n, dtype):
    """Most logarithms are of tails, some are cut; the first target is right, so its entries are near 1."""
    tested = tabled(network, n, dtype=dtype)
    x = 3 * torch.randn(3, n, dtype=tested.dtype)
    order = torch.stack([torch.randperm(n) for _ in x])
    order[0] = x[0].argsort().argsort()
    draw = torch.Generator().manual_seed(3)
    wide = x.double().requires_grad_()
    steepness = torch.tensor(16.0, dtype=tested.dtype).expand(len(x))
    of_all = [name for name, routing in ROUTINGS.items() if routing.is_loss]
    for loss in ["cross_entropy"] if tested.kernel.launch.merge_layers else of_all:
        target = targets(loss, n, len(x), tested.dtype, draw, order)
        losses, x_grad, _, _ = cuda.loss(Call.of(x, steepness, target, loss, tested.kernel.spec))
        of_wide = target.double() if target.is_floating_point() else target
        expected = reference.relax(tested.kernel, wide, steepness.double(), of_wide, loss)[1]
        (grad,) = torch.autograd.grad(expected.sum(), wide)
        rtol = 1e-3 if dtype == "float32" else 1e-9
        torch.testing.assert_close(losses.double(), expected.detach(), rtol=rtol, atol=0)
        assert ((x_grad - grad).norm(dim=1) <= rtol * grad.norm(dim=1)).all(), loss
        upstream = torch.tensor([2.0**-60, 1.0, 2.0**40], dtype=tested.dtype)
        scaled, *_ = cuda.relax_backward(
            Call.of(x, steepness, target, loss, tested.kernel.spec), None, upstream
        )
        tiny = torch.finfo(tested.dtype).tiny
        torch.testing.assert_close(scaled, upstream[:, None] * x_grad, rtol=1e-5, atol=tiny)


@SLOW
@pytest.mark.parametrize(
    ("n", "dtype", "shared_bytes"),
    [
        (64, "float64", SHARED_BYTES),
        pytest.param(128, "float64", 5 * 128 * 8, marks=NIGHTLY),
        pytest.param(256, "float32", SHARED_BYTES, marks=NIGHTLY),
    ],
    ids=["a warp", "fewer columns than a warp takes", "a block"],
)
def test_a_merge_that_is_taken_apart(tabled, monkeypatch, n, dtype, shared_bytes):
    """By losses that ask for one entry of each column; a wrong rank gives NaN."""
    monkeypatch.setattr(levels, "FEWEST_PARTED", 64)
    tested = tabled("bitonic", n, dtype=dtype, shared_bytes=shared_bytes)
    assert tested.kernel.launch.merge_layers == n.bit_length() - 1
    launches, launch = [], tested.program.launch
    tested.program.launch = lambda name, *rest: launches.append((name, rest[-1])) or launch(name, *rest)
    # Almost all entries of P are large; there float32 loses digits of the gradient next to ties.
    tested.steepness = 30.0 if dtype == "float64" else 3.0
    tested.check("cross_entropy", 0, batch=2)
    suffix = "f32" if dtype == "float32" else "f64"
    assert any(name == f"nsc_sum_{suffix}" and arguments[-1] for name, arguments in launches)
    launches.clear()
    for loss in ("binary_cross_entropy", "cross_entropy_of_intervals"):
        tested.check(loss, 0, batch=1)
    assert not any(name == f"nsc_sum_{suffix}" and arguments[-1] for name, arguments in launches)
    x, steepness, target = tested.inputs("cross_entropy", 0, 2)
    for wrong in (n, -1, int(target[0, 0])):
        target[0, 1] = wrong
        losses, x_grad, *_ = cuda.loss(Call.of(x, steepness, target, "cross_entropy", tested.kernel.spec))
        assert losses.isnan().tolist() == [True, False]
        assert x_grad.isnan().any(1).tolist() == [True, False]


@SLOW
@pytest.mark.parametrize(
    ("network", "n", "dtype"),
    [("bitonic", 128, "float32"), pytest.param("odd_even_merge", 136, "float64", marks=NIGHTLY)],
    ids=["a merge", "a block"],
)
def test_a_loss_leaves_out_columns_that_do_not_count(tabled, network, n, dtype):
    """NaN in a sample of which nothing counts is not looked at; of another, a few columns count."""
    tested = tabled(network, n, dtype=dtype)
    x, steepness, _ = tested.inputs("cross_entropy", 0, 3)
    x[1, 5] = torch.nan
    ranks = torch.rand(3, n, generator=torch.Generator().manual_seed(4)).argsort(-1)
    ranks[1], ranks[0, 3:], ranks[2, : n - 2] = IGNORED, IGNORED, IGNORED
    intervals = torch.stack([ranks.clamp_min(0), ranks.clamp_min(0), ranks != IGNORED], 1).to(tested.dtype)
    for loss, target in (
        ("cross_entropy", ranks),
        ("cross_entropy_of_intervals", intervals),
        ("binary_cross_entropy", ranks),
    ):
        losses, x_grad, steepness_grad, _ = cuda.loss(Call.of(x, steepness, target, loss, tested.kernel.spec))
        alone = cuda.relax(Call.of(x, steepness, target, loss, tested.kernel.spec))[1]
        torch.testing.assert_close(alone, losses)
        assert losses[1] == 0
        counted = torch.tensor([0, 2])
        leaf = x[counted].requires_grad_()
        of_counted = steepness[counted].clone().requires_grad_()
        expected = reference.relax(tested.kernel, leaf, of_counted, target[counted], loss)[1]
        grads = torch.autograd.grad(expected.sum(), (leaf, of_counted))
        for found, wanted in zip((losses, x_grad, steepness_grad), (expected, *grads), strict=True):
            torch.testing.assert_close(found[counted], wanted.detach(), **TOLERANCE[tested.dtype])


def test_both_languages_agree_which_losses_ask_for_one_entry():
    """Python allots memory by what the kernels will do."""
    text = library.text("nsc/relaxed/losses.h")
    for name, loss in LOSSES.items():
        (of_truth,) = re.findall(rf"struct {name} {{\s*static constexpr bool of_truth = (\w+);", text)
        assert (of_truth == "true") == (not loss.by_rank), name


def test_the_error_free_form_keeps_its_merge():
    request = Request("bitonic", 128, Relaxation(error_free=True), targets=("cuda",), unproved=True)
    kernel = Kernel(compile_network(request).package.files)
    assert kernel.launch.merge_layers == 0


@SLOW
def test_some_ranks_alone(tabled):
    tested = tabled("bitonic", 8, select=ranks(7, 0, 3))
    for routing, columns in (("none", 0), ("route", 33), ("rows", 2)):
        tested.check(routing, columns)


@SLOW
@pytest.mark.parametrize(
    ("sigmoid", "art_lambda", "error_free"),
    [
        ("cauchy", 0.25, False),
        ("optimal", 0.5, False),
        ("hard", 0.0, False),
        ("gaussian", 0.4, True),
        ("reciprocal", 0.75, False),
    ],
)
def test_relaxations(device, sigmoid, art_lambda, error_free):
    dtype = "float64" if error_free else "float32"
    tested = device("odd_even", 3, Relaxation(sigmoid, art_lambda, error_free), dtype)
    for routing in ("permutation", "cross_entropy", "binary_cross_entropy_of_shares"):
        tested.check(routing, 0)


@SLOW
def test_tiles_narrower_than_a_warp(tabled):
    """A device with less shared memory has several teams of threads in a warp."""
    tested = tabled(irregular(40), 40, dtype="float32", shared_bytes=33 * 40 * 8)
    assert tested.program.launches.tile_lanes == 8
    for routing, columns in (("permutation", 0), ("transposed", 3), ("cross_entropy", 0)):
        tested.program.order = "shuffled"
        tested.check(routing, columns, batch=3)


def test_a_column_that_fits_no_block(device):
    with pytest.raises(
        BuildError, match=r"the narrowest tile on 128 wires takes 4,096 bytes .* has 4,000: use"
    ):
        device("bitonic", 128, shared_bytes=4000)


def test_the_same_bits_whatever_the_device_and_the_company(tabled, monkeypatch):
    tested = tabled("bitonic", 64, dtype="float32")

    def bits(batch=BATCH):
        inputs = tested.inputs("permutation", 0, BATCH)
        x, steepness, _ = (t if t is None else t[:batch] for t in inputs)
        grad = torch.ones(batch, 64, 64).cumsum(-1)
        spec = tested.kernel.spec
        grads = cuda.relax_backward(Call.of(x, steepness, None, "permutation", spec), None, grad)
        return [*cuda.relax(Call.of(x, steepness, None, "permutation", spec)), *grads[:2]]

    first = bits()
    for blocks, order, scratch in (
        (1, "descending", 1),
        (100, "shuffled", cuda.SCRATCH_BYTES),
        (2, "ascending", 1 << 15),
    ):
        tested.program.blocks, tested.program.order = blocks, order
        monkeypatch.setattr(cuda, "SCRATCH_BYTES", scratch)
        assert all(map(torch.equal, bits(), first))
    assert all(torch.equal(actual, expected[:2]) for actual, expected in zip(bits(2), first, strict=True))


def test_infinities_ties_and_nan(device):
    for error_free in (False, True):
        tested = device("bitonic", 4, Relaxation(error_free=error_free))
        x = torch.tensor(
            [
                [torch.inf, 1, -torch.inf, 2],
                [torch.inf, torch.inf, 0, -torch.inf],
                [1, 1, 2, 2],
                [0, torch.nan, 1, 2],
                [1e308, -1e308, 0, 1],
            ],
            dtype=torch.float64,
        )
        steepness = torch.tensor(2.0, dtype=torch.float64).expand(len(x))
        spec = tested.kernel.spec
        actual = cuda.relax(Call.of(x, steepness, None, "permutation", spec))
        expected = reference.relax(tested.kernel, x, steepness, None, "permutation")
        for a, b in zip(actual, expected, strict=True):
            torch.testing.assert_close(a, b, equal_nan=True, **TOLERANCE[torch.float64])
        leaf = x.clone().requires_grad_()
        P = reference.relax(tested.kernel, leaf, steepness, None, "permutation")[1]
        grad = torch.arange(16.0, dtype=torch.float64).reshape(4, 4).expand(len(x), 4, 4)
        (P * grad).sum().backward()
        x_grad = cuda.relax_backward(Call.of(x, steepness, None, "permutation", spec), None, grad)[0]
        finite = [0, 1, 2, 4]
        torch.testing.assert_close(x_grad[finite], leaf.grad[finite], **TOLERANCE[torch.float64])
        assert x_grad[3].isnan().any()


def wrong_targets():
    """Return losses of eight items, each with a wrong target."""
    ranks = torch.arange(8)
    ones = torch.ones(8, dtype=torch.float64)
    for loss in ("cross_entropy", "binary_cross_entropy"):
        for item, wrong in ((4, 3), (4, 2**60), (2, -1), (0, 8), (1, -99)):
            yield loss, torch.where(ranks == item, wrong, ranks)
        intervals, shares = f"{loss}_of_intervals", f"{loss}_of_shares"
        for row, wrong in (
            *((0, each) for each in (-1.0, 1.5, 4.0, torch.nan)),
            *((1, each) for each in (1.0, 8.0, 2.5, 1e300, torch.inf)),
            *((2, each) for each in (-1.0, torch.inf, torch.nan)),
        ):
            target = torch.stack([ranks.clamp_max(3).double(), ranks.clamp_min(3).double(), ones])
            target[row, 2] = wrong
            yield intervals, target
        for row, wrong in (
            *((1, each) for each in (-0.1, 1.1, torch.inf, torch.nan)),
            *((8, each) for each in (-1.0, torch.inf, torch.nan)),
        ):
            target = torch.full((9, 8), 0.125, dtype=torch.float64)
            target[row, 2] = wrong
            yield shares, target


@SLOW
def test_what_makes_no_sense_gives_nan(tabled):
    """A check on the host would have to wait for the device."""
    tested = tabled("bitonic", 8)
    x, steepness, _ = tested.inputs("none", 0)
    spec = tested.kernel.spec
    for bad in (0.0, -1.0, torch.inf, torch.nan):
        one_bad = torch.cat([steepness[1:], steepness.new_tensor([bad])])
        values, P = cuda.relax(Call.of(x, one_bad, None, "permutation", spec))
        assert P[-1].isnan().all()
        assert values[-1].isnan().all()
        assert not P[:-1].isnan().any()
    for routing, wrong in wrong_targets():
        target = tested.inputs(routing, 0)[2]
        of_samples = torch.cat([target[1:], wrong[None]])
        losses, x_grad, steepness_grad, _ = cuda.loss(Call.of(x, steepness, of_samples, routing, spec))
        alone = cuda.relax(Call.of(x, steepness, of_samples, routing, spec))[1]
        for result in (losses, x_grad, steepness_grad, alone):
            assert result[-1].isnan().any(), (routing, wrong)
            assert not result[:-1].isnan().any(), (routing, wrong)
    ranks = torch.tensor([7, 8]).expand(BATCH, -1)
    rows = cuda.relax(Call.of(x, steepness, ranks, "rows", spec))[1]
    assert rows[..., 1].isnan().all()
    assert not rows[..., 0].isnan().any()


def test_no_samples_no_columns_and_one_payload_for_all(tabled):
    tested = tabled("bitonic", 8)
    spec = tested.kernel.spec
    x, steepness, payload = tested.inputs("route", 3)
    routed = cuda.relax(Call.of(x, steepness, payload[..., :0], "route", spec))[1]
    assert routed.shape == (BATCH, 8, 0)
    grads = cuda.relax_backward(Call.of(x, steepness, payload[..., :0], "route", spec), None, routed)
    assert not grads[0].any()
    expected = cuda.relax(Call.of(x, steepness, payload, "route", spec))[1]
    one_for_all = cuda.relax(Call.of(x, steepness, payload[:1].expand(BATCH, -1, -1), "route", spec))[1]
    assert torch.equal(one_for_all[0], expected[0])
    tested.program.launch = lambda *_: pytest.fail("nothing is to be launched")
    none = cuda.relax(Call.of(x[:0], steepness[:0], payload[:0], "route", spec))
    assert [tuple(t.shape) for t in none] == [(0, 8), (0, 8, 3)]


def across(tensor):
    """Return the same numbers, which lie in memory with the last axis first."""
    return tensor.movedim(-1, 0).contiguous().movedim(0, -1)


def misplaced(tensor):
    """Return the same numbers, one number behind an aligned address."""
    return torch.cat([tensor.new_zeros(1), tensor.flatten()])[1:].view(tensor.shape)


@pytest.mark.parametrize(("routing", "columns"), ROUTED)
def test_operands_may_lie_anywhere_and_be_empty(tabled, routing, columns):
    tested = tabled("bitonic", 8, dtype="float32")
    x, steepness, payload = tested.inputs(routing, columns + columns % 2)

    def results(x, steepness, payload, placed):
        payload = None if payload is None else placed(payload)
        call = Call.of(placed(x), steepness, payload, routing, tested.kernel.spec)
        found = cuda.relax(call)
        upstream = [None if each is None else placed(each.cumsum(-1)) for each in found]
        grads = cuda.relax_backward(call, *upstream)
        losses = cuda.loss(call) if is_loss(routing) else ()
        return [each for each in (*found, *grads, *losses) if each is not None]

    expected = results(x, steepness.contiguous(), payload, torch.clone)
    for placed in (across, misplaced):
        assert all(map(torch.equal, results(x, steepness, payload, placed), expected))
    empty = results(x[:0], steepness[:0], None if payload is None else payload[:0], torch.clone)
    assert [each.shape for each in empty] == [(0, *each.shape[1:]) for each in expected]


def test_more_samples_than_32_bits_count(tabled):
    """Only sorted values take no scratch memory: one launch takes a whole batch."""
    tested = tabled("bitonic", 8)
    x, steepness, _ = tested.inputs("none", 0, batch=16)
    expected, values = (
        cuda.relax(Call.of(x, steepness, None, "none", tested.kernel.spec))[0],
        torch.zeros_like(x),
    )
    assert tested.program.launches.blocks["nsc_keys_f64"].items == len(x)
    tested.program.launch("nsc_keys_f64", 1, ((1 << 32) + 3, x, steepness, 0, None, 0, values, None))
    assert torch.equal(values, expected)


def test_more_columns_than_32_bits_count(tabled):
    tested = tabled("bitonic", 8)
    x, steepness, payload = tested.inputs("route", 1, batch=1)
    wide = payload.expand(-1, -1, cuda.MOST_COLUMNS + 1)  # one number in memory
    for call in (
        lambda: cuda.relax(Call.of(x, steepness, wide, "route", tested.kernel.spec)),
        lambda: cuda.relax_backward(Call.of(x, steepness, wide, "route", tested.kernel.spec), None, wide),
    ):
        with pytest.raises(OperandError, match=r"134,217,728 columns, .* at most 134,217,727: pass them in"):
            call()


# ---------------------------------------------------------------------------------------- barriers

NIGHTLY_BARRIER = pytest.mark.nightly("each barrier is taken out")
# A call of a barrier in the library of headers; how many there are, and one whose lack shows quickly.
BARRIER = re.compile(r"(?<![\w:])(?:Tile<Plan, real>::wait|share\.wait|wait|__syncwarp|__syncthreads)\(\);")
BARRIERS, QUICK_BARRIER = 24, 13
# One warp a tile, several, and tiles so narrow that a task has several slices: type, wires, shared memory and
# batch. A barrier that all of them can do without is one too many.
PLACES = {
    "a warp": ("float32", 48, 227 << 10, 3),
    "a block": ("float64", 136, 227 << 10, 2),
    "a merge": ("float32", 128, 227 << 10, 1),
    "slices": ("float64", 136, 5 * 136 * 8, 1),
}


def without_barrier(number, source):
    places = list(BARRIER.finditer(source))
    assert len(places) == BARRIERS
    return source[: places[number].start()] + ";" + source[places[number].end() :]


@SLOW
@pytest.mark.parametrize(
    "number",
    [pytest.param(each, marks=[] if each == QUICK_BARRIER else NIGHTLY_BARRIER) for each in range(BARRIERS)],
)
def test_a_missing_barrier_is_a_race(monkeypatch, number):

    def run():
        for dtype, n, shared_bytes, batch in PLACES.values():
            request = Request(
                "bitonic", n, dtypes=(dtype,), targets=("cuda",), unproved=True, straight_line=0
            )
            edit = functools.partial(without_barrier, number)
            device = Device(monkeypatch, request, shared_bytes=shared_bytes, edit=edit)
            # A block has several tasks, and some entries of P are large: the rest of their columns is read.
            device.steepness, device.program.blocks = 10.0, 1
            for routing, columns in ROUTED:
                device.check(routing, columns, batch)
            x, steepness, target = device.inputs("cross_entropy", 0, batch)
            wrong = torch.where(torch.arange(n) < 2, n, target[:, 2:3])
            cuda.relax(Call.of(x, steepness, wrong, "cross_entropy", device.kernel.spec))

    with pytest.raises(LaunchError, match=r"a race|nobody wrote"):
        run()
