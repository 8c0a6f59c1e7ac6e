"""The operators as torch knows them: one static family, its kernel named by a string.

`nsc::relax` and `nsc::relax_backward` do everything soft, `nsc::argsort` everything exact. They are
defined once at import; kernels are built when first called. Compiled and exported programs keep the
string, so they find their kernel in any process that has imported its package.

Three ways lead to a kernel, because no single one serves every transform of torch:
  - eager and torch.compile call the operator, whose backward formula is registered;
  - inside torch.func an autograd.Function with a vmap rule calls it, since registered formulas do
    not reach there;
  - forward mode goes to the plain torch reference, since a registered operator would silently have
    zero tangents.
Derivatives of the backward itself go to the reference too.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from nsc.errors import OperandError, PackageError
from nsc.runtime import reference
from nsc.runtime.kernel import Kernel

# What the routing pass does, and its code in the C interface. The payload is (batch, n, m) for
# "route" and "transposed", the (batch, n) target ranks for the losses, and absent otherwise.
ROUTINGS: dict[str, int] = {
    "none": 0,
    "permutation": 1,
    "route": 2,
    "transposed": 3,
    "cross_entropy": 4,
    "binary_cross_entropy": 5,
}
_WITH_PAYLOAD_GRAD = ("route", "transposed")

_OUT_OF_MEMORY, _BAD_STEEPNESS, _NO_PERMUTATION = 1, 2, 3

_kernels: dict[str, Kernel] = {}


def register(files: Mapping[str, str]) -> Kernel:
    """Return the kernel of a package's files, known to the operators by its `spec` from now on."""
    kernel = Kernel(files)
    return _kernels.setdefault(kernel.spec, kernel)


def relax(
    kernel: Kernel, x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str
) -> tuple[Tensor, Tensor]:
    """Run the keys pass and a routing.

    Args:
        kernel: a registered kernel.
        x: (batch, n), of an arithmetic type the kernel is compiled for.
        steepness: (batch,), same dtype; may be expanded from one value.
        payload: see ROUTINGS; same dtype, or int64 for targets.
        routing: a key of ROUTINGS.

    Returns:
        Values (batch, n), and what was routed: (batch, 0) for "none", P (batch, n, n) for
        "permutation", (batch, n, m) for a payload, (batch,) for a loss.
    """
    if forward_ad._current_level >= 0:
        if not torch.compiler.is_compiling() and not _in_transform():
            _check_values(kernel, steepness, payload, routing)
        return reference.relax(kernel, x, steepness, payload, routing)
    if not torch.compiler.is_compiling() and _in_transform():
        return _Relax.apply(x, steepness, payload, routing, kernel.spec)  # type: ignore[no-any-return, no-untyped-call]
    return torch.ops.nsc.relax(x, steepness, payload, routing, kernel.spec)  # type: ignore[no-any-return]


def argsort(kernel: Kernel, x: Tensor) -> Tensor:
    """Return the order of x, (batch, n), ascending: ties by position, NaN last; int64."""
    return torch.ops.nsc.argsort(x, kernel.spec)  # type: ignore[no-any-return]


def _in_transform() -> bool:
    return torch._C._are_functorch_transforms_active()


def _kernel(spec: str) -> Kernel:
    if spec not in _kernels:
        raise PackageError(
            f"kernel {spec} is not known in this process: import its generated package, or nsc.load "
            "its folder, before running a program that uses it"
        )
    return _kernels[spec]


