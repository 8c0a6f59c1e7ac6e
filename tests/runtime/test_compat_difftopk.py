"""nsc.compat.difftopk, and nsc's own loss: another value or error than by definition, or of difftopk."""

from __future__ import annotations

import inspect

import pytest
import torch

import nsc
from nsc.compat import DiffSortNet
from nsc.compat.difftopk import METHODS, TOP1_MODES, DiffTopkNet, TopKCrossEntropyLoss, splitter_selection
from nsc.compat.networks import network_of

pytestmark = pytest.mark.slow("many networks are relaxed")

DOUBLE = torch.float64
CAUCHY = {"distribution": "cauchy"}


def peer():
    """Return difftopk, which says on import that it has no torch_sparse."""
    return pytest.importorskip("difftopk")


def batch(n=9, samples=5):
    x = torch.randn(samples, n, dtype=DOUBLE, requires_grad=True)
    return x, torch.randint(n, (samples,))


@pytest.mark.parametrize(("kind", "distribution"), [("bitonic", "cauchy"), ("odd_even", "logistic_phi")])
def test_P_is_the_last_columns_of_diffsorts(kind, distribution):
    x, _ = batch()
    options = {"steepness": 3.0, "distribution": distribution, "art_lambda": 0.4}
    whole = DiffSortNet(kind, 9, **options)(x)[1]
    for k in (1, 4, 9):
        nothing, p = DiffTopkNet(kind, 9, k, **options)(x)
        assert nothing is None
        torch.testing.assert_close(p, whole[:, :, -k:], rtol=1e-10, atol=1e-12)
        upstream = torch.randn_like(p)
        grads = [
            torch.autograd.grad((each * upstream).sum(), x, retain_graph=True)[0]
            for each in (p, whole[:, :, -k:])
        ]
        torch.testing.assert_close(*grads, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("kind", "sparse"), [("bitonic", True), ("splitter_selection", True), ("odd_even", False)]
)
def test_x_times_P_is_the_largest_values_for_a_large_steepness(kind, sparse):
    x, _ = batch(13)
    p = DiffTopkNet(kind, 13, 4, sparse, steepness=1e9, distribution="logistic")(x)[1]
    assert p.shape == (5, 13, 4)
    largest = x.sort(-1).values[:, -4:]
    torch.testing.assert_close((x.unsqueeze(1) @ p).squeeze(1), largest)
    # A negative steepness sorts descending: the last are the smallest.
    p = DiffTopkNet(kind, 13, 4, sparse, steepness=-1e9, distribution="logistic")(x)[1]
    torch.testing.assert_close((x.unsqueeze(1) @ p).squeeze(1), x.sort(-1, descending=True).values[:, -4:])


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 13, 50])
def test_splitter_selection_selects(n):
    for k in {1, 2, 3, 5, 8, n} & set(range(1, n + 1)):
        network = splitter_selection(k, n)
        op = nsc.compile(network, select=nsc.top_k(k))
        assert op.ranks == tuple(range(n - 1, n - 1 - k, -1))


def test_networks_are_difftopks():
    for n, k in ((4, 1), (6, 6), (8, 3), (11, 5), (23, 2), (40, 8)):
        layers = peer().networks.sparse_splitter_selection_network(n, k)
        assert network_of([layer[:4] for layer in layers]) == splitter_selection(k, n)


def defined(p, outputs, labels, p_k, mode):
    """Return the mean loss by its definition, a sample at a time; p[b, :, -1] is of the largest output."""
    losses = []
    for columns, scores, label in zip(p, outputs, labels.tolist(), strict=True):
        softmax = scores.softmax(-1)[label]
        among = [columns[label, -(j + 1) :].sum() for j in range(len(p_k))]
        if mode == "sm":
            among[0] = softmax
        if mode == "smce":
            among[0] = 0 * softmax
        q = sum(weight * share for weight, share in zip(p_k, among, strict=True))
        loss = -torch.log(q * (1 - 2e-7) + 1e-7)
        losses.append(loss if mode != "smce" else sum(p_k[1:]) * loss - p_k[0] * softmax.log())
    return torch.stack(losses).mean()


WEIGHTS = [(1.0,), (0.2,) * 5, (0.5, 0, 0, 0, 0.5), (0, 0, 1)]


