"""Catches sizes, size classes and lists whose results differ from one network's on padded values."""

from __future__ import annotations

import inspect
import pickle
import warnings

import pytest
import torch
from called import LOSSES_AND_STATISTICS, METHODS
from torch.nn.utils.rnn import PackedSequence, pack_sequence

import nsc
from nsc.compiler.passes import first_wires
from nsc.errors import LoweringError, NetworkError, OperandError
from nsc.operators import classes
from nsc.runtime.relaxed import reference

DOUBLE = torch.float64


def made_of(method, op, x, **lists):
    """Return what a method gives, and the gradient of a sum of it."""
    leaf = x.clone().requires_grad_()
    result = METHODS[method](op, leaf, **lists)
    return result.detach(), torch.autograd.grad(result.cos().sum(), leaf)[0]


@pytest.mark.parametrize("network", ["bitonic", "odd_even", "odd_even_merge", "pairwise"])
def test_the_first_wires_do_what_the_network_does_with_infinite_others(network):
    op = nsc.compile(network, 16, dtypes="float64")
    for count in (1, 2, 5, 9, 16):
        part = nsc.compile(first_wires(op.network, count), dtypes="float64")
        x = torch.randn(3, count, dtype=DOUBLE)
        steepness = torch.full((3,), 5.0, dtype=DOUBLE)
        padded = torch.nn.functional.pad(x, (0, 16 - count), value=torch.inf)
        values, p = reference.relax(op.kernel, padded, steepness, None, "permutation")
        torch.testing.assert_close(part.sort(x, 5.0), values[:, :count])
        torch.testing.assert_close(part.sort_with_permutation(x, 5.0)[1], p[:, :count, :count])


@pytest.mark.parametrize("method", [name for name in METHODS if name != "ranks"])
@pytest.mark.parametrize("kind", ["lengths", "mask"])
def test_size_classes_give_what_the_whole_network_gives(method, kind, monkeypatch):
    op = nsc.compile("bitonic", 40, dtypes="float64")
    x = torch.randn(41, 40, dtype=DOUBLE)
    lists = {"lengths": torch.arange(41).roll(7)}
    if kind == "mask":
        lists = {"mask": torch.rand(41, 40) < torch.linspace(0, 1, 41).unsqueeze(-1)}
    whole = made_of(method, op, x, steepness=2.0, **lists)
    used = []
    run_by_class = classes._cut

    def spy(*arguments):
        used.append(list(run_by_class(*arguments)))
        return iter(used[-1])

    monkeypatch.setattr(classes, "_WORTH", -1)
    monkeypatch.setattr(classes, "_cut", spy)
    cut = made_of(method, op, x, steepness=2.0, **lists)
    assert len(used[0]) > 3
    torch.testing.assert_close(cut, whole)


def test_a_class_that_does_not_pay_joins_the_next():
    kernel = nsc.compile("bitonic", 40).kernel
    counts = torch.tensor([3] * 2 + [40] * 30 + [20] * 500)
    places = dict(classes._cut(kernel, counts, "permutation"))
    assert list(places) == [24, 40]
    assert places[24].tolist() == [0, 1, *range(32, 532)]
    assert list(classes._cut(kernel, counts[:0], "permutation")) == []


@pytest.mark.parametrize("m", [1, 7, 8, 13])
@pytest.mark.parametrize("method", METHODS)
def test_any_number_of_values_is_sorted_by_the_next_size(method, m):
    sorters = nsc.compile_sizes("odd_even_merge", 20, dtypes="float64")
    x = torch.randn(3, m, dtype=DOUBLE)
    result, grad = made_of(method, sorters, x, steepness=3.0)
    size = sorters.sorter(m).n
    assert size == min(each for each in (8, 12, 16, 20) if each >= m)
    padded = torch.nn.functional.pad(x, (0, size - m), value=9.0)
    lengths = torch.full((3,), m)
    expected, of_all = made_of(method, sorters.sorter(m), padded, steepness=3.0, lengths=lengths)
    if method not in ("topk", "ranks", "relevance", "shares"):
        expected = expected[:, :m]
    if method in ("sort_with_permutation", "topk"):
        expected = expected[..., :m]
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(grad, of_all[:, :m])


def test_sizes_have_all_methods_of_a_sorter():
    public = [
        {name for name, value in vars(kind).items() if inspect.isfunction(value) and name[0] != "_"}
        for kind in (nsc.Sorter, nsc.Sizes)
    ]
    assert public[1] - public[0] == {"sorter"}
    assert public[0] <= public[1]


