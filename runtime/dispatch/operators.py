"""The operators as torch's dispatcher knows them: one static family, its kernel named by a string.

`nsc::relax` and `nsc::relax_backward` do everything soft, `nsc::loss` a loss and its gradient at once,
`nsc::hard_sort` everything exact. They are defined once at import; kernels are built when first
called. Compiled, traced and exported programs keep the string, so they find their kernel in any process
that has imported its package.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nsc.runtime.devices.table import DEVICES
from nsc.runtime.dispatch.autograd import AUTOGRAD_KERNELS
from nsc.runtime.shapes import empty_grads, empty_loss, empty_outputs, empty_sorted

_SCHEMAS = {
    "relax": "(Tensor x, Tensor steepness, Tensor? payload, str routing, str kernel)"
    " -> (Tensor values, Tensor routed)",
    "relax_backward": "(Tensor? values_grad, Tensor? routed_grad, Tensor x, Tensor steepness,"
    " Tensor? payload, str routing, str kernel) -> (Tensor, Tensor, Tensor)",
    "loss": "(Tensor x, Tensor steepness, Tensor target, str routing, str kernel)"
    " -> (Tensor losses, Tensor x_grad, Tensor steepness_grad)",
    "hard_sort": "(Tensor x, str kernel) -> (Tensor, Tensor)",
}
_FAKES: dict[str, Callable[..., Any]] = {
    "relax": empty_outputs,
    "relax_backward": empty_grads,
    "loss": empty_loss,
    "hard_sort": empty_sorted,
}


def _vmap(call: Callable[..., Any], info: Any, dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
    """Fold the mapped dimension into the batch, call, and unfold."""
    size = info.batch_size

    def fold(argument: Any, dim: int | None) -> Any:
        if not isinstance(argument, Tensor):
            return argument
        moved = argument.expand(size, *argument.shape) if dim is None else argument.movedim(dim, 0)
        return moved.reshape(size * moved.shape[1], *moved.shape[2:])

    outputs = call(*(fold(argument, dim) for argument, dim in zip(args, dims, strict=True)))
    return tuple(out.reshape(size, out.shape[0] // size, *out.shape[1:]) for out in outputs), (0,) * len(
        outputs
    )


_library: Any = torch.library.Library("nsc", "DEF")  # type: ignore[no-untyped-call]
for _name, _schema in _SCHEMAS.items():
    _library.define(_name + _schema, tags=(torch.Tag.pt2_compliant_tag,))
    for _device, _implementation in DEVICES.items():
        _library.impl(_name, getattr(_implementation, _name), _device.upper())
    torch.library.register_fake(f"nsc::{_name}", _FAKES[_name], lib=_library)
    torch.library.register_vmap(
        f"nsc::{_name}",
        functools.partial(_vmap, getattr(torch.ops.nsc, _name)),
        lib=_library,
    )
for _name, _kernel in AUTOGRAD_KERNELS.items():
    _library.impl(_name, _kernel, "Autograd", with_keyset=True)
