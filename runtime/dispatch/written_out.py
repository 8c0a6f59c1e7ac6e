"""Written out: traces that take plain operations of torch in the place of nsc's operators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

# Not a ContextVar, which torch.compile does not trace.
_now = SimpleNamespace(is_on=False)


def is_written_out() -> bool:
    """Return whether a call that torch traces or transforms is to take plain operations."""
    return bool(_now.is_on)


@contextmanager
def plain_torch() -> Iterator[None]:
    """Trace and export models without operators of nsc: as plain operations of torch, layer by layer.

    Exporters that know torch's operators alone take such a model, as that to ONNX does. Values differ from
    those of kernels by rounding, and are computed many times as slowly. Programs grow with the depth of the
    network, and P is kept whole in each layer. Calls that nothing traces take kernels, as ever. It holds for
    all threads of the process.

    >>> import torch
    >>> import nsc
    >>> model = nsc.nn.SortingNetwork("bitonic", 4)
    >>> with plain_torch():
    ...     program = torch.export.export(model, (torch.randn(2, 4),))
    >>> "nsc" in str(program.graph)
    False
    """
    before, _now.is_on = _now.is_on, True
    try:
        yield
    finally:
        _now.is_on = before