@pytest.mark.parametrize(("m", "dim"), [(1, 0), (5, 1), (5, 0), (8, -1), (11, -1)])
def test_operands_and_results_of_any_axis_are_those_of_x(m, dim):
    sorters = nsc.compile_sizes("odd_even", dtypes=["float64"])
    shape = (m, 4) if dim == 0 else (4, m)
    x, mask = torch.randn(shape, dtype=DOUBLE), torch.rand(shape) < 0.7
    payload = torch.randn(*shape, 2, dtype=DOUBLE)
    op = sorters.sorter(m)
    places = [(0, 0), (0, op.n - m)] if dim else [(0, op.n - m), (0, 0)]

    def padded(operand, value, columns=0):
        widths = [0] * (2 * columns) + [width for pair in reversed(places) for width in pair]
        return torch.nn.functional.pad(operand, widths, value=value)

    keys, is_entry = padded(x, torch.nan), padded(mask, False)
    options = {"dim": dim, "fill": 7.0}
    for name in ("sort", "rank"):
        result = getattr(sorters, name)(x, 2.0, mask=mask, **options)
        expected = getattr(op, name)(keys, 2.0, mask=is_entry, **options)
        torch.testing.assert_close(result, expected.narrow(dim, 0, m))
    routed = sorters.route(x, payload, 2.0, mask=mask, **options)
    expected = op.route(keys, padded(payload, 3.0, 1), 2.0, mask=is_entry, **options)
    torch.testing.assert_close(routed, expected.narrow(dim % 2, 0, m))
    for descending in (False, True):
        exact = sorters.hard_sort(x, dim, descending=descending)
        torch.testing.assert_close(tuple(exact), tuple(x.sort(dim=dim, descending=descending, stable=True)))
        some = sorters.hard_sort(x, dim, descending=descending, mask=mask)
        expected = op.hard_sort(keys, dim, descending=descending, mask=is_entry)
        torch.testing.assert_close(tuple(some), tuple(each.narrow(dim, 0, m) for each in expected))
    assert torch.equal(sorters.hard_sort(x, dim, values_only=True), x.sort(dim).values)
    p = sorters.sort_with_permutation(x, 2.0, dim=dim, straight_through=True)[1]
    torch.testing.assert_close(p.argmax(-1), x.movedim(dim, -1).argsort(-1))


def test_more_may_be_asked_for_than_there_are_values():
    sorters, x = nsc.compile_sizes(), torch.randn(2, 3)
    values, rows = sorters.topk(x, 9, straight_through=True, fill=-1.0)
    assert rows.shape == (2, 9, 3)
    assert torch.equal(values, torch.cat([x.sort(descending=True).values, torch.full((2, 6), -1.0)], -1))
    assert torch.equal(sorters.top_k_weights(x, k=9, straight_through=True), torch.ones(2, 3))
    with pytest.raises(
        OperandError, match=r"Sizes\('bitonic', 4\).topk: k must be an integer in 1 … 4, got 5"
    ):
        nsc.compile_sizes("bitonic", 4).topk(x, 5)
    with pytest.raises(OperandError, match="k must be an integer of 1 or more, got 0"):
        sorters.topk(x, 0)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32])
def test_ranks_of_any_integers_are_targets(dtype):
    sorters, x, ranks = nsc.compile_sizes(), torch.randn(2, 5), torch.arange(5).expand(2, 5)
    expected = sorters.cross_entropy(x, ranks)
    torch.testing.assert_close(sorters.cross_entropy(x, ranks.to(dtype)), expected)
    torch.testing.assert_close(sorters.cross_entropy(x, (ranks.to(dtype),) * 2), expected)
    op, lengths = nsc.compile("bitonic", 5), torch.tensor([5, 3])
    some = op.cross_entropy(x, ranks, lengths=lengths)
    torch.testing.assert_close(op.cross_entropy(x, ranks.to(dtype), lengths=lengths), some)


def test_values_of_no_axis_are_one_value():
    sorters = nsc.compile_sizes("bitonic")
    assert sorters.sort(torch.tensor(2.0)) == 2
    assert sorters.hard_sort(torch.tensor(2)).indices == 0


KINDS = ["nested", "with holes", "packed", "offsets"]