@pytest.mark.parametrize(
    ("method", "mode", "p_k"),
    [
        *(("odd_even", mode, p_k) for mode in TOP1_MODES for p_k in WEIGHTS),
        *((method, "sm", WEIGHTS[2]) for method in METHODS if method != "odd_even"),
    ],
)
def test_the_loss_is_its_definition(method, mode, p_k):
    loss = TopKCrossEntropyLoss(method, 2.0, p_k, 9, top1_mode=mode, **CAUCHY)
    outputs, labels = batch()
    kind, sparse = METHODS[method]
    p = DiffTopkNet(kind, 9, len(p_k), sparse, steepness=2.0)(outputs)[1]
    ours, expected = loss(outputs, labels), defined(p, outputs, labels, p_k, mode)
    assert (ours.shape, ours.dtype) == ((), DOUBLE)
    torch.testing.assert_close(ours, expected)
    grads = [torch.autograd.grad(value, outputs)[0] for value in (ours, expected)]
    torch.testing.assert_close(*grads, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("mode", TOP1_MODES)
def test_with_m_the_label_and_the_largest_others_are_compared(mode):
    p_k = (0.3, 0.3, 0.4)
    loss = TopKCrossEntropyLoss("odd_even", 2.0, p_k, 9, 5, top1_mode=mode, **CAUCHY)
    outputs, labels = batch()
    rows = []
    for scores, label in zip(outputs, labels.tolist(), strict=True):
        others = torch.cat([scores[:label], scores[label + 1 :]]).sort(descending=True).values
        rows.append(torch.cat([scores[label : label + 1], others[:4]]))
    compared = torch.stack(rows)
    p = DiffTopkNet("odd_even", 5, 3, steepness=2.0)(compared)[1]
    expected = defined(p, compared, torch.zeros_like(labels), p_k, mode)
    torch.testing.assert_close(loss(outputs, labels), expected)


OPTIONS = [
    ("odd_even", "sm", None, "logistic_phi", WEIGHTS[1]),
    ("bitonic__non_sparse", "smce", 7, "cauchy", WEIGHTS[2]),
    ("bitonic__non_sparse", "sort", None, "gaussian", WEIGHTS[3]),
    ("odd_even", "smce", None, "reciprocal", WEIGHTS[1]),
    ("odd_even", "sort", 7, "optimal", WEIGHTS[2]),
    ("bitonic__non_sparse", "sm", 7, "logistic", WEIGHTS[3]),
]


@pytest.mark.parametrize(("method", "mode", "m", "distribution", "p_k"), OPTIONS)
def test_loss_and_gradient_are_difftopks(method, mode, m, distribution, p_k):
    outputs, labels = torch.randn(20, 12, requires_grad=True), torch.randint(12, (20,))
    arguments = (method, 1.5, list(p_k), 12, m, distribution, 0.5, "cpu", mode)
    values = [
        kind(*arguments)(outputs, labels) for kind in (TopKCrossEntropyLoss, peer().TopKCrossEntropyLoss)
    ]
    # difftopk's float32 is up to 2e-6 off its float64, on processors with AVX-512; nsc's is 1e-7.
    torch.testing.assert_close(*values, rtol=1e-5, atol=1e-6)
    grads = [torch.autograd.grad(value, outputs)[0] for value in values]
    torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-5)
    own = nsc.nn.TopKCrossEntropy(
        12,
        p_k,
        m,
        network=network_of(TopKCrossEntropyLoss(*arguments).top_k_net.sorting_network),
        top1=TOP1_MODES[mode],
        steepness=1.5,
        relaxation=distribution.removesuffix("_phi"),
        art_lambda=0.5 if distribution.endswith("_phi") else 0.0,
    )
    value = own(outputs, labels)
    torch.testing.assert_close(value, values[0], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(torch.autograd.grad(value, outputs)[0], grads[0], rtol=1e-4, atol=1e-5)


def test_arguments_and_defaults_are_difftopks():
    for kind in (DiffTopkNet, TopKCrossEntropyLoss):
        ours, theirs = (
            [(each.name, each.default) for each in inspect.signature(one).parameters.values()]
            for one in (kind, getattr(peer(), kind.__name__))
        )
        assert ours == theirs


def test_dtypes():
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        outputs, labels = torch.randn(3, 6).to(dtype), torch.tensor([0, 5, 2])
        net = DiffTopkNet("bitonic", 6, 2)
        loss = TopKCrossEntropyLoss("bitonic", 1.0, (0.5, 0.5), 6, **CAUCHY)
        assert net(outputs)[1].dtype == loss(outputs, labels).dtype == dtype
        assert torch.equal(loss(outputs, labels), loss(outputs, labels.to(torch.int32)))
    assert net(torch.empty(0, 6))[1].shape == (0, 6, 2)


def test_attributes_that_are_set_act():
    x, labels = batch(8)
    net = DiffTopkNet("bitonic", 8, 3)
    before = net(x)[1]
    assert (net.k, net.size, net.sparse, net.sorting_network_type) == (3, 8, False, "bitonic")
    net.sorting_network = [[matrix.to("cpu") for matrix in layer] for layer in net.sorting_network]
    assert torch.equal(net(x)[1], before)
    net.steepness = 3.0
    torch.testing.assert_close(net(x)[1], DiffTopkNet("bitonic", 8, 3, steepness=3.0)(x)[1])
    loss = TopKCrossEntropyLoss("bitonic", 1.0, (0.5, 0.5), 8, **CAUCHY)
    loss.top_k_net.steepness = 4.0
    other = TopKCrossEntropyLoss("bitonic", 4.0, (0.5, 0.5), 8, **CAUCHY)
    assert torch.equal(loss(x, labels), other(x, labels))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"sorting_network_type": "bubble"},
            nsc.LoweringError,
            "one of bitonic, odd_even, got 'bubble'",
        ),
        (
            {"sorting_network_type": "odd_even", "sparse": True},
            nsc.LoweringError,
            "splitter_selection, got",
        ),
        ({"distribution": "laplace"}, nsc.LoweringError, "got 'laplace'"),
        ({"k": 0}, nsc.LoweringError, "top_k must be 1 or more"),
        ({"k": 9}, nsc.PropertyError, "a network on 8 wires has 1 to 8"),
        ({"sparse": "no"}, nsc.OperandTypeError, "sparse must be True or False"),
    ],
)
def test_what_a_net_refuses(arguments, error, message):
    with pytest.raises(error, match=message):
        DiffTopkNet(**{"sorting_network_type": "bitonic", "size": 8, "k": 3} | arguments)


