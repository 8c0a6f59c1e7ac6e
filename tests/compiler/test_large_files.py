"""Files of very many comparators take little memory, in proportion to the comparators."""

import itertools
import tracemalloc

import numpy as np
import pytest

from nsc.compiler.formats import parse_network, readable
from nsc.compiler.network import Network
from nsc.compiler.passes.relayer import relayer

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
    "csv": lambda layers: (
        "layer,lo,hi\n" + "".join(flat([layer], f"{k},{{}},{{}}\n") for k, layer in enumerate(layers))
    ),
    "code": lambda layers: flat(layers, "SWAP({},{});\n"),
}
# One comparator a line, and a list of layers.
OTHERS = {
    "layers": lambda layers: flat(layers, "[({},{})]\n"),
    "json": lambda layers: str(layers),
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
    assert large / network.size < 200
    assert large / small < 1.1 * LARGE / SMALL
    assert relayer(network) == Network.from_layers(N, layers_of(LARGE))


def test_every_format_that_can_hold_so_many_is_tried():
    # A node of a graph takes a hundred bytes of text and more, so such files would exceed the limit of size.
    assert {*WRITERS} == {*readable()} - {"dot", "graphml"}
