"""Catches wrong requests that are compiled, and names and commands that belong to another package."""

import json
import time
from pathlib import Path

import pytest
from strategies import is_unsorted, run

from nsc.compiler.describe import describe
from nsc.compiler.driver import compile_network, prove
from nsc.compiler.families import FAMILIES
from nsc.compiler.formats import write_network
from nsc.compiler.naming import default_name
from nsc.compiler.network import Network
from nsc.compiler.optimize import smallest_first
from nsc.compiler.package import check_name
from nsc.compiler.passes import half_operations
from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.request import Request
from nsc.compiler.selection import ranks, top_k
from nsc.compiler.verify import TRIAL_METHODS, Budget, Verdict, parse, verify
from nsc.compiler.verify.reachable import FEW_STATES
from nsc.errors import LoweringError, NetworkError, UnprovedError, VerificationError

SWAP = Network.from_layers(2, [[(0, 1)]])


@pytest.mark.slow("proofs and searches are long")
def test_the_best_network_for_some_ranks_is_the_cheapest_that_is_proved():
    selection = parse("rank-7,50", 100)
    compiled = compile_network(Request("best", 100, select=ranks(7, 50)))
    *cheaper, third = smallest_first(selection)[:3]
    assert compiled.network == third
    assert verify(third, selection).verdict is compiled.proof.verdict is Verdict.PROVED
    for network in cheaper:
        assert half_operations(network, selection.ranks) < half_operations(third, selection.ranks)
        proof = verify(network, selection, Budget(states=FEW_STATES), TRIAL_METHODS)
        assert proof.verdict is Verdict.UNPROVED


def test_a_request_names_a_family_a_file_or_a_network(tmp_path, monkeypatch):
    path = tmp_path / "swap.json"
    path.write_text(write_network(SWAP), encoding="utf-8")
    assert describe("bitonic", 8) == FAMILIES["bitonic"](8)
    assert describe(SWAP, None) == describe(SWAP, 2) == SWAP
    assert describe(path, None) == describe(str(path), 2) == SWAP
    monkeypatch.chdir(tmp_path)
    path.rename("swap")
    assert describe("swap", None) == SWAP


@pytest.mark.parametrize(
    ("network", "n", "message"),
    [
        ("bitonic", None, "needs n"),
        ("bionic", 4, f"'bionic' is neither a family .*{', '.join(FAMILIES)}.* nor a network file"),
        ("", 4, "'' is neither a family"),
        (".", 4, "cannot read .: it is a folder$"),
        ("missing.json", None, "cannot read missing.json"),
        ("nul\0.json", None, "cannot read"),
        ("x" * 300 + ".json", None, "neither|cannot read"),
        (SWAP, 3, "2 wires, n=3 disagrees"),
    ],
)
def test_a_wrong_network_is_refused(network, n, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NetworkError, match=message):
        describe(network, n)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtypes": ()}, "got none"),
        ({"dtypes": ("float32", "int8")}, "'int8'"),
        ({"targets": ("cpu", "tpu")}, "cpu, cuda, got 'cpu', 'tpu'"),
        ({"select": "top-2"}, "select must be .*got 'top-2'"),
        ({"wires": (1,)}, "say what is selected"),
        ({"name": "../x"}, "a package's name must be a Python identifier"),
    ],
)
def test_bad_requests_are_refused(options, message):
    with pytest.raises(LoweringError, match=message):
        Request("bitonic", 4, **options)


@pytest.mark.parametrize(
    ("network", "n", "name"),
    [
        ("bitonic", 8, "bitonic_8"),
        (SWAP, 2, "network_2"),
        ("best/sorter.json", 4, "sorter_4"),
        ("sorter_4.json", 4, "sorter_4"),
        ("sorter_4.json", 14, "sorter_4_14"),
        ("8.json", 4, "network_8_4"),
        ("class.json", 4, "network_class_4"),
        ("*_ evil\n.json", 4, "evil_4"),
    ],
)
def test_default_names_are_identifiers(network, n, name):
    assert default_name(Request(network if isinstance(network, Network) else Path(network)), n) == name
    Request("bitonic", 4, name=name)


