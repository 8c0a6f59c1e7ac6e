"""Network: n wires and layers of disjoint comparators, checked when built."""

from __future__ import annotations

import hashlib
import importlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, zip_longest
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nsc.arguments import integer, path_of
from nsc.errors import NetworkError
from nsc.wording import count

if TYPE_CHECKING:
    import networkx

Comparators = NDArray[np.signedinteger[Any]]
_Item = TypeVar("_Item")

MAX_WIRES = 1 << 16
MAX_SIZE = 1 << 25
_MOST_PRINTED = 1 << 12
# Comparators converted to Python integers at a time.
_PIECE = 1 << 14


@dataclass(frozen=True, eq=False)
class Network:
    """A comparator network.

    A comparator (lo, hi) puts the minimum on wire lo and the maximum on wire hi; lo may be the
    larger index. The comparators of a layer are sorted by their smaller wire, and empty layers are
    dropped, so equal networks have equal arrays.

    Args:
        n: number of wires, 1 … 65,536.
        comparators: (size, 2) integers, columns lo and hi, layer after layer.
        layer_starts: (depth + 1,) integers; layer l is comparators[layer_starts[l]:layer_starts[l + 1]].

    Raises:
        NetworkError: n or a wire is out of range, lo equals hi, or a layer has a wire twice.

    >>> net = Network.from_layers(3, [[(0, 1)], [(1, 2)], [(0, 1)]])
    >>> net.size, net.depth
    (3, 3)
    """

    n: int
    comparators: Comparators
    layer_starts: NDArray[np.int64]

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_wires(self.n))
        pairs = _pairs_array(self.n, self.comparators)
        starts = _starts_array(self.layer_starts, len(pairs))
        if len(pairs) > MAX_SIZE:
            raise NetworkError(f"a network has at most {MAX_SIZE:,} comparators, got {len(pairs):,}")
        layers = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        _check_ends(self.n, pairs, layers)
        _check_disjoint(self.n, pairs, layers)
        places = layers * self.n + pairs.min(axis=1)
        if not _increases(places):
            pairs = pairs[np.argsort(places)]
        ordered = np.array(pairs, dtype=np.int32, order="C")
        ordered.flags.writeable = False
        starts.flags.writeable = False
        object.__setattr__(self, "comparators", ordered)
        object.__setattr__(self, "layer_starts", starts)

    @classmethod
    def from_layers(cls, n: int, layers: Iterable[Sequence[Sequence[int]] | Comparators]) -> Network:
        """Return the network with the given layers, each a sequence of (lo, hi).

        >>> Network.from_layers(3, [[(0, 1)], [(1, 2)]]).depth
        2
        """
        n = check_wires(n)
        arrays = [_pairs_array(n, layer) for layer in layers]
        starts = np.cumsum([0, *(len(a) for a in arrays)])
        return cls(n, np.concatenate([*arrays, np.empty((0, 2), np.int64)]), starts)

    @classmethod
    def from_comparators(cls, n: int, comparators: Sequence[Sequence[int]] | Comparators) -> Network:
        """Return the network that applies the comparators in order, each in its earliest possible layer.

        >>> Network.from_comparators(4, [(0, 1), (2, 3), (1, 2)]).depth
        2
        """
        n = check_wires(n)
        pairs = _pairs_array(n, comparators)
        _check_ends(n, pairs)
        # A list of all pairs would take ten times the memory of the array.
        pieces = (pairs[start : start + _PIECE].tolist() for start in range(0, len(pairs), _PIECE))
        early = earliest_layers(n, chain.from_iterable(pieces))
        layers = np.fromiter(early, np.int64, len(pairs))
        order = np.argsort(layers, kind="stable")
        starts = np.searchsorted(layers[order], np.arange(layers.max(initial=-1) + 2))
        return cls(n, pairs[order].astype(np.int32), starts)

    @classmethod
    def from_graph(cls, graph: networkx.DiGraph) -> Network:
        """Return the network of a comparator graph, each comparator in its earliest layer.

        Args:
            graph: a graph such as `to_graph` returns: the graph attribute ``n``; a node per comparator
                with attributes ``lo`` and ``hi``; an edge from each comparator to the next on a wire.

        Raises:
            NetworkError: an attribute is missing, the graph has a cycle, or no edge joins two
                consecutive comparators of a wire.

        >>> net = Network.from_layers(2, [[(0, 1)]])
        >>> Network.from_graph(net.to_graph()) == net
        True
        """
        network: Network = _formats().network_of_graph(graph)
        return network

    def to_graph(self) -> networkx.DiGraph:
        """Return the comparator graph: a node per comparator, an edge per wire segment.

        Nodes are 0 … size - 1 in order, with attributes ``lo``, ``hi`` and ``layer``. An edge has the
        attribute ``wires``: one wire, or both if the next comparator joins the same two wires.

        >>> Network.from_layers(3, [[(0, 1)], [(1, 2)]]).to_graph().edges(data=True)
        OutEdgeDataView([(0, 1, {'wires': (1,)})])
        """
        graph: networkx.DiGraph = _formats().graph_of(self)
        return graph

    def text(self, format: str = "nsc") -> str:
        """Return the network in a file format, a name that `nsc convert --to` takes.

        Raises:
            NetworkError: no such format, or one that is not written.

        >>> Network.from_layers(3, [[(0, 1)], [(1, 2)]]).text("cn")
        '0:1\\n1:2\\n'
        """
        text: str = _formats().write_network(self, format)
        return text

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> Path:
        """Write the network to a file, whole or not at all, and return its path.

        A warning says what the format cannot hold of the network: the number of its wires, or its layers.

        Args:
            path: the file; one that is there is replaced.
            format: a name that `nsc convert --to` takes; None: by the suffix of the path.

        Raises:
            NetworkError: no such format, or a file that cannot be written.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Network.from_layers(2, [[(0, 1)]]).save(f"{folder}/two.cn").read_text()
        '0:1\\n'
        """
        formats, place = _formats(), path_of("a network's file", path, NetworkError)
        name = formats.format_of_path(place) if format is None else format
        formats.save(self.text(name).encode(), place)
        for loss in formats.losses(self, name):
            warnings.warn(f"nsc: {place}: {loss}", stacklevel=2)
        return place

    @property
    def size(self) -> int:
        """Number of comparators."""
        return len(self.comparators)

    @property
    def depth(self) -> int:
        """Number of layers."""
        return len(self.layer_starts) - 1

    @property
    def counts(self) -> str:
        """The numbers of wires, comparators and layers, in words."""
        return f"{count(self.n, 'wire')}, {count(self.size, 'comparator')}, {count(self.depth, 'layer')}"

    def layers(self) -> Iterator[Comparators]:
        """Yield each layer's comparators as a (k, 2) array, columns lo and hi.

        >>> [layer.tolist() for layer in Network.from_layers(3, [[(0, 1)], [(1, 2)]]).layers()]
        [[[0, 1]], [[1, 2]]]
        """
        for start, end in zip(self.layer_starts, self.layer_starts[1:], strict=False):
            yield self.comparators[start:end]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of n, the layers and the comparators; only equal networks share it."""
        state = hashlib.sha256(f"nsc-network/1 {self.n} {self.depth} ".encode())
        state.update(self.layer_starts.astype("<i8").tobytes())
        state.update(self.comparators.astype("<i4").tobytes())
        return state.hexdigest()

    def apply(self, values: ArrayLike) -> NDArray[np.generic]:
        """Return the network's outputs for values (…, n): integers, or floats without NaN.

        >>> Network.from_layers(2, [[(0, 1)]]).apply([[3, 1], [0, 2]]).tolist()
        [[1, 3], [0, 2]]
        """
        try:
            state = np.array(values)
            if state.ndim == 0 or state.shape[-1] != self.n:
                raise NetworkError(
                    f"this network has {count(self.n, 'wire')}, got values of shape {state.shape}"
                )
            for layer in self.layers():
                lo, hi = layer[:, 0], layer[:, 1]
                a, b = state[..., lo], state[..., hi]
                state[..., lo], state[..., hi] = np.minimum(a, b), np.maximum(a, b)
        except NetworkError:
            raise
        except (TypeError, ValueError):  # objects without an order, lists of several lengths
            raise NetworkError(
                f"this network takes values of {count(self.n, 'number')}, got {str(values)[:80]}"
            ) from None
        return state

    def __len__(self) -> int:
        """Return the number of layers, the depth."""
        return self.depth

    def __bool__(self) -> bool:
        """Return True: a network without comparators is a network too."""
        return True

    def __iter__(self) -> Iterator[Comparators]:
        """Yield each layer's comparators, as `layers` does."""
        return self.layers()

    @overload
    def __getitem__(self, index: slice) -> Network: ...

    @overload
    def __getitem__(self, index: int) -> Comparators: ...

    def __getitem__(self, index: slice | int) -> Network | Comparators:
        """Return some layers as a network on the same wires; or the comparators of one layer.

        Args:
            index: counts layers as a list does its entries. A slice with a step of -1 turns their order.

        Raises:
            IndexError: no such layer.

        >>> net = Network.from_layers(3, [[(0, 1)], [(1, 2)], [(0, 1)]])
        >>> net[1:].depth, net[-1].tolist()
        (2, [[0, 1]])
        """
        if isinstance(index, slice):
            return Network.from_layers(self.n, [*self.layers()][index])
        places = range(self.depth)
        try:
            start = places[index]
        except IndexError:
            raise IndexError(
                f"layer {index} of a network of {count(self.depth, 'layer')}: layers are 0 to depth - 1"
            ) from None
        return self.comparators[self.layer_starts[start] : self.layer_starts[start + 1]]

    def __add__(self, other: Network) -> Network:
        """Return both networks one after the other: `other` gets what this one puts out.

        Layers stay as they are; `nsc.Network.from_comparators` joins what could run together.

        Raises:
            NetworkError: they have different numbers of wires.

        >>> net = Network.from_layers(2, [[(0, 1)]])
        >>> (net + net).depth
        2
        """
        if not isinstance(other, Network):
            return NotImplemented
        if self.n != other.n:
            raise NetworkError(
                f"a network of {count(self.n, 'wire')} and one of {count(other.n, 'wire')} cannot follow "
                "each other: they need equal numbers of wires"
            )
        starts = np.concatenate([self.layer_starts, other.layer_starts[1:] + self.size])
        return Network(self.n, np.concatenate([self.comparators, other.comparators]), starts)

    def __or__(self, other: Network) -> Network:
        """Return both networks side by side: the wires of `other` come behind the wires of this one.

        Raises:
            NetworkError: there would be too many wires.

        >>> net = Network.from_layers(2, [[(0, 1)]])
        >>> (net | net).comparators.tolist()
        [[0, 1], [2, 3]]
        """
        if not isinstance(other, Network):
            return NotImplemented
        none = np.empty((0, 2), np.int64)
        pairs = zip_longest(self.layers(), other.layers(), fillvalue=none)
        layers = (np.concatenate([above, below + (self.n if len(below) else 0)]) for above, below in pairs)
        return Network.from_layers(self.n + other.n, layers)

    def _repr_svg_(self) -> str | None:
        """Return the diagram, which a notebook shows; None for large networks."""
        svg: str | None = _formats().notebook_svg(self)
        return svg

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Network) and self.digest == other.digest

    def __hash__(self) -> int:
        return int(self.digest[:15], 16)

    def __repr__(self) -> str:
        return f"Network(n={self.n}, size={self.size}, depth={self.depth}, digest={self.digest[:12]})"

    def __str__(self) -> str:
        """Return the layers, a line each, as the format `list` has them; above 4,096 comparators the repr.

        >>> print(Network.from_layers(4, [[(0, 2), (1, 3)], [(0, 1), (2, 3)], [(1, 2)]]))
        [(0,2),(1,3)]
        [(0,1),(2,3)]
        [(1,2)]
        """
        is_short = 0 < self.size <= _MOST_PRINTED
        return self.text("list").rstrip() if is_short else repr(self)


