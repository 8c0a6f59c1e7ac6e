"""Exact selection along an axis that is spread over processes.

The k largest of all values are among the k largest of each process. So processes exchange k values each, and
select again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from nsc.operators.exact import DTYPE_NAMES, Sorted, select_along
from nsc.operators.operator import Operator
from nsc.operators.sharding import Axes, Shards, is_dtensor, strides_of


def select_of_spread(
    operator: Operator,
    x: Any,
    dim: int = -1,
    *,
    values_only: bool = False,
    index_dtype: torch.dtype = torch.int64,
    **lists: Any,
) -> Sorted | Tensor | None:
    """Do what `Selector.hard_select` does, along an axis that is spread over processes in equal parts.

    Equal values keep their order: each process gives its values in order, and its part of the axis decides
    where they go.

    Returns:
        The results; None if all values must be gathered: for lists, for other ranks than the k largest or the
        k smallest, and for parts of at most k values.
    """
    from torch.distributed.tensor import DTensor, Replicate

    is_listed = any(each is not None for name, each in lists.items() if name != "fill")
    is_known = isinstance(values_only, bool) and index_dtype in (torch.int64, torch.int32)
    outputs = operator.kernel.outputs
    assert outputs is not None
    ranks = outputs.ranks
    number = None if is_listed or not is_known else _cut_of(operator.n, ranks, x, dim)
    if number is None:
        return None
    k, axis, parts = len(ranks), dim % x.dim(), x.device_mesh.size(number)
    length, is_largest = operator.n // parts, 0 not in ranks
    gathered = [Replicate() if number == each else at for each, at in enumerate(x.placements)]
    shape = [*x.shape[:axis], parts * k, *x.shape[axis + 1 :]]

    def from_all(found: Tensor) -> Tensor:
        """Return the finds of all processes, one behind the other."""
        spread = DTensor.from_local(
            found,
            x.device_mesh,
            x.placements,
            run_check=False,
            shape=tuple(shape),
            stride=strides_of(found, shape),
        )
        whole: Tensor = spread.redistribute(placements=gathered).to_local()
        return whole

    first = length - k if is_largest else 0
    own = select_along(x.to_local(), axis, tuple(range(first, first + k)))
    begin = x.device_mesh.get_local_rank(number) * length
    values, places = from_all(own.values), from_all(own.indices + begin)
    behind = operator.n - parts * k if is_largest else 0
    selected = select_along(values, axis, tuple(rank - behind for rank in ranks))
    shards = Shards.of(x, [axis], False, None)
    results: Tensor = shards.whole(selected.values, Axes.OF_X)
    if values_only:
        return results
    indices = places.gather(axis, selected.indices).to(index_dtype)
    return Sorted(results, shards.whole(indices, Axes.OF_X))


def _cut_of(n: int, ranks: Sequence[int], x: Any, dim: int) -> int | None:
    """Return the dimension of the mesh that cuts the axis; None: all values must be gathered."""
    from torch.distributed.tensor import Shard

    k = len(ranks)
    is_axis = isinstance(dim, int) and is_dtensor(x) and -x.dim() <= dim < x.dim()
    if not is_axis or x.dtype not in DTYPE_NAMES:
        return None
    axis = dim % x.dim()
    cuts = [number for number, each in enumerate(x.placements) if each == Shard(axis)]
    if len(cuts) != 1 or x.shape[axis] != n or any(each.is_partial() for each in x.placements):
        return None
    parts = x.device_mesh.size(cuts[0])
    is_served = sorted(ranks) in (list(range(k)), list(range(n - k, n))) and n % parts == 0 and n // parts > k
    return cuts[0] if is_served else None
