"""Operands: the arguments of an operator's methods, checked and converted for kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import torch
from torch import Tensor

from nsc.arguments import real, whole
from nsc.contract.targets import TARGETS
from nsc.errors import OperandError, OperandTypeError
from nsc.runtime.dispatch.ways import PLAIN, Way, way_of
from nsc.runtime.relaxed.checks import RANGES, bad_steepness
from nsc.runtime.relaxed.kernel import Kernel
from nsc.wording import argument, count

Steepness = float | Tensor | None
# Dtypes of ranks and lengths.
INTEGERS = frozenset(
    getattr(torch, name)
    for name in ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
    if hasattr(torch, name)
)


class Operands:
    """Checks and converts the arguments of one operator's methods; errors name the operator and the method.

    Args:
        kernel: the operator's kernel.
        default_steepness: the steepness that None means.
        takes_fewer: whether calls may have fewer values than the kernel has wires.
    """

    def __init__(self, kernel: Kernel, default_steepness: float, takes_fewer: bool) -> None:
        self.name = kernel.name
        self._n = kernel.n
        self._takes_fewer = takes_fewer
        self._default_steepness = default_steepness
        self._targets = tuple(kernel.sources)
        self._devices = _Devices(device for name in self._targets for device in TARGETS[name].devices)
        self._dtypes = tuple(kernel.serves)
        # Dtype of a tensor to the arithmetic type that serves it.
        self._serves = {getattr(torch, name): getattr(torch, real) for name, real in kernel.serves.items()}

    def check_payload(self, method: str, x: Tensor, payload: Tensor) -> None:
        """Raise an error unless a payload holds floating-point numbers, a row for each value of x."""
        check_dense(f"{self.name}.{method}", "payload", payload)
        if not payload.dtype.is_floating_point:
            raise OperandTypeError(
                f"{self.name}.{method}: payload must have a floating-point dtype, got {payload.dtype}: "
                "convert it with .float()"
            )
        if payload.shape[:-1] != x.shape:
            raise OperandError(
                f"{self.name}.{method}: payload must be {(*x.shape, 'm')} for x of shape "
                f"{tuple(x.shape)}, got {tuple(payload.shape)}"
            )

    def axis(self, method: str, x: Tensor, dim: int) -> tuple[int | None, int | None]:
        """Check x; return the axis, None for the last, that a call sorts along, and what `wires_for` says."""
        check_dense(f"{self.name}.{method}", "x", x)
        if self._takes_fewer:
            axis = axis_of(f"{self.name}.{method}", x, None, dim)
            wires = self.wires_for(x.shape[axis] if x.dim() else 1)
            if wires is not None:
                return axis, wires
        if type(dim) is int and dim == -1 and x.dim():
            return None, None
        return axis_of(f"{self.name}.{method}", x, self._n, dim), None

    def wires_for(self, m: int) -> int | None:
        """Return how many wires m values are arranged for; None: as many as the kernel has."""
        # A trace that knew whether wires are missing would not serve calls that fill all wires.
        is_whole = not torch.compiler.is_compiling() and m == self._n
        return None if is_whole or not self._takes_fewer else self._n

    def keys(self, method: str, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Return x as (batch, n), in the arithmetic type that serves a dtype: x's own, or a wider one."""
        if x.shape[-1] != self._n:
            raise _wrong_length(f"{self.name}.{method}", x.shape[-1], "on its last axis", self._n)
        if not self._devices[x.device]:
            raise OperandError(f"{self.name}.{method}: x is on {x.device}, {self._served(x.device)}")
        arithmetic = self._serves.get(dtype)
        if arithmetic is None:
            wider = f"compile it with {argument('dtypes', ('float32', 'float64'))}"
            advice = wider if dtype == torch.float64 else "convert it with .float()"
            raise OperandTypeError(
                f"{self.name}.{method}: dtype {dtype} is not served, this op takes "
                f"{', '.join(self._dtypes)}: {advice}"
            )
        return cast(x if x.dim() == 2 else x.reshape(-1, self._n), arithmetic)

    def payload(self, method: str, payload: Tensor, routing: str, x: Tensor, keys: Tensor) -> Tensor:
        """Return a payload as a kernel takes it: its samples in one axis, floats in the keys' type.

        It has the leading axes of x, or none if all samples share it.
        """
        if payload.device != x.device:
            check_device(f"{self.name}.{method}", x, "the other tensor", payload)
        if payload.dtype != keys.dtype and payload.dtype.is_floating_point:
            payload = payload.to(keys.dtype)
        batch, axes = keys.shape[0], 1 if routing == "rows" else 2
        if payload.dim() == axes:
            return payload.expand(batch, *payload.shape)
        return payload if x.dim() == 2 else payload.reshape(batch, *payload.shape[x.dim() - 1 :])

    def _served(self, device: torch.device) -> str:
        """Return which devices have kernels, and what to do, for a message about one that has none."""
        known = [kind for target in TARGETS.values() for kind in target.devices]
        if device.type not in known:
            return f"nsc has kernels for {' and '.join(known)} alone: move x with .cpu()"
        return (
            f"this op is compiled for {', '.join(self._targets)}: move x, or compile with "
            f"{argument('targets', tuple(TARGETS))}"
        )

    def steepness(self, method: str, steepness: Steepness, keys: Tensor, way: Way, x: Tensor) -> Tensor:
        """Return the steepness as (batch,), one value expanded to the batch, in the dtype of the keys."""
        if steepness is None:
            steepness = self._default_steepness
        if type(steepness) is float and way is PLAIN and not keys.is_cuda:
            lowest, highest = RANGES[keys.dtype]
            if lowest <= steepness <= highest:
                return _constant(steepness, keys.dtype, keys.shape[0])
        if isinstance(steepness, Tensor):
            leading = x.shape[:-1]
            self._check_steepness_tensor(method, steepness, keys, leading)
            if steepness.dim():
                # The kernel checks the values, and names the first wrong one.
                return steepness.to(keys.dtype).expand(leading).reshape(-1)
            if way is PLAIN and not keys.is_cuda and not steepness.requires_grad:
                number = self._steepness_number(method, steepness.item(), keys.dtype)
                return _constant(number, keys.dtype, keys.shape[0])
            value = steepness.to(keys.dtype)
        elif torch.compiler.is_compiling() and isinstance(
            steepness, int | float | torch.SymFloat | torch.SymInt
        ):
            # While torch compiles, a number that changes is a symbol. Its value is not known yet, so the
            # kernel checks it, as it checks a tensor's.
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

    def _check_steepness_tensor(
        self, method: str, steepness: Tensor, keys: Tensor, leading: torch.Size
    ) -> None:
        check_dense(f"{self.name}.{method}", "steepness", steepness)
        is_wrong = steepness.dtype.is_complex or steepness.dtype == torch.bool
        if is_wrong or not _can_expand(steepness.shape, leading):
            what = f"a tensor of {steepness.dtype} and shape {tuple(steepness.shape)}"
            if not is_wrong:
                what += f" for samples of shape {tuple(leading)}"
            kind = OperandTypeError if is_wrong else OperandError
            raise bad_steepness(f"{self.name}.{method}", what, keys.dtype, kind)
        check_device(f"{self.name}.{method}", keys, "steepness", steepness)
        is_one = steepness.dim() == 0
        if is_one and steepness.dtype != keys.dtype and not keys.is_cuda and way_of(steepness, keys) is PLAIN:
            # Checked before the cast, which may turn the value that a message names into infinity or 0.
            self._steepness_number(method, steepness.item(), keys.dtype)

    def _steepness_number(self, method: str, steepness: object, dtype: torch.dtype) -> float:
        """Return a steepness that is a number in the range of a dtype, or raise the error that names it."""
        number = real(steepness)
        lowest, highest = RANGES[dtype]
        if number is None or not lowest <= number <= highest:
            what = type(steepness).__name__ if number is None else repr(number)
            kind = OperandTypeError if number is None else OperandError
            raise bad_steepness(f"{self.name}.{method}", what, dtype, kind)
        return number