def _formats() -> ModuleType:
    """Return the room of formats. It is written in terms of networks, so it is imported when asked for."""
    return importlib.import_module("nsc.compiler.formats")


def check_wires(n: object) -> int:
    """Return a number of wires as an int.

    Raises:
        NetworkError: n is not an integer from 1 to MAX_WIRES.
    """
    wires = integer("n", n, NetworkError)
    if not 1 <= wires <= MAX_WIRES:
        raise NetworkError(f"a network needs 1 <= n <= {MAX_WIRES:,} wires, got {wires}")
    return wires


def _pairs_array(n: int, pairs: Sequence[Sequence[int]] | Comparators) -> NDArray[np.int64]:
    try:
        pairs = pairs if isinstance(pairs, np.ndarray) else list(pairs)
        rows = np.asarray(pairs)
    except (TypeError, ValueError):
        rows = np.empty(1, object)
    if rows.size == 0 and len(pairs) == 0:
        return np.empty((0, 2), np.int64)
    if rows.ndim != 2 or rows.shape[1] != 2 or rows.dtype.kind not in "iu":
        raise NetworkError(f"comparators must be pairs (lo, hi) of wires 0 … {n - 1}, got {str(pairs)[:80]}")
    return rows.astype(np.int64)


def _starts_array(starts: ArrayLike, size: int) -> NDArray[np.int64]:
    try:
        bounds = np.array(starts)
    except ValueError:  # lists of several lengths
        bounds = np.empty(0)
    if bounds.ndim != 1 or bounds.dtype.kind not in "iu" or [*bounds[:1], *bounds[-1:]] != [0, size]:
        raise NetworkError(f"layer_starts must be integers from 0 to {size}, got {str(starts)[:80]}")
    bounds = bounds.astype(np.int64)
    if (np.diff(bounds) < 0).any():
        raise NetworkError(f"layer_starts must not decrease, got {str(starts)[:80]}")
    return bounds[np.diff(bounds, prepend=-1) > 0]


