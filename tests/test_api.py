"""Public functions: a form of a network that one refuses, a missing name, a request compiled twice."""

from __future__ import annotations

import ast
import copy
import functools
import math
import pickle
from pathlib import Path

import numpy as np
import pytest

import nsc
from nsc import api
from nsc.compiler.describe import describe
from nsc.compiler.formats import write_network
from nsc.errors import LoweringError, NetworkError, OperandError, OperandTypeError, VerificationError
from nsc.nn import SelectionNetwork, SortingNetwork

FOUR = [(0, 2), (1, 3), (0, 1), (2, 3), (1, 2)]
LAYERS = [[(0, 2), (1, 3)], [(0, 1), (2, 3)], [(1, 2)]]
NETWORK = nsc.Network.from_layers(4, LAYERS)


@pytest.fixture
def forms(tmp_path):
    """Return one network in every form that calls accept, each with the arguments that it needs."""
    path = tmp_path / "four.json"
    path.write_text(write_network(NETWORK), encoding="utf-8")
    return [
        (NETWORK, {}),
        (path, {}),
        (str(path), {"n": 4}),
        (FOUR, {}),
        (tuple(FOUR), {"n": np.int64(4)}),
        (np.array(FOUR), {}),
        (LAYERS, {}),
        ([np.array(layer) for layer in LAYERS], {"n": 4}),
        ([(lo + 1, hi + 1) for lo, hi in FOUR], {"index_base": 1}),
    ]


def test_every_call_takes_every_form_of_a_network(forms):
    whole = nsc.compile(NETWORK, name="four")
    largest = nsc.compile(NETWORK, select=nsc.top_k(1), name="largest")
    for network, options in forms:
        assert describe(network, **options) == NETWORK
        assert nsc.compile(network, name="four", **options) == whole
        assert nsc.compile(network, select=nsc.top_k(1), name="largest", **options) == largest
        assert nsc.verify(network, **options).verdict is nsc.Verdict.PROVED
        assert SortingNetwork(network, name="four", **options).operator == whole
        assert SelectionNetwork(network, select=nsc.top_k(1), name="largest", **options).operator == largest


def test_every_call_takes_the_name_of_a_family():
    op = nsc.compile("bitonic", 4)
    assert op.name == "bitonic_4"
    assert SortingNetwork("bitonic", 4).operator == op == SortingNetwork(op).operator
    assert nsc.verify("bitonic", n=4).sentence() == "sorts"
    assert nsc.verify("pairwise", 9, property="median").sentence() == "median: proved"


@pytest.mark.parametrize(
    ("network", "n", "message"),
    [
        ("bionic", 4, "neither a family .* nor a network file"),
        ([(1, 2)], None, "index_base=1, or from 0, with index_base=0 and n"),
        ([(0, 2)], None, "no comparator touches 1: state n"),
        ([(0, 1)], 1, r"\(0, 1\) has a wire outside 0 … 0"),
        ([(0, 1.5)], 2, r"comparator 1 must be \[lo, hi\], found"),
        ([[(0, 1), (1, 2)]], 3, "a second time"),
        (7, 2, "a list of comparators .*, got int"),
        (NETWORK, 3, "4 wires, n=3 disagrees"),
    ],
)
@pytest.mark.parametrize("call", [nsc.compile, nsc.verify, SortingNetwork])
def test_every_call_refuses_a_wrong_network_alike(call, network, n, message):
    with pytest.raises(NetworkError, match=message):
        call(network, n)


@pytest.mark.parametrize("call", [nsc.compile, nsc.verify])
def test_a_family_needs_n_but_in_layers(call):
    with pytest.raises(NetworkError, match="family bitonic needs n"):
        call("bitonic")
    assert SortingNetwork("bitonic").operator == nsc.compile_sizes("bitonic")


def test_modules_of_operators_say_which_is_which():
    op, top = nsc.compile("bitonic", 4), nsc.compile("bitonic", 4, select=nsc.top_k(1))
    with pytest.raises(OperandTypeError, match=r"is a Selector, which .*SelectionNetwork takes"):
        SortingNetwork(top)
    with pytest.raises(OperandTypeError, match=r"is a Sorter, which .*SortingNetwork takes"):
        SelectionNetwork(op)
    with pytest.raises(OperandError, match="compiled already: leave out n, relaxation"):
        SortingNetwork(op, 4, relaxation="cauchy")