def lists_of(kind, rows):
    lengths = torch.tensor([len(row) for row in rows])
    if kind == "nested":
        return torch.nested.nested_tensor(rows, layout=torch.jagged)
    if kind == "with holes":
        padded = torch.nn.utils.rnn.pad_sequence([row.flip(0) for row in rows], True, 9.0, "left")
        wide = torch.nn.functional.pad(padded.flip(-1), [1, 1], value=9.0)
        starts = torch.ones(len(rows), dtype=torch.int64)
        return torch.nested.narrow(wide, 1, starts, lengths, layout=torch.jagged)
    if kind == "packed":
        return pack_sequence(rows, enforce_sorted=False)
    return torch.cat(rows), torch.tensor([0, *lengths.cumsum(0)])


def rows_of(kind, lists):
    if kind in ("nested", "with holes"):
        return list(lists.unbind())
    if kind == "packed":
        assert isinstance(lists, PackedSequence)
        return torch.nn.utils.rnn.unpack_sequence(lists)
    return list(lists[0].split(lists[1].diff().tolist()))


LAYERS = {"SortingNetwork": (nsc.nn.SortingNetwork, {})} | {
    kind.__name__: (kind, options) for kind, options in LOSSES_AND_STATISTICS.items()
}


def call_of(layer, x, **lists):
    if isinstance(layer, nsc.nn.SortingNetwork):
        return layer.sort(x, **lists)
    if hasattr(layer, "reduction"):
        labels = torch.linspace(0, 2, 12).round().expand(3, 12)[:, : x.shape[-1]]
        return layer(x, labels, **lists)
    return layer(x, **lists)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("steepness", [None, 2.0])
def test_a_layer_without_n_does_what_one_of_the_next_size_does(name, steepness):
    kind, options = LAYERS[name]
    layer = kind(**options, steepness=steepness)
    for m in (5, 8, 11):
        x, lengths = torch.randn(3, m), torch.tensor([m, 4, 5])
        size = layer.operator.sorter(m).n
        sized = kind(layer.operator.network, size, **options, steepness=steepness)
        padded = torch.nn.functional.pad(x, (0, size - m), value=torch.nan)
        for of_any, of_size in (
            (call_of(layer, x), call_of(sized, padded, lengths=torch.full((3,), m))),
            (call_of(layer, x, lengths=lengths), call_of(sized, padded, lengths=lengths)),
        ):
            cut = of_size[..., :m] if of_size.shape == padded.shape else of_size
            torch.testing.assert_close(of_any, cut)
            assert of_any.isfinite().all()


WITHOUT_NETWORK = {"ListRank": (nsc.nn.ListRankLoss, {"reduction": "none"})}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*LAYERS, *WITHOUT_NETWORK])
def test_a_layer_without_n_takes_lists_of_every_kind(name, kind):

    layer_kind, options = (LAYERS | WITHOUT_NETWORK)[name]
    layer = layer_kind(**options)
    rows = [torch.randn(length) for length in (3, 11, 1, 9)]
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    lists, lengths = lists_of(kind, rows), {"lengths": torch.tensor([3, 11, 1, 9])}
    if hasattr(layer, "reduction"):
        result = layer(lists, lists_of(kind, [row.abs() for row in rows]))
        expected = layer(padded, padded.abs(), **lengths)
    elif name in ("SortingNetwork", "SoftTopK"):
        result = rows_of(kind, getattr(layer, "sort", layer)(lists))
        rows = zip(getattr(layer, "sort", layer)(padded, **lengths), lengths["lengths"], strict=True)
        expected = [row[:length] for row, length in rows]
    else:
        result, expected = layer(lists), layer(padded, **lengths)
    torch.testing.assert_close(result, expected)


