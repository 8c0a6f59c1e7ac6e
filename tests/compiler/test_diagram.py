"""Diagrams, in text, SVG and TikZ: a wire or comparator that is missing, twice, turned or on another one."""

import functools
import operator
import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import networks

from nsc.compiler.diagram import bands, columns, diagram_width, knuth_diagram, svg
from nsc.compiler.families import FAMILIES
from nsc.compiler.formats import write_network
from nsc.compiler.network import Network
from nsc.errors import NetworkError

SVG = "{http://www.w3.org/2000/svg}"


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


@settings(max_examples=60)
@given(networks(wires=(1, 12)))
def test_a_diagram_shows_every_wire_and_comparator(network):
    text = write_network(network, "ascii")
    assert text == knuth_diagram(network) + "\n"
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


@settings(max_examples=30)
@given(networks(wires=(1, 12)))
def test_an_svg_shows_every_wire_and_comparator(network):
    root = ElementTree.fromstring(write_network(network, "svg"))
    lines = list(root.iter(f"{SVG}line"))
    wires = [line for line in lines if line.get("class") == "wire"]
    comparators = [line for line in lines if line.get("class") == "comparator"]
    assert (len(wires), len(comparators)) == (network.n, network.size)
    assert [text.text for text in root.iter(f"{SVG}text")] == list(map(str, range(network.n)))
    heights = {wire.get("y1"): index for index, wire in enumerate(wires)}
    left_to_right = sorted(comparators, key=lambda line: int(line.get("x1")))
    pairs = [(heights[line.get("y1")], heights[line.get("y2")]) for line in left_to_right]
    assert sorted(pairs) == sorted(map(tuple, network.comparators.tolist()))
    assert Network.from_comparators(network.n, pairs) == Network.from_comparators(
        network.n, network.comparators
    )
    points = [
        (line.get("x1"), y) for line in comparators for y in span(int(line.get("y1")), int(line.get("y2")))
    ]
    assert len(points) == len(set(points)), "comparators lie on each other"
    width, height = int(root.get("width")), int(root.get("height"))
    assert all(0 < int(line.get("x1")) < width and 0 < int(line.get("y2")) < height for line in lines)
    arrows = [path for path in root.iter(f"{SVG}path") if path.get("class") == "arrowhead"]
    assert len(arrows) == sum(lo > hi for lo, hi in network.comparators.tolist())


def span(y_lo, y_hi):
    return range(min(y_lo, y_hi), max(y_lo, y_hi) + 1, 20)


@settings(max_examples=30)
@given(networks(wires=(1, 9)))
def test_tikz_is_balanced_and_complete(network):
    text = write_network(network, "tikz")
    assert text.startswith(r"\begin{tikzpicture}[")
    assert text.endswith("\\end{tikzpicture}\n")
    assert all(line.endswith(";") for line in text.splitlines()[1:-1] if not line.startswith("%"))
    for opening, closing in ("{}", "()", "[]"):
        assert text.count(opening) == text.count(closing)
    commands = re.findall(r"\\draw\[(comparator|reversed)\] \((\d+),-?(\d+)\) -- \(\2,-?(\d+)\);", text)
    pairs = [(int(lo), int(hi)) for _, _, lo, hi in commands]
    assert sorted(pairs) == sorted(map(tuple, network.comparators.tolist()))
    assert all(
        (style == "reversed") == (lo > hi) for (style, *_), (lo, hi) in zip(commands, pairs, strict=True)
    )
    assert text.count("->]") == sum(lo > hi for lo, hi in pairs)
    assert text.count(r"\draw[gray]") == network.n


def test_a_text_diagram_too_large_to_read_is_refused():
    with pytest.raises(NetworkError, match=r"65,536 wires and 32,769 columns .*write svg"):
        write_network(Network.from_layers(1 << 16, [[(k, k + (1 << 15)) for k in range(1 << 15)]]), "ascii")


def test_columns_are_filled_first_fit():
    assert columns(Network.from_layers(6, [[(0, 1), (2, 3), (5, 4)]]).comparators) == [
        [(0, 1), (2, 3), (5, 4)]
    ]
    nested = Network.from_layers(8, [[(0, 7), (1, 2), (3, 6), (4, 5)]]).comparators
    assert columns(nested) == [[(0, 7)], [(1, 2), (3, 6)], [(4, 5)]]