@pytest.mark.parametrize(
    ("options", "suffix"),
    [
        ({}, ""),
        ({"targets": ("cpu", "cuda"), "unproved": True, "version": "1"}, ""),
        ({"relaxation": Relaxation("cauchy")}, "_cauchy"),
        ({"relaxation": Relaxation(art_lambda=1e-05)}, "_art_1e_05"),
        ({"dtypes": ("float64", "float32")}, "_float32_float64"),
        ({"select": top_k(2), "remove_redundant": True}, "_top_2_remove_redundant"),
        (
            {"select": ranks(5, 6), "relaxation": Relaxation("gaussian", 0.5, True), "dtypes": ("float64",)},
            "_rank_5_6_gaussian_art_0_5_error_free_float64",
        ),
    ],
)
def test_default_names_say_what_is_not_default(options, suffix):
    assert default_name(Request("bitonic", **options), 12) == f"bitonic_12{suffix}"
    check_name(default_name(Request(Path("x" * 250), **options), 12))


def test_kernels_with_other_values_have_other_default_names():
    names = [
        default_name(
            Request("bitonic", relaxation=Relaxation(sigmoid, strength, error_free), dtypes=dtypes), 4
        )
        for sigmoid in SIGMOIDS
        for strength in (0.25, 0.0, 0.5, 0.05, 1e-05)
        for error_free in (False, True)
        for dtypes in (("float32",), ("float64",), ("float32", "float64"))
    ]
    assert len(set(names)) == len(names)


def test_a_network_that_does_not_sort_is_refused_with_its_counterexample():
    n = 80
    network = Network.from_layers(n, [[(1, 0)]])
    with pytest.raises(VerificationError, match="does not sort") as caught:
        compile_network(Request(network, unproved=True))
    error = caught.value
    assert set(error.counterexample) <= {0, 1}
    assert sorted(error.failing_input) == list(range(n))
    for values in (error.counterexample, error.failing_input):
        assert is_unsorted(run(network.comparators.tolist(), values))
        assert " ".join(map(str, values[:64])) in str(error)


def test_an_unproved_network_is_refused_unless_allowed():
    no_time = Budget(deadline=time.monotonic())
    network = FAMILIES["pairwise"](64)
    with pytest.raises(UnprovedError, match="add unproved=True"):
        prove(network, budget=no_time)
    assert prove(network, unproved=True, budget=no_time).verdict is Verdict.UNPROVED
    with pytest.raises(UnprovedError):
        compile_network(Request(network), no_time)
    compiled = compile_network(Request(network, unproved=True), no_time)
    files = compiled.package.files
    assert json.loads(files["proof.json"])["verdict"] == "unproved"
    for name in ("__init__.py", "network_64.cpp"):
        assert "UNPROVED" in files[name]
        assert "--unproved" in files[name]


@pytest.mark.parametrize(
    ("request_", "command"),
    [
        (Request("bitonic", 4, name="b"), "nsc compile bitonic --n 4 --name b"),
        (Request("bitonic", 4, targets=("cuda", "cpu")), "nsc compile bitonic --n 4 --target cpu,cuda"),
        (Request(SWAP), "nsc compile network.json --name network_2"),
        (
            Request("odd_even", 3, Relaxation("optimal", 0.1, True), ("float64", "float32")),
            "nsc compile odd_even --n 3 --relaxation optimal --art-lambda 0.1 --error-free "
            "--dtype float32,float64",
        ),
    ],
)
def test_headers_name_a_command_that_writes_the_same_package(request_, command):
    compiled = compile_network(request_)
    files = compiled.package.files
    assert json.loads(files["manifest.json"])["command"] == command
    assert f"Made by:    {command}\n" in files["__init__.py"]