def test_selections_are_refused_in_the_words_of_arguments():
    for call, message in (
        (lambda: nsc.top_k(0), "top_k must be 1 or more, got 0"),
        (lambda: nsc.top_k(1.0), "top_k must be an integer, got 1.0"),
        (lambda: nsc.ranks(), "ranks must be one or more integers, each 0 or more, got none"),
        (lambda: nsc.ranks(2, 1, 2), "ranks must name each rank once, got 2, 1, 2"),
        (lambda: nsc.ranks([1, 2]), r"got \[1, 2\]: spread a list, as nsc.ranks\(\*ranks\)"),
        (lambda: nsc.compile("bitonic", 4, select=nsc.ranks(1), wires=[0.5]), "wires must list integers"),
        (lambda: SelectionNetwork("bitonic", 4), r"add select=nsc.top_k\(8\)"),
        (lambda: SortingNetwork("bitonic", 4, select=nsc.top_k(8)), "SelectionNetwork takes select"),
    ):
        with pytest.raises(LoweringError, match=message):
            call()


# ------------------------------------------------------------------------------------------ once


@pytest.fixture
def compilations(monkeypatch):
    """Return a list that every compilation from now on adds its request to; nothing is kept from before."""
    requests = []
    compile_network = api.compile_network

    def record(request, *arguments):
        requests.append(request)
        return compile_network(request, *arguments)

    monkeypatch.setattr(api, "compile_network", record)
    api._kept.cache_clear()
    return requests


def test_the_same_request_is_compiled_once(compilations, forms):
    op = nsc.compile("bitonic", 4)
    assert nsc.compile("bitonic", np.int64(4), art_lambda=np.float64(0.25)) is op
    assert nsc.compile(network="bitonic", n=4, dtypes=["float32"], targets=["cpu", "cpu"]) is op
    assert nsc.compile("bitonic", 4, relaxation=nsc.Relaxation(), select=None) is op
    assert nsc.compile("bitonic", 4, relaxation="logistic", art_lambda=0.25, error_free=False) is op
    assert len(compilations) == 1
    assert nsc.compile("bitonic", 4, select=nsc.ranks(1)) is nsc.compile("bitonic", 4, select=nsc.ranks(1))
    assert len(compilations) == 2
    for network, options in forms:
        nsc.compile(network, name="four", **options)
    assert len(compilations) == 3


@pytest.mark.parametrize(
    "options",
    [{"art_lambda": 0.5}, {"error_free": True}, {"dtypes": ("float64",)}, {"name": "other"}, {"n": 3}],
)
def test_another_request_is_compiled_by_itself(compilations, options):
    op = nsc.compile("bitonic", 4)
    assert nsc.compile("bitonic", **{"n": 4, **options}) != op
    assert len(compilations) == 2


def test_a_rewritten_file_is_compiled_again(compilations, tmp_path):
    path = tmp_path / "net.txt"
    for text, size in (("[(0,1)]", 1), ("[(0,1)]\n[(0,1)]", 2), ("[(0,1)]", 1)):
        path.write_text(text, encoding="utf-8")
        assert nsc.compile(path).size == size
    assert len(compilations) == 2


def test_a_refused_request_is_refused_again(compilations):
    for _ in range(2):
        for n in (4.0, True):
            with pytest.raises(NetworkError, match="n must be an integer"):
                nsc.compile("bitonic", n)
        with pytest.raises(VerificationError):
            nsc.compile([(0, 1)], 3)
        nsc.compile("bitonic", 4)


def test_a_relaxation_may_stand_for_its_name_and_options():
    relaxation = nsc.Relaxation("cauchy", 0.5, error_free=True)
    options = {"relaxation": "cauchy", "art_lambda": 0.5, "error_free": True}
    op = nsc.compile("bitonic", 4, **options)
    assert op.name == "bitonic_4_cauchy_art_0_5_error_free"
    assert nsc.compile("bitonic", 4, relaxation=relaxation) is op
    assert SortingNetwork("bitonic", 4, relaxation=relaxation).operator is op
    top = SelectionNetwork("bitonic", 4, select=nsc.top_k(1), relaxation=relaxation).operator
    assert top is nsc.compile("bitonic", 4, select=nsc.top_k(1), **options)


@pytest.mark.parametrize("options", [{"art_lambda": 0.5}, {"error_free": False}, {"art_lambda": 0.25}])
def test_a_relaxation_beside_its_own_options_is_refused(options):
    """Even an option with the same value is refused, so that no reader has to compare the two."""
    with pytest.raises(LoweringError, match=f"which has {next(iter(options))} itself: leave .* out"):
        nsc.compile("bitonic", 4, relaxation=nsc.Relaxation("cauchy", 0.5), **options)


