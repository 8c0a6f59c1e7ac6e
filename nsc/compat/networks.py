"""diffsort.networks over nsc's networks: layers as matrices, which programs read, move and hand back.

A layer has k comparators. A wire that passes is one too, which compares the wire with itself. Four matrices
hold the layer:

- split_a and split_b (k, n) pick the two wires of each comparator;
- combine_min and combine_max (n, k) say where its minimum and its maximum go, with ½ in both for a wire that
  passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from nsc.compiler.families import bitonic, odd_even
from nsc.compiler.network import Network, check_wires
from nsc.errors import LoweringError, NetworkError

# A layer as four matrices, of torch or NumPy.
Layer = Sequence[Any]


class Layers(Sequence[list[Any]]):
    """A network as diffsort's functions return it. Each layer's matrices are made when it is read.

    Args:
        network: the network.
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
        n, (lo, hi) = self.network.n, self._layers[index].T
        passing = np.setdiff1d(np.arange(n), self._layers[index])
        matrices = _matrices(n, np.append(lo, passing), np.append(hi, passing))
        if self._device is None:
            return matrices
        return [torch.from_numpy(each).float().to(self._device) for each in matrices]


def _matrices(n: int, lo: Any, hi: Any) -> list[Any]:
    """Return the matrices of comparators; a wire that passes is compared with itself."""
    wires, share = np.eye(n), np.where(lo == hi, 0.5, 1.0)
    split_a, split_b = wires[np.minimum(lo, hi)], wires[np.maximum(lo, hi)]
    return [split_a, split_b, wires[lo].T * share, wires[hi].T * share]


def diffsorts_bitonic(n: int) -> Network:
    """Return diffsort's bitonic network: the network of the next power of two without its first wires.

    It does not sort for some n: 22, 38, 42 … 46, 54 are the first.
    """
    whole = bitonic(1 << (n - 1).bit_length())
    layers = (layer - (whole.n - n) for layer in whole.layers())
    return Network.from_layers(n, [layer[(layer >= 0).all(axis=1)] for layer in layers])


NETWORKS = {"odd_even": odd_even, "bitonic": diffsorts_bitonic}


def bitonic_network(n: int) -> Layers:
    """Return diffsort's bitonic network, its matrices in NumPy.

    Raises:
        NetworkError: a size that no network has.

    >>> len(bitonic_network(8))
    6
    """
    return Layers(diffsorts_bitonic(check_wires(n)))


def odd_even_network(n: int) -> Layers:
    """Return the odd-even network, its matrices in NumPy.

    Raises:
        NetworkError: a size that no network has.

    >>> split_a, split_b, combine_min, combine_max = odd_even_network(3)[0]
    >>> split_a
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    return Layers(odd_even(check_wires(n)))


def get_sorting_network(type: str, n: int, device: Any) -> Layers:
    """Return a network by its name, its matrices on a device of torch.

    Raises:
        LoweringError: neither bitonic nor odd_even.
        NetworkError: a size that no network has.

    >>> get_sorting_network("bitonic", 4, "cpu")[0][0].shape
    torch.Size([2, 4])
    """
    if type not in NETWORKS:
        raise LoweringError(f"sorting network {type!r} is unknown: it must be one of {', '.join(NETWORKS)}")
    return Layers(NETWORKS[type](check_wires(n)), device)


def network_of(layers: Sequence[Layer]) -> Network:
    """Return the network that layers of matrices describe.

    Raises:
        NetworkError: matrices that are no comparators.
    """
    if isinstance(layers, Layers):
        return layers.network
    found, n = [], None
    for place, layer in enumerate(layers):
        matrices = [torch.as_tensor(matrix).double().cpu().numpy() for matrix in layer]
        if len(matrices) != 4 or any(matrix.ndim != 2 for matrix in matrices):
            raise NetworkError(f"layer {place} must be four matrices, got {len(matrices)}")
        n = matrices[0].shape[1] if n is None else n
        lo, hi = (matrix.argmax(0) for matrix in matrices[2:])
        is_comparator = lo != hi if len(lo) == len(hi) else None
        if (
            is_comparator is None
            or not np.array_equal(np.sort(np.append(lo, hi[is_comparator])), np.arange(n))
            or not all(map(np.array_equal, matrices, _matrices(n, lo, hi)))
        ):
            raise NetworkError(f"layer {place} has matrices that are no comparators of {n} wires")
        found.append(np.stack([lo, hi], 1)[is_comparator])
    return Network.from_layers(n or 1, found)
