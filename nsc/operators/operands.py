"""Operands: what users pass to an operator's methods, checked and converted to what kernels take."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import torch
from torch import Tensor

from nsc.arguments import real, shown
from nsc.contract.targets import TARGETS
from nsc.errors import OperandError, OperandTypeError
from nsc.runtime.checks import RANGES, bad_steepness
from nsc.runtime.dispatch.ways import PLAIN, Way, way_of
from nsc.runtime.kernel import Kernel
from nsc.wording import argument, count

Steepness = float | Tensor | None


class Operands:
    """What the methods of one operator take; an error names the operator and the method.

    Args:
        kernel: the operator's.
        default_steepness: what None as steepness stands for.
    """

    def __init__(self, kernel: Kernel, default_steepness: float) -> None:
        self._name = kernel.name
        self._n = kernel.n
        self._default_steepness = default_steepness
        self._targets = tuple(kernel.sources)
        self._devices = _Devices(device for name in self._targets for device in TARGETS[name].devices)
        self._dtypes = tuple(kernel.serves)
        # Dtype of a tensor to the arithmetic type that serves it.
        self._serves = {getattr(torch, name): getattr(torch, real) for name, real in kernel.serves.items()}

    def check_tensor(self, method: str, what: str, value: Any) -> None:
        """Raise OperandTypeError unless an argument is a tensor with dense memory."""
        if not isinstance(value, Tensor):
            raise OperandTypeError(
                f"{self._name}.{method}: {what} must be a tensor, got {type(value).__name__}{_advice(value)}"
            )
        if value.layout is not torch.strided or value.is_nested or value.is_quantized:
            raise OperandTypeError(
                f"{self._name}.{method}: {what} must be a dense tensor, {_not_dense(value)}"
            )

    def check_device(self, method: str, x: Tensor, other: Tensor) -> None:
        """Raise OperandError unless another tensor is where x is."""
        if other.device != x.device:
            raise OperandError(
                f"{self._name}.{method}: x is on {x.device} and the other tensor on "
                f"{other.device}: move one of them"
            )

    def check_payload(self, method: str, x: Tensor, payload: Tensor) -> None:
        """Raise an error unless a payload is (…, n, m) of floating-point numbers, for x of shape (…, n)."""
        self.check_tensor(method, "payload", payload)
        if not payload.dtype.is_floating_point:
            raise OperandTypeError(
                f"{self._name}.{method}: payload must have a floating-point dtype, got {payload.dtype}: "
                "convert it with .float()"
            )
        if payload.shape[:-1] != x.shape:
            raise OperandError(
                f"{self._name}.{method}: payload must be (…, n, m) = {(*x.shape, 'm')} for x of shape "
                f"{tuple(x.shape)}, got {tuple(payload.shape)}"
            )

    def check_target(self, method: str, x: Tensor, target: Tensor) -> None:
        """Raise an error unless a target has the shape of x and holds integers."""
        self.check_tensor(method, "target", target)
        if target.dtype.is_floating_point or target.dtype.is_complex or target.dtype == torch.bool:
            raise OperandTypeError(
                f"{self._name}.{method}: target holds ranks and must have an integer dtype, got "
                f"{target.dtype}: convert with target.long()"
            )
        if target.shape != x.shape:
            raise OperandError(
                f"{self._name}.{method}: target must have the shape of x, {tuple(x.shape)}, got "
                f"{tuple(target.shape)}"
            )

    def keys(self, method: str, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Return x as (batch, n), in the arithmetic type that serves a dtype.

        Args:
            method: the method that was called, for messages.
            x: what `check_tensor` lets through.
            dtype: that of x, or a wider one.
        """
        axes = x.dim()
        if axes == 0 or x.shape[-1] != self._n:
            last = f"{count(x.shape[-1], 'value')} on its last axis" if axes else "no axis"
            advice = f": compile one with {argument('n', x.shape[-1])}" if axes and x.shape[-1] else ""
            raise OperandError(f"{self._name}.{method}: x has {last}, this op sorts {self._n}{advice}")
        if not self._devices[x.device]:
            raise OperandError(
                f"{self._name}.{method}: x is on {x.device}, this op is compiled for "
                f"{', '.join(self._targets)}: move x, or compile with {argument('targets', tuple(TARGETS))}"
            )
        arithmetic = self._serves.get(dtype)
        if arithmetic is None:
            wider = f"compile it with {argument('dtypes', ('float32', 'float64'))}"
            advice = wider if dtype == torch.float64 else "convert it with .float()"
            raise OperandTypeError(
                f"{self._name}.{method}: dtype {dtype} is not served, this op takes "
                f"{', '.join(self._dtypes)}: {advice}"
            )
        return cast(x if axes == 2 else x.reshape(-1, self._n), arithmetic)

    def steepness(self, method: str, steepness: Steepness, keys: Tensor, way: Way) -> Tensor:
        """Return the steepness as (batch,), one value seen batch times, in the dtype of the keys.

        Args:
            method: the method that was called, for messages.
            steepness: as users pass it.
            keys: what `keys` returned.
            way: that of the call.
        """
        if steepness is None:
            steepness = self._default_steepness
        if type(steepness) is float and way is PLAIN and not keys.is_cuda:
            lowest, highest = RANGES[keys.dtype]
            if lowest <= steepness <= highest:
                return _constant(steepness, keys.dtype, keys.shape[0])
        if isinstance(steepness, Tensor):
            self._check_steepness_tensor(method, steepness, keys)
            if way is PLAIN and not keys.is_cuda and not steepness.requires_grad:
                number = self._steepness_number(method, steepness.item(), keys.dtype)
                return _constant(number, keys.dtype, keys.shape[0])
            value = steepness.to(keys.dtype)
        elif torch.compiler.is_compiling() and isinstance(
            steepness, int | float | torch.SymFloat | torch.SymInt
        ):
            # A number that changes is a symbol here: it multiplies without being known, and the kernel
            # checks it as it checks a tensor.
            value = keys.new_ones(()) * steepness
        else:
            number = self._steepness_number(method, steepness, keys.dtype)
            if keys.is_cuda:  # a fill may be captured in a CUDA graph, a copy from the host may not
                value = keys.new_full((1,), number)
            elif way is PLAIN:
                return _constant(number, keys.dtype, keys.shape[0])
            else:
                value = torch.tensor(number, dtype=keys.dtype, device=keys.device)
        return value.expand(keys.shape[0])

    def _check_steepness_tensor(self, method: str, steepness: Tensor, keys: Tensor) -> None:
        self.check_tensor(method, "steepness", steepness)
        if steepness.dim() != 0 or steepness.dtype.is_complex or steepness.dtype == torch.bool:
            what = f"a tensor of {steepness.dtype} and shape {tuple(steepness.shape)}"
            kind = OperandError if steepness.dim() else OperandTypeError
            raise bad_steepness(f"{self._name}.{method}", what, keys.dtype, kind)
        if steepness.device != keys.device:
            raise OperandError(
                f"{self._name}.{method}: x is on {keys.device} and steepness on "
                f"{steepness.device}: move one of them"
            )
        if steepness.dtype != keys.dtype and not keys.is_cuda and way_of(steepness, keys) is PLAIN:
            # Before a cast turns what the message should name into infinity or 0.
            self._steepness_number(method, steepness.item(), keys.dtype)

    def _steepness_number(self, method: str, steepness: object, dtype: torch.dtype) -> float:
        """Return a steepness that is a number in the range of a dtype, or raise the error that names it."""
        number = real(steepness)
        lowest, highest = RANGES[dtype]
        if number is None or not lowest <= number <= highest:
            what = type(steepness).__name__ if number is None else shown(steepness)
            kind = OperandTypeError if number is None else OperandError
            raise bad_steepness(f"{self._name}.{method}", what, dtype, kind)
        return number