def check_dense(caller: str, what: str, value: Any) -> None:
    """Raise OperandTypeError unless an argument of a caller is a tensor with dense memory."""
    if not isinstance(value, Tensor):
        raise OperandTypeError(
            f"{caller}: {what} must be a tensor, got {type(value).__name__}{_advice(value)}"
        )
    if value.layout is not torch.strided or value.is_nested or value.is_quantized:
        raise OperandTypeError(f"{caller}: {what} must be a dense tensor, {_not_dense(value)}")


def check_device(caller: str, x: Tensor, what: str, other: Tensor) -> None:
    """Raise OperandError unless another tensor is where x is."""
    if other.device != x.device:
        raise OperandError(f"{caller}: x is on {x.device} and {what} on {other.device}: move one of them")


def _can_expand(shape: torch.Size, leading: torch.Size) -> bool:
    """Return whether a tensor of a shape expands to another shape."""
    if len(shape) > len(leading):
        return False
    last = leading[len(leading) - len(shape) :]
    return all(own in (1, other) for own, other in zip(shape, last, strict=True))


def axis_of(caller: str, x: Tensor, n: int | None, dim: int) -> int:
    """Return an axis as a number from 0 on; 0 for a tensor without axes, which is one value.

    Raises:
        OperandTypeError: a dim that is not a whole number.
        OperandError: no such axis, or another number of values along it than n, unless that is None.
    """
    number, axes = whole(dim), max(1, x.dim())
    if number is None:
        raise OperandTypeError(f"{caller}: dim must be an integer, got {dim!r}")
    if not -axes <= number < axes:
        raise OperandError(
            f"{caller}: dim must be in {-axes} … {axes - 1} for x of {x.dim()} axes, got {dim}"
        )
    length = x.shape[number] if x.dim() else 1
    if n is not None and length != n:
        if not x.dim():
            raise OperandError(f"{caller}: x has no axis, this op sorts {n}")
        if tuple(x.shape[-2:]) == (n, 1):
            raise OperandError(
                f"{caller}: x has the shape {tuple(x.shape)}, this op sorts {n} along dim {dim}: drop the "
                "last axis with .squeeze(-1)"
            )
        raise _wrong_length(caller, length, f"along dim {dim}", n)
    return number % axes


