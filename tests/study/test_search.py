"""Catches a search that keeps a wrong network, counts other costs than networks have, or is not repeated."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from deaths import die, die_once
from hypothesis import given, settings
from hypothesis import strategies as st

from nsc.compiler.families import best, least_size, shallowest
from nsc.compiler.network import Network
from nsc.compiler.passes import reflect, relayer
from nsc.compiler.verify import Verdict, parse, verify
from nsc.errors import NetworkError, PropertyError, WorkerError
from nsc.study.search import patterns, rounds, starting
from nsc.study.search.engine import Standing, removable, walk
from nsc.study.search.goal import Goal, Objective, first_layers, with_images, without_images
from nsc.study.search.islands import State, advance, state_of_json
from nsc.study.search.rounds import pool_of, work
from nsc.study.search.starting import from_network, from_nothing, known_network
from nsc.study.search.workers import workers

LEAST_SIZES = dict(zip(range(2, 13), (1, 3, 5, 9, 12, 16, 19, 25, 29, 35, 39), strict=True))
LEAST_DEPTHS = dict(zip(range(2, 11), (1, 3, 3, 5, 5, 6, 6, 7, 7), strict=True))
PROPERTIES = ("sort", "median", "top-2", "bottom-2-set", "rank-1", "merge-3+3")
PROPERTIES += tuple(f"{name}, at most 1 off" for name in ("sort", "median", "rank-1", "top-3"))


def here(inputs):
    return [work(each) for each in inputs]


@st.composite
def standard_pairs(draw, n, most):
    wires = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(wires, wires).filter(lambda pair: pair[0] < pair[1]), max_size=most))
    return tuple(pairs)


def searched(goal, target, seed=0, most=400):
    """Return the state in which the first term of the cost is the target; fails after `most` rounds."""
    state = from_nothing(goal, None, seed, 1)
    for _ in range(most):
        state = advance(state, here)
        if state.best is not None and goal.cost(state.best)[:2] <= (0, target):
            return state
    pytest.fail(f"{goal} has {state.best} after {most} rounds")


@settings(max_examples=60)
@given(st.data())
def test_a_pool_of_all_patterns_refutes_what_a_proof_refutes(data):
    property_ = parse(data.draw(st.sampled_from(PROPERTIES)), 6)
    prefix, comparators = data.draw(standard_pairs(6, 8)), data.draw(standard_pairs(6, 20))
    goal = Goal(property_, prefix=prefix)
    pool = patterns.reachable(goal)
    proof = verify(goal.network(comparators), property_)
    assert patterns.wrong(goal, pool, comparators).any() == (proof.verdict is Verdict.REFUTED)
    # The engine leaves out one or two.
    places = np.array([(a, b) for b in range(len(comparators)) for a in range(b + 1)], np.int64).reshape(
        -1, 2
    )
    passing = removable(goal, pool_of(goal, ()), comparators, places)
    for (a, b), passes in zip(places.tolist(), passing.tolist(), strict=True):
        without = [each for k, each in enumerate(comparators) if k not in (a, b)]
        assert passes == (not patterns.wrong(goal, pool, without).any())


@settings(max_examples=30)
@given(
    st.sampled_from(PROPERTIES),
    st.sampled_from(list(Objective)),
    st.sampled_from([None, 4, 9]),
    st.integers(0, 3),
    st.integers(0, 99),
)
def test_the_engine_counts_as_networks_do(name, objective, depth, layers, seed):
    """It counts what the networks cost that it leaves, and these have the property."""
    goal = Goal(parse(name, 6), objective, depth, prefix=first_layers(6, layers))
    if name.startswith("merge"):
        goal = dataclasses.replace(goal, prefix=())
    _, standing = walk(goal, pool_of(goal, ()), Standing(), seed, 300, 1 << 30)
    for comparators in (standing.current, standing.best):
        assert verify(goal.network(comparators), goal.wanted).verdict is Verdict.PROVED
    cost = goal.cost(goal.network(standing.best))
    terms = [standing.best_cost >> shift & 0xFFFF for shift in (48, 32, 16, 0)]
    assert tuple(terms[: len(cost)]) == cost
    assert cost <= goal.cost(goal.network(standing.current))


@pytest.mark.parametrize("n", [3, 9])
def test_the_least_sizes_and_depths_are_found(n):
    assert searched(Goal(parse("sort", n)), LEAST_SIZES[n]).best.size == LEAST_SIZES[n] == least_size(n)
    goal = Goal(parse("sort", n), Objective.DEPTH)
    assert searched(goal, LEAST_DEPTHS[n]).best.depth == LEAST_DEPTHS[n] == shallowest(n).depth


@pytest.mark.nightly("searches take minutes")
@pytest.mark.parametrize("seed", range(3))
def test_all_least_sizes_and_depths_are_found(seed):
    for n, size in LEAST_SIZES.items():
        searched(Goal(parse("sort", n)), size, seed)
    for n, depth in LEAST_DEPTHS.items():
        searched(Goal(parse("sort", n), Objective.DEPTH), depth, seed)


def test_selections_cost_what_is_known():
    assert searched(Goal(parse("median", 9)), 19).best.size == 19
    cheap = searched(Goal(parse("median", 9), Objective.COST), 30)
    assert cheap.goal.cost(cheap.best)[1] == 30
    assert searched(Goal(parse("merge-4+4", 8)), 9).best.size == 9


def test_symmetric_networks_are_the_same_upside_down():
    goal = Goal(parse("sort", 8), Objective.DEPTH, symmetric=True)
    found = searched(goal, 6).best
    assert relayer(reflect(found)) == found
    assert Network.from_comparators(8, with_images(8, without_images(found))) == found


@settings(max_examples=40)
@given(st.sampled_from([1, 2, 3]), standard_pairs(6, 12))
def test_of_a_pattern_and_its_mirror_image_one_is_enough(layers, halves):
    whole = Goal(parse("sort", 6), prefix=first_layers(6, layers))
    half = dataclasses.replace(whole, symmetric=True)
    pools = [patterns.reachable(goal) for goal in (whole, half)]
    assert len(pools[1]) < len(pools[0])
    fails = [patterns.wrong(whole, pool, with_images(6, halves)).any() for pool in pools]
    assert fails[0] == fails[1]


def test_greens_first_layers_leave_168_patterns():
    assert len(patterns.reachable(Goal(parse("sort", 16), prefix=first_layers(16, 4)))) == 168


def test_a_pool_that_would_be_too_large_is_none():
    assert patterns.reachable(Goal(parse("sort", 40))) is None
    assert len(patterns.sampled(Goal(parse("sort", 40)))) > 10_000


def test_comparators_that_can_go_are_left_out():
    """Two of a sorter, one of them in its first layers, and all of its last layers for the median."""
    sorter = best(8)
    more = Network.from_layers(8, [[(0, 2)], *sorter.layers(), [(3, 4)]])
    state = from_network(Goal(parse("sort", 8)), more, 2, 0, 1)
    assert state.best.size == sorter.size
    assert verify(state.best).verdict is Verdict.PROVED
    median = from_network(Goal(parse("median", 9)), best(9), None, 0, 1)
    assert median.best.size < best(9).size


def test_pairs_are_left_out_of_the_first_layers_too():
    """Of this sorter each comparator is needed, but not both of 0:1 and 2:5 in its first five layers."""
    layers = [
        [(1, 3), (2, 4)],
        [(0, 4), (3, 5)],
        [(0, 1)],
        [(0, 2), (1, 3)],
        [(0, 1), (2, 5)],
        [(2, 3), (4, 5)],
        [(1, 4)],
        [(1, 2), (3, 4)],
    ]
    state = from_network(Goal(parse("sort", 6)), Network.from_layers(6, layers), 5, 0, 1)
    assert state.best.size == least_size(6)


def test_a_sample_finds_no_wrong_network(monkeypatch):
    """Where the pool is a sample, and a small one, what is kept is proved, and the pool grows."""
    for module in (rounds, starting):
        monkeypatch.setattr(module, "reachable", lambda goal: None)
    few = np.arange(40, dtype=np.uint64)
    monkeypatch.setattr(rounds, "sampled", lambda goal: patterns.applied(few, goal.prefix))
    monkeypatch.setattr(rounds, "CANDIDATES", 1 << 14)
    goal = Goal(parse("sort", 8))
    extra = Network.from_layers(8, [*best(8).layers(), [(0, 1)]])
    start = from_network(goal, extra, 1, 0, 1)
    assert start.best.size == 19
    assert start.found
    state = from_nothing(goal, 0, 0, 1)
    for _ in range(60):
        state = advance(state, here)
        for comparators in (state.islands[0].current, state.islands[0].best):
            if comparators is not None:
                assert verify(goal.network(comparators)).verdict is Verdict.PROVED
    assert state.best is not None
    assert len(set(state.found)) == len(state.found) > 10


def test_a_seed_gives_one_search_and_a_state_goes_on_as_if_there_was_no_stop():
    goal = Goal(parse("sort", 9), Objective.DEPTH)
    one, two = (from_nothing(goal, None, seed, 2) for seed in (1, 1))
    for _ in range(2):
        one = advance(one, here)
    for _ in range(2):
        two = state_of_json(advance(two, here).to_json("nine"), "nine", goal)
    assert one == two
    other = from_nothing(goal, None, 2, 2)
    assert advance(other, here).islands != advance(from_nothing(goal, None, 1, 2), here).islands
    assert one.islands[0] != one.islands[1]


def test_islands_exchange_what_they_found():
    sorter = tuple(map(tuple, best(8).comparators.tolist()))
    longer = (*sorter, (0, 1))
    islands = tuple(Standing(current=each, best=each) for each in (longer, sorter))

    def stand_still(inputs):
        return [(each.standing, (), 1) for each in inputs]

    for done, kept in ((14, [longer, sorter]), (15, [sorter, sorter])):
        after = advance(State(Goal(parse("sort", 8)), 0, islands, rounds=done), stand_still)
        assert [island.best for island in after.islands] == kept


@pytest.mark.parametrize("edit", [{"seed": 1}, {"format": "nsc-search/1"}, {"prefix": []}])
def test_a_state_that_was_edited_or_is_of_another_search_is_refused(edit):
    goal = Goal(parse("sort", 4))
    text = advance(from_nothing(goal, None, 0, 1), here).to_json("four")
    assert state_of_json(text, "four", goal).best.size == 5
    for wrong in (json.dumps({**json.loads(text), **edit}), text[:-9], "[]", "{}"):
        with pytest.raises(NetworkError, match="does not hold the state"):
            state_of_json(wrong, "four", goal)
    with pytest.raises(NetworkError, match="holds the state of another search, four; this one is five"):
        state_of_json(text, "five", goal)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Goal(parse("sort", 65)), NetworkError, "takes 2 to 64 wires, got 65"),
        (lambda: Goal(parse("top-1", 4, [0])), PropertyError, "leave wires out"),
        (lambda: Goal(parse("sort", 9), symmetric=True), NetworkError, "the middle one of 9 wires"),
        (lambda: Goal(parse("top-2", 8), symmetric=True), NetworkError, "not the same upside down"),
        (lambda: Goal(parse("sort", 4), prefix=((1, 0),)), NetworkError, "minimum on the lower wire"),
        (lambda: known_network(Goal(parse("merge-4+4", 8))), PropertyError, "no network for merge"),
        (
            lambda: from_network(Goal(parse("sort", 4)), best(5), None, 0, 1),
            NetworkError,
            "has 5 wires, the search 4",
        ),
        (
            lambda: from_network(Goal(parse("sort", 5)), best(5)[1:], None, 0, 1),
            NetworkError,
            "does not have the property sort",
        ),
    ],
)
def test_what_cannot_be_searched_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_known_networks_fit_the_most_layers():
    for depth, cost in ((None, (0, 60, 10)), (9, (0, 61, 9)), (8, (1, 61, 9))):
        goal = Goal(parse("sort", 16), depth=depth)
        assert goal.cost(known_network(goal)) == cost


@pytest.mark.slow("processes are started")
def test_a_process_that_is_killed_loses_nothing(tmp_path, monkeypatch):
    paths = [str(tmp_path / name) for name in ("dies", "a", "b")]
    with workers(die_once, 2) as map_:
        assert map_(paths) == paths
    monkeypatch.setattr("nsc.study.search.workers._AGAIN", 0)
    with workers(die, 2) as map_, pytest.raises(WorkerError, match="died 1 time;"):
        map_([1])


@pytest.mark.slow("processes are started")
def test_processes_find_what_one_process_finds():
    state = from_nothing(Goal(parse("sort", 7)), None, 0, 2)
    with workers(work, 2) as map_:
        assert advance(state, map_) == advance(state, here)


@pytest.mark.nightly("a cluster is started")
def test_a_cluster_finds_what_one_process_finds_when_a_worker_is_killed(tmp_path):
    distributed = pytest.importorskip("distributed")
    state = from_nothing(Goal(parse("sort", 7)), None, 0, 2)
    quiet = {
        "scheduler_kwargs": {"dashboard": False},
        "dashboard_address": ":0",
        "worker_dashboard_address": None,
    }
    with distributed.LocalCluster(processes=True, n_workers=2, threads_per_worker=1, **quiet) as cluster:
        with workers(die_once, scheduler=cluster.scheduler_address) as map_:
            assert map_([str(tmp_path / "a"), str(tmp_path / "b")]) == [
                str(tmp_path / "a"),
                str(tmp_path / "b"),
            ]
        with workers(work, scheduler=cluster.scheduler_address) as map_:
            assert advance(state, map_) == advance(state, here)
            with pytest.raises(WorkerError, match="the Dask cluster fails: AttributeError"):
                map_([None])


def test_a_scheduler_that_is_not_there_is_named(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("nsc.study.search.workers.PATIENCE", 0.2)
    with (
        pytest.raises(WorkerError, match="no Dask scheduler answers at tcp://127"),
        workers(die, scheduler="tcp://127.0.0.1:9"),
    ):
        pass


@pytest.mark.parametrize(("off_by", "size"), [(1, 12), (2, 7), (3, 3)])
def test_medians_of_9_that_may_be_off_are_found(off_by, size):
    """The smallest that exhaustive counts and searches know; 12 are the median of medians."""
    goal = Goal(parse("median", 9, off_by=off_by))
    network = searched(goal, size, most=60).best
    assert verify(network, goal.wanted)
    assert not verify(network, parse("median", 9, off_by=off_by - 1))
    begun = from_network(goal, known_network(goal), None, 0, 1).best
    assert verify(begun, goal.wanted)
    assert size <= begun.size < 19
