"""Catches readers that take much memory or many calls for each comparator of a large file."""

import itertools
import sys
import tracemalloc

import numpy as np
import pytest

from nsc.compiler.formats import parse_network
from nsc.compiler.network import Network
from nsc.compiler.passes import relayer
from nsc.errors import NetworkError

pytestmark = pytest.mark.slow("files are large")

N = 512
LAYERS = 120  # of N / 2 comparators each


def layers_of(count):
    draw = np.random.default_rng(0)
    return [draw.permutation(N).reshape(-1, 2).tolist() for _ in range(count)]


def flat(layers, pair, between=""):
    return between.join(pair.format(lo, hi) for lo, hi in itertools.chain.from_iterable(layers))


def table(layers):
    ends = np.array(layers).reshape(-1, 2) + 1
    return "\n".join([f"{N} {len(ends)}", *(" ".join(map(str, row)) for row in ends.T.tolist())])


# Knuth's format, pairs and code are read as cn is. Files of graphs would exceed the limit of size.
WRITERS = {
    "nsc": lambda layers: f'{{"layers": {layers}, "format": "nsc-network/1", "n": {N}}}',
    "sorterhunter": lambda layers: f'{{"N":{N},"nw":[{flat(layers, "[{},{}]", ",")}]}}',
    "sorterhunter-log": lambda layers: f"{{'N':{N},'nw':[{flat(layers, '({},{})', ',')}]}}",
    "layers": lambda layers: "\n".join(f"[{flat([layer], '({},{})', ',')}]" for layer in layers),
    "json": lambda layers: f"[{flat(layers, '[{}, {}]', ', ')}]",
    "cn": lambda layers: flat(layers, "{}:{}", ","),
    "table": table,
    "csv": lambda layers: (
        "layer,lo,hi\n" + "".join(flat([layer], f"{k},{{}},{{}}\n") for k, layer in enumerate(layers))
    ),
}


@pytest.mark.parametrize("format_", WRITERS)
def test_memory_is_small(format_):
    """Of all that is held while a text is read, with the text itself."""
    text = WRITERS[format_](layers_of(LAYERS)).encode().decode()
    tracemalloc.start()
    try:
        network = parse_network(text, N, format=format_)
        peak = tracemalloc.get_traced_memory()[1] + len(text)
    finally:
        tracemalloc.stop()
    assert network.size == LAYERS * N // 2
    assert peak / network.size < 250
    assert relayer(network) == Network.from_layers(N, layers_of(LAYERS))


def calls_of(function):
    """Return the number of calls, of functions in Python and in C, that a function makes."""
    calls = itertools.count()
    sys.setprofile(lambda _frame, event, _argument: event.endswith("call") and next(calls))
    try:
        function()
    finally:
        sys.setprofile(None)
    return next(calls)


@pytest.mark.parametrize("format_", WRITERS)
def test_few_functions_are_called_for_a_comparator(format_):
    """What is called a dozen times for each line takes most of a minute for three million comparators."""
    text = WRITERS[format_]([[pair] for layer in layers_of(8) for pair in layer])
    assert calls_of(lambda: parse_network(text, N, format=format_)) < 15 * 8 * N // 2


@pytest.mark.parametrize("bad", ["[(0,1),(1,2)]", "[(0;1)]", "(0,1)"])
def test_a_bad_line_is_named_by_its_number(bad):
    lines = ["[(0,1)]", "[]", "", " [ (0, 2) , [1,3] ], ", "[(0,1),]"] * 120
    text = "\n".join(lines)
    network = parse_network(text, 4)
    assert (network.size, network.depth) == (480, 360)
    with pytest.raises(NetworkError, match=r"line 601[: ]"):
        parse_network(f"{text}\n{bad}\n[(0,1)]", 4)
