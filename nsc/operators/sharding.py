"""Sharding: calls that processes share, by samples or by columns of P.

Samples do not depend on each other. So a method that gets a DTensor runs on the samples of this process, as
plain tensors, and its results become DTensors of the same placements. This one rule serves all methods, their
lists, weights and size classes, in eager calls and in programs that torch compiles.

Columns of P do not depend on each other either. So the processes of a group share out the columns of a loss.
Each process adds up the gradients of its columns, and `_grads_summed` sums them over all processes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from nsc.contract.routings import IGNORED, ROUTINGS, Payload
from nsc.errors import OperandError, OperandTypeError
from nsc.operators.operands import as_loss
from nsc.runtime.dispatch import relaxed
from nsc.runtime.dispatch.ways import Way
from nsc.runtime.relaxed.call import Call

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup
    from torch.distributed.tensor import DeviceMesh, DTensor, Placement


class Axes(Enum):
    """Where a result has the axes of samples, which are the axes of x without the sorted ones."""

    OF_X = "where x has them"
    FIRST = "in front, in their order"
    LAST = "at the end, in their order"


# While this module is not loaded, there are no DTensors. Its import takes as long as torch's.
DTENSORS = "torch.distributed.tensor"
# Parameters in front of x.
_BEFORE_X = ("self", "operator", "name")


class Parts(Enum):
    """Some samples' parts of a reduced loss: the sum of their losses, and the sum of their weights."""

    SUM_AND_COUNT = "float64, (2,)"


# In place of a reduction, it asks for the parts of the samples of one process.
PARTS = Parts.SUM_AND_COUNT


def call_sharded(
    method: Callable[..., Any],
    known: Sequence[str],
    results: Sequence[Axes],
    inner: Callable[..., int] | None,
    args: tuple[Any, ...],
    options: Mapping[str, Any],
) -> Any:
    """Call a method, whose arguments have the known names, on the samples of this process."""
    given = {**dict(zip(known, args, strict=False)), **options}
    own = next(name for name in known if name not in _BEFORE_X)
    x: Any = given.get(own)
    caller = getattr(method, "__qualname__", own)
    if not is_dtensor(x):
        raise _unlike(caller, own, "another operand")
    if inner is None:
        dim = given.get("dim", -1)
        is_axis = isinstance(dim, int) and -x.dim() <= dim < x.dim()
        sorted_axes = [dim % x.dim()] if is_axis else []
    else:
        sorted_axes = list(range(max(0, x.dim() - inner(*args)), x.dim()))
    shards = Shards.of(x, sorted_axes, inner is not None, given.get("payload"))

    def local(name: str, operand: Any) -> Any:
        if isinstance(operand, tuple | list):  # first and last ranks
            return type(operand)(local(name, each) for each in operand)
        if not isinstance(operand, Tensor):
            return operand
        if not is_dtensor(operand) and operand.numel() != 1:
            raise _unlike(caller, name, own)
        return shards.local(operand, name)

    here = {name: local(name, each) for name, each in given.items()}
    if "group" in known and given.get("group") is None:
        operands = x, given.get("target"), given.get("relevance")
        here["group"] = shards.group_of_lists(sorted_axes, operands)
    reduction = given.get("reduction", "mean") if "reduction" in known else "none"
    if reduction not in ("mean", "sum"):
        return _wrapped(method(**here), shards, results)
    parts = shards.total(method(**here | {"reduction": PARTS}))
    return as_loss(mean_of(parts[0], parts[1]) if reduction == "mean" else parts[0], x)


def _unlike(caller: str, name: str, other: str) -> OperandTypeError:
    return OperandTypeError(
        f"{caller}: {name} is a plain tensor and {other} a DTensor: distribute {name} too, with "
        "torch.distributed.tensor.distribute_tensor"
    )


def mean_of(total: Tensor, count: Tensor) -> Tensor:
    """Return the mean loss of samples, from the sum of their losses and the sum of their weights.

    The mean and its gradient are 0 if nothing counts: a batch without a click is common, and must not make a
    model's parameters NaN.
    """
    return total / (count + (count == 0))


def has_dtensor(args: Sequence[Any], options: Mapping[str, Any]) -> bool:
    """Return whether a DTensor is among the arguments of a call."""
    return any(map(is_dtensor, args)) or any(map(is_dtensor, options.values()))


def is_dtensor(operand: Any) -> bool:
    """Return whether an operand is a DTensor."""
    module = sys.modules.get(DTENSORS)
    return module is not None and isinstance(operand, module.DTensor)