def test_a_layer_without_n_keeps_its_steepness_and_options():
    layer = nsc.nn.SpearmanLoss(relaxation="cauchy")
    assert layer.steepness is None
    assert layer.state_dict() == {}
    assert repr(layer) == "SpearmanLoss(Sizes('bitonic'), steepness=2 × depth, reduction='mean', orders=1)"
    layer.load_state_dict(layer.double().state_dict())
    assert layer.operator.sorter(3).kernel.sigmoid == "cauchy"
    x = torch.randn(2, 9, dtype=DOUBLE)
    assert layer(x, x).dtype == DOUBLE
    with pytest.raises(nsc.OperandTypeError, match="float64 are not served"):
        nsc.nn.SpearmanLoss()(x, x)
    learnable = nsc.nn.SpearmanLoss("odd_even", steepness=3.0, learnable=True)
    assert learnable.state_dict().keys() == {"log_steepness"}
    learnable(x.float(), x.float()).backward()
    assert learnable.log_steepness.grad
    at_most = nsc.nn.SoftTopK(nsc.compile_sizes("bitonic", 9), k=9)
    assert at_most(torch.randn(9)).sum().round() == 9
    with pytest.raises(OperandError, match="MRRLoss: a learnable steepness starts from a number"):
        nsc.nn.MRRLoss(learnable=True)
    with pytest.raises(OperandError, match=r"Sizes\('bitonic', 9\) is compiled already: leave out dtypes"):
        nsc.nn.Median(at_most.operator, dtypes="float64")
    with pytest.raises(OperandError, match=r"sorts 1 … 9 values, got 10 values: make it with most=10"):
        nsc.nn.Median(at_most.operator)(torch.randn(10))
    with pytest.raises(OperandError, match=r"SoftTopK: k must be an integer in 1 … 9, got 10"):
        nsc.nn.SoftTopK(at_most.operator, k=10)


@pytest.mark.nightly("torch compiles, and seconds are at stake, no number")
def test_a_program_of_a_layer_without_n_is_traced_once_for_each_size():
    layer = nsc.nn.SpearmanLoss(steepness=2.0)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    program = torch.compile(layer, fullgraph=True, dynamic=True, backend="eager")
    for m in (3, 5, 8, 9, 10, 12, 13, 16):
        x = torch.randn(2, m)
        torch.testing.assert_close(program(x, x.sin()), layer(x, x.sin()))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 3


def of_entries(method, op, x, **lists):
    if method == "hard_sort":
        return op.hard_sort(x, descending=True, **lists).values
    return getattr(op, method)(x, 2.0, **lists)


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_every_kind_come_back_as_they_were_given(kind):
    sorters = nsc.compile_sizes("bitonic", 16)
    rows = [torch.randn(length) for length in (3, 11, 1, 9)]
    x = lists_of(kind, rows)
    for method in ("sort", "rank", "hard_sort"):
        results = rows_of(kind, of_entries(method, sorters, x))
        op = sorters.sorter(11)
        for row, result in zip(rows, results, strict=True):
            padded, lengths = torch.nn.functional.pad(row, (0, op.n - len(row))), torch.tensor(len(row))
            expected = of_entries(method, op, padded, lengths=lengths)[: len(row)]
            torch.testing.assert_close(result, expected)
    values, p = sorters.sort_with_permutation(x, 2.0)
    assert p.shape == (4, 11, 11)
    assert [len(row) for row in rows_of(kind, values)] == [3, 11, 1, 9]
    grades = lists_of(kind, [row.round() for row in rows])
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    expected = sorters.cross_entropy(padded, relevance=padded.round(), lengths=torch.tensor([3, 11, 1, 9]))
    torch.testing.assert_close(sorters.cross_entropy(x, relevance=grades), expected)


