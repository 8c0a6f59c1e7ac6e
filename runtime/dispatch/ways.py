"""Ways: how a call reaches its kernel, decided in one place.

Plain tensors reach the kernel through an autograd.Function. A registered operator takes many times as long,
which would be most of the time of a small sort. All other calls go to the registered operators, see
`register_operator`, or to plain operations of torch where a program asks for these.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

import torch
from torch import _C, Tensor
from torch.autograd import forward_ad

from nsc.runtime.relaxed.devices import BY_DEVICE


class Way(Enum):
    """How a call reaches its kernel. `way_of` tests these in order and returns the first that is true."""

    FORWARD = "forward mode"  # tensors may carry tangents: the plain torch reference has their derivatives
    COMPILED = "compiled"  # torch.compile or torch.export traces the call
    TRANSFORMED = "transformed"  # torch.func: grad, vmap, vjp, …
    WATCHED = "watched"  # a tracer, a mode, a subclass, a device without kernels, no memory, a lazy negation
    PLAIN = "plain"  # none of these: the kernel may be called directly


# In Python 3.11 looking up a member of an enum takes as long as a few lines of a call.
PLAIN = Way.PLAIN

_PLAIN_TYPES = (Tensor, torch.nn.Parameter)


def way_of(*tensors: Tensor | None, with_tangents: bool = True) -> Way:
    """Return how a call with these tensors reaches its kernel.

    Without `with_tangents` the answer is as if the tensors had no tangents.
    """
    if with_tangents and forward_ad._current_level >= 0:
        return Way.FORWARD
    if torch.compiler.is_compiling():
        return Way.COMPILED
    if _C._are_functorch_transforms_active():
        return Way.TRANSFORMED
    if _C._is_tracing() or _C._len_torch_dispatch_stack() > 0:
        return Way.WATCHED
    for tensor in tensors:
        # Whether a kernel may read the tensor's memory.
        if tensor is not None and (
            type(tensor) not in _PLAIN_TYPES
            or BY_DEVICE[tensor.device] is None
            or not _C._has_storage(tensor)
            or tensor.is_neg()
        ):
            return Way.WATCHED
    return PLAIN


# Has an entry for each block of `plain_torch` that is open: blocks of threads end in any order. Not a
# ContextVar, which torch.compile does not trace.
_plain_blocks: list[None] = []


def is_written_out() -> bool:
    """Return whether a call that torch traces or transforms is to take plain operations."""
    return bool(_plain_blocks)


@contextmanager
def plain_torch() -> Iterator[None]:
    """Trace and export models without operators of nsc: as plain operations of torch, layer by layer.

    Exporters that know torch's operators alone take such a model, as the exporter to ONNX does. Its values
    differ from the values of kernels by rounding, and take many times as long. Programs grow with the depth
    of the network, and P is kept whole in each layer. Calls that nothing traces take kernels, as ever. The
    context holds for all threads of the process.

    >>> import torch
    >>> import nsc
    >>> model = nsc.nn.SortingNetwork("bitonic", 4)
    >>> with plain_torch():
    ...     program = torch.export.export(model, (torch.randn(2, 4),))
    >>> "nsc" in str(program.graph)
    False
    """
    _plain_blocks.append(None)
    try:
        yield
    finally:
        _plain_blocks.pop()
