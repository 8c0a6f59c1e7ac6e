"""diffsort.networks over nsc's networks: layers as matrices, which programs read, move and hand back.

A layer has k comparators and wires that pass, as four matrices: split_a and split_b (k, n) pick the two wires
of each, combine_min and combine_max (n, k) say where its minimum and its maximum go. A wire that passes is
both of its wires, with ½ in both of the others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from nsc.compiler.families import bitonic, odd_even
from nsc.compiler.network import Network, check_wires
from nsc.errors import LoweringError, NetworkError

# A layer as four matrices, of torch or NumPy.
Layer = Sequence[Any]
_KEPT = 8


class UnknownNetworkError(LoweringError, NotImplementedError):
    """An unknown network; NotImplementedError is what diffsort raises."""


class Layers(Sequence[list[Any]]):
    """A network as diffsort's functions return it. Each layer's matrices are made when it is read.

    Args:
        network: what it is of.
        device: where the matrices are, as torch takes it; None: they are NumPy's.
    """

    def __init__(self, network: Network, device: Any = None) -> None:
        self.network = network
        self._device = device
        self._layers = list(network.layers())

    def __len__(self) -> int:
        return len(self._layers)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        matrices = _matrices(self.network.n, self._layers[index])
        if self._device is None:
            return matrices
        return [torch.from_numpy(each).float().to(self._device) for each in matrices]

    def __iter__(self) -> Iterator[list[Any]]:
        return (self[place] for place in range(len(self)))

    def __repr__(self) -> str:
        return f"Layers({self.network!r})"


def _matrices(n: int, layer: Any) -> list[Any]:
    lo, hi = layer.T
    passing = np.setdiff1d(np.arange(n), layer)
    count = len(lo) + len(passing)
    split_a, split_b = np.zeros((count, n)), np.zeros((count, n))
    combine_min, combine_max = np.zeros((n, count)), np.zeros((n, count))
    rows = np.arange(len(lo))
    split_a[rows, np.minimum(lo, hi)] = split_b[rows, np.maximum(lo, hi)] = 1
    combine_min[lo, rows] = combine_max[hi, rows] = 1
    rows = np.arange(len(lo), count)
    split_a[rows, passing] = split_b[rows, passing] = 1
    combine_min[passing, rows] = combine_max[passing, rows] = 0.5
    return [split_a, split_b, combine_min, combine_max]


def diffsorts_bitonic(n: int) -> Network:
    """Return diffsort's bitonic network: that of the next power of two without its first wires.

    It does not sort for some n: 22, 38, 42 … 46, 54 are the first.
    """
    whole = bitonic(1 << (n - 1).bit_length())
    layers = (layer - (whole.n - n) for layer in whole.layers())
    return Network.from_layers(n, [layer[(layer >= 0).all(axis=1)] for layer in layers])


NETWORKS = {"odd_even": odd_even, "bitonic": diffsorts_bitonic}


def bitonic_network(n: int) -> Layers:
    """Return diffsort's bitonic network, its matrices in NumPy.

    Raises:
        NetworkError: no size that there is a network for.

    >>> len(bitonic_network(8))
    6
    """
    return Layers(diffsorts_bitonic(check_wires(n)))


def odd_even_network(n: int) -> Layers:
    """Return the odd-even network, its matrices in NumPy.

    Raises:
        NetworkError: no size that there is a network for.

    >>> split_a, split_b, combine_min, combine_max = odd_even_network(3)[0]
    >>> split_a
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    return Layers(odd_even(check_wires(n)))


def get_sorting_network(type: str, n: int, device: Any) -> Layers:
    """Return a network by its name, its matrices on a device of torch.

    Raises:
        UnknownNetworkError: neither bitonic nor odd_even.
        NetworkError: no size that there is a network for.

    >>> get_sorting_network("bitonic", 4, "cpu")[0][0].shape
    torch.Size([2, 4])
    """
    if type not in NETWORKS:
        raise UnknownNetworkError(
            f"sorting network {type!r} is unknown: it must be one of {', '.join(NETWORKS)}"
        )
    return Layers(NETWORKS[type](check_wires(n)), device)


# Networks of layers that were read last. The matrices are kept too, so that their numbers stay theirs.
_read: OrderedDict[tuple[tuple[int, int], ...], tuple[Any, Network]] = OrderedDict()


def network_of(layers: Sequence[Layer]) -> Network:
    """Return the network that layers of matrices are.

    Layers of torch's tensors are read once, and again where one of them was written to since.

    Raises:
        NetworkError: matrices that are no comparators.
    """
    if isinstance(layers, Layers):
        return layers.network
    matrices = [matrix for layer in layers for matrix in layer]
    if not all(isinstance(matrix, torch.Tensor) for matrix in matrices):
        return _parsed(layers)
    key = tuple((id(matrix), matrix._version) for matrix in matrices)
    if key not in _read:
        _read[key] = matrices, _parsed(layers)
        while len(_read) > _KEPT:
            _read.popitem(last=False)
    _read.move_to_end(key)
    return _read[key][1]


def _parsed(layers: Sequence[Layer]) -> Network:
    found, n = [], None
    for place, layer in enumerate(layers):
        matrices = [torch.as_tensor(matrix).double().cpu().numpy() for matrix in layer]
        if len(matrices) != 4 or any(matrix.ndim != 2 for matrix in matrices):
            raise NetworkError(f"layer {place} must be four matrices, got {len(matrices)}")
        split_a, split_b, combine_min, combine_max = matrices
        n = split_a.shape[1] if n is None else n
        a, b = split_a.argmax(1), split_b.argmax(1)
        lo, hi = combine_min.argmax(0), combine_max.argmax(0)
        pairs = np.stack([lo, hi], 1)[a != b]
        # Made of the pairs, the matrices must be the same, in whatever order their comparators stand.
        wanted = _matrices(n, pairs)
        rows = np.argsort(np.where(a != b, np.minimum(a, b), n + a))
        own = np.argsort([*np.minimum(*pairs.T), *(n + np.setdiff1d(np.arange(n), pairs))])
        for matrix, want, axis in zip(matrices, wanted, (0, 0, 1, 1), strict=True):
            if matrix.shape != want.shape or not np.array_equal(
                matrix.take(rows, axis), want.take(own, axis)
            ):
                raise NetworkError(f"layer {place} has matrices that are no comparators of {n} wires")
        found.append(pairs)
    return Network.from_layers(n or 1, found)
