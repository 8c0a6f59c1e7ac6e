"""The explorer computes as nsc does: exact runs, halves, cones, relaxed runs, P and gradients."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from nsc.compiler.diagram import columns
from nsc.compiler.families import FAMILIES
from nsc.compiler.network import Network
from nsc.compiler.passes import live_halves
from nsc.compiler.relaxations import SIGMOIDS
from nsc.compiler.schedule import Codelet, PlacedComparator, reaching_blocks
from nsc.compiler.verify import Mend
from nsc.runtime.relaxed import reference

pytestmark = pytest.mark.slow("a browser is started")

FORMS = "relaxed", "error-free"
SIZES = (
    ("odd_even", 5),
    ("best", 9),
    pytest.param("bitonic", 32, marks=pytest.mark.nightly("large networks run in a browser")),
)

# Runs every case on a network and returns plain lists.
SOFT = """([n, layers, cases]) => {
  const net = nsc.makeNetwork(n, layers);
  return cases.map(({ x, sigmoid, lambda, steepness, form, output, ranks }) => {
    const numbers = x.map(Number);
    const run = nsc.runSoftly(net, numbers, { sigmoid, lambda, steepness, form });
    const P = nsc.permutationOf(net, run);
    const shares = nsc.sharesOf(net, run, 0);
    const values = Array.from({ length: n }, (_, wire) => Number(wire === output));
    const { loss, seeds } = nsc.crossEntropyOf(P, ranks, form);
    const list = (numbers) => Array.from(numbers, (x) => Number.isFinite(x) ? x : String(x));
    return {
      values: list(net.outputs.map((segment) => run.values[segment])),
      P: list(P),
      column: list(net.outputs.map((segment) => shares[segment])),
      softRanks: list(nsc.ranksOf(P, n)),
      loss,
      gradient: list(nsc.gradientOf(net, run, { values }).slice(0, n)),
      lossGradient: list(nsc.gradientOf(net, run, { P: seeds }).slice(0, n)),
    };
  });
}"""


def case(x, sigmoid, strength, steepness, form="relaxed", ranks=None):
    """Return what SOFT takes: an input, a relaxation, an output, and true ranks for the loss."""
    return {
        "x": x,
        "sigmoid": sigmoid,
        "lambda": strength,
        "steepness": steepness,
        "form": form,
        "output": len(x) // 2,
        "ranks": ranks or [*range(len(x))],
    }


def lists(network):
    return [layer.tolist() for layer in network.layers()]


def soft(page, network, cases):
    return page.evaluate(SOFT, [network.n, lists(network), cases])


def kernel_of(network, sigmoid, strength, form="relaxed"):
    return SimpleNamespace(
        n=network.n,
        layers=list(network.layers()),
        sigmoid=sigmoid,
        art_lambda=strength,
        error_free=form == "error-free",
    )


def expected(network, cases):
    """Yield what the reference makes of cases of one relaxation and one output, a batch in float64."""
    first = cases[0]
    kernel = kernel_of(network, first["sigmoid"], first["lambda"], first["form"])
    x = torch.tensor([list(map(float, case["x"])) for case in cases], dtype=torch.float64, requires_grad=True)
    steepness = torch.tensor([case["steepness"] for case in cases], dtype=torch.float64)
    values, P = reference.relax(kernel, x, steepness, None, "permutation")
    ranks = torch.tensor([case["ranks"] for case in cases])
    losses = reference.relax(kernel, x, steepness, ranks, "cross_entropy")[1]
    output = values[:, first["output"]].sum()
    (gradient,) = torch.autograd.grad(output, x, retain_graph=True, allow_unused=True)
    (loss_gradient,) = torch.autograd.grad(losses.sum(), x)
    for sample in range(len(cases)):
        yield {
            "values": values[sample],
            "P": P[sample].flatten(),
            "column": P[sample, :, 0],
            "softRanks": P[sample].T @ torch.arange(network.n, dtype=torch.float64),
            "loss": losses[sample],
            "gradient": gradient[sample],
            "lossGradient": loss_gradient[sample],
        }


def close(found, wanted, scale=1.0, tolerance=1e-9):
    numbers = torch.tensor([float(number) for number in np.ravel(found)], dtype=torch.float64)
    wanted = wanted.detach().flatten()
    assert torch.equal(numbers.isfinite(), wanted.isfinite())
    np.testing.assert_allclose(numbers, wanted, rtol=tolerance, atol=tolerance * scale)


def inputs(n, seed):
    rng = random.Random(seed)
    yield [rng.gauss(0, 1) for _ in range(n)]
    yield [float(rng.randrange(3)) for _ in range(n)]  # ties
    yield [rng.gauss(0, 1) * 10.0 ** rng.randint(-12, 12) for _ in range(n)]


@pytest.mark.parametrize(("family", "n"), SIZES)
def test_relaxed_runs_are_the_references(arithmetic, family, n):
    network = FAMILIES[family](n)
    batches = [
        [
            case(x, sigmoid, strength, steepness, form, random.Random(number).sample(range(n), n))
            for number, x in enumerate(inputs(n, n))
            for steepness in (0.3, 300.0)
        ]
        for sigmoid in SIGMOIDS
        for strength in (0.0, 0.6)
        for form in FORMS
    ]
    cases = [each for batch in batches for each in batch]
    all_wanted = [wanted for batch in batches for wanted in expected(network, batch)]
    for asked, found, wanted in zip(cases, soft(arithmetic, network, cases), all_wanted, strict=True):
        scale = max(map(abs, asked["x"]))
        # Near a tie the activation replacement trick has slopes of 10^6: the last bit of a difference shows.
        has_ties = len({*asked["x"]}) < n
        for name in ("P", "column", "softRanks", "loss"):
            close(found[name], wanted[name])
        close(found["values"], wanted["values"], scale)
        for name in ("gradient", "lossGradient"):
            largest = max(1.0, float(wanted[name].abs().max()))
            close(found[name], wanted[name], largest, 1e-6 if has_ties else 1e-9)


def test_infinite_values_are_defined_as_in_the_reference(arithmetic):
    network = FAMILIES["bitonic"](8)
    inf = math.inf
    cases = [
        case(list(map(str, x)), sigmoid, 0.25, 3.0)
        for x in (
            [inf, 1.0, -inf, 2.0, 0.5, inf, -inf, 3.0],
            [inf, inf, inf, inf, -inf, -inf, -inf, -inf],
            [1.7e308, -1.7e308, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
        )
        for sigmoid in SIGMOIDS
    ]
    texts = {"inf": "Infinity", "-inf": "-Infinity"}
    asked = [{**each, "x": [texts.get(number, number) for number in each["x"]]} for each in cases]
    for each, found in zip(cases, soft(arithmetic, network, asked), strict=True):
        kernel = kernel_of(network, each["sigmoid"], 0.25)
        x = torch.tensor([list(map(float, each["x"]))], dtype=torch.float64)
        values, P = reference.relax(kernel, x, torch.tensor([3.0], dtype=torch.float64), None, "permutation")
        close(found["P"], P)
        np.testing.assert_allclose([float(number) for number in found["values"]], values[0], rtol=1e-9)


def test_small_weights_keep_their_digits(arithmetic):
    """Each weight is computed from its own tail, in both orders of the inputs."""
    network = FAMILIES["bitonic"](2)
    for sigmoid in ("logistic", "gaussian", "cauchy"):
        cases = [
            case(x, sigmoid, 0.0, 1.0)
            for gap in (1e-3, 0.5, 2.0, 9.0, 30.0)
            for x in ([0.0, gap], [gap, 0.0])
        ]
        found = soft(arithmetic, network, cases)
        for one, wanted in zip(found, expected(network, cases), strict=True):
            np.testing.assert_allclose(one["P"], wanted["P"].detach(), rtol=1e-13)


def test_every_relaxation_is_known(arithmetic):
    assert set(arithmetic.evaluate("Object.keys(nsc.SIGMOIDS)")) == set(SIGMOIDS) == set(reference.TAILS)


@pytest.mark.parametrize(("family", "n"), [("best", 1), *SIZES, ("insertion", 9)])
def test_exact_runs_halves_and_columns(arithmetic, family, n):
    network = FAMILIES[family](n)
    rng = np.random.default_rng(n)
    xs = [rng.permutation(n).tolist(), rng.integers(0, 2, n).tolist()]
    chosen = [sorted({0, n - 1}), [n // 2]]
    script = """([n, layers, xs, chosen]) => {
      const net = nsc.makeNetwork(n, layers);
      const runs = xs.map((x) => nsc.runExactly(net, x));
      const byLayer = layers.map((_, layer) => net.comparators.filter((c) => c.layer === layer));
      return {
        values: runs.map((run) => net.outputs.map((segment) => run.values[segment])),
        items: runs.map((run) => net.outputs.map((segment) => run.items[segment])),
        needed: chosen.map((wires) => Array.from(nsc.neededOf(net, wires))),
        columns: byLayer.map((layer) =>
          nsc.columnsOf(layer).map((column) => column.map((c) => [c.lo, c.hi]))),
        cones: Array.from({ length: n }, (_, wire) => {
          const cone = nsc.coneOf(net, [wire]);
          return net.comparators.map((c) => cone[c.outLo] === 1);
        }),
      };
    }"""
    found = arithmetic.evaluate(script, [n, lists(network), xs, chosen])
    for x, values, items in zip(xs, found["values"], found["items"], strict=True):
        assert values == network.apply(x).tolist()
        assert sorted(items) == list(range(n))
        assert [x[item] for item in items] == values
    for wires, needed in zip(chosen, found["needed"], strict=True):
        halves = live_halves(network, wires)
        assert needed == (halves[:, 0] + 2 * halves[:, 1]).tolist()
    # First fit, where several columns are free, may take another of them than nsc does.
    for layer, spread in zip(network.layers(), found["columns"], strict=True):
        assert len(spread) == len(columns(layer))
        assert sorted(pair for column in spread for pair in column) == sorted(layer.tolist())
    codelets = [
        Codelet(tuple(sorted(pair)), (PlacedComparator(0, 1),), int(pair[0] > pair[1]))
        for pair in network.comparators.tolist()
    ]
    blocks = reaching_blocks(n, [codelet.wires for codelet in codelets], 1)
    for wire, cone in enumerate(found["cones"]):
        assert cone == [block >> wire & 1 == 1 for block in blocks]


def test_a_mend_works_only_where_it_is_applied(arithmetic):
    layers = [[[0, 2], [1, 3]], [[0, 1], [2, 3]]]
    script = """([layers, mend, isMended]) => {
      const net = nsc.makeNetwork(4, layers, mend, isMended);
      const { values } = nsc.runExactly(net, [0, 1, 0, 1]);
      return net.outputs.map((segment) => values[segment]);
    }"""
    insert, turn = Mend("insert", 1, 2, 2), Mend("turn", 3, 1, 0)
    assert arithmetic.evaluate(script, [layers, vars(insert), False]) == [0, 1, 0, 1]
    assert arithmetic.evaluate(script, [layers, vars(insert), True]) == [0, 0, 1, 1]
    turned = [[[0, 2], [3, 1]], [[0, 1], [2, 3]], [[1, 2]]]
    network = Network.from_layers(4, [[(0, 2), (1, 3)], [(0, 1), (2, 3)], [(1, 2)]])
    assert arithmetic.evaluate(script, [turned, vars(turn), True]) == network.apply([0, 1, 0, 1]).tolist()