@functools.cache
def _thread_pool() -> int | None:
    """Return the address of torch's own parallel loop (torch >= 2.10), or None: one thread."""
    name = {"darwin": "libtorch_cpu.dylib", "win32": "torch_cpu.dll"}.get(sys.platform, "libtorch_cpu.so")
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / name))
        return ctypes.cast(library.torch_parallel_for, ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None


# ------------------------------------------------------------------------------- the CPU kernels


def _relax_cpu(
    x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str, spec: str
) -> tuple[Tensor, Tensor]:
    kernel = _kernel(spec)
    library = kernel.library()
    if library is None:
        _check_values(kernel, steepness, payload, routing)
        values, routed = reference.relax(kernel, x, steepness, payload, routing)
        return _apart(values, x, steepness), _apart(routed, x, payload)
    _check_tensors(kernel, x, steepness, payload, routing)
    values, routed = _relax_fake(x, steepness, payload, routing, spec)
    x = x.contiguous()
    payload = _inner_contiguous(payload)
    status = library.functions[_real(x)].forward(
        *_call(x, steepness, payload, routing), values.data_ptr(), routed.data_ptr(), _thread_pool()
    )
    _check(status, kernel)
    return values, routed


def _relax_backward_cpu(
    values_grad: Tensor | None,
    routed_grad: Tensor | None,
    x: Tensor,
    steepness: Tensor,
    payload: Tensor | None,
    routing: str,
    spec: str,
) -> tuple[Tensor, Tensor, Tensor]:
    kernel = _kernel(spec)
    library = kernel.library()
    if library is None:
        grads = _reference_vjp(values_grad, routed_grad, x, steepness, payload, routing, spec)
        inputs = (values_grad, routed_grad, x, steepness, payload)
        return tuple(_apart(grad, *inputs) for grad in grads)  # type: ignore[return-value]
    _check_tensors(kernel, x, steepness, payload, routing)
    outputs = _relax_fake(x, steepness, payload, routing, spec)
    for grad, output in zip((values_grad, routed_grad), outputs, strict=True):
        if grad is not None:
            _expect(kernel, "gradient", grad, output.shape, output.dtype)
    grads = _relax_backward_fake(values_grad, routed_grad, x, steepness, payload, routing, spec)
    x = x.contiguous()
    payload = _inner_contiguous(payload)
    values_grad = None if values_grad is None else values_grad.contiguous()
    routed_grad = None if routed_grad is None else routed_grad.contiguous()
    if routed_grad is None:
        grads[2].zero_()
    status = library.functions[_real(x)].backward(
        *_call(x, steepness, payload, routing),
        _address(values_grad),
        _address(routed_grad),
        grads[0].data_ptr(),
        grads[1].data_ptr(),
        grads[2].data_ptr() if routing in _WITH_PAYLOAD_GRAD else None,
        _thread_pool(),
    )
    _check(status, kernel)
    return grads


def _argsort_cpu(x: Tensor, spec: str) -> Tensor:
    kernel = _kernel(spec)
    library = kernel.library()
    if library is None:
        return reference.argsort(x)
    _expect_keys(kernel, x)
    indices = _argsort_fake(x, spec)
    x = x.contiguous()
    status = library.functions[_real(x)].argsort(x.shape[0], x.data_ptr(), indices.data_ptr(), _thread_pool())
    _check(status, kernel)
    return indices


def _real(x: Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _call(x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str) -> tuple[Any, ...]:
    """Return the arguments that forward and backward share."""
    stride = 0 if payload is None else payload.stride(0)
    columns = payload.shape[2] if payload is not None and payload.dim() == 3 else 0
    return (
        ROUTINGS[routing],
        x.shape[0],
        x.data_ptr(),
        steepness.data_ptr(),
        steepness.stride(0),
        _address(payload),
        stride,
        columns,
    )


def _inner_contiguous(payload: Tensor | None) -> Tensor | None:
    """Return a payload whose samples are contiguous; one expanded over the batch stays one."""
    if payload is None or payload.shape[0] == 0:
        return payload
    if payload.stride(0) == 0 and payload.shape[0] > 1 and payload[0].is_contiguous():
        return payload
    return payload.contiguous()


def _apart(result: Tensor, *inputs: Tensor | None) -> Tensor:
    """Return the result contiguous and, as an operator must, with memory of its own."""
    result = result.contiguous()
    taken = {t.untyped_storage().data_ptr() for t in inputs if t is not None}
    return result.clone() if result.untyped_storage().data_ptr() in taken else result


def _check_tensors(
    kernel: Kernel, x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str
) -> None:
    """Check what a kernel cannot: that the memory it is given is what it takes it for."""
    _expect_keys(kernel, x)
    batch = x.shape[0]
    _expect(kernel, "steepness", steepness, (batch,), x.dtype)
    if routing not in ROUTINGS:
        raise OperandError(f"{kernel.name}: no routing {routing!r}; known: {', '.join(ROUTINGS)}")
    if routing in _WITH_PAYLOAD_GRAD:
        columns = payload.shape[2] if payload is not None and payload.dim() == 3 else 0
        _expect(kernel, "payload", payload, (batch, kernel.n, columns), x.dtype)
    elif routing in ("cross_entropy", "binary_cross_entropy"):
        _expect(kernel, "target", payload, (batch, kernel.n), torch.int64)


def _expect_keys(kernel: Kernel, x: Tensor) -> None:
    if _real(x) not in kernel.serves.values():
        raise OperandError(f"{kernel.name}: no kernel for {x.dtype}, only for {set(kernel.serves.values())}")
    _expect(kernel, "x", x, (x.shape[0] if x.dim() else 0, kernel.n), x.dtype)


def _expect(
    kernel: Kernel, what: str, tensor: Tensor | None, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    if tensor is None or tensor.shape != shape or tensor.dtype != dtype:
        found = "none" if tensor is None else f"{tensor.dtype} {tuple(tensor.shape)}"
        raise OperandError(f"{kernel.name}: {what} must be {dtype} {tuple(shape)}, got {found}")


def _check(status: int, kernel: Kernel) -> None:
    if status == _OUT_OF_MEMORY:
        raise MemoryError(f"{kernel.name}: not enough memory for the weights of one sample")
    if status == _BAD_STEEPNESS:
        raise OperandError(f"{kernel.name}: steepness must be a finite number above 0")
    if status == _NO_PERMUTATION:
        raise OperandError(
            f"{kernel.name}: target must hold each rank 0 … {kernel.n - 1} once in every sample"
        )
    assert status == 0


def _check_values(kernel: Kernel, steepness: Tensor, payload: Tensor | None, routing: str) -> None:
    """Check what a kernel checks itself."""
    steepness = steepness.detach()
    if not bool(((steepness > 0) & steepness.isfinite()).all()):
        _check(_BAD_STEEPNESS, kernel)
    if routing in ("cross_entropy", "binary_cross_entropy"):
        assert payload is not None
        ranks = torch.arange(kernel.n, device=payload.device)
        if not bool((payload.sort(-1).values == ranks).all()):
            _check(_NO_PERMUTATION, kernel)


# ----------------------------------------------------------------------------- shapes and formulas


def _relax_fake(
    x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str, spec: str
) -> tuple[Tensor, Tensor]:
    batch, n = x.shape
    if routing in _WITH_PAYLOAD_GRAD:
        assert payload is not None
        shape: tuple[int, ...] = (batch, n, payload.shape[2])
    else:
        shape = {"none": (batch, 0), "permutation": (batch, n, n)}.get(routing, (batch,))
    return x.new_empty((batch, n)), x.new_empty(shape)


def _relax_backward_fake(
    values_grad: Tensor | None,
    routed_grad: Tensor | None,
    x: Tensor,
    steepness: Tensor,
    payload: Tensor | None,
    routing: str,
    spec: str,
) -> tuple[Tensor, Tensor, Tensor]:
    shape = payload.shape if payload is not None and routing in _WITH_PAYLOAD_GRAD else (0,)
    return x.new_empty(x.shape), x.new_empty((x.shape[0],)), x.new_empty(shape)


def _argsort_fake(x: Tensor, spec: str) -> Tensor:
    return x.new_empty(x.shape, dtype=torch.int64)


def _reference_vjp(
    values_grad: Tensor | None,
    routed_grad: Tensor | None,
    x: Tensor,
    steepness: Tensor,
    payload: Tensor | None,
    routing: str,
    spec: str,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what `nsc::relax_backward` does, in differentiable torch operations."""
    kernel = _kernel(spec)
    differentiable = payload if routing in _WITH_PAYLOAD_GRAD else None

    def outputs(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        used = inputs[2] if differentiable is not None else payload
        return reference.relax(kernel, inputs[0], inputs[1], used, routing)

    inputs = (x, steepness) if differentiable is None else (x, steepness, differentiable)
    (values, routed), pullback = _vjp(outputs, *inputs)
    cotangents = (
        torch.zeros_like(values) if values_grad is None else values_grad,
        torch.zeros_like(routed) if routed_grad is None else routed_grad,
    )
    grads = pullback(cotangents)
    return grads[0], grads[1], grads[2] if differentiable is not None else x.new_empty(0)


def _vjp(
    function: Callable[..., tuple[Tensor, ...]], *inputs: Tensor
) -> tuple[tuple[Tensor, ...], Callable[[tuple[Tensor, ...]], tuple[Tensor, ...]]]:
    outputs, pullback = torch.func.vjp(function, *inputs)  # type: ignore[misc]
    return outputs, pullback


def _second_vjp(
    saved: tuple[Tensor | None, ...], cotangents: tuple[Tensor | None, ...], routing: str, spec: str
) -> tuple[Tensor | None, ...]:
    """Return the gradients of `nsc::relax_backward` with respect to its five tensors."""
    places = [place for place, t in enumerate(saved) if t is not None and t.dtype.is_floating_point]

    def backward(*chosen: Tensor) -> tuple[Tensor, ...]:
        inputs = list(saved)
        for place, tensor in zip(places, chosen, strict=True):
            inputs[place] = tensor
        return _reference_vjp(*inputs, routing, spec)  # type: ignore[call-arg, arg-type]

    outputs, pullback = _vjp(backward, *[t for t in map(saved.__getitem__, places) if t is not None])
    filled = tuple(
        torch.zeros_like(out) if given is None else given
        for out, given in zip(outputs, cotangents, strict=True)
    )
    grads: list[Tensor | None] = [None] * len(saved)
    for place, grad in zip(places, pullback(filled), strict=True):
        grads[place] = grad
    return tuple(grads)


def _setup_relax(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    x, steepness, payload, ctx.routing, ctx.spec = inputs
    ctx.save_for_backward(x, steepness, payload)
    # A loss on the values alone must not allocate an n × n zero gradient for P.
    ctx.set_materialize_grads(False)


def _setup_relax_backward(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    *tensors, ctx.routing, ctx.spec = inputs
    ctx.save_for_backward(*tensors)
    ctx.set_materialize_grads(False)


def _differentiate(backward: Callable[..., tuple[Tensor, ...]]) -> Callable[..., tuple[Tensor | None, ...]]:
    """Return the backward formula of `relax`, in terms of the operator or of the Function."""

    def formula(ctx: Any, values_grad: Tensor | None, routed_grad: Tensor | None) -> tuple[Any, ...]:
        if values_grad is None and routed_grad is None:
            return None, None, None, None, None
        saved = ctx.saved_tensors
        grads = backward(values_grad, routed_grad, *saved, ctx.routing, ctx.spec)
        payload_grad = grads[2] if ctx.routing in _WITH_PAYLOAD_GRAD else None
        return grads[0], grads[1], payload_grad, None, None

    return formula


def _differentiate_backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Any, ...]:
    if all(cotangent is None for cotangent in cotangents):
        return (None,) * 7
    return (*_second_vjp(ctx.saved_tensors, cotangents, ctx.routing, ctx.spec), None, None)


def _vmap(call: Callable[..., Any], info: Any, dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
    """Fold the mapped dimension into the batch, call, and unfold."""
    size = info.batch_size

    def fold(argument: Any, dim: int | None) -> Any:
        if not isinstance(argument, Tensor):
            return argument
        moved = argument.expand(size, *argument.shape) if dim is None else argument.movedim(dim, 0)
        return moved.reshape(size * moved.shape[1], *moved.shape[2:])

    outputs = call(*(fold(argument, dim) for argument, dim in zip(args, dims, strict=True)))
    many = outputs if isinstance(outputs, tuple) else (outputs,)
    unfolded = tuple(out.reshape(size, out.shape[0] // size, *out.shape[1:]) for out in many)
    return (unfolded, (0,) * len(many)) if isinstance(outputs, tuple) else (unfolded[0], 0)


class _Relax(torch.autograd.Function):
    """`nsc::relax` for torch.func."""

    @staticmethod
    def forward(*args: Any) -> Any:
        return torch.ops.nsc.relax(*args)

    setup_context = staticmethod(_setup_relax)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _differentiate(_RelaxBackward.apply)(ctx, *grads)

    @staticmethod
    def vmap(info: Any, dims: Any, *args: Any) -> Any:
        return _vmap(_Relax.apply, info, dims, *args)


class _RelaxBackward(torch.autograd.Function):
    """`nsc::relax_backward` for torch.func."""

    @staticmethod
    def forward(*args: Any) -> Any:
        return torch.ops.nsc.relax_backward(*args)

    setup_context = staticmethod(_setup_relax_backward)
    backward = staticmethod(_differentiate_backward)

    @staticmethod
    def vmap(info: Any, dims: Any, *args: Any) -> Any:
        return _vmap(_RelaxBackward.apply, info, dims, *args)


_SCHEMAS = {
    "relax": "(Tensor x, Tensor steepness, Tensor? payload, str routing, str kernel)"
    " -> (Tensor values, Tensor routed)",
    "relax_backward": "(Tensor? values_grad, Tensor? routed_grad, Tensor x, Tensor steepness,"
    " Tensor? payload, str routing, str kernel) -> (Tensor, Tensor, Tensor)",
    "argsort": "(Tensor x, str kernel) -> Tensor",
}
_IMPLEMENTATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "relax": (_relax_cpu, _relax_fake),
    "relax_backward": (_relax_backward_cpu, _relax_backward_fake),
    "argsort": (_argsort_cpu, _argsort_fake),
}

_library: Any = torch.library.Library("nsc", "DEF")  # type: ignore[no-untyped-call]
for _name, _schema in _SCHEMAS.items():
    _cpu, _fake = _IMPLEMENTATIONS[_name]
    _library.define(_name + _schema, tags=(torch.Tag.pt2_compliant_tag,))
    _library.impl(_name, _cpu, "CPU")
    torch.library.register_fake(f"nsc::{_name}", _fake, lib=_library)
    torch.library.register_vmap(
        f"nsc::{_name}",
        functools.partial(_vmap, getattr(torch.ops.nsc, _name)),
        lib=_library,
    )
torch.library.register_autograd(
    "nsc::relax",
    _differentiate(torch.ops.nsc.relax_backward),
    setup_context=_setup_relax,
    lib=_library,
)
torch.library.register_autograd(
    "nsc::relax_backward",
    _differentiate_backward,
    setup_context=_setup_relax_backward,
    lib=_library,
)