def k_of(caller: str, k: object, n: int | None) -> int:
    """Return k as an integer: how many of n values are asked for, or of any number if n is None.

    Raises:
        OperandError: it is no integer in 1 … n.
    """
    number = whole(k)
    if number is None or number < 1 or (n is not None and number > n):
        known = "of 1 or more" if n is None else f"in 1 … {n}"
        raise OperandError(f"{caller}: k must be an integer {known}, got {k!r}")
    return number


def _wrong_length(caller: str, length: int, where: str, n: int) -> OperandError:
    advice = f": compile one with {argument('n', length)}" if length else ""
    return OperandError(f"{caller}: x has {count(length, 'value')} {where}, this op sorts {n}{advice}")


class _Devices(dict[torch.device, bool]):
    """Whether an operator takes tensors on a device. Kept: reading `device.type` is ten times slower."""

    def __init__(self, types: Iterable[str]) -> None:
        super().__init__()
        self._types = {*types, "meta"}  # meta for shapes alone
        # Known from the start: a program that found no entry here would be traced again once there is one.
        self[torch.device("cpu")] = "cpu" in self._types

    def __missing__(self, device: torch.device) -> bool:
        self[device] = device.type in self._types
        return self[device]


def _advice(value: Any) -> str:
    if isinstance(value, torch.fx.Proxy):
        return ": torch.fx traces modules of nsc.nn, not this method; torch.export traces both"
    if isinstance(value, list | tuple) or hasattr(value, "__array__"):
        return ": convert it with torch.tensor"
    return ""


def _not_dense(tensor: Tensor) -> str:
    """Return why a tensor has no dense memory, and how to convert it, for a message."""
    if tensor.is_nested:
        return (
            "got a nested one: pad it with torch.nested.to_padded_tensor, or take the tensors of .unbind() "
            "one at a time"
        )
    if tensor.is_quantized:
        return "got a quantized one: convert it with .dequantize()"
    return f"got the layout {tensor.layout}: convert it with .to_dense()"


def tensor_of(steepness: Steepness) -> Tensor | None:
    """Return a steepness that is a tensor, None for one that is not."""
    # isinstance(…, Tensor) takes longer for a float than both of these.
    if steepness is None or type(steepness) is float:
        return None
    return steepness if isinstance(steepness, Tensor) else None


def cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a tensor in a dtype; the tensor itself if it has this dtype.

    A tensor's methods make a new tensor even where nothing changes, which takes as long as a small sort.
    """
    return x if x.dtype == dtype else x.to(dtype)


def as_loss(loss: Tensor, scores: Tensor) -> Tensor:
    """Return a loss in the dtype of its scores; under autocast in float32 at least, as torch's losses.

    A float16 loss, multiplied by the factor of a `GradScaler`, would soon be infinite.
    """
    dtype = scores.dtype
    if loss.dtype == dtype:
        return loss
    # torch has no autocast for tensors on meta.
    if dtype.itemsize < 4 and not scores.is_meta and torch.is_autocast_enabled(scores.device.type):
        dtype = torch.float32
    return loss.to(dtype)


def whole_range(dtype: torch.dtype) -> tuple[int, int]:
    """Return the least and the greatest number of a dtype of integers, or of bool."""
    return (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)


def unfolded(result: Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Return a result with the leading shape and the dtype that the user's operand has."""
    return cast(result if result.shape == shape else result.reshape(shape), dtype)


def kept_or_new(make: Callable[..., Tensor], like: Tensor, *facts: Hashable) -> Tensor:
    """Return `make(device, *facts)` for a tensor's device. Calls on plain tensors get the same tensor again.

    Making it takes as long as a small sort. Callers must neither write to it nor hand it out.
    """
    if way_of(like) is PLAIN:
        return _kept(make, like.device, *facts)
    return make(like.device, *facts)


@functools.lru_cache(maxsize=64)
def _kept(make: Callable[..., Tensor], *facts: Hashable) -> Tensor:
    # The first call may be in inference mode, and the next one need gradients.
    with torch.inference_mode(False):
        return make(*facts)


@functools.lru_cache(maxsize=64)
def _constant(value: float, dtype: torch.dtype, batch: int) -> Tensor:
    """Return one steepness expanded to the batch."""
    with torch.inference_mode(False):
        return torch.tensor(value, dtype=dtype, device="cpu").expand(batch)
