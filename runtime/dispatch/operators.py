"""The operators of relaxed networks as torch's dispatcher knows them, their kernel named by a string.

`nsc::relax` and `nsc::relax_backward` do everything soft, `nsc::loss` a loss and its gradient at once. They
are defined once at import; kernels are built when first called. Compiled, traced and exported programs keep
the string, so they find their kernel in any process that has imported its package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from nsc.runtime.dispatch.autograd import LOSS, RELAX, RELAX_BACKWARD
from nsc.runtime.dispatch.registering import register_operator
from nsc.runtime.relaxed.devices import DEVICES
from nsc.runtime.relaxed.shapes import empty_grads, empty_loss, empty_outputs


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


for _name, _schema, _fake, _autograd in (
    (
        "relax",
        "(Tensor x, Tensor steepness, Tensor? payload, str routing, str kernel)"
        " -> (Tensor values, Tensor routed)",
        empty_outputs,
        RELAX,
    ),
    (
        "relax_backward",
        "(Tensor? values_grad, Tensor? routed_grad, Tensor x, Tensor steepness,"
        " Tensor? payload, str routing, str kernel) -> (Tensor, Tensor, Tensor)",
        empty_grads,
        RELAX_BACKWARD,
    ),
    (
        "loss",
        "(Tensor x, Tensor steepness, Tensor target, str routing, str kernel)"
        " -> (Tensor losses, Tensor x_grad, Tensor steepness_grad, Tensor target_grad)",
        empty_loss,
        LOSS,
    ),
):
    register_operator(
        _name,
        _schema,
        {device: getattr(module, _name) for device, module in DEVICES.items()},
        fake=_fake,
        vmap=_vmap,
        autograd=_autograd,
        sample_axes=lambda *args: (0,),
    )