def test_selections_compare_by_value():
    assert nsc.top_k(3) == nsc.top_k(np.int64(3)) != nsc.top_k(4)
    assert nsc.ranks(3, 7) == nsc.ranks(*np.array([3, 7])) != nsc.ranks(7, 3)
    assert len({nsc.median(), nsc.median(), nsc.ranks(0), nsc.top_k(1)}) == 3
    with pytest.raises(AttributeError):
        nsc.top_k(3).k = 4


def test_a_selection_is_shown_as_the_call_that_makes_it():
    for select in (nsc.top_k(8), nsc.median(), nsc.ranks(3), nsc.ranks(7, 3)):
        assert eval(repr(select), {"nsc": nsc}) == select


def test_what_users_hold_is_shown_by_its_facts():
    sorter, selector = nsc.compile("bitonic", 4), nsc.compile("bitonic", 4, select=nsc.ranks(1, 2))
    layers = SortingNetwork(sorter), SelectionNetwork(selector), nsc.compat.DiffSortNet("bitonic", 4)
    for op in (sorter, selector):
        for thing in (op, op.kernel, op.network, op.proof):
            assert repr(thing).startswith(f"{type(thing).__name__}(")
    assert repr(sorter.kernel).startswith("Kernel(bitonic_4: n=4, dtypes=['float32', ")
    assert [repr(layer).split("(")[0] for layer in layers] == [type(layer).__name__ for layer in layers]


# ------------------------------------------------------------------------------------------ names


def test_dir_shows_the_public_names():
    names = dir(nsc)
    assert set(nsc.__all__) <= set(names)
    assert all(name in nsc.__all__ or (name.startswith("__") and name.endswith("__")) for name in names)


def test_type_checkers_import_the_names_of_dir_from_their_homes():
    tree = ast.parse(Path(nsc.__file__).read_text("utf-8"))
    (block,) = (
        node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    typed = {name.name: node.module for node in block.body for name in node.names}
    homes = {name: home for home, names in nsc._HOMES.items() for name in names}
    assert typed == homes | dict.fromkeys(nsc._MODULES, "nsc")
    errors = {
        name for name in nsc.__all__ if isinstance(vars(nsc).get(name), type) and name.endswith("Error")
    }
    assert set(nsc.__all__) == set(typed) | errors


def public_methods(kind):
    return {name for name in vars(kind) if not name.startswith("_") and callable(getattr(kind, name))}


def test_modules_have_every_method_of_their_operators():
    for module, operator in ((SortingNetwork, nsc.Sorter), (SelectionNetwork, nsc.Selector)):
        assert public_methods(operator) <= public_methods(module) | {"ranks"}


def test_packages_have_every_method_of_their_operators():
    """But for `loss`: a package has a function for each."""
    for operator in (nsc.compile("bitonic", 4), nsc.compile("bitonic", 4, select=nsc.ranks(1, 2))):
        text = operator.kernel.files["__init__.py"]
        for method in public_methods(type(operator)) - {"loss"}:
            assert (
                f"\n{method} = operator.{method}\n" in text
                or f'\n{method} = partial(operator.loss, "{method}")\n' in text
            )


@pytest.mark.slow("proofs and searches are long")
def test_python_sets_the_limits_of_a_proof():
    """A proof that ends at a limit names it, and is not kept."""
    for call in (nsc.compile, functools.partial(nsc.compile, select=nsc.top_k(1), remove_redundant=True)):
        with pytest.raises(nsc.UnprovedError, match="the time limit, which time_limit sets"):
            call("pairwise", 40, time_limit=0)
    assert "which time_limit sets" in nsc.verify("pairwise", 40, time_limit=0).detail
    assert "try max_memory=" in nsc.verify("best", 1024, max_memory=1).detail
    for call in (nsc.compile, functools.partial(nsc.compile, select=nsc.top_k(1)), nsc.verify):
        for wrong in ({"max_memory": 0}, {"time_limit": -1}, {"time_limit": math.nan}):
            with pytest.raises(nsc.NscError, match=next(iter(wrong))):
                call("bitonic", 4, **wrong)


def test_limits_do_not_change_the_operator():
    assert nsc.compile("bitonic", 4, max_memory=7, time_limit=60) is nsc.compile("bitonic", 4)


@pytest.mark.parametrize("name", [name for name in nsc.__all__ if name.endswith("Error")])
def test_errors_pass_between_processes(name):
    """An error that cannot be read again makes a pool of processes wait forever."""
    kind = getattr(nsc, name)
    error = kind("why", (1, 0), (1, 0)) if kind is VerificationError else kind("why")
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is kind
        assert (str(twin), vars(twin)) == ("why", vars(error))
