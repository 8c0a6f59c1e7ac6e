import functools
import operator
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import networks

from nsc.compiler.diagram import bands, diagram_width, knuth_diagram, svg
from nsc.compiler.families import FAMILIES
from nsc.compiler.network import Network


def comparators_of(text, n):
    """Return the comparators of a diagram, column by column."""
    label = len(str(n - 1)) + 2
    rows = [line[label:] for line in text.splitlines()[:n]]
    pairs = []
    for column in zip(*rows, strict=True):
        open_ends = {}
        for wire, mark in enumerate(column):
            if mark in "○●":
                if open_ends:
                    (other, other_mark), *_ = open_ends.items()
                    assert {mark, other_mark} == {"○", "●"}
                    pairs.append((other, wire) if other_mark == "○" else (wire, other))
                    open_ends = {}
                else:
                    open_ends[wire] = mark
            else:
                assert mark == ("┼" if open_ends else "─")
        assert not open_ends
    return pairs


@settings(max_examples=150)
@given(networks(wires=(1, 12)))
def test_a_diagram_shows_every_wire_and_comparator(network):
    text = knuth_diagram(network)
    lines = text.splitlines()
    assert len(lines) in (network.n, network.n + 1)
    assert [int(line.split()[0]) for line in lines[: network.n]] == list(range(network.n))
    assert len({len(line) for line in lines[: network.n]}) == 1
    assert text.count("○") == text.count("●") == network.size
    assert text.count("┆") == network.depth
    pairs = comparators_of(text, network.n)
    assert sorted(pairs) == sorted(map(tuple, network.comparators.tolist()))
    assert Network.from_comparators(network.n, pairs) == Network.from_comparators(
        network.n, network.comparators
    )


@pytest.mark.parametrize("n", [1, 2, 10, 11, 32])
def test_families_have_diagrams(n):
    for family in FAMILIES.values():
        network = family(n)
        assert len(comparators_of(knuth_diagram(network), n)) == network.size


def test_a_reversed_comparator_has_its_minimum_below():
    lines = knuth_diagram(Network.from_layers(2, [[(1, 0)]])).splitlines()
    assert lines[:2] == ["0 ─●───", "1 ─○───"]


@settings(max_examples=60)
@given(networks(wires=(1, 12)), st.integers(1, 40))
def test_bands_fit_the_window(network, width):
    parts = list(bands(network, width))
    assert functools.reduce(operator.add, parts) == network
    for part in parts:
        drawn = max(map(len, knuth_diagram(part).splitlines()[: part.n]))
        assert diagram_width(part.n, part) == drawn
        assert drawn <= width or len(part) <= 1


def test_the_style_of_a_picture_is_its_own():
    """In a page, the style of an SVG element holds for the whole page: for the plots beside it too."""
    text = svg(FAMILIES["bitonic"](4))
    style = re.search(r"<style>(.*?)</style>", text)[1]
    for rule in re.findall(r"([^{}]+)\{", style.replace("@media (prefers-color-scheme:dark){", "")):
        assert all(re.match(r"\.nsc-network(:root)?( |$)", selector) for selector in rule.split(",")), rule
    assert text.startswith('<svg class="nsc-network" ')
