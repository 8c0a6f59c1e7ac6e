"""Catches hostile files that raise another error, or take more time or memory than their size allows."""

import io
import itertools
import random
import sys
import time
import tracemalloc

import networkx  # noqa: F401  imported here, so that times of reading exclude it
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import networks

from nsc.compiler.formats import FORMATS, parse_network, read_network, readable, write_network
from nsc.compiler.network import Network
from nsc.compiler.passes import relayer
from nsc.errors import NetworkError

pytestmark = pytest.mark.slow("random texts are read")

MEGABYTE = 1 << 20
PART = MEGABYTE // 16  # enough to show growth that is faster than the file's
SECONDS_PER_MEGABYTE = 8  # at most 2.5 on an idle machine; cores of shared machines may be much slower
MEGABYTES_PER_MEGABYTE = 100
WORDS = [
    *["(", ")", "[", "]", "{", "}", "<", ">", ",", ":", ";", "\n", " ", '"', "'", "#", "//", "/*", "*/"],
    *["0", "1", "2", "-1", "99999999999", "1e9", "0x1", "٣", "\0", "\ud800", "\x1b[2J", "n=", "lo=", "->"],
    *[
        "SWAP(",
        "p[0],p[1]);",
        "void f(){",
        "x = [",
        "if(",
        "for ",
        "o--^--o",
        "digraph {",
        "layer,lo,hi",
        "'N':",
        "'nw':[",
        '"nw":',
        '"format":',
        "<graphml>",
        "<!ENTITY",
    ],
]


def check(text, n=None, format=None, index_base=None):
    """Check that a text gives a network, or a NetworkError with a short and printable message."""
    try:
        assert isinstance(parse_network(text, n, format=format, index_base=index_base), Network)
    except NetworkError as error:
        message = str(error)
    else:
        message = ""
    assert not message or message.isprintable()
    assert len(message) < 1500


@settings(max_examples=100)
@given(
    st.lists(st.sampled_from(WORDS) | st.text(max_size=4), max_size=20).map("".join),
    st.none() | st.integers(-1, 9),
    st.none() | st.sampled_from([*readable()]),
    st.sampled_from([None, 0, 1]),
)
def test_words_of_all_formats_in_any_order(text, n, format, index_base):
    check(text, n, format, index_base)


@pytest.mark.parametrize("name", readable())
@settings(max_examples=25)
@given(network=networks(wires=(2, 6), most=3), seed=st.integers(0, 2**32 - 1))
def test_damaged_files(name, network, seed):
    text = write_network(network, name)
    draw = random.Random(seed)
    for _ in range(draw.randint(1, 3)):
        start, length = draw.randint(0, len(text)), draw.choice([0, 0, 1, 1, 5, 50])
        text = text[:start] + draw.choice(["", *WORDS, text[:start]]) + text[start + length :]
    for format in (None, name):
        check(text, None, format)
        check(text, network.n, format)


@settings(max_examples=100)
@given(st.binary(max_size=60), st.sampled_from([None, *readable()]))
def test_random_bytes(content, format):
    try:
        network = read_network(io.BytesIO(content), 4, format=format)
    except NetworkError:
        return
    assert network.n == 4


def filled(unit, before="", after="", size=PART):
    return before + unit * ((size - len(before) - len(after)) // len(unit)) + after


HOSTILE = {
    "open brackets": filled("["),
    "a line of pairs": filled("(0,1),", "[", "]"),
    "bare pairs": filled("(0,1),"),
    "a pair a line": filled("[(0,1)]\n"),
    "digits": filled("1"),
    "one number": filled("1", "[[0,", "]]"),
    "spaces": filled(" "),
    "spaces inside": filled(" ", "[(0,", "1)]"),
    "colons": filled("0:1,"),
    "NUL": filled("\0"),
    "open comments": filled("/* ", "f(0,1);"),
    "a long name": filled("a", "", "(0,1)"),
    "log lines": filled("{'N'", "", "\n{'N':4,}"),
    "spaces in the end": filled(" ", "0:1,", "x"),
    "empty layers": filled("[],", '{"format":"nsc-network/1","n":2,"layers":[', "[]]}"),
    "functions": filled("void f(){" + "A(0,1);A(1,2);" * 20 + "}"),
    "heads": filled("def f(v):\n" + " A(0,1)\n A(1,2)\n" * 8),
    "loops": filled("{A(0,1);for(;;)B(1,2);" + "x();" * 20),
    "names of wires": filled("(p0,p1,q0,q1),"),
    "words": filled("a, ", "f(", "0,1)"),
    "labels": filled("a=b ", "", "[(0,1),(1,2)]"),
    "tables": filled(f"a=[{'0,1,1,2,' * 20}];"),
    "ampersands": filled("& ", "f(", "a[0],a[1])"),
    "exchanges": filled("if(greater(a,b)){t=a;a=b;b=", "", "t;}"),
    "guards": filled("if ", "void f(){", "A(0,1);A(1,2);}"),
    "a drawing": filled("o-^-o\no-v-o\n"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_time_and_memory_are_bounded_by_the_size_of_the_file(case):
    text = HOSTILE[case]
    assert len(text) > PART / 2
    start = time.process_time()
    check(text)
    assert time.process_time() - start < 0.05 + SECONDS_PER_MEGABYTE * len(text) / MEGABYTE
    tracemalloc.start()
    try:
        check(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MEGABYTES_PER_MEGABYTE * len(text)


N, LAYERS = 512, 80
LARGE = ["nsc", "sorterhunter", "list", "cn", "knuth", "code"]


def large_network(layers):
    draw = np.random.default_rng(0)
    return Network.from_layers(N, [draw.permutation(N).reshape(-1, 2) for _ in range(layers)])


@pytest.mark.parametrize("name", LARGE)
def test_a_large_file_takes_little_memory(name):
    """All that is held while a text is read, with the text itself."""
    network = large_network(LAYERS)
    text = write_network(network, name)
    tracemalloc.start()
    try:
        found = parse_network(text, N, format=name)
        peak = tracemalloc.get_traced_memory()[1] + len(text)
    finally:
        tracemalloc.stop()
    assert found == (network if FORMATS[name].holds_layers else relayer(network))
    assert peak / network.size < 250


@pytest.mark.parametrize("name", LARGE)
def test_few_functions_are_called_for_a_comparator(name):
    """What is called a dozen times for each line takes most of a minute for three million comparators."""
    network = large_network(8)
    text = write_network(Network(N, network.comparators, np.arange(network.size + 1)), name)
    parse_network(text, N, format=name)  # patterns are compiled once
    calls = itertools.count()
    sys.setprofile(lambda _frame, event, _argument: event.endswith("call") and next(calls))
    try:
        parse_network(text, N, format=name)
    finally:
        sys.setprofile(None)
    assert next(calls) < 15 * network.size