class Shards(NamedTuple):
    """Which samples, or columns of a payload, this process has.

    Attributes:
        mesh: the mesh of the processes.
        shape: the shape of x, then the number of columns of a payload; 0: there is none.
        samples: the axes of samples.
        steepened: the axes that a steepness expands to: for images all axes, as each pixel has a steepness.
        cuts: for each dimension of the mesh the axis of this shape that it cuts; None: it cuts none.
    """

    mesh: DeviceMesh
    shape: tuple[int, ...]
    samples: tuple[int, ...]
    steepened: tuple[int, ...]
    cuts: tuple[int | None, ...]

    @classmethod
    def of(cls, x: DTensor, sorted_axes: Sequence[int], are_images: bool, payload: Any) -> Shards:
        from torch.distributed.tensor import Shard

        samples = tuple(axis for axis in range(x.dim()) if axis not in sorted_axes)
        columns = payload.placements if is_dtensor(payload) else [None] * x.device_mesh.ndim
        cuts: list[int | None] = []
        for of_x, of_payload in zip(x.placements, columns, strict=True):
            if isinstance(of_x, Shard) and of_x.dim in samples:
                cuts.append(of_x.dim)
            else:
                is_cut = isinstance(of_payload, Shard) and of_payload.dim == x.dim()
                cuts.append(x.dim() if is_cut else None)
        width = payload.shape[-1] if is_dtensor(payload) else 0
        steepened = tuple(range(x.dim())) if are_images else samples
        return cls(x.device_mesh, (*x.shape, width), samples, steepened, tuple(cuts))

    def group_of_lists(self, sorted_axes: Sequence[int], operands: Sequence[Any]) -> ProcessGroup | None:
        """Return processes that have the same samples and share their entries; None: there are none."""
        from torch.distributed.tensor import Shard

        entry_axes = (*sorted_axes, len(self.shape) - 1)  # the last is the axis of the columns of shares
        flat = [each for one in operands for each in (one if isinstance(one, tuple | list) else (one,))]
        for number, cut in enumerate(self.cuts):
            placements = [each.placements[number] for each in flat if is_dtensor(each)]
            if cut not in self.samples and any(
                isinstance(each, Shard) and each.dim in entry_axes for each in placements
            ):
                return self.mesh.get_group(number)
        return None

    def _place(self, operand: Tensor, name: str, cut: int | None) -> int | None:
        """Return the axis of an operand along which a dimension of the mesh cuts it; None: all have it."""
        dims = operand.dim()
        if cut not in self.samples:
            return dims - 1 if cut is not None and name == "payload" else None
        number = self.samples.index(cut)
        if name == "steepness":  # it expands to the samples
            place = dims - len(self.steepened) + self.steepened.index(cut)
            return place if place >= 0 and operand.shape[place] > 1 else None
        if dims == len(self.samples) or (name == "target" and dims >= len(self.shape)):
            return number
        return cut if dims else None

    def local(self, operand: Tensor, name: str) -> Tensor:
        """Return the part of an operand that belongs to the samples of this process."""
        from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

        if not isinstance(operand, DTensor):
            everywhere = [Replicate()] * self.mesh.ndim
            operand = DTensor.from_local(operand, self.mesh, everywhere, run_check=False)
        assert isinstance(operand, DTensor)
        wanted: list[Placement] = []
        grad_placements: list[Placement] = []
        for cut in self.cuts:
            place = self._place(operand, name, cut)
            wanted.append(Replicate() if place is None else Shard(place))
            # An operand that processes share has a gradient from each process.
            is_summed = place is None and cut is not None
            grad_placements.append(Partial() if is_summed else wanted[-1])
        parts: Tensor = operand.redistribute(self.mesh, wanted).to_local(grad_placements=grad_placements)
        return parts

    def whole(self, result: Tensor, where: Axes) -> DTensor:
        """Return a result of this process's samples as its part of the result of all samples."""
        from torch.distributed.tensor import DTensor, Replicate, Shard

        shape, placements = list(result.shape), []
        for cut in self.cuts:
            if cut is None:
                placements.append(Replicate())
                continue
            if cut not in self.samples:
                place = result.dim() - 1
            elif where is Axes.OF_X:
                place = cut
            else:
                first = result.dim() - len(self.samples) if where is Axes.LAST else 0
                place = first + self.samples.index(cut)
            shape[place] = self.shape[cut]
            placements.append(Shard(place))
        strides = _strides_of(result, shape)
        return DTensor.from_local(
            result, self.mesh, placements, run_check=False, shape=tuple(shape), stride=strides
        )

    def total(self, parts: Tensor) -> DTensor:
        """Return the sum of the parts of all processes."""
        from torch.distributed.tensor import DTensor, Partial, Replicate

        placements = [Partial() if cut in self.samples else Replicate() for cut in self.cuts]
        summed = DTensor.from_local(parts, self.mesh, placements, run_check=False)
        return summed.redistribute(self.mesh, [Replicate()] * self.mesh.ndim)


