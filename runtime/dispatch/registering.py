"""Registering: how an operator of nsc enters torch's dispatcher, with all that torch's modes ask of it.

`register_operator` is the only way. It asks for a kernel for the dispatcher's Autograd key, which has an
operator's derivatives in every transform. torch's own `register_autograd` would not do: its formulas are
refused inside torch.func, and silently zero in forward mode.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from nsc.errors import PackageError
from nsc.runtime.dispatch.ways import Way, way_of

_library: Any = torch.library.Library("nsc", "DEF")  # type: ignore[no-untyped-call]


def register_operator(
    name: str,
    schema: str,
    implementations: Mapping[str, Callable[..., Any]],
    *,
    fake: Callable[..., Any],
    vmap: Callable[..., Any],
    autograd: Callable[..., Any],
) -> None:
    """Define the operator `torch.ops.nsc.NAME`.

    Args:
        name: its name.
        schema: its arguments and results, as torch.library writes them.
        implementations: type of device to the function that computes it there.
        fake: returns its results without values.
        vmap: takes the operator, then what torch.library.register_vmap gives.
        autograd: takes the keys that a call has left, then the operator's arguments; returns the results with
            their derivatives, of every order and in forward mode too. It calls `below` for the values.

    Raises:
        PackageError: a deployed library was loaded before nsc.
    """
    if torch._C._dispatch_has_kernel(f"nsc::{name}"):
        raise PackageError(
            "a deployed library has defined nsc's operators in this process: import nsc first, then the "
            "library leaves them to it"
        )
    _library.define(name + schema, tags=(torch.Tag.pt2_compliant_tag,))
    for device, implementation in implementations.items():
        _library.impl(name, implementation, device.upper())
    _library.impl(name, autograd, "Autograd", with_keyset=True)
    torch.library.register_fake(f"nsc::{name}", fake, lib=_library)
    mapped = functools.partial(vmap, getattr(torch.ops.nsc, name))
    torch.library.register_vmap(f"nsc::{name}", mapped, lib=_library)


def below(name: str, keyset: Any, args: tuple[Any, ...]) -> Any:
    """Call the kernels of an operator that lie below its Autograd kernel."""
    with torch._C._AutoDispatchBelowAutograd():
        operator = getattr(torch.ops.nsc, name).default
        return operator.redispatch(keyset & torch._C._after_autograd_keyset, *args)


def is_differentiated(x: Tensor) -> bool:
    """Return whether a derivative of the results of a call with a tensor may be asked for."""
    # While torch compiles, transforms of torch.func are known, but not whether one is forward mode.
    is_transformed = way_of() is Way.FORWARD or torch._C._are_functorch_transforms_active()
    return x.is_floating_point() and (is_transformed or (torch.is_grad_enabled() and x.requires_grad))