TAKE_LABELS = {
    "relevance": lambda x, other: nsc.compile_sizes().cross_entropy(x, relevance=other),
    "target": lambda x, other: nsc.compile_sizes().binary_cross_entropy(x, other),
    "first and last ranks": lambda x, other: nsc.compile_sizes().cross_entropy(x, (other, other)),
    "weight": lambda x, other: nsc.compile_sizes().loss("cross_entropy", x, relevance=x, weight=other),
    "NDCG": lambda x, other: nsc.nn.NDCGLoss()(x, other),
    "ListRank": lambda x, other: nsc.nn.ListRankLoss()(x, other),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("take", TAKE_LABELS.values(), ids=TAKE_LABELS)
def test_what_stands_beside_lists_has_an_entry_for_each_of_theirs(take, kind):
    x = lists_of(kind, [torch.randn(3), torch.randn(2)])
    for lengths, message in {
        (2, 3): r"list 0 of \w+ has 2 values, for 3 of x: give one for each",
        (3, 1): r"list 1 of \w+ has 1 value, for 2 of x",
        (3, 2, 1): r"\w+ has 3 lists, for 2 of x: give a list for each",
    }.items():
        with pytest.raises(OperandError, match=message):
            take(x, lists_of(kind, [torch.arange(length) * 1.0 for length in lengths]))
    with pytest.raises((OperandError, nsc.OperandTypeError)):
        take(torch.randn(2, 3), lists_of(kind, [torch.ones(3), torch.ones(2)]))


def test_lists_say_themselves_what_takes_part():
    sorters, lengths = nsc.compile_sizes(), torch.tensor([3, 2])
    x = lists_of("nested", [torch.randn(3), torch.randn(2)])
    for call in (sorters.rank, nsc.nn.Median(), nsc.nn.SortingNetwork().sort):
        with pytest.raises(OperandError, match=r"lists say themselves how long they are: leave lengths out"):
            call(x, lengths=lengths)
        with pytest.raises(OperandError, match=r"leave mask out, or pass a padded tensor"):
            call(x, mask=torch.ones(2, 3, dtype=torch.bool))
    values = torch.randn(5)
    for offsets in ([1, 3, 5], [0, 3], [-1, 2, 5], [0, 4, 3, 5], [0, 2, 9]):
        with pytest.raises(OperandError, match="offsets of x must rise from 0 to the number of values, 5"):
            sorters.rank((values, torch.tensor(offsets)))
    for dtype in (torch.uint8, torch.uint16, torch.int32):
        offsets = torch.tensor([0, 2, 5], dtype=dtype)
        ranks, again = sorters.rank((values, offsets))
        assert again is offsets
        assert torch.equal(ranks, sorters.rank((values, offsets.long()))[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says once in a process that the API is a prototype
        strided = torch.nested.nested_tensor([torch.randn(3), torch.randn(2)])
    for call in (sorters.rank, nsc.nn.Median()):
        with pytest.raises(
            nsc.OperandTypeError, match=r"layout torch.strided: make it with layout=torch.jagged"
        ):
            call(strided)


def test_sizes_are_made_on_demand_and_refuse_what_no_network_serves():
    sorters = nsc.compile_sizes("bitonic", 20)
    assert sorters.sorter(5) is sorters.sorter(8)
    assert pickle.loads(pickle.dumps(sorters)) == sorters
    with pytest.raises(OperandError, match=r"rank: dim must be in -2 … 1 for x of 2 axes, got 2"):
        sorters.rank(torch.randn(2, 3), dim=2)
    with pytest.raises(
        OperandError, match=r"Sizes\('bitonic', 20\) sorts 1 … 20 values, got 21 values: make it with"
    ):
        sorters.sort(torch.randn(2, 21))
    with pytest.raises(OperandError, match=r"Sizes\('bitonic'\) sorts 1 … values, got 0 values$"):
        nsc.compile_sizes("bitonic").sort(torch.randn(2, 0))
    with pytest.raises(OperandError, match=r"lengths must be in 0 … 3, got 4"):
        sorters.sort(torch.randn(3), lengths=torch.tensor(4))
    with pytest.raises(OperandError, match=r"target of shares must have the shape \(3, 3\)"):
        sorters.cross_entropy(torch.randn(3), torch.rand(8, 8))
    with pytest.raises(NetworkError, match="most must be 1 or more, got 0"):
        nsc.compile_sizes("bitonic", 0)
    with pytest.raises(NetworkError, match="bitonick"):
        nsc.compile_sizes("bitonick", 4)
    with pytest.raises(LoweringError, match="select"):
        nsc.compile_sizes("bitonic", 4, select=nsc.top_k(1))


@pytest.mark.parametrize("lists", [{}, {"lengths": torch.tensor([0, 2, 5])}])
def test_straight_through_is_exact_with_the_gradient_of_the_soft_call(lists):
    op = nsc.compile("odd_even", 5, dtypes="float64")
    x = torch.randn(3, 5, dtype=DOUBLE)
    hard = op.hard_sort(
        torch.where(torch.arange(5) < lists["lengths"].unsqueeze(-1), x, torch.inf) if lists else x
    )
    exact = (hard.indices.unsqueeze(-1) == torch.arange(5)).to(DOUBLE)
    for method, call in METHODS.items():
        if method in ("ranks", "relevance", "shares"):
            continue
        result, grad = made_of(method, op, x, steepness=1.0, straight_through=True, **lists)
        leaf = x.clone().requires_grad_()
        soft = call(op, leaf, steepness=1.0, **lists)
        (expected,) = torch.autograd.grad(soft, leaf, -result.sin())
        torch.testing.assert_close(grad, expected)
        wanted = {
            "sort": hard.values,
            "sort_with_permutation": exact,
            "rank": hard.indices.argsort(-1).to(DOUBLE),
            "route": exact @ torch.stack([x.sin(), x.cos()], -1),
        }.get(method)
        if wanted is not None and not lists:
            assert torch.equal(result, wanted)
        if method == "topk" and not lists:
            assert torch.equal(result, exact[:, [4, 3]])
