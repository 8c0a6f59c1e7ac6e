"""Catches results and gradients of DTensors, and of groups of processes, that differ from one process's.

Two processes show it by day. At night four do, on a mesh of two by two.
"""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from called import COLUMNS
from torch import Tensor
from world import World

import nsc
from nsc.nn import SortingNetwork

pytestmark = pytest.mark.slow("processes start, and import torch")

# Each process imports torch's compiler, and traces.
COMPILED = pytest.mark.nightly("torch compiles")
DOUBLE = torch.float64
close = functools.partial(torch.testing.assert_close, rtol=1e-10, atol=1e-12)
# Of rounding in float32, summed in another order.
near = functools.partial(torch.testing.assert_close, rtol=2e-5, atol=1e-6)


@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.nightly("four processes run"))])
def world(request, tmp_path_factory):
    with World(request.param, tmp_path_factory.mktemp("world")) as world:
        yield world


def random(*shape: int, seed: int = 0, dtype: torch.dtype = DOUBLE) -> Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def shared(tensor: Tensor, *placements: Any) -> Any:
    """Return a tensor, the same in all processes, as a DTensor on a mesh with an axis for each placement."""
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(tensor, mesh_of(len(placements)), list(placements))


@functools.cache
def mesh_of(axes: int = 1) -> Any:
    """Return a mesh of all processes, one for each number of axes: torch mixes up two that are equal."""
    from torch.distributed.device_mesh import init_device_mesh

    size = torch.distributed.get_world_size()
    return init_device_mesh("cpu", (size,) if axes == 1 else (size // 2, 2))


def total(results: tuple[Tensor, ...]) -> Tensor:
    return sum(each.square().sum() for each in results)


# Samples. Each function that a World runs is at the top of this file.


def check_column(key: str, batch: int, backend: str | None) -> None:
    from torch.distributed.tensor import Shard

    program, x = COLUMNS[key].program().double(), random(batch, *COLUMNS[key].shape[1:])
    leaf = x.clone().requires_grad_()
    expected = program(leaf)
    total(expected).backward()
    of_parameters = [each.grad for each in program.parameters()]
    program.zero_grad()
    called = program
    if backend is not None:
        torch._dynamo.reset()  # torch compiles one function, which all programs share, a few times alone
        called = torch.compile(program, fullgraph=True, backend=backend)
    sharded = shared(x, Shard(0)).requires_grad_()
    results = called(sharded)
    total(results).backward()
    for result, other in zip(results, expected, strict=True):
        close(result.full_tensor(), other)
    close(sharded.grad.full_tensor(), leaf.grad)
    close([each.grad for each in program.parameters()], of_parameters)


@pytest.mark.parametrize("key", COLUMNS)
def test_samples_of_processes_are_as_of_one(world, key):
    """Four processes have two, two, one and none of five samples. Gradients of parameters are summed."""
    world.run(check_column, key, 5, None)


def test_a_process_without_samples(world):
    world.run(check_column, "networks", 1, None)


@COMPILED
@pytest.mark.parametrize("key", COLUMNS)
def test_compiled_programs_of_samples(world, key):
    world.run(check_column, key, 4, "aot_eager")


def check_axes(dim: int, places: tuple[int, int], shape: tuple[int, ...]) -> None:
    """Compare results of a mesh of two axes, which cut two axes of x, or one twice."""
    from torch.distributed.tensor import Replicate, Shard

    x, n = random(*shape), shape[dim]
    op = nsc.compile("odd_even", n, dtypes=("float64",))
    kinds = [Replicate() if place is None else Shard(place) for place in places]
    sharded = shared(x, *kinds).requires_grad_()
    leaf = x.clone().requires_grad_()
    samples = [axis for axis in range(x.dim()) if axis != dim % x.dim()]
    lengths = torch.randint(n + 1, [shape[axis] for axis in samples])
    steepness = 1 + random(*lengths.shape, seed=1).abs()

    def of_samples(operand: Tensor) -> Any:
        along = [Shard(samples.index(place)) if place in samples else Replicate() for place in places]
        return shared(operand, *along)

    def results(x: Any, to: Any) -> tuple[Tensor, ...]:
        return (
            *op.sort_with_permutation(x, to(steepness), dim=dim, lengths=to(lengths)),
            *op.topk(x, 2, dim=dim),
            op.rank(x, dim=dim),
            op.hard_sort(x, dim).values,
            op.cross_entropy(
                x, relevance=x.detach().square(), dim=dim, lengths=to(lengths), reduction="none"
            ),
            op.cross_entropy(x, relevance=x.detach().square(), dim=dim, weight=to(steepness)),
            nsc.nn.functional.quantile(op, x, (0.2, 0.5), dim=dim),
            nsc.nn.functional.spearman_loss(op, x, x.detach().cos(), orders=2, dim=dim, lengths=to(lengths)),
        )

    expected, found = results(leaf, lambda operand: operand), results(sharded, of_samples)
    total(expected).backward()
    total(found).backward()
    for result, other in zip(found, expected, strict=True):
        close(result.full_tensor(), other)
    close(sharded.grad.full_tensor(), leaf.grad)


@pytest.mark.parametrize(
    ("dim", "places"),
    [
        *((-1, (0, 1)), (0, (1, 2)), (1, (0, 0)), (1, (2, None))),
        (-1, (2, 0)),  # the axis that is sorted is cut, and gathered
    ],
)
def test_any_axes_of_a_mesh(world, dim, places):
    world.run(check_axes, dim, places, (3, 5, 6))


def check_placements() -> None:
    """A target that is cut along another axis than x, and a steepness for each image or pixel."""
    from torch.distributed.tensor import Shard

    op, x, target = nsc.compile("bitonic", 8, dtypes=("float64",)), random(6, 8), random(6, 8, seed=1)
    ranks = target.argsort(-1).argsort(-1)
    close(
        op.cross_entropy(shared(x, Shard(0)), shared(ranks, Shard(1))).full_tensor(),
        op.cross_entropy(x, ranks),
    )
    median, images = nsc.compile_filter((1, 3)), random(5, 3, 4)
    for shape in ((5, 1, 1), (5, 3, 4), (4,)):
        steepness = 1 + random(*shape, seed=1).abs()
        sharded = median.relaxed(shared(images, Shard(0)), shared(steepness, Shard(0)))
        close(sharded.full_tensor(), median.relaxed(images, steepness))


def test_operands_of_other_placements(world):
    world.run(check_placements)


def check_refused() -> None:
    from torch.distributed.tensor import Shard

    op, x = nsc.compile("bitonic", 4), random(2, 4, dtype=torch.float32)
    target = x.argsort(-1).argsort(-1)
    sharded = shared(x, Shard(0))
    with pytest.raises(nsc.OperandTypeError, match="target is a plain tensor and x a DTensor: distribute"):
        op.cross_entropy(sharded, target)
    with pytest.raises(nsc.OperandTypeError, match="x is a plain tensor and another operand a DTensor"):
        op.cross_entropy(x, shared(target, Shard(0)))
    with pytest.raises(nsc.OperandError, match="dim must be in"):
        op.sort(sharded, dim=7)
    with pytest.raises(nsc.OperandTypeError, match=r"sort has no argument .steep.: it takes x"):
        op.sort(sharded, steep=2.0)
    with pytest.raises(nsc.OperandError, match="no loss 'hinge'"):
        op.loss("hinge", sharded, sharded)
    with pytest.raises(nsc.OperandTypeError, match=r"group must be a ProcessGroup, .* got str"):
        op.cross_entropy(x, target, group="all")
    group = torch.distributed.new_group([0])
    if torch.distributed.get_rank():
        with pytest.raises(nsc.OperandError, match="this process is not in the group"):
            op.cross_entropy(x, target, group=group)
    else:
        close(op.cross_entropy(x, target, group=group), op.cross_entropy(x, target))


def test_what_does_not_fit_is_refused(world):
    world.run(check_refused)


# Columns.


def operands(n: int, batch: int = 3) -> dict[str, dict[str, Any]]:
    """Return operands of losses of every form, by words."""
    torch.manual_seed(0)
    ranks = torch.randn(batch, n).argsort(-1).argsort(-1)
    lengths = torch.randint(n + 1, (batch,))
    lengths[0] = 0
    return {
        "ranks": {"target": ranks},
        "some ranks": {"target": torch.where(torch.rand(batch, n) < 0.3, ranks, -100)},
        "intervals": {"target": (ranks.clamp_max(n - 2), ranks.clamp_max(n - 2) + 1)},
        "relevance, lengths": {"relevance": torch.randint(5, (batch, n)), "lengths": lengths},
        "shares": {"target": torch.softmax(torch.randn(batch, n, n), -2)},
        "smoothing": {"target": ranks, "label_smoothing": 0.1},
        "weights of items": {"target": ranks, "weight": torch.rand(batch, n)},
        "weights of samples": {"target": ranks, "weight": torch.rand(batch), "reduction": "sum"},
        "none": {"target": ranks, "reduction": "none"},
    }


def losses_and_grads(op: Any, name: str, x: Tensor, options: dict[str, Any], **group: Any) -> list[Tensor]:
    """Return a loss, its gradients, and the gradient of their squares."""
    leaf = x.clone().requires_grad_()
    steepness = torch.tensor(7.0, dtype=x.dtype).requires_grad_()
    inputs = [leaf, steepness]
    if isinstance(target := options.get("target"), Tensor) and target.is_floating_point():
        inputs.append(target.to(x.dtype).requires_grad_())
        options = options | {"target": inputs[-1]}
    loss = op.loss(name, leaf, steepness=steepness, **options, **group)
    grads = torch.autograd.grad(loss.square().sum(), inputs, create_graph=True)
    second = torch.autograd.grad(sum(each.square().sum() for each in grads), leaf)
    return [each.detach() for each in (loss, *grads, *second)]


def check_group(family: str, n: int, name: str, words: str) -> list[Tensor]:
    op, x = nsc.compile(family, n, dtypes=("float64",)), random(3, n)
    options = operands(n)[words]
    expected = losses_and_grads(op, name, x, options)
    found = losses_and_grads(op, name, x, options, group=torch.distributed.group.WORLD)
    for each, other in zip(found, expected, strict=True):
        torch.testing.assert_close(each, other, rtol=1e-7, atol=1e-9)
    return found


@pytest.mark.parametrize("words", operands(4))
def test_processes_of_a_group_share_out_the_columns_of_a_loss(world, words):
    """The second derivatives are those of the plain reference. The bits are the same in all processes."""
    for name in ("cross_entropy", "binary_cross_entropy"):
        first, *others = world.run(check_group, "odd_even", 7, name, words)
        for other in others:
            assert all(map(torch.equal, first, other))


def check_parted() -> list[Tensor]:
    op = nsc.compile("bitonic", 256)
    x, scores = random(2, 256, dtype=torch.float32), random(2, 256, seed=1, dtype=torch.float32)
    shares = torch.softmax(random(2, 256, 256, seed=2, dtype=torch.float32), -2)
    found = []
    for target in (scores.argsort(-1).argsort(-1), shares, shares.clone().requires_grad_()):
        results = []
        for group in ({}, {"group": torch.distributed.group.WORLD}):
            leaf = x.clone().requires_grad_()
            inputs = [leaf, target] if target.requires_grad else [leaf]
            loss = op.cross_entropy(leaf, target, 20.0, **group)
            results.append([loss.detach(), *torch.autograd.grad(loss, inputs)])
        near(results[1], results[0])
        found += results[1]
    return found


def halves_of_a_process(n: int) -> set[int]:
    """Return the halves of the wires in which this process has columns."""
    from nsc.operators import sharding

    own = sharding._own_columns(torch.distributed.group.WORLD, n, torch.device("cpu"))
    return set((own.nonzero().flatten() // (n // 2)).tolist())


def test_the_same_number_of_processes_gives_the_same_bits(world):
    """Of a network whose last merge is taken apart, by stripes of columns."""
    first, again = world.run(check_parted), world.run(check_parted)
    for other in (*first, *again):
        assert all(map(torch.equal, first[0], other))


def test_columns_of_a_process_are_in_one_half_of_the_wires(world):
    """So a process finds the products of a last merge for one half alone."""
    found = sorted(map(sorted, world.run(halves_of_a_process, 256)))
    assert found == [[half] for half in (0, 1) for _ in range(len(found) // 2)]


def check_lists(of_x: int | None, of_target: int | None, backend: str | None) -> None:
    """A list that is spread over processes: scores, targets or both along the sorted axis."""
    from torch.distributed.tensor import Replicate, Shard

    op, x = nsc.compile("odd_even_merge", 50, dtypes=("float64",)), random(3, 50)
    target = random(3, 50, seed=1).argsort(-1).argsort(-1)
    leaf = x.clone().requires_grad_()
    expected = op.cross_entropy(leaf, target, 7.0)
    expected.backward()

    def loss(x: Any, target: Any) -> Any:
        return op.cross_entropy(x, target, 7.0)

    if backend is not None:
        loss = torch.compile(loss, fullgraph=True, backend=backend)
    placed = [Replicate() if place is None else Shard(place) for place in (of_x, of_target)]
    sharded = shared(x, placed[0]).requires_grad_()
    found = loss(sharded, shared(target, placed[1]))
    found.backward()
    close(found.full_tensor(), expected)
    assert sharded.grad.placements == (placed[0],)
    close(sharded.grad.full_tensor(), leaf.grad)


@pytest.mark.parametrize("backend", [None, pytest.param("aot_eager", marks=COMPILED)])
@pytest.mark.parametrize(("of_x", "of_target"), [(1, 1), (None, 1), (1, None)])
def test_lists_spread_over_processes(world, of_x, of_target, backend):
    world.run(check_lists, of_x, of_target, backend)


def check_payload() -> None:
    from torch.distributed.tensor import Replicate, Shard

    op, x, payload = nsc.compile("bitonic", 8, dtypes=("float64",)), random(3, 8), random(3, 8, 5, seed=1)
    leaf, rows = x.clone().requires_grad_(), payload.clone().requires_grad_()
    expected = op.route(leaf, rows)
    expected.square().sum().backward()
    sharded, columns = shared(x, Replicate()).requires_grad_(), shared(payload, Shard(2)).requires_grad_()
    found = op.route(sharded, columns)
    found.square().sum().backward()
    assert found.placements == columns.grad.placements == (Shard(2),)
    for each, other in ((found, expected), (sharded.grad, leaf.grad), (columns.grad, rows.grad)):
        close(each.full_tensor(), other)


def test_columns_of_a_payload_spread_over_processes(world):
    world.run(check_payload)


# Modules.


def check_fsdp() -> None:
    """A model of FSDP2, whose scores are of this process's samples, against the same model on all samples."""
    from torch.distributed.fsdp import fully_shard

    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    x, target = random(4, 6), random(4, 6, seed=1).argsort(-1).argsort(-1)

    def model() -> torch.nn.Module:
        torch.manual_seed(0)
        return torch.nn.ModuleDict(
            {
                "scores": torch.nn.Linear(6, 6, dtype=DOUBLE),
                "sorting": SortingNetwork("odd_even", 6, learnable=True, dtypes=("float64",)).double(),
            }
        )

    def loss(model: Any, x: Tensor, target: Tensor) -> Tensor:
        return model["sorting"].cross_entropy(model["scores"](x), target)

    whole = model()
    loss(whole, x, target).backward()
    parts = model()
    for part in parts.values():
        fully_shard(part, mesh=mesh_of())
    torch.distributed.fsdp.register_fsdp_forward_method(parts["sorting"], "cross_entropy")
    own = slice(rank * 4 // size, (rank + 1) * 4 // size)
    loss(parts, x[own], target[own]).backward()
    for one, other in zip(parts.parameters(), whole.parameters(), strict=True):
        close(one.grad.full_tensor(), other.grad)


@pytest.mark.nightly("each process imports FSDP")
def test_fsdp_with_a_learnable_steepness(world):
    world.run(check_fsdp)


def test_a_large_mesh_without_its_processes():
    """Shapes and placements on 4 × 8 processes, of a group that sends nothing."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", store=FakeStore(), rank=3, world_size=32)
    try:
        mesh = init_device_mesh("cpu", (4, 8))
        op = nsc.compile("bitonic", 4)
        x = DTensor.from_local(torch.randn(2, 1, 4), mesh, [Shard(0), Shard(1)]).requires_grad_()
        values, permutation = op.sort_with_permutation(x)
        assert (x.shape, values.shape, permutation.shape) == ((8, 8, 4), (8, 8, 4), (8, 8, 4, 4))
        assert values.placements == permutation.placements == (Shard(0), Shard(1))
        op.cross_entropy(x, x.detach().argsort(-1).argsort(-1)).backward()
        assert x.grad.placements == (Shard(0), Shard(1))
    finally:
        torch.distributed.destroy_process_group()