def _wrapped(results: Any, shards: Shards, places: Sequence[Axes]) -> Any:
    if not isinstance(results, tuple):
        return shards.whole(results, places[0])
    wrapped = [
        None if each is None else shards.whole(each, places[min(number, len(places) - 1)])
        for number, each in enumerate(results)
    ]
    kind: Any = type(results)  # a named tuple takes its fields one by one
    return kind(*wrapped) if hasattr(results, "_fields") else tuple(wrapped)


def _strides_of(part: Tensor, shape: Sequence[int]) -> tuple[int, ...]:
    """Return dense strides for a shape, with its axes in the order in which a part's axes lie in memory."""
    strides, step = [0] * len(shape), 1
    for axis in sorted(range(len(shape)), key=lambda axis: (part.stride(axis), -axis)):
        strides[axis] = step
        step *= max(1, shape[axis])
    return tuple(strides)


# How many columns side by side a process of a group takes: the most that GPU kernels route together.
_STRIPE = 64


def loss_of_group(caller: str, group: ProcessGroup, way: Way, call: Call) -> Tensor:
    """Return the losses of samples; the processes of a group share out the columns of P.

    All processes make this call, with all of its operands. Errors as in `_check_group`.
    """
    _check_group(caller, group)
    x, steepness = _grads_summed(group, call.x, call.steepness)
    assert call.payload is not None
    payload, share = _columns_of(group, call.payload, call.routing)
    losses = relaxed.loss(way, call._replace(x=x, steepness=steepness, payload=payload), is_mean=False)
    return _Sum.apply(losses if share is None else losses * share, group)  # type: ignore[no-any-return, no-untyped-call]


def _check_group(caller: str, group: object) -> None:
    """Raise an error for anything but a group of processes that this process is in."""
    from torch.distributed import GroupMember, ProcessGroup, get_rank

    is_outside = group is GroupMember.NON_GROUP_MEMBER
    if not is_outside and not isinstance(group, ProcessGroup):
        raise OperandTypeError(
            f"{caller}: group must be a ProcessGroup, as torch.distributed.new_group makes it, got "
            f"{type(group).__name__}"
        )
    if is_outside or get_rank(group) < 0:
        raise OperandError(f"{caller}: this process is not in the group: let its processes alone call")


def _columns_of(group: ProcessGroup, payload: Tensor, routing: str) -> tuple[Tensor, Tensor | None]:
    """Return a target in which this process's items alone count; for ranks, their share of a sample's too."""
    own = _own_columns(group, payload.shape[-1], payload.device)
    if ROUTINGS[routing].payload is not Payload.TARGET:
        if payload.requires_grad:  # of shares
            payload = _Same.apply(payload, group)  # type: ignore[no-untyped-call]
        *_, rows, _ = payload.shape
        is_kept = own | (torch.arange(rows, device=own.device) < rows - 1).unsqueeze(-1)
        return torch.where(is_kept, payload, 0), None
    counted = payload != IGNORED
    share = (counted & own).sum(-1).double() / counted.sum(-1).clamp_min(1)
    return torch.where(own, payload, IGNORED), share


def _own_columns(group: ProcessGroup, n: int, device: torch.device) -> Tensor:
    """Return which of n columns of P this process has, (n,)."""
    # An even number of processes makes two teams, one for each half of the wires, as a kernel prepares tables
    # for a half. A team deals out stripes in turn, as columns of the outer wires may take fewer comparators.
    from torch.distributed import get_rank, get_world_size

    size: int = get_world_size(group)
    teams = 2 - size % 2
    stripe = min(_STRIPE, -(-n // size))
    stripes = -(-n // stripe)
    numbers = torch.arange(n, device=device) // stripe
    owners = numbers * teams // stripes + teams * (numbers % (size // teams))
    is_own: Tensor = owners == get_rank(group)
    return is_own


def _grads_summed(group: ProcessGroup, keys: Tensor, steepness: Tensor) -> tuple[Tensor, Tensor]:
    """Return keys (batch, n) and steepness (batch,); one all-reduce sums the gradients of both."""
    if not steepness.requires_grad:
        return _Same.apply(keys, group), steepness  # type: ignore[no-untyped-call]
    both = torch.cat([keys, steepness.unsqueeze(-1)], 1)
    both = _Same.apply(both, group)  # type: ignore[no-untyped-call]
    return both[:, :-1].contiguous(), both[:, -1]


class _Same(torch.autograd.Function):
    """A tensor that all processes have. Each uses it for its part, so the gradients are summed."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _Sum.apply(grad, ctx.group), None  # type: ignore[no-untyped-call]


class _Sum(torch.autograd.Function):
    """The sum of the processes' parts. All use it alike, so each part gets its gradient as it is."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, group: ProcessGroup) -> Tensor:
        from torch.distributed import all_reduce

        ctx.group = group
        total = part.clone(memory_format=torch.contiguous_format)
        all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _Same.apply(grad, ctx.group), None  # type: ignore[no-untyped-call]
