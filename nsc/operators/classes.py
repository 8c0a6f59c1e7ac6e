"""Size classes: samples of few entries run on the network of the first wires.

The whole network gives the same results up to rounding, see `compiler/passes.py`. Calls that torch
traces or transforms run the whole network, as the classes of samples are not known then.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor

from nsc.contract.routings import ROUTINGS
from nsc.runtime.relaxed.call import Classes, SizeClass
from nsc.runtime.relaxed.kernel import Kernel

# Fewer wires than this are not worth a class.
_LEAST = 8
# How many mixes, of a column by a comparator, take as long as cutting a class out of a batch.
_WORTH = 150_000


@functools.cache
def sizes_of(n: int) -> tuple[int, ...]:
    """Return the sizes of the classes of n wires: n, and 2^k and 3·2^k below it.

    >>> sizes_of(40)
    (8, 12, 16, 24, 32, 40)
    """
    powers = [1 << k for k in range(n.bit_length())]
    return tuple(sorted({size for p in powers for size in (p, 3 * p) if _LEAST <= size < n} | {n}))


def classes_of(kernel: Kernel, counts: Tensor, routing: str) -> Classes:
    """Return the size classes of a call on plain tensors; the whole network's alone if no other pays.

    `counts`, (batch,), says how many entries, which stand in front, each sample has.
    """
    whole = (SizeClass(kernel, None, counts),)
    if len(counts) * _work(kernel, kernel.n, routing) < _WORTH:
        return whole
    places = list(_cut(kernel, counts, routing))
    if [size for size, _ in places] in ([], [kernel.n]):
        return whole
    from nsc.join.on_demand import kernel_of_first_wires  # a package is loaded without the compiler

    return tuple(
        SizeClass(
            kernel if size == kernel.n else kernel_of_first_wires(kernel.spec, size), chosen, counts[chosen]
        )
        for size, chosen in places
    )


def _cut(kernel: Kernel, counts: Tensor, routing: str) -> Iterator[tuple[int, Tensor]]:
    """Yield the sizes that pay, with the samples of each; a class that does not pay joins the next larger."""
    sizes = sizes_of(kernel.n)
    classes = torch.bucketize(counts, _tensor(sizes))
    in_class = torch.bincount(classes, minlength=len(sizes)).tolist()
    least = 0
    for place, (size, next_size) in enumerate(pairwise(sizes)):
        waiting = sum(in_class[least : place + 1])
        if waiting * (_work(kernel, next_size, routing) - _work(kernel, size, routing)) > _WORTH:
            yield size, ((least <= classes) & (classes <= place)).nonzero().squeeze(-1)
            least = place + 1
    if sum(in_class[least:]):
        yield sizes[-1], (classes >= least).nonzero().squeeze(-1)


@functools.cache
def _tensor(sizes: tuple[int, ...]) -> Tensor:
    with torch.inference_mode(False):
        return torch.tensor(sizes, device="cpu")


def _work(kernel: Kernel, size: int, routing: str) -> float:
    """Return about how many mixes a sample of a class takes: comparators times columns."""
    share = size / kernel.n
    columns = {"none": 0, "permutation": size}.get(routing, size if ROUTINGS[routing].is_loss else 8)
    return kernel.size * share * columns