def _check_ends(n: int, pairs: NDArray[np.int64], layers: NDArray[np.int64] | None = None) -> None:
    """Raise NetworkError if a comparator has a wire out of range, or the same wire twice."""
    outside = np.flatnonzero(((pairs < 0) | (pairs >= n)).any(axis=1))
    if len(outside):
        raise _refused(pairs, layers, int(outside[0]), f"has a wire outside 0 … {n - 1} (n = {n})")
    same = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if len(same):
        raise _refused(pairs, layers, int(same[0]), "joins a wire to itself: lo and hi must differ")


def _check_disjoint(n: int, pairs: NDArray[np.int64], layers: NDArray[np.int64]) -> None:
    """Raise NetworkError if a layer touches a wire twice."""
    places = (layers[:, None] * n + pairs).ravel()
    if _increases(places):
        return
    ordered = np.sort(places)
    if (ordered[1:] == ordered[:-1]).any():
        order = np.argsort(places, kind="stable")
        place = int(order[np.flatnonzero(np.diff(places[order]) == 0)[0] + 1])
        fault = f"touches wire {places[place] % n} a second time: a layer's comparators must be disjoint"
        raise _refused(pairs, layers, place // 2, fault)


def _increases(numbers: NDArray[np.int64]) -> bool:
    """Say whether each number is greater than the one before it: sorting millions of them takes seconds."""
    return bool((numbers[1:] > numbers[:-1]).all())


def _refused(
    pairs: NDArray[np.int64], layers: NDArray[np.int64] | None, index: int, fault: str
) -> NetworkError:
    lo, hi = pairs[index].tolist()
    place = f", number {index + 1}," if layers is None else f" in layer {layers[index]}"
    return NetworkError(f"comparator ({lo}, {hi}){place} {fault}")


def earliest_layers(n: int, groups: Iterable[Sequence[int]]) -> Iterator[int]:
    """Yield for each group of wires the earliest layer behind all groups before it that share a wire with it.

    A group is a comparator's wires, or the wires of whatever else works on some of n wires at a time.

    >>> list(earliest_layers(4, [(0, 1), (2, 3), (1, 2)]))
    [0, 0, 1]
    """
    free = [0] * n
    for wires in groups:
        layer = 0
        for wire in wires:
            if free[wire] > layer:
                layer = free[wire]
        yield layer
        layer += 1
        for wire in wires:
            free[wire] = layer


def layered(n: int, items: Sequence[_Item], wires_of: Callable[[_Item], Sequence[int]]) -> list[list[_Item]]:
    """Return the items of each layer, the first layer first.

    Each item works on some of n wires. `wires_of` returns its wires, and `earliest_layers` says its layer.
    """
    layers: list[list[_Item]] = []
    for item, layer in zip(items, earliest_layers(n, map(wires_of, items)), strict=True):
        if layer == len(layers):
            layers.append([])
        layers[layer].append(item)
    return layers
