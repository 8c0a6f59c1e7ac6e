"""Catches notebooks that show networks, proofs, operators and results of optimize wrongly or unescaped."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import nsc
from nsc.compiler.cards import bits, card
from nsc.compiler.families import bitonic, family_network
from nsc.compiler.optimize import optimize
from nsc.compiler.verify import Budget, parse


def text_of(html):
    """Return the text of HTML whose elements are all closed in order."""
    parts = ElementTree.fromstring(f"<div>{html}</div>").itertext()
    return re.sub(r"\s+", " ", "".join(f" {part}" for part in parts))


def test_a_network_shows_its_diagram_unless_it_is_large():
    root = ElementTree.fromstring(bitonic(8)._repr_svg_())
    assert len([line for line in root.iter() if line.get("class") == "comparator"]) == 24
    assert bitonic(128)._repr_svg_() is not None
    assert bitonic(1024)._repr_svg_() is None
    assert family_network("insertion", 120)._repr_svg_() is None


def test_a_proof_shows_its_verdict_and_counterexample():
    assert "sorts property sort method " in text_of(nsc.verify(bitonic(8))._repr_html_())
    refuted = nsc.verify(bitonic(8)[:-1])
    text = text_of(refuted._repr_html_())
    assert "does not sort" in text
    assert f"0-1 input that comes out wrong {' '.join(map(str, map(int, refuted.counterexample)))}" in text
    assert f"permutation that comes out wrong {' '.join(map(str, refuted.failing_input))}" in text
    colours = {
        re.search("solid (#......)", each._repr_html_())[1] for each in (refuted, nsc.verify(bitonic(8)))
    }
    assert len(colours) == 2


def test_operators_show_what_they_are():
    sorter = nsc.compile("bitonic", 4, relaxation="cauchy")
    text = text_of(sorter._repr_html_())
    for part in (
        "4 wires, 6 comparators, 3 layers",
        "all ranks",
        "cauchy",
        "cpu",
        "sorts: ",
        "default steepness 6",
    ):
        assert part in text
    assert sorter._repr_html_().count('class="comparator"') == 6
    assert "ranks 3, 0" in text_of(nsc.compile("bitonic", 4, select=nsc.ranks(3, 0))._repr_html_())


def test_a_result_of_optimize_shows_the_gain():
    network = family_network("pairwise", 4)
    wasteful = network + network
    result = optimize(wasteful, parse("sort", 4), Budget())
    text = text_of(result._repr_html_())
    assert "5 comparators fewer comparators 10 → 5 layers 6 → 3" in text
    assert "not looked for" not in text


def test_texts_are_escaped():
    html = card("<script>", {"<b>": "a & b < c", "bits": bits((0, 1))})
    assert "<script>" not in html
    assert text_of(html) == " <script> <b> a & b < c bits 0 1 "