def test_a_size_that_difftopks_network_does_not_select_from_is_refused():
    said = (
        r"own bitonic network does not select the 5 largest of 22 values; nsc\.compile\(.*top_k\(5\)\) does"
    )
    with pytest.raises(nsc.VerificationError, match=said):
        DiffTopkNet("bitonic", 22, 5)
    assert DiffTopkNet("bitonic", 22, 1)(torch.randn(2, 22))[1].shape == (2, 22, 1)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"diffsort_method": "neuralsort"},
            nsc.LoweringError,
            "got 'neuralsort': nsc relaxes networks",
        ),
        ({"distribution": None}, nsc.LoweringError, "distribution must be one of .*, got None"),
        ({"p_k": [0.5, 0.4]}, nsc.OperandError, "must add up to 1, these add up to 0.9"),
        ({"p_k": [0.2] * 5, "n": 4}, nsc.OperandError, "p_k has 5 weights for 4 classes: leave out some"),
        ({"m": 2}, nsc.OperandError, "m must be more than the 2 weights and less than n = 8, got 2"),
        ({"m": 8}, nsc.OperandError, "less than n = 8, got 8: None compares all"),
        (
            {"top1_mode": "softmax"},
            nsc.OperandError,
            "must be one of sm, smce, sort, got 'softmax'",
        ),
    ],
)
def test_what_a_loss_refuses(arguments, error, message):
    defaults = {"diffsort_method": "bitonic", "inverse_temperature": 1.0, "p_k": [0.5, 0.5], "n": 8} | CAUCHY
    with pytest.raises(error, match=message):
        TopKCrossEntropyLoss(**defaults | arguments)


def test_tensors_that_do_not_fit_are_refused():
    net = DiffTopkNet("bitonic", 6, 2)
    loss = TopKCrossEntropyLoss("bitonic", 1.0, (0.5, 0.5), 6, 4, **CAUCHY)
    x, labels = torch.zeros(2, 6), torch.tensor([0, 1])
    with pytest.raises(nsc.OperandError, match=r"DiffTopkNet selects from \(batch, 6\) along axis 1"):
        net(x[0])
    with pytest.raises(nsc.OperandError, match=r"TopKCrossEntropyLoss takes outputs \(batch, 6\), got"):
        loss(x[:, :5], labels)
    for operands, error, message in (
        ((x, torch.tensor([0, 6])), nsc.OperandError, "TopKCrossEntropyLoss: labels are 0 … 5, found 6"),
        ((x, torch.tensor([0.0, 1.0])), nsc.OperandTypeError, "labels must have .* integer dtype"),
        ((x, labels[:1]), nsc.OperandError, r"got \(2, 6\) and \(1,\)"),
        ((x.long(), labels), nsc.OperandTypeError, "floating-point dtype"),
        (([[0.0] * 6], labels[:1]), nsc.OperandTypeError, "outputs must be a tensor, got list"),
    ):
        with pytest.raises(error, match=message):
            loss(*operands)
