"""What the explorer's page says of a network, and how its text is joined."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import nsc
from nsc.compiler.families import FAMILIES
from nsc.compiler.network import Network
from nsc.compiler.request import Request
from nsc.compiler.selection import ranks, top_k
from nsc.compiler.verify import Budget
from nsc.errors import LoweringError, NetworkError
from nsc.study.explorer import page
from nsc.study.explorer.facts import gather
from nsc.study.explorer.page import joined_modules, render_page


def facts_of(network, n=None, **options):
    return gather(Request(network, n, version="0", **options), Budget())


@pytest.mark.parametrize(
    ("family", "n", "select"),
    [
        ("bitonic", 1, None),
        ("bitonic", 64, None),
        ("best", 16, top_k(4)),
        ("bitonic", 40, ranks(19, 20)),
        ("pairwise", 12, ranks(3, 9)),
    ],
)
def test_codelets_run_each_needed_comparator_once(family, n, select):
    facts = facts_of(family, n, select=select)
    network = Network.from_layers(n, facts["layers"])
    run = [index for codelet in facts["cut"]["codelets"] for index in codelet]
    assert len(run) == len(set(run))
    if select is None:
        assert sorted(run) == list(range(network.size))
    # In the running order the outputs that are wanted come out as in the order of the layers.
    values = np.random.default_rng(0).permutation(n)
    state = values.copy()
    for index in run:
        lo, hi = network.comparators[index].tolist()
        state[lo], state[hi] = sorted((state[lo], state[hi]))
    for wire, rank in facts["ranks"]:
        assert state[wire] == rank
    if facts["cut"]["butterflies"] is not None:
        assert sorted(index for butterfly in facts["cut"]["butterflies"] for index in butterfly) == sorted(
            run
        )


@pytest.mark.parametrize(("family", "n"), [("bitonic", 64), ("odd_even", 33), ("best", 48)])
def test_what_columns_reach_is_run(family, n):
    cut = facts_of(family, n)["cut"]
    network = FAMILIES[family](n)
    assert max(map(len, cut["butterflies"])) > 1
    for block in range(-(-n // cut["columns"])):
        run = set()
        for blocks, butterfly in zip(cut["reached"], cut["butterflies"], strict=True):
            run.update(butterfly if blocks >> block & 1 else ())
        assert len(run) < network.size
        reached = np.arange(n) // cut["columns"] == block
        for index, (lo, hi) in enumerate(network.comparators.tolist()):
            assert index in run or not (reached[lo] or reached[hi])
            reached[[lo, hi]] |= reached[hi] | reached[lo]


def test_a_page_is_one_text_without_addresses():
    facts = facts_of("bitonic", 8)
    text = render_page(facts)
    assert text == render_page(facts_of("bitonic", 8))
    assert text.count("<script") == 2
    # The names of formats for XML are no addresses that a page loads.
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", text.partition("explorer-facts")[0])
    data = re.search(r'id="explorer-facts">(.*?)</script>', text, re.DOTALL)[1]
    assert json.loads(data) == json.loads(json.dumps(facts))


@pytest.mark.slow("networks are large")
def test_long_texts_are_left_out_and_say_where_to_get_them():
    facts = facts_of("odd_even", 128)
    left_out = {text["name"]: text["note"] for text in facts["formats"] if text["text"] is None}
    assert "dot" in left_out
    assert "nsc convert odd_even_128.json odd_even_128.dot" in left_out["dot"]
    assert len(render_page(facts)) < 3 << 20


def test_a_page_of_64_wires_is_about_a_megabyte():
    assert len(render_page(facts_of("bitonic", 64)).encode()) < 1.1e6


def test_a_refuted_network_has_its_failure_and_no_source():
    facts = facts_of([[(0, 2), (1, 3)], [(0, 1), (2, 3)]])
    assert facts["proof"]["verdict"] == "refuted"
    failure = facts["proof"]["failure"]
    assert failure["vector"] == (0, 1, 0, 1)
    assert (failure["mend"]["kind"], failure["mend"]["layer"]) == ("insert", 2)
    assert facts["cut"] is None
    assert facts["sources"] == []
    reversed_ = facts_of([[(0, 1)], [(2, 1)], [(0, 1)]])
    assert reversed_["proof"]["failure"]["mend"]["words"] == "turn (2, 1) in layer 1"


def test_a_family_is_marked_as_the_networks_own_where_it_is_that_family(tmp_path):
    def own(facts):
        return [family["name"] for family in facts["bounds"]["families"] if family["is_own"]]

    assert own(facts_of("bitonic", 8)) == ["bitonic"]
    # Another network, which is taken for two ranks, and one that has only the name of a family.
    assert own(facts_of("best", 16, select=ranks(7, 8))) == []
    file = tmp_path / "best.json"
    file.write_text("[[0, 1], [2, 3], [0, 2], [1, 3], [0, 1], [1, 2]]")
    assert own(facts_of(str(file))) == []


def test_what_is_too_large_or_wrong_is_refused():
    with pytest.raises(NetworkError, match="at most 128 wires and 10,000 comparators"):
        facts_of("bitonic", 129)
    with pytest.raises(NetworkError, match="give one for each wire"):
        nsc.draw("bitonic", 4, values=[1, 2, 3])
    for values in ([1, 2, 3, float("nan")], ["1", "2", "3", "4"], 3, np.float64(3), np.array(3)):
        with pytest.raises(NetworkError, match="finite numbers"):
            nsc.draw("bitonic", 4, values=values)
    with pytest.raises(NetworkError, match="steepness must be"):
        nsc.draw("bitonic", 4, steepness=-1)
    with pytest.raises(NetworkError, match="a network is named by"):
        nsc.draw(3)


def test_modules_are_joined_in_order(monkeypatch):
    texts = {"a": "export const x = 1;\n", "b": 'import { x } from "./a.mjs";\n\nexport function y() {}\n'}
    monkeypatch.setattr(page, "part", lambda name: texts[name.removesuffix(".mjs")])
    assert joined_modules(("a", "b")) == "\n// a.mjs\nconst x = 1;\n\n// b.mjs\n\nfunction y() {}\n"
    with pytest.raises(LoweringError, match="must stand before it"):
        joined_modules(("b", "a"))
    texts["a"] = "/** What it is. */\nconst x = {\n  // Why.\n  y: 1,\n};\n"
    assert joined_modules(("a",)) == "\n// a.mjs\nconst x = {\ny: 1,\n};\n"


def test_draw_takes_what_has_a_network(tmp_path):
    network = FAMILIES["bitonic"](4)

    class Owner:
        pass

    owner = Owner()
    owner.network = network
    explorer = nsc.draw(owner, values=(4, 3, 2, 1), steepness=2)
    assert repr(explorer) == "<Explorer: network, 4 wires>"
    assert '"values":[4.0,3.0,2.0,1.0]' in explorer.html
    assert explorer.save(tmp_path / "x.html").read_text("utf-8") == explorer.html
    assert explorer._repr_html_().startswith("<iframe ")
    with pytest.raises(NetworkError, match="cannot write"):
        explorer.save(tmp_path / "missing" / "x.html")