class _Devices(dict[torch.device, bool]):
    """Whether an operator takes tensors on a device. The type of a device takes ten times as long to read.

    Args:
        types: the types of devices that it is compiled for; shapes alone it has on meta too.
    """

    def __init__(self, types: Iterable[str]) -> None:
        super().__init__()
        self._types = {*types, "meta"}

    def __missing__(self, device: torch.device) -> bool:
        self[device] = device.type in self._types
        return self[device]


def _advice(value: Any) -> str:
    if isinstance(value, torch.fx.Proxy):
        return ": torch.fx traces nsc.nn.SortingNetwork, not this method; torch.export traces both"
    return ""


def _not_dense(tensor: Tensor) -> str:
    """Return what a tensor is that has no dense memory, and how it gets some."""
    if tensor.is_nested:
        return (
            "got a nested one: pad it with torch.nested.to_padded_tensor, or sort the tensors of .unbind() "
            "one at a time"
        )
    if tensor.is_quantized:
        return "got a quantized one: convert it with .dequantize()"
    return f"got the layout {tensor.layout}: convert it with .to_dense()"


def tensor_of(steepness: Steepness) -> Tensor | None:
    """Return a steepness that is a tensor, None for one that is not."""
    # To look whether a float is a Tensor takes torch longer than both of these.
    if steepness is None or type(steepness) is float:
        return None
    return steepness if isinstance(steepness, Tensor) else None


def cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a tensor in a dtype; itself where it has it.

    A tensor's methods make a new tensor even where nothing changes, which takes as long as a small sort.
    """
    return x if x.dtype == dtype else x.to(dtype)


def unfolded(result: Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Return a result with the leading shape and the dtype that the user's operand has."""
    return cast(result if result.shape == shape else result.reshape(shape), dtype)


def kept_or_new(make: Callable[..., Tensor], like: Tensor, *facts: Hashable) -> Tensor:
    """Return `make(device, *facts)` for a tensor's device; the same tensor again in calls of plain tensors.

    To make it takes as long as a small sort. Callers must not write to it, nor hand it out.
    """
    if way_of(like) is PLAIN:
        return _kept(make, like.device, *facts)
    return make(like.device, *facts)


@functools.lru_cache(maxsize=64)
def _kept(make: Callable[..., Tensor], *facts: Hashable) -> Tensor:
    # A call in inference mode may be the first, and one that needs gradients the next.
    with torch.inference_mode(False):
        return make(*facts)


@functools.lru_cache(maxsize=64)
def _constant(value: float, dtype: torch.dtype, batch: int) -> Tensor:
    """Return a steepness seen `batch` times."""
    with torch.inference_mode(False):
        return torch.tensor(value, dtype=dtype, device="cpu").expand(batch)
