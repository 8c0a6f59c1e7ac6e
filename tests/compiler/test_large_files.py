"""Catches readers that take much memory or many calls for each comparator of a large file."""

import itertools
import sys
import tracemalloc

import numpy as np
import pytest

from nsc.compiler.formats import parse_network, readable
from nsc.compiler.network import Network
from nsc.compiler.passes import relayer
from nsc.errors import NetworkError

pytestmark = pytest.mark.slow("files are large")

N = 512
SMALL, LARGE = 50, 200  # layers, of N / 2 comparators each


def layers_of(count):
    draw = np.random.default_rng(0)
    return [draw.permutation(N).reshape(-1, 2).tolist() for _ in range(count)]


def flat(layers, pair, between=""):
    return between.join(pair.format(lo, hi) for lo, hi in itertools.chain.from_iterable(layers))


def table(layers):
    ends = np.array(layers).reshape(-1, 2) + 1
    return "\n".join([f"{N} {len(ends)}", *(" ".join(map(str, row)) for row in ends.T.tolist())])


WRITERS = {
    "nsc": lambda layers: f'{{"layers": {layers}, "format": "nsc-network/1", "n": {N}}}',
    "sorterhunter": lambda layers: f'{{"N":{N},"nw":[{flat(layers, "[{},{}]", ",")}]}}',
    "sorterhunter-log": lambda layers: f"{{'N':{N},'nw':[{flat(layers, '({},{})', ',')}]}}",
    "layers": lambda layers: "\n".join(f"[{flat([layer], '({},{})', ',')}]" for layer in layers),
    "json": lambda layers: f"[{flat(layers, '[{}, {}]', ', ')}]",
    "knuth": lambda layers: flat((np.array(layers) + 1).tolist(), "[{}:{}]"),
    "cn": lambda layers: flat(layers, "{}:{}", ","),
    "table": table,
    "pairs": lambda layers: flat(layers, "{} {}\n"),
    "csv": lambda layers: (
        "layer,lo,hi\n" + "".join(flat([layer], f"{k},{{}},{{}}\n") for k, layer in enumerate(layers))
    ),
    "code": lambda layers: flat(layers, "SWAP({},{});\n"),
}
# One comparator a line, and a list of layers.
OTHERS = {
    "layers": lambda layers: flat(layers, "[({},{})]\n"),
    "json": lambda layers: str(layers),
    "pairs": lambda layers: flat(layers, "({},{})", ","),
}


def peak_of(write, format_, count):
    """Return the peak of memory in bytes while a text is read, with the text itself, and the network."""
    text = write(layers_of(count)).encode().decode()
    tracemalloc.start()
    try:
        network = parse_network(text, N, format=format_)
        return tracemalloc.get_traced_memory()[1] + len(text), network
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("format_", "write"),
    [*WRITERS.items(), *OTHERS.items()],
    ids=[*WRITERS, *(f"{name}-other" for name in OTHERS)],
)
def test_memory_is_linear_and_small(format_, write):
    small, _ = peak_of(write, format_, SMALL)
    large, network = peak_of(write, format_, LARGE)
    assert network.size == LARGE * N // 2
    assert large / network.size < 250
    assert large / small < 1.1 * LARGE / SMALL
    assert relayer(network) == Network.from_layers(N, layers_of(LARGE))


def calls_of(function):
    """Return the number of calls, of functions in Python and in C, that a function makes."""
    calls = itertools.count()
    sys.setprofile(lambda _frame, event, _argument: event.endswith("call") and next(calls))
    try:
        function()
    finally:
        sys.setprofile(None)
    return next(calls)


@pytest.mark.parametrize("format_", [*WRITERS, *(f"{name}-other" for name in OTHERS)])
def test_few_functions_are_called_for_a_comparator(format_):
    """What is called a dozen times for each line takes most of a minute for three million comparators."""
    write = OTHERS[format_.removesuffix("-other")] if format_.endswith("-other") else WRITERS[format_]
    text = write([[pair] for layer in layers_of(8) for pair in layer])
    calls = calls_of(lambda: parse_network(text, N, format=format_.removesuffix("-other")))
    assert calls < 15 * 8 * N // 2


@pytest.mark.parametrize("bad", ["[(0,1),(1,2)]", "[(0;1)]", "(0,1)", "[(2,2)]"])
def test_a_bad_line_is_named_by_its_number(bad):
    lines = ["[(0,1)]", "[]", "", " [ (0, 2) , [1,3] ], ", "[(0,1),]"] * 120
    text = "\n".join(lines)
    network = parse_network(text, 4)
    assert (network.size, network.depth) == (480, 360)
    with pytest.raises(NetworkError, match=r"line 601[: ]"):
        parse_network(f"{text}\n{bad}\n[(0,1)]", 4)


def test_every_format_that_can_hold_so_many_is_tried():
    # A node of a graph takes a hundred bytes of text and more, so such files would exceed the limit of size.
    assert {*WRITERS} == {*readable()} - {"dot", "graphml"}
